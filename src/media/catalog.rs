//! Items kept in memory: what a media URL needs to know without asking the database.

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::RwLock;

use crate::media::cache_keys::CacheKeys;
use crate::media::links::UrlLinks;
use crate::media::plan::PlannedRendition;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::ITEMS_CACHED_MAX;
use crate::storage::database::{Db, StoredItem};
use metadata::Caption;
use model::item::{Asset, Document, MediaLinks};
use model::media_url::DocumentExtension;
use model::{AssociationKey, ContentHash, ItemKey, RenditionName};

/// An item in memory.
#[derive(Debug)]
pub struct CatalogEntry {
    /// Its identity.
    pub key: ItemKey,
    /// Its document.
    pub document: Document,
    /// Its files.
    pub assets: Vec<Asset>,
    /// Until when it is hidden.
    pub embargoed: Option<Timestamp>,
    /// When this version was stored.
    pub stored: Timestamp,
    uri: String,
    caption: OnceLock<(Caption, ContentHash)>,
    json: OnceLock<Bytes>,
    xml: OnceLock<Bytes>,
    keys: OnceLock<CacheKeys>,
    /// Plans of the renditions that every item has; at most one for each name.
    plans: RwLock<Vec<(RenditionName, Arc<PlannedRendition>)>>,
}

impl CatalogEntry {
    fn new(key: ItemKey, item: StoredItem, uri: String) -> Result<Self> {
        let document = Document::from_stored(&item.document)
            .map_err(|cause| Error::internal(format!("item {key}: {cause}")))?;
        let StoredItem { document: _, assets, embargoed, stored, order_time: _ } = item;
        let (caption, json, xml) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (keys, plans) = (OnceLock::new(), RwLock::default());
        Ok(Self { key, document, assets, embargoed, stored, uri, caption, json, xml, keys, plans })
    }

    /// Whether the item is hidden at `now`.
    #[must_use]
    pub fn is_embargoed(&self, now: Timestamp) -> bool {
        self.embargoed.is_some_and(|until| until > now)
    }

    /// Whether both are the same version of an item.
    pub(super) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || (self.stored == other.stored
                && self.embargoed == other.embargoed
                && self.assets == other.assets
                && self.document == other.document)
    }

    /// The keys that a CDN keeps what shows this item alone under.
    pub(super) fn cache_keys(&self) -> &CacheKeys {
        self.keys.get_or_init(|| CacheKeys::of(&self.key, []))
    }

    /// The keys of what shows this item at the address of the item `named`.
    pub(super) fn cache_keys_within(&self, named: &ItemKey) -> CacheKeys {
        match self.key == *named {
            true => self.cache_keys().clone(),
            false => CacheKeys::of(named, [&self.key]),
        }
    }

    /// The caption that renditions carry, and a hash of it.
    pub fn caption(&self) -> &(Caption, ContentHash) {
        self.caption.get_or_init(|| captioned(&self.document, &self.uri))
    }

    /// The caption of what a rendition shows: of the item, or of one of its associated objects, whose
    /// photographer is not the writer of the text.
    pub fn caption_of(
        &self,
        association: Option<&AssociationKey>,
    ) -> Cow<'_, (Caption, ContentHash)> {
        let document = association.and_then(|key| self.document.of_association(key));
        match document {
            None => Cow::Borrowed(self.caption()),
            Some(document) => {
                let uri = document.text("uri").unwrap_or(&self.uri).to_owned();
                Cow::Owned(captioned(&document, &uri))
            }
        }
    }

    /// The plan of the rendition `name` without operations, made by `make` the first time.
    ///
    /// An entry never changes and the settings neither, so the plan stays what it is.
    pub(super) fn plan(
        &self,
        name: RenditionName,
        make: impl FnOnce() -> Result<PlannedRendition>,
    ) -> Result<Arc<PlannedRendition>> {
        let plans = self.plans.read();
        if let Some((_, planned)) = plans.iter().find(|(known, _)| *known == name) {
            return Ok(Arc::clone(planned));
        }
        drop(plans);
        let planned = Arc::new(make()?);
        let mut plans = self.plans.write();
        if !plans.iter().any(|(known, _)| *known == name) {
            plans.push((name, Arc::clone(&planned)));
        }
        Ok(planned)
    }

    /// The document's text as served, as `.json` or as `.xml`, made by `make` the first time.
    pub(super) fn text(
        &self,
        extension: DocumentExtension,
        make: impl FnOnce() -> Result<Bytes>,
    ) -> Result<Bytes> {
        let kept = match extension {
            DocumentExtension::Json => &self.json,
            DocumentExtension::Xml => &self.xml,
            DocumentExtension::Zip | DocumentExtension::Cutpaste | DocumentExtension::Indesign => {
                return make();
            }
        };
        if let Some(text) = kept.get() {
            return Ok(text.clone());
        }
        let text = make()?;
        Ok(kept.get_or_init(|| text).clone())
    }
}

fn captioned(document: &Document, uri: &str) -> (Caption, ContentHash) {
    let caption = formats::caption::from_document(document, uri);
    let text = serde_json::to_vec(&caption).unwrap_or_default();
    (caption, ContentHash::of(&text))
}

/// The items in memory in front of the database.
pub(super) struct ItemCatalog {
    db: Db,
    links: UrlLinks,
    entries: moka::sync::Cache<ItemKey, Arc<CatalogEntry>>,
    /// Counts the changes that were followed; tells a reader that what it read may be old.
    changes: AtomicU64,
}

impl ItemCatalog {
    pub(super) fn new(db: Db, links: UrlLinks) -> Self {
        let entries = moka::sync::Cache::new(ITEMS_CACHED_MAX);
        Self { db, links, entries, changes: AtomicU64::new(0) }
    }

    /// Forgets `keys`.
    pub(super) fn invalidate(&self, keys: &[ItemKey]) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        for key in keys {
            self.entries.invalidate(key);
        }
    }

    /// Forgets all items.
    pub(super) fn invalidate_all(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.entries.invalidate_all();
    }

    pub(super) async fn find(&self, key: &ItemKey) -> Result<Option<Arc<CatalogEntry>>> {
        if let Some(entry) = self.entries.get(key) {
            return Ok(Some(entry));
        }
        let before = self.changes.load(Ordering::SeqCst);
        let wanted = key.clone();
        let Some(item) = self.db.read(move |tx| tx.find_item(&wanted)).await? else {
            return Ok(None);
        };
        let entry = Arc::new(CatalogEntry::new(key.clone(), item, self.links.item(key))?);
        self.entries.insert(key.clone(), Arc::clone(&entry));
        // A change that was followed while we read may have hit before our insert.
        if self.changes.load(Ordering::SeqCst) != before {
            self.entries.invalidate(key);
        }
        Ok(Some(entry))
    }
}
