//! Holds a baseline JPEG file in memory, together with the random-access index of its scan.

use geometry::Rect;

use crate::header::{HeaderLimits, JpegHeader};
use crate::rewrite::colour_segments;
use crate::scan::index::ScanIndex;
use crate::scan::{ByteRanges, Scan, ScanError, crop};

/// A baseline JPEG file in memory with random access to its scan.
///
/// The fields are the arguments of the functions in [`crate::scan`]: [`region::decode`] decodes a rectangle,
/// [`patch::patch`] changes a rectangle, [`bands::band`] cuts out rows. Code that holds only byte ranges of a file
/// calls these functions directly.
///
/// ```
/// use geometry::{Rect, Size};
/// use jpeg::IndexedJpeg;
/// use jpeg::codec::{ChromaSubsampling, read_header};
/// use jpeg::samples::{LIMITS, pictures::photograph};
///
/// let file = photograph(Size::new(200, 100), ChromaSubsampling::Quarter);
/// let indexed = IndexedJpeg::open(file, &LIMITS)?;
/// let crop = indexed.crop(Rect::new(32, 16, Size::new(90, 60)))?;
/// assert_eq!(read_header(&crop)?.size, Size::new(90, 60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`region::decode`]: crate::scan::region::decode
/// [`patch::patch`]: crate::scan::patch::patch
/// [`bands::band`]: crate::scan::bands::band
#[derive(Clone, Debug)]
pub struct IndexedJpeg {
    /// The bytes of the whole file.
    pub jpeg: Vec<u8>,
    /// The layout and tables of the scan, read from the headers.
    pub scan: Scan,
    /// The entry points into the scan.
    pub index: ScanIndex,
    /// The complete JFIF and Adobe segments of the file. They define the colours of its components, so every file
    /// that is cut out of it starts with them.
    pub colour: Vec<u8>,
}

impl IndexedJpeg {
    /// Reads the headers of `jpeg` and indexes its scan.
    ///
    /// Costs one pass over the file, about 35 ms for 24 megapixels, and temporarily as much additional memory as
    /// the size of the scan.
    ///
    /// # Errors
    ///
    /// [`ScanError`] with the reason if the file is not one baseline scan or is damaged; [`ScanError::Bytes`] if
    /// the headers are broken or exceed `limits`. Parse a [`JpegHeader`] first to get the detailed error.
    pub fn open(jpeg: Vec<u8>, limits: &HeaderLimits) -> Result<Self, ScanError> {
        let header = JpegHeader::parse(&jpeg, limits).map_err(|_| ScanError::Bytes)?;
        let scan = Scan::read(&header, &jpeg)?;
        let index = ScanIndex::build(&scan, &jpeg)?;
        let colour = colour_segments(&header, &jpeg);
        Ok(Self { jpeg, scan, index, colour })
    }

    /// Returns the whole file as a source of byte ranges, for the functions of [`crate::scan`].
    pub fn bytes(&self) -> ByteRanges<'_> {
        ByteRanges::whole(&self.jpeg)
    }

    /// Cuts out `rect` as a new file, without loss: coefficients are copied, not decoded.
    ///
    /// `rect` is in pixels of the picture as stored, before any EXIF orientation. Its upper left corner must be on
    /// the MCU grid ([`crop::is_on_grid`]); MCUs are 8 or 16 pixels wide and high in nearly all files
    /// ([`Scan::mcu`]). Its size is arbitrary. The result has the JFIF or Adobe segment of the file and no other
    /// metadata.
    ///
    /// # Errors
    ///
    /// [`ScanError::Outside`] if `rect` is empty, extends beyond the picture, or is off the grid;
    /// [`ScanError::Tables`] if the Huffman tables of the file lack a code that the crop needs.
    pub fn crop(&self, rect: Rect) -> Result<Vec<u8>, ScanError> {
        crop::crop(&self.scan, &self.index, &self.bytes(), rect, &self.colour)
    }
}
