//! The collections section: named lists of items that belong to users.
//!
//! A change is one transaction, and the next call sees it, so changes are applied in their order (contract
//! collections-2). The content section decides the visibility of items. This section knows the owner of a
//! collection and its contents.
//!
//! Functions return `None` if there is no such collection, or if it belongs to a different user. The contract has
//! one answer for both (contract collections-8).

mod order;
pub mod view;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use api::collections::{CollectionBody, CollectionChange};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{COLLECTION_ITEMS_MAX, COLLECTIONS_PER_USER_MAX};
use crate::storage::database::{
    Collection, CollectionHead, Db, DbResult, NewCollection, ReadTx, WriteTx,
};
use model::ItemKey;
use model::account::Permission;
use order::reorder;

/// Minimum interval between two writes of a collection's last access, so that a page in constant use
/// does not cause constant writes.
const COLLECTION_ACCESSED: SignedDuration = SignedDuration::from_secs(60);

/// The collections section; cheap to clone.
#[derive(Clone)]
pub struct Collections {
    db: Db,
}

impl Collections {
    /// Creates the section over the database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Lists the caller's collections with their items, oldest first.
    pub async fn list(&self, caller: &Principal) -> Result<Vec<Collection>> {
        caller.require(Permission::Collections)?;
        let owner = caller.user().id;
        // The call reads many rows, so it runs on a search thread and does not delay reads of single rows.
        Ok(self.db.search(move |tx| tx.list_collections(owner)).await?)
    }

    /// Lists the caller's collections without reading their items.
    pub async fn list_heads(&self, caller: &Principal) -> Result<Vec<CollectionHead>> {
        caller.require(Permission::Collections)?;
        let owner = caller.user().id;
        Ok(self.db.read(move |tx| tx.list_collection_heads(owner)).await?)
    }

    /// Creates an empty collection.
    ///
    /// Fails with [`ErrorKind::Conflict`] if the caller already has [`COLLECTIONS_PER_USER_MAX`] collections.
    pub async fn create(
        &self,
        caller: &Principal,
        body: CollectionBody,
        now: Timestamp,
    ) -> Result<Collection> {
        caller.require(Permission::Collections)?;
        let new = NewCollection {
            id: Uuid::new_v4(),
            owner: caller.user().id,
            name: body.name,
            public: body.public,
        };
        let created = self.db.write(move |tx| {
            // Counted in the transaction, so that concurrent calls cannot exceed the limit together.
            if tx.count_collections(new.owner)? >= COLLECTIONS_PER_USER_MAX {
                return Ok(None);
            }
            tx.insert_collection(&new, now)?;
            reload(tx, new.id)
        });
        created.await?.ok_or_else(|| {
            let message = format!("A user has {COLLECTIONS_PER_USER_MAX} collections at most");
            Error::new(ErrorKind::Conflict, message)
        })
    }

