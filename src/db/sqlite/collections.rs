//! Collections: named lists of items that users keep, each in an order of its own.
//!
//! What happens to the items by themselves is in `collected.rs`.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::{ReadTx, WriteTx, damaged, time};
use crate::account::UserId;
use crate::db::DbError;
use crate::limits::COLLECTION_REMOVED_MAX;
use crate::types::ItemKey;

/// A collection that is written.
#[derive(Clone, Debug)]
pub struct NewCollection {
    /// Its name for clients.
    pub id: Uuid,
    /// Whose it is.
    pub owner: UserId,
    /// What the owner calls it.
    pub name: String,
    /// Whether others may read it.
    pub public: bool,
}

/// A collection without its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionHead {
    /// Its number in this database.
    pub number: i64,
    /// Its name for clients.
    pub id: Uuid,
    /// Whose it is.
    pub owner: UserId,
    /// The user name of the owner.
    pub owner_name: String,
    /// What the owner calls it.
    pub name: String,
    /// Whether others may read it.
    pub public: bool,
    /// When it was made.
    pub created: Timestamp,
    /// When it was read last, as far as that was written down.
    pub accessed: Timestamp,
    /// When it was changed last, if it was.
    pub modified: Option<Timestamp>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// What it is.
    pub head: CollectionHead,
    /// Its items in their order.
    pub content: Vec<ItemKey>,
    /// What it lost, the oldest first.
    pub removed: Vec<LostItem>,
}

/// An item that was withdrawn or has expired while it was in a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostItem {
    /// Its identity.
    pub key: ItemKey,
    /// Its last headline.
    pub headline: Option<String>,
    /// Its last `description_text`.
    pub description: Option<String>,
    /// When it went.
    pub at: Timestamp,
}

/// The columns that [`read_head`] reads, with the table of users.
const COLUMNS: &str = "number, collection_id, collections.user_id, user_name, name, public, \
     collections.created_ms, accessed_ms, modified_ms";

fn read_head(row: &Row<'_>) -> Result<CollectionHead, DbError> {
    let number: i64 = row.get(0)?;
    let what = format!("collection {number}");
    let id: String = row.get(1)?;
    let modified: Option<i64> = row.get(8)?;
    Ok(CollectionHead {
        number,
        id: id.parse().map_err(|why| damaged(&what, &why))?,
        owner: UserId(row.get(2)?),
        owner_name: row.get(3)?,
        name: row.get(4)?,
        public: row.get(5)?,
        created: time(&what, row.get(6)?)?,
        accessed: time(&what, row.get(7)?)?,
        modified: modified.map(|ms| time(&what, ms)).transpose()?,
    })
}

/// The identity of an item in the columns `first` and the one behind it.
pub(super) fn read_key(row: &Row<'_>, first: usize) -> Result<ItemKey, DbError> {
    let (media_type, id): (String, String) = (row.get(first)?, row.get(first + 1)?);
    let text = format!("{media_type}/{id}");
    text.parse().map_err(|why| damaged(format!("item {text} of a collection"), &why))
}

