//! Where in a document a query looks.

use super::property::{self, QueryField};

/// The part of a document in which words are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextField {
    /// Everything that free words search: headline, description, body, byline, slug, persons,
    /// places, organisations, subjects, keywords.
    Anywhere,
    /// The property `headline`.
    Headline,
    /// The property `description_text`.
    Description,
    /// `body_text`; of a document that has only HTML, its text.
    Body,
    /// Another property by its path, such as `person.name`.
    Named(&'static str),
}

impl TextField {
    /// The name of the field in queries, in lower case; `None` for [`TextField::Anywhere`].
    #[must_use]
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Anywhere => None,
            Self::Headline => Some("headline"),
            Self::Description => Some("description_text"),
            Self::Body => Some("body_text"),
            Self::Named(name) => Some(name),
        }
    }

    /// Finds the place that queries call `name`, in any case.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match property::find(name)? {
            QueryField::Words(place) => Some(place),
            QueryField::Ordered(_) | QueryField::Id => None,
        }
    }

    /// The text of [`IndexedDocument`](super::IndexedDocument) in which its tokens stand: `headline`,
    /// `description`, `body` or `tags`.
    ///
    /// `None` for [`TextField::Anywhere`], whose tokens stand in any of `headline`, `description`,
    /// `body` and `rest`, each phrase within one of them. Whole words never equal a token of
    /// `tags`, so that all texts may be searched for them; but a prefix such as `per` begins
    /// tokens of `tags` that are no words (`person.name=erik`), so that `tags` must be left out
    /// for one.
    #[must_use]
    pub fn column(self) -> Option<&'static str> {
        match self {
            Self::Anywhere => None,
            Self::Headline => Some("headline"),
            Self::Description => Some("description"),
            Self::Body => Some("body"),
            Self::Named(_) => Some("tags"),
        }
    }
}

/// A date property, of which queries can name a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DateField {
    /// The property `versioncreated`.
    VersionCreated,
    /// The property `versionstored`.
    VersionStored,
    /// The property `firstcreated`.
    FirstCreated,
    /// The property `contentcreated`.
    ContentCreated,
    /// `date`: the midnight at which it begins.
    Date,
    /// The property `datetime`.
    DateTime,
    /// `enddate`: the midnight at which it begins.
    EndDate,
    /// The property `enddatetime`.
    EndDateTime,
    /// The property `embargoed`.
    Embargoed,
    /// The property `expires`.
    Expires,
}

impl DateField {
    /// Every date property. The order is stored in indexes and never changes.
    pub const ALL: [Self; 10] = [
        Self::VersionCreated,
        Self::VersionStored,
        Self::FirstCreated,
        Self::ContentCreated,
        Self::Date,
        Self::DateTime,
        Self::EndDate,
        Self::EndDateTime,
        Self::Embargoed,
        Self::Expires,
    ];

    /// The name of the property.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VersionCreated => "versioncreated",
            Self::VersionStored => "versionstored",
            Self::FirstCreated => "firstcreated",
            Self::ContentCreated => "contentcreated",
            Self::Date => "date",
            Self::DateTime => "datetime",
            Self::EndDate => "enddate",
            Self::EndDateTime => "enddatetime",
            Self::Embargoed => "embargoed",
            Self::Expires => "expires",
        }
    }
}
