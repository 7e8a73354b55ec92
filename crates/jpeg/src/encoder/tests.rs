//! What a decoder sees of the encoder's files: libjpeg-turbo decodes them in all of these tests.

use geometry::Size;
use proptest::prelude::*;

use crate::codec::{self, ChromaSubsampling, CodecError, ColourSpace, DecodeScale, Pixels};
use crate::encoder::{EncodeEffort, EncodeOptions, encode, encode_planes};
use crate::frame::CodingProcess;
use crate::header::JpegHeader;
use crate::samples::{LIMITS, pictures};

const SAMPLINGS: [ChromaSubsampling; 2] = [ChromaSubsampling::Full, ChromaSubsampling::Quarter];

fn encoded(pixels: &Pixels, quality: u8, sampling: ChromaSubsampling) -> Vec<u8> {
    encode(pixels, &EncodeOptions { quality, sampling, effort: EncodeEffort::Small }).unwrap()
}

#[test]
fn a_fast_file_is_baseline_and_looks_almost_like_a_small_one() {
    let pixels = pictures::pixels(Size { width: 501, height: 333 }, 3, 7);
    for sampling in SAMPLINGS {
        let options = EncodeOptions { quality: 80, sampling, effort: EncodeEffort::Fast };
        let fast = encode(&pixels, &options).unwrap();
        let header = JpegHeader::parse(&fast, &LIMITS).unwrap();
        assert_eq!(header.process, CodingProcess::Baseline);
        let small = encoded(&pixels, 80, sampling);
        let [fast_psnr, small_psnr] = [&fast, &small].map(|file| psnr(&pixels, &decoded(file)));
        assert!(fast_psnr > small_psnr - 1.0, "{fast_psnr} dB, not {small_psnr}");
        assert!(fast.len() * 10 < small.len() * 12, "{} bytes, not {}", fast.len(), small.len());
    }
}

#[test]
fn planes_are_encoded_as_they_are() {
    for (width, height) in [(64, 48), (65, 47), (1, 1), (17, 2)] {
        let size = Size { width, height };
        for (space, sampling) in [
            (ColourSpace::YCbCr, ChromaSubsampling::Full),
            (ColourSpace::YCbCr, ChromaSubsampling::Quarter),
            (ColourSpace::Grey, ChromaSubsampling::Full),
        ] {
            let original = pictures::jpeg(size, space, sampling, 5);
            let planes = codec::decode_planes(&original).unwrap().value;
            let options = EncodeOptions { quality: 100, sampling, effort: EncodeEffort::Fast };
            let found = decoded(&encode_planes(&planes, &options).unwrap());
            let close = psnr(&found, &decoded(&original));
            assert!(close > 45.0, "{size} {space:?} {sampling:?}: {close:.1} dB");
        }
    }
}

#[test]
fn err_planes_of_other_samplings_are_refused() {
    let size = Size { width: 32, height: 32 };
    let original = pictures::jpeg(size, ColourSpace::YCbCr, ChromaSubsampling::Half, 5);
    let planes = codec::decode_planes(&original).unwrap().value;
    let sampling = ChromaSubsampling::Full;
    let options = EncodeOptions { quality: 80, sampling, effort: EncodeEffort::Fast };
    assert!(matches!(encode_planes(&planes, &options), Err(CodecError::Unsupported(_))));
}

/// Decodes a file of which the decoder must not complain.
fn decoded(jpeg: &[u8]) -> Pixels {
    let decoded = codec::decode(jpeg, DecodeScale::FULL).unwrap();
    assert_eq!(decoded.warning, None);
    decoded.value
}

/// Returns the peak signal-to-noise ratio in decibels.
fn psnr(a: &Pixels, b: &Pixels) -> f64 {
    assert_eq!((a.size, a.channels), (b.size, b.channels));
    let squares = a.data.iter().zip(&b.data).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2));
    let count = u32::try_from(a.data.len()).unwrap();
    10.0 * (65025.0 / (squares.sum::<f64>() / f64::from(count)).max(1e-3)).log10()
}

/// A smooth picture with an edge, whose chroma has no detail.
fn smooth(size: Size, channels: usize) -> Pixels {
    let mut data = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            let edge = if x * 2 > size.width + y { 60 } else { 0 };
            let value = 40 + (x + 2 * y) % 320 / 4 + edge;
            for channel in 0..u32::try_from(channels).unwrap() {
                data.push(u8::try_from(value + 20 * channel).unwrap());
            }
        }
    }
    Pixels { size, channels, data }
}