impl ReadTx<'_> {
    /// The collections of `user` without their items, the oldest first.
    pub fn list_collection_heads(&self, user: UserId) -> Result<Vec<CollectionHead>, DbError> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM collections JOIN users USING (user_id)
             WHERE collections.user_id = ?1 ORDER BY number"
        ))?;
        let mut rows = statement.query([user.0])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read_head(row)?);
        }
        Ok(found)
    }

    /// The collections of `user` at `now`, the oldest first.
    pub fn list_collections(
        &self,
        user: UserId,
        now: Timestamp,
    ) -> Result<Vec<Collection>, DbError> {
        let heads = self.list_collection_heads(user)?;
        heads.into_iter().map(|head| self.filled(head, now)).collect()
    }

    /// The collection `id` without its items.
    pub fn find_collection_head(&self, id: Uuid) -> Result<Option<CollectionHead>, DbError> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM collections JOIN users USING (user_id)
             WHERE collection_id = ?1"
        ))?;
        let mut rows = statement.query([id.to_string()])?;
        rows.next()?.map(read_head).transpose()
    }

    /// The collection with its items at `now`.
    pub fn filled(&self, head: CollectionHead, now: Timestamp) -> Result<Collection, DbError> {
        let content = self.collection_content(head.number, now)?;
        let removed = self.lost_items(head.number)?;
        Ok(Collection { head, content, removed })
    }

    /// The items of the collection of that number in their order, without those that have expired
    /// at `now`.
    pub fn collection_content(
        &self,
        number: i64,
        now: Timestamp,
    ) -> Result<Vec<ItemKey>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT media_type, id FROM collection_items
             WHERE number = ?1 AND (expires_ms IS NULL OR expires_ms > ?2) ORDER BY position",
        )?;
        let mut rows = statement.query(params![number, now.as_millisecond()])?;
        let mut content = Vec::new();
        while let Some(row) = rows.next()? {
            content.push(read_key(row, 0)?);
        }
        Ok(content)
    }

    fn lost_items(&self, number: i64) -> Result<Vec<LostItem>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT media_type, id, headline, description, removed_ms FROM removed_items
             WHERE number = ?1 ORDER BY place",
        )?;
        let mut rows = statement.query([number])?;
        let mut removed = Vec::new();
        while let Some(row) = rows.next()? {
            let at = time("an item that a collection lost", row.get(4)?)?;
            let key = read_key(row, 0)?;
            removed.push(LostItem { key, headline: row.get(2)?, description: row.get(3)?, at });
        }
        Ok(removed)
    }

    /// How many collections `user` has.
    pub fn count_collections(&self, user: UserId) -> Result<usize, DbError> {
        let sql = "SELECT count(*) FROM collections WHERE user_id = ?1";
        self.count(sql, user.0)
    }

    /// How many items the collection of that number has, expired ones too.
    pub fn count_collection_items(&self, number: i64) -> Result<usize, DbError> {
        let sql = "SELECT count(*) FROM collection_items WHERE number = ?1";
        self.count(sql, number)
    }

    fn count(&self, sql: &str, of: i64) -> Result<usize, DbError> {
        let count: i64 = self.connection.prepare_cached(sql)?.query_row([of], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }
}

