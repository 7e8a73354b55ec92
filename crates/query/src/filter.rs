//! Filters: conditions that narrow a search, each a field with one value.
//!
//! A filter is a parameter of the API (`place.name=Bergen`) and a choice on the search page. It prints in two ways:
//!
//! | Text | Written by | Example |
//! | --- | --- | --- |
//! | field and value, as in URLs of pages | [`Display`] | `-place.name:Bergen` |
//! | part of a query, as in saved queries | [`ItemFilter::term`] | `place.name:"Bergen"` |
//!
//! Values of one field are alternatives: an item needs one of them. Items must satisfy all fields, and must have no
//! excluded value.

use std::fmt::{self, Display, Formatter};

use strum::IntoEnumIterator;

use super::facet::Facet;
use super::fold::words;
use super::picture::{COLOURS, ORIENTATIONS};
use crate::limits::{FACET_CHARS_MAX, FILTER_SIDE_PX_MAX};

/// The values of [`FilterField::Terms`]: items with usage terms, and items without.
const TERMS: [&str; 2] = ["special", "none"];

/// The property that a filter compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterField {
    /// A facet: the item has the value among its values of the facet.
    Facet(Facet),
    /// The minimum length of the picture's longer side, in pixels.
    MinPx,
    /// The presence of usage terms: `special` or `none`.
    Terms,
}

impl FilterField {
    /// Iterates over all fields: first the facets in their order, then the others.
    pub fn all() -> impl Iterator<Item = Self> {
        Facet::iter().map(Self::Facet).chain([Self::MinPx, Self::Terms])
    }

    /// Returns the name of the field as a parameter, such as `place.name`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Facet(facet) => facet.as_str(),
            Self::MinPx => "minpx",
            Self::Terms => "terms",
        }
    }

    /// Finds the field with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|field| field.as_str() == name)
    }

    /// Returns all possible values of the field; `None` if the values depend on the items of the archive.
    pub fn choices(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Facet(Facet::Orientation) => Some(&ORIENTATIONS),
            Self::Facet(Facet::Colour) => Some(&COLOURS),
            Self::Terms => Some(&TERMS),
            Self::Facet(_) | Self::MinPx => None,
        }
    }

    /// Reports whether a value can be excluded. The other fields have an opposite: a smaller number, or the other
    /// value.
    fn can_exclude(self) -> bool {
        matches!(self, Self::Facet(_))
    }
}

/// A condition: items must have the value, or must not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFilter {
    pub field: FilterField,
    /// The value without a sign, such as `Bergen` or `3000`.
    pub value: String,
    /// True if items with the value are excluded.
    pub is_excluded: bool,
}

impl ItemFilter {
    /// Creates the filter that requires `value`, without checking it.
    pub fn requiring(field: FilterField, value: &str) -> Self {
        Self { field, value: value.to_owned(), is_excluded: false }
    }

    /// Parses the value of the parameter `field`. A leading `-` excludes the value.
    ///
    /// Fails with [`FilterError`] if the text is not a value of the field.
    pub fn parse(field: FilterField, text: &str) -> Result<Self, FilterError> {
        let excluded = text.strip_prefix('-').filter(|_| field.can_exclude());
        let value = excluded.unwrap_or(text).trim();
        if let Some(choices) = field.choices()
            && !choices.contains(&value)
        {
            return Err(FilterError::UnknownValue { found: beginning(value), choices });
        }
        if field == FilterField::MinPx && !is_side_px(value) {
            return Err(FilterError::NotANumber { found: beginning(value) });
        }
        if value.chars().count() > FACET_CHARS_MAX {
            return Err(FilterError::TooLong);
        }
        // A phrase without words would match nothing and is not a valid query.
        if words(value).next().is_none() {
            return Err(FilterError::Empty);
        }
        Ok(Self { field, value: value.to_owned(), is_excluded: excluded.is_some() })
    }

