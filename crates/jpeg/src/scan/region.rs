//! Decodes a rectangle of the picture and nothing else.
//!
//! The result is samples as the file holds them: luma and chroma, each on its own
//! grid, equal to what libjpeg-turbo's full decode has before it interpolates colour.
//! [`RegionSamples::planes`] cuts the rectangle out; where it starts between two chroma
//! samples, these are interpolated, which is what smooth upsampling followed by taking means
//! gives.

use std::ops::Range;

use crate::codec::{PlaneLayout, Planes};
use crate::dct::Dct;
use crate::scan::bits::UnstuffedData;
use crate::scan::cursor::Block;
use crate::scan::index::ScanIndex;
use crate::scan::{ByteRanges, McuRect, Scan, ScanError, to_usize};
use geometry::{Rect, Size};

/// Ranges of the file that are nearer to each other than this are read as one, in bytes.
const GAP_MAX: u64 = 16 << 10;

/// Decoded samples of one component, in whole MCUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleGrid {
    /// The first column and row, in samples of the component.
    pub origin: (u32, u32),
    /// Samples that belong to the picture, from the origin; those beyond complete blocks.
    pub size: Size,
    /// Samples from one row to the next.
    pub stride: usize,
    /// The samples, row by row, `stride` apart.
    pub data: Vec<u8>,
}

/// Decoded samples of all components around a rectangle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSamples {
    /// One grid for each component.
    pub grids: Vec<SampleGrid>,
}

/// The byte ranges of the file that [`decode`] reads for `rect`, in pixels as stored; in rising
/// order.
pub fn byte_ranges(
    scan: &Scan,
    index: &ScanIndex,
    rect: Rect,
) -> Result<Vec<Range<u64>>, ScanError> {
    rows(scan, &scan.mcus_of(rect)?)
        .map(|mcus| index.byte_range(mcus))
        .collect::<Result<Vec<_>, _>>()
        .map(join_ranges)
}

/// The MCUs of each row of a rectangle of MCUs.
pub(super) fn rows(scan: &Scan, mcus: &McuRect) -> impl Iterator<Item = Range<u32>> {
    let (across, columns) = (scan.across, mcus.columns.clone());
    mcus.rows.clone().map(move |row| row * across + columns.start..row * across + columns.end)
}

/// Ranges in rising order with small gaps closed.
pub(super) fn join_ranges(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
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

/// Decodes `rect`, in pixels as stored, with what interpolation needs around it.
///
/// `bytes` holds the ranges that [`byte_ranges`] gives. Takes memory for the samples and for the
/// coefficients of one row of MCUs.
///
/// # Errors
///
/// [`ScanError::Outside`] when `rect` is empty or leaves the picture.
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
        let mut walk = index.seek(scan, &data, span.start)?;
        strip.clear();
        for column in 0..count {
            walk.begin()?;
            walk.decode_mcu(&mut strip, column)?;
        }
        walk.check()?;
        strip.inverse(dct, &mut samples.grids, row);
    }
    Ok(samples)
}

fn grids(scan: &Scan, mcus: &McuRect) -> RegionSamples {
    let count = |range: &Range<u32>| range.end - range.start;
    let grid = |component: &crate::scan::ScanComponent| {
        let origin =
            (mcus.columns.start * component.across * 8, mcus.rows.start * component.down * 8);
        let width = count(&mcus.columns) * component.across * 8;
        let height = count(&mcus.rows) * component.down * 8;
        let size = Size::new(
            width.min(component.size.width - origin.0),
            height.min(component.size.height - origin.1),
        );
        let data = vec![0; to_usize(width) * to_usize(height)];
        SampleGrid { origin, size, stride: to_usize(width), data }
    };
    RegionSamples { grids: scan.components.iter().map(grid).collect() }
}

/// Where a block lies in a [`CoefficientStrip`].
#[derive(Clone, Copy)]
pub(super) struct BlockPosition {
    /// Number of the component in the scan.
    component: usize,
    /// Number among the component's blocks, row by row.
    index: usize,
}

