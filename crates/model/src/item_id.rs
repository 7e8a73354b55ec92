//! The id of an item, which is unique within its media type.

use std::fmt;
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};
use thiserror::Error;

use crate::token;

/// The id of an item: `[A-Za-z0-9][A-Za-z0-9_-]*`, at most 128 characters, case-sensitive.
///
/// An id never has an operation or suffix that a media URL would strip, as `a-watermark`, `a-crop_w10` and
/// `a_NormalHires` have: such an id could not be addressed. [`token`] has the rules.
///
/// Ids read from JSON pass the same checks. Contract items-3.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct ItemId(Box<str>);

impl ItemId {
    /// The maximum number of characters of an id.
    pub const CHARS_MAX: usize = 128;

    /// Parses an id, without decoding, trimming or case folding.
    ///
    /// Fails with [`ItemIdError`].
    pub fn parse(text: &str) -> Result<Self, ItemIdError> {
        check_characters(text)?;
        check_tokens(text)?;
        Ok(Self(text.into()))
    }

    /// Returns the id as written in URLs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ItemId {
    type Err = ItemIdError;

    fn from_str(text: &str) -> Result<Self, ItemIdError> {
        Self::parse(text)
    }
}

/// The error for a text that is not an item id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ItemIdError {
    /// The text is empty.
    #[error("the id is empty")]
    Empty,
    /// The text has more than [`ItemId::CHARS_MAX`] characters.
    #[error("the id has {chars} characters, at most {} are allowed", ItemId::CHARS_MAX)]
    TooLong { chars: usize },
    /// A character is not allowed in an id, or the first character is `-` or `_`.
    #[error(
        "the id has {found:?} at character {at}, expected letters, digits, - and _, \
         with a letter or digit first"
    )]
    BadCharacter {
        found: char,
        /// The position of the character, counted from 1.
        at: usize,
    },
    /// The text has an operation, which a media URL would strip.
    #[error("the id has the operation {operation:?}")]
    HasOperation {
        /// The operation in lower case, such as `-crop` or `-watermark`.
        operation: &'static str,
    },
    /// The text ends in a suffix, which a media URL would strip.
    #[error("the id ends in the suffix \"_{suffix}\"")]
    EndsInSuffix {
        /// The suffix as written, without its underscore, such as `NormalHires`.
        suffix: String,
    },
}

/// Fails if `text` is empty, is too long or has a character that is not allowed.
fn check_characters(text: &str) -> Result<(), ItemIdError> {
    if text.is_empty() {
        return Err(ItemIdError::Empty);
    }
    let bad = text.chars().enumerate().find(|&(index, found)| {
        let is_inner_mark = index > 0 && (found == '-' || found == '_');
        !(is_inner_mark || found.is_ascii_alphanumeric())
    });
    if let Some((index, found)) = bad {
        return Err(ItemIdError::BadCharacter { found, at: index + 1 });
    }
    // The text is ASCII here, so bytes are characters.
    if text.len() > ItemId::CHARS_MAX {
        return Err(ItemIdError::TooLong { chars: text.len() });
    }
    Ok(())
}

