//! Tests of the whole crate: written metadata is read back, and merging follows the precedence.

use exif::experimental::Writer;
use exif::{Field, In, Rational, Tag, Value};
use proptest::prelude::*;

use crate::exif_read::ExifBlocks;
use crate::{Caption, FileMetadata, RightsMetadata, WriteOptions, properties, read};
use jpeg::header::JpegHeader;
use jpeg::rewrite::segment;
use jpeg::samples::{LIMITS, file};

const UPRIGHT: WriteOptions = WriteOptions { orientation: 1, gps: false, picture: None };
const WITH_GPS: WriteOptions = WriteOptions { orientation: 1, gps: true, picture: None };

/// Writes a caption without rights.
fn write(caption: &Caption, originals: &[&[u8]], options: WriteOptions) -> Vec<u8> {
    crate::write(caption, &RightsMetadata::default(), originals, options)
}

/// The carried properties that a caption has.
fn rights_of(caption: &Caption) -> RightsMetadata {
    properties::with_caption(RightsMetadata::default(), caption)
}

fn read_segments(segments: &[u8]) -> FileMetadata {
    let jpeg = file(segments);
    read(&JpegHeader::parse(&jpeg, &LIMITS).expect("a sample"), &jpeg)
}

fn full() -> Caption {
    Caption {
        headline: "Snö över fjällen".into(),
        title: "fjäll-snö".into(),
        description: "ÅRE 2017-02-11\nSnö <över> \"fjällen\" & dalar ❄️ 雪. Foto: Åsa Ek".into(),
        byline: "Åsa Ek".into(),
        byline_role: "Fotograf".into(),
        credit: "Byrån".into(),
        source: "BYRÅN".into(),
        copyright_notice: "© Byrån".into(),
        copyright_holder: "Byrån AB".into(),
        usage_terms: "Endast redaktionellt".into(),
        instructions: "Får ej beskäras".into(),
        sublocation: "Torget".into(),
        city: "Åre".into(),
        province: "Jämtlands län".into(),
        country: "Sverige".into(),
        country_code: "SWE".into(),
        position: None,
        persons: vec!["Åsa Ek".into(), "Bo Öman".into()],
        subject_codes: vec!["17000000".into(), "medtop:20000209".into()],
        keywords: vec!["fjäll".into(), "snö".into()],
        created: Some("2017-02-11T10:15:00+01:00".into()),
        transmission_reference: "fjäll-001".into(),
        urgency: Some(4),
        uri: "urn:newsml:example.com:20170211:fjäll".into(),
        language: "sv".into(),
    }
}

fn without(signature: &[u8], segments: &[u8]) -> Vec<u8> {
    let jpeg = file(segments);
    let header = JpegHeader::parse(&jpeg, &LIMITS).expect("a sample");
    header
        .metadata()
        .filter(|segment| !jpeg[segment.payload.clone()].starts_with(signature))
        .flat_map(|segment| jpeg[segment.byte_range()].to_vec())
        .collect()
}

#[test]
fn a_full_caption_is_read_as_written() {
    let reading = read_segments(&write(&full(), &[], WriteOptions { orientation: 6, ..UPRIGHT }));
    let rights = rights_of(&full());
    let expected = FileMetadata { caption: full(), rights, orientation: 6, warnings: Vec::new() };
    assert_eq!(reading, expected);
}

#[test]
fn an_empty_caption_writes_nothing() {
    assert_eq!(write(&Caption::default(), &[], UPRIGHT), Vec::<u8>::new());
    let blanks =
        Caption { headline: " \0\n".into(), keywords: vec![" ".into()], ..Caption::default() };
    assert_eq!(write(&blanks, &[], WITH_GPS), Vec::<u8>::new());
    assert_ne!(write(&Caption::default(), &[], WriteOptions { orientation: 3, ..UPRIGHT }), b"");
}

