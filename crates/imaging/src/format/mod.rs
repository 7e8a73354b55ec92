//! Defines the image formats: names, magic numbers, decoders, encoders, metadata and limits of each format.
//!
//! To add a format, add a module next to [`jpeg`](self) and a line in the table `FORMATS`. Media URLs,
//! MIME types and planned renditions are derived from the table.

mod avif;
mod boxes;
mod jpeg;
mod quality;
mod webp;

use std::{borrow::Cow, cmp::Ordering, fmt, hash};

use ::jpeg::codec::{
    ChromaSubsampling, ColourSpace, DecodeOutput, DecodeScale, PictureHeader, Pixels,
};
use geometry::Size;
use metadata::EmbeddedMetadata;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{OutputColour, OutputOptions, OutputSampling, RasterError, colour};

/// All formats of pictures that we read or write.
static FORMATS: [&ImageCodec; 3] = [&jpeg::CODEC, &webp::CODEC, &avif::CODEC];

/// The description of a format, with its decoder and encoder.
pub struct ImageCodec {
    /// Lower-case name for serialized data, such as `jpeg`.
    pub name: &'static str,
    /// The extension of media URLs and of delivered files, with its dot.
    pub extension: &'static str,
    /// Other accepted extensions of incoming files, lower case, without a dot.
    pub other_extensions: &'static [&'static str],
    /// The MIME type of files, such as `image/jpeg`.
    pub mime_type: &'static str,
    /// The magic numbers: bytes that every file has, each with its offset.
    pub magic: &'static [(usize, &'static [u8])],
    /// The decoder; `None` for a format that is only written.
    pub decoder: Option<ImageDecoder>,
    /// Encodes pixels, whose channels and sides must be within the limits of the format.
    pub encode: fn(&UnencodedPicture<'_>) -> Result<Vec<u8>, RasterError>,
    /// Embeds metadata and a colour profile in an encoded file.
    pub embed: fn(&[u8], &ImageAttachments<'_>) -> Result<Vec<u8>, RasterError>,
    /// True if the format supports grey pictures with a grey profile; if not, they are converted to sRGB's tone
    /// curve.
    pub holds_grey: bool,
    /// True if the format supports CMYK; if not, CMYK pictures are converted to sRGB.
    pub holds_inks: bool,
    /// The maximum width and height of a picture, in pixels.
    pub side_px_max: u32,
    /// The maximum number of pixels of a picture, which bounds the memory of an encode.
    pub pixels_max: u64,
    /// The time to encode a pixel, as a multiple of the time for JPEG; measured, rounded up.
    pub encoding_cost: u32,
    /// The peak memory of an encoder in bytes per pixel: with the encoded file, without the pixels.
    pub encoder_bytes_per_pixel: fn(OutputSampling) -> u64,
}

/// The functions that read files of a format.
pub struct ImageDecoder {
    /// Reads size and colour space, and repairs headers that `decode` would refuse.
    pub open: fn(&[u8]) -> Result<DecodableFile<'_>, RasterError>,
    /// Decodes a file returned by `open`, at a reduced scale if the format supports that.
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
    pub pixels: Cow<'a, Pixels>,
    /// Format, quality, subsampling and colour space of the result.
    pub output: OutputOptions,
    /// The headers of the original, whose subsampling [`OutputSampling::Keep`] uses.
    pub original: PictureHeader,
    /// True if the pixels were turned by 90° or 270° from the original, so that its subsampling is transposed.
    pub is_quarter_turned: bool,
    /// True if 0 in `pixels` is full ink.
    pub inks_inverted: bool,
}

/// Encodes grey or sRGB pixels that do not come from a file, without metadata.
///
/// # Errors
///
/// [`RasterError::Unsupported`] for pixels with four channels or of a size that the format does not support.
pub fn encode_pixels(pixels: &Pixels, output: &OutputOptions) -> Result<Vec<u8>, RasterError> {
    let space = match pixels.channels {
        1 => ColourSpace::Grey,
        3 => ColourSpace::YCbCr,
        channels => {
            return Err(RasterError::Unsupported(format!("pixels with {channels} channels")));
        }
    };
    // The output keeps all chroma samples, as of an original with full chroma.
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

/// An image file format; as cheap to copy as a reference.
#[derive(Clone, Copy)]
pub struct ImageFormat(&'static ImageCodec);

impl ImageFormat {
    /// The JPEG format (ITU-T T.81).
    pub const JPEG: Self = Self(&jpeg::CODEC);
    /// The WebP format (RFC 9649), lossy.
    pub const WEBP: Self = Self(&webp::CODEC);
    /// The AVIF format (AV1 in HEIF), lossy.
    pub const AVIF: Self = Self(&avif::CODEC);

    /// Iterates over all known formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.into_iter().map(Self)
    }

    /// Detects the format of a file that begins with `head`; `None` if no format matches.
    #[must_use]
    pub fn of_file(head: &[u8]) -> Option<Self> {
        Self::all().find(|format| {
            let mut magic = format.0.magic.iter();
            magic.all(|(offset, bytes)| {
                head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
            })
        })
    }

    /// Returns the format of files with this extension, with or without its dot, case-insensitively.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.strip_prefix('.').unwrap_or(extension).to_ascii_lowercase();
        Self::all().find(|format| {
            format.0.extension[1..] == extension
                || format.0.other_extensions.contains(&extension.as_str())
        })
    }

    /// Returns the lower-case name, such as `jpeg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the extension of media URLs with its dot, such as `.jpg`.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.0.extension
    }

    /// Returns the MIME type of files of this format.
    #[must_use]
    pub fn mime_type(self) -> &'static str {
        self.0.mime_type
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

    /// Returns whether files of this format can be read, and so can be originals.
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.0.decoder.is_some()
    }

    /// Returns whether the format supports pictures of this size.
    #[must_use]
    pub fn holds_size(self, size: Size) -> bool {
        size.width.max(size.height) <= self.0.side_px_max && size.pixels() <= self.0.pixels_max
    }

    /// Returns the limits of [`ImageFormat::holds_size`] for error messages, such as `webp files have at most
    /// 16383 pixels on a side`.
    #[must_use]
    pub fn size_limits(self) -> String {
        let ImageCodec { name, side_px_max, pixels_max, .. } = self.0;
        let sides = format!("{name} files have at most {side_px_max} pixels on a side");
        // A number that follows from the sides adds no information.
        let square = Size::new(*side_px_max, *side_px_max).pixels();
        if *pixels_max < square { format!("{sides} and {pixels_max} in all") } else { sides }
    }

    /// Returns the time to encode a pixel as a multiple of the time for JPEG, for budgets of encoding work.
    #[must_use]
    pub fn encoding_cost(self) -> u32 {
        self.0.encoding_cost
    }

    /// Returns the peak memory in bytes for encoding `pixels` pixels, without the pixels themselves.
    #[must_use]
    pub fn encoder_bytes(self, pixels: u64, sampling: OutputSampling) -> u64 {
        pixels.saturating_mul((self.0.encoder_bytes_per_pixel)(sampling))
    }

    /// Returns whether pixels with this number of channels are stored unconverted, and may keep their profile.
    pub(crate) fn holds(self, channels: usize) -> bool {
        match channels {
            1 => self.0.holds_grey,
            4 => self.0.holds_inks,
            _ => true,
        }
    }

    fn decoder(self) -> Result<&'static ImageDecoder, RasterError> {
        self.0.decoder.as_ref().ok_or_else(|| {
            RasterError::Unsupported(format!("{} files are only written", self.0.name))
        })
    }

    /// Encodes a picture as a file without metadata.
    ///
    /// If the format does not support CMYK, inks are converted to sRGB with `icc`, the profile of the original.
    /// Grey is converted too if it cannot keep its profile and is not converted yet.
    ///
    /// Fails with [`RasterError::Unsupported`] for a picture of a size that the format does not support.
    pub fn encode(
        self,
        picture: UnencodedPicture<'_>,
        icc: Option<&[u8]>,
    ) -> Result<Vec<u8>, RasterError> {
        let size = picture.pixels.size;
        if !self.holds_size(size) {
            let text = format!("{size} pixels; {}", self.size_limits());
            return Err(RasterError::Unsupported(text));
        }
        let channels = picture.pixels.channels;
        // A conversion to sRGB leaves grey in one channel, so the number of channels does not show it.
        let is_srgb = channels < 4 && picture.output.colour == OutputColour::Srgb;
        if self.holds(channels) || is_srgb {
            return (self.0.encode)(&picture);
        }
        // Encoders do not receive the profile, which the conversion of inks needs.
        let pixels = colour::to_srgb(picture.pixels.into_owned(), icc, picture.inks_inverted)?;
        (self.0.encode)(&UnencodedPicture { pixels: Cow::Owned(pixels), ..picture })
    }

    /// Returns the encoded file with metadata and a colour profile embedded.
    ///
    /// Fails with [`RasterError::Decode`] for a file that is not of this format.
    pub fn embed(
        self,
        file: &[u8],
        metadata: &EmbeddedMetadata,
        icc: Option<&[u8]>,
    ) -> Result<Vec<u8>, RasterError> {
        (self.0.embed)(file, &ImageAttachments { metadata, icc })
    }
}

impl fmt::Debug for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl PartialEq for ImageFormat {
    fn eq(&self, other: &Self) -> bool {
        // Compared by name, consistently with the order and the hash below.
        self.0.name == other.0.name
    }
}

impl Eq for ImageFormat {}

impl PartialOrd for ImageFormat {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ImageFormat {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl hash::Hash for ImageFormat {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Serialize for ImageFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for ImageFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        let found = Self::all().find(|format| format.0.name == name);
        found.ok_or_else(|| D::Error::custom(format!("no image format {name}")))
    }
}

#[cfg(test)]
mod container_tests;
#[cfg(test)]
mod tests;
