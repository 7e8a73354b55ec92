#![doc = include_str!("../README.md")]

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The size of a picture in pixels.
///
/// Either side may be zero: an empty picture contains no crop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Size {
    /// Creates a size of `width` by `height` pixels.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Returns the number of pixels, width times height.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns the size of the picture after a quarter turn.
    pub fn transposed(self) -> Self {
        Self::new(self.height, self.width)
    }

    /// Scales the size down until its long side is at most `long_side_px`, keeping the aspect ratio.
    ///
    /// A size is never enlarged. Each side is rounded to the nearest pixel, halves up, and is at least
    /// 1 unless it was 0.
    pub fn fit_within(self, long_side_px: u32) -> Self {
        let long = self.width.max(self.height);
        if long <= long_side_px {
            return self;
        }
        let width = scale_side(self.width, long_side_px, long);
        let height = scale_side(self.height, long_side_px, long);
        Self::new(width, height)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// A rectangle in pixels; the origin is the upper left corner.
///
/// `x + width` may exceed `u32`: [`Rect::right`] and [`Rect::bottom`] are `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rect {
    /// Pixels from the left edge of the picture.
    pub x: u32,
    /// Pixels from the upper edge of the picture.
    pub y: u32,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Rect {
    /// Creates a rectangle of `size` whose upper left corner is at `x`, `y`.
    pub const fn new(x: u32, y: u32, size: Size) -> Self {
        Self { x, y, width: size.width, height: size.height }
    }

    /// Returns the width and height of the rectangle.
    pub fn size(self) -> Size {
        Size::new(self.width, self.height)
    }

    /// Returns the first column to the right of the rectangle, `x + width`.
    pub fn right(self) -> u64 {
        u64::from(self.x) + u64::from(self.width)
    }

    /// Returns the first row below the rectangle, `y + height`.
    pub fn bottom(self) -> u64 {
        u64::from(self.y) + u64::from(self.height)
    }

    /// Returns whether the rectangle contains no pixels.
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Returns whether the whole rectangle is inside an image of size `image`.
    pub fn is_inside(self, image: Size) -> bool {
        self.right() <= u64::from(image.width) && self.bottom() <= u64::from(image.height)
    }

    /// Returns the rectangle if it can be cut from an image of size `image`.
    ///
    /// # Errors
    ///
    /// [`CropError::Empty`] if the rectangle contains no pixels, [`CropError::Outside`] if it extends beyond the
    /// image.
    pub fn checked_in(self, image: Size) -> Result<Self, CropError> {
        if self.is_empty() {
            Err(CropError::Empty { crop: self, image })
        } else if self.is_inside(image) {
            Ok(self)
        } else {
            Err(CropError::Outside { crop: self, image })
        }
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}+{}+{}", self.width, self.height, self.x, self.y)
    }
}

/// The reason why a crop cannot be cut from an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CropError {
    /// Part of the crop is beyond an edge of the image.
    #[error("crop {crop} leaves the {image} image")]
    Outside {
        /// The crop, in pixels of the image.
        crop: Rect,
        /// The size of the image.
        image: Size,
    },
    /// The crop contains no pixels.
    #[error("crop {crop} lies outside the {image} image")]
    Empty {
        /// The crop, in pixels of the image.
        crop: Rect,
        /// The size of the image.
        image: Size,
    },
}

/// Converts a crop in pixels of one size of a picture to pixels of a different size.
///
/// `crop` is in pixels of `hires`, the result in pixels of `target`. Both sizes show the picture in the same
/// orientation. Per axis with `s = target / hires`: left = round(x·s), right = round((x+w)·s), halves up. The
/// result is at least 1 px wide and never outside `target`. The arithmetic is exact, so a crop of the whole
/// picture gives the whole target.
///
/// Fails with [`CropError`] if `crop` is empty or extends beyond `hires`, or if `target` is empty.
pub fn scale_crop(crop: Rect, hires: Size, target: Size) -> Result<Rect, CropError> {
    let crop = crop.checked_in(hires)?;
    // `scale_span` leaves at least one pixel, which an empty target does not have.
    if target.width == 0 || target.height == 0 {
        return Err(CropError::Empty { crop, image: target });
    }
    let (x, width) = scale_span(crop.x, crop.width, hires.width, target.width);
    let (y, height) = scale_span(crop.y, crop.height, hires.height, target.height);
    Ok(Rect { x, y, width, height })
}

