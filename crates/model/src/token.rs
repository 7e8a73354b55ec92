//! The tokens that a media URL strips from an item's id, from the right: operations and suffixes.
//!
//! An id may contain `-` and `_`, so only these tokens mark its end. The URL grammar strips them and
//! [`ItemId`](crate::ItemId) refuses an id that contains one. Both use the functions of this module, so every id
//! can be addressed and every URL has exactly one meaning.
//!
//! - `-watermark`, `-cutpaste` and `-indesign` count only at the end: `a-watermark-b` is an id.
//! - `-crop` counts at the end, and anywhere if an underscore follows it. `-crop_` always begins a crop, so that a
//!   malformed one (`-crop_w-10`) is an error and never part of an id. `a-cropped`, `crop_w10` and `a-crop-b` are
//!   ids.
//! - `-fit_`, `-fill_` and `-preset_` begin an operation anywhere. Without the underscore they belong to the id:
//!   `cross-fit`.
//! - `_<variant><usage>` and `_BlackAndWhite` count at the end.
//!
//! All tokens are matched ignoring case.

use crate::rendition::{RenditionName, RenditionVariant};

/// The operation that crops to a rectangle; its parameters follow.
pub const CROP: &str = "-crop";
/// The operation that adds a watermark.
pub const WATERMARK: &str = "-watermark";
/// The operation that scales down to fit into a box; its parameters follow.
pub const FIT: &str = "-fit";
/// The operation that scales down to cover a size and cuts off the rest; its parameters follow.
pub const FILL: &str = "-fill";
/// The operation that applies a preset of the settings; the preset's name follows.
pub const PRESET: &str = "-preset";
/// The operations that determine the size. A picture has at most one of them.
pub const RESIZES: [&str; 3] = [FIT, FILL, PRESET];
/// Plain text for copying and pasting, with the extension `.txt`.
pub const CUTPASTE: &str = "-cutpaste";
/// Tagged text for Adobe InDesign, with the extension `.txt`.
pub const INDESIGN: &str = "-indesign";

/// Returns the text before `token` if `text` ends in it.
pub fn strip<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    let start = text.len().checked_sub(token.len())?;
    // The text is not validated yet, so the position may be inside a character.
    let (before, tail) = text.split_at_checked(start)?;
    tail.eq_ignore_ascii_case(token).then_some(before)
}

/// Splits at the last crop into the text before it and its parameters.
///
/// The parameters are empty, or begin with `_` and extend to the end of `text`.
pub fn split_crop(text: &str) -> Option<(&str, &str)> {
    // Continues past hyphens that do not begin a crop, since a parameter such as `_w-10` contains one.
    text.rmatch_indices('-').find_map(|(at, _)| {
        let (before, tail) = text.split_at(at);
        let (name, parameters) = tail.split_at_checked(CROP.len())?;
        let is_operator = parameters.is_empty() || parameters.starts_with('_');
        (is_operator && name.eq_ignore_ascii_case(CROP)).then_some((before, parameters))
    })
}

/// Splits at the last size operation into the text before it, its name, and its parameters, which begin with `_`
/// and extend to the end of `text`.
pub fn split_resize(text: &str) -> Option<(&str, &'static str, &str)> {
    text.rmatch_indices('-').find_map(|(at, _)| {
        let (before, tail) = text.split_at(at);
        RESIZES.into_iter().find_map(|name| {
            let (found, parameters) = tail.split_at_checked(name.len())?;
            let is_operator = parameters.starts_with('_') && found.eq_ignore_ascii_case(name);
            is_operator.then_some((before, name, parameters))
        })
    })
}

/// The last operation of a file name without its extension and its suffix.
pub struct LastOperation<'a> {
    /// The text before the operation.
    pub before: &'a str,
    /// The name of the operation, such as [`CROP`].
    pub name: &'static str,
    /// The parameters that follow the name; empty or beginning with `_`.
    pub parameters: &'a str,
}

