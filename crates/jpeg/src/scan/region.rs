//! Decodes a rectangle of the picture without the rest.
//!
//! The result is the samples as stored: luma and chroma, each on its own grid, identical to libjpeg-turbo's full
//! decode before chroma upsampling. [`RegionSamples::planes`] cuts the rectangle out of them. If the rectangle
//! starts between two chroma samples, the chroma is interpolated, which has the same effect as smooth upsampling
//! followed by averaging.

use std::ops::Range;

use crate::codec::{PlaneLayout, Planes};
use crate::dct::Dct;
use crate::scan::bits::UnstuffedData;
use crate::scan::index::ScanIndex;
use crate::scan::strip::CoefficientStrip;
pub use crate::scan::strip::SampleGrid;
use crate::scan::{ByteRanges, McuRect, Scan, ScanError, to_usize};
use geometry::{Rect, Size};

/// Maximum gap in bytes between two ranges of the file that are read as one.
const GAP_MAX: u64 = 16 << 10;

/// The decoded samples of all components around a rectangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSamples {
    /// The grids, one for each component of the scan.
    pub grids: Vec<SampleGrid>,
}

/// Returns the byte ranges of the file that [`decode`] reads for `rect`, in ascending order.
///
/// `rect` is in pixels as stored.
pub fn byte_ranges(
    scan: &Scan,
    index: &ScanIndex,
    rect: Rect,
) -> Result<Vec<Range<u64>>, ScanError> {
    row_ranges(scan, index, &scan.mcus_of(rect)?)
}

/// Returns the byte ranges of the rows of a rectangle of MCUs.
pub(super) fn row_ranges(
    scan: &Scan,
    index: &ScanIndex,
    mcus: &McuRect,
) -> Result<Vec<Range<u64>>, ScanError> {
    let ranges = rows(scan, mcus).map(|mcus| index.byte_range(mcus));
    ranges.collect::<Result<Vec<_>, _>>().map(join_ranges)
}

/// Iterates over the rows of a rectangle of MCUs, each as a range of MCU numbers.
pub(super) fn rows(scan: &Scan, mcus: &McuRect) -> impl Iterator<Item = Range<u32>> {
    let across = scan.across;
    let columns = mcus.columns.clone();
    mcus.rows.clone().map(move |row| row * across + columns.start..row * across + columns.end)
}

/// Joins ranges, given in ascending order, that are at most [`GAP_MAX`] bytes apart.
///
/// Reading a small gap costs less than a second request to an object store.
fn join_ranges(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_MAX) => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range),
        }
    }
    out
}

/// Decodes `rect`, in pixels as stored, and the margin around it that interpolation needs.
///
/// `bytes` must hold the ranges that [`byte_ranges`] returns. Memory: the samples and the coefficients of one row
/// of MCUs.
///
/// # Errors
///
/// [`ScanError::Outside`] if `rect` is empty or extends beyond the picture.
pub fn decode(
    scan: &Scan,
    index: &ScanIndex,
    bytes: &ByteRanges<'_>,
    rect: Rect,
    dct: Dct,
) -> Result<RegionSamples, ScanError> {
    let mcus = scan.mcus_of(rect)?;
    let count = to_usize(mcus.columns.end - mcus.columns.start);
    let mut strip = CoefficientStrip::new(scan, count);
    let mut samples = grids(scan, &mcus);
    let mut data = UnstuffedData::default();
    for (row, span) in rows(scan, &mcus).enumerate() {
        index.fill(&mut data, bytes, span.clone())?;
        let mut cursor = index.seek(scan, &data, span.start)?;
        // Zero coefficients are not written, so the coefficients of the last row must be cleared.
        strip.clear();
        for column in 0..count {
            cursor.begin()?;
            cursor.decode_mcu(&mut strip, column)?;
        }
        cursor.check()?;
        strip.inverse(dct, &mut samples.grids, row);
    }
    Ok(samples)
}

/// Allocates the samples of a rectangle of MCUs.
pub(super) fn grids(scan: &Scan, mcus: &McuRect) -> RegionSamples {
    let mut grids = Vec::with_capacity(scan.components.len());
    for component in &scan.components {
        let origin =
            (mcus.columns.start * component.across * 8, mcus.rows.start * component.down * 8);
        let width = (mcus.columns.end - mcus.columns.start) * component.across * 8;
        let height = (mcus.rows.end - mcus.rows.start) * component.down * 8;
        let size = Size::new(
            width.min(component.size.width - origin.0),
            height.min(component.size.height - origin.1),
        );
        let data = vec![0; to_usize(width) * to_usize(height)];
        grids.push(SampleGrid { origin, size, stride: to_usize(width), data });
    }
    RegionSamples { grids }
}

/// The end of an axis at which the chroma grid of a cut-out rectangle is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedFrom {
    /// The left or upper edge, the usual case.
    Start,
    /// The right or lower edge, for a picture that will be mirrored or turned so that this edge becomes the left
    /// or upper edge.
    End,
}