fn filled(size: Size, colour: &[u8]) -> Pixels {
    let count = usize::try_from(size.pixels()).unwrap();
    Pixels { size, channels: colour.len(), data: colour.repeat(count) }
}

/// The bands and bits of each scan: component, first and last coefficient, high and low bit.
fn scans(jpeg: &[u8]) -> Vec<(Vec<u8>, [u8; 4])> {
    let mut scans = Vec::new();
    for at in 0..jpeg.len() - 1 {
        if jpeg[at..at + 2] == [0xFF, 0xDA] {
            let count = usize::from(jpeg[at + 4]);
            let components = (0..count).map(|index| jpeg[at + 5 + 2 * index]).collect();
            let rest = &jpeg[at + 5 + 2 * count..];
            scans.push((components, [rest[0], rest[1], rest[2] >> 4, rest[2] & 15]));
        }
    }
    scans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_picture_is_decoded_without_warning(
        width in 1u32..200,
        height in 1u32..200,
        grey: bool,
        sampling in prop::sample::select(&SAMPLINGS[..]),
        quality in 1u8..=100,
        seed: u32,
    ) {
        let size = Size { width, height };
        let noisy = pictures::pixels(size, if grey { 1 } else { 3 }, seed % 200);
        let jpeg = encoded(&noisy, quality, sampling);
        let header = codec::read_header(&jpeg).unwrap();
        let space = if grey { ColourSpace::Grey } else { ColourSpace::YCbCr };
        let chroma = if grey { ChromaSubsampling::Full } else { sampling };
        prop_assert_eq!((header.size, header.space), (size, space));
        // The library cannot tell samplings apart where a picture is one MCU.
        prop_assert!(header.chroma == chroma);
        decoded(&jpeg);

        let smooth = smooth(size, if grey { 1 } else { 3 });
        let floor = 12.0 + f64::from(quality) / 5.0;
        let found = psnr(&smooth, &decoded(&encoded(&smooth, quality, sampling)));
        prop_assert!(found > floor, "{found:.1} dB at quality {quality}");
    }

    #[test]
    fn random_samples_are_decoded_without_warning(
        width in 1u32..40,
        height in 1u32..40,
        quality in 1u8..=100,
        sampling in prop::sample::select(&SAMPLINGS[..]),
        data in prop::collection::vec(prop::sample::select(vec![0u8, 1, 127, 128, 254, 255]), 4800),
    ) {
        let count = usize::try_from(width * height * 3).unwrap();
        let size = Size { width, height };
        let pixels = Pixels { size, channels: 3, data: data[..count].to_vec() };
        prop_assert_eq!(decoded(&encoded(&pixels, quality, sampling)).size, size);
    }
}

#[test]
fn quality_100_without_subsampling_is_almost_lossless() {
    let pixels = pictures::pixels(Size::new(97, 61), 3, 3);
    let jpeg = encoded(&pixels, 100, ChromaSubsampling::Full);
    let found = psnr(&pixels, &decoded(&jpeg));
    assert!(found > 48.0, "{found:.1} dB");
}

#[test]
fn a_higher_quality_is_larger_and_nearer_to_the_picture() {
    let photograph = pictures::photograph(Size::new(320, 240), ChromaSubsampling::Full);
    let pixels = decoded(&photograph);
    for sampling in SAMPLINGS {
        let results: Vec<(usize, f64)> = (1..=100)
            .step_by(9)
            .map(|quality| encoded(&pixels, quality, sampling))
            .map(|jpeg| (jpeg.len(), psnr(&pixels, &decoded(&jpeg))))
            .collect();
        for pair in results.windows(2) {
            assert!(pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1, "{results:?}");
        }
    }
}

#[test]
fn the_same_pixels_give_the_same_bytes() {
    let pixels = pictures::pixels(Size::new(150, 90), 3, 7);
    let first = encoded(&pixels, 85, ChromaSubsampling::Quarter);
    let other_thread = std::thread::scope(|scope| {
        let thread = scope.spawn(|| encoded(&pixels, 85, ChromaSubsampling::Quarter));
        thread.join().unwrap()
    });
    assert_eq!(first, other_thread);
}

