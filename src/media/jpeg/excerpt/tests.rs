//! Excerpts against the full decode.

use super::*;
use crate::media::jpeg::codec::tests::{as_optimised, as_progressive};
use crate::media::jpeg::codec::{Chroma, Pixels, Scale, Space, decode};
use crate::media::jpeg::test_pictures;
use proptest::prelude::*;

fn part(pixels: &Pixels, region: Rect) -> Vec<u8> {
    let index = |value: u32| usize::try_from(value).unwrap();
    let mut data = Vec::new();
    for y in region.y..region.y + region.height {
        let start = index(y * pixels.size.width + region.x) * pixels.channels;
        data.extend_from_slice(&pixels.data[start..][..index(region.width) * pixels.channels]);
    }
    data
}

fn check_same(jpeg: &[u8], region: Rect) {
    let full = decode(jpeg, Scale::FULL).unwrap().value;
    let excerpt = excerpt(jpeg, region).expect("an undamaged file has excerpts");
    let Excerpt { jpeg, shows } = excerpt;
    let decoded = decode(&jpeg, Scale::FULL).unwrap();
    assert_eq!(decoded.warning, None);
    assert_eq!(decoded.value.size, Size { width: shows.width, height: shows.height });
    let inner = Rect { x: region.x - shows.x, y: region.y - shows.y, ..region };
    assert!(part(&decoded.value, inner) == part(&full, region), "{region:?} differs");
}

/// A file with a restart marker behind every row of MCUs: the scans of strips, one below the other.
fn with_restarts(width: u32, strips: u32) -> Vec<u8> {
    let strip = |seed| {
        let size = Size { width, height: 16 };
        test_pictures::jpeg(size, Space::YCbCr, Chroma::Quarter, seed)
    };
    let first = strip(0);
    let scan = |jpeg: &[u8]| segments(jpeg).last().unwrap().end;
    let sos = first.windows(2).position(|pair| pair == [0xFF, SOS]).unwrap();
    let mut jpeg = first[..sos].to_vec();
    let sof = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    let height = u16::try_from(strips * 16).unwrap();
    jpeg[sof + 5..sof + 7].copy_from_slice(&height.to_be_bytes());
    push_segment(&mut jpeg, DRI, &u16::try_from(width.div_ceil(16)).unwrap().to_be_bytes());
    jpeg.extend_from_slice(&first[sos..first.len() - 2]);
    for row in 1..strips {
        let next = strip(row);
        let [restart, ..] = ((row - 1) % 8).to_le_bytes();
        jpeg.extend_from_slice(&[0xFF, 0xD0 + restart]);
        jpeg.extend_from_slice(&next[scan(&next)..next.len() - 2]);
    }
    jpeg.extend_from_slice(&[0xFF, EOI]);
    jpeg
}

#[test]
fn corners_and_the_whole_are_exact_in_every_kind_of_file() {
    let size = Size { width: 101, height: 83 };
    for (space, chroma) in test_pictures::KINDS {
        let jpeg = test_pictures::jpeg(size, space, chroma, 7);
        for jpeg in [as_optimised(&jpeg), as_progressive(&jpeg), jpeg] {
            for region in [
                Rect { x: 0, y: 0, width: 1, height: 1 },
                Rect { x: 100, y: 82, width: 1, height: 1 },
                Rect { x: 96, y: 0, width: 5, height: 83 },
                Rect { x: 47, y: 33, width: 18, height: 15 },
                Rect { x: 0, y: 0, width: 101, height: 83 },
            ] {
                check_same(&jpeg, region);
            }
        }
    }
}

#[test]
fn restarts_are_followed() {
    let jpeg = with_restarts(83, 11);
    for y in [0, 15, 16, 90, 159, 160] {
        check_same(&jpeg, Rect { x: 31, y, width: 33, height: 16 });
    }
}

