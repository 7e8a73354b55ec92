//! JPEG: what originals are, and the format of every rendition that names no other.

use std::borrow::Cow;

use ::jpeg::codec::{self, Chroma, Decoded, Encoding, Pixels, Scale, Space};
use ::jpeg::header::{Header, HeaderLimits};
use ::jpeg::repair;
use ::jpeg::rewrite::rewrite_metadata;

use crate::format::{Attachments, Codec, Decoder, Opened, Picture};
use crate::{RasterError, Sampling, colour};

/// JPEG (ITU-T T.81).
pub static CODEC: Codec = Codec {
    name: "jpeg",
    extension: ".jpg",
    other_extensions: &["jpeg"],
    mime_type: "image/jpeg",
    magic: &[0xFF, 0xD8],
    decoder: Some(Decoder { open, decode }),
    encode,
    embed,
    holds_inks: true,
    side_px_max: 65_535,
};

/// Headers that our own encoder wrote have no more than a few segments.
const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 1, segments_max: 64, metadata_bytes_max: 1 << 16 };

fn open(file: &[u8]) -> Result<Opened<'_>, RasterError> {
    match codec::read_header(file) {
        Ok(header) => Ok(Opened { file: Cow::Borrowed(file), header }),
        Err(error) => {
            let file = repair::repaired(file).ok_or(error)?;
            let header = codec::read_header(&file)?;
            Ok(Opened { file: Cow::Owned(file), header })
        }
    }
}

fn decode(file: &[u8], scale: Scale) -> Result<Decoded<Pixels>, RasterError> {
    Ok(codec::decode(file, scale)?)
}

fn encode(picture: &Picture<'_>) -> Result<Vec<u8>, RasterError> {
    let original = &picture.original;
    let chroma = match picture.output.sampling {
        Sampling::S420 => Chroma::Quarter,
        Sampling::Keep if picture.is_turned => original.chroma.turned(),
        Sampling::Keep => original.chroma,
    };
    let quality = picture.output.quality;
    let write = |pixels: &Pixels, space: Space| {
        Ok(codec::encode(pixels, Encoding { quality, space, chroma })?)
    };
    match picture.pixels.channels {
        1 => write(&picture.pixels, Space::Grey),
        3 => write(&picture.pixels, Space::YCbCr),
        // The encoder writes Adobe's marker, which says that inks are inverted.
        _ if picture.inks_inverted => write(&picture.pixels, original.space),
        _ => write(&colour::invert(picture.pixels.clone().into_owned()), original.space),
    }
}

fn embed(file: &[u8], attachments: &Attachments<'_>) -> Result<Vec<u8>, RasterError> {
    let header = Header::parse_start(file, &LIMITS, file.len())
        .map_err(|cause| RasterError::Decode(cause.to_string()))?;
    let segments = attachments.metadata.jpeg_segments();
    let (mut head, scans) = rewrite_metadata(file, &header, &segments, attachments.icc);
    head.extend_from_slice(&file[scans]);
    Ok(head)
}