    /// Parses `<field>:<value>` or `-<field>:<value>`, the texts of [`Display`]; `None` for other texts.
    pub fn find(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-');
        let is_excluded = unsigned.is_some();
        let (name, value) = unsigned.unwrap_or(text).split_once(':')?;
        let field = FilterField::find(name).filter(|field| field.can_exclude() || !is_excluded)?;
        let filter = Self::parse(field, value).ok()?;
        // The sign precedes the name here, so a sign before the value is a mistake.
        (!filter.is_excluded).then_some(Self { is_excluded, ..filter })
    }

    /// Returns the part of a query that matches the items with the value. The caller negates it if the value is
    /// excluded.
    pub fn term(&self) -> String {
        let value = &self.value;
        match self.field {
            FilterField::MinPx => format!("(width:>={value} OR height:>={value})"),
            FilterField::Terms if value == "none" => "-usageterms:*".to_owned(),
            FilterField::Terms => "usageterms:*".to_owned(),
            FilterField::Facet(facet) => format!("{}:{}", facet.as_str(), phrase(value)),
        }
    }

    /// Reports whether this filter and `required` require values of the same field, so that an item may have either
    /// value.
    fn is_alternative_to(&self, required: &Self) -> bool {
        self.field == required.field && !self.is_excluded
    }
}

impl Display for ItemFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.is_excluded { "-" } else { "" };
        write!(f, "{sign}{}:{}", self.field.as_str(), self.value)
    }
}

/// Reports whether a text is a number of pixels from 1 to [`FILTER_SIDE_PX_MAX`], in digits only.
fn is_side_px(text: &str) -> bool {
    // The number parser would also accept a sign.
    text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|px| (1..=FILTER_SIDE_PX_MAX).contains(&px))
}

/// The reason why a text is not a value of a filter. It is shown after the name of the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The text is not one of the possible values of the field.
    #[error("`{found}`, expected one of {}", .choices.join(", "))]
    UnknownValue { found: String, choices: &'static [&'static str] },
    /// The text is not a number of pixels.
    #[error("`{found}`, expected pixels from 1 to {FILTER_SIDE_PX_MAX}")]
    NotANumber { found: String },
    /// The text has no letter or digit.
    #[error("without letters and digits")]
    Empty,
    /// The text has more characters than a facet value can have.
    #[error("longer than {FACET_CHARS_MAX} characters")]
    TooLong,
}

/// Returns the beginning of a value, for an error.
fn beginning(value: &str) -> String {
    value.chars().take(FACET_CHARS_MAX).collect()
}

/// Quotes `text` as a phrase of a query: `a "b"` becomes `"a \"b\""`.
pub fn phrase(text: &str) -> String {
    let mut phrase = String::with_capacity(text.len() + 2);
    phrase.push('"');
    for c in text.chars() {
        // The query language reads these as the end of a phrase, an escape or a wildcard.
        if matches!(c, '"' | '\\' | '*' | '“' | '”') {
            phrase.push('\\');
        }
        phrase.push(c);
    }
    phrase.push('"');
    phrase
}

/// Returns the query that all `filters` together form; empty if there are none.
///
/// ```
/// use query::{ItemFilter, filter_text};
///
/// let texts = ["place.name:Bergen", "place.name:Oslo", "-colour:monochrome"];
/// let filters: Vec<_> = texts.into_iter().filter_map(ItemFilter::find).collect();
/// let query = r#"(place.name:"Bergen" OR place.name:"Oslo") -colour:"monochrome""#;
/// assert_eq!(filter_text(&filters), query);
/// ```
pub fn filter_text(filters: &[ItemFilter]) -> String {
    let mut parts = Vec::new();
    for (at, filter) in filters.iter().enumerate() {
        if filter.is_excluded {
            parts.push(format!("-{}", filter.term()));
            continue;
        }
        // The alternatives of a field are in the place of its first value.
        if filters[..at].iter().any(|earlier| earlier.is_alternative_to(filter)) {
            continue;
        }
        let alternatives = filters[at..].iter().filter(|other| other.is_alternative_to(filter));
        let terms: Vec<String> = alternatives.map(ItemFilter::term).collect();
        match terms.as_slice() {
            [only] => parts.push(only.clone()),
            terms => parts.push(format!("({})", terms.join(" OR "))),
        }
    }
    parts.join(" ")
}

