//! Chooses the scale of decoding, and scales and cuts pixels for which light does not matter.

use crate::{Orientation, RenderStep, index, scaled_size};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use geometry::{Rect, Size};
use jpeg::codec::{DecodeScale, Pixels};

/// The decoding scales in use, in eighths. Powers of two have fast transforms; the other scales cost more than a
/// full decode and look no better.
const EIGHTHS: [u8; 3] = [1, 2, 4];

/// Minimum factor by which each edge of the decoder's picture exceeds the target size.
///
/// The decoder averages gamma-encoded samples in squares, which darkens fine detail and aliases. Seven photographs
/// of 12 to 24 megapixels, decoded at a reduced scale, then scaled in linear light and encoded at quality 82, lose
/// SSIMULACRA2 points compared to a full decode. On average, and at worst: 0.0 and 1.3 at 8 to 12 times the target
/// size, 0.3 and 1.7 at 4 to 6 times, 2.0 and 12.6 at 2 to 3 times, 9.7 and 42.4 below 1.6 times.
const HEADROOM: u64 = 8;

/// Chooses the smallest decoding scale, in eighths, that leaves [`HEADROOM`] over `target`.
pub(crate) fn decode_eighths(full: Size, target: Size) -> u8 {
    // Ascending, so the first scale that fits costs least.
    for eighths in EIGHTHS {
        let size = DecodeScale::from_eighths(eighths).scaled_size(full);
        if has_headroom(size.width, target.width) && has_headroom(size.height, target.height) {
            return eighths;
        }
    }
    8
}

fn has_headroom(edge: u32, target: u32) -> bool {
    u64::from(edge) >= u64::from(target) * HEADROOM
}

/// Returns the stored size of the decoded pixels for a picture of `stored` pixels without an index, if `first` is
/// the first render step.
pub fn decoded_size(stored: Size, orientation: Orientation, first: &RenderStep) -> Size {
    let target = scaled_size(orientation.oriented_size(stored), first);
    let eighths =
        target.map_or(8, |target| decode_eighths(stored, orientation.oriented_size(target)));
    DecodeScale::from_eighths(eighths).scaled_size(stored)
}

/// Scales samples directly, not in linear light, from `size` to `target` with a Lanczos filter of three lobes. All
/// four channels are scaled alike.
///
/// `pixels`: `[height][width]` of four samples. For samples that are not light of a picture, such as a mark, and for
/// pixels that are not shown, such as the pixels in which edges are detected.
pub(crate) fn resize(pixels: Vec<[u8; 4]>, size: Size, target: Size) -> Vec<[u8; 4]> {
    if size == target {
        return pixels;
    }
    let fits = "there are four samples for each pixel";
    let from = ImageRef::new(size.width, size.height, pixels.as_flattened(), PixelType::U8x4);
    let from = from.expect(fits);
    let mut to = Image::new(target.width, target.height, PixelType::U8x4);
    // Premultiplied colours are scaled like their alpha, and the fourth channel may be an ink.
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
        .use_alpha(false);
    Resizer::new().resize(&from, &mut to, &options).expect("both have the same kind of pixels");
    to.buffer().as_chunks::<4>().0.to_vec()
}

/// Copies `region`, which must be inside the picture, out of `pixels`.
pub(crate) fn crop_pixels(pixels: Pixels, region: Rect) -> Pixels {
    let size = Size { width: region.width, height: region.height };
    if pixels.size == size {
        return pixels;
    }
    let stride = index(pixels.size.width) * pixels.channels;
    let left = index(region.x) * pixels.channels;
    let length = index(region.width) * pixels.channels;
    let rows = pixels.data.chunks_exact(stride).skip(index(region.y)).take(index(region.height));
    let mut data = Vec::with_capacity(length * index(region.height));
    for row in rows {
        data.extend_from_slice(&row[left..left + length]);
    }
    Pixels { size, channels: pixels.channels, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decoder_leaves_eight_times_the_wanted_pixels() {
        let full = Size { width: 6000, height: 4000 };
        let eighths = |width, height| decode_eighths(full, Size { width, height });
        assert_eq!(eighths(93, 62), 1);
        assert_eq!(eighths(94, 62), 2);
        assert_eq!(eighths(256, 171), 4);
        assert_eq!(eighths(376, 250), 8);
        assert_eq!(eighths(1024, 683), 8);
    }

    #[test]
    fn a_flat_picture_stays_flat() {
        let size = Size { width: 40, height: 30 };
        for target in [Size { width: 13, height: 7 }, Size { width: 90, height: 31 }] {
            let pixels = vec![[77, 0, 255, 128]; 1200];
            let count = index(target.width) * index(target.height);
            assert_eq!(resize(pixels, size, target), vec![[77, 0, 255, 128]; count]);
        }
    }

    #[test]
    fn channels_do_not_affect_each_other() {
        let size = Size { width: 9, height: 1 };
        let steps = [0, 0, 0, 0, 255, 255, 255, 255, 255];
        let alone =
            resize(steps.map(|v| [v, 0, 0, 0]).to_vec(), size, Size { width: 4, height: 1 });
        let with =
            resize(steps.map(|v| [v, v, 9, v]).to_vec(), size, Size { width: 4, height: 1 });
        for (alone, with) in alone.iter().zip(&with) {
            assert_eq!(*with, [alone[0], alone[0], 9, alone[0]]);
        }
    }

    #[test]
    fn a_cut_is_the_region_itself() {
        let size = Size { width: 4, height: 3 };
        let pixels = Pixels { size, channels: 1, data: (0..12).collect() };
        let part = crop_pixels(pixels, Rect { x: 1, y: 1, width: 2, height: 2 });
        assert_eq!(part.data, [5, 6, 9, 10]);
    }
}
