//! The item catalog: an in-memory cache, in front of the database, of the items that media URLs refer to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::media::cache_keys::CacheKeys;
use crate::media::plan::PlannedRendition;
use crate::media::rights::EffectiveRights;
use crate::media::texts::{ItemText, WrittenText};
use crate::runtime::error::{Error, Result};
use crate::storage::database::{Db, StoredItem};
use metadata::{Caption, RightsMetadata};
use model::item::{Asset, AssetGroup, Document, MediaLinks, RightsLayers, RightsStatements};
use model::{AssociationKey, ContentHash, ItemKey, RenditionExtension, RenditionName};

/// Items cached in memory; one takes a few kB.
const ITEMS_CACHED_MAX: u64 = 20_000;

/// An item in memory.
#[derive(Debug)]
pub struct CatalogEntry {
    pub key: ItemKey,
    pub document: Document,
    pub assets: Vec<Asset>,
    /// The end of the embargo, if there is one.
    pub embargoed: Option<Timestamp>,
    /// The time when this version was stored.
    pub stored: Timestamp,
    uri: String,
    /// The rights statements of the settings, for all items.
    settings_rights: Arc<RightsMetadata>,
    /// The rights statements that were set for this item.
    set_rights: RightsMetadata,
    computed: ComputedParts,
    /// Plans of the renditions without operations.
    plans: RwLock<HashMap<(RenditionName, RenditionExtension), Arc<PlannedRendition>>>,
    /// The documents as served.
    texts: RwLock<HashMap<ItemText, WrittenText>>,
}

/// The parts of an entry that are computed on first use.
#[derive(Debug, Default)]
struct ComputedParts {
    rights: OnceLock<Arc<EffectiveRights>>,
    /// The rights in the associated objects that have files.
    associated_rights: OnceLock<BTreeMap<AssociationKey, Arc<EffectiveRights>>>,
    caption: OnceLock<(Caption, ContentHash)>,
    credits_hash: OnceLock<ContentHash>,
    keys: OnceLock<CacheKeys>,
}

impl CatalogEntry {
    pub(super) fn new(
        key: ItemKey,
        item: StoredItem,
        uri: String,
        settings_rights: Arc<RightsMetadata>,
    ) -> Result<Self> {
        let document = Document::from_stored(&item.document)
            .map_err(|cause| Error::internal(format!("item {key}: {cause}")))?;
        let StoredItem { document: _, assets, embargoed, stored, order_time: _, rights } = item;
        Ok(Self {
            key,
            document,
            assets,
            embargoed,
            stored,
            uri,
            settings_rights,
            set_rights: rights,
            computed: ComputedParts::default(),
            plans: RwLock::default(),
            texts: RwLock::default(),
        })
    }

    /// Returns whether the item is under embargo at `now`.
    pub fn is_embargoed(&self, now: Timestamp) -> bool {
        self.embargoed.is_some_and(|until| until > now)
    }

