//! Pixels: a JPEG and steps in, a JPEG out.
//!
//! [`render`] is a function of its arguments alone: the same bytes, steps, output and mark give
//! the same bytes, whatever the machine's load or number of threads. Which steps a rendition takes
//! is decided above; metadata is read and written elsewhere.

mod bands;
mod blend;
mod colour;
mod direct;
#[cfg(test)]
mod direct_tests;
mod interest;
mod mark;
mod orient;
mod render;
mod resize;
mod steps;

use geometry::Size;
use jpeg::codec::CodecError;
pub use jpeg::scan::GoOn;
use jpeg::scan::Scan;
use jpeg::scan::index::Index;
use serde::Serialize;
use thiserror::Error;

pub use bands::{BandsError, Spread, decode_bands};
pub use colour::fits as profile_fits;
pub use direct::{Direct, DirectError, DirectOutput, IndexedSource};
pub use mark::{MarkError, MarkKind, MarkSetup, Marker};
pub use orient::{Orientation, ReversedAxes};
pub use render::render;
pub use resize::decoded_size;
pub use steps::{Step, StepError, output_size, scaled_size};

/// An original.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file, at least up to the end of its picture data.
    pub jpeg: &'a [u8],
    /// How stored pixels are turned upright.
    pub orientation: Orientation,
    /// The embedded profile, put together from its segments.
    pub icc: Option<&'a [u8]>,
    /// Adobe's marker is present: inks are stored inverted, 0 for full ink.
    pub adobe: bool,
    /// The size of the stored picture, before orientation, as the caller knows it.
    pub stored: Size,
    /// The size of the picture in `jpeg`: `stored`, or less where that is a smaller copy. A
    /// smaller copy is taken if the first step scales, and to no more than its size.
    pub shows: Size,
    /// How the picture in `jpeg` can be indexed, to decode it on several threads.
    pub bands: Option<Bands<'a>>,
}

/// What decoding in bands takes.
#[derive(Clone, Copy)]
pub struct Bands<'a> {
    /// What the headers say.
    pub scan: &'a Scan,
    /// Where the picture can be indexed.
    pub index: &'a Index,
    /// The segments that say what its components mean.
    pub colour: &'a [u8],
    /// The threads.
    pub spread: Spread<'a>,
    /// Asked before each band.
    pub go_on: GoOn<'a>,
}

impl std::fmt::Debug for Bands<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bands").field("scan", &self.scan).finish_non_exhaustive()
    }
}

/// The sampling of the colour differences in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Sampling {
    /// That of the original, turned with it; 4:4:4 where the original's is unusual.
    Keep,
    /// 4:2:0.
    S420,
}

/// The colour space of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Colour {
    /// That of the original: its profile goes with the pixels, grey stays grey, inks stay inks.
    Keep,
    /// sRGB; grey stays one component.
    Srgb,
}

/// How the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Output {
    /// libjpeg's quality, 1 to 100; others are brought into that range.
    pub quality: u8,
    /// The sampling of the colour differences.
    pub sampling: Sampling,
    /// The colour space.
    pub colour: Colour,
}

/// What a render may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Pixels that an original may declare, checked before any memory is taken.
    pub pixels_max: u64,
}

/// A render: the original, what to do with it, and what with the result.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The original.
    pub source: Source<'a>,
    /// What is done to it, in this order.
    pub steps: &'a [Step],
    /// How the result is written.
    pub output: Output,
    /// What the render may use.
    pub limits: RenderLimits,
}

/// A stage of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The original and its metadata are read; [`render`] begins after it.
    Read,
    /// The original becomes pixels: decoded, turned, converted, scaled.
    Decode,
    /// Marks are blended in.
    Blend,
    /// The result is encoded and gets its metadata.
    Encode,
}

/// The way by which a result was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The original with its picture data untouched.
    Original,
    /// Blocks of the original were taken over as they are coded.
    LosslessCrop,
    /// Only the part of the original around what is shown was decoded.
    Region,
    /// Only the rows under the mark were coded anew.
    LocalMark,
    /// The picture went through in bands and never was in memory as a whole.
    Bands,
    /// It was made from a stored smaller copy.
    Level,
    /// The original was decoded as a whole.
    Whole,
}

impl Way {
    /// The word in headers, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::LosslessCrop => "lossless-crop",
            Self::Region => "region",
            Self::LocalMark => "local-mark",
            Self::Bands => "bands",
            Self::Level => "level",
            Self::Whole => "whole",
        }
    }
}

/// The result of a render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// A baseline JPEG without metadata but the JFIF or Adobe marker.
    pub jpeg: Vec<u8>,
    /// Its size: what [`output_size`] said.
    pub size: Size,
    /// The caller embeds the original's profile: the pixels are in its space.
    pub keeps_profile: bool,
    /// Pixels that were decoded for it, for accounting.
    pub decoded_pixels: u64,
    /// How it was made.
    pub way: Way,
    /// What the decoder complained about; the picture is damaged somewhere.
    pub warning: Option<String>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RasterError {
    /// Nobody waits any more.
    #[error("abandoned")]
    Abandoned,
    /// The steps do not fit the picture.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The original declares more pixels than allowed.
    #[error("{}x{} image, more than {pixels_max} pixels", size.width, size.height)]
    TooLarge {
        /// What it declares.
        size: Size,
        /// What is allowed.
        pixels_max: u64,
    },
    /// The original is not a JPEG, or is damaged beyond reading.
    #[error("cannot decode: {0}")]
    Decode(String),
    /// The original is a JPEG of a kind that is not decoded.
    #[error("unsupported JPEG: {0}")]
    Unsupported(String),
    /// A mistake of ours.
    #[error("{0}")]
    Internal(String),
}

impl From<CodecError> for RasterError {
    fn from(error: CodecError) -> RasterError {
        match error {
            CodecError::Corrupt(text) => RasterError::Decode(text),
            CodecError::Unsupported(text) => RasterError::Unsupported(text),
            CodecError::Encode(text) => RasterError::Internal(text),
        }
    }
}
