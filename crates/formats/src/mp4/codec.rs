//! Builds codec names in the form of RFC 6381 from the configuration in sample entries.
//!
//! If the configuration is missing or damaged, the name is just the four-character code; the file remains
//! readable.

use std::fmt::Write;

use crate::mp4::boxes::{BoxIterator, BoxKind};

/// Bytes of an audio sample entry before its child boxes.
const AUDIO_ENTRY_BYTES: usize = 28;

fn config<'a>(boxes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    let mut readable = BoxIterator(boxes).map_while(Result::ok);
    readable.find(|(found, _)| found.0 == *kind).map(|(_, contents)| contents)
}

/// Names the codec of a video sample entry; `boxes` are its child boxes.
///
/// Forms: RFC 6381 §3.3 for `avc1` and `mp4v`, ISO/IEC 14496-15 annex E for `hvc1`, "VP Codec ISO
/// Media File Format Binding" for `vp09`, "AV1 Codec ISO Media File Format Binding" for `av01`.
pub(super) fn video_codec(kind: BoxKind, boxes: &[u8]) -> String {
    let details = match &kind.0 {
        b"avc1" | b"avc2" | b"avc3" | b"avc4" => config(boxes, b"avcC").and_then(avc),
        b"hvc1" | b"hev1" => config(boxes, b"hvcC").and_then(hevc),
        b"vp08" | b"vp09" => config(boxes, b"vpcC").and_then(vp9),
        b"av01" => config(boxes, b"av1C").and_then(av1),
        b"mp4v" => config(boxes, b"esds").and_then(StreamDescriptor::parse).map(|es| es.video()),
        _ => None,
    };
    named(kind, details)
}

/// Names the codec of an audio sample entry, given without its header; `version` is the version of the `stsd` box.
/// QuickTime's entries of version 1 and 2 are longer, and may have their boxes inside a `wave` box.
///
/// Form: RFC 6381 §3.3, with the object types of the MP4 registration authority.
pub(super) fn audio_codec(kind: BoxKind, entry: &[u8], version: u8) -> String {
    let more_bytes = match (version, entry.get(8..10)) {
        (0, Some([0, 1])) => 16,
        (0, Some([0, 2])) => 36,
        _ => 0,
    };
    let boxes = entry.get(AUDIO_ENTRY_BYTES + more_bytes..).unwrap_or_default();
    let esds = config(boxes, b"esds")
        .or_else(|| config(config(boxes, b"wave").unwrap_or_default(), b"esds"));
    let details = match &kind.0 {
        b"mp4a" => esds.and_then(StreamDescriptor::parse).map(|es| es.audio()),
        _ => None,
    };
    named(kind, details)
}

fn named(kind: BoxKind, details: Option<String>) -> String {
    details.map_or_else(|| kind.to_string(), |details| format!("{kind}.{details}"))
}

/// Formats profile, constraints and level, two hexadecimal digits each.
fn avc(config: &[u8]) -> Option<String> {
    let [profile, constraints, level] = config.get(1..)?.first_chunk()?;
    Some(format!("{profile:02x}{constraints:02x}{level:02x}"))
}

/// Formats profile, compatibility bits in reverse order, tier and level, and constraints without trailing
/// zeros.
fn hevc(config: &[u8]) -> Option<String> {
    let first = *config.get(1)?;
    let compatible = u32::from_be_bytes(*config.get(2..)?.first_chunk()?);
    let constraints: [u8; 6] = *config.get(6..)?.first_chunk()?;
    let level = config.get(12)?;
    // Profile space 0 is omitted (ISO/IEC 14496-15 annex E).
    let profile_space = ["", "A", "B", "C"][usize::from(first >> 6)];
    let tier = if first & 0x20 == 0 { 'L' } else { 'H' };
    let profile = first & 0x1f;
    let mut text =
        format!("{profile_space}{profile}.{:X}.{tier}{level}", compatible.reverse_bits());
    let count = constraints.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    for byte in &constraints[..count] {
        // Writing to a string cannot fail.
        let _infallible = write!(text, ".{byte:X}");
    }
    Some(text)
}

/// Formats profile, level and bits per sample, two decimal digits each.
fn vp9(config: &[u8]) -> Option<String> {
    let [profile, level, depth] = config.get(4..)?.first_chunk()?;
    Some(format!("{profile:02}.{level:02}.{:02}", depth >> 4))
}

/// Formats profile, level and tier, and bits per sample.
fn av1(config: &[u8]) -> Option<String> {
    let [first, second] = config.get(1..)?.first_chunk()?;
    let profile = first >> 5;
    let level = first & 0x1f;
    let tier = if second & 0x80 == 0 { 'M' } else { 'H' };
    // The flag for 12 bits counts only together with the flag for more than 8.
    let depth = if second & 0x40 == 0 {
        8
    } else if second & 0x20 == 0 {
        10
    } else {
        12
    };
    Some(format!("{profile}.{level:02}{tier}.{depth:02}"))
}

/// The codec information of an elementary stream descriptor.
///
/// ISO/IEC 14496-1 §7.2.6.
struct StreamDescriptor<'a> {
    object_type: u8,
    specific: &'a [u8],
}

/// Parses a descriptor with `tag` at the start of `bytes` and returns its contents, which may be truncated.
fn descriptor(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (&found, mut rest) = bytes.split_first()?;
    let mut length = 0;
    // The length has seven bits per byte, in four bytes at most.
    for _ in 0..4 {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        length = length << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    (found == tag).then(|| rest.get(..length).unwrap_or(rest))
}

impl<'a> StreamDescriptor<'a> {
    /// Parses an `esds` box.
    fn parse(esds: &'a [u8]) -> Option<Self> {
        let stream = descriptor(esds.get(4..)?, 3)?;
        let flags = *stream.get(2)?;
        let mut offset = 3;
        // Optional fields by flag: the stream on which this one depends, a URL with its length, the clock stream.
        if flags & 0x80 != 0 {
            offset += 2;
        }
        if flags & 0x40 != 0 {
            offset += 1 + usize::from(*stream.get(offset)?);
        }
        if flags & 0x20 != 0 {
            offset += 2;
        }
        let decoder = descriptor(stream.get(offset..)?, 4)?;
        // The fixed fields of the decoder configuration have 13 bytes.
        let specific = decoder.get(13..).and_then(|rest| descriptor(rest, 5)).unwrap_or_default();
        Some(Self { object_type: *decoder.first()?, specific })
    }

    /// Formats the object type, with the AAC object type if present.
    fn audio(&self) -> String {
        // Object type 31 is an escape: the type is 32 plus the next six bits.
        let aac = match self.specific {
            [first, second, ..] if first >> 3 == 31 => Some(32 + (first & 7) * 8 + (second >> 5)),
            [first, ..] if first >> 3 != 0 => Some(first >> 3),
            _ => None,
        };
        match aac {
            Some(aac) if self.object_type == 0x40 => format!("40.{aac}"),
            _ => format!("{:02x}", self.object_type),
        }
    }

    /// Formats the object type, with the profile and level if MPEG-4 video states them.
    fn video(&self) -> String {
        match self.specific {
            [0, 0, 1, 0xb0, profile, ..] if self.object_type == 0x20 => format!("20.{profile}"),
            _ => format!("{:02x}", self.object_type),
        }
    }
}
