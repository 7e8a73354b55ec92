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

/// Encodes a picture as a WebP file: a RIFF header and one `VP8 ` chunk, the lossy kind of WebP.
///
/// libwebp converts the pixels to brightness and two chroma planes. The chroma planes have half the width and half
/// the height (4:2:0), because lossy WebP supports nothing else. There is no kind for grey pictures: they are
/// encoded as RGB with three equal samples, so that their chroma is neutral.
///
/// The result depends only on the arguments: libwebp runs on the calling thread.
///
/// Memory: about 4 bytes per pixel in all, including the planes and the file; grey needs 3 more for its copy in
/// RGB. That is at most 1.9 GB for the largest picture.
///
/// # Errors
///
/// [`WebpError::Size`] and [`WebpError::Layout`] are found before memory is allocated; [`WebpError::Library`]
/// comes from libwebp.
pub fn encode(picture: PixelView<'_>, options: WebpOptions) -> Result<Vec<u8>, WebpError> {
    let PixelView { size, channels, data } = picture;
    let sides = 1..=SIDE_PX_MAX;
    if !sides.contains(&size.width) || !sides.contains(&size.height) {
        return Err(WebpError::Size { size });
    }
    let bytes = size.pixels() * if channels == 1 { 1 } else { 3 };
    if !matches!(channels, 1 | 3) || u64::try_from(data.len()) != Ok(bytes) {
        return Err(WebpError::Layout { size, channels, bytes: data.len() });
    }
    if channels == 1 {
        let rgb: Vec<u8> = data.iter().flat_map(|&grey| [grey; 3]).collect();
        return libwebp::encode(size, &rgb, options);
    }
    libwebp::encode(size, data, options)
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

/// The quality of the picture, and the effort spent on a small file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebpOptions {
    /// Quality from 0 (smallest file) to 100 (best picture); other values are clamped, and NaN is 0. The scale is
    /// libwebp's: the same number means a different loss than for JPEG.
    pub quality: f32,
    /// The effort, libwebp's `method`, from 0 (fastest) to [`METHOD_MAX`] (smallest file); larger values are
    /// clamped.
    pub method: u8,
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
