//! The answers to media URLs, known before any pixel is decoded.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use jiff::Timestamp;

use super::cache::{BlobExtent, BodyPart, RenditionBody};
use super::cache_keys::CacheKeys;
use super::{CatalogEntry, plan};
use crate::access::orders::{ConfirmedPayers, CoverageDecision, cost_changed};
use crate::runtime::error::{Error, Result};
use model::item::Asset;
use model::{AssociationKey, ContentHash, CropSpec, ItemKey};

/// The resource that a media URL refers to.
#[derive(Debug)]
pub enum MediaAnswer {
    /// The item's page on the customer web site.
    Page(ItemKey, Option<CropSpec>),
    /// A document or text.
    Text(TextAnswer),
    /// An image that is in a cache, in the store, or has to be rendered.
    Rendition(Box<RenditionAnswer>),
    /// A file from the store, or an archive of several files.
    File(Box<FileAnswer>),
}

impl MediaAnswer {
    /// Returns the surrogate keys under which a CDN stores the answer.
    pub fn cache_keys(&self) -> CacheKeys {
        match self {
            Self::Page(key, _) => CacheKeys::new(key, []),
            Self::Text(text) => text.keys.clone(),
            Self::Rendition(rendition) => rendition.keys.clone(),
            Self::File(file) => file.keys.clone(),
        }
    }
}

/// A document or text with its validators.
#[derive(Debug)]
pub struct TextAnswer {
    pub body: Bytes,
    /// The MIME type, with a character set if it needs one.
    pub mime: &'static str,
    /// Entity tag without quotes.
    pub etag: String,
    /// The time when the item was stored; `None` if the document depends on other items too.
    pub modified: Option<Timestamp>,
    /// True if it is public, so that shared caches may store it.
    pub open: bool,
    /// The surrogate keys under which a CDN stores it.
    pub keys: CacheKeys,
}

/// A rendition with its validators.
#[derive(Debug)]
pub struct RenditionAnswer {
    /// The plan to render it with.
    pub planned: Arc<plan::PlannedRendition>,
    /// Entity tag without quotes.
    pub etag: String,
    /// The time when the item was stored; `None` for an associated object, because it can be replaced.
    pub modified: Option<Timestamp>,
    /// True if it is public, so that shared caches may store it.
    pub open: bool,
    /// True if it stands in for a format that the client prefers and that is being made.
    pub is_interim: bool,
    /// The purchase to record before anything is delivered.
    pub sale: Sale,
    /// The name under which a browser saves it, for a Hires.
    pub file_name: Option<String>,
    /// The surrogate keys under which a CDN stores it.
    pub keys: CacheKeys,
    pub(super) entry: Arc<CatalogEntry>,
    /// The item in the URL, if it differs from `entry`.
    pub(super) requested_entry: Option<Arc<CatalogEntry>>,
    /// The associated object of `entry` that the rendition shows.
    pub(super) association: Option<AssociationKey>,
}

/// A file or an archive with its validators.
#[derive(Debug)]
pub struct FileAnswer {
    pub mime: &'static str,
    /// Entity tag without quotes.
    pub etag: String,
    /// The time when the item was stored; `None` if the file depends on other items too.
    pub modified: Option<Timestamp>,
    /// The purchase to record before anything is delivered.
    pub sale: Sale,
    /// The name under which a browser saves it.
    pub file_name: Option<String>,
    /// The surrogate keys under which a CDN stores it.
    pub keys: CacheKeys,
    /// The items that the content was built from.
    pub source_items: Vec<Arc<CatalogEntry>>,
    pub(super) content: FileContent,
}

/// A rendition of an item that was public, with its plan.
#[derive(Clone, Debug)]
pub struct PublicRendition {
    pub(super) key: ItemKey,
    /// Weak, so that a cached response keeps no outdated version of the item in memory.
    pub(super) entry: Weak<CatalogEntry>,
    pub(super) planned: Arc<plan::PlannedRendition>,
}

impl PublicRendition {
    /// Returns the kind of work of the rendition, for metrics and logs.
    pub fn operation(&self) -> &'static str {
        self.planned.operation
    }
}

impl RenditionAnswer {
    /// Returns the rendition if it is public and depends on one item only.
    pub fn public(&self) -> Option<PublicRendition> {
        let is_public = self.open && self.requested_entry.is_none() && self.association.is_none();
        is_public.then(|| PublicRendition {
            key: self.entry.key.clone(),
            entry: Arc::downgrade(&self.entry),
            planned: Arc::clone(&self.planned),
        })
    }

