//! Extracts EXIF, XMP, ICC and IIM from the application segments of a JPEG file.
//!
//! A segment holds at most 65,533 bytes, and each format continues in the next segment differently:
//!
//! | content | segment | signature | more than one segment |
//! |---|---|---|---|
//! | Exif | APP1 | `Exif\0\0` | never; a second block comes from a second writer |
//! | XMP | APP1 | `http://ns.adobe.com/xap/1.0/\0` | never |
//! | extended XMP | APP1 | `http://ns.adobe.com/xmp/extension/\0` | GUID, whole length, offset |
//! | ICC profile | APP2 | `ICC_PROFILE\0` | number of the chunk, count of chunks |
//! | IIM | APP13 | `Photoshop 3.0\0` | split at any byte; the parts are joined |
//!
//! Joined content is never longer than its segments. Damage is not an error, because a picture with broken
//! metadata is still a picture: the damage of XMP and IIM is reported next to the recovered content.

use thiserror::Error;

use crate::header::{APP1, APP2, APP13, JpegHeader};

const EXIF: &[u8] = b"Exif\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const XMP_EXTENSION: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
pub(super) const ICC: &[u8] = b"ICC_PROFILE\0";
const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";

/// Bytes of the GUID that links extended XMP to its main packet: an MD5 in hexadecimal.
pub const GUID_BYTES: usize = 32;
/// The Photoshop resource that holds IIM.
const RESOURCE_IIM: u16 = 0x0404;
/// Signatures of a resource: Photoshop's signature and four that related programs write.
const RESOURCE_SIGNATURES: [&[u8]; 5] = [b"8BIM", b"PHUT", b"DCSR", b"AgHg", b"MeSa"];

/// Content extracted from segments, with its damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedContent {
    /// The content; `None` if the file has no content or it is unusable.
    pub value: Option<Vec<u8>>,
    /// The damage that made the content unusable or incomplete; `None` if it is intact.
    pub damage: Option<SegmentDamage>,
}

impl ExtractedContent {
    fn undamaged(value: Option<Vec<u8>>) -> ExtractedContent {
        ExtractedContent { value, damage: None }
    }

    fn damaged(damage: SegmentDamage) -> ExtractedContent {
        ExtractedContent { value: None, damage: Some(damage) }
    }
}

/// Damage in content that spans several segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SegmentDamage {
    /// The parts of extended XMP leave a gap or overlap.
    #[error("the parts of extended xmp leave a gap or overlap at byte {offset} of {length}")]
    XmpParts {
        /// Offset of the gap or overlap in the packet.
        offset: u32,
        /// The length of the packet that its parts declare.
        length: u32,
    },
    /// The list of Photoshop resources is truncated or malformed.
    #[error("the photoshop resources are broken at byte {offset}")]
    Resources {
        /// Offset of the broken resource in the joined segments.
        offset: usize,
    },
}

