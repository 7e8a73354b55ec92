//! Ingest: photographs and item folders become items (`operator.md`, "Ingest input").
//!
//! One path for every door: read and check the files, check that the picture decodes, store the
//! originals by content, then write document, files and log row in one transaction. An item is
//! taken in whole or not at all; a bad one is reported and the others go on. A process that is
//! killed leaves at most blobs that nobody names.

mod files;
mod photograph;

use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{Timestamp, tz::TimeZone};

pub use files::{Found, find};
use photograph::Photograph;

use crate::db::{Db, DbError, NewItem, Written};
use crate::item::{Asset, Document, DocumentError};
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::media::jpeg::header::HeaderLimits;
use crate::media::original::Originals;
use crate::media::raster::Marker;
use crate::query::Indexed;
use crate::store::StoreError;
use crate::types::{ItemId, ItemKey, MediaType, RenditionName};

/// The end of an embargo whose time is beyond what can be held, such as the end of the year 9999.
const FOREVER: Timestamp = Timestamp::constant(253_370_764_800, 0);

/// Something to take in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A photograph that brings its own caption.
    Photograph(PathBuf),
    /// A folder `<mediaType>/<id>/` with `item.json`.
    ItemFolder(PathBuf),
}

impl Incoming {
    /// The file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Photograph(path) | Self::ItemFolder(path) => path,
        }
    }
}

