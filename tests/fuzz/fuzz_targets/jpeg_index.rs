//! Feeds arbitrary files to the indexer, and arbitrary bytes to the reader of indexes.
//!
//! An index that was built must match a plain decoder, survive packing, fit its scan, and belong to a picture that
//! libjpeg-turbo decodes without a warning. An arbitrary index may give any picture, but no panic.

#![no_main]

use jpeg::codec::{DecodeScale, read_header};
use jpeg::dct::Dct;
use jpeg::header::JpegHeader;
use jpeg::scan::index::{IndexEntry, ScanIndex};
use jpeg::scan::{ByteRanges, Scan, bands, crop, patch, region};
use jpeg_cases::plain::Plain;
use jpeg_cases::{Case, LIMITS, Opened, at, pixels};
use libfuzzer_sys::fuzz_target;
use model::Rect;

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::read(data) else { return };
    let Some(opened) = Opened::new(case.jpeg.clone()) else { return };
    let length = u64::try_from(opened.jpeg.len()).expect("64 bits");
    assert!(opened.index.matches_scan(&opened.scan, length));
    let components = opened.scan.components.len();
    let mut packed = Vec::new();
    opened.index.pack(components, &mut packed);
    let mut rest = packed.as_slice();
    assert_eq!(ScanIndex::unpack(components, &mut rest).as_ref(), Some(&opened.index));
    assert!(rest.is_empty());

    check_start(&opened);

    let plain = opened.plain();
    check_entries(&opened, &plain);
    let repaired = opened.repair();
    let space = read_header(&repaired).expect("asked before").space;
    assert_eq!(opened.header.colour(), Some(space));
    let scale =
        if case.options & 1 == 0 { DecodeScale::FULL } else { DecodeScale::from_eighths(1) };
    assert!(!pixels(&repaired, scale, plain.extra).data.is_empty());

    let rect = case.rect(opened.scan.size);
    for pair in case.spare.chunks_exact(2) {
        let at = usize::from(pair[0]) % packed.len();
        packed[at] ^= pair[1];
    }
    try_foreign(&opened, &packed, rect);
    try_foreign(&opened, &with_wrong_dc(&plain, &case, &opened.index), rect);
    try_foreign(&opened, &opened.jpeg[opened.header.end..], rect);
});

/// The start of the file alone gives the same scan layout.
fn check_start(opened: &Opened) {
    let Opened { jpeg, header, scan, .. } = opened;
    let start = &jpeg[..at(scan.start)];
    let again = JpegHeader::parse_start(start, &LIMITS, header.end).expect("it was parsed whole");
    assert_eq!(again, *header);
    let again = Scan::read(header, start).expect("it was read whole");
    assert_eq!((again.start, again.size, again.interval), (scan.start, scan.size, scan.interval));
}

/// Entries and ends match the positions of the plain decoder.
fn check_entries(opened: &Opened, plain: &Plain) {
    let Opened { scan, index, .. } = opened;
    assert_eq!(plain.starts.len(), usize::try_from(scan.mcus()).expect("32 bits"));
    let every = usize::try_from(index.spacing).expect("32 bits");
    for (entry, (place, dc)) in index.entries.iter().zip(plain.starts.iter().step_by(every)) {
        assert_eq!((entry.bit_position, entry.dc.map(i32::from)), (*place, *dc));
    }
    if !plain.late_restarts {
        assert_eq!(index.end, plain.end);
    }
    let marker = plain.end.div_ceil(8) + u64::try_from(plain.extra).expect("64 bits");
    // The last byte may be a stuffed one.
    assert!(index.marker == marker || index.marker == marker + 1);
}

/// A packed index with correct positions and wrong predictors.
fn with_wrong_dc(plain: &Plain, case: &Case, index: &ScanIndex) -> Vec<u8> {
    let [a, b, c, d, e, f, every, _] = case.spare;
    let dc = [[a, b], [c, d], [e, f], [b, c]].map(i16::from_le_bytes);
    let every = 1 + u32::from(every % 32);
    let places = plain.starts.iter().step_by(at(every.into()));
    let mut entries: Vec<IndexEntry> =
        places.map(|(place, _)| IndexEntry { bit_position: *place, dc }).collect();
    entries[0].dc = [0; 4];
    let mut packed = Vec::new();
    ScanIndex { spacing: every, entries, ..index.clone() }.pack(plain.parts.len(), &mut packed);
    packed
}

/// Unpacks an untrusted index and uses it.
fn try_foreign(opened: &Opened, mut packed: &[u8], rect: Rect) {
    let Opened { scan, jpeg, colour, .. } = opened;
    let components = scan.components.len();
    let Some(index) = ScanIndex::unpack(components, &mut packed) else { return };
    let mut again = Vec::new();
    index.pack(components, &mut again);
    assert_eq!(ScanIndex::unpack(components, &mut again.as_slice()).as_ref(), Some(&index));
    if !index.matches_scan(scan, u64::try_from(jpeg.len()).expect("64 bits")) {
        return;
    }
    if let Ok(ranges) = region::byte_ranges(scan, &index, rect)
        && ranges.iter().all(|range| range.end <= u64::try_from(jpeg.len()).expect("64 bits"))
    {
        let bytes = opened.only(ranges);
        let found = region::decode(scan, &index, &bytes, rect, Dct::detect());
        assert_eq!(found, region::decode(scan, &index, &bytes, rect, Dct::scalar()));
    }
    let bytes = ByteRanges::whole(jpeg);
    let shows = crop::surrounding_rect(scan, rect);
    drop(crop::byte_ranges(scan, &index, shows));
    drop(crop::crop(scan, &index, &bytes, shows, colour));
    drop(patch::byte_range(scan, &index, rect));
    drop(patch::patch(scan, &index, &bytes, rect, Dct::detect(), &mut |_| ()));
    for rows in bands::split(scan) {
        drop(bands::byte_range(scan, &index, &rows));
        drop(bands::band(scan, &index, &bytes, &rows, colour));
    }
}
