//! Writes the records of a zip archive, that is, everything except the contents (APPNOTE §4.3).

use crate::zip::entry::{ArchiveEntry, CompressionMethod};

/// From this value on, a 32-bit field refers to its ZIP64 counterpart (APPNOTE §4.4.1.4).
pub(super) const ZIP64_SIZE_MIN: u64 = 0xffff_ffff;
/// The same limit for the 16-bit numbers of entries.
pub(super) const ZIP64_ENTRIES_MIN: u64 = 0xffff;

/// Marks names as UTF-8. Our names are ASCII, but without the flag readers may guess an encoding.
const FLAG_UTF8: u16 = 1 << 11;
/// APPNOTE 4.5, the first version with ZIP64, and Unix, so that the file mode below applies.
const MADE_BY: u16 = 3 << 8 | VERSION_ZIP64;
// The lowest versions of readers that can extract each kind of entry (APPNOTE §4.4.3.2).
const VERSION_STORED: u16 = 10;
const VERSION_DEFLATED: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// The external attributes: a regular file with mode 0644, in the upper half.
const ATTRIBUTES: u32 = 0o100_644 << 16;

pub(super) const LOCAL_BYTES: u64 = 30;
pub(super) const RECORD_BYTES: u64 = 46;
pub(super) const END_BYTES: u64 = 22;
pub(super) const ZIP64_END_BYTES: u64 = 56;
pub(super) const LOCATOR_BYTES: u64 = 20;
/// Bytes of the ZIP64 extra field before its numbers: its kind and its length.
const EXTRA_BYTES: u64 = 4;

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

/// Writes a 32-bit field, with all bits set if the value is in the ZIP64 field.
fn put_saturated_u32(out: &mut Vec<u8>, value: u64) {
    put32(out, u32::try_from(value).unwrap_or(u32::MAX));
}

/// The lengths and offset of an entry, as stored in a record.
struct RecordNumbers {
    uncompressed_bytes: u64,
    compressed_bytes: u64,
    /// The numbers in the ZIP64 extra field, in its order.
    zip64_fields: Vec<u64>,
}

impl RecordNumbers {
    /// Stores both lengths in ZIP64 form if one of them needs it, in both records: the local header must have both
    /// lengths (APPNOTE §4.5.3), and strict readers require the two records to agree.
    fn new(entry: &ArchiveEntry, offset: Option<u64>) -> Self {
        let mut uncompressed_bytes = entry.uncompressed_bytes();
        let mut compressed_bytes = entry.size_bytes;
        let mut zip64_fields = Vec::new();
        if has_zip64_sizes(entry) {
            zip64_fields.extend([uncompressed_bytes, compressed_bytes]);
            uncompressed_bytes = u64::MAX;
            compressed_bytes = u64::MAX;
        }
        zip64_fields.extend(offset.filter(|&offset| offset >= ZIP64_SIZE_MIN));
        Self { uncompressed_bytes, compressed_bytes, zip64_fields }
    }

    /// Writes the fields from "version needed" to "extra field length", which both records share.
    fn put_common(&self, out: &mut Vec<u8>, entry: &ArchiveEntry) {
        let (method, version) = match entry.method {
            CompressionMethod::Stored => (0, VERSION_STORED),
            CompressionMethod::Deflated { .. } => (8, VERSION_DEFLATED),
        };
        put16(out, if self.zip64_fields.is_empty() { version } else { VERSION_ZIP64 });
        put16(out, FLAG_UTF8);
        put16(out, method);
        put16(out, entry.modified.time);
        put16(out, entry.modified.date);
        put32(out, entry.crc32);
        put_saturated_u32(out, self.compressed_bytes);
        put_saturated_u32(out, self.uncompressed_bytes);
        put16(out, u16::try_from(entry.name.as_str().len()).expect("names are short"));
        let extra = if self.zip64_fields.is_empty() { 0 } else { 4 + 8 * self.zip64_fields.len() };
        put16(out, u16::try_from(extra).expect("there are at most three long numbers"));
    }

    fn put_extra(&self, out: &mut Vec<u8>) {
        if self.zip64_fields.is_empty() {
            return;
        }
        // The kind of the ZIP64 extra field (APPNOTE §4.5.3).
        put16(out, 1);
        put16(
            out,
            u16::try_from(8 * self.zip64_fields.len()).expect("at most three long numbers"),
        );
        for &number in &self.zip64_fields {
            put64(out, number);
        }
    }
}

