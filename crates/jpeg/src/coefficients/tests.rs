//! Coefficients compared with libjpeg-turbo's, and with those that were written.

use geometry::{Rect, Size};
use proptest::prelude::*;

use super::{CoefficientError, CoefficientGrid, CoefficientLimits, Coefficients};
use crate::codec::tests::{as_optimised, as_progressive};
use crate::codec::{DecodeScale, Pixels, Planes, decode, decode_planes, to_baseline};
use crate::dct::Dct;
use crate::encoder::EncodeEffort;
use crate::encoder::file;
use crate::header::HeaderLimits;
use crate::samples::LIMITS;
use crate::samples::pictures::{self, KINDS};

/// A picture of 26x17 pixels with 4:2:2 sampling in hexadecimal digits, written by `cjpeg -restart 3B -scans`. Its 13
/// scans hold several bands and bits in an order that no encoder has by default, with a restart marker after every three
/// blocks.
const REFINED_WITH_RESTARTS: &str = "\
    ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f1320151312\
    1213271c1e17202e2931302e292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a5152\
    4fffdb0043010e0e0e131113261515264f352d354f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f\
    4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc20011080011001a030121000211010311\
    01ffc400160001010100000000000000000000000000040302ffdd00040003ffda00080101000000021a6bff\
    d0ccd3ffd1c415ffd2d165ffc40017010003010000000000000000000000000003040501ffda000a02021003\
    100000003e442d557fffd042a9e5b4e7ffc4001810010101010100000000000000000000000100021110ffda\
    000801010001020300bfffd0e85fffd1d3dcdfffd26d79ffda0008010100000021dfffd0dfffd15fffd27fff\
    c4001b11000203000300000000000000000000000001020311122132ffda0008010301013f01b1908bc3393e\
    8fffd08b4914fa19ffc40017100003010000000000000000000000000000011011ffda0008010100033f0298\
    8fffd0988fffd1bfffd2bfffc40017100100030000000000000000000000000010000111ffda000801010001\
    02322b7fffd01d4fffd143ffd26fffc4001f1100010401050100000000000000000000000102030412112122\
    313241ffda00080102010114008170d55db161729154b3235d1f13ffd0481eff0083fc95fa3fffc4001a1000\
    02030101000000000000000000000000011011513171ffda0008010100013f2127e0d07fffd0a8fc287fffd1\
    5db3dc3fffd21dc7ffda0008010100000010bfffd07fffd17fffd25fffc40018110101010101000000000000\
    00000000000100311121ffda0008010301013f1004d8de087ca7ffd01036d6afffc400141101000000000000\
    00000000000000000010ffda0008010201153f007fffd07fffc4001b10010002030101000000000000000000\
    000100112131914171ffda0008010100013f102c6a5a1b721016aa7fffd06e727662c510b484ffd1c2188b63\
    c4ffd2d19b3ec76cffd9";

fn refined_with_restarts() -> Vec<u8> {
    let digits = REFINED_WITH_RESTARTS.as_bytes().as_chunks::<2>().0;
    let texts = digits.iter().map(|pair| str::from_utf8(pair).unwrap());
    texts.map(|text| u8::from_str_radix(text, 16).unwrap()).collect()
}

const EFFORTS: [EncodeEffort; 2] = [EncodeEffort::Fast, EncodeEffort::Small];

fn limits() -> CoefficientLimits<'static> {
    CoefficientLimits { header: LIMITS, pixels_max: 1 << 20, should_continue: &|| true }
}

fn read(jpeg: &[u8]) -> Result<Coefficients, CoefficientError> {
    Coefficients::read(jpeg, &limits())
}

/// Decodes a file of which the decoder must not complain.
fn pixels(jpeg: &[u8]) -> Pixels {
    let decoded = decode(jpeg, DecodeScale::FULL).unwrap();
    assert_eq!(decoded.warning, None);
    decoded.value
}

/// The same coefficients are read from each coding of a file, and files that are written with them look the same.
fn check_codings(jpeg: &[u8]) {
    let coefficients = read(jpeg).unwrap();
    for other in [as_progressive(jpeg), as_optimised(jpeg), to_baseline(jpeg).unwrap()] {
        assert_eq!(read(&other).unwrap().grids, coefficients.grids);
    }
    for effort in EFFORTS {
        let written = coefficients.write(effort);
        assert_eq!(pixels(&written), pixels(jpeg));
        assert_eq!(read(&written).unwrap(), coefficients);
    }
}

#[test]
fn every_coding_of_a_picture_has_the_same_coefficients() {
    for (space, chroma) in KINDS {
        for size in [Size::new(1, 1), Size::new(17, 8), Size::new(90, 61)] {
            check_codings(&pictures::jpeg(size, space, chroma, 3));
        }
    }
}

#[test]
fn refined_scans_with_restarts_are_read() {
    check_codings(&refined_with_restarts());
}

