//! Holds the quantised coefficients of one component.

/// The quantised coefficients of one component of a picture.
///
/// The grid has the blocks that cover the samples of the component, 8x8 samples each, without the blocks that only
/// complete an MCU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoefficientGrid {
    /// Identifier of the component in the frame.
    pub(crate) id: u8,
    /// Horizontal sampling factor: the blocks in a row of an MCU of all components, 1 to 4.
    pub(crate) across: u8,
    /// Vertical sampling factor: the blocks in a column of an MCU of all components, 1 to 4.
    pub(crate) down: u8,
    /// Number of the quantisation table in the file, 0 to 3. Grids with the same number have the same table.
    pub(crate) quant_number: u8,
    /// The quantisation table in zigzag order.
    pub(crate) quant: [u16; 64],
    /// Number of blocks in a row.
    pub(crate) cols: usize,
    /// Number of rows of blocks.
    pub(crate) rows: usize,
    /// The blocks, row by row; each has 64 numbers in zigzag order.
    pub(crate) blocks: Vec<[i16; 64]>,
    /// For each block, bit k is set if coefficient k is not zero.
    pub(crate) masks: Vec<u64>,
}

impl CoefficientGrid {
    /// Returns the number of blocks in a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of rows of blocks.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the sampling factors, horizontal and vertical, 1 to 4 each (T.81, A.1.1).
    pub fn sampling(&self) -> (u8, u8) {
        (self.across, self.down)
    }

    /// Returns the quantisation table: 64 steps in zigzag order.
    pub fn quant(&self) -> &[u16; 64] {
        &self.quant
    }

    /// Returns the blocks, `[rows][cols][64]` of coefficients in zigzag order, in units of the steps of the
    /// quantisation table.
    pub fn blocks(&self) -> &[[i16; 64]] {
        &self.blocks
    }

    /// Computes the masks again after the blocks have changed.
    pub(crate) fn update_masks(&mut self) {
        self.masks = self.blocks.iter().map(mask_of).collect();
    }
}

/// Returns the mask of a block, with bit k set if coefficient k is not zero.
pub(crate) fn mask_of(block: &[i16; 64]) -> u64 {
    block.iter().rev().fold(0u64, |mask, &value| mask << 1 | u64::from(value != 0))
}
