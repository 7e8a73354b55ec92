//! Renders page 1 as a picture with hayro.

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_interpret::util::TransformExt as _;
use hayro::hayro_syntax::page::Page;
use hayro::hayro_syntax::{LoadPdfError, Pdf};
use hayro::kurbo::Affine;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::{self, Pixmap, RasterizerSettings, RenderContext, TargetInit};
use hayro::{RenderCache, RenderSettings, render_into};

use crate::{PdfError, PdfLimits, load, operator_count};

/// A rendered page, in sRGB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRaster {
    pub width: u32,
    pub height: u32,
    /// `[height][width][3]` of `u8`, sRGB, rows without padding.
    pub rgb: Vec<u8>,
}

/// Renders page 1 on a white background.
///
/// `long_side_px` is the length of the longer edge in pixels, at least 1. The other edge follows from the
/// displayed box of the page, rounded to the nearest pixel and at least 1. Text in a standard font that is not
/// embedded is drawn with a substitute that is part of hayro.
///
/// Needs a few milliseconds for a map, more for large images. A hostile file may need much time and memory, or
/// overflow the stack, so call this function in a process that contains the damage.
///
/// # Errors
///
/// [`PdfError`] if the file is not a PDF, needs a password, has no page, draws itself, executes more than
/// `limits.operators`, or if the picture would have more than `limits.pixels`.
pub fn raster(
    bytes: &[u8],
    long_side_px: u32,
    limits: &PdfLimits,
) -> Result<PageRaster, PdfError> {
    // hayro has no limits, so the file is checked and the page is measured before it is handed over.
    check_operator_count(bytes, limits)?;
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(_) => PdfError::Encrypted,
        LoadPdfError::Invalid => PdfError::Malformed { what: "its structure" },
    })?;
    let page = pdf.pages().iter().next().ok_or(PdfError::NoPages)?;
    let (width, height) = size(page, long_side_px, limits)?;
    let pixmap = draw(page, width, height);
    let rgb = pixmap.data().iter().flat_map(|pixel| [pixel.r, pixel.g, pixel.b]).collect();
    Ok(PageRaster { width: u32::from(width), height: u32::from(height), rgb })
}

/// Refuses files beyond a limit, and pages that would need too much time to draw.
fn check_operator_count(bytes: &[u8], limits: &PdfLimits) -> Result<(), PdfError> {
    let document = load::load(bytes, limits)?;
    let pages = load::pages(&document, limits)?;
    let page = pages.pages.first().ok_or(PdfError::NoPages)?;
    operator_count::check(&document, limits, page)
}

/// Computes the size of the picture in pixels.
fn size(page: &Page<'_>, long_side_px: u32, limits: &PdfLimits) -> Result<(u16, u16), PdfError> {
    let (page_width, page_height) = page.render_dimensions();
    let scale = f64::from(long_side_px) / f64::from(page_width.max(page_height));
    // A page that is a thin line still has a pixel, and rounding never exceeds the requested length.
    let edge_max = u64::from(long_side_px.max(1));
    let width = nearest(f64::from(page_width) * scale).clamp(1, edge_max);
    let height = nearest(f64::from(page_height) * scale).clamp(1, edge_max);
    let max = limits.pixels;
    let too_large = PdfError::RasterTooLarge { width, height, max };
    if width.saturating_mul(height) > max {
        return Err(too_large);
    }
    // The renderer addresses pixels with 16 bits.
    match (u16::try_from(width), u16::try_from(height)) {
        (Ok(width), Ok(height)) => Ok((width, height)),
        _ => Err(too_large),
    }
}

fn draw(page: &Page<'_>, width: u16, height: u16) -> Pixmap {
    let (page_width, page_height) = page.render_dimensions();
    let scale = Affine::scale_non_uniform(
        f64::from(width) / f64::from(page_width),
        f64::from(height) / f64::from(page_height),
    );
    // No threads, because the caller decides where the work runs.
    let settings = vello_cpu::RenderSettings { num_threads: 0, ..Default::default() };
    let mut context = RenderContext::new_with(width, height, settings);
    render_into(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &mut context,
        scale * page.initial_transform(true).to_kurbo(),
    );
    context.flush();
    let mut pixmap = Pixmap::new(width, height);
    let settings =
        RasterizerSettings { target_init: TargetInit::Clear(WHITE), ..Default::default() };
    context.render_with(&mut pixmap, &mut vello_cpu::Resources::default(), settings);
    pixmap
}

/// Rounds a length in pixels to the nearest integer, not negative; NaN is 0.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
#[expect(clippy::cast_sign_loss, reason = "the conversion saturates")]
fn nearest(pixels: f64) -> u64 {
    (pixels + 0.5) as u64
}
