//! Computes the display size of a video from pixel aspect, rotation and scaling.

use crate::mp4::boxes::{BoxFields, BoxIterator};
use crate::mp4::error::VideoError;

/// The linear part of a transformation matrix: `x' = a·x + c·y`, `y' = b·x + d·y`, in units of 1/65536. The
/// translation is ignored, since it does not change the size.
///
/// ISO/IEC 14496-12 §6.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DisplayMatrix {
    pub(super) a: i32,
    pub(super) b: i32,
    pub(super) c: i32,
    pub(super) d: i32,
}

impl DisplayMatrix {
    pub(super) const IDENTITY: Self = Self { a: 1 << 16, b: 0, c: 0, d: 1 << 16 };

    /// Parses the nine numbers of a matrix. Some writers leave an all-zero matrix, which is treated as the
    /// identity.
    pub(super) fn parse(fields: &mut BoxFields<'_>) -> Result<Self, VideoError> {
        let a = fields.i32()?;
        let b = fields.i32()?;
        fields.skip(4)?;
        let c = fields.i32()?;
        let d = fields.i32()?;
        fields.skip(4 + 12)?;
        let found = Self { a, b, c, d };
        Ok(if (a, b, c, d) == (0, 0, 0, 0) { Self::IDENTITY } else { found })
    }

    /// Returns the width and height of the bounding box of a transformed picture.
    fn bounds(self, width: u128, height: u128) -> (u128, u128) {
        // Rotation and mirroring make factors negative, but a size has no sign.
        let [a, b, c, d] = [self.a, self.b, self.c, self.d].map(|x| u128::from(x.unsigned_abs()));
        ((a * width + c * height) >> 16, (b * width + d * height) >> 16)
    }
}

/// The properties of a track that determine the display size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VideoGeometry {
    /// Width and height of the track header, in units of 1/65536 pixel; 0 if absent.
    pub(super) track: (u32, u32),
    /// Width and height of the coded pictures in pixels.
    pub(super) coded: (u16, u16),
    /// The pixel aspect ratio, width to height.
    pub(super) pixel: Option<(u32, u32)>,
    pub(super) matrix: DisplayMatrix,
}

impl VideoGeometry {
    /// Reads the coded size and the pixel aspect ratio from a video sample entry, in the part that all codecs share.
    ///
    /// ISO/IEC 14496-12 §12.1.3.
    pub(super) fn parse_sample_entry(&mut self, entry: &[u8]) -> Result<(), VideoError> {
        let mut fields = BoxFields::new(b"stsd", entry);
        // Reserved bytes and the index of the data reference.
        fields.skip(24)?;
        self.coded = (fields.u16()?, fields.u16()?);
        // The fixed fields of a video sample entry have 78 bytes.
        let boxes = entry.get(78..).unwrap_or_default();
        // The bytes after the last box are not always a box, so an error there is ignored.
        let pasp = BoxIterator(boxes).map_while(Result::ok).find(|(kind, _)| kind.0 == *b"pasp");
        self.pixel = pasp.and_then(|(_, contents)| {
            let mut fields = BoxFields::new(b"pasp", contents);
            Some((fields.u32().ok()?, fields.u32().ok()?))
        });
        Ok(())
    }

    /// Returns the displayed width and height in pixels, rounded; `movie` is the movie's matrix.
    ///
    /// The size in the track header has precedence, as the standard says. The pixel aspect ratio applies only if
    /// that size is absent or equal to the coded size: some writers do not apply it, and browsers then use the
    /// ratio.
    pub(super) fn display_size(self, movie: DisplayMatrix) -> (u64, u64) {
        let coded = (u32::from(self.coded.0) << 16, u32::from(self.coded.1) << 16);
        let is_given = self.track.0 != 0 && self.track.1 != 0 && self.track != coded;
        let (width, height) = if is_given { self.track } else { coded };
        // Widened to 128 bits, because the product of size, pixel aspect and two matrices can exceed 64 bits.
        let mut width = u128::from(width);
        let height = u128::from(height);
        if !is_given
            && let Some((horizontal, vertical)) = self.pixel
            && horizontal != 0
            && vertical != 0
        {
            width = width * u128::from(horizontal) / u128::from(vertical);
        }
        let (width, height) = self.matrix.bounds(width, height);
        let (width, height) = movie.bounds(width, height);
        (round(width), round(height))
    }
}

fn round(value: u128) -> u64 {
    u64::try_from((value + (1 << 15)) >> 16).unwrap_or(u64::MAX)
}
