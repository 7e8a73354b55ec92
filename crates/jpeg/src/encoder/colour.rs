//! Converts pixels to the planes of a JPEG picture: colour conversion and chroma subsampling.
//!
//! Planes have `f32` samples that are never rounded, so only the chroma subsampling itself loses information before
//! quantisation.

use super::effort::EncodeEffort;
use crate::codec::{Pixels, PlaneLayout, Planes};
use geometry::Size;

/// One component of a picture on its own sample grid, with samples around zero: luma from -128 to 127, chroma of full
/// size from -127.5 to 127.5, and chroma of half the size, which [`halved`] clamps, from -128 to 127.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// Number of samples in a row.
    pub(super) width: usize,
    /// Number of rows of the plane.
    pub(super) height: usize,
    /// The samples, `[height][width]`, rows without padding.
    pub(super) samples: Vec<f32>,
}

impl Plane {
    fn new(size: Size, samples: Vec<f32>) -> Plane {
        Plane { width: size.width as usize, height: size.height as usize, samples }
    }
}

/// The value to subtract from 8-bit samples, so that zero is their middle (ITU-T T.81, A.3.1).
const LEVEL_SHIFT: f32 = 128.0;

/// Weight of red in luma (JFIF, from ITU-R BT.601).
const RED: f32 = 0.299;
/// Weight of green in luma.
const GREEN: f32 = 0.587;
/// Weight of blue in luma.
const BLUE: f32 = 0.114;

/// Converts a grey picture, one byte for each pixel, to its only plane.
pub(super) fn grey_plane(pixels: &Pixels) -> Plane {
    let samples = pixels.data.iter().map(|&value| f32::from(value) - LEVEL_SHIFT).collect();
    Plane::new(pixels.size, samples)
}

/// Converts an RGB picture, three bytes for each pixel, to planes of full size: Y, Cb and Cr.
///
/// The chroma planes are the differences of blue and red from luma, scaled to the range of 8 bits (JFIF). Zero is
/// their middle, so they need no [`LEVEL_SHIFT`].
pub(super) fn ycbcr_planes(pixels: &Pixels) -> [Plane; 3] {
    let mut planes: [Vec<f32>; 3] = std::array::from_fn(|_| vec![0.0; pixels.data.len() / 3]);
    let [luma, cb, cr] = &mut planes;
    let (triples, _) = pixels.data.as_chunks::<3>();
    for (((&[r, g, b], luma), cb), cr) in triples.iter().zip(luma).zip(cb).zip(cr) {
        let r = f32::from(r);
        let g = f32::from(g);
        let b = f32::from(b);
        let y = RED * r + GREEN * g + BLUE * b;
        *luma = y - LEVEL_SHIFT;
        *cb = (b - y) * (0.5 / (1.0 - BLUE));
        *cr = (r - y) * (0.5 / (1.0 - RED));
    }
    planes.map(|samples| Plane::new(pixels.size, samples))
}

/// Converts 8-bit planes to components: luma, and chroma unless the picture is grey. Luma loses its padding.
///
/// The planes must have the layout of [`Planes::layout`] and 4:4:4 or 4:2:0.
pub(super) fn components(planes: &Planes) -> Vec<Plane> {
    let layout = Planes::layout(planes.size, planes.space, planes.chroma);
    let components = layout.iter().enumerate().map(|(number, plane)| {
        let PlaneLayout { start, width: stride, .. } = *plane;
        let Size { width, height } = if number == 0 { planes.size } else { plane.size() };
        let rows = planes.data[start..].chunks_exact(stride).take(height as usize);
        let samples = rows.flat_map(|row| &row[..width as usize]);
        let samples = samples.map(|&sample| f32::from(sample) - LEVEL_SHIFT).collect();
        Plane::new(Size { width, height }, samples)
    });
    components.collect()
}

/// Halves a plane in both directions, each side rounded up.
///
/// Decoders interpolate each sample of the full plane from the nearest samples of the half, weighted 3 to 1 in each
/// direction (libjpeg's "fancy upsampling"), which blurs. To counter this, the half starts as the means of two by two
/// samples, and each round of correction adds the means of what the interpolation still misses.
pub(super) fn halved(plane: &Plane, effort: EncodeEffort) -> Plane {
    let rounds = match effort {
        EncodeEffort::Small => 3,
        EncodeEffort::Fast => 1,
    };
    let mut half = box_halved(plane, &plane.samples);
    let mut errors = vec![0.0; plane.samples.len()];
    for _ in 0..rounds {
        interpolation_errors(plane, &half, &mut errors);
        let correction = box_halved(plane, &errors);
        for (sample, error) in half.samples.iter_mut().zip(&correction.samples) {
            // The range of 8-bit samples: a decoder clips what is outside.
            *sample = (*sample + error).clamp(-128.0, 127.0);
        }
    }
    half
}

/// Averages two by two values of `samples`; the last column and row are repeated if the size is odd. `plane` gives only
/// the width and the height of `samples`.
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

/// Writes to `errors` the samples of `plane` minus the samples that a decoder interpolates from `half`. The length of
/// `errors` is the length of `plane.samples`.
fn interpolation_errors(plane: &Plane, half: &Plane, errors: &mut [f32]) {
    // A row interpolated between two rows of the half, with its first and last value repeated outside.
    let mut row = vec![0.0; half.width + 2];
    let rows = plane.samples.chunks_exact(plane.width).zip(errors.chunks_exact_mut(plane.width));
    for (y, (samples, errors)) in rows.enumerate() {
        // Rows `2 * n` and `2 * n + 1` of the plane lie just above and just below the centre of row `n` of the half.
        // Outside the half, its edge row is repeated.
        let near_y = y / 2;
        let far_y =
            if y % 2 == 0 { near_y.saturating_sub(1) } else { (near_y + 1).min(half.height - 1) };
        let near_row = &half.samples[near_y * half.width..][..half.width];
        let far_row = &half.samples[far_y * half.width..][..half.width];
        for ((value, near), far) in row[1..].iter_mut().zip(near_row).zip(far_row) {
            *value = 0.75 * near + 0.25 * far;
        }
        row[0] = row[1];
        row[half.width + 1] = row[half.width];
        // Each value of the row lies between two samples of the plane. The left sample is interpolated from
        // it and the value before it, the right sample from it and the value after it.
        let pairs = samples.chunks(2).zip(errors.chunks_mut(2));
        for ((samples, errors), around) in pairs.zip(row.windows(3)) {
            let values =
                [0.75 * around[1] + 0.25 * around[0], 0.75 * around[1] + 0.25 * around[2]];
            for ((error, sample), value) in errors.iter_mut().zip(samples).zip(values) {
                *error = sample - value;
            }
        }
    }
}
