//! Adds and removes versions of items, and commits the changes.

use model::ItemKey;
use model::item::PubStatus;
use query::IndexedDocument;
use serde::{Deserialize, Serialize};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{TantivyDocument, Term};

use crate::error::Result;
use crate::near;
use crate::schema::SchemaFields;
use crate::stems::DocumentStemmer;

/// The number and memory of the threads that write documents into segments.
#[derive(Clone, Copy)]
pub(crate) struct SegmentThreads {
    count: usize,
    /// Memory per thread in bytes. A segment is written when this memory is full. The engine requires at least 15
    /// MB.
    memory_bytes: usize,
}

/// The configuration for adding a few items at a time: a single thread writes one segment per commit.
pub(crate) const FOLLOWING: SegmentThreads = SegmentThreads { count: 1, memory_bytes: 64 << 20 };
/// The configuration for building an index. Larger segments are merged less often.
pub(crate) const BUILDING: SegmentThreads = SegmentThreads { count: 2, memory_bytes: 128 << 20 };
/// The number of threads that can add items concurrently.
const ADDERS: usize = 2;
/// The size range of segments that are merged together, as a power of two: the largest is at most this many times
/// as large as the smallest. It makes merges of small commits small. The engine's default counts all segments
/// below 10,000 documents as the same size and rewrites them with every eighth commit.
const LAYER_LOG2: f64 = 2.5;
/// The number of documents up to which all segments count as the same size.
const LAYER_DOCUMENTS: u32 = 64;
/// The share of removed documents at which a segment is rewritten. The engine's default never rewrites a segment
/// for this reason.
const REMOVED_SHARE_MAX: f32 = 0.2;

/// A version of an item with the properties that search needs.
#[derive(Clone, Copy, Debug)]
pub struct ItemVersion<'a> {
    /// The number of the version, unique within the archive at any time.
    pub number: u32,
    pub key: &'a ItemKey,
    /// Time at which the version was stored, milliseconds since 1970.
    pub stored_ms: i64,
    pub status: PubStatus,
    /// `_tstamp`, milliseconds since 1970.
    pub order_ms: i64,
    /// End of the embargo that hides the item, milliseconds since 1970.
    pub embargoed_ms: Option<i64>,
    /// The searchable content of the document.
    pub indexed: &'a IndexedDocument,
}

/// The archive of an index, and the position in its item log up to which the index is complete. It is part of each
/// commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitPosition {
    /// The archive's random id.
    pub archive: String,
    /// The version of the analysis; an index with a different version is unusable.
    pub analysis: u32,
    /// The row of the item log up to which the index is complete.
    pub row: i64,
    /// Distinguishes the row from a different row with the same number, since numbers are reused after a restore
    /// or a failover that lost rows.
    pub digest: String,
    /// Identifies the settings that the analysis depended on. An index that was built with different settings
    /// still answers until an index with the present settings is built.
    #[serde(default)]
    pub settings: String,
}

