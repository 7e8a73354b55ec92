//! Tests of the marker parser, of the contents of segments, and of rewriting.

use proptest::prelude::*;

use crate::codec::ColourSpace;
use crate::embedded::SegmentDamage;
use crate::header::{CodingProcess, HeaderError, HeaderLimits, JpegHeader};
use crate::rewrite::{icc_segments, picture_parts, rewrite_metadata, segment};
use crate::samples::{LIMITS, adobe, file, frame, jfif, join, scan};
use geometry::Size;

fn ok(jpeg: &[u8]) -> JpegHeader {
    JpegHeader::parse(jpeg, &LIMITS).expect("a sample")
}

fn err(jpeg: &[u8]) -> HeaderError {
    JpegHeader::parse(jpeg, &LIMITS).expect_err("a broken sample")
}

#[test]
fn ok_a_baseline_file() {
    let header = ok(&file(&jfif()));
    assert_eq!(header.size, Size { width: 640, height: 480 });
    assert_eq!((header.process, header.precision, header.scans), (CodingProcess::Baseline, 8, 1));
    assert_eq!(header.components.len(), 3);
    assert_eq!(header.metadata().count(), 1);
}

#[test]
fn ok_first_scan_and_end_are_located() {
    let jpeg = [file(&jfif()).as_slice(), b"trailer\xFF\xD8\xFF\xE1"].concat();
    let header = ok(&jpeg);
    assert_eq!(jpeg[header.first_scan..][..2], [0xFF, 0xDA]);
    assert_eq!(jpeg[..header.end][header.end - 2..], [0xFF, 0xD9]);
}

#[test]
fn ok_every_process_is_recognised_by_its_marker() {
    let cases = [
        (0xC0, CodingProcess::Baseline),
        (0xC1, CodingProcess::Extended),
        (0xC2, CodingProcess::Progressive),
        (0xC3, CodingProcess::Lossless),
        (0xC5, CodingProcess::Hierarchical),
        (0xC9, CodingProcess::ArithmeticSequential),
        (0xCA, CodingProcess::ArithmeticProgressive),
        (0xCB, CodingProcess::ArithmeticLossless),
        (0xCF, CodingProcess::Hierarchical),
    ];
    for (marker, process) in cases {
        let header = ok(&join(&[&frame(marker, &[1]), &scan(&[1]), &scan(&[1])]));
        assert_eq!((header.process, header.scans), (process, 2));
    }
}

#[test]
fn ok_fill_bytes_and_bytes_between_segments_are_skipped() {
    let jpeg = join(&[b"\xFF\xFF", &jfif(), b"junk\xFF\0", &frame(0xC0, &[1]), &scan(&[1])]);
    let header = ok(&jpeg);
    assert_eq!(jpeg[header.segments[0].byte_range()], jfif());
}

#[test]
fn ok_the_restart_interval_is_that_of_the_first_scan() {
    let dri = |n: u8| segment(0xDD, &[&[1, n]]);
    let jpeg = join(&[&dri(1), &dri(2), &frame(0xC0, &[1]), &scan(&[1]), &dri(3), &scan(&[1])]);
    assert_eq!(ok(&jpeg).restart_interval, 258);
}

#[test]
fn the_colour_model_matches_libjpeg() {
    let check = |marker: u8, ids: &[u8], head: &[&[u8]], expected: Option<ColourSpace>| {
        let header = ok(&join(&[&head.concat(), &frame(marker, ids), &scan(ids)]));
        assert_eq!(header.colour(), expected, "{marker:02X} {ids:?} {head:?}");
    };
    let (jfif, transforms) = (jfif(), [adobe(0), adobe(1), adobe(2)]);
    check(0xC0, &[1], &[], Some(ColourSpace::Grey));
    check(0xC0, &[1, 2], &[], None);
    check(0xC0, &[1, 2, 3], &[], Some(ColourSpace::YCbCr));
    check(0xC0, &[0, 1, 2], &[], Some(ColourSpace::YCbCr));
    check(0xC0, b"RGB", &[], Some(ColourSpace::Rgb));
    check(0xC3, &[1, 2, 3], &[], Some(ColourSpace::Rgb));
    check(0xC0, b"RGB", &[&jfif], Some(ColourSpace::YCbCr));
    check(0xC0, &[1, 2, 3], &[&jfif, &transforms[0]], Some(ColourSpace::YCbCr));
    check(0xC0, &[1, 2, 3], &[&transforms[0]], Some(ColourSpace::Rgb));
    check(0xC0, b"RGB", &[&transforms[1]], Some(ColourSpace::YCbCr));
    check(0xC0, &[1, 2, 3], &[&transforms[2]], Some(ColourSpace::YCbCr));
    check(0xC0, &[1, 2, 3, 4], &[], Some(ColourSpace::Cmyk));
    check(0xC0, &[1, 2, 3, 4], &[&transforms[0]], Some(ColourSpace::Cmyk));
    check(0xC0, &[1, 2, 3, 4], &[&transforms[2]], Some(ColourSpace::Ycck));
    check(0xC0, &[1, 2, 3, 4], &[&transforms[1]], Some(ColourSpace::Ycck));
    check(0xC0, &[1, 2, 3, 4], &[&segment(0xEE, &[b"Adobe\0"])], Some(ColourSpace::Cmyk));
}

