//! Stores the calls that pages made recently on behalf of their visitors, as long as the session lasts.

use super::{ReadTx, WriteTx};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbError;
use model::ContentHash;

impl ReadTx<'_> {
    /// Finds the recorded calls of the session.
    pub fn find_calls(&self, session: &ContentHash) -> Result<Option<String>, DbError> {
        let sql = "SELECT calls FROM session_calls WHERE session_hash = ?1";
        self.tx.find_value(sql, params![session.to_string()])
    }
}

impl WriteTx<'_> {
    /// Replaces the recorded calls of a session; does nothing if the session has ended.
    pub fn write_calls(&self, session: &ContentHash, calls: &str) -> Result<(), DbError> {
        self.tx.execute(
            // A request may outlast its session, and the foreign key would refuse its row.
            "INSERT INTO session_calls (session_hash, calls)
             SELECT session_hash, ?2 FROM sessions WHERE session_hash = ?1
             ON CONFLICT (session_hash) DO UPDATE SET calls = excluded.calls",
            params![session.to_string(), calls],
        )?;
        Ok(())
    }
}
