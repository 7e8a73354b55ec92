//! Writes the texts of an item: `.json` and the other documents, and the text formats.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{CatalogEntry, Media, TextAnswer, cache_keys::CacheKeys, plan};
use crate::runtime::error::Result;
use formats::{DocumentRights, MessageHeader, NewsmlVersion};
use model::item::{DocumentLayout, DocumentRequest, ItemPresence};
use model::media_url::DocumentExtension;
use model::{AssociationKey, ContentHash, CropSpec, ItemKey, MediaType, Rect};

/// A text that is generated from an item's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemText {
    Json,
    /// `.xml` in a version of the standard.
    Newsml(NewsmlVersion),
    /// `.metadata.json`: properties of IPTC Photo Metadata.
    Metadata,
    Ninjs,
    Cutpaste,
    Indesign,
}

impl ItemText {
    /// Finds the text with this extension; `newsml` is the version of `.xml`.
    pub(super) fn from_extension(
        extension: DocumentExtension,
        newsml: NewsmlVersion,
    ) -> Option<Self> {
        match extension {
            DocumentExtension::Json => Some(Self::Json),
            DocumentExtension::Xml => Some(Self::Newsml(newsml)),
            DocumentExtension::Metadata => Some(Self::Metadata),
            DocumentExtension::Ninjs => Some(Self::Ninjs),
            DocumentExtension::Cutpaste => Some(Self::Cutpaste),
            DocumentExtension::Indesign => Some(Self::Indesign),
            DocumentExtension::Zip | DocumentExtension::Renditions => None,
        }
    }

    /// Returns whether items of `media_type` have the text.
    pub(super) fn is_available(self, media_type: MediaType) -> bool {
        !matches!(self, Self::Cutpaste | Self::Indesign) || is_text(media_type)
    }

    /// Returns the MIME type, with a character set if it needs one.
    fn mime(self) -> &'static str {
        match self {
            Self::Json | Self::Metadata | Self::Ninjs => "application/json",
            Self::Newsml(_) => "text/xml; charset=utf-8",
            Self::Cutpaste | Self::Indesign => "text/plain; charset=utf-8",
        }
    }

    /// Returns whether the text embeds associated items, which are looked up.
    fn embeds_items(self) -> bool {
        // That document contains only pictures that came with the item.
        self != Self::Metadata
    }

    /// Returns whether the document includes the rights that are stated only in the files. The other texts receive
    /// these rights separately, or have no place for them.
    fn has_file_rights(self) -> bool {
        self == Self::Json
    }
}

/// A text as it is served.
#[derive(Clone, Debug)]
pub(super) struct WrittenText {
    pub(super) body: Bytes,
    /// Entity tag without quotes: the hash of the body.
    pub(super) etag: String,
}

impl WrittenText {
    pub(super) fn new(body: Bytes) -> Self {
        let etag = ContentHash::new(&body).short();
        Self { body, etag }
    }
}

/// Returns whether items of `media_type` are texts, which have text formats.
pub(super) fn is_text(media_type: MediaType) -> bool {
    matches!(media_type, MediaType::Text | MediaType::Feature)
}

impl Media {
    /// Writes a text of the item.
    pub(super) async fn text(
        &self,
        entry: &CatalogEntry,
        text: ItemText,
        crop: Option<CropSpec>,
        open: bool,
    ) -> Result<TextAnswer> {
        let crop = plan::json_crop(entry, crop)?;
        // The document embeds associated items, so it changes when one of them is published or withdrawn. The time
        // when the item was stored is then no validator.
        let linked = if text.embeds_items() {
            entry.document.linked_items(DocumentLayout::Full)
        } else {
            HashSet::new()
        };
        let modified = linked.is_empty().then_some(entry.stored);
        // A purge of an embedded item must reach this document too (contract caching-12).
        let keys = if linked.is_empty() {
            entry.cache_keys().clone()
        } else {
            CacheKeys::new(&entry.key, &linked)
        };
        let WrittenText { body, etag } = self.written_text(entry, text, crop, linked).await?;
        let mime = text.mime();
        Ok(TextAnswer { body, mime, etag, modified, open, keys })
    }

