//! The disk tier: one file per rendition, `standard/ab/<key>` or `variants/ab/<key>`.
//!
//! A file is a short record with a checksum. A torn or damaged file is a cache miss and is removed. The index is
//! in memory and is read from the folder at the start. When moka evicts an entry, its file is removed. Processes
//! over one data directory share the files but not the index: a file that a different process evicted is a miss,
//! and a file that a different process wrote is found only after the next start.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moka::{notification::RemovalCause, sync::Cache};
use uuid::Uuid;

use super::record::{decode, encode};
use super::{Partitions, RenditionBody};
use crate::media::plan::CacheClass;
use crate::runtime::limits::UPLOAD_ABANDONED;
use model::ContentHash;

/// The block size of the file system. A file occupies whole blocks.
const BLOCK_BYTES: u64 = 4096;

pub(super) struct DiskTier(Partitions<DiskPartition>);

struct DiskPartition {
    dir: PathBuf,
    index: Cache<ContentHash, u32>,
}

impl DiskTier {
    /// Opens the folder, creates it if it is missing, and reads the files of earlier runs.
    pub(super) fn open(dir: &Path, standard: u64, variants: u64) -> io::Result<Self> {
        Ok(Self(Partitions {
            standard: DiskPartition::open(&dir.join("standard"), standard)?,
            variants: DiskPartition::open(&dir.join("variants"), variants)?,
        }))
    }

    pub(super) fn contains(&self, class: CacheClass, key: ContentHash) -> bool {
        self.0.get(class).index.contains_key(&key)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.standard.index.weighted_size() + self.0.variants.index.weighted_size()
    }

    pub(super) fn read(&self, class: CacheClass, key: ContentHash) -> Option<RenditionBody> {
        let partition = self.0.get(class);
        // Looking up the index counts as a use for the eviction policy.
        partition.index.get(&key)?;
        let body = fs::read(partition.path(key)).ok().and_then(decode);
        if body.is_none() {
            // The eviction listener removes the damaged file.
            partition.index.invalidate(&key);
        }
        body
    }

    pub(super) fn write(
        &self,
        class: CacheClass,
        key: ContentHash,
        body: &RenditionBody,
    ) -> io::Result<()> {
        let partition = self.0.get(class);
        let path = partition.path(key);
        // Other processes write into the same folder, so the name is unique.
        let tmp = partition.dir.join(format!("tmp-{}", Uuid::now_v7()));
        let bytes = encode(body);
        // The file is not flushed to disk: a cache may lose entries, and the checksum detects an entry that a
        // crash tore.
        let written = File::create(&tmp).and_then(|mut file| {
            file.write_all(&bytes)?;
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            // A reader finds either no file or a complete one.
            fs::rename(&tmp, &path)
        });
        if let Err(cause) = written {
            // The write may have failed on a full disk, and the fragment would occupy space there.
            drop(fs::remove_file(&tmp));
            return Err(cause);
        }
        // Indexed last: a key without its file would be a miss that removes the entry.
        partition.index.insert(key, weight(bytes.len() as u64));
        Ok(())
    }
}

/// Reads every file below the folder of a disk tier, which a server may be using. Calls `damaged` for each file
/// that is not a complete record.
pub(crate) fn check_files(dir: &Path, damaged: &mut dyn FnMut(&Path)) -> io::Result<()> {
    for partition in ["standard", "variants"] {
        for folder in list(&dir.join(partition))? {
            // A file next to the folders is being written, or is removed at the next start.
            if !folder.is_dir() {
                continue;
            }
            for file in list(&folder)? {
                let is_intact = match fs::read(&file) {
                    Ok(bytes) => decode(bytes).is_some(),
                    // A file that was evicted in the meantime is not damaged.
                    Err(cause) => cause.kind() == io::ErrorKind::NotFound,
                };
                if !is_intact {
                    damaged(&file);
                }
            }
        }
    }
    Ok(())
}

/// Lists a folder; a missing folder is empty.
fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(cause),
    }
}

impl DiskPartition {
    fn open(dir: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let root = dir.to_owned();
        let index = Cache::builder()
            .max_capacity(bytes_max)
            .weigher(|_: &ContentHash, bytes: &u32| *bytes)
            .eviction_listener(move |key: Arc<ContentHash>, _, cause| {
                // The new file of a replaced entry has the same path.
                if cause != RemovalCause::Replaced {
                    drop(fs::remove_file(file(&root, *key)));
                }
            })
            .build();
        let part = Self { dir: dir.to_owned(), index };
        part.read_folder()?;
        Ok(part)
    }

