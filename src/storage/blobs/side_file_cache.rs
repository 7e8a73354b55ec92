//! Caches a bucket's side files on the disk, so that each is fetched once.
//!
//! The oldest files are evicted first. Readers detect a damaged copy. A copy that cannot be written is
//! missing from the cache.

use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::StoreResult;
use super::derived_folder::{DerivedFolder, DerivedKind};
use super::folder::{list, path_in};
use model::ContentHash;

/// A cache of side files in a folder.
#[derive(Debug)]
pub(super) struct SideFileCache {
    pub(super) files: DerivedFolder,
    bytes_max: u64,
    /// Total size in bytes, without writes of other processes since the last count; `None` until the files
    /// were counted.
    bytes: Mutex<Option<u64>>,
}

impl SideFileCache {
    /// Opens a cache of at most `bytes_max` bytes; 0 disables it.
    pub(super) fn open(dir: &Path, bytes_max: u64) -> StoreResult<Self> {
        Ok(Self { files: DerivedFolder::open(dir)?, bytes_max, bytes: Mutex::new(None) })
    }

    pub(super) fn read(&self, hash: ContentHash, bytes_max: u64) -> Option<Vec<u8>> {
        self.files.read(DerivedKind::Index, hash, bytes_max).ok().flatten()
    }

    pub(super) fn invalidate(&self, hash: ContentHash) {
        // A copy that cannot be removed is read again. The reader's checks detect damage.
        drop(self.files.of_kind(DerivedKind::Index).remove(hash));
    }

    pub(super) fn insert(&self, hash: ContentHash, bytes: &[u8]) {
        let length = bytes.len() as u64;
        // A size of 0 disables the cache.
        if length > self.bytes_max {
            return;
        }
        if let Err(cause) = self.files.write(DerivedKind::Index, hash, bytes) {
            tracing::warn!("side file cache: write failed: {cause}");
            return;
        }
        // A file that replaced one is counted twice, until the next eviction counts all files again.
        let mut total = self.bytes.lock();
        let bytes = match *total {
            Some(counted) => counted.saturating_add(length),
            // Counted at the first write, so that a start does not wait for the listing.
            None => self.all().iter().map(|file| file.bytes).sum(),
        };
        *total = Some(if bytes > self.bytes_max { self.evict() } else { bytes });
    }

    /// Evicts the oldest copies until a tenth of the cache is free. Returns the remaining bytes.
    fn evict(&self) -> u64 {
        let mut all = self.all();
        // The path breaks ties: files written together have equal times on some file systems.
        all.sort_unstable_by(|a, b| (a.written, &a.path).cmp(&(b.written, &b.path)));
        let mut remaining: u64 = all.iter().map(|file| file.bytes).sum();
        for file in all {
            // Frees space for many files at once: listing the folder is the expensive part.
            if remaining <= self.bytes_max / 10 * 9 {
                break;
            }
            if fs::remove_file(&file.path).is_ok() {
                remaining = remaining.saturating_sub(file.bytes);
            }
        }
        remaining
    }

    fn all(&self) -> Vec<CachedFile> {
        let dir = self.files.folder(DerivedKind::Index);
        let listed = list(&dir).unwrap_or_else(|cause| {
            tracing::warn!("side file cache: listing failed: {cause}");
            Vec::new()
        });
        let files = listed.into_iter().filter_map(|hash| {
            let path = path_in(&dir, hash);
            // A different process may have removed it.
            let metadata = fs::metadata(&path).ok()?;
            Some(CachedFile { path, bytes: metadata.len(), written: metadata.modified().ok()? })
        });
        files.collect()
    }
}

struct CachedFile {
    path: PathBuf,
    bytes: u64,
    written: std::time::SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_within_their_room_and_the_first_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let cache = SideFileCache::open(dir.path(), 10_000).unwrap();
        let hash = |n: u8| ContentHash([n; 32]);
        for n in 0..30 {
            cache.insert(hash(n), &[n; 1000]);
            assert!(cache.all().iter().map(|one| one.bytes).sum::<u64>() <= 10_000);
        }
        assert_eq!(cache.read(hash(29), 5000).unwrap(), [29; 1000]);
        assert!(cache.read(hash(0), 5000).is_none());
        cache.invalidate(hash(29));
        assert!(cache.read(hash(29), 5000).is_none());
        cache.insert(hash(40), &[1; 20_000]);
        assert!(cache.read(hash(40), u64::MAX).is_none(), "it would push out all others");
        let none = SideFileCache::open(dir.path(), 0).unwrap();
        none.insert(hash(50), &[1; 10]);
        assert!(none.read(hash(50), 100).is_none());
    }
}
