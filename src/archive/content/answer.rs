//! Writes the text of answers from the results of a search.

use std::collections::{HashMap, HashSet, hash_map::Entry};
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::visibility::CallerVisibility;
use super::{DocumentForm, covers};
use crate::runtime::error::{Error, Result};
use crate::storage::database::{ReadTx, StoredItem};
use crate::storage::search::{Coverage, SearchHit, SearchResults};
use metadata::RightsMetadata;
use model::ItemKey;
use model::item::{
    Document, DocumentRequest, ItemPresence, PubStatus, RenditionSizes, RightsStatements,
};
use query::Facet;

/// Bytes of one response of the content API. Ten thousand ordinary documents take 30 MB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The initial capacity per document in bytes. The text grows as necessary.
const DOCUMENT_BYTES: usize = 4096;
/// The maximum initial capacity of a text in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Returns the answer to a poll that found nothing.
pub fn empty_answer() -> Bytes {
    Bytes::from_static(b"{\"hits\":[]}")
}

/// The answer to a request for items by name.
#[derive(Clone, Debug)]
pub struct ItemListing {
    /// The text of `{"hits": […]}`.
    pub text: Bytes,
    /// The number of hits in the text.
    pub hits: usize,
    /// The result for each item that was read, in the order of reading. Later items did not fit into the answer.
    pub read: Vec<ItemLookup>,
}

/// The result of reading one item by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemLookup {
    /// It is among the hits, with this version number.
    Found(i64),
    /// It was withdrawn, or is hidden from the reader.
    Hidden,
    /// Its newest version has not been matched against notifications yet. Delivering it now would deliver it
    /// twice, because the match follows shortly.
    Early,
}

/// Returns whether an item with this status is still delivered to a reader that waits for it. A replaced item is
/// delivered, because it would have been delivered a moment earlier.
fn is_listed(status: PubStatus) -> bool {
    matches!(status, PubStatus::Usable | PubStatus::Replaced)
}

/// Writes answers with documents in one form.
pub(super) struct AnswerWriter {
    pub(super) form: DocumentForm,
    pub(super) sizes: RenditionSizes,
    /// The default rights of every picture.
    pub(super) rights: Arc<RightsMetadata>,
}

impl AnswerWriter {
    /// Writes `{"hits": […], "total": n, "facets": {…}}` with the requested facets.
    pub(super) fn search_answer(
        &self,
        found: SearchResults,
        requested: &[Facet],
        tx: &ReadTx<'_>,
    ) -> Result<Bytes> {
        let SearchResults { total, hits, facets, seen: _ } = found;
        // Each hit is appended as text, because a JSON tree of all documents would need a multiple of the memory.
        let mut text = b"{\"hits\":".to_vec();
        self.write_hits(hits, tx, &mut text)?;
        text.extend_from_slice(format!(",\"total\":{total},\"facets\":").as_bytes());
        serde_json::to_writer(&mut text, &facets_of(requested, facets))
            .map_err(Error::internal)?;
        text.push(b'}');
        Ok(text.into())
    }

    /// Writes the hits as a list `[…]`.
    pub(super) fn hit_list(&self, found: SearchResults, tx: &ReadTx<'_>) -> Result<Bytes> {
        let mut text = Vec::new();
        self.write_hits(found.hits, tx, &mut text)?;
        Ok(text.into())
    }

    /// Writes `{"hits": […]}`; `None` without a hit.
    pub(super) fn first_hit(
        &self,
        found: SearchResults,
        tx: &ReadTx<'_>,
    ) -> Result<Option<Bytes>> {
        if found.hits.is_empty() {
            return Ok(None);
        }
        let mut text = b"{\"hits\":".to_vec();
        self.write_hits(found.hits, tx, &mut text)?;
        text.push(b'}');
        Ok(Some(text.into()))
    }

    /// Writes `{"hits": […]}` with the items of `keys` that are visible at `now`, in the order of `keys`. Stops
    /// when the answer is full, but includes at least one item.
    pub(super) fn listed_items(
        &self,
        keys: &[ItemKey],
        coverage: &Coverage,
        now: Timestamp,
        tx: &ReadTx<'_>,
    ) -> Result<ItemListing> {
        let mut listed = ItemListing { text: empty_answer(), hits: 0, read: Vec::new() };
        let mut text = b"{\"hits\":[".to_vec();
        let mut linked = LinkedItems { tx, cached: HashMap::new() };
        let matched = tx.matched_seq()?;
        for key in keys {
            let Some((version, item)) = tx.find_version(key)? else {
                listed.read.push(ItemLookup::Hidden);
                continue;
            };
            if version > matched && tx.is_newly_indexed_after(version, matched)? {
                listed.read.push(ItemLookup::Early);
                continue;
            }
            let hidden = item.embargoed.is_some_and(|until| until > now);
            let document = Document::from_stored(&item.document);
            // A damaged document counts as hidden, so that it does not block the reader's queue.
            let seen = document.is_ok_and(|document| {
                is_listed(document.pub_status()) && covers(coverage, &document)
            });
            if hidden || !seen {
                listed.read.push(ItemLookup::Hidden);
                continue;
            }
            let before = text.len();
            if listed.hits > 0 {
                text.push(b',');
            }
            let document = self.document(SearchHit { key: key.clone(), item }, &mut linked)?;
            serde_json::to_writer(&mut text, &document).map_err(Error::internal)?;
            // The first item is included regardless of its length, so that a reader always makes progress.
            if text.len() > ANSWER_BYTES_MAX && listed.hits > 0 {
                text.truncate(before);
                break;
            }
            listed.hits += 1;
            listed.read.push(ItemLookup::Found(version));
        }
        text.extend_from_slice(b"]}");
        listed.text = text.into();
        Ok(listed)
    }

