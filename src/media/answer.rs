//! What a media URL stands for, known before any pixel is touched.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use super::{
    CatalogEntry,
    cache::{BlobExtent, BodyPart, RenditionBody},
    cache_keys::CacheKeys,
    collect::ArchiveMember,
    plan,
};
use crate::access::orders::CoverageDecision;
use crate::runtime::error::Error;
use model::item::Asset;
use model::{AssociationKey, CropSpec, ItemKey};

/// What a media URL stands for.
#[derive(Debug)]
pub enum MediaAnswer {
    /// The item's page on the customer web site.
    Page(ItemKey, Option<CropSpec>),
    /// A document or text.
    Text(TextAnswer),
    /// A picture that is in a cache, in the store, or to be rendered.
    Rendition(Box<RenditionAnswer>),
    /// A file as it lies in the store, or an archive of several.
    File(Box<FileAnswer>),
}

impl MediaAnswer {
    /// The keys that a CDN keeps it under.
    #[must_use]
    pub fn cache_keys(&self) -> CacheKeys {
        match self {
            Self::Page(key, _) => CacheKeys::of(key, []),
            Self::Text(text) => text.keys.clone(),
            Self::Rendition(rendition) => rendition.keys.clone(),
            Self::File(file) => file.keys.clone(),
        }
    }
}

/// A document or text with its validators.
#[derive(Debug)]
pub struct TextAnswer {
    /// The text.
    pub body: Bytes,
    /// Its MIME type, with a character set where it needs one.
    pub mime: &'static str,
    /// Entity tag without quotes.
    pub etag: String,
    /// When the item was stored, where the document depends on nothing else.
    pub modified: Option<Timestamp>,
    /// Whether everybody may have it.
    pub open: bool,
    /// The keys that a CDN keeps it under.
    pub keys: CacheKeys,
}

/// A rendition with its validators.
#[derive(Debug)]
pub struct RenditionAnswer {
    /// The plan that makes it.
    pub planned: Arc<plan::PlannedRendition>,
    /// Entity tag without quotes.
    pub etag: String,
    /// When the item was stored; `None` for an associated object, which another one may take the
    /// place of.
    pub modified: Option<Timestamp>,
    /// Whether everybody may have it.
    pub open: bool,
    /// What is to be bought before anything is delivered.
    pub sale: Sale,
    /// File name under which a browser saves it, for a Hires.
    pub file_name: Option<String>,
    /// The keys that a CDN keeps it under.
    pub keys: CacheKeys,
    pub(super) entry: Arc<CatalogEntry>,
    /// The item of the address, where that is another one.
    pub(super) requested_entry: Option<Arc<CatalogEntry>>,
    /// The associated object of `entry` that it shows.
    pub(super) association: Option<AssociationKey>,
}

/// A file or an archive with its validators.
#[derive(Debug)]
pub struct FileAnswer {
    /// Its MIME type.
    pub mime: &'static str,
    /// Entity tag without quotes.
    pub etag: String,
    /// When the item was stored, where the file depends on nothing else.
    pub modified: Option<Timestamp>,
    /// What is to be bought before anything is delivered.
    pub sale: Sale,
    /// File name under which a browser saves it.
    pub file_name: Option<String>,
    /// The keys that a CDN keeps it under.
    pub keys: CacheKeys,
    pub(super) content: FileContent,
    /// The items that it was made of.
    pub(super) source_items: Vec<Arc<CatalogEntry>>,
}

impl RenditionAnswer {
    /// The items that it was made of.
    pub fn source_items(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        std::iter::once(&self.entry).chain(&self.requested_entry)
    }
}

impl FileAnswer {
    /// The items that it was made of.
    pub fn source_items(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.source_items.iter()
    }
}

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum FileContent {
    /// The store.
    Stored(RenditionBody),
    /// Files that are put together.
    Archive(Vec<ArchiveMember>),
}

/// What an answer sells: items, with what the caller's agreements say of each. Nothing for what is
/// free.
///
/// It is recorded by [`super::Media::purchase`], and nothing may be delivered before that.
#[derive(Clone, Debug, Default)]
pub struct Sale {
    pub(super) entries: Vec<(Arc<CatalogEntry>, CoverageDecision)>,
    /// Whether all of it is bought or nothing.
    pub(super) all_or_nothing: bool,
}

impl Sale {
    /// The sale of one item, if it is one.
    pub(super) fn of_item(entry: &Arc<CatalogEntry>, decision: Option<CoverageDecision>) -> Self {
        let entries = decision.map(|decision| (Arc::clone(entry), decision));
        Self { entries: entries.into_iter().collect(), all_or_nothing: false }
    }

    /// What stands against it, if anything does.
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        self.entries.iter().find_map(|(_, decision)| decision.require_delivery().err())
    }

    /// Whether nothing is sold.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The bytes of a file as it lies in the store.
pub(super) fn stored_body(asset: &Asset) -> RenditionBody {
    let (blob, blob_length) = (asset.blob(), asset.length());
    RenditionBody::new([BodyPart::Store(BlobExtent { blob, blob_length, range: 0..blob_length })])
}
