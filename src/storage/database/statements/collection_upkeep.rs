//! Keeps collections up to date when their items are withdrawn (contract collections-11).
//!
//! The transaction that writes the item also updates its collections, so that no collection ever contains a
//! withdrawn item. An item that is published again does not return to its collections, because its position
//! is no longer known.

use super::collections::LostItem;
use super::{ReadTx, WriteTx};
use crate::storage::database::error::DbResult;
use crate::storage::database::statements::items::NewItem;
use model::item::Document;
use model::{ItemKey, shorten};

/// Characters of the headline, and of the description, remembered of a removed item.
const COLLECTION_REMOVED_CHARS_MAX: usize = 2000;

impl ReadTx<'_> {
    /// Returns whether the item may be added to collections: it exists and is not withdrawn.
    pub fn is_collectable(&self, key: &ItemKey) -> DbResult<bool> {
        let document = self.stored_document(key)?;
        Ok(document.is_some_and(|document| document.pub_status().is_served()))
    }

    /// Reads the document of the item. Returns `None` if it cannot be read.
    fn stored_document(&self, key: &ItemKey) -> DbResult<Option<Document>> {
        let found = self.find_item(key)?;
        Ok(found.and_then(|item| Document::from_stored(&item.document).ok()))
    }
}

/// Returns a text of a document, or else of its previous version, shortened for the list of lost items.
fn last_known(name: &str, document: &Document, previous: Option<&Document>) -> Option<String> {
    let text = document.text(name).or_else(|| previous?.text(name));
    text.map(|text| shorten(text, COLLECTION_REMOVED_CHARS_MAX))
}

impl WriteTx<'_> {
    /// Updates the collections that contain `item` for a new version of it: removes a withdrawn item from
    /// them. Called while the previous version still exists.
    pub(super) fn update_collections(&self, item: &NewItem) -> DbResult<()> {
        if item.pub_status.is_served() {
            return Ok(());
        }
        let collections = self.collections_with(&item.key)?;
        // Most items are in no collection, so ingest usually need not parse their documents again.
        if collections.is_empty() {
            return Ok(());
        }
        let Ok(document) = Document::from_stored(&item.document) else { return Ok(()) };
        // A document that withdraws an item often contains nothing else about it.
        let previous = self.stored_document(&item.key)?;
        let lost = LostItem {
            key: item.key.clone(),
            headline: last_known("headline", &document, previous.as_ref()),
            description: last_known("description_text", &document, previous.as_ref()),
            at: item.stored,
        };
        self.record_lost_item(&collections, &lost)
    }

    fn record_lost_item(&self, collections: &[i64], lost: &LostItem) -> DbResult<()> {
        for number in collections {
            self.remove_from_collection(*number, &lost.key)?;
            self.insert_lost_item(*number, lost)?;
            self.mark_collection_modified(*number, lost.at)?;
        }
        Ok(())
    }
}
