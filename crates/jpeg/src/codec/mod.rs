//! Decodes and encodes whole pictures with libjpeg-turbo.
//!
//! Pictures are passed as interleaved pixels or as planes of components. To decode only a part, use
//! [`DecodeScale`] (the DCT itself produces fewer pixels) or `scan` (a region). The types of the `turbojpeg` crate
//! are not exposed outside this file.

use geometry::Size;
use serde::Serialize;
use thiserror::Error;
use turbojpeg::{
    Colorspace, Compressor, DecompressHeader, Decompressor, Image, PixelFormat, ScalingFactor,
    Subsamp, Transform, Transformer, YuvImage,
};

/// Maximum number of scans of a progressive file; encoders usually write 6 to 12, at most 64.
///
/// Each scan costs a pass over the whole picture, even a short scan.
const SCANS_MAX: u32 = 128;

/// Row alignment of the planes that are exchanged with the library, in bytes; 1 means no padding.
const PLANE_ALIGN: usize = 1;

/// The colour space of the components stored in a JPEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ColourSpace {
    /// One component of grey levels.
    Grey,
    /// Luma and two chroma channels.
    YCbCr,
    /// Red, green and blue, not transformed (Adobe transform 0 or component ids `RGB`).
    Rgb,
    /// Four inks, not transformed.
    Cmyk,
    /// Four inks, the first three transformed to luma and chroma.
    Ycck,
}

impl ColourSpace {
    /// Returns the number of samples per pixel after decoding.
    pub fn channels(self) -> usize {
        match self {
            ColourSpace::Grey => 1,
            ColourSpace::YCbCr | ColourSpace::Rgb => 3,
            ColourSpace::Cmyk | ColourSpace::Ycck => 4,
        }
    }

    /// Returns the format in which pixels of this space are decoded and encoded.
    fn format(self) -> PixelFormat {
        match self {
            ColourSpace::Grey => PixelFormat::GRAY,
            ColourSpace::YCbCr | ColourSpace::Rgb => PixelFormat::RGB,
            ColourSpace::Cmyk | ColourSpace::Ycck => PixelFormat::CMYK,
        }
    }

    fn colorspace(self) -> Colorspace {
        match self {
            ColourSpace::Grey => Colorspace::Gray,
            ColourSpace::YCbCr => Colorspace::YCbCr,
            ColourSpace::Rgb => Colorspace::RGB,
            ColourSpace::Cmyk => Colorspace::CMYK,
            ColourSpace::Ycck => Colorspace::YCCK,
        }
    }
}

/// Chroma subsampling: the number of pixels that share one chroma sample, across and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ChromaSubsampling {
    /// 4:4:4, and all pictures without chroma.
    Full,
    /// 4:2:2: two pixels in a row share a sample.
    Half,
    /// 4:2:0: two by two pixels share a sample.
    Quarter,
    /// 4:4:0: two pixels in a column share a sample.
    HalfDown,
    /// 4:1:1: four pixels in a row share a sample.
    QuarterAcross,
    /// 4:4:1: four pixels in a column share a sample.
    QuarterDown,
    /// Any other sampling, which can be decoded to pixels but not to planes.
    Other,
}

/// The pixels per chroma sample, across and down, and the library's name of each subsampling.
const SUBSAMPLINGS: [(ChromaSubsampling, (u32, u32), Subsamp); 6] = [
    (ChromaSubsampling::Full, (1, 1), Subsamp::None),
    (ChromaSubsampling::Half, (2, 1), Subsamp::Sub2x1),
    (ChromaSubsampling::Quarter, (2, 2), Subsamp::Sub2x2),
    (ChromaSubsampling::HalfDown, (1, 2), Subsamp::Sub1x2),
    (ChromaSubsampling::QuarterAcross, (4, 1), Subsamp::Sub4x1),
    (ChromaSubsampling::QuarterDown, (1, 4), Subsamp::Sub1x4),
];

