//! Changes the samples of a rectangle.

use std::ops::Range;

use super::scan_data::{AC_MAX, DC_RANGE};
use super::{CoefficientError, CoefficientLimits, Coefficients};
use crate::coefficient_grid::{CoefficientGrid, mask_of};
use crate::dct::{Dct, Divisors};
use crate::scan::ZIGZAG;
use crate::scan::region::{RegionSamples, SampleGrid};
use geometry::{Rect, Size};

impl Coefficients {
    /// Changes samples under `rect`, in pixels as stored, and transforms only the blocks whose samples change.
    ///
    /// `paint` is called with the samples of one row of MCUs at a time. It gets all blocks of the MCUs under `rect`,
    /// each grid on the samples of its component, as a decoder computes them. The coefficients of blocks whose samples
    /// it leaves alone stay as they are. Changed blocks are quantised with the tables of the picture, rounded to
    /// nearest. Of `limits`, only the cancellation applies.
    ///
    /// # Errors
    ///
    /// [`CoefficientError::Outside`] if `rect` is empty or extends beyond the picture; [`CoefficientError::Sampling`]
    /// if a sample of a component does not cover a whole number of pixels; [`CoefficientError::Range`] if a block under
    /// `rect` has coefficients that no 8-bit picture has. The coefficients are then partly changed.
    pub fn repaint(
        &mut self,
        rect: Rect,
        dct: Dct,
        limits: &CoefficientLimits<'_>,
        paint: &mut dyn FnMut(&mut RegionSamples),
    ) -> Result<(), CoefficientError> {
        let rect = rect.checked_in(self.size).map_err(|_| CoefficientError::Outside)?;
        let layers: Option<Vec<Layer>> = self.grids.iter().map(|grid| self.layer(grid)).collect();
        let layers = layers.ok_or(CoefficientError::Sampling)?;
        let width = layers.iter().map(|layer| layer.across).max().unwrap_or(1) * 8;
        let height = layers.iter().map(|layer| layer.down).max().unwrap_or(1) * 8;
        let columns = rect.x / width..(rect.x + rect.width).div_ceil(width);
        for row in rect.y / height..(rect.y + rect.height).div_ceil(height) {
            if !(limits.should_continue)() {
                return Err(CoefficientError::Stopped);
            }
            let mut samples = RegionSamples { grids: Vec::new() };
            for (grid, layer) in self.grids.iter().zip(&layers) {
                samples.grids.push(layer.decode(grid, &columns, row, dct)?);
            }
            let before = samples.clone();
            paint(&mut samples);
            let pairs = before.grids.iter().zip(&samples.grids);
            for ((grid, layer), (before, after)) in self.grids.iter_mut().zip(&layers).zip(pairs) {
                layer.encode_changes(grid, before, after, dct);
            }
        }
        Ok(())
    }

    /// Prepares the transforms of a component; `None` if a sample does not cover a whole number of pixels.
    fn layer(&self, grid: &CoefficientGrid) -> Option<Layer> {
        let cell = self.cell(grid)?;
        let mut natural = [1; 64];
        for (step, position) in grid.quant.iter().zip(ZIGZAG) {
            natural[usize::from(position) & 63] = *step;
        }
        // A picture of one component has one block in each MCU, whatever its factors (T.81, A.2.2).
        let (across, down) = if self.grids.len() == 1 { (1, 1) } else { grid.sampling() };
        Some(Layer {
            across: u32::from(across),
            down: u32::from(down),
            size: Size::new(self.size.width.div_ceil(cell.0), self.size.height.div_ceil(cell.1)),
            natural,
            divisors: Divisors::new(&natural),
        })
    }
}

/// The layout and the quantisation of a component.
struct Layer {
    /// Number of blocks in a row of an MCU.
    across: u32,
    /// Number of blocks in a column of an MCU.
    down: u32,
    /// The size of the component in samples.
    size: Size,
    /// The quantisation table, row by row.
    natural: [u16; 64],
    divisors: Divisors,
}

