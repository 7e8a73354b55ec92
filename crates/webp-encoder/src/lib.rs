#![doc = include_str!("../README.md")]

mod libwebp;
#[cfg(test)]
mod tests;

use geometry::Size;
use thiserror::Error;

/// The maximum width and height of a picture, in pixels (RFC 9649, section 2.5).
pub const SIDE_PX_MAX: u32 = 16_383;
/// The slowest method of libwebp, which writes the smallest files.
pub const METHOD_MAX: u8 = 6;

/// The quality of the file and the effort of the encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebpOptions {
    /// Quality on libwebp's scale, 0 to 100; other values are clamped. The scale differs from the scale of JPEG.
    pub quality: f32,
    /// libwebp's `method`, from 0 (fastest) to [`METHOD_MAX`] (smallest file); larger values are clamped.
    pub method: u8,
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

/// The reason why a picture was not encoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WebpError {
    /// The picture is empty or larger than a WebP file can hold.
    #[error("{size} pixels; expected 1 to {SIDE_PX_MAX} on a side")]
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
    /// libwebp failed, which for valid pixels means that it ran out of memory or that the file would be too large
    /// for the format.
    #[error("libwebp: {call} failed with code {code}")]
    Library {
        /// The function of libwebp that failed.
        call: &'static str,
        /// The error code of libwebp, a `WebPEncodingError`.
        code: i32,
    },
}

/// Encodes a picture as a lossy WebP file: a RIFF header and one `VP8 ` chunk.
///
/// Chroma is subsampled (4:2:0), because the format supports nothing else. Grey pictures have neutral chroma. The
/// result depends only on the arguments: libwebp runs on the calling thread.
///
/// Memory: about 4 bytes per pixel in all, including the planes and the file; grey needs 3 more for its copy in
/// RGB. That is at most 1.9 GB for the largest picture.
///
/// Fails with [`WebpError::Size`] or [`WebpError::Layout`] before memory is allocated.
pub fn encode(picture: PixelView<'_>, options: WebpOptions) -> Result<Vec<u8>, WebpError> {
    let PixelView { size, channels, data } = picture;
    let sides = 1..=SIDE_PX_MAX;
    if !sides.contains(&size.width) || !sides.contains(&size.height) {
        return Err(WebpError::Size { size });
    }
    let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
    let expected = match channels {
        1 => size.pixels(),
        3 => size.pixels() * 3,
        _ => return Err(WebpError::Layout { size, channels, bytes: data.len() }),
    };
    if bytes != expected {
        return Err(WebpError::Layout { size, channels, bytes: data.len() });
    }
    if channels == 1 {
        let rgb: Vec<u8> = data.iter().flat_map(|&grey| [grey; 3]).collect();
        return libwebp::encode(size, &rgb, options);
    }
    libwebp::encode(size, data, options)
}
