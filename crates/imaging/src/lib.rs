#![doc = include_str!("../README.md")]

mod bands;
mod blend;
mod colour;
mod direct;
#[cfg(test)]
mod direct_tests;
mod format;
mod interest;
mod linear;
mod mark;
mod orient;
mod pictures;
mod planar;
mod reduce;
mod render;
mod resize;
mod steps;

use std::sync::{Mutex, PoisonError};

use geometry::{Rect, Size};
use jpeg::codec::CodecError;
pub use jpeg::coefficients::{CoefficientError, CoefficientLimits};
pub use jpeg::encoder::EncodeEffort;
use jpeg::scan::Scan;
pub use jpeg::scan::ShouldContinue;
use jpeg::scan::index::ScanIndex;
use serde::Serialize;
use strum::IntoStaticStr;
use thiserror::Error;

pub use bands::{ParallelMap, decode_bands, in_sequence};
pub use colour::is_profile_for as profile_fits;
pub use direct::{DirectError, DirectOutput, DirectPlan, IndexedSource};
pub use format::{ImageFormat, encode_pixels};
pub use linear::{PixelRegion, SampleLight, scale_region};
pub use mark::{MarkError, MarkKind, MarkSetup, Watermark, mark_file};
pub use orient::{Orientation, ReversedAxes};
pub use pictures::{StandardPictures, standard_pictures};
pub use render::render;
pub use resize::decoded_size;
pub use steps::{RenderStep, StepError, output_size, scaled_size, shown_region};

/// The picture to render, with the properties that the caller has read from its metadata.
#[derive(Clone, Copy)]
pub struct RenderSource<'a> {
    /// The format of `file`.
    pub format: ImageFormat,
    /// The file, at least up to the end of its picture data.
    pub file: &'a [u8],
    /// The EXIF orientation, by which stored pixels are turned upright.
    pub orientation: Orientation,
    /// The embedded ICC profile, joined from its segments; `None` without a profile.
    pub icc: Option<&'a [u8]>,
    /// True if Adobe's marker is present: inks are then stored inverted, 0 for full ink.
    pub adobe: bool,
    /// The size of the original in pixels as stored, before orientation.
    pub stored: Size,
    /// The size of the picture in `file`: `stored`, or smaller if `file` is a reduced copy (a level). A reduced
    /// copy is allowed only if the first step scales to at most the size of the copy; see [`scaled_size`].
    pub shows: Size,
    /// The random-access index of `file`, for decoding on several threads; `None` without an index.
    pub bands: Option<BandDecoder<'a>>,
}

/// A random-access index, and the threads on which bands of the picture are decoded.
#[derive(Clone, Copy)]
pub struct BandDecoder<'a> {
    /// The layout and tables of the scan.
    pub scan: &'a Scan,
    /// The random-access index of the scan.
    pub index: &'a ScanIndex,
    /// The JFIF and Adobe segments, which define the colours of the components.
    pub colour: &'a [u8],
    /// Runs the decoding of bands on several threads.
    pub parallel_map: ParallelMap<'a>,
    /// Called before each band; `false` cancels the render.
    pub should_continue: ShouldContinue<'a>,
}

/// Chroma subsampling of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum OutputSampling {
    /// The subsampling of the original, turned with the picture; 4:4:4 if it is unusual.
    Keep,
    /// 4:2:0: chroma at half the width and height.
    S420,
}

/// The colour space of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum OutputColour {
    /// The colour space of the original: its profile is kept, grey stays grey, CMYK stays CMYK.
    Keep,
    /// Conversion to sRGB; grey stays one component.
    Srgb,
}

/// Quality, chroma subsampling and colour space of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct OutputOptions {
    /// The file format. Omitted from a serialized plan if it is JPEG, the default.
    #[serde(skip_serializing_if = "is_jpeg")]
    pub format: ImageFormat,
    /// The quality on libjpeg's scale; clamped to 1 to 100.
    pub quality: u8,
    /// Chroma subsampling of the result.
    pub sampling: OutputSampling,
    /// Colour space of the result.
    pub colour: OutputColour,
    /// The time that encoding may take. Only JPEG files with [`OutputSampling::S420`] depend on it.
    #[serde(skip_serializing_if = "is_small")]
    pub effort: EncodeEffort,
    /// The quality is reduced until the file, without its metadata, has at most this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
}

impl OutputOptions {
    /// Returns whether the picture data of a JPEG may be copied into the result: its format, colours and
    /// subsampling do not change, and no number of bytes limits the quality.
    pub fn keeps_original(&self) -> bool {
        self.format == ImageFormat::Jpeg
            && self.colour == OutputColour::Keep
            && self.sampling == OutputSampling::Keep
            && self.bytes_max.is_none()
    }

