//! Stores collections: named, ordered lists of items that users create.
//!
//! `collection_upkeep.rs` removes items that are withdrawn. Expired items stay.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, optional_time, parse, read_key, time};
use crate::runtime::limits::COLLECTION_REMOVED_MAX;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::ItemKey;
use model::account::UserId;

/// A collection to be stored.
#[derive(Clone, Debug)]
pub struct NewCollection {
    /// Its id in the API.
    pub id: Uuid,
    pub owner: UserId,
    /// The name given by the owner.
    pub name: String,
    /// True if other users may read it.
    pub public: bool,
}

/// A collection without its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionHead {
    /// Its number in this database.
    pub number: i64,
    /// Its id in the API.
    pub id: Uuid,
    pub owner: UserId,
    /// The user name of the owner.
    pub owner_name: String,
    /// The name given by the owner.
    pub name: String,
    /// True if other users may read it.
    pub public: bool,
    pub created: Timestamp,
    /// The last recorded access.
    pub accessed: Timestamp,
    /// The time of the last change; `None` if it was never changed.
    pub modified: Option<Timestamp>,
}

/// A collection with its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub head: CollectionHead,
    /// Its items in their order.
    pub content: Vec<ItemKey>,
    /// Items that were withdrawn, oldest loss first.
    pub removed: Vec<LostItem>,
}

/// An item that was withdrawn while it was in a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostItem {
    pub key: ItemKey,
    pub headline: Option<String>,
    pub description: Option<String>,
    /// Time of its removal from the collection.
    pub at: Timestamp,
}

/// The columns that [`read_head`] reads, including columns of the table of users.
const COLUMNS: &str = "number, collection_id, collections.user_id, user_name, name, public, \
     collections.created_ms, accessed_ms, modified_ms";

fn read_head(row: &dyn ResultRow) -> DbResult<CollectionHead> {
    let number: i64 = row.get("number")?;
    let what = format!("collection {number}");
    Ok(CollectionHead {
        number,
        id: parse(&what, row.text("collection_id")?)?,
        owner: row.get("user_id")?,
        owner_name: row.get("user_name")?,
        name: row.get("name")?,
        public: row.get("public")?,
        created: time(&what, row.get("created_ms")?)?,
        accessed: time(&what, row.get("accessed_ms")?)?,
        modified: optional_time(&what, row.get("modified_ms")?)?,
    })
}

impl ReadTx<'_> {
    /// Lists the collections of `user` without their items, the oldest first.
    pub fn list_collection_heads(&self, user: UserId) -> DbResult<Vec<CollectionHead>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM collections JOIN users USING (user_id)
                 WHERE collections.user_id = ?1 ORDER BY number"
        );
        self.tx.list(&sql, params![user], read_head)
    }

    /// Lists the collections of `user`, the oldest first.
    pub fn list_collections(&self, user: UserId) -> DbResult<Vec<Collection>> {
        let heads = self.list_collection_heads(user)?;
        heads.into_iter().map(|head| self.load_collection(head)).collect()
    }

    /// Finds the collection `id` without its items.
    pub fn find_collection_head(&self, id: Uuid) -> DbResult<Option<CollectionHead>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM collections JOIN users USING (user_id)
                 WHERE collection_id = ?1"
        );
        self.tx.find(&sql, params![id], read_head)
    }

    /// Loads the collection with its items.
    pub fn load_collection(&self, head: CollectionHead) -> DbResult<Collection> {
        let content = self.collection_content(head.number)?;
        let removed = self.lost_items(head.number)?;
        Ok(Collection { head, content, removed })
    }

    /// Lists the items of the collection with that number, in order.
    pub fn collection_content(&self, number: i64) -> DbResult<Vec<ItemKey>> {
        let sql =
            "SELECT media_type, id FROM collection_items WHERE number = ?1 ORDER BY position";
        self.tx.list(sql, params![number], read_key)
    }

    fn lost_items(&self, number: i64) -> DbResult<Vec<LostItem>> {
        let sql = "SELECT media_type, id, headline, description, removed_ms FROM removed_items
             WHERE number = ?1 ORDER BY position";
        self.tx.list(sql, params![number], |row| {
            Ok(LostItem {
                key: read_key(row)?,
                headline: row.get("headline")?,
                description: row.get("description")?,
                at: time("an item that a collection lost", row.get("removed_ms")?)?,
            })
        })
    }

    /// Counts the collections of `user`.
    pub fn count_collections(&self, user: UserId) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM collections WHERE user_id = ?1";
        self.tx.count(sql, params![user])
    }

    /// Counts the items of the collection with that number, including expired ones.
    pub fn count_collection_items(&self, number: i64) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM collection_items WHERE number = ?1";
        self.tx.count(sql, params![number])
    }
}

