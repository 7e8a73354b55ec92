//! Cuts rectangles and bands out of arbitrary files.
//!
//! A cut is an undamaged file. Its coefficients are those of the original, and with its surroundings it decodes to the
//! pixels of that region of the whole picture.

#![no_main]

use jpeg::codec::{DecodeScale, Pixels};
use jpeg::header::JpegHeader;
use jpeg::scan::crop::{byte_ranges, crop, is_on_grid, surrounding_rect};
use jpeg::scan::{ScanError, bands};
use jpeg_cases::plain::Plain;
use jpeg_cases::{Case, LIMITS, Opened, pixels};
use libfuzzer_sys::fuzz_target;
use model::{Rect, Size};

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::read(data) else { return };
    let Some(opened) = Opened::new(case.jpeg.clone()) else { return };
    let opened = opened.finer(&case);
    let plain = opened.plain();
    let rect = case.rect(opened.scan.size);
    match case.options % 4 {
        0 | 2 => check_surroundings(&opened, &plain, rect),
        1 => check_bands(&opened, &plain, &case),
        _ => {
            let Size { width, height } = opened.scan.mcu;
            let (x, y) = (rect.x / width * width, rect.y / height * height);
            drop(check_cut(&opened, &plain, Rect { x, y, ..rect }));
        }
    }
});

/// A cut with its surroundings decodes to the pixels of the whole picture.
fn check_surroundings(opened: &Opened, plain: &Plain, rect: Rect) {
    let shows = surrounding_rect(&opened.scan, rect);
    let Some(part) = check_cut(opened, plain, shows) else { return };
    let whole = pixels(&opened.repair(), DecodeScale::FULL, plain.extra);
    let inner = Rect { x: rect.x - shows.x, y: rect.y - shows.y, ..rect };
    assert!(rectangle(&part, inner) == rectangle(&whole, rect), "{rect:?} differs");
}

/// A cut has the coefficients of the original; returns its pixels.
fn check_cut(opened: &Opened, plain: &Plain, shows: Rect) -> Option<Pixels> {
    let Opened { scan, index, colour, .. } = opened;
    assert!(is_on_grid(scan, shows) && shows.is_inside(scan.size));
    let bytes = opened.only(byte_ranges(scan, index, shows).expect("inside"));
    let small = match crop(scan, index, &bytes, shows, colour) {
        Ok(small) => small,
        Err(error) => {
            assert_eq!(error, ScanError::Tables);
            return None;
        }
    };
    let small = Opened::new(small).expect("a cut is taken again");
    assert_eq!(small.scan.size, shows.size());
    let left = (shows.x / scan.mcu.width, shows.y / scan.mcu.height);
    check_coefficients(plain, &small.plain(), left);
    Some(pixels(&small.repair(), DecodeScale::FULL, 0))
}

/// The coefficients of `small` are those of `plain` from MCU (`left`, `top`).
fn check_coefficients(plain: &Plain, small: &Plain, (left, top): (u32, u32)) {
    assert_eq!(plain.parts.len(), small.parts.len());
    for (all, cut) in plain.parts.iter().zip(&small.parts) {
        assert_eq!((all.across, all.down, all.quant), (cut.across, cut.down, cut.quant));
        let (left, top) = (index(left) * all.across, index(top) * all.down);
        for (y, blocks) in cut.blocks.chunks_exact(cut.columns).enumerate() {
            let start = (top + y) * all.columns + left;
            assert!(blocks == &all.blocks[start..start + blocks.len()], "row {y} differs");
        }
    }
    assert_eq!((small.extra, small.late_restarts), (0, false));
}

/// Bands of any height that restarts allow combine to the whole picture.
fn check_bands(opened: &Opened, plain: &Plain, case: &Case) {
    let Opened { scan, index: entries, colour, .. } = opened;
    let can_start =
        |row: u32| scan.interval == 0 || (row * scan.across).is_multiple_of(scan.interval);
    let wanted = 1 + u32::from(case.spare[0] % 16);
    let scale = DecodeScale::from_eighths(1 + case.spare[1] % 4);
    let mut rows = Vec::new();
    let mut start = 0;
    while start < scan.down {
        let end = (start.saturating_add(wanted)..scan.down).find(|row| can_start(*row));
        let end = end.unwrap_or(scan.down);
        let bytes =
            opened.only([bands::byte_range(scan, entries, &(start..end)).expect("inside")]);
        let band = match bands::band(scan, entries, &bytes, &(start..end), colour) {
            Ok(band) => band,
            Err(error) => return assert_eq!(error, ScanError::Tables),
        };
        let header = JpegHeader::parse(&band, &LIMITS).expect("a band is a file");
        let found = Plain::read(&header, &band).expect("a band is undamaged");
        check_coefficients(plain, &found, (0, start));
        let band = Opened::new(band).expect("a band is taken");
        rows.extend(pixels(&band.repair(), scale, 0).data);
        start = end;
    }
    if bands::are_exact(scan) {
        let whole = pixels(&opened.repair(), scale, plain.extra).data;
        assert!(rows == whole, "bands differ at {scale:?}");
    }
}

fn rectangle(pixels: &Pixels, region: Rect) -> Vec<u8> {
    let row = |y: u32| {
        let start = index(y * pixels.size.width + region.x) * pixels.channels;
        &pixels.data[start..][..index(region.width) * pixels.channels]
    };
    (region.y..region.y + region.height).flat_map(row).copied().collect()
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits")
}
