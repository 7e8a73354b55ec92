//! The statements: what a transaction can read and write, in SQL that every engine understands.
//!
//! Each statement is written once. It is what SQLite and PostgreSQL 15 read alike:
//!
//! - Parameters are `?1` to `?n`.
//! - A number that the engine gives comes back by `RETURNING`. A table whose first column is such a
//!   number takes `NULL` for the next one, which is above all that ever were; a number that is stated
//!   counts among those.
//! - `ON CONFLICT` names its columns, and behind a `SELECT` there is a `WHERE` in front of it.
//! - Columns that are true or false are conditions by themselves and are written `TRUE` and `FALSE`.
//! - Values that may be null compare by `IS [NOT] DISTINCT FROM`. The larger of two is a `CASE`.
//! - A list in one column is `string_agg` of texts. A list that comes in is compared here, not there.
//! - A query in `FROM` has a name. All rows behind a number of them are [`ALL_BEHIND`].
//! - Texts sort by their bytes, and `lower` changes only ASCII: a database with the locale `C`.
//! - `licenses.rowid` numbers licences in the order in which they came in.
//!
//! What has no such form is a method of [`Engine`]: checks of the engine's own files, references that hold only at the end of a transaction. Schemas, copies and the noticing of
//! what others wrote belong to an engine altogether.

pub(super) mod accounts;
pub(super) mod audit;
mod calls;
pub(super) mod channels;
pub(super) mod check;
mod collected;
pub(super) mod collections;
pub(super) mod deliveries;
#[cfg(test)]
mod delivery_tests;
pub(super) mod facts;
pub(super) mod failed_logins;
pub(super) mod grants;
pub(super) mod import;
#[cfg(test)]
mod import_tests;
pub(super) mod items;
mod keys;
pub(super) mod logins;
pub(super) mod moving;
pub(super) mod nodes;
pub(super) mod notifications;
pub(super) mod operator;
pub(super) mod orders;
pub(super) mod outbox;
pub(super) mod password_links;
pub(super) mod purges;
pub(super) mod queues;
pub(super) mod recipients;
pub(super) mod removal;
pub(super) mod search;
pub(super) mod secrets;
pub(super) mod sessions;
pub(super) mod tokens;
pub(super) mod users;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use jiff::Timestamp;

use super::{DbError, engine::Engine};
use crate::storage::audit::Event;
use crate::storage::secrets::Keyring;

/// All rows behind as many as the parameter that follows says.
const ALL_BEHIND: &str = "LIMIT 9223372036854775807 OFFSET";

fn damaged(what: impl Into<String>, why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: what.into(), why: why.to_string() }
}

/// A time that is stored in milliseconds; `what` names its row.
pub(in crate::storage::database) fn time(what: &str, ms: i64) -> Result<Timestamp, DbError> {
    Timestamp::from_millisecond(ms).map_err(|why| damaged(what, &why))
}

/// A number of rows as a parameter.
fn int(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Numbers that `string_agg` put together; none where there is no text.
fn numbers(what: &str, text: Option<&str>) -> Result<Vec<i64>, DbError> {
    let parts = text.into_iter().flat_map(|text| text.split(','));
    parts.map(|number| number.parse().map_err(|why| damaged(what, &why))).collect()
}

/// Reads one consistent state of the database.
pub struct ReadTx<'a> {
    engine: Engine<'a>,
    /// What secrets are decrypted with.
    keys: Option<&'a Keyring>,
}

impl<'a> ReadTx<'a> {
    pub(super) fn new(engine: Engine<'a>) -> Self {
        Self { engine, keys: None }
    }

    /// The same transaction with keys for what is stored encrypted.
    pub(super) fn with<'k>(&self, keys: &'k Keyring) -> ReadTx<'k>
    where
        'a: 'k,
    {
        ReadTx { engine: self.engine, keys: Some(keys) }
    }
}

/// Reads and writes in one transaction.
pub struct WriteTx<'a> {
    engine: Engine<'a>,
    /// What this transaction changed in accounts.
    changes: RefCell<Vec<accounts::AccountChange>>,
    /// What this transaction recorded in the audit log.
    events: Rc<RefCell<Vec<Event>>>,
    /// The row of the item log that this transaction wrote last; 0 while there is none.
    item_row: Cell<i64>,
    /// What secrets are encrypted and decrypted with.
    keys: Option<&'a Keyring>,
}

impl<'a> WriteTx<'a> {
    pub(super) fn new(engine: Engine<'a>) -> Self {
        let (changes, events) = (RefCell::default(), Rc::default());
        Self { engine, changes, events, item_row: Cell::new(0), keys: None }
    }

    /// The same transaction, in which nothing was done yet, with keys for what is stored encrypted.
    pub(super) fn with<'k>(&self, keys: &'k Keyring) -> WriteTx<'k>
    where
        'a: 'k,
    {
        // The connection logs the events after the commit, and holds the transaction given here.
        let (changes, events) = (RefCell::default(), Rc::clone(&self.events));
        WriteTx { engine: self.engine, changes, events, item_row: Cell::new(0), keys: Some(keys) }
    }

    /// The same transaction for reading.
    #[must_use]
    pub fn as_read(&self) -> ReadTx<'_> {
        ReadTx { engine: self.engine, keys: self.keys }
    }

    /// The same transaction for taking up what waits, where nobody else does meanwhile.
    pub(super) fn as_claim(&self) -> ClaimTx<'_> {
        ClaimTx { engine: self.engine }
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
    engine: Engine<'a>,
}

impl<'a> ClaimTx<'a> {
    pub(super) fn new(engine: Engine<'a>) -> Self {
        Self { engine }
    }
}

#[cfg(test)]
impl WriteTx<'_> {
    /// Runs statements that set a test's scene.
    pub fn run_sql(&self, sql: &str) -> Result<(), DbError> {
        self.engine.run_script(sql)
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
        let sql = match self.engine {
            Engine::Sqlite(_) => format!(
                "CREATE TRIGGER refuse BEFORE {what} ON {table}
                 BEGIN SELECT RAISE(ABORT, 'refused'); END"
            ),
            Engine::Postgres(_) => format!(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
                 CREATE TRIGGER refuse BEFORE {what} ON {table}
                 FOR EACH ROW EXECUTE FUNCTION refuse()"
            ),
        };
        self.engine.run_script(&sql)
    }

    /// Has it take them again.
    pub fn accept_rows(&self, table: &str) -> Result<(), DbError> {
        self.engine.run_script(
            match self.engine {
                Engine::Sqlite(_) => "DROP TRIGGER refuse".to_owned(),
                Engine::Postgres(_) => format!("DROP TRIGGER refuse ON {table}"),
            }
            .as_str(),
        )
    }
}
