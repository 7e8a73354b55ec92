//! Encodes an index in a compact binary form.
//!
//! Entries are delta-encoded as varints: seven bits per byte, lowest first, with the highest bit set in all bytes
//! except the last. Signed differences are zigzag-encoded: 0, -1, 1, -2 … become 0, 1, 2, 3 …

use crate::scan::COMPONENTS_MAX;
use crate::scan::index::{IndexEntry, ScanIndex};

/// Maximum number of entries that are read, which exceeds the number of MCUs of the largest picture.
const ENTRIES_MAX: u64 = 1 << 26;

/// Appends `value` as a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_7(value) | 0x80);
        value >>= 7;
    }
    out.push(low_7(value));
}

fn low_7(value: u64) -> u8 {
    let [.., byte] = value.to_be_bytes();
    byte & 0x7F
}

/// Reads a varint from the front of `bytes`; `None` if it is truncated or exceeds 64 bits.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        // The tenth byte has room for only one bit.
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn zigzag_encode(value: i32) -> u64 {
    u64::from((value << 1 ^ value >> 31).cast_unsigned())
}

fn zigzag_decode(value: u64) -> Option<i32> {
    let value = u32::try_from(value).ok()?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

impl ScanIndex {
    /// Appends the encoded index to `out`; `components` is the number of components of the scan.
    pub fn pack(&self, components: usize, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.spacing));
        put_varint(out, self.marker);
        put_varint(out, self.end);
        put_varint(out, u64::try_from(self.entries.len()).unwrap_or(u64::MAX));
        let mut last = IndexEntry::default();
        for entry in &self.entries {
            // Positions ascend, so the differences of a valid index do not wrap.
            put_varint(out, entry.bit_position.wrapping_sub(last.bit_position));
            for (dc, last) in entry.dc.iter().zip(last.dc).take(components) {
                put_varint(out, zigzag_encode(i32::from(*dc) - i32::from(last)));
            }
            last = *entry;
        }
    }

    /// Decodes an index from the front of `bytes`; `None` if they are not a valid encoding.
    ///
    /// Use [`ScanIndex::matches_scan`] to check whether the index belongs to a scan.
    pub fn unpack(components: usize, bytes: &mut &[u8]) -> Option<Self> {
        let spacing = u32::try_from(take_varint(bytes)?).ok().filter(|spacing| *spacing > 0)?;
        let marker = take_varint(bytes)?;
        let end = take_varint(bytes)?;
        let count = take_varint(bytes)?;
        // Each number of an entry has at least one byte, which bounds the allocation below.
        let count_max = u64::try_from(bytes.len() / (1 + components)).ok()?;
        if count > count_max.min(ENTRIES_MAX) || components > COMPONENTS_MAX {
            return None;
        }
        let mut entries = Vec::with_capacity(usize::try_from(count).ok()?);
        let mut last = IndexEntry::default();
        for _ in 0..count {
            let mut entry = IndexEntry {
                bit_position: last.bit_position.checked_add(take_varint(bytes)?)?,
                dc: last.dc,
            };
            for dc in entry.dc.iter_mut().take(components) {
                let value = i32::from(*dc).checked_add(zigzag_decode(take_varint(bytes)?)?)?;
                *dc = i16::try_from(value).ok()?;
            }
            entries.push(entry);
            last = entry;
        }
        Some(Self { spacing, entries, end, marker })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_indexes_unpack_unchanged(
            steps in prop::collection::vec((1u64..1 << 40, any::<[i16; 4]>()), 0..50),
            every in 1u32.., marker: u64, end: u64, components in 1usize..=4,
        ) {
            let mut position = 0u64;
            let entry = |(step, dc): &(u64, [i16; 4])| {
                position += step;
                let mut dc = *dc;
                dc[components..].fill(0);
                IndexEntry { bit_position: position, dc }
            };
            let index = ScanIndex { spacing: every, entries: steps.iter().map(entry).collect(), end, marker };
            let mut packed = Vec::new();
            index.pack(components, &mut packed);
            packed.push(7);
            let mut rest = packed.as_slice();
            prop_assert_eq!(ScanIndex::unpack(components, &mut rest), Some(index));
            prop_assert_eq!(rest, &[7]);
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for components in 0..=5 {
                let index = ScanIndex::unpack(components, &mut bytes.as_slice());
                prop_assert!(index.is_none_or(|index| index.entries.len() <= bytes.len()));
            }
        }
    }
}
