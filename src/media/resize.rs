//! The size of a rendition whose URL asks for one.
//!
//! The suffix decides the right (contract media-30): Preview and Thumbnail names show at most the scale of the
//! open picture, `media.open_px` to the long side of the whole picture, however small the part that a crop
//! shows. Hires names are bought, so any size up to their own is served.

use crate::runtime::config::RenditionWidths;
use imaging::RenderStep;
use model::{Rect, ResizeSpec, Size};

/// The part of a picture that is shown, and the largest size in which the caller may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownPart {
    /// The size of the upright picture.
    pub(super) upright: Size,
    /// The part, in pixels of the upright picture.
    pub(super) region: Rect,
    /// The largest size, not larger than the part.
    pub(super) limit: Size,
}

impl ShownPart {
    /// A part of the picture `upright` that may be seen in its full size.
    pub(super) fn full_size(region: Rect, upright: Size) -> Self {
        Self { upright, region, limit: region.size() }
    }

    /// A part of the picture `upright` that may be seen at the scale at which the whole picture has a long
    /// side of `open_px`.
    pub(super) fn open(region: Rect, upright: Size, open_px: u32) -> Self {
        let long = upright.width.max(upright.height);
        let scaled = |side: u32| scale(side, open_px.min(long), long).min(side).max(1);
        let limit = Size { width: scaled(region.width), height: scaled(region.height) };
        Self { upright, region, limit }
    }

    /// Returns the steps that show the part in the size `resize`, and the size of the result.
    ///
    /// A size that is larger than the limit becomes as large as allowed, in the same ratio. With a ladder of
    /// `widths` the result has the next larger width of the ladder. A preset must have been replaced by its
    /// size.
    pub(super) fn steps(self, resize: &ResizeSpec, widths: &RenditionWidths) -> Vec<RenderStep> {
        match *resize {
            ResizeSpec::Fit { width, height } => {
                let size = self.fit(width, height);
                let rung = widths.rung(size.width);
                // From the part and not from the rounded size: every width up to a rung gives one rendition.
                let size = if rung > size.width { self.fit(Some(rung), None) } else { size };
                self.scaling(size).into_iter().collect()
            }
            ResizeSpec::Fill(size) => {
                let size = self.fill_on_ladder(within(size, self.limit), widths);
                let covering = self.covering(size);
                let cut = RenderStep::Cover { width: size.width, height: size.height };
                let is_cut = covering != size;
                self.scaling(covering).into_iter().chain(is_cut.then_some(cut)).collect()
            }
            ResizeSpec::Preset(_) => self.scaling(self.limit).into_iter().collect(),
        }
    }

    /// The size of the part in a box; a missing side does not limit.
    fn fit(self, width: Option<u32>, height: Option<u32>) -> Size {
        let Size { width: full_width, height: full_height } = self.region.size();
        let width = width.map_or(self.limit.width, |px| px.min(self.limit.width));
        let height = height.map_or(self.limit.height, |px| px.min(self.limit.height));
        // Compares the ratios of the box and of the part without division.
        let is_wide =
            u64::from(width) * u64::from(full_height) > u64::from(height) * u64::from(full_width);
        if is_wide {
            Size { width: scale(full_width, height, full_height).clamp(1, width), height }
        } else {
            Size { width, height: scale(full_height, width, full_width).clamp(1, height) }
        }
    }

    /// The size to which the part is scaled to cover `size`.
    fn covering(self, size: Size) -> Size {
        let full = self.region.size();
        let is_wide = u64::from(size.width) * u64::from(full.height)
            >= u64::from(size.height) * u64::from(full.width);
        if is_wide {
            let height = scale(full.height, size.width, full.width).max(size.height);
            Size { width: size.width, height: height.min(full.height) }
        } else {
            let width = scale(full.width, size.height, full.height).max(size.width);
            Size { width: width.min(full.width), height: size.height }
        }
    }

    /// `size` with the next larger width of the ladder, in the same ratio and within the limit.
    fn fill_on_ladder(self, size: Size, widths: &RenditionWidths) -> Size {
        let width = widths.rung(size.width);
        if width <= size.width {
            return size;
        }
        within(Size { width, height: scale(size.height, width, size.width).max(1) }, self.limit)
    }

    /// The step that shows the part as `size`; `None` for the whole picture in its own size.
    fn scaling(self, size: Size) -> Option<RenderStep> {
        let region = self.region;
        if size == region.size() {
            let is_part = size != self.upright;
            return is_part.then_some(RenderStep::Crop(region));
        }
        Some(RenderStep::Scale { region, size })
    }
}

/// Reduces `size`, in its own ratio, until it fits into `limit`.
fn within(size: Size, limit: Size) -> Size {
    if size.width <= limit.width && size.height <= limit.height {
        return size;
    }
    let is_wide = u64::from(size.width) * u64::from(limit.height)
        > u64::from(size.height) * u64::from(limit.width);
    if is_wide {
        let height = scale(size.height, limit.width, size.width);
        Size { width: limit.width, height: height.clamp(1, limit.height) }
    } else {
        let width = scale(size.width, limit.height, size.height);
        Size { width: width.clamp(1, limit.width), height: limit.height }
    }
}