impl WriteTx<'_> {
    /// Writes a new collection without items.
    pub fn insert_collection(&self, new: &NewCollection, now: Timestamp) -> Result<(), DbError> {
        let mut statement = self.transaction.prepare_cached(
            "INSERT INTO collections
                 (collection_id, user_id, name, public, created_ms, accessed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        )?;
        let now_ms = now.as_millisecond();
        statement.execute(params![
            new.id.to_string(),
            new.owner.0,
            new.name,
            new.public,
            now_ms
        ])?;
        Ok(())
    }

    /// Writes what the collection is called and whether others may read it.
    pub fn update_collection(&self, number: i64, name: &str, public: bool) -> Result<(), DbError> {
        let sql = "UPDATE collections SET name = ?2, public = ?3 WHERE number = ?1";
        self.transaction.prepare_cached(sql)?.execute(params![number, name, public])?;
        Ok(())
    }

    /// Notes that the collection was changed at `now`.
    pub fn mark_collection_modified(&self, number: i64, now: Timestamp) -> Result<(), DbError> {
        let sql = "UPDATE collections SET modified_ms = ?2 WHERE number = ?1";
        self.transaction.prepare_cached(sql)?.execute(params![number, now.as_millisecond()])?;
        Ok(())
    }

    /// Notes that the collection was read at `now`.
    pub fn mark_collection_accessed(&self, number: i64, now: Timestamp) -> Result<(), DbError> {
        let sql = "UPDATE collections SET accessed_ms = max(accessed_ms, ?2) WHERE number = ?1";
        self.transaction.prepare_cached(sql)?.execute(params![number, now.as_millisecond()])?;
        Ok(())
    }

    /// Removes the collection with what it holds.
    pub fn delete_collection(&self, number: i64) -> Result<(), DbError> {
        let sql = "DELETE FROM collections WHERE number = ?1";
        self.transaction.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }

    /// Puts an item that expires at `expires` at the end of the collection, and takes it off the
    /// list of those that it lost; gives whether it is new there.
    pub fn add_to_collection(
        &self,
        number: i64,
        key: &ItemKey,
        expires: Option<Timestamp>,
    ) -> Result<bool, DbError> {
        let (media_type, id) = (key.media_type.as_str(), key.id.as_str());
        let mut statement = self.transaction.prepare_cached(
            "INSERT INTO collection_items (number, media_type, id, position, expires_ms)
             SELECT ?1, ?2, ?3, coalesce(max(position), 0) + 1, ?4 FROM collection_items
             WHERE number = ?1
             ON CONFLICT DO NOTHING",
        )?;
        let expires = expires.map(Timestamp::as_millisecond);
        let added = statement.execute(params![number, media_type, id, expires])? > 0;
        if added {
            let sql =
                "DELETE FROM removed_items WHERE number = ?1 AND media_type = ?2 AND id = ?3";
            self.transaction.prepare_cached(sql)?.execute(params![number, media_type, id])?;
        }
        Ok(added)
    }

    /// Takes an item out of the collection; gives whether it was there.
    pub fn remove_from_collection(&self, number: i64, key: &ItemKey) -> Result<bool, DbError> {
        let sql = "DELETE FROM collection_items WHERE number = ?1 AND media_type = ?2 AND id = ?3";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let key = params![number, key.media_type.as_str(), key.id.as_str()];
        Ok(statement.execute(key)? > 0)
    }

    /// Gives the items of the collection the places of `content`, which names each of them once,
    /// but for those that have expired: they go to the end.
    pub fn order_collection(&self, number: i64, content: &[ItemKey]) -> Result<(), DbError> {
        let sql = "UPDATE collection_items SET position = position + ?2 WHERE number = ?1";
        let count = i64::try_from(content.len()).unwrap_or(i64::MAX);
        self.transaction.prepare_cached(sql)?.execute(params![number, count])?;
        let mut statement = self.transaction.prepare_cached(
            "UPDATE collection_items SET position = ?4
             WHERE number = ?1 AND media_type = ?2 AND id = ?3",
        )?;
        for (position, key) in (1_i64..).zip(content) {
            let (media_type, id) = (key.media_type.as_str(), key.id.as_str());
            statement.execute(params![number, media_type, id, position])?;
        }
        Ok(())
    }

    /// Writes down that the collection lost an item; of those that it lost long ago it forgets the
    /// oldest beyond [`COLLECTION_REMOVED_MAX`].
    pub(super) fn insert_lost_item(&self, number: i64, lost: &LostItem) -> Result<(), DbError> {
        let mut statement = self.transaction.prepare_cached(
            "INSERT OR REPLACE INTO removed_items
                 (number, media_type, id, headline, description, removed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        statement.execute(params![
            number,
            lost.key.media_type.as_str(),
            lost.key.id.as_str(),
            lost.headline,
            lost.description,
            lost.at.as_millisecond(),
        ])?;
        let kept = i64::try_from(COLLECTION_REMOVED_MAX).unwrap_or(i64::MAX);
        let mut statement = self.transaction.prepare_cached(
            "DELETE FROM removed_items WHERE number = ?1 AND place <=
                 (SELECT place FROM removed_items WHERE number = ?1
                  ORDER BY place DESC LIMIT 1 OFFSET ?2)",
        )?;
        statement.execute(params![number, kept])?;
        Ok(())
    }

    /// The collections that hold the item.
    pub(super) fn collections_with(&self, key: &ItemKey) -> Result<Vec<i64>, DbError> {
        let mut statement = self.transaction.prepare_cached(
            "SELECT number FROM collection_items WHERE media_type = ?1 AND id = ?2",
        )?;
        let key = params![key.media_type.as_str(), key.id.as_str()];
        let rows = statement.query_map(key, |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// An item of a collection that has expired at `now`.
    pub(super) fn next_expired(&self, now: Timestamp) -> Result<Option<ItemKey>, DbError> {
        let mut statement = self.transaction.prepare_cached(
            "SELECT media_type, id FROM collection_items
             WHERE expires_ms <= ?1 ORDER BY expires_ms LIMIT 1",
        )?;
        let found = statement.query_row([now.as_millisecond()], |row| Ok(read_key(row, 0)));
        found.optional()?.transpose()
    }
}
