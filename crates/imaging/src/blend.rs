//! Blends a watermark into pixels and planes of every colour space.

use crate::index;
use geometry::{Rect, Size};
use jpeg::codec::{ColourSpace, Pixels, Planes};

/// The bitmap of a watermark, drawn at its final size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkBitmap {
    /// The size in pixels.
    pub(crate) size: Size,
    /// `[height][width]` of red, green, blue, alpha; sRGB with premultiplied alpha.
    pub(crate) pixels: Vec<[u8; 4]>,
}

/// The position of a mark's top left corner, in pixels of the picture; it may be outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkPosition {
    pub(crate) x: i64,
    pub(crate) y: i64,
}

/// Converts the position of a watermark on `canvas` to a position in `region`; both rectangles are in
/// the same pixels.
pub(crate) fn translate_mark(position: MarkPosition, canvas: Rect, region: Rect) -> MarkPosition {
    MarkPosition {
        x: position.x + i64::from(canvas.x) - i64::from(region.x),
        y: position.y + i64::from(canvas.y) - i64::from(region.y),
    }
}

/// The colour model of the samples into which a mark is blended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleModel {
    Grey,
    Rgb,
    /// Four inks; with `inverted`, 0 is full ink.
    Inks {
        inverted: bool,
    },
}

/// Composites the mark's premultiplied `component` with `alpha` over `sample`.
#[inline]
pub(crate) fn composite(sample: u8, component: u8, alpha: u8) -> u8 {
    let background = (u32::from(sample) * u32::from(255 - alpha) + 127) / 255;
    u8::try_from(background + u32::from(component)).unwrap_or(u8::MAX)
}

/// Computes the luma of a mark's pixel.
pub(crate) fn luma([red, green, blue, _]: [u8; 4]) -> u8 {
    // The luma weights of JFIF in 1/256, with a half for rounding.
    let sum = 77 * u32::from(red) + 150 * u32::from(green) + 29 * u32::from(blue) + 128;
    u8::try_from(sum >> 8).unwrap_or(u8::MAX)
}