impl ChromaSubsampling {
    /// Returns the pixels per chroma sample, across and down; `(1, 1)` for [`ChromaSubsampling::Other`].
    pub fn cell(self) -> (u32, u32) {
        SUBSAMPLINGS.iter().find(|known| known.0 == self).map_or((1, 1), |known| known.1)
    }

    /// Finds the subsampling with this number of pixels per chroma sample, across and down.
    pub(crate) fn from_cell(cell: (u32, u32)) -> Option<ChromaSubsampling> {
        SUBSAMPLINGS.iter().find(|known| known.1 == cell).map(|known| known.0)
    }

    /// Returns the subsampling of the picture after a quarter turn.
    pub fn transposed(self) -> ChromaSubsampling {
        let (across, down) = self.cell();
        let turned = Self::from_cell((down, across)).filter(|_| self != ChromaSubsampling::Other);
        turned.unwrap_or(ChromaSubsampling::Other)
    }

    fn from_subsamp(subsamp: Subsamp) -> ChromaSubsampling {
        if subsamp == Subsamp::Gray {
            return ChromaSubsampling::Full;
        }
        let known = SUBSAMPLINGS.iter().find(|known| known.2 == subsamp);
        known.map_or(ChromaSubsampling::Other, |known| known.0)
    }

    fn subsamp(self, space: ColourSpace) -> Subsamp {
        if space == ColourSpace::Grey {
            return Subsamp::Gray;
        }
        // An unusual sampling is encoded without subsampling, which loses no chroma.
        SUBSAMPLINGS.iter().find(|known| known.0 == self).map_or(Subsamp::None, |known| known.2)
    }
}

/// Size, colour space and chroma subsampling of a JPEG file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureHeader {
    /// The size in pixels as stored, before any EXIF orientation.
    pub size: Size,
    /// The colour space of the components.
    pub space: ColourSpace,
    /// Chroma subsampling of the components.
    pub chroma: ChromaSubsampling,
}

/// The reason why a JPEG file could not be decoded or encoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    /// The file is damaged or not a JPEG; the text comes from the library.
    #[error("{0}")]
    Corrupt(String),
    /// The file is a JPEG of an unsupported kind: lossless, 12 bits, unusual sampling.
    #[error("{0}")]
    Unsupported(String),
    /// The library could not encode the pixels; pixels from a decoder never cause this.
    #[error("{0}")]
    Encode(String),
}

/// A decoded value with the library's first warning.
///
/// Samples that are missing from a damaged file are zero or grey; they are the same on every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeOutput<T> {
    /// The decoded pixels or planes.
    pub value: T,
    /// The first warning about damaged data; `None` if the data is intact.
    pub warning: Option<String>,
}

/// Interleaved pixels: `[height][width][channels]` of `u8`, rows without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// The size in pixels.
    pub size: Size,
    /// Samples per pixel: 1 grey, 3 RGB, 4 CMYK as stored in the file.
    pub channels: usize,
    /// The samples, row by row.
    pub data: Vec<u8>,
}

/// The position of one plane in the data of [`Planes`]; rows have no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneLayout {
    /// Index of the first sample.
    pub start: usize,
    /// Number of samples in a row.
    pub width: usize,
    /// Number of rows in the plane.
    pub height: usize,
}

/// The components of a grey or YCbCr picture, each on its own sample grid.
///
/// The luma plane is padded to whole chroma cells, as the library requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// The picture's size in pixels, without padding.
    pub size: Size,
    /// The colour space, grey or YCbCr.
    pub space: ColourSpace,
    /// Chroma subsampling of the components.
    pub chroma: ChromaSubsampling,
    /// The samples of all planes, one plane after the other.
    pub data: Vec<u8>,
}

impl PlaneLayout {
    /// Returns the size of the plane in samples.
    pub fn size(&self) -> Size {
        Size { width: edge_px(self.width), height: edge_px(self.height) }
    }
}

