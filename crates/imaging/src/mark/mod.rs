//! The watermark: a line of text or a PNG, prepared for each size of picture.
//!
//! It lies in the lower left corner; its width and margin are fractions of the picture's width, so
//! that it looks the same on every size. A text is white with a soft dark shadow, to read on white
//! and on black.

mod grids;

use crate::blend::{MarkBitmap, MarkPosition};
use crate::resize::resize;
use geometry::{Rect, Size};
use image::{GrayImage, ImageFormat, ImageReader, Limits, Luma};
use imageproc::filter::gaussian_blur_f32;
use jpeg::codec::Pixels;
use rusttype::{Font, Point, PositionedGlyph, Scale};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Characters of a text mark.
const TEXT_CHARS_MAX: usize = 200;

/// Edge of a PNG mark in pixels.
const PNG_EDGE_MAX: u32 = 4096;

/// Memory that reading a PNG mark may take, in bytes.
const PNG_ALLOC_MAX: u64 = 96 << 20;

/// Pixels of a prepared mark; on larger pictures it stays at this size.
const BITMAP_PIXELS_MAX: u64 = 8 << 20;

/// Prepared marks that are kept, and their pixels in all.
const CACHED_BITMAPS_MAX: usize = 12;
const CACHED_PIXELS_MAX: usize = 6 << 20;

/// The font size at which a text is measured, in pixels.
const MEASURE_FONT_SIZE: f32 = 200.0;

/// Around the letters, for the shadow, in font sizes.
const PAD: f32 = 0.14;

/// The shadow: a narrow dark rim that separates letters from a white ground, and a wide soft one.
/// Sigma in font sizes, gain on the blurred letters, greatest darkness.
const SHADOWS: [(f32, f32, f32); 2] = [(0.022, 2.6, 0.7), (0.06, 1.4, 0.5)];

/// The narrowest blur, in pixels: below it a rim has no room between two samples.
const SIGMA_MIN: f32 = 0.6;

/// The font size in pixels above which the shadow is blurred in a smaller picture: it has no
/// detail, and a blur costs as much as its radius times its pixels.
const SHADOW_FONT_MAX: f32 = 64.0;

/// The font size in pixels at which the shadow gains as much again: thin strokes blur to little.
const SMALL: f32 = 16.0;

/// Changes when the same settings begin to give other pixels.
const VERSION: &str = "mark-1";

/// The picture or text of a watermark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A line of text in a font (TrueType or OpenType with outlines). Both must be trusted: the
    /// font parser is not made for hostile input.
    Text {
        /// The line; at most 200 characters.
        line: String,
        /// The font file.
        font: Vec<u8>,
    },
    /// A PNG file with straight alpha, at most 4096 pixels wide and high.
    Png(Vec<u8>),
}

/// The settings of a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkSetup {
    /// The picture or text.
    pub kind: MarkKind,
    /// Its width as a fraction of the picture's width, above 0 and at most 1.
    pub width_fraction: f32,
    /// Its distance from the left and lower edge, a fraction of the picture's width, below 0.5.
    pub margin_fraction: f32,
    /// Opacity, above 0 and at most 1, which is solid.
    pub opacity: f32,
}

/// Why a mark cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
pub enum MarkError {
    /// The font file cannot be read.
    #[error("the watermark's font cannot be read")]
    Font,
    /// The text is empty, too long, or the font has no visible letter of it.
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
    /// Straight alpha.
    Picture(Pixels),
}

/// What the letters of a line cover at the font size [`MEASURE_FONT_SIZE`].
#[derive(Clone, Copy)]
struct LineBounds {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
}

/// A mark as set up, with the last prepared sizes.
pub struct Watermark {
    artwork: Artwork,
    width_fraction: f32,
    margin_fraction: f32,
    opacity: f32,
    id: String,
    /// Least recently used first.
    bitmaps: Mutex<Vec<Arc<MarkBitmap>>>,
    /// The same for the grids of components.
    layers: Mutex<Vec<Arc<grids::MarkLayers>>>,
}