#[test]
fn err_files_that_are_not_jpegs() {
    assert_eq!(err(b""), HeaderError::Empty);
    assert_eq!(err(b"\xFF"), HeaderError::NotJpeg);
    assert_eq!(err(b"\x89PNG"), HeaderError::NotJpeg);
    assert_eq!(err(b"\xFF\xD8\xFF\xD9"), HeaderError::NoFrame);
    assert_eq!(err(&join(&[&scan(&[1])])), HeaderError::NoFrame);
    assert_eq!(err(&join(&[&frame(0xC0, &[1])])), HeaderError::NoScan);
}

#[test]
fn err_every_truncation_is_reported() {
    let jpeg = file(&jfif());
    for length in 2..jpeg.len() {
        let error = err(&jpeg[..length]);
        assert!(matches!(error, HeaderError::Truncated { offset } if offset <= length), "{error}");
    }
    let scan = ok(&jpeg).first_scan;
    assert_eq!(err(&jpeg[..jpeg.len() - 2]), HeaderError::Truncated { offset: scan });
}

#[test]
fn err_a_size_of_zero() {
    let mut jpeg = join(&[&frame(0xC0, &[1]), &scan(&[1])]);
    jpeg[7..9].fill(0);
    assert_eq!(err(&jpeg), HeaderError::ZeroSize { width: 640, height: 0 });
    jpeg[9..11].fill(0);
    assert_eq!(err(&jpeg), HeaderError::ZeroSize { width: 0, height: 0 });
}

#[test]
fn err_segments_that_contradict_themselves() {
    let bad = |marker, offset| HeaderError::BadSegment { marker, offset };
    let frame = frame(0xC0, &[1, 2, 3]);
    assert_eq!(err(b"\xFF\xD8\xFF\xE0\0\x01"), bad(0xE0, 2));
    assert_eq!(err(&join(&[b"\xFF\xD8"])), bad(0xD8, 2));
    assert_eq!(err(&join(&[&segment(0xC0, &[b"\x08\0"])])), bad(0xC0, 2));
    assert_eq!(err(&join(&[&segment(0xDD, &[b"\0"])])), bad(0xDD, 2));
    assert_eq!(err(&join(&[&frame, &scan(&[4])])), bad(0xDA, 2 + frame.len()));
    assert_eq!(err(&join(&[&frame, &segment(0xDA, &[b"\0"])])), bad(0xDA, 2 + frame.len()));
    let again = HeaderError::SecondFrame { offset: 2 + frame.len() };
    assert_eq!(err(&join(&[&frame, &frame, &scan(&[1])])), again);
    let mut deep = frame.clone();
    deep[4] = 12;
    assert_eq!(err(&join(&[&deep, &scan(&[1])])), bad(0xC0, 2));
}

#[test]
fn err_limits_are_enforced() {
    let limits = HeaderLimits { scans_max: 2, segments_max: 6, metadata_bytes_max: 20 };
    let parse =
        |parts: &[&[u8]]| JpegHeader::parse(&join(parts), &limits).map(|header| header.scans);
    let (frame, scan, comment) = (frame(0xC2, &[1]), scan(&[1]), segment(0xFE, &[&[0; 10]]));
    assert_eq!(parse(&[&comment, &comment, &frame, &scan, &scan]), Ok(2));
    let scans = HeaderError::TooMany { what: "scans", limit: 2 };
    assert_eq!(parse(&[&frame, &scan, &scan, &scan, &scan]), Err(scans));
    let bytes = HeaderError::TooMuchMetadata { limit: 20 };
    assert_eq!(parse(&[&comment, &comment, &comment, &frame, &scan]), Err(bytes));
    let table = segment(0xDB, &[]);
    let segments = HeaderError::TooMany { what: "segments", limit: 6 };
    assert_eq!(parse(&[&table.repeat(5), &frame, &scan]), Err(segments));
}

