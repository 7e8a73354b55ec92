//! Ingest: turns photographs, item folders, files of documents and uploads into items.
//!
//! All sources share one path: read and check the files, check that the picture decodes, and store the originals
//! by content. Then document, files and log row are written in one transaction, together with the changes that the
//! item causes in other items. Each item is ingested completely or not at all. A bad item is reported, and the
//! others continue. The originals of a refused item are removed again. A killed process leaves at most
//! unreferenced blobs.

mod bundle;
mod differences;
mod edit;
mod error;
mod files;
pub mod folder_watch;
mod lines;
mod media_kinds;
mod names;
mod pending_uploads;
mod photograph;
mod pinned_path;
mod publish;
mod set_rights;
mod source_rights;
mod spool;
mod templates;
mod unreferenced;
mod uploads;

mod write;

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use bundle::{BundleFile, ItemBundle};
pub use edit::{EditOutcome, EditableItem, ExpectedVersion, ItemChange, SavedItem};
use error::catch_panics;
pub use error::{FileRefusal, IngestError, IngestFailure, IngestResult};
pub use files::{FoundFiles, find};
pub use lines::{LinesEvent, LinesTally, ingest_lines};
pub use names::FileName;
pub use pending_uploads::{NewUpload, PartWriter, PendingUploads, UploadLimits};
use photograph::CheckedPhotograph;
use pinned_path::PinnedPath;
pub use publish::{PublishOutcome, PublishRequest};
pub use set_rights::{RightsOutcome, rights_properties};
use source_rights::apply_rights;
pub use spool::{SpooledFile, UploadSpool};
pub use templates::{OwnerChange, TemplateChange, TemplateOutcome, template_tag};
use unreferenced::PendingRemovals;
pub use unreferenced::{OriginalsState, UnreferencedOriginals, remove_unreferenced};
pub use uploads::{UploadPermit, Uploads};
use write::{LocalMoment, PreparedItem};

use crate::media::original::OriginalStore;
use crate::runtime::memory_budget::{MemoryBudget, MemoryShare};
use crate::runtime::programs::ProgramRunner;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{Db, ItemWriteOutcome, StoredItem};
use crate::storage::diagnostics::{DiagnosticLog, DiagnosticRecord};
use imaging::Watermark;
use jpeg::header::HeaderLimits;
use metadata::RightsMetadata;
use model::item::{Asset, AssetFile, Document, MetadataField, PictureFile};
use model::{ItemId, ItemKey, MediaType, RenditionExtension, RenditionName};

/// A file or folder to ingest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingPath {
    /// A single photograph, graphic or video; a photograph carries its own caption.
    File(PathBuf),
    /// A folder `<mediaType>/<id>/` with an `item.json`.
    ItemFolder(PathBuf),
}

impl IncomingPath {
    /// Returns the path of the file or folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::ItemFolder(path) => path,
        }
    }

    /// Returns the item that the name of the file or folder denotes. A photograph whose name is not a valid id
    /// gets an id from its content.
    pub fn named_key(&self) -> Option<ItemKey> {
        match self {
            Self::File(path) => {
                let id = ItemId::parse(path.file_stem()?.to_str()?).ok()?;
                Some(ItemKey { media_type: files::media_type(&files::extension(path))?, id })
            }
            Self::ItemFolder(path) => files::folder_key(path).ok(),
        }
    }
}

/// The result of ingesting an item.
#[derive(Clone, Debug)]
pub struct IngestedItem {
    pub key: ItemKey,
    /// The outcome of the write: a new item, or a new version of an item.
    pub written: ItemWriteOutcome,
    /// Other items whose status became replaced.
    pub replaced_items: Vec<ItemKey>,
    /// Warnings about the item's files and metadata.
    pub warnings: Vec<String>,
}

impl IngestedItem {
    fn new(key: &ItemKey, written: ItemWriteOutcome, replaced_items: Vec<ItemKey>) -> Self {
        Self { key: key.clone(), written, replaced_items, warnings: Vec::new() }
    }
}

/// Limits on ingested files.
#[derive(Clone, Copy, Debug)]
pub struct IngestLimits {
    /// Maximum number of pixels of a picture.
    pub pixels_max: u64,
    /// Maximum length of a file in bytes.
    pub file_bytes_max: u64,
    /// Limits of the marker parser.
    pub header: HeaderLimits,
    /// The working time on one photograph after which it is refused.
    pub file_time: Duration,
    /// The maximum memory for one photograph, in bytes.
    pub memory_bytes: u64,
    /// The long side, in pixels, of the picture of a graphic's first page.
    pub page_px: u32,
    /// The long side, in pixels, of the Preview of a video.
    pub video_px: u32,
    /// True if a PDF with active content is refused instead of ingested with a warning.
    pub refuses_active_pdf: bool,
}

