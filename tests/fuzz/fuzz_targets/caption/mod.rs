//! Shared by the targets for captions and rights: a file around metadata, and the round trip.

use jiff::tz::TimeZone;
use jpeg::header::{HeaderLimits, JpegHeader};
use jpeg::rewrite::segment;
use metadata::{Caption, FileMetadata, RightsMetadata, WriteOptions, read, write};

const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 1, segments_max: 100, metadata_bytes_max: 1 << 20 };
/// Bytes of text that always fit into one packet, although escaping may turn each into five.
const TEXT_BYTES_SAFE: usize = 8_000;

/// Reads the caption of a picture of one pixel with these metadata segments.
pub fn read_segments(segments: &[u8]) -> FileMetadata {
    let frame = segment(0xC0, &[&[8, 0, 1, 0, 1, 1, 1, 0x11, 0]]);
    let scan = segment(0xDA, &[&[1, 1, 0, 0, 63, 0]]);
    let jpeg = [&[0xFF, 0xD8], segments, &frame, &scan, &[0, 0xFF, 0xD9]].concat();
    read(&JpegHeader::parse(&jpeg, &LIMITS).expect("a picture"), &jpeg)
}

/// Writes caption and rights and reads them again, without warnings.
fn written(caption: &Caption, rights: &RightsMetadata) -> FileMetadata {
    let segments =
        write(caption, rights, &[], WriteOptions { orientation: 1, gps: true, picture: None });
    let again = read_segments(&segments);
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    again
}

/// Writes the rights and reads them again: they must have the same properties, which do not change after
/// the first time, when coordinates are rounded.
pub fn rights_there_and_back(rights: &RightsMetadata) {
    let stored = RightsMetadata::from_json(&rights.to_json());
    assert!(stored.is_err() || stored.as_ref() == Ok(rights));
    if rights.to_json().to_string().len() > TEXT_BYTES_SAFE {
        written(&Caption::default(), rights);
        return;
    }
    let first = written(&Caption::default(), rights);
    let again = written(&first.caption, &first.rights);
    assert_eq!(first.rights, again.rights);
    let names = |rights: &RightsMetadata| {
        let json = rights.to_json();
        json.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(&first.rights), names(rights));
}

/// Writes what was found and reads it again: the caption must be equal, without warnings.
pub fn there_and_back(found: FileMetadata) {
    let FileMetadata { caption: found, rights, .. } = found;
    let _fields = formats::caption::to_fields(&found, &TimeZone::UTC);
    rights_there_and_back(&rights);
    let again = written(&found, &rights);
    let text = format!("{found:?}{rights:?}");
    if text.len() > TEXT_BYTES_SAFE {
        return;
    }
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let moved = match (found.position, again.caption.position) {
        (None, None) => false,
        (Some(a), Some(b)) => !(near(a.0, b.0) && near(a.1, b.1)),
        (None, Some(_)) | (Some(_), None) => true,
    };
    assert!(!moved, "{:?} {:?}", found.position, again.caption.position);
    assert_eq!(Caption { position: found.position, ..again.caption }, found);
}