/// Scales one axis of a crop, given and returned as start and length.
///
/// The caller guarantees `start + length <= from`, `length > 0` and `to > 0`.
fn scale_span(start: u32, length: u32, from: u32, to: u32) -> (u32, u32) {
    // Both edges of a narrow crop can round to the same pixel; the clamps leave a length of one pixel.
    let left = scale_px(start, to, from).min(to - 1);
    let right = scale_px(start.saturating_add(length), to, from).clamp(left + 1, to);
    (left, right - left)
}

/// Scales a side of a picture by `to / from`, as [`scale_px`] does.
fn scale_side(px: u32, to: u32, from: u32) -> u32 {
    // The short side of a very long picture must not vanish; a side that was 0 stays 0.
    scale_px(px, to, from).max(1).min(px)
}

/// Computes `px * to / from`, rounded to the nearest whole number, halves up.
///
/// The caller guarantees `px <= from` and `from > 0`, so the result is at most `to`.
fn scale_px(px: u32, to: u32, from: u32) -> u32 {
    // 2 * px * to needs 65 bits.
    let px = u128::from(px);
    let from = u128::from(from);
    let nearest = (2 * px * u128::from(to) + from) / (2 * from);
    u32::try_from(nearest).unwrap_or(to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IMAGE: Size = Size::new(800, 600);

    fn rect(width: u32, height: u32, x: u32, y: u32) -> Rect {
        Rect { x, y, width, height }
    }

    #[test]
    fn text_is_width_by_height_and_place() {
        assert_eq!(IMAGE.to_string(), "800x600");
        assert_eq!(rect(800, 600, 10, 20).to_string(), "800x600+10+20");
    }

    #[test]
    fn errors_name_the_crop_and_the_image() {
        let outside = rect(900, 700, 10, 0).checked_in(IMAGE).unwrap_err();
        assert_eq!(outside.to_string(), "crop 900x700+10+0 leaves the 800x600 image");
        let empty = rect(0, 600, 800, 0).checked_in(IMAGE).unwrap_err();
        assert_eq!(empty.to_string(), "crop 0x600+800+0 lies outside the 800x600 image");
    }

    #[test]
    fn a_rectangle_at_the_edge_is_inside_and_one_pixel_more_is_not() {
        assert!(rect(800, 600, 0, 0).is_inside(IMAGE));
        assert!(rect(1, 1, 799, 599).is_inside(IMAGE));
        assert!(!rect(1, 1, 800, 599).is_inside(IMAGE));
        assert!(!rect(1, 1, 799, 600).is_inside(IMAGE));
        assert!(!rect(801, 600, 0, 0).is_inside(IMAGE));
    }

    #[test]
    fn numbers_at_the_limits_of_integers_do_not_overflow() {
        for limit in [2_147_483_647, 2_147_483_648, u32::MAX] {
            assert!(!rect(limit, 1, limit, 0).is_inside(IMAGE));
            assert!(!rect(1, limit, 0, limit).is_inside(IMAGE));
        }
        let widest = Size::new(u32::MAX, u32::MAX);
        assert_eq!(widest.pixels(), u64::from(u32::MAX) * u64::from(u32::MAX));
        assert!(rect(u32::MAX, u32::MAX, 0, 0).is_inside(widest));
        assert!(!rect(u32::MAX, u32::MAX, 1, 0).is_inside(widest));
    }

    #[test]
    fn fitting_keeps_proportions_and_never_enlarges() {
        let check = |size: (u32, u32), long: u32, expected: (u32, u32)| {
            let fitted = Size::new(size.0, size.1).fit_within(long);
            assert_eq!(fitted, Size::new(expected.0, expected.1), "{size:?} in {long}");
        };
        check((6000, 4000), 1024, (1024, 683));
        check((4000, 6000), 1024, (683, 1024));
        check((800, 600), 1024, (800, 600));
        check((1024, 10), 1024, (1024, 10));
        check((10_000, 3), 256, (256, 1));
        check((1000, 1500), 1, (1, 1));
        // 3·2/4 is one and a half: upwards.
        check((4, 3), 2, (2, 2));
        check((0, 0), 10, (0, 0));
        check((u32::MAX, u32::MAX), 256, (256, 256));
    }

    #[test]
    fn a_crop_scales_edge_by_edge() {
        let check = |crop: Rect, hires: Size, target: Size, expected: Rect| {
            assert_eq!(scale_crop(crop, hires, target), Ok(expected));
        };
        let (hires, preview) = (Size::new(6000, 4000), Size::new(1024, 683));
        check(rect(6000, 4000, 0, 0), hires, preview, rect(1024, 683, 0, 0));
        // left 522·1024/6000 = 89.09, right 2786·1024/6000 = 475.48;
        // top 789·683/4000 = 134.72, bottom 2062·683/4000 = 352.09.
        check(rect(2264, 1273, 522, 789), hires, preview, rect(386, 217, 89, 135));
        check(rect(1, 1, 5999, 3999), hires, preview, rect(1, 1, 1023, 682));
        check(rect(1, 1, 0, 0), hires, preview, rect(1, 1, 0, 0));
        check(rect(2, 2, 1, 1), Size::new(4, 4), Size::new(8, 8), rect(4, 4, 2, 2));
    }

    #[test]
    fn a_crop_that_cannot_be_cut_does_not_scale() {
        let target = Size::new(80, 60);
        let outside = rect(800, 600, 1, 0);
        let expected = CropError::Outside { crop: outside, image: IMAGE };
        assert_eq!(scale_crop(outside, IMAGE, target), Err(expected));
        let empty = rect(0, 1, 0, 0);
        let expected = CropError::Empty { crop: empty, image: IMAGE };
        assert_eq!(scale_crop(empty, IMAGE, target), Err(expected));
        let crop = rect(8, 6, 0, 0);
        let expected = CropError::Empty { crop, image: Size::new(0, 60) };
        assert_eq!(scale_crop(crop, IMAGE, Size::new(0, 60)), Err(expected));
    }

    fn side() -> impl Strategy<Value = u32> {
        prop_oneof![1..200_u32, 1..20_000_u32, 1..=u32::MAX]
    }

    proptest! {
        #[test]
        fn a_scaled_crop_lies_in_its_rendition(
            (hires, crop) in (side(), side()).prop_flat_map(|(w, h)| {
                (0..w, 0..h).prop_flat_map(move |(x, y)| {
                    (1..=w - x, 1..=h - y).prop_map(move |(width, height)| {
                        (Size::new(w, h), Rect { x, y, width, height })
                    })
                })
            }),
            target in (side(), side()).prop_map(|(w, h)| Size::new(w, h)),
        ) {
            let scaled = scale_crop(crop, hires, target).unwrap();
            prop_assert!(!scaled.is_empty() && scaled.is_inside(target));
            prop_assert_eq!(scale_crop(crop, hires, hires), Ok(crop));
        }

        #[test]
        fn a_fitted_size_never_exceeds_either_bound(w in side(), h in side(), long in side()) {
            let (size, fitted) = (Size::new(w, h), Size::new(w, h).fit_within(long));
            prop_assert!(fitted.width <= w.min(long) && fitted.height <= h.min(long));
            prop_assert!(fitted.width >= 1 && fitted.height >= 1);
            prop_assert_eq!(size.transposed().fit_within(long), fitted.transposed());
        }
    }
}