/// Returns the query `words`, narrowed by `filters`.
pub fn narrowed_text(words: &str, filters: &[ItemFilter]) -> String {
    let words = words.trim();
    let filters = filter_text(filters);
    if filters.is_empty() {
        words.to_owned()
    } else if words.is_empty() {
        filters
    } else {
        // In parentheses, because `OR` binds less tightly than the space before a filter.
        format!("({words}) {filters}")
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::parse;

    fn filters(texts: &[&str]) -> Vec<ItemFilter> {
        texts
            .iter()
            .map(|text| ItemFilter::find(text).unwrap_or_else(|| panic!("{text}")))
            .collect()
    }

    #[test]
    fn ok_a_filter_prints_as_it_was_written() {
        for text in [
            "person.name:Erik Berg",
            "-person.name:Berg, Erik: \"Kalle\"",
            "orientation:landscape",
            "-colour:monochrome",
            "minpx:3000",
            "terms:none",
        ] {
            let filter = filters(&[text]).remove(0);
            assert_eq!(filter.to_string(), text);
            parse(&filter.term(), &TimeZone::UTC).unwrap();
        }
        for field in FilterField::all() {
            assert_eq!(FilterField::find(field.as_str()), Some(field));
        }
    }

    #[test]
    fn err_other_texts_are_no_filters() {
        for text in [
            "",
            "x",
            "nonsense:x",
            "person.name:",
            "person.name:!",
            "person.name:-Erik",
            "orientation:round",
            "minpx:0",
            "minpx:+3",
            "minpx:many",
            "-minpx:3",
            "-terms:none",
        ] {
            assert_eq!(ItemFilter::find(text), None, "{text}");
        }
        let long = "a".repeat(FACET_CHARS_MAX + 1);
        let byline = FilterField::Facet(Facet::Byline);
        assert_eq!(ItemFilter::parse(byline, &long), Err(FilterError::TooLong));
        let unknown = ItemFilter::parse(FilterField::Terms, "-none").unwrap_err();
        assert_eq!(unknown.to_string(), "`-none`, expected one of special, none");
    }

    #[test]
    fn a_parameter_excludes_by_its_sign() {
        let byline = FilterField::Facet(Facet::Byline);
        let excluded = ItemFilter::parse(byline, "-Eva Ek").unwrap();
        assert_eq!((excluded.value.as_str(), excluded.is_excluded), ("Eva Ek", true));
        assert_eq!(excluded.to_string(), "-byline:Eva Ek");
    }

    #[test]
    fn values_of_a_field_are_alternatives_and_fields_hold_together() {
        let check = |texts: &[&str], expected: &str| {
            let text = filter_text(&filters(texts));
            assert_eq!(text, expected);
            parse(&text, &TimeZone::UTC).unwrap_or_else(|error| panic!("{text}: {error}"));
        };
        check(&[], "");
        check(&["place.name:Bergen"], "place.name:\"Bergen\"");
        check(
            &["place.name:Bergen", "orientation:square", "place.name:Oslo", "-place.name:Voss"],
            "(place.name:\"Bergen\" OR place.name:\"Oslo\") orientation:\"square\" \
             -place.name:\"Voss\"",
        );
        check(&["minpx:3000", "terms:none"], "(width:>=3000 OR height:>=3000) -usageterms:*");
        check(&["byline:a\"b\\*”c"], "byline:\"a\\\"b\\\\\\*\\”c\"");
        let narrow = filters(&["place.name:Bergen"]);
        assert_eq!(narrowed_text(" sea OR lake ", &narrow), "(sea OR lake) place.name:\"Bergen\"");
        assert_eq!(narrowed_text(" ", &narrow), "place.name:\"Bergen\"");
        assert_eq!(narrowed_text("sea", &[]), "sea");
    }
}
