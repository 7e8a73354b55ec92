//! Finds files and folders to ingest, and reads files under limits.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::pinned_path::PinnedPath;
use super::{
    BundleFile, FileName, IncomingPath, IngestError, IngestFailure, IngestResult, ItemBundle,
};
use crate::runtime::limits::{DOCUMENT_BYTES_MAX, INGEST_DEPTH_MAX, ITEM_FILES_MAX};
use imaging::ImageFormat;
use metadata::RightsMetadata;
use model::{ItemId, ItemKey, MediaType, RenditionExtension, RenditionName};

/// Files that one ingest run accepts.
const INGEST_FILES_MAX: usize = 1_000_000;

/// The name of an item folder's document.
pub(super) const DOCUMENT: &str = "item.json";
/// The name of the file with a source's statement about rights.
pub(super) const RIGHTS_FILE: &str = "rights.json";

/// The result of [`find`].
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// Files and item folders, in the order of the paths.
    pub incoming: Vec<IncomingPath>,
    /// Files of documents, one document per line.
    pub lines: Vec<PathBuf>,
    /// The number of files of other kinds in folders, which are skipped.
    pub skipped: usize,
    /// Paths that cannot be read or are not of a kind that is ingested.
    pub failures: Vec<IngestFailure>,
}

/// Finds media files, item folders and files of documents in `paths`, recursively.
///
/// A path to a file must name a file of these kinds. Within folders, files of other kinds are skipped.
pub fn find(paths: &[PathBuf]) -> FoundFiles {
    let mut found = FoundFiles::default();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => found.walk(path, 0),
            Ok(_) if found.take_file(path) => {}
            Ok(_) if path.file_name().is_some_and(|name| name == DOCUMENT) => {
                let parent = path.parent().unwrap_or(Path::new("")).to_owned();
                found.push(IncomingPath::ItemFolder(parent));
            }
            Ok(_) => found.fail(path, IngestError::Kind),
            Err(cause) => found.fail(path, IngestError::Unreadable(cause)),
        }
    }
    found
}

impl FoundFiles {
    fn fail(&mut self, path: &Path, error: IngestError) {
        self.failures.push(IngestFailure::new(path, error));
    }

    /// Adds the file and returns true if it is of a known kind.
    fn take_file(&mut self, path: &Path) -> bool {
        match extension(path).as_str() {
            "jsonl" => self.lines.push(path.to_owned()),
            other if media_type(other).is_some() => self.push(IncomingPath::File(path.to_owned())),
            _ => return false,
        }
        true
    }

    fn push(&mut self, incoming: IncomingPath) {
        if self.incoming.len() < INGEST_FILES_MAX {
            self.incoming.push(incoming);
        } else {
            let message =
                format!("exceeds the {INGEST_FILES_MAX} files of one run; ingest it later");
            self.fail(incoming.path(), IngestError::Name(message));
        }
    }

    fn walk(&mut self, dir: &Path, depth: usize) {
        // An item folder is one unit: its files are not separate items.
        if dir.join(DOCUMENT).is_file() {
            return self.push(IncomingPath::ItemFolder(dir.to_owned()));
        }
        if depth >= INGEST_DEPTH_MAX {
            let message = format!("is nested deeper than {INGEST_DEPTH_MAX} folders");
            return self.fail(dir, IngestError::Name(message));
        }
        let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(cause) => return self.fail(dir, IngestError::Unreadable(cause)),
        };
        // The order of a directory is arbitrary, but a run should be repeatable.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            // Links to folders are not followed, because they can form loops.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.walk(&path, depth + 1),
                // The statement is read with the files that it applies to.
                Ok(_) if entry.file_name() == RIGHTS_FILE => {}
                Ok(_) if self.take_file(&path) => {}
                Ok(_) => self.skipped += 1,
                Err(cause) => self.fail(&path, IngestError::Unreadable(cause)),
            }
        }
    }
}

/// Returns the media type of a single file, by its extension in lower case; `None` if it is not ingested.
pub(super) fn media_type(extension: &str) -> Option<MediaType> {
    if ImageFormat::of_extension(extension).is_some_and(ImageFormat::is_readable) {
        return Some(MediaType::Image);
    }
    match extension {
        "pdf" | "eps" => Some(MediaType::Graphic),
        "mp4" => Some(MediaType::Video),
        _ => None,
    }
}

