//! The extensions of media URLs, with their MIME types.

use std::fmt;

use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

use crate::{RenditionExtension, token};

/// The extension of a file generated from the whole item. It follows the item's id; `.json` may also follow a crop.
///
/// The longer of two extensions with the same ending comes first, because [`FileExtension::split`] uses the first match.
///
/// Contract media-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(EnumIter, IntoStaticStr)]
pub enum DocumentExtension {
    /// The list of the item's renditions, with their sizes and formats.
    #[strum(serialize = ".renditions.json")]
    Renditions,
    /// The item's properties of IPTC Photo Metadata.
    #[strum(serialize = ".metadata.json")]
    Metadata,
    /// The item in ninjs 3, the news format of the IPTC.
    #[strum(serialize = ".ninjs.json")]
    Ninjs,
    /// The news item document (ttninjs).
    #[strum(serialize = ".json")]
    Json,
    /// The item in NewsML-G2, the XML format of the IPTC.
    #[strum(serialize = ".xml")]
    Xml,
    /// The item's files in one ZIP file.
    #[strum(serialize = ".zip")]
    Zip,
    /// The text without markup, to copy and paste.
    #[strum(serialize = "-cutpaste.txt")]
    Cutpaste,
    /// The text as InDesign Tagged Text.
    #[strum(serialize = "-indesign.txt")]
    Indesign,
}

crate::impl_as_str!(DocumentExtension);

impl DocumentExtension {
    /// Returns the MIME type, without a character set.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Json | Self::Renditions | Self::Metadata | Self::Ninjs => "application/json",
            Self::Xml => "text/xml",
            Self::Zip => "application/zip",
            Self::Cutpaste | Self::Indesign => "text/plain",
        }
    }

    /// Reports whether a crop may precede the extension.
    pub fn accepts_crop(self) -> bool {
        self == Self::Json
    }
}

/// Any extension in the grammar of media URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileExtension {
    Rendition(RenditionExtension),
    Document(DocumentExtension),
}

impl FileExtension {
    /// Returns the canonical spelling, with the dot or hyphen at its beginning.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rendition(extension) => extension.as_str(),
            Self::Document(extension) => extension.as_str(),
        }
    }

    /// Splits a name into the text before its extension and the extension.
    ///
    /// `-cutpaste.txt` and `-indesign.txt` each count as one extension, as does `.renditions.json`. Case is ignored.
    pub(crate) fn split(name: &str) -> Option<(&str, Self)> {
        let renditions = RenditionExtension::all().map(Self::Rendition);
        let documents = DocumentExtension::iter().map(Self::Document);
        renditions
            .chain(documents)
            .find_map(|extension| Some((token::strip(name, extension.as_str())?, extension)))
    }
}

impl fmt::Display for FileExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_is_removed_in_any_case() {
        let texts = [
            (".jpg", "image/jpeg"),
            (".pdf", "application/pdf"),
            (".eps", "application/postscript"),
            (".mp4", "video/mp4"),
            (".json", "application/json"),
            (".renditions.json", "application/json"),
            (".metadata.json", "application/json"),
            (".ninjs.json", "application/json"),
            (".auto", "image/jpeg"),
            (".xml", "text/xml"),
            (".zip", "application/zip"),
            ("-cutpaste.txt", "text/plain"),
            ("-indesign.txt", "text/plain"),
        ];
        for (text, mime_type) in texts {
            for spelling in [text.to_owned(), text.to_uppercase()] {
                let name = format!("a{spelling}");
                let (before, extension) = FileExtension::split(&name).unwrap();
                assert_eq!((before, extension.as_str()), ("a", text));
                let found = match extension {
                    FileExtension::Rendition(extension) => extension.mime_type(),
                    FileExtension::Document(extension) => extension.mime_type(),
                };
                assert_eq!(found, mime_type);
            }
        }
    }

    #[test]
    fn an_unknown_extension_is_kept() {
        for name in ["a.jpeg", "a.txt", "a", "jpg", "a.jpg ", "a-cutpaste.jpgx"] {
            assert_eq!(FileExtension::split(name), None, "{name}");
        }
    }
}
