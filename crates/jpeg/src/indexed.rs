//! A whole baseline JPEG file with the index of its scan, the short way to lossless crops.

use geometry::Rect;

use crate::header::{Header, HeaderLimits};
use crate::rewrite::colour_segments;
use crate::scan::index::Index;
use crate::scan::{Bytes, Scan, ScanError, cut};

/// A baseline JPEG file in memory with random access to its scan.
///
/// Code that holds only parts of a file, such as ranges of an object in a bucket, uses [`crate::scan`] itself.
#[derive(Clone, Debug)]
pub struct IndexedJpeg {
    /// The file.
    pub jpeg: Vec<u8>,
    /// What its headers say.
    pub scan: Scan,
    /// Where its scan can be entered.
    pub index: Index,
    /// The segments that say what its components mean, for the head of a new file.
    pub colour: Vec<u8>,
}

impl IndexedJpeg {
    /// Reads the headers of `jpeg` and indexes its scan.
    ///
    /// Costs one walk over the file, about 35 ms for 24 megapixels.
    ///
    /// Fails with the reason where the file is not one baseline scan, is damaged, or has headers beyond `limits`
    /// ([`ScanError::Bytes`]).
    pub fn open(jpeg: Vec<u8>, limits: &HeaderLimits) -> Result<Self, ScanError> {
        let header = Header::parse(&jpeg, limits).map_err(|_| ScanError::Bytes)?;
        let scan = Scan::read(&header, &jpeg)?;
        let index = Index::build(&scan, &jpeg)?;
        let colour = colour_segments(&header, &jpeg);
        Ok(Self { jpeg, scan, index, colour })
    }

    /// The file as the functions of [`crate::scan`] take it.
    #[must_use]
    pub fn bytes(&self) -> Bytes<'_> {
        Bytes::whole(&self.jpeg)
    }

    /// Cuts `rect` out with its coefficients: nothing is decoded to pixels and nothing is lost.
    ///
    /// `rect` is in pixels of the stored picture and begins on the grid of MCUs ([`cut::is_on_grid`]). The file
    /// holds no metadata but the segments that say what its colours mean.
    pub fn crop(&self, rect: Rect) -> Result<Vec<u8>, ScanError> {
        cut::cut(&self.scan, &self.index, &self.bytes(), rect, &self.colour)
    }
}
