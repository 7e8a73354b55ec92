//! The index of words and facts: one row in each for every item that search may find, written in
//! the transaction that writes the item.

use jiff::{Timestamp, tz::TimeZone};
use rusqlite::{OptionalExtension, params};

use super::facts::Facts;
use super::{Connection, ReadTx, WriteTx, damaged, time};
use crate::db::{DbError, NewItem};
use crate::item::Document;
use crate::limits::{FACET_VALUES_REMEMBERED_MAX, REINDEX_ROWS};
use crate::query::{Facet, Indexed};

/// The version of what is in the index; another one is made again from the documents.
const VERSION: i64 = 1;

/// A facet's number in the database.
pub(super) fn code(facet: Facet) -> i64 {
    i64::try_from(facet.index()).unwrap_or(i64::MAX)
}

impl Connection {
    /// Says of a database without items that its index is whole; one with items of an earlier
    /// version has it made.
    pub(super) fn start_index(&self) -> Result<(), DbError> {
        let sql = "UPDATE versions SET version = ?1 WHERE what = 'index' AND version = 0
                   AND NOT EXISTS (SELECT 1 FROM items)";
        self.raw.execute(sql, [VERSION])?;
        Ok(())
    }
}

impl ReadTx<'_> {
    /// Whether the index was made by this version of the product, and made to its end.
    pub fn index_is_current(&self) -> Result<bool, DbError> {
        let sql = "SELECT version FROM versions WHERE what = 'index'";
        let mut statement = self.connection.prepare_cached(sql)?;
        let version: i64 = statement.query_row([], |row| row.get(0))?;
        Ok(version == VERSION)
    }

    /// How many items there are.
    pub fn count_items(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM items";
        let count: i64 = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }
}

