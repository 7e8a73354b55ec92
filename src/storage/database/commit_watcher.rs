//! Notices commits of any process without reading a table, and reads consistent states after them.

use std::sync::Arc;

use super::engine::{ConnectionPurpose, DatabaseEngine, EngineConnection};
use super::error::{DbError, DbResult};
use super::transactions::ReadTx;

/// Notices commits of any process and reads consistent states, one after the other, on a dedicated connection.
/// So a long read delays no other.
pub struct CommitWatcher {
    connection: Box<dyn EngineConnection>,
    data_version: i64,
}

impl CommitWatcher {
    pub(super) fn open(engine: &Arc<dyn DatabaseEngine>) -> DbResult<Self> {
        Ok(Self {
            connection: Arc::clone(engine).open(ConnectionPurpose::Follow)?,
            // No engine has this version, so the first call reports commits.
            data_version: -1,
        })
    }

    /// Returns whether a different connection has committed since the last call. Costs a few microseconds.
    pub fn has_commits(&mut self) -> DbResult<bool> {
        let found = self.connection.data_version()?;
        Ok(std::mem::replace(&mut self.data_version, found) != found)
    }

    /// Runs `read` against one consistent state. Blocks.
    pub fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&ReadTx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.connection.read(Box::new(move |outcome| {
            drop(sender.send(outcome.and_then(|tx| read(&ReadTx::new(tx)))));
        }));
        receiver.recv().map_err(|_| DbError::Closed)?
    }
}