/// Fails if `text` has an operation or suffix that a media URL would strip.
fn check_tokens(text: &str) -> Result<(), ItemIdError> {
    // A crop or a size has parameters, so these two also find `-crop_`, `-fit_`, `-fill_` and `-preset_` in the middle.
    if token::split_crop(text).is_some() {
        return Err(ItemIdError::HasOperation { operation: token::CROP });
    }
    if let Some((_, operation, _)) = token::split_resize(text) {
        return Err(ItemIdError::HasOperation { operation });
    }
    // Operations without parameters count only at the end.
    for operation in [token::WATERMARK, token::CUTPASTE, token::INDESIGN] {
        if token::strip(text, operation).is_some() {
            return Err(ItemIdError::HasOperation { operation });
        }
    }
    match token::split_suffix(text) {
        Some((_, suffix)) => Err(ItemIdError::EndsInSuffix { suffix: suffix.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Result<(), ItemIdError>) {
        let found = ItemId::parse(text);
        assert_eq!(&found.clone().map(|_| ()), expected, "{text}");
        if let Ok(id) = found {
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn ok_ids_as_agencies_write_them() {
        check("sdltd8f4d87", &Ok(()));
        check("sdlv_113kUboR0", &Ok(()));
        check("sdl0kd8pyf-v8A", &Ok(()));
        check("gf177556", &Ok(()));
        check("250924-konjunkturlaget6uv-ae8053fa", &Ok(()));
        check("a", &Ok(()));
        check("0-", &Ok(()));
        check("a__--_", &Ok(()));
        check(&"x".repeat(128), &Ok(()));
    }

    #[test]
    fn ok_what_only_looks_like_an_operation_or_suffix() {
        let texts = [
            "a-cropped",
            "cross-fit",
            "x-fitted_w1",
            "a-crop-failure",
            "crop_w10_h10",
            "a_crop_w10",
            "watermark",
            "a-watermarked",
            "a-watermark-b",
            "a-indesign-b",
            "NormalHires",
            "a-NormalHires",
            "a_NormalHires-b",
            "a_NormalHuge",
            "map_web",
            "a_Preview",
        ];
        for text in texts {
            check(text, &Ok(()));
        }
    }

    #[test]
    fn err_empty_and_too_long() {
        check("", &Err(ItemIdError::Empty));
        check(&"x".repeat(129), &Err(ItemIdError::TooLong { chars: 129 }));
    }

    #[test]
    fn err_a_character_that_no_id_has() {
        let bad = |found, at| Err(ItemIdError::BadCharacter { found, at });
        check("-a", &bad('-', 1));
        check("_a", &bad('_', 1));
        check("a.b", &bad('.', 2));
        check("a b", &bad(' ', 2));
        check("../x", &bad('.', 1));
        check("a/b", &bad('/', 2));
        check("a%2e", &bad('%', 2));
        check("bild-å", &bad('å', 6));
        check("a\0", &bad('\0', 2));
        check("a\n", &bad('\n', 2));
    }

    #[test]
    fn err_an_operation_that_a_url_would_strip() {
        let has = |operation| Err(ItemIdError::HasOperation { operation });
        check("a-watermark", &has("-watermark"));
        check("a-WATERMARK", &has("-watermark"));
        check("my-crop", &has("-crop"));
        check("a-crop_w10", &has("-crop"));
        check("a-Crop_w10_h10", &has("-crop"));
        check("a-crop_w-10", &has("-crop"));
        check("a-crop_2024-harvest", &has("-crop"));
        check("x-fit_w640", &has("-fit"));
        check("x-Fill_", &has("-fill"));
        check("x-preset_card-1", &has("-preset"));
        check("a-cutpaste", &has("-cutpaste"));
        check("a-InDesign", &has("-indesign"));
    }

    #[test]
    fn err_a_suffix_that_a_url_would_strip() {
        for suffix in
            ["NormalHires", "WatermarkedPreview", "croppedthumbnail", "BlackAndWhite", "WEBLORES"]
        {
            let expected = ItemIdError::EndsInSuffix { suffix: suffix.to_owned() };
            check(&format!("a_{suffix}"), &Err(expected));
        }
    }

    #[test]
    fn errors_say_what_was_found_and_where() {
        let message = |text: &str| ItemId::parse(text).unwrap_err().to_string();
        assert_eq!(message("a-watermark"), "the id has the operation \"-watermark\"");
        assert_eq!(message("a_NormalHires"), "the id ends in the suffix \"_NormalHires\"");
        assert!(message("a b").starts_with("the id has ' ' at character 2, expected"));
    }

    #[test]
    fn json_is_a_string_that_is_checked() {
        let id: ItemId = serde_json::from_str("\"sdlv_113kUboR0\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"sdlv_113kUboR0\"");
        assert!(serde_json::from_str::<ItemId>("\"a-watermark\"").is_err());
    }
}
