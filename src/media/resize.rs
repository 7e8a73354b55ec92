//! The size of a rendition whose URL specifies a size.
//!
//! The suffix decides the right (contract media-30): Preview and Thumbnail names show at most the *open picture*,
//! which is the whole picture with a long side of `media.open_px`. A part of it is cut out of the open picture
//! itself. If it were cut out of the original and reduced as much, it would show different averages of the same
//! pixels, and a few narrow, overlapping parts would reveal the pixels between them. Hires names are bought, so
//! any size up to their own is served.

use crate::runtime::config::RenditionWidths;
use imaging::RenderStep;
use model::{CropError, Rect, ResizeSpec, Size, scale_crop};

/// The visible part of a picture, and the largest size in which the caller may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownPart {
    /// The long side to which the original is reduced first; `None` for a part of the original.
    open_px: Option<u32>,
    /// The size of the upright picture after this reduction.
    picture: Size,
    /// The part, in pixels of that picture.
    region: Rect,
    /// The largest size, not larger than the part.
    limit: Size,
}

impl ShownPart {
    /// Creates a part of the picture `upright` that may be seen in its full size.
    pub(super) fn full_size(region: Rect, upright: Size) -> Self {
        Self { open_px: None, picture: upright, region, limit: region.size() }
    }

    /// Creates the part `crop`, in pixels of a rendition of the size `named`, of the picture `upright`. The caller
    /// may see no more than the open picture.
    ///
    /// The whole picture is scaled once, from the original, to at most the size of the open picture. Every other
    /// part is computed from the pixels of the open picture alone, so it cannot show more than they do, in any
    /// ratio of the sizes and down to a part of one pixel.
    ///
    /// Fails with [`CropError`] for a crop that exceeds the rendition.
    pub(super) fn open(
        crop: Rect,
        named: Size,
        upright: Size,
        open_px: u32,
    ) -> Result<Self, CropError> {
        let open = upright.fit_within(open_px);
        let region = scale_crop(crop, named, open)?;
        if crop == Rect::new(0, 0, named) {
            let whole = Rect::new(0, 0, upright);
            return Ok(Self { limit: open, ..Self::full_size(whole, upright) });
        }
        let open_px = (open != upright).then_some(open_px);
        Ok(Self { open_px, ..Self::full_size(region, open) })
    }

    /// Returns the steps that show the part in the size `resize`.
    ///
    /// A size above the limit is reduced to the limit, in the same ratio. With a ladder of `widths`, the result
    /// has the next larger width of the ladder. The caller replaces a preset by its size first.
    pub(super) fn steps(self, resize: &ResizeSpec, widths: &RenditionWidths) -> Vec<RenderStep> {
        let reduction = self.open_px.map(|long_px| RenderStep::Fit { long_px });
        reduction.into_iter().chain(self.part_steps(resize, widths)).collect()
    }

