//! Writes WebP: files a tenth smaller than our JPEG, with a worse picture (see `QUALITIES`), at a dozen times the cost.
//! WebP is not read.
//!
//! `webp_encoder` encodes the pixels. This module adds the extended header and the chunks for a colour profile,
//! EXIF and XMP (RFC 9649, section 2.7). WebP has no place for IIM, so it is omitted; XMP has the same texts.

use webp_encoder::{PixelView, WebpError, WebpOptions};

use super::boxes::length_u32;
use super::quality::interpolate;
use crate::RasterError;
use crate::format::{ImageAttachments, ImageCodec, UnencodedPicture};

/// The codec for WebP (RFC 9649).
pub static CODEC: ImageCodec = ImageCodec {
    extension: ".webp",
    other_extensions: &[],
    mime_type: "image/webp",
    // Lets `ImageFormat::of_file` name a WebP file, although it cannot be opened.
    magic: &[(0, b"RIFF"), (8, b"WEBP")],
    decoder: None,
    encode,
    embed,
    // Lossy WebP always has luma and chroma, which decoders convert to RGB. A grey picture can be encoded, as RGB with
    // three equal samples, but not with a grey profile. So it is converted to the tone curve of sRGB first.
    supports_grey: false,
    supports_cmyk: false,
    side_px_max: webp_encoder::SIDE_PX_MAX,
    // The sides are the only limit.
    pixels_max: u64::MAX,
    // A multiple of the cost of JPEG, measured with `METHOD`.
    encoding_cost: 12,
    // 4 for libwebp and the file (`webp_encoder::encode`): the luma plane needs 1 and the two chroma planes, of half
    // the width and height, 0.5; the rest is for the file, its copy and libwebp's own data. 3 for the copy in RGB of
    // a grey picture. The sampling is ignored, because lossy WebP has only 4:2:0.
    encoder_bytes_per_pixel: |_sampling| 4 + 3,
};

/// libwebp's method. Methods 3 and 4 need more than twice the time and save a twentieth of the bytes at the same
/// quality value, but at equal bytes they score no better in SSIMULACRA2 (four photographs at 1,024 pixels).
const METHOD: u8 = 2;

/// libwebp's quality for quality 0, 10, ... 100.
///
/// The table aims at a tenth fewer bytes than our JPEG of the same quality has, and accepts a worse picture: clients
/// ask for WebP because it is smaller. At quality 85, a WebP with the SSIMULACRA2 score of the JPEG would have 40 %
/// more bytes than the JPEG (`benches/RESULTS.md`, "Small renditions").
///
/// To measure it again, encode photographs of 1,024 pixels at each of the qualities as JPEG and as WebP, and choose
/// the values at which the WebPs have nine tenths of the bytes. These values were found with method 4. Method 2 writes
/// a twentieth more bytes at the same value, so the values were lowered until the files were as small as before.
const QUALITIES: [f32; 11] = [0.0, 3.0, 11.0, 24.5, 43.0, 55.0, 66.5, 74.0, 80.0, 87.0, 100.0];

/// Flags of the extended header.
const FLAG_ICC: u8 = 0b10_0000;
const FLAG_EXIF: u8 = 0b1000;
const FLAG_XMP: u8 = 0b100;

/// Bytes before the first chunk: `RIFF`, a length, `WEBP`.
const HEAD_BYTES: usize = 12;
/// The start code of a key frame (RFC 6386, section 9.1).
const START_CODE: [u8; 3] = [0x9D, 0x01, 0x2A];

fn encode(picture: &UnencodedPicture<'_>) -> Result<Vec<u8>, RasterError> {
    let pixels = &*picture.pixels;
    let view = PixelView { size: pixels.size, channels: pixels.channels, data: &pixels.data };
    let quality = interpolate(picture.output.quality, &QUALITIES);
    let options = WebpOptions { quality, method: METHOD };
    webp_encoder::encode(view, options).map_err(|error| match error {
        WebpError::Size { .. } => RasterError::Unsupported(error.to_string()),
        WebpError::Layout { .. } | WebpError::Library { .. } => {
            RasterError::Internal(error.to_string())
        }
    })
}