    /// Lists the items that the rendition was built from.
    pub fn source_items(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        std::iter::once(&self.entry).chain(&self.requested_entry)
    }
}

/// The source of a file's bytes.
#[derive(Debug)]
pub(super) enum FileContent {
    /// A file in the store.
    Stored(RenditionBody),
    /// Files that are packed into an archive.
    Archive(Vec<ArchiveMember>),
}

/// A file whose bytes have not been obtained yet.
#[derive(Clone, Debug)]
pub(super) struct ArchiveMember {
    pub(super) name: String,
    pub(super) mime: &'static str,
    pub(super) url: String,
    pub(super) source: MemberSource,
    /// Its modification time in an archive.
    pub(super) dated: Timestamp,
}

/// The source of a member's bytes.
#[derive(Clone, Debug)]
pub(super) enum MemberSource {
    Text(Bytes),
    Rendition(Arc<RenditionAnswer>),
    Stored(RenditionBody, String),
}

impl ArchiveMember {
    /// Creates a generated text file, which has no URL.
    pub(super) fn text(name: &str, text: String, dated: Timestamp) -> Self {
        let source = MemberSource::Text(text.into());
        Self { name: name.to_owned(), mime: "text/plain", url: String::new(), source, dated }
    }

    /// Renames the file by adding `prefix` to its name.
    pub(super) fn prefixed(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}{}", self.name), ..self }
    }

    /// Returns a line that identifies the member: name, content and date.
    pub(super) fn manifest_line(&self) -> String {
        format!("{} {} {}\n", self.name, self.content_tag(), self.dated)
    }

    /// Returns a tag that identifies the content.
    pub(super) fn content_tag(&self) -> String {
        match &self.source {
            MemberSource::Text(text) => ContentHash::new(text).short(),
            MemberSource::Rendition(answer) => answer.etag.clone(),
            MemberSource::Stored(_, tag) => tag.clone(),
        }
    }
}

/// The purchase that an answer requires: items, each with the decision of the caller's agreements. Empty for free
/// media.
///
/// [`super::Media::purchase`] records it. Nothing may be delivered before that.
#[derive(Clone, Debug, Default)]
pub struct Sale {
    pub(super) entries: Vec<(Arc<CatalogEntry>, CoverageDecision)>,
    /// True if the items are bought together or not at all.
    pub(super) all_or_nothing: bool,
    /// The agreements that the buyer has confirmed, if the sale must not differ from them. Only for an
    /// all-or-nothing sale.
    pub(super) confirmed: Option<Arc<ConfirmedPayers>>,
}

impl Sale {
    /// Returns the sale of one item; empty without a decision.
    pub(super) fn of_item(entry: &Arc<CatalogEntry>, decision: Option<CoverageDecision>) -> Self {
        let entries = decision.map(|decision| (Arc::clone(entry), decision));
        Self { entries: entries.into_iter().collect(), ..Self::default() }
    }

    /// Binds an all-or-nothing sale to the agreements that the buyer has confirmed. The purchase then fails if a
    /// different agreement would have to pay.
    ///
    /// Fails with [`ErrorKind::Stale`] if an item that the buyer expects to buy is not part of it.
    ///
    /// [`ErrorKind::Stale`]: crate::runtime::error::ErrorKind::Stale
    pub fn confirm(&mut self, payers: &Arc<ConfirmedPayers>) -> Result<()> {
        for key in payers.keys() {
            if !self.entries.iter().any(|(entry, _)| entry.key == *key) {
                return Err(cost_changed());
            }
        }
        self.confirmed = Some(Arc::clone(payers));
        Ok(())
    }

    /// Returns the first refusal among the decisions, if there is one.
    pub fn refusal(&self) -> Option<Error> {
        self.entries.iter().find_map(|(_, decision)| decision.require_delivery().err())
    }
}

/// Returns the body of a file that is sent from the store without changes.
pub(super) fn stored_body(asset: &Asset) -> RenditionBody {
    let blob = asset.blob();
    let blob_length = asset.length();
    RenditionBody::new([BodyPart::Store(BlobExtent { blob, blob_length, range: 0..blob_length })])
}
