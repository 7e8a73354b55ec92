//! Writes the texts of an item: `.json`, `.xml` and the text formats.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::Value;

use super::{CatalogEntry, Media, TextAnswer, cache_keys::CacheKeys, plan};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::ReadTx;
use formats::MessageHeader;
use model::item::{DocumentLayout, DocumentRequest, ItemPresence};
use model::media_url::DocumentExtension;
use model::{ContentHash, CropSpec, ItemKey, MediaType, Rect};

/// The MIME type of a text, with its character set.
pub(super) fn mime(extension: DocumentExtension) -> &'static str {
    match extension {
        DocumentExtension::Json | DocumentExtension::Renditions => "application/json",
        DocumentExtension::Xml => "text/xml; charset=utf-8",
        DocumentExtension::Zip => "application/zip",
        DocumentExtension::Cutpaste | DocumentExtension::Indesign => "text/plain; charset=utf-8",
    }
}

/// Whether items of `media_type` are texts, which have text formats.
pub(super) fn is_text(media_type: MediaType) -> bool {
    match media_type {
        MediaType::Text | MediaType::Feature => true,
        MediaType::Image
        | MediaType::Stockfoto
        | MediaType::Video
        | MediaType::Graphic
        | MediaType::Page
        | MediaType::Planning
        | MediaType::Calendar => false,
    }
}

impl Media {
    /// Writes the text of the item with this extension, which is not that of an archive.
    pub(super) async fn text(
        &self,
        entry: &CatalogEntry,
        extension: DocumentExtension,
        crop: Option<CropSpec>,
        open: bool,
    ) -> Result<TextAnswer> {
        let crop = plan::json_crop(entry, crop)?;
        // The document embeds associated items, so it changes when one of them is published or withdrawn. Its
        // own time of storage is then no validator.
        let linked = entry.document.linked_items(DocumentLayout::Full);
        let modified = linked.is_empty().then_some(entry.stored);
        // A purge of an embedded item must reach this document too (contract caching-12).
        let keys = match linked.is_empty() {
            true => entry.cache_keys().clone(),
            false => CacheKeys::of(&entry.key, &linked),
        };
        let body = self.text_body(entry, extension, crop, linked).await?;
        let (mime, etag) = (mime(extension), ContentHash::of(&body).short());
        Ok(TextAnswer { body, mime, etag, modified, open, keys })
    }

    async fn text_body(
        &self,
        entry: &CatalogEntry,
        extension: DocumentExtension,
        crop: Option<Rect>,
        linked: HashSet<ItemKey>,
    ) -> Result<Bytes> {
        // Only then do the bytes depend on the entry alone, which caches them.
        if crop.is_none() && linked.is_empty() {
            return entry
                .text(extension, || self.write_text(entry, extension, None, &HashMap::new()));
        }
        let presences = self.find_presences(linked).await?;
        self.write_text(entry, extension, crop, &presences)
    }

    fn write_text(
        &self,
        entry: &CatalogEntry,
        extension: DocumentExtension,
        crop: Option<Rect>,
        presences: &HashMap<ItemKey, ItemPresence>,
    ) -> Result<Bytes> {
        let document = self.document(entry, crop, presences)?;
        Ok(match extension {
            DocumentExtension::Json => document.to_string().into(),
            DocumentExtension::Xml => {
                // Not the present time: the same document has to give the same bytes and `ETag`.
                let sent = entry.stored.to_string();
                let sender = &self.inner.settings.sender;
                let mut text = Vec::new();
                formats::newsml(&document, &MessageHeader { sent: &sent, sender }, &mut text)
                    .map_err(Error::internal)?;
                text.into()
            }
            DocumentExtension::Cutpaste => formats::cutpaste(&document).into(),
            DocumentExtension::Indesign => formats::indesign(&document).into(),
            DocumentExtension::Zip | DocumentExtension::Renditions => {
                return Err(Error::new(ErrorKind::Internal, "not a text of the document"));
            }
        })
    }

    /// Looks up whether the archive has the items `keys`.
    async fn find_presences(
        &self,
        keys: HashSet<ItemKey>,
    ) -> Result<HashMap<ItemKey, ItemPresence>> {
        // Without links, as for most photographs, no database is needed.
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let read = move |tx: &ReadTx<'_>| {
            let look_up = |key: ItemKey| tx.find_held(&key).map(|presence| (key, presence));
            keys.into_iter().map(look_up).collect()
        };
        Ok(self.inner.orders.db().read(read).await?)
    }

    /// Builds the document as served, with links of this service.
    fn document(
        &self,
        entry: &CatalogEntry,
        crop: Option<Rect>,
        presences: &HashMap<ItemKey, ItemPresence>,
    ) -> Result<Value> {
        let (sizes, layout) = (self.inner.settings.sizes, DocumentLayout::Full);
        let request =
            DocumentRequest { key: &entry.key, assets: &entry.assets, sizes, crop, layout };
        let presence = |key: &ItemKey| presences.get(key).copied().unwrap_or(ItemPresence::Absent);
        let document = request.document(entry.document.clone(), &self.inner.links, &presence);
        document.map_err(|error| plan::bad_crop(&error))
    }
}
