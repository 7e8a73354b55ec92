//! Renders crops and watermarks directly: random access decodes only the necessary parts.
//!
//! A crop on the MCU grid copies its coefficients; any other crop decodes its region. A watermark on the whole
//! picture, or on a crop that copies its coefficients, re-encodes only the blocks under it. Renders that scale or
//! convert colours are not possible here.

use std::ops::Range;

use crate::blend::{blend_planes, translate_mark};
use crate::orient::orient_planes;
use crate::{
    Orientation, OutputOptions, RasterError, RenderPath, RenderStage, RenderStep, Watermark,
};
use geometry::{Rect, Size};
use jpeg::codec;
use jpeg::dct::Dct;
use jpeg::header::{HeaderLimits, JpegHeader};
use jpeg::scan::index::ScanIndex;
use jpeg::scan::patch::{self, PatchedScan};
use jpeg::scan::region::{self, CountedFrom};
use jpeg::scan::{ByteRanges, Scan, ScanError, crop};

/// A picture with random access: its scan, its index and its orientation.
#[derive(Clone, Copy, Debug)]
pub struct IndexedSource<'a> {
    /// The layout and tables of the scan.
    pub scan: &'a Scan,
    /// The random-access index of the scan.
    pub index: &'a ScanIndex,
    /// The JFIF and Adobe segments, which define the colours of the components.
    pub colour: &'a [u8],
    /// The EXIF orientation, by which stored pixels are turned upright.
    pub orientation: Orientation,
}

/// The operation that a direct render performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectPlan {
    /// Copies the coefficients of a rectangle, and adds the watermark if requested.
    Cut {
        /// The rectangle in pixels as stored, on the MCU grid.
        stored: Rect,
        /// True if the watermark is blended into the result.
        marked: bool,
    },
    /// Decodes a region, blends in watermarks and encodes the result.
    Region {
        /// The region in pixels of the upright picture.
        upright: Rect,
        /// The region in pixels as stored.
        stored: Rect,
        /// One rectangle of the upright picture for each watermark, which determines its size and position.
        canvases: Vec<Rect>,
    },
    /// Copies a part that contains the crop. The caller then renders it with libjpeg-turbo. Used if the components
    /// cannot be processed as separate planes.
    Part {
        /// The part in pixels as stored, on the MCU grid.
        shows: Rect,
        /// The crop in pixels of the upright part.
        crop: Rect,
        /// True if the watermark is blended into the result.
        marked: bool,
    },
    /// Adds the watermark to the whole picture.
    Mark,
}

/// The output of a direct render.
#[derive(Debug)]
pub enum DirectOutput {
    /// A file with the JFIF or Adobe segment and no other metadata.
    File {
        /// The bytes of the file.
        jpeg: Vec<u8>,
        /// The size of the picture in pixels.
        size: Size,
        /// The decoded part of the original.
        render_path: RenderPath,
    },
    /// A small JPEG file, which the caller renders with [`render()`](crate::render()).
    Part(Vec<u8>),
    /// The scan of the picture with some blocks changed.
    Patched(PatchedScan),
}

impl DirectPlan {
    /// Plans a direct render of `steps`; `None` if the picture must be scaled, converted, encoded in a limited
    /// number of bytes, or decoded as a whole.
    pub fn plan(
        indexed: &IndexedSource<'_>,
        steps: &[RenderStep],
        output: OutputOptions,
    ) -> Option<Self> {
        if !output.keeps_original() {
            return None;
        }
        let IndexedSource { scan, orientation, .. } = *indexed;
        let full = Rect::new(0, 0, orientation.oriented_size(scan.size));
        let mut region = full;
        let mut canvases = Vec::new();
        for step in steps {
            match step {
                RenderStep::Crop(crop) => {
                    crop.checked_in(region.size()).ok()?;
                    region = Rect { x: region.x + crop.x, y: region.y + crop.y, ..*crop };
                }
                RenderStep::Watermark => canvases.push(region),
                RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Scale { .. } => {
                    return None;
                }
            }
        }
        let stored = orientation.to_stored(region, scan.size);
        let marked = match canvases.as_slice() {
            [] => false,
            [canvas] if *canvas == region => true,
            // Several marks, or one mark that the crop cuts, are blended into decoded pixels.
            _ => return Self::region(scan, region, stored, canvases),
        };
        if region == full && marked {
            // A turned picture is stored upright in the result, so all of it changes.
            let patchable = orientation == Orientation::Upright && scan.planes.is_some();
            return patchable.then_some(Self::Mark);
        }
        let lossless = orientation == Orientation::Upright && crop::is_on_grid(scan, stored);
        // A mark is blended into separate planes, which some files do not have.
        if lossless && (!marked || scan.planes.is_some()) {
            return Some(Self::Cut { stored, marked });
        }
        Self::region(scan, region, stored, canvases).or_else(|| {
            let shows = crop::surrounding_rect(scan, stored);
            let inner = Rect { x: stored.x - shows.x, y: stored.y - shows.y, ..stored };
            let crop = orientation.to_upright(inner, shows.size());
            Some(Self::Part { shows, crop, marked })
        })
    }

    fn region(scan: &Scan, upright: Rect, stored: Rect, canvases: Vec<Rect>) -> Option<Self> {
        scan.planes.map(|_| Self::Region { upright, stored, canvases })
    }

    /// Returns the byte ranges of the file that [`DirectPlan::run`] reads, in ascending order.
    pub fn byte_ranges(
        &self,
        indexed: &IndexedSource<'_>,
        marker: &Watermark,
    ) -> Result<Vec<Range<u64>>, ScanError> {
        let IndexedSource { scan, index, .. } = *indexed;
        match self {
            Self::Cut { stored, .. } => crop::byte_ranges(scan, index, *stored),
            Self::Part { shows, .. } => crop::byte_ranges(scan, index, *shows),
            Self::Region { stored, .. } => region::byte_ranges(scan, index, *stored),
            Self::Mark => {
                patch::byte_range(scan, index, mark_rect(indexed, marker)).map(|range| vec![range])
            }
        }
    }

