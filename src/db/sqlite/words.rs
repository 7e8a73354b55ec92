//! The index of words: FTS5's table `words`, a row for each version that search may find.

use std::ops::ControlFlow;

use super::client::Client;
use crate::db::engine::params;
use crate::db::statements::check::list_flaws;
use crate::db::statements::search::WordColumn;
use crate::db::{DbError, Flaw, Lookup};
use crate::query::Indexed;

/// All columns but the tags.
const WORDS: &str = "{headline description body rest}";

impl Client<'_> {
    pub(in crate::db) fn insert_words(self, doc: i64, indexed: &Indexed) -> Result<(), DbError> {
        let sql = "INSERT INTO words (rowid, headline, description, body, rest, tags)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let Indexed { headline, description, body, rest, tags, .. } = indexed;
        self.execute(sql, params![doc, headline, description, body, rest, tags]).map(drop)
    }

    pub(in crate::db) fn delete_words(self, doc: i64) -> Result<(), DbError> {
        self.execute("DELETE FROM words WHERE rowid = ?1", params![doc]).map(drop)
    }

    /// Empties the index. Both tables let go of their pages, not of one row after the other: no version is left.
    pub(in crate::db) fn clear_index(self) -> Result<i64, DbError> {
        self.execute("INSERT INTO words (words) VALUES ('delete-all')", params![])?;
        self.execute("DELETE FROM facts", params![])?;
        Ok(0)
    }

    pub(in crate::db) fn each_with_words(
        self,
        lookup: &Lookup,
        after: u32,
        mut each: impl FnMut(i64) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let sql = "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid > ?2 ORDER BY rowid";
        self.each(sql, params![print(lookup), after], |row| {
            each(row.get(0)?)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    pub(in crate::db) fn word_flaws(self) -> Result<Vec<Flaw>, DbError> {
        let pairs = [
            ("SELECT doc FROM facts EXCEPT SELECT id FROM words_docsize", "the words are missing"),
            ("SELECT id FROM words_docsize EXCEPT SELECT doc FROM facts", "words are left over"),
        ];
        let mut flaws = Vec::new();
        for (sql, why) in pairs {
            flaws.extend(list_flaws(self.engine(), sql, "rows of the search index", |row| {
                let doc: i64 = row.get(0)?;
                Ok(Flaw::Index(format!("search index row {doc}: {why}")))
            })?);
        }
        Ok(flaws)
    }
}

/// A look-up in FTS5's query language.
fn print(lookup: &Lookup) -> String {
    let column = match lookup.column {
        WordColumn::All => None,
        WordColumn::Words => Some(WORDS),
        WordColumn::Headline => Some("headline"),
        WordColumn::Description => Some("description"),
        WordColumn::Body => Some("body"),
        WordColumn::Tags => Some("tags"),
    };
    let mut text = String::new();
    if let Some(column) = column {
        text.push_str(column);
        text.push_str(" : ");
    }
    text.push_str(&quoted(&lookup.phrase));
    if lookup.prefix {
        text.push('*');
    }
    for tag in &lookup.tags {
        text.push_str(" AND tags : ");
        text.push_str(&quoted(tag));
    }
    text
}

/// A string of the index's query language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