impl Planes {
    /// Computes the position of each plane: one plane for grey, three otherwise.
    pub fn layout(size: Size, space: ColourSpace, chroma: ChromaSubsampling) -> Vec<PlaneLayout> {
        let (across, down) = chroma.cell();
        let cols = size.width.div_ceil(across);
        let rows = size.height.div_ceil(down);
        let luma = PlaneLayout { start: 0, width: px(cols * across), height: px(rows * down) };
        let mut planes = vec![luma];
        if space != ColourSpace::Grey {
            let width = px(cols);
            let height = px(rows);
            let start = luma.width * luma.height;
            planes.push(PlaneLayout { start, width, height });
            planes.push(PlaneLayout { start: start + width * height, width, height });
        }
        planes
    }

    /// Returns the total number of samples of planes with this layout.
    pub fn sample_count(layout: &[PlaneLayout]) -> usize {
        layout.last().map_or(0, |plane| plane.start + plane.width * plane.height)
    }
}

/// The scale at which the decoder's DCT produces pixels: 1 to 8 eighths of the full size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecodeScale(u8);

impl DecodeScale {
    /// The full size, eight eighths.
    pub const FULL: DecodeScale = DecodeScale(8);

    /// Creates a scale of `eighths` eighths, clamped to 1 to 8.
    pub fn from_eighths(eighths: u8) -> DecodeScale {
        DecodeScale(eighths.clamp(1, 8))
    }

    /// Returns the size of a picture of `size` decoded at this scale, each edge rounded up.
    pub fn scaled_size(self, size: Size) -> Size {
        Size { width: self.scaled_edge(size.width), height: self.scaled_edge(size.height) }
    }

    fn scaled_edge(self, edge: u32) -> u32 {
        let scaled = (u64::from(edge) * u64::from(self.0)).div_ceil(8);
        u32::try_from(scaled).expect("not larger than the edge itself")
    }
}

/// Quality, colour space and chroma subsampling for [`encode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The quality on the library's scale, 1 to 100.
    pub quality: u8,
    /// The colour space of the file.
    pub space: ColourSpace,
    /// Chroma subsampling of the components.
    pub chroma: ChromaSubsampling,
}

/// Converts a pixel count or edge to an index.
fn edge_px(samples: usize) -> u32 {
    u32::try_from(samples).expect("edges come from 32-bit sizes")
}

fn px(value: u32) -> usize {
    usize::try_from(value).expect("the machine has at least 32-bit indices")
}

fn edge(value: usize) -> Result<u32, CodecError> {
    u32::try_from(value).map_err(|_| CodecError::Corrupt("edge beyond 32 bits".to_owned()))
}

/// Prefixes of the library's warnings.
///
/// The library also reports damage that it could work around as an error; only the text differs. None of its error
/// messages starts with one of these prefixes.
const WARNINGS: [&str; 7] = [
    "Corrupt JPEG data",
    "Premature end of JPEG file",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Unknown Adobe color transform code",
    "Warning: unknown JFIF revision number",
    "Application transferred too many scanlines",
];

/// Prefixes of errors that mean an unsupported kind of JPEG, not damage.
const UNSUPPORTED: [&str; 6] = [
    "Fractional sampling not implemented",
    "CCIR601 sampling not implemented",
    "Unsupported",
    "Sorry",
    "Requested feature was omitted",
    "Require lossy/lossless mismatch",
];

/// Converts the library's result to success, a warning, or an error.
fn warning_of(result: turbojpeg::Result<()>) -> Result<Option<String>, CodecError> {
    match result {
        Ok(()) => Ok(None),
        Err(error) => failure(&error).map(Some),
    }
}

