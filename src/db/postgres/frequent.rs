//! Frequent words: lists of the items that have them, so that nobody reads those items' rows.
//!
//! A GIN index finds rows, and the number of an item stands in its row: to look up a word that is in
//! every third item is to read every third row of a table of gigabytes, for a phrase of such words
//! with its texts. For the words that one of [`DB_FOLD_SHARE`](crate::limits::DB_FOLD_SHARE) items has
//! there are therefore lists of numbers, and others for each two side by side of the most frequent ones.
//! They are made in the background, a block of numbers at a time, when all items of the block are there: numbers
//! only rise. What is behind the last block is looked up in the rows. An item that is gone stays in its list:
//! whoever searches leaves it out.
//!
//! Which words are frequent is chosen once for a *generation* of lists, from parts of the archive. When
//! the archive is twice as large another generation is made beside, and takes the place of the first
//! when it has come as far.
//!
//! Lists are made without the turn to write (`super`), in a transaction that sees one state. It ends
//! without effect when the index is emptied meanwhile, since that removes the row which it changes.
//!
//! A token in the tables has the letter of its text in front, two tokens side by side have a blank
//! between them. A list is a row of numbers of 2 bytes behind the beginning of its block; of two
//! tokens it may have a number twice.

use std::collections::HashMap;
use std::ops::ControlFlow;

use roaring::RoaringBitmap;

use super::client::Client;
use super::words::Text;
use crate::db::engine::params;
use crate::db::{DbError, FoldSizes};
use crate::limits::{
    DB_FOLD_ASKED, DB_FOLD_PART, DB_FOLD_PARTS, DB_FOLD_REMOVED, DB_FOLD_WORDS_MAX,
    DB_PORTION_ROWS,
};

/// Lists of frequent words that were made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folds {
    generation: i64,
    /// The newest item when its words were chosen.
    chosen: i64,
    /// Numbers of a block.
    block: i64,
    /// Items with numbers below are in the lists.
    folded: i64,
}

impl Folds {
    /// Whether lists have numbers behind `after`.
    pub(super) fn reach(&self, after: u32) -> bool {
        i64::from(after) + 1 < self.folded
    }

    /// The last number of which lists tell.
    pub(super) fn last(&self) -> u32 {
        u32::try_from(self.folded - 1).unwrap_or_default()
    }
}

/// What is asked of a text whose words are all frequent.
#[derive(Debug)]
struct Asked<'a> {
    text: &'a Text,
    /// The lists whose common numbers have it.
    lists: Vec<String>,
    /// Whether rows have to be asked which of them have the phrase.
    doubtful: bool,
}

