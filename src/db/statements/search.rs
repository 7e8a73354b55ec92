//! What search asks of the database: what was written, which items hold some words, documents.

use std::ops::{ControlFlow, RangeInclusive};

use super::facts::{Facts, FactsRows};
use super::{ReadTx, damaged, int};
use crate::db::engine::params;
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
        number("item_log", self.engine.load_value(sql, params![])?)
    }

    /// The number of the oldest row of the item log that is still there.
    pub fn log_floor(&self) -> Result<u32, DbError> {
        let sql = "SELECT coalesce(min(seq), 0) FROM item_log";
        number("item_log", self.engine.load_value(sql, params![])?)
    }

    /// The rows of the item log behind `after`, `limit` of them.
    pub fn index_changes(&self, after: u32, limit: usize) -> Result<Vec<IndexChange>, DbError> {
        self.engine.list(
            "SELECT seq, previous, facts, change = 'rebuilt' FROM item_log
             LEFT JOIN facts ON doc = seq WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            params![after, int(limit)],
            |row| {
                let seq = number("item_log", row.get(0)?)?;
                let previous: Option<i64> = row.get(1)?;
                let previous = previous.map(|doc| number("item_log", doc)).transpose()?;
                let facts = row.blob(2).ok().flatten();
                let facts = facts.map(|facts| Facts::read(seq, facts)).transpose()?;
                Ok(IndexChange { seq, previous, facts, rebuilt: row.get(3)? })
            },
        )
    }

    /// Gives `each` the facts of every item with a number in `range`, in their order.
    pub fn each_facts(
        &self,
        range: RangeInclusive<u32>,
        mut each: impl FnMut(u32, &Facts),
    ) -> Result<(), DbError> {
        let sql = "SELECT doc, facts FROM facts WHERE doc BETWEEN ?1 AND ?2 ORDER BY doc";
        let mut facts = FactsRows::default();
        self.engine.each(sql, params![range.start(), range.end()], |row| {
            let doc = number("facts", row.get(0)?)?;
            each(doc, facts.read(doc, row.blob(1)?.unwrap_or_default())?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The values of `facet` from the number `from` on, in the order of their numbers, which have
    /// no gaps and begin with 0.
    pub fn facet_values(&self, facet: Facet, from: usize) -> Result<Vec<String>, DbError> {
        self.engine.list_values(
            "SELECT value FROM facet_values WHERE facet = ?1 AND value_id >= ?2 ORDER BY value_id",
            params![super::index::code(facet), int(from)],
        )
    }

    /// Gives `each` the number of every item behind `after` that the index finds by `lookup`,
    /// rising.
    pub fn each_doc(
        &self,
        lookup: &Lookup,
        after: u32,
        mut each: impl FnMut(u32),
    ) -> Result<(), DbError> {
        self.engine.each_with_words(lookup, after, |doc| {
            each(number("words", doc)?);
            Ok(())
        })
    }

    /// The item whose current version has the number `doc`.
    pub fn find_doc(&self, doc: u32) -> Result<Option<(ItemKey, StoredItem)>, DbError> {
        let sql = "SELECT document, assets, embargoed_ms, stored_ms, order_ms, media_type, id
             FROM items WHERE item_id = ?1";
        self.engine.find(sql, params![doc], |row| {
            let key = format!("{}/{}", row.text(5)?, row.text(6)?);
            let what = format!("item {key}");
            let key = key.parse().map_err(|why| damaged(&what, &why))?;
            Ok((key, StoredItem::read(row, &what)?))
        })
    }

    /// The number of the current version of `key`.
    pub fn doc_of(&self, key: &ItemKey) -> Result<Option<u32>, DbError> {
        let sql = "SELECT item_id FROM items WHERE media_type = ?1 AND id = ?2";
        let key = params![key.media_type.as_str(), key.id.as_str()];
        let found: Option<i64> = self.engine.find_value(sql, key)?;
        found.map(|doc| number("item", doc)).transpose()
    }
}

/// What is asked of the index of words: a phrase in some texts, and tokens in the tags.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    pub(in crate::db) column: WordColumn,
    /// Tokens side by side, with a blank between them.
    pub(in crate::db) phrase: String,
    /// Whether the last of them may go on.
    pub(in crate::db) prefix: bool,
    /// Tokens that all stand in the tags.
    pub(in crate::db) tags: Vec<String>,
}

/// A text of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::db) enum WordColumn {
    /// Any, tags too.
    All,
    /// Any but the tags.
    Words,
    Headline,
    Description,
    Body,
    Tags,
}

impl Lookup {
    /// Documents with these words.
    #[must_use]
    pub fn of(words: &Words) -> Self {
        let column = match words.place {
            // Tags never equal a word, but may begin with one.
            Place::Anywhere if words.prefix => WordColumn::Words,
            Place::Anywhere => WordColumn::All,
            Place::Headline => WordColumn::Headline,
            Place::Description => WordColumn::Description,
            Place::Body => WordColumn::Body,
            Place::Named(_) => WordColumn::Tags,
        };
        let tokens = words.tokens();
        let phrase = tokens.phrase.join(" ");
        Self { column, phrase, prefix: words.prefix, tags: tokens.exact }
    }

    /// Documents in which the folded word stands at least `times` times outside the headline; 2, 4
    /// and 8 are known.
    #[must_use]
    pub fn often(folded: &str, times: u8) -> Self {
        let phrase = format!("{folded}+{times}");
        Self { column: WordColumn::Tags, phrase, prefix: false, tags: Vec::new() }
    }

    /// The bytes of its texts, for the size of what is remembered of it.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.phrase.len() + self.tags.iter().map(String::len).sum::<usize>()
    }
}