impl RegionSamples {
    /// Cuts out `rect`, in pixels as stored; it must be the rectangle that was passed to [`decode`].
    ///
    /// `from` gives, for the horizontal and the vertical axis, the edge at which chroma cells start.
    ///
    /// # Errors
    ///
    /// [`ScanError::Sampling`] if the picture has no planes ([`Scan::planes`]).
    pub fn planes(
        &self,
        scan: &Scan,
        rect: Rect,
        from: (CountedFrom, CountedFrom),
    ) -> Result<Planes, ScanError> {
        let (space, chroma) = scan.planes.ok_or(ScanError::Sampling)?;
        let size = rect.size();
        let layout = Planes::layout(size, space, chroma);
        let mut data = vec![0; Planes::sample_count(&layout)];
        for ((plane, grid), component) in layout.iter().zip(&self.grids).zip(&scan.components) {
            let out = &mut data[plane.start..plane.start + plane.width * plane.height];
            let across =
                UpsamplingAxis::new(rect.x, rect.width, component.cell.0, plane.width, from.0);
            let down =
                UpsamplingAxis::new(rect.y, rect.height, component.cell.1, plane.height, from.1);
            grid.resample(*plane, &across, &down, out);
        }
        Ok(Planes { size, space, chroma, data })
    }
}

/// The positions of a plane's samples between the samples of a component, on one axis.
struct UpsamplingAxis {
    /// The component's sample at or before the plane's first sample, counted from the picture's edge.
    first: i64,
    /// Distance of the plane's samples from the preceding samples of the component, in pixels.
    offset: u32,
    /// Pixels that one sample covers on this axis.
    cell: u32,
}

impl UpsamplingAxis {
    fn new(start: u32, length: u32, cell: u32, samples: usize, from: CountedFrom) -> Self {
        let samples = u32::try_from(samples).unwrap_or(u32::MAX);
        let pixel = match from {
            CountedFrom::End => {
                i64::from(start) + i64::from(length) - i64::from(samples) * i64::from(cell)
            }
            CountedFrom::Start => i64::from(start),
        };
        let cells = i64::from(cell);
        // The first cell can begin before the picture, so the pixel may be negative.
        let offset = u32::try_from(pixel.rem_euclid(cells)).unwrap_or(0);
        Self { first: pixel.div_euclid(cells), offset, cell }
    }

    /// Returns the weight of the preceding sample, out of `cell`.
    fn weight_before(&self) -> u16 {
        u16::try_from(self.cell - self.offset).unwrap_or(0)
    }

    /// Returns the weight of the following sample, out of `cell`.
    fn weight_after(&self) -> u16 {
        u16::try_from(self.offset).unwrap_or(0)
    }

    /// Interpolates between the samples of a row; the sums are weighted by the pixels of a cell.
    fn interpolate(&self, samples: &[u8], sums: &mut Vec<u16>) {
        let from = self.weight_before();
        let to = self.weight_after();
        sums.clear();
        let pairs = samples.iter().zip(&samples[1..]);
        // The weights of a cell add up to at most 4, so sums fit 16 bits.
        sums.extend(pairs.map(|(a, b)| u16::from(*a) * from + u16::from(*b) * to));
    }
}

impl SampleGrid {
    /// Copies or interpolates the samples of a plane.
    fn resample(
        &self,
        plane: PlaneLayout,
        across: &UpsamplingAxis,
        down: &UpsamplingAxis,
        out: &mut [u8],
    ) {
        let columns = clamped(across.first, plane.width + 1, self.origin.0, self.size.width);
        let rows = clamped(down.first, plane.height + 1, self.origin.1, self.size.height);
        let rows_out = out.chunks_exact_mut(plane.width.max(1)).enumerate();
        // The samples are copied unchanged if they are on the grid of the component, as luma always is.
        if across.offset == 0 && down.offset == 0 {
            for (y, out) in rows_out {
                copy(self.row(rows[y]), &columns, out);
            }
            return;
        }
        let mut samples = vec![0; plane.width + 1];
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        copy(self.row(rows[0]), &columns, &mut samples);
        across.interpolate(&samples, &mut lower);
        let from = down.weight_before();
        let to = down.weight_after();
        // The number of pixels in a cell is a power of two, so the division is a shift.
        let area = across.cell * down.cell;
        let half = u16::try_from(area / 2).unwrap_or(0);
        let shift = area.trailing_zeros();
        for (y, out) in rows_out {
            // Each row is interpolated once: first it is the lower row, then the upper row.
            std::mem::swap(&mut upper, &mut lower);
            copy(self.row(rows[y + 1]), &columns, &mut samples);
            across.interpolate(&samples, &mut lower);
            for ((sample, a), b) in out.iter_mut().zip(&upper).zip(&lower) {
                let [low, _] = ((a * from + b * to + half) >> shift).to_le_bytes();
                *sample = low;
            }
        }
    }

    fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.stride..][..self.stride]
    }
}

/// Returns the indices on a grid of `count` samples from `first`; indices outside repeat the edges.
fn clamped(first: i64, count: usize, origin: u32, size: u32) -> Vec<usize> {
    let last = i64::from(size.saturating_sub(1));
    let indices = (first..).take(count).map(|at| (at - i64::from(origin)).clamp(0, last));
    indices.map(|index| usize::try_from(index).unwrap_or(0)).collect()
}

/// Copies the samples at `columns`, which are consecutive unless they repeat an edge.
fn copy(row: &[u8], columns: &[usize], out: &mut [u8]) {
    let first = columns[0];
    let last = columns[out.len() - 1];
    if last - first == out.len() - 1 {
        out.copy_from_slice(&row[first..=last]);
        return;
    }
    for (sample, column) in out.iter_mut().zip(columns) {
        *sample = row[*column];
    }
}
