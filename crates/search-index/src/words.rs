//! Finds the documents of a segment that contain a word, a phrase or a prefix.

use std::sync::Arc;

use query::{TextField, WordPattern, property_token_prefix};
use roaring::RoaringBitmap;
use tantivy::query::{EnableScoring, PhraseQuery, Query as _, RegexPhraseQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, InvertedIndexReader, TERMINATED, Term};

use crate::error::{DeadlineCheck, Result, ensure_time};
use crate::index::IndexSnapshot;
use crate::schema::SchemaFields;
use crate::segment::IndexSegment;
use crate::sets::SetBuilder;

/// The number of documents between two deadline checks.
const DOCS_PER_DEADLINE_CHECK: usize = 4096;

/// Returns the index fields with the words of a text field.
pub(crate) fn fields_of(fields: &SchemaFields, text_field: TextField) -> Vec<Field> {
    match text_field {
        TextField::Anywhere => vec![fields.headline, fields.description, fields.body, fields.rest],
        TextField::Headline => vec![fields.headline],
        TextField::Description => vec![fields.description],
        TextField::Body => vec![fields.body],
        TextField::Named(_) => vec![fields.properties],
    }
}

/// A lookup of terms in one segment, with the documents found so far.
pub(crate) struct TermLookup<'a> {
    snapshot: &'a IndexSnapshot,
    segment: &'a IndexSegment,
    is_over: DeadlineCheck<'a>,
    found: SetBuilder,
    /// The number of documents since the last deadline check.
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

    /// Finds the documents that contain `words`, possibly including removed ones.
    pub(crate) fn words(mut self, words: &WordPattern) -> Result<RoaringBitmap> {
        let snapshot = self.snapshot;
        let segment = self.segment;
        let is_over = self.is_over;
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
        // The phrase was found in its folded form; an accent in the query is significant (contract search-14).
        for accent in &tokens.exact {
            if found.is_empty() {
                break;
            }
            let lookup = TermLookup::new(snapshot, segment, is_over);
            found &= lookup.any_of(fields.accents, [accent.as_str()])?;
        }
        Ok(found)
    }

    /// Finds the documents with any word in a text field.
    pub(crate) fn present(mut self, text_field: TextField) -> Result<RoaringBitmap> {
        for field in fields_of(&self.snapshot.shared.fields, text_field) {
            if let TextField::Named(name) = text_field {
                // All properties share one field without norms, so the terms of this property are looked up.
                self.prefix(field, &property_token_prefix(name))?;
            } else {
                self.with_words(field)?;
            }
        }
        Ok(self.found.finish())
    }

    /// Finds the documents with a word in a field, by the field length that is stored for relevance.
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

    /// Finds the documents with at least one of `terms`, as spelled in `field`.
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
            // Terms are sorted, so all terms with the prefix follow each other.
            if !range.key().starts_with(start.as_bytes()) {
                break;
            }
            self.postings(&terms, range.value())?;
            // Each term counts as 64 documents: many rare terms must reach the next check, too.
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
            // Terms have only letters, digits, marks and `=`, so each is literal in a regular expression.
            let mut patterns = phrase.to_vec();
            if let Some(last) = patterns.last_mut() {
                last.push_str(".*");
            }
            let mut query = RegexPhraseQuery::new(field, patterns);
            // By default the engine refuses a phrase with many terms; here the deadline bounds the work.
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
                // The engine examines many documents for each hit, so every block is followed by a check.
                self.check_deadline(DOCS_PER_DEADLINE_CHECK)?;
                block.clear();
            }
            docs.advance();
        }
        self.found.add(&block);
        Ok(())
    }

    /// Counts examined documents, and fails if the time limit is exceeded.
    fn check_deadline(&mut self, docs: usize) -> Result<()> {
        self.docs_since_check += docs;
        if self.docs_since_check < DOCS_PER_DEADLINE_CHECK {
            return Ok(());
        }
        self.docs_since_check = 0;
        ensure_time(self.is_over)
    }
}
