//! Chooses the part of a picture that a cropped thumbnail shows.
//!
//! Edges draw attention, and photographers place the subject near the middle, so the window with the most edges,
//! weighted towards the middle, is chosen. The choice is deterministic: the same picture always gives the same
//! window.

use crate::resize::resize;
use crate::steps::fit;
use crate::{index, truncated};
use geometry::{Rect, Size};
use jpeg::codec::Pixels;

/// Long side in pixels of the reduced picture in which edges are detected.
const LONG_PX: u32 = 128;

/// Weight of an edge at the border; in the middle it is 1. Borders often have background texture.
const BORDER_WEIGHT: f64 = 0.35;

/// Limit on the strength of an edge, so that a single hard line does not count as a subject.
const GRADIENT_MAX: u16 = 400;

/// Finds the window of size `cut` in `pixels` with the most weighted edges.
///
/// `cut` must not be larger than the picture. In a tie, the window nearest to the middle is chosen.
pub(crate) fn window(pixels: &Pixels, cut: Size) -> Rect {
    let size = pixels.size;
    let free_x = size.width - cut.width;
    let free_y = size.height - cut.height;
    let mut x = free_x / 2;
    let mut y = free_y / 2;
    // A cut of the full size leaves no choice, so the edges need not be detected.
    if free_x > 0 || free_y > 0 {
        let edges = EdgeSums::new(pixels);
        if free_x > 0 {
            x = best_start(&edges.columns, size.width, cut.width);
        }
        if free_y > 0 {
            y = best_start(&edges.rows, size.height, cut.height);
        }
    }
    Rect { x, y, width: cut.width, height: cut.height }
}

/// Weighted edge strengths of a reduced picture, added up by column and by row.
struct EdgeSums {
    columns: Vec<f64>,
    rows: Vec<f64>,
}

impl EdgeSums {
    fn new(pixels: &Pixels) -> EdgeSums {
        let size = fit(pixels.size, LONG_PX);
        let small = resize(four_channels(pixels), pixels.size, size);
        let luma: Vec<u8> = small.iter().map(|pixel| luma(pixel, pixels.channels)).collect();
        let Size { width, height } = size;
        let mut edges =
            EdgeSums { columns: vec![0.0; index(width)], rows: vec![0.0; index(height)] };
        let gradients = sobel_gradients(&luma, size);
        for (row, y) in gradients.chunks_exact(index(width)).zip(0..) {
            for (gradient, x) in row.iter().zip(0..) {
                let strength = f64::from(*gradient.min(&GRADIENT_MAX));
                let weight = strength * prior(x, width) * prior(y, height);
                edges.columns[index(x)] += weight;
                edges.rows[index(y)] += weight;
            }
        }
        edges
    }
}

/// Computes the strength of the edge at each sample: the length of its Sobel gradient, 0 to 1442. Samples beyond an
/// edge of the picture repeat the samples at the edge.
fn sobel_gradients(samples: &[u8], size: Size) -> Vec<u16> {
    let width = index(size.width);
    let height = index(size.height);
    let mut gradients = Vec::with_capacity(width * height);
    for y in 0..height {
        let rows =
            [y.saturating_sub(1), y, (y + 1).min(height - 1)].map(|y| &samples[y * width..]);
        for x in 0..width {
            let columns = [x.saturating_sub(1), x, (x + 1).min(width - 1)];
            let [above, level, below] = rows.map(|row| columns.map(|x| i32::from(row[x])));
            let horizontal =
                above[2] + 2 * level[2] + below[2] - above[0] - 2 * level[0] - below[0];
            let vertical = below[0] + 2 * below[1] + below[2] - above[0] - 2 * above[1] - above[2];
            let squared = horizontal * horizontal + vertical * vertical;
            gradients.push(u16::try_from(squared.isqrt()).unwrap_or(u16::MAX));
        }
    }
    gradients
}

/// Computes the weight of a position: 1 in the middle of `edge` pixels, [`BORDER_WEIGHT`] at both ends.
fn prior(position: u32, edge: u32) -> f64 {
    let middle = f64::from(edge) / 2.0;
    let distance = (f64::from(position) + 0.5 - middle).abs() / middle.max(0.5);
    1.0 - (1.0 - BORDER_WEIGHT) * distance * distance
}

/// Extends each pixel to the four channels that the scaler has; the added channels are zero.
fn four_channels(pixels: &Pixels) -> Vec<[u8; 4]> {
    match pixels.channels {
        1 => pixels.data.iter().map(|&grey| [grey, 0, 0, 0]).collect(),
        3 => pixels.data.as_chunks::<3>().0.iter().map(|&[r, g, b]| [r, g, b, 0]).collect(),
        _ => pixels.data.as_chunks::<4>().0.to_vec(),
    }
}

