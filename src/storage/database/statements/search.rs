//! Contains the statements that feed the search index: the item log, and the versions of items in it.

use jiff::Timestamp;

use super::item_rights::SET_RIGHTS;
use super::{ReadTx, WriteTx, key_text, read_key};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use crate::storage::database::statements::items::StoredItem;
use model::ItemKey;
use model::item::PubStatus;

/// A row of the item log, with a digest that distinguishes it from a different row with the same number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of the row; 0 before the first one.
    pub row: i64,
    /// The content of the row. Numbers are assigned again after a restore or a failover that lost rows.
    pub digest: String,
}

/// A version of an item, as search sees it.
#[derive(Clone, Debug)]
pub struct IndexedVersion {
    /// The number of the version, which is the number of the log row that wrote it. It is below 2^32: even the
    /// fastest ingest needs years for that many writes.
    pub number: u32,
    pub key: ItemKey,
    /// The text of the document.
    pub document: String,
    /// The files, as stored.
    pub assets: String,
    /// The rights override of the item, as stored; `None` if it has none.
    pub set_rights: Option<String>,
    pub status: PubStatus,
    /// `_tstamp`, in milliseconds since 1970 like all times here.
    pub order_ms: i64,
    /// The end of the embargo, if any.
    pub embargoed_ms: Option<i64>,
    /// Time at which the version was stored.
    pub stored_ms: i64,
}

/// The change that one row of the item log makes in the search index.
#[derive(Clone, Debug)]
pub struct IndexChange {
    pub position: LogPosition,
    /// The version that it replaced.
    pub replaced: Option<u32>,
    /// True if it requests a rebuild of the index by every process.
    pub rebuild: bool,
}

/// Versions that search may find, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct VersionPage {
    pub versions: Vec<IndexedVersion>,
    /// The largest number that was read; `None` at the end.
    pub reached: Option<u32>,
}

/// The name of the archive's id in the table `state`.
const ARCHIVE_ID: &str = "archive id";
/// The word in a row of the log that requests a rebuild of the search index.
const REINDEX: &str = "reindex";

/// The columns of a version, see [`read_version`].
fn version_columns() -> String {
    format!(
        "item_id, media_type, id, document, pubstatus, order_ms, embargoed_ms, stored_ms, assets,
         {SET_RIGHTS}"
    )
}

