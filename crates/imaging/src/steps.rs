//! Describes the steps of a render as data, which can be printed, hashed and tested without pixels.

use geometry::{CropError, Rect, Size, scale_crop};
use serde::Serialize;
use thiserror::Error;

/// One step from the upright original to a rendition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum RenderStep {
    /// Scales the picture down until its long side has `long_px` pixels; never enlarges.
    Fit {
        /// Maximum long side in pixels; 0 is treated as 1.
        long_px: u32,
    },
    /// Scales the picture down until it just covers `width` x `height` pixels and cuts out that
    /// size around the centre of interest; never enlarges, so a small picture stays smaller.
    Cover {
        /// Width in pixels; 0 is treated as 1.
        width: u32,
        /// Height in pixels; 0 is treated as 1.
        height: u32,
    },
    /// Cuts out a rectangle, in pixels of the upright picture after the previous step.
    Crop(Rect),
    /// Cuts out a rectangle and scales it down, in one resampling.
    Scale {
        /// The rectangle, in pixels of the upright picture after the previous step.
        region: Rect,
        /// The size of the result in pixels, at most the size of the rectangle.
        size: Size,
    },
    /// Blends in the [`Watermark`](crate::Watermark) that is passed to the render.
    Watermark,
}

/// A step that does not fit the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// The rectangle is empty or extends beyond the picture.
    #[error(transparent)]
    Crop(#[from] CropError),
    /// A rectangle would be enlarged, or scaled to nothing.
    #[error("a {} part of the image cannot be scaled down to {size}", region.size())]
    Enlarged {
        /// The rectangle that is scaled.
        region: Rect,
        /// The size to which the rectangle is scaled.
        size: Size,
    },
}

/// Computes the exact size of the result of `render` for a picture of `upright` pixels.
///
/// Fails with the same [`StepError`] as `render`.
pub fn output_size(upright: Size, steps: &[RenderStep]) -> Result<Size, StepError> {
    steps.iter().try_fold(upright, |size, step| match step {
        RenderStep::Fit { long_px } => Ok(fit(size, *long_px)),
        RenderStep::Cover { width, height } => Ok(cover(size, *width, *height).1),
        RenderStep::Crop(crop) => Ok(crop.checked_in(size)?.size()),
        RenderStep::Scale { region, size: to } => check_scale(*region, *to, size),
        RenderStep::Watermark => Ok(size),
    })
}

/// Computes the part of a picture of `upright` pixels that is visible after `steps`, in pixels of the picture,
/// each edge rounded to the nearest pixel; `None` if the part is unknown.
///
/// `windows` is [`RenderOutput::windows`](crate::RenderOutput::windows). The part is unknown if a
/// [`RenderStep::Cover`] has no window there, or if a step or a window does not fit the picture.
pub fn shown_region(upright: Size, steps: &[RenderStep], windows: &[Rect]) -> Option<Rect> {
    let mut shown = Rect::new(0, 0, upright);
    let mut size = upright;
    let mut windows = windows.iter();
    for step in steps {
        match step {
            RenderStep::Watermark => {}
            RenderStep::Fit { long_px } => size = fit(size, *long_px),
            RenderStep::Cover { width, height } => {
                // The window depends on the content, so a guess could report a part that was cut off.
                let window = windows.next()?;
                let (scaled, cut) = cover(size, *width, *height);
                shown = part_of(shown, scaled, *window)?;
                size = cut;
            }
            RenderStep::Crop(crop) => {
                shown = part_of(shown, size, *crop)?;
                size = crop.size();
            }
            RenderStep::Scale { region, size: to } => {
                shown = part_of(shown, size, *region)?;
                size = *to;
            }
        }
    }
    Some(shown)
}

/// Returns the part of `region` that `crop` shows. `crop` is in pixels of a picture of `region` with the size
/// `size`; `None` if `crop` extends beyond that picture.
fn part_of(region: Rect, size: Size, crop: Rect) -> Option<Rect> {
    let part = scale_crop(crop, size, region.size()).ok()?;
    Some(Rect { x: region.x + part.x, y: region.y + part.y, ..part })
}

/// Computes the size of the whole picture of `size` at the scale to which `step` scales the picture or a part of
/// it; `None` if the step does not scale.
///
/// A copy of the picture with at least this size suffices for the step.
pub fn scaled_size(size: Size, step: &RenderStep) -> Option<Size> {
    match step {
        RenderStep::Fit { long_px } => Some(fit(size, *long_px)),
        RenderStep::Cover { width, height } => Some(cover(size, *width, *height).0),
        RenderStep::Scale { region, size: to } => {
            let width = whole_edge(size.width, to.width, region.width);
            let height = whole_edge(size.height, to.height, region.height);
            Some(Size {
                width: width.clamp(1, size.width.max(1)),
                height: height.clamp(1, size.height.max(1)),
            })
        }
        RenderStep::Crop(_) | RenderStep::Watermark => None,
    }
}

