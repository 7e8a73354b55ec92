//! What a database tells of itself: its engine, and what is wrong with it.

use jiff::Timestamp;

/// The engine and how it is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Name and version.
    pub engine: String,
    /// As whom this process is connected; nothing in a file.
    pub role: Option<String>,
    /// What its clock says; nothing where it is that of this machine.
    pub clock: Option<Timestamp>,
    /// Connections that are open, and how many may be; nothing in a file.
    pub connections: Option<(i64, i64)>,
    /// Tables that the role may not read and write.
    pub inaccessible_tables: Vec<String>,
}

/// Something wrong with the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseFlaw {
    /// A page, table or index of the file is not what it should be.
    Page(String),
    /// A row refers to one that is not there.
    Reference(String),
    /// A row cannot be read or does not fit its item.
    Row(String),
    /// The search index and the items do not agree; it can be made anew.
    Index(String),
    /// A secret cannot be decrypted, or is not encrypted.
    Secret(String),
    /// There are more of one of these than are told.
    Truncated(String),
}

impl std::fmt::Display for DatabaseFlaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Page(text)
            | Self::Reference(text)
            | Self::Row(text)
            | Self::Index(text)
            | Self::Secret(text)
            | Self::Truncated(text) => f.write_str(text),
        }
    }
}
