//! Scales pictures down in linear light.
//!
//! Samples of a picture represent light on a curve. Averaging them directly makes fine bright detail too dark: a
//! grid of black and white lines becomes 128, where the eye sees half of the light, which is 188. So samples are
//! converted to light, filtered, and converted back.
//!
//! The filter is separable: boxes of whole pixels leave at least twice the size of the result, and Lanczos with
//! three lobes reduces the rest. Both are computed in `f32` and in an order that depends only on sizes, so the
//! result is the same for any number of threads and on every machine.
//!
//! [`crate::planar`] scales the components of a YCbCr picture, each with a plan of its own.
//!
//! A [`Downscale`] works on strips of rows: the caller passes 8-bit rows of the source, which are reduced to the
//! width of the result at once. So the source in linear light is never in memory as a whole. If rows are decoded
//! strip by strip, the decoded source is not either.

mod axis;
mod light;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::Range;

use crate::{ParallelMap, collect, index};
use axis::{Axis, TAP_GROUP};
pub(crate) use axis::{ResultGrid, Span};
use geometry::{Rect, Size};
use jpeg::codec::Pixels;
pub use light::SampleLight;

/// The number of source pixels in a strip that is reduced at once.
pub(crate) const STRIP_PIXELS: usize = 1 << 20;
/// The maximum number of samples, of 4 bytes each, in memory between the filters of the two axes. Pictures that
/// are scaled down little are reduced in several slabs, one after the other.
const SLAB_SAMPLES: usize = 12 << 20;
/// The level of chroma without colour.
const CHROMA_ZERO: f32 = 128.0;
/// The number of sums that are computed together when rows are added up.
const SUMS: usize = 16;

/// A rectangle whose edges may lie between pixels, in pixels of the picture from which it is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PixelRegion {
    /// Distance of the left edge from the left edge of the picture.
    pub x: f64,
    /// Distance of the upper edge from the upper edge of the picture.
    pub y: f64,
    /// Width in pixels, with fractions.
    pub width: f64,
    /// Height in pixels, with fractions.
    pub height: f64,
}

impl From<Rect> for PixelRegion {
    fn from(rect: Rect) -> Self {
        let Rect { x, y, width, height } = rect;
        Self { x: x.into(), y: y.into(), width: width.into(), height: height.into() }
    }
}

impl PixelRegion {
    /// Returns the columns and the rows of the region.
    pub(crate) fn spans(self) -> [Span; 2] {
        let Self { x, y, width, height } = self;
        [Span { start: x, length: width }, Span { start: y, length: height }]
    }

    /// Returns the region with all coordinates multiplied, in a row by `across` and in a column by `down`.
    pub(crate) fn scaled_by(self, across: f64, down: f64) -> Self {
        Self {
            x: self.x * across,
            y: self.y * down,
            width: self.width * across,
            height: self.height * down,
        }
    }

    /// Returns the region that shows the same part of the picture on a copy of a different size.
    #[must_use]
    pub fn rescaled(self, from: Size, to: Size) -> Self {
        let across = f64::from(to.width) / f64::from(from.width.max(1));
        let down = f64::from(to.height) / f64::from(from.height.max(1));
        self.scaled_by(across, down)
    }
}

/// Cuts `region` out of `pixels` and scales it down to `size` in linear light, in one resampling.
///
/// The region is clamped to the picture. Pixels outside the region do not affect the result; the pixels at its
/// edge are repeated. A `size` larger than the region is interpolated.
///
/// The result is the same for any number of threads that `parallel_map` uses. Memory: about 100 MB at most besides
/// the pixels and the result.
pub fn scale_region(
    pixels: &Pixels,
    region: PixelRegion,
    size: Size,
    light: SampleLight,
    parallel_map: ParallelMap<'_>,
) -> Pixels {
    let plan = Downscale::new(pixels.size, pixels.channels, region, size);
    let mut data = Vec::with_capacity(index(size.width) * index(size.height) * pixels.channels);
    for slab in plan.slabs() {
        let reduced = slab.reduce_whole(&pixels.data, light.light_of(), parallel_map);
        data.extend(reduced.encode(light));
    }
    Pixels { size, channels: pixels.channels, data }
}

/// The plan of a reduction from one size to another.
pub(crate) struct Downscale {
    columns: Axis,
    rows: Axis,
    channels: usize,
    source: Size,
    target: Size,
}