/// `side * numerator / denominator`, rounded to the nearest.
fn scale(side: u32, numerator: u32, denominator: u32) -> u32 {
    let denominator = u64::from(denominator.max(1));
    let scaled = (u64::from(side) * u64::from(numerator) + denominator / 2) / denominator;
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use imaging::output_size;
    use proptest::prelude::*;

    use super::*;

    const UPRIGHT: Size = Size { width: 6000, height: 4000 };

    fn rect(x: u32, y: u32, width: u32, height: u32) -> Rect {
        Rect { x, y, width, height }
    }

    fn size_of(part: ShownPart, resize: &ResizeSpec, widths: &RenditionWidths) -> (u32, u32) {
        let size = output_size(UPRIGHT, &part.steps(resize, widths)).expect("valid steps");
        (size.width, size.height)
    }

    fn check(part: ShownPart, resize: &ResizeSpec, expected: (u32, u32)) {
        let found = size_of(part, resize, &RenditionWidths::Any);
        assert_eq!(found, expected, "{resize} of {part:?}");
    }

    fn fit(width: u32, height: u32) -> ResizeSpec {
        let side = |px| Some(px).filter(|px| *px > 0);
        ResizeSpec::Fit { width: side(width), height: side(height) }
    }

    #[test]
    fn a_fit_keeps_the_ratio_and_never_enlarges() {
        let whole = ShownPart::full_size(rect(0, 0, 6000, 4000), UPRIGHT);
        check(whole, &fit(2000, 0), (2000, 1333));
        check(whole, &fit(0, 1000), (1500, 1000));
        check(whole, &fit(600, 600), (600, 400));
        check(whole, &fit(6001, 0), (6000, 4000));
        check(whole, &fit(u32::MAX, 4000), (6000, 4000));
        check(whole, &fit(1, 1), (1, 1));
    }

    #[test]
    fn a_part_in_its_own_size_is_cut_out() {
        let any = &RenditionWidths::Any;
        for region in [rect(0, 0, 600, 400), rect(10, 0, 600, 400), rect(0, 0, 6000, 400)] {
            let part = ShownPart::full_size(region, UPRIGHT);
            assert_eq!(part.steps(&fit(9000, 0), any), [RenderStep::Crop(region)]);
        }
        let whole = ShownPart::full_size(rect(0, 0, 6000, 4000), UPRIGHT);
        assert!(whole.steps(&fit(9000, 0), any).is_empty());
    }

    #[test]
    fn a_fill_has_the_ratio_that_was_asked_for() {
        let whole = ShownPart::full_size(rect(0, 0, 6000, 4000), UPRIGHT);
        let fill = |width, height| ResizeSpec::Fill(Size { width, height });
        check(whole, &fill(640, 360), (640, 360));
        check(whole, &fill(100, 4000), (100, 4000));
        check(whole, &fill(8000, 8000), (4000, 4000));
        check(whole, &fill(12_000, 4000), (6000, 2000));
    }

    #[test]
    fn an_open_part_shows_no_more_than_the_scale_of_the_open_picture() {
        let open = |x, y, width, height| ShownPart::open(rect(x, y, width, height), UPRIGHT, 1024);
        check(open(0, 0, 6000, 4000), &fit(5000, 0), (1024, 683));
        check(open(1000, 1000, 600, 400), &fit(600, 0), (102, 68));
        check(open(1000, 1000, 3, 2), &fit(600, 0), (1, 1));
        let fill = ResizeSpec::Fill(Size { width: 2000, height: 2000 });
        check(open(0, 0, 6000, 4000), &fill, (683, 683));
    }

    #[test]
    fn a_width_off_the_ladder_becomes_the_next_one() {
        let ladder = RenditionWidths::Ladder(vec![160, 320, 640]);
        let open = ShownPart::open(rect(0, 0, 6000, 4000), UPRIGHT, 1024);
        assert_eq!(size_of(open, &fit(161, 0), &ladder), (320, 213));
        for width in 321..=640 {
            assert_eq!(size_of(open, &fit(width, 0), &ladder), (640, 427));
        }
        assert_eq!(size_of(open, &fit(320, 0), &ladder), (320, 213));
        assert_eq!(size_of(open, &fit(641, 0), &ladder), (641, 427), "beyond the ladder");
        let fill = ResizeSpec::Fill(Size { width: 600, height: 300 });
        assert_eq!(size_of(open, &fill, &ladder), (640, 320));
    }

    fn any_part() -> impl Strategy<Value = ShownPart> {
        let side = |full: u32| (0..full).prop_flat_map(move |at| (Just(at), 1..=full - at));
        (side(UPRIGHT.width), side(UPRIGHT.height), 1..8000_u32).prop_map(
            |((x, width), (y, height), open_px)| {
                ShownPart::open(rect(x, y, width, height), UPRIGHT, open_px)
            },
        )
    }

    proptest! {
        #[test]
        fn no_size_exceeds_the_limit(
            part in any_part(),
            width in 1..9000_u32,
            height in 1..9000_u32,
            kind in 0..4_u8,
        ) {
            let resize = match kind {
                0 => fit(width, 0),
                1 => fit(0, height),
                2 => fit(width, height),
                _ => ResizeSpec::Fill(Size { width, height }),
            };
            let ladder = RenditionWidths::Ladder(vec![160, 320, 640, 1024, 2048]);
            for widths in [RenditionWidths::Any, ladder] {
                let steps = part.steps(&resize, &widths);
                let size = output_size(UPRIGHT, &steps);
                let size = size.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert!(size.width <= part.limit.width && size.height <= part.limit.height);
            }
        }
    }
}
