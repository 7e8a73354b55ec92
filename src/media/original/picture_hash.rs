//! Perceptual hashes of pictures, which identify a photograph that is sent again.
//!
//! The picture is decoded at a reduced size, turned upright and divided into 9 × 8 cells. Each bit of the hash
//! compares the mean luminance of a cell with the mean of its right neighbour. Means survive a change of quality
//! or size. A different crop and a mirrored picture have different means.

use jpeg::codec::{self, DecodeScale, Pixels};
use model::{PictureHash, Size};

/// The number of cells in a row: one more than the number of bits.
const COLUMNS: usize = 9;
/// The number of rows of cells.
const ROWS: usize = 8;
/// The parts of a level in which luminances are counted: the sum of the weights of red, green and blue.
const LEVEL: u64 = 256;
/// The difference of two means, in parts of a level, up to which they count as equal. Saving a flat area again
/// changes its mean by less.
const EQUAL_MAX: u64 = LEVEL;
/// The number of the 64 pairs of cells that must differ. Pictures with nearly no contrast have no hash, because
/// all of them would look the same.
const CONTRASTS_MIN: u32 = 16;
/// The minimum number of pixels of the decoded picture. It keeps the edges of cells at nearly the same places at
/// any size.
const PIXELS_MIN: u64 = 65_536;

/// Computes the hash of the picture in `jpeg`, turned by the EXIF orientation. `stored` is its size as stored.
/// Returns `None` if it cannot be decoded, is tiny or has nearly no contrast.
pub(in crate::media) fn of_jpeg(
    jpeg: &[u8],
    stored: Size,
    orientation: u8,
) -> Option<PictureHash> {
    let decoded = codec::decode(jpeg, scale(stored)).ok()?;
    of_pixels(&decoded.value, orientation)
}

/// Computes the hash of a decoded picture, turned by the EXIF orientation; `None` if it is tiny or has nearly
/// no contrast.
pub(super) fn of_pixels(pixels: &Pixels, orientation: u8) -> Option<PictureHash> {
    let means = means(pixels, orientation)?;
    let mut bits = 0_u64;
    let mut contrasts = 0;
    for row in means {
        for (left, right) in row.iter().zip(&row[1..]) {
            bits = (bits << 1) | u64::from(*left > right + EQUAL_MAX);
            contrasts += u32::from(left.abs_diff(*right) > EQUAL_MAX);
        }
    }
    (contrasts >= CONTRASTS_MIN).then_some(PictureHash(bits))
}

/// Chooses the smallest scale that leaves enough pixels.
fn scale(stored: Size) -> DecodeScale {
    for scale in [1, 2, 4].map(DecodeScale::from_eighths) {
        if scale.scaled_size(stored).pixels() >= PIXELS_MIN {
            return scale;
        }
    }
    DecodeScale::FULL
}

/// Returns the mean luminance of each cell of the upright picture in parts of a level; `None` if a cell would have
/// no pixel.
fn means(pixels: &Pixels, orientation: u8) -> Option<[[u64; COLUMNS]; ROWS]> {
    let width = usize::try_from(pixels.size.width).ok()?;
    let height = usize::try_from(pixels.size.height).ok()?;
    let (upright_width, upright_height) =
        if (5..=8).contains(&orientation) { (height, width) } else { (width, height) };
    if upright_width < COLUMNS || upright_height < ROWS || pixels.channels == 0 {
        return None;
    }
    let mut sums = [[0_u64; COLUMNS]; ROWS];
    let mut counts = [[0_u64; COLUMNS]; ROWS];
    let rows = pixels.data.chunks_exact(width * pixels.channels).take(height);
    for (y, row) in rows.enumerate() {
        for (x, pixel) in row.chunks_exact(pixels.channels).enumerate() {
            let right = width - 1 - x;
            let down = height - 1 - y;
            // The position in the upright picture, by EXIF orientation.
            let (upright_x, upright_y) = match orientation {
                2 => (right, y),
                3 => (right, down),
                4 => (x, down),
                5 => (y, x),
                6 => (down, x),
                7 => (down, right),
                8 => (y, right),
                _ => (x, y),
            };
            let column = upright_x * COLUMNS / upright_width;
            let line = upright_y * ROWS / upright_height;
            sums[line][column] += luminance(pixel);
            counts[line][column] += 1;
        }
    }
    for (sum, count) in sums.iter_mut().flatten().zip(counts.iter().flatten()) {
        *sum = sum.checked_div(*count)?;
    }
    Some(sums)
}

