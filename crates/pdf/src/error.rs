//! The errors, as data.

/// Why a PDF was refused.
///
/// Everything but [`PdfError::Write`] says something about the file, which its author can
/// act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    /// There is no `%PDF-` near the start.
    #[error("expected a pdf, found {found} bytes without a %PDF- header in the first 1024")]
    NotPdf {
        /// Length of the file in bytes.
        found: usize,
    },
    /// The file needs a password or carries usage rights that only a decrypting reader can honour.
    #[error("the pdf is encrypted, expected one without a password")]
    Encrypted,
    /// The structure of the file is broken beyond what readers repair.
    #[error("the pdf is malformed: {what}")]
    Malformed {
        /// The part that is broken.
        what: &'static str,
    },
    /// The page tree has no page.
    #[error("the pdf has no page, expected at least one")]
    NoPages,
    /// The file is too long.
    #[error("the pdf has {found} bytes, expected at most {max}")]
    TooManyBytes {
        /// Length of the file in bytes.
        found: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The file has too many objects.
    #[error("the pdf has {found} objects, expected at most {max}")]
    TooManyObjects {
        /// Objects in the file.
        found: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// Page tree, colour spaces or functions are nested too deep.
    #[error("the pdf nests its {what} deeper than {max}")]
    TooDeep {
        /// The kind of objects that are nested.
        what: &'static str,
        /// The limit in levels.
        max: usize,
    },
    /// The streams of the file unpack to too much.
    #[error("the streams of the pdf unpack to more than {max} bytes")]
    TooMuchData {
        /// The limit in bytes.
        max: usize,
    },
    /// Drawing the pages takes too many steps.
    #[error("the pdf needs more than {max} operators")]
    TooManyOperators {
        /// The most that are allowed.
        max: u64,
    },
    /// An image is larger than allowed.
    #[error("an image of {width}x{height} pixels is in the pdf, expected at most {max} pixels")]
    ImageTooLarge {
        /// Width in pixels.
        width: u64,
        /// Height in pixels.
        height: u64,
        /// The limit in pixels.
        max: u64,
    },
    /// An image cannot be decoded, so its luminance is not known.
    #[error("an image of {width}x{height} pixels in the pdf cannot be decoded: {what}")]
    Image {
        /// Width in pixels.
        width: u64,
        /// Height in pixels.
        height: u64,
        /// The part that fails.
        what: &'static str,
    },
    /// The picture asked for has more pixels than allowed.
    #[error("page 1 at {width}x{height} pixels is too large, expected at most {max} pixels")]
    RasterTooLarge {
        /// Width in pixels.
        width: u64,
        /// Height in pixels.
        height: u64,
        /// The limit in pixels.
        max: u64,
    },
    /// The new file could not be written.
    #[error("the pdf could not be written")]
    Write,
}
