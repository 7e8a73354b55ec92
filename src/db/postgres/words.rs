//! The index of words: the table `words`, a row for each version that search may find, with a
//! `tsvector` for each text. No text search configuration of the server has a part in it: tokens are
//! ours, with their places.
//!
//! A `tsvector` counts places up to 16,383, keeps 256 of a word and has room for 1 MiB. A phrase is
//! not found where its words stand behind that in one text; single words and their beginnings are,
//! unless a text has more than a megabyte of different ones.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::client::Client;
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

    pub(in crate::db) fn clear_words(self) -> Result<(), DbError> {
        self.execute("DELETE FROM words", params![]).map(drop)
    }

    pub(in crate::db) fn each_with_words(
        self,
        lookup: &Lookup,
        after: u32,
        mut each: impl FnMut(i64) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let columns: &[&str] = match lookup.column {
            WordColumn::All => &["headline", "description", "body", "rest", "tags"],
            WordColumn::Words => &["headline", "description", "body", "rest"],
            WordColumn::Headline => &["headline"],
            WordColumn::Description => &["description"],
            WordColumn::Body => &["body"],
            WordColumn::Tags => &["tags"],
        };
        let phrase = phrase(lookup);
        let tags: Vec<String> = lookup.tags.iter().map(|tag| quoted(tag)).collect();
        let tags = tags.join(" & ");
        // An empty question matches nothing; one that asks for less than the other is left out.
        let mut conditions = Vec::new();
        if !phrase.is_empty() || tags.is_empty() {
            let any = columns
                .iter()
                .map(|column| format!("{column} @@ CAST(CAST(?1 AS TEXT) AS tsquery)"));
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
            "SELECT string_agg(int8send(doc), CAST('' AS bytea) ORDER BY doc) FROM words
             WHERE {} AND {doc} > ?3 GROUP BY doc / {DB_GROUP_NUMBERS} ORDER BY doc / {DB_GROUP_NUMBERS}",
            conditions.join(" AND ")
        );
        let asked = params![phrase, tags, after];
        self.portions(&sql, asked, DB_PORTION_GROUPS, |row| {
            let (numbers, _) = row.blob(0)?.unwrap_or_default().as_chunks::<8>();
            for number in numbers {
                each(i64::from_be_bytes(*number))?;
            }
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

/// The phrase of a look-up as a `tsquery`.
fn phrase(lookup: &Lookup) -> String {
    let tokens = lookup.phrase.split(' ').filter(|token| !token.is_empty());
    let mut text = tokens.map(quoted).collect::<Vec<_>>().join(" <-> ");
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
