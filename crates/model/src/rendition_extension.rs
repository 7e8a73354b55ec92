//! The extension of a rendition, which determines its file type.

use std::borrow::Cow;

use imaging::ImageFormat;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The extension of a rendition: an image, a printable graphic or a video.
///
/// Contract media-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RenditionExtension {
    /// An image such as `.jpg`. Only images accept operations.
    Image(ImageFormat),
    /// `.auto`: an image as AVIF or JPEG, as the client prefers according to its `Accept` header.
    Auto,
    Pdf,
    Eps,
    /// `.mp4`, the preview of a video.
    Mp4,
}

impl RenditionExtension {
    /// `.jpg`, the default if a URL or setting does not choose a format.
    pub const JPEG: Self = Self::Image(ImageFormat::Jpeg);

    /// Iterates over every rendition extension.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Auto, Self::Pdf, Self::Eps, Self::Mp4];
        ImageFormat::all().map(Self::Image).chain(others)
    }

    /// Returns the canonical spelling with its dot.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image(format) => format.extension(),
            Self::Auto => ".auto",
            Self::Pdf => ".pdf",
            Self::Eps => ".eps",
            Self::Mp4 => ".mp4",
        }
    }

    /// Returns the MIME type of the served file; for `.auto`, the type for a client without preferences.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Image(format) => format.mime_type(),
            Self::Auto => ImageFormat::Jpeg.mime_type(),
            Self::Pdf => "application/pdf",
            Self::Eps => "application/postscript",
            Self::Mp4 => "video/mp4",
        }
    }

    /// Reports whether the file is an image. Operations may precede the extension of an image.
    pub fn is_image(self) -> bool {
        matches!(self, Self::Image(_) | Self::Auto)
    }

    /// Reports whether `_BlackAndWhite` may be written without a usage, which then is Hires.
    pub fn accepts_lone_variant(self) -> bool {
        matches!(self, Self::Pdf | Self::Eps)
    }
}

/// Serializes the extension without its dot.
impl Serialize for RenditionExtension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_str()[1..])
    }
}

impl<'de> Deserialize<'de> for RenditionExtension {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        let found = Self::all().find(|extension| extension.as_str()[1..] == *name);
        found.ok_or_else(|| D::Error::custom(format!("no rendition has the extension .{name}")))
    }
}
