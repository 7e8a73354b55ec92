//! The names of an item's files, such as `NormalHires.jpg` or `a000_NormalHires.jpg`.

use std::fmt;

use super::{IngestError, IngestResult};
use model::item::has_picture;
use model::{
    AssociationKey, MediaType, RenditionExtension, RenditionName, RenditionUsage, RenditionVariant,
};

/// The parsed name of a file of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The associated object that the file shows; `None` for the item itself.
    pub association: Option<AssociationKey>,
    /// The variant and usage of the rendition.
    pub name: RenditionName,
    pub extension: RenditionExtension,
}

impl FileName {
    /// Parses the name of a file of an item of `media_type` (contract ingest-5, ingest-6).
    ///
    /// Fails with a list of the accepted names.
    pub fn parse(media_type: MediaType, text: &str) -> IngestResult<Self> {
        // Only the canonical spelling is accepted, so that two names never denote the same file.
        let parsed = split(text)
            .filter(|parsed| parsed.to_string() == text && parsed.is_accepted(media_type));
        parsed.ok_or_else(|| {
            let accepted = match media_type {
                MediaType::Image | MediaType::Stockfoto => {
                    "NormalHires.jpg, NormalPreview.jpg, NormalThumbnail.jpg, "
                }
                MediaType::Graphic => {
                    "NormalHires and BlackAndWhiteHires as .pdf and .eps, NormalHires.jpg, \
                     NormalPreview.jpg, NormalThumbnail.jpg, "
                }
                MediaType::Video => {
                    "NormalPreview.mp4, NormalHires.mp4, NormalPreview.jpg, NormalThumbnail.jpg, "
                }
                MediaType::Text
                | MediaType::Feature
                | MediaType::Page
                | MediaType::Planning
                | MediaType::Calendar => "",
            };
            IngestError::Name(format!(
                "is not a file that can be ingested; expected item.json, {accepted}and of \
                 associated objects <association>_NormalHires.jpg and the like"
            ))
        })
    }

    /// Returns whether an item may have such a file. A file that can be generated from an accepted file is
    /// refused, except for smaller pictures and a grey graphic, which an editor may have prepared better.
    fn is_accepted(&self, media_type: MediaType) -> bool {
        let Self { association, name, extension } = self;
        let normal = name.variant == RenditionVariant::Normal;
        let small =
            normal && matches!(name.usage, RenditionUsage::Preview | RenditionUsage::Thumbnail);
        let hires = name.usage == RenditionUsage::Hires;
        let grey = name.variant == RenditionVariant::BlackAndWhite;
        let (graphic, video, picture) = match association {
            // An associated object may be of any media type.
            Some(_) => (true, true, true),
            None => (
                media_type == MediaType::Graphic,
                media_type == MediaType::Video,
                has_picture(media_type) || media_type == MediaType::Graphic,
            ),
        };
        match extension {
            // A file in a format that is only written would never be decoded.
            RenditionExtension::Image(format) if !format.is_readable() => false,
            RenditionExtension::Auto => false,
            RenditionExtension::Image(_) => {
                (small && (picture || video)) || (hires && normal && picture)
            }
            RenditionExtension::Pdf | RenditionExtension::Eps => {
                graphic && hires && (normal || grey)
            }
            RenditionExtension::Mp4 => {
                video && normal && (hires || name.usage == RenditionUsage::Preview)
            }
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.association {
            write!(f, "{key}_")?;
        }
        write!(f, "{}{}", self.name, self.extension.as_str())
    }
}

/// Splits a file name into its parts.
fn split(text: &str) -> Option<FileName> {
    let (stem, extension) = RenditionExtension::all()
        .into_iter()
        .find_map(|extension| Some((text.strip_suffix(extension.as_str())?, extension)))?;
    let (association, name) = match stem.rsplit_once('_') {
        None => (None, stem),
        Some((key, name)) => (Some(AssociationKey::parse(key).ok()?), name),
    };
    Some(FileName { association, name: RenditionName::find(name)?, extension })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_accepted(media_type: MediaType, text: &str) -> bool {
        FileName::parse(media_type, text).is_ok()
    }

    #[test]
    fn ok_names_of_each_media_type() {
        for (media_type, names) in [
            (
                MediaType::Image,
                &["NormalHires.jpg", "NormalPreview.jpg", "NormalThumbnail.jpg"][..],
            ),
            (
                MediaType::Graphic,
                &[
                    "NormalHires.pdf",
                    "BlackAndWhiteHires.pdf",
                    "NormalHires.eps",
                    "NormalPreview.jpg",
                ],
            ),
            (MediaType::Video, &["NormalPreview.mp4", "NormalHires.mp4", "NormalThumbnail.jpg"]),
            (
                MediaType::Text,
                &["a000_NormalHires.jpg", "a001_NormalHires.pdf", "x-1_NormalPreview.mp4"],
            ),
        ] {
            for name in names {
                assert!(is_accepted(media_type, name), "{media_type} {name}");
            }
        }
    }

    #[test]
    fn err_names_that_are_made_or_mean_nothing() {
        for (media_type, name) in [
            (MediaType::Image, "normalhires.jpg"),
            (MediaType::Image, "NormalHires.JPG"),
            (MediaType::Image, "WatermarkPreview.jpg"),
            (MediaType::Image, "NormalHires.pdf"),
            (MediaType::Image, "NormalPreview.mp4"),
            (MediaType::Graphic, "NormalPreview.pdf"),
            (MediaType::Graphic, "CroppedThumbnail.jpg"),
            (MediaType::Video, "NormalThumbnail.mp4"),
            (MediaType::Video, "NormalHires.jpg"),
            (MediaType::Text, "NormalHires.jpg"),
            (MediaType::Text, "a_0_NormalHires.jpg"),
            (MediaType::Text, "_NormalHires.jpg"),
            (MediaType::Text, "a000_Hires.jpg"),
            (MediaType::Text, "../a000_NormalHires.jpg"),
        ] {
            assert!(!is_accepted(media_type, name), "{media_type} {name}");
        }
    }
}
