//! Decodes a rectangle of arbitrary files.
//!
//! The samples are the same with and without vector instructions, and equal those of libjpeg-turbo's decode of the
//! whole picture.

#![no_main]

use jpeg::codec::{ChromaSubsampling, ColourSpace, DecodeScale, Planes, read_header};
use jpeg::dct::Dct;
use jpeg::scan::region::{CountedFrom, RegionSamples, byte_ranges, decode};
use jpeg::scan::{Scan, ScanError};
use jpeg_cases::plain::Plain;
use jpeg_cases::{Case, Opened, pixels};
use libfuzzer_sys::fuzz_target;
use model::{Rect, Size};

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::read(data) else { return };
    let Some(opened) = Opened::new(case.jpeg.clone()) else { return };
    let opened = opened.finer(&case);
    let Opened { scan, index, .. } = &opened;
    let rect = case.rect(scan.size);
    let bytes = opened.only(byte_ranges(scan, index, rect).expect("inside"));
    let decoded = decode(scan, index, &bytes, rect, Dct::detect());
    assert_eq!(decoded, decode(scan, index, &bytes, rect, Dct::scalar()));
    let samples = match decoded {
        Ok(samples) => samples,
        Err(error) => return assert_eq!(error, ScanError::Range),
    };
    let plain = opened.plain();
    check_samples(&plain, &samples);
    let repaired = opened.repair();
    let (extra, header) = (plain.extra, read_header(&repaired).expect("asked before"));
    // The library does not support 4:2:2 as 4x1, 2x1, 2x1; the engine does.
    let is_named = header.chroma != ChromaSubsampling::Other;
    if let Some(planes) = scan.planes.filter(|_| is_named) {
        assert_eq!(planes, (header.space, header.chroma));
        let full = jpeg_cases::planes(&repaired, extra);
        let side =
            |bit: u8| if case.options & bit == 0 { CountedFrom::Start } else { CountedFrom::End };
        check_planes(scan, &samples, rect, (&full, (side(1), side(2))));
    } else if opened.header.colour().is_some_and(|colour| colour != ColourSpace::Ycck)
        && scan.components.iter().all(|part| part.cell == (1, 1))
    {
        check_pixels(scan, &samples, rect, &pixels(&repaired, DecodeScale::FULL, extra).data);
    }
});

/// The samples match the coefficients of the plain decoder.
fn check_samples(plain: &Plain, samples: &RegionSamples) {
    for (part, grid) in plain.parts.iter().zip(&samples.grids) {
        let first = (index(grid.origin.0) / 8, index(grid.origin.1) / 8);
        let mut wanted = [0; 64];
        for (y, rows) in grid.data.chunks_exact(8 * grid.stride).enumerate() {
            for x in 0..grid.stride / 8 {
                let block = &part.blocks[(first.1 + y) * part.columns + first.0 + x];
                let value = |at: usize| block[at] * i32::from(part.quant[at]);
                let block = std::array::from_fn(|at| {
                    i16::try_from(value(at)).expect("others are out of range")
                });
                Dct::scalar().inverse(&[block], &mut wanted, 8);
                for (row, wanted) in rows.chunks_exact(grid.stride).zip(wanted.chunks_exact(8)) {
                    assert_eq!(row[8 * x..8 * x + 8], *wanted, "block {x},{y}");
                }
            }
        }
    }
}

/// Without a colour transform the components are the pixels.
fn check_pixels(scan: &Scan, samples: &RegionSamples, rect: Rect, pixels: &[u8]) {
    let channels = scan.components.len();
    for (channel, grid) in samples.grids.iter().enumerate() {
        for y in rect.y..rect.y + rect.height {
            for x in rect.x..rect.x + rect.width {
                let pixel = index(y) * index(scan.size.width) + index(x);
                let at = index(y - grid.origin.1) * grid.stride + index(x - grid.origin.0);
                assert_eq!(grid.data[at], pixels[pixel * channels + channel], "at {x},{y}");
            }
        }
    }
}

fn check_planes(
    scan: &Scan,
    samples: &RegionSamples,
    rect: Rect,
    (full, from): (&Planes, (CountedFrom, CountedFrom)),
) {
    let planes = samples.planes(scan, rect, from).expect("planes");
    assert_eq!(planes.size, rect.size());
    let layout = Planes::layout(planes.size, planes.space, planes.chroma);
    assert_eq!(layout.len(), if planes.space == ColourSpace::Grey { 1 } else { 3 });
    for (number, (plane, part)) in layout.iter().zip(&scan.components).enumerate() {
        let (cx, cy) = part.cell;
        let left = start(from.0, (rect.x, rect.width), cx, plane.width);
        let top = start(from.1, (rect.y, rect.height), cy, plane.height);
        for y in 0..plane.height {
            for x in 0..plane.width {
                let pixel = (left + signed(x) * i64::from(cx), top + signed(y) * i64::from(cy));
                let wanted = expected(full, number, part.cell, pixel);
                let found = planes.data[plane.start + y * plane.width + x];
                assert_eq!(found, wanted, "component {number} at {x},{y} of {rect:?}");
            }
        }
    }
}

/// The pixel from which the samples of a plane are counted.
fn start(from: CountedFrom, (start, length): (u32, u32), cell: u32, samples: usize) -> i64 {
    match from {
        CountedFrom::End => {
            i64::from(start) + i64::from(length) - signed(samples) * i64::from(cell)
        }
        CountedFrom::Start => i64::from(start),
    }
}

/// The sample of a full decode's plane that covers a pixel, or the mean between two.
fn expected(full: &Planes, number: usize, cell: (u32, u32), pixel: (i64, i64)) -> u8 {
    let plane = Planes::layout(full.size, full.space, full.chroma)[number];
    let Size { width, height } = full.size;
    let (cx, cy) = (i64::from(cell.0), i64::from(cell.1));
    // Luma planes are padded to whole cells; samples beyond the picture are not read.
    let limit = |edge: u32, cell: u32| i64::from(edge.div_ceil(cell)) - 1;
    let (right, bottom) = (limit(width, cell.0), limit(height, cell.1));
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, right), y.clamp(0, bottom));
        let place = usize::try_from(y).expect("clamped") * plane.width;
        i64::from(full.data[plane.start + place + usize::try_from(x).expect("clamped")])
    };
    let (x, y) = (pixel.0.div_euclid(cx), pixel.1.div_euclid(cy));
    let (dx, dy) = (pixel.0.rem_euclid(cx), pixel.1.rem_euclid(cy));
    let upper = at(x, y) * (cx - dx) + at(x + 1, y) * dx;
    let lower = at(x, y + 1) * (cx - dx) + at(x + 1, y + 1) * dx;
    u8::try_from((upper * (cy - dy) + lower * dy + cx * cy / 2) / (cx * cy)).expect("a mean")
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).expect("small")
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits")
}
