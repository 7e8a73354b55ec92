//! Writes the records of a zip archive, that is, everything except the contents (APPNOTE, PKWARE's specification,
//! §4.3).
//!
//! An archive contains a local header and the contents of each entry, then the central directory with a record of each
//! entry, then an end record. The local header and the directory record of an entry have most fields in common. Every
//! record starts with a signature of four bytes, and all numbers are little-endian.
//!
//! Lengths and offsets have 32 bits, numbers of entries 16. A number that does not fit is all ones there, and its real
//! value is in a ZIP64 counterpart: for an entry in its extra field, for the directory in a ZIP64 end record, which
//! readers find by a locator.

use crate::zip::entry::{ArchiveEntry, CompressionMethod};

/// The smallest length or offset that needs its ZIP64 counterpart (APPNOTE §4.4.1.4).
pub(super) const ZIP64_SIZE_MIN: u64 = 0xffff_ffff;
/// The smallest number of entries that needs its ZIP64 counterpart.
pub(super) const ZIP64_ENTRIES_MIN: u64 = 0xffff;

/// Marks names as UTF-8. Our names are ASCII, but without the flag readers may guess an encoding.
const FLAG_UTF8: u16 = 1 << 11;
/// The writer: Unix in the upper byte, so that the file mode in [`ATTRIBUTES`] applies, and its version of APPNOTE.
const MADE_BY: u16 = 3 << 8 | VERSION_ZIP64;
// The versions of APPNOTE, times ten, that a reader of each kind of entry must know (§4.4.3.2).
const VERSION_STORED: u16 = 10;
const VERSION_DEFLATED: u16 = 20;
const VERSION_ZIP64: u16 = 45;
/// The external attributes: the Unix type and mode of the file in the upper half, a regular file with mode 0644.
const ATTRIBUTES: u32 = 0o100_644 << 16;

// The lengths of records in bytes, without name and extra field.
const LOCAL_HEADER_BYTES: u64 = 30;
const DIRECTORY_RECORD_BYTES: u64 = 46;
const END_BYTES: u64 = 22;
const ZIP64_END_BYTES: u64 = 56;
const LOCATOR_BYTES: u64 = 20;
/// Bytes of the ZIP64 extra field before its numbers: its kind and its length.
const EXTRA_BYTES: u16 = 4;
/// Bytes of the two lengths of an entry in the ZIP64 extra field.
const ZIP64_LENGTHS_BYTES: u64 = 16;

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

/// Writes a 32-bit field, with all bits set if the value is in its ZIP64 counterpart.
fn put_saturated_u32(out: &mut Vec<u8>, value: u64) {
    put32(out, u32::try_from(value).unwrap_or(u32::MAX));
}

/// The lengths of an entry as its records state them, and the numbers in its extra field.
struct EntryNumbers {
    /// The length, or `u64::MAX` if it is in the extra field.
    uncompressed_bytes: u64,
    /// The length, or `u64::MAX` if it is in the extra field.
    compressed_bytes: u64,
    /// The numbers in the ZIP64 extra field, in its order: the lengths, then the offset.
    zip64_fields: Vec<u64>,
}

impl EntryNumbers {
    /// Decides which numbers are in the extra field. `offset` is that of the local header, for the directory record.
    ///
    /// If one of the lengths needs it, both are there, in both records: the local header must have both (APPNOTE
    /// §4.5.3), and strict readers require the two records to agree.
    fn new(entry: &ArchiveEntry, offset: Option<u64>) -> Self {
        let mut uncompressed_bytes = entry.uncompressed_bytes();
        let mut compressed_bytes = entry.size_bytes;
        let mut zip64_fields = Vec::new();
        if has_zip64_lengths(entry) {
            zip64_fields.extend([uncompressed_bytes, compressed_bytes]);
            uncompressed_bytes = u64::MAX;
            compressed_bytes = u64::MAX;
        }
        zip64_fields.extend(offset.filter(|&offset| offset >= ZIP64_SIZE_MIN));
        Self { uncompressed_bytes, compressed_bytes, zip64_fields }
    }