    /// Loads the collection `id` for `reader`: its owner, or any user if it is public. Records the access.
    pub async fn load(
        &self,
        reader: &Principal,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Option<Collection>> {
        let Some(mut found) = self.peek(reader, id).await? else { return Ok(None) };
        let head = &mut found.head;
        let since = now.duration_since(head.accessed);
        // A page that reads a collection all the time must not write all the time.
        if since >= COLLECTION_ACCESSED {
            let number = head.number;
            // A read succeeds even if the database accepts no writes.
            match self.db.write(move |tx| tx.mark_collection_accessed(number, now)).await {
                // The stored time has a resolution of milliseconds.
                Ok(()) => {
                    head.accessed =
                        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
                }
                Err(cause) => tracing::error!("collection access cannot be stored: {cause}"),
            }
        }
        Ok(Some(found))
    }

    /// Loads the collection like [`Collections::load`], without recording the access.
    pub async fn peek(&self, reader: &Principal, id: Uuid) -> Result<Option<Collection>> {
        reader.require(Permission::Collections)?;
        let reader = reader.user().id;
        let found = self.db.search(move |tx| {
            let head = tx.find_collection_head(id)?;
            // The private collection of a different user looks like a missing one (contract collections-8).
            let head = head.filter(|head| head.public || head.owner == reader);
            head.map(|head| tx.load_collection(head)).transpose()
        });
        Ok(found.await?)
    }

    /// Applies `change` to the caller's collection `id`. Without an effective change, the modification time is
    /// unchanged.
    ///
    /// A page reorders items by `content` (contract collections-6). Items outside the collection are skipped, so
    /// reordering never adds or removes an item, whatever concurrent changes there are.
    pub async fn update(
        &self,
        caller: &Principal,
        id: Uuid,
        change: CollectionChange,
        now: Timestamp,
    ) -> Result<Option<Collection>> {
        let updated = self.change(caller, id, move |tx, head| {
            let name = change.name.as_ref().unwrap_or(&head.name);
            let public = change.public.unwrap_or(head.public);
            let mut changed = *name != head.name || public != head.public;
            if changed {
                tx.update_collection(head.number, name, public)?;
            }
            if let Some(uris) = &change.content {
                let content = tx.collection_content(head.number)?;
                let ordered = reorder(&content, &item_keys(uris.iter()));
                if ordered != content {
                    tx.order_collection(head.number, &ordered)?;
                    changed = true;
                }
            }
            if changed {
                tx.mark_collection_modified(head.number, now)?;
            }
            reload(tx, head.id)
        });
        Ok(updated.await?.flatten())
    }

    /// Deletes the caller's collection `id`.
    pub async fn delete(&self, caller: &Principal, id: Uuid) -> Result<Option<()>> {
        self.change(caller, id, |tx, head| tx.delete_collection(head.number)).await
    }

    /// Appends `keys`, which the caller may see, to its collection `id`.
    ///
    /// Items that do not exist are skipped. An item that is already in the collection retains its position
    /// (contract collections-5).
    ///
    /// Fails with [`ErrorKind::Conflict`] if the collection would exceed [`COLLECTION_ITEMS_MAX`] items. No item
    /// is added then.
    pub async fn add(
        &self,
        caller: &Principal,
        id: Uuid,
        keys: Vec<ItemKey>,
        now: Timestamp,
    ) -> Result<Option<()>> {
        let added = self.change(caller, id, move |tx, head| {
            let existing = tx.collection_content(head.number)?;
            let mut seen: HashSet<&ItemKey> = existing.iter().collect();
            let mut additions = Vec::new();
            for key in &keys {
                // An item that the caller saw may have been withdrawn in the meantime.
                if seen.insert(key) && tx.is_collectable(key)? {
                    additions.push(key);
                }
            }
            let count = tx.count_collection_items(head.number)?;
            // A call that adds nothing succeeds even in a full collection, so that a repeated call is idempotent.
            if count.saturating_add(additions.len()) > COLLECTION_ITEMS_MAX
                && !additions.is_empty()
            {
                return Ok(Err(full()));
            }
            for key in &additions {
                tx.add_to_collection(head.number, key)?;
            }
            if !additions.is_empty() {
                tx.mark_collection_modified(head.number, now)?;
            }
            Ok(Ok(()))
        });
        added.await?.transpose()
    }

    /// Removes `keys` from the caller's collection `id`. Keys that are not in it are skipped.
    pub async fn remove(
        &self,
        caller: &Principal,
        id: Uuid,
        keys: Vec<ItemKey>,
        now: Timestamp,
    ) -> Result<Option<()>> {
        let removed = self.change(caller, id, move |tx, head| {
            let mut changed = false;
            for key in &keys {
                changed |= tx.remove_from_collection(head.number, key)?;
            }
            if changed {
                tx.mark_collection_modified(head.number, now)?;
            }
            Ok(())
        });
        removed.await
    }

    /// Runs `change` on the collection `id` in one transaction, if the collection belongs to the caller.
    async fn change<T, F>(&self, caller: &Principal, id: Uuid, change: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>, CollectionHead) -> DbResult<T> + Send + 'static,
    {
        caller.require(Permission::Collections)?;
        let owner = caller.user().id;
        let changed = self.db.write(move |tx| {
            let head = tx.find_collection_head(id)?;
            head.filter(|head| head.owner == owner).map(|head| change(tx, head)).transpose()
        });
        Ok(changed.await?)
    }
}

/// Returns the items that `uris` name, in order; other URIs are skipped.
///
/// Like a query, it also understands addresses that people copy: of a rendition, of a document, of the item's page.
pub fn item_keys<'a>(uris: impl Iterator<Item = &'a String>) -> Vec<ItemKey> {
    uris.filter_map(|uri| query::find_item(uri)).collect()
}

/// Loads a collection after a change.
fn reload(tx: &ReadTx<'_>, id: Uuid) -> DbResult<Option<Collection>> {
    let head = tx.find_collection_head(id)?;
    head.map(|head| tx.load_collection(head)).transpose()
}

fn full() -> Error {
    let message = format!("A collection has {COLLECTION_ITEMS_MAX} items at most");
    Error::new(ErrorKind::Conflict, message)
}
