//! The transactions that statements are methods of: one that reads, one that writes, one that takes up what
//! waits in a queue.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use super::account_change::AccountChange;
use super::engine::EngineTransaction;
#[cfg(test)]
use super::error::DbError;
use crate::storage::audit::AuditEvent;
use crate::storage::secrets::Keyring;

/// Reads one consistent state of the database.
pub struct ReadTx<'a> {
    pub(super) tx: &'a dyn EngineTransaction,
    /// What secrets are decrypted with.
    pub(super) keys: Option<&'a Keyring>,
}

impl<'a> ReadTx<'a> {
    pub(super) fn new(tx: &'a dyn EngineTransaction) -> Self {
        Self { tx, keys: None }
    }

    /// The same transaction with keys for what is stored encrypted.
    pub(super) fn with_keys<'k>(&self, keys: &'k Keyring) -> ReadTx<'k>
    where
        'a: 'k,
    {
        ReadTx { tx: self.tx, keys: Some(keys) }
    }
}

/// Reads and writes in one transaction.
pub struct WriteTx<'a> {
    pub(super) tx: &'a dyn EngineTransaction,
    /// What this transaction changed in accounts.
    pub(super) changes: RefCell<Vec<AccountChange>>,
    /// What this transaction recorded in the audit log.
    pub(super) events: Rc<RefCell<Vec<AuditEvent>>>,
    /// The row of the item log that this transaction wrote last; 0 while there is none.
    pub(super) item_row: Cell<i64>,
    /// What secrets are encrypted and decrypted with.
    pub(super) keys: Option<&'a Keyring>,
}

impl<'a> WriteTx<'a> {
    pub(super) fn new(tx: &'a dyn EngineTransaction) -> Self {
        let (changes, events) = (RefCell::default(), Rc::default());
        Self { tx, changes, events, item_row: Cell::new(0), keys: None }
    }

    /// The same transaction, in which nothing was done yet, with keys for what is stored encrypted.
    pub(super) fn with_keys<'k>(&self, keys: &'k Keyring) -> WriteTx<'k>
    where
        'a: 'k,
    {
        // The connection logs the events after the commit, and holds the transaction given here.
        let (changes, events) = (RefCell::default(), Rc::clone(&self.events));
        WriteTx { tx: self.tx, changes, events, item_row: Cell::new(0), keys: Some(keys) }
    }

    /// The same transaction for reading.
    #[must_use]
    pub fn as_read(&self) -> ReadTx<'_> {
        ReadTx { tx: self.tx, keys: self.keys }
    }

    /// The row of the item log that this transaction wrote last; 0 while there is none.
    pub(super) fn item_row(&self) -> i64 {
        self.item_row.get()
    }
}

/// Takes up what waits in a queue, beside one that writes and others that do the same.
///
/// It writes nothing that has an order or that somebody follows, so it needs no turn; what it must not share
/// it holds. First it holds the row of the life that takes, then rows of
/// queues, of which it passes over those that somebody holds. So it waits for nobody and can have no part in
/// a deadlock, and a life that is ended meanwhile waits for it.
pub struct ClaimTx<'a> {
    pub(super) tx: &'a dyn EngineTransaction,
}

impl<'a> ClaimTx<'a> {
    pub(super) fn new(tx: &'a dyn EngineTransaction) -> Self {
        Self { tx }
    }
}

#[cfg(test)]
impl WriteTx<'_> {
    /// Runs statements that set a test's scene.
    pub fn run_sql(&self, sql: &str) -> Result<(), DbError> {
        self.tx.run_script(sql)
    }

    /// Has the engine refuse each new row of a table.
    pub fn refuse_rows(&self, table: &str) -> Result<(), DbError> {
        self.refuse("INSERT", table)
    }

    /// Has it refuse each change of one.
    pub fn refuse_changes(&self, table: &str) -> Result<(), DbError> {
        self.refuse("UPDATE", table)
    }

    fn refuse(&self, what: &str, table: &str) -> Result<(), DbError> {
        self.tx.run_script(&self.tx.refusing_script(what, table))
    }

    /// Has it take them again.
    pub fn accept_rows(&self, table: &str) -> Result<(), DbError> {
        self.tx.run_script(&self.tx.accepting_script(table))
    }
}
