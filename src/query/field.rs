//! Where in a document a query looks.

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