impl std::fmt::Debug for Watermark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Marker").field("id", &self.id).finish_non_exhaustive()
    }
}

fn in_range(name: &'static str, value: f32, valid: bool) -> Result<f32, MarkError> {
    if valid { Ok(value) } else { Err(MarkError::Fraction(name)) }
}

impl Watermark {
    /// Reads the artwork and checks the settings.
    pub fn new(setup: MarkSetup) -> Result<Watermark, MarkError> {
        let MarkSetup { width_fraction, margin_fraction, opacity, .. } = setup;
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
        let (kept, layers) = (Mutex::default(), Mutex::default());
        Ok(Watermark {
            artwork,
            width_fraction,
            margin_fraction,
            opacity,
            id,
            bitmaps: kept,
            layers,
        })
    }

    /// A hash of everything that changes the mark's pixels, for cache keys: 32 hex digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the mark lies on a picture of `image` pixels, shadow included.
    ///
    /// At least one pixel, always inside; it shrinks where it would be too high.
    #[must_use]
    pub fn placement(&self, image: Size) -> Rect {
        let margin = rounded(f64::from(self.margin_fraction) * f64::from(image.width));
        let margin = margin.min(image.height / 4);
        let room = Size {
            width: image.width.saturating_sub(margin).max(1),
            height: image.height.saturating_sub(2 * margin).max(1),
        };
        let wanted = f64::from(self.width_fraction) * f64::from(image.width);
        let aspect = self.aspect();
        let most =
            (f64::from(u32::try_from(BITMAP_PIXELS_MAX).unwrap_or(u32::MAX)) / aspect).sqrt();
        let width = wanted.min(f64::from(room.height) / aspect).min(most);
        let height = rounded(width * aspect).clamp(1, room.height);
        let width = rounded(width).clamp(1, room.width);
        Rect { x: margin, y: image.height.saturating_sub(margin + height), width, height }
    }

    /// Height over width, shadow included.
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

    /// The mark for a picture of `image` pixels, and where it lies on it.
    pub(crate) fn prepare(&self, image: Size) -> (Arc<MarkBitmap>, MarkPosition) {
        let rect = self.placement(image);
        let size = Size { width: rect.width, height: rect.height };
        let place = MarkPosition { x: i64::from(rect.x), y: i64::from(rect.y) };
        if let Some(stamp) = self.find_cached(size) {
            return (stamp, place);
        }
        // Drawn outside the lock: two threads may draw the same mark once, none waits.
        let stamp = Arc::new(self.draw(size));
        self.cache_bitmap(Arc::clone(&stamp));
        (stamp, place)
    }

    fn find_cached(&self, size: Size) -> Option<Arc<MarkBitmap>> {
        let mut kept = self.bitmaps.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.iter().position(|stamp| stamp.size == size)?;
        let stamp = kept.remove(index);
        kept.push(Arc::clone(&stamp));
        Some(stamp)
    }

    fn cache_bitmap(&self, stamp: Arc<MarkBitmap>) {
        if stamp.pixels.len() > CACHED_PIXELS_MAX {
            return;
        }
        let mut kept = self.bitmaps.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.size != stamp.size);
        kept.push(stamp);
        let mut pixels: usize = kept.iter().map(|stamp| stamp.pixels.len()).sum();
        while kept.len() > CACHED_BITMAPS_MAX || pixels > CACHED_PIXELS_MAX {
            pixels -= kept.remove(0).pixels.len();
        }
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

/// Hashes the settings; every variable part is preceded by its length.
fn id(setup: &MarkSetup) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    };
    add(VERSION.as_bytes());
    match &setup.kind {
        MarkKind::Text { line, font } => {
            add(b"text");
            add(line.as_bytes());
            add(font);
        }
        MarkKind::Png(file) => {
            add(b"png");
            add(file);
        }
    }
    for fraction in [setup.width_fraction, setup.margin_fraction, setup.opacity] {
        add(&fraction.to_le_bytes());
    }
    let hex = |byte: &u8| format!("{byte:02x}");
    hash.finalize()[..16].iter().map(hex).collect()
}

