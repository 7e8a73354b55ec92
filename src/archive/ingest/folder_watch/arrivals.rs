//! Lists the inputs in a watched folder.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::archive::ingest::files::{DOCUMENT, RIGHTS_FILE, extension, media_type};
use crate::runtime::limits::{INGEST_DEPTH_MAX, ITEM_FILES_MAX};
use model::MediaType;

/// Files and item folders that one poll of the watched folder handles; the rest waits for the next poll.
const WATCH_ENTRIES_MAX: usize = 10_000;

/// An input that is complete, judged by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) path: PathBuf,
    pub(super) kind: ArrivalKind,
    pub(super) stamp: ArrivalStamp,
}

/// The kind of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// A photograph, a graphic or a video.
    Media,
    /// A folder `<mediaType>/<id>/` with its document.
    ItemFolder,
    /// A file of documents.
    Lines,
    /// An item folder with a symbolic link. It is refused, because a user who may write into the watched folder
    /// must not read other files of the machine through the link.
    Link,
    Unknown,
}

/// The sizes and times of a file, or of the files of a folder. Two equal stamps mean that no file is being
/// written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrivalStamp(Vec<(PathBuf, u64, SystemTime)>);

/// Lists the inputs in `dir`, except for its direct subfolders `skipped`.
///
/// Skips files that are hidden or named `*.part`, `*.tmp` or `rights.json`, symbolic links, item folders that
/// contain such unfinished files or no document yet, and everything beyond the limits of one poll.
///
/// Fails if `dir` cannot be read. A subfolder that cannot be read is skipped.
pub(super) fn list(dir: &Path, skipped: &[&str]) -> io::Result<Vec<Arrival>> {
    let mut found = Vec::new();
    let entries: Vec<DirEntry> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
    walk(entries, &|name| skipped.contains(&name), 0, &mut found);
    Ok(found)
}

impl Arrival {
    /// Returns whether the input is unchanged on disk.
    pub(super) fn is_unchanged(&self) -> bool {
        let is_folder = matches!(self.kind, ArrivalKind::ItemFolder | ArrivalKind::Link);
        let now = if is_folder {
            item_folder(&self.path).map(|found| found.stamp)
        } else {
            stamp_of_file(&self.path)
        };
        now.as_ref() == Some(&self.stamp)
    }
}

fn stamp_of_file(path: &Path) -> Option<ArrivalStamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(ArrivalStamp(vec![(path.to_owned(), metadata.len(), metadata.modified().ok()?)]))
}

fn walk(
    mut entries: Vec<DirEntry>,
    is_skipped: &dyn Fn(&str) -> bool,
    depth: usize,
    found: &mut Vec<Arrival>,
) {
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if found.len() >= WATCH_ENTRIES_MAX {
            return;
        }
        // The entry may have been moved away since the listing.
        let Ok(kind) = entry.file_type() else { continue };
        // A statement about the files of a folder stays in the folder.
        let is_statement = kind.is_file() && name == RIGHTS_FILE;
        if is_unfinished(&name) || is_skipped(&name) || is_statement {
            continue;
        }
        // A symbolic link is neither a file nor a folder here, so it is skipped.
        if kind.is_file() {
            found.extend(file(&entry));
        } else if kind.is_dir() && depth < INGEST_DEPTH_MAX {
            list_folder(&entry.path(), depth, found);
        }
    }
}

/// Returns whether a name marks a file that is hidden or still being written.
fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') || name.ends_with(".part") || name.ends_with(".tmp")
}

fn file(entry: &DirEntry) -> Option<Arrival> {
    let path = entry.path();
    let kind = match extension(&path).as_str() {
        "jsonl" => ArrivalKind::Lines,
        other if media_type(other).is_some() => ArrivalKind::Media,
        _ => ArrivalKind::Unknown,
    };
    let stamp = stamp_of_file(&path)?;
    Some(Arrival { path, kind, stamp })
}

/// Lists a folder: an item folder, or a folder with further folders and files.
fn list_folder(path: &Path, depth: usize, found: &mut Vec<Arrival>) {
    let parent = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    // Below a folder named after a media type, a folder without a document is an item that is still arriving.
    let is_item = depth > 0 && parent.is_some_and(|name| name.parse::<MediaType>().is_ok());
    if is_item || path.join(DOCUMENT).is_file() {
        found.extend(item_folder(path));
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    walk(entries.flatten().collect(), &|_| false, depth + 1, found);
}

/// Returns the item folder, if it has its document and no file in it is being written.
fn item_folder(path: &Path) -> Option<Arrival> {
    let mut stamps = Vec::new();
    let mut kind = ArrivalKind::ItemFolder;
    let mut has_document = false;
    let mut count = 0;
    for entry in fs::read_dir(path).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        count += 1;
        if name.starts_with('.') {
            continue;
        }
        if is_unfinished(&name) {
            return None;
        }
        has_document |= name == DOCUMENT;
        // The metadata of the entry itself, not of a link's target.
        let metadata = entry.metadata().ok()?;
        if metadata.file_type().is_symlink() {
            kind = ArrivalKind::Link;
        }
        stamps.push((entry.path(), metadata.len(), metadata.modified().ok()?));
        if count > ITEM_FILES_MAX {
            // It already has too many files, so it will be refused.
            break;
        }
    }
    // The order of a directory is arbitrary, but stamps must be comparable.
    stamps.sort();
    has_document.then(|| Arrival { path: path.to_owned(), kind, stamp: ArrivalStamp(stamps) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_about_rights_is_no_arrival() {
        let dir = tempfile::tempdir().unwrap();
        let item = dir.path().join("image").join("ice");
        fs::create_dir_all(&item).unwrap();
        for path in [dir.path().join("rights.json"), item.join("rights.json")] {
            fs::write(path, "{}").unwrap();
        }
        fs::write(dir.path().join("harbour.jpg"), "jpeg").unwrap();
        fs::write(item.join(DOCUMENT), "{}").unwrap();
        let found = list(dir.path(), &[]).unwrap();
        let kinds: Vec<_> = found.iter().map(|arrival| arrival.kind.clone()).collect();
        assert_eq!(kinds, [ArrivalKind::Media, ArrivalKind::ItemFolder]);
        // A changed statement is a changed item folder, which is still arriving.
        assert_eq!(found[1].stamp.0.len(), 2);
    }
}