/// Converts an error of the library to an error, or to a warning if the library could work around the damage.
fn failure(error: &turbojpeg::Error) -> Result<String, CodecError> {
    // The library reports sizes of -1 for headers without a picture.
    if matches!(error, turbojpeg::Error::IntegerOverflow(_)) {
        return Err(CodecError::Corrupt("no picture in the headers".to_owned()));
    }
    let turbojpeg::Error::TurboJpegError(text) = error else {
        return Err(CodecError::Unsupported(error.to_string()));
    };
    // The library prefixes some messages with the name of its function.
    let bare = text.split_once("(): ").map_or(text.as_str(), |(_, rest)| rest);
    if WARNINGS.iter().any(|start| bare.starts_with(start)) {
        Ok(bare.to_owned())
    } else if UNSUPPORTED.iter().any(|start| bare.starts_with(start)) {
        Err(CodecError::Unsupported(bare.to_owned()))
    } else {
        Err(CodecError::Corrupt(bare.to_owned()))
    }
}

/// Converts an error before anything was decoded, so that there is no picture to return with a warning.
fn fatal(error: &turbojpeg::Error) -> CodecError {
    failure(error).map_or_else(|error| error, CodecError::Corrupt)
}

fn decompressor() -> Result<Decompressor, CodecError> {
    let mut decompressor = Decompressor::new().map_err(|error| fatal(&error))?;
    decompressor.set_scan_limit(SCANS_MAX).map_err(|error| fatal(&error))?;
    Ok(decompressor)
}

fn header_of(header: &DecompressHeader) -> Result<PictureHeader, CodecError> {
    if header.is_lossless {
        return Err(CodecError::Unsupported("lossless JPEG".to_owned()));
    }
    let space = match header.colorspace {
        Colorspace::Gray => ColourSpace::Grey,
        Colorspace::YCbCr => ColourSpace::YCbCr,
        Colorspace::RGB => ColourSpace::Rgb,
        Colorspace::CMYK => ColourSpace::Cmyk,
        Colorspace::YCCK => ColourSpace::Ycck,
    };
    let size = Size { width: edge(header.width)?, height: edge(header.height)? };
    Ok(PictureHeader { size, space, chroma: ChromaSubsampling::from_subsamp(header.subsamp) })
}

/// Reads the headers without allocating memory for pixels.
///
/// Fails if [`decode`] would fail on the headers. Damage between the headers is an error here, although the
/// library only warns of it; [`crate::repair`] can remove it.
pub fn read_header(jpeg: &[u8]) -> Result<PictureHeader, CodecError> {
    let header = decompressor()?.read_header(jpeg).map_err(|error| fatal(&error))?;
    header_of(&header)
}

/// Decodes the whole picture at `scale`, with the slow integer DCT and smooth upsampling.
///
/// CMYK and YCCK are decoded to four inks as the file stores them: inverted in files with Adobe's marker. Memory:
/// the pixels and, for progressive files, two bytes for each sample of each component. The caller must have
/// checked the size.
pub fn decode(jpeg: &[u8], scale: DecodeScale) -> Result<DecodeOutput<Pixels>, CodecError> {
    let mut decompressor = decompressor()?;
    let header = decompressor.read_header(jpeg).map_err(|error| fatal(&error))?;
    let PictureHeader { size, space, .. } = header_of(&header)?;
    let factor = ScalingFactor::new(usize::from(scale.0), 8);
    decompressor.set_scaling_factor(factor).map_err(|error| fatal(&error))?;
    let size = scale.scaled_size(size);
    let channels = space.channels();
    let width = px(size.width);
    let height = px(size.height);
    // Zeroed, because a damaged file leaves samples unwritten and the bytes must be repeatable (contract
    // media-24).
    let mut data = vec![0; width * height * channels];
    let image = Image {
        pixels: data.as_mut_slice(),
        width,
        pitch: width * channels,
        height,
        format: space.format(),
    };
    let warning = warning_of(decompressor.decompress(jpeg, image))?;
    Ok(DecodeOutput { value: Pixels { size, channels, data }, warning })
}

