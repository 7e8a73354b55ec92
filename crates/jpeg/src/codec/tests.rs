//! The results of the library for valid and invalid files.

use super::*;
use crate::samples::pictures;

/// A progressive file with the same coefficients.
pub(crate) fn as_progressive(jpeg: &[u8]) -> Vec<u8> {
    let mut transform = Transform::default();
    transform.progressive = true;
    Transformer::new().unwrap().transform_to_vec(&transform, jpeg).unwrap()
}

/// A file with the same coefficients and optimised Huffman tables.
pub(crate) fn as_optimised(jpeg: &[u8]) -> Vec<u8> {
    let mut transform = Transform::default();
    transform.optimize = true;
    Transformer::new().unwrap().transform_to_vec(&transform, jpeg).unwrap()
}

#[test]
fn headers_give_size_colour_space_and_sampling() {
    let size = Size { width: 37, height: 21 };
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 1);
        assert_eq!(read_header(&jpeg), Ok(PictureHeader { size, space, chroma }));
    }
}

#[test]
fn planes_are_encoded_as_they_were_decoded() {
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(Size { width: 37, height: 21 }, space, chroma, 2);
        let planes = decode_planes(&jpeg);
        if !matches!(space, ColourSpace::Grey | ColourSpace::YCbCr) {
            assert!(matches!(planes, Err(CodecError::Unsupported(_))));
            continue;
        }
        let planes = planes.unwrap().value;
        let again = decode_planes(&encode_planes(&planes, 100).unwrap()).unwrap().value;
        assert_eq!((again.size, again.chroma), (planes.size, planes.chroma));
        let layout = Planes::layout(planes.size, space, chroma)[0];
        let worst = (0..21 * layout.width)
            .filter(|at| at % layout.width < 37)
            .map(|at| planes.data[at].abs_diff(again.data[at]))
            .max();
        assert!(worst <= Some(3), "{space:?} {chroma:?}: {worst:?}");
    }
}

#[test]
fn a_truncated_scan_is_a_warning_and_always_the_same_picture() {
    let jpeg = pictures::jpeg(
        Size { width: 90, height: 70 },
        ColourSpace::YCbCr,
        ChromaSubsampling::Quarter,
        3,
    );
    let half = &jpeg[..jpeg.len() / 2];
    let first = decode(half, DecodeScale::FULL).unwrap();
    assert!(first.warning.is_some());
    assert_eq!(decode(half, DecodeScale::FULL), Ok(first));
}

#[test]
fn files_that_are_not_jpegs_are_corrupt() {
    for bytes in [&b""[..], b"\xFF\xD8", b"GIF89a", &[0xFF; 40]] {
        assert!(matches!(read_header(bytes), Err(CodecError::Corrupt(_))), "{bytes:?}");
        assert!(decode(bytes, DecodeScale::FULL).is_err());
    }
}

#[test]
fn scaled_decoding_gives_the_promised_size() {
    let size = Size { width: 37, height: 21 };
    let jpeg = pictures::jpeg(size, ColourSpace::YCbCr, ChromaSubsampling::Quarter, 4);
    for eighths in 1..=8 {
        let scale = DecodeScale::from_eighths(eighths);
        let pixels = decode(&jpeg, scale).unwrap().value;
        assert_eq!(pixels.size, scale.scaled_size(size));
    }
}

#[test]
fn too_many_scans_are_refused() {
    let jpeg = pictures::jpeg(
        Size { width: 16, height: 16 },
        ColourSpace::Grey,
        ChromaSubsampling::Full,
        5,
    );
    let progressive = as_progressive(&jpeg);
    let scan = progressive.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).unwrap();
    let end = progressive.len() - 2;
    let mut many = progressive[..end].to_vec();
    for _ in 0..200 {
        many.extend_from_slice(&progressive[scan..end]);
    }
    many.extend_from_slice(&[0xFF, 0xD9]);
    assert!(matches!(decode(&many, DecodeScale::FULL), Err(CodecError::Corrupt(_))));
}
