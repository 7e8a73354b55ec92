//! Turns a finished upload into an item: reads the metadata of its file, applies the editor's changes, and ingests
//! it.

use std::path::Path;

use api::uploads::{ExistingPolicy, UploadDescription};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::edit::version_tag;
use super::error::refused;
use super::write::{self, LocalMoment, PreparedItem};
use super::{
    Ingest, IngestError, IngestResult, IngestedItem, LoadedPhotograph, PendingUploads,
    SpooledFile, Uploads, files, key_of_stem, photograph,
};
use crate::runtime::error::Result;
use crate::runtime::limits::UPLOAD_PREVIEW_PX;
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{PendingUpload, PropertyChange};
use model::item::{Asset, AssetFile, Document, MetadataEdits, PubStatus, merge_patch};
use model::{ContentHash, ItemId, ItemKey, MediaType, RenditionName};

/// The options for publishing an upload.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishRequest {
    /// The id of the item; if `None`, the id is the name of the file or comes from its content.
    pub id: Option<ItemId>,
    pub existing: ExistingPolicy,
    /// The changes of a template, which are applied first.
    pub template: MetadataEdits,
    /// A merge patch (RFC 7396) of the document that the file describes.
    pub patch: Map<String, Value>,
}

/// The outcome of publishing an upload.
#[derive(Clone, Debug)]
pub enum PublishOutcome {
    /// The item is stored.
    Published(IngestedItem),
    /// The item exists, and the request does not replace it.
    Exists(ItemKey),
    /// The item has changed while the upload was read.
    Stale(ItemKey),
}

/// The document of an upload, with the version of the item that precedes it.
struct PublishedDocument {
    document: Document,
    /// The tag of that version; `None` if there was no such item.
    previous: Option<String>,
}

/// The files of an item that an upload becomes, with their warnings.
struct PublishedFiles {
    assets: Vec<Asset>,
    warnings: Vec<String>,
}

/// A finished upload, and the ingest that makes an item of it.
struct UploadedFile<'a> {
    ingest: &'a Ingest,
    pending: &'a PendingUploads,
    upload: &'a PendingUpload,
}

/// The publication of an upload.
struct Publication<'a> {
    file: UploadedFile<'a>,
    request: &'a PublishRequest,
    /// The time of arrival.
    now: Timestamp,
}