/// Returns the name that a single file gets in its item: a `.pdf` or `.eps` is the Hires of a graphic, and an
/// `.mp4` is the Preview of a video, which is the file that customers get. `None` for other files.
pub(super) fn single_name(path: &Path) -> Option<FileName> {
    let (name, extension) = match extension(path).as_str() {
        "pdf" => (RenditionName::NORMAL_HIRES, RenditionExtension::Pdf),
        "eps" => (RenditionName::NORMAL_HIRES, RenditionExtension::Eps),
        "mp4" => (RenditionName::NORMAL_PREVIEW, RenditionExtension::Mp4),
        _ => return None,
    };
    Some(FileName { association: None, name, extension })
}

/// Returns the extension of a file in lower case.
pub(super) fn extension(path: &Path) -> String {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.unwrap_or_default().to_ascii_lowercase()
}

/// Returns the item of a folder `<mediaType>/<id>` at `path`.
pub(super) fn folder_key(path: &Path) -> IngestResult<ItemKey> {
    let mut names = path.iter().rev().map(|name| name.to_string_lossy().into_owned());
    let id = names.next().unwrap_or_default();
    let media_type = names.next().unwrap_or_default();
    let media_type =
        media_type.parse::<MediaType>().map_err(|cause| no_item_folder(&cause.to_string()))?;
    let id = ItemId::parse(&id).map_err(|cause| no_item_folder(&cause.to_string()))?;
    Ok(ItemKey { media_type, id })
}

fn no_item_folder(why: &str) -> IngestError {
    IngestError::Name(format!("is not a folder <mediaType>/<id> with an item.json: {why}"))
}

/// Reads the document and the files of the folder `<mediaType>/<id>` at `path`, which is open as `folder`. The
/// files stay the same for as long as the returned pinned paths exist.
pub(super) fn read_folder(
    path: &Path,
    folder: &PinnedPath,
) -> IngestResult<(ItemBundle, Vec<PinnedPath>)> {
    let full = fs::canonicalize(folder.path()).map_err(IngestError::Unreadable)?;
    // The open folder may have been renamed. Then the name under which it was found decides its item.
    let key = folder_key(&full).or_else(|_| folder_key(path))?;
    let mut files = Vec::new();
    let mut pinned = Vec::new();
    let entries = fs::read_dir(folder.path()).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(IngestError::Unreadable)?;
    // The files stay open until the item is written, so the limit also bounds the open files.
    if entries.len() > ITEM_FILES_MAX {
        return Err(IngestError::Name(format!("has more than {ITEM_FILES_MAX} files")));
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    let states_rights = entries.iter().any(|entry| entry.file_name() == RIGHTS_FILE);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Desktop systems leave hidden files in folders, such as `.DS_Store`.
        if ![DOCUMENT, RIGHTS_FILE].contains(&name.as_str()) && !name.starts_with('.') {
            let file = folder.file(&entry.file_name()).map_err(super::refused_link)?;
            files.push(BundleFile { name, path: file.path().to_owned() });
            pinned.push(file);
        }
    }
    // The item's files may have arrived earlier, and the statement would be lost without notice.
    if states_rights && files.is_empty() {
        return Err(rights_without_files(path));
    }
    let document = folder.file(OsStr::new(DOCUMENT)).map_err(super::refused_link);
    let document = document
        .and_then(|document| read(document.path(), DOCUMENT_BYTES_MAX, "4 MiB"))
        .map_err(|error| super::error::refused(DOCUMENT, error))?;
    Ok((ItemBundle { key, document, files, rights: RightsMetadata::default() }, pinned))
}

fn rights_without_files(folder: &Path) -> IngestError {
    let place = folder.join(RIGHTS_FILE).display().to_string();
    let why = "is about files, and the folder has none; the rights in an item that exists are set \
               with PUT /ingest/v1/<mediaType>/<id>/rights";
    IngestError::Rights { place, why: why.to_owned() }
}

/// Reads a file of at most `bytes_max` bytes; `setting` names the limit in the error.
pub(super) fn read(path: &Path, bytes_max: u64, setting: &'static str) -> IngestResult<Vec<u8>> {
    let metadata = fs::metadata(path).map_err(IngestError::Unreadable)?;
    if metadata.len() == 0 {
        return Err(IngestError::Empty);
    }
    IngestError::check_limit(metadata.len(), bytes_max, "bytes", setting)?;
    fs::read(path).map_err(IngestError::Unreadable)
}
