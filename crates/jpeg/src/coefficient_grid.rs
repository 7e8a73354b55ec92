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
    /// Computes the masks again after the blocks have changed.
    pub(crate) fn update_masks(&mut self) {
        self.masks = self.blocks.iter().map(mask_of).collect();
    }
}

/// Returns the mask of a block, with bit k set if coefficient k is not zero.
pub(crate) fn mask_of(block: &[i16; 64]) -> u64 {
    block.iter().rev().fold(0u64, |mask, &value| mask << 1 | u64::from(value != 0))
}
