//! Reads the sequence header of a stream that libaom wrote (AV1 specification, 5.3 to 5.5).

use crate::planes::YuvPlanes;
use crate::{Av1Error, Av1Picture};

/// Types of OBUs (AV1 specification, 6.2.2).
const OBU_SEQUENCE_HEADER: u8 = 1;
const OBU_TEMPORAL_DELIMITER: u8 = 2;
const OBU_FRAME: u8 = 6;

/// The properties of a stream that a decoder needs to know in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Av1Config {
    /// `seq_profile`: 0 for Main, 1 for High.
    pub profile: u8,
    /// `seq_level_idx_0`: 4 x (major - 2) + minor, or 31 for a picture above all levels.
    pub level: u8,
    /// True if the picture is monochrome.
    pub is_monochrome: bool,
    /// True if chroma has a sample for each pixel.
    pub has_full_chroma: bool,
}

/// An OBU: its type, its payload, and the stream after it.
struct Obu<'a> {
    kind: u8,
    payload: &'a [u8],
    rest: &'a [u8],
}

/// Checks the stream of one picture and removes its temporal delimiter, as AVIF requires.
pub(crate) fn still_picture(stream: &[u8], planes: &YuvPlanes) -> Result<Av1Picture, Av1Error> {
    let mut obus = stream;
    let mut first = obu(obus)?;
    if first.kind == OBU_TEMPORAL_DELIMITER {
        obus = first.rest;
        first = obu(obus)?;
    }
    if first.kind != OBU_SEQUENCE_HEADER {
        return Err(Av1Error::Stream("no sequence header"));
    }
    let &[head, next, ..] = first.payload else {
        return Err(Av1Error::Stream("short sequence header"));
    };
    // seq_profile (3 bits), still_picture, reduced_still_picture_header, seq_level_idx (5 bits).
    let profile = head >> 5;
    let is_reduced = head & 0b1_1000 == 0b1_1000;
    let level = (head & 0b111) << 2 | next >> 6;
    if !is_reduced {
        return Err(Av1Error::Stream("no reduced still picture header"));
    }
    let frame = obu(first.rest)?;
    if frame.kind != OBU_FRAME || !frame.rest.is_empty() {
        return Err(Av1Error::Stream("not exactly one frame"));
    }
    let config = Av1Config {
        profile,
        level,
        is_monochrome: planes.is_monochrome,
        has_full_chroma: planes.has_full_chroma,
    };
    Ok(Av1Picture { obus: obus.to_vec(), config })
}

/// Reads the OBU at the start of a stream in the low-overhead format, in which each OBU has its size.
fn obu(stream: &[u8]) -> Result<Obu<'_>, Av1Error> {
    let truncated = Av1Error::Stream("truncated OBU");
    let (&head, mut rest) = stream.split_first().ok_or_else(|| truncated.clone())?;
    // Forbidden bit, type (4 bits), extension flag, size flag, reserved bit.
    if head & 0b1000_0110 != 0b10 {
        return Err(Av1Error::Stream("OBU without a size or with an extension"));
    }
    let mut size = 0_usize;
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or_else(|| truncated.clone())?;
        rest = after;
        size |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let (payload, rest) = rest.split_at_checked(size).ok_or(truncated)?;
            return Ok(Obu { kind: head >> 3 & 0b1111, payload, rest });
        }
    }
    Err(Av1Error::Stream("OBU size of more than five bytes"))
}
