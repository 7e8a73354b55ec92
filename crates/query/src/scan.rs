//! Scans the characters of a query into the pieces of a term.

use super::address;
use super::error::QueryError;
use super::fold::is_word_character;
use crate::limits::QUERY_TEXT_BYTES_MAX;

/// An operator between two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryOperator {
    And,
    Or,
    Not,
}

impl QueryOperator {
    /// The spellings of operators. `!` is handled like the sign `-`.
    const SPELLINGS: [(&str, Self); 5] = [
        ("AND", Self::And),
        ("OR", Self::Or),
        ("NOT", Self::Not),
        ("&&", Self::And),
        ("||", Self::Or),
    ];
}

/// The meaning of a colon within a run of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColonMeaning {
    /// The colon ends the name of a field.
    EndsName,
    /// The colon is an ordinary character.
    Character,
}

/// A sequence of characters without a space, from which a term is parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CharacterRun {
    /// The characters, without escaping backslashes and without a final star.
    pub(super) text: String,
    /// The position of the first character.
    pub(super) start: usize,
    /// The position of the star at the end, if there is one.
    pub(super) star_position: Option<usize>,
    /// The first unescaped `<`, `>` or `=`, if there is one.
    pub(super) comparison: Option<ComparisonSign>,
    /// True if the run is a URL such as `https://…`, in which every character but the final star is literal.
    pub(super) is_address: bool,
}

/// A `<`, `>` or `=` in a run of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComparisonSign {
    /// The length in bytes of the text before it in [`CharacterRun::text`].
    pub(super) bytes_before: usize,
    /// Its position in the query.
    pub(super) position: usize,
}

/// A cursor over the characters of a query. Positions are in characters, from 1.
pub(super) struct QueryScanner {
    chars: Vec<char>,
    at: usize,
}

impl QueryScanner {
    /// Starts at the first character. Fails if the text is too long or has a character that is not valid in text.
    pub(super) fn new(text: &str) -> Result<Self, QueryError> {
        // Checked before the copy below, which needs four bytes for each character.
        if text.len() > QUERY_TEXT_BYTES_MAX {
            let within_limit = &text[..text.floor_char_boundary(QUERY_TEXT_BYTES_MAX)];
            let what = format!("longer than {QUERY_TEXT_BYTES_MAX} bytes");
            return Err(QueryError { what, position: within_limit.chars().count() + 1 });
        }
        let chars: Vec<char> = text.chars().collect();
        match chars.iter().position(|&c| is_invalid(c)) {
            Some(at) => Err(QueryError { what: "not valid text".to_owned(), position: at + 1 }),
            None => Ok(Self { chars, at: 0 }),
        }
    }

    /// Returns the next character without consuming it.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Consumes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Returns the position of the next character; at the end, the position after the last character.
    pub(super) fn position(&self) -> usize {
        self.at + 1
    }

    /// Creates an error at the next character.
    pub(super) fn error(&self, what: impl Into<String>) -> QueryError {
        QueryError { what: what.into(), position: self.position() }
    }

    /// Skips spaces, as within the brackets of a range.
    pub(super) fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Skips spaces and isolated punctuation, as in `storm – Kvarken` and `storm & hav`.
    ///
    /// Characters with a meaning in this or a different query language, such as `|`, `<`, `=`, are not skipped.
    pub(super) fn skip_space_and_marks(&mut self) {
        loop {
            self.skip_space();
            let rest = &self.chars[self.at..];
            let length = rest.iter().position(|&c| is_delimiter(c)).unwrap_or(rest.len());
            let (piece, following) = rest.split_at(length);
            // A sign before a space is an incomplete term, and the parser reports it.
            let is_sign = piece.first().is_none_or(|c| matches!(c, '!' | '+' | '-'));
            let is_alone = following.first().is_none_or(|&c| c.is_whitespace() || c == ')');
            // `&&` is an operator even between two spaces; a single `&` is punctuation.
            let has_operator = piece.windows(2).any(|pair| pair == ['&', '&']);
            let is_punctuation = piece.iter().all(|&c| is_mark(c));
            if is_sign || !is_alone || !is_punctuation || has_operator {
                return;
            }
            self.at += length;
        }
    }

    /// Returns the operator at the cursor and its length in characters, if there is one.
    fn operator_ahead(&self) -> Option<(QueryOperator, usize)> {
        let rest = &self.chars[self.at..];
        QueryOperator::SPELLINGS.into_iter().find_map(|(name, operator)| {
            // `ORKAN` is a word that begins like an operator; `&&` and `||` need no space after them.
            let is_word = name.starts_with(char::is_alphabetic);
            let ends = !is_word || rest.get(name.len()).is_none_or(|&c| is_delimiter(c));
            (begins(rest, name) && ends).then_some((operator, name.len()))
        })
    }

    /// Returns whether `&&` or `||` follows. Unlike word operators, they end a word without a space.
    fn is_operator_sign(&self) -> bool {
        let rest = &self.chars[self.at..];
        begins(rest, "&&") || begins(rest, "||")
    }

    /// Returns the operator at the cursor without consuming it, if there is one.
    pub(super) fn peek_operator(&self) -> Option<QueryOperator> {
        self.operator_ahead().map(|(operator, _)| operator)
    }

    /// Consumes the operator if it is next.
    pub(super) fn take_operator(&mut self, operator: QueryOperator) -> bool {
        let found = self.operator_ahead().filter(|(found, _)| *found == operator);
        self.at += found.map_or(0, |(_, length)| length);
        found.is_some()
    }