#[test]
fn xmp_goes_before_iim_and_iim_before_exif() {
    let segments = write(&full(), &[], UPRIGHT);
    let no_xmp = without(b"http", &segments);
    let iim = read_segments(&no_xmp).caption;
    assert_eq!(iim.headline, full().headline);
    assert_eq!(iim.instructions, "Endast redaktionellt; Får ej beskäras");
    assert_eq!(iim.subject_codes, ["17000000"]);
    assert_eq!(iim.created, full().created);
    let exif = read_segments(&without(b"Photoshop", &no_xmp)).caption;
    let expected = Caption {
        description: full().description,
        byline: full().byline,
        copyright_notice: full().copyright_notice,
        created: full().created,
        ..Caption::default()
    };
    assert_eq!(exif, expected);
    let other = Caption { city: "Umeå".into(), byline: "Bo".into(), ..Caption::default() };
    let photoshop = without(b"http", &without(b"Exif", &write(&other, &[], UPRIGHT)));
    let mixed = read_segments(&[without(b"Photoshop", &segments), photoshop].concat());
    assert_eq!(mixed.caption, full());
}

#[test]
fn a_shared_place_is_ignored_when_xmp_has_either_field() {
    let caption = Caption {
        usage_terms: "Endast redaktionellt".into(),
        copyright_holder: "Byrån AB".into(),
        ..Caption::default()
    };
    let segments = write(&caption, &[], UPRIGHT);
    assert_eq!(read_segments(&segments).caption, caption);
    let iim = read_segments(&without(b"http", &segments)).caption;
    assert_eq!(iim.instructions, "Endast redaktionellt");
    assert_eq!(iim.copyright_notice, "Byrån AB");
}

#[test]
fn credits_state_the_copyright_by_its_notice_or_else_by_its_holder() {
    let own = Caption {
        byline: full().byline,
        credit: full().credit,
        copyright_notice: full().copyright_notice,
        ..Caption::default()
    };
    assert_eq!(full().credits(), own);
    let credits = Caption { copyright_notice: String::new(), ..full() }.credits();
    assert_eq!(credits.copyright_holder, "Byrån AB");
    let older = read_segments(&without(b"http", &write(&credits, &[], UPRIGHT))).caption;
    assert_eq!(older.copyright_notice, "Byrån AB");
}

/// An Exif block with the fields.
fn block(fields: &[(Tag, In, Value)]) -> Vec<u8> {
    let fields: Vec<Field> = fields
        .iter()
        .map(|(tag, ifd_num, value)| Field { tag: *tag, ifd_num: *ifd_num, value: value.clone() })
        .collect();
    let mut writer = Writer::new();
    for field in &fields {
        writer.push_field(field);
    }
    let mut tiff = std::io::Cursor::new(Vec::new());
    writer.write(&mut tiff, true).expect("known types");
    tiff.into_inner()
}

fn ascii(text: &str) -> Value {
    Value::Ascii(vec![text.as_bytes().to_vec()])
}

/// An Exif block of a camera, with values that must not be published.
fn camera() -> Vec<u8> {
    let gps = |a, b| Value::Rational([a, b, 0].map(|num| Rational { num, denom: 1 }).to_vec());
    block(&[
        (Tag::Make, In::PRIMARY, ascii("Kamera")),
        (Tag::Model, In::PRIMARY, ascii("  \0")),
        (Tag::Orientation, In::PRIMARY, Value::Short(vec![8])),
        (Tag::ImageDescription, In::PRIMARY, ascii("                   ")),
        (Tag::ISOSpeed, In::PRIMARY, Value::Long(vec![400])),
        (Tag::FNumber, In::PRIMARY, Value::Rational(vec![Rational { num: 28, denom: 10 }])),
        (Tag::DateTimeOriginal, In::PRIMARY, ascii("2017:02:11 10:15:00")),
        (Tag::OffsetTimeOriginal, In::PRIMARY, ascii("+01:00")),
        (Tag::MakerNote, In::PRIMARY, Value::Undefined(b"hemligt".to_vec(), 0)),
        (Tag::BodySerialNumber, In::PRIMARY, ascii("hemligt")),
        (Tag::CameraOwnerName, In::PRIMARY, ascii("hemligt")),
        (Tag::InteroperabilityIndex, In::PRIMARY, ascii("R03")),
        (Tag::GPSLatitudeRef, In::PRIMARY, ascii("N")),
        (Tag::GPSLatitude, In::PRIMARY, gps(59, 19)),
        (Tag::GPSLongitudeRef, In::PRIMARY, ascii("W")),
        (Tag::GPSLongitude, In::PRIMARY, gps(18, 3)),
        (Tag::GPSAltitude, In::PRIMARY, Value::Rational(vec![Rational { num: 28, denom: 1 }])),
        (Tag::ImageDescription, In::THUMBNAIL, ascii("hemligt")),
    ])
}

