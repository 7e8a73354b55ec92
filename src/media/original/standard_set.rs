//! The standard renditions of an original, encoded once and stored beside it.
//!
//! Their metadata follows the item's document, so it is embedded when they are served. The picture data never
//! changes. A watermark on one of them changes only the blocks under it. The set also has a *base*: an upright copy in
//! sRGB, somewhat larger than the open picture, from which other sizes and formats are made without a decode of the
//! original.
//!
//! ```text
//! "WPrs"  version  CRC-32 of the rest, 4 bytes
//! number of pictures, and for each: key, 32 bytes   width   height   length
//! the files, one after the other
//! ```
//!
//! Numbers are of variable length ([`jpeg::scan::index_codec`]). A file that does not match this format exactly counts
//! as missing.

use bytes::Bytes;

use super::{OriginalError, OriginalStore};
use crate::storage::blobs::{DerivedKind, StoreError, StoreResult};
use jpeg::scan::index_codec::{put_varint, take_varint};
use model::{ContentHash, Size};

/// Maximum length of the file with an original's standard renditions, in bytes.
const STANDARD_SET_BYTES_MAX: u64 = 128 << 20;

const MAGIC: &[u8; 4] = b"WPrs";
const VERSION: u8 = 1;
/// The number of bytes before the part that the checksum covers.
const HEAD_BYTES: usize = MAGIC.len() + 1 + 4;
/// The maximum number of pictures of a set.
const PICTURES_MAX: u64 = 16;

/// The encoded standard renditions of an original.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandardSet {
    /// The pictures, each under a key of its own.
    pub pictures: Vec<StandardPicture>,
}

/// An encoded picture without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardPicture {
    /// The hash of all values that determine the picture data.
    pub key: ContentHash,
    /// The upright size in pixels.
    pub size: Size,
    /// The JPEG file, without a caption.
    pub file: Bytes,
}

impl StandardSet {
    /// Returns the picture under `key`.
    pub fn find(&self, key: ContentHash) -> Option<&StandardPicture> {
        self.pictures.iter().find(|picture| picture.key == key)
    }

    fn print(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        put_varint(&mut rest, self.pictures.len() as u64);
        for StandardPicture { key, size, file } in &self.pictures {
            rest.extend_from_slice(&key.0);
            for number in [u64::from(size.width), u64::from(size.height), file.len() as u64] {
                put_varint(&mut rest, number);
            }
        }
        for picture in &self.pictures {
            rest.extend_from_slice(&picture.file);
        }
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(&crc32fast::hash(&rest).to_be_bytes());
        out.append(&mut rest);
        out
    }

    fn parse(file: Vec<u8>) -> Option<Self> {
        let file = Bytes::from(file);
        let head = file.get(..HEAD_BYTES)?;
        let checksum = crc32fast::hash(&file[HEAD_BYTES..]).to_be_bytes();
        if !head.starts_with(MAGIC) || head[4] != VERSION || head[5..] != checksum {
            return None;
        }
        let mut rest = &file[HEAD_BYTES..];
        let count = take_varint(&mut rest).filter(|count| *count <= PICTURES_MAX)?;
        let mut described = Vec::new();
        for _ in 0..count {
            let (key, behind) = rest.split_first_chunk::<32>()?;
            rest = behind;
            let width = u32::try_from(take_varint(&mut rest)?).ok()?;
            let height = u32::try_from(take_varint(&mut rest)?).ok()?;
            let length = usize::try_from(take_varint(&mut rest)?).ok()?;
            described.push((ContentHash(*key), Size { width, height }, length));
        }
        let mut start = file.len() - rest.len();
        let mut pictures = Vec::new();
        for (key, size, length) in described {
            let end = start.checked_add(length).filter(|end| *end <= file.len())?;
            pictures.push(StandardPicture { key, size, file: file.slice(start..end) });
            start = end;
        }
        // Bytes behind the last file would mean that the lengths are wrong.
        (start == file.len()).then_some(Self { pictures })
    }
}

impl OriginalStore {
    /// Reads the standard set of an original; `None` if it is missing or damaged.
    ///
    /// Fails if its bucket does not answer.
    pub fn standard_set(&self, hash: ContentHash) -> Result<Option<StandardSet>, OriginalError> {
        match self.derived.read(DerivedKind::Standard, hash, STANDARD_SET_BYTES_MAX) {
            Err(unavailable @ StoreError::Unavailable { .. }) => Err(unavailable.into()),
            Err(_) => Ok(None),
            Ok(file) => Ok(file.and_then(StandardSet::parse)),
        }
    }

    /// Stores the standard set of an original.
    pub fn keep_standard_set(
        &self,
        hash: ContentHash,
        set: &StandardSet,
    ) -> Result<(), OriginalError> {
        Ok(self.derived.write(DerivedKind::Standard, hash, &set.print())?)
    }

    /// Removes the standard set of an original. It is made again when it is needed.
    pub fn remove_standard_set(&self, hash: ContentHash) -> StoreResult<()> {
        self.derived.remove(DerivedKind::Standard, hash)
    }

    /// Returns whether an original has a standard set that cannot be read. A missing set is no fault.
    pub(super) fn is_standard_set_damaged(&self, hash: ContentHash) -> StoreResult<bool> {
        if self.derived.length(DerivedKind::Standard, hash)?.is_none() {
            return Ok(false);
        }
        match self.derived.read(DerivedKind::Standard, hash, STANDARD_SET_BYTES_MAX) {
            Err(unavailable @ StoreError::Unavailable { .. }) => Err(unavailable),
            // A file that is too long for a set cannot be read, so it counts as damaged.
            found => Ok(found.ok().flatten().and_then(StandardSet::parse).is_none()),
        }
    }

    /// Checks that the originals can be reached and that a derived file can be written beside them. Blocks the
    /// thread.
    pub fn check_usable(&self) -> StoreResult<()> {
        /// The length of a small set: a disk without room may still have some bytes.
        const PROBE_BYTES: usize = 256 << 10;
        let hash = ContentHash::new(b"probe");
        self.store.check_reachable()?;
        let written = self.derived.write(DerivedKind::Standard, hash, &vec![0; PROBE_BYTES]);
        written.and_then(|()| self.derived.remove(DerivedKind::Standard, hash))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_set() -> impl Strategy<Value = StandardSet> {
        let picture =
            (any::<[u8; 32]>(), any::<(u32, u32)>(), prop::collection::vec(any::<u8>(), 0..50));
        let picture = picture.prop_map(|(key, (width, height), file)| StandardPicture {
            key: ContentHash(key),
            size: Size { width, height },
            file: file.into(),
        });
        prop::collection::vec(picture, 0..6).prop_map(|pictures| StandardSet { pictures })
    }

    proptest! {
        #[test]
        fn a_set_reads_as_it_was_written(set in any_set()) {
            prop_assert_eq!(StandardSet::parse(set.print()), Some(set));
        }

        #[test]
        fn a_damaged_set_counts_as_missing(set in any_set(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut file = set.print();
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
            prop_assert_eq!(StandardSet::parse(file), None);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _: Option<StandardSet> = StandardSet::parse(bytes);
        }
    }
}
