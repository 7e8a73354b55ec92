//! Stores items: document, files and log row are always written together.

use std::ops::ControlFlow;

use jiff::Timestamp;
use strum::IntoStaticStr;

use super::item_rights::{self, SET_RIGHTS};
use super::{ReadTx, WriteTx, optional_time, parse_json, print_json, read_key, time};
use crate::runtime::limits::SWEEP_ROWS;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::{Asset, ItemPresence, PubStatus};

/// An item to be stored.
#[derive(Clone, Debug)]
pub struct NewItem {
    pub key: ItemKey,
    /// The text of the document.
    pub document: String,
    /// Its files; `None` keeps the current ones.
    pub assets: Option<Vec<Asset>>,
    /// Publication status, which the document also contains.
    pub pub_status: PubStatus,
    /// The time that orders items.
    pub order_time: Timestamp,
    /// The end of the embargo, if any.
    pub embargoed: Option<Timestamp>,
    pub stored: Timestamp,
    /// True if it counts as newly indexed for streams: it is new, or its `version` or `versioncreated` rose.
    pub is_newly_indexed: bool,
}

/// The outcome of [`WriteTx::write_item`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ItemWriteOutcome {
    /// The item is new.
    Created,
    /// The item existed; its document was replaced.
    Replaced,
}

model::impl_as_str!(ItemWriteOutcome);

/// An item as stored.
#[derive(Clone, Debug)]
pub struct StoredItem {
    /// The text of the document.
    pub document: String,
    pub assets: Vec<Asset>,
    /// The end of the embargo, if any.
    pub embargoed: Option<Timestamp>,
    /// Time at which this version was stored.
    pub stored: Timestamp,
    /// The time that orders items.
    pub order_time: Timestamp,
    /// The rights override of the item, for all of its versions.
    pub rights: RightsMetadata,
}

impl StoredItem {
    /// The columns that [`StoredItem::read`] reads.
    pub(super) fn columns() -> String {
        format!("document, assets, embargoed_ms, stored_ms, order_ms, {SET_RIGHTS}")
    }

    /// Reads the columns [`StoredItem::columns`].
    pub(super) fn read(row: &dyn ResultRow, what: &str) -> DbResult<Self> {
        Ok(Self {
            document: row.get("document")?,
            assets: parse_json(what, row.text("assets")?)?,
            embargoed: optional_time(what, row.get("embargoed_ms")?)?,
            stored: time(what, row.get("stored_ms")?)?,
            order_time: time(what, row.get("order_ms")?)?,
            rights: item_rights::read_set(row, what)?,
        })
    }
}

impl ReadTx<'_> {
    /// Finds the current version of the item `key`.
    pub fn find_item(&self, key: &ItemKey) -> DbResult<Option<StoredItem>> {
        Ok(self.find_version(key)?.map(|(_, item)| item))
    }

    /// Returns whether the item `key` exists and has files. A withdrawn item counts as absent.
    pub fn find_held(&self, key: &ItemKey) -> DbResult<ItemPresence> {
        let sql = "SELECT CASE assets WHEN '[]' THEN 0 ELSE 1 END FROM items
             WHERE media_type = ?1 AND id = ?2 AND pubstatus NOT IN ('withheld', 'canceled')";
        let has_files: Option<i64> = self.tx.find_value(sql, params![key.media_type, key.id])?;
        Ok(match has_files {
            None => ItemPresence::Absent,
            Some(0) => ItemPresence::Document,
            Some(_) => ItemPresence::Files,
        })
    }

    /// Lists the numbers of items above `after` and up to `through`, ascending, at most `limit`.
    pub fn list_item_numbers(&self, after: i64, through: i64, limit: usize) -> DbResult<Vec<i64>> {
        let sql = "SELECT item_id FROM items WHERE item_id > ?1 AND item_id <= ?2
             ORDER BY item_id LIMIT ?3";
        self.tx.list_values(sql, params![after, through, limit])
    }

    /// Counts the items with pictures among the numbers above `after` and up to `through`.
    pub fn count_items_with_pictures(&self, after: i64, through: i64) -> DbResult<u64> {
        // Searches the text of the records, because parsing the records of all items would be many times
        // slower.
        let sql = "SELECT count(*) FROM items WHERE item_id > ?1 AND item_id <= ?2
             AND assets LIKE '%\"progressive\":%'";
        self.tx.load_value(sql, params![after, through])
    }

    /// Finds the item whose current version has the number `doc`, with its files.
    pub fn files_of_version(&self, doc: i64) -> DbResult<Option<(ItemKey, Vec<Asset>)>> {
        let sql = "SELECT media_type, id, assets FROM items WHERE item_id = ?1";
        self.tx.find(sql, params![doc], |row| {
            let key = read_key(row)?;
            let assets = parse_json(&format!("item {key}"), row.text("assets")?)?;
            Ok((key, assets))
        })
    }
}