impl IngestLimits {
    fn too_slow(&self) -> IngestError {
        IngestError::TooSlow(self.file_time)
    }
}

/// Single files by item and extension.
type NamedFiles = HashMap<(ItemKey, RenditionExtension), PathBuf>;

/// Ingests files. Shared by the threads of one run, or by all sources of a server; cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    db: Db,
    originals: OriginalStore,
    programs: ProgramRunner,
    limits: IngestLimits,
    /// The memory held by files that are being ingested, over all sources.
    memory: Arc<MemoryBudget>,
    marker: Arc<Watermark>,
    zone: TimeZone,
    /// The single files of this run by item and extension, so that two files with the same name do not replace
    /// each other unnoticed. `None` in a server, which has no runs.
    names: Option<Arc<Mutex<NamedFiles>>>,
    /// The watched folder, which untrusted senders can write into: no symbolic link below it is followed.
    confined_root: Option<PathBuf>,
    /// The folders in which sources may state rights, besides the watched folder.
    sources: Vec<PathBuf>,
    /// True if each item is recorded in the audit log. A command records a single event with its totals instead.
    is_audited: bool,
    /// The fields that are mandatory in items that editors save or publish.
    pub required_fields: Vec<MetadataField>,
    /// The log of errors for operators.
    pub diagnostics: DiagnosticLog,
    /// The state of the archive before this ingest stored files; `None` outside the ingest of one item.
    before: Option<OriginalsState>,
    /// Originals of refused items that are removed when the database answers.
    pending_removals: PendingRemovals,
}

/// A photograph in memory, with its share of the memory budget.
struct LoadedPhotograph<'a> {
    picture: CheckedPhotograph,
    share: MemoryShare<'a>,
}

impl Ingest {
    /// Creates an ingest into `db` and `originals`. Photographs are ordered by days that begin at midnight in
    /// `zone`.
    pub fn new(
        db: Db,
        originals: OriginalStore,
        programs: ProgramRunner,
        limits: IngestLimits,
        memory: Arc<MemoryBudget>,
        zone: TimeZone,
        marker: Arc<Watermark>,
    ) -> Self {
        Self {
            db,
            originals,
            programs,
            limits,
            memory,
            marker,
            zone,
            names: Some(Arc::default()),
            confined_root: None,
            sources: Vec::new(),
            is_audited: false,
            required_fields: Vec::new(),
            diagnostics: DiagnosticLog::default(),
            before: None,
            pending_removals: PendingRemovals::default(),
        }
    }

    /// Returns the maximum length of a file in bytes.
    pub fn file_bytes_max(&self) -> u64 {
        self.limits.file_bytes_max
    }

    /// Configures it for a server, which treats a file with the same name as a later version.
    #[must_use]
    pub fn for_server(self) -> Self {
        Self { names: None, is_audited: true, ..self }
    }

    /// Records that `subject`, a file or an item, was not ingested.
    fn record_error(&self, subject: impl Display, error: impl Display, now: Timestamp) {
        self.diagnostics.record(DiagnosticRecord::ingest_error(subject, error, now));
    }

    /// Opens a file to ingest, so that all reads see the same file even if it is replaced in the meantime.
    fn pin(&self, path: &Path) -> IngestResult<PinnedPath> {
        let Some(root) = &self.confined_root else { return Ok(PinnedPath::unpinned(path)) };
        pinned_path::file(root, path).map_err(refused_link)
    }

    /// Opens an item folder in the same way.
    fn pin_folder(&self, path: &Path) -> IngestResult<PinnedPath> {
        let Some(root) = &self.confined_root else { return Ok(PinnedPath::unpinned(path)) };
        pinned_path::folder(root, path).map_err(refused_link)
    }

    /// Ingests one file or folder; `now` is its time of arrival.
    pub fn ingest(
        &self,
        incoming: &IncomingPath,
        now: Timestamp,
    ) -> Result<IngestedItem, IngestFailure> {
        let outcome = self.storing(
            |_| true,
            |ingest| match incoming {
                IncomingPath::File(path) => ingest.ingest_single(path, now),
                IncomingPath::ItemFolder(path) => ingest.ingest_folder(path, now),
            },
        );
        outcome.map_err(|error| IngestFailure::new(incoming.path(), error))
    }