/// Converts a premultiplied colour to inks: no ink for white, only the fourth for black.
fn inks([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    let most = red.max(green).max(blue);
    [most - red, most - green, most - blue, alpha.saturating_sub(most)]
}

/// Clips a span of `length` from `start` to `0..edge`.
///
/// Returns the start and the end in `0..edge`, and the number of positions that were clipped at the start.
fn clip_span(start: i64, length: u32, edge: u32) -> (usize, usize, usize) {
    let end = start.saturating_add(i64::from(length)).clamp(0, i64::from(edge));
    let first = start.clamp(0, i64::from(edge));
    let clipped = first.saturating_sub(start);
    (clamped_index(first), clamped_index(end), clamped_index(clipped))
}

fn clamped_index(value: i64) -> usize {
    usize::try_from(value.max(0)).unwrap_or(usize::MAX)
}

/// Blends `stamp` into interleaved pixels; parts outside the picture are clipped.
pub(crate) fn blend_pixels(
    pixels: &mut Pixels,
    stamp: &MarkBitmap,
    position: MarkPosition,
    model: SampleModel,
) {
    let (left, right, from_x) = clip_span(position.x, stamp.size.width, pixels.size.width);
    let (top, bottom, from_y) = clip_span(position.y, stamp.size.height, pixels.size.height);
    if left >= right || top >= bottom {
        return;
    }
    let stride = index(pixels.size.width);
    let channels = pixels.channels;
    let width = index(stamp.size.width);
    for (y, row) in (top..bottom).zip(from_y..) {
        let marks = &stamp.pixels[row * width + from_x..][..right - left];
        let start = (y * stride + left) * channels;
        let samples = &mut pixels.data[start..start + (right - left) * channels];
        for (pixel, mark) in samples.chunks_exact_mut(channels).zip(marks) {
            let alpha = mark[3];
            // Most of a text's bitmap is transparent.
            if alpha == 0 {
                continue;
            }
            match model {
                SampleModel::Grey => pixel[0] = composite(pixel[0], luma(*mark), alpha),
                SampleModel::Rgb => {
                    for (sample, component) in pixel.iter_mut().zip(mark) {
                        *sample = composite(*sample, *component, alpha);
                    }
                }
                SampleModel::Inks { inverted } => {
                    // XOR converts inverted inks to the plain convention and back.
                    let mask = if inverted { 255 } else { 0 };
                    for (sample, component) in pixel.iter_mut().zip(inks(*mark)) {
                        *sample = composite(*sample ^ mask, component, alpha) ^ mask;
                    }
                }
            }
        }
    }
}

/// Computes the two chroma components of a mark's pixel, scaled by 256 and centred on 0.
pub(crate) fn chroma_components([red, green, blue, _]: [u8; 4]) -> [i32; 2] {
    let red = i32::from(red);
    let green = i32::from(green);
    let blue = i32::from(blue);
    // The coefficients of JFIF in 1/65536.
    [
        (-11_059 * red - 21_709 * green + 32_768 * blue) / 256,
        (32_768 * red - 27_439 * green - 5_329 * blue) / 256,
    ]
}

/// Blends `stamp` into the planes of a grey or YCbCr picture, each on its own grid.
///
/// A partly covered chroma sample is blended with the mean of the mark over its pixels.
pub(crate) fn blend_planes(planes: &mut Planes, stamp: &MarkBitmap, position: MarkPosition) {
    let layout = Planes::layout(planes.size, planes.space, planes.chroma);
    let (left, right, from_x) = clip_span(position.x, stamp.size.width, planes.size.width);
    let (top, bottom, from_y) = clip_span(position.y, stamp.size.height, planes.size.height);
    if left >= right || top >= bottom {
        return;
    }
    let width = index(stamp.size.width);
    for (y, row) in (top..bottom).zip(from_y..) {
        let marks = &stamp.pixels[row * width + from_x..][..right - left];
        let start = layout[0].start + y * layout[0].width + left;
        for (sample, mark) in planes.data[start..].iter_mut().zip(marks) {
            *sample = composite(*sample, luma(*mark), mark[3]);
        }
    }
    if planes.space == ColourSpace::Grey {
        return;
    }
    let (across, down) = planes.chroma.cell();
    let across = index(across);
    let down = index(down);
    let area = i32::try_from(across * down).expect("cells have at most 16 pixels");
    for cell_y in top / down..bottom.div_ceil(down) {
        for cell_x in left / across..right.div_ceil(across) {
            // Pixels of the cell outside the mark count as transparent, because `area` is the full cell.
            let mut alpha = 0;
            let mut parts = [0i32; 2];
            for y in (cell_y * down).max(top)..((cell_y + 1) * down).min(bottom) {
                for x in (cell_x * across).max(left)..((cell_x + 1) * across).min(right) {
                    let mark = stamp.pixels[(y - top + from_y) * width + x - left + from_x];
                    alpha += i32::from(mark[3]);
                    for (part, component) in parts.iter_mut().zip(chroma_components(mark)) {
                        *part += component;
                    }
                }
            }
            for (plane, part) in layout[1..].iter().zip(parts) {
                let sample = &mut planes.data[plane.start + cell_y * plane.width + cell_x];
                *sample = blend_chroma_sample(*sample, alpha, part, 255 * area);
            }
        }
    }
}

/// Blends a chroma sample with the mark's totals over its cell.
///
/// `alpha` and `component` are the totals of the mark's alpha and chroma component; `alpha_max` is
/// the total alpha of an opaque mark.
#[inline]
pub(crate) fn blend_chroma_sample(sample: u8, alpha: i32, component: i32, alpha_max: i32) -> u8 {
    let background = (i32::from(sample) - 128) * (alpha_max - alpha);
    // `component` carries a factor of 256 over the levels of one pixel.
    // Euclidean division rounds negative chroma in the same direction as positive.
    let value = (background + component * 255 / 256 + alpha_max / 2).div_euclid(alpha_max) + 128;
    u8::try_from(value.clamp(0, 255)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jpeg::codec::ChromaSubsampling;

    const WHITE: [u8; 4] = [255, 255, 255, 255];

    fn stamp(width: u32, height: u32, colour: [u8; 4]) -> MarkBitmap {
        MarkBitmap { size: Size { width, height }, pixels: vec![colour; index(width * height)] }
    }

    fn flat(channels: usize, level: u8) -> Pixels {
        let size = Size { width: 5, height: 4 };
        Pixels { size, channels, data: vec![level; 20 * channels] }
    }

    #[test]
    fn white_is_no_ink_and_black_is_the_fourth() {
        for (inverted, none, full) in [(false, 0, 255), (true, 255, 0)] {
            let model = SampleModel::Inks { inverted };
            let mut pixels = flat(4, 120);
            blend_pixels(&mut pixels, &stamp(1, 1, WHITE), MarkPosition { x: 0, y: 0 }, model);
            blend_pixels(
                &mut pixels,
                &stamp(1, 1, [0, 0, 0, 255]),
                MarkPosition { x: 1, y: 0 },
                model,
            );
            assert_eq!(pixels.data[..8], [none, none, none, none, none, none, none, full]);
            assert_eq!(pixels.data[8..], [120; 72]);
        }
    }

    #[test]
    fn a_half_transparent_mark_is_mixed() {
        let mut pixels = flat(3, 100);
        let half = stamp(1, 1, [128, 0, 0, 128]);
        blend_pixels(&mut pixels, &half, MarkPosition { x: 0, y: 0 }, SampleModel::Rgb);
        assert_eq!(pixels.data[..3], [178, 50, 50]);
    }

    #[test]
    fn parts_outside_the_picture_are_clipped() {
        for (x, y) in [(-3, -2), (4, 3), (-9, 0), (0, 99), (i64::MIN, i64::MAX)] {
            let mut pixels = flat(1, 10);
            blend_pixels(
                &mut pixels,
                &stamp(4, 3, WHITE),
                MarkPosition { x, y },
                SampleModel::Grey,
            );
            let covered = pixels.data.iter().filter(|level| **level == 255).count();
            let span = |start: i64, length: i64, edge: i64| {
                (start.saturating_add(length).clamp(0, edge) - start.clamp(0, edge)).max(0)
            };
            let expected = span(x, 4, 5) * span(y, 3, 4);
            assert_eq!(i64::try_from(covered), Ok(expected), "at {x},{y}");
        }
    }

    #[test]
    fn planes_outside_a_mark_are_unchanged() {
        let size = Size { width: 5, height: 4 };
        let (space, chroma) = (ColourSpace::YCbCr, ChromaSubsampling::Quarter);
        let samples = Planes::sample_count(&Planes::layout(size, space, chroma));
        for (x, y) in [(5, 0), (0, 4), (-4, 0), (0, -3), (i64::MAX, i64::MIN)] {
            let mut planes = Planes { size, space, chroma, data: vec![9; samples] };
            blend_planes(&mut planes, &stamp(4, 3, WHITE), MarkPosition { x, y });
            assert_eq!(planes.data, vec![9; samples], "at {x},{y}");
        }
    }

    #[test]
    fn planes_are_mixed_in_their_own_grids() {
        let size = Size { width: 4, height: 4 };
        let chroma = ChromaSubsampling::Quarter;
        let data = [vec![100; 16], vec![200; 4], vec![60; 4]].concat();
        let mut planes = Planes { size, space: ColourSpace::YCbCr, chroma, data };
        blend_planes(&mut planes, &stamp(2, 2, WHITE), MarkPosition { x: 1, y: 0 });
        assert_eq!(planes.data[..4], [100, 255, 255, 100]);
        assert_eq!(planes.data[8..16], [100; 8]);
        // The upper cells are half covered, the lower not at all.
        assert_eq!(planes.data[16..20], [164, 164, 200, 200]);
        assert_eq!(planes.data[20..24], [94, 94, 60, 60]);
    }

    #[test]
    fn a_colour_on_planes_is_that_of_jfif() {
        let size = Size { width: 2, height: 2 };
        let data = vec![128; 12];
        let mut planes =
            Planes { size, space: ColourSpace::YCbCr, chroma: ChromaSubsampling::Full, data };
        blend_planes(&mut planes, &stamp(2, 2, [255, 0, 0, 255]), MarkPosition { x: 0, y: 0 });
        assert_eq!([planes.data[0], planes.data[4], planes.data[8]], [77, 85, 255]);
    }
}
