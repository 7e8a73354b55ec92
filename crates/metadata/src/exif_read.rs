//! Reads EXIF: the fields that cameras write and editors add.
//!
//! An Exif block is a small TIFF file: directories (IFDs) of tagged values, in either byte order.
//! `kamadak-exif` parses it; this module limits its input, finds the tags and interprets the values.
//!
//! Some files have two blocks, one from the camera and one from an editor that ignored it. For each tag, the first
//! block with the tag has precedence, as in viewers.

use exif::{Context, Exif, Field, In, Rational, Reader, Tag, Value};

use crate::date_time::PartialDateTime;
use crate::{Caption, StandardFields, TEXT_BYTES_MAX, is_position, set_if_absent, text};

/// Maximum number of directory entries of a block; cameras write a few hundred.
const ENTRIES_MAX: usize = 5_000;
/// Maximum number of blocks that are read.
const BLOCKS_MAX: usize = 4;
/// Maximum number of chained directories that the library follows.
const DIRECTORIES_MAX: usize = 8;
/// Tags of Exif 3.0, which the library does not name.
const IMAGE_TITLE: Tag = Tag(Context::Exif, 0xA436);
const PHOTOGRAPHER: Tag = Tag(Context::Exif, 0xA437);
/// Number of bytes of a directory entry.
const ENTRY_BYTES: usize = 12;
/// Number of hexadecimal digits of an identifier, which has 128 bits (Exif 3.0, ImageUniqueID).
const UNIQUE_ID_DIGITS: usize = 32;

/// The parsed Exif blocks of a file, in file order.
pub(super) struct ExifBlocks(Vec<Exif>);

impl ExifBlocks {
    /// Parses blocks, each starting with its TIFF header; broken blocks cause warnings.
    pub(super) fn parse(blocks: &[&[u8]], warnings: &mut Vec<String>) -> ExifBlocks {
        let mut parsed = Vec::new();
        for (index, block) in blocks.iter().enumerate().take(BLOCKS_MAX) {
            if !is_within_entry_limit(block) {
                warnings.push(format!("exif block {index} has more than {ENTRIES_MAX} entries"));
                continue;
            }
            let mut damaged = false;
            let result = Reader::new()
                // One broken entry must not lose the orientation and the texts of the block.
                .continue_on_error(true)
                .read_raw(block.to_vec())
                .or_else(|error| error.distill_partial_result(|_| damaged = true));
            damaged |= result.is_err();
            parsed.extend(result);
            if damaged {
                warnings.push(format!("exif block {index} is broken"));
            }
        }
        ExifBlocks(parsed)
    }

    /// Finds a tag of the picture in the first block that has it.
    ///
    /// Thumbnails have a separate directory, which is not searched.
    pub(super) fn field(&self, tag: Tag) -> Option<&Field> {
        self.0.iter().find_map(|block| block.get_field(tag, In::PRIMARY))
    }

    /// Returns the orientation; 1 if it is absent or, with a warning, invalid.
    pub(super) fn orientation(&self, warnings: &mut Vec<String>) -> u8 {
        let Some(field) = self.field(Tag::Orientation) else {
            return 1;
        };
        let orientation = field.value.get_uint(0).and_then(|value| u8::try_from(value).ok());
        orientation.filter(|orientation| (1..=8).contains(orientation)).unwrap_or_else(|| {
            warnings.push("exif orientation is not 1 to 8".to_owned());
            1
        })
    }

    /// Reads the fields of a caption.
    pub(super) fn read(&self, warnings: &mut Vec<String>) -> StandardFields {
        let mut caption = Caption::default();
        set_if_absent(&mut caption.description, &self.text(Tag::ImageDescription));
        set_if_absent(&mut caption.byline, &self.text(Tag::Artist));
        set_if_absent(&mut caption.copyright_notice, &self.text(Tag::Copyright));
        // Exif 3.0 adds a second tag for the name; the older tag has precedence.
        set_if_absent(&mut caption.byline, &self.text(PHOTOGRAPHER));
        set_if_absent(&mut caption.title, &self.text(IMAGE_TITLE));
        set_if_absent(&mut caption.uri, &self.unique_id());
        caption.position = self.position();
        if caption.position.is_none() && self.has_coordinates() {
            warnings.push("exif gps position is not on the globe".to_owned());
        }
        let offset = self.text(Tag::OffsetTimeOriginal);
        let created = PartialDateTime::parse(&self.text(Tag::DateTimeOriginal))
            .map(|stamp| stamp.with_offset(&offset));
        StandardFields { caption, created, ..StandardFields::default() }
    }

