//! The names of renditions: a variant and a usage.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator, IntoStaticStr};

/// The variant of a rendition, which is its kind of processing.
///
/// Contract media-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[derive(Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(ascii_case_insensitive)]
pub enum RenditionVariant {
    Normal,
    /// With a watermark in the lower left corner.
    #[strum(to_string = "Watermark", serialize = "Watermarked")]
    Watermark,
    BlackAndWhite,
    /// Cropped around the centre of interest.
    Cropped,
    /// A still image of a video.
    Framegrab,
    /// Prepared for the web.
    Web,
}

crate::impl_as_str!(RenditionVariant);

/// The usage of a rendition, which determines its size.
///
/// Contract media-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[derive(Display, EnumIter, EnumString, IntoStaticStr)]
pub enum RenditionUsage {
    /// The smallest image, for lists.
    Thumbnail,
    /// An image for the screen.
    Preview,
    /// The full-size image, for print.
    Hires,
    Hidef,
    /// A low-resolution image or video.
    Lores,
}

crate::impl_as_str!(RenditionUsage);

/// The name of a rendition of an item, such as `NormalPreview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RenditionName {
    pub variant: RenditionVariant,
    pub usage: RenditionUsage,
}

impl RenditionName {
    /// The full-size, unmodified image, which a URL without a suffix names.
    pub const NORMAL_HIRES: Self = Self::new(RenditionVariant::Normal, RenditionUsage::Hires);
    /// The image for the screen.
    pub const NORMAL_PREVIEW: Self = Self::new(RenditionVariant::Normal, RenditionUsage::Preview);
    /// The image for lists.
    pub const NORMAL_THUMBNAIL: Self =
        Self::new(RenditionVariant::Normal, RenditionUsage::Thumbnail);
    /// The image for the screen with a watermark.
    pub const WATERMARK_PREVIEW: Self =
        Self::new(RenditionVariant::Watermark, RenditionUsage::Preview);
    /// The square image for lists.
    pub const CROPPED_THUMBNAIL: Self =
        Self::new(RenditionVariant::Cropped, RenditionUsage::Thumbnail);
    /// The image for picture walls, between Thumbnail and Preview in size.
    pub const WEB_PREVIEW: Self = Self::new(RenditionVariant::Web, RenditionUsage::Preview);
    /// The print file in greyscale.
    pub const GREY_HIRES: Self = Self::new(RenditionVariant::BlackAndWhite, RenditionUsage::Hires);

    /// The names of the JPEG renditions that every picture has. The documentation lists them.
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

    /// Builds a name from a variant and a usage.
    pub const fn new(variant: RenditionVariant, usage: RenditionUsage) -> Self {
        Self { variant, usage }
    }

    /// Finds the rendition named `<variant><usage>`, ignoring case.
    ///
    /// `Watermarked` is accepted for `Watermark` (contract media-2).
    pub fn find(text: &str) -> Option<Self> {
        RenditionUsage::iter().find_map(|usage| {
            // The usage is matched first, from the right: as prefixes, `Watermark` and `Watermarked` would
            // collide.
            let start = text.len().checked_sub(usage.as_str().len())?;
            let (variant, tail) = text.split_at_checked(start)?;
            if !tail.eq_ignore_ascii_case(usage.as_str()) {
                return None;
            }
            Some(Self::new(variant.parse().ok()?, usage))
        })
    }
}

impl fmt::Display for RenditionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.variant, self.usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> impl Iterator<Item = RenditionName> {
        RenditionVariant::iter().flat_map(|variant| {
            RenditionUsage::iter().map(move |usage| RenditionName::new(variant, usage))
        })
    }

    #[test]
    fn ok_every_name_parses_in_every_case() {
        for name in names() {
            let text = name.to_string();
            assert_eq!(RenditionName::find(&text), Some(name));
            assert_eq!(RenditionName::find(&text.to_lowercase()), Some(name));
            assert_eq!(RenditionName::find(&text.to_uppercase()), Some(name));
        }
    }

    #[test]
    fn ok_watermarked_is_watermark() {
        let name = RenditionName::find("watermarkedPREVIEW").unwrap();
        assert_eq!(name.to_string(), "WatermarkPreview");
    }

    #[test]
    fn err_names_without_variant_and_usage() {
        let texts =
            ["", "Normal", "Preview", "NormalHuge", "Normal_Preview", "PreviewNormal", "åPreview"];
        for text in texts {
            assert_eq!(RenditionName::find(text), None);
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
