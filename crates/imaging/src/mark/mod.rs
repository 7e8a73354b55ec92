//! Draws the watermark: a line of text or a PNG, prepared for each size of picture.
//!
//! The watermark is in the lower left corner. Its width and margin are fractions of the picture's width, so that
//! it looks the same at every size. Text is white with a soft dark shadow, so that it is legible on white and on
//! black.

mod grids;
mod whole_file;

use crate::blend::{MarkBitmap, MarkPosition};
use crate::resize::resize;
use geometry::{Rect, Size};
use image::{GrayImage, ImageFormat, ImageReader, Limits, Luma, imageops};
use jpeg::codec::Pixels;
use rusttype::{Font, Point, PositionedGlyph, Scale};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

pub use whole_file::mark_file;

/// Maximum number of characters of a text mark.
const TEXT_CHARS_MAX: usize = 200;

/// Maximum edge of a PNG mark in pixels.
const PNG_EDGE_MAX: u32 = 4096;

/// Maximum memory for reading a PNG mark, in bytes.
const PNG_ALLOC_MAX: u64 = 96 << 20;

/// Maximum number of pixels of a prepared mark; larger pictures get a mark of this size.
const BITMAP_PIXELS_MAX: u64 = 8 << 20;

/// Maximum number of prepared marks in the cache.
const CACHED_BITMAPS_MAX: usize = 12;
/// Maximum total number of pixels of the prepared marks in the cache.
const CACHED_PIXELS_MAX: usize = 6 << 20;

/// Font size in pixels at which text is measured.
const MEASURE_FONT_SIZE: f32 = 200.0;

/// Padding around the text, for the shadow, as a fraction of the font size.
const PAD: f32 = 0.14;

/// The shadow: a narrow dark rim that separates letters from a white background, and a wide soft shadow. For each:
/// sigma as a fraction of the font size, gain on the blurred letters, maximum darkness.
const SHADOWS: [(f32, f32, f32); 2] = [(0.022, 2.6, 0.7), (0.06, 1.4, 0.5)];

/// Minimum sigma of a blur in pixels: a narrower rim would fall between two samples.
const SIGMA_MIN: f32 = 0.6;

/// Font size in pixels above which the shadow is blurred at a reduced size: it has no detail, and the cost of a
/// blur is proportional to its radius times its pixels.
const SHADOW_FONT_MAX: f32 = 64.0;

/// Font size in pixels at which the gain of the shadow is doubled, because a blur weakens thin strokes.
const SMALL: f32 = 16.0;

/// Version of the drawing code; changed whenever the same settings give different pixels.
const VERSION: &str = "mark-4";

/// The image or text of a watermark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A line of text in a font (TrueType or OpenType with outlines). Both must come from a trusted
    /// source: the font parser is not hardened against hostile input.
    Text {
        /// The text, at most 200 characters.
        line: String,
        /// The contents of the font file.
        font: Vec<u8>,
    },
    /// A PNG file with straight alpha, at most 4096 pixels wide and high.
    Png(Vec<u8>),
}

/// The settings of a watermark.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkSetup {
    /// The image or text.
    pub kind: MarkKind,
    /// Width of the mark as a fraction of the picture's width, above 0 and at most 1.
    pub width_fraction: f32,
    /// Distance from the left and lower edges as a fraction of the picture's width, 0 to below 0.5.
    pub margin_fraction: f32,
    /// Opacity, above 0 and at most 1, which is opaque.
    pub opacity: f32,
}