#[test]
fn a_cameras_block_is_read() {
    let reading = read_segments(&segment(0xE1, &[b"Exif\0\0", &camera()]));
    let expected = Caption {
        position: Some((59.0 + 19.0 / 60.0, -18.05)),
        created: Some("2017-02-11T10:15:00+01:00".into()),
        ..Caption::default()
    };
    let rights = RightsMetadata::default();
    let expected =
        FileMetadata { caption: expected, rights, orientation: 8, warnings: Vec::new() };
    assert_eq!(reading, expected);
}

#[test]
fn an_identifier_in_exif_has_the_form_of_the_standard() {
    let id = "0123456789abcdefABCDEF0123456789";
    let zeros = "0".repeat(32);
    let with_id = |id: &str| {
        let block = block(&[(Tag::ImageUniqueID, In::PRIMARY, ascii(id))]);
        segment(0xE1, &[b"Exif\0\0", &block])
    };
    let reading = read_segments(&with_id(id));
    assert_eq!(
        (reading.caption.uri.as_str(), reading.rights.text("digitalImageGuid")),
        (id, Some(id))
    );
    let long = format!("{id}0");
    for other in
        [zeros.as_str(), &id[1..], &long, "A16LLIC08SM A16LLIIB8GM", &id.replace('f', "g")]
    {
        let reading = read_segments(&with_id(other));
        assert_eq!(reading.caption, Caption::default(), "{other}");
        assert!(reading.rights.is_empty(), "{other}");
    }
    // Each standard may have an identifier of its own.
    let caption = Caption { uri: "urn:x".into(), ..Caption::default() };
    let segments = [with_id(id), without(b"Exif", &write(&caption, &[], UPRIGHT))].concat();
    let reading = read_segments(&segments);
    assert_eq!((reading.caption, reading.warnings), (caption, Vec::new()));
}

#[test]
fn nothing_of_a_cameras_block_is_copied() {
    assert_eq!(write(&Caption::default(), &[&camera()], UPRIGHT), Vec::<u8>::new());
    let written = write(&full(), &[&camera()], WITH_GPS);
    assert!(!written.windows(7).any(|window| window == b"hemligt"));
    let blocks = ExifBlocks::parse(&[&written[10..]], &mut Vec::new());
    for tag in [Tag::Make, Tag::ISOSpeed, Tag::FNumber, Tag::MakerNote, Tag::BodySerialNumber] {
        assert!(blocks.field(tag).is_none(), "{tag}");
    }
    assert!(blocks.field(Tag::GPSLatitude).is_some());
}

#[test]
fn the_exif_time_is_that_of_the_caption_and_not_of_the_original() {
    let created = Some("2026-03-02T09:15:00.25+01:00".to_owned());
    let written = write(&Caption { created, ..full() }, &[&camera()], UPRIGHT);
    let blocks = ExifBlocks::parse(&[&written[10..]], &mut Vec::new());
    assert_eq!(blocks.text(Tag::DateTimeOriginal), "2026:03:02 09:15:00");
    assert_eq!(blocks.text(Tag::OffsetTimeOriginal), "+01:00");
    assert_eq!(blocks.text(Tag::SubSecTimeOriginal), "25");
    let written = write(&Caption { created: None, ..full() }, &[&camera()], UPRIGHT);
    let blocks = ExifBlocks::parse(&[&written[10..]], &mut Vec::new());
    assert!(blocks.field(Tag::DateTimeOriginal).is_none());
}