/// The coefficients of some MCUs beside each other.
pub(super) struct CoefficientStrip {
    /// Per component: its blocks, row by row.
    blocks: Vec<Vec<Block>>,
    /// Per component: blocks across and down in an MCU, blocks in a row.
    shapes: Vec<(usize, usize, usize)>,
    /// Per block of an MCU: its component, and its place across and down.
    order: Vec<(usize, usize, usize)>,
}

impl CoefficientStrip {
    pub(super) fn new(scan: &Scan, mcus: usize) -> Self {
        let shape = |component: &crate::scan::ScanComponent| {
            let (across, down) = (to_usize(component.across), to_usize(component.down));
            (across, down, across * mcus)
        };
        let shapes: Vec<_> = scan.components.iter().map(shape).collect();
        let order = shapes.iter().enumerate().flat_map(|(component, (across, down, _))| {
            let across = *across;
            (0..across * down).map(move |at| (component, at % across, at / across))
        });
        Self {
            blocks: shapes.iter().map(|(_, down, row)| vec![[0; 64]; down * row]).collect(),
            order: order.collect(),
            shapes,
        }
    }

    pub(super) fn clear(&mut self) {
        self.blocks.iter_mut().for_each(|blocks| blocks.fill([0; 64]));
    }

    /// Block `number` of the MCU in `column`.
    #[inline]
    pub(super) fn block_mut(&mut self, number: usize, column: usize) -> &mut Block {
        let BlockPosition { component, index } = self.position(number, column);
        &mut self.blocks[component][index]
    }

    /// Where block `number` of the MCU in `column` lies.
    #[inline]
    pub(super) fn position(&self, number: usize, column: usize) -> BlockPosition {
        let (component, x, y) = self.order[number];
        let (across, _, row) = self.shapes[component];
        BlockPosition { component, index: y * row + column * across + x }
    }

    /// The first sample of a block, counted from the picture's corner, when the strip stands at
    /// `row` and its first MCU in column `first`.
    pub(super) fn origin(
        &self,
        block: BlockPosition,
        scan: &Scan,
        row: u32,
        first: u32,
    ) -> (u32, u32) {
        let (_, _, across) = self.shapes[block.component];
        let (x, y) = (block.index % across, block.index / across);
        let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let component = &scan.components[block.component];
        ((first * component.across + small(x)) * 8, (row * component.down + small(y)) * 8)
    }

    /// The blocks of each component, row by row.
    #[cfg(test)]
    pub(super) fn all(&self) -> &[Vec<Block>] {
        &self.blocks
    }

    /// The coefficients of one block.
    pub(super) fn block(&self, at: BlockPosition) -> &Block {
        &self.blocks[at.component][at.index]
    }

    /// Turns the coefficients into samples of row `row` of MCUs.
    pub(super) fn inverse(&self, dct: Dct, grids: &mut [SampleGrid], row: usize) {
        for ((blocks, (_, down, across)), grid) in self.blocks.iter().zip(&self.shapes).zip(grids)
        {
            for (y, blocks) in blocks.chunks_exact(*across).enumerate() {
                let start = (row * down + y) * 8 * grid.stride;
                dct.inverse(blocks, &mut grid.data[start..start + 8 * grid.stride], grid.stride);
            }
        }
    }

    /// Turns the samples of row `row` of MCUs into quantised coefficients.
    pub(super) fn forward(
        &mut self,
        dct: Dct,
        grids: &[SampleGrid],
        row: usize,
        divisors: &[crate::dct::Divisors],
    ) {
        let components = self.blocks.iter_mut().zip(&self.shapes).zip(grids).zip(divisors);
        for (((blocks, (_, down, across)), grid), divisors) in components {
            for (y, blocks) in blocks.chunks_exact_mut(*across).enumerate() {
                let start = (row * down + y) * 8 * grid.stride;
                let samples = &grid.data[start..start + 8 * grid.stride];
                dct.forward(samples, grid.stride, divisors, blocks);
            }
        }
    }
}