/// The reason why a watermark could not be created.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
pub enum MarkError {
    /// The font file cannot be read.
    #[error("the watermark's font cannot be read")]
    Font,
    /// The text is empty or too long, or the font has no visible glyphs for it.
    #[error("the watermark's text has no visible letters or more than {TEXT_CHARS_MAX}")]
    Text,
    /// The PNG cannot be read or is too large.
    #[error("the watermark's PNG cannot be read: {0}")]
    Png(String),
    /// A fraction is outside its range.
    #[error("the watermark's {0} is out of range")]
    Fraction(&'static str),
}

enum Artwork {
    Text {
        font: Font<'static>,
        line: String,
        ink: LineBounds,
    },
    /// An RGBA image with straight alpha.
    Picture(Pixels),
}

/// The bounding box of a line's glyphs at the font size [`MEASURE_FONT_SIZE`], in pixels.
#[derive(Clone, Copy)]
struct LineBounds {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
}

/// A watermark, with a cache of the bitmaps for recently used sizes.
pub struct Watermark {
    artwork: Artwork,
    width_fraction: f32,
    margin_fraction: f32,
    opacity: f32,
    id: String,
    bitmaps: RecentMarks<MarkBitmap>,
    /// Layers for the grids of components.
    layers: RecentMarks<grids::MarkLayers>,
}

fn in_range(name: &'static str, value: f32, valid: bool) -> Result<f32, MarkError> {
    if valid { Ok(value) } else { Err(MarkError::Fraction(name)) }
}

impl Watermark {
    /// Reads the artwork and validates the settings.
    pub fn new(setup: MarkSetup) -> Result<Watermark, MarkError> {
        let MarkSetup { width_fraction, margin_fraction, opacity, .. } = setup;
        // NaN fails every comparison, so it is out of range too.
        in_range("width", width_fraction, width_fraction > 0.0 && width_fraction <= 1.0)?;
        in_range("margin", margin_fraction, (0.0..0.5).contains(&margin_fraction))?;
        in_range("opacity", opacity, opacity > 0.0 && opacity <= 1.0)?;
        let id = id(&setup);
        let artwork = match setup.kind {
            MarkKind::Text { line, font } => {
                if line.chars().count() > TEXT_CHARS_MAX {
                    return Err(MarkError::Text);
                }
                let font = Font::try_from_vec(font).ok_or(MarkError::Font)?;
                let ink = measure(&font, &line).ok_or(MarkError::Text)?;
                Artwork::Text { font, line, ink }
            }
            MarkKind::Png(file) => Artwork::Picture(read_png(&file)?),
        };
        Ok(Watermark {
            artwork,
            width_fraction,
            margin_fraction,
            opacity,
            id,
            bitmaps: RecentMarks(Mutex::default()),
            layers: RecentMarks(Mutex::default()),
        })
    }

    /// Returns a hash of everything that affects the mark's pixels, for cache keys: 32 hex digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Computes the position and size of the mark, including its shadow, on a picture of `image` pixels.
    ///
    /// The rectangle has at least one pixel and is inside the picture. The mark is reduced if it would be too
    /// high.
    pub fn placement(&self, image: Size) -> Rect {
        let margin = rounded(f64::from(self.margin_fraction) * f64::from(image.width));
        // On a wide, low picture a margin relative to its width would leave no room for the mark.
        let margin = margin.min(image.height / 4);
        let room = Size {
            width: image.width.saturating_sub(margin).max(1),
            height: image.height.saturating_sub(2 * margin).max(1),
        };
        let desired = f64::from(self.width_fraction) * f64::from(image.width);
        let aspect = self.aspect();
        let width_max =
            (f64::from(u32::try_from(BITMAP_PIXELS_MAX).unwrap_or(u32::MAX)) / aspect).sqrt();
        let width = desired.min(f64::from(room.height) / aspect).min(width_max);
        let height = rounded(width * aspect).clamp(1, room.height);
        let width = rounded(width).clamp(1, room.width);
        Rect { x: margin, y: image.height.saturating_sub(margin + height), width, height }
    }

    /// Returns the ratio of height to width, including the shadow.
    fn aspect(&self) -> f64 {
        match &self.artwork {
            Artwork::Text { ink, .. } => {
                let pad = 2.0 * PAD * MEASURE_FONT_SIZE;
                f64::from(ink.height + pad) / f64::from(ink.width + pad)
            }
            Artwork::Picture(pixels) => {
                f64::from(pixels.size.height) / f64::from(pixels.size.width)
            }
        }
    }

