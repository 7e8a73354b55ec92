//! The image formats: names, magic numbers, decoders, encoders, metadata and limits of each format.
//!
//! Callers use [`ImageFormat`]; its methods call the functions of the [`ImageCodec`] that the module of the format
//! defines. To add a format, add a module like `jpeg` and a variant of [`ImageFormat`], and list it in
//! [`ImageFormat::all`], which the compiler does not check. Media URLs, MIME types and planned renditions are derived
//! from the codecs. A search for `avif` finds the places that name formats by hand, such as the formats among which
//! the extension `.auto` of media URLs chooses, those that pages offer, and the links in `api::media`.

mod avif;
mod boxes;
mod jpeg;
mod quality;
mod webp;

pub(crate) use jpeg::encode_planes;

use std::borrow::Cow;

use ::jpeg::codec::{
    ChromaSubsampling, ColourSpace, DecodeOutput, DecodeScale, PictureHeader, Pixels,
};
use geometry::Size;
use metadata::EmbeddedMetadata;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{OutputColour, OutputOptions, OutputSampling, RasterError, colour};

/// The description of a format, with its decoder and encoder. There is one for each format.
pub struct ImageCodec {
    /// The extension of media URLs and of delivered files, with its dot.
    pub extension: &'static str,
    /// Other accepted extensions of incoming files, lower case, without a dot.
    pub other_extensions: &'static [&'static str],
    /// The MIME type of files, such as `image/jpeg`.
    pub mime_type: &'static str,
    /// The magic numbers: bytes that every file has, each with its offset in the file. A file must have all of them.
    pub magic: &'static [(usize, &'static [u8])],
    /// The decoder; `None` for a format that is only written.
    pub decoder: Option<ImageDecoder>,
    /// Encodes a picture of a supported size and number of channels as a file without metadata.
    pub encode: fn(&UnencodedPicture<'_>) -> Result<Vec<u8>, RasterError>,
    /// Returns a copy of a file that `encode` returned, with metadata and a colour profile embedded.
    pub embed: fn(&[u8], &ImageAttachments<'_>) -> Result<Vec<u8>, RasterError>,
    /// True if the format supports grey pictures with a grey ICC profile; if not, they are converted to the tone curve
    /// of sRGB and stay grey.
    pub supports_grey: bool,
    /// True if the format supports CMYK; if not, CMYK pictures are converted to sRGB.
    pub supports_cmyk: bool,
    /// The maximum width and height of a picture, in pixels.
    pub side_px_max: u32,
    /// The maximum number of pixels of a picture, which bounds the memory of the encoder.
    pub pixels_max: u64,
    /// The time to encode a pixel, as a multiple of the time for JPEG; measured, rounded up.
    pub encoding_cost: u32,
    /// The peak memory of the encoder in bytes per pixel, including the encoded file and excluding the pixels.
    pub encoder_bytes_per_pixel: fn(OutputSampling) -> u64,
}

/// The functions that read files of a format.
pub struct ImageDecoder {
    /// Reads size, colour space and subsampling, and repairs headers that `decode` would refuse.
    pub open: fn(&[u8]) -> Result<DecodableFile<'_>, RasterError>,
    /// Decodes a file that `open` returned, at a reduced scale if the format supports that.
    pub decode: fn(&[u8], DecodeScale) -> Result<DecodeOutput<Pixels>, RasterError>,
}

/// A file that is ready to be decoded.
pub struct DecodableFile<'a> {
    /// The file, or a repaired copy if its headers required repair.
    pub file: Cow<'a, [u8]>,
    /// Size, colour space and subsampling from the headers.
    pub header: PictureHeader,
}

/// The metadata and colour profile to embed in a file.
pub struct ImageAttachments<'a> {
    /// The EXIF, XMP and IIM blocks.
    pub metadata: &'a EmbeddedMetadata,
    /// The ICC profile; `None` for pixels in sRGB.
    pub icc: Option<&'a [u8]>,
}

