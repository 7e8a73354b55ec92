#![doc = include_str!("../README.md")]
//!
//! Every result depends on the bytes and the arguments alone. Except in hayro, the library that renders pages,
//! recursion is limited, each stream is decompressed up to a limit, and cycles terminate.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "lopdf's enum of objects has ten variants, of which each match handles one or two"
)]

mod active;
mod annotation;
mod bitmap;
mod budget;
mod calculator;
mod content;
mod error;
mod filter;
mod function;
mod function_parser;
mod inline;
mod jpeg;
mod jpeg2000;
mod load;
mod luminance;
mod lzw;
mod mesh;
mod number;
mod operator_count;
mod pictures;
mod predictor;
mod profile;
mod raster;
mod samples;
mod scan;
mod scope;
mod shading;
mod space;
mod space_parser;
mod walk;
mod write;

pub use active::ActiveContent;
pub use error::PdfError;
pub use raster::{PageRaster, raster};

/// The limits on the cost of one document. Exceeding a limit is an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PdfLimits {
    /// The maximum length of the file in bytes.
    pub bytes: usize,
    /// The maximum number of objects in the file, and of child nodes in its page tree.
    pub objects: usize,
    /// The maximum nesting depth of page tree nodes, colour spaces and functions.
    pub depth: usize,
    /// The maximum total bytes of all decompressed streams, including decoded images. While the file is loaded,
    /// the limit applies to each object stream separately.
    pub decoded_bytes: usize,
    /// The maximum number of operators, the drawing commands of a PDF: of all content streams together, and of those
    /// that drawing page 1 executes, where a form counts each time it is drawn. Functions, which compute colours, may
    /// run 32 steps for each operator that is allowed.
    pub operators: u64,
    /// The maximum number of pixels of the picture that [`raster`] renders.
    pub pixels: u64,
    /// The maximum number of pixels of a single image in the file.
    pub image_pixels: u64,
}

/// The properties of a PDF: pages, size of the first page, active content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentFacts {
    /// The number of pages, at least 1.
    pub pages: usize,
    /// Displayed width of page 1 in points, 1/72 inch: its CropBox within its MediaBox, rotated by Rotate, times
    /// UserUnit.
    pub width_pt: f32,
    /// Displayed height of page 1 in points.
    pub height_pt: f32,
    /// Scripts and programs that a PDF reader may run.
    pub active: ActiveContent,
}

/// Reads the properties of a PDF.
///
/// Needs one pass over the file and one over its objects.
///
/// # Errors
///
/// [`PdfError`] if the file is not a PDF, is encrypted, is malformed beyond repair, has no page, or exceeds a
/// limit.
pub fn facts(bytes: &[u8], limits: &PdfLimits) -> Result<DocumentFacts, PdfError> {
    let document = load::load(bytes, limits)?;
    let pages = load::pages(&document, limits)?.pages;
    let page = pages.first().ok_or(PdfError::NoPages)?;
    Ok(load::page_facts(&document, pages.len(), page))
}

/// Converts a PDF to greyscale: each colour and image becomes DeviceGray with the luminance of the original,
/// and text remains text.
///
/// The output is deterministic. Document information, metadata, identifiers and output intents are preserved. Objects
/// that are no longer referenced, such as profiles, are dropped. A digital signature in the file becomes invalid,
/// because the file has changed.
///
/// Grey is `0.299 R + 0.587 G + 0.114 B` after conversion to sRGB: profiles are applied, and DeviceCMYK is
/// converted in the same way as in poppler. Text and lines in solid black ink remain solid black, although readers
/// display that ink as a dark grey.
///
/// Needs a few milliseconds for a map or a chart, and about 1 s per 50 megapixels of CMYK images.
///
/// # Errors
///
/// [`PdfError`] if the file is not a PDF, is encrypted, is malformed beyond repair, has no page, exceeds a limit,
/// has an image that cannot be decoded, or cannot be written.
pub fn grey(bytes: &[u8], limits: &PdfLimits) -> Result<Vec<u8>, PdfError> {
    let document = load::load(bytes, limits)?;
    let pages = load::pages(&document, limits)?;
    let changes = walk::walk(&document, limits, &pages)?;
    write::write(document, changes)
}

#[cfg(test)]
mod poppler_tests;
#[cfg(test)]
mod test_documents;
#[cfg(test)]
mod tests;
