//! Which shape a crop is to have, and a rectangle of that shape.

use crate::types::{Rect, Size};

/// The presets in the order in which they are offered: what the address says, and width to height
/// where that is fixed.
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

/// The largest part of a ratio.
const PART_MAX: u32 = 10_000;

/// What is wrong with what was asked for, before an API could be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// This field has what no crop operator can carry.
    Number(&'static str),
    /// There is no such preset.
    Preset,
    /// The ratio is not two whole numbers.
    Ratio,
}

/// The ratio that a preset and, for `custom`, a text stand for; nothing leaves the crop free.
pub(super) fn parse(preset: &str, text: &str, image: Size) -> Result<Option<(u32, u32)>, Unknown> {
    match preset {
        "" | "free" => Ok(None),
        "original" => Ok(Some((image.width, image.height))),
        "custom" => parse_ratio(text).map(Some).ok_or(Unknown::Ratio),
        preset => match PRESETS.iter().find(|(name, _)| *name == preset) {
            Some((_, ratio)) => Ok(*ratio),
            None => Err(Unknown::Preset),
        },
    }
}

/// `16:9`, `16x9` or `16/9`.
fn parse_ratio(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once([':', 'x', 'X', '×', '/'])?;
    let part = |text: &str| {
        let text = text.trim();
        let digits = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|part| digits && (1..=PART_MAX).contains(part))
    };
    Some((part(width)?, part(height)?))
}

/// `rect` with that ratio: its width and its centre stay as far as the picture allows. A rectangle
/// to which no whole numbers of its width, or of its height, come closer stays as it is.
///
/// `rect` is not empty and lies in `image`.
pub(super) fn shaped(rect: Rect, (a, b): (u32, u32), image: Size) -> Rect {
    let high = |width: u32| scaled(width, b, a);
    let wide = |height: u32| scaled(height, a, b);
    if rect.height == high(rect.width) || rect.width == wide(rect.height) {
        return rect;
    }
    let (mut width, mut height) = (rect.width, high(rect.width));
    if height > image.height {
        (width, height) = (wide(image.height).min(image.width), image.height);
    }
    let place = |start: u32, length: u32, own: u32, whole: u32| {
        let twice = 2 * u64::from(start) + u64::from(length);
        let start = twice.saturating_sub(u64::from(own)) / 2;
        u32::try_from(start).unwrap_or(u32::MAX).min(whole - own)
    };
    Rect {
        x: place(rect.x, rect.width, width, image.width),
        y: place(rect.y, rect.height, height, image.height),
        width,
        height,
    }
}

/// `px * to / from`, rounded to the nearest whole number, a half upwards; at least 1.
fn scaled(px: u32, to: u32, from: u32) -> u32 {
    let (px, to, from) = (u128::from(px), u128::from(to), u128::from(from));
    let nearest = (2 * px * to + from) / (2 * from);
    u32::try_from(nearest).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Size = Size::new(6000, 4000);

    #[test]
    fn a_preset_gives_whole_numbers_in_the_picture() {
        let whole = Rect::new(0, 0, IMAGE);
        let check = |rect: Rect, ratio, expected: &str| {
            let found = shaped(rect, ratio, IMAGE);
            assert_eq!(found.to_string(), expected, "{rect} {ratio:?}");
            assert!(found.inside(IMAGE), "{found}");
            assert_eq!(shaped(found, ratio, IMAGE), found, "{found} {ratio:?} stays");
        };
        check(whole, (1, 1), "4000x4000+1000+0");
        check(whole, (16, 9), "6000x3375+0+312");
        check(whole, (9, 16), "2250x4000+1875+0");
        check(whole, (6000, 4000), "6000x4000+0+0");
        check(whole, (10_000, 1), "6000x1+0+1999");
        check(whole, (1, 10_000), "1x4000+2999+0");
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
        for text in ["", "5", "0:1", "1:10001", "-1:2", "1.5:2", "5:7:9", "+5:7", "000001:1"] {
            check("custom", text, Err(Unknown::Ratio));
        }
        check("<b>", "", Err(Unknown::Preset));
    }
}
