//! Ingest: photographs, item folders, files of documents and uploads become items.
//!
//! One path for every door: read and check the files, check that the picture decodes, store the
//! originals by content, then write document, files and log row in one transaction, together with
//! what the item changes in others. An item is taken in whole or not at all; a bad one is reported
//! and the others go on. A process that is killed leaves at most blobs that nobody names.

mod bundle;
mod error;
mod files;
pub mod folder_watch;
mod lines;
mod media_kinds;
mod names;
mod photograph;
mod pinned_path;
mod spool;
mod uploads;

mod write;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use bundle::{BundleFile, ItemBundle};
use error::catch_panics;
pub use error::{FileRefusal, IngestError, IngestFailure};
pub use files::{FoundFiles, find};
pub use lines::{LinesEvent, LinesTally, ingest_lines};
pub use names::FileName;
use photograph::CheckedPhotograph;
use pinned_path::PinnedPath;
pub use spool::{SpooledFile, UploadSpool};
pub use uploads::{UploadPermit, Uploads};
use write::{LocalMoment, PreparedItem};

use crate::media::original::OriginalStore;
use crate::runtime::compute::{MemoryBudget, MemoryShare};
use crate::runtime::programs::ProgramRunner;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{Db, ItemWriteOutcome};
use imaging::Watermark;
use jpeg::header::HeaderLimits;
use model::item::{Asset, AssetFile, Document, PictureFile};
use model::{ItemId, ItemKey, MediaType, RenditionExtension, RenditionName};

/// Something to take in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingPath {
    /// A photograph, a graphic or a video that comes alone; a photograph brings its own caption.
    File(PathBuf),
    /// A folder `<mediaType>/<id>/` with `item.json`.
    ItemFolder(PathBuf),
}

impl IncomingPath {
    /// The file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::ItemFolder(path) => path,
        }
    }
}

impl IncomingPath {
    /// The item that the name of the file or folder stands for; a photograph with another name gets
    /// its id from its content.
    #[must_use]
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

/// An item that was taken in.
#[derive(Clone, Debug)]
pub struct IngestedItem {
    /// Its identity.
    pub key: ItemKey,
    /// Whether it is new.
    pub written: ItemWriteOutcome,
    /// Items that it turned into replaced ones.
    pub replaced_items: Vec<ItemKey>,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

/// Limits on what comes in.
#[derive(Clone, Copy, Debug)]
pub struct IngestLimits {
    /// Pixels of a picture.
    pub pixels_max: u64,
    /// Bytes of a file.
    pub file_bytes_max: u64,
    /// Limits of the marker parser.
    pub header: HeaderLimits,
    /// Work on one photograph after which it is refused.
    pub file_time: Duration,
    /// Memory that one photograph may take, bytes.
    pub memory_bytes: u64,
    /// Long side of the picture that is made of a graphic's first page.
    pub page_px: u32,
    /// Long side of the Preview that is made of a video.
    pub video_px: u32,
    /// Whether a PDF with active content is refused, instead of taken in with a warning.
    pub refuses_active_pdf: bool,
}

impl IngestLimits {
    fn too_slow(&self) -> IngestError {
        IngestError::TooSlow(self.file_time)
    }
}

/// Takes files in. Shared by the threads of one run, or by all doors of a server.
pub struct Ingest {
    db: Db,
    originals: OriginalStore,
    programs: ProgramRunner,
    limits: IngestLimits,
    /// What files that are being taken in hold, at all doors.
    memory: Arc<MemoryBudget>,
    marker: Arc<Watermark>,
    zone: TimeZone,
    /// The files of this run that came alone, by what they become, so that two files of one name do not replace each
    /// other unnoticed. A server has no runs.
    names: Option<Mutex<HashMap<(ItemKey, RenditionExtension), PathBuf>>>,
    /// The watched folder, below which no symbolic link is followed.
    confined_root: Option<PathBuf>,
    /// Whether each item is an event of the audit log. A command is one event with its numbers.
    is_audited: bool,
}

/// A photograph in memory, with its share of the memory budget.
struct LoadedPhotograph<'a> {
    picture: CheckedPhotograph,
    share: MemoryShare<'a>,
}

impl Ingest {
    /// Takes in into `db` and `originals`; `zone` is whose midnight orders photographs.
    #[must_use]
    pub fn new(
        db: Db,
        originals: OriginalStore,
        programs: ProgramRunner,
        limits: IngestLimits,
        memory: Arc<MemoryBudget>,
        zone: TimeZone,
        marker: Arc<Watermark>,
    ) -> Self {
        let names = Some(Mutex::default());
        let (within, is_audited) = (None, false);
        Self {
            db,
            originals,
            programs,
            limits,
            memory,
            marker,
            zone,
            names,
            confined_root: within,
            is_audited,
        }
    }

    /// Bytes of a file at most.
    #[must_use]
    pub fn file_bytes_max(&self) -> u64 {
        self.limits.file_bytes_max
    }

