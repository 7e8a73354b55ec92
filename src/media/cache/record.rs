//! The file format of a cached body: a record with a checksum.

use bytes::Bytes;

use super::{BlobExtent, BodyPart, RenditionBody};
use crate::runtime::limits::BODY_PARTS_MAX;
use model::ContentHash;

/// The mark of this version of the format. A file of a different version is a cache miss.
const MAGIC: &[u8; 4] = b"WPc2";
/// Length of the magic, the checksum and the number of parts.
const FIXED_BYTES: usize = 4 + 16 + 1;
/// Kind of a part whose bytes are in the record.
const IN_MEMORY: u8 = 0;
/// Kind of a part whose bytes are in an original.
const IN_STORE: u8 = 1;
/// Length of an extent's entry: kind, hash, length, start and end. An entry for bytes in memory is shorter.
const STORE_ENTRY_BYTES: usize = 1 + 32 + 8 * 3;

/// Encodes a body as a record: magic, checksum of everything after it, number of parts, an entry for each part,
/// then the bytes in memory, part after part. Numbers are little-endian.
///
/// An entry begins with its kind. For bytes in memory, their number follows. For an extent, the hash and length of
/// the original follow, and the start and end of the range.
pub(super) fn encode(body: &RenditionBody) -> Vec<u8> {
    let parts = body.parts();
    let count = u8::try_from(parts.len()).expect("a body has few parts");
    let capacity = FIXED_BYTES + parts.len() * STORE_ENTRY_BYTES + body.memory_bytes();
    let mut bytes = Vec::with_capacity(capacity);
    bytes.extend_from_slice(MAGIC);
    // The checksum covers the bytes after it and is filled in at the end.
    bytes.extend_from_slice(&[0; 16]);
    bytes.push(count);
    for part in parts {
        match part {
            BodyPart::Memory(memory) => {
                bytes.push(IN_MEMORY);
                bytes.extend_from_slice(&(memory.len() as u64).to_le_bytes());
            }
            BodyPart::Store(BlobExtent { blob, blob_length, range }) => {
                bytes.push(IN_STORE);
                bytes.extend_from_slice(&blob.0);
                for number in [*blob_length, range.start, range.end] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
        }
    }
    for part in parts {
        if let BodyPart::Memory(memory) = part {
            bytes.extend_from_slice(memory);
        }
    }
    let checksum = ContentHash::new(&bytes[20..]);
    bytes[4..20].copy_from_slice(&checksum.0[..16]);
    bytes
}

/// The decoded entry of one part.
enum RecordEntry {
    Memory(usize),
    Store(BlobExtent),
}

/// Decodes a record; `None` if [`encode`] did not write it.
pub(super) fn decode(bytes: Vec<u8>) -> Option<RenditionBody> {
    let (fixed, mut rest) = bytes.split_at_checked(FIXED_BYTES)?;
    let is_intact =
        fixed.starts_with(MAGIC) && fixed[4..20] == ContentHash::new(&bytes[20..]).0[..16];
    let count = usize::from(fixed[20]);
    // The count sizes the lists below, so it is checked before it is used.
    if !is_intact || count > BODY_PARTS_MAX {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(read_entry(&mut rest)?);
    }
    // The bytes in memory follow after all entries.
    let mut offset = bytes.len() - rest.len();
    let bytes = Bytes::from(bytes);
    let mut total = 0_u64;
    let mut parts = Vec::with_capacity(count);
    for entry in entries {
        let part = match entry {
            RecordEntry::Memory(length) => {
                let end = offset.checked_add(length).filter(|end| *end <= bytes.len())?;
                BodyPart::Memory(bytes.slice(std::mem::replace(&mut offset, end)..end))
            }
            RecordEntry::Store(extent) => BodyPart::Store(extent),
        };
        // The length of a body is later summed without an overflow check.
        total = total.checked_add(part.len())?;
        parts.push(part);
    }
    // Surplus bytes were not written by `encode`, so the whole record is rejected.
    (offset == bytes.len()).then(|| RenditionBody::new(parts))
}

/// Reads an entry off the front of `rest`; `None` if it is truncated, empty, or exceeds its original.
fn read_entry(rest: &mut &[u8]) -> Option<RecordEntry> {
    match take::<1>(rest)? {
        [IN_MEMORY] => {
            let length = usize::try_from(take_number(rest)?).ok()?;
            // A body has no empty parts, so `encode` writes none.
            (length > 0).then_some(RecordEntry::Memory(length))
        }
        [IN_STORE] => {
            let blob = ContentHash(take(rest)?);
            let blob_length = take_number(rest)?;
            let range = take_number(rest)?..take_number(rest)?;
            let inside = range.start < range.end && range.end <= blob_length;
            inside.then_some(RecordEntry::Store(BlobExtent { blob, blob_length, range }))
        }
        _ => None,
    }
}

fn take<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (taken, remaining) = rest.split_first_chunk::<BYTES>()?;
    *rest = remaining;
    Some(*taken)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn memory(bytes: usize) -> BodyPart {
        BodyPart::Memory(Bytes::from(vec![7; bytes]))
    }

    fn stored(start: u64, end: u64, blob_length: u64) -> BodyPart {
        BodyPart::Store(BlobExtent { blob: ContentHash([9; 32]), blob_length, range: start..end })
    }

    /// A record with a valid checksum around the result of applying `change` to a good one.
    fn forged(body: &RenditionBody, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = encode(body);
        change(&mut bytes);
        let checksum = ContentHash::new(&bytes[20..]);
        bytes[4..20].copy_from_slice(&checksum.0[..16]);
        bytes
    }

    #[test]
    fn torn_and_damaged_records_are_nothing() {
        for body in [
            RenditionBody::memory(vec![7; 5]),
            RenditionBody::new([memory(5), stored(10, 90, 100)]),
            RenditionBody::new([memory(3), stored(0, 9, 9), memory(2), stored(1, 2, u64::MAX)]),
        ] {
            let good = encode(&body);
            assert_eq!(decode(good.clone()), Some(body));
            for end in 0..good.len() {
                assert_eq!(decode(good[..end].to_vec()), None, "cut at {end}");
            }
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 0x40;
                assert_eq!(decode(bad), None, "flipped at {at}");
            }
        }
    }

    #[test]
    fn what_no_body_can_be_is_nothing_although_its_checksum_is_right() {
        let body = RenditionBody::new([memory(5), stored(10, 90, 100)]);
        let (entry, second) = (FIXED_BYTES, FIXED_BYTES + 9);
        let number = |bytes: &mut Vec<u8>, at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        let check = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
            assert_eq!(decode(forged(&body, change)), None, "{what}");
        };
        assert_eq!(decode(forged(&body, |_| ())), Some(body.clone()));
        check("another form", &|bytes| bytes[3] = b'1');
        check("fewer parts than entries", &|bytes| bytes[FIXED_BYTES - 1] = 1);
        check("more parts than entries", &|bytes| bytes[FIXED_BYTES - 1] = 3);
        check("too many parts", &|bytes| bytes[FIXED_BYTES - 1] = 255);
        check("an unknown kind", &|bytes| bytes[entry] = 2);
        check("fewer bytes than announced", &|bytes| number(bytes, entry + 1, 6));
        check("more bytes than announced", &|bytes| number(bytes, entry + 1, 4));
        check("an empty part", &|bytes| number(bytes, entry + 1, 0));
        check("endless bytes", &|bytes| number(bytes, entry + 1, u64::MAX));
        check("more than the original has", &|bytes| number(bytes, second + 49, 101));
        check("an end before the start", &|bytes| number(bytes, second + 49, 9));
        check("an empty extent", &|bytes| number(bytes, second + 49, 10));
        check("a longer file", &|bytes| bytes.push(7));
        let endless = RenditionBody::new([stored(0, u64::MAX, u64::MAX)]);
        let twice = forged(&endless, |bytes| {
            bytes[FIXED_BYTES - 1] = 2;
            bytes.extend_from_within(FIXED_BYTES..);
        });
        assert_eq!(decode(twice), None, "more bytes than can be counted");
    }

    fn part() -> impl Strategy<Value = BodyPart> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..50);
        let extent = (any::<[u8; 32]>(), 0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40);
        prop_oneof![
            bytes.prop_map(|bytes| BodyPart::Memory(bytes.into())),
            extent.prop_map(|(blob, start, length, rest)| {
                let range = start..start + length;
                BodyPart::Store(BlobExtent {
                    blob: ContentHash(blob),
                    blob_length: range.end + rest,
                    range,
                })
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_again(
            parts in proptest::collection::vec(part(), 0..=BODY_PARTS_MAX),
        ) {
            let body = RenditionBody::new(parts);
            prop_assert_eq!(decode(encode(&body)), Some(body));
        }

        #[test]
        fn no_bytes_make_the_decoder_fail_badly(
            // Small numbers make counts, kinds and lengths that nearly fit.
            bytes in proptest::collection::vec(prop_oneof![0u8..3, any::<u8>()], 0..200),
        ) {
            let empty = RenditionBody::new([]);
            let forged = forged(&empty, |record| record.splice(20.., bytes).for_each(drop));
            if let Some(body) = decode(forged.clone()) {
                prop_assert_eq!(encode(&body), forged);
            }
        }
    }
}
