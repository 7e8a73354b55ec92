//! Filters one channel of 8-bit samples, stored row by row. Samples beyond an edge repeat the samples at the edge.

use crate::index;
use geometry::Size;

/// Blurs `samples` of a picture of `size` with a Gaussian of the standard deviation `sigma`, in pixels, above 0.
///
/// The kernel ends at two standard deviations; less than a twentieth of a Gaussian lies beyond them.
pub(crate) fn gaussian_blur(samples: &[u8], size: Size, sigma: f32) -> Vec<u8> {
    let kernel = gaussian_kernel(sigma);
    let radius = kernel.len() / 2;
    let width = index(size.width);
    let height = index(size.height);
    let mut across = vec![0.0; width * height];
    let mut padded = vec![0.0; width + 2 * radius];
    for (row, sums) in samples.chunks_exact(width).zip(across.chunks_exact_mut(width)) {
        padded[..radius].fill(f32::from(row[0]));
        padded[radius + width..].fill(f32::from(row[width - 1]));
        for (to, from) in padded[radius..].iter_mut().zip(row) {
            *to = f32::from(*from);
        }
        for (offset, weight) in kernel.iter().enumerate() {
            add_weighted(sums, &padded[offset..], *weight);
        }
    }
    let mut blurred = Vec::with_capacity(width * height);
    let mut sums = vec![0.0; width];
    for y in 0..height {
        sums.fill(0.0);
        for (offset, weight) in kernel.iter().enumerate() {
            let row = (y + offset).saturating_sub(radius).min(height - 1);
            add_weighted(&mut sums, &across[row * width..], *weight);
        }
        blurred.extend(sums.iter().map(|sum| rounded(*sum)));
    }
    blurred
}

/// Computes the strength of the edge at each sample: the length of its Sobel gradient, 0 to 1442.
pub(crate) fn sobel_gradients(samples: &[u8], size: Size) -> Vec<u16> {
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

/// Returns the weights of a Gaussian at whole pixels. They add up to 1.
fn gaussian_kernel(sigma: f32) -> Vec<f32> {
    let radius = (2.0 * sigma).ceil().max(0.0);
    let mut kernel = Vec::new();
    let mut distance = -radius;
    while distance <= radius {
        kernel.push((-0.5 * (distance / sigma).powi(2)).exp());
        distance += 1.0;
    }
    let total: f32 = kernel.iter().sum();
    kernel.iter_mut().for_each(|weight| *weight /= total);
    kernel
}

fn add_weighted(sums: &mut [f32], values: &[f32], weight: f32) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += weight * value;
    }
}

/// Rounds a sample to the nearest level; a sample outside 0 to 255 gives the nearer end.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast is saturating"
)]
pub(crate) fn rounded(sample: f32) -> u8 {
    sample.round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of the blurred picture below, which is 21 pixels wide.
    fn sample(blurred: &[u8], x: usize, y: usize) -> u8 {
        blurred[y * 21 + x]
    }

    #[test]
    fn a_blur_keeps_flat_areas_and_spreads_a_point_evenly() {
        let size = Size { width: 21, height: 15 };
        assert_eq!(gaussian_blur(&[200; 315], size, 3.0), [200; 315]);
        let mut point = [0; 315];
        point[7 * 21 + 10] = 255;
        let blurred = gaussian_blur(&point, size, 1.0);
        // 255 / (2 π σ²), a little more because the kernel is cut off.
        assert_eq!(sample(&blurred, 10, 7), 41);
        for (x, y) in [(9, 7), (11, 7), (10, 6), (10, 8)] {
            assert_eq!(sample(&blurred, x, y), 25, "{x}, {y}");
        }
        assert_eq!(sample(&blurred, 13, 7), 0, "beyond two standard deviations");
        assert_eq!(gaussian_blur(&[9], Size { width: 1, height: 1 }, 4.0), [9]);
    }

    #[test]
    fn gradients_are_those_of_edges_and_none_at_the_border() {
        let size = Size { width: 4, height: 3 };
        let edge = [0, 0, 255, 255].repeat(3);
        assert_eq!(sobel_gradients(&edge, size), [0, 1020, 1020, 0].repeat(3));
        assert_eq!(sobel_gradients(&[77; 12], size), [0; 12]);
    }
}
