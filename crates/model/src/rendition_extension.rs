//! The extension of a rendition, hence the kind of file that it is.

use serde::{Deserialize, Serialize};

/// The extension of a rendition: a picture, a printable graphic or a video.
///
/// Spec §4 Media interface, Extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RenditionExtension {
    /// `.jpg`, the only one that takes operations.
    Jpg,
    /// `.pdf`.
    Pdf,
    /// `.eps`.
    Eps,
    /// `.mp4`, the preview of a video.
    Mp4,
}

impl RenditionExtension {
    /// Every rendition extension.
    pub const ALL: [Self; 4] = [Self::Jpg, Self::Pdf, Self::Eps, Self::Mp4];

    /// The canonical spelling with its dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jpg => ".jpg",
            Self::Pdf => ".pdf",
            Self::Eps => ".eps",
            Self::Mp4 => ".mp4",
        }
    }

    /// The MIME type of what is served.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Jpg => "image/jpeg",
            Self::Pdf => "application/pdf",
            Self::Eps => "application/postscript",
            Self::Mp4 => "video/mp4",
        }
    }

    /// Whether operations may stand before the extension.
    pub fn takes_operations(self) -> bool {
        match self {
            Self::Jpg => true,
            Self::Pdf | Self::Eps | Self::Mp4 => false,
        }
    }

    /// Whether `_BlackAndWhite` may stand without a usage and means its Hires.
    pub fn takes_lone_variant(self) -> bool {
        match self {
            Self::Pdf | Self::Eps => true,
            Self::Jpg | Self::Mp4 => false,
        }
    }
}
