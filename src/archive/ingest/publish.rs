//! Turns a finished upload into an item: reads the metadata of its file, applies the editor's changes, and ingests
//! it.

use std::path::Path;

use api::uploads::{ExistingPolicy, UploadDescription};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::bundle::refused;
use super::edit::{published_edit, version_tag};
use super::pending_uploads::ReadUploadError;
use super::write::{self, LocalMoment, PreparedItem};
use super::{
    FileName, Ingest, IngestError, IngestedItem, LoadedPhotograph, PendingUploads, SpooledFile,
    Uploads, files, key_of_stem, photograph,
};
use crate::runtime::error::Result;
use crate::runtime::limits::UPLOAD_PREVIEW_PX;
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::blobs::StoreError;
use crate::storage::database::PendingUpload;
use model::item::{Asset, AssetFile, Document, MetadataEdits, PubStatus, merge_patch};
use model::{ContentHash, ItemId, ItemKey, MediaType, RenditionExtension, RenditionName};

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

/// A file of an upload that is assembled on disk.
struct AssembledFile {
    file: SpooledFile,
    content: ContentHash,
}

impl Ingest {
    /// Returns the media type of an upload, by the name of its file.
    fn upload_type(upload: &PendingUpload) -> Result<MediaType, IngestError> {
        let extension = files::extension(Path::new(&upload.file_name));
        files::media_type(&extension).ok_or(IngestError::Kind)
    }

    /// Reads a photograph from the parts of its upload, once the memory budget allows it.
    fn load_upload(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
    ) -> Result<LoadedPhotograph<'_>, IngestError> {
        let share = self.memory.acquire(upload.length);
        let mut bytes = Vec::with_capacity(usize::try_from(upload.length).unwrap_or_default());
        let taken = pending.read(upload, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
        taken.map_err(read_error)?;
        let picture = photograph::parse(bytes, &self.limits)?;
        self.fits(&picture, upload.length)?;
        Ok(LoadedPhotograph { picture, share })
    }