/// Pixels in linear light: `[height][width][channels]` of `f32`, 0 to 1 and slightly beyond, because the filter
/// overshoots at edges.
pub(crate) struct LightPixels {
    pub(crate) size: Size,
    pub(crate) channels: usize,
    data: Vec<f32>,
}

impl Downscale {
    /// Plans the reduction of `region` to `target`.
    pub(crate) fn new(source: Size, channels: usize, region: PixelRegion, target: Size) -> Self {
        let [columns, rows] = region.spans();
        let columns = ResultGrid::dividing(source.width, columns, target.width);
        let rows = ResultGrid::dividing(source.height, rows, target.height);
        Self::on_grid(source, channels, region, [columns, rows])
    }

    /// Plans the reduction of `region` to result pixels whose columns and rows have the positions `grid`. Where the
    /// grid is larger than the region, the pixels at the edge of the region are repeated.
    pub(crate) fn on_grid(
        source: Size,
        channels: usize,
        region: PixelRegion,
        grid: [ResultGrid; 2],
    ) -> Self {
        let [columns, rows] = region.spans();
        let [across, down] = grid;
        Self {
            columns: Axis::new(source.width, columns, across),
            rows: Axis::new(source.height, rows, down),
            channels,
            source,
            target: Size::new(across.count, down.count),
        }
    }

    /// Splits the plan into slabs of rows of the result, from the top down, each with a bounded amount of memory;
    /// usually only one.
    pub(crate) fn slabs(&self) -> Vec<Self> {
        let stride = index(self.target.width).max(1) * self.channels;
        let height = index(self.target.height);
        // A slab has at least one row of boxes and one row of the result.
        let boxes = (SLAB_SAMPLES / stride).saturating_sub(self.rows.taps).max(1);
        let length = (boxes * height / self.rows.boxes.max(1)).max(1);
        let starts = (0..height).step_by(length);
        starts.map(|start| self.slab(start..(start + length).min(height))).collect()
    }

    /// Returns the plan of some rows of the result.
    fn slab(&self, rows: Range<usize>) -> Self {
        let height = u32::try_from(rows.len()).expect("not more than the height");
        Self {
            columns: self.columns.clone(),
            rows: self.rows.part(rows),
            target: Size { height, ..self.target },
            ..*self
        }
    }

    /// Returns the strips, each a range of rows of boxes, for sources of about `pixels` pixels each.
    pub(crate) fn strips(&self, pixels: usize) -> Vec<Range<usize>> {
        let row_pixels = self.rows.box_px * index(self.source.width).max(1);
        let length = (pixels / row_pixels).max(1);
        let boxes = self.rows.boxes;
        (0..boxes).step_by(length).map(|start| start..(start + length).min(boxes)).collect()
    }

    /// Returns the rows of the source that a strip needs.
    pub(crate) fn source_rows(&self, strip: &Range<usize>) -> Range<usize> {
        let last = strip.end.saturating_sub(1);
        self.rows.pixels_of(strip.start).start..self.rows.pixels_of(last).end
    }

    /// Reduces a whole source in strips, in parallel.
    pub(crate) fn reduce_whole<S: Copy + Sync>(
        &self,
        samples: &[S],
        light: impl Fn(S) -> f32 + Copy + Sync,
        parallel_map: ParallelMap<'_>,
    ) -> LightPixels {
        let stride = index(self.source.width) * self.channels;
        let reduced = self.reduce_strips(&self.strips(STRIP_PIXELS), parallel_map, |strip| {
            let rows = self.source_rows(strip);
            let part = &samples[rows.start * stride..rows.end * stride];
            Ok::<_, Infallible>(self.reduce_strip(strip, part, light))
        });
        match reduced {
            Ok(pixels) => pixels,
        }
    }

    /// Reduces a source in parallel: `reduce` reduces each strip to the width of the result.
    ///
    /// Fails with the error of the first strip that has an error.
    pub(crate) fn reduce_strips<E: Send>(
        &self,
        strips: &[Range<usize>],
        parallel_map: ParallelMap<'_>,
        reduce: impl Fn(&Range<usize>) -> Result<Vec<f32>, E> + Sync,
    ) -> Result<LightPixels, E> {
        let reduced = collect(parallel_map, strips.len(), |number| reduce(&strips[number]));
        // A strip that the map left out is reduced here, so that no picture has a gap.
        let parts = reduced
            .into_iter()
            .zip(strips)
            .map(|(reduced, strip)| reduced.unwrap_or_else(|| reduce(strip)));
        Ok(self.join(&parts.collect::<Result<Vec<_>, E>>()?))
    }