/// Hashes the item `key` and the time at which a version of it was stored, with FNV-1a (64 bits).
///
/// The hash distinguishes versions with the same number, which occur if the database lost rows.
pub fn stamp(key: &str, stored_ms: i64) -> u64 {
    // Stamps are stored in the index, and the standard library may change its hashers.
    let bytes = key.bytes().chain(stored_ms.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The only writer of an index.
pub struct IndexWriter {
    engine: tantivy::IndexWriter,
    fields: SchemaFields,
    /// The stemmers, one per adder.
    stemmers: [DocumentStemmer; ADDERS],
}

/// Adds items on one thread, concurrently with other adders.
pub struct VersionAdder<'a> {
    engine: &'a tantivy::IndexWriter,
    fields: &'a SchemaFields,
    stemmer: &'a mut DocumentStemmer,
}

impl IndexWriter {
    /// Acquires the lock of the index folder. Fails while another writer holds it.
    pub(crate) fn new(
        index: &tantivy::Index,
        fields: SchemaFields,
        threads: SegmentThreads,
    ) -> Result<Self> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads.count)
            .num_merge_threads(1)
            .memory_budget_per_thread(threads.memory_bytes)
            .build();
        let engine: tantivy::IndexWriter = index.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        policy.set_del_docs_ratio_before_merge(REMOVED_SHARE_MAX);
        policy.set_level_log_size(LAYER_LOG2);
        policy.set_min_layer_size(LAYER_DOCUMENTS);
        engine.set_merge_policy(Box::new(policy));
        Ok(Self { engine, fields, stemmers: Default::default() })
    }

    /// Returns the adders, each for one thread.
    pub fn adders(&mut self) -> [VersionAdder<'_>; ADDERS] {
        let engine = &self.engine;
        let fields = &self.fields;
        self.stemmers.each_mut().map(|stemmer| VersionAdder { engine, fields, stemmer })
    }

    /// Adds a version on the calling thread.
    pub fn add(&mut self, item: &ItemVersion<'_>) -> Result<()> {
        // Always the same adder, so that the cache of its stemmer is used.
        let [mut adder, ..] = self.adders();
        adder.add(item)
    }

    /// Removes the version `number`, if it exists.
    pub fn remove(&mut self, number: u32) {
        self.engine.delete_term(Term::from_field_u64(self.fields.number, u64::from(number)));
    }

    /// Makes all changes up to `position` durable and available to the next refresh.
    pub fn commit(&mut self, position: &CommitPosition) -> Result<()> {
        let payload = serde_json::to_string(position).map_err(std::io::Error::other)?;
        // The position is part of the commit, so neither is ever visible without the other.
        let mut commit = self.engine.prepare_commit()?;
        commit.set_payload(&payload);
        commit.commit()?;
        Ok(())
    }

    /// Waits for running merges of segments, then closes the writer.
    pub fn finish(self) -> Result<()> {
        Ok(self.engine.wait_merging_threads()?)
    }
}

impl VersionAdder<'_> {
    /// Adds a version to the index.
    pub fn add(&mut self, item: &ItemVersion<'_>) -> Result<()> {
        let mut document = TantivyDocument::default();
        let fields = self.fields;
        document.add_u64(fields.number, u64::from(item.number));
        document.add_i64(fields.order, item.order_ms);
        if let Some(until) = item.embargoed_ms {
            document.add_i64(fields.embargoed, until);
        }
        document.add_u64(fields.stamp, stamp(&item.key.to_string(), item.stored_ms));
        document.add_text(fields.media_type, item.key.media_type.as_str());
        document.add_text(fields.status, item.status.as_str());
        let IndexedDocument { headline, description, body, rest, tags, .. } = item.indexed;
        let IndexedDocument { facets, dates, numbers, .. } = item.indexed;
        let texts = [
            (fields.headline, headline),
            (fields.description, description),
            (fields.body, body),
            (fields.rest, rest),
        ];
        for (field, text) in texts {
            if !text.is_empty() {
                document.add_text(field, text);
            }
        }
        let (properties, accents) = split_tags(tags);
        document.add_text(fields.properties, properties);
        if !accents.is_empty() {
            document.add_text(fields.accents, &accents);
        }
        document.add_text(fields.stems, self.stemmer.document_terms(item.indexed, &accents));
        // Milliseconds are the resolution of the index, in ranges and in the order of hits.
        for (date, at) in dates {
            let at_ms = at.as_millisecond();
            document.add_i64(fields.date(*date), at_ms);
        }
        for (field, number) in numbers {
            document.add_i64(fields.number_of(*field), number.key());
        }
        if let Some(hash) = item.indexed.picture_hash {
            document.add_u64(fields.picture_hash, hash.0);
            for term in near::terms(hash) {
                document.add_text(fields.picture_bands, term);
            }
        }
        for (field, values) in fields.facets.iter().zip(facets) {
            for value in values {
                document.add_text(*field, value);
            }
        }
        self.engine.add_document(document)?;
        Ok(())
    }
}

/// Splits tags into the words of properties, with the gaps between values, and the words with accents.
fn split_tags(tags: &str) -> (String, String) {
    // Tokens of properties have a single `=`.
    let (accents, properties): (Vec<&str>, Vec<&str>) =
        tags.split(' ').partition(|token| token.contains("=="));
    (properties.join(" "), accents.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words_of_properties_and_words_with_accents() {
        let tags = "ek=erik ek=berg . ek=anna ==ö ek==ö";
        let (properties, accents) = split_tags(tags);
        assert_eq!(properties, "ek=erik ek=berg . ek=anna");
        assert_eq!(accents, "==ö ek==ö");
    }
}
