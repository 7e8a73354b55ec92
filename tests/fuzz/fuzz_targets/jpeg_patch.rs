//! Paints in arbitrary files.
//!
//! The result is an undamaged file. Blocks outside the rectangle keep their coefficients; those that it touches have
//! the transform of the painted samples, unless the tables of the file have no code for it.

#![no_main]

use jpeg::codec::DecodeScale;
use jpeg::dct::{Dct, Divisors};
use jpeg::rewrite::rewrite_with_tables;
use jpeg::scan::ScanError;
use jpeg::scan::patch::{PatchedScan, byte_range, patch};
use jpeg::scan::region::{RegionSamples, SampleGrid};
use jpeg_cases::plain::{Codes, Part, Plain, natural_order};
use jpeg_cases::{Case, Opened, at, pixels};
use libfuzzer_sys::fuzz_target;
use model::Rect;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::read(data) else { return };
    let Some(opened) = Opened::new(case.jpeg.clone()) else { return };
    let opened = opened.finer(&case);
    let Opened { scan, index, .. } = &opened;
    let rect = case.rect(scan.size);
    let bytes = opened.only([byte_range(scan, index, rect).expect("inside")]);
    let mut painted = Vec::new();
    let mut paint = |samples: &mut RegionSamples| {
        paint(samples, &case);
        painted.extend(samples.grids.iter().cloned());
    };
    let found = patch(scan, index, &bytes, rect, Dct::detect(), &mut paint);
    let mut paint = |samples: &mut RegionSamples| self::paint(samples, &case);
    assert_eq!(found, patch(scan, index, &bytes, rect, Dct::scalar(), &mut paint));
    let patched = match found {
        Ok(patched) => patched,
        Err(error) => {
            return assert!(matches!(error, ScanError::Range | ScanError::Tables), "{error}");
        }
    };
    let file = Opened::new(assemble(&opened, &patched)).expect("a patched file is taken again");
    let (before, after) = (opened.plain(), file.plain());
    check_blocks(&before, &after, (&opened, rect), &painted);
    pixels(&file.repair(), DecodeScale::FULL, before.extra);
});

/// Changes all samples: those outside the rectangle must not matter.
fn paint(samples: &mut RegionSamples, case: &Case) {
    let [seed, step, value, ..] = case.spare;
    let mut state = u32::from(seed) | 1;
    for grid in &mut samples.grids {
        for sample in &mut grid.data {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [noise, ..] = state.to_be_bytes();
            *sample = match case.options >> 1 & 7 {
                0 => value,
                1 => *sample / 3,
                2 => noise,
                3 => {
                    if noise & 1 == 0 {
                        0
                    } else {
                        255
                    }
                }
                4 => sample.wrapping_add(step),
                5 => {
                    if noise < step {
                        value
                    } else {
                        *sample
                    }
                }
                6 => 255 - *sample,
                _ => *sample,
            };
        }
    }
}

/// The file with the patched scan and new Huffman tables.
fn assemble(opened: &Opened, patched: &PatchedScan) -> Vec<u8> {
    let Opened { jpeg, header, scan, .. } = opened;
    let (mut file, scans) = rewrite_with_tables(jpeg, header, &[], None, &patched.tables);
    file.extend_from_slice(&jpeg[scans.start..at(scan.start)]);
    file.extend_from_slice(&jpeg[at(patched.prefix.start)..at(patched.prefix.end)]);
    file.extend_from_slice(&patched.middle);
    file.extend_from_slice(&jpeg[at(patched.suffix)..scans.end]);
    file
}

fn check_blocks(before: &Plain, after: &Plain, at: (&Opened, Rect), painted: &[SampleGrid]) {
    let (opened, rect) = at;
    let scan = &opened.scan;
    let complete = before.tables[1].iter().flatten().all(is_complete);
    let order = natural_order();
    for (number, (before, after)) in before.parts.iter().zip(&after.parts).enumerate() {
        assert_eq!((before.quant, before.columns), (after.quant, after.columns));
        let part = &scan.components[number];
        let divisors = Divisors::new(&before.quant);
        for (place, (old, new)) in before.blocks.iter().zip(&after.blocks).enumerate() {
            let first = |at: usize| u32::try_from(at * 8).expect("32 bits");
            let (x, y) = (first(place % before.columns), first(place / before.columns));
            let meets = |at: u32, cell: u32, start: u32, length: u32| {
                at * cell < start + length && (at + 8) * cell > start
            };
            let is_touched = meets(x, part.cell.0, rect.x, rect.width)
                && meets(y, part.cell.1, rect.y, rect.height);
            if !is_touched {
                assert!(old == new, "block {x},{y} of {number} changed, {rect:?}");
            } else if complete {
                let grids = painted.iter().skip(number).step_by(scan.components.len());
                let wanted = block_of(grids, (x, y), &divisors);
                for place in &order {
                    let clamped = if *place == 0 { 2047 } else { 1023 };
                    let wanted = i32::from(wanted[*place]).clamp(-clamped, clamped);
                    assert_eq!(new[*place], wanted, "block {x},{y} of {number}");
                }
            }
        }
        check_shape(before, after);
    }
}

fn check_shape(before: &Part, after: &Part) {
    assert_eq!((before.across, before.down), (after.across, after.down));
    assert_eq!(before.blocks.len(), after.blocks.len());
}

/// The coefficients of the painted block at (`x`, `y`).
fn block_of<'a>(
    grids: impl Iterator<Item = &'a SampleGrid>,
    (x, y): (u32, u32),
    divisors: &Divisors,
) -> [i16; 64] {
    let mut block = [[0; 64]];
    let inside = |at: u32, first: u32, length: u32| at >= first && at - first < length;
    let mut grids = grids.filter(|grid| {
        inside(x, grid.origin.0, grid.size.width) && inside(y, grid.origin.1, grid.size.height)
    });
    let grid = grids.next().expect("touched blocks are painted");
    let index = |value: u32| usize::try_from(value).expect("32 bits");
    let start = index(y - grid.origin.1) * grid.stride + index(x - grid.origin.0);
    let mut samples = [0; 64];
    for (row, samples) in samples.chunks_exact_mut(8).enumerate() {
        samples.copy_from_slice(&grid.data[start + row * grid.stride..][..8]);
    }
    Dct::scalar().forward(&samples, 8, divisors, &mut block);
    block[0]
}

/// Whether the table has, or has room for, a code for every AC symbol.
fn is_complete(codes: &Codes) -> bool {
    let used: u32 = (0u32..).zip(codes.counts).map(|(at, count)| count << (15 - at)).sum();
    let is_usual = |symbol: &u8| match symbol & 15 {
        0 => *symbol == 0 || *symbol == 0xF0,
        size => size <= 10,
    };
    let missing = (0..=255u8).filter(|s| is_usual(s) && !codes.symbols.contains(s)).count();
    let missing = u32::try_from(missing).expect("few");
    used + missing <= 0xFFFF && codes.counts[15] + missing <= 255
}
