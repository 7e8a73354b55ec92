//! Defines the buffers of a decode: the coefficients of a row of MCUs, and the samples of a component.

use crate::dct::{Dct, Divisors};
use crate::scan::{Scan, to_usize};
use geometry::Size;

/// The coefficients of a block, row by row.
pub(super) type Block = [i16; 64];

/// The decoded samples of one component, in whole MCUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleGrid {
    /// Column and row of the first sample in the component.
    pub origin: (u32, u32),
    /// Number of samples from the origin that belong to the picture; the others only complete blocks.
    pub size: Size,
    /// Number of samples from the start of one row to the start of the next.
    pub stride: usize,
    /// The samples, row by row, `stride` apart.
    pub data: Vec<u8>,
}

/// The position of a block in a [`CoefficientStrip`].
#[derive(Clone, Copy)]
pub(super) struct BlockPosition {
    /// Index of the component in the scan.
    component: usize,
    /// Index among the component's blocks in the strip, row by row.
    index: usize,
}

/// The coefficients of neighbouring MCUs in one row of MCUs.
pub(super) struct CoefficientStrip {
    /// For each component, its blocks row by row.
    blocks: Vec<Vec<Block>>,
    /// For each component: blocks across and down in an MCU, and blocks in a row of the strip.
    shapes: Vec<(usize, usize, usize)>,
    /// For each block of an MCU: its component, and its column and row in the MCU.
    order: Vec<(usize, usize, usize)>,
}

impl CoefficientStrip {
    pub(super) fn new(scan: &Scan, mcus: usize) -> Self {
        let mut blocks = Vec::new();
        let mut shapes = Vec::new();
        let mut order = Vec::new();
        for (index, component) in scan.components.iter().enumerate() {
            let across = to_usize(component.across);
            let down = to_usize(component.down);
            let row = across * mcus;
            blocks.push(vec![[0; 64]; down * row]);
            shapes.push((across, down, row));
            order.extend((0..across * down).map(|at| (index, at % across, at / across)));
        }
        Self { blocks, shapes, order }
    }

    pub(super) fn clear(&mut self) {
        self.blocks.iter_mut().for_each(|blocks| blocks.fill([0; 64]));
    }

    /// Returns block `number` of the MCU in `column`.
    #[inline]
    pub(super) fn block_mut(&mut self, number: usize, column: usize) -> &mut Block {
        let BlockPosition { component, index } = self.position(number, column);
        &mut self.blocks[component][index]
    }

    /// Returns the position of block `number` of the MCU in `column`.
    #[inline]
    pub(super) fn position(&self, number: usize, column: usize) -> BlockPosition {
        let (component, x, y) = self.order[number];
        let (across, _, row) = self.shapes[component];
        BlockPosition { component, index: y * row + column * across + x }
    }

    /// Returns column and row of a block's first sample in its component, for a strip in MCU row `row` whose first
    /// MCU is in column `first`.
    pub(super) fn origin(
        &self,
        block: BlockPosition,
        scan: &Scan,
        row: u32,
        first: u32,
    ) -> (u32, u32) {
        let (_, _, across) = self.shapes[block.component];
        let x = u32::try_from(block.index % across).unwrap_or(u32::MAX);
        let y = u32::try_from(block.index / across).unwrap_or(u32::MAX);
        let component = &scan.components[block.component];
        ((first * component.across + x) * 8, (row * component.down + y) * 8)
    }

    /// Returns the blocks of each component, row by row.
    #[cfg(test)]
    pub(super) fn all(&self) -> &[Vec<Block>] {
        &self.blocks
    }

    /// Returns the coefficients of one block.
    pub(super) fn block(&self, at: BlockPosition) -> &Block {
        &self.blocks[at.component][at.index]
    }

    /// Converts the coefficients to the samples of row `row` of MCUs in `grids`.
    pub(super) fn inverse(&self, dct: Dct, grids: &mut [SampleGrid], row: usize) {
        for ((blocks, (_, down, across)), grid) in self.blocks.iter().zip(&self.shapes).zip(grids)
        {
            for (y, blocks) in blocks.chunks_exact(*across).enumerate() {
                let start = (row * down + y) * 8 * grid.stride;
                dct.inverse(blocks, &mut grid.data[start..start + 8 * grid.stride], grid.stride);
            }
        }
    }

    /// Converts the samples of row `row` of MCUs in `grids` to quantised coefficients.
    pub(super) fn forward(
        &mut self,
        dct: Dct,
        grids: &[SampleGrid],
        row: usize,
        divisors: &[Divisors],
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