impl Client<'_> {
    /// One step of making lists; `false` when there is nothing to do.
    pub(in crate::db) fn fold_words(self, sizes: FoldSizes) -> Result<bool, DbError> {
        let read = crate::db::ReadTx::new(self.engine());
        if !read.index_is_current()? || read.is_being_filled()? {
            return Ok(false);
        }
        let last = "SELECT greatest((SELECT coalesce(max(seq), 0) FROM item_log),
                 (SELECT coalesce(max(doc), 0) FROM words))";
        let last: i64 = self.engine().load_value(last, params![])?;
        let made = self.folds(2)?;
        let Some(current) = made.first() else {
            return match last >= sizes.least {
                true => self.choose(last, sizes).map(|()| true),
                false => Ok(false),
            };
        };
        if self.fold_block(current, last)? {
            return Ok(true);
        }
        match made.get(1) {
            Some(next) if next.folded >= current.folded => {
                let sql = "DELETE FROM word_folds WHERE generation = ?1";
                self.execute(sql, params![current.generation]).map(|_| true)
            }
            Some(next) => self.fold_block(next, last),
            None if last / 2 >= current.chosen => self.choose(last, sizes).map(|()| true),
            None => self.remove_lists(current.generation),
        }
    }

    /// The first of the generations that there are, in their order.
    fn folds(self, limit: i64) -> Result<Vec<Folds>, DbError> {
        let sql = "SELECT generation, chosen, block, folded FROM word_folds
             ORDER BY generation LIMIT ?1";
        self.engine().list(sql, params![limit], |row| {
            let [generation, chosen, block, folded] = [0, 1, 2, 3].map(|at| row.get(at));
            Ok(Folds { generation: generation?, chosen: chosen?, block: block?, folded: folded? })
        })
    }

    /// The lists that are searched, if there are any.
    pub(super) fn current_folds(self) -> Result<Option<Folds>, DbError> {
        Ok(self.folds(1)?.into_iter().next())
    }

    /// Begins a generation: chooses its words.
    fn choose(self, last: i64, sizes: FoldSizes) -> Result<(), DbError> {
        let generation = self.next_generation()?;
        let step = (last / DB_FOLD_PARTS).max(1);
        let rows = "FROM generate_series(CAST(0 AS BIGINT), ?1) AS part
             JOIN words ON doc > part * ?2 AND doc <= part * ?2 + ?3";
        let part = DB_FOLD_PART.min(step);
        let asked = params![DB_FOLD_PARTS - 1, step, part];
        let rows_seen: i64 =
            self.engine().load_value(&format!("SELECT count(*) {rows}"), asked)?;
        for Text { column, letter } in Text::ALL {
            let sql = format!(
                "INSERT INTO frequent_words (generation, token, pairs)
                 SELECT CAST(?4 AS BIGINT), '{letter}' || lexeme,
                     items > CAST(?7 AS BIGINT)
                 FROM (SELECT lexeme, count(*) AS items {rows}, unnest({column}) GROUP BY lexeme)
                     AS counted
                 WHERE items > ?5 ORDER BY items DESC, lexeme LIMIT ?6"
            );
            let (least, pairs) = (rows_seen / sizes.share, rows_seen / sizes.pair_share);
            let (last_part, most) = (DB_FOLD_PARTS - 1, DB_FOLD_WORDS_MAX);
            let asked = params![last_part, step, part, generation, least, most, pairs];
            self.execute(&sql, asked)?;
        }
        let sql = "INSERT INTO word_folds (generation, chosen, block, folded)
             VALUES (?1, ?2, ?3, 0)";
        self.execute(sql, params![generation, last, sizes.block]).map(drop)
    }

    /// A number that no list has, also none of those that are left over.
    fn next_generation(self) -> Result<i64, DbError> {
        let newest = |table| {
            let sql = format!("SELECT generation FROM {table} ORDER BY generation DESC LIMIT 1");
            self.engine().find_value::<i64>(&sql, params![])
        };
        let newest =
            newest("word_folds")?.max(newest("frequent_words")?).max(newest("word_blocks")?);
        Ok(newest.unwrap_or_default() + 1)
    }

    /// Makes the lists of the next block, if all of its items are there.
    fn fold_block(self, folds: &Folds, last: i64) -> Result<bool, DbError> {
        let Folds { generation, block, folded, .. } = folds;
        let end = folded + block;
        if end > last + 1 {
            return Ok(false);
        }
        self.execute("SET LOCAL work_mem = '64MB'", params![])?;
        for text in &Text::ALL {
            let number = folded / block;
            self.execute(&fold_sql(text), params![generation, folded, end, number])?;
        }
        let sql = "UPDATE word_folds SET folded = ?1 WHERE generation = ?2";
        self.execute(sql, params![end, generation]).map(|_| true)
    }

    /// Removes some of what generations before this one left; `false` when there is nothing.
    fn remove_lists(self, generation: i64) -> Result<bool, DbError> {
        let lists = "DELETE FROM word_blocks WHERE (generation, token, block) IN
             (SELECT generation, token, block FROM word_blocks WHERE generation < ?1 LIMIT ?2)";
        if self.execute(lists, params![generation, DB_FOLD_REMOVED])? > 0 {
            return Ok(true);
        }
        let words = "DELETE FROM frequent_words WHERE generation < ?1";
        Ok(self.execute(words, params![generation])? > 0)
    }

    /// Forgets all lists. They are removed a part at a time when there are new ones: nobody who writes
    /// waits for that.
    pub(super) fn clear_folds(self) -> Result<(), DbError> {
        self.execute("DELETE FROM word_folds", params![]).map(drop)
    }

    /// The items behind `after` that lists say have all of these tokens in their tags; nothing where
    /// lists do not tell of each item below `folds.folded`.
    pub(super) fn find_tags_in_lists(
        self,
        folds: &Folds,
        after: u32,
        tags: &[&str],
    ) -> Result<Option<RoaringBitmap>, DbError> {
        let (in_lists, found) =
            self.find_in_lists(folds, (&[&Text::TAGS], after), (tags, false), None)?;
        Ok((!in_lists.is_empty()).then_some(found))
    }

    /// Of the texts those for which lists tell of every item below `folds.folded` whether it has
    /// these tokens, side by side where `is_phrase`; and those items behind `after`, of `within` where
    /// that is given.
    pub(super) fn find_in_lists<'a>(
        self,
        folds: &Folds,
        (texts, after): (&[&'a Text], u32),
        (tokens, is_phrase): (&[&str], bool),
        within: Option<&RoaringBitmap>,
    ) -> Result<(Vec<&'a Text>, RoaringBitmap), DbError> {
        let wanted: Vec<String> =
            texts.iter().flat_map(|text| tokens.iter().map(|token| text.token(token))).collect();
        let sql = "SELECT token, pairs FROM frequent_words
             WHERE generation = ?1 AND token = ANY (CAST(CAST(?2 AS TEXT) AS TEXT[]))";
        let known = params![folds.generation, array(&wanted)];
        let known = self.engine().list(sql, known, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let known: HashMap<String, bool> = known.into_iter().collect();
        let is_known = |text: &&&'a Text| {
            !tokens.is_empty() && tokens.iter().all(|token| known.contains_key(&text.token(token)))
        };
        let asked: Vec<Asked<'a>> = texts
            .iter()
            .filter(is_known)
            .map(|text| ask(text, (tokens, is_phrase), &known))
            .collect();
        let lists = self.lists(folds, &asked, after)?;
        let none = RoaringBitmap::new();
        let mut found = RoaringBitmap::new();
        for asked in &asked {
            let mut lists = asked.lists.iter().map(|list| lists.get(list).unwrap_or(&none));
            let first = lists.next().cloned().unwrap_or_default();
            let mut all = lists.fold(first, |all, list| all & list);
            if let Some(within) = within {
                all &= within;
            }
            all.remove_range(..=after);
            if asked.doubtful {
                all = self.with_phrase(asked.text, tokens, &all)?;
            }
            found |= all;
        }
        Ok((asked.iter().map(|asked| asked.text).collect(), found))
    }

    /// Reads the lists that are asked for, of the blocks from that of `after` on.
    fn lists(
        self,
        folds: &Folds,
        asked: &[Asked<'_>],
        after: u32,
    ) -> Result<HashMap<String, RoaringBitmap>, DbError> {
        let mut lists: HashMap<String, RoaringBitmap> = HashMap::new();
        let wanted: Vec<String> = asked.iter().flat_map(|asked| asked.lists.clone()).collect();
        if wanted.is_empty() {
            return Ok(lists);
        }
        let sql = "SELECT token, block, docs FROM word_blocks
             WHERE generation = ?1 AND token = ANY (CAST(CAST(?2 AS TEXT) AS TEXT[])) AND block >= ?3
             ORDER BY token, block";
        let first = i64::from(after) / folds.block;
        let params = params![folds.generation, array(&wanted), first];
        let mut numbers = Vec::new();
        self.portions(sql, params, DB_PORTION_ROWS, |row| {
            let begin = row.get::<i64>(1)? * folds.block;
            let (offsets, _) = row.blob(2)?.unwrap_or_default().as_chunks::<2>();
            numbers.clear();
            for offset in offsets {
                let doc = begin + i64::from(i16::from_be_bytes(*offset));
                numbers.push(u32::try_from(doc).map_err(|why| DbError::Damaged {
                    what: "table word_blocks".to_owned(),
                    why: why.to_string(),
                })?);
            }
            numbers.sort_unstable();
            let list = lists.entry(row.get(0)?).or_default();
            list.extend(numbers.iter().copied());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(lists)
    }

    /// Those of the items whose text has the tokens side by side.
    fn with_phrase(
        self,
        text: &Text,
        tokens: &[&str],
        items: &RoaringBitmap,
    ) -> Result<RoaringBitmap, DbError> {
        let sql = format!(
            "SELECT doc FROM words WHERE doc = ANY (CAST(CAST(?1 AS TEXT) AS BIGINT[]))
                 AND {} @@ CAST(CAST(?2 AS TEXT) AS tsquery) ORDER BY doc",
            text.column
        );
        let phrase = super::words::side_by_side(tokens);
        let mut found = RoaringBitmap::new();
        let items: Vec<String> = items.iter().map(|doc| doc.to_string()).collect();
        for some in items.chunks(DB_FOLD_ASKED) {
            let some = format!("{{{}}}", some.join(","));
            found.extend(self.engine().list_values::<u32>(&sql, params![some, phrase])?);
        }
        Ok(found)
    }
}

/// The lists that tell of the tokens in a text, where it is known of each whether it has lists of
/// pairs.
fn ask<'a>(
    text: &'a Text,
    (tokens, is_phrase): (&[&str], bool),
    known: &HashMap<String, bool>,
) -> Asked<'a> {
    if !is_phrase || tokens.len() == 1 {
        let lists = tokens.iter().map(|token| text.token(token)).collect();
        return Asked { text, lists, doubtful: false };
    }
    let mut asked = Asked { text, lists: Vec::new(), doubtful: tokens.len() > 2 };
    for pair in tokens.windows(2) {
        let each = pair.iter().map(|token| text.token(token));
        if each.clone().all(|token| known.get(&token) == Some(&true)) {
            asked.lists.push(text.token(&pair.join(" ")));
        } else {
            asked.lists.extend(each);
            asked.doubtful = true;
        }
    }
    asked
}

/// What makes the lists of a text for one block, with the generation, the first number, the end and
/// the number of the block.
fn fold_sql(Text { column, letter }: &Text) -> String {
    let numbers =
        |number| format!("string_agg(int2send(CAST({number} AS SMALLINT)), CAST('' AS BYTEA))");
    format!(
        "WITH found AS MATERIALIZED (
             SELECT doc - CAST(?2 AS BIGINT) AS number, lexeme, positions, pairs
             FROM words, unnest({column}), frequent_words
             WHERE doc >= CAST(?2 AS BIGINT) AND doc < CAST(?3 AS BIGINT)
                 AND generation = CAST(?1 AS BIGINT) AND token = '{letter}' || lexeme),
         spots AS MATERIALIZED (
             SELECT number, lexeme, unnest(positions) AS place FROM found WHERE pairs)
         INSERT INTO word_blocks (generation, token, block, docs)
         SELECT CAST(?1 AS BIGINT), '{letter}' || lexeme, CAST(?4 AS BIGINT), {}
         FROM found GROUP BY lexeme
         UNION ALL
         SELECT CAST(?1 AS BIGINT), '{letter}' || a.lexeme || ' ' || b.lexeme, CAST(?4 AS BIGINT), {}
         FROM spots AS a JOIN spots AS b ON b.number = a.number AND b.place = a.place + 1
         GROUP BY a.lexeme, b.lexeme",
        numbers("number"),
        numbers("a.number")
    )
}

/// Texts as PostgreSQL writes an array of them.
fn array(texts: &[String]) -> String {
    let quoted = texts
        .iter()
        .map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}