/// A picture to be encoded.
pub struct UnencodedPicture<'a> {
    /// The pixels. If `output.colour` is [`OutputColour::Srgb`], the caller has already converted them: to RGB, or grey
    /// with the tone curve of sRGB.
    pub pixels: Cow<'a, Pixels>,
    /// Format, quality, subsampling and colour space of the result.
    pub output: OutputOptions,
    /// The header of the original, whose chroma subsampling [`OutputSampling::Keep`] uses.
    pub original: PictureHeader,
    /// True if the pixels were turned by 90° or 270° from the original, so that its subsampling is transposed.
    pub is_quarter_turned: bool,
    /// True if 0 is full ink in CMYK pixels; false if 255 is.
    pub inks_inverted: bool,
}

/// Encodes grey or sRGB pixels that do not come from a file, without metadata.
///
/// # Errors
///
/// [`RasterError::Unsupported`] unless the pixels have one or three channels and a size that the format supports.
pub fn encode_pixels(pixels: &Pixels, output: &OutputOptions) -> Result<Vec<u8>, RasterError> {
    // `original` is the header that a JPEG of these pixels would have: RGB is stored as YCbCr, here with full chroma,
    // so that `OutputSampling::Keep` does not subsample.
    let space = match pixels.channels {
        1 => ColourSpace::Grey,
        3 => ColourSpace::YCbCr,
        channels => {
            return Err(RasterError::Unsupported(format!("pixels with {channels} channels")));
        }
    };
    let original = PictureHeader { size: pixels.size, space, chroma: ChromaSubsampling::Full };
    let picture = UnencodedPicture {
        pixels: Cow::Borrowed(pixels),
        output: *output,
        original,
        is_quarter_turned: false,
        inks_inverted: false,
    };
    output.format.encode(picture, None)
}

/// An image file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ImageFormat {
    /// AVIF (AV1 in HEIF), lossy.
    Avif,
    /// JPEG (ITU-T T.81), lossy.
    Jpeg,
    /// WebP (RFC 9649), lossy.
    Webp,
}