    async fn written_text(
        &self,
        entry: &CatalogEntry,
        text: ItemText,
        crop: Option<Rect>,
        linked: HashSet<ItemKey>,
    ) -> Result<WrittenText> {
        // In this case the text depends on the entry alone, which caches it.
        if crop.is_none() && linked.is_empty() {
            return entry.text(text, || self.write_text(entry, text, None, &HashMap::new()));
        }
        let presences = self.find_presences(linked).await?;
        self.write_text(entry, text, crop, &presences).map(WrittenText::new)
    }

    fn write_text(
        &self,
        entry: &CatalogEntry,
        text: ItemText,
        crop: Option<Rect>,
        presences: &HashMap<ItemKey, ItemPresence>,
    ) -> Result<Bytes> {
        let document = || self.served_document(entry, text, crop, presences);
        Ok(match text {
            ItemText::Json => document()?.to_string().into(),
            ItemText::Newsml(version) => {
                let rights = match version {
                    // The older version has no place for them.
                    NewsmlVersion::V2_30 => DocumentRights::default(),
                    NewsmlVersion::V2_35 => self.stated_rights(entry),
                };
                // Not the current time: the same document must have the same bytes and `ETag`.
                let sent = entry.stored.to_string();
                let sender = &self.inner.settings.media.sender;
                let message = MessageHeader { sent: &sent, sender, version };
                formats::newsml(&document()?, &rights, &message).into()
            }
            ItemText::Metadata => self.metadata_document(entry).to_string().into(),
            ItemText::Ninjs => {
                formats::ninjs(&document()?, &self.stated_rights(entry)).to_string().into()
            }
            ItemText::Cutpaste => formats::cutpaste(&document()?).into(),
            ItemText::Indesign => formats::indesign(&document()?).into(),
        })
    }

    /// Returns the rights in the pictures of the item and its associated objects, limited to the parts that the
    /// settings allow to be published.
    fn stated_rights(&self, entry: &CatalogEntry) -> DocumentRights {
        let settings = &self.inner.settings;
        DocumentRights {
            own: entry.effective_rights(None).published(settings),
            associations: entry
                .associations_with_files()
                .into_iter()
                .map(|key| {
                    let rights = entry.effective_rights(Some(key)).published(settings);
                    (key.as_str().to_owned(), rights)
                })
                .collect(),
        }
    }

    /// Returns the IPTC Photo Metadata properties of the item. The properties of the pictures that came with it
    /// are below `associations`.
    fn metadata_document(&self, entry: &CatalogEntry) -> Value {
        let mut document = self.metadata_of(entry, None);
        let mut associated = Map::new();
        for key in entry.associations_with_files() {
            associated.insert(key.as_str().to_owned(), self.metadata_of(entry, Some(key)));
        }
        if !associated.is_empty() {
            document["associations"] = Value::Object(associated);
        }
        document
    }

    /// Returns the IPTC Photo Metadata properties of the item itself, or of one of its associated objects.
    fn metadata_of(&self, entry: &CatalogEntry, association: Option<&AssociationKey>) -> Value {
        let rights = entry.effective_rights(association).published(&self.inner.settings);
        Value::Object(metadata::properties(&entry.caption_of(association).0, &rights))
    }

    /// Returns for each item of `keys` whether the archive has it.
    async fn find_presences(
        &self,
        keys: HashSet<ItemKey>,
    ) -> Result<HashMap<ItemKey, ItemPresence>> {
        // Most photographs have no links and need no database.
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let read = self.inner.orders.db().read(move |tx| {
            let mut presences = HashMap::with_capacity(keys.len());
            for key in keys {
                let presence = tx.find_held(&key)?;
                presences.insert(key, presence);
            }
            Ok(presences)
        });
        Ok(read.await?)
    }

    /// Builds the document as it is served, with links of this service.
    fn served_document(
        &self,
        entry: &CatalogEntry,
        text: ItemText,
        crop: Option<Rect>,
        presences: &HashMap<ItemKey, ItemPresence>,
    ) -> Result<Value> {
        let request = DocumentRequest {
            key: &entry.key,
            assets: &entry.assets,
            sizes: self.inner.settings.sizes,
            crop,
            layout: DocumentLayout::Full,
            rights: Some(entry.rights_statements()),
            with_file_rights: text.has_file_rights(),
        };
        let document =
            request.document(entry.document.clone(), &self.inner.links, &|key: &ItemKey| {
                presences.get(key).copied().unwrap_or(ItemPresence::Absent)
            });
        document.map_err(|error| plan::bad_crop(&error))
    }
}