    /// Ingests a single file. A `.jpg` is the Hires of an image.
    fn ingest_single(&self, path: &Path, now: Timestamp) -> IngestResult<IngestedItem> {
        let Some(name) = files::single_name(path) else {
            return self.ingest_photograph(path, now);
        };
        let media_type = files::media_type(&files::extension(path)).ok_or(IngestError::Kind)?;
        let rights = self.rights_around(path)?;
        let source = self.pin(path)?;
        let (asset, mut warnings) = self.ingest_file(&name, source.path())?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let key = key_of_stem(media_type, stem, || photograph::derived_id(asset.blob()));
        // The id may come from the content, so the name is claimed only now.
        self.claim(&key, name.extension, path)?;
        let fields = Map::from_iter([("headline".to_owned(), Value::from(stem))]);
        let document = Document::from_fields(&key, fields)?;
        let mut assets = vec![asset];
        let files = [(name, source.path().to_owned())];
        warnings.extend(self.create_missing(media_type, &mut assets, &files)?);
        apply_rights(&mut assets, &rights);
        let moment = LocalMoment { now, zone: &self.zone };
        let prepared = PreparedItem::new(&key, document, Some(assets), moment).into_single_file();
        self.write_prepared(&key, prepared).map(|item| IngestedItem { warnings, ..item })
    }

    fn ingest_photograph(&self, path: &Path, now: Timestamp) -> IngestResult<IngestedItem> {
        let rights = self.rights_around(path)?;
        let loaded = self.read_photograph(self.pin(path)?.path())?;
        let picture = &loaded.picture;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let key = key_of_stem(MediaType::Image, stem, || picture.derived_id());
        // Claimed before the file is stored, so that a second file of the same name leaves nothing behind.
        self.claim(&key, RenditionExtension::JPEG, path)?;
        let (document, mut warnings) = picture.document(&key, &self.zone)?;
        let (picture, picture_warnings) = self.store(loaded, RenditionName::NORMAL_HIRES)?;
        warnings.splice(0..0, picture_warnings);
        let mut assets = vec![Asset::own(AssetFile::Picture(picture))];
        apply_rights(&mut assets, &rights);
        self.write(&key, document, Some(assets), now).map(|item| IngestedItem { warnings, ..item })
    }