fn glyphs<'a>(font: &'a Font<'_>, line: &'a str, size: f32) -> Vec<PositionedGlyph<'a>> {
    font.layout(line, Scale::uniform(size), Point { x: 0.0, y: 0.0 }).collect()
}

/// What the letters of `line` cover; `None` if nothing is visible.
fn measure(font: &Font<'_>, line: &str) -> Option<LineBounds> {
    let boxes = glyphs(font, line, MEASURE_FONT_SIZE);
    let boxes = boxes.iter().filter_map(PositionedGlyph::pixel_bounding_box);
    let all = boxes.reduce(|mut all, one| {
        all.min = Point { x: all.min.x.min(one.min.x), y: all.min.y.min(one.min.y) };
        all.max = Point { x: all.max.x.max(one.max.x), y: all.max.y.max(one.max.y) };
        all
    })?;
    // Boxes of a few thousand pixels: exact in f32.
    let float = |value: i32| i16::try_from(value).map(f32::from).ok();
    Some(LineBounds {
        left: float(all.min.x)?,
        top: float(all.min.y)?,
        width: float(all.width())?,
        height: float(all.height())?,
    })
    .filter(|ink| ink.width >= 1.0 && ink.height >= 1.0)
}

/// The font size at which the line with its padding is as wide as `size`.
fn font_size(ink: LineBounds, size: Size) -> f32 {
    MEASURE_FONT_SIZE * float(size.width) / (ink.width + 2.0 * PAD * MEASURE_FONT_SIZE)
}

#[expect(clippy::cast_precision_loss, reason = "edges of marks lie far below 2^24")]
fn float(value: u32) -> f32 {
    value as f32
}