/// Computes an edge of the whole picture at the scale at which `from` of its `edge` pixels are scaled to `to`.
pub(crate) fn whole_edge(edge: u32, to: u32, from: u32) -> u32 {
    let whole = (u64::from(edge) * u64::from(to)).div_ceil(u64::from(from.max(1)));
    u32::try_from(whole).unwrap_or(u32::MAX)
}

/// Returns `to` if `region` is inside a picture of `image` pixels and can be scaled down to `to`.
pub(crate) fn check_scale(region: Rect, to: Size, image: Size) -> Result<Size, StepError> {
    let from = region.checked_in(image)?;
    if (1..=from.width).contains(&to.width) && (1..=from.height).contains(&to.height) {
        Ok(to)
    } else {
        Err(StepError::Enlarged { region, size: to })
    }
}

/// Computes `edge * numerator / denominator`, rounded to the nearest integer, halves up, at least 1.
fn scaled(edge: u32, numerator: u32, denominator: u32) -> u32 {
    let denominator = u64::from(denominator.max(1));
    let product = u64::from(edge) * u64::from(numerator);
    u32::try_from((product + denominator / 2) / denominator).unwrap_or(u32::MAX).max(1)
}

/// Computes the size of a picture whose long side is reduced to at most `long_px`.
pub(crate) fn fit(size: Size, long_px: u32) -> Size {
    size.fit_within(long_px.max(1))
}