impl WriteTx<'_> {
    /// Takes the version `doc` out of the index.
    pub(super) fn remove_from_index(&self, doc: i64) -> Result<(), DbError> {
        let deleted =
            self.transaction.prepare_cached("DELETE FROM facts WHERE doc = ?1")?.execute([doc])?;
        if deleted > 0 {
            self.transaction
                .prepare_cached("DELETE FROM words WHERE rowid = ?1")?
                .execute([doc])?;
        }
        Ok(())
    }

    /// Takes the version `doc` of `item` into the index, if search may find it.
    pub(super) fn add_to_index(&self, doc: i64, item: &NewItem) -> Result<(), DbError> {
        if !item.pub_status.is_served() {
            return Ok(());
        }
        let indexed = &item.indexed;
        let mut facets: [Vec<u32>; Facet::ALL.len()] = Default::default();
        for (facet, numbers) in Facet::ALL.into_iter().zip(&mut facets) {
            for value in &indexed.facets[facet.index()] {
                numbers.push(self.facet_value(facet, value)?);
            }
        }
        let facts = Facts {
            media_type: item.key.media_type,
            status: item.pub_status,
            order_ms: item.order_time.as_millisecond(),
            embargoed_ms: item.embargoed.map(Timestamp::as_millisecond),
            length: u16::try_from(indexed.length).unwrap_or(u16::MAX),
            facets,
            dates: indexed.dates.iter().map(|(field, at)| (*field, at.as_millisecond())).collect(),
        };
        let Some(row) = facts.pack() else { return Ok(()) };
        self.transaction
            .prepare_cached("INSERT INTO facts (doc, facts) VALUES (?1, ?2)")?
            .execute(params![doc, row])?;
        self.transaction
            .prepare_cached(
                "INSERT INTO words (rowid, headline, description, body, rest, tags)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                doc,
                indexed.headline,
                indexed.description,
                indexed.body,
                indexed.rest,
                indexed.tags,
            ])?;
        Ok(())
    }

    /// The number of a facet's value, which gets one when it is new.
    fn facet_value(&self, facet: Facet, value: &str) -> Result<u32, DbError> {
        let mut known = self.facet_values.borrow_mut();
        let known = &mut known[facet.index()];
        if let Some(number) = known.get(value) {
            return Ok(*number);
        }
        let find = "SELECT value_id FROM facet_values WHERE facet = ?1 AND value = ?2";
        let found: Option<u32> = self
            .transaction
            .prepare_cached(find)?
            .query_row(params![code(facet), value], |row| row.get(0))
            .optional()?;
        let number = match found {
            Some(number) => number,
            None => self
                .transaction
                .prepare_cached(
                    "INSERT INTO facet_values (facet, value_id, value)
                     VALUES (?1, (SELECT coalesce(max(value_id) + 1, 0) FROM facet_values
                                  WHERE facet = ?1), ?2)
                     RETURNING value_id",
                )?
                .query_row(params![code(facet), value], |row| row.get(0))?,
        };
        if known.len() >= FACET_VALUES_REMEMBERED_MAX {
            known.clear();
        }
        known.insert(value.to_owned(), number);
        Ok(number)
    }

    /// Empties the index, to be made again with [`WriteTx::reindex_items`]; gives the number of this
    /// run, which is below zero and another one each time.
    ///
    /// The values of facets keep their numbers: a server that runs knows them.
    pub(in crate::db) fn clear_index(&self) -> Result<i64, DbError> {
        self.transaction.execute_batch(
            "INSERT INTO words (words) VALUES ('delete-all');
             DELETE FROM facts;",
        )?;
        let sql = "UPDATE versions SET version = min(version, 0) - 1 WHERE what = 'index'
                   RETURNING version";
        Ok(self.transaction.query_row(sql, [], |row| row.get(0))?)
    }

    /// Fails when another run has begun, which makes the whole index.
    fn check_run(&self, run: i64) -> Result<(), DbError> {
        let sql = "SELECT version FROM versions WHERE what = 'index'";
        let version: i64 = self.transaction.query_row(sql, [], |row| row.get(0))?;
        if version == run {
            return Ok(());
        }
        Err(DbError::Schema("another process makes the search index anew".to_owned()))
    }

    /// Takes the next items behind the number `after` up to `last` into the index; gives the
    /// number of the last one with how many they were, or nothing when there is none.
    pub(in crate::db) fn reindex_items(
        &self,
        run: i64,
        (after, last): (i64, i64),
        zone: &TimeZone,
    ) -> Result<Option<(i64, u64)>, DbError> {
        self.check_run(run)?;
        let mut statement = self.transaction.prepare_cached(
            "SELECT item_id, media_type, id, document, order_ms, embargoed_ms, stored_ms FROM items
             WHERE item_id > ?1 AND item_id <= ?2 ORDER BY item_id LIMIT ?3",
        )?;
        let mut rows = statement.query(params![
            after,
            last,
            i64::try_from(REINDEX_ROWS).unwrap_or(i64::MAX)
        ])?;
        let (mut reached, mut items) = (None, 0);
        while let Some(row) = rows.next()? {
            let doc: i64 = row.get(0)?;
            let (media_type, id): (String, String) = (row.get(1)?, row.get(2)?);
            let what = format!("item {media_type}/{id}");
            let key = format!("{media_type}/{id}").parse().map_err(|why| damaged(&what, &why))?;
            let text: String = row.get(3)?;
            let document = match Document::from_stored(&text) {
                Ok(document) => document,
                // One damaged row must not keep the others out.
                Err(cause) => {
                    tracing::error!("{what} is not found by search: {cause}");
                    reached = Some(doc);
                    continue;
                }
            };
            let embargoed: Option<i64> = row.get(5)?;
            let item = NewItem {
                indexed: Indexed::of(&key, &document, zone),
                key,
                document: text,
                assets: None,
                pub_status: document.pub_status(),
                order_time: time(&what, row.get(4)?)?,
                embargoed: embargoed.map(|ms| time(&what, ms)).transpose()?,
                stored: time(&what, row.get(6)?)?,
                fresh: false,
            };
            // Two processes may be at it.
            self.remove_from_index(doc)?;
            self.add_to_index(doc, &item)?;
            reached = Some(doc);
            items += 1;
        }
        Ok(reached.map(|doc| (doc, items)))
    }

    /// The number of the newest version of any item.
    pub(in crate::db) fn last_doc(&self) -> Result<i64, DbError> {
        let sql = "SELECT coalesce(max(item_id), 0) FROM items";
        Ok(self.transaction.query_row(sql, [], |row| row.get(0))?)
    }

    /// Says that the index is whole again; processes that follow the log read it anew.
    pub(in crate::db) fn end_reindex(&self, run: i64, now: Timestamp) -> Result<(), DbError> {
        self.check_run(run)?;
        self.transaction
            .execute("UPDATE versions SET version = ?1 WHERE what = 'index'", [VERSION])?;
        self.transaction.execute(
            "INSERT INTO item_log (media_type, id, change, at_ms, fresh)
             VALUES ('', '', 'rebuilt', ?1, 0)",
            [now.as_millisecond()],
        )?;
        Ok(())
    }
}
