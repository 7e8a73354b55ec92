//! Parses the aspect ratio of a crop, and changes rectangles to that ratio.

use model::{Rect, Size, scale_crop};

/// The presets in the order of the form: the value in the URL, and the ratio of width to height if it is fixed.
pub(super) const PRESETS: [(&str, Option<(u32, u32)>); 12] = [
    ("free", None),
    ("original", None),
    ("1:1", Some((1, 1))),
    ("4:3", Some((4, 3))),
    ("3:2", Some((3, 2))),
    ("16:9", Some((16, 9))),
    ("2:1", Some((2, 1))),
    ("4:5", Some((4, 5))),
    ("3:4", Some((3, 4))),
    ("2:3", Some((2, 3))),
    ("9:16", Some((9, 16))),
    ("custom", None),
];

/// Maximum value of a part of a ratio.
const PART_MAX: u32 = 10_000;
/// Number of fractions in one unit of a ratio's part: parts are in thousandths.
const FRACTIONS: u32 = 1_000;
/// Maximum number of pixels by which a crop is moved in each direction so that its cut of the Preview has the
/// ratio too.
const STEPS_MAX: u32 = 64;

/// An input error that the studio detects before it calls an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CropFormError {
    /// The field contains characters that a crop operator cannot contain.
    Number(&'static str),
    /// The preset does not exist.
    Preset,
    /// The ratio does not consist of two valid numbers.
    Ratio,
}

/// Returns the ratio of a preset; for `custom`, the ratio in `text`. `None` if the crop has no fixed ratio.
pub(super) fn parse(
    preset: &str,
    text: &str,
    image: Size,
) -> Result<Option<(u32, u32)>, CropFormError> {
    match preset {
        "" | "free" => Ok(None),
        "original" => Ok(Some((image.width, image.height))),
        "custom" => parse_ratio(text).map(Some).ok_or(CropFormError::Ratio),
        preset => match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, ratio)) => Ok(*ratio),
            None => Err(CropFormError::Preset),
        },
    }
}

/// Parses `16:9`, `16x9` or `16/9`, also with decimals: `1.91:1`, the ratio of link previews.
fn parse_ratio(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once([':', 'x', 'X', '×', '/'])?;
    let width = parse_part(width.trim())?;
    let height = parse_part(height.trim())?;
    let common = divisor(width, height);
    Some((width / common, height / common))
}

