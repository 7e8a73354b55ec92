//! Contains the statements: all reads and writes of a transaction, in SQL that both engines accept.
//!
//! Each statement is written once, in the common subset of SQLite and PostgreSQL 15:
//!
//! - Parameters are `?1` to `?n`.
//! - A number that the engine assigns is returned by `RETURNING`. If the first column of a table is such a
//!   number, `NULL` requests the next one, which is above all earlier ones, including explicitly inserted
//!   ones.
//! - Columns are read by their names. An expression has an alias, and so has one of two columns with the same
//!   name.
//! - `ON CONFLICT` names its columns, and a `SELECT` in front of it has a `WHERE`.
//! - Boolean columns are conditions by themselves and are written `TRUE` and `FALSE`.
//! - Nullable values are compared by `IS [NOT] DISTINCT FROM`. The larger of two values is a `CASE`.
//! - A list in one column is built by `string_agg` of texts. A list passed as input is compared in Rust, not
//!   in SQL.
//! - A subquery in `FROM` has a name. All rows after the first n are selected by [`ALL_BEHIND`].
//! - Texts sort by their bytes, and `lower` changes only ASCII: a database with the locale `C`.
//! - `licenses.rowid` numbers licences in the order in which they were added.
//!
//! Anything without such a form is a method of [`EngineTransaction`](super::engine::EngineTransaction):
//! checks of the engine's own files, and foreign keys that hold only at the end of a transaction. Schemas,
//! copies and following other writers belong to the engines altogether.

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
pub(super) mod diagnostics;
pub(super) mod downloads;
pub(super) mod failed_logins;
pub(super) mod grants;
pub(super) mod import;
#[cfg(test)]
mod import_tests;
pub(super) mod item_edits;
pub(super) mod item_rights;
#[cfg(test)]
mod item_tests;
pub(super) mod items;
mod keys;
pub(super) mod logins;
pub(super) mod nodes;
pub(super) mod notifications;
pub(super) mod operator;
pub(super) mod orders;
pub(super) mod original_removals;
pub(super) mod outbox;
pub(super) mod password_links;
pub(super) mod purges;
pub(super) mod queues;
pub(super) mod recipients;
pub(super) mod removal;
pub(super) mod search;
pub(super) mod secrets;
pub(super) mod sessions;
pub(super) mod store_claims;
pub(super) mod templates;
pub(super) mod tokens;
pub(super) mod uploads;
pub(super) mod users;

use std::{fmt::Display, str::FromStr};

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

use super::engine::{ResultRow, params};
use super::error::{DbResult, damaged};
use super::transactions::{ClaimTx, ReadTx, WriteTx};
use model::{ItemKey, account::AgreementId, shorten};

/// Selects all rows after the first n. The parameter that follows is n.
// SQLite accepts `OFFSET` only after a `LIMIT`.
const ALL_BEHIND: &str = "LIMIT 9223372036854775807 OFFSET";

/// Maximum number of characters of a stored text that an error quotes.
const QUOTED_CHARS_MAX: usize = 100;

/// Converts a time that is stored in milliseconds. `what` names its row in the error.
pub(in crate::storage::database) fn time(what: &str, ms: i64) -> DbResult<Timestamp> {
    Timestamp::from_millisecond(ms).map_err(|why| damaged(what, &why))
}

/// Converts a time that is stored in milliseconds, if there is one.
fn optional_time(what: &str, ms: Option<i64>) -> DbResult<Option<Timestamp>> {
    ms.map(|ms| time(what, ms)).transpose()
}

/// Parses a stored text. `what` names its row in the error, which quotes the text.
fn parse<T: FromStr<Err: Display>>(what: &str, text: &str) -> DbResult<T> {
    T::from_str(text).map_err(|why| {
        let quoted = shorten(text, QUOTED_CHARS_MAX);
        damaged(what, &format!("{quoted:?}: {why}"))
    })
}

/// Parses stored JSON. `what` names its row in the error.
fn parse_json<T: DeserializeOwned>(what: &str, text: &str) -> DbResult<T> {
    serde_json::from_str(text).map_err(|why| damaged(what, &why))
}

/// Prints JSON to be stored. `what` names its row in the error.
fn print_json(what: &str, value: &impl Serialize) -> DbResult<String> {
    serde_json::to_string(value).map_err(|why| damaged(what, &why))
}

/// Reads the key of an item from the columns `media_type` and `id`.
fn read_key(row: &dyn ResultRow) -> DbResult<ItemKey> {
    let key = key_text(row, "id")?;
    // The name is built for the error alone, because long results read a key in every row.
    key.parse().map_err(|why| damaged(format!("item {key}"), &why))
}

/// Reads the text of an item's key from the column `media_type` and the column `id`.
fn key_text(row: &dyn ResultRow, id: &str) -> DbResult<String> {
    Ok(format!("{}/{}", row.text("media_type")?, row.text(id)?))
}

/// Reads the column `agreements`: numbers concatenated by `string_agg`. Empty if there is no text.
fn read_agreements(what: &str, row: &dyn ResultRow) -> DbResult<Vec<AgreementId>> {
    let text: Option<String> = row.get("agreements")?;
    let numbers = text.iter().flat_map(|text| text.split(','));
    numbers.map(|number| parse(what, number).map(AgreementId)).collect()
}

impl WriteTx<'_> {
    /// Removes the rows of a table whose `time` is before `before`, oldest first, at most `limit`. The column
    /// `id` identifies a row. Returns their number.
    fn sweep(
        &self,
        table: &str,
        id: &str,
        time: &str,
        before: Timestamp,
        limit: usize,
    ) -> DbResult<usize> {
        let sql = format!(
            "DELETE FROM {table} WHERE {id} IN
                 (SELECT {id} FROM {table} WHERE {time} < ?1 ORDER BY {time} LIMIT ?2)"
        );
        self.tx.execute(&sql, params![before, limit])
    }
}
