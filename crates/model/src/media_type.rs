//! The media types of items, as written in URLs.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The media type of an item: the first part of its identity and of its media URL.
///
/// `_all`, which search and notifications accept, is not a media type, because it names no item.
///
/// Contract items-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    /// A photograph of the stock photo archive.
    Stockfoto,
}

impl MediaType {
    /// Every media type, in the order that the contract lists them.
    pub const ALL: [Self; 9] = [
        Self::Image,
        Self::Video,
        Self::Graphic,
        Self::Text,
        Self::Feature,
        Self::Page,
        Self::Planning,
        Self::Calendar,
        Self::Stockfoto,
    ];

    /// Returns the lower-case spelling used in URLs and parameters.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Graphic => "graphic",
            Self::Text => "text",
            Self::Feature => "feature",
            Self::Page => "page",
            Self::Planning => "planning",
            Self::Calendar => "calendar",
            Self::Stockfoto => "stockfoto",
        }
    }

    /// Parses the exact, lower-case spelling used in URLs.
    ///
    /// Fails with [`UnknownMediaType`], also for `Image` and `_all`.
    pub fn parse(text: &str) -> Result<Self, UnknownMediaType> {
        // In exact case: the media type is part of the identity, and an identity has one spelling.
        let found = Self::ALL.into_iter().find(|media_type| media_type.as_str() == text);
        found.ok_or_else(|| UnknownMediaType { found: text.to_owned() })
    }

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
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for a text that is not a media type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown media type {found:?}")]
pub struct UnknownMediaType {
    /// The text that was found.
    pub found: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_every_media_type_parses_as_it_prints() {
        for media_type in MediaType::ALL {
            assert_eq!(MediaType::parse(&media_type.to_string()), Ok(media_type));
        }
    }

    #[test]
    fn err_another_spelling_is_unknown() {
        for text in ["", "Image", "images", "_all", "image ", "picture"] {
            let error = MediaType::parse(text).unwrap_err();
            assert_eq!(error.to_string(), format!("unknown media type {text:?}"));
        }
    }

    #[test]
    fn json_holds_the_spelling_of_urls() {
        for media_type in MediaType::ALL {
            let json = serde_json::to_string(&media_type).unwrap();
            assert_eq!(json, format!("\"{media_type}\""));
            assert_eq!(serde_json::from_str::<MediaType>(&json).unwrap(), media_type);
        }
    }

    #[test]
    fn document_types_follow_the_contract() {
        let types = MediaType::ALL.map(MediaType::document_type);
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