    /// Reduces the rows of a strip to the width of the result. `samples` holds exactly the rows that
    /// [`Downscale::source_rows`] returns, in full width.
    pub(crate) fn reduce_strip<S: Copy>(
        &self,
        strip: &Range<usize>,
        samples: &[S],
        light: impl Fn(S) -> f32 + Copy,
    ) -> Vec<f32> {
        // One instance for each number of channels, so that a pixel is one vector.
        match self.channels {
            1 => self.reduce_pixels::<S, 1, 1>(strip, samples.as_chunks().0, light),
            3 => self.reduce_pixels::<S, 3, 4>(strip, samples.as_chunks().0, light),
            _ => self.reduce_pixels::<S, 4, 4>(strip, samples.as_chunks().0, light),
        }
    }

    /// Reduces a strip. `N` is the number of channels, `L` the number of lanes in which they are added up.
    fn reduce_pixels<S: Copy, const N: usize, const L: usize>(
        &self,
        strip: &Range<usize>,
        pixels: &[[S; N]],
        light: impl Fn(S) -> f32 + Copy,
    ) -> Vec<f32> {
        let width = index(self.source.width);
        let columns = &self.columns;
        let top = self.source_rows(strip).start;
        // Taps that complete a group can lie beyond the last box; their weight is 0.
        let mut sums = vec![[0.0; L]; columns.boxes + columns.taps];
        let mut out = Vec::with_capacity(strip.len() * columns.starts.len() * N);
        for box_row in strip.clone() {
            sums.fill([0.0; L]);
            for row in self.rows.pixels_of(box_row) {
                let row = &pixels[(row - top) * width..][columns.source.clone()];
                match columns.box_px {
                    1 => add_boxes_of::<S, 1, N, L>(row, &mut sums, light),
                    2 => add_boxes_of::<S, 2, N, L>(row, &mut sums, light),
                    3 => add_boxes_of::<S, 3, N, L>(row, &mut sums, light),
                    length => add_boxes(row.chunks(length), &mut sums, light),
                }
            }
            filter_row::<N, L>(columns, &sums, &mut out);
        }
        out
    }

    /// Returns the number of rows of boxes.
    pub(crate) fn box_rows(&self) -> usize {
        self.rows.boxes
    }

    /// Returns the number of samples between the filters of the two axes.
    pub(crate) fn box_samples(&self) -> usize {
        self.rows.boxes * index(self.target.width) * self.channels
    }

    /// Joins the strips, in order, and filters the columns.
    pub(crate) fn join(&self, strips: &[Vec<f32>]) -> LightPixels {
        let stride = index(self.target.width) * self.channels;
        let rows: Vec<&[f32]> =
            strips.iter().flat_map(|strip| strip.chunks_exact(stride)).collect();
        let mut data = vec![0.0; stride * index(self.target.height)];
        for ((start, weights), out) in self.rows.taps().zip(data.chunks_exact_mut(stride)) {
            // Taps beyond the last row only complete a group; their weight is 0.
            let taps: Vec<(&[f32], f32)> =
                rows[start..].iter().copied().zip(weights.iter().copied()).collect();
            add_rows(&taps, out);
        }
        LightPixels { size: self.target, channels: self.channels, data }
    }
}

impl LightPixels {
    /// Joins slabs of the same width, from the top down.
    pub(crate) fn joined(slabs: Vec<Self>) -> Self {
        let mut slabs = slabs.into_iter();
        let first = slabs.next();
        let mut joined =
            first.unwrap_or(Self { size: Size::new(0, 0), channels: 1, data: Vec::new() });
        for slab in slabs {
            joined.size.height += slab.size.height;
            joined.data.extend(slab.data);
        }
        joined
    }

