//! The index of words: the table `words`, a row for each version that search may find, with a
//! `tsvector` for each text, and lists of frequent words (`super::frequent`). No text search configuration of the server has a part in it: tokens are
//! ours, with their places.
//!
//! A `tsvector` counts places up to 16,383, keeps 256 of a word and has room for 1 MiB. A phrase is
//! not found where its words stand behind that in one text; single words and their beginnings are,
//! unless a text has more than a megabyte of different ones.

use std::collections::HashMap;
use std::ops::ControlFlow;

use roaring::RoaringBitmap;

use super::client::Client;
use super::frequent::Folds;
use crate::db::engine::params;
use crate::db::statements::check::list_flaws;
use crate::db::statements::search::WordColumn;
use crate::db::{DbError, Flaw, Lookup};
use crate::limits::{
    DB_GROUP_NUMBERS, DB_PORTION_GROUPS, DB_WORD_PLACE_MAX, DB_WORD_PLACES_MAX, DB_WORDS_BYTES_MAX,
};
use crate::query::Indexed;

/// The token that parts values; no phrase has it.
const GAP: &str = ".";

impl Client<'_> {
    pub(in crate::db) fn insert_words(self, doc: i64, indexed: &Indexed) -> Result<(), DbError> {
        let sql = "INSERT INTO words (doc, headline, description, body, rest, tags)
             VALUES (?1, CAST(CAST(?2 AS TEXT) AS tsvector), CAST(CAST(?3 AS TEXT) AS tsvector),
                 CAST(CAST(?4 AS TEXT) AS tsvector), CAST(CAST(?5 AS TEXT) AS tsvector),
                 CAST(CAST(?6 AS TEXT) AS tsvector))";
        let Indexed { headline, description, body, rest, tags, .. } = indexed;
        let [headline, description, body, rest, tags] =
            [headline, description, body, rest, tags].map(|text| vector(text));
        self.execute(sql, params![doc, headline, description, body, rest, tags]).map(drop)
    }

    pub(in crate::db) fn delete_words(self, doc: i64) -> Result<(), DbError> {
        self.execute("DELETE FROM words WHERE doc = ?1", params![doc]).map(drop)
    }

    /// Forgets the lists, and gives the last version in the index: rows are removed one by one here, which takes
    /// longer than others wait to write.
    pub(in crate::db) fn begin_clearing(self) -> Result<i64, DbError> {
        self.clear_folds()?;
        let sql = "SELECT greatest((SELECT coalesce(max(doc), 0) FROM words),
                 (SELECT coalesce(max(doc), 0) FROM facts))";
        self.engine().load_value(sql, params![])
    }

    /// Removes rows of versions behind `after` up to `last`, at most `rows` of each table; gives up to which
    /// version. What one table has and the other has not goes too.
    pub(in crate::db) fn clear_portion(
        self,
        (after, last): (i64, i64),
        rows: i64,
    ) -> Result<i64, DbError> {
        let mut end = last;
        for table in ["words", "facts"] {
            let sql = format!(
                "SELECT doc FROM {table} WHERE doc > ?1 AND doc <= ?2 ORDER BY doc LIMIT 1 OFFSET ?3"
            );
            let full: Option<i64> =
                self.engine().find_value(&sql, params![after, end, rows.max(1) - 1])?;
            end = full.unwrap_or(end);
        }
        for table in ["words", "facts"] {
            let sql = format!("DELETE FROM {table} WHERE doc > ?1 AND doc <= ?2");
            self.execute(&sql, params![after, end])?;
        }
        Ok(end)
    }

    pub(in crate::db) fn each_with_words(
        self,
        lookup: &Lookup,
        after: u32,
        mut each: impl FnMut(i64) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let texts = texts(lookup.column);
        let Some(folds) = self.current_folds()?.filter(|folds| folds.reach(after)) else {
            return self.each_in_rows(lookup, &texts, after, each);
        };
        // Frequent words are in lists, the other ones in few rows. Which way to those is short, the server
        // finds out each time: it depends on the word.
        self.execute("SET LOCAL plan_cache_mode = force_custom_plan", params![])?;
        let (in_lists, mut found) = self.look_in_lists(&folds, lookup, (&texts, after))?;
        let is_listed = |text: &Text| in_lists.iter().any(|listed| listed.letter == text.letter);
        let (listed, rest): (Vec<&Text>, Vec<&Text>) =
            texts.into_iter().partition(|text| is_listed(text));
        let mut take = |doc: i64| {
            found.insert(u32::try_from(doc).map_err(|why| damaged(&why))?);
            Ok(())
        };
        if !listed.is_empty() {
            self.each_in_rows(lookup, &listed, folds.last(), &mut take)?;
        }
        if !rest.is_empty() {
            self.each_in_rows(lookup, &rest, after, &mut take)?;
        }
        found.remove_range(..=after);
        found.iter().try_for_each(|doc| each(i64::from(doc)))
    }

    /// Of the texts those of which lists tell everything, as far as they reach; and the items that have
    /// the words there.
    fn look_in_lists(
        self,
        folds: &Folds,
        lookup: &Lookup,
        (texts, after): (&[&'static Text], u32),
    ) -> Result<(Vec<&'static Text>, RoaringBitmap), DbError> {
        let phrase = tokens(&lookup.phrase);
        let tags: Vec<&str> = lookup.tags.iter().map(String::as_str).collect();
        let with_tags = match tags.is_empty() {
            true => None,
            false => match self.find_tags_in_lists(folds, after, &tags)? {
                Some(found) => Some(found),
                None => return Ok(Default::default()),
            },
        };
        match (phrase.is_empty(), with_tags) {
            (true, Some(found)) => Ok((texts.to_vec(), found)),
            (false, with_tags) if !lookup.prefix => {
                let asked = (phrase.as_slice(), true);
                self.find_in_lists(folds, (texts, after), asked, with_tags.as_ref())
            }
            (true, None) | (false, _) => Ok(Default::default()),
        }
    }

    /// Looks the words up in the rows of items behind `after`.
    fn each_in_rows(
        self,
        lookup: &Lookup,
        texts: &[&Text],
        after: u32,
        mut each: impl FnMut(i64) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let phrase = phrase(lookup);
        let tags: Vec<String> = lookup.tags.iter().map(|tag| quoted(tag)).collect();
        let tags = tags.join(" & ");
        // An empty question matches nothing; one that asks for less than the other is left out.
        let mut conditions = Vec::new();
        if !phrase.is_empty() || tags.is_empty() {
            let any = texts
                .iter()
                .map(|text| format!("{} @@ CAST(CAST(?1 AS TEXT) AS tsquery)", text.column));
            conditions.push(format!("({})", any.collect::<Vec<_>>().join(" OR ")));
        } else {
            conditions.push("CAST(?1 AS TEXT) = ''".to_owned());
        }
        if tags.is_empty() {
            conditions.push("CAST(?2 AS TEXT) = ''".to_owned());
        } else {
            conditions.push("tags @@ CAST(CAST(?2 AS TEXT) AS tsquery)".to_owned());
        }
        // What is new is found by its number. All is not: the sum keeps the server from that.
        let doc = if after == 0 { "doc + 0" } else { "doc" };
        let sql = format!(
            "SELECT string_agg(int8send(doc), CAST('' AS bytea)) FROM words
             WHERE {} AND {doc} > ?3 GROUP BY doc / {DB_GROUP_NUMBERS} ORDER BY doc / {DB_GROUP_NUMBERS}",
            conditions.join(" AND ")
        );
        let asked = params![phrase, tags, after];
        let mut group = Vec::new();
        self.portions(&sql, asked, DB_PORTION_GROUPS, |row| {
            let (numbers, _) = row.blob(0)?.unwrap_or_default().as_chunks::<8>();
            group.clear();
            group.extend(numbers.iter().map(|number| i64::from_be_bytes(*number)));
            // Sorted here: it costs the server more.
            group.sort_unstable();
            group.iter().try_for_each(|number| each(*number))?;
            Ok(ControlFlow::Continue(()))
        })
    }

    pub(in crate::db) fn word_flaws(self) -> Result<Vec<Flaw>, DbError> {
        let pairs = [
            ("SELECT doc FROM facts EXCEPT SELECT doc FROM words", "the words are missing"),
            ("SELECT doc FROM words EXCEPT SELECT doc FROM facts", "words are left over"),
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

/// A text of an item in the index.
#[derive(Debug)]
pub(super) struct Text {
    /// Its column in `words`.
    pub(super) column: &'static str,
    /// What it is called in lists.
    pub(super) letter: char,
}

impl Text {
    pub(super) const TAGS: Self = Self { column: "tags", letter: 't' };
    pub(super) const ALL: [Self; 5] = [
        Self { column: "headline", letter: 'h' },
        Self { column: "description", letter: 'd' },
        Self { column: "body", letter: 'b' },
        Self { column: "rest", letter: 'r' },
        Self::TAGS,
    ];

    /// A token in this text, as lists call it.
    pub(super) fn token(&self, token: &str) -> String {
        format!("{}{token}", self.letter)
    }
}

/// The texts that a look-up is about.
fn texts(column: WordColumn) -> Vec<&'static Text> {
    static TEXTS: [Text; 5] = Text::ALL;
    let letters = match column {
        WordColumn::All => "hdbrt",
        WordColumn::Words => "hdbr",
        WordColumn::Headline => "h",
        WordColumn::Description => "d",
        WordColumn::Body => "b",
        WordColumn::Tags => "t",
    };
    TEXTS.iter().filter(|text| letters.contains(text.letter)).collect()
}

fn tokens(phrase: &str) -> Vec<&str> {
    phrase.split(' ').filter(|token| !token.is_empty()).collect()
}

fn damaged(why: &dyn std::fmt::Display) -> DbError {
    DbError::Damaged { what: "table words".to_owned(), why: why.to_string() }
}

/// Tokens side by side as a `tsquery`.
pub(super) fn side_by_side(tokens: &[&str]) -> String {
    tokens.iter().map(|token| quoted(token)).collect::<Vec<_>>().join(" <-> ")
}

/// The phrase of a look-up as a `tsquery`.
fn phrase(lookup: &Lookup) -> String {
    let mut text = side_by_side(&tokens(&lookup.phrase));
    if lookup.prefix && !text.is_empty() {
        text.push_str(":*");
    }
    text
}

/// A token as `tsvector` and `tsquery` read it.
fn quoted(token: &str) -> String {
    format!("'{}'", token.replace('\\', "\\\\").replace('\'', "''"))
}

/// The tokens of a text with their places, as a `tsvector` is written; no more than fits one.
fn vector(text: &str) -> String {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut order = Vec::new();
    for (at, token) in text.split(' ').enumerate() {
        if token.is_empty() || token == GAP {
            continue;
        }
        let known = places.entry(token).or_insert_with(|| {
            order.push(token);
            Vec::new()
        });
        if at < DB_WORD_PLACE_MAX && known.len() < DB_WORD_PLACES_MAX {
            known.push(at + 1);
        }
    }
    let mut vector = String::new();
    let mut size_bytes = 0;
    for token in order {
        let known = places.remove(token).unwrap_or_default();
        // The lexeme, filled up to two, the number of its places, and those.
        size_bytes += token.len() + 4 + 2 * known.len();
        if size_bytes > DB_WORDS_BYTES_MAX {
            break;
        }
        if !vector.is_empty() {
            vector.push(' ');
        }
        vector.push_str(&quoted(token));
        for (nth, at) in known.iter().enumerate() {
            vector.push(if nth == 0 { ':' } else { ',' });
            vector.push_str(&at.to_string());
        }
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_a_text_is_its_words_with_their_places() {
        let check = |text, expected| assert_eq!(vector(text), expected, "{text:?}");
        check("", "");
        check("storm", "'storm':1");
        check("storm over . storm", "'storm':1,4 'over':2");
        check("ek=erik ==ö o'r a\\b", "'ek=erik':1 '==ö':2 'o''r':3 'a\\\\b':4");
    }

    #[test]
    fn ok_places_that_do_not_fit_are_left_out() {
        let long = format!("{}end", "a ".repeat(DB_WORD_PLACE_MAX));
        let vector = vector(&long);
        assert_eq!(vector.split(' ').count(), 2);
        assert!(vector.ends_with(" 'end'"), "{}", &vector[vector.len() - 20..]);
        assert_eq!(vector.matches(',').count(), DB_WORD_PLACES_MAX - 1);
    }
}