impl JpegHeader {
    /// Lists the payloads of one kind of segment that start with `signature`, without the signature.
    fn payloads<'a>(
        &'a self,
        jpeg: &'a [u8],
        marker: u8,
        signature: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        self.segments
            .iter()
            .filter(move |segment| segment.marker == marker)
            .filter_map(move |segment| jpeg.get(segment.payload.clone())?.strip_prefix(signature))
    }

    /// Lists the Exif blocks in file order; each starts with its TIFF header.
    ///
    /// `jpeg` must be the file from which this header was parsed, here and in the methods below.
    pub fn exif<'a>(&'a self, jpeg: &'a [u8]) -> Vec<&'a [u8]> {
        // The sixth byte of the signature is padding, which some writers do not set to zero.
        self.payloads(jpeg, APP1, EXIF).filter_map(|block| block.get(1..)).collect()
    }

    /// Finds the main XMP packet, which is the first packet.
    pub fn xmp<'a>(&'a self, jpeg: &'a [u8]) -> Option<&'a [u8]> {
        self.payloads(jpeg, APP1, XMP).next()
    }

    /// Joins the parts of the extended XMP packet with this `guid`.
    ///
    /// The main packet has the `guid` as `xmpNote:HasExtendedXMP`. Parts may come in any order and must cover the
    /// packet exactly. The method does not check that the GUID is the MD5 of the packet: the GUID protects against
    /// editors that drop one of the two packets, not against forgery.
    pub fn extended_xmp(&self, jpeg: &[u8], guid: &[u8]) -> ExtractedContent {
        let mut parts: Vec<(u32, u32, &[u8])> = self
            .payloads(jpeg, APP1, XMP_EXTENSION)
            .filter_map(|payload| {
                let rest = payload.strip_prefix(guid)?;
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let (offset, data) = rest.split_first_chunk::<4>()?;
                Some((u32::from_be_bytes(*offset), u32::from_be_bytes(*length), data))
            })
            .collect();
        // A shorter GUID would match the packets of every GUID that starts with it.
        if guid.len() != GUID_BYTES || parts.is_empty() {
            return ExtractedContent::undamaged(None);
        }
        parts.sort_by_key(|&(offset, ..)| offset);
        let length = parts[0].1;
        let mut packet = Vec::new();
        for (offset, claimed, data) in parts {
            if usize::try_from(offset) != Ok(packet.len()) || claimed != length {
                return ExtractedContent::damaged(SegmentDamage::XmpParts { offset, length });
            }
            packet.extend_from_slice(data);
        }
        if usize::try_from(length) != Ok(packet.len()) {
            return ExtractedContent::damaged(SegmentDamage::XmpParts { offset: length, length });
        }
        ExtractedContent::undamaged(Some(packet))
    }

    /// Joins the chunks of the ICC profile, which may come in any order.
    ///
    /// A profile with a missing, repeated or contradictory chunk is discarded, because colours from an
    /// incomplete table are worse than no colour management. The profile itself is not validated.
    pub fn icc(&self, jpeg: &[u8]) -> Option<Vec<u8>> {
        let mut chunks: [Option<&[u8]>; 256] = [None; 256];
        let mut expected = None;
        for payload in self.payloads(jpeg, APP2, ICC) {
            let [number, count, data @ ..] = payload else { return None };
            // Numbers count from 1, and every chunk states the count of all chunks.
            let is_consistent =
                (1..=*count).contains(number) && *expected.get_or_insert(*count) == *count;
            if !is_consistent || chunks[usize::from(*number)].replace(data).is_some() {
                return None;
            }
        }
        let all = chunks[1..=usize::from(expected?)].iter().copied();
        Some(all.collect::<Option<Vec<&[u8]>>>()?.concat())
    }

    /// Finds the IIM bytes: resource 0x0404 of the joined Photoshop segments.
    ///
    /// Several such resources are joined too. If the resources are damaged, the resources before the damage are
    /// used.
    pub fn iptc(&self, jpeg: &[u8]) -> ExtractedContent {
        let joined: Vec<u8> = self.payloads(jpeg, APP13, PHOTOSHOP).flatten().copied().collect();
        let mut iim: Option<Vec<u8>> = None;
        let mut at = 0;
        // Zeros at the end are padding.
        while joined.get(at..).is_some_and(|rest| rest.iter().any(|&byte| byte != 0)) {
            let Some((id, data, next)) = resource(&joined, at) else {
                return ExtractedContent {
                    value: iim,
                    damage: Some(SegmentDamage::Resources { offset: at }),
                };
            };
            if id == RESOURCE_IIM {
                iim.get_or_insert_default().extend_from_slice(data);
            }
            at = next;
        }
        ExtractedContent::undamaged(iim)
    }
}

/// Reads the Photoshop resource at `at`; returns its number, its data and the offset of the next resource.
///
/// A resource is a signature, a number, a name (length byte and text, padded to an even count), a
/// length and data, padded to an even count again. Some writers omit the last padding byte.
fn resource(resources: &[u8], at: usize) -> Option<(u16, &[u8], usize)> {
    let rest = resources.get(at..)?;
    if !is_signature(rest) {
        return None;
    }
    let (id, rest) = rest.get(4..)?.split_first_chunk::<2>()?;
    // The padding counts the length byte as well.
    let name = usize::from(*rest.first()?) + 1;
    let rest = rest.get(name + name % 2..)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let data = rest.get(..length)?;
    let end = resources.len() - rest.len() + length;
    // A signature right after the data shows that the writer omitted the padding.
    let padded = length % 2 == 1 && !resources.get(end..).is_some_and(is_signature);
    Some((u16::from_be_bytes(*id), data, end + usize::from(padded)))
}

fn is_signature(bytes: &[u8]) -> bool {
    RESOURCE_SIGNATURES.iter().any(|signature| bytes.starts_with(signature))
}