impl WriteTx<'_> {
    /// Stores a new collection without items.
    pub fn insert_collection(&self, new: &NewCollection, now: Timestamp) -> DbResult<()> {
        let sql = "INSERT INTO collections
                 (collection_id, user_id, name, public, created_ms, accessed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)";
        self.tx.run(sql, params![new.id, new.owner, new.name, new.public, now])
    }

    /// Updates the name of the collection and whether other users may read it.
    pub fn update_collection(&self, number: i64, name: &str, public: bool) -> DbResult<()> {
        let sql = "UPDATE collections SET name = ?2, public = ?3 WHERE number = ?1";
        self.tx.run(sql, params![number, name, public])
    }

    /// Records a change of the collection at `now`.
    pub fn mark_collection_modified(&self, number: i64, now: Timestamp) -> DbResult<()> {
        let sql = "UPDATE collections SET modified_ms = ?2 WHERE number = ?1";
        self.tx.run(sql, params![number, now])
    }

    /// Records an access to the collection at `now`.
    pub fn mark_collection_accessed(&self, number: i64, now: Timestamp) -> DbResult<()> {
        // Several nodes record accesses in any order. The latest one counts.
        let sql = "UPDATE collections SET accessed_ms = ?2 WHERE number = ?1 AND accessed_ms < ?2";
        self.tx.run(sql, params![number, now])
    }

    /// Removes the collection with its content.
    pub fn delete_collection(&self, number: i64) -> DbResult<()> {
        let sql = "DELETE FROM collections WHERE number = ?1";
        self.tx.run(sql, params![number])
    }

    /// Appends an item to the collection and removes it from the list of lost items. Returns whether it is
    /// new in the collection.
    pub fn add_to_collection(&self, number: i64, key: &ItemKey) -> DbResult<bool> {
        let ItemKey { media_type, id } = key;
        // An item that is in the collection keeps its position (contract collections-5).
        let sql = "INSERT INTO collection_items (number, media_type, id, position)
             SELECT ?1, ?2, ?3, coalesce(max(position), 0) + 1 FROM collection_items
             WHERE number = ?1
             ON CONFLICT DO NOTHING";
        let added = self.tx.changes(sql, params![number, media_type, id])?;
        if added {
            let sql =
                "DELETE FROM removed_items WHERE number = ?1 AND media_type = ?2 AND id = ?3";
            self.tx.run(sql, params![number, media_type, id])?;
        }
        Ok(added)
    }

    /// Removes an item from the collection. Returns whether it was in it.
    pub fn remove_from_collection(&self, number: i64, key: &ItemKey) -> DbResult<bool> {
        let sql = "DELETE FROM collection_items WHERE number = ?1 AND media_type = ?2 AND id = ?3";
        self.tx.changes(sql, params![number, key.media_type, key.id])
    }

    /// Orders the items of the collection like `content`, which names each item once.
    pub fn order_collection(&self, number: i64, content: &[ItemKey]) -> DbResult<()> {
        // Shifted first, so that items missing from `content` follow it in their former order.
        let sql = "UPDATE collection_items SET position = position + ?2 WHERE number = ?1";
        self.tx.run(sql, params![number, content.len()])?;
        let sql = "UPDATE collection_items SET position = ?4
             WHERE number = ?1 AND media_type = ?2 AND id = ?3";
        for (position, key) in (1_i64..).zip(content) {
            self.tx.run(sql, params![number, key.media_type, key.id, position])?;
        }
        Ok(())
    }

    /// Records that the collection lost an item. Removes the oldest records beyond
    /// [`COLLECTION_REMOVED_MAX`].
    pub(super) fn insert_lost_item(&self, number: i64, lost: &LostItem) -> DbResult<()> {
        let ItemKey { media_type, id } = &lost.key;
        // An item that was lost before moves to the end of the list.
        let sql = "DELETE FROM removed_items WHERE number = ?1 AND media_type = ?2 AND id = ?3";
        self.tx.run(sql, params![number, media_type, id])?;
        let sql = "INSERT INTO removed_items
                 (number, media_type, id, headline, description, removed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.tx
            .run(sql, params![number, media_type, id, lost.headline, lost.description, lost.at])?;
        let sql = "DELETE FROM removed_items WHERE number = ?1 AND position <=
                 (SELECT position FROM removed_items WHERE number = ?1
                  ORDER BY position DESC LIMIT 1 OFFSET ?2)";
        self.tx.run(sql, params![number, COLLECTION_REMOVED_MAX])
    }

    /// Lists the numbers of the collections that contain the item.
    pub(super) fn collections_with(&self, key: &ItemKey) -> DbResult<Vec<i64>> {
        let sql = "SELECT number FROM collection_items WHERE media_type = ?1 AND id = ?2";
        self.tx.list_values(sql, params![key.media_type, key.id])
    }
}