/// The end of an axis from which the chroma samples of a rectangle are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedFrom {
    /// The left or upper edge: the usual case.
    Start,
    /// The right or lower edge, for a picture that will be mirrored or turned so that this edge
    /// comes first.
    End,
}

impl RegionSamples {
    /// Cuts out `rect`, in pixels as stored, which is what was given to [`decode`].
    ///
    /// `from` says for the horizontal and the vertical axis where chroma cells start.
    ///
    /// # Errors
    ///
    /// [`ScanError::Sampling`] when the picture has no planes ([`Scan::planes`]).
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

/// Which samples of a component the samples of a plane lie between, on one axis.
struct UpsamplingAxis {
    /// The sample at or before the plane's first one, counted from the picture's edge.
    first: i64,
    /// How many parts of `cell` the plane's samples lie behind those of the component.
    offset: u32,
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
        let behind = u32::try_from(pixel.rem_euclid(cells)).unwrap_or(0);
        Self { first: pixel.div_euclid(cells), offset: behind, cell }
    }

    /// What the sample before counts, in pixels of a cell.
    fn weight_before(&self) -> u16 {
        u16::try_from(self.cell - self.offset).unwrap_or(0)
    }

    /// What the sample behind counts.
    fn weight_after(&self) -> u16 {
        u16::try_from(self.offset).unwrap_or(0)
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
        let row = |y: usize| &self.data[rows[y] * self.stride..][..self.stride];
        let rows_out = out.chunks_exact_mut(plane.width.max(1)).enumerate();
        if across.offset == 0 && down.offset == 0 {
            rows_out.for_each(|(y, out)| copy(row(y), &columns, out));
            return;
        }
        // Samples of the row above and below, times their number in a cell on the way across.
        let weighed = |y: usize, samples: &mut [u8], sums: &mut Vec<u16>| {
            copy(row(y), &columns, samples);
            let (from, to) = (across.weight_before(), across.weight_after());
            sums.clear();
            let pairs = samples.iter().zip(&samples[1..]);
            sums.extend(pairs.map(|(a, b)| u16::from(*a) * from + u16::from(*b) * to));
        };
        let mut samples = vec![0; plane.width + 1];
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        weighed(0, &mut samples, &mut lower);
        let (from, to) = (down.weight_before(), down.weight_after());
        // Cells have a power of two of pixels.
        let area = across.cell * down.cell;
        let (half, shift) = (u16::try_from(area / 2).unwrap_or(0), area.trailing_zeros());
        for (y, out) in rows_out {
            std::mem::swap(&mut upper, &mut lower);
            weighed(y + 1, &mut samples, &mut lower);
            for ((sample, a), b) in out.iter_mut().zip(&upper).zip(&lower) {
                let [low, _] = ((a * from + b * to + half) >> shift).to_le_bytes();
                *sample = low;
            }
        }
    }
}

/// The places of `count` samples from `first` on a grid; those outside repeat its edges.
fn clamped(first: i64, count: usize, origin: u32, size: u32) -> Vec<usize> {
    let last = i64::from(size.saturating_sub(1));
    let place = |at: i64| usize::try_from((at - i64::from(origin)).clamp(0, last)).unwrap_or(0);
    (first..).take(count).map(place).collect()
}

/// Copies the samples at `columns`, which rise by one but where they stand at an edge.
fn copy(row: &[u8], columns: &[usize], out: &mut [u8]) {
    let (first, last) = (columns[0], columns[out.len() - 1]);
    if last - first == out.len() - 1 {
        out.copy_from_slice(&row[first..=last]);
        return;
    }
    for (sample, column) in out.iter_mut().zip(columns) {
        *sample = row[*column];
    }
}