    /// Describes the item that an upload would become.
    fn describe_upload(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
    ) -> Result<UploadDescription, IngestError> {
        let media_type = Self::upload_type(upload)?;
        if media_type != MediaType::Image {
            return self.describe_file(media_type, stem(upload));
        }
        let loaded = self.load_upload(pending, upload)?;
        let picture = &loaded.picture;
        let key = key_of_stem(media_type, stem(upload), || picture.derived_id());
        let (document, document_warnings) = picture.document(&key, &self.zone)?;
        let warnings = [picture.warnings.clone(), document_warnings].concat();
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
    fn describe_file(
        &self,
        media_type: MediaType,
        stem: &str,
    ) -> Result<UploadDescription, IngestError> {
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
    fn preview_upload(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
    ) -> Result<Option<Vec<u8>>, IngestError> {
        if Self::upload_type(upload)? != MediaType::Image {
            return Ok(None);
        }
        let LoadedPhotograph { picture, mut share } = self.load_upload(pending, upload)?;
        share.grow(picture.memory_bytes(&self.originals));
        picture.preview(UPLOAD_PREVIEW_PX, &self.limits, &self.marker).map(Some)
    }

    /// Publishes an upload; `now` is its time of arrival.
    ///
    /// Fails with the refusal of the file, or with [`IngestError::Document`] for a document that violates the
    /// schema or the house rules.
    fn publish_upload(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
        request: &PublishRequest,
        now: Timestamp,
    ) -> Result<PublishOutcome, IngestError> {
        self.storing(is_written, |ingest| ingest.publish_stored(pending, upload, request, now))
    }

    fn publish_stored(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
        request: &PublishRequest,
        now: Timestamp,
    ) -> Result<PublishOutcome, IngestError> {
        match Self::upload_type(upload)? {
            MediaType::Image => self.publish_photograph(pending, upload, request, now),
            media_type @ (MediaType::Stockfoto
            | MediaType::Video
            | MediaType::Graphic
            | MediaType::Text
            | MediaType::Feature
            | MediaType::Page
            | MediaType::Planning
            | MediaType::Calendar) => self.publish_file(media_type, pending, upload, request, now),
        }
    }

    fn publish_photograph(
        &self,
        pending: &PendingUploads,
        upload: &PendingUpload,
        request: &PublishRequest,
        now: Timestamp,
    ) -> Result<PublishOutcome, IngestError> {
        let loaded = self.load_upload(pending, upload)?;
        let picture = &loaded.picture;
        let key = Self::upload_key(MediaType::Image, upload, request, || picture.derived_id());
        if self.is_refused(&key, request)? {
            return Ok(PublishOutcome::Exists(key));
        }
        let (described, mut warnings) = picture.document(&key, &self.zone)?;
        // Built before the file is stored, so that a refused document leaves nothing behind.
        let published = self.published_document(&key, described.fields().clone(), request)?;
        let (picture, picture_warnings) = self.store(loaded, RenditionName::NORMAL_HIRES)?;
        warnings.splice(0..0, picture_warnings);
        let assets = vec![Asset::own(AssetFile::Picture(picture))];
        let moment = LocalMoment { now, zone: &self.zone };
        let prepared = PreparedItem::new(&key, published.document.clone(), Some(assets), moment);
        let outcome = self.write_published(&key, prepared, &published, upload, request, now)?;
        Ok(with_warnings(outcome, warnings))
    }

    /// Publishes a graphic or a video.
    fn publish_file(
        &self,
        media_type: MediaType,
        pending: &PendingUploads,
        upload: &PendingUpload,
        request: &PublishRequest,
        now: Timestamp,
    ) -> Result<PublishOutcome, IngestError> {
        let (name, extension) = match files::extension(Path::new(&upload.file_name)).as_str() {
            "pdf" => (RenditionName::NORMAL_HIRES, RenditionExtension::Pdf),
            "eps" => (RenditionName::NORMAL_HIRES, RenditionExtension::Eps),
            "mp4" => (RenditionName::NORMAL_PREVIEW, RenditionExtension::Mp4),
            _ => return Err(IngestError::Kind),
        };
        let name = FileName { association: None, name, extension };
        let assembled = Self::assemble(pending, upload)?;
        let key = Self::upload_key(media_type, upload, request, || {
            photograph::derived_id(assembled.content)
        });
        if self.is_refused(&key, request)? {
            return Ok(PublishOutcome::Exists(key));
        }
        let described = Map::from_iter([("headline".to_owned(), Value::from(stem(upload)))]);
        let published = self.published_document(&key, described, request)?;
        let path = assembled.file.path();
        let (asset, mut warnings) = self.ingest_file(&name, path)?;
        let mut assets = vec![asset];
        let files = [(name, path.to_owned())];
        warnings.extend(self.create_missing(media_type, &mut assets, &files)?);
        let moment = LocalMoment { now, zone: &self.zone };
        let prepared = PreparedItem::new(&key, published.document.clone(), Some(assets), moment);
        let prepared = prepared.into_single_file();
        let outcome = self.write_published(&key, prepared, &published, upload, request, now)?;
        Ok(with_warnings(outcome, warnings))
    }

    /// Writes the parts of an upload to one file.
    fn assemble(
        pending: &PendingUploads,
        upload: &PendingUpload,
    ) -> Result<AssembledFile, IngestError> {
        let mut file = pending.spool().create_blocking().map_err(IngestError::Unreadable)?;
        let mut content = ContentHash::hasher();
        let written = pending.read(upload, &mut |part| {
            content.update(part);
            file.write(part)
        });
        written.map_err(read_error)?;
        Ok(AssembledFile { file, content: content.finish() })
    }

    /// Returns the key of the item that an upload becomes.
    fn upload_key(
        media_type: MediaType,
        upload: &PendingUpload,
        request: &PublishRequest,
        derived_id: impl FnOnce() -> ItemId,
    ) -> ItemKey {
        match (&request.id, request.existing) {
            (Some(id), _) => ItemKey { media_type, id: id.clone() },
            (None, ExistingPolicy::New) => ItemKey { media_type, id: derived_id() },
            (None, ExistingPolicy::Refuse | ExistingPolicy::Replace) => {
                key_of_stem(media_type, stem(upload), derived_id)
            }
        }
    }

    fn exists(&self, key: &ItemKey) -> Result<bool, IngestError> {
        let key = key.clone();
        Ok(self.db.read_blocking(move |tx| tx.find_item(&key))?.is_some())
    }

    /// Returns whether the item exists and the request does not replace it.
    fn is_refused(&self, key: &ItemKey, request: &PublishRequest) -> Result<bool, IngestError> {
        Ok(request.existing != ExistingPolicy::Replace && self.exists(key)?)
    }

    /// Builds the document of a published upload from the file's metadata, the template and the editor's changes,
    /// in this order. If the item exists, the document is its next version. It then retains the item's embargo and
    /// status, unless the template or the editor changes them.
    fn published_document(
        &self,
        key: &ItemKey,
        mut fields: Map<String, Value>,
        request: &PublishRequest,
    ) -> Result<PublishedDocument, IngestError> {
        let wanted = key.clone();
        let found = self.db.read_blocking(move |tx| tx.find_item(&wanted))?;
        let old = found.as_ref().map(|item| Document::from_stored(&item.document)).transpose()?;
        if let Some(old) = &old {
            keep_visibility(&mut fields, old);
        }
        request.template.apply(&mut fields);
        merge_patch(&mut fields, &request.patch);
        let mut document = self.validated(key, fields)?;
        if let Some(old) = &old {
            document.inherit_version(old);
            document.increment_version();
        }
        let previous = found.map(|item| version_tag(&item.document));
        Ok(PublishedDocument { document, previous })
    }

    /// Writes the item of an upload. Does not write it if the request must not replace an item that was created in
    /// the meantime, or if the item has changed since the version that the upload follows.
    fn write_published(
        &self,
        key: &ItemKey,
        prepared: PreparedItem,
        published: &PublishedDocument,
        upload: &PendingUpload,
        request: &PublishRequest,
        now: Timestamp,
    ) -> Result<PublishOutcome, IngestError> {
        let event = audit::event(AuditAction::ItemStored).with_object(ObjectKind::Item, key);
        let user_name = event.actor.user_name.clone();
        let edit = published_edit(&published.document, &upload.file_name, now, user_name);
        let refuses = request.existing != ExistingPolicy::Replace;
        let written_key = key.clone();
        let zone = self.zone.clone();
        let previous = published.previous.clone();
        let guard = self.guard(prepared.originals());
        let written = self.db.write_blocking(move |tx| {
            guard.check(tx)?;
            let current = write::find(tx, &written_key)?;
            if refuses && current.is_some() {
                return Ok(Err(PublishOutcome::Exists(written_key)));
            }
            // Decoding needs time, and this write would undo concurrent changes and withdrawals.
            if current.map(|(item, _)| version_tag(&item.document)) != previous {
                return Ok(Err(PublishOutcome::Stale(written_key)));
            }
            let written = prepared.write(tx, &zone)?;
            tx.write_item_edit(&written_key, &edit)?;
            tx.write_audit(&event.with_detail(written.written.as_str()))?;
            Ok(Ok(written))
        })?;
        let write::ItemWrite { written, replaced_items } = match written {
            Ok(written) => written,
            Err(unwritten) => return Ok(unwritten),
        };
        let warnings = Vec::new();
        let item = IngestedItem { key: key.clone(), written, replaced_items, warnings };
        Ok(PublishOutcome::Published(item))
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

/// Returns the name of an upload's file without its extension.
fn stem(upload: &PendingUpload) -> &str {
    let stem = Path::new(&upload.file_name).file_stem();
    stem.and_then(|stem| stem.to_str()).unwrap_or_default()
}

fn is_written(outcome: &PublishOutcome) -> bool {
    match outcome {
        PublishOutcome::Published(_) => true,
        PublishOutcome::Exists(_) | PublishOutcome::Stale(_) => false,
    }
}

fn with_warnings(outcome: PublishOutcome, warnings: Vec<String>) -> PublishOutcome {
    match outcome {
        PublishOutcome::Published(item) => {
            PublishOutcome::Published(IngestedItem { warnings, ..item })
        }
        unwritten @ (PublishOutcome::Exists(_) | PublishOutcome::Stale(_)) => unwritten,
    }
}

/// Converts the error. A part that was lost, for instance in a restored database, is no fault that a retry could
/// overcome.
fn read_error(cause: ReadUploadError) -> IngestError {
    match cause {
        ReadUploadError::Incomplete
        | ReadUploadError::Store(
            StoreError::Missing(_) | StoreError::Length { .. } | StoreError::Corrupted(_),
        ) => IngestError::Name("has lost bytes since it was sent; send the file again".to_owned()),
        ReadUploadError::Store(
            other @ (StoreError::Io { .. }
            | StoreError::Unavailable { .. }
            | StoreError::OtherArchive { .. }
            | StoreError::Setting { .. }),
        ) => IngestError::Store(other),
        ReadUploadError::Db(cause) => IngestError::Db(cause),
        ReadUploadError::Write(cause) => IngestError::Unreadable(cause),
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
    ) -> Result<Result<UploadDescription, IngestError>> {
        self.work_on(upload, Ingest::describe_upload).await
    }

    /// Renders a small JPEG of an uploaded photograph; `None` for other files.
    pub async fn preview(
        &self,
        upload: PendingUpload,
    ) -> Result<Result<Option<Vec<u8>>, IngestError>> {
        self.work_on(upload, Ingest::preview_upload).await
    }

    /// Publishes an upload, and removes it once its item is stored.
    pub async fn publish(
        &self,
        upload: PendingUpload,
        request: PublishRequest,
        now: Timestamp,
    ) -> Result<Result<PublishOutcome, IngestError>> {
        let id = upload.id;
        let name = upload.file_name.clone();
        let outcome = self.work_on(upload, move |ingest, pending, upload| {
            ingest.publish_upload(pending, upload, &request, now)
        });
        let outcome = outcome.await;
        match &outcome {
            Ok(Ok(_)) => {}
            Ok(Err(refused)) => self.ingest_here().record_error(&name, refused, now),
            Err(failed) => self.ingest_here().record_error(&name, failed, now),
        }
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
        work: impl FnOnce(&Ingest, &PendingUploads, &PendingUpload) -> Result<T, IngestError>
        + Send
        + 'static,
    ) -> Result<Result<T, IngestError>> {
        let pending = self.pending().clone();
        let outcome = self.work(move |ingest| {
            work(ingest, &pending, &upload).map_err(|error| name_file(error, &upload))
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
