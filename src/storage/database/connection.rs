//! A connection whose transactions are those that statements are methods of.

use std::sync::Arc;

use super::engine::{
    ConnectionPurpose, DatabaseEngine, EngineConnection, EngineTransaction, Read, Work, WriteMode,
};
use super::error::DbError;
use super::transactions::{ClaimTx, WriteTx};
use crate::storage::audit::AuditEvent;

/// A connection, which one thread owns.
pub(super) struct DatabaseConnection(Box<dyn EngineConnection>);

impl DatabaseConnection {
    pub(super) fn open(
        engine: &Arc<dyn DatabaseEngine>,
        purpose: ConnectionPurpose,
    ) -> Result<Self, DbError> {
        Arc::clone(engine).open(purpose).map(Self)
    }

    /// Runs `read` against one state of the database.
    pub(super) fn read(&mut self, read: Read) {
        self.0.read(read);
    }

    /// Runs `write` as one transaction. What it recorded in the audit log is logged once it is
    /// committed.
    pub(super) fn write<T: Send>(
        &mut self,
        mode: WriteMode,
        write: impl FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        let write = |tx: &dyn EngineTransaction| {
            let tx = WriteTx::new(tx);
            write(&tx).map(|outcome| (outcome, tx.take_events()))
        };
        let (outcome, events) = run(write, |work| self.0.write(mode, work))?;
        events.iter().for_each(AuditEvent::log);
        Ok(outcome)
    }

    /// Runs `claim` as one transaction: as a write, or beside one where the engine can do that.
    pub(super) fn claim<T: Send>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        run(|tx| claim(&ClaimTx::new(tx)), |work| self.0.claim(work))
    }

    /// Runs statements that only read.
    pub(super) fn query<T: Send>(
        &mut self,
        look: impl FnOnce(&dyn EngineTransaction) -> Result<T, DbError> + Send,
    ) -> Result<T, DbError> {
        run(look, |work| self.0.query(work))
    }

    /// Folds the write-ahead log into the database and empties it.
    pub(super) fn checkpoint(&self) -> Result<(), DbError> {
        self.0.checkpoint()
    }

    /// A number that changes when another connection committed, and seldom without that; a few
    /// microseconds.
    pub(super) fn data_version(&mut self) -> Result<i64, DbError> {
        self.0.data_version()
    }
}

/// Has `transact` run `work` in its transaction, and gives what it returned once that has ended well.
fn run<T: Send>(
    work: impl FnOnce(&dyn EngineTransaction) -> Result<T, DbError> + Send,
    transact: impl FnOnce(Work<'_>) -> Result<(), DbError>,
) -> Result<T, DbError> {
    let mut outcome = None;
    transact(Box::new(|tx| {
        outcome = Some(work(tx)?);
        Ok(())
    }))?;
    Ok(outcome.expect("a transaction that ended well ran its work"))
}
