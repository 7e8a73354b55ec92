//! Generated pictures, and the decoding of returned ones.

use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

/// An RGB picture, rows without padding.
#[derive(Clone, PartialEq)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Picture {
    /// A picture computed from x and y.
    pub fn new(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 3]) -> Self {
        let points = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels = points.flat_map(|(x, y)| pixel(x, y)).collect();
        Self { width, height, pixels }
    }

    /// Smooth gradients with a coloured square in each corner: red, green, blue, yellow, clockwise from the top
    /// left.
    pub fn corners(width: usize, height: usize) -> Self {
        let side = width.min(height) / 4;
        Self::new(width, height, |x, y| {
            match (x < side, x >= width - side, y < side, y >= height - side) {
                (true, _, true, _) => [220, 20, 20],
                (_, true, true, _) => [20, 200, 20],
                (_, true, _, true) => [20, 20, 220],
                (true, _, _, true) => [220, 220, 20],
                _ => {
                    let shade = |at: usize, of: usize| u8::try_from(60 + at * 120 / of).unwrap();
                    [shade(x, width), shade(y, height), 128]
                }
            }
        })
    }

    /// Smooth waves of colour, without edges.
    pub fn waves(width: usize, height: usize) -> Self {
        let wave = |at: usize, period: f64| {
            let at = f64::from(u32::try_from(at).expect("a small picture"));
            (at * std::f64::consts::TAU / period).sin()
        };
        let shade = |value: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 28 and 228"
            )]
            let level = value.mul_add(50.0, 128.0).round() as u8;
            level
        };
        Self::new(width, height, |x, y| {
            let (a, b, c) = (wave(x, 90.0), wave(y, 70.0), wave(x + y, 110.0));
            [shade(a + b), shade(b + c), shade(a - c)]
        })
    }

    /// Fine, deterministic grain that does not compress well.
    pub fn grain(width: usize, height: usize) -> Self {
        Self::new(width, height, |x, y| {
            let mut state = u32::try_from(y * width + x).expect("a small picture") ^ 0x9E37_79B9;
            [(); 3].map(|()| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state.to_le_bytes()[1]
            })
        })
    }

    /// A picture of a single colour.
    pub fn flat(width: usize, height: usize, colour: [u8; 3]) -> Self {
        Self::new(width, height, |_, _| colour)
    }

    /// A baseline JPEG of quality 95 without chroma subsampling.
    pub fn jpeg(&self) -> Vec<u8> {
        self.jpeg_with(Subsamp::None, 95)
    }

    pub fn jpeg_with(&self, subsampling: Subsamp, quality: i32) -> Vec<u8> {
        let mut compressor = Compressor::new().unwrap();
        compressor.set_quality(quality).unwrap();
        compressor.set_subsamp(subsampling).unwrap();
        let (width, height) = (self.width, self.height);
        let pixels = self.pixels.as_slice();
        let image = Image { pixels, width, pitch: width * 3, height, format: PixelFormat::RGB };
        compressor.compress_to_vec(image).unwrap()
    }

    /// Decodes a JPEG in full.
    pub fn decode(jpeg: &[u8]) -> Self {
        let image = turbojpeg::decompress(jpeg, PixelFormat::RGB).expect("a JPEG");
        assert_eq!(image.pitch, image.width * 3);
        Self { width: image.width, height: image.height, pixels: image.pixels }
    }

    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let start = (y * self.width + x) * 3;
        self.pixels[start..start + 3].try_into().unwrap()
    }

    pub fn crop(&self, x: usize, y: usize, width: usize, height: usize) -> Self {
        Self::new(width, height, |column, row| self.at(x + column, y + row))
    }

    /// Peak signal-to-noise ratio against another picture of the same size, dB.
    pub fn psnr(&self, other: &Self) -> f64 {
        assert_eq!(self.size(), other.size());
        let pairs = self.pixels.iter().zip(&other.pixels);
        let squares: f64 = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
        let mean = squares / self.pixels.len() as f64;
        if mean == 0.0 { f64::INFINITY } else { 10.0 * (255.0 * 255.0 / mean).log10() }
    }

    /// Mean absolute difference from another picture of the same size, levels.
    pub fn distance(&self, other: &Self) -> f64 {
        assert_eq!(self.size(), other.size());
        let pairs = self.pixels.iter().zip(&other.pixels);
        let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        u32::try_from(sum).map(f64::from).expect("small")
            / f64::from(u32::try_from(self.pixels.len()).expect("small"))
    }

    /// The picture reduced by an integer factor, averaging its pixels.
    pub fn reduced(&self, by: usize) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mean of bytes"
        )]
        let pixel = |x: usize, y: usize| {
            self.mean(x * by, y * by, by, by).map(|level| level.round() as u8)
        };
        Self::new(self.width / by, self.height / by, pixel)
    }

    /// Mean of each channel over a region.
    pub fn mean(&self, x: usize, y: usize, width: usize, height: usize) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for row in y..y + height {
            for column in x..x + width {
                for (sum, value) in sums.iter_mut().zip(self.at(column, row)) {
                    *sum += f64::from(value);
                }
            }
        }
        sums.map(|sum| sum / (width * height) as f64)
    }
}

/// The JPEG with an EXIF block that contains only an orientation.
pub fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut tiff = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    tiff.extend_from_slice(&[orientation, 0, 0, 0, 0, 0, 0]);
    with_segment(jpeg, 0xE1, &tiff)
}

/// The JPEG with a segment inserted after SOI.
pub fn with_segment(jpeg: &[u8], marker: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xFF, marker], &length, payload, &jpeg[2..]].concat()
}

/// The JPEG with a colour profile of less than 64 kB.
pub fn with_profile(jpeg: &[u8], profile: &[u8]) -> Vec<u8> {
    with_segment(jpeg, 0xE2, &[b"ICC_PROFILE\0\x01\x01", profile].concat())
}

/// A grey profile with gamma 1.8, ICC version 2.
pub fn grey_profile() -> Vec<u8> {
    let white = [0xF6D6_u32, 0x1_0000, 0xD32D].map(u32::to_be_bytes).concat();
    let mut name = b"desc\0\0\0\0\0\0\0\x05Grey\0".to_vec();
    name.resize(12 + 5 + 78, 0);
    name.resize(name.len().next_multiple_of(4), 0);
    let tags: [(&[u8; 4], Vec<u8>); 4] = [
        (b"desc", name),
        (b"cprt", b"text\0\0\0\0CC0\0".to_vec()),
        (b"wtpt", [b"XYZ \0\0\0\0".as_slice(), &white].concat()),
        (b"kTRC", b"curv\0\0\0\0\0\0\0\x01\x01\xCD\0\0".to_vec()),
    ];
    let mut table = 4_u32.to_be_bytes().to_vec();
    let mut data = Vec::new();
    for (tag, bytes) in tags {
        let numbers = [128 + 4 + 4 * 12 + data.len(), bytes.len()];
        table.extend_from_slice(tag);
        table.extend(
            numbers.map(|number| u32::try_from(number).expect("small").to_be_bytes()).concat(),
        );
        data.extend(bytes);
    }
    let length = u32::try_from(128 + table.len() + data.len()).expect("small");
    let mut profile = length.to_be_bytes().to_vec();
    profile.extend_from_slice(b"\0\0\0\0\x02\x40\0\0mntrGRAYXYZ ");
    profile.extend_from_slice(&[0x07, 0xE0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    profile.extend_from_slice(b"acsp");
    profile.resize(68, 0);
    profile.extend(white);
    profile.resize(128, 0);
    [profile, table, data].concat()
}
