//! The parts of a document that a query can name.

use strum::{EnumIter, EnumString, IntoStaticStr};

use super::property::{self, QueryField};

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

    /// Finds the field with the name `name` in queries; case-insensitive.
    pub fn find(name: &str) -> Option<Self> {
        match property::find(name)? {
            QueryField::Words(field) => Some(field),
            // Values of these fields are compared as a whole, so they have no words.
            QueryField::Ordered(_) | QueryField::Id => None,
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