impl UploadedFile<'_> {
    /// Returns the media type, by the name of the file.
    fn media_type(&self) -> IngestResult<MediaType> {
        let extension = files::extension(Path::new(&self.upload.file_name));
        files::media_type(&extension).ok_or(IngestError::Kind)
    }

    /// Returns the name of the file without its extension.
    fn stem(&self) -> &str {
        let stem = Path::new(&self.upload.file_name).file_stem();
        stem.and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// Reads a photograph from the parts of its upload, once the memory budget allows it.
    fn load(&self) -> IngestResult<LoadedPhotograph<'_>> {
        let length = self.upload.length;
        let share = self.ingest.memory.acquire(length);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        self.pending.read(self.upload, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        let picture = photograph::parse(bytes, &self.ingest.limits)?;
        self.ingest.fits(&picture, length)?;
        Ok(LoadedPhotograph { picture, share })
    }

    /// Describes the item that an upload would become.
    fn describe(&self) -> IngestResult<UploadDescription> {
        let media_type = self.media_type()?;
        if media_type != MediaType::Image {
            return self.describe_other(media_type);
        }
        let loaded = self.load()?;
        let picture = &loaded.picture;
        let key = key_of_stem(media_type, self.stem(), || picture.derived_id());
        let (document, document_warnings) = picture.document(&key, &self.ingest.zone)?;
        let warnings = [picture.metadata.warnings.clone(), document_warnings].concat();
        let size = picture.shown_size();
        Ok(UploadDescription {
            media_type,
            exists: self.exists(&key)?,
            document: document.fields().clone(),
            warnings,
            id: Some(key.id),
            width: Some(size.width),
            height: Some(size.height),
        })
    }

    /// Describes the item that a graphic or a video would become. Its file has no caption.
    fn describe_other(&self, media_type: MediaType) -> IngestResult<UploadDescription> {
        let stem = self.stem();
        let mut is_derived = false;
        let key = key_of_stem(media_type, stem, || {
            is_derived = true;
            photograph::derived_id(ContentHash::new(stem.as_bytes()))
        });
        Ok(UploadDescription {
            media_type,
            exists: !is_derived && self.exists(&key)?,
            document: Map::from_iter([("headline".to_owned(), Value::from(stem))]),
            warnings: Vec::new(),
            id: Some(key.id).filter(|_| !is_derived),
            width: None,
            height: None,
        })
    }

    /// Renders a small JPEG of an uploaded photograph; `None` for other files.
    fn preview(&self) -> IngestResult<Option<Vec<u8>>> {
        if self.media_type()? != MediaType::Image {
            return Ok(None);
        }
        let Ingest { originals, limits, marker, .. } = self.ingest;
        let LoadedPhotograph { picture, mut share } = self.load()?;
        share.grow(picture.memory_bytes(originals));
        picture.preview(UPLOAD_PREVIEW_PX, limits, marker).map(Some)
    }

    /// Publishes an upload; `now` is its time of arrival.
    ///
    /// Fails with the refusal of the file, or with [`IngestError::Document`] for a document that violates the
    /// schema or the house rules.
    fn publish(&self, request: &PublishRequest, now: Timestamp) -> IngestResult<PublishOutcome> {
        let media_type = self.media_type()?;
        self.ingest.storing(
            |outcome: &PublishOutcome| matches!(outcome, PublishOutcome::Published(_)),
            |ingest| {
                let file = UploadedFile { ingest, pending: self.pending, upload: self.upload };
                let publication = Publication { file, request, now };
                if media_type == MediaType::Image {
                    publication.photograph()
                } else {
                    publication.file(media_type)
                }
            },
        )
    }

    fn exists(&self, key: &ItemKey) -> IngestResult<bool> {
        Ok(self.ingest.find_item(key)?.is_some())
    }
}

