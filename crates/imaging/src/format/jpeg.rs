//! Reads and writes JPEG: the format of originals, and the default format of renditions.

use std::borrow::Cow;

use ::jpeg::codec::{
    self, ChromaSubsampling, ColourSpace, DecodeOutput, DecodeScale, EncodeOptions, Pixels, Planes,
};
use ::jpeg::encoder;
use ::jpeg::header::{HeaderLimits, JpegHeader};
use ::jpeg::repair;
use ::jpeg::rewrite::rewrite_metadata;

use crate::format::{DecodableFile, ImageAttachments, ImageCodec, ImageDecoder, UnencodedPicture};
use crate::{OutputOptions, OutputSampling, RasterError, colour};

/// The codec for JPEG (ITU-T T.81).
pub static CODEC: ImageCodec = ImageCodec {
    extension: ".jpg",
    other_extensions: &["jpeg"],
    mime_type: "image/jpeg",
    magic: &[(0, &[0xFF, 0xD8])],
    decoder: Some(ImageDecoder { open, decode }),
    encode,
    embed,
    supports_grey: true,
    supports_cmyk: true,
    side_px_max: 65_535,
    pixels_max: u64::MAX,
    encoding_cost: 1,
    encoder_bytes_per_pixel: |sampling| match sampling {
        // Our own encoder holds the coefficients of all blocks.
        OutputSampling::S420 => 60,
        // libjpeg-turbo holds only rows. Memory is needed for the longest file and its copy.
        OutputSampling::Keep => 6,
    },
};

/// Limits for files that our own encoder wrote, which have only a few segments.
const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 1, segments_max: 64, metadata_bytes_max: 1 << 16 };

fn open(file: &[u8]) -> Result<DecodableFile<'_>, RasterError> {
    match codec::read_header(file) {
        Ok(header) => Ok(DecodableFile { file: Cow::Borrowed(file), header }),
        // Most files need no repair, so the copy is made only after a failure.
        Err(error) => {
            let file = repair::repair(file).ok_or(error)?;
            let header = codec::read_header(&file)?;
            Ok(DecodableFile { file: Cow::Owned(file), header })
        }
    }
}

fn decode(file: &[u8], scale: DecodeScale) -> Result<DecodeOutput<Pixels>, RasterError> {
    Ok(codec::decode(file, scale)?)
}

fn encode(picture: &UnencodedPicture<'_>) -> Result<Vec<u8>, RasterError> {
    let original = &picture.original;
    let chroma = match picture.output.sampling {
        OutputSampling::S420 => ChromaSubsampling::Quarter,
        // The subsampling turns with the pixels: 4:2:2 becomes 4:4:0.
        OutputSampling::Keep if picture.is_quarter_turned => original.chroma.transposed(),
        OutputSampling::Keep => original.chroma,
    };
    let quality = picture.output.quality;
    // Small renditions are sent more often than they are encoded, so they use our encoder with smaller files. Only libjpeg-turbo writes four channels.
    if picture.output.sampling == OutputSampling::S420 && picture.pixels.channels < 4 {
        let options =
            encoder::EncodeOptions { quality, sampling: chroma, effort: picture.output.effort };
        return Ok(encoder::encode(&picture.pixels, &options)?);
    }
    let space = match picture.pixels.channels {
        1 => ColourSpace::Grey,
        3 => ColourSpace::YCbCr,
        _ => original.space,
    };
    let options = EncodeOptions { quality, space, chroma };
    let has_inks = !matches!(picture.pixels.channels, 1 | 3);
    // The encoder writes Adobe's marker, which implies inverted inks.
    if has_inks && !picture.inks_inverted {
        let inverted = colour::invert(picture.pixels.clone().into_owned());
        return Ok(codec::encode(&inverted, options)?);
    }
    Ok(codec::encode(&picture.pixels, options)?)
}

/// Encodes the planes of a grey or YCbCr picture with the encoder that [`CODEC`] would choose for its pixels.
pub(crate) fn encode_planes(
    planes: &Planes,
    output: OutputOptions,
) -> Result<Vec<u8>, RasterError> {
    let OutputOptions { quality, sampling, effort, .. } = output;
    if sampling == OutputSampling::S420 {
        let options = encoder::EncodeOptions { quality, sampling: planes.chroma, effort };
        return Ok(encoder::encode_planes(planes, &options)?);
    }
    Ok(codec::encode_planes(planes, quality)?)
}

fn embed(file: &[u8], attachments: &ImageAttachments<'_>) -> Result<Vec<u8>, RasterError> {
    let header = JpegHeader::parse_start(file, &LIMITS, file.len())
        .map_err(|cause| RasterError::Decode(cause.to_string()))?;
    let segments = attachments.metadata.jpeg_segments();
    let (mut head, scans) = rewrite_metadata(file, &header, &segments, attachments.icc);
    head.extend_from_slice(&file[scans]);
    Ok(head)
}