/// Returns the luminance of a pixel in parts of a level, from grey, red, green and blue, or four inks.
fn luminance(pixel: &[u8]) -> u64 {
    match *pixel {
        [grey] => LEVEL * u64::from(grey),
        [red, green, blue] => weighted(red, green, blue),
        // Adobe files store inks inverted, so that they darken like light that is removed.
        [cyan, magenta, yellow, black] => weighted(cyan, magenta, yellow) * u64::from(black) / 255,
        _ => 0,
    }
}

/// Weights the channels as the eye does. The weights add up to [`LEVEL`].
fn weighted(red: u8, green: u8, blue: u8) -> u64 {
    77 * u64::from(red) + 150 * u64::from(green) + 29 * u64::from(blue)
}

#[cfg(test)]
mod tests {
    use jpeg::codec::{ChromaSubsampling, ColourSpace, EncodeOptions};

    use super::*;

    /// Bits in which hashes of the same picture may differ here; search allows a little more.
    const SAME_BITS_MAX: u32 = 4;

    /// A grey picture of `width` × `height` pixels that shows tiles of pseudo-random shades.
    fn tiles(width: u32, height: u32, seed: u32) -> Pixels {
        let shade = |x: u32, y: u32| {
            let tile = (x * 13 / width) * 31 + (y * 11 / height) * 97 + seed * 1009;
            let mixed = tile.wrapping_mul(0x9E37_79B9);
            (mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA6B).to_be_bytes()[0]
        };
        let data =
            (0..height).flat_map(|y| (0..width).map(move |x| shade(x, y))).collect::<Vec<u8>>();
        Pixels { size: Size::new(width, height), channels: 1, data }
    }

    fn saved(pixels: &Pixels, quality: u8) -> Vec<u8> {
        let (space, chroma) = (ColourSpace::Grey, ChromaSubsampling::Full);
        codec::encode(pixels, EncodeOptions { quality, space, chroma }).unwrap()
    }

    /// The pixels of an upright picture as they are stored for the EXIF orientations 2 and 6.
    fn stored_as(pixels: &Pixels, orientation: u8) -> Pixels {
        let Size { width, .. } = pixels.size;
        let is_turned = orientation == 6;
        let size = if is_turned { pixels.size.transposed() } else { pixels.size };
        let mut data = Vec::with_capacity(pixels.data.len());
        for y in 0..size.height {
            for x in 0..size.width {
                // Turned clockwise to be shown, the left column becomes the top row, and the top row the right column.
                let (from_x, from_y) =
                    if is_turned { (width - 1 - y, x) } else { (width - 1 - x, y) };
                data.push(pixels.data[usize::try_from(from_y * width + from_x).unwrap()]);
            }
        }
        Pixels { size, channels: 1, data }
    }

    #[test]
    fn the_same_picture_saved_again_has_nearly_the_same_hash() {
        let picture = tiles(1200, 900, 1);
        let hash = |pixels: &Pixels, quality| {
            of_jpeg(&saved(pixels, quality), pixels.size, 1).expect("a picture with contrast")
        };
        let original = hash(&picture, 95);
        let again =
            [hash(&picture, 50), hash(&tiles(600, 450, 1), 85), hash(&tiles(300, 225, 1), 85)];
        for other in again {
            assert!(original.distance(other) <= SAME_BITS_MAX, "{original} {other}");
        }
        for other in 2..9 {
            let other = hash(&tiles(1200, 900, other), 95);
            assert!(original.distance(other) > 10, "{original} {other}");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_upright_picture() {
        let picture = tiles(450, 320, 3);
        let hash = of_pixels(&picture, 1).unwrap();
        let (mirrored, turned) = (stored_as(&picture, 2), stored_as(&picture, 6));
        assert_eq!(of_pixels(&mirrored, 2), Some(hash));
        assert_eq!(of_pixels(&turned, 6), Some(hash));
        assert!(of_pixels(&mirrored, 1).unwrap().distance(hash) > 10);
        assert!(of_pixels(&turned, 1).unwrap().distance(hash) > 10);
    }

    #[test]
    fn a_picture_without_contrast_or_nearly_without_pixels_has_no_hash() {
        let flat = Pixels { size: Size::new(90, 80), channels: 3, data: vec![99; 90 * 80 * 3] };
        assert_eq!(of_pixels(&flat, 1), None);
        // A frame on white: one column of cells differs from its neighbours.
        let mut framed = tiles(90, 80, 1);
        framed.data.iter_mut().enumerate().for_each(|(at, shade)| {
            *shade = if at % 90 < 10 { 40 } else { 255 };
        });
        assert_eq!(of_pixels(&framed, 1), None);
        assert_eq!(of_pixels(&tiles(8, 8, 1), 1), None);
        assert_eq!(of_jpeg(b"no picture", Size::new(90, 80), 1), None);
    }
}
