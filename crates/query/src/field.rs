//! Where in a document a query looks.

use super::property::{self, Field};

/// Which words of a document are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Everything that free words search: headline, description, body, byline, slug, persons,
    /// places, organisations, subjects, keywords.
    Anywhere,
    /// `headline`.
    Headline,
    /// `description_text`.
    Description,
    /// `body_text`; of a document that has only HTML, its text.
    Body,
    /// Another property by its path, such as `person.name`.
    Named(&'static str),
}

impl Place {
    /// What queries call it, lower case; none for [`Place::Anywhere`].
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

    /// The place that queries call `name`, in any case.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match property::find(name)? {
            Field::Words(place) => Some(place),
            Field::Ordered(_) | Field::Id => None,
        }
    }

    /// The text of [`Indexed`](super::Indexed) in which its tokens stand: `headline`,
    /// `description`, `body` or `tags`.
    ///
    /// None for [`Place::Anywhere`], whose tokens stand in any of `headline`, `description`, `body`
    /// and `rest`, each phrase within one of them. Whole words never equal a token of `tags`, so
    /// that all texts may be searched for them; but a prefix such as `per` begins tokens of `tags`
    /// that are no words (`person.name=erik`), so that `tags` must be left out for one.
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

/// A date that ranges can be asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DateField {
    /// `versioncreated`.
    VersionCreated,
    /// `versionstored`.
    VersionStored,
    /// `firstcreated`.
    FirstCreated,
    /// `contentcreated`.
    ContentCreated,
    /// `date`: the midnight at which it begins.
    Date,
    /// `datetime`.
    DateTime,
    /// `enddate`: the midnight at which it begins.
    EndDate,
    /// `enddatetime`.
    EndDateTime,
    /// `embargoed`.
    Embargoed,
    /// `expires`.
    Expires,
}

impl DateField {
    /// Every such date; the place in the list is its code in the index and never changes.
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

    /// The property's name.
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