impl Publication<'_> {
    fn photograph(&self) -> IngestResult<PublishOutcome> {
        let loaded = self.file.load()?;
        let picture = &loaded.picture;
        let key = self.key(MediaType::Image, || picture.derived_id());
        if self.is_refused(&key)? {
            return Ok(PublishOutcome::Exists(key));
        }
        let (described, document_warnings) = picture.document(&key, &self.file.ingest.zone)?;
        // Built before the file is stored, so that a refused document leaves nothing behind.
        let published = self.document(&key, described.fields().clone())?;
        let (picture, picture_warnings) =
            self.file.ingest.store(loaded, RenditionName::NORMAL_HIRES)?;
        let assets = vec![Asset::own(AssetFile::Picture(picture))];
        let warnings = [picture_warnings, document_warnings].concat();
        self.write(key, published, PublishedFiles { assets, warnings })
    }

    /// Publishes a graphic or a video.
    fn file(&self, media_type: MediaType) -> IngestResult<PublishOutcome> {
        let name = files::single_name(Path::new(&self.file.upload.file_name));
        let name = name.ok_or(IngestError::Kind)?;
        let (file, content) = self.assemble()?;
        let key = self.key(media_type, || photograph::derived_id(content));
        if self.is_refused(&key)? {
            return Ok(PublishOutcome::Exists(key));
        }
        let described = Map::from_iter([("headline".to_owned(), Value::from(self.file.stem()))]);
        let published = self.document(&key, described)?;
        let (asset, mut warnings) = self.file.ingest.ingest_file(&name, file.path())?;
        let mut assets = vec![asset];
        let files = [(name, file.path().to_owned())];
        warnings.extend(self.file.ingest.create_missing(media_type, &mut assets, &files)?);
        self.write(key, published, PublishedFiles { assets, warnings })
    }

    /// Writes the parts of the upload to one file, and returns it with the hash of its content.
    fn assemble(&self) -> IngestResult<(SpooledFile, ContentHash)> {
        let mut file =
            self.file.pending.spool().create_blocking().map_err(IngestError::Unreadable)?;
        let mut content = ContentHash::hasher();
        self.file.pending.read(self.file.upload, &mut |part| {
            content.update(part);
            file.write(part)
        })?;
        Ok((file, content.finish()))
    }

    /// Returns the key of the item that the upload becomes.
    fn key(&self, media_type: MediaType, derived_id: impl FnOnce() -> ItemId) -> ItemKey {
        match (&self.request.id, self.request.existing) {
            (Some(id), _) => ItemKey { media_type, id: id.clone() },
            (None, ExistingPolicy::New) => ItemKey { media_type, id: derived_id() },
            (None, ExistingPolicy::Refuse | ExistingPolicy::Replace) => {
                key_of_stem(media_type, self.file.stem(), derived_id)
            }
        }
    }

    /// Returns whether the item exists and the request does not replace it.
    fn is_refused(&self, key: &ItemKey) -> IngestResult<bool> {
        Ok(self.request.existing != ExistingPolicy::Replace && self.file.exists(key)?)
    }

    /// Builds the document from the file's metadata, the template and the editor's changes, in this order. If the
    /// item exists, the document is its next version. It then retains the item's embargo and status, unless the
    /// template or the editor changes them.
    fn document(
        &self,
        key: &ItemKey,
        mut fields: Map<String, Value>,
    ) -> IngestResult<PublishedDocument> {
        let found = self.file.ingest.find_item(key)?;
        let old = found.as_ref().map(|item| Document::from_stored(&item.document)).transpose()?;
        if let Some(old) = &old {
            keep_visibility(&mut fields, old);
        }
        self.request.template.apply(&mut fields);
        merge_patch(&mut fields, &self.request.patch);
        let mut document = self.file.ingest.validated(key, fields)?;
        if let Some(old) = &old {
            document.inherit_version(old);
            document.increment_version();
        }
        let previous = found.map(|item| version_tag(&item.document));
        Ok(PublishedDocument { document, previous })
    }

    /// Writes the item. Does not write it if the request must not replace an item that was created in the
    /// meantime, or if the item has changed since the version that the upload follows.
    fn write(
        &self,
        key: ItemKey,
        published: PublishedDocument,
        files: PublishedFiles,
    ) -> IngestResult<PublishOutcome> {
        let PublishedDocument { document, previous } = published;
        let PublishedFiles { assets, warnings } = files;
        let event = audit::event(AuditAction::ItemStored).with_object(ObjectKind::Item, &key);
        let file = Some(self.file.upload.file_name.clone());
        let change = PropertyChange { property: "file".to_owned(), old: None, new: file };
        let user_name = event.actor.user_name.clone();
        let edit = write::item_edit(&document, vec![change], self.now, user_name);
        let moment = LocalMoment { now: self.now, zone: &self.file.ingest.zone };
        let mut prepared = PreparedItem::new(&key, document, Some(assets), moment);
        // Graphics and videos have further files, which arrive separately.
        if key.media_type != MediaType::Image {
            prepared = prepared.into_single_file();
        }
        let refuses = self.request.existing != ExistingPolicy::Replace;
        let zone = self.file.ingest.zone.clone();
        let guard = self.file.ingest.guard(prepared.originals());
        Ok(self.file.ingest.db.write_blocking(move |tx| {
            guard.check(tx)?;
            let current = write::find(tx, &key)?;
            if refuses && current.is_some() {
                return Ok(PublishOutcome::Exists(key));
            }
            // Decoding needs time, and this write would undo concurrent changes and withdrawals.
            if current.map(|(item, _)| version_tag(&item.document)) != previous {
                return Ok(PublishOutcome::Stale(key));
            }
            let item = prepared.write(tx, &zone)?;
            tx.write_item_edit(&key, &edit)?;
            tx.write_audit(&event.with_detail(item.written.as_str()))?;
            Ok(PublishOutcome::Published(IngestedItem { warnings, ..item }))
        })?)
    }
}

