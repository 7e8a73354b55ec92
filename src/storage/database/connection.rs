//! Runs transactions that have the statements as methods on an engine's connection.

use super::engine::{EngineConnection, EngineTransaction, Work, WriteMode};
use super::error::DbResult;
use super::transactions::{ClaimTx, WriteTx};
use crate::storage::audit::AuditEvent;
use crate::storage::secrets::Keyring;

impl dyn EngineConnection + '_ {
    /// Runs `write` as one transaction. Also returns the last row of the item log that it wrote; 0 if there is
    /// none. Its audit events are logged once it is committed.
    pub(super) fn write<T: Send>(
        &mut self,
        mode: WriteMode,
        keys: &Keyring,
        write: impl FnOnce(&WriteTx<'_>) -> DbResult<T> + Send,
    ) -> DbResult<(T, i64)> {
        let (outcome, row, events) =
            run(|tx| write_with_events(tx, keys, write), |work| self.run_write(mode, work))?;
        // Not earlier, because a line about a change that was rolled back would be false.
        events.iter().for_each(AuditEvent::log);
        Ok((outcome, row))
    }

    /// Runs `claim` as one transaction: as a write, or concurrently with one if the engine supports that.
    pub(super) fn claim<T: Send>(
        &mut self,
        claim: impl FnOnce(&ClaimTx<'_>) -> DbResult<T> + Send,
    ) -> DbResult<T> {
        run(|tx| claim(&ClaimTx::new(tx)), |work| self.run_claim(work))
    }

    /// Runs statements that only read.
    pub(super) fn query<T: Send>(
        &mut self,
        query: impl FnOnce(&dyn EngineTransaction) -> DbResult<T> + Send,
    ) -> DbResult<T> {
        run(query, |work| self.run_query(work))
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