impl WriteTx<'_> {
    /// Writes an item with its row in the item log.
    ///
    /// The version gets the number of the log row and replaces the previous version. A withdrawn item is
    /// removed from the collections that contain it.
    pub fn write_item(&self, item: &NewItem) -> DbResult<ItemWriteOutcome> {
        let ItemKey { media_type, id } = &item.key;
        let what = format!("item {}", item.key);
        let sql = "SELECT item_id, assets FROM items WHERE media_type = ?1 AND id = ?2";
        let existing: Option<(i64, String)> =
            self.tx.find(sql, params![media_type, id], |row| {
                Ok((row.get("item_id")?, row.get("assets")?))
            })?;
        let written = match existing {
            Some(_) => ItemWriteOutcome::Replaced,
            None => ItemWriteOutcome::Created,
        };
        let previous = existing.as_ref().map(|(doc, _)| *doc);
        let assets = match &item.assets {
            Some(assets) => print_json(&what, assets)?,
            None => existing.map_or_else(|| "[]".to_owned(), |(_, assets)| assets),
        };
        // The log row comes first, because its number becomes the number of the version.
        let sql =
            "INSERT INTO item_log (media_type, id, change, at_ms, previous_seq, newly_indexed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING seq";
        let NewItem { document, pub_status, order_time, embargoed, stored, .. } = item;
        let change = written.as_str();
        let values = params![media_type, id, change, stored, previous, item.is_newly_indexed];
        let doc: i64 = self.tx.load_value(sql, values)?;
        // While the previous version still exists, because collections record its headline.
        if let Some(previous) = previous {
            self.update_collections(item)?;
            self.tx.run("DELETE FROM items WHERE item_id = ?1", params![previous])?;
        }
        let sql = "INSERT INTO items (item_id, media_type, id, document, assets, pubstatus,
                 order_ms, embargoed_ms, stored_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            doc, media_type, id, document, assets, pub_status, order_time, embargoed, stored,
        ];
        self.tx.run(sql, values)?;
        // Searches of this process wait until the index contains this row.
        self.item_row.set(doc);
        Ok(written)
    }

    /// Removes rows of the item log written before `before`, at most [`SWEEP_ROWS`], but never the newest row
    /// or rows that have not been matched with notifications. Returns the number of removed rows.
    pub fn sweep_item_log(&self, before: Timestamp) -> DbResult<usize> {
        let before = before.as_millisecond();
        let mut last: Option<i64> = None;
        // The newest row stays, because followers detect lost rows by the end of the log. `streams` is a
        // counter, not a position in it.
        let sql = "SELECT seq, at_ms FROM item_log
             WHERE seq < (SELECT max(seq) FROM item_log)
             AND seq <= (SELECT min(seq) FROM cursors WHERE name <> 'streams')
             ORDER BY seq LIMIT ?1";
        self.tx.each_until(sql, params![SWEEP_ROWS], |row| {
            if row.get::<i64>("at_ms")? >= before {
                // Rows are removed from the front only: the index needs a log without gaps.
                return Ok(ControlFlow::Break(()));
            }
            last = Some(row.get("seq")?);
            Ok(ControlFlow::Continue(()))
        })?;
        let Some(last) = last else { return Ok(0) };
        self.tx.execute("DELETE FROM item_log WHERE seq <= ?1", params![last])
    }
}
