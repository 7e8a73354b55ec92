//! The media types of items, as they are written in URLs.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames};
use thiserror::Error;

/// The media type of an item: the first part of its identity and of its media URL.
///
/// Parses in lower case only, because an identity has one spelling. `_all`, which search and notifications accept for
/// items of any type, is not a media type, because it cannot identify an item.
///
/// Contract items-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames)]
#[strum(
    serialize_all = "lowercase",
    parse_err_ty = UnknownMediaType,
    parse_err_fn = UnknownMediaType::new
)]
pub enum MediaType {
    Image,
    /// A video with a still image.
    Video,
    /// A drawn graphic, delivered as PDF or EPS.
    Graphic,
    Text,
    /// A longer article, prepared in advance.
    Feature,
    /// A finished newspaper page.
    Page,
    /// A plan of upcoming coverage.
    Planning,
    /// An event in the calendar.
    Calendar,
    /// A photograph of the stock photo archive, in the Swedish spelling of the URLs.
    Stockfoto,
}

crate::impl_as_str!(MediaType);

impl MediaType {
    /// Returns the `type` in the news item document of an item of this media type.
    pub fn document_type(self) -> &'static str {
        match self {
            Self::Image | Self::Stockfoto => "picture",
            Self::Video => "video",
            Self::Graphic => "graphic",
            Self::Text | Self::Feature => "text",
            Self::Page => "composite",
            Self::Planning => "planning",
            Self::Calendar => "event",
        }
    }

    /// Reports whether items of this media type announce future coverage or events.
    pub fn is_planned(self) -> bool {
        matches!(self, Self::Planning | Self::Calendar)
    }
}

/// The error for a text that is not a media type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown media type {found:?}")]
pub struct UnknownMediaType {
    /// The text that is not a media type.
    pub found: String,
}

impl UnknownMediaType {
    fn new(text: &str) -> Self {
        Self { found: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn words_follow_the_contract() {
        let words = "image video graphic text feature page planning calendar stockfoto";
        assert_eq!(MediaType::VARIANTS.join(" "), words);
    }

    #[test]
    fn err_another_spelling_is_unknown() {
        for text in ["", "Image", "images", "_all", "image ", "picture"] {
            let error = text.parse::<MediaType>().unwrap_err();
            assert_eq!(error.to_string(), format!("unknown media type {text:?}"));
        }
    }

    #[test]
    fn json_holds_the_spelling_of_urls() {
        for media_type in MediaType::iter() {
            let json = serde_json::to_string(&media_type).unwrap();
            assert_eq!(json, format!("\"{media_type}\""));
            assert_eq!(serde_json::from_str::<MediaType>(&json).unwrap(), media_type);
        }
    }

    #[test]
    fn document_types_follow_the_contract() {
        let types: Vec<_> = MediaType::iter().map(MediaType::document_type).collect();
        let expected = [
            "picture",
            "video",
            "graphic",
            "text",
            "text",
            "composite",
            "planning",
            "event",
            "picture",
        ];
        assert_eq!(types, expected);
    }
}