#[test]
fn a_scan_for_each_component_is_read() {
    let whole = pictures::jpeg(Size::new(40, 30), KINDS[3].0, KINDS[3].1, 1);
    let coefficients = read(&whole).unwrap();
    let mut jpeg = file::write(
        coefficients.size,
        &coefficients.colour,
        &coefficients.grids,
        EncodeEffort::Fast,
    );
    let first_table = jpeg.windows(2).position(|marker| marker == [0xFF, 0xC4]).unwrap();
    jpeg.truncate(first_table);
    for grid in &coefficients.grids {
        let one =
            file::write(coefficients.size, &[], std::slice::from_ref(grid), EncodeEffort::Fast);
        let start = one.windows(2).position(|marker| marker == [0xFF, 0xC4]).unwrap();
        jpeg.extend_from_slice(&one[start..one.len() - 2]);
    }
    jpeg.extend([0xFF, 0xD9]);
    assert_eq!(read(&jpeg).unwrap(), coefficients);
    assert_eq!(pixels(&jpeg), pixels(&whole));
}

#[test]
fn err_files_beyond_the_limits() {
    let jpeg = as_progressive(&pictures::jpeg(Size::new(64, 32), KINDS[3].0, KINDS[3].1, 1));
    let check = |changed: CoefficientLimits<'_>, expected: &str| {
        let error = Coefficients::read(&jpeg, &changed).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        CoefficientLimits { pixels_max: 2047, ..limits() },
        "64x32 image, more than 2047 pixels",
    );
    let header = HeaderLimits { scans_max: 2, ..LIMITS };
    check(CoefficientLimits { header, ..limits() }, "the file has more than 2 scans");
    check(CoefficientLimits { should_continue: &|| false, ..limits() }, "the work was stopped");
}

#[test]
fn err_scans_that_are_missing_repeated_or_out_of_order() {
    let jpeg = as_progressive(&pictures::jpeg(Size::new(64, 32), KINDS[3].0, KINDS[3].1, 1));
    // Each part begins with the tables of its scan.
    let mut starts: Vec<usize> =
        (0..jpeg.len() - 1).filter(|&at| jpeg[at..at + 2] == [0xFF, 0xDA]).collect();
    starts.push(jpeg.len() - 2);
    let head = &jpeg[..starts[0]];
    let scans: Vec<&[u8]> = starts.windows(2).map(|pair| &jpeg[pair[0]..pair[1]]).collect();
    let tables: Vec<u8> = scans.concat();
    let check = |order: &[usize], expected: CoefficientError| {
        let scans: Vec<u8> = order.iter().flat_map(|&at| scans[at].to_vec()).collect();
        // The tables of a scan follow the data of the scan before it; only the errors before them matter here.
        let file = [head, &scans, &[0xFF, 0xD9]].concat();
        assert_eq!(read(&file), Err(expected), "{order:?}");
    };
    assert!(!tables.is_empty());
    let all: Vec<usize> = (0..scans.len()).collect();
    check(&all[..all.len() - 1], CoefficientError::Incomplete);
    check(&[0, 0], CoefficientError::Script { scan: 1 });
    check(&[1, 0], CoefficientError::Script { scan: 0 });
}

#[test]
fn err_truncated_data() {
    let jpeg = pictures::jpeg(Size::new(64, 32), KINDS[3].0, KINDS[3].1, 1);
    for file in [jpeg.clone(), as_progressive(&jpeg)] {
        let cut = [&file[..file.len() - 20], &[0xFF, 0xD9]].concat();
        let error = read(&cut).unwrap_err();
        assert!(matches!(error, CoefficientError::Damaged { .. }), "{error}");
    }
}

#[test]
fn err_processes_without_huffman_codes() {
    let jpeg =
        crate::samples::join(&[&crate::samples::frame(0xC9, &[1]), &crate::samples::scan(&[1])]);
    assert_eq!(read(&jpeg), Err(CoefficientError::Process));
}

/// The samples of libjpeg-turbo, and for each row of MCUs the samples that a paint function got.
#[test]
fn repainting_gets_the_samples_of_a_decoder() {
    let size = Size::new(61, 45);
    for (space, chroma) in KINDS.iter().take(7) {
        let jpeg = as_progressive(&pictures::jpeg(size, *space, *chroma, 5));
        let Planes { data, .. } = decode_planes(&jpeg).unwrap().value;
        let layout = Planes::layout(size, *space, *chroma);
        let mut coefficients = read(&jpeg).unwrap();
        let whole = Rect::new(0, 0, size);
        let mut paint = |samples: &mut crate::scan::region::RegionSamples| {
            for (grid, plane) in samples.grids.iter().zip(&layout) {
                let rows = grid.data.chunks_exact(grid.stride).take(grid.size.height as usize);
                for (y, row) in (grid.origin.1 as usize..).zip(rows) {
                    let expected = &data[plane.start + y * plane.width..];
                    let width = grid.size.width as usize;
                    assert_eq!(row[..width], expected[..width], "{chroma:?} row {y}");
                }
            }
        };
        coefficients.repaint(whole, Dct::detect(), &limits(), &mut paint).unwrap();
        assert_eq!(coefficients, read(&jpeg).unwrap(), "unchanged samples keep their blocks");
    }
}