/// A positive number to the nearest integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and lengths are neither negative nor near the limit"
)]
fn rounded(value: f64) -> u32 {
    value.round() as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of a sample"
)]
fn level(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Draws the letters' coverage into `size` pixels.
fn draw_line(font: &Font<'_>, line: &str, ink: LineBounds, size: Size) -> GrayImage {
    let font_size = font_size(ink, size);
    let factor = font_size / MEASURE_FONT_SIZE;
    // The padded line is centred where rounding made the picture a little higher than it.
    let spare = (float(size.height) - factor * (ink.height + 2.0 * PAD * MEASURE_FONT_SIZE)) / 2.0;
    let origin = Point {
        x: (PAD * MEASURE_FONT_SIZE - ink.left) * factor,
        y: (PAD * MEASURE_FONT_SIZE - ink.top) * factor + spare,
    };
    let mut image = GrayImage::new(size.width, size.height);
    for glyph in font.layout(line, Scale::uniform(font_size), origin) {
        let Some(bounds) = glyph.pixel_bounding_box() else { continue };
        glyph.draw(|x, y, coverage| {
            let at = |start: i32, offset: u32| u32::try_from(i64::from(start) + i64::from(offset));
            if let (Ok(x), Ok(y)) = (at(bounds.min.x, x), at(bounds.min.y, y))
                && x < size.width
                && y < size.height
            {
                let Luma([old]) = *image.get_pixel(x, y);
                image.put_pixel(x, y, Luma([old.max(level(coverage))]));
            }
        });
    }
    image
}

/// The size in which the shadow of a line of `size` pixels is blurred.
fn shadow_size(ink: LineBounds, size: Size) -> Size {
    let font_size = font_size(ink, size);
    if font_size <= SHADOW_FONT_MAX {
        return size;
    }
    let factor = f64::from(SHADOW_FONT_MAX / font_size);
    let edge = |edge: u32| rounded(f64::from(edge) * factor).clamp(1, edge);
    Size { width: edge(size.width), height: edge(size.height) }
}

/// The darkness around letters: 255 for black.
fn shadow(letters: &GrayImage, font_size: f32) -> Vec<u8> {
    let mut clear = vec![1.0f32; letters.as_raw().len()];
    for (sigma, gain, darkest) in SHADOWS {
        let blurred = gaussian_blur_f32(letters, (sigma * font_size).max(SIGMA_MIN));
        let gain = gain * (1.0 + SMALL / font_size.max(1.0));
        for (clear, shadow) in clear.iter_mut().zip(blurred.as_raw()) {
            *clear *= 1.0 - (f32::from(*shadow) / 255.0 * gain).min(1.0) * darkest;
        }
    }
    clear.into_iter().map(|clear| level(1.0 - clear)).collect()
}

/// Scales a shadow of `from` pixels to `to`.
fn enlarge(shadow: Vec<u8>, from: Size, to: Size) -> Vec<u8> {
    let shadow = Pixels { size: from, channels: 1, data: shadow };
    // Without its shadow a mark is still a mark.
    let samples = index(to.width) * index(to.height);
    resize(shadow, to).map_or_else(|_| vec![0; samples], |pixels| pixels.data)
}

/// White letters over their shadow, of as many samples.
fn shade(letters: &GrayImage, shadow: Vec<u8>, opacity: f32) -> MarkBitmap {
    let (width, height) = letters.dimensions();
    let pixel = |(letter, dark): (&u8, u8)| {
        let (letter, dark) = (f32::from(*letter) / 255.0, f32::from(dark) / 255.0);
        let white = level(letter * opacity);
        let alpha = level((letter + dark * (1.0 - letter)) * opacity).max(white);
        [white, white, white, alpha]
    };
    let pixels = letters.as_raw().iter().zip(shadow).map(pixel).collect();
    MarkBitmap { size: Size { width, height }, pixels }
}

fn read_png(file: &[u8]) -> Result<Pixels, MarkError> {
    let failed = |error: image::ImageError| MarkError::Png(error.to_string());
    let mut reader = ImageReader::with_format(Cursor::new(file), ImageFormat::Png);
    let mut limits = Limits::default();
    limits.max_image_width = Some(PNG_EDGE_MAX);
    limits.max_image_height = Some(PNG_EDGE_MAX);
    limits.max_alloc = Some(PNG_ALLOC_MAX);
    reader.limits(limits);
    let image = reader.decode().map_err(failed)?.into_rgba8();
    let (width, height) = image.dimensions();
    Ok(Pixels { size: Size { width, height }, channels: 4, data: image.into_raw() })
}

/// Scales a picture with straight alpha; colours are multiplied first, so that no rim appears.
fn draw_picture(picture: &Pixels, size: Size, opacity: f32) -> MarkBitmap {
    let mut multiplied = picture.clone();
    for pixel in multiplied.data.chunks_exact_mut(4) {
        let alpha = f32::from(pixel[3]) / 255.0 * opacity;
        for colour in &mut pixel[..3] {
            *colour = level(f32::from(*colour) / 255.0 * alpha);
        }
        pixel[3] = level(alpha);
    }
    let scaled = resize(multiplied, size).map_or_else(|_| Vec::new(), |pixels| pixels.data);
    let mut pixels: Vec<[u8; 4]> = scaled.as_chunks::<4>().0.to_vec();
    for pixel in &mut pixels {
        // The filter overshoots at hard edges: no colour is brighter than its alpha.
        for channel in 0..3 {
            pixel[channel] = pixel[channel].min(pixel[3]);
        }
    }
    pixels.resize(index(size.width) * index(size.height), [0; 4]);
    MarkBitmap { size, pixels }
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("indices have at least 32 bits")
}

#[cfg(test)]
pub(crate) mod tests;
