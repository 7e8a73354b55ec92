//! The media section: from a media URL to bytes.
//!
//! [`Media::resolve`] finds the item, checks the right and plans; that needs no pixels and ends
//! in an [`Answer`] whose `ETag` is known. [`Media::obtain`] then takes the bytes from a cache or
//! renders them.

pub mod access;
mod answer;
mod budget;
mod bundle;
mod cache;
mod catalog;
mod collect;
mod flight;
mod framing;
pub mod keys;
mod links;
mod make;
pub mod original;
mod packing;
pub mod plan;
mod render;
mod settings;
mod stream;
mod texts;
mod timing;
pub mod warm;

use std::{borrow::Cow, path::Path, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

pub use access::Caller;
pub use answer::{Answer, FileAnswer, RenditionAnswer, Sale, TextAnswer};
use answer::{FileContent, stored_body};
pub use budget::{Client, Payer};
pub use bundle::{BundleNames, Naming};
pub(crate) use cache::check_files as check_cache;
pub use cache::{Body, Extent, Part};
pub use catalog::Entry;
pub use collect::{Collected, CollectedFile, Wanted};
pub use links::UrlLinks;
pub use render::{Obtained, Source};
pub use settings::{DecodeLimits, Settings};
use texts::is_text;
pub use timing::Timing;

use crate::access::auth::Principal;
use crate::access::orders::{self, Decision, ItemFacts, Orders};
use crate::media::keys::CacheKeys;
use crate::media::original::Originals;
use crate::runtime::compute::Compute;
use crate::runtime::error::{Error, Kind, Result};
use model::item::{Asset, Files};
use model::media_url::{DocumentExtension, MediaPath, RenditionFile, Target};
use model::{Hash, ItemKey, ItemUri};

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
    budget: budget::Budget,
    packing: packing::Packing,
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
            budget: budget::Budget::new(settings.client_megapixels_s, settings.client_burst),
            packing: packing::Packing::new(settings.archives, settings.client_archives),
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Forgets what is cached of an item that changed.
    pub fn item_changed(&self, keys: &[ItemKey]) {
        self.inner.catalog.changed(keys);
    }

    /// Forgets what is known of all items and of what was bought.
    pub fn forget_everything(&self) {
        self.inner.catalog.forget_everything();
        self.inner.orders.forget_everything();
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

    /// Whether the items that an answer was made of are still what they were: whoever waited for its
    /// bytes asks before it is given out or sold. Reads memory, unless they were forgotten there.
    pub async fn are_current(&self, seen: impl Iterator<Item = &Arc<Entry>>) -> Result<bool> {
        for entry in seen {
            let found = self.inner.catalog.find(&entry.key).await?;
            if !found.is_some_and(|found| found.is_same(entry)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The document of the item `key` as it is served, also where nobody may see it now: for
    /// whoever sent it.
    pub async fn document_sent(&self, key: &ItemKey) -> Result<Option<Bytes>> {
        let Some(entry) = self.inner.catalog.find(key).await? else { return Ok(None) };
        let json = self.text(&entry, DocumentExtension::Json, None, false).await?;
        Ok(Some(json.body))
    }

    /// Decides what `path` stands for and whether `caller` may have it; nothing is recorded.
    ///
    /// Fails with [`Kind::Unauthenticated`] or with `insufficient_scope` for what is not open, and
    /// with `agreement_required` for what the caller may neither read nor buy.
    pub async fn resolve(
        &self,
        path: &MediaPath,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Answer> {
        match path.target() {
            Target::Item(crop) => {
                self.item(path.key(), caller.visitor(), now).await?;
                Ok(Answer::Page(path.key().clone(), *crop))
            }
            Target::Pricelist => self.pricelist(path, caller, now).await.map(Answer::Text),
            Target::Document(file) if file.extension() == DocumentExtension::Zip => {
                self.archive(path.key(), Wanted::Default, caller, now).await
            }
            Target::Document(file) => {
                let entry = self.addressed(path, caller, now).await?;
                // Only some callers see an item under embargo: no shared cache may store it.
                let open = access::is_open(path) && access::is_public(&entry, now);
                let (extension, is_text) = (file.extension(), is_text(entry.key.media_type));
                match extension {
                    DocumentExtension::Cutpaste | DocumentExtension::Indesign if !is_text => {
                        Err(access::not_available(path))
                    }
                    DocumentExtension::Json
                    | DocumentExtension::Xml
                    | DocumentExtension::Zip
                    | DocumentExtension::Cutpaste
                    | DocumentExtension::Indesign => {
                        self.text(&entry, extension, file.crop(), open).await.map(Answer::Text)
                    }
                }
            }
            Target::Rendition(file) => {
                let entry = self.addressed(path, caller, now).await?;
                self.resolve_rendition(entry, path, file, caller, now).await
            }
        }
    }

    /// The item that `path` names, where `caller` sees it and may read what the path names. A
    /// purchase is decided later, by [`Media::decide`].
    async fn addressed(
        &self,
        path: &MediaPath,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Arc<Entry>> {
        if access::is_open(path) {
            return self.item(path.key(), caller.visitor(), now).await;
        }
        let entry = self.item(path.key(), Some(caller.known()?), now).await?;
        self.check_reading(path, &entry, caller, now).await?;
        Ok(entry)
    }

    /// Fails with `agreement_required` where `path` is read under the agreements of `entry`, its
    /// item, and `caller` has neither one that covers it nor an order that still delivers it.
    async fn check_reading(
        &self,
        path: &MediaPath,
        entry: &Entry,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<()> {
        if !access::needs_reading(path) || self.inner.settings.uncovered_documents {
            return Ok(());
        }
        self.inner.orders.check_reading(caller.known()?, facts(entry), now).await
    }

    /// The answer to an address of a rendition of `entry`, or of one of its associated objects.
    async fn resolve_rendition(
        &self,
        entry: Arc<Entry>,
        path: &MediaPath,
        file: &RenditionFile,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Answer> {
        let open = access::is_open(path);
        let principal = if open { caller.visitor() } else { caller.principal };
        let of_address = Arc::clone(&entry);
        let (entry, path) = match file.association() {
            None => (entry, Cow::Borrowed(path)),
            Some(_) => {
                let shown = self.shown(&entry, path, principal, now).await;
                if shown.is_err() {
                    // The refusal of a purchase does not tell whether the rendition exists.
                    self.decide(path, &entry, caller, now).await?;
                }
                let (entry, path) = shown?;
                // An associated item of its own is read as at its own address.
                self.check_reading(&path, &entry, caller, now).await?;
                (entry, Cow::Owned(path))
            }
        };
        let open = open && access::is_public(&entry, now);
        let keys = entry.cache_keys_within(&of_address.key);
        // Another object may take the place of an associated one, stored long ago.
        let modified = file.association().is_none().then_some(entry.stored);
        let sale = Sale::of(&entry, self.decide(&path, &entry, caller, now).await?);
        if file.extension().is_image() {
            let answer = self.rendition(&entry, &path, open)?;
            let other = (entry.key != of_address.key).then_some(of_address);
            let answer = RenditionAnswer { sale, modified, keys, named: other, ..answer };
            return Ok(Answer::Rendition(Box::new(answer)));
        }
        let asset = self.stored(&entry, &path);
        let asset = asset.ok_or_else(|| access::not_available(&path))?;
        Ok(Answer::File(Box::new(FileAnswer {
            mime: file.extension().mime_type(),
            etag: asset.blob().short(),
            modified,
            sale,
            file_name: access::file_name(&path),
            keys,
            content: FileContent::Stored(stored_body(asset)),
            seen: vec![Arc::clone(&entry), of_address],
        })))
    }

    /// The item whose rendition `path` names, and the rendition's path there: an associated object
    /// that is an item of its own is shown by that item, within the crop that the editors gave it.
    ///
    /// Fails with [`Kind::NotFound`] when the item has no such associated object, or when its own
    /// item may not be seen.
    async fn shown(
        &self,
        entry: &Arc<Entry>,
        path: &MediaPath,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<(Arc<Entry>, MediaPath)> {
        let Target::Rendition(file) = path.target() else {
            return Ok((Arc::clone(entry), path.clone()));
        };
        let Some(key) = file.association() else { return Ok((Arc::clone(entry), path.clone())) };
        let missing = || access::not_available(path);
        let associated = entry.document.association(key).ok_or_else(missing)?;
        let uri = associated.get("uri").and_then(Value::as_str).unwrap_or_default();
        let Some(named) = ItemUri::parse(uri).ok().filter(|named| named.key != entry.key) else {
            return Ok((Arc::clone(entry), path.clone()));
        };
        let Some(item) = self.inner.catalog.find(&named.key).await? else {
            return Ok((Arc::clone(entry), path.clone()));
        };
        if !access::is_visible(&item, principal, now) {
            return Err(missing());
        }
        if item.assets.is_empty() {
            // It came as a document alone.
            return Ok((Arc::clone(entry), path.clone()));
        }
        let own = MediaPath::rendition(named.key, file.name(), file.extension());
        let own = file.operations().iter().try_fold(own, |own, operation| {
            own.with_operation(*operation).map_err(|_| missing())
        })?;
        let own = framing::framed(&item, own, named.crop, &self.inner.settings)?;
        Ok((item, own))
    }

    /// The file that `path` names of `entry`, as it lies in the store.
    fn stored<'a>(&self, entry: &'a Entry, path: &'a MediaPath) -> Option<&'a Asset> {
        let Target::Rendition(file) = path.target() else { return None };
        let files = match file.association() {
            None => Files::of_item(&entry.assets),
            Some(key) => Files::of_association(&entry.assets, key),
        };
        files.find(file.name(), file.extension())
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

    /// Records that `caller` gets what is sold.
    ///
    /// Fails as [`Orders::purchase`] does; then nothing of it may be delivered.
    pub async fn purchase(&self, sale: &Sale, caller: Caller<'_>, now: Timestamp) -> Result<()> {
        if sale.together {
            let items: Vec<_> = sale.entries.iter().map(|(entry, _)| facts(entry)).collect();
            return self.inner.orders.purchase_all(caller.known()?, &items, caller.agr, now).await;
        }
        for (entry, _) in &sale.entries {
            self.inner.orders.purchase(caller.known()?, facts(entry), caller.agr, now).await?;
        }
        Ok(())
    }

    /// The licences that the caller could use for the item of `path`.
    ///
    /// An order that is not reported yet keeps them readable, also after the item was withdrawn.
    async fn pricelist(
        &self,
        path: &MediaPath,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<TextAnswer> {
        let (principal, orders) = (caller.known()?, &self.inner.orders);
        let ordered = orders.codes_to_report(principal, path.key()).await?;
        let entry = match ordered.is_empty() {
            true => Some(self.addressed(path, caller, now).await?),
            false => self.inner.catalog.find(path.key()).await?,
        };
        let codes = entry.map(|entry| facts(&entry).codes()).unwrap_or_default();
        let licenses = orders.pricelist(principal, &codes, ordered, now).await?;
        let list: Vec<Value> = licenses.iter().map(orders::json::license).collect();
        let body = Bytes::from(Value::from(list).to_string());
        let (etag, mime) = (Hash::of(&body).short(), "application/json");
        let keys = CacheKeys::of(path.key(), []);
        Ok(TextAnswer { body, mime, etag, modified: None, open: false, keys })
    }

    /// The JPEG that `path` names of `entry`; what it costs is for the caller to say.
    fn rendition(
        &self,
        entry: &Arc<Entry>,
        path: &MediaPath,
        open: bool,
    ) -> Result<RenditionAnswer> {
        let make = || plan::plan(entry, path, &self.inner.settings);
        let planned = match path.target() {
            Target::Rendition(file)
                if file.operations().is_empty() && file.association().is_none() =>
            {
                entry.plan(file.name(), make)?
            }
            Target::Item(_) | Target::Pricelist | Target::Document(_) | Target::Rendition(_) => {
                Arc::new(make()?)
            }
        };
        Ok(RenditionAnswer {
            etag: planned.key.short(),
            modified: Some(entry.stored),
            file_name: access::file_name(path),
            planned,
            open,
            sale: Sale::default(),
            keys: entry.cache_keys().clone(),
            entry: Arc::clone(entry),
            named: None,
            association: match path.target() {
                Target::Rendition(file) => file.association().cloned(),
                Target::Item(_) | Target::Pricelist | Target::Document(_) => None,
            },
        })
    }
}

fn facts(entry: &Entry) -> ItemFacts<'_> {
    ItemFacts { key: &entry.key, document: &entry.document }
}