/// Splits off the last operation of a picture: a watermark, a crop or a size.
pub fn split_operation(stem: &str) -> Option<LastOperation<'_>> {
    // The watermark first: a crop or size extends to the end of the text, so a watermark after it would become a
    // parameter.
    if let Some(before) = strip(stem, WATERMARK) {
        return Some(LastOperation { before, name: WATERMARK, parameters: "" });
    }
    let crop = split_crop(stem).map(|(before, parameters)| (before, CROP, parameters));
    // The operation that begins later is the last one; the parameters of the other would extend into it.
    let operations = crop.into_iter().chain(split_resize(stem));
    let (before, name, parameters) = operations.max_by_key(|(before, ..)| before.len())?;
    Some(LastOperation { before, name, parameters })
}

/// Removes the last token of a file name without its extension: a suffix, an operation or a kind of text.
pub fn strip_last(stem: &str) -> Option<&str> {
    if let Some((before, _)) = split_suffix(stem) {
        return Some(before);
    }
    let kind = [CUTPASTE, INDESIGN].into_iter().find_map(|kind| strip(stem, kind));
    kind.or_else(|| split_operation(stem).map(|operation| operation.before))
}

/// Splits off a known suffix at the end. Returns the text before it and the suffix without its underscore.
pub fn split_suffix(text: &str) -> Option<(&str, &str)> {
    // Variants and usages contain no underscore, so the last underscore begins the suffix.
    let (before, suffix) = text.rsplit_once('_')?;
    let known = is_lone_variant(suffix) || RenditionName::find(suffix).is_some();
    known.then_some((before, suffix))
}

/// Reports whether a suffix is the one variant that may be written without a usage.
///
/// `_BlackAndWhite.eps` is in the contract (media-3). The other variants need a usage, so that an id such as
/// `map_web` remains an id.
pub fn is_lone_variant(suffix: &str) -> bool {
    suffix.eq_ignore_ascii_case(RenditionVariant::BlackAndWhite.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_split_off_the_end_in_any_case() {
        assert_eq!(strip("x-WaterMark", WATERMARK), Some("x"));
        assert_eq!(strip("-watermark", WATERMARK), Some(""));
        for text in ["x-watermarked", "x_watermark", "watermark", "", "å"] {
            assert_eq!(strip(text, WATERMARK), None, "{text}");
        }
    }

    #[test]
    fn the_last_crop_operator_splits() {
        assert_eq!(split_crop("x-crop_w1"), Some(("x", "_w1")));
        assert_eq!(split_crop("x-CROP"), Some(("x", "")));
        assert_eq!(split_crop("x-crop_w1-crop_h2"), Some(("x-crop_w1", "_h2")));
        assert_eq!(split_crop("x-crop_w-10_h10"), Some(("x", "_w-10_h10")));
        assert_eq!(split_crop("a-crop-failure-crop_w1"), Some(("a-crop-failure", "_w1")));
        for text in ["x-cropped", "crop_w1", "x_crop_w1", "a-crop-failure", "-", "x-cröp", ""] {
            assert_eq!(split_crop(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_size_operator_splits() {
        assert_eq!(split_resize("x-fit_w1"), Some(("x", FIT, "_w1")));
        assert_eq!(split_resize("x-Fill_w1_h2"), Some(("x", FILL, "_w1_h2")));
        assert_eq!(split_resize("x-preset_card"), Some(("x", PRESET, "_card")));
        assert_eq!(split_resize("x-fit_w1-fill_h2"), Some(("x-fit_w1", FILL, "_h2")));
        assert_eq!(split_resize("x-fit_w-10"), Some(("x", FIT, "_w-10")));
        for text in ["cross-fit", "x-fitted_w1", "fit_w1", "x_fit_w1", "x-fill", "-", ""] {
            assert_eq!(split_resize(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_known_suffix_splits() {
        assert_eq!(split_suffix("a_b_NormalPreview"), Some(("a_b", "NormalPreview")));
        assert_eq!(split_suffix("x_watermarkedTHUMBNAIL"), Some(("x", "watermarkedTHUMBNAIL")));
        assert_eq!(split_suffix("x_blackandwhite"), Some(("x", "blackandwhite")));
        for text in ["x_Web", "x_Normal", "x_NormalHuge", "NormalPreview", "x_", ""] {
            assert_eq!(split_suffix(text), None, "{text}");
        }
    }
}