    /// Returns the mark for a picture of `image` pixels and its position on the picture.
    pub(crate) fn prepare(&self, image: Size) -> (Arc<MarkBitmap>, MarkPosition) {
        let rect = self.placement(image);
        let size = Size { width: rect.width, height: rect.height };
        let position = MarkPosition { x: i64::from(rect.x), y: i64::from(rect.y) };
        // A mark that alone exceeds the limit would evict all others.
        if !usize::try_from(size.pixels()).is_ok_and(|pixels| pixels <= CACHED_PIXELS_MAX) {
            return (Arc::new(self.draw(size)), position);
        }
        let is_wanted = |stamp: &MarkBitmap| stamp.size == size;
        let pixels = |stamp: &MarkBitmap| stamp.pixels.len();
        (self.bitmaps.find_or_make(is_wanted, || self.draw(size), pixels), position)
    }

    fn draw(&self, size: Size) -> MarkBitmap {
        match &self.artwork {
            Artwork::Text { font, line, ink } => {
                let letters = draw_line(font, line, *ink, size);
                let small = shadow_size(*ink, size);
                let shadow = if small == size {
                    shadow(&letters, font_size(*ink, size))
                } else {
                    shadow(&draw_line(font, line, *ink, small), font_size(*ink, small))
                };
                shade(&letters, enlarge(shadow, small, size), self.opacity)
            }
            Artwork::Picture(picture) => draw_picture(picture, size, self.opacity),
        }
    }
}

/// Recently used marks, least recently used first.
struct RecentMarks<T>(Mutex<Vec<Arc<T>>>);

impl<T> RecentMarks<T> {
    /// Returns the cached mark that is wanted, or makes it and caches it. `pixels` returns the size of a mark.
    fn find_or_make(
        &self,
        is_wanted: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
        pixels: impl Fn(&T) -> usize,
    ) -> Arc<T> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = cached.iter().position(|mark| is_wanted(mark)) {
            // Moved to the end, because the list is in order of use.
            let mark = cached.remove(found);
            cached.push(Arc::clone(&mark));
            return mark;
        }
        drop(cached);
        // Made outside the lock: two threads may make the same mark, but neither waits.
        let mark = Arc::new(make());
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A different thread may have made the same mark meanwhile.
        cached.retain(|other| !is_wanted(other));
        cached.push(Arc::clone(&mark));
        let mut total: usize = cached.iter().map(|mark| pixels(mark)).sum();
        // The newest mark stays even if it alone exceeds the limit.
        while cached.len() > CACHED_BITMAPS_MAX || total > CACHED_PIXELS_MAX && cached.len() > 1 {
            total -= pixels(&cached.remove(0));
        }
        mark
    }
}

/// Hashes the settings; each part is preceded by its length, so that the encoding is unambiguous.
fn id(setup: &MarkSetup) -> String {
    let mut hash = Sha256::new();
    add_part(&mut hash, VERSION.as_bytes());
    match &setup.kind {
        MarkKind::Text { line, font } => {
            add_part(&mut hash, b"text");
            add_part(&mut hash, line.as_bytes());
            add_part(&mut hash, font);
        }
        MarkKind::Png(file) => {
            add_part(&mut hash, b"png");
            add_part(&mut hash, file);
        }
    }
    for fraction in [setup.width_fraction, setup.margin_fraction, setup.opacity] {
        add_part(&mut hash, &fraction.to_le_bytes());
    }
    // 128 bits make a collision between two settings improbable.
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add_part(hash: &mut Sha256, part: &[u8]) {
    hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
    hash.update(part);
}

fn glyphs<'a>(font: &'a Font<'_>, line: &'a str, size: f32) -> Vec<PositionedGlyph<'a>> {
    font.layout(line, Scale::uniform(size), Point { x: 0.0, y: 0.0 }).collect()
}