    /// Returns whether both are the same version of an item.
    pub(super) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        // Usually the entry is still cached. The documents are compared only after an eviction.
        Arc::ptr_eq(self, other)
            || (self.stored == other.stored
                && self.embargoed == other.embargoed
                && self.assets == other.assets
                && self.set_rights == other.set_rights
                && self.document == other.document)
    }

    /// Returns the surrogate keys of an answer that contains only this item.
    pub(super) fn cache_keys(&self) -> &CacheKeys {
        self.computed.keys.get_or_init(|| CacheKeys::new(&self.key, []))
    }

    /// Returns the surrogate keys of an answer that shows this item at the URL of the item `named`.
    pub(super) fn cache_keys_within(&self, named: &ItemKey) -> CacheKeys {
        if self.key == *named {
            self.cache_keys().clone()
        } else {
            CacheKeys::new(named, [&self.key])
        }
    }

    /// Returns the caption that is embedded in renditions, and its hash.
    pub fn caption(&self) -> &(Caption, ContentHash) {
        self.computed.caption.get_or_init(|| {
            captioned(&self.document, &self.uri, &self.effective_rights(None).stated)
        })
    }

    /// Returns the caption of a rendition of the item, or of one of its associated objects: the photographer there
    /// is not the author of the text.
    pub fn caption_of(
        &self,
        association: Option<&AssociationKey>,
    ) -> Cow<'_, (Caption, ContentHash)> {
        let document = association.and_then(|key| self.document.of_association(key));
        match document {
            None => Cow::Borrowed(self.caption()),
            Some(document) => {
                let uri = document.text("uri").unwrap_or(&self.uri).to_owned();
                Cow::Owned(captioned(&document, &uri, &self.effective_rights(association).stated))
            }
        }
    }

    /// Returns the hash of the credits in the caption, which are all that small renditions carry of it.
    ///
    /// Computed on first use for the item itself, because every request for a small size plans it.
    pub(super) fn credits_hash(&self, association: Option<&AssociationKey>) -> ContentHash {
        if association.is_some() {
            return hash_of(&self.caption_of(association).0.credits());
        }
        *self.computed.credits_hash.get_or_init(|| hash_of(&self.caption().0.credits()))
    }

    /// Returns the rights and provenance of the picture of the item or of an associated object, with the hashes
    /// that plans need. For each property, the statement of the operator precedes the source's, and both precede
    /// the original's.
    ///
    /// Computed on first use, because the plan of every rendition needs them.
    pub(super) fn effective_rights(
        &self,
        association: Option<&AssociationKey>,
    ) -> Arc<EffectiveRights> {
        let Some(key) = association else {
            let rights = self.computed.rights.get_or_init(|| {
                Arc::new(EffectiveRights::from_layers(RightsLayers {
                    files: self.files(None),
                    default_rights: &self.settings_rights,
                    rights_override: &self.set_rights,
                }))
            });
            return Arc::clone(rights);
        };
        let with_files = self.computed.associated_rights.get_or_init(|| {
            let keys = self.associations_with_files().into_iter();
            keys.map(|key| (key.clone(), self.association_rights(key))).collect()
        });
        with_files.get(key).map_or_else(|| self.association_rights(key), Arc::clone)
    }

    /// Determines the rights of an associated object.
    fn association_rights(&self, key: &AssociationKey) -> Arc<EffectiveRights> {
        Arc::new(EffectiveRights::from_layers(RightsLayers {
            files: self.files(Some(key)),
            default_rights: &self.settings_rights,
            // Rights that were set for a text do not apply to the photographs in it.
            rights_override: &RightsMetadata::default(),
        }))
    }

    /// Returns the statements about the rights in the item, except those that its files contain.
    pub(super) fn rights_statements(&self) -> RightsStatements<'_> {
        RightsStatements {
            default_rights: &self.settings_rights,
            rights_override: &self.set_rights,
        }
    }

    /// Returns the files of the item itself, or of one of its associated objects.
    pub(super) fn files<'a>(&'a self, association: Option<&'a AssociationKey>) -> AssetGroup<'a> {
        AssetGroup::new(&self.assets, association)
    }

    /// Lists the associated objects whose files came with the item.
    pub(super) fn associations_with_files(&self) -> BTreeSet<&AssociationKey> {
        self.assets.iter().filter_map(|asset| asset.association.as_ref()).collect()
    }

    /// Returns the plan of the rendition `name` without operations, computed by `make` on first use.
    ///
    /// Neither an entry nor the settings ever change, so the plan stays valid.
    pub(super) fn plan(
        &self,
        name: RenditionName,
        extension: RenditionExtension,
        make: impl FnOnce() -> Result<PlannedRendition>,
    ) -> Result<Arc<PlannedRendition>> {
        find_or_make(&self.plans, (name, extension), || make().map(Arc::new))
    }

    /// Returns the document as served, written by `write` on first use. All except the text formats are cached.
    pub(super) fn text(
        &self,
        text: ItemText,
        write: impl FnOnce() -> Result<Bytes>,
    ) -> Result<WrittenText> {
        match text {
            ItemText::Json | ItemText::Newsml(_) | ItemText::Metadata | ItemText::Ninjs => {
                find_or_make(&self.texts, text, || write().map(WrittenText::new))
            }
            ItemText::Cutpaste | ItemText::Indesign => write().map(WrittenText::new),
        }
    }
}

