//! Reads and writes boxes of the ISO base media file format (ISO/IEC 14496-12). A box is a length, a type of four
//! letters, and a payload, which for many types is again a list of boxes.

use crate::RasterError;

/// Bytes of the length and the type.
pub(super) const HEAD_BYTES: usize = 8;

/// Writes a box from the parts of its payload.
///
/// Fails with [`RasterError::Unsupported`] for a box of 4 GiB or more, which would need the long form of the
/// length.
pub(super) fn plain_box(kind: [u8; 4], payload: &[&[u8]]) -> Result<Vec<u8>, RasterError> {
    let bytes = HEAD_BYTES + payload.iter().map(|part| part.len()).sum::<usize>();
    let mut out = Vec::with_capacity(bytes);
    out.extend(length_u32(bytes)?.to_be_bytes());
    out.extend(kind);
    for part in payload {
        out.extend_from_slice(part);
    }
    Ok(out)
}

/// Writes a full box. Its payload begins with a version and three bytes of flags, which are 0 here.
pub(super) fn full_box(
    kind: [u8; 4],
    version: u8,
    payload: &[&[u8]],
) -> Result<Vec<u8>, RasterError> {
    let head = [version, 0, 0, 0];
    plain_box(kind, &[&[&head[..]], payload].concat())
}

/// Converts a length or an offset in a file to 32 bits.
pub(super) fn length_u32(bytes: usize) -> Result<u32, RasterError> {
    u32::try_from(bytes)
        .map_err(|_| RasterError::Unsupported(format!("{bytes} bytes in a file of 32 bits")))
}

/// Finds the payload of the first box of a type in a list of boxes.
///
/// Returns `None` if the list has no such box, or if a box before it is malformed or has the long form of the
/// length.
pub(super) fn find(mut boxes: &[u8], kind: [u8; 4]) -> Option<&[u8]> {
    loop {
        let (length, rest) = boxes.split_first_chunk::<4>()?;
        let (found, _) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let payload = boxes.get(HEAD_BYTES..length)?;
        if *found == kind {
            return Some(payload);
        }
        boxes = &boxes[length..];
    }
}
