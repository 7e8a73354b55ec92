//! The facts that a database reports about itself: its engine, and its flaws.

use jiff::Timestamp;

/// The engine and the connection to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Name and version of the engine.
    pub engine: String,
    /// The role of this process at the server; `None` for a file.
    pub role: Option<String>,
    /// Time of the server's clock; `None` if it uses this machine's clock.
    pub clock: Option<Timestamp>,
    /// Open connections and their maximum; `None` for a file.
    pub connections: Option<(i64, i64)>,
    /// Tables that the role may not both read and write.
    pub inaccessible_tables: Vec<String>,
}

/// A flaw found by a check of the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseFlaw {
    /// A page, table or index of the file is corrupt.
    Page(String),
    /// A foreign-key violation: a row refers to a row that does not exist.
    Reference(String),
    /// A row cannot be read or does not fit its item.
    Row(String),
    /// The search index and the items disagree; it can be rebuilt.
    Index(String),
    /// A secret cannot be decrypted, or is not encrypted.
    Secret(String),
    /// More flaws of one kind exist than the check lists.
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