impl Layer {
    /// Returns the samples of the MCUs in `columns` of the row `row` of MCUs.
    fn decode(
        &self,
        grid: &CoefficientGrid,
        columns: &Range<u32>,
        row: u32,
        dct: Dct,
    ) -> Result<SampleGrid, CoefficientError> {
        let origin = (columns.start * self.across * 8, row * self.down * 8);
        // Blocks that only complete an MCU are not there.
        let blocks = columns.start * self.across..columns.end * self.across;
        let blocks = blocks.start as usize..(blocks.end as usize).min(grid.cols);
        let rows = row * self.down..(row + 1) * self.down;
        let rows = rows.start as usize..(rows.end as usize).min(grid.rows);
        let stride = 8 * blocks.len();
        let mut data = vec![0; 8 * rows.len() * stride];
        for (row, out) in rows.clone().zip(data.chunks_exact_mut(8 * stride)) {
            let row = &grid.blocks[row * grid.cols..][blocks.clone()];
            let row: Option<Vec<[i16; 64]>> =
                row.iter().map(|block| self.dequantised(block)).collect();
            dct.inverse(&row.ok_or(CoefficientError::Range)?, out, stride);
        }
        let size = Size::new(
            columns.len().try_into().map_or(0, |count: u32| count * self.across * 8),
            self.down * 8,
        );
        let size = Size::new(
            size.width.min(self.size.width - origin.0),
            size.height.min(self.size.height - origin.1),
        );
        Ok(SampleGrid { origin, size, stride, data })
    }

    /// Multiplies a block by the quantisation table and puts it in order of rows; `None` if a product does not fit into
    /// 16 bits.
    fn dequantised(&self, block: &[i16; 64]) -> Option<[i16; 64]> {
        let mut natural = [0; 64];
        let mut out_of_range = 0;
        for (coefficient, position) in block.iter().zip(ZIGZAG) {
            let at = usize::from(position) & 63;
            let product = i32::from(*coefficient) * i32::from(self.natural[at]);
            let [low, high, ..] = product.to_le_bytes();
            natural[at] = i16::from_le_bytes([low, high]);
            out_of_range |= product ^ i32::from(natural[at]);
        }
        (out_of_range == 0).then_some(natural)
    }

    /// Transforms and quantises the blocks whose samples differ between `before` and `after`.
    fn encode_changes(
        &self,
        grid: &mut CoefficientGrid,
        before: &SampleGrid,
        after: &SampleGrid,
        dct: Dct,
    ) {
        let stride = before.stride;
        let left = before.origin.0 as usize / 8;
        let top = before.origin.1 as usize / 8;
        let rows = before.data.chunks_exact(8 * stride).zip(after.data.chunks_exact(8 * stride));
        for (row, (before, after)) in (top..).zip(rows) {
            for col in 0..stride / 8 {
                let is_same = (0..8)
                    .map(|line| line * stride + 8 * col)
                    .all(|start| before[start..start + 8] == after[start..start + 8]);
                if is_same {
                    continue;
                }
                let mut natural = [[0; 64]];
                dct.forward(&after[8 * col..], stride, &self.divisors, &mut natural);
                let at = row * grid.cols + left + col;
                grid.blocks[at] = clamped(&natural[0]);
                grid.masks[at] = mask_of(&grid.blocks[at]);
            }
        }
    }
}

/// Puts a block in zigzag order, with coefficients that a file can hold: the transform gives up to 1024.
fn clamped(natural: &[i16; 64]) -> [i16; 64] {
    let mut block = ZIGZAG.map(|at| natural[usize::from(at) & 63]);
    let ac_max = i16::try_from(AC_MAX).expect("eleven bits");
    for coefficient in &mut block[1..] {
        *coefficient = (*coefficient).clamp(-ac_max, ac_max);
    }
    block[0] = i32::from(block[0])
        .clamp(*DC_RANGE.start(), *DC_RANGE.end())
        .try_into()
        .expect("eleven bits");
    block
}