#[test]
fn a_missing_restart_is_damage() {
    let mut jpeg = with_restarts(83, 4);
    let at = jpeg.windows(2).position(|pair| pair == [0xFF, 0xD1]).unwrap();
    jpeg[at + 1] = 0xD5;
    let region = Rect { x: 0, y: 50, width: 5, height: 5 };
    assert_eq!(baseline(&jpeg, region), Err(Unfit::Damaged));
    assert!(baseline(&jpeg, Rect { y: 0, ..region }).is_ok());
}

#[test]
fn an_excerpt_is_small() {
    let size = Size { width: 800, height: 600 };
    let jpeg = test_pictures::jpeg(size, Space::YCbCr, Chroma::Quarter, 1);
    let excerpt = excerpt(&jpeg, Rect { x: 400, y: 300, width: 16, height: 16 }).unwrap();
    assert_eq!(excerpt.shows, Rect { x: 384, y: 272, width: 48, height: 64 });
    assert!(excerpt.jpeg.len() < jpeg.len() / 20);
}

#[test]
fn regions_outside_have_no_excerpt() {
    let size = Size { width: 40, height: 30 };
    let jpeg = test_pictures::jpeg(size, Space::Grey, Chroma::Full, 1);
    for region in [
        Rect { x: 0, y: 0, width: 41, height: 1 },
        Rect { x: 0, y: 30, width: 1, height: 1 },
        Rect { x: u32::MAX, y: 0, width: 2, height: 1 },
        Rect { x: 5, y: 5, width: 0, height: 1 },
    ] {
        assert_eq!(excerpt(&jpeg, region), None);
    }
}

#[test]
fn a_scan_that_ends_early_is_damage() {
    let size = Size { width: 64, height: 64 };
    let jpeg = test_pictures::jpeg(size, Space::YCbCr, Chroma::Quarter, 9);
    let region = Rect { x: 40, y: 60, width: 4, height: 4 };
    for end in 0..jpeg.len() - 12 {
        assert!(baseline(&jpeg[..end], region).is_err(), "cut at {end} of {}", jpeg.len());
    }
}

#[test]
fn a_table_that_is_no_prefix_code_is_damage() {
    let mut counts = [0; 16];
    counts[0] = 3;
    assert!(matches!(Table::new(&counts, &[1, 2, 3]), Err(Unfit::Damaged)));
    counts[0] = 2;
    assert!(Table::new(&counts, &[1, 2]).is_ok());
    assert!(matches!(Table::new(&counts, &[1]), Err(Unfit::Damaged)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_region_is_exact(
        (width, height) in (1u32..120, 1u32..120),
        (x, y, w, h) in (0.0f64..1.0, 0.0f64..1.0, 0.0f64..1.0, 0.0f64..1.0),
        (kind, coding, seed) in (0usize..11, 0u8..3, 0u32..99),
    ) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let pick = |part: f64, edge: u32| ((part * f64::from(edge)) as u32).min(edge - 1);
        let (x, y) = (pick(x, width), pick(y, height));
        let region = Rect { x, y, width: 1 + pick(w, width - x), height: 1 + pick(h, height - y) };
        let (space, chroma) = test_pictures::KINDS[kind];
        let jpeg = test_pictures::jpeg(Size { width, height }, space, chroma, seed);
        let jpeg = match coding {
            0 => jpeg,
            1 => as_optimised(&jpeg),
            _ => as_progressive(&jpeg),
        };
        check_same(&jpeg, region);
    }

    #[test]
    fn damage_never_panics(
        at in proptest::collection::vec((0usize..6000, any::<u8>()), 1..6), kind in 0usize..11,
    ) {
        let (space, chroma) = test_pictures::KINDS[kind];
        let mut jpeg = test_pictures::jpeg(Size { width: 70, height: 50 }, space, chroma, 3);
        for (at, value) in at {
            let at = at % jpeg.len();
            jpeg[at] = value;
        }
        let region = Rect { x: 20, y: 30, width: 9, height: 9 };
        let first = excerpt(&jpeg, region);
        prop_assert_eq!(first, excerpt(&jpeg, region));
    }
}