    /// The same for a server, where a file of the same name is a later version.
    #[must_use]
    pub fn for_server(self) -> Self {
        Self { names: None, is_audited: true, ..self }
    }

    /// The same for what lies below the folder `dir`, which others write into: no symbolic link on the
    /// way to a file is followed.
    #[must_use]
    pub fn confined_to(self, dir: &Path) -> Self {
        Self { confined_root: Some(dir.to_owned()), ..self }
    }

    /// Opens a file that comes in, so that what is read of it is the same file each time.
    fn pin(&self, path: &Path) -> Result<PinnedPath, IngestError> {
        let Some(root) = &self.confined_root else { return Ok(PinnedPath::unpinned(path)) };
        pinned_path::file(root, path).map_err(refused_link)
    }

    /// The same for an item folder.
    fn pin_folder(&self, path: &Path) -> Result<PinnedPath, IngestError> {
        let Some(root) = &self.confined_root else { return Ok(PinnedPath::unpinned(path)) };
        pinned_path::folder(root, path).map_err(refused_link)
    }

    /// Takes one thing in; `now` is when it comes in.
    pub fn ingest(
        &self,
        incoming: &IncomingPath,
        now: Timestamp,
    ) -> Result<IngestedItem, IngestFailure> {
        let outcome = catch_panics(|| match incoming {
            IncomingPath::File(path) => self.ingest_single(path, now),
            IncomingPath::ItemFolder(path) => self.ingest_folder(path, now),
        });
        outcome.map_err(|error| IngestFailure::of(incoming.path(), error))
    }

    /// Takes in a file that comes alone: a `.jpg` is the Hires of an image, a `.pdf` or `.eps` that of
    /// a graphic, an `.mp4` the Preview of a video, which is the one that customers get.
    fn ingest_single(&self, path: &Path, now: Timestamp) -> Result<IngestedItem, IngestError> {
        let (name, extension) = match files::extension(path).as_str() {
            "pdf" => (RenditionName::NORMAL_HIRES, RenditionExtension::Pdf),
            "eps" => (RenditionName::NORMAL_HIRES, RenditionExtension::Eps),
            "mp4" => (RenditionName::NORMAL_PREVIEW, RenditionExtension::Mp4),
            _ => return self.ingest_photograph(path, now),
        };
        let media_type = files::media_type(&files::extension(path)).ok_or(IngestError::Kind)?;
        let name = FileName { association: None, name, extension };
        let source = self.pin(path)?;
        let (asset, mut warnings) = self.ingest_file(&name, source.path())?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let id = match ItemId::parse(stem) {
            Ok(id) => id,
            Err(_) => photograph::derived_id(asset.blob()),
        };
        let key = ItemKey { media_type, id };
        self.claim(&key, extension, path)?;
        let fields = Map::from_iter([("headline".to_owned(), Value::from(stem))]);
        let document = Document::from_fields(&key, fields)?;
        let mut assets = vec![asset];
        let files = [(name, source.path().to_owned())];
        warnings.extend(self.create_missing(media_type, &mut assets, &files)?);
        let moment = LocalMoment { now, zone: &self.zone };
        let prepared = PreparedItem::new(&key, document, Some(assets), moment).alone();
        self.write_prepared(&key, prepared).map(|taken| IngestedItem { warnings, ..taken })
    }

    fn ingest_photograph(&self, path: &Path, now: Timestamp) -> Result<IngestedItem, IngestError> {
        let loaded = self.read_photograph(self.pin(path)?.path())?;
        let picture = &loaded.picture;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let id = ItemId::parse(stem).unwrap_or_else(|_| picture.derived_id());
        let key = ItemKey { media_type: MediaType::Image, id };
        self.claim(&key, RenditionExtension::JPEG, path)?;
        let (document, mut warnings) = picture.document(&key, &self.zone)?;
        let (picture, odd) = self.store(loaded, RenditionName::NORMAL_HIRES)?;
        warnings.splice(0..0, odd);
        let asset = Asset::own(AssetFile::Picture(picture));
        self.write(&key, document, Some(vec![asset]), now)
            .map(|taken| IngestedItem { warnings, ..taken })
    }

    /// Reads a photograph when there is memory for it.
    fn read_photograph(&self, path: &Path) -> Result<LoadedPhotograph<'_>, IngestError> {
        let length = std::fs::metadata(path).map_err(IngestError::Unreadable)?.len();
        let share = self.memory.acquire(length.min(self.limits.file_bytes_max));
        let picture = photograph::read(path, &self.limits)?;
        self.fits(&picture, length)?;
        Ok(LoadedPhotograph { picture, share })
    }

    /// Whether a photograph of `length` bytes can be taken in with all memory that there is.
    fn fits(&self, picture: &CheckedPhotograph, length: u64) -> Result<(), IngestError> {
        let found = picture.memory_bytes(&self.originals).saturating_add(length);
        let limit = self.limits.memory_bytes;
        if found > limit {
            let (unit, setting) = ("bytes to hold while it is read", "ingest.memory_bytes");
            return Err(IngestError::TooLarge { found, limit, unit, setting });
        }
        Ok(())
    }

