//! Tree to text.

use std::fmt::{self, Display, Formatter, Write};

use super::tree::{Dates, Query, Words};

/// The canonical spelling: it parses to the same query in any time zone, as long as it is not longer
/// than queries may be. Whether a word matches in other forms is not part of it.
///
/// [`Query::All`] is the empty text, which it is only alone.
impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Words(words) => words.fmt(f),
            Self::Dates(dates) => dates.fmt(f),
            Self::And(parts) => list(f, parts, " "),
            Self::Or(parts) => list(f, parts, " OR "),
            Self::Not(inner) => {
                f.write_char('-')?;
                match **inner {
                    Self::And(_) | Self::Or(_) => write!(f, "({inner})"),
                    Self::All | Self::Words(_) | Self::Dates(_) | Self::Not(_) => inner.fmt(f),
                }
            }
        }
    }
}

/// Parts of an `And` or `Or`. Only an `Or` needs parentheses: `And` binds tighter, and neither
/// stands in one of its kind.
fn list(f: &mut Formatter<'_>, parts: &[Query], between: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { between })?;
        match part {
            Query::Or(_) => write!(f, "({part})")?,
            Query::All | Query::Words(_) | Query::Dates(_) | Query::And(_) | Query::Not(_) => {
                part.fmt(f)?;
            }
        }
    }
    Ok(())
}

impl Display for Words {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.place.as_str() {
            write!(f, "{name}:")?;
        }
        // A star within quotes is none, and what is no letter parts words without quotes too.
        let quoted = self.words.len() > 1 && !self.prefix;
        f.write_str(if quoted { "\"" } else { "" })?;
        for (index, word) in self.words.iter().enumerate() {
            let between = if quoted { " " } else { "-" };
            f.write_str(if index == 0 { "" } else { between })?;
            f.write_str(word.exact.as_ref().unwrap_or(&word.folded))?;
        }
        let quote = if quoted { "\"" } else { "" };
        f.write_str(if self.prefix { "*" } else { quote })
    }
}

impl Display for Dates {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:[", self.field.as_str())?;
        match self.from {
            Some(from) => write!(f, "{from} TO ")?,
            None => f.write_str("* TO ")?,
        }
        match self.until {
            Some(until) => write!(f, "{until}}}"),
            None => f.write_str("*]"),
        }
    }
}
