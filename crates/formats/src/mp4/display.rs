//! The size at which a video is shown: pixel aspect, rotation, scaling.

use crate::mp4::boxes::BoxFields;
use crate::mp4::error::VideoError;

/// The turning and scaling part of a transformation matrix: `x' = a·x + c·y`, `y' = b·x + d·y`, in
/// units of 1/65536. Its shift moves the picture and does not change its size.
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

    /// Takes the nine numbers of a matrix. One that makes every picture empty is what careless
    /// writers leave, and means none.
    pub(super) fn parse(fields: &mut BoxFields<'_>) -> Result<Self, VideoError> {
        let (a, b) = (fields.i32()?, fields.i32()?);
        fields.skip(4)?;
        let (c, d) = (fields.i32()?, fields.i32()?);
        fields.skip(4 + 12)?;
        let found = Self { a, b, c, d };
        Ok(if (a, b, c, d) == (0, 0, 0, 0) { Self::IDENTITY } else { found })
    }

    /// Width and height of the upright box around a transformed picture.
    fn bounds(self, width: u128, height: u128) -> (u128, u128) {
        let [a, b, c, d] = [self.a, self.b, self.c, self.d].map(|x| u128::from(x.unsigned_abs()));
        ((a * width + c * height) >> 16, (b * width + d * height) >> 16)
    }
}

/// What decides on the size of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VideoGeometry {
    /// Width and height of the track header, in units of 1/65536 pixel; 0 when left out.
    pub(super) track: (u32, u32),
    /// Width and height of the coded pictures in pixels.
    pub(super) coded: (u16, u16),
    /// Width to height of a pixel.
    pub(super) pixel: Option<(u32, u32)>,
    /// The track's matrix.
    pub(super) matrix: DisplayMatrix,
}

impl VideoGeometry {
    /// Width and height in pixels as shown, rounded to the nearest; `movie` is the movie's matrix.
    ///
    /// The track header's size counts, as the standard says. Only where it is left out or merely
    /// repeats the coded size does the pixel aspect count: some writers do not apply it, and
    /// browsers then go by the aspect.
    pub(super) fn display_size(self, movie: DisplayMatrix) -> (u64, u64) {
        let coded = (u32::from(self.coded.0) << 16, u32::from(self.coded.1) << 16);
        let is_given = self.track.0 != 0 && self.track.1 != 0 && self.track != coded;
        let (width, height) = if is_given { self.track } else { coded };
        let (mut width, height) = (u128::from(width), u128::from(height));
        if let (false, Some((horizontal, vertical))) = (is_given, self.pixel)
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