    /// Stores a photograph with what is derived from it; gives what is odd about it too.
    ///
    /// Nothing names the original yet when it turns out that it cannot be decoded.
    fn store(
        &self,
        loaded: LoadedPhotograph<'_>,
        name: RenditionName,
    ) -> Result<(PictureFile, Vec<String>), IngestError> {
        let LoadedPhotograph { picture, mut share } = loaded;
        share.grow(picture.memory_bytes(&self.originals));
        picture.store(&self.originals, name, &self.limits, &self.marker)
    }

    fn claim(
        &self,
        key: &ItemKey,
        extension: RenditionExtension,
        path: &Path,
    ) -> Result<(), IngestError> {
        let Some(names) = &self.names else { return Ok(()) };
        let mut names = names.lock();
        match names.get(&(key.clone(), extension)) {
            Some(other) if other != path => Err(IngestError::SameId(other.display().to_string())),
            Some(_) => Ok(()),
            None => {
                names.insert((key.clone(), extension), path.to_owned());
                Ok(())
            }
        }
    }

    fn ingest_folder(&self, path: &Path, now: Timestamp) -> Result<IngestedItem, IngestError> {
        let folder = self.pin_folder(path)?;
        // Kept open until the item is written.
        let (bundle, _files) = files::read_folder(path, &folder)?;
        // A folder without files brings a new document for the files that the item has.
        let needs_picture = model::item::has_picture(bundle.key.media_type);
        if needs_picture && bundle.files.is_empty() && !self.has_original(&bundle.key)? {
            return Err(IngestError::NoPicture);
        }
        self.ingest_bundle(&bundle, now)
    }

    fn has_original(&self, key: &ItemKey) -> Result<bool, IngestError> {
        let key = key.clone();
        let item = self.db.read_blocking(move |tx| tx.find_item(&key))?;
        let own = |asset: &Asset| asset.association.is_none();
        Ok(item.is_some_and(|item| item.assets.iter().any(own)))
    }

    fn write(
        &self,
        key: &ItemKey,
        document: Document,
        assets: Option<Vec<Asset>>,
        now: Timestamp,
    ) -> Result<IngestedItem, IngestError> {
        let moment = LocalMoment { now, zone: &self.zone };
        self.write_prepared(key, PreparedItem::new(key, document, assets, moment))
    }

    fn write_prepared(
        &self,
        key: &ItemKey,
        prepared: PreparedItem,
    ) -> Result<IngestedItem, IngestError> {
        let zone = self.zone.clone();
        let event = self.is_audited.then(|| audit::event(AuditAction::ItemStored));
        let event = event.map(|event| event.with_object(ObjectKind::Item, key));
        let outcome = self.db.write_blocking(move |tx| {
            let outcome = prepared.write(tx, &zone)?;
            if let Some(event) = event {
                tx.write_audit(&event.with_detail(outcome.written.as_str()))?;
            }
            Ok(outcome)
        })?;
        let write::ItemWrite { written, replaced_items: turned } = outcome;
        Ok(IngestedItem {
            key: key.clone(),
            written,
            replaced_items: turned,
            warnings: Vec::new(),
        })
    }

    /// Takes the item `key` out: its status becomes `canceled`. Gives whether it is there.
    ///
    /// Sending it again brings it back.
    pub fn withdraw(&self, key: &ItemKey, now: Timestamp) -> Result<bool, IngestError> {
        let event = audit::event(AuditAction::ItemWithdrawn).with_object(ObjectKind::Item, key);
        let (key, zone) = (key.clone(), self.zone.clone());
        Ok(self.db.write_blocking(move |tx| {
            let moment = LocalMoment { now, zone: &zone };
            let is_there = write::withdraw(tx, &key, moment)?;
            if is_there {
                tx.write_audit(&event)?;
            }
            Ok(is_there)
        })?)
    }

    /// Records an event of the audit log that belongs to no single item.
    fn record(&self, event: AuditEvent) {
        if let Err(cause) = self.db.write_blocking(move |tx| tx.write_audit(&event)) {
            tracing::error!("an event of the audit log cannot be written: {cause}");
        }
    }
}

/// A file that cannot be opened: a link or what is no file is the sender's fault, the rest ours.
fn refused_link(cause: io::Error) -> IngestError {
    match cause.kind() == io::ErrorKind::InvalidInput {
        true => IngestError::Name(cause.to_string()),
        false => IngestError::Unreadable(cause),
    }
}

/// Takes in everything that `incoming` lists on `workers` threads; `report` hears of each as it
/// ends.
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
                    let next = queue.lock().next();
                    let Some(incoming) = next else { return };
                    report(&incoming, &ingest.ingest(&incoming, now()));
                }
            });
        }
    });
}
