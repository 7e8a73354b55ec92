#![doc = include_str!("../README.md")]

mod libaom;
mod planes;
mod sequence;

use geometry::Size;
use thiserror::Error;

use crate::planes::YuvPlanes;
pub use crate::sequence::Av1Config;

/// The maximum width and height of a picture, in pixels: the width of AV1's highest levels, 6.0 to 6.3. The format
/// allows 65,536, which decoders refuse.
pub const SIDE_PX_MAX: u32 = 16_384;
/// The maximum number of pixels of a picture: 16,384 x 2,176, the limit of the same levels. It bounds the memory
/// of an encode.
pub const PIXELS_MAX: u64 = 35_651_584;
/// The coarsest quantizer on libaom's scale, where 0 is lossless.
pub const QUANTIZER_MAX: u8 = 63;
/// The fastest speed of libaom for still pictures.
pub const SPEED_MAX: u8 = 9;

/// The chroma subsampling of a colour picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChromaSampling {
    /// 4:2:0: one chroma sample for each block of two by two pixels. AV1 Main profile.
    Quarter,
    /// 4:4:4: one chroma sample for each pixel. AV1 High profile.
    Full,
}

/// Quality, speed and subsampling of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Av1Options {
    /// The quantizer on libaom's scale of 0 (best) to [`QUANTIZER_MAX`]; larger values are clamped.
    pub quantizer: u8,
    /// libaom's `cpu-used`, from 0 (smallest file) to [`SPEED_MAX`] (fastest); larger values are clamped.
    pub speed: u8,
    /// Subsampling of colour pictures; grey ones have no chroma.
    pub chroma: ChromaSampling,
}

/// The pixels of a picture.
#[derive(Clone, Copy, Debug)]
pub struct PixelView<'a> {
    /// Width and height in pixels.
    pub size: Size,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// `[height][width][channels]` of `u8`, rows without padding.
    pub data: &'a [u8],
}

/// The stream of an encoded picture, and the properties that a container declares about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Av1Picture {
    /// The sequence header and the frame as OBUs with sizes, without a temporal delimiter: the data of an
    /// `av01` image item.
    pub obus: Vec<u8>,
    /// The properties that a decoder must support.
    pub config: Av1Config,
}

/// The reason why a picture was not encoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Av1Error {
    /// The picture is empty or larger than decoders accept.
    #[error(
        "{size} pixels; expected 1 to {SIDE_PX_MAX} on a side and at most {PIXELS_MAX} in all"
    )]
    Size {
        /// The size of the picture.
        size: Size,
    },
    /// The pixels are neither grey nor RGB, or their number does not match the size.
    #[error("{bytes} bytes for {size} pixels of {channels} channels")]
    Layout {
        /// The size of the picture.
        size: Size,
        /// The number of channels.
        channels: usize,
        /// The number of bytes.
        bytes: usize,
    },
    /// libaom failed, which for valid pixels means that it ran out of memory.
    #[error("libaom: {call} failed: {cause}")]
    Library {
        /// The function of libaom that failed.
        call: &'static str,
        /// libaom's description of its error code.
        cause: String,
    },
    /// libaom's output is not a still picture with a reduced header.
    #[error("libaom wrote an unexpected stream: {0}")]
    Stream(&'static str),
}

/// Encodes a picture with 8 bits per sample as one AV1 key frame.
///
/// Colours are transformed with the matrix of BT.601 at full range, and the stream says so. The container declares
/// primaries and transfer. Grey pictures are monochrome. The result depends only on the arguments: libaom runs on
/// the calling thread.
///
/// Memory: 1.5 bytes per pixel for the planes, or 3 for 4:4:4, plus the allocations of libaom. Together they are
/// about 100 bytes per pixel at speed 7, so at most 3.6 GB for [`PIXELS_MAX`].
///
/// Fails with [`Av1Error::Size`] or [`Av1Error::Layout`] before memory is allocated.
pub fn encode(picture: PixelView<'_>, options: Av1Options) -> Result<Av1Picture, Av1Error> {
    let PixelView { size, channels, data } = picture;
    if !is_encodable(size) {
        return Err(Av1Error::Size { size });
    }
    let bytes = size.pixels() * if channels == 1 { 1 } else { 3 };
    if !matches!(channels, 1 | 3) || u64::try_from(data.len()) != Ok(bytes) {
        return Err(Av1Error::Layout { size, channels, bytes: data.len() });
    }
    let planes = YuvPlanes::convert(picture, options.chroma);
    let stream = libaom::encode(&planes, options)?;
    sequence::still_picture(&stream, &planes)
}

/// Returns whether a picture of this size can be encoded.
pub fn is_encodable(size: Size) -> bool {
    (1..=SIDE_PX_MAX).contains(&size.width)
        && (1..=SIDE_PX_MAX).contains(&size.height)
        && size.pixels() <= PIXELS_MAX
}

#[cfg(test)]
mod tests;