fn icc_chunk(number: u8, count: u8, data: &[u8]) -> Vec<u8> {
    segment(0xE2, &[b"ICC_PROFILE\0", &[number, count], data])
}

#[test]
fn an_icc_profile_is_assembled_in_any_order() {
    let jpeg = file(&[icc_chunk(2, 2, b"file"), icc_chunk(1, 2, b"pro")].concat());
    assert_eq!(ok(&jpeg).icc(&jpeg).as_deref(), Some(b"profile".as_slice()));
}

#[test]
fn an_icc_profile_with_bad_chunks_is_ignored() {
    let check = |chunks: &[Vec<u8>]| {
        let jpeg = file(&chunks.concat());
        assert_eq!(ok(&jpeg).icc(&jpeg), None, "{chunks:?}");
    };
    check(&[]);
    // The first chunk is missing, a chunk is repeated, the counts differ, or the number is out of range.
    check(&[icc_chunk(2, 2, b"file")]);
    check(&[icc_chunk(1, 2, b"a"), icc_chunk(1, 2, b"b")]);
    check(&[icc_chunk(1, 2, b"a"), icc_chunk(2, 3, b"b")]);
    check(&[icc_chunk(0, 1, b"a")]);
    check(&[icc_chunk(2, 1, b"a")]);
    check(&[segment(0xE2, &[b"ICC_PROFILE\0"])]);
}

#[test]
fn icc_segments_are_read_back() {
    for length in [1, 65_519, 65_520, 200_000] {
        let profile: Vec<u8> =
            (0..length).map(|i| u8::try_from(i % 251).expect("small")).collect();
        let jpeg = file(&icc_segments(&profile));
        assert_eq!(ok(&jpeg).icc(&jpeg), Some(profile));
    }
    assert_eq!(icc_segments(&[]), Vec::<u8>::new());
    assert_eq!(icc_segments(&vec![0; 255 * 65_519 + 1]), Vec::<u8>::new());
}

const GUID: &[u8; 32] = b"0123456789ABCDEF0123456789ABCDEF";

fn xmp_part(guid: &[u8], length: u32, offset: u32, data: &[u8]) -> Vec<u8> {
    let numbers = [length.to_be_bytes(), offset.to_be_bytes()].concat();
    segment(0xE1, &[b"http://ns.adobe.com/xmp/extension/\0", guid, &numbers, data])
}

#[test]
fn extended_xmp_is_assembled_by_its_guid() {
    let other = [b'F'; 32];
    let parts = [
        xmp_part(GUID, 6, 3, b"def"),
        xmp_part(&other, 3, 0, b"xyz"),
        xmp_part(GUID, 6, 0, b"abc"),
    ];
    let jpeg = file(&parts.concat());
    let header = ok(&jpeg);
    assert_eq!(header.extended_xmp(&jpeg, GUID).value.as_deref(), Some(b"abcdef".as_slice()));
    assert_eq!(header.extended_xmp(&jpeg, &other).value.as_deref(), Some(b"xyz".as_slice()));
    assert_eq!(header.extended_xmp(&jpeg, &[b'E'; 32]).value, None);
    assert_eq!(header.extended_xmp(&jpeg, b"").value, None);
}

#[test]
fn extended_xmp_with_gaps_is_ignored() {
    let check = |parts: &[Vec<u8>], offset: u32, length: u32| {
        let jpeg = file(&parts.concat());
        let found = ok(&jpeg).extended_xmp(&jpeg, GUID);
        assert_eq!(
            (found.value, found.damage),
            (None, Some(SegmentDamage::XmpParts { offset, length }))
        );
    };
    check(&[xmp_part(GUID, 6, 0, b"abc")], 6, 6);
    check(&[xmp_part(GUID, 6, 0, b"abc"), xmp_part(GUID, 6, 4, b"ef")], 4, 6);
    check(&[xmp_part(GUID, 6, 0, b"abc"), xmp_part(GUID, 6, 2, b"cdef")], 2, 6);
    check(&[xmp_part(GUID, u32::MAX, 0, b"abc")], u32::MAX, u32::MAX);
}

fn resource(id: u16, name: &[u8], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("small").to_be_bytes();
    let mut resource = [b"8BIM", &id.to_be_bytes()[..], name, &length, data].concat();
    resource.resize(resource.len().next_multiple_of(2), 0);
    resource
}

fn check_iptc(segments: &[&[u8]], expected: Option<&[u8]>, damage: Option<SegmentDamage>) {
    let segments: Vec<u8> =
        segments.iter().flat_map(|s| segment(0xED, &[b"Photoshop 3.0\0", s])).collect();
    let jpeg = file(&segments);
    let found = ok(&jpeg).iptc(&jpeg);
    assert_eq!((found.value.as_deref(), found.damage), (expected, damage));
}