    /// Returns the maximum number of encodes of a picture to comply with [`OutputOptions::bytes_max`].
    pub fn encodes_max(&self) -> u32 {
        match self.bytes_max {
            None => 1,
            // One encode at this quality and one at quality 1, then bisection between both.
            Some(_) => 2 + u32::from(self.quality.max(1)).next_power_of_two().ilog2(),
        }
    }
}

fn is_jpeg(format: &ImageFormat) -> bool {
    *format == ImageFormat::Jpeg
}

fn is_small(effort: &EncodeEffort) -> bool {
    *effort == EncodeEffort::Small
}

/// One render: the original, the steps, and the options of the result.
#[derive(Clone, Copy)]
pub struct RenderJob<'a> {
    /// The picture to render.
    pub source: RenderSource<'a>,
    /// The steps, in the order in which they are applied.
    pub steps: &'a [RenderStep],
    /// Quality, subsampling and colour space of the result.
    pub output: OutputOptions,
    /// Maximum number of pixels that an original may declare, checked before memory is allocated.
    pub pixels_max: u64,
}

/// A stage of a render, reported when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderStage {
    /// The caller reads the original and its metadata; [`render()`] begins after this stage.
    Read,
    /// The original is decoded, turned, converted and scaled.
    Decode,
    /// Watermarks are blended in.
    Blend,
    /// The result is encoded and gets its metadata.
    Encode,
}

/// The render path: the part of the original that was decoded for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RenderPath {
    /// The picture data of the original is unchanged.
    Original,
    /// The coded blocks of the original were copied.
    LosslessCrop,
    /// Only the shown region of the original was decoded.
    Region,
    /// Only the blocks under the watermark were re-encoded.
    LocalMark,
    /// The original was decoded in bands, in parallel.
    Bands,
    /// Picture data from an earlier render was used.
    Stored,
    /// The result was rendered from a level, a smaller copy of the original.
    Level,
    /// The original was decoded as a whole.
    Whole,
}

impl RenderPath {
    /// Returns a stable name for headers, logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of a render: a file and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderOutput {
    /// A file in the format [`OutputOptions::format`] without metadata; a JPEG is baseline and has at
    /// most the JFIF or Adobe marker.
    pub file: Vec<u8>,
    /// The size in pixels, which [`output_size`] computes in advance.
    pub size: Size,
    /// The windows that [`RenderStep::Cover`] steps cut out, in their order; for [`shown_region`].
    pub windows: Vec<Rect>,
    /// True if the pixels are in the colour space of the original's profile, which the caller then has to embed.
    pub keeps_profile: bool,
    /// The number of pixels that were decoded, for rate limits and metrics.
    pub decoded_pixels: u64,
    /// The decoded part of the original.
    pub render_path: RenderPath,
    /// The decoder's first warning, which means that the picture is damaged; `None` if it is intact.
    pub warning: Option<String>,
}

/// The reason why a render failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RasterError {
    /// The caller cancelled the render.
    #[error("abandoned")]
    Abandoned,
    /// A crop extends beyond the picture.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The original declares more pixels than allowed.
    #[error("{size} image, more than {pixels_max} pixels")]
    TooLarge {
        /// The size that the original declares.
        size: Size,
        /// The maximum number of pixels that is allowed.
        pixels_max: u64,
    },
    /// The original is not a JPEG, or is damaged beyond reading.
    #[error("cannot decode: {0}")]
    Decode(String),
    /// The picture is of a kind that cannot be decoded, or that the output format cannot represent.
    #[error("unsupported JPEG: {0}")]
    Unsupported(String),
    /// An internal error: a bug in this crate.
    #[error("{0}")]
    Internal(String),
}

impl From<CodecError> for RasterError {
    fn from(error: CodecError) -> RasterError {
        match error {
            CodecError::Corrupt(text) => RasterError::Decode(text),
            CodecError::Unsupported(text) => RasterError::Unsupported(text),
            // Decoded pixels can always be encoded, so this is a bug.
            CodecError::Encode(text) => RasterError::Internal(text),
        }
    }
}

/// Converts a coordinate or a length to an index of samples.
pub(crate) fn index(value: u32) -> usize {
    usize::try_from(value).expect("indices have at least 32 bits")
}

/// Converts a position or a number of pixels to an index, without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and far below 2^32"
)]
pub(crate) fn truncated(value: f64) -> usize {
    value as usize
}

/// Runs `work(0)`, `work(1)` … `work(count - 1)` in parallel and collects the results in this order; `None` for work
/// that `parallel_map` left out.
pub(crate) fn collect<T: Send>(
    parallel_map: ParallelMap<'_>,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let slots: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    parallel_map(count, &|number| {
        let result = work(number);
        // A panic cannot leave a slot half-written, so a poisoned lock is still sound.
        *slots[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let results = slots.into_iter().map(Mutex::into_inner);
    results.map(|slot| slot.unwrap_or_else(PoisonError::into_inner)).collect()
}
