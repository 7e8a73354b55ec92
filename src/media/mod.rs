//! The media section: from a media URL to bytes (Spec §4 Media interface).
//!
//! [`Media::resolve`] finds the item, checks the right and plans; that needs no pixels and ends
//! in an [`Answer`] whose `ETag` is known. [`Media::obtain`] then takes the bytes from a cache or
//! renders them.

pub mod access;
mod cache;
pub mod caption;
mod catalog;
mod flight;
pub mod jpeg;
mod links;
mod make;
pub mod original;
pub mod path;
pub mod plan;
pub mod raster;
mod render;
mod settings;
mod timing;
pub mod warm;

use std::{collections::HashSet, path::Path, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

pub use access::Caller;
pub use cache::{Body, Extent, Part};
pub use catalog::Entry;
pub use links::UrlLinks;
pub use render::{Obtained, Source};
pub use settings::{DecodeLimits, Settings};
pub use timing::Timing;

use crate::auth::Principal;
use crate::compute::Compute;
use crate::db::ReadTx;
use crate::error::{Error, Kind, Result};
use crate::item::Layout;
use crate::item::Served;
use crate::media::original::Originals;
use crate::media::path::{DocumentExtension, MediaPath, RenditionExtension, Target};
use crate::orders::{self, Decision, ItemFacts, Orders};
use crate::types::{CropSpec, Hash, ItemKey, Rect};

/// What a media URL stands for, known before any pixel is touched.
#[derive(Debug)]
pub enum Answer {
    /// The item's page on the customer web site.
    Page(ItemKey),
    /// A JSON document.
    Json(JsonAnswer),
    /// A JPEG that is in a cache, in the store, or to be rendered.
    Rendition(Box<RenditionAnswer>),
}

/// A JSON document with its validators.
#[derive(Debug)]
pub struct JsonAnswer {
    /// The text.
    pub body: Bytes,
    /// Entity tag without quotes.
    pub etag: String,
    /// When the item was stored, where the document depends on nothing else.
    pub modified: Option<Timestamp>,
    /// Whether everybody may have it.
    pub open: bool,
}

/// A rendition with its validators.
#[derive(Debug)]
pub struct RenditionAnswer {
    /// The plan that makes it.
    pub planned: Arc<plan::Planned>,
    /// Entity tag without quotes.
    pub etag: String,
    /// When the item was stored.
    pub modified: Timestamp,
    /// Whether everybody may have it.
    pub open: bool,
    /// What the caller's agreements say, where the rendition is bought. It is recorded by
    /// [`Media::purchase`], and nothing may be delivered before that.
    pub purchase: Option<Decision>,
    /// File name under which a browser saves it, for a Hires.
    pub file_name: Option<String>,
    entry: Arc<Entry>,
}

/// The media section's state; cheap to clone.
#[derive(Clone)]
pub struct Media {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    links: UrlLinks,
    catalog: catalog::Catalog,
    orders: Orders,
    originals: Originals,
    cache: cache::RenditionCache,
    flight: flight::Flight,
    compute: Compute,
}

impl Media {
    /// Starts the section over purchases and their database, the originals and a folder for the
    /// cache.
    ///
    /// Fails when the cache folder cannot be made.
    pub fn start(
        settings: Settings,
        orders: Orders,
        originals: Originals,
        compute: Compute,
        cache_dir: &Path,
    ) -> Result<Self> {
        let links = UrlLinks::new(settings.media_url.clone());
        let inner = Inner {
            catalog: catalog::Catalog::new(orders.db().clone(), links.clone()),
            links,
            orders,
            originals,
            cache: cache::RenditionCache::open(cache_dir, settings.cache)?,
            flight: flight::Flight::default(),
            compute,
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Forgets what is cached of an item that changed.
    pub fn item_changed(&self, keys: &[ItemKey]) {
        self.inner.catalog.changed(keys);
    }

    /// Writes the sizes of the cache tiers to the metrics.
    pub fn report(&self) {
        self.inner.cache.report();
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// How links to media are written.
    #[must_use]
    pub fn links(&self) -> &UrlLinks {
        &self.inner.links
    }

    /// The item `key` as far as `principal` may see it at `now`.
    ///
    /// Fails with [`Kind::NotFound`] when there is none, it was withdrawn, or is under embargo.
    pub async fn item(
        &self,
        key: &ItemKey,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<Arc<Entry>> {
        let entry = self.inner.catalog.find(key).await?;
        entry
            .filter(|entry| access::is_visible(entry, principal, now))
            .ok_or_else(|| Error::new(Kind::NotFound, format!("no item {key}")))
    }

    /// The document of the item `key` as it is served, also where nobody may see it now: for
    /// whoever sent it.
    pub async fn document_sent(&self, key: &ItemKey) -> Result<Option<Bytes>> {
        let Some(entry) = self.inner.catalog.find(key).await? else { return Ok(None) };
        Ok(Some(self.json(&entry, None, false).await?.body))
    }

    /// Decides what `path` stands for and whether `caller` may have it; nothing is recorded.
    ///
    /// Fails with [`Kind::Unauthenticated`] or with `insufficient_scope` for what is not open, and
    /// with `agreement_required` for what none of the caller's agreements covers.
    pub async fn resolve(
        &self,
        path: &MediaPath,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Answer> {
        let open = access::is_open(path);
        let principal = if open { caller.visitor() } else { Some(caller.known()?) };
        let entry = self.item(path.key(), principal, now).await?;
        let purchase = self.decide(path, &entry, caller, now).await?;
        // Under embargo only the provider gets here; that answer must not enter a shared cache.
        let open = open && !entry.is_embargoed(now);
        match path.target() {
            Target::Item => Ok(Answer::Page(path.key().clone())),
            Target::Pricelist => self.pricelist(&entry, caller, now).await.map(Answer::Json),
            Target::Document(file) if file.extension() == DocumentExtension::Json => {
                self.json(&entry, file.crop(), open).await.map(Answer::Json)
            }
            Target::Rendition(file)
                if file.extension() == RenditionExtension::Jpg && file.association().is_none() =>
            {
                self.rendition(entry, path, (open, purchase))
            }
            Target::Document(_) | Target::Rendition(_) => Err(access::not_available(path)),
        }
    }

    /// What the caller's agreements say where `path` is bought.
    async fn decide(
        &self,
        path: &MediaPath,
        entry: &Entry,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Option<Decision>> {
        if !access::needs_purchase(path) {
            return Ok(None);
        }
        let decision =
            self.inner.orders.check(caller.known()?, facts(entry), caller.agr, now).await?;
        Ok(Some(decision))
    }

    /// Records that `caller` gets the rendition, where it is bought.
    ///
    /// Fails as [`Orders::purchase`] does; then nothing of the rendition may be delivered.
    pub async fn purchase(
        &self,
        answer: &RenditionAnswer,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<()> {
        if answer.purchase.is_none() {
            return Ok(());
        }
        let item = facts(&answer.entry);
        self.inner.orders.purchase(caller.known()?, item, caller.agr, now).await
    }

    /// The licences that the caller could use for the item.
    async fn pricelist(
        &self,
        entry: &Entry,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<JsonAnswer> {
        let licenses = self.inner.orders.pricelist(caller.known()?, facts(entry), now).await?;
        let list: Vec<Value> = licenses.iter().map(orders::json::license).collect();
        let body = Bytes::from(Value::from(list).to_string());
        let etag = Hash::of(&body).short();
        Ok(JsonAnswer { body, etag, modified: None, open: false })
    }

    async fn json(&self, entry: &Entry, crop: Option<CropSpec>, open: bool) -> Result<JsonAnswer> {
        let crop = plan::json_crop(entry, crop)?;
        let body = self.text(entry, crop).await?;
        // What is told of an associated item changes when that item comes or goes.
        let linked = entry.document.linked_items(Layout::Full);
        let modified = linked.is_empty().then_some(entry.stored);
        let etag = Hash::of(&body).short();
        Ok(JsonAnswer { body, etag, modified, open })
    }

    /// The document's text as served.
    async fn text(&self, entry: &Entry, crop: Option<Rect>) -> Result<Bytes> {
        let linked = entry.document.linked_items(Layout::Full);
        if crop.is_none() && linked.is_empty() {
            return entry.json(|| self.document(entry, None, &linked));
        }
        let held = self.held(linked).await?;
        Ok(Bytes::from(self.document(entry, crop, &held)?.to_string()))
    }

    /// Those of `keys` that the archive has.
    async fn held(&self, keys: HashSet<ItemKey>) -> Result<HashSet<ItemKey>> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let read = move |tx: &ReadTx<'_>| {
            let mut held = HashSet::new();
            for key in keys {
                if tx.item_exists(&key)? {
                    held.insert(key);
                }
            }
            Ok(held)
        };
        Ok(self.inner.orders.db().read(read).await?)
    }

    /// The document as served, with our links.
    fn document(
        &self,
        entry: &Entry,
        crop: Option<Rect>,
        held: &HashSet<ItemKey>,
    ) -> Result<Value> {
        let (sizes, layout) = (self.inner.settings.sizes, Layout::Full);
        let served = Served { key: &entry.key, assets: &entry.assets, sizes, crop, layout };
        let holds = |key: &ItemKey| held.contains(key);
        let document = served.document(entry.document.clone(), &self.inner.links, &holds);
        document.map_err(|error| plan::bad_crop(&error))
    }

    fn rendition(
        &self,
        entry: Arc<Entry>,
        path: &MediaPath,
        (open, purchase): (bool, Option<Decision>),
    ) -> Result<Answer> {
        let make = || plan::plan(&entry, path, &self.inner.settings);
        let planned = match path.target() {
            Target::Rendition(file) if file.operations().is_empty() => {
                entry.plan(file.name(), make)?
            }
            Target::Item | Target::Pricelist | Target::Document(_) | Target::Rendition(_) => {
                Arc::new(make()?)
            }
        };
        Ok(Answer::Rendition(Box::new(RenditionAnswer {
            etag: planned.key.short(),
            modified: entry.stored,
            file_name: access::file_name(path),
            planned,
            open,
            purchase,
            entry,
        })))
    }
}

fn facts(entry: &Entry) -> ItemFacts<'_> {
    ItemFacts { key: &entry.key, document: &entry.document }
}