/// Computes the perceived brightness of a pixel with `channels` channels. The polarity of inks does not matter, because
/// it does not change the edges.
fn luma(pixel: &[u8; 4], channels: usize) -> u8 {
    match channels {
        1 => pixel[0],
        3 => weighted_mean(pixel),
        _ => weighted_mean(pixel) / 2 + pixel[3] / 2,
    }
}

/// Averages the first three samples of a pixel with the weights of red, green and blue in brightness.
#[inline]
fn weighted_mean(pixel: &[u8]) -> u8 {
    let red = 77 * u32::from(pixel[0]);
    let green = 150 * u32::from(pixel[1]);
    let blue = 29 * u32::from(pixel[2]);
    // The weights add up to 256, so the second byte is the mean.
    let [_, mean, ..] = (red + green + blue).to_le_bytes();
    mean
}

/// Finds the start of the window of `length` in `edge` pixels with the greatest total.
fn best_start(sums: &[f64], edge: u32, length: u32) -> u32 {
    let mut prefix_sums = vec![0.0];
    for sum in sums {
        prefix_sums.push(prefix_sums[prefix_sums.len() - 1] + sum);
    }
    let scale = f64::from(u32::try_from(sums.len()).unwrap_or(1)) / f64::from(edge.max(1));
    let middle = (edge - length) / 2;
    // Starts in the middle: a different window must have a greater total.
    let mut best = (middle, window_total(&prefix_sums, middle, length, scale));
    for start in 0..=edge - length {
        let total = window_total(&prefix_sums, start, length, scale);
        // The margin keeps the window of a flat picture in the middle despite rounding errors.
        let margin = 1e-9 * best.1.abs();
        let nearer = start.abs_diff(middle) < best.0.abs_diff(middle);
        if total > best.1 + margin || (nearer && total >= best.1 - margin) {
            best = (start, total);
        }
    }
    best.0
}

/// Computes the total of a window in pixels. There are `scale` samples per pixel.
fn window_total(prefix_sums: &[f64], start: u32, length: u32, scale: f64) -> f64 {
    let before = total_up_to(prefix_sums, f64::from(start) * scale);
    let end = total_up_to(prefix_sums, f64::from(start + length) * scale);
    end - before
}

/// Computes the total up to a position between two samples, interpolated linearly.
fn total_up_to(prefix_sums: &[f64], at: f64) -> f64 {
    let index = prefix_sums.len().saturating_sub(2).min(truncated(at));
    let fraction = (at - f64::from(u32::try_from(index).unwrap_or(0))).clamp(0.0, 1.0);
    prefix_sums[index] + (prefix_sums[index + 1] - prefix_sums[index]) * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flat picture with a checkered square of 60 pixels at `x`, `y`.
    fn scene(width: u32, height: u32, x: u32, y: u32) -> Pixels {
        let mut data = vec![90; index(width * height * 3)];
        for row in y..(y + 60).min(height) {
            for column in x..(x + 60).min(width) {
                let value = if (row / 6 + column / 6) % 2 == 0 { 230 } else { 20 };
                let at = index((row * width + column) * 3);
                data[at..at + 3].fill(value);
            }
        }
        Pixels { size: Size { width, height }, channels: 3, data }
    }

    #[test]
    fn gradients_are_those_of_edges_and_none_at_the_border() {
        let size = Size { width: 4, height: 3 };
        let edge = [0, 0, 255, 255].repeat(3);
        assert_eq!(sobel_gradients(&edge, size), [0, 1020, 1020, 0].repeat(3));
        assert_eq!(sobel_gradients(&[77; 12], size), [0; 12]);
    }

    #[test]
    fn the_window_holds_the_subject_left_and_right() {
        let cut = Size { width: 256, height: 256 };
        for x in [10, 60, 160, 260, 310] {
            let found = window(&scene(384, 256, x, 90), cut);
            assert!(found.x <= x && found.x + 256 >= x + 60, "subject at {x}: {found:?}");
        }
    }

    #[test]
    fn the_window_holds_the_subject_above_and_below() {
        let cut = Size { width: 256, height: 256 };
        for y in [10, 200, 310] {
            let found = window(&scene(256, 384, 90, y), cut);
            assert!(found.y <= y && found.y + 256 >= y + 60, "subject at {y}: {found:?}");
        }
    }

    #[test]
    fn a_flat_picture_is_cut_in_the_middle() {
        let flat = Pixels {
            size: Size { width: 301, height: 100 },
            channels: 1,
            data: vec![128; 30_100],
        };
        let found = window(&flat, Size { width: 100, height: 100 });
        assert_eq!((found.x, found.y), (100, 0));
    }

    #[test]
    fn tiny_pictures_have_a_window() {
        for (width, height) in [(1, 1), (2, 1), (1, 5)] {
            let data = vec![3; index(width * height)];
            let pixels = Pixels { size: Size { width, height }, channels: 1, data };
            let found = window(&pixels, Size { width: 1, height: 1 });
            assert!(found.x < width && found.y < height);
        }
    }
}
