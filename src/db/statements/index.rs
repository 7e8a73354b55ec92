//! The index of words and facts: one row in each for every item that search may find, written in
//! the transaction that writes the item.

use std::ops::ControlFlow;

use jiff::{Timestamp, tz::TimeZone};

use super::facts::Facts;
use super::{ReadTx, WriteTx, damaged, int, time};
use crate::db::engine::{Engine, Row, params};
use crate::db::{DbError, NewItem};
use crate::item::Document;
use crate::limits::{FACET_VALUES_REMEMBERED_MAX, REINDEX_ROWS};
use crate::query::{Facet, Indexed};

/// The version of what is in the index; another one is made again from the documents.
const VERSION: i64 = 1;

/// A facet's number in the database.
pub(super) fn code(facet: Facet) -> i64 {
    int(facet.index())
}

/// Says of a database without items that its index is whole; one with items of an earlier version has
/// it made.
pub(in crate::db) fn start_index(engine: Engine<'_>) -> Result<(), DbError> {
    let sql = "UPDATE versions SET version = ?1 WHERE what = 'index' AND version = 0
         AND NOT EXISTS (SELECT 1 FROM items)";
    engine.execute(sql, params![VERSION]).map(drop)
}

impl ReadTx<'_> {
    /// Whether the index was made by this version of the product, and made to its end.
    pub fn index_is_current(&self) -> Result<bool, DbError> {
        let sql = "SELECT version FROM versions WHERE what = 'index'";
        let version: i64 = self.engine.load_value(sql, params![])?;
        Ok(version == VERSION)
    }

    /// How many items there are.
    pub fn count_items(&self) -> Result<u64, DbError> {
        let sql = "SELECT count(*) FROM items";
        let count: i64 = self.engine.load_value(sql, params![])?;
        Ok(u64::try_from(count).unwrap_or_default())
    }
}

impl WriteTx<'_> {
    /// Takes the version `doc` out of the index.
    pub(super) fn remove_from_index(&self, doc: i64) -> Result<(), DbError> {
        let deleted = self.engine.execute("DELETE FROM facts WHERE doc = ?1", params![doc])?;
        if deleted > 0 {
            self.engine.delete_words(doc)?;
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
        self.engine
            .execute("INSERT INTO facts (doc, facts) VALUES (?1, ?2)", params![doc, row])?;
        self.engine.insert_words(doc, indexed)
    }

    /// The number of a facet's value, which gets one when it is new.
    fn facet_value(&self, facet: Facet, value: &str) -> Result<u32, DbError> {
        let mut known = self.facet_values.borrow_mut();
        let known = &mut known[facet.index()];
        if let Some(number) = known.get(value) {
            return Ok(*number);
        }
        let find = "SELECT value_id FROM facet_values WHERE facet = ?1 AND value = ?2";
        let found: Option<u32> = self.engine.find_value(find, params![code(facet), value])?;
        let number = match found {
            Some(number) => number,
            None => self.engine.load_value(
                "INSERT INTO facet_values (facet, value_id, value)
                 VALUES (?1, (SELECT coalesce(max(value_id) + 1, 0) FROM facet_values
                              WHERE facet = ?1), ?2)
                 RETURNING value_id",
                params![code(facet), value],
            )?,
        };
        if known.len() >= FACET_VALUES_REMEMBERED_MAX {
            known.clear();
        }
        known.insert(value.to_owned(), number);
        Ok(number)
    }

    /// Begins to make the index anew: from now on it is whole for nobody, until [`WriteTx::end_reindex`]. Gives
    /// the number of this run, which is below zero and another one each time, and up to which version there are
    /// rows that [`WriteTx::clear_portion`] has to remove before [`WriteTx::reindex_items`] makes them again.
    ///
    /// The values of facets keep their numbers: a server that runs knows them.
    pub(in crate::db) fn begin_reindex(&self) -> Result<(i64, i64), DbError> {
        let last = self.engine.begin_clearing()?;
        let sql = "UPDATE versions SET version = CASE WHEN version < 0 THEN version ELSE 0 END - 1
             WHERE what = 'index' RETURNING version";
        Ok((self.engine.load_value(sql, params![])?, last))
    }

    /// Removes the next `rows` or fewer of the index behind the version `after` up to `last`; gives up to which
    /// version.
    pub(in crate::db) fn clear_portion(
        &self,
        run: i64,
        (after, last): (i64, i64),
        rows: i64,
    ) -> Result<i64, DbError> {
        self.check_run(run)?;
        self.engine.clear_portion((after, last), rows)
    }

    /// Fails when another run has begun, which makes the whole index.
    fn check_run(&self, run: i64) -> Result<(), DbError> {
        let sql = "SELECT version FROM versions WHERE what = 'index'";
        let version: i64 = self.engine.load_value(sql, params![])?;
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
        let sql = "SELECT item_id, media_type, id, document, order_ms, embargoed_ms, stored_ms
             FROM items WHERE item_id > ?1 AND item_id <= ?2 ORDER BY item_id LIMIT ?3";
        let (mut reached, mut items) = (None, 0);
        self.engine.each(sql, params![after, last, int(REINDEX_ROWS)], |row| {
            let doc: i64 = row.get(0)?;
            reached = Some(doc);
            if let Some(item) = read_item(row, zone)? {
                // Two processes may be at it.
                self.remove_from_index(doc)?;
                self.add_to_index(doc, &item)?;
                items += 1;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(reached.map(|doc| (doc, items)))
    }

    /// The number of the newest version of any item.
    pub(in crate::db) fn last_doc(&self) -> Result<i64, DbError> {
        let sql = "SELECT coalesce(max(item_id), 0) FROM items";
        self.engine.load_value(sql, params![])
    }

    /// Says that the index is whole again; processes that follow the log read it anew.
    pub(in crate::db) fn end_reindex(&self, run: i64, now: Timestamp) -> Result<(), DbError> {
        self.check_run(run)?;
        let sql = "UPDATE versions SET version = ?1 WHERE what = 'index'";
        self.engine.execute(sql, params![VERSION])?;
        self.engine.execute(
            "INSERT INTO item_log (media_type, id, change, at_ms, fresh)
             VALUES ('', '', 'rebuilt', ?1, FALSE)",
            params![now.as_millisecond()],
        )?;
        Ok(())
    }
}

/// Reads the columns `item_id, media_type, id, document, order_ms, embargoed_ms, stored_ms`; nothing
/// of a document that is damaged: one such row must not keep the others out.
pub(super) fn read_item(row: &Row<'_>, zone: &TimeZone) -> Result<Option<NewItem>, DbError> {
    let key = format!("{}/{}", row.text(1)?, row.text(2)?);
    let what = format!("item {key}");
    let key = key.parse().map_err(|why| damaged(&what, &why))?;
    let text: String = row.get(3)?;
    let document = match Document::from_stored(&text) {
        Ok(document) => document,
        Err(cause) => {
            tracing::error!("{what} is not found by search: {cause}");
            return Ok(None);
        }
    };
    let embargoed: Option<i64> = row.get(5)?;
    Ok(Some(NewItem {
        indexed: Indexed::of(&key, &document, zone),
        key,
        document: text,
        assets: None,
        pub_status: document.pub_status(),
        order_time: time(&what, row.get(4)?)?,
        embargoed: embargoed.map(|ms| time(&what, ms)).transpose()?,
        stored: time(&what, row.get(6)?)?,
        fresh: false,
    }))
}