fn has_zip64_sizes(entry: &ArchiveEntry) -> bool {
    entry.size_bytes.max(entry.uncompressed_bytes()) >= ZIP64_SIZE_MIN
}

fn name_bytes(entry: &ArchiveEntry) -> u64 {
    u64::try_from(entry.name.as_str().len()).expect("lengths fit 64 bits")
}

/// Returns the length of an entry's local header in bytes.
pub(super) fn local_bytes(entry: &ArchiveEntry) -> u64 {
    let extra = if has_zip64_sizes(entry) { EXTRA_BYTES + 16 } else { 0 };
    LOCAL_BYTES + name_bytes(entry) + extra
}

/// Returns the length of an entry's record in the central directory; its local header is at `offset`.
pub(super) fn record_bytes(entry: &ArchiveEntry, offset: u64) -> u64 {
    let sizes = if has_zip64_sizes(entry) { 16 } else { 0 };
    let zip64_bytes = sizes + if offset >= ZIP64_SIZE_MIN { 8 } else { 0 };
    RECORD_BYTES + name_bytes(entry) + if zip64_bytes == 0 { 0 } else { EXTRA_BYTES + zip64_bytes }
}

/// Writes the header before an entry's contents (APPNOTE §4.3.7).
pub(super) fn put_local(out: &mut Vec<u8>, entry: &ArchiveEntry) {
    let numbers = RecordNumbers::new(entry, None);
    put32(out, 0x0403_4b50);
    numbers.put_common(out, entry);
    out.extend(entry.name.as_str().bytes());
    numbers.put_extra(out);
}

/// Writes an entry's record in the central directory (APPNOTE §4.3.12); its local header is at `offset`.
pub(super) fn put_record(out: &mut Vec<u8>, entry: &ArchiveEntry, offset: u64) {
    let numbers = RecordNumbers::new(entry, Some(offset));
    put32(out, 0x0201_4b50);
    put16(out, MADE_BY);
    numbers.put_common(out, entry);
    // Comment, disk, internal attributes.
    out.extend([0; 6]);
    put32(out, ATTRIBUTES);
    put_saturated_u32(out, offset);
    out.extend(entry.name.as_str().bytes());
    numbers.put_extra(out);
}

/// The position and size of the central directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CentralDirectory {
    pub(super) entries: u64,
    pub(super) offset: u64,
    pub(super) size_bytes: u64,
}

impl CentralDirectory {
    fn is_zip64(self) -> bool {
        self.entries >= ZIP64_ENTRIES_MIN
            || self.offset >= ZIP64_SIZE_MIN
            || self.size_bytes >= ZIP64_SIZE_MIN
    }

    /// Returns the total bytes of the records after the directory.
    pub(super) fn end_bytes(self) -> u64 {
        END_BYTES + if self.is_zip64() { ZIP64_END_BYTES + LOCATOR_BYTES } else { 0 }
    }

    /// Writes the records after the directory (APPNOTE §4.3.14 to §4.3.16).
    pub(super) fn put_end(self, out: &mut Vec<u8>) {
        if self.is_zip64() {
            put32(out, 0x0606_4b50);
            // The size does not count the signature and itself (APPNOTE §4.3.14.1).
            put64(out, ZIP64_END_BYTES - 12);
            put16(out, MADE_BY);
            put16(out, VERSION_ZIP64);
            // The number of this disk and the number of the directory's disk.
            out.extend([0; 8]);
            put64(out, self.entries);
            put64(out, self.entries);
            put64(out, self.size_bytes);
            put64(out, self.offset);
            // The locator, by which readers find the record above: its disk, its offset, one disk in all.
            put32(out, 0x0706_4b50);
            put32(out, 0);
            put64(out, self.offset + self.size_bytes);
            put32(out, 1);
        }
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        put32(out, 0x0605_4b50);
        out.extend([0; 4]);
        put16(out, entries);
        put16(out, entries);
        put_saturated_u32(out, self.size_bytes);
        put_saturated_u32(out, self.offset);
        // Comment.
        put16(out, 0);
    }
}