/// Why something was not taken in. The text does not name the file; [`Failure`] does.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A file or folder cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// A file has no bytes.
    #[error("is empty")]
    Empty,
    /// A file beyond a limit.
    #[error("has {found} {unit}, more than the limit of {limit} ({setting})")]
    TooLarge {
        /// What it has.
        found: u64,
        /// What it may have.
        limit: u64,
        /// Of what.
        unit: &'static str,
        /// The setting that allows more.
        setting: &'static str,
    },
    /// Not a picture that can be rendered.
    #[error("{0}")]
    Picture(String),
    /// Not a kind of file that is taken in.
    #[error("is not a photograph (.jpg, .jpeg) and not a folder with photographs or item.json")]
    Kind,
    /// A folder's place or a file's name says nothing that we know.
    #[error("{0}")]
    Name(String),
    /// Its `item.json` is not a document of the schema.
    #[error("item.json {0}")]
    Document(#[from] DocumentError),
    /// The picture is missing.
    #[error("has no NormalHires.jpg")]
    NoPicture,
    /// Another file of the same run has the same id.
    #[error("has the id of {0}, which is another photograph; rename one of them")]
    SameId(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// Something that was not taken in, with its name.
#[derive(Debug)]
pub struct Failure {
    /// The file or folder as it was named or found.
    pub path: PathBuf,
    /// Why.
    pub error: IngestError,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

/// An item that was taken in.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its identity.
    pub key: ItemKey,
    /// Whether it is new.
    pub written: Written,
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
}

/// Takes files in. Shared by the threads of one run.
pub struct Ingest {
    db: Db,
    originals: Originals,
    limits: IngestLimits,
    marker: Arc<Marker>,
    zone: TimeZone,
    /// The photographs of this run by id, so that two files of one name do not replace each
    /// other unnoticed.
    names: Mutex<HashMap<ItemId, PathBuf>>,
}

impl Ingest {
    /// Takes in into `db` and `originals`; `zone` is whose midnight orders photographs.
    #[must_use]
    pub fn new(
        db: Db,
        originals: Originals,
        limits: IngestLimits,
        zone: TimeZone,
        marker: Arc<Marker>,
    ) -> Self {
        Self { db, originals, limits, marker, zone, names: Mutex::default() }
    }

    /// Takes one thing in; `now` is when it comes in.
    pub fn take_in(&self, incoming: &Incoming, now: Timestamp) -> Result<Taken, Failure> {
        let outcome = match incoming {
            Incoming::Photograph(path) => self.take_photograph(path, now),
            Incoming::ItemFolder(path) => self.take_folder(path, now),
        };
        let named = |error| Failure { path: incoming.path().to_owned(), error };
        outcome.map_err(|(path, error)| match path {
            Some(path) => named(in_file(&path, &error)),
            None => named(error),
        })
    }

    fn take_photograph(&self, path: &Path, now: Timestamp) -> Result<Taken, Located> {
        let picture = photograph::read(path, &self.limits).map_err(here)?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let id = ItemId::parse(stem).unwrap_or_else(|_| picture.derived_id());
        self.claim(&id, path).map_err(here)?;
        let key = ItemKey { media_type: MediaType::Image, id };
        let (document, mut warnings) =
            picture.document(&key, &self.zone).map_err(|e| here(e.into()))?;
        let hires = RenditionName::NORMAL_HIRES;
        let (asset, odd) = self.store(&picture, hires).map_err(here)?;
        warnings.splice(0..0, odd);
        self.write(key, document, Some(vec![asset]), now)
            .map_err(here)
            .map(|taken| Taken { warnings, ..taken })
    }

    /// Stores a photograph with what is derived from it; gives what is odd about it too.
    ///
    /// Nothing names the original yet when it turns out that it cannot be decoded.
    fn store(
        &self,
        picture: &Photograph,
        name: RenditionName,
    ) -> Result<(Asset, Vec<String>), IngestError> {
        picture.store(&self.originals, name, (&self.limits, &self.marker))
    }

    fn claim(&self, id: &ItemId, path: &Path) -> Result<(), IngestError> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(id) {
            Some(other) if other != path => Err(IngestError::SameId(other.display().to_string())),
            Some(_) => Ok(()),
            None => {
                names.insert(id.clone(), path.to_owned());
                Ok(())
            }
        }
    }

    fn take_folder(&self, path: &Path, now: Timestamp) -> Result<Taken, Located> {
        let folder = files::read_folder(path).map_err(here)?;
        let key = folder.key;
        if !crate::item::has_picture(key.media_type) {
            let kind = key.media_type;
            return Err(here(IngestError::Name(format!(
                "is an item of media type {kind}; photographs (image, stockfoto) are taken in"
            ))));
        }
        let text = files::read(&folder.document, DOCUMENT_BYTES_MAX, "4 MiB")
            .and_then(|bytes| {
                String::from_utf8(bytes)
                    .map_err(|cause| DocumentError::NotJson(format!("not UTF-8: {cause}")).into())
            })
            .map_err(|error| (None, error))?;
        let document = Document::parse(&key, &text).map_err(|e| here(e.into()))?;
        let mut assets = Vec::new();
        let mut warnings = Vec::new();
        for (name, file) in folder.pictures {
            let located = |error| (Some(file.clone()), error);
            let picture = photograph::read(&file, &self.limits).map_err(located)?;
            let (asset, odd) = self.store(&picture, name).map_err(located)?;
            warnings.extend(odd);
            assets.push(asset);
        }
        // A folder without files brings a new document for the files that the item has.
        let hires = RenditionName::NORMAL_HIRES;
        let complete = if assets.is_empty() {
            self.has_original(&key).map_err(here)?
        } else {
            assets.iter().any(|asset: &Asset| asset.name == hires)
        };
        if !complete {
            return Err(here(IngestError::NoPicture));
        }
        let assets = Some(assets).filter(|assets| !assets.is_empty());
        self.write(key, document, assets, now)
            .map_err(here)
            .map(|taken| Taken { warnings, ..taken })
    }

    fn has_original(&self, key: &ItemKey) -> Result<bool, IngestError> {
        let key = key.clone();
        let item = self.db.read_blocking(move |tx| tx.find_item(&key))?;
        Ok(item.is_some_and(|item| !item.assets.is_empty()))
    }

    fn write(
        &self,
        key: ItemKey,
        mut document: Document,
        assets: Option<Vec<Asset>>,
        now: Timestamp,
    ) -> Result<Taken, IngestError> {
        document.complete(&key, now, &self.zone);
        let item = NewItem {
            document: document.to_stored(),
            assets,
            pub_status: document.pub_status(),
            order_time: document.order_time(key.media_type, now, &self.zone),
            embargoed: document.text("embargoed").map(|text| text.parse().unwrap_or(FOREVER)),
            stored: now,
            fresh: true,
            indexed: Indexed::of(&key, &document, &self.zone),
            key: key.clone(),
        };
        let written = self.db.write_blocking(move |tx| tx.write_item(&item))?;
        Ok(Taken { key, written, warnings: Vec::new() })
    }
}

/// An error with the file inside an item folder that it belongs to.
type Located = (Option<PathBuf>, IngestError);

fn here(error: IngestError) -> Located {
    (None, error)
}

/// Names the file of an item folder in the error.
fn in_file(path: &Path, error: &IngestError) -> IngestError {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    IngestError::Picture(format!("{name} {error}"))
}

/// The name of a rendition's file, `NormalHires.jpg`.
fn file_name(name: RenditionName) -> String {
    format!("{}{}.jpg", name.variant.as_str(), name.usage.as_str())
}

/// Takes in everything that `incoming` lists on `workers` threads; `report` hears of each as it
/// ends.
pub fn take_in_all(
    ingest: &Ingest,
    incoming: Vec<Incoming>,
    workers: usize,
    now: &(dyn Fn() -> Timestamp + Sync),
    report: &(dyn Fn(&Incoming, &Result<Taken, Failure>) + Sync),
) {
    let queue = Arc::new(Mutex::new(incoming.into_iter()));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(incoming) = next else { return };
                    // A library that panics on one file must not end the run.
                    let taken =
                        catch_unwind(AssertUnwindSafe(|| ingest.take_in(&incoming, now())));
                    let panicked = |_| {
                        let error = IngestError::Picture("made the reader panic".to_owned());
                        Err(Failure { path: incoming.path().to_owned(), error })
                    };
                    report(&incoming, &taken.unwrap_or_else(panicked));
                }
            });
        }
    });
}