    /// Executes the plan; `bytes` must hold the ranges that [`DirectPlan::byte_ranges`] returns.
    ///
    /// `quality` applies to encoded pixels, 1 to 100. `stage` is called when a stage begins; once it
    /// returns `false`, the render ends with [`RasterError::Abandoned`].
    pub fn run(
        &self,
        indexed: &IndexedSource<'_>,
        bytes: &ByteRanges<'_>,
        marker: &Watermark,
        quality: u8,
        limits: &HeaderLimits,
        stage: &dyn Fn(RenderStage) -> bool,
    ) -> Result<DirectOutput, DirectError> {
        let IndexedSource { scan, index, colour, orientation } = *indexed;
        begin(RenderStage::Decode, stage)?;
        match self {
            Self::Cut { stored, marked } => {
                let jpeg = crop::crop(scan, index, bytes, *stored, colour)?;
                let size = stored.size();
                if !*marked {
                    return Ok(DirectOutput::File {
                        jpeg,
                        size,
                        render_path: RenderPath::LosslessCrop,
                    });
                }
                begin(RenderStage::Blend, stage)?;
                let jpeg = mark_file(&jpeg, colour, marker, limits)?;
                Ok(DirectOutput::File { jpeg, size, render_path: RenderPath::LocalMark })
            }
            Self::Part { shows, .. } => {
                Ok(DirectOutput::Part(crop::crop(scan, index, bytes, *shows, colour)?))
            }
            Self::Mark => {
                begin(RenderStage::Blend, stage)?;
                Ok(DirectOutput::Patched(mark(indexed, bytes, marker)?))
            }
            Self::Region { upright, stored, canvases } => {
                let samples = region::decode(scan, index, bytes, *stored, Dct::detect())?;
                // Chroma cells must start at the edge that becomes the left or upper edge.
                let reversed = orientation.reversed_axes();
                let from = (counted_from(reversed.columns), counted_from(reversed.rows));
                let planes = samples.planes(scan, *stored, from)?;
                let full = Rect::new(0, 0, stored.size());
                let mut planes = orient_planes(planes, full, orientation);
                if !canvases.is_empty() {
                    begin(RenderStage::Blend, stage)?;
                }
                for canvas in canvases {
                    let (stamp, position) = marker.prepare(canvas.size());
                    blend_planes(&mut planes, &stamp, translate_mark(position, *canvas, *upright));
                }
                begin(RenderStage::Encode, stage)?;
                let jpeg = codec::encode_planes(&planes, quality).map_err(RasterError::from)?;
                Ok(DirectOutput::File {
                    jpeg,
                    size: upright.size(),
                    render_path: RenderPath::Region,
                })
            }
        }
    }
}

/// Reports that a stage begins; fails if the render was cancelled.
fn begin(now: RenderStage, stage: &dyn Fn(RenderStage) -> bool) -> Result<(), RasterError> {
    if stage(now) { Ok(()) } else { Err(RasterError::Abandoned) }
}

fn counted_from(reversed: bool) -> CountedFrom {
    if reversed { CountedFrom::End } else { CountedFrom::Start }
}

/// The reason why a render from parts of the file failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectError {
    /// Random access failed; the picture has to be decoded as a whole.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A failure that is not specific to direct renders.
    #[error(transparent)]
    Raster(#[from] RasterError),
}

/// Returns the position of the watermark on the whole picture, in pixels as stored.
fn mark_rect(indexed: &IndexedSource<'_>, marker: &Watermark) -> Rect {
    let IndexedSource { scan, orientation, .. } = *indexed;
    orientation.to_stored(marker.placement(orientation.oriented_size(scan.size)), scan.size)
}

/// Re-encodes the blocks under the watermark.
fn mark(
    indexed: &IndexedSource<'_>,
    bytes: &ByteRanges<'_>,
    marker: &Watermark,
) -> Result<PatchedScan, DirectError> {
    let IndexedSource { scan, index, orientation, .. } = *indexed;
    let chroma = scan.planes.ok_or(ScanError::Sampling)?.1;
    let stamp = marker.prepare_grids(scan.size, orientation, chroma);
    let rect = stamp.rect();
    Ok(patch::patch(scan, index, bytes, rect, Dct::detect(), &mut |samples| stamp.paint(samples))?)
}

/// Adds the watermark to a small upright file that a lossless crop has produced.
fn mark_file(
    jpeg: &[u8],
    colour: &[u8],
    marker: &Watermark,
    limits: &HeaderLimits,
) -> Result<Vec<u8>, DirectError> {
    // The crop is a new file, so it is read and indexed like any other file.
    let header = JpegHeader::parse(jpeg, limits).map_err(|_| ScanError::Bytes)?;
    let scan = Scan::read(&header, jpeg)?;
    let index = ScanIndex::build(&scan, jpeg)?;
    let orientation = Orientation::Upright;
    let indexed = IndexedSource { scan: &scan, index: &index, colour, orientation };
    let patched = mark(&indexed, &ByteRanges::whole(jpeg), marker)?;
    // The crop has written complete Huffman tables, so the patch needs no others and the headers do not change.
    let head = jpeg.get(..index_of(patched.prefix.end)).ok_or(ScanError::Bytes)?;
    let tail = jpeg.get(index_of(patched.suffix)..).ok_or(ScanError::Bytes)?;
    Ok([head, &patched.middle, tail].concat())
}

fn index_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