impl ReadTx<'_> {
    /// Returns the id of this archive. It is random and unique, and stays the same if the database is copied,
    /// migrated or restored.
    pub fn archive_id(&self) -> DbResult<String> {
        self.tx.load_value("SELECT value FROM state WHERE name = ?1", params![ARCHIVE_ID])
    }

    /// Counts the items of the archive.
    pub fn count_items(&self) -> DbResult<u64> {
        self.tx.load_value("SELECT count(*) FROM items", params![])
    }

    /// Returns the newest row of the item log.
    pub fn log_end(&self) -> DbResult<LogPosition> {
        let sql = "SELECT seq, media_type, id, change, at_ms FROM item_log
             ORDER BY seq DESC LIMIT 1";
        Ok(self.tx.find(sql, params![], read_position)?.unwrap_or_default())
    }

    /// Returns the number of the oldest row of the item log that still exists; 0 for an empty log.
    pub fn log_floor(&self) -> DbResult<i64> {
        self.tx.load_value("SELECT coalesce(min(seq), 0) FROM item_log", params![])
    }

    /// Lists the rows of the item log after `after`, at most `limit`.
    ///
    /// Returns `None` if the log does not contain `after`: rows were lost or removed in between.
    pub fn index_changes(
        &self,
        after: &LogPosition,
        limit: usize,
    ) -> DbResult<Option<Vec<IndexChange>>> {
        if !self.log_holds(after)? {
            return Ok(None);
        }
        let sql = "SELECT seq, media_type, id, change, at_ms, previous_seq FROM item_log
             WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let changes = self.tx.list(sql, params![after.row, limit], |row| {
            Ok(IndexChange {
                position: read_position(row)?,
                replaced: row.get("previous_seq")?,
                rebuild: row.text("change")? == REINDEX,
            })
        })?;
        Ok(Some(changes))
    }

    /// Lists the versions that were replaced after the row `after` of the item log, including withdrawn ones.
    ///
    /// Returns `None` if the log does not contain `after`.
    pub fn replaced_since(&self, after: &LogPosition) -> DbResult<Option<Vec<u32>>> {
        if !self.log_holds(after)? {
            return Ok(None);
        }
        let sql = "SELECT previous_seq FROM item_log WHERE seq > ?1 AND previous_seq IS NOT NULL
             ORDER BY seq";
        self.tx.list_values(sql, params![after.row]).map(Some)
    }

    /// Returns whether the item log contains every row after `position`, and the same row at `position`.
    pub fn log_holds(&self, position: &LogPosition) -> DbResult<bool> {
        if position.row == 0 {
            // From the start, the log is complete only while its first row has not been swept.
            return Ok(self.log_floor()? <= 1);
        }
        let sql = "SELECT seq, media_type, id, change, at_ms FROM item_log WHERE seq = ?1";
        let found = self.tx.find(sql, params![position.row], read_position)?;
        Ok(found.is_some_and(|found| found == *position))
    }

    /// Reads the next `limit` items with numbers above `after` up to `last`. Returns the versions that search
    /// may find.
    pub fn list_versions_after(
        &self,
        after: u32,
        last: u32,
        limit: usize,
    ) -> DbResult<VersionPage> {
        let columns = version_columns();
        let sql = format!(
            "SELECT {columns} FROM items WHERE item_id > ?1 AND item_id <= ?2
             ORDER BY item_id LIMIT ?3"
        );
        let mut page = VersionPage::default();
        self.tx.each(&sql, params![after, last, limit], |row| {
            // Withdrawn items count as read, because a page without results is not the end.
            page.reached = Some(row.get("item_id")?);
            page.versions.extend(read_version(row)?);
            Ok(())
        })?;
        Ok(page)
    }

    /// Calls `each` with the number, the key and the storing time in milliseconds of every version that
    /// search may find, in the order of the numbers.
    pub fn each_version(
        &self,
        mut each: impl FnMut(u32, &str, i64) -> DbResult<()>,
    ) -> DbResult<()> {
        let sql = "SELECT item_id, media_type || '/' || id AS key, stored_ms FROM items
             WHERE pubstatus NOT IN ('withheld', 'canceled') ORDER BY item_id";
        self.tx.each(sql, params![], |row| {
            // A damaged key must not end the comparison of all other items.
            each(row.get("item_id")?, &row.lossy("key")?, row.get("stored_ms")?)
        })
    }

    /// Finds the version `number`, if it is current and search may find it.
    pub fn find_version_numbered(&self, number: u32) -> DbResult<Option<IndexedVersion>> {
        let sql = format!("SELECT {} FROM items WHERE item_id = ?1", version_columns());
        Ok(self.tx.find(&sql, params![number], read_version)?.flatten())
    }

    /// Finds the item whose current version has the number `number`.
    pub fn find_numbered(&self, number: u32) -> DbResult<Option<(ItemKey, StoredItem)>> {
        let columns = StoredItem::columns();
        let sql = format!("SELECT {columns}, media_type, id FROM items WHERE item_id = ?1");
        self.tx.find(&sql, params![number], |row| {
            let key = read_key(row)?;
            let item = StoredItem::read(row, &format!("item {key}"))?;
            Ok((key, item))
        })
    }

    /// Returns `_tstamp` in milliseconds and the number of the current version of `key`.
    pub fn order_position_of(&self, key: &ItemKey) -> DbResult<Option<(i64, u32)>> {
        let sql = "SELECT order_ms, item_id FROM items WHERE media_type = ?1 AND id = ?2";
        let values = params![key.media_type, key.id];
        self.tx.find(sql, values, |row| Ok((row.get("order_ms")?, row.get("item_id")?)))
    }
}

impl WriteTx<'_> {
    /// Requests a rebuild of the index by every process that searches. Returns the number of the log row with
    /// the request.
    pub fn request_reindex(&self, now: Timestamp) -> DbResult<i64> {
        // A row of the item log, because every process that searches follows it.
        let sql = "INSERT INTO item_log (media_type, id, change, at_ms, newly_indexed)
             VALUES ('', '', ?1, ?2, FALSE) RETURNING seq";
        let row = self.tx.load_value(sql, params![REINDEX, now])?;
        self.item_row.set(row);
        Ok(row)
    }
}

/// Reads the columns `seq, media_type, id, change, at_ms`.
fn read_position(row: &dyn ResultRow) -> DbResult<LogPosition> {
    let at_ms: i64 = row.get("at_ms")?;
    let digest = format!("{} {} {at_ms}", key_text(row, "id")?, row.text("change")?);
    Ok(LogPosition { row: row.get("seq")?, digest })
}

/// Reads the columns [`version_columns`]. Returns `None` for a version that search never finds, and for a
/// damaged row, which must not exclude the others from the index.
fn read_version(row: &dyn ResultRow) -> DbResult<Option<IndexedVersion>> {
    let key = key_text(row, "id")?;
    let (Ok(key), Ok(status)) = (key.parse(), row.text("pubstatus")?.parse::<PubStatus>()) else {
        tracing::error!("search index: item {key} skipped: its key or status is damaged");
        return Ok(None);
    };
    let version = IndexedVersion {
        number: row.get("item_id")?,
        key,
        document: row.get("document")?,
        assets: row.get("assets")?,
        set_rights: row.get("set_rights")?,
        status,
        order_ms: row.get("order_ms")?,
        embargoed_ms: row.get("embargoed_ms")?,
        stored_ms: row.get("stored_ms")?,
    };
    Ok(Some(version).filter(|version| version.status.is_served()))
}
