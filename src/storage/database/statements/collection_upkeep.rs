//! Keeps collections up to date when their items are withdrawn, change or expire (contract collections-11).
//!
//! This happens in the transaction that writes the item, so that no collection ever contains a withdrawn
//! item. An item that is published again does not return to its collections, because its position is no
//! longer known.

use jiff::Timestamp;

use super::collections::LostItem;
use super::{ReadTx, WriteTx};
use crate::runtime::limits::COLLECTION_REMOVED_CHARS_MAX;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbError;
use crate::storage::database::statements::items::NewItem;
use model::ItemKey;
use model::item::Document;

/// The property with an item's expiry time.
const EXPIRES: &str = "expires";

impl ReadTx<'_> {
    /// Returns whether an item of a collection has expired at `now`.
    pub fn has_expired_items(&self, now: Timestamp) -> Result<bool, DbError> {
        let sql = "SELECT 1 FROM collection_items WHERE expires_ms <= ?1 LIMIT 1";
        self.tx.exists(sql, params![now.as_millisecond()])
    }

    /// Returns the expiry time of an item that may be added to collections at `now`: it exists, is not
    /// withdrawn and has not expired. `None` for all others.
    pub fn find_collectable(
        &self,
        key: &ItemKey,
        now: Timestamp,
    ) -> Result<Option<Option<Timestamp>>, DbError> {
        let Some(document) = self.stored_document(key)? else { return Ok(None) };
        let expires = document.time(EXPIRES);
        let is_usable = document.pub_status().is_served() && expires.is_none_or(|at| at > now);
        Ok(is_usable.then_some(expires))
    }

    /// Reads the document of the item; `None` if it cannot be read.
    fn stored_document(&self, key: &ItemKey) -> Result<Option<Document>, DbError> {
        let found = self.find_item(key)?;
        Ok(found.and_then(|item| Document::from_stored(&item.document).ok()))
    }
}

impl WriteTx<'_> {
    /// Updates the collections that contain `item` for a new version of it: a withdrawn item is removed from
    /// them. Called while the previous version still exists.
    pub(super) fn update_collections(&self, item: &NewItem) -> Result<(), DbError> {
        let collections = self.collections_with(&item.key)?;
        // Most items are in no collection, so ingest need not parse their documents again.
        if collections.is_empty() {
            return Ok(());
        }
        let Ok(document) = Document::from_stored(&item.document) else { return Ok(()) };
        if item.pub_status.is_served() {
            let expires = document.time(EXPIRES).map(Timestamp::as_millisecond);
            let (media_type, id) = (item.key.media_type.as_str(), item.key.id.as_str());
            self.tx.execute(
                "UPDATE collection_items SET expires_ms = ?3 WHERE media_type = ?1 AND id = ?2",
                params![media_type, id, expires],
            )?;
            return Ok(());
        }
        // A document that withdraws an item often contains nothing else about it.
        let previous = self.as_read().stored_document(&item.key)?;
        let last_known = |name: &str| {
            let text = document.text(name).or_else(|| previous.as_ref()?.text(name));
            text.map(shorten)
        };
        let lost = LostItem {
            key: item.key.clone(),
            headline: last_known("headline"),
            description: last_known("description_text"),
            at: item.stored,
        };
        self.record_lost_item(&collections, &lost)
    }

    /// Moves at most `limit` items that have expired at `now` out of the collections that contain them;
    /// returns their number.
    pub fn sweep_expired_items(&self, now: Timestamp, limit: usize) -> Result<usize, DbError> {
        // One item at a time: removing it from its collections takes it out of the query.
        for removed in 0..limit {
            let Some(key) = self.next_expired(now)? else { return Ok(removed) };
            let document = self.as_read().stored_document(&key)?;
            let last_known = |name: &str| document.as_ref()?.text(name).map(shorten);
            let (headline, description) = (last_known("headline"), last_known("description_text"));
            let lost = LostItem { key, headline, description, at: now };
            let collections = self.collections_with(&lost.key)?;
            self.record_lost_item(&collections, &lost)?;
        }
        Ok(limit)
    }

    fn record_lost_item(&self, collections: &[i64], lost: &LostItem) -> Result<(), DbError> {
        for number in collections {
            self.remove_from_collection(*number, &lost.key)?;
            self.insert_lost_item(*number, lost)?;
            self.mark_collection_modified(*number, lost.at)?;
        }
        Ok(())
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(COLLECTION_REMOVED_CHARS_MAX).collect()
}