    /// Returns the text of the next operator, for a message.
    pub(super) fn operator_text(&self) -> String {
        let length = self.operator_ahead().map_or(0, |(_, length)| length);
        self.chars[self.at..self.at + length].iter().collect()
    }

    /// Consumes characters up to a space, parenthesis, bracket, quote, `&&` or `||`, or a colon that ends a
    /// name.
    ///
    /// A backslash makes the next character literal. Fails on a star that is not at the end, and on unsupported
    /// syntax of other query languages.
    pub(super) fn scan_run(&mut self, colon: ColonMeaning) -> Result<CharacterRun, QueryError> {
        let is_address = address::is_absolute(&self.chars[self.at..]);
        let start = self.position();
        let text = String::new();
        let mut run =
            CharacterRun { text, start, star_position: None, comparison: None, is_address };
        while let Some(c) = self.peek() {
            let ends = if is_address {
                // An address may have brackets, as in an IPv6 host.
                is_delimiter(c) && !matches!(c, '[' | ']' | '{' | '}')
            } else {
                let ends_name = c == ':' && colon == ColonMeaning::EndsName;
                is_delimiter(c) || ends_name || self.is_operator_sign()
            };
            if ends {
                break;
            }
            // The run continues, so the star was not its last character.
            if let Some(position) = run.star_position {
                return Err(star_within(position));
            }
            if !is_address {
                self.check_meaning(c, &run)?;
            }
            match c {
                '*' => {
                    // A star directly after a phrase or a group would look like a wildcard on it.
                    if run.text.is_empty() && self.follows_term(run.start) {
                        return Err(star_within(run.start));
                    }
                    run.star_position = Some(self.position());
                    self.at += 1;
                }
                '<' | '>' | '=' => {
                    run.comparison.get_or_insert(ComparisonSign {
                        bytes_before: run.text.len(),
                        position: self.position(),
                    });
                    run.text.push(c);
                    self.at += 1;
                }
                _ if is_address => run.text.extend(self.next()),
                _ => run.text.push(self.literal()?),
            }
        }
        Ok(run)
    }

    /// Fails if the next character `c` of `run` has a meaning in other query languages.
    fn check_meaning(&self, c: char, run: &CharacterRun) -> Result<(), QueryError> {
        let rest = &self.chars[self.at..];
        let is_first = self.position() == run.start;
        let what = match c {
            // A question mark at the end of a word is punctuation.
            '?' if rest.get(1).is_some_and(|c| is_word_character(*c)) => {
                "a ? within a word is not a wildcard (in quotes it is text)"
            }
            '^' => "^ is not supported, words have no weights (in quotes it is text)",
            // At the start of a word, as in `~100`, it is punctuation for "about".
            '~' if !is_first || self.follows_term(run.start) => {
                "~ is not supported, words match as written (in quotes it is text)"
            }
            // A slash without a closing one is punctuation, as in `AC/DC` and `/TT`.
            '/' if is_first && closes_regex(rest) => {
                "regular expressions are not supported (in quotes / is text)"
            }
            _ => return Ok(()),
        };
        Err(self.error(what))
    }

    /// Returns whether a phrase or a group ends directly before the position.
    fn follows_term(&self, position: usize) -> bool {
        // Positions count from 1, so the index of the previous character is `position - 2`.
        let before = position.checked_sub(2).and_then(|at| self.chars.get(at));
        before.is_some_and(|&c| is_quote(c) || c == ')')
    }

    /// Consumes the next character; after a backslash, the character that it escapes.
    fn literal(&mut self) -> Result<char, QueryError> {
        if self.peek() == Some('\\') {
            self.at += 1;
        }
        self.next().ok_or_else(|| self.error("expected a character after \\"))
    }

    /// Consumes a quoted text. The opening quote is the next character.
    pub(super) fn quoted(&mut self) -> Result<String, QueryError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error("expected a closing quote")),
                // As punctuation the star would be ignored, although a wildcard was meant.
                Some('*') => return Err(self.error("a * within quotes is not a wildcard")),
                Some(c) if is_quote(c) => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(_) => text.push(self.literal()?),
            }
        }
    }

    /// Consumes characters up to a space, parenthesis, bracket, quote, `&&` or `||`.
    pub(super) fn bound(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| !is_delimiter(c)) && !self.is_operator_sign() {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }
}

/// Returns whether `c` is a straight or typographic quote. Each kind opens and closes.
pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”')
}

fn star_within(position: usize) -> QueryError {
    QueryError { what: "a * can only be at the end of a word".to_owned(), position }
}

/// Returns whether `chars` starts with `text`.
fn begins(chars: &[char], text: &str) -> bool {
    let mut chars = chars.iter();
    text.chars().all(|c| chars.next() == Some(&c))
}

/// Returns whether the `/` at the start of `rest` opens a regular expression, that is, a second `/` ends a word.
fn closes_regex(rest: &[char]) -> bool {
    // An expression has at least one character, so `//` is not an expression.
    for at in 2..rest.len() {
        let before = rest[at - 1];
        let closes = rest[at] == '/' && before != '\\' && !before.is_whitespace();
        if closes && rest.get(at + 1).is_none_or(|&c| is_delimiter(c)) {
            return true;
        }
    }
    false
}

fn is_invalid(c: char) -> bool {
    // A replacement character is left by bytes that were not UTF-8.
    c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())
}

/// Returns `true` for punctuation without a meaning in a query language.
fn is_mark(c: char) -> bool {
    !is_word_character(c) && !"*^~|<>=:\\".contains(c)
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, '(' | ')' | '[' | ']' | '{' | '}')
}