    /// Converts YCbCr to RGB (JFIF). `luma` is in linear light, `blue` and `red` are chroma as a share of its range,
    /// all of one size.
    pub(crate) fn from_ycbcr(luma: &Self, blue: &Self, red: &Self) -> Self {
        let tables = SampleLight::Srgb.tables();
        let samples = luma.data.iter().zip(&blue.data).zip(&red.data);
        let data = samples.flat_map(|((luma, blue), red)| {
            let y = tables.exact_level(*luma);
            let blue = blue * 255.0 - CHROMA_ZERO;
            let red = red * 255.0 - CHROMA_ZERO;
            let green = y - 0.344_136 * blue - 0.714_136 * red;
            [y + 1.402 * red, green, y + 1.772 * blue].map(|level| tables.light_at(level))
        });
        Self { size: luma.size, channels: 3, data: data.collect() }
    }

    /// Scales the picture down to `size`; it stays in linear light.
    pub(crate) fn reduced(&self, size: Size, parallel_map: ParallelMap<'_>) -> Self {
        let whole = Rect::new(0, 0, self.size).into();
        let plan = Downscale::new(self.size, self.channels, whole, size);
        plan.reduce_whole(&self.data, |light| light, parallel_map)
    }

    /// Converts light to 8-bit samples, rounded to the nearest level.
    pub(crate) fn encode(&self, light: SampleLight) -> Vec<u8> {
        let tables = light.tables();
        self.data.iter().map(|light| tables.level(*light)).collect()
    }
}

/// Adds the pixels of a row to the sums of their boxes of `B` pixels.
#[inline]
fn add_boxes_of<S: Copy, const B: usize, const N: usize, const L: usize>(
    row: &[[S; N]],
    sums: &mut [[f32; L]],
    light: impl Fn(S) -> f32 + Copy,
) {
    let (boxes, rest) = row.as_chunks::<B>();
    for (pixels, sum) in boxes.iter().zip(&mut *sums) {
        for pixel in pixels {
            add_pixel(pixel, sum, light);
        }
    }
    for pixel in rest {
        add_pixel(pixel, &mut sums[boxes.len()], light);
    }
}

/// Adds the pixels of a row to the sums of their boxes.
fn add_boxes<'a, S: Copy + 'a, const N: usize, const L: usize>(
    boxes: impl Iterator<Item = &'a [[S; N]]>,
    sums: &mut [[f32; L]],
    light: impl Fn(S) -> f32 + Copy,
) {
    for (pixels, sum) in boxes.zip(sums) {
        let mut total = *sum;
        for pixel in pixels {
            add_pixel(pixel, &mut total, light);
        }
        *sum = total;
    }
}

#[inline]
fn add_pixel<S: Copy, const N: usize, const L: usize>(
    pixel: &[S; N],
    sum: &mut [f32; L],
    light: impl Fn(S) -> f32,
) {
    for (sample, sum) in pixel.iter().zip(sum) {
        *sum += light(*sample);
    }
}

/// Filters a row of boxes and appends the result.
fn filter_row<const N: usize, const L: usize>(
    columns: &Axis,
    boxes: &[[f32; L]],
    out: &mut Vec<f32>,
) {
    for (start, weights) in columns.taps() {
        let boxes = boxes[start..start + weights.len()].as_chunks::<TAP_GROUP>().0;
        // Several sums, because each addition waits for the previous one.
        let mut sums = [[0.0; L]; TAP_GROUP];
        for (boxes, weights) in boxes.iter().zip(weights.as_chunks::<TAP_GROUP>().0) {
            for ((sum, pixel), weight) in sums.iter_mut().zip(boxes).zip(weights) {
                for (sum, sample) in sum.iter_mut().zip(pixel) {
                    *sum += sample * weight;
                }
            }
        }
        let [a, b, c, d] = sums;
        let total: [f32; L] = std::array::from_fn(|i| (a[i] + b[i]) + (c[i] + d[i]));
        out.extend_from_slice(&total[..N]);
    }
}

/// Adds up rows, each multiplied by its weight.
fn add_rows(taps: &[(&[f32], f32)], out: &mut [f32]) {
    let (chunks, rest) = out.as_chunks_mut::<SUMS>();
    for (number, chunk) in chunks.iter_mut().enumerate() {
        let mut sums = [0.0; SUMS];
        for (row, weight) in taps {
            for (sum, sample) in sums.iter_mut().zip(&row[number * SUMS..][..SUMS]) {
                *sum += sample * weight;
            }
        }
        *chunk = sums;
    }
    let start = chunks.len() * SUMS;
    for (at, out) in rest.iter_mut().enumerate() {
        *out = taps.iter().map(|(row, weight)| row[start + at] * weight).sum();
    }
}