    fn path(&self, key: ContentHash) -> PathBuf {
        file(&self.dir, key)
    }

    fn read_folder(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                // The file is left over from an interrupted write. A recent file may belong to a process that is
                // still writing it.
                let age = entry
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .map(|at| at.elapsed());
                if !matches!(age, Ok(Ok(age)) if age < UPLOAD_ABANDONED) {
                    drop(fs::remove_file(entry.path()));
                }
                continue;
            }
            for file in fs::read_dir(entry.path())? {
                let file = file?;
                let name = file.file_name();
                match name.to_str().and_then(|name| name.parse().ok()) {
                    // Another process may have evicted the file in the meantime.
                    Some(key) => match file.metadata() {
                        Ok(metadata) => self.index.insert(key, weight(metadata.len())),
                        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                        Err(cause) => return Err(cause),
                    },
                    // A file with an invalid name would never be evicted.
                    None => drop(fs::remove_file(file.path())),
                }
            }
        }
        // Run the evictions, which remove files, now instead of during the first requests.
        self.index.run_pending_tasks();
        Ok(())
    }
}

fn file(dir: &Path, key: ContentHash) -> PathBuf {
    let name = key.to_string();
    // 256 folders keep the number of entries in each of them small.
    dir.join(&name[..2]).join(name)
}

/// Returns the weight of a file of `bytes`: whole blocks, so that many small files count in full.
fn weight(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::cache::{BlobExtent, BodyPart};

    fn body(bytes: usize) -> RenditionBody {
        RenditionBody::memory(vec![7; bytes])
    }

    fn mixed(bytes: usize) -> RenditionBody {
        let extent = BlobExtent { blob: ContentHash([9; 32]), blob_length: 100, range: 10..90 };
        RenditionBody::new([BodyPart::Memory(vec![7; bytes].into()), BodyPart::Store(extent)])
    }

    fn key(number: u8) -> ContentHash {
        ContentHash([number; 32])
    }

    fn files(dir: &Path) -> usize {
        let entries = fs::read_dir(dir).expect("folder").map(|entry| entry.expect("entry").path());
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }

    #[test]
    fn what_is_written_is_read_back_after_a_restart() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let tier = DiskTier::open(dir.path(), 1 << 20, 1 << 20).expect("opened");
        tier.write(CacheClass::Standard, key(1), &body(1000)).expect("written");
        tier.write(CacheClass::Variant, key(2), &mixed(10)).expect("written");
        drop(tier);
        let tier = DiskTier::open(dir.path(), 1 << 20, 1 << 20).expect("opened");
        assert_eq!(tier.read(CacheClass::Standard, key(1)), Some(body(1000)));
        assert_eq!(tier.read(CacheClass::Variant, key(2)), Some(mixed(10)));
        assert_eq!(tier.read(CacheClass::Standard, key(2)), None);
    }

    #[test]
    fn a_damaged_file_is_a_miss_and_goes_away() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let tier = DiskTier::open(dir.path(), 1 << 20, 1 << 20).expect("opened");
        for (number, cut) in [(1, 0), (2, 3), (3, 500)] {
            tier.write(CacheClass::Standard, key(number), &body(1000)).expect("written");
            let path = tier.0.standard.path(key(number));
            let bytes = fs::read(&path).expect("read");
            fs::write(&path, &bytes[..cut]).expect("written");
            assert_eq!(tier.read(CacheClass::Standard, key(number)), None, "{cut} bytes");
            assert!(!tier.contains(CacheClass::Standard, key(number)));
        }
        tier.0.standard.index.run_pending_tasks();
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn endless_variants_stay_in_their_part_and_leave_the_standard_ones() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let tier = DiskTier::open(dir.path(), 64 << 10, 64 << 10).expect("opened");
        for number in 0..8 {
            tier.write(CacheClass::Standard, key(number), &body(4000)).expect("written");
        }
        for number in 0..200 {
            tier.write(CacheClass::Variant, key(number), &body(4000)).expect("written");
        }
        tier.0.variants.index.run_pending_tasks();
        assert!(tier.bytes() <= 128 << 10);
        assert!(files(&dir.path().join("variants")) <= 16);
        for number in 0..8 {
            assert_eq!(tier.read(CacheClass::Standard, key(number)), Some(body(4000)), "{number}");
        }
    }
}
