//! Wraps an engine's connection so that its transactions have the statements as methods.

use std::sync::Arc;

use super::engine::{
    ConnectionPurpose, DatabaseEngine, EngineConnection, EngineTransaction, Read, Work, WriteMode,
};
use super::error::DbResult;
use super::transactions::{ClaimTx, WriteTx};
use crate::storage::audit::AuditEvent;
use crate::storage::secrets::Keyring;

/// A connection, which one thread owns.
pub(super) struct DatabaseConnection(Box<dyn EngineConnection>);

impl DatabaseConnection {
    pub(super) fn open(
        engine: &Arc<dyn DatabaseEngine>,
        purpose: ConnectionPurpose,
    ) -> DbResult<Self> {
        Arc::clone(engine).open(purpose).map(Self)
    }

    /// Runs `read` against one consistent state of the database.
    pub(super) fn read(&mut self, read: Read) {
        self.0.read(read);
    }

    /// Runs `write` as one transaction. Also returns the last row of the item log that it wrote; 0 if there is
    /// none. Its audit events are logged once it is committed.
    pub(super) fn write<T: Send>(
        &mut self,
        mode: WriteMode,
        keys: &Keyring,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send,
    ) -> DbResult<(T, i64)> {
        let (outcome, row, events) =
            run(|tx| write_with_events(tx, keys, write), |work| self.0.write(mode, work))?;
        // Not earlier, because a line about a change that was rolled back would be false.
        events.iter().for_each(AuditEvent::log);
        Ok((outcome, row))
    }

    /// Runs `claim` as one transaction: as a write, or concurrently with one if the engine supports that.
    pub(super) fn claim<T: Send>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> DbResult<T> + Send,
    ) -> DbResult<T> {
        run(|tx| claim(&ClaimTx::new(tx)), |work| self.0.claim(work))
    }

    /// Runs statements that only read.
    pub(super) fn query<T: Send>(
        &mut self,
        query: impl FnOnce(&dyn EngineTransaction) -> DbResult<T> + Send,
    ) -> DbResult<T> {
        run(query, |work| self.0.query(work))
    }

    /// Folds the write-ahead log into the database and empties it.
    pub(super) fn checkpoint(&self) -> DbResult<()> {
        self.0.checkpoint()
    }

    /// Returns a number that changes when a different connection commits, and rarely otherwise. Costs a few
    /// microseconds.
    pub(super) fn data_version(&mut self) -> DbResult<i64> {
        self.0.data_version()
    }
}

/// Runs `write`. Also returns the last row of the item log that it wrote, and its audit events.
fn write_with_events<T>(
    tx: &dyn EngineTransaction,
    keys: &Keyring,
    write: impl FnOnce(&WriteTx<'_>) -> DbResult<T>,
) -> DbResult<(T, i64, Vec<AuditEvent>)> {
    let tx = WriteTx::new(tx, keys);
    write(&tx).map(|outcome| (outcome, tx.item_row.get(), tx.events.take()))
}

/// Lets `transact` run `work` in its transaction. Returns the result of `work` once the transaction has
/// committed.
fn run<T: Send>(
    work: impl FnOnce(&dyn EngineTransaction) -> DbResult<T> + Send,
    transact: impl FnOnce(Work<'_>) -> DbResult<()>,
) -> DbResult<T> {
    // Engines are trait objects, whose methods cannot be generic over the result.
    let mut outcome = None;
    transact(Box::new(|tx| {
        outcome = Some(work(tx)?);
        Ok(())
    }))?;
    Ok(outcome.expect("a transaction that ended well ran its work"))
}