    /// Reads a text; empty if it is absent, not a text, or a placeholder of blanks and NULs.
    ///
    /// The parts of a text that are separated by NULs, as in a copyright of photographer and editor, are joined by
    /// commas. The standard specifies ASCII, but real files have UTF-8 and Latin-1.
    pub(super) fn text(&self, tag: Tag) -> String {
        let parts = match self.field(tag).map(|field| &field.value) {
            Some(Value::Ascii(parts)) => parts.as_slice(),
            _ => return String::new(),
        };
        let texts = parts
            .iter()
            .map(|part| {
                text::clean(&text::decode_unknown(part.get(..TEXT_BYTES_MAX).unwrap_or(part)))
            })
            .filter(|text| !text.is_empty());
        // A copyright has two parts at most: the copyright of the photographer and of the editor.
        texts.take(2).collect::<Vec<_>>().join(", ")
    }

    /// Reads the identifier of the picture; empty if it does not have the form of the standard.
    ///
    /// Some cameras write their firmware version or zeros instead, which all their pictures share.
    fn unique_id(&self) -> String {
        let id = self.text(Tag::ImageUniqueID);
        let is_hex = id.len() == UNIQUE_ID_DIGITS && id.bytes().all(|b| b.is_ascii_hexdigit());
        if is_hex && id.bytes().any(|b| b != b'0') { id } else { String::new() }
    }

    /// Returns latitude and longitude in degrees, if both are present and in range.
    pub(super) fn position(&self) -> Option<(f64, f64)> {
        let latitude = self.degrees(Tag::GPSLatitude, Tag::GPSLatitudeRef, ["N", "S"])?;
        let longitude = self.degrees(Tag::GPSLongitude, Tag::GPSLongitudeRef, ["E", "W"])?;
        Some((latitude, longitude))
            .filter(|(latitude, longitude)| is_position(*latitude, *longitude))
    }

    /// Returns whether coordinates are filled in; cameras without GPS reception write `0/0`.
    fn has_coordinates(&self) -> bool {
        self.is_filled(Tag::GPSLatitude) && self.is_filled(Tag::GPSLongitude)
    }

    fn is_filled(&self, coordinate: Tag) -> bool {
        match self.field(coordinate).map(|field| &field.value) {
            Some(Value::Rational(parts)) => parts.iter().any(|part| part.denom != 0),
            _ => false,
        }
    }

    /// Reads degrees, minutes and seconds with their hemisphere.
    fn degrees(&self, tag: Tag, hemisphere: Tag, [ahead, behind]: [&str; 2]) -> Option<f64> {
        let Value::Rational(parts) = &self.field(tag)?.value else {
            return None;
        };
        // Degrees are never negative, so without the hemisphere the sign is unknown.
        let sign = match self.text(hemisphere).to_ascii_uppercase() {
            letter if letter == ahead => 1.0,
            letter if letter == behind => -1.0,
            _ => return None,
        };
        let parts: Vec<f64> = parts.iter().map(number).collect::<Option<_>>()?;
        let [degrees, minutes, seconds] = parts[..] else {
            return None;
        };
        Some(sign * (degrees + minutes / 60.0 + seconds / 3600.0))
    }
}

/// Converts a rational to a number; `0/0`, which some programs write for zero seconds, is zero.
fn number(rational: &Rational) -> Option<f64> {
    match (rational.num, rational.denom) {
        (0, _) => Some(0.0),
        (_, 0) => None,
        (num, denom) => Some(f64::from(num) / f64::from(denom)),
    }
}

/// Returns whether the library would read fewer than [`ENTRIES_MAX`] entries of a block.
///
/// An entry may point to a directory, and thousands of entries may point to the same directory, whose entries can
/// do the same: 64 kB can expand to 10^11 entries. This function follows the same pointers with a limit on the
/// total number of entries.
fn is_within_entry_limit(tiff: &[u8]) -> bool {
    let mut walk = EntryWalk { tiff, little: tiff.starts_with(b"II"), budget: ENTRIES_MAX };
    let mut next = walk.u32(4);
    for _ in 0..DIRECTORIES_MAX {
        match next {
            // The tags of the Exif and the GPS directory.
            Some(offset) if offset != 0 => next = walk.directory(offset, &[0x8769, 0x8825]),
            _ => break,
        }
    }
    walk.budget > 0
}

/// A walk over the directories of a TIFF file that counts entries down to zero.
struct EntryWalk<'a> {
    tiff: &'a [u8],
    little: bool,
    budget: usize,
}

