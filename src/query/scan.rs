//! The characters of a query, and the pieces that a term is made of.

use super::parse::QueryError;
use crate::limits::QUERY_TEXT_BYTES_MAX;

/// A word between two terms that is no term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Not,
}

impl Operator {
    pub(super) const ALL: [Self; 3] = [Self::And, Self::Or, Self::Not];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Not => "NOT",
        }
    }
}

/// What a colon in a run of characters is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colon {
    /// The end of a field's name.
    EndsName,
    /// The same, unless it is that of `http://`.
    EndsNameOrScheme,
    /// A character like others.
    Character,
}

/// Characters without a space between them, of which a term is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The characters, without backslashes and the star at the end.
    pub(super) text: String,
    /// Where it begins.
    pub(super) start: usize,
    /// Where the star at its end is.
    pub(super) star: Option<usize>,
}

/// Reads a query from its first character on. Positions are in characters; the first is 1.
pub(super) struct Scanner {
    chars: Vec<char>,
    at: usize,
}

impl Scanner {
    /// Fails when the text is too long or has a character that no text has.
    pub(super) fn new(text: &str) -> Result<Self, QueryError> {
        if text.len() > QUERY_TEXT_BYTES_MAX {
            let fits = &text[..text.floor_char_boundary(QUERY_TEXT_BYTES_MAX)];
            let what = format!("longer than the {QUERY_TEXT_BYTES_MAX} bytes that are allowed");
            return Err(QueryError { what, position: fits.chars().count() + 1 });
        }
        let chars: Vec<char> = text.chars().collect();
        let bad = |c: &char| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace());
        match chars.iter().position(bad) {
            Some(at) => Err(QueryError { what: "not valid text".to_owned(), position: at + 1 }),
            None => Ok(Self { chars, at: 0 }),
        }
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Takes the next character.
    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// The position of the next character, also behind the last one.
    pub(super) fn position(&self) -> usize {
        self.at + 1
    }

    /// A failure at the next character.
    pub(super) fn error(&self, what: impl Into<String>) -> QueryError {
        QueryError { what: what.into(), position: self.position() }
    }

    pub(super) fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// The operator that comes next, if one does.
    pub(super) fn upcoming(&self) -> Option<Operator> {
        let rest = &self.chars[self.at..];
        Operator::ALL.into_iter().find(|operator| {
            let name = operator.as_str();
            let behind = rest.get(name.len());
            rest.len() >= name.len()
                && rest.iter().copied().zip(name.chars()).all(|(found, c)| found == c)
                && behind.is_none_or(|&c| is_delimiter(c))
        })
    }

    /// Takes the operator if it comes next.
    pub(super) fn takes(&mut self, operator: Operator) -> bool {
        let found = self.upcoming() == Some(operator);
        if found {
            self.at += operator.as_str().len();
        }
        found
    }

    /// Takes characters up to a space, parenthesis, bracket or quote, or a colon that ends a name.
    ///
    /// A backslash makes the next character one without a meaning. Fails on a star that is not at
    /// the end.
    pub(super) fn run(&mut self, colon: Colon) -> Result<Run, QueryError> {
        let mut run = Run { text: String::new(), start: self.position(), star: None };
        while let Some(c) = self.peek() {
            if is_delimiter(c) || (c == ':' && self.ends_name(colon)) {
                break;
            }
            if let Some(position) = run.star {
                let what = "a * stands only at the end of a word".to_owned();
                return Err(QueryError { what, position });
            }
            match c {
                '*' => {
                    run.star = Some(self.position());
                    self.at += 1;
                }
                _ => run.text.push(self.literal()?),
            }
        }
        Ok(run)
    }

    fn ends_name(&self, colon: Colon) -> bool {
        match colon {
            Colon::EndsName => true,
            Colon::EndsNameOrScheme => !self.chars[self.at + 1..].starts_with(&['/', '/']),
            Colon::Character => false,
        }
    }

    /// Takes the next character, or the one behind a backslash.
    fn literal(&mut self) -> Result<char, QueryError> {
        if self.peek() == Some('\\') {
            self.at += 1;
        }
        self.next().ok_or_else(|| self.error("expected a character after \\"))
    }

    /// Takes what stands between quotes, of which the first comes next.
    pub(super) fn quoted(&mut self) -> Result<String, QueryError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error("expected a closing quote")),
                Some('*') => return Err(self.error("a * within quotes means nothing")),
                Some(c) if is_quote(c) => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(_) => text.push(self.literal()?),
            }
        }
    }

    /// Takes characters up to a space, parenthesis, bracket or quote.
    pub(super) fn bound(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|c| !is_delimiter(c)) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }
}

/// Quotes as programs and as people write them; each of them opens and closes.
pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”')
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, '(' | ')' | '[' | ']' | '{' | '}')
}