    /// Writes the fields that both records have, from "version needed" to "extra field length".
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
        let name_bytes = u16::try_from(entry.name.as_str().len());
        put16(out, name_bytes.expect("a name has at most `EntryName::BYTES_MAX` bytes"));
        let zip64_bytes = self.zip64_bytes();
        put16(out, if zip64_bytes == 0 { 0 } else { EXTRA_BYTES + zip64_bytes });
    }

    /// Returns the length of the numbers in the extra field.
    fn zip64_bytes(&self) -> u16 {
        u16::try_from(8 * self.zip64_fields.len()).expect("there are at most three numbers")
    }

    fn put_extra(&self, out: &mut Vec<u8>) {
        if self.zip64_fields.is_empty() {
            return;
        }
        // The kind of the ZIP64 extra field (APPNOTE §4.5.3).
        put16(out, 1);
        put16(out, self.zip64_bytes());
        for &number in &self.zip64_fields {
            put64(out, number);
        }
    }
}

fn has_zip64_lengths(entry: &ArchiveEntry) -> bool {
    entry.size_bytes.max(entry.uncompressed_bytes()) >= ZIP64_SIZE_MIN
}

fn name_bytes(entry: &ArchiveEntry) -> u64 {
    u64::try_from(entry.name.as_str().len()).expect("lengths fit 64 bits")
}

/// Returns the length of an entry's local header in bytes.
pub(super) fn local_header_bytes(entry: &ArchiveEntry) -> u64 {
    let zip64_bytes = if has_zip64_lengths(entry) { ZIP64_LENGTHS_BYTES } else { 0 };
    LOCAL_HEADER_BYTES + name_bytes(entry) + extra_field_bytes(zip64_bytes)
}

/// Returns the length of an entry's record in the central directory; its local header is at `offset`.
pub(super) fn directory_record_bytes(entry: &ArchiveEntry, offset: u64) -> u64 {
    let lengths = if has_zip64_lengths(entry) { ZIP64_LENGTHS_BYTES } else { 0 };
    let zip64_bytes = lengths + if offset >= ZIP64_SIZE_MIN { 8 } else { 0 };
    DIRECTORY_RECORD_BYTES + name_bytes(entry) + extra_field_bytes(zip64_bytes)
}

/// Returns the length of an extra field with `zip64_bytes` of numbers; without numbers there is no field.
fn extra_field_bytes(zip64_bytes: u64) -> u64 {
    if zip64_bytes == 0 { 0 } else { u64::from(EXTRA_BYTES) + zip64_bytes }
}

/// Writes the header before an entry's contents (APPNOTE §4.3.7).
pub(super) fn put_local_header(out: &mut Vec<u8>, entry: &ArchiveEntry) {
    let numbers = EntryNumbers::new(entry, None);
    put32(out, 0x0403_4b50);
    numbers.put_common(out, entry);
    out.extend(entry.name.as_str().bytes());
    numbers.put_extra(out);
}

/// Writes an entry's record in the central directory (APPNOTE §4.3.12); its local header is at `offset`.
pub(super) fn put_directory_record(out: &mut Vec<u8>, entry: &ArchiveEntry, offset: u64) {
    let numbers = EntryNumbers::new(entry, Some(offset));
    put32(out, 0x0201_4b50);
    put16(out, MADE_BY);
    numbers.put_common(out, entry);
    // Three empty fields: the length of a comment, the number of the disk, the internal attributes.
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

    /// Returns the length of the records after the directory in bytes.
    pub(super) fn end_bytes(self) -> u64 {
        END_BYTES + if self.is_zip64() { ZIP64_END_BYTES + LOCATOR_BYTES } else { 0 }
    }

    /// Writes the records after the directory (APPNOTE §4.3.14 to §4.3.16).
    pub(super) fn put_end(self, out: &mut Vec<u8>) {
        if self.is_zip64() {
            put32(out, 0x0606_4b50);
            // The size of the record counts neither the signature nor its own field (APPNOTE §4.3.14.1).
            put64(out, ZIP64_END_BYTES - 12);
            put16(out, MADE_BY);
            put16(out, VERSION_ZIP64);
            // The number of this disk and the number of the directory's disk.
            out.extend([0; 8]);
            // The number of entries on this disk, and in all.
            put64(out, self.entries);
            put64(out, self.entries);
            put64(out, self.size_bytes);
            put64(out, self.offset);
            // The locator of the record above: its disk, its offset, one disk in all.
            put32(out, 0x0706_4b50);
            put32(out, 0);
            put64(out, self.offset + self.size_bytes);
            put32(out, 1);
        }
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        put32(out, 0x0605_4b50);
        // The numbers of the two disks, then the two numbers of entries.
        out.extend([0; 4]);
        put16(out, entries);
        put16(out, entries);
        put_saturated_u32(out, self.size_bytes);
        put_saturated_u32(out, self.offset);
        // The length of a comment.
        put16(out, 0);
    }
}
