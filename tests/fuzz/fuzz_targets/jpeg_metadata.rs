//! Feeds arbitrary bytes to the marker parser and the metadata readers and writers.
//!
//! Nothing may panic. A file that parses must, with new metadata, parse again as the same picture, and a caption that
//! was read must be written intact.

#![no_main]

use jpeg::header::{HeaderLimits, JpegHeader};
use jpeg::rewrite::rewrite_metadata;
use libfuzzer_sys::fuzz_target;
use metadata::{WriteOptions, read, write};

const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 50, segments_max: 500, metadata_bytes_max: 1 << 20 };
/// New metadata may be larger than the old.
const WIDER: HeaderLimits =
    HeaderLimits { scans_max: 50, segments_max: 510, metadata_bytes_max: 2 << 20 };

fuzz_target!(|jpeg: &[u8]| {
    let Ok(header) = JpegHeader::parse(jpeg, &LIMITS) else {
        return;
    };
    let reading = read(&header, jpeg);
    assert!((1..=8).contains(&reading.orientation));
    let keep = WriteOptions { orientation: reading.orientation, gps: true, picture: None };
    let segments = write(&reading.caption, &reading.rights, &header.exif(jpeg), keep);
    let icc = header.icc(jpeg);
    let (head, tail) = rewrite_metadata(jpeg, &header, &segments, icc.as_deref());
    let written = [&head, &jpeg[tail]].concat();
    let again = JpegHeader::parse(&written, &WIDER).expect("a rewritten file parses");
    assert_eq!(again.size, header.size);
    assert_eq!(again.scans, header.scans);
    assert_eq!(again.process, header.process);
    assert_eq!(again.components, header.components);
    assert_eq!(again.restart_interval, header.restart_interval);
    assert_eq!(again.colour(), header.colour());
    assert_eq!(again.end, written.len());
    let reread = read(&again, &written);
    assert_eq!(reread.orientation, reading.orientation);
    assert!(reread.warnings.is_empty(), "{:?}", reread.warnings);
});
