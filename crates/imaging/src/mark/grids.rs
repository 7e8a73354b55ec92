//! Blends a watermark into the component grids of a picture as stored.
//!
//! Local marks change blocks in place, so the mark is turned to the stored orientation of the picture and split
//! into luma and chroma layers. The layers are cached by size, orientation, sampling and offset within a chroma
//! cell.

use std::sync::Arc;

use super::Watermark;
use crate::blend::{MarkBitmap, blend_chroma_sample, chroma_components, composite, luma};
use crate::{Orientation, index};
use geometry::{Rect, Size};
use jpeg::codec::{ChromaSubsampling, Pixels};
use jpeg::scan::region::{RegionSamples, SampleGrid};

/// The cache key of prepared layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LayerKey {
    /// Size of the mark in pixels as stored.
    size: Size,
    orientation: Orientation,
    /// Pixels per chroma sample, across and down.
    cell: (u32, u32),
    /// Offset of the mark's corner within a chroma cell, in pixels.
    offset: (u32, u32),
}

/// A mark split into layers for the grids of luma and chroma.
#[derive(Debug)]
pub(super) struct MarkLayers {
    key: LayerKey,
    /// The mark's luma, premultiplied, and its alpha; row by row.
    luma: Vec<[u8; 2]>,
    /// Number of chroma cells in a row.
    cells_across: u32,
    /// Totals over each cell of alpha and of the mark's two chroma components; row by row.
    colour: Vec<(i32, [i32; 2])>,
}

/// A mark with its position on a picture.
pub(crate) struct PlacedMark {
    layers: Arc<MarkLayers>,
    /// The rectangle that the mark covers, in pixels as stored.
    rect: Rect,
}

impl Watermark {
    /// Prepares the mark for the component grids of a picture of `stored` pixels.
    pub(crate) fn prepare_grids(
        &self,
        stored: Size,
        orientation: Orientation,
        chroma: ChromaSubsampling,
    ) -> PlacedMark {
        let image = orientation.oriented_size(stored);
        let rect = orientation.to_stored(self.placement(image), stored);
        let cell = chroma.cell();
        let offset = (rect.x % cell.0, rect.y % cell.1);
        let key = LayerKey { size: rect.size(), orientation, cell, offset };
        let make = || MarkLayers::new(&self.prepare(image).0, key);
        let layers =
            self.layers.find_or_make(|layers| layers.key == key, make, |layers| layers.luma.len());
        PlacedMark { layers, rect }
    }
}

impl MarkLayers {
    fn new(stamp: &MarkBitmap, key: LayerKey) -> Self {
        let data = stamp.pixels.as_flattened().to_vec();
        let upright = Pixels { size: stamp.size, channels: 4, data };
        // The mark is upright, but the blocks that it changes are in the stored orientation.
        let turned = key.orientation.inverse().orient(upright);
        let pixels = turned.data.as_chunks::<4>().0;
        let cells_across = (key.offset.0 + key.size.width).div_ceil(key.cell.0);
        let cells_down = (key.offset.1 + key.size.height).div_ceil(key.cell.1);
        let mut colour = vec![(0, [0; 2]); index(cells_across) * index(cells_down)];
        let rows = pixels.chunks_exact(index(key.size.width).max(1));
        for (y, row) in (key.offset.1..).zip(rows) {
            let cells = &mut colour[index(y / key.cell.1) * index(cells_across)..];
            for (x, pixel) in (key.offset.0..).zip(row) {
                let (alpha, parts) = &mut cells[index(x / key.cell.0)];
                *alpha += i32::from(pixel[3]);
                for (part, component) in parts.iter_mut().zip(chroma_components(*pixel)) {
                    *part += component;
                }
            }
        }
        let luma = pixels.iter().map(|pixel| [luma(*pixel), pixel[3]]).collect();
        Self { key, luma, cells_across, colour }
    }
}

impl PlacedMark {
    /// Returns the rectangle that the mark covers, in pixels as stored.
    pub(crate) fn rect(&self) -> Rect {
        self.rect
    }

    /// Blends the part of the mark that overlaps `samples` into them.
    pub(crate) fn paint(&self, samples: &mut RegionSamples) {
        let MarkLayers { key, luma, cells_across, colour } = &*self.layers;
        let mut grids = samples.grids.iter_mut();
        if let Some(grid) = grids.next() {
            let width = index(key.size.width);
            for_each_row(grid, self.rect, |row, samples, from| {
                let marks = &luma[row * width + from..];
                for (sample, [luma, alpha]) in samples.iter_mut().zip(marks) {
                    *sample = composite(*sample, *luma, *alpha);
                }
            });
        }
        let (across, down) = key.cell;
        let cells = Rect {
            x: self.rect.x / across,
            y: self.rect.y / down,
            width: *cells_across,
            height: u32::try_from(colour.len()).unwrap_or(0) / (*cells_across).max(1),
        };
        let alpha_max = i32::try_from(across * down * 255).unwrap_or(i32::MAX);
        for (number, grid) in grids.enumerate().take(2) {
            for_each_row(grid, cells, |row, samples, from| {
                let marks = &colour[row * index(*cells_across) + from..];
                for (sample, (alpha, parts)) in samples.iter_mut().zip(marks) {
                    *sample = blend_chroma_sample(*sample, *alpha, parts[number], alpha_max);
                }
            });
        }
    }
}

/// Calls `paint` for each row of `rect` on `grid`.
///
/// The arguments of `paint` are the row's number in the rectangle, its samples on the grid, and the number of the
/// rectangle's samples to the left of these.
fn for_each_row(
    grid: &mut SampleGrid,
    rect: Rect,
    mut paint: impl FnMut(usize, &mut [u8], usize),
) {
    let left = rect.x.max(grid.origin.0);
    let top = rect.y.max(grid.origin.1);
    let width = grid.stride;
    let right = (rect.x + rect.width).min(grid.origin.0 + u32::try_from(width).unwrap_or(0));
    let rows = u32::try_from(grid.data.len() / width.max(1)).unwrap_or(0);
    let bottom = (rect.y + rect.height).min(grid.origin.1 + rows);
    if left >= right {
        return;
    }
    for y in top..bottom {
        let start = index(y - grid.origin.1) * width + index(left - grid.origin.0);
        let samples = &mut grid.data[start..start + index(right - left)];
        paint(index(y - rect.y), samples, index(left - rect.x));
    }
}