#[test]
fn the_file_is_smaller_than_the_librarys_at_the_same_error() {
    let pixels = decoded(&pictures::photograph(Size::new(640, 480), ChromaSubsampling::Full));
    let ours = encoded(&pixels, 85, ChromaSubsampling::Quarter);
    let ours_psnr = psnr(&pixels, &decoded(&ours));
    let theirs = (1..=100)
        .map(|quality| {
            let (space, chroma) = (ColourSpace::YCbCr, ChromaSubsampling::Quarter);
            let options = codec::EncodeOptions { quality, space, chroma };
            codec::encode(&pixels, options).unwrap()
        })
        .find(|jpeg| psnr(&pixels, &decoded(jpeg)) >= ours_psnr)
        .unwrap();
    assert!(ours.len() * 10 < theirs.len() * 9, "{} and {} bytes", ours.len(), theirs.len());
}

#[test]
fn a_progressive_file_codes_every_bit_of_every_coefficient_once() {
    let pixels = decoded(&pictures::photograph(Size::new(320, 240), ChromaSubsampling::Full));
    for sampling in SAMPLINGS {
        for quality in [30, 85, 98] {
            let jpeg = encoded(&pixels, quality, sampling);
            let header = JpegHeader::parse(&jpeg, &LIMITS).unwrap();
            assert_eq!(header.process, CodingProcess::Progressive);
            // The low bit that is still missing, by component and coefficient; 14 is "no bit yet".
            let mut missing = [[14u8; 64]; 3];
            for (components, [first, last, high, low]) in scans(&jpeg) {
                assert!(first == 0 && last == 0 || first > 0 && components.len() == 1);
                for component in components {
                    for at in first..=last {
                        let missing = &mut missing[usize::from(component) - 1][usize::from(at)];
                        let expected = if *missing == 14 { 0 } else { *missing };
                        assert_eq!(high, expected, "coefficient {at} of {component}");
                        *missing = low;
                    }
                }
            }
            assert_eq!(missing, [[0; 64]; 3], "quality {quality}, {sampling:?}");
        }
    }
}

#[test]
fn flat_pictures_keep_their_colour() {
    let colours: [&[u8]; 6] = [&[0], &[255], &[137], &[255, 0, 0], &[0, 0, 255], &[12, 200, 90]];
    for size in [Size::new(1, 1), Size::new(8, 8), Size::new(17, 33)] {
        for colour in colours {
            let pixels = filled(size, colour);
            let decoded = decoded(&encoded(&pixels, 85, ChromaSubsampling::Quarter));
            let worst = decoded.data.iter().zip(&pixels.data).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(worst <= Some(4), "{colour:?} at {size}: {worst:?}");
        }
    }
}

#[test]
fn tiny_pictures_are_baseline() {
    let jpeg = encoded(&filled(Size::new(1, 1), &[9, 90, 200]), 85, ChromaSubsampling::Quarter);
    assert!(jpeg.windows(2).any(|marker| marker == [0xFF, 0xC0]));
    assert!(jpeg.len() < 300, "{} bytes", jpeg.len());
}

#[test]
fn grey_pictures_have_one_component() {
    let pixels = smooth(Size::new(50, 40), 1);
    let jpeg = encoded(&pixels, 80, ChromaSubsampling::Quarter);
    let header = codec::read_header(&jpeg).unwrap();
    assert_eq!((header.space, header.chroma), (ColourSpace::Grey, ChromaSubsampling::Full));
    assert!(psnr(&pixels, &decoded(&jpeg)) > 35.0);
}

#[test]
fn err_pixels_of_another_shape() {
    let options = EncodeOptions {
        quality: 80,
        sampling: ChromaSubsampling::Full,
        effort: EncodeEffort::Small,
    };
    let check = |width, height, channels, samples| {
        let pixels = Pixels { size: Size::new(width, height), channels, data: vec![0; samples] };
        let error = encode(&pixels, &options).unwrap_err();
        assert!(matches!(error, CodecError::Encode(_)), "{error}");
    };
    check(0, 10, 3, 0);
    check(65_536, 1, 1, 65_536);
    check(2, 2, 3, 11);
    check(2, 2, 4, 16);
    check(2, 2, 0, 0);
}

#[test]
fn err_other_samplings() {
    let pixels = filled(Size::new(4, 4), &[1, 2, 3]);
    for sampling in [ChromaSubsampling::Half, ChromaSubsampling::Other] {
        let error =
            encode(&pixels, &EncodeOptions { quality: 80, sampling, effort: EncodeEffort::Fast });
        assert!(matches!(error, Err(CodecError::Unsupported(_))), "{error:?}");
    }
}
