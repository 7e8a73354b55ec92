//! The parts of a document that a query can name.

use strum::{EnumIter, EnumString, IntoStaticStr};

use super::number::NumberField;

/// A part of a document in which words are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextField {
    /// All text that words without a field search: headline, description, body, byline, slug, persons, places,
    /// organisations, subjects, keywords.
    Anywhere,
    Headline,
    Description,
    /// The property `body_text`, or the text of the HTML if a document has only HTML.
    Body,
    /// Any other property, by its path, such as `person.name`.
    Named(&'static str),
}

impl TextField {
    /// Returns the name of the field in queries, in lower case; `None` for [`TextField::Anywhere`].
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Anywhere => None,
            Self::Headline => Some("headline"),
            Self::Description => Some("description_text"),
            Self::Body => Some("body_text"),
            Self::Named(name) => Some(name),
        }
    }
}

/// A date property that supports range queries. Indexes store the order of the variants, so it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DateField {
    VersionCreated,
    VersionStored,
    FirstCreated,
    ContentCreated,
    /// The property `date`, at midnight.
    Date,
    DateTime,
    /// The property `enddate`, at midnight.
    EndDate,
    EndDateTime,
    Embargoed,
    Expires,
}

model::impl_as_str!(DateField);

/// A property whose values have an order, so that it supports ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderedField {
    Date(DateField),
    Number(NumberField),
}

impl OrderedField {
    /// Returns the word for the field's values in error messages.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Date(_) => "date",
            Self::Number(_) => "number",
        }
    }
}

/// A field that a query names before a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryField {
    /// Words in a text field.
    Words(TextField),
    /// An ordered date or number.
    Ordered(OrderedField),
    /// The item's id, matched as a whole.
    Id,
}