#[test]
fn repainting_changes_only_blocks_whose_samples_change() {
    let size = Size::new(100, 70);
    for (space, chroma) in KINDS.iter().take(7) {
        let jpeg = as_progressive(&pictures::jpeg(size, *space, *chroma, 5));
        let before = read(&jpeg).unwrap();
        let mut after = before.clone();
        // One luma sample in the block in column 5 and row 3.
        let rect = Rect::new(41, 26, Size::new(1, 1));
        after
            .repaint(rect, Dct::detect(), &limits(), &mut |samples| {
                let grid = &mut samples.grids[0];
                let at = (26 - grid.origin.1 as usize) * grid.stride + 41 - grid.origin.0 as usize;
                grid.data[at] ^= 0x80;
            })
            .unwrap();
        let changed: Vec<(usize, usize)> = before
            .grids
            .iter()
            .zip(&after.grids)
            .enumerate()
            .flat_map(|(number, (before, after))| {
                let blocks = before.blocks.iter().zip(&after.blocks).enumerate();
                blocks
                    .filter(|(_, (a, b))| a != b)
                    .map(move |(at, _)| (number, at))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(changed, [(0, 3 * before.grids[0].cols + 5)], "{chroma:?}");
        assert_eq!(read(&after.write(EncodeEffort::Fast)).unwrap(), after);
    }
}

#[test]
fn err_rectangles_outside_the_picture() {
    let jpeg = pictures::jpeg(Size::new(16, 16), KINDS[0].0, KINDS[0].1, 5);
    let mut coefficients = read(&jpeg).unwrap();
    for rect in [Rect::new(10, 0, Size::new(7, 1)), Rect::new(0, 0, Size::new(0, 1))] {
        let changed = coefficients.repaint(rect, Dct::detect(), &limits(), &mut |_| ());
        assert_eq!(changed, Err(CoefficientError::Outside));
    }
}

/// Grids with any coefficients, mostly small ones.
fn any_grids() -> impl Strategy<Value = (Size, Vec<CoefficientGrid>)> {
    let coefficient = prop_oneof![20 => Just(0i16), 4 => -1..=1i16, 1 => -1023..=1023i16];
    let samplings = prop_oneof![
        Just(vec![(1, 1)]),
        Just(vec![(2, 2)]),
        Just(vec![(2, 2), (1, 1), (1, 1)]),
        Just(vec![(1, 2), (1, 1), (1, 2)]),
        Just(vec![(1, 1), (2, 1)]),
        Just(vec![(3, 1), (2, 1), (1, 1), (1, 2)]),
    ];
    (1..70u32, 1..50u32, samplings, prop::collection::vec(coefficient, 1..4000), 1..300u16)
        .prop_map(|(width, height, samplings, values, step)| {
            let size = Size::new(width, height);
            (size, grids_of(size, &samplings, &values, step))
        })
}

fn grids_of(
    size: Size,
    samplings: &[(u8, u8)],
    values: &[i16],
    step: u16,
) -> Vec<CoefficientGrid> {
    let across_max = u32::from(samplings.iter().map(|factors| factors.0).max().unwrap());
    let down_max = u32::from(samplings.iter().map(|factors| factors.1).max().unwrap());
    let mut values = values.iter().cycle();
    let mut grids = Vec::new();
    for (id, &(across, down)) in (7..).zip(samplings) {
        let cols = (size.width * u32::from(across)).div_ceil(across_max).div_ceil(8) as usize;
        let rows = (size.height * u32::from(down)).div_ceil(down_max).div_ceil(8) as usize;
        let block = |_| std::array::from_fn(|_| *values.next().unwrap());
        let mut grid = CoefficientGrid {
            id,
            across,
            down,
            quant_number: 0,
            quant: [step; 64],
            cols,
            rows,
            blocks: (0..cols * rows).map(block).collect(),
            masks: Vec::new(),
        };
        grid.update_masks();
        grids.push(grid);
    }
    grids
}

proptest! {
    #[test]
    fn coefficients_are_read_as_they_were_written((size, grids) in any_grids()) {
        for effort in EFFORTS {
            let written = file::write(size, &[], &grids, effort);
            let found = read(&written).unwrap();
            prop_assert_eq!(found.size(), size);
            prop_assert_eq!(&found.grids, &grids);
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        kind in 0..KINDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_refined in any::<bool>(),
    ) {
        let (space, chroma) = KINDS[kind];
        let mut jpeg = if is_refined {
            refined_with_restarts()
        } else {
            as_progressive(&pictures::jpeg(Size::new(40, 24), space, chroma, 9))
        };
        for (at, value) in changes {
            let at = at.index(jpeg.len());
            jpeg[at] = value;
        }
        // What is read can be written, and is then read as it is.
        if let Ok(found) = read(&jpeg) {
            for effort in EFFORTS {
                prop_assert_eq!(&read(&found.write(effort)).unwrap().grids, &found.grids);
            }
        }
    }
}