/// Computes the size to which a picture is scaled to cover `width` x `height`, and the size that is then cut out.
pub(crate) fn cover(size: Size, width: u32, height: u32) -> (Size, Size) {
    let width = width.max(1);
    let height = height.max(1);
    let cut = Size { width: width.min(size.width), height: height.min(size.height) };
    // Covering would enlarge the picture or not change its size, so it is only cut.
    if width >= size.width || height >= size.height {
        return (size, cut);
    }
    // The side that needs the smaller reduction determines the scale, so that the other side is covered as well.
    let wide = u64::from(width) * u64::from(size.height);
    let tall = u64::from(height) * u64::from(size.width);
    // Rounding must not make the scaled picture smaller than the cut.
    let scaled = if wide >= tall {
        Size { width, height: scaled(size.height, width, size.width).max(height) }
    } else {
        Size { width: scaled(size.width, height, size.height).max(width), height }
    };
    (scaled, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    fn check(from: Size, steps: &[RenderStep], expected: Size) {
        assert_eq!(output_size(from, steps), Ok(expected), "{steps:?} of {from:?}");
    }

    #[test]
    fn fit_rounds_the_short_side_to_the_nearest() {
        let fit = [RenderStep::Fit { long_px: 1024 }];
        check(size(6000, 4000), &fit, size(1024, 683));
        check(size(4000, 6000), &fit, size(683, 1024));
        check(size(1024, 1024), &fit, size(1024, 1024));
        check(size(65_500, 1), &fit, size(1024, 1));
        check(size(1025, 1025), &fit, size(1024, 1024));
    }

    #[test]
    fn nothing_is_enlarged() {
        check(size(3, 2), &[RenderStep::Fit { long_px: 1024 }], size(3, 2));
        check(size(3, 2), &[RenderStep::Cover { width: 256, height: 256 }], size(3, 2));
        check(size(300, 200), &[RenderStep::Cover { width: 256, height: 256 }], size(256, 200));
    }

    #[test]
    fn cover_gives_the_requested_size() {
        let steps = [RenderStep::Cover { width: 256, height: 256 }];
        check(size(6000, 4000), &steps, size(256, 256));
        check(size(257, 9000), &steps, size(256, 256));
        assert_eq!(cover(size(6000, 4000), 256, 256).0, size(384, 256));
    }

    #[test]
    fn a_crop_is_measured_at_its_step() {
        let crop = Rect { x: 1000, y: 600, width: 24, height: 83 };
        check(
            size(6000, 4000),
            &[RenderStep::Fit { long_px: 1024 }, RenderStep::Crop(crop)],
            size(24, 83),
        );
        let crop = Rect { x: 1000, y: 600, width: 25, height: 83 };
        let steps = [RenderStep::Fit { long_px: 1024 }, RenderStep::Crop(crop)];
        let outside = StepError::Crop(CropError::Outside { crop, image: size(1024, 683) });
        assert_eq!(output_size(size(6000, 4000), &steps), Err(outside));
        assert_eq!(outside.to_string(), "crop 25x83+1000+600 leaves the 1024x683 image");
    }

    #[test]
    fn a_region_is_scaled_to_its_size_and_never_enlarged() {
        let region = Rect { x: 100, y: 200, width: 900, height: 600 };
        let scale = |width, height| RenderStep::Scale { region, size: size(width, height) };
        check(size(1000, 800), &[scale(300, 200)], size(300, 200));
        check(size(1000, 800), &[scale(900, 600)], size(900, 600));
        for (width, height) in [(901, 600), (900, 601), (0, 200), (300, 0)] {
            let found = output_size(size(1000, 800), &[scale(width, height)]);
            let expected = StepError::Enlarged { region, size: size(width, height) };
            assert_eq!(found, Err(expected));
        }
        let found = output_size(size(999, 800), &[scale(300, 200)]);
        let outside = CropError::Outside { crop: region, image: size(999, 800) };
        assert_eq!(found, Err(outside.into()));
        let error = output_size(size(1000, 800), &[scale(1000, 9)]).unwrap_err().to_string();
        assert_eq!(error, "a 900x600 part of the image cannot be scaled down to 1000x9");
    }

    fn check_shown(steps: &[RenderStep], windows: &[Rect], expected: Option<Rect>) {
        let found = shown_region(size(6000, 4000), steps, windows);
        assert_eq!(found, expected, "{steps:?} {windows:?}");
    }

    #[test]
    fn the_shown_region_is_in_pixels_of_the_whole_picture() {
        let rect = |x, y, width, height| Rect { x, y, width, height };
        let crop = |x, y, width, height| RenderStep::Crop(rect(x, y, width, height));
        let fit = RenderStep::Fit { long_px: 600 };
        check_shown(&[], &[], Some(rect(0, 0, 6000, 4000)));
        check_shown(&[fit.clone(), RenderStep::Watermark], &[], Some(rect(0, 0, 6000, 4000)));
        check_shown(&[fit, crop(60, 40, 300, 200)], &[], Some(rect(600, 400, 3000, 2000)));
        let scale = RenderStep::Scale { region: rect(10, 20, 3000, 2000), size: size(300, 200) };
        check_shown(&[scale, crop(30, 0, 3, 2)], &[], Some(rect(310, 20, 30, 20)));
        let cover = RenderStep::Cover { width: 400, height: 400 };
        check_shown(&[cover], &[rect(200, 0, 400, 400)], Some(rect(2000, 0, 4000, 4000)));
    }

    #[test]
    fn the_shown_region_is_unknown_without_its_window_and_outside_the_picture() {
        let rect = |x, y, width, height| Rect { x, y, width, height };
        let cover = RenderStep::Cover { width: 400, height: 400 };
        check_shown(std::slice::from_ref(&cover), &[], None);
        check_shown(&[cover.clone(), cover.clone()], &[rect(200, 0, 400, 400)], None);
        check_shown(&[cover], &[rect(201, 0, 400, 400)], None);
        check_shown(&[RenderStep::Crop(rect(1, 0, 6000, 4000))], &[], None);
        let region = rect(5999, 0, 2, 2);
        check_shown(&[RenderStep::Scale { region, size: size(1, 1) }], &[], None);
    }

    #[test]
    fn a_level_suffices_for_a_region_if_it_has_its_pixels() {
        let region = Rect { x: 100, y: 200, width: 3000, height: 2000 };
        let step = RenderStep::Scale { region, size: size(300, 200) };
        assert_eq!(scaled_size(size(6001, 4000), &step), Some(size(601, 400)));
        let step = RenderStep::Scale { region, size: region.size() };
        assert_eq!(scaled_size(size(6001, 4000), &step), Some(size(6001, 4000)));
    }

    #[test]
    fn empty_and_overflowing_crops_are_refused() {
        for crop in [
            Rect { x: 0, y: 0, width: 0, height: 1 },
            Rect { x: 0, y: 0, width: 1, height: 0 },
            Rect { x: u32::MAX, y: 0, width: 2, height: 1 },
            Rect { x: 1, y: 0, width: u32::MAX, height: 1 },
            Rect { x: 10, y: 0, width: 1, height: 1 },
        ] {
            assert!(output_size(size(10, 10), &[RenderStep::Crop(crop)]).is_err(), "{crop:?}");
        }
    }

    proptest! {
        #[test]
        fn sizes_stay_within_the_picture(
            w in 1u32..70_000, h in 1u32..70_000, long in 0u32..5000, a in 0u32..600, b in 0u32..600,
        ) {
            let from = size(w, h);
            let fitted = fit(from, long);
            prop_assert!(fitted.width >= 1 && fitted.width <= w);
            prop_assert!(fitted.height >= 1 && fitted.height <= h);
            let steps = [RenderStep::Fit { long_px: long }, RenderStep::Cover { width: a, height: b }];
            let (scaled, cut) = cover(fitted, a, b);
            let margin = scaled.width - cut.width;
            let shown = shown_region(from, &steps, &[Rect::new(margin, 0, cut)]);
            prop_assert!(shown.is_some_and(|shown| !shown.is_empty() && shown.is_inside(from)));
            let (scaled, cut) = cover(from, a, b);
            prop_assert!(scaled.width <= w && scaled.height <= h);
            prop_assert!(cut.width <= scaled.width && cut.height <= scaled.height);
            prop_assert!(cut.width == a.max(1).min(w) && cut.height == b.max(1).min(h));
        }
    }
}
