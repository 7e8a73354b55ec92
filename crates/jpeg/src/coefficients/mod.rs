//! Reads, changes and writes the quantised coefficients of a whole picture.
//!
//! A JPEG file holds the picture as coefficients: 64 for each block of 8x8 samples of each component, divided by the
//! steps of a quantisation table and rounded ([`dct`](crate::dct) explains them). A decoder multiplies, transforms and
//! rounds, so decoding and encoding again changes every part of a picture. Code that stays with the coefficients
//! changes only what it means to change.
//!
//! [`Coefficients::read`] reads sequential and progressive files. A *sequential* file holds each block at once, all
//! components in one scan or each in a scan of its own. A *progressive* file goes over the picture several times (T.81,
//! G.1.1): a scan holds a band of the coefficients (*spectral selection*), and leaves out their low bits, which later
//! scans add one by one (*successive approximation*). Only the last scan completes a block, so all coefficients are in
//! memory together, which random access to a baseline [`scan`](crate::scan) does not need.
//!
//! [`Coefficients::repaint`] changes samples in a rectangle and leaves all other blocks identical.
//! [`Coefficients::write`] writes a file.
//!
//! ```
//! use geometry::{Rect, Size};
//! use jpeg::coefficients::{CoefficientLimits, Coefficients};
//! use jpeg::codec::ChromaSubsampling;
//! use jpeg::dct::Dct;
//! use jpeg::encoder::EncodeEffort;
//! use jpeg::samples::{LIMITS, pictures::photograph};
//!
//! let file = photograph(Size::new(200, 100), ChromaSubsampling::Quarter);
//! let limits = CoefficientLimits { header: LIMITS, pixels_max: 1 << 20, should_continue: &|| true };
//! let mut coefficients = Coefficients::read(&file, &limits)?;
//! let corner = Rect::new(0, 84, Size::new(16, 16));
//! coefficients.repaint(corner, Dct::detect(), &limits, &mut |samples| samples.grids[0].data.fill(255))?;
//! let smaller = coefficients.write(EncodeEffort::Small);
//! assert!(smaller.len() < file.len());
//! # Ok::<(), jpeg::coefficients::CoefficientError>(())
//! ```

mod error;
mod read;
mod repaint;
mod scan_data;
mod symbols;

#[cfg(test)]
mod tests;

use geometry::Size;

use crate::codec::{ChromaSubsampling, ColourSpace};
pub use crate::coefficient_grid::CoefficientGrid;
use crate::encoder::EncodeEffort;
use crate::encoder::file;
use crate::header::HeaderLimits;
use crate::scan::ShouldContinue;
pub use error::CoefficientError;

/// The limits on reading a file, so that a hostile file costs little.
#[derive(Clone, Copy)]
pub struct CoefficientLimits<'a> {
    /// Limits on the markers of the file. Each scan costs a pass over all coefficients of its components, even a scan
    /// of a few bytes, so [`HeaderLimits::scans_max`] limits the work.
    pub header: HeaderLimits,
    /// Maximum number of pixels of the picture. The coefficients need 2.2 bytes for each sample: 3.2 bytes per pixel
    /// with 4:2:0 sampling, and at most 8.5 with four components.
    pub pixels_max: u64,
    /// Called before each row of blocks; `false` cancels the work.
    pub should_continue: ShouldContinue<'a>,
}

/// The quantised coefficients of a picture, with everything that determines its samples.
///
/// Coefficients are in the range of 8-bit pictures: -1024 to 1023 for DC, -1023 to 1023 for AC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coefficients {
    size: Size,
    /// The JFIF and Adobe segments.
    colour: Vec<u8>,
    space: Option<ColourSpace>,
    /// One grid for each component, in the order of the frame.
    grids: Vec<CoefficientGrid>,
}

impl Coefficients {
    /// Reads all coefficients of a sequential or progressive file with Huffman codes.
    ///
    /// The script of a progressive file may be any that the standard allows. The result does not depend on how the
    /// file divides the coefficients into scans. Metadata is left out. Costs about 3 ms per megapixel of a photograph
    /// at quality 82.
    ///
    /// Source: ITU-T T.81, F.2 (sequential), G.1 and G.2 (progressive).
    ///
    /// # Errors
    ///
    /// [`CoefficientError`] with the reason if the file is of a different process, exceeds `limits`, or is damaged.
    /// Damage is refused and not concealed, and so are files whose last scans are missing.
    pub fn read(jpeg: &[u8], limits: &CoefficientLimits<'_>) -> Result<Self, CoefficientError> {
        read::read(jpeg, limits)
    }

    /// Returns the size of the picture in pixels as stored, before any EXIF orientation.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the grids, one for each component, in the order of the frame.
    pub fn grids(&self) -> &[CoefficientGrid] {
        &self.grids
    }

    /// Returns the chroma subsampling of a grey or YCbCr picture; `None` for other colour spaces and for samplings
    /// without a name.
    pub fn chroma(&self) -> Option<ChromaSubsampling> {
        match (self.space?, self.grids.as_slice()) {
            (ColourSpace::Grey, _) => Some(ChromaSubsampling::Full),
            (ColourSpace::YCbCr, [luma, blue, red]) => {
                let is_common = (blue.across, blue.down) == (red.across, red.down);
                let luma_cell = self.cell(luma)?;
                let chroma_cell = self.cell(blue).filter(|_| is_common && luma_cell == (1, 1))?;
                ChromaSubsampling::from_cell(chroma_cell)
            }
            _ => None,
        }
    }

    /// Returns the number of pixels that a sample of `grid` covers, across and down; `None` if that is no whole
    /// number.
    fn cell(&self, grid: &CoefficientGrid) -> Option<(u32, u32)> {
        let across = self.grids.iter().map(|grid| grid.across).max()?;
        let down = self.grids.iter().map(|grid| grid.down).max()?;
        let is_whole = across % grid.across == 0 && down % grid.down == 0;
        is_whole.then(|| (u32::from(across / grid.across), u32::from(down / grid.down)))
    }

    /// Writes a file with these coefficients, the colour segments of the file that was read, and no metadata.
    ///
    /// With [`EncodeEffort::Fast`] the file is baseline with Huffman tables of its own, which costs 1 to 2 ms per
    /// megapixel of a photograph at quality 82. With [`EncodeEffort::Small`] the file is progressive, or baseline if
    /// that is smaller; this costs about 12 ms per megapixel, and saves 5 to 10 % of the bytes. The same coefficients
    /// give the same bytes.
    pub fn write(&self, effort: EncodeEffort) -> Vec<u8> {
        file::write(self.size, &self.colour, &self.grids, effort)
    }
}