/// Decodes a grey or YCbCr picture to its planes, without upsampling or colour conversion.
///
/// Fails with [`CodecError::Unsupported`] for other colour spaces and for [`ChromaSubsampling::Other`].
pub fn decode_planes(jpeg: &[u8]) -> Result<DecodeOutput<Planes>, CodecError> {
    let mut decompressor = decompressor()?;
    let header = decompressor.read_header(jpeg).map_err(|error| fatal(&error))?;
    let PictureHeader { size, space, chroma } = header_of(&header)?;
    if !matches!(space, ColourSpace::Grey | ColourSpace::YCbCr)
        || chroma == ChromaSubsampling::Other
    {
        return Err(CodecError::Unsupported(
            "this JPEG has no planes of known sampling".to_owned(),
        ));
    }
    let mut data = vec![0; Planes::sample_count(&Planes::layout(size, space, chroma))];
    let image = YuvImage {
        pixels: data.as_mut_slice(),
        width: px(size.width),
        align: PLANE_ALIGN,
        height: px(size.height),
        subsamp: chroma.subsamp(space),
    };
    let warning = warning_of(decompressor.decompress_to_yuv(jpeg, image))?;
    Ok(DecodeOutput { value: Planes { size, space, chroma, data }, warning })
}

/// Rewrites the coefficients of any kind of scan as one baseline scan with the standard Huffman tables, which have
/// a code for every symbol.
///
/// The conversion is lossless and decodes no pixels, but holds all coefficients of the file in memory,
/// two bytes each. The result has no metadata except the segments that define the colour model. Damage
/// of any kind is an error.
pub fn to_baseline(jpeg: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut transformer = Transformer::new().map_err(|error| fatal(&error))?;
    let mut transform = Transform::default();
    transform.copy_none = true;
    transformer.transform_to_vec(&transform, jpeg).map_err(|error| fatal(&error))
}

fn compressor(encoding: EncodeOptions) -> turbojpeg::Result<Compressor> {
    let mut compressor = Compressor::new()?;
    compressor.set_quality(i32::from(encoding.quality.clamp(1, 100)))?;
    compressor.set_subsamp(encoding.chroma.subsamp(encoding.space))?;
    Ok(compressor)
}

/// Encodes pixels as a baseline JPEG with the library's default tables and no metadata.
///
/// `pixels` must have the channels of `encoding.space`. Inks are written unchanged, with Adobe's marker, so they
/// must be inverted, as this marker implies.
pub fn encode(pixels: &Pixels, encoding: EncodeOptions) -> Result<Vec<u8>, CodecError> {
    let mut compressor = compressor(encoding).map_err(|error| not_encoded(&error))?;
    // The library would otherwise derive the colour space from the pixel format.
    compressor.set_colorspace(encoding.space.colorspace()).map_err(|error| not_encoded(&error))?;
    let width = px(pixels.size.width);
    let image = Image {
        pixels: pixels.data.as_slice(),
        width,
        pitch: width * pixels.channels,
        height: px(pixels.size.height),
        format: encoding.space.format(),
    };
    compressor.compress_to_vec(image).map_err(|error| not_encoded(&error))
}

fn not_encoded(error: &turbojpeg::Error) -> CodecError {
    CodecError::Encode(error.to_string())
}

/// Encodes planes as a baseline JPEG with the library's default tables and no metadata.
pub fn encode_planes(planes: &Planes, quality: u8) -> Result<Vec<u8>, CodecError> {
    let encoding = EncodeOptions { quality, space: planes.space, chroma: planes.chroma };
    let mut compressor = compressor(encoding).map_err(|error| not_encoded(&error))?;
    let image = YuvImage {
        pixels: planes.data.as_slice(),
        width: px(planes.size.width),
        align: PLANE_ALIGN,
        height: px(planes.size.height),
        subsamp: planes.chroma.subsamp(planes.space),
    };
    compressor.compress_yuv_to_vec(image).map_err(|error| not_encoded(&error))
}

#[cfg(test)]
mod dct_tests;
#[cfg(test)]
pub(crate) mod tests;
