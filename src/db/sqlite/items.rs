//! Items: document, files and log row, always written together.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, params};

use super::{ReadTx, WriteTx, damaged, time};
use crate::db::DbError;
use crate::item::{Asset, PubStatus};
use crate::limits::SWEEP_ROWS;
use crate::query::Indexed;
use crate::types::ItemKey;

/// An item to be written.
#[derive(Clone, Debug)]
pub struct NewItem {
    /// Its identity.
    pub key: ItemKey,
    /// The document's text.
    pub document: String,
    /// Its files; `None` keeps those that the item has.
    pub assets: Option<Vec<Asset>>,
    /// Publication status, also in the document.
    pub pub_status: PubStatus,
    /// The time that orders items.
    pub order_time: Timestamp,
    /// Until when the item is hidden.
    pub embargoed: Option<Timestamp>,
    /// Now.
    pub stored: Timestamp,
    /// Whether it counts as newly indexed for streams: a new item, or one whose `version` or
    /// `versioncreated` rose.
    pub fresh: bool,
    /// What of the document is searched.
    pub indexed: Indexed,
}

/// What [`WriteTx::write_item`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The item is new.
    Created,
    /// The item was there; its document is replaced in place.
    Replaced,
}

/// An item as stored.
#[derive(Clone, Debug)]
pub struct StoredItem {
    /// The document's text.
    pub document: String,
    /// Its files.
    pub assets: Vec<Asset>,
    /// Until when the item is hidden.
    pub embargoed: Option<Timestamp>,
    /// When this version was stored.
    pub stored: Timestamp,
    /// The time that orders items.
    pub order_time: Timestamp,
}

/// The columns `document, assets, embargoed_ms, stored_ms, order_ms` of a row.
pub(super) struct Raw(String, String, Option<i64>, i64, i64);

impl Raw {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    }

    pub(super) fn item(self, what: &str) -> Result<StoredItem, DbError> {
        let assets = serde_json::from_str(&self.1).map_err(|why| damaged(what, &why))?;
        let embargoed = self.2.map(|ms| time(what, ms)).transpose()?;
        let (stored, order_time) = (time(what, self.3)?, time(what, self.4)?);
        Ok(StoredItem { document: self.0, assets, embargoed, stored, order_time })
    }
}

impl ReadTx<'_> {
    /// The item `key`.
    pub fn find_item(&self, key: &ItemKey) -> Result<Option<StoredItem>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT document, assets, embargoed_ms, stored_ms, order_ms FROM items
             WHERE media_type = ?1 AND id = ?2",
        )?;
        let raw = statement
            .query_row(params![key.media_type.as_str(), key.id.as_str()], Raw::read)
            .optional()?;
        raw.map(|raw| raw.item(&format!("item {key}"))).transpose()
    }

    /// Whether there is an item `key` that is not withdrawn.
    pub fn item_exists(&self, key: &ItemKey) -> Result<bool, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT 1 FROM items WHERE media_type = ?1 AND id = ?2
             AND pubstatus NOT IN ('withheld', 'canceled')",
        )?;
        Ok(statement.exists(params![key.media_type.as_str(), key.id.as_str()])?)
    }

    /// The files of items behind the row `after`, `limit` of them in the order of rows: row number,
    /// identity, files. The first row is behind 0.
    pub fn list_assets(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, ItemKey, Vec<Asset>)>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT item_id, media_type, id, assets FROM items WHERE item_id > ?1
             ORDER BY item_id LIMIT ?2",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![after, limit], |row| {
            let text = |column| row.get::<_, String>(column);
            Ok((row.get::<_, i64>(0)?, text(1)?, text(2)?, text(3)?))
        })?;
        let mut found = Vec::new();
        for row in rows {
            let (number, media_type, id, assets) = row?;
            let what = format!("item {media_type}/{id}");
            let key = format!("{media_type}/{id}").parse().map_err(|why| damaged(&what, &why))?;
            let assets = serde_json::from_str(&assets).map_err(|why| damaged(&what, &why))?;
            found.push((number, key, assets));
        }
        Ok(found)
    }
}

impl WriteTx<'_> {
    /// Writes an item with its row in the item log and in the index.
    ///
    /// The version gets the number of the log row; what was there of the item before goes. One that
    /// is withdrawn leaves the collections that hold it.
    pub fn write_item(&self, item: &NewItem) -> Result<Written, DbError> {
        let (media_type, id) = (item.key.media_type.as_str(), item.key.id.as_str());
        let what = format!("item {}", item.key);
        let known: Option<(i64, String)> = self
            .transaction
            .prepare_cached("SELECT item_id, assets FROM items WHERE media_type = ?1 AND id = ?2")?
            .query_row(params![media_type, id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (written, change) = match known {
            Some(_) => (Written::Replaced, "replaced"),
            None => (Written::Created, "created"),
        };
        let previous = known.as_ref().map(|(doc, _)| *doc);
        let assets = match &item.assets {
            Some(assets) => serde_json::to_string(assets).map_err(|why| damaged(&what, &why))?,
            None => known.map_or_else(|| "[]".to_owned(), |(_, assets)| assets),
        };
        let stored_ms = item.stored.as_millisecond();
        self.transaction
            .prepare_cached(
                "INSERT INTO item_log (media_type, id, change, at_ms, previous, fresh)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![media_type, id, change, stored_ms, previous, item.fresh])?;
        let doc = self.transaction.last_insert_rowid();
        if let Some(previous) = previous {
            self.follow_in_collections(item)?;
            self.remove_from_index(previous)?;
            self.transaction
                .prepare_cached("DELETE FROM items WHERE item_id = ?1")?
                .execute([previous])?;
        }
        self.transaction
            .prepare_cached(
                "INSERT INTO items (item_id, media_type, id, document, assets, pubstatus,
                     order_ms, embargoed_ms, stored_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                doc,
                media_type,
                id,
                item.document,
                assets,
                item.pub_status.as_str(),
                item.order_time.as_millisecond(),
                item.embargoed.map(Timestamp::as_millisecond),
                stored_ms,
            ])?;
        self.add_to_index(doc, item)?;
        Ok(written)
    }

    /// Removes rows of the item log that were written before `before`, at most [`SWEEP_ROWS`] of
    /// them, never the newest and none that notifications were not looked for yet; gives how many.
    pub fn sweep_item_log(&self, before: Timestamp) -> Result<usize, DbError> {
        let mut statement = self.transaction.prepare_cached(
            "SELECT seq, at_ms FROM item_log
             WHERE seq < (SELECT max(seq) FROM item_log)
             AND seq <= (SELECT min(seq) FROM cursors) ORDER BY seq LIMIT ?1",
        )?;
        let limit = i64::try_from(SWEEP_ROWS).unwrap_or(i64::MAX);
        let mut rows = statement.query([limit])?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? >= before.as_millisecond() {
                break;
            }
            last = Some(row.get::<_, i64>(0)?);
        }
        let Some(last) = last else { return Ok(0) };
        let mut delete =
            self.transaction.prepare_cached("DELETE FROM item_log WHERE seq <= ?1")?;
        Ok(delete.execute([last])?)
    }
}