/// Adds the extended header, the profile and the metadata to a file that [`encode`] returned.
///
/// Such a file has only one chunk, the frame. A file that has attachments already is accepted too: the new ones replace
/// them, because only the frame is copied.
fn embed(file: &[u8], attachments: &ImageAttachments<'_>) -> Result<Vec<u8>, RasterError> {
    let frame = frame_of(file).ok_or_else(damaged)?;
    let sides = canvas(frame).ok_or_else(damaged)?;
    let icc = attachments.icc.unwrap_or_default();
    let metadata = attachments.metadata;
    let flags = [
        (!icc.is_empty(), FLAG_ICC),
        (!metadata.exif.is_empty(), FLAG_EXIF),
        (!metadata.xmp.is_empty(), FLAG_XMP),
    ];
    let flags =
        flags.into_iter().filter(|(is_set, _)| *is_set).fold(0, |sum, (_, flag)| sum | flag);
    let mut chunks = b"WEBP".to_vec();
    if flags != 0 {
        chunk(&mut chunks, *b"VP8X", &[&[flags, 0, 0, 0], &sides[..]].concat())?;
    }
    // The order of the standard: the profile before the frame, metadata after it.
    for (kind, payload) in [
        (*b"ICCP", icc),
        (*b"VP8 ", frame),
        (*b"EXIF", &metadata.exif[..]),
        (*b"XMP ", &metadata.xmp[..]),
    ] {
        if !payload.is_empty() {
            chunk(&mut chunks, kind, payload)?;
        }
    }
    let mut out = b"RIFF".to_vec();
    out.extend(length_u32(chunks.len())?.to_le_bytes());
    out.extend(chunks);
    Ok(out)
}

fn damaged() -> RasterError {
    RasterError::Decode("not a lossy WebP file".to_owned())
}

/// Finds the payload of the `VP8 ` chunk, the frame. Skips chunks before it, such as the extended header.
fn frame_of(file: &[u8]) -> Option<&[u8]> {
    if !(file.starts_with(b"RIFF") && file.get(8..)?.starts_with(b"WEBP")) {
        return None;
    }
    let mut chunks = file.get(HEAD_BYTES..)?;
    loop {
        let (kind, rest) = chunks.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let payload = rest.get(..length)?;
        if kind == b"VP8 " {
            return Some(payload);
        }
        chunks = rest.get(length.checked_next_multiple_of(2)?..)?;
    }
}

/// Reads the sides of a key frame in the form of the extended header: each less 1, in three bytes, of which the
/// last is zero.
fn canvas(frame: &[u8]) -> Option<[u8; 6]> {
    // A frame begins with its tag, three bytes; then come the start code and two bytes for each side.
    let (start_code, sides) = frame.get(3..10)?.split_first_chunk::<3>()?;
    if *start_code != START_CODE {
        return None;
    }
    let [w0, w1] = side_less_1(sides[0], sides[1])?;
    let [h0, h1] = side_less_1(sides[2], sides[3])?;
    Some([w0, w1, 0, h0, h1, 0])
}

fn side_less_1(low: u8, high: u8) -> Option<[u8; 2]> {
    // The upper two bits of each side are a scale for display.
    let side = u16::from_le_bytes([low, high]) & 0x3FFF;
    Some(side.checked_sub(1)?.to_le_bytes())
}

/// Appends a chunk: its type, the length of the payload, the payload, and a zero if the length is odd.
fn chunk(out: &mut Vec<u8>, kind: [u8; 4], payload: &[u8]) -> Result<(), RasterError> {
    out.extend(kind);
    out.extend(length_u32(payload.len())?.to_le_bytes());
    out.extend_from_slice(payload);
    if payload.len() % 2 == 1 {
        out.push(0);
    }
    Ok(())
}
