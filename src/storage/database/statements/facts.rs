//! What the engine tells of itself to an operator.

use jiff::Timestamp;

use super::ReadTx;
use crate::storage::database::error::DbError;

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
    pub lacking: Vec<String>,
}

impl ReadTx<'_> {
    /// What the engine tells of itself.
    pub fn database_facts(&self) -> Result<DatabaseFacts, DbError> {
        self.engine.facts()
    }
}
