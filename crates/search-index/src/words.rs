//! Words: the documents of a segment that hold a word, a phrase or the beginning of a word.

use std::sync::Arc;

use query::{TextField, WordPattern, property_token_prefix};
use roaring::RoaringBitmap;
use tantivy::query::{EnableScoring, PhraseQuery, Query as _, RegexPhraseQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, InvertedIndexReader, TERMINATED, Term};

use crate::error::{IndexError, Result};
use crate::index::IndexSnapshot;
use crate::schema::SchemaFields;
use crate::segment::IndexSegment;
use crate::sets::SetBuilder;

/// Whether the time of a search is over.
pub(crate) type DeadlineCheck<'a> = &'a dyn Fn() -> bool;

/// Documents between two looks at the time.
const DOCS_PER_DEADLINE_CHECK: usize = 4096;

/// The fields in which words of a place stand.
pub(crate) fn fields_of(fields: &SchemaFields, place: TextField) -> Vec<Field> {
    match place {
        TextField::Anywhere => vec![fields.headline, fields.description, fields.body, fields.rest],
        TextField::Headline => vec![fields.headline],
        TextField::Description => vec![fields.description],
        TextField::Body => vec![fields.body],
        TextField::Named(_) => vec![fields.properties],
    }
}

/// A search for terms in one segment, with the documents that it found so far.
pub(crate) struct TermLookup<'a> {
    snapshot: &'a IndexSnapshot,
    segment: &'a IndexSegment,
    is_over: DeadlineCheck<'a>,
    found: SetBuilder,
    /// Documents since the last look at the time.
    docs_since_check: usize,
}

impl<'a> TermLookup<'a> {
    pub(crate) fn new(
        snapshot: &'a IndexSnapshot,
        segment: &'a IndexSegment,
        is_over: DeadlineCheck<'a>,
    ) -> Self {
        let found = SetBuilder::new(segment.max_doc());
        Self { snapshot, segment, is_over, found, docs_since_check: 0 }
    }

    /// The documents that hold `words`, and some that were removed.
    pub(crate) fn words(mut self, words: &WordPattern) -> Result<RoaringBitmap> {
        let (snapshot, segment, is_over) = (self.snapshot, self.segment, self.is_over);
        let fields = &snapshot.shared.fields;
        let tokens = words.tokens();
        for field in fields_of(fields, words.place) {
            match (tokens.phrase.as_slice(), words.prefix) {
                ([], _) => {}
                ([word], false) => self.term(field, word)?,
                ([start], true) => self.prefix(field, start)?,
                (phrase, prefix) => self.phrase(field, phrase, prefix)?,
            }
        }
        let mut found = self.found.finish();
        for accent in &tokens.exact {
            if found.is_empty() {
                break;
            }
            let accents = TermLookup::new(snapshot, segment, is_over);
            found &= accents.any_of(fields.accents, [accent.as_str()])?;
        }
        Ok(found)
    }

    /// The documents with any word in a place.
    pub(crate) fn present(mut self, place: TextField) -> Result<RoaringBitmap> {
        for field in fields_of(&self.snapshot.shared.fields, place) {
            match place {
                TextField::Named(name) => self.prefix(field, &property_token_prefix(name))?,
                TextField::Anywhere
                | TextField::Headline
                | TextField::Description
                | TextField::Body => {
                    self.with_words(field)?;
                }
            }
        }
        Ok(self.found.finish())
    }

    /// Documents with a word in a field of texts, by the number of its words that relevance needs.
    fn with_words(&mut self, field: Field) -> Result<()> {
        let lengths = self.segment.reader.get_fieldnorms_reader(field)?;
        let mut block = Vec::with_capacity(DOCS_PER_DEADLINE_CHECK);
        for doc in 0..self.segment.max_doc() {
            if lengths.fieldnorm_id(doc) > 0 {
                block.push(doc);
            }
            if block.len() == DOCS_PER_DEADLINE_CHECK {
                self.found.add(&block);
                self.check_deadline(block.len())?;
                block.clear();
            }
        }
        self.found.add(&block);
        Ok(())
    }

    /// The documents with one of `terms`, each as it is spelled in `field`.
    pub(crate) fn any_of<'b>(
        mut self,
        field: Field,
        terms: impl IntoIterator<Item = &'b str>,
    ) -> Result<RoaringBitmap> {
        for term in terms {
            self.term(field, term)?;
        }
        Ok(self.found.finish())
    }

    fn terms(&self, field: Field) -> Result<Arc<InvertedIndexReader>> {
        Ok(self.segment.reader.inverted_index(field)?)
    }

    fn term(&mut self, field: Field, text: &str) -> Result<()> {
        let terms = self.terms(field)?;
        let info = terms.get_term_info(&Term::from_field_text(field, text))?;
        if let Some(info) = info {
            self.postings(&terms, &info)?;
        }
        Ok(())
    }

    fn prefix(&mut self, field: Field, start: &str) -> Result<()> {
        let terms = self.terms(field)?;
        let mut range = terms.terms().range().ge(start.as_bytes()).into_stream()?;
        while range.advance() {
            if !range.key().starts_with(start.as_bytes()) {
                break;
            }
            self.postings(&terms, range.value())?;
            self.check_deadline(64)?;
        }
        Ok(())
    }

    fn postings(
        &mut self,
        terms: &InvertedIndexReader,
        info: &tantivy::postings::TermInfo,
    ) -> Result<()> {
        let option = IndexRecordOption::Basic;
        let mut blocks = terms.read_block_postings_from_terminfo(info, option)?;
        while !blocks.docs().is_empty() {
            self.found.add(blocks.docs());
            self.check_deadline(blocks.docs().len())?;
            blocks.advance();
        }
        Ok(())
    }

    fn phrase(&mut self, field: Field, phrase: &[String], prefix: bool) -> Result<()> {
        let scoring = EnableScoring::disabled_from_searcher(&self.snapshot.searcher);
        let weight = if prefix {
            // Terms have letters, digits, marks and `=`, so each but the last stands for itself.
            let mut patterns = phrase.to_vec();
            if let Some(last) = patterns.last_mut() {
                last.push_str(".*");
            }
            let mut query = RegexPhraseQuery::new(field, patterns);
            query.set_max_expansions(u32::MAX);
            query.weight(scoring)?
        } else {
            let terms = phrase.iter().map(|word| Term::from_field_text(field, word)).collect();
            PhraseQuery::new(terms).weight(scoring)?
        };
        let mut docs = weight.scorer(&self.segment.reader, 1.0)?;
        let mut block = Vec::with_capacity(128);
        while docs.doc() != TERMINATED {
            block.push(docs.doc());
            if block.len() == 128 {
                self.found.add(&block);
                self.check_deadline(DOCS_PER_DEADLINE_CHECK)?;
                block.clear();
            }
            docs.advance();
        }
        self.found.add(&block);
        Ok(())
    }

    /// Counts documents that were looked at; fails when the time is over.
    fn check_deadline(&mut self, docs: usize) -> Result<()> {
        self.docs_since_check += docs;
        if self.docs_since_check < DOCS_PER_DEADLINE_CHECK {
            return Ok(());
        }
        self.docs_since_check = 0;
        if (self.is_over)() { Err(IndexError::TimedOut) } else { Ok(()) }
    }
}
