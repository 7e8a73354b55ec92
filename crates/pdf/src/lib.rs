#![doc = include_str!("../README.md")]
//!
//! Every function is a pure function of the bytes and the limits. Apart from hayro, nothing
//! recurses deeper than a limit, every stream is unpacked up to a limit, and cycles end.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what a PDF holds is lopdf's enum of ten kinds, of which a place takes one or two"
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
mod walk;
mod write;

use std::collections::HashMap;

pub use active::ActiveContent;
pub use error::PdfError;
pub use raster::{PageRaster, raster};

use crate::budget::WorkBudget;
use crate::scope::DocumentSession;

/// Bounds on the cost of one document. A limit that is reached is an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PdfLimits {
    /// Length of the file in bytes.
    pub bytes: usize,
    /// Objects in the file; also kids in its page tree.
    pub objects: usize,
    /// Levels of nested page tree nodes, colour spaces and functions.
    pub depth: usize,
    /// Bytes that all streams together unpack to, decoded images included. While the file is read,
    /// each object stream counts on its own.
    pub decoded_bytes: usize,
    /// Operators of all content streams together, and those that drawing page 1 executes, where a
    /// form counts as often as it is drawn. Functions may take 32 steps for each.
    pub operators: u64,
    /// Pixels of the picture that [`raster`] makes.
    pub pixels: u64,
    /// Pixels of one image in the file.
    pub image_pixels: u64,
}

/// Facts of a PDF: pages, size of the first page, active content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentFacts {
    /// Number of pages, at least 1.
    pub pages: usize,
    /// Width of page 1 as shown, in points: its CropBox inside its MediaBox, turned by Rotate,
    /// times UserUnit.
    pub width_pt: f32,
    /// Height of page 1 as shown, in points.
    pub height_pt: f32,
    /// Scripts and programs that a reader may run.
    pub active: ActiveContent,
}

/// Reads the facts of a PDF.
///
/// Costs one pass over the file.
///
/// # Errors
///
/// [`PdfError`] when the file is not a PDF, is encrypted, is malformed beyond repair, has no page,
/// or exceeds a limit.
pub fn facts(bytes: &[u8], limits: &PdfLimits) -> Result<DocumentFacts, PdfError> {
    let document = load::load(bytes, limits)?;
    let pages = load::pages(&document, limits)?.pages;
    let page = pages.first().ok_or(PdfError::NoPages)?;
    Ok(load::page_facts(&document, pages.len(), page))
}

/// Makes the black-and-white version of a PDF: every colour and image becomes DeviceGray with the
/// luminance of the original, and text stays text.
///
/// The same bytes give the same bytes. Document information, metadata and identifiers are kept,
/// and so are output intents, which say nothing against grey. Objects that nothing needs any more,
/// such as profiles, are left out. A digital signature in the file is no longer valid, because the
/// file is another one. Grey is `0.299 R + 0.587 G + 0.114 B` after conversion to sRGB: profiles
/// are applied, DeviceCMYK is converted as poppler does. Text and lines in solid black ink stay
/// solid black, although readers show that ink as a dark grey.
///
/// Costs some milliseconds for a map or a chart, and about 1 s for each 50 megapixels of CMYK
/// images.
///
/// # Errors
///
/// [`PdfError`] when the file is not a PDF, is encrypted, is malformed beyond repair, has no page,
/// exceeds a limit, or has an image that cannot be decoded.
pub fn grey(bytes: &[u8], limits: &PdfLimits) -> Result<Vec<u8>, PdfError> {
    let document = load::load(bytes, limits)?;
    let pages = load::pages(&document, limits)?;
    let mut session = DocumentSession { budget: WorkBudget::new(limits), spaces: HashMap::new() };
    let changes = walk::walk(&document, &mut session, &pages)?;
    write::write(document, changes)
}

#[cfg(test)]
mod poppler_tests;
#[cfg(test)]
mod test_documents;
#[cfg(test)]
mod tests;