/// Measures the bounding box of the glyphs of `line`; `None` if nothing is visible.
fn measure(font: &Font<'_>, line: &str) -> Option<LineBounds> {
    let boxes = glyphs(font, line, MEASURE_FONT_SIZE);
    let boxes = boxes.iter().filter_map(PositionedGlyph::pixel_bounding_box);
    let bounds = boxes.reduce(|mut bounds, glyph| {
        bounds.min = Point { x: bounds.min.x.min(glyph.min.x), y: bounds.min.y.min(glyph.min.y) };
        bounds.max = Point { x: bounds.max.x.max(glyph.max.x), y: bounds.max.y.max(glyph.max.y) };
        bounds
    })?;
    let ink = LineBounds {
        left: exact_float(bounds.min.x)?,
        top: exact_float(bounds.min.y)?,
        width: exact_float(bounds.width())?,
        height: exact_float(bounds.height())?,
    };
    (ink.width >= 1.0 && ink.height >= 1.0).then_some(ink)
}

fn exact_float(value: i32) -> Option<f32> {
    // Boxes have a few thousand pixels, which f32 represents exactly.
    i16::try_from(value).map(f32::from).ok()
}

/// Computes the font size at which the line with its padding is as wide as `size`.
fn font_size(ink: LineBounds, size: Size) -> f32 {
    MEASURE_FONT_SIZE * float(size.width) / (ink.width + 2.0 * PAD * MEASURE_FONT_SIZE)
}

#[expect(clippy::cast_precision_loss, reason = "edges of marks lie far below 2^24")]
fn float(value: u32) -> f32 {
    value as f32
}

/// Rounds a positive number to the nearest integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and lengths are neither negative nor near the limit"
)]
fn rounded(value: f64) -> u32 {
    value.round() as u32
}

/// Returns the level of a share of 0 to 1; a share outside gives the nearer end.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn level(share: f32) -> u8 {
    (share * 255.0).round() as u8
}

/// Draws the coverage of the letters into a picture of `size` pixels.
fn draw_line(font: &Font<'_>, line: &str, ink: LineBounds, size: Size) -> GrayImage {
    let font_size = font_size(ink, size);
    let factor = font_size / MEASURE_FONT_SIZE;
    // Centres the padded line vertically if rounding made the picture slightly higher.
    let spare = (float(size.height) - factor * (ink.height + 2.0 * PAD * MEASURE_FONT_SIZE)) / 2.0;
    let origin = Point {
        x: (PAD * MEASURE_FONT_SIZE - ink.left) * factor,
        y: (PAD * MEASURE_FONT_SIZE - ink.top) * factor + spare,
    };
    let mut image = GrayImage::new(size.width, size.height);
    for glyph in font.layout(line, Scale::uniform(font_size), origin) {
        let Some(bounds) = glyph.pixel_bounding_box() else { continue };
        glyph.draw(|x, y, coverage| {
            if let Ok(x) = u32::try_from(i64::from(bounds.min.x) + i64::from(x))
                && let Ok(y) = u32::try_from(i64::from(bounds.min.y) + i64::from(y))
                && x < size.width
                && y < size.height
            {
                // Boxes of neighbouring glyphs overlap, so the higher coverage is kept.
                let Luma([old]) = *image.get_pixel(x, y);
                image.put_pixel(x, y, Luma([old.max(level(coverage))]));
            }
        });
    }
    image
}

/// Computes the size at which the shadow of a line of `size` pixels is blurred.
fn shadow_size(ink: LineBounds, size: Size) -> Size {
    let font_size = font_size(ink, size);
    if font_size <= SHADOW_FONT_MAX {
        return size;
    }
    let factor = f64::from(SHADOW_FONT_MAX / font_size);
    let width = rounded(f64::from(size.width) * factor).clamp(1, size.width);
    let height = rounded(f64::from(size.height) * factor).clamp(1, size.height);
    Size { width, height }
}