#[test]
fn iptc_is_found_among_named_and_padded_resources() {
    let resources = [
        resource(0x03ED, b"\x03abc", b"odd"),
        resource(0x0404, b"\x02ab\0", b"iim"),
        resource(0x0425, b"\0\0", b"digest"),
    ];
    check_iptc(&[&resources.concat()], Some(b"iim"), None);
    check_iptc(&[&resources[2]], None, None);
    check_iptc(&[], None, None);
}

#[test]
fn iptc_split_over_segments_is_joined() {
    let resources = [resource(0x0404, b"\0\0", b"iimiim"), vec![0; 3]].concat();
    check_iptc(&[&resources[..14], &resources[14..]], Some(b"iimiim"), None);
    let unpadded = resource(0x0404, b"\0\0", b"abc");
    check_iptc(&[&unpadded[..unpadded.len() - 1], &unpadded], Some(b"abcabc"), None);
}

#[test]
fn iptc_before_the_damage_is_kept() {
    let resources = [resource(0x0404, b"\0\0", b"ab"), b"8BIM\x04\x04\0\0\0\0\0\x09x".to_vec()];
    let damage = SegmentDamage::Resources { offset: resources[0].len() };
    check_iptc(&[&resources.concat()], Some(b"ab"), Some(damage));
    check_iptc(&[b"rubbish"], None, Some(SegmentDamage::Resources { offset: 0 }));
}

#[test]
fn rewriting_drops_metadata_and_keeps_the_picture() {
    let old = [
        segment(0xE1, &[b"Exif\0\0old"]),
        jfif(),
        segment(0xE0, &[b"JFXX\0thumbnail"]),
        icc_chunk(1, 1, b"old"),
        segment(0xFE, &[b"comment"]),
        adobe(1),
        segment(0xE2, &[b"MPF\0"]),
    ];
    let jpeg = [file(&old.concat()).as_slice(), b"trailer"].concat();
    let header = ok(&jpeg);
    let new = segment(0xE1, &[b"Exif\0\0new"]);
    let (head, tail) = rewrite_metadata(&jpeg, &header, &new, Some(b"profile"));
    assert_eq!(jpeg[tail.clone()], [&scan(&[1, 2, 3]), b"\xFF\xD9".as_slice()].concat());
    let written = [&head, &jpeg[tail]].concat();
    let plain = segment(0xE0, &[b"JFIF\0\x01\x02\x01\0\x48\0\x48\0\0"]);
    let kept = [plain, new, icc_chunk(1, 1, b"profile"), adobe(1)].concat();
    assert_eq!(written, file(&kept));
    assert_eq!(ok(&written).size, header.size);
}

#[test]
fn rewriting_without_a_profile_leaves_none() {
    let jpeg = file(&icc_chunk(1, 1, b"old"));
    let (head, tail) = rewrite_metadata(&jpeg, &ok(&jpeg), &[], None);
    assert_eq!([&head, &jpeg[tail]].concat(), file(&[]));
}

#[test]
fn other_bytes_than_those_parsed_do_no_harm() {
    let jpeg = file(&[jfif(), icc_chunk(1, 1, b"a")].concat());
    let header = ok(&jpeg);
    assert_eq!(header.icc(b"short"), None);
    assert_eq!(picture_parts(&header, b"short").jfif, None);
    assert_eq!(rewrite_metadata(b"short", &header, &[], None).0, b"\xFF\xD8");
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = JpegHeader::parse(&join(&[&bytes]), &LIMITS);
        let jpeg = file(&segment(0xED, &[b"Photoshop 3.0\08BIM", &bytes]));
        ok(&jpeg).iptc(&jpeg);
    }

    #[test]
    fn a_changed_file_that_parses_is_rewritten_to_the_same_picture(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let mut jpeg = file(&[jfif(), icc_chunk(1, 1, b"profile"), adobe(1)].concat());
        for (at, byte) in changes {
            let at = at % jpeg.len();
            jpeg[at] = byte;
        }
        if let Ok(header) = JpegHeader::parse(&jpeg, &LIMITS) {
            let icc = header.icc(&jpeg);
            let (head, tail) = rewrite_metadata(&jpeg, &header, &[], icc.as_deref());
            let written = [&head, &jpeg[tail]].concat();
            let again = ok(&written);
            prop_assert_eq!((again.size, again.scans), (header.size, header.scans));
            prop_assert_eq!(again.colour(), header.colour());
            prop_assert_eq!(again.icc(&written), icc.filter(|icc| !icc.is_empty()));
        }
    }
}
