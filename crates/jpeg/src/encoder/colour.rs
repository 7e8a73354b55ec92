//! Converts pixels to the planes of a JPEG picture: colour conversion and chroma subsampling.
//!
//! Planes hold `f32` samples that are never rounded, so only the chroma subsampling itself loses information
//! before quantisation.

use crate::codec::Pixels;

/// One component on its own sample grid, centred on zero: −128 to 127, rows without padding.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// Number of samples in a row.
    pub(super) width: usize,
    /// Number of rows of the plane.
    pub(super) height: usize,
    /// The samples, row by row.
    pub(super) samples: Vec<f32>,
}

/// The value that centres samples on zero (ITU-T T.81, A.3.1).
const LEVEL_SHIFT: f32 = 128.0;

/// Weight of red in luma (JFIF, from ITU-R BT.601).
const RED: f32 = 0.299;
/// Weight of green in luma.
const GREEN: f32 = 0.587;
/// Weight of blue in luma.
const BLUE: f32 = 0.114;

/// The number of corrections of a subsampled plane.
const CORRECTION_ROUNDS: usize = 3;

/// Converts a grey picture of `width` × `height` pixels to its only plane.
pub(super) fn grey_plane(pixels: &Pixels, width: usize, height: usize) -> Plane {
    let samples = pixels.data.iter().map(|&value| f32::from(value) - LEVEL_SHIFT).collect();
    Plane { width, height, samples }
}

/// Converts an RGB picture of `width` × `height` pixels to luma and two chroma planes of full size.
pub(super) fn ycbcr_planes(pixels: &Pixels, width: usize, height: usize) -> [Plane; 3] {
    let mut luma = Vec::with_capacity(width * height);
    let mut blue = Vec::with_capacity(width * height);
    let mut red = Vec::with_capacity(width * height);
    let (triples, _) = pixels.data.as_chunks::<3>();
    for &[r, g, b] in triples {
        let r = f32::from(r);
        let g = f32::from(g);
        let b = f32::from(b);
        let y = RED * r + GREEN * g + BLUE * b;
        luma.push(y - LEVEL_SHIFT);
        blue.push((b - y) * (0.5 / (1.0 - BLUE)));
        red.push((r - y) * (0.5 / (1.0 - RED)));
    }
    [luma, blue, red].map(|samples| Plane { width, height, samples })
}

/// Halves a plane in both directions.
///
/// Decoders interpolate a missing sample from its nearest neighbours in a ratio of 3 to 1 (libjpeg's "fancy
/// upsampling"), which blurs. The filter minimises the difference between the interpolated plane and the original:
/// a first estimate is computed with a box and then corrected a few times by the box mean of the loss from
/// interpolation.
pub(super) fn halved(plane: &Plane) -> Plane {
    let mut half = box_halved(plane, &plane.samples);
    let mut errors = vec![0.0; plane.samples.len()];
    for _ in 0..CORRECTION_ROUNDS {
        interpolation_errors(plane, &half, &mut errors);
        let correction = box_halved(plane, &errors);
        for (sample, error) in half.samples.iter_mut().zip(&correction.samples) {
            *sample = (*sample + error).clamp(-128.0, 127.0);
        }
    }
    half
}

/// Averages two by two samples; the last column and row are repeated if the size is odd.
fn box_halved(plane: &Plane, samples: &[f32]) -> Plane {
    let width = plane.width.div_ceil(2);
    let height = plane.height.div_ceil(2);
    let mut half = Vec::with_capacity(width * height);
    for y in 0..height {
        let lower_y = (2 * y + 1).min(plane.height - 1);
        let upper = &samples[2 * y * plane.width..][..plane.width];
        let lower = &samples[lower_y * plane.width..][..plane.width];
        let (upper_pairs, upper_rest) = upper.as_chunks::<2>();
        let (lower_pairs, lower_rest) = lower.as_chunks::<2>();
        half.extend(
            upper_pairs
                .iter()
                .zip(lower_pairs)
                .map(|(u, l)| ((u[0] + u[1]) + (l[0] + l[1])) * 0.25),
        );
        half.extend(upper_rest.iter().zip(lower_rest).map(|(u, l)| (u + l) * 0.5));
    }
    Plane { width, height, samples: half }
}

/// Computes the difference between a plane and the decoder's interpolation of its half.
fn interpolation_errors(plane: &Plane, half: &Plane, errors: &mut [f32]) {
    // One row, interpolated between two rows of the half, with its first and last sample repeated outside.
    let mut row = vec![0.0; half.width + 2];
    let rows = plane.samples.chunks_exact(plane.width).zip(errors.chunks_exact_mut(plane.width));
    for (y, (samples, errors)) in rows.enumerate() {
        let near = y / 2;
        let far =
            if y % 2 == 0 { near.saturating_sub(1) } else { (near + 1).min(half.height - 1) };
        let near = &half.samples[near * half.width..][..half.width];
        let far = &half.samples[far * half.width..][..half.width];
        for ((value, near), far) in row[1..].iter_mut().zip(near).zip(far) {
            *value = 0.75 * near + 0.25 * far;
        }
        row[0] = row[1];
        row[half.width + 1] = row[half.width];
        let pairs = samples.chunks(2).zip(errors.chunks_mut(2));
        for ((samples, errors), near) in pairs.zip(row.windows(3)) {
            let values = [0.75 * near[1] + 0.25 * near[0], 0.75 * near[1] + 0.25 * near[2]];
            for ((error, sample), value) in errors.iter_mut().zip(samples).zip(values) {
                *error = sample - value;
            }
        }
    }
}