impl EntryWalk<'_> {
    /// Counts the entries of a directory and of the directories to which its `pointers` tags point.
    ///
    /// Returns the offset of the next directory.
    fn directory(&mut self, offset: u32, pointers: &[u16]) -> Option<u32> {
        let mut at = usize::try_from(offset).ok()?;
        let count = self.u16(at)?;
        at += 2;
        for _ in 0..count {
            if self.budget == 0 {
                return None;
            }
            self.budget -= 1;
            let tag = self.u16(at)?;
            if pointers.contains(&tag)
                && let Some(child) = self.pointer(at)
            {
                // The Exif directory may point to Interop; Interop and GPS point to no directory.
                let inner: &[u16] = if tag == 0x8769 { &[0xA005] } else { &[] };
                self.directory(child, inner);
            }
            at += ENTRY_BYTES;
        }
        self.u32(at)
    }

    /// Reads the first value of an entry as an offset, for any unsigned integer type.
    fn pointer(&self, entry: usize) -> Option<u32> {
        let kind = self.u16(entry + 2)?;
        let count = usize::try_from(self.u32(entry + 4)?).ok()?;
        let unit = match kind {
            1 => 1,
            3 => 2,
            4 => 4,
            _ => return None,
        };
        // A value of up to four bytes is in the entry itself, in place of its offset (TIFF 6.0).
        let at = match unit * count {
            0 => return None,
            1..=4 => entry + 8,
            _ => usize::try_from(self.u32(entry + 8)?).ok()?,
        };
        match unit {
            1 => self.tiff.get(at).copied().map(u32::from),
            2 => self.u16(at).map(u32::from),
            _ => self.u32(at),
        }
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = *self.tiff.get(at..)?.first_chunk()?;
        Some(if self.little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.tiff.get(at..)?.first_chunk()?;
        Some(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A big-endian TIFF file whose directories are given as entries of tag, type, count, value.
    fn tiff(directory: &[(u16, u16, u32, [u8; 4])], tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"MM\0\x2A\0\0\0\x08".to_vec();
        bytes.extend(u16::try_from(directory.len()).expect("few entries").to_be_bytes());
        for (tag, kind, count, value) in directory {
            bytes.extend(tag.to_be_bytes());
            bytes.extend(kind.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            bytes.extend(value);
        }
        bytes.extend([0; 4]);
        bytes.extend(tail);
        bytes
    }

    fn orientation(value: u8) -> Vec<u8> {
        tiff(&[(0x112, 3, 1, [0, value, 0, 0])], &[])
    }

    fn check_orientation(blocks: &[&[u8]], expected: u8, warned: bool) {
        let mut warnings = Vec::new();
        let blocks = ExifBlocks::parse(blocks, &mut warnings);
        assert_eq!(blocks.orientation(&mut warnings), expected);
        assert_eq!(!warnings.is_empty(), warned, "{warnings:?}");
    }

    #[test]
    fn every_orientation_is_read_and_others_are_upright() {
        for value in 1..=8 {
            check_orientation(&[&orientation(value)], value, false);
        }
        check_orientation(&[&orientation(0)], 1, true);
        check_orientation(&[&orientation(9)], 1, true);
        check_orientation(&[], 1, false);
    }

    #[test]
    fn the_first_of_two_blocks_wins_for_the_tags_it_has() {
        let empty = tiff(&[], &[]);
        check_orientation(&[&orientation(6), &orientation(1)], 6, false);
        check_orientation(&[&orientation(1), &orientation(6)], 1, false);
        check_orientation(&[&empty, &orientation(6)], 6, false);
        check_orientation(&[b"II broken", &orientation(6)], 6, true);
    }

    #[test]
    fn text_is_latin1_or_utf8_and_blank_text_is_absent() {
        let offset = 8 + 2 + 3 * 12 + 4;
        let block = tiff(
            &[
                (0x10E, 2, 7, [0, 0, 0, offset]),
                (0x13B, 2, 4, *b"\xC5sa\0"),
                (0x8298, 2, 9, [0, 0, 0, offset + 7]),
            ],
            b"      \0Bo\0\0Ek \0\0",
        );
        let mut warnings = Vec::new();
        let fields = ExifBlocks::parse(&[&block], &mut warnings).read(&mut warnings);
        assert_eq!(fields.caption.description, "");
        assert_eq!(fields.caption.byline, "Åsa");
        assert_eq!(fields.caption.copyright_notice, "Bo, Ek");
        assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn cyclic_directories_are_refused() {
        // One directory whose 2,000 Exif pointers lead back to itself.
        let block = tiff(&vec![(0x8769, 4, 1, [0, 0, 0, 8]); 2_000], &[]);
        assert!(!is_within_entry_limit(&block));
        let mut warnings = Vec::new();
        assert_eq!(ExifBlocks::parse(&[&block], &mut warnings).0.len(), 0);
        assert_eq!(warnings.len(), 1);
    }
}
