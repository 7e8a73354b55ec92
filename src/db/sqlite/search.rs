//! What search asks of the database: what was written, which items hold some words, documents.

use std::ops::RangeInclusive;

use rusqlite::{OptionalExtension, params};

use super::facts::{Facts, FactsRows};
use super::items::Raw;
use super::{ReadTx, damaged};
use crate::db::{DbError, StoredItem};
use crate::query::{Facet, Place, Words};
use crate::types::ItemKey;

/// One row of the item log, as search follows it.
#[derive(Clone, Debug)]
pub struct IndexChange {
    /// The number of the row, and of the version of the item that it wrote.
    pub seq: u32,
    /// The version that it took the place of.
    pub previous: Option<u32>,
    /// What was written, if search may find it and it is still the current version.
    pub facts: Option<Facts>,
    /// Whether the whole index was made anew.
    pub rebuilt: bool,
}

/// A row's number, which is below 2^32: that many writes are years of the fastest ingest.
fn number(what: &str, value: i64) -> Result<u32, DbError> {
    u32::try_from(value).map_err(|why| damaged(format!("{what} {value}"), &why))
}

impl ReadTx<'_> {
    /// The number of the newest row of the item log.
    pub fn log_seq(&self) -> Result<u32, DbError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM item_log";
        let seq = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        number("item_log", seq)
    }

    /// The number of the oldest row of the item log that is still there.
    pub fn log_floor(&self) -> Result<u32, DbError> {
        let sql = "SELECT coalesce(min(seq), 0) FROM item_log";
        let seq = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        number("item_log", seq)
    }

    /// The rows of the item log behind `after`, `limit` of them.
    pub fn index_changes(&self, after: u32, limit: usize) -> Result<Vec<IndexChange>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT seq, previous, facts, change = 'rebuilt' FROM item_log
             LEFT JOIN facts ON doc = seq WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![after, limit])?;
        let mut changes = Vec::new();
        while let Some(row) = rows.next()? {
            let seq = number("item_log", row.get(0)?)?;
            let previous: Option<i64> = row.get(1)?;
            let previous = previous.map(|doc| number("item_log", doc)).transpose()?;
            let facts = row.get_ref(2)?.as_blob_or_null().ok().flatten();
            let facts = facts.map(|facts| Facts::read(seq, facts)).transpose()?;
            changes.push(IndexChange { seq, previous, facts, rebuilt: row.get(3)? });
        }
        Ok(changes)
    }

    /// Gives `each` the facts of every item with a number in `range`, in their order.
    pub fn each_facts(
        &self,
        range: RangeInclusive<u32>,
        mut each: impl FnMut(u32, &Facts),
    ) -> Result<(), DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT doc, facts FROM facts WHERE doc BETWEEN ?1 AND ?2 ORDER BY doc",
        )?;
        let mut rows = statement.query(params![range.start(), range.end()])?;
        let mut facts = FactsRows::default();
        while let Some(row) = rows.next()? {
            let doc = number("facts", row.get(0)?)?;
            let blob = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            each(doc, facts.read(doc, blob)?);
        }
        Ok(())
    }

    /// The values of `facet` from the number `from` on, in the order of their numbers, which have
    /// no gaps and begin with 0.
    pub fn facet_values(&self, facet: Facet, from: usize) -> Result<Vec<String>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT value FROM facet_values WHERE facet = ?1 AND value_id >= ?2 ORDER BY value_id",
        )?;
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let rows =
            statement.query_map(params![super::index::code(facet), from], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Gives `each` the number of every item behind `after` that the index finds by `lookup`,
    /// rising.
    pub fn each_doc(
        &self,
        lookup: &Lookup,
        after: u32,
        mut each: impl FnMut(u32),
    ) -> Result<(), DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid > ?2 ORDER BY rowid",
        )?;
        let mut rows = statement.query(params![lookup.0, after])?;
        while let Some(row) = rows.next()? {
            each(number("words", row.get(0)?)?);
        }
        Ok(())
    }

    /// The item whose current version has the number `doc`.
    pub fn find_doc(&self, doc: u32) -> Result<Option<(ItemKey, StoredItem)>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT document, assets, embargoed_ms, stored_ms, order_ms, media_type, id
             FROM items
             WHERE item_id = ?1",
        )?;
        let row = statement
            .query_row([doc], |row| {
                Ok((Raw::read(row)?, row.get::<_, String>(5)?, row.get::<_, String>(6)?))
            })
            .optional()?;
        let Some((raw, media_type, id)) = row else { return Ok(None) };
        let what = format!("item {media_type}/{id}");
        let key = format!("{media_type}/{id}").parse().map_err(|why| damaged(&what, &why))?;
        Ok(Some((key, raw.item(&what)?)))
    }

    /// The number of the current version of `key`.
    pub fn doc_of(&self, key: &ItemKey) -> Result<Option<u32>, DbError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT item_id FROM items WHERE media_type = ?1 AND id = ?2")?;
        let found: Option<i64> = statement
            .query_row(params![key.media_type.as_str(), key.id.as_str()], |row| row.get(0))
            .optional()?;
        found.map(|doc| number("item", doc)).transpose()
    }
}

/// What is asked of the index of words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lookup(String);

/// The columns that free words search.
const ANYWHERE: &str = "{headline description body rest}";

impl Lookup {
    /// Documents with these words.
    #[must_use]
    pub fn of(words: &Words) -> Self {
        let column = match words.place {
            // Tags never equal a word, but may begin with one.
            Place::Anywhere if words.prefix => Some(ANYWHERE),
            Place::Anywhere => None,
            Place::Headline => Some("headline"),
            Place::Description => Some("description"),
            Place::Body => Some("body"),
            Place::Named(_) => Some("tags"),
        };
        let mut text = String::new();
        if let Some(column) = column {
            text.push_str(column);
            text.push_str(" : ");
        }
        let tokens = words.tokens();
        text.push_str(&quoted(&tokens.phrase.join(" ")));
        if words.prefix {
            text.push('*');
        }
        for token in &tokens.exact {
            text.push_str(" AND tags : ");
            text.push_str(&quoted(token));
        }
        Self(text)
    }

    /// Documents in which the folded word stands at least `times` times outside the headline; 2, 4
    /// and 8 are known.
    #[must_use]
    pub fn often(folded: &str, times: u8) -> Self {
        Self(format!("tags : {}", quoted(&format!("{folded}+{times}"))))
    }

    /// Its text, for the size of what is remembered of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A string of the index's query language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
