//! The file formats of deliveries: the part of a media URL after the id (contract deliveries-17).
//!
//! A delivery channel lists the files that it sends of each item, such as `_NormalHires.jpg`, `.json` and
//! `-fit_w800_NormalPreview.webp`. Such a text is a media URL without its item: it has the same grammar, and any
//! item completes it.

use std::fmt;

use crate::media_url::error::PathError;
use crate::media_url::extension::DocumentExtension;
use crate::media_url::operation::PictureOperation;
use crate::media_url::path::{MediaPath, MediaTarget, RenditionFile};
use crate::{ItemKey, RenditionExtension};

/// A file format for any item, such as `_NormalPreview.jpg`, `-fit_w800_NormalPreview.webp` or `.json`.
///
/// Formats that differ only in spelling are equal and print alike. An item need not have the file: a text has no
/// JPEG.
///
/// ```
/// use model::ItemKey;
/// use model::media_url::MediaFormat;
///
/// let format = MediaFormat::parse("_normalpreview.JPG")?;
/// assert_eq!(format.to_string(), "_NormalPreview.jpg");
/// let path = format.path(&ItemKey::parse("image/sdl-1")?);
/// assert_eq!(path.to_string(), "image/sdl-1_NormalPreview.jpg");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaFormat(MediaTarget);

impl MediaFormat {
    /// The maximum length of a format in bytes; the longest canonical format has fewer than 70.
    pub const BYTES_MAX: usize = 128;

    /// Parses the text that follows the id in a media URL.
    ///
    /// Fails with [`FormatError`] if the text is not in the grammar of media URLs, or names something that not
    /// every item can have as one file: an associated object, a crop, a bundle, a list of files, or the full size
    /// in a format other than that of the original.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        if text.len() > Self::BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len(), max: Self::BYTES_MAX }.into());
        }
        // Text after a slash would name an associated object, whose key is specific to one item.
        if text.contains('/') {
            return Err(FormatError::Association);
        }
        let path = MediaPath::parse(&format!("{PLACEHOLDER_ITEM}{text}"))?;
        // Text that is not a known token becomes part of the id, as in any media URL.
        if path.key().to_string() != PLACEHOLDER_ITEM {
            return Err(FormatError::Unknown { found: text.to_owned() });
        }
        match path.target() {
            MediaTarget::Item(_) | MediaTarget::Pricelist => return Err(FormatError::NoFile),
            MediaTarget::Rendition(file) => check_rendition(file)?,
            MediaTarget::Document(file) if file.extension == DocumentExtension::Zip => {
                return Err(FormatError::Zip);
            }
            MediaTarget::Document(file) if file.extension == DocumentExtension::Renditions => {
                return Err(FormatError::Listing);
            }
            MediaTarget::Document(file) if file.crop.is_some() => return Err(FormatError::Crop),
            MediaTarget::Document(_) => {}
        }
        Ok(Self(path.target))
    }

    /// Returns the path of this file of the item `key`.
    pub fn path(&self, key: &ItemKey) -> MediaPath {
        MediaPath { key: key.clone(), target: self.0.clone() }
    }
}

/// The item in whose URL a format is parsed. Its id has one letter, so text that lengthens it is detected.
const PLACEHOLDER_ITEM: &str = "image/x";

/// Checks that every item with a picture can have the rendition.
fn check_rendition(file: &RenditionFile) -> Result<(), FormatError> {
    match file.extension {
        RenditionExtension::Auto => return Err(FormatError::Negotiated),
        RenditionExtension::Image(format)
            if file.is_whole_hires() && file.extension != RenditionExtension::JPEG =>
        {
            return Err(FormatError::FullSize { found: format.extension() });
        }
        RenditionExtension::Image(_)
        | RenditionExtension::Pdf
        | RenditionExtension::Eps
        | RenditionExtension::Mp4 => {}
    }
    let mut operations = file.operations().iter();
    if operations.any(|operation| matches!(operation, PictureOperation::Crop(_))) {
        return Err(FormatError::Crop);
    }
    Ok(())
}

/// The reason why a text is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The text is not in the grammar of media URLs.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The text begins with characters that would become part of the item's id.
    #[error("`{found}` is not a known suffix, operation or extension")]
    Unknown { found: String },
    /// The text names the item or its licences, not a file.
    #[error("a format ends in an extension such as `.jpg`")]
    NoFile,
    /// The text names a file of one associated object.
    #[error("a format cannot name an associated object")]
    Association,
    /// The text has a crop, which is specific to one picture.
    #[error("a format cannot have a crop")]
    Crop,
    /// The text names the bundle of all other files.
    #[error("a format is a file, not `.zip`")]
    Zip,
    /// The text names the list of the other files.
    #[error("a format is a file, not the list `.renditions.json`")]
    Listing,
    /// The text leaves the file type to the client's `Accept` header.
    #[error("`.auto` is no format of a delivery: expected `.jpg`, `.webp` or `.avif`")]
    Negotiated,
    /// The text names the full size in a format other than JPEG, which no item has.
    #[error("the full size is `.jpg`; `{found}` needs a smaller suffix or an operation")]
    FullSize {
        /// The extension with its dot.
        found: &'static str,
    },
}

