//! The extension of a rendition, hence the kind of file that it is.

use std::borrow::Cow;

use imaging::ImageFormat;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The extension of a rendition: a picture, a printable graphic or a video.
///
/// Contract media-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RenditionExtension {
    /// A picture, the only kind of file that takes operations: `.jpg`.
    Image(ImageFormat),
    /// `.pdf`.
    Pdf,
    /// `.eps`.
    Eps,
    /// `.mp4`, the preview of a video.
    Mp4,
}

impl RenditionExtension {
    /// `.jpg`, the picture that every address without a choice means.
    pub const JPEG: Self = Self::Image(ImageFormat::JPEG);

    /// Every rendition extension.
    pub fn all() -> impl Iterator<Item = Self> {
        ImageFormat::all().map(Self::Image).chain([Self::Pdf, Self::Eps, Self::Mp4])
    }

    /// The canonical spelling with its dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image(format) => format.extension(),
            Self::Pdf => ".pdf",
            Self::Eps => ".eps",
            Self::Mp4 => ".mp4",
        }
    }

    /// The MIME type of what is served.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Image(format) => format.mime_type(),
            Self::Pdf => "application/pdf",
            Self::Eps => "application/postscript",
            Self::Mp4 => "video/mp4",
        }
    }

    /// Whether it is a picture.
    pub fn is_image(self) -> bool {
        match self {
            Self::Image(_) => true,
            Self::Pdf | Self::Eps | Self::Mp4 => false,
        }
    }

    /// Whether operations may stand before the extension.
    pub fn accepts_operations(self) -> bool {
        self.is_image()
    }

    /// Whether `_BlackAndWhite` may stand without a usage and means its Hires.
    pub fn accepts_lone_variant(self) -> bool {
        match self {
            Self::Pdf | Self::Eps => true,
            Self::Image(_) | Self::Mp4 => false,
        }
    }
}

/// The extension without its dot.
impl Serialize for RenditionExtension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_str()[1..])
    }
}

impl<'de> Deserialize<'de> for RenditionExtension {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        let found = Self::all().find(|extension| extension.as_str()[1..] == *name);
        found.ok_or_else(|| D::Error::custom(format!("no rendition ends in .{name}")))
    }
}
