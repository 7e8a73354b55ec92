//! The media section: from a media URL to bytes.
//!
//! [`Media::resolve`] finds the item, checks the caller's rights and plans the answer. It needs no pixels and
//! returns a [`MediaAnswer`] whose `ETag` is known. [`Media::obtain`] then reads the bytes from a cache or renders
//! them.
//!
//! An *open* resource needs no credentials: a caller who presents none, or credentials without the scope `roles`, may
//! have it as a *visitor*. Every other resource is either bought, or read under an agreement ([`access`]).

pub mod access;
mod answer;
mod bundle;
mod cache;
pub mod cache_keys;
mod catalog;
mod collect;
mod cost;
mod framing;
mod in_flight;
mod inputs;
mod make;
mod named_rendition;
pub mod original;
pub mod plan;
pub mod prerender;
mod quote;
mod rate_limit;
mod recipes;
mod render;
mod render_error;
mod renditions_document;
mod resize;
mod rights;
mod sets_in_flight;
mod settings;
pub mod standard;
mod stored_read;
mod stream;
#[cfg(test)]
mod test_plans;
mod texts;
mod timing;

use std::{borrow::Cow, path::Path, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

pub use access::MediaCaller;
pub use answer::{FileAnswer, MediaAnswer, PublicRendition, RenditionAnswer, Sale, TextAnswer};
use answer::{FileContent, stored_body};
pub use bundle::{BundleNames, BundleNaming, ExclusionCause};
pub(crate) use cache::check_files as check_cache;
pub use cache::{BlobExtent, BodyPart, RenditionBody};
pub use catalog::CatalogEntry;
pub use collect::{CollectedFile, DeliveryFiles, FileSelection};
use inputs::StoreReads;
pub use quote::{BundledQuote, ItemQuote, QuoteState};
pub use rate_limit::RenderPayer;
pub use render::{ObtainedRendition, RenditionSource};
pub use settings::{CrawlerPolicy, DecodeLimits, MediaSettings};
use texts::ItemText;
pub use timing::RenderTiming;

use crate::access::auth::Principal;
use crate::access::orders::{self, CoverageDecision, ItemFacts, Orders};
use crate::media::cache_keys::CacheKeys;
use crate::media::original::OriginalStore;
use crate::runtime::compute::ComputePool;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::FairSemaphore;
use crate::runtime::slots::{SlotLimits, WaitingSlots};
use api::orders::License;
use formats::NewsmlVersion;
use model::item::{Asset, MediaLinks};
use model::media_url::{DocumentExtension, DocumentFile, MediaPath, MediaTarget, RenditionFile};
use model::{ContentHash, ItemKey, ItemUri};

/// The state of the media section; cheap to clone.
#[derive(Clone)]
pub struct Media {
    inner: Arc<MediaState>,
}

struct MediaState {
    settings: MediaSettings,
    links: MediaLinks,
    catalog: catalog::ItemCatalog,
    orders: Orders,
    originals: OriginalStore,
    cache: cache::RenditionCache,
    in_flight: in_flight::InFlightRenders<render::RenderedBody>,
    /// Reads of stored renditions; `None` if the standard set has to be made first.
    reads_in_flight: in_flight::InFlightRenders<Option<render::RenderedBody>>,
    sets_in_flight: sets_in_flight::SetsInFlight,
    compute: ComputePool,
    /// Permits for AVIF encoders, which are many times slower than JPEG encoders.
    slow_encoders: FairSemaphore,
    store_reads: StoreReads,
    rate_limiter: rate_limit::RenderRateLimiter,
    /// Archives that are being packed. A slot is held until packing ends, even if the client has disconnected.
    archive_slots: WaitingSlots,
}

impl Media {
    /// Starts the section with the orders and their database, the originals, and a folder for the cache.
    ///
    /// Fails if the cache folder cannot be created.
    pub fn start(
        settings: MediaSettings,
        orders: Orders,
        originals: OriginalStore,
        compute: ComputePool,
        cache_dir: &Path,
    ) -> Result<Self> {
        let links = MediaLinks::new(settings.media_url.clone());
        let inner = MediaState {
            catalog: catalog::ItemCatalog::new(
                orders.db().clone(),
                links.clone(),
                Arc::clone(&settings.rights),
            ),
            links,
            orders,
            originals,
            cache: cache::RenditionCache::open(cache_dir, &settings.cache)?,
            in_flight: in_flight::InFlightRenders::default(),
            reads_in_flight: in_flight::InFlightRenders::default(),
            sets_in_flight: sets_in_flight::SetsInFlight::new(),
            // Half of the workers, so that slow renders never delay all others.
            slow_encoders: FairSemaphore::new(compute.workers() / 2, compute.places()),
            store_reads: StoreReads::new(
                settings.media.memory_bytes,
                settings.media.client_queue_share,
            ),
            compute,
            rate_limiter: rate_limit::RenderRateLimiter::new(
                settings.media.client_megapixels_s,
                settings.media.client_megapixels_burst,
            ),
            archive_slots: WaitingSlots::new(
                "archives",
                collect::CLIENT_ARCHIVES,
                SlotLimits {
                    all: settings.media.archives,
                    client: settings.media.client_archives,
                    known_share: 0.0,
                },
            ),
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Invalidates the cached entries of items that changed.
    pub fn item_changed(&self, keys: &[ItemKey]) {
        self.inner.catalog.invalidate(keys);
    }

    /// Invalidates all cached data about items and orders.
    pub fn invalidate_all(&self) {
        self.inner.catalog.invalidate_all();
        self.inner.orders.clear_cache();
    }

    /// Reports the sizes of the cache tiers to the metrics.
    pub fn report(&self) {
        self.inner.cache.report();
    }

    /// Returns whether the store can be reached and has room for standard renditions.
    pub async fn can_keep_renditions(&self) -> bool {
        let originals = self.inner.originals.clone();
        let checked = tokio::task::spawn_blocking(move || originals.check_usable());
        checked.await.is_ok_and(|outcome| outcome.is_ok())
    }

    /// Returns the settings that the section was started with.
    pub fn settings(&self) -> &MediaSettings {
        &self.inner.settings
    }

    /// Returns the writer of media URLs.
    pub fn links(&self) -> &MediaLinks {
        &self.inner.links
    }

    /// Loads the item `key`, if it is visible to `principal` at `now`.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no such item, it was withdrawn, or it is under embargo.
    pub async fn item(
        &self,
        key: &ItemKey,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<Arc<CatalogEntry>> {
        let entry = self.inner.catalog.find(key).await?;
        entry
            .filter(|entry| access::is_visible(entry, principal, now))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no item {key}")))
    }

    /// Returns whether a rendition that was public is public at `now`, and its item unchanged and in memory.
    pub fn is_public(&self, rendition: &PublicRendition, now: Timestamp) -> bool {
        let found = self.inner.catalog.find_in_memory(&rendition.key);
        // While the weak pointer exists, no other entry gets the same address.
        found.is_some_and(|found| {
            Arc::as_ptr(&found) == rendition.entry.as_ptr() && access::is_public(&found, now)
        })
    }

    /// Returns whether the items that an answer was built from are unchanged. Callers check this after they have
    /// waited for the bytes, and before they send or sell them. Reads the database only for items that were
    /// evicted from memory.
    pub async fn are_current(
        &self,
        sources: impl Iterator<Item = &Arc<CatalogEntry>>,
    ) -> Result<bool> {
        for entry in sources {
            let found = self.inner.catalog.find(&entry.key).await?;
            // Compared by content, because an entry that was evicted and loaded again is a different object.
            if !found.is_some_and(|found| found.is_same(entry)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the document of the item `key` as it is served, for the client that uploaded it. The item may be
    /// invisible to all callers, for example withdrawn.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no such item.
    pub async fn document_json(&self, key: &ItemKey) -> Result<Bytes> {
        let entry = self.inner.catalog.find(key).await?;
        let entry =
            entry.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no item {key}")))?;
        Ok(self.text(&entry, ItemText::Json, None, false).await?.body)
    }

    /// Decides which resource `path` refers to and whether `caller` may have it. Records no purchase.
    ///
    /// Fails with [`ErrorKind::Unauthenticated`] or with `insufficient_scope` for media that is not open, and with
    /// `agreement_required` for media that the caller may neither read nor buy.
    pub async fn resolve(&self, path: &MediaPath, caller: MediaCaller<'_>) -> Result<MediaAnswer> {
        self.resolve_newsml(path, self.inner.settings.media.newsml, caller).await
    }

    /// Resolves `path` as [`Media::resolve`] does, with `.xml` documents in the version `newsml` of NewsML-G2.
    pub async fn resolve_newsml(
        &self,
        path: &MediaPath,
        newsml: NewsmlVersion,
        caller: MediaCaller<'_>,
    ) -> Result<MediaAnswer> {
        match path.target() {
            MediaTarget::Item(crop) => {
                self.item(path.key(), caller.visitor(), caller.now).await?;
                Ok(MediaAnswer::Page(path.key().clone(), *crop))
            }
            MediaTarget::Pricelist => self.pricelist(path, caller).await.map(MediaAnswer::Text),
            MediaTarget::Document(file) if file.extension == DocumentExtension::Zip => {
                self.archive(path.key(), FileSelection::Default, caller).await
            }
            MediaTarget::Document(file) => {
                self.document(path, *file, newsml, caller).await.map(MediaAnswer::Text)
            }
            MediaTarget::Rendition(file) => {
                let entry = self.readable_entry(path, caller).await?;
                self.resolve_rendition(entry, path, file, caller).await
            }
        }
    }

    /// Writes the document `file` of the item in `path`.
    async fn document(
        &self,
        path: &MediaPath,
        file: DocumentFile,
        newsml: NewsmlVersion,
        caller: MediaCaller<'_>,
    ) -> Result<TextAnswer> {
        let entry = self.readable_entry(path, caller).await?;
        // An item under embargo is visible only to some callers, so no shared cache may store it.
        let open = access::is_open(path) && access::is_public(&entry, caller.now);
        if file.extension == DocumentExtension::Renditions {
            return self.renditions_document(&entry, path, open);
        }
        let text = ItemText::from_extension(file.extension, newsml);
        let text = text.filter(|text| text.is_available(entry.key.media_type));
        let text = text.ok_or_else(|| access::not_available(path))?;
        self.text(&entry, text, file.crop, open).await
    }

    /// Loads the item of `path`, if it is visible to `caller` and the caller may read the resource. Purchases are
    /// decided later, by `decide_purchase`.
    async fn readable_entry(
        &self,
        path: &MediaPath,
        caller: MediaCaller<'_>,
    ) -> Result<Arc<CatalogEntry>> {
        if access::is_open(path) {
            // Public media is served even with credentials that lack the scope.
            return self.item(path.key(), caller.visitor(), caller.now).await;
        }
        let entry = self.item(path.key(), Some(caller.require_principal()?), caller.now).await?;
        self.check_reading(path, &entry, caller).await?;
        Ok(entry)
    }

    /// Fails with `agreement_required` if reading `path` requires an agreement that covers its item `entry`, and
    /// `caller` has neither such an agreement nor an order that still delivers the item.
    async fn check_reading(
        &self,
        path: &MediaPath,
        entry: &CatalogEntry,
        caller: MediaCaller<'_>,
    ) -> Result<()> {
        if !access::needs_read_agreement(path) || self.inner.settings.media.uncovered_documents {
            return Ok(());
        }
        let principal = caller.require_principal()?;
        self.inner.orders.check_reading(principal, facts(entry), caller.now).await
    }

    /// Resolves the URL of a rendition of the item `requested` or of one of its associated objects.
    async fn resolve_rendition(
        &self,
        requested: Arc<CatalogEntry>,
        path: &MediaPath,
        file: &RenditionFile,
        caller: MediaCaller<'_>,
    ) -> Result<MediaAnswer> {
        let is_open_path = access::is_open(path);
        // From here on, the item and the path that provide the files.
        let (entry, path) = if file.association.is_none() {
            (Arc::clone(&requested), Cow::Borrowed(path))
        } else {
            let (entry, path) = self.readable_shown_item(&requested, path, caller).await?;
            (entry, Cow::Owned(path))
        };
        let open = is_open_path && access::is_public(&entry, caller.now);
        let keys = entry.cache_keys_within(&requested.key);
        // An associated object can be replaced by an object that was stored earlier. A client with `If-Modified-Since`
        // would then never receive the new one, so the answer states no time.
        let modified = file.association.is_none().then_some(entry.stored);
        let sale = Sale::of_item(&entry, self.decide_purchase(&path, &entry, caller).await?);
        if file.extension.is_image() {
            let answer = self.rendition(&entry, &path, open)?;
            let other = (entry.key != requested.key).then_some(requested);
            let answer =
                RenditionAnswer { sale, modified, keys, requested_entry: other, ..answer };
            return Ok(MediaAnswer::Rendition(Box::new(answer)));
        }
        let asset = self.stored_file(&entry, &path);
        let asset = asset.ok_or_else(|| access::not_available(&path))?;
        Ok(MediaAnswer::File(Box::new(FileAnswer {
            mime: file.extension.mime_type(),
            // The file is sent unchanged, so its hash is its tag.
            etag: asset.blob().short(),
            modified,
            sale,
            file_name: access::file_name(&path),
            keys,
            content: FileContent::Stored(stored_body(asset)),
            source_items: vec![Arc::clone(&entry), requested],
        })))
    }

    /// Finds the item that shows the rendition of an associated object, as [`Media::shown_item`] does, and checks that
    /// the caller may read it.
    async fn readable_shown_item(
        &self,
        requested: &Arc<CatalogEntry>,
        path: &MediaPath,
        caller: MediaCaller<'_>,
    ) -> Result<(Arc<CatalogEntry>, MediaPath)> {
        let shown = self.shown_item(requested, path, caller.principal, caller.now).await;
        if shown.is_err() {
            // Decide the purchase first, so that its refusal does not reveal whether the rendition exists.
            self.decide_purchase(path, requested, caller).await?;
        }
        let (entry, path) = shown?;
        // An associated object that is itself an item requires the same rights as at the item's own URL.
        self.check_reading(&path, &entry, caller).await?;
        Ok((entry, path))
    }

    /// Finds the item that shows the rendition `path`, and the path of the rendition there. An associated object
    /// that is also an item is shown by that item, cropped as the editors specified.
    ///
    /// Fails with [`ErrorKind::NotFound`] if the item has no such associated object, or if the object's item is
    /// not visible.
    async fn shown_item(
        &self,
        entry: &Arc<CatalogEntry>,
        path: &MediaPath,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<(Arc<CatalogEntry>, MediaPath)> {
        let own = || Ok((Arc::clone(entry), path.clone()));
        let MediaTarget::Rendition(file) = path.target() else { return own() };
        let Some(key) = &file.association else { return own() };
        let Some(associated) = entry.document.association(key) else {
            return Err(access::not_available(path));
        };
        let uri = associated.get("uri").and_then(Value::as_str).unwrap_or_default();
        // An associated object may carry the URI of the item itself. It is then no different item.
        let linked = ItemUri::parse(uri).ok().filter(|linked| linked.key != entry.key);
        let Some(linked) = linked else { return own() };
        // The object is not in the archive as an item, so the files of `entry` are used.
        let Some(item) = self.inner.catalog.find(&linked.key).await? else { return own() };
        // A withdrawn or embargoed picture must not be reached through the text that shows it.
        if !access::is_visible(&item, principal, now) {
            return Err(access::not_available(path));
        }
        if item.assets.is_empty() {
            // The item was published as a document without files, so the files of `entry` are used.
            return own();
        }
        let item_path = MediaPath::rendition(linked.key, file.name, file.extension);
        let item_path = file.operations().iter().try_fold(item_path, |item_path, operation| {
            let operated = item_path.with_operation(operation.clone());
            operated.map_err(|_| access::not_available(path))
        })?;
        let item_path = framing::apply_crop(&item, item_path, linked.crop, &self.inner.settings)?;
        Ok((item, item_path))
    }

    /// Returns the stored file of `entry` that `path` refers to, if there is one.
    fn stored_file<'a>(&self, entry: &'a CatalogEntry, path: &'a MediaPath) -> Option<&'a Asset> {
        let MediaTarget::Rendition(file) = path.target() else { return None };
        entry.files(file.association.as_ref()).find(file.name, file.extension)
    }

    /// Returns the decision of the caller's agreements if `path` has to be bought, and `None` if it is free.
    async fn decide_purchase(
        &self,
        path: &MediaPath,
        entry: &CatalogEntry,
        caller: MediaCaller<'_>,
    ) -> Result<Option<CoverageDecision>> {
        if !access::needs_purchase(path) {
            return Ok(None);
        }
        self.inner.orders.check(caller.buyer()?, facts(entry)).await.map(Some)
    }

    /// Records the purchase of all items in `sale` for `caller`.
    ///
    /// Fails as [`Orders::purchase`] does, and with [`ErrorKind::Stale`] if the purchase differs from the
    /// confirmed one. No part of the sale may be delivered then.
    pub async fn purchase(&self, sale: &Sale, caller: MediaCaller<'_>) -> Result<()> {
        let orders = &self.inner.orders;
        if sale.all_or_nothing {
            let items: Vec<_> = sale.entries.iter().map(|(entry, _)| facts(entry)).collect();
            let confirmed = sale.confirmed.clone();
            return orders.purchase_all(caller.buyer()?, &items, confirmed).await;
        }
        for (entry, _) in &sale.entries {
            orders.purchase(caller.buyer()?, facts(entry)).await?;
        }
        Ok(())
    }

    /// Lists the licences under which the caller can report the use of the item of `path`.
    ///
    /// A caller whose order has no report yet can still read them after the item was withdrawn.
    async fn pricelist(&self, path: &MediaPath, caller: MediaCaller<'_>) -> Result<TextAnswer> {
        let principal = caller.require_principal()?;
        let orders = &self.inner.orders;
        let ordered = orders.codes_to_report(principal, path.key()).await?;
        let entry = if ordered.is_empty() {
            Some(self.readable_entry(path, caller).await?)
        } else {
            self.inner.catalog.find(path.key()).await?
        };
        let codes = entry.map(|entry| facts(&entry).codes()).unwrap_or_default();
        let licenses = orders.pricelist(principal, &codes, ordered, caller.now).await?;
        let list: Vec<License> = licenses.iter().map(orders::view::license).collect();
        let body = Bytes::from(serde_json::to_vec(&list).map_err(Error::internal)?);
        // Agreements change the list without changing the item, so the tag is computed from the text.
        let etag = ContentHash::new(&body).short();
        let mime = "application/json";
        let keys = CacheKeys::new(path.key(), []);
        Ok(TextAnswer { body, mime, etag, modified: None, open: false, keys })
    }

    /// Plans the image that `path` refers to. The caller adds the sale to the answer.
    fn rendition(
        &self,
        entry: &Arc<CatalogEntry>,
        path: &MediaPath,
        open: bool,
    ) -> Result<RenditionAnswer> {
        let MediaTarget::Rendition(file) = path.target() else {
            return Err(access::not_available(path));
        };
        let make = || plan::plan(entry, path, &self.inner.settings);
        let planned = if file.operations().is_empty() && file.association.is_none() {
            // An item has few renditions without operations, so their plans are stored with it. The number of
            // variants is unlimited.
            entry.plan(file.name, file.extension, make)?
        } else {
            Arc::new(make()?)
        };
        Ok(RenditionAnswer {
            etag: planned.key.short(),
            modified: Some(entry.stored),
            file_name: access::file_name(path),
            planned,
            open,
            is_interim: false,
            sale: Sale::default(),
            keys: entry.cache_keys().clone(),
            entry: Arc::clone(entry),
            requested_entry: None,
            association: file.association.clone(),
        })
    }
}

fn facts(entry: &CatalogEntry) -> ItemFacts<'_> {
    ItemFacts { key: &entry.key, document: &entry.document }
}