/// Computes the darkness of the shadow for each pixel; 255 is black.
fn shadow(letters: &GrayImage, font_size: f32) -> Vec<u8> {
    let mut clear = vec![1.0f32; letters.as_raw().len()];
    for (sigma, gain, darkest) in SHADOWS {
        let sigma = (sigma * font_size).max(SIGMA_MIN);
        let blurred = imageops::blur(letters, sigma);
        let gain = gain * (1.0 + SMALL / font_size.max(1.0));
        for (clear, shadow) in clear.iter_mut().zip(blurred.as_raw()) {
            *clear *= 1.0 - (f32::from(*shadow) / 255.0 * gain).min(1.0) * darkest;
        }
    }
    clear.into_iter().map(|clear| level(1.0 - clear)).collect()
}

/// Scales a shadow from the size `from` to the size `to`.
fn enlarge(shadow: Vec<u8>, from: Size, to: Size) -> Vec<u8> {
    // The scaler has four channels, of which one is needed.
    let shadow = shadow.into_iter().map(|dark| [dark, 0, 0, 0]).collect();
    resize(shadow, from, to).into_iter().map(|[dark, ..]| dark).collect()
}

/// Composes white letters over their shadow; `shadow` has one sample for each pixel of `letters`.
fn shade(letters: &GrayImage, shadow: Vec<u8>, opacity: f32) -> MarkBitmap {
    let (width, height) = letters.dimensions();
    let samples = letters.as_raw().iter().zip(shadow);
    let pixels = samples.map(|(letter, dark)| shaded_pixel(*letter, dark, opacity)).collect();
    MarkBitmap { size: Size { width, height }, pixels }
}

/// Composes a pixel of a white letter over its shadow.
fn shaded_pixel(letter: u8, dark: u8, opacity: f32) -> [u8; 4] {
    let letter = f32::from(letter) / 255.0;
    let dark = f32::from(dark) / 255.0;
    let white = level(letter * opacity);
    // Rounding must not make the premultiplied white brighter than its alpha.
    let alpha = level((letter + dark * (1.0 - letter)) * opacity).max(white);
    [white, white, white, alpha]
}

fn read_png(file: &[u8]) -> Result<Pixels, MarkError> {
    let mut reader = ImageReader::with_format(Cursor::new(file), ImageFormat::Png);
    let mut limits = Limits::default();
    limits.max_image_width = Some(PNG_EDGE_MAX);
    limits.max_image_height = Some(PNG_EDGE_MAX);
    limits.max_alloc = Some(PNG_ALLOC_MAX);
    reader.limits(limits);
    let image = reader.decode().map_err(|error| MarkError::Png(error.to_string()))?.into_rgba8();
    let (width, height) = image.dimensions();
    Ok(Pixels { size: Size { width, height }, channels: 4, data: image.into_raw() })
}

/// Scales a picture with straight alpha; colours are premultiplied first, which avoids a coloured rim.
fn draw_picture(picture: &Pixels, size: Size, opacity: f32) -> MarkBitmap {
    let mut multiplied = picture.data.as_chunks::<4>().0.to_vec();
    for pixel in &mut multiplied {
        let alpha = f32::from(pixel[3]) / 255.0 * opacity;
        for colour in &mut pixel[..3] {
            *colour = level(f32::from(*colour) / 255.0 * alpha);
        }
        pixel[3] = level(alpha);
    }
    let mut pixels = resize(multiplied, picture.size, size);
    for pixel in &mut pixels {
        // The filter overshoots at hard edges: no colour may be brighter than its alpha.
        for channel in 0..3 {
            pixel[channel] = pixel[channel].min(pixel[3]);
        }
    }
    MarkBitmap { size, pixels }
}

#[cfg(test)]
pub(crate) mod tests;
