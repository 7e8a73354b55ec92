//! The three kinds of transaction: for reading, for writing, and for claiming messages of a queue. Most of their
//! methods are in [`statements`](super::statements).

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use super::account_change::AccountChange;
use super::engine::EngineTransaction;
#[cfg(test)]
use super::error::DbResult;
use crate::storage::audit::AuditEvent;
use crate::storage::secrets::Keyring;

/// A transaction that reads one consistent state of the database.
pub struct ReadTx<'a> {
    pub(super) tx: &'a dyn EngineTransaction,
    /// The keys that decrypt secrets; `None` if secrets are not read.
    pub(super) keys: Option<&'a Keyring>,
}

impl<'a> ReadTx<'a> {
    /// Creates a transaction that reads no secrets.
    pub(super) fn new(tx: &'a dyn EngineTransaction) -> Self {
        Self { tx, keys: None }
    }
}

/// A transaction that reads and writes. It dereferences to the same transaction for reading.
pub struct WriteTx<'a> {
    read: ReadTx<'a>,
    /// Changes of accounts made by this transaction, for the caches of this process.
    pub(super) changes: RefCell<Vec<AccountChange>>,
    /// Audit events recorded by this transaction, which are logged after the commit.
    pub(super) events: RefCell<Vec<AuditEvent>>,
    /// The number of the last row that this transaction wrote to the item log, the table of changes to items; 0 if it
    /// wrote none.
    pub(super) item_row: Cell<i64>,
    /// The keys that encrypt secrets.
    pub(super) sealing_keys: &'a Keyring,
}

impl<'a> Deref for WriteTx<'a> {
    type Target = ReadTx<'a>;

    fn deref(&self) -> &ReadTx<'a> {
        &self.read
    }
}

impl<'a> WriteTx<'a> {
    pub(super) fn new(tx: &'a dyn EngineTransaction, keys: &'a Keyring) -> Self {
        Self {
            read: ReadTx { tx, keys: Some(keys) },
            changes: RefCell::default(),
            events: RefCell::default(),
            item_row: Cell::new(0),
            sealing_keys: keys,
        }
    }
}

/// A transaction that claims messages of a queue: it marks them as in flight for one incarnation, which is one run of a
/// node. PostgreSQL runs it concurrently with a write and with other claims, SQLite as a write.
///
/// It does not need the write lock of the cluster, because it writes no rows whose order other nodes follow. It locks
/// the rows that it must not share: first the row of the incarnation, then rows of queues, skipping locked ones. So it
/// never waits for a queue row and cannot be part of a deadlock, and the end of an incarnation waits for its claims.
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
    /// Runs statements that set up a test.
    pub fn run_sql(&self, sql: &str) -> DbResult<()> {
        self.tx.run_script(sql)
    }

    /// Adds the users 1 and 2, who may own rows of other tables.
    pub fn add_two_users(&self) -> DbResult<()> {
        self.run_sql(
            "INSERT INTO users (user_id, user_name, roles, admin, mediebank, active,
                 service_account, created_ms)
             VALUES (1, 'one', '[]', FALSE, FALSE, TRUE, FALSE, 0),
                    (2, 'two', '[]', FALSE, FALSE, TRUE, FALSE, 0)",
        )
    }

    /// Makes the engine refuse each new row of a table.
    pub fn refuse_rows(&self, table: &str) -> DbResult<()> {
        self.refuse("INSERT", table)
    }

    /// Makes the engine refuse each change of a row of a table.
    pub fn refuse_changes(&self, table: &str) -> DbResult<()> {
        self.refuse("UPDATE", table)
    }

    fn refuse(&self, change: &str, table: &str) -> DbResult<()> {
        self.tx.run_script(&self.tx.refusing_script(change, table))
    }

    /// Makes the engine accept rows of a table again.
    pub fn accept_rows(&self, table: &str) -> DbResult<()> {
        self.tx.run_script(&self.tx.accepting_script(table))
    }
}
