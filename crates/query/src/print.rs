//! Tree to text.

use std::fmt::{self, Display, Formatter, Write};

use super::address;
use super::field::TextField;
use super::fold::{Word, words};
use super::number::NumericRange;
use super::property;
use super::tree::{DateRange, Query, WordPattern};
use model::ItemId;

/// The canonical spelling: it parses to the same query in any time zone, as long as it is not longer
/// than queries may be. Whether a word matches in other forms is not part of it.
///
/// [`Query::All`] alone is the empty text, and `*` where it is negated.
impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Words(words) => words.fmt(f),
            Self::Dates(dates) => dates.fmt(f),
            Self::Numbers(numbers) => numbers.fmt(f),
            Self::Present(place) => write!(f, "{}:*", place.as_str().unwrap_or("*")),
            Self::Item(id) => write!(f, "{}:{id}", property::ID),
            Self::And(parts) => list(f, parts, " "),
            Self::Or(parts) => match pasted(parts) {
                Some(id) => id.fmt(f),
                None => list(f, parts, " OR "),
            },
            Self::Not(inner) => {
                f.write_char('-')?;
                match &**inner {
                    Self::Or(parts) if pasted(parts).is_some() => inner.fmt(f),
                    Self::And(_) | Self::Or(_) => write!(f, "({inner})"),
                    Self::All => f.write_char('*'),
                    Self::Words(_)
                    | Self::Dates(_)
                    | Self::Numbers(_)
                    | Self::Present(_)
                    | Self::Item(_)
                    | Self::Not(_) => inner.fmt(f),
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
            Query::Or(parts) if pasted(parts).is_none() => write!(f, "({part})")?,
            Query::All
            | Query::Words(_)
            | Query::Dates(_)
            | Query::Numbers(_)
            | Query::Present(_)
            | Query::Item(_)
            | Query::And(_)
            | Query::Or(_)
            | Query::Not(_) => part.fmt(f)?,
        }
    }
    Ok(())
}

/// The id of `parts` that a word which could be an id is parsed to. It prints as this word, because
/// parentheses may be nested no deeper than they were.
fn pasted(parts: &[Query]) -> Option<&ItemId> {
    let [Query::Words(found), Query::Item(id)] = parts else { return None };
    let is_same = found.place == TextField::Anywhere && !found.prefix;
    (is_same
        && address::pasted_id(id.as_str()).is_some()
        && words(id.as_str()).eq(found.words.iter().cloned()))
    .then_some(id)
}

impl Display for WordPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.place.as_str() {
            write!(f, "{name}:")?;
        }
        // A star within quotes is none, and what is no letter parts words without quotes too. In quotes no
        // word is an id.
        let is_id = |word: &Word| address::pasted_id(&word.folded).is_some();
        let may_be_id = self.place == TextField::Anywhere && self.words.iter().any(is_id);
        let quoted = (self.words.len() > 1 || may_be_id) && !self.prefix;
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

impl Display for DateRange {
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

impl Display for NumericRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.field.as_str())?;
        match (self.from, self.until) {
            (Some(from), Some(until)) if from == until => write!(f, "{from}"),
            (Some(from), Some(until)) => write!(f, "[{from} TO {until}]"),
            (Some(from), None) => write!(f, "[{from} TO *]"),
            (None, Some(until)) => write!(f, "[* TO {until}]"),
            (None, None) => f.write_str("*"),
        }
    }
}