#[test]
fn any_caption_writes_one_block_of_each_kind() {
    for (_, text) in crate::texts(&mut full()) {
        let mut caption = Caption { uri: "urn:x".into(), ..Caption::default() };
        caption.city.clone_from(text);
        let jpeg = file(&write(&caption, &[&camera(), &camera()], UPRIGHT));
        let header = JpegHeader::parse(&jpeg, &LIMITS).expect("a sample");
        let markers: Vec<u8> = header.metadata().map(|segment| segment.marker).collect();
        assert_eq!(markers, [0xE1, 0xE1, 0xED]);
        assert_eq!((header.exif(&jpeg).len(), header.xmp(&jpeg).is_some()), (1, true));
    }
}

#[test]
fn the_gps_position_is_written_only_when_it_is_kept() {
    let caption = Caption { position: Some((-33.856784, 151.215297)), ..full() };
    assert_eq!(read_segments(&write(&caption, &[&camera()], UPRIGHT)).caption.position, None);
    let near = |reading: FileMetadata, (latitude, longitude): (f64, f64)| {
        let (a, b) = reading.caption.position.expect("a position");
        assert!((a - latitude).abs() < 1e-9 && (b - longitude).abs() < 1e-9, "{a} {b}");
    };
    near(read_segments(&write(&caption, &[&camera()], WITH_GPS)), (-33.856784, 151.215297));
    near(read_segments(&write(&full(), &[&camera()], WITH_GPS)), (59.0 + 19.0 / 60.0, -18.05));
    let same = read_segments(&segment(0xE1, &[b"Exif\0\0", &camera()])).caption;
    let written = write(&same, &[&camera()], WITH_GPS);
    let altitude = ExifBlocks::parse(&[&written[10..]], &mut Vec::new());
    assert!(altitude.field(Tag::GPSAltitude).is_some());
    let nowhere = Caption { position: Some((f64::NAN, 200.0)), ..Caption::default() };
    assert_eq!(write(&nowhere, &[], WITH_GPS), Vec::<u8>::new());
}

#[test]
fn gps_tags_around_an_invalid_position_are_not_copied() {
    let high = Value::Rational(vec![Rational { num: 99, denom: 1 }; 3]);
    let original = block(&[
        (Tag::GPSLatitudeRef, In::PRIMARY, ascii("N")),
        (Tag::GPSLatitude, In::PRIMARY, high.clone()),
        (Tag::GPSLongitudeRef, In::PRIMARY, ascii("E")),
        (Tag::GPSLongitude, In::PRIMARY, high),
    ]);
    assert_eq!(write(&Caption::default(), &[&original], WITH_GPS), Vec::<u8>::new());
}

#[test]
fn exif_completes_a_date_without_a_time() {
    let date = Caption { created: Some("2017-02-11".into()), ..Caption::default() };
    let iim = without(b"http", &without(b"Exif", &write(&date, &[], UPRIGHT)));
    assert_eq!(read_segments(&iim).caption.created.as_deref(), Some("2017-02-11T00:00:00"));
    let both = [segment(0xE1, &[b"Exif\0\0", &camera()]), iim].concat();
    let created = read_segments(&both).caption.created;
    assert_eq!(created.as_deref(), Some("2017-02-11T10:15:00+01:00"));
}

#[test]
fn broken_metadata_is_a_warning_for_each_kind() {
    let broken = [
        segment(0xE1, &[b"Exif\0\0MM\0\x2A\0\0\xFF\xFF"]),
        segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0<x>"]),
        segment(0xED, &[b"Photoshop 3.0\08BIM\x04\x04\0\0\0\0\0\x02ii"]),
        segment(0xED, &[b"Photoshop 3.0\0rest"]),
    ];
    let reading = read_segments(&broken.concat());
    assert_eq!(reading.caption, Caption::default());
    assert_eq!(reading.warnings.len(), 4, "{:?}", reading.warnings);
}

#[test]
fn control_characters_are_never_written() {
    let nasty = "a\0b\u{7}c\u{1B}d\u{85}e\u{FFFF}";
    let caption = Caption { headline: nasty.into(), keywords: vec![nasty.into()], ..full() };
    let reading = read_segments(&write(&caption, &[], UPRIGHT));
    assert_eq!(reading.caption.headline, "abcde");
    assert_eq!(reading.caption.keywords, ["abcde"]);
    assert_eq!(reading.warnings, Vec::<String>::new());
}

