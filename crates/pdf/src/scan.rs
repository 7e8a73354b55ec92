//! Splits content streams into tokens, given as byte ranges, without recursion.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind {
    Number(f32),
    /// A name; its range includes the slash.
    Name,
    /// A whole string, array or dictionary.
    Other,
    Operator,
}

/// A token with its byte range `start..end`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ContentToken {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// An iterator over the tokens of a content stream.
#[derive(Debug, Clone)]
pub(super) struct ContentScanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

pub(super) fn is_space(byte: u8) -> bool {
    // ISO 32000-1 §7.2.2, Table 1.
    matches!(byte, b'\0' | b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

impl<'a> ContentScanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> ContentScanner<'a> {
        ContentScanner { bytes, at: 0 }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_while(&mut self, holds: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| !holds(*byte)).unwrap_or(rest.len());
    }

    pub(super) fn skip_space(&mut self) {
        loop {
            self.skip_while(is_space);
            if self.peek(0) != Some(b'%') {
                return;
            }
            // A comment counts as white space.
            self.skip_while(|byte| byte != b'\n' && byte != b'\r');
        }
    }

    /// Returns the next token; `None` at the end.
    pub(super) fn next(&mut self) -> Option<ContentToken> {
        self.skip_space();
        let start = self.at;
        let kind = match self.peek(0)? {
            b'(' => self.string(),
            b'[' => self.group(),
            b'<' if self.peek(1) == Some(b'<') => self.group(),
            b'<' => {
                self.skip_while(|byte| byte != b'>');
                self.at = (self.at + 1).min(self.bytes.len());
                TokenKind::Other
            }
            b'/' => {
                self.at += 1;
                self.skip_while(is_regular);
                TokenKind::Name
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => {
                self.skip_while(is_regular);
                TokenKind::Number(parse_number(&self.bytes[start..self.at]))
            }
            // A stray bracket is a token of its own, so that the scanner always advances.
            byte if is_delimiter(byte) => {
                self.at += 1;
                TokenKind::Other
            }
            _ => {
                self.skip_while(is_regular);
                TokenKind::Operator
            }
        };
        Some(ContentToken { kind, start, end: self.at })
    }

    /// Skips a literal string; parentheses nest, and a backslash escapes the next byte.
    fn string(&mut self) -> TokenKind {
        let mut depth = 0usize;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match byte {
                // An escaped parenthesis does not nest.
                b'\\' => self.at = (self.at + 1).min(self.bytes.len()),
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        TokenKind::Other
    }

    /// Skips an array or dictionary with its contents; brackets of both kinds are counted together.
    fn group(&mut self) -> TokenKind {
        let mut depth = 0usize;
        loop {
            self.skip_space();
            let Some(byte) = self.peek(0) else { break };
            let double = self.peek(1) == Some(byte);
            match byte {
                // A string may contain brackets.
                b'(' => {
                    self.string();
                    continue;
                }
                b'[' => depth += 1,
                b'<' if double => {
                    depth += 1;
                    self.at += 1;
                }
                b'<' => self.skip_while(|byte| byte != b'>'),
                b']' => depth = depth.saturating_sub(1),
                b'>' if double => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                _ => {}
            }
            self.at = (self.at + 1).min(self.bytes.len());
            if depth == 0 {
                break;
            }
        }
        TokenKind::Other
    }
}

/// Parses a number as readers do: text from a second point or a stray letter on is ignored.
pub(super) fn parse_number(text: &[u8]) -> f32 {
    let signs = text.iter().take_while(|byte| matches!(byte, b'+' | b'-')).count();
    // Some writers repeat the sign, and readers accept it.
    let negative = text[..signs].contains(&b'-');
    let digits = &text[signs..];
    let whole = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = whole;
    if digits.get(whole) == Some(&b'.') {
        end += 1 + digits[whole + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    let text = std::str::from_utf8(&digits[..end]).unwrap_or_default();
    let value: f32 = text.parse().unwrap_or(0.0);
    if negative { -value } else { value }
}

/// Decodes a name: removes its slash and resolves `#` escapes.
pub(super) fn name_of(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"/").unwrap_or(text);
    let mut name = Vec::with_capacity(text.len());
    let mut position = 0;
    while position < text.len() {
        let code =
            (text[position] == b'#').then(|| text.get(position + 1..position + 3)).flatten();
        // A `#` without two hexadecimal digits is a literal `#`.
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                name.push(byte);
                position += 3;
            }
            None => {
                name.push(text[position]);
                position += 1;
            }
        }
    }
    name
}