impl fmt::Display for MediaFormat {
    /// Prints the canonical spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            // Unreachable: `parse` refuses both.
            MediaTarget::Item(_) | MediaTarget::Pricelist => Ok(()),
            MediaTarget::Rendition(file) => file.fmt(f),
            MediaTarget::Document(file) => file.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = MediaFormat::parse(text).map(|format| format.to_string());
        match expected {
            Ok(canonical) => assert_eq!(found.as_deref(), Ok(canonical), "{text}"),
            Err(part) => {
                let message = found.unwrap_err().to_string();
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn ok_formats_are_what_follows_the_id_and_print_canonically() {
        for (text, canonical) in [
            (".jpg", "_NormalHires.jpg"),
            ("_NormalHires.jpg", "_NormalHires.jpg"),
            ("_normalpreview.JPG", "_NormalPreview.jpg"),
            ("_WatermarkedPreview.jpg", "_WatermarkPreview.jpg"),
            ("-watermark_NormalPreview.jpg", "-watermark_NormalPreview.jpg"),
            ("_CroppedThumbnail.jpg", "_CroppedThumbnail.jpg"),
            ("_webpreview.WEBP", "_WebPreview.webp"),
            ("-fit_h0600_w800_NormalPreview.webp", "-fit_w800_h600_NormalPreview.webp"),
            ("-watermark-fill_w640_h360.avif", "-fill_w640_h360-watermark_NormalHires.avif"),
            ("-Preset_Card_NormalPreview.jpg", "-preset_card_NormalPreview.jpg"),
            (".json", ".json"),
            (".xml", ".xml"),
            (".Metadata.JSON", ".metadata.json"),
            (".ninjs.json", ".ninjs.json"),
            ("-cutpaste.txt", "-cutpaste.txt"),
            ("-indesign.txt", "-indesign.txt"),
            ("_NormalPreview.mp4", "_NormalPreview.mp4"),
            (".pdf", ".pdf"),
            ("_BlackAndWhite.eps", "_BlackAndWhiteHires.eps"),
            ("_NormalPreview.webp", "_NormalPreview.webp"),
            ("-fit_h480_w640_NormalPreview.avif", "-fit_w640_h480_NormalPreview.avif"),
            ("-preset_card.jpg", "-preset_card_NormalHires.jpg"),
        ] {
            check(text, Ok(canonical));
        }
    }

    #[test]
    fn err_files_that_not_every_item_has_are_refused() {
        for (text, part) in [
            ("", "ends in an extension"),
            ("x", "not a known suffix"),
            ("/pricelist", "associated"),
            ("/a000_NormalPreview.jpg", "associated"),
            ("other.jpg", "not a known suffix"),
            ("-other_NormalPreview.jpg", "not a known suffix"),
            (".zip", "not `.zip`"),
            (".renditions.json", "not the list"),
            ("_NormalPreview.auto", "`.auto` is no format"),
            ("-fit_w800.auto", "`.auto` is no format"),
            (".webp", "the full size is `.jpg`"),
            ("_WatermarkHires.avif", "the full size is `.jpg`"),
            ("-fit_w0_NormalPreview.webp", "is zero"),
            ("-fit_w1-fill_w1_h1.webp", "second size"),
            ("-crop_w1_h1-fit_w1_NormalPreview.webp", "a crop"),
            ("-crop_w1_h1_NormalPreview.jpg", "a crop"),
            ("-crop_w1_h1.json", "a crop"),
            ("-crop_w1_h1.metadata.json", "-crop"),
            ("-watermark.json", "watermark"),
            (".gif", "gif"),
            ("../../etc/passwd", "associated"),
            ("%2e.jpg", "%"),
            ("_NormalPreview.jpg?x", "?"),
        ] {
            check(text, Err(part));
        }
        check(&format!("{}.jpg", "x".repeat(200)), Err("128"));
    }

    proptest! {
        #[test]
        fn a_format_parses_as_it_prints_and_is_a_file_of_any_item(
            text in "(-watermark|-crop_w1|-fit_w[1-9]|-fill_w9_h9|-preset_[a-z])?\
                     (-watermark|-fit_h[1-9])?\
                     (_(Normal|Watermark|Cropped|Web)(Hires|Preview|Thumbnail))?\
                     [.](jpg|webp|avif|auto|json|(renditions|metadata|ninjs)[.]json|xml|pdf|eps|\
                     mp4|zip)",
        ) {
            if let Ok(format) = MediaFormat::parse(&text) {
                prop_assert_eq!(&MediaFormat::parse(&format.to_string()), &Ok(format.clone()));
                let key: ItemKey = "video/a_b-c".parse().unwrap();
                let path = format.path(&key);
                prop_assert_eq!(path.to_string(), format!("{key}{format}"));
                prop_assert_eq!(MediaPath::parse(&path.to_string()), Ok(path));
            }
        }

        #[test]
        fn any_text_is_a_format_or_refused(text in "\\PC{0,40}") {
            if let Ok(format) = MediaFormat::parse(&text) {
                prop_assert_eq!(MediaFormat::parse(&format.to_string()), Ok(format));
            }
        }
    }
}