/// Text without control characters and surrounding blanks: ASCII, Swedish, emoji, CJK.
fn text(bytes: usize) -> impl Strategy<Value = String> {
    let character = prop_oneof![
        proptest::char::range(' ', '~'),
        proptest::sample::select(vec!['å', 'ä', 'ö', 'Å', 'Ä', 'Ö', 'é', 'ø', '–', '”']),
        proptest::sample::select(vec!['😀', '❄', '\u{FE0F}', '👩', '\u{200D}', '🇸']),
        proptest::char::range('一', '龥'),
    ];
    proptest::collection::vec(character, 0..bytes)
        .prop_map(|characters| characters.iter().collect::<String>().trim().to_owned())
}

fn list() -> impl Strategy<Value = Vec<String>> {
    let entry = text(40).prop_filter("an empty entry says nothing", |entry| !entry.is_empty());
    proptest::collection::vec(entry, 0..6)
}

fn created() -> impl Strategy<Value = Option<String>> {
    let offset = proptest::sample::select(vec!["", "Z", "+01:00", "-09:30"]);
    let moment = (1900..2100, 1..=12, 1..=28, 0..24, 0..60, 0..60, offset);
    proptest::option::of(moment.prop_map(|(year, month, day, hour, minute, second, offset)| {
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{offset}")
    }))
}

fn captions() -> impl Strategy<Value = Caption> {
    let texts = proptest::collection::vec(text(60), 19);
    let lists = (list(), list(), list());
    (texts, lists, created(), proptest::option::of(1..=9_u8)).prop_map(
        |(texts, (persons, subject_codes, keywords), created, urgency)| {
            let mut caption = Caption {
                persons,
                subject_codes,
                keywords,
                created,
                urgency,
                ..Caption::default()
            };
            for ((_, place), text) in crate::texts(&mut caption).into_iter().zip(texts) {
                *place = text;
            }
            caption
        },
    )
}

proptest! {
    #[test]
    fn written_metadata_is_read_back(
        caption in captions(),
        orientation in 1..=8_u8,
        gps in any::<bool>(),
    ) {
        let keep = WriteOptions { orientation, gps, picture: None };
        let segments = write(&caption, &[], keep);
        prop_assert_eq!(&segments, &write(&caption, &[], keep));
        let reading = read_segments(&segments);
        prop_assert_eq!(&reading.rights, &rights_of(&caption));
        prop_assert_eq!(reading.caption, caption);
        prop_assert_eq!(reading.orientation, orientation);
        prop_assert_eq!(reading.warnings, Vec::<String>::new());
    }

    #[test]
    fn any_metadata_is_read_and_written_again(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        little in any::<bool>(),
    ) {
        let order: &[u8] = if little { b"II\x2A\0\x08\0\0\0" } else { b"MM\0\x2A\0\0\0\x08" };
        let segments = [
            segment(0xE1, &[b"Exif\0\0", order, &bytes]),
            segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", &bytes]),
            segment(0xED, &[b"Photoshop 3.0\08BIM\x04\x04\0\0\0\0\0\xC8\x1C\x02\x78", &bytes]),
        ];
        let reading = read_segments(&segments.concat());
        write(&reading.caption, &[&[order, &bytes].concat()], WITH_GPS);
    }

    #[test]
    fn changed_metadata_is_read_and_written_again(
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..8),
    ) {
        let mut segments = write(&full(), &[&camera()], WITH_GPS);
        for (at, byte) in changes {
            let at = at % segments.len();
            segments[at] = byte;
        }
        let jpeg = file(&segments);
        if let Ok(header) = JpegHeader::parse(&jpeg, &LIMITS) {
            let reading = read(&header, &jpeg);
            let again = write(&reading.caption, &header.exif(&jpeg), WITH_GPS);
            prop_assert!(JpegHeader::parse(&file(&again), &LIMITS).is_ok());
        }
    }
}
