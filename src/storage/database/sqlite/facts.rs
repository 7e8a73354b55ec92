//! What SQLite tells of itself.

use super::client::Client;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbError;
use crate::storage::database::statements::facts::DatabaseFacts;

impl Client<'_> {
    pub(in crate::storage::database) fn facts(self) -> Result<DatabaseFacts, DbError> {
        let version: String = self.engine().load_value("SELECT sqlite_version()", params![])?;
        Ok(DatabaseFacts { engine: format!("SQLite {version}"), ..DatabaseFacts::default() })
    }
}
