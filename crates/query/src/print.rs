//! Prints the tree of a query as text.

use std::fmt::{self, Display, Formatter, Write};

use super::field::TextField;
use super::fold::words;
use super::number::NumericRange;
use super::tree::{DateRange, Query, WordPattern};
use super::{address, property};
use model::ItemId;

/// Prints the canonical spelling. It parses to the same query in any time zone, unless it exceeds the length limit
/// of queries. Inflected forms of words are not printed.
///
/// [`Query::All`] alone prints as the empty text, and as `*` if it is negated.
impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Words(words) => words.fmt(f),
            Self::Dates(dates) => dates.fmt(f),
            Self::Numbers(numbers) => numbers.fmt(f),
            Self::Present(field) => write!(f, "{}:*", field.as_str().unwrap_or("*")),
            Self::Item(id) => write!(f, "{}:{id}", property::ID),
            Self::And(parts) => write_list(f, parts, " "),
            Self::Or(parts) => match pasted_id_of(parts) {
                Some(id) => id.fmt(f),
                None => write_list(f, parts, " OR "),
            },
            Self::Not(inner) => {
                f.write_char('-')?;
                match &**inner {
                    // One word prints both alternatives, so the sign negates both without parentheses.
                    Self::Or(parts) if pasted_id_of(parts).is_some() => inner.fmt(f),
                    Self::And(_) | Self::Or(_) => write!(f, "({inner})"),
                    // A sign without a term after it does not parse.
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

/// Prints the parts of an `And` or `Or`. Only an `Or` needs parentheses: `And` binds tighter, and neither contains
/// a part of its own kind.
fn write_list(f: &mut Formatter<'_>, parts: &[Query], separator: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { separator })?;
        if matches!(part, Query::Or(parts) if pasted_id_of(parts).is_none()) {
            write!(f, "({part})")?;
        } else {
            part.fmt(f)?;
        }
    }
    Ok(())
}

/// Returns the id if `parts` is the result of parsing a word that could be an id. Such parts print as the word,
/// because parentheses would nest deeper than in the original.
fn pasted_id_of(parts: &[Query]) -> Option<&ItemId> {
    let [Query::Words(found), Query::Item(id)] = parts else { return None };
    // Both must come from the same text; a different word with an id is an ordinary `OR`.
    let is_plain_word = found.place == TextField::Anywhere && !found.prefix;
    (is_plain_word
        && address::pasted_id(id.as_str()).is_some()
        && words(id.as_str()).eq(found.words.iter().cloned()))
    .then_some(id)
}

impl Display for WordPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.place.as_str() {
            write!(f, "{name}:")?;
        }
        // A star is not allowed within quotes, and words joined by a hyphen are a phrase without quotes too. In
        // quotes, a word is never read as an id.
        let may_be_id = self.place == TextField::Anywhere
            && self.words.iter().any(|word| address::pasted_id(&word.folded).is_some());
        let quoted = (self.words.len() > 1 || may_be_id) && !self.prefix;
        f.write_str(if quoted { "\"" } else { "" })?;
        for (index, word) in self.words.iter().enumerate() {
            let separator = if quoted { " " } else { "-" };
            f.write_str(if index == 0 { "" } else { separator })?;
            // An accent in a query is significant (contract search-14), so the accented spelling is printed.
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
            // The end of the range is exclusive, so it prints as a brace.
            Some(until) => write!(f, "{until}}}"),
            None => f.write_str("*]"),
        }
    }
}

impl Display for NumericRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.field.as_str())?;
        match (self.from, self.until) {
            // Both bounds are inclusive, so all forms below have square brackets.
            (Some(from), Some(until)) if from == until => write!(f, "{from}"),
            (Some(from), Some(until)) => write!(f, "[{from} TO {until}]"),
            (Some(from), None) => write!(f, "[{from} TO *]"),
            (None, Some(until)) => write!(f, "[* TO {until}]"),
            (None, None) => f.write_str("*"),
        }
    }
}
