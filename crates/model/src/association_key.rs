//! The key of an associated object, such as a picture of an article, in the item's `associations`.

use std::{fmt, str::FromStr};

use serde_with::{DeserializeFromStr, SerializeDisplay};
use thiserror::Error;

use crate::token;

/// The key of an associated object: `[A-Za-z0-9][A-Za-z0-9-]*`, at most 64 characters, case-sensitive, such as `a000`.
///
/// Unlike an item id it has no underscore, which begins the suffix of a media URL: `a000_NormalPreview.jpg` (contract
/// media-6). A key never ends in `-crop` or `-watermark`, in upper or lower case: a media URL would strip them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(DeserializeFromStr, SerializeDisplay)]
pub struct AssociationKey(Box<str>);

impl AssociationKey {
    /// The maximum number of characters of a key.
    pub const CHARS_MAX: usize = 64;

    /// Parses a key, without decoding, trimming or case folding.
    ///
    /// Fails with [`AssociationKeyError`].
    pub fn parse(text: &str) -> Result<Self, AssociationKeyError> {
        if text.is_empty() {
            return Err(AssociationKeyError::Empty);
        }
        let bad = text.chars().enumerate().find(|&(index, found)| {
            let is_inner_hyphen = index > 0 && found == '-';
            !(is_inner_hyphen || found.is_ascii_alphanumeric())
        });
        if let Some((index, found)) = bad {
            return Err(AssociationKeyError::BadCharacter { found, at: index + 1 });
        }
        // The text is ASCII here, so bytes are characters.
        if text.len() > Self::CHARS_MAX {
            return Err(AssociationKeyError::TooLong { chars: text.len() });
        }
        // A key that ends in an operation could not be addressed: a media URL would strip it. The other operations of
        // pictures, such as `-fit_w100`, have an underscore, which no key has.
        for operation in [token::CROP, token::WATERMARK] {
            if token::strip(text, operation).is_some() {
                return Err(AssociationKeyError::HasOperation { operation });
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the key as written in URLs and in the item's `associations`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AssociationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for AssociationKey {
    type Err = AssociationKeyError;

    fn from_str(text: &str) -> Result<Self, AssociationKeyError> {
        Self::parse(text)
    }
}

/// The error for a text that is not an association key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssociationKeyError {
    /// The text is empty.
    #[error("the association key is empty")]
    Empty,
    /// The text has more than [`AssociationKey::CHARS_MAX`] characters.
    #[error(
        "the association key has {chars} characters, at most {} are allowed",
        AssociationKey::CHARS_MAX
    )]
    TooLong { chars: usize },
    /// A character is not allowed in a key, or the first character is `-`.
    #[error(
        "the association key has {found:?} at character {at}, expected letters, digits and -, \
         with a letter or digit first"
    )]
    BadCharacter {
        found: char,
        /// The position of the character, counted from 1.
        at: usize,
    },
    /// The text ends in an operation, which a media URL would strip.
    #[error("the association key ends in the operation {operation:?}")]
    HasOperation {
        /// The operation: `-crop` or `-watermark`.
        operation: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_keys_of_documents() {
        for text in ["a000", "0", "main-picture", "a-cropped", &"x".repeat(64)] {
            assert_eq!(AssociationKey::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn err_keys_that_no_url_can_name() {
        let check = |text: &str, message: &str| {
            let error = AssociationKey::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        };
        check("", "the association key is empty");
        check("a_0", "the association key has '_' at character 2");
        check("-a", "the association key has '-' at character 1");
        check("a.b", "the association key has '.' at character 2");
        check("å", "the association key has 'å' at character 1");
        check(&"x".repeat(65), "the association key has 65 characters, at most 64");
        check("a-Watermark", "the association key ends in the operation \"-watermark\"");
        check("a-crop", "the association key ends in the operation \"-crop\"");
    }
}
