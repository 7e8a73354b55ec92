//! The names of renditions: a variant and a usage.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What was done to the picture.
///
/// Contract media-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RenditionVariant {
    /// The picture as it came.
    Normal,
    /// With the mark in its lower left corner.
    Watermark,
    /// Without colour.
    BlackAndWhite,
    /// Cut around the centre of interest.
    Cropped,
    /// A still of a video.
    Framegrab,
    /// Prepared for the web.
    Web,
}

impl RenditionVariant {
    /// Every variant.
    pub const ALL: [Self; 6] = [
        Self::Normal,
        Self::Watermark,
        Self::BlackAndWhite,
        Self::Cropped,
        Self::Framegrab,
        Self::Web,
    ];

    /// The canonical spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Watermark => "Watermark",
            Self::BlackAndWhite => "BlackAndWhite",
            Self::Cropped => "Cropped",
            Self::Framegrab => "Framegrab",
            Self::Web => "Web",
        }
    }

    /// Finds the variant of a name, without regard to case; `Watermarked` is [`Self::Watermark`].
    pub fn find(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case(WATERMARKED) {
            return Some(Self::Watermark);
        }
        Self::ALL.into_iter().find(|variant| variant.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for RenditionVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a rendition is for, hence its size.
///
/// Contract media-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RenditionUsage {
    /// The smallest picture, for lists.
    Thumbnail,
    /// A picture for the screen.
    Preview,
    /// The full picture, for print.
    Hires,
    /// A video in high definition.
    Hidef,
    /// A picture or video of low resolution.
    Lores,
}

impl RenditionUsage {
    /// Every usage.
    pub const ALL: [Self; 5] =
        [Self::Thumbnail, Self::Preview, Self::Hires, Self::Hidef, Self::Lores];

    /// The canonical spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Thumbnail => "Thumbnail",
            Self::Preview => "Preview",
            Self::Hires => "Hires",
            Self::Hidef => "Hidef",
            Self::Lores => "Lores",
        }
    }

    /// Finds the usage of a name, without regard to case.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|usage| usage.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for RenditionUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The name of a rendition of an item, `NormalPreview` for instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RenditionName {
    /// What was done to the picture.
    pub variant: RenditionVariant,
    /// What it is for.
    pub usage: RenditionUsage,
}

impl RenditionName {
    /// The full picture as it came: what a URL without a suffix means.
    pub const NORMAL_HIRES: Self = Self::new(RenditionVariant::Normal, RenditionUsage::Hires);
    /// The picture for the screen.
    pub const NORMAL_PREVIEW: Self = Self::new(RenditionVariant::Normal, RenditionUsage::Preview);
    /// The picture for lists.
    pub const NORMAL_THUMBNAIL: Self =
        Self::new(RenditionVariant::Normal, RenditionUsage::Thumbnail);
    /// The picture for the screen with the mark.
    pub const WATERMARK_PREVIEW: Self =
        Self::new(RenditionVariant::Watermark, RenditionUsage::Preview);
    /// The square picture for lists.
    pub const CROPPED_THUMBNAIL: Self =
        Self::new(RenditionVariant::Cropped, RenditionUsage::Thumbnail);
    /// The picture for walls of pictures, between Thumbnail and Preview.
    pub const WEB_PREVIEW: Self = Self::new(RenditionVariant::Web, RenditionUsage::Preview);
    /// The file for print without colour.
    pub const GREY_HIRES: Self = Self::new(RenditionVariant::BlackAndWhite, RenditionUsage::Hires);

    /// The names that a JPEG is made under, of every picture. The documentation lists them.
    pub const PICTURES: [Self; 8] = [
        Self::NORMAL_HIRES,
        Self::NORMAL_PREVIEW,
        Self::NORMAL_THUMBNAIL,
        Self::new(RenditionVariant::Watermark, RenditionUsage::Hires),
        Self::WATERMARK_PREVIEW,
        Self::new(RenditionVariant::Watermark, RenditionUsage::Thumbnail),
        Self::CROPPED_THUMBNAIL,
        Self::WEB_PREVIEW,
    ];

    /// Names a rendition.
    pub const fn new(variant: RenditionVariant, usage: RenditionUsage) -> Self {
        Self { variant, usage }
    }

    /// Finds the rendition of a name `<variant><usage>`, without regard to case.
    ///
    /// `Watermarked` is accepted for `Watermark` (contract media-2).
    pub fn find(text: &str) -> Option<Self> {
        RenditionUsage::ALL.into_iter().find_map(|usage| {
            // Matched by usage from the right: as prefixes, `Watermark` and `Watermarked` collide.
            let start = text.len().checked_sub(usage.as_str().len())?;
            let (variant, tail) = text.split_at_checked(start)?;
            if !tail.eq_ignore_ascii_case(usage.as_str()) {
                return None;
            }
            Some(Self::new(RenditionVariant::find(variant)?, usage))
        })
    }

    /// Parses a name `<variant><usage>` as [`Self::find`] does.
    ///
    /// Fails with [`UnknownRendition`].
    pub fn parse(text: &str) -> Result<Self, UnknownRendition> {
        Self::find(text).ok_or_else(|| UnknownRendition { found: text.to_owned() })
    }
}

impl fmt::Display for RenditionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.variant, self.usage)
    }
}

/// A text that is no rendition name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown rendition {found:?}, expected a variant and a usage such as \"NormalPreview\"")]
pub struct UnknownRendition {
    /// What was found.
    pub found: String,
}

/// The second spelling of [`RenditionVariant::Watermark`].
const WATERMARKED: &str = "Watermarked";

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> impl Iterator<Item = RenditionName> {
        RenditionVariant::ALL.into_iter().flat_map(|variant| {
            RenditionUsage::ALL.into_iter().map(move |usage| RenditionName::new(variant, usage))
        })
    }

    #[test]
    fn ok_every_name_parses_in_every_case() {
        for name in names() {
            let text = name.to_string();
            assert_eq!(RenditionName::parse(&text), Ok(name));
            assert_eq!(RenditionName::parse(&text.to_lowercase()), Ok(name));
            assert_eq!(RenditionName::parse(&text.to_uppercase()), Ok(name));
        }
    }

    #[test]
    fn ok_watermarked_is_watermark() {
        let name = RenditionName::parse("watermarkedPREVIEW").unwrap();
        assert_eq!(name.to_string(), "WatermarkPreview");
    }

    #[test]
    fn err_what_is_not_a_variant_and_a_usage() {
        let texts =
            ["", "Normal", "Preview", "NormalHuge", "Normal_Preview", "PreviewNormal", "åPreview"];
        for text in texts {
            let expected = Err(UnknownRendition { found: text.to_owned() });
            assert_eq!(RenditionName::parse(text), expected);
        }
    }

    #[test]
    fn json_holds_the_canonical_names() {
        for name in names() {
            let json = serde_json::to_string(&(name.variant, name.usage)).unwrap();
            assert_eq!(json, format!("[\"{}\",\"{}\"]", name.variant, name.usage));
        }
    }
}
