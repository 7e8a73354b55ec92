//! Converts pixels to planes of luma and chroma.
//!
//! The matrix is BT.601 at full range, as in JPEG: code 6 of ITU-T H.273.

use geometry::Size;

use crate::{ChromaSampling, PixelView};

/// Fraction bits of the coefficients.
const FRACTION_BITS: u32 = 16;
/// The weights of red, green and blue in luma; the sum is 1.
const LUMA: [i32; 3] = [19_595, 38_470, 7_471];
/// The weights in the first chroma channel, blue minus luma; the sum is 0.
const CB: [i32; 3] = [-11_059, -21_709, 32_768];
/// The weights in the second chroma channel, red minus luma; the sum is 0.
const CR: [i32; 3] = [32_768, -27_439, -5_329];
/// The chroma value of a pixel without colour.
const NEUTRAL: u8 = 128;

/// The planes of a picture, with 8 bits per sample and rows without padding.
pub(crate) struct YuvPlanes {
    /// Size of the picture and of the luma plane.
    pub(crate) size: Size,
    /// Size of each chroma plane.
    pub(crate) chroma_size: Size,
    /// Luma and both chroma planes, of the sizes `size` and `chroma_size`.
    pub(crate) planes: [Vec<u8>; 3],
    /// True if the picture has no chroma. libaom reads chroma planes all the same.
    pub(crate) is_monochrome: bool,
    /// True if chroma is not subsampled. The sizes do not show it: both are equal for a single pixel.
    pub(crate) has_full_chroma: bool,
}

impl YuvPlanes {
    /// Converts a picture, whose data must match its size.
    ///
    /// With subsampling, the pixels of each block of two by two are averaged; blocks at an odd edge have fewer
    /// pixels.
    pub(crate) fn convert(picture: PixelView<'_>, sampling: ChromaSampling) -> YuvPlanes {
        let size = picture.size;
        let halved = Size::new(size.width.div_ceil(2), size.height.div_ceil(2));
        if picture.channels == 1 {
            let neutral = vec![NEUTRAL; length(halved)];
            let planes = [picture.data.to_vec(), neutral.clone(), neutral];
            return YuvPlanes {
                size,
                chroma_size: halved,
                planes,
                is_monochrome: true,
                has_full_chroma: false,
            };
        }
        let luma = picture.data.as_chunks::<3>().0.iter().map(|pixel| luma(*pixel)).collect();
        let (chroma_size, [cb, cr]) = match sampling {
            ChromaSampling::Full => (size, full_chroma(picture.data)),
            ChromaSampling::Quarter => (halved, quarter_chroma(picture)),
        };
        let has_full_chroma = sampling == ChromaSampling::Full;
        let planes = [luma, cb, cr];
        YuvPlanes { size, chroma_size, planes, is_monochrome: false, has_full_chroma }
    }
}

/// Returns the number of samples of a plane; pictures are limited to 35 megapixels.
fn length(size: Size) -> usize {
    usize::try_from(size.pixels()).expect("at most 35 megapixels")
}

fn luma(pixel: [u8; 3]) -> u8 {
    weigh(pixel.map(i32::from), LUMA, 0, 0)
}

fn full_chroma(pixels: &[u8]) -> [Vec<u8>; 2] {
    let pixels = pixels.as_chunks::<3>().0;
    [CB, CR].map(|row| {
        pixels.iter().map(|pixel| weigh(pixel.map(i32::from), row, 0, NEUTRAL)).collect()
    })
}

fn quarter_chroma(picture: PixelView<'_>) -> [Vec<u8>; 2] {
    let width = usize::try_from(picture.size.width).expect("at most 16,384");
    let mut planes = [const { Vec::new() }; 2];
    let samples = length(picture.size).div_ceil(4);
    planes.iter_mut().for_each(|plane| plane.reserve_exact(samples));
    for pair in picture.data.chunks(width * 6) {
        let (upper, lower) = pair.split_at(width * 3);
        // The last row of an odd height is its own lower neighbour.
        let lower = if lower.is_empty() { upper } else { lower };
        let upper = upper.as_chunks::<3>().0.chunks(2);
        let lower = lower.as_chunks::<3>().0.chunks(2);
        for (above, below) in upper.zip(lower) {
            let above_last = above.len() - 1;
            let below_last = below.len() - 1;
            let sum = std::array::from_fn(|channel| {
                let upper_left = i32::from(above[0][channel]);
                let upper_right = i32::from(above[above_last][channel]);
                let lower_left = i32::from(below[0][channel]);
                let lower_right = i32::from(below[below_last][channel]);
                upper_left + upper_right + lower_left + lower_right
            });
            planes[0].push(weigh(sum, CB, 2, NEUTRAL));
            planes[1].push(weigh(sum, CR, 2, NEUTRAL));
        }
    }
    planes
}

/// Returns the weighted sum of three channels plus `offset`, rounded. Each channel is a sum of `1 << sum_bits`
/// pixels.
fn weigh(channels: [i32; 3], weights: [i32; 3], sum_bits: u32, offset: u8) -> u8 {
    let bits = FRACTION_BITS + sum_bits;
    let sum: i32 = channels.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    let rounded = ((sum + (1 << (bits - 1))) >> bits) + i32::from(offset);
    u8::try_from(rounded.clamp(0, 255)).expect("clamped")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes(width: u32, height: u32, data: &[u8], sampling: ChromaSampling) -> YuvPlanes {
        let picture = PixelView { size: Size::new(width, height), channels: 3, data };
        YuvPlanes::convert(picture, sampling)
    }

    #[test]
    fn primary_colours_have_the_values_of_jfif() {
        // Red, green, blue, white.
        let data = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let found = planes(4, 1, &data, ChromaSampling::Full).planes;
        assert_eq!(found[0], [76, 150, 29, 255]);
        assert_eq!(found[1], [85, 44, 255, 128]);
        assert_eq!(found[2], [255, 21, 107, 128]);
    }

    #[test]
    fn an_odd_edge_is_averaged_over_the_pixels_that_exist() {
        // Two red columns, one blue one; three rows.
        let row = [255, 0, 0, 255, 0, 0, 0, 0, 255];
        let found = planes(3, 3, &row.repeat(3), ChromaSampling::Quarter);
        assert_eq!(found.chroma_size, Size::new(2, 2));
        assert_eq!(found.planes[1], [85, 255, 85, 255]);
        assert_eq!(found.planes[2], [255, 107, 255, 107]);
    }
}
