//! Defines the errors of reading and converting PDFs.

/// The reason why a PDF was refused.
///
/// All variants except [`PdfError::Write`] describe a problem of the file, which its author can fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    /// There is no `%PDF-` near the start of the file.
    #[error("expected a pdf, found {found} bytes without a %PDF- header in the first 1024")]
    NotPdf {
        /// The length of the file in bytes.
        found: usize,
    },
    /// The file needs a password, or has usage rights that only a decrypting reader can respect.
    #[error("the pdf is encrypted, expected one without a password")]
    Encrypted,
    /// The structure of the file is too damaged for readers to repair.
    #[error("the pdf is malformed: {what}")]
    Malformed {
        /// The damaged part of the file.
        what: &'static str,
    },
    /// The page tree has no page.
    #[error("the pdf has no page, expected at least one")]
    NoPages,
    /// The file is too long or has too many objects.
    #[error("the pdf has {found} {what}, expected at most {max}")]
    TooMany {
        /// The counted items: `bytes` or `objects`.
        what: &'static str,
        /// The number in the file.
        found: usize,
        /// The maximum number of these items.
        max: usize,
    },
    /// The page tree, colour spaces or functions are nested too deeply.
    #[error("the pdf nests its {what} deeper than {max}")]
    TooDeep {
        /// The kind of the nested objects.
        what: &'static str,
        /// The limit in levels.
        max: usize,
    },
    /// The streams of the file decompress to too much data.
    #[error("the streams of the pdf unpack to more than {max} bytes")]
    TooMuchData {
        /// The limit in bytes.
        max: usize,
    },
    /// Drawing the pages needs too many operators.
    #[error("the pdf needs more than {max} operators")]
    TooManyOperators {
        /// The maximum number of operators.
        max: u64,
    },
    /// An image is larger than allowed.
    #[error("an image of {width}x{height} pixels is in the pdf, expected at most {max} pixels")]
    ImageTooLarge {
        width: u64,
        height: u64,
        /// The limit in pixels.
        max: u64,
    },
    /// An image cannot be decoded, so its luminance is unknown.
    #[error("an image of {width}x{height} pixels in the pdf cannot be decoded: {what}")]
    Image {
        width: u64,
        height: u64,
        /// The part of the decoding that fails.
        what: &'static str,
    },
    /// The requested picture has more pixels than allowed.
    #[error("page 1 at {width}x{height} pixels is too large, expected at most {max} pixels")]
    RasterTooLarge {
        width: u64,
        height: u64,
        /// The limit in pixels.
        max: u64,
    },
    /// The new file cannot be written.
    #[error("the pdf could not be written")]
    Write,
}