/// Parses a part of a ratio of at most five digits and three decimals. The result is in thousandths.
fn parse_part(text: &str) -> Option<u32> {
    let (integer, decimals) = match text.split_once(['.', ',']) {
        // A text that ends in a separator is more likely unfinished than a number.
        Some((_, "")) => return None,
        Some((integer, decimals)) => (integer, decimals),
        None => (text, ""),
    };
    // Digits are checked first, because `parse` would accept a sign. Five digits cannot overflow.
    if integer.len() > 5 || decimals.len() > 3 || !are_digits(integer) || !are_digits(decimals) {
        return None;
    }
    let decimals: u32 = format!("{decimals:0<3}").parse().ok()?;
    let part = integer.parse::<u32>().ok()? * FRACTIONS + decimals;
    (1..=PART_MAX * FRACTIONS).contains(&part).then_some(part)
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the greatest common divisor.
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The sizes of the renditions from which a crop is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct CropSizes {
    pub(super) hires: Size,
    pub(super) preview: Size,
}

/// Returns whether `size` has the ratio up to rounding: with the same width, no other height is closer to the
/// ratio, or with the same height, no other width.
fn has_ratio(size: Size, ratio: (u32, u32)) -> bool {
    let (a, b) = ratio;
    size.height == scaled(size.width, b, a) || size.width == scaled(size.height, a, b)
}

/// Changes `rect` to the ratio. Keeps its width and centre if the result fits in the picture. A rectangle that
/// already has the ratio up to rounding is returned unchanged.
///
/// `rect` must not be empty and must be within the Hires.
pub(super) fn with_ratio(rect: Rect, ratio: (u32, u32), sizes: CropSizes) -> Rect {
    let (a, b) = ratio;
    let image = sizes.hires;
    // A rectangle that has the ratio must not move each time the form is submitted.
    if has_ratio(rect.size(), ratio) {
        return rect;
    }
    let mut width = rect.width;
    let mut height = scaled(rect.width, b, a);
    // If the height does not fit, the width follows from the height of the picture.
    if height > image.height {
        width = scaled(image.height, a, b).min(image.width);
        height = image.height;
    }
    let positioned = Rect {
        x: centred(rect.x, rect.width, width, image.width),
        y: centred(rect.y, rect.height, height, image.height),
        width,
        height,
    };
    aligned(positioned, ratio, sizes)
}

/// Returns the start of a side of `side` pixels that has the same centre as the side of `length` pixels at
/// `start`. The new side is moved if it would not fit within the `available` pixels.
fn centred(start: u32, length: u32, side: u32, available: u32) -> u32 {
    // Doubled, so that the centre of an odd length is exact.
    let doubled_centre = 2 * u64::from(start) + u64::from(length);
    let start = doubled_centre.saturating_sub(u64::from(side)) / 2;
    u32::try_from(start).unwrap_or(u32::MAX).min(available - side)
}

/// Moves `rect` to the nearest position where its cut of the Preview has the ratio too. In the Preview both edges
/// are rounded, so a square could become 682 by 683 pixels. Returns `rect` unchanged if no nearby position works.
///
/// Must match `aligned` of `assets/js/crop.js`.
fn aligned(rect: Rect, ratio: (u32, u32), sizes: CropSizes) -> Rect {
    // Offsets within one pixel of the Preview cover every rounding.
    let reach = sizes.hires.width.div_ceil(sizes.preview.width.max(1)).min(STEPS_MAX);
    let reach = i64::from(reach);
    // Nearest offsets first, so that the rectangle moves as little as possible.
    for distance in 0..=2 * reach {
        for across in (distance - reach).max(0)..=distance.min(reach) {
            let down = distance - across;
            let offsets = [(across, down), (-across, down), (across, -down), (-across, -down)];
            for (dx, dy) in offsets {
                if let Some(moved) = moved(rect, dx, dy)
                    && cut_has_ratio(moved, ratio, sizes)
                {
                    return moved;
                }
            }
        }
    }
    rect
}

/// Returns the rectangle at an offset; `None` if it would begin outside the picture.
fn moved(rect: Rect, dx: i64, dy: i64) -> Option<Rect> {
    let x = u32::try_from(i64::from(rect.x) + dx).ok()?;
    let y = u32::try_from(i64::from(rect.y) + dy).ok()?;
    Some(Rect { x, y, ..rect })
}

/// Returns whether the cut of the Preview has the ratio.
fn cut_has_ratio(rect: Rect, ratio: (u32, u32), sizes: CropSizes) -> bool {
    let cut = scale_crop(rect, sizes.hires, sizes.preview);
    cut.is_ok_and(|cut| has_ratio(cut.size(), ratio))
}

/// Returns `px * to / from`, rounded to the nearest integer, halves upwards; at least 1.
fn scaled(px: u32, to: u32, from: u32) -> u32 {
    let px = u128::from(px);
    let to = u128::from(to);
    let from = u128::from(from);
    let nearest = (2 * px * to + from) / (2 * from);
    // An extreme ratio would otherwise leave no pixels at all.
    u32::try_from(nearest).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Size = Size::new(6000, 4000);
    /// A Preview of the same size rounds nothing.
    const SIZES: CropSizes = CropSizes { hires: IMAGE, preview: IMAGE };

    #[test]
    fn the_cut_of_the_preview_has_the_ratio_too() {
        let check = |hires: Size, ratio, expected: &str, cut: &str| {
            let sizes = CropSizes { hires, preview: hires.fit_within(1024) };
            let found = with_ratio(Rect::new(0, 0, hires), ratio, sizes);
            assert_eq!(found.to_string(), expected, "{hires:?} {ratio:?}");
            let on_preview = scale_crop(found, hires, sizes.preview).unwrap();
            assert_eq!(on_preview.to_string(), cut, "{hires:?} {ratio:?}");
        };
        check(IMAGE, (1, 1), "4000x4000+1001+0", "683x683+171+0");
        check(Size::new(12000, 8000), (1, 1), "8000x8000+2002+0", "683x683+171+0");
        check(Size::new(800, 600), (1, 1), "600x600+100+0", "600x600+100+0");
    }

    #[test]
    fn a_preset_gives_whole_numbers_in_the_picture() {
        let full = Rect::new(0, 0, IMAGE);
        let check = |rect: Rect, ratio, expected: &str| {
            let found = with_ratio(rect, ratio, SIZES);
            assert_eq!(found.to_string(), expected, "{rect} {ratio:?}");
            assert!(found.is_inside(IMAGE), "{found}");
            assert_eq!(with_ratio(found, ratio, SIZES), found, "{found} {ratio:?} stays");
        };
        check(full, (1, 1), "4000x4000+1000+0");
        check(full, (16, 9), "6000x3375+0+312");
        check(full, (9, 16), "2250x4000+1875+0");
        check(full, (6000, 4000), "6000x4000+0+0");
        check(full, (10_000, 1), "6000x1+0+1999");
        check(full, (1, 10_000), "1x4000+2999+0");
        check(Rect::new(5000, 0, Size::new(1000, 10)), (1, 1), "1000x1000+5000+0");
        check(Rect::new(0, 3990, Size::new(1600, 10)), (16, 9), "1600x900+0+3100");
        check(Rect::new(7, 8, Size::new(1, 1)), (4, 3), "1x1+7+8");
    }

    #[test]
    fn a_shape_is_a_preset_or_two_whole_numbers() {
        let check = |preset, text, expected| {
            assert_eq!(parse(preset, text, IMAGE), expected, "{preset} {text}");
        };
        check("", "", Ok(None));
        check("free", "5:7", Ok(None));
        check("original", "", Ok(Some((6000, 4000))));
        check("16:9", "", Ok(Some((16, 9))));
        check("custom", "5:7", Ok(Some((5, 7))));
        check("custom", " 5 x 7 ", Ok(Some((5, 7))));
        check("custom", "10000/1", Ok(Some((10_000, 1))));
        check("custom", "1.91:1", Ok(Some((191, 100))));
        check("custom", "1,5 : 2", Ok(Some((3, 4))));
        for text in [
            "", "5", "0:1", "1:10001", "-1:2", "1.:2", ".5:2", "1.2345:1", "5:7:9", "+5:7",
            "000001:1",
        ] {
            check("custom", text, Err(CropFormError::Ratio));
        }
        check("<b>", "", Err(CropFormError::Preset));
    }
}