impl ImageFormat {
    /// Iterates over all formats, the default first.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Jpeg, Self::Webp, Self::Avif].into_iter()
    }

    fn codec(self) -> &'static ImageCodec {
        match self {
            Self::Avif => &avif::CODEC,
            Self::Jpeg => &jpeg::CODEC,
            Self::Webp => &webp::CODEC,
        }
    }

    /// Detects the format of a file that begins with `head`; `None` if no format matches.
    pub fn of_file(head: &[u8]) -> Option<Self> {
        Self::all().find(|format| {
            let mut magic = format.codec().magic.iter();
            magic.all(|(offset, bytes)| {
                head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
            })
        })
    }

    /// Returns the format of files with this extension, with or without its dot, case-insensitively.
    pub fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.strip_prefix('.').unwrap_or(extension).to_ascii_lowercase();
        Self::all().find(|format| {
            format.extension()[1..] == extension
                || format.codec().other_extensions.contains(&extension.as_str())
        })
    }

    /// Returns the lower-case name, such as `jpeg`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the extension of media URLs with its dot, such as `.jpg`.
    pub fn extension(self) -> &'static str {
        self.codec().extension
    }

    /// Returns the MIME type of files of this format.
    pub fn mime_type(self) -> &'static str {
        self.codec().mime_type
    }

    /// Reads the headers of a file of this format.
    pub fn open(self, file: &[u8]) -> Result<DecodableFile<'_>, RasterError> {
        (self.decoder()?.open)(file)
    }

    /// Decodes a file returned by [`ImageFormat::open`].
    pub fn decode(
        self,
        file: &[u8],
        scale: DecodeScale,
    ) -> Result<DecodeOutput<Pixels>, RasterError> {
        (self.decoder()?.decode)(file, scale)
    }

    /// Encodes a picture as a file without metadata.
    ///
    /// Pixels that the caller has not converted keep their colours, except those that the format cannot store: CMYK
    /// pixels are converted to sRGB if the format does not support CMYK, and grey pixels if it does not support grey
    /// profiles. `icc` is the ICC profile of the pixels; without one, CMYK is converted with the built-in ink profile, and
    /// grey stays unchanged.
    ///
    /// Fails with [`RasterError::Unsupported`] for a picture of a size that the format does not support.
    pub fn encode(
        self,
        picture: UnencodedPicture<'_>,
        icc: Option<&[u8]>,
    ) -> Result<Vec<u8>, RasterError> {
        let size = picture.pixels.size;
        if !self.supports_size(size) {
            let text = format!("{size} pixels; {}", self.size_limits());
            return Err(RasterError::Unsupported(text));
        }
        let channels = picture.pixels.channels;
        // Grey has one channel before and after the caller's conversion to sRGB, so only `output.colour` shows that it
        // must not be converted again.
        let is_converted_grey = channels == 1 && picture.output.colour == OutputColour::Srgb;
        if self.stores_unconverted(channels) || is_converted_grey {
            return (self.codec().encode)(&picture);
        }
        // Converted here because encoders do not receive the profile.
        let pixels = colour::to_srgb(picture.pixels.into_owned(), icc, picture.inks_inverted)?;
        (self.codec().encode)(&UnencodedPicture { pixels: Cow::Owned(pixels), ..picture })
    }

    /// Returns a copy of a file that [`ImageFormat::encode`] returned, with metadata and an ICC profile embedded; no
    /// profile for sRGB.
    ///
    /// Fails with [`RasterError::Decode`] for a file that is not of this format.
    pub fn embed(
        self,
        file: &[u8],
        metadata: &EmbeddedMetadata,
        icc: Option<&[u8]>,
    ) -> Result<Vec<u8>, RasterError> {
        (self.codec().embed)(file, &ImageAttachments { metadata, icc })
    }

    /// Returns whether files of this format can be read, and so can be originals.
    pub fn is_readable(self) -> bool {
        self.codec().decoder.is_some()
    }

    /// Returns whether the format supports pictures of this size.
    pub fn supports_size(self, size: Size) -> bool {
        let ImageCodec { side_px_max, pixels_max, .. } = self.codec();
        size.width.max(size.height) <= *side_px_max && size.pixels() <= *pixels_max
    }

    /// Returns the limits of [`ImageFormat::supports_size`] for error messages, such as `webp files have at most
    /// 16383 pixels on a side`.
    pub fn size_limits(self) -> String {
        let ImageCodec { side_px_max, pixels_max, .. } = self.codec();
        let name = self.name();
        let sides = format!("{name} files have at most {side_px_max} pixels on a side");
        // Named only if a picture whose sides are within their limit can exceed it.
        let square = Size::new(*side_px_max, *side_px_max).pixels();
        if *pixels_max < square { format!("{sides} and {pixels_max} in all") } else { sides }
    }

    /// Returns the time to encode a pixel as a multiple of the time for JPEG, for budgets of encoding work.
    pub fn encoding_cost(self) -> u32 {
        self.codec().encoding_cost
    }

    /// Returns the peak memory in bytes for encoding `pixels` pixels, without the pixels themselves.
    pub fn encoder_bytes(self, pixels: u64, sampling: OutputSampling) -> u64 {
        pixels.saturating_mul((self.codec().encoder_bytes_per_pixel)(sampling))
    }

    /// Returns whether pixels with this number of channels are encoded without a conversion to sRGB, so that they may
    /// keep their profile.
    pub(crate) fn stores_unconverted(self, channels: usize) -> bool {
        match channels {
            1 => self.codec().supports_grey,
            4 => self.codec().supports_cmyk,
            _ => true,
        }
    }

    fn decoder(self) -> Result<&'static ImageDecoder, RasterError> {
        self.codec().decoder.as_ref().ok_or_else(|| {
            RasterError::Unsupported(format!("{} files are only written", self.name()))
        })
    }
}

#[cfg(test)]
mod container_tests;
#[cfg(test)]
mod tests;