    /// Reads the rights statement of the source of the single file at `path`.
    fn rights_around(&self, path: &Path) -> IngestResult<RightsMetadata> {
        self.source_rights(path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a photograph, once the memory budget allows it.
    fn read_photograph(&self, path: &Path) -> IngestResult<LoadedPhotograph<'_>> {
        let length = std::fs::metadata(path).map_err(IngestError::Unreadable)?.len();
        // A larger file is refused when it is read, and must not wait for memory before that.
        let share = self.memory.acquire(length.min(self.limits.file_bytes_max));
        let picture = photograph::read(path, &self.limits)?;
        self.fits(&picture, length)?;
        Ok(LoadedPhotograph { picture, share })
    }

    /// Checks that a photograph of `length` bytes fits into the whole memory budget.
    fn fits(&self, picture: &CheckedPhotograph, length: u64) -> IngestResult<()> {
        let found = picture.memory_bytes(&self.originals).saturating_add(length);
        let unit = "bytes to hold while it is read";
        // The wait for a share beyond the whole budget would never end.
        IngestError::check_limit(found, self.limits.memory_bytes, unit, "ingest.memory_bytes")
    }

    /// Stores a photograph with its derived files, and also returns the warnings.
    ///
    /// If it turns out to be undecodable, no item refers to the stored original yet.
    fn store(
        &self,
        loaded: LoadedPhotograph<'_>,
        name: RenditionName,
    ) -> IngestResult<(PictureFile, Vec<String>)> {
        let LoadedPhotograph { picture, mut share } = loaded;
        // The derived files need memory in addition to the bytes that were read.
        share.grow(picture.memory_bytes(&self.originals));
        picture.store(&self.originals, name, &self.limits, &self.marker)
    }

    fn claim(
        &self,
        key: &ItemKey,
        extension: RenditionExtension,
        path: &Path,
    ) -> IngestResult<()> {
        // A server has no runs. It treats a file with the same name as a later version.
        let Some(names) = &self.names else { return Ok(()) };
        let mut names = names.lock();
        let holder = names.entry((key.clone(), extension)).or_insert_with(|| path.to_owned());
        if *holder == path {
            Ok(())
        } else {
            Err(IngestError::SameId(holder.display().to_string()))
        }
    }

    fn ingest_folder(&self, path: &Path, now: Timestamp) -> IngestResult<IngestedItem> {
        let folder = self.pin_folder(path)?;
        // Kept open until the item is written.
        let (mut bundle, _files) = files::read_folder(path, &folder)?;
        bundle.rights = self.source_rights(path)?;
        // A folder without files updates the document of an item that has files.
        let needs_picture = model::item::has_picture(bundle.key.media_type);
        if needs_picture && bundle.files.is_empty() && !self.has_original(&bundle.key)? {
            return Err(IngestError::NoPicture);
        }
        self.store_bundle(&bundle, now)
    }

    fn has_original(&self, key: &ItemKey) -> IngestResult<bool> {
        let item = self.find_item(key)?;
        Ok(item.is_some_and(|item| item.assets.iter().any(|asset| asset.association.is_none())))
    }

    fn find_item(&self, key: &ItemKey) -> IngestResult<Option<StoredItem>> {
        let key = key.clone();
        Ok(self.db.read_blocking(move |tx| tx.find_item(&key))?)
    }

    fn write(
        &self,
        key: &ItemKey,
        document: Document,
        assets: Option<Vec<Asset>>,
        now: Timestamp,
    ) -> IngestResult<IngestedItem> {
        let moment = LocalMoment { now, zone: &self.zone };
        self.write_prepared(key, PreparedItem::new(key, document, assets, moment))
    }

    fn write_prepared(&self, key: &ItemKey, prepared: PreparedItem) -> IngestResult<IngestedItem> {
        let zone = self.zone.clone();
        let event = self.is_audited.then(|| audit::event(AuditAction::ItemStored));
        let event = event.map(|event| event.with_object(ObjectKind::Item, key));
        let guard = self.guard(prepared.originals());
        Ok(self.db.write_blocking(move |tx| {
            guard.check(tx)?;
            let item = prepared.write(tx, &zone)?;
            // The event and the item are committed together, so neither exists without the other.
            if let Some(event) = event {
                tx.write_audit(&event.with_detail(item.written.as_str()))?;
            }
            Ok(item)
        })?)
    }

    /// Withdraws the item `key`: its status becomes `canceled`. Returns whether the item exists.
    ///
    /// Sending the item again restores it.
    pub fn withdraw(&self, key: &ItemKey, now: Timestamp) -> IngestResult<bool> {
        let event = audit::event(AuditAction::ItemWithdrawn).with_object(ObjectKind::Item, key);
        let key = key.clone();
        let zone = self.zone.clone();
        Ok(self.db.write_blocking(move |tx| {
            let moment = LocalMoment { now, zone: &zone };
            // Without such an item nothing changes, so nothing is recorded.
            if !write::withdraw(tx, &key, moment, event.actor.user_name.clone())? {
                return Ok(false);
            }
            tx.write_audit(&event)?;
            Ok(true)
        })?)
    }

    /// Records an audit event that does not belong to a single item.
    fn record(&self, event: AuditEvent) {
        if let Err(cause) = self.db.write_blocking(move |tx| tx.write_audit(&event)) {
            // The items are already stored, and a missing event does not undo them.
            tracing::error!("audit log: event cannot be written: {cause}");
        }
    }
}

/// Classifies the error of a file that cannot be opened. A link or a special file is the sender's fault; any other
/// error is a fault of this machine.
fn refused_link(cause: io::Error) -> IngestError {
    if cause.kind() == io::ErrorKind::InvalidInput {
        IngestError::Name(cause.to_string())
    } else {
        IngestError::Unreadable(cause)
    }
}

/// Ingests all of `incoming` on `workers` threads, and calls `report` at the end of each.
pub fn ingest_all(
    ingest: &Ingest,
    incoming: Vec<IncomingPath>,
    workers: usize,
    now: &(dyn Fn() -> Timestamp + Sync),
    report: &(dyn Fn(&IncomingPath, &Result<IngestedItem, IngestFailure>) + Sync),
) {
    let queue = Arc::new(Mutex::new(incoming.into_iter()));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                loop {
                    // A separate statement, so that the lock is released before the file is ingested.
                    let next = queue.lock().next();
                    let Some(incoming) = next else { return };
                    report(&incoming, &ingest.ingest(&incoming, now()));
                }
            });
        }
    });
}

/// Returns the item of a file that is named `<stem>.<extension>`. If the stem is not a valid id, the id comes from
/// the content.
fn key_of_stem(media_type: MediaType, stem: &str, derived_id: impl FnOnce() -> ItemId) -> ItemKey {
    ItemKey { media_type, id: ItemId::parse(stem).unwrap_or_else(|_| derived_id()) }
}