    /// Returns the steps that show the part. An open picture has already been reduced.
    fn part_steps(self, resize: &ResizeSpec, widths: &RenditionWidths) -> Vec<RenderStep> {
        match *resize {
            ResizeSpec::Fit { width, height } => {
                let size = self.fit(width, height);
                let rung = widths.rung(size.width);
                // Computed from the part, not from the rounded size, so that every width up to a rung gives the
                // same rendition.
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

    /// Returns the size of the part in a box. A missing side sets no limit.
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

    /// Returns the size to which the part is scaled to cover `size`, both within the limit.
    fn covering(self, size: Size) -> Size {
        let full = self.region.size();
        let limit = self.limit;
        let is_wide = u64::from(size.width) * u64::from(full.height)
            >= u64::from(size.height) * u64::from(full.width);
        if is_wide {
            let height = scale(full.height, size.width, full.width).max(size.height);
            Size { width: size.width, height: height.min(limit.height) }
        } else {
            let width = scale(full.width, size.height, full.height).max(size.width);
            Size { width: width.min(limit.width), height: size.height }
        }
    }

    /// Returns `size` with the next larger width of the ladder, in the same ratio and within the limit.
    fn fill_on_ladder(self, size: Size, widths: &RenditionWidths) -> Size {
        let width = widths.rung(size.width);
        if width <= size.width {
            return size;
        }
        within(Size { width, height: scale(size.height, width, size.width).max(1) }, self.limit)
    }

    /// Returns the step that shows the part as `size`; `None` for the whole picture in its own size.
    fn scaling(self, size: Size) -> Option<RenderStep> {
        let region = self.region;
        if size == region.size() {
            let is_part = size != self.picture;
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

/// Returns `side * numerator / denominator`, rounded to the nearest.
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

    /// A part of [`UPRIGHT`], in its own pixels.
    fn open(region: Rect, open_px: u32) -> ShownPart {
        ShownPart::open(region, UPRIGHT, UPRIGHT, open_px).expect("a part of the picture")
    }

    #[test]
    fn an_open_part_shows_no_more_than_the_scale_of_the_open_picture() {
        let whole = rect(0, 0, 6000, 4000);
        check(open(whole, 1024), &fit(5000, 0), (1024, 683));
        check(open(rect(1000, 1000, 600, 400), 1024), &fit(600, 0), (102, 68));
        check(open(rect(1000, 1000, 3, 2), 1024), &fit(600, 0), (1, 1));
        let fill = ResizeSpec::Fill(Size { width: 2000, height: 2000 });
        check(open(whole, 1024), &fill, (683, 683));
        assert!(ShownPart::open(rect(1, 0, 6000, 1), UPRIGHT, UPRIGHT, 1024).is_err());
    }

    #[test]
    fn a_part_is_cut_out_of_the_open_picture() {
        let any = &RenditionWidths::Any;
        let (upright, named) = (Size::new(2000, 1334), Size::new(1024, 683));
        let part = |crop: Rect| ShownPart::open(crop, named, upright, 1024).expect("inside");
        let reduced = RenderStep::Fit { long_px: 1024 };
        let region = rect(10, 0, 1, 683);
        let fill = ResizeSpec::Fill(Size::new(1, 682));
        let cut = RenderStep::Cover { width: 1, height: 682 };
        let expected = [reduced.clone(), RenderStep::Crop(region), cut];
        assert_eq!(part(region).steps(&fill, any), expected);
        let expected = [reduced.clone(), RenderStep::Crop(region)];
        assert_eq!(part(region).steps(&fit(5000, 0), any), expected);
        let region = rect(40, 3, 800, 450);
        let scaled = RenderStep::Scale { region, size: Size::new(640, 360) };
        assert_eq!(part(region).steps(&fit(640, 0), any), [reduced, scaled]);
        // The whole picture is scaled once, and one that is not larger than the open picture is that.
        let whole =
            RenderStep::Scale { region: rect(0, 0, 2000, 1334), size: Size::new(640, 427) };
        assert_eq!(part(rect(0, 0, 1024, 683)).steps(&fit(640, 0), any), [whole]);
        let small = ShownPart::open(region, named, named, 1024).expect("inside");
        assert_eq!(small.steps(&fit(9000, 0), any), [RenderStep::Crop(region)]);
    }

    #[test]
    fn a_width_off_the_ladder_becomes_the_next_one() {
        let ladder = RenditionWidths::Ladder(vec![160, 320, 640]);
        let open = open(rect(0, 0, 6000, 4000), 1024);
        assert_eq!(size_of(open, &fit(161, 0), &ladder), (320, 213));
        for width in 321..=640 {
            assert_eq!(size_of(open, &fit(width, 0), &ladder), (640, 427));
        }
        assert_eq!(size_of(open, &fit(320, 0), &ladder), (320, 213));
        assert_eq!(size_of(open, &fit(641, 0), &ladder), (641, 427), "beyond the ladder");
        let fill = ResizeSpec::Fill(Size { width: 600, height: 300 });
        assert_eq!(size_of(open, &fill, &ladder), (640, 320));
    }

    /// A picture of any ratio, the long side of the open picture, and a part of a rendition.
    fn any_open_part() -> impl Strategy<Value = (Size, u32, Rect, Size)> {
        let side = || prop_oneof![1..8_u32, 1..300_u32, 1..9000_u32];
        (side(), side(), side(), side()).prop_flat_map(|(width, height, named_px, open_px)| {
            let upright = Size { width, height };
            let named = upright.fit_within(named_px);
            let span = |full: u32| {
                let length = prop_oneof![Just(1), Just(full), 1..=full];
                length.prop_flat_map(move |length| (0..=full - length, Just(length)))
            };
            (span(named.width), span(named.height)).prop_map(move |((x, width), (y, height))| {
                (upright, open_px, rect(x, y, width, height), named)
            })
        })
    }

    proptest! {
        #[test]
        fn no_size_exceeds_the_limit(
            (upright, open_px, crop, named) in any_open_part(),
            width in prop_oneof![1..9_u32, 1..9000_u32],
            height in prop_oneof![1..9_u32, 1..9000_u32],
            kind in 0..4_u8,
        ) {
            let fail = |error: &dyn std::fmt::Display| TestCaseError::fail(error.to_string());
            let open = upright.fit_within(open_px);
            let part = ShownPart::open(crop, named, upright, open_px).map_err(|e| fail(&e))?;
            let most = scale_crop(crop, named, open).map_err(|e| fail(&e))?.size();
            let resize = match kind {
                0 => fit(width, 0),
                1 => fit(0, height),
                2 => fit(width, height),
                _ => ResizeSpec::Fill(Size { width, height }),
            };
            let ladder = RenditionWidths::Ladder(vec![160, 320, 640, 1024, 2048]);
            for widths in [RenditionWidths::Any, ladder] {
                let steps = part.steps(&resize, &widths);
                let size = output_size(upright, &steps).map_err(|e| fail(&e))?;
                prop_assert!(size.width <= most.width && size.height <= most.height, "{size}");
                // Every picture behind the first step is made from pixels of the open picture alone, or it
                // is the whole picture in no larger a size.
                let first = output_size(upright, &steps[..steps.len().min(1)]);
                let first = first.map_err(|e| fail(&e))?;
                let is_open = match steps.first() {
                    Some(RenderStep::Fit { long_px }) => *long_px == open_px,
                    Some(RenderStep::Scale { region, .. }) => *region == Rect::new(0, 0, upright),
                    _ => false,
                };
                let is_within = first.width <= open.width && first.height <= open.height;
                prop_assert!(upright == open || is_open && is_within, "{steps:?}");
            }
        }
    }
}