    /// Writes a list `[…]` of the items in `keys` that `visibility` shows, in the order of `keys`. Stops when the
    /// answer is full.
    pub(super) fn visible_list(
        &self,
        keys: &[ItemKey],
        visibility: &CallerVisibility,
        tx: &ReadTx<'_>,
    ) -> Result<Bytes> {
        let mut text = b"[".to_vec();
        let mut linked = LinkedItems { tx, cached: HashMap::new() };
        for key in keys {
            let Some(item) = tx.find_item(key)?.filter(|item| visibility.shows(item)) else {
                continue;
            };
            let before = text.len();
            if before > 1 {
                text.push(b',');
            }
            let document = self.document(SearchHit { key: key.clone(), item }, &mut linked)?;
            serde_json::to_writer(&mut text, &document).map_err(Error::internal)?;
            if text.len() > ANSWER_BYTES_MAX {
                text.truncate(before);
                break;
            }
        }
        text.push(b']');
        Ok(text.into())
    }

    fn write_hits(&self, hits: Vec<SearchHit>, tx: &ReadTx<'_>, text: &mut Vec<u8>) -> Result<()> {
        text.reserve(hits.len().saturating_mul(DOCUMENT_BYTES).min(TEXT_BYTES_MAX));
        text.push(b'[');
        let mut linked = LinkedItems { tx, cached: HashMap::new() };
        for (index, hit) in hits.into_iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let document = self.document(hit, &mut linked)?;
            serde_json::to_writer(&mut *text, &document).map_err(Error::internal)?;
            if text.len() > ANSWER_BYTES_MAX {
                // The client chose the size of the page, so the error names its parameter.
                let message = format!("the answer has more than {ANSWER_BYTES_MAX} bytes");
                return Err(Error::invalid("query", "s", "maximum", message));
            }
        }
        text.push(b']');
        Ok(())
    }

    /// Returns the document of one hit as it is served.
    fn document(&self, hit: SearchHit, linked: &mut LinkedItems<'_>) -> Result<Value> {
        let SearchHit { key, item: StoredItem { document, assets, rights: item, .. } } = hit;
        let document = Document::from_stored(&document)
            .map_err(|cause| Error::internal(format!("item {key}: {cause}")))?;
        let DocumentForm { layout, links } = &self.form;
        // The closure below cannot report a database error, so all items are looked up first.
        linked.look_up(document.linked_items(*layout))?;
        let rights = RightsStatements { default_rights: &self.rights, rights_override: &item };
        let served = DocumentRequest {
            key: &key,
            assets: &assets,
            sizes: self.sizes,
            crop: None,
            layout: *layout,
            rights: Some(rights),
            with_file_rights: true,
        };
        served.document(document, links, &|key| linked.presence(key)).map_err(Error::internal)
    }
}

/// The presence of items that documents refer to, each looked up once per answer.
struct LinkedItems<'a> {
    tx: &'a ReadTx<'a>,
    cached: HashMap<ItemKey, ItemPresence>,
}

impl LinkedItems<'_> {
    /// Looks up the items of `keys` that are not cached yet.
    fn look_up(&mut self, keys: HashSet<ItemKey>) -> Result<()> {
        for key in keys {
            if let Entry::Vacant(vacant) = self.cached.entry(key) {
                let presence = self.tx.find_held(vacant.key())?;
                vacant.insert(presence);
            }
        }
        Ok(())
    }

    fn presence(&self, key: &ItemKey) -> ItemPresence {
        self.cached.get(key).copied().unwrap_or(ItemPresence::Absent)
    }
}

/// Returns exactly the requested facets, in their order.
fn facets_of(requested: &[Facet], mut found: Vec<(Facet, Vec<(String, u64)>)>) -> Value {
    let mut facets = Map::new();
    for facet in requested {
        let index = found.iter().position(|(counted, _)| counted == facet);
        // The answer follows the order of the request, so `found` may be reordered.
        let counted = index.map(|index| found.swap_remove(index).1).unwrap_or_default();
        let mut values = Vec::with_capacity(counted.len());
        for (key, count) in counted {
            values.push(serde_json::json!({ "key": key, "count": count }));
        }
        facets.insert(facet.as_str().to_owned(), Value::Array(values));
    }
    Value::Object(facets)
}