/// Returns the value of `key` in `values`, made on first use. Concurrent requests may each make it; one result is
/// stored.
fn find_or_make<K: Eq + Hash, V: Clone>(
    values: &RwLock<HashMap<K, V>>,
    key: K,
    make: impl FnOnce() -> Result<V>,
) -> Result<V> {
    if let Some(value) = values.read().get(&key) {
        return Ok(value.clone());
    }
    let value = make()?;
    Ok(values.write().entry(key).or_insert(value).clone())
}

fn captioned(document: &Document, uri: &str, stated: &RightsMetadata) -> (Caption, ContentHash) {
    let mut caption = formats::caption::from_document(document, uri);
    caption.yield_to(stated);
    let hash = hash_of(&caption);
    (caption, hash)
}

/// Returns the hash of a caption. It is part of the plan, so that a changed caption renders the file again.
fn hash_of(caption: &Caption) -> ContentHash {
    ContentHash::new(&serde_json::to_vec(caption).unwrap_or_default())
}

/// A cache of items in front of the database.
pub(super) struct ItemCatalog {
    db: Db,
    links: MediaLinks,
    /// The rights statements of the settings, for all items.
    rights: Arc<RightsMetadata>,
    entries: moka::sync::Cache<ItemKey, Arc<CatalogEntry>>,
    /// Counts invalidations, so that a concurrent reader can detect that the version it read may be outdated.
    changes: AtomicU64,
}

impl ItemCatalog {
    pub(super) fn new(db: Db, links: MediaLinks, rights: Arc<RightsMetadata>) -> Self {
        let entries = moka::sync::Cache::new(ITEMS_CACHED_MAX);
        Self { db, links, rights, entries, changes: AtomicU64::new(0) }
    }

    /// Invalidates the entries of `keys`.
    pub(super) fn invalidate(&self, keys: &[ItemKey]) {
        // Counted first: a reader that inserts after the removal below must notice the change.
        self.changes.fetch_add(1, Ordering::SeqCst);
        for key in keys {
            self.entries.invalidate(key);
        }
    }

    /// Invalidates the entries of all items.
    pub(super) fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.entries.invalidate_all();
    }

    /// Returns the entry of `key` if it is in memory.
    pub(super) fn find_in_memory(&self, key: &ItemKey) -> Option<Arc<CatalogEntry>> {
        self.entries.get(key)
    }

    pub(super) async fn find(&self, key: &ItemKey) -> Result<Option<Arc<CatalogEntry>>> {
        if let Some(entry) = self.find_in_memory(key) {
            return Ok(Some(entry));
        }
        let changes_before = self.changes.load(Ordering::SeqCst);
        let lookup_key = key.clone();
        let Some(item) = self.db.read(move |tx| tx.find_item(&lookup_key)).await? else {
            return Ok(None);
        };
        let uri = self.links.item(key);
        let rights = Arc::clone(&self.rights);
        let entry = Arc::new(CatalogEntry::new(key.clone(), item, uri, rights)?);
        self.entries.insert(key.clone(), Arc::clone(&entry));
        // A change that arrived during the read may have invalidated the key before the insert, so invalidate it
        // again.
        if self.changes.load(Ordering::SeqCst) != changes_before {
            self.entries.invalidate(key);
        }
        Ok(Some(entry))
    }
}