/// Copies the properties that decide the visibility of an item from its document `old` to the document of a new
/// file. A file says nothing about them, so a held or withdrawn item would become public.
fn keep_visibility(fields: &mut Map<String, Value>, old: &Document) {
    let kept: &[&str] = match old.pub_status() {
        PubStatus::Usable => &["embargoed"],
        PubStatus::Replaced
        | PubStatus::Commissioned
        | PubStatus::Withheld
        | PubStatus::Canceled => &["embargoed", "pubstatus", "replacedby"],
    };
    for name in kept {
        if let Some(value) = old.value(name) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }
}

/// Adds the name of the file to a refusal of the file. Problems of the document have places of their own.
fn name_file(error: IngestError, upload: &PendingUpload) -> IngestError {
    let is_about_document = matches!(error, IngestError::Document(_));
    if is_about_document || error.is_internal() {
        error
    } else {
        refused(&upload.file_name, error)
    }
}

impl Uploads {
    /// Describes the item that an upload would become.
    ///
    /// The outer error is a failure of the service, the inner error is the refusal of the file.
    pub async fn describe(
        &self,
        upload: PendingUpload,
    ) -> Result<IngestResult<UploadDescription>> {
        self.work_on(upload, |file| file.describe()).await
    }

    /// Renders a small JPEG of an uploaded photograph; `None` for other files.
    pub async fn preview(&self, upload: PendingUpload) -> Result<IngestResult<Option<Vec<u8>>>> {
        self.work_on(upload, |file| file.preview()).await
    }

    /// Publishes an upload, and removes it once its item is stored.
    pub async fn publish(
        &self,
        upload: PendingUpload,
        request: PublishRequest,
        now: Timestamp,
    ) -> Result<IngestResult<PublishOutcome>> {
        let id = upload.id;
        let name = upload.file_name.clone();
        let outcome = self.work_on(upload, move |file| file.publish(&request, now)).await;
        self.record_failure(&name, &outcome, now);
        let published = outcome?;
        if let Ok(PublishOutcome::Published(_)) = &published
            && let Err(cause) = self.pending().discard(id).await
        {
            // The item is stored, and the remains of the upload expire.
            tracing::warn!("a published upload cannot be removed now: {cause}");
        }
        Ok(published)
    }

    /// Runs `work` on an upload as soon as a worker is free, and adds the name of the file to its refusal.
    async fn work_on<T: Send + 'static>(
        &self,
        upload: PendingUpload,
        work: impl FnOnce(&UploadedFile<'_>) -> IngestResult<T> + Send + 'static,
    ) -> Result<IngestResult<T>> {
        let pending = self.pending().clone();
        let outcome = self.work(move |ingest| {
            let file = UploadedFile { ingest, pending: &pending, upload: &upload };
            work(&file).map_err(|error| name_file(error, &upload))
        });
        outcome.await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_file_keeps_who_sees_the_item() {
        let check = |old: Value, expected: Value| {
            let old = Document::from_stored(&old.to_string()).expect("valid");
            let mut fields = Map::from_iter([("headline".to_owned(), json!("New"))]);
            keep_visibility(&mut fields, &old);
            assert_eq!(Value::Object(fields), expected);
        };
        let embargo = "2999-01-01T00:00:00Z";
        let usable = json!({ "headline": "Old", "pubstatus": "usable", "embargoed": embargo });
        check(usable, json!({ "headline": "New", "embargoed": embargo }));
        check(json!({ "headline": "Old" }), json!({ "headline": "New" }));
        for status in ["commissioned", "withheld", "canceled"] {
            let old = json!({ "headline": "Old", "pubstatus": status });
            check(old, json!({ "headline": "New", "pubstatus": status }));
        }
        let by = "http://localhost/media/image/b";
        let replaced = json!({ "pubstatus": "replaced", "replacedby": by, "version": "3" });
        let expected = json!({ "headline": "New", "pubstatus": "replaced", "replacedby": by });
        check(replaced, expected);
    }
}
