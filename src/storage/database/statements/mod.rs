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
//! What has no such form is a method of
//! [`EngineTransaction`](super::engine::EngineTransaction): checks of the engine's own files, references that hold
//! only at the end of a transaction. Schemas, copies and the noticing of what others wrote belong to an engine altogether.

pub(super) mod accounts;
pub(super) mod archive_migration;
pub(super) mod audit;
pub(super) mod channels;
pub(super) mod check;
mod collection_upkeep;
pub(super) mod collections;
pub(super) mod deliveries;
#[cfg(test)]
mod delivery_tests;
pub(super) mod failed_logins;
pub(super) mod grants;
pub(super) mod import;
#[cfg(test)]
mod import_tests;
pub(super) mod items;
mod keys;
pub(super) mod logins;
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
mod session_calls;
pub(super) mod sessions;
pub(super) mod tokens;
pub(super) mod users;

use jiff::Timestamp;

use super::error::{DbError, damaged};
use super::transactions::{ClaimTx, ReadTx, WriteTx};

/// All rows behind as many as the parameter that follows says.
const ALL_BEHIND: &str = "LIMIT 9223372036854775807 OFFSET";

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
