//! Tests of XMP as other programs write it.

use proptest::prelude::*;

use crate::xmp_write::{PACKET_BYTES_MAX, SEGMENT_PACKET_BYTES_MAX};
use crate::{
    Caption, EmbeddedMetadata, FileMetadata, RightsMetadata, build_embedded, read, write,
};
use crate::{LIST_ENTRIES_MAX, WriteOptions};
use jpeg::header::JpegHeader;
use jpeg::rewrite::segment;
use jpeg::samples::{LIMITS, file};

const NAMESPACES: &str = r#"xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:ps="http://ns.adobe.com/photoshop/1.0/"
    xmlns:plus="http://ns.useplus.org/ldf/xmp/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/"
    xmlns:ext="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
    xmlns:xmpNote="http://ns.adobe.com/xmp/note/""#;

const UPRIGHT: WriteOptions = WriteOptions { orientation: 1, gps: false, picture: None };

fn xmp(packet: &[u8]) -> Vec<u8> {
    segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", packet])
}

fn read_segments(segments: &[u8]) -> FileMetadata {
    let jpeg = file(segments);
    read(&JpegHeader::parse(&jpeg, &LIMITS).expect("a sample"), &jpeg)
}

/// Reads a packet with attributes and children of one `rdf:Description`.
fn read_xmp(attributes: &str, children: &str) -> FileMetadata {
    let packet = format!(
        "<?xpacket begin='\u{FEFF}'?><x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF {NAMESPACES}>\
         <rdf:Description rdf:about='' {attributes}>{children}</rdf:Description></rdf:RDF>\
         </x:xmpmeta>\n   \n<?xpacket end='w'?>"
    );
    read_segments(&xmp(packet.as_bytes()))
}

fn check(attributes: &str, children: &str, expected: Caption) {
    let reading = read_xmp(attributes, children);
    assert_eq!((reading.caption, reading.warnings), (expected, Vec::<String>::new()));
}

#[test]
fn properties_are_attributes_or_elements() {
    let city = Caption { city: "Åre & Östersund".into(), ..Caption::default() };
    check("ps:City='Åre &amp; Östersund'", "", city.clone());
    check("", "<ps:City> Åre &#38; &#xD6;stersund </ps:City>", city.clone());
    check("", "<ps:City><![CDATA[Åre & Östersund]]></ps:City>", city.clone());
    check("", "<ps:City rdf:resource='Åre &amp; Östersund'/>", city.clone());
    check(
        "",
        "<ps:City><rdf:Description><rdf:value>Åre &amp; Östersund</rdf:value><q/></rdf:Description></ps:City>",
        city,
    );
}

#[test]
fn prefixes_are_arbitrary_and_namespaces_are_significant() {
    let reading = read_xmp("xmlns:p='http://ns.adobe.com/photoshop/1.0/' p:City='Åre'", "");
    assert_eq!(reading.caption.city, "Åre");
    let reading = read_xmp("xmlns:ps='http://example.com/' ps:City='Åre'", "<City>Åre</City>");
    assert_eq!(reading.caption, Caption::default());
}

#[test]
fn the_default_language_wins_then_the_first() {
    let texts = |languages: [&str; 2]| {
        let entries = languages.map(|l| format!("<rdf:li xml:lang='{l}'>{l}</rdf:li>")).concat();
        read_xmp("", &format!("<dc:title><rdf:Alt>\n{entries}\n</rdf:Alt></dc:title>"))
            .caption
            .title
    };
    assert_eq!(texts(["sv-SE", "X-Default"]), "X-Default");
    assert_eq!(texts(["sv-SE", "en"]), "sv-SE");
}

#[test]
fn lists_keep_their_order() {
    let lists = "<dc:subject><rdf:Bag><rdf:li>snö</rdf:li><rdf:li/><rdf:li>is</rdf:li></rdf:Bag></dc:subject>\
         <dc:creator><rdf:Seq><rdf:li>Ann Ek</rdf:li><rdf:li>Bo Ek</rdf:li></rdf:Seq></dc:creator>\
         <ext:PersonInImage>Cia Ek</ext:PersonInImage>";
    let expected = Caption {
        keywords: vec!["snö".into(), "is".into()],
        byline: "Ann Ek, Bo Ek".into(),
        persons: vec!["Cia Ek".into()],
        ..Caption::default()
    };
    check("", lists, expected);
}

#[test]
fn the_copyright_owner_is_read_out_of_its_structure() {
    let name = "<plus:CopyrightOwnerID>7</plus:CopyrightOwnerID>\
                <plus:CopyrightOwnerName>Ek Bild</plus:CopyrightOwnerName>";
    for entry in [
        format!("<rdf:li rdf:parseType='Resource'>{name}</rdf:li>"),
        format!("<rdf:li><rdf:Description>{name}</rdf:Description></rdf:li>"),
        "<rdf:li plus:CopyrightOwnerID='7' plus:CopyrightOwnerName='Ek Bild'/>".to_owned(),
    ] {
        let expected = Caption { copyright_holder: "Ek Bild".into(), ..Caption::default() };
        let children =
            format!("<plus:CopyrightOwner><rdf:Seq>{entry}</rdf:Seq></plus:CopyrightOwner>");
        check("", &children, expected);
    }
}

#[test]
fn a_position_needs_both_coordinates() {
    let position = |attributes| read_xmp(attributes, "").caption.position;
    let both = position("exif:GPSLatitude='59,19.5N' exif:GPSLongitude='18,4,30W'");
    assert_eq!(both, Some((59.325, -18.075)));
    assert_eq!(position("exif:GPSLatitude='59,19.5N'"), None);
    assert_eq!(position("exif:GPSLatitude='99,0N' exif:GPSLongitude='18,4E'"), None);
    assert_eq!(position("exif:GPSLatitude='infN' exif:GPSLongitude='18,4E'"), None);
}

#[test]
fn extended_xmp_fills_what_the_main_packet_lacks() {
    let guid = "0123456789ABCDEF0123456789ABCDEF";
    let packet = |attributes: &str| {
        format!("<rdf:RDF {NAMESPACES}><rdf:Description {attributes}/></rdf:RDF>").into_bytes()
    };
    let main = packet(&format!("xmpNote:HasExtendedXMP='{guid}' ps:City='Åre'"));
    let extended = packet("ps:City='Umeå' ps:Headline='Snö'");
    let length = u32::try_from(extended.len()).expect("small").to_be_bytes();
    let signature = b"http://ns.adobe.com/xmp/extension/\0";
    let part = segment(0xE1, &[signature, guid.as_bytes(), &length, &[0; 4], &extended]);
    let reading = read_segments(&[xmp(&main), part].concat());
    assert_eq!(reading.caption.city, "Åre");
    assert_eq!(reading.caption.headline, "Snö");
}

#[test]
fn fields_before_the_damage_are_kept() {
    for (children, warning) in [
        ("<ps:City>Åre</ps:City><ps:Headline>x</ps:City>", "not well-formed"),
        ("<ps:City>Åre</ps:City><a>&lol;</a><ps:Source>&lol;</ps:Source>", "entity"),
        (&format!("<ps:City>Åre</ps:City>{}", "<q>".repeat(100)), "nested deeper"),
    ] {
        let reading = read_xmp("", children);
        assert_eq!(reading.caption.city, "Åre");
        assert!(reading.warnings.iter().any(|w| w.contains(warning)), "{:?}", reading.warnings);
    }
}

#[test]
fn too_many_names_are_refused_and_long_histories_are_not() {
    let extended = |children: &str| {
        let guid = "0123456789ABCDEF0123456789ABCDEF";
        let packet = |attributes: &str, children: &str| {
            format!(
                "<rdf:RDF {NAMESPACES}><rdf:Description {attributes}>{children}</rdf:Description></rdf:RDF>"
            )
        };
        let mut segments = xmp(packet(&format!("xmpNote:HasExtendedXMP='{guid}'"), "").as_bytes());
        let packet = packet("", children);
        let length = u32::try_from(packet.len()).expect("small");
        for (index, part) in packet.as_bytes().chunks(60_000).enumerate() {
            let offset = u32::try_from(index * 60_000).expect("small");
            let numbers = [length.to_be_bytes(), offset.to_be_bytes()].concat();
            let signature = b"http://ns.adobe.com/xmp/extension/\0";
            segments.extend(segment(0xE1, &[signature, guid.as_bytes(), &numbers, part]));
        }
        read_segments(&segments)
    };
    let many = "<a/>".repeat(20_001);
    let reading = extended(&format!("<ps:City>Åre</ps:City>{many}<ps:Source>x</ps:Source>"));
    assert_eq!((reading.caption.city.as_str(), reading.caption.source.as_str()), ("Åre", ""));
    assert_eq!(reading.warnings, ["xmp has more than 20000 names"]);
    let reading = extended(&format!("<History>{many}</History><ps:City>Åre</ps:City>"));
    assert_eq!((reading.caption.city.as_str(), reading.warnings.len()), ("Åre", 0));
}

#[test]
fn a_document_type_definition_is_refused() {
    let packet = format!(
        "<!DOCTYPE r [<!ENTITY a 'aaaa'>]><rdf:RDF {NAMESPACES}><rdf:Description ps:City='&a;'/>\
         </rdf:RDF>"
    );
    let reading = read_segments(&xmp(packet.as_bytes()));
    assert_eq!(reading.caption, Caption::default());
    assert_eq!(reading.warnings, ["xmp has a document type definition"]);
}

#[test]
fn latin1_in_a_packet_is_a_warning() {
    let packet = format!(
        "<rdf:RDF {NAMESPACES}><rdf:Description ps:City='Kiruna' ps:Source='\u{1}'/></rdf:RDF>"
    );
    let packet: Vec<u8> = packet.bytes().map(|b| if b == 1 { 0xE5 } else { b }).collect();
    let reading = read_segments(&xmp(&packet));
    assert_eq!(reading.caption.city, "Kiruna");
    assert_eq!(reading.warnings, ["xmp is not valid utf-8"]);
}

#[test]
fn lists_are_capped() {
    let entries = "<rdf:li>x</rdf:li>".repeat(LIST_ENTRIES_MAX + 5);
    let reading = read_xmp("", &format!("<dc:subject><rdf:Bag>{entries}</rdf:Bag></dc:subject>"));
    assert_eq!(reading.caption.keywords.len(), LIST_ENTRIES_MAX);
}

/// The segments of a file with this caption.
fn segments(caption: &Caption) -> Vec<u8> {
    write(caption, &RightsMetadata::default(), &[], UPRIGHT)
}

/// The caption that remains after it is written to XMP and read back.
fn written(caption: &Caption) -> Caption {
    let embedded = build_embedded(caption, &RightsMetadata::default(), &[], UPRIGHT);
    assert!(embedded.xmp.len() <= PACKET_BYTES_MAX, "{}", embedded.xmp.len());
    let reading = read_segments(&segments(caption));
    assert_eq!(reading.warnings, Vec::<String>::new());
    assert_eq!(embedded.split_xmp.is_some(), embedded.xmp.len() > SEGMENT_PACKET_BYTES_MAX);
    reading.caption
}

#[test]
fn what_does_not_fit_into_a_segment_continues_in_extended_xmp() {
    let keywords: Vec<String> = (0..900).map(|i| format!("{i:04}{}", "å".repeat(60))).collect();
    let caption = Caption { headline: "Snö".into(), keywords, ..Caption::default() };
    assert_eq!(written(&caption), caption);
    let embedded = build_embedded(&caption, &RightsMetadata::default(), &[], UPRIGHT);
    let split = embedded.split_xmp.as_ref().expect("more than a segment");
    let main = String::from_utf8_lossy(&split.main);
    assert!(main.contains("Snö") && !main.contains("dc:subject"), "{main}");
    let jpeg = file(&embedded.jpeg_segments());
    let header = JpegHeader::parse(&jpeg, &LIMITS).expect("a sample");
    let markers: Vec<u8> = header.metadata().map(|segment| segment.marker).collect();
    // Exif, the main packet, two segments of extended XMP, IIM.
    assert_eq!(markers, [0xE1, 0xE1, 0xE1, 0xE1, 0xED]);
}

#[test]
fn excess_keywords_are_dropped_from_the_end() {
    let keywords: Vec<String> = (0..900).map(|i| format!("{i:04}{}", "å".repeat(240))).collect();
    let caption = Caption { headline: "Snö".into(), keywords, ..Caption::default() };
    let kept = written(&caption);
    assert!((400..900).contains(&kept.keywords.len()), "{}", kept.keywords.len());
    assert_eq!(kept.keywords, caption.keywords[..kept.keywords.len()]);
    assert_eq!(kept.headline, "Snö");
}

#[test]
fn the_description_is_truncated_last() {
    let caption = Caption {
        description: "<å>&".repeat(20_000),
        instructions: "&".repeat(50_000),
        keywords: vec!["k".into()],
        ..Caption::default()
    };
    let xmp = build_embedded(&caption, &RightsMetadata::default(), &[], UPRIGHT).xmp;
    let xmp = String::from_utf8(xmp).expect("UTF-8");
    assert!((PACKET_BYTES_MAX - 1_500..=PACKET_BYTES_MAX).contains(&xmp.len()), "{}", xmp.len());
    assert!(!xmp.contains("dc:subject"));
    assert!(xmp.contains(&format!(">{}</photoshop:Instructions>", "&amp;".repeat(200))));
    let long = Caption { description: "d".repeat(60_000), ..Caption::default() };
    assert_eq!(written(&long), long);
}

#[test]
fn overlong_texts_are_truncated_to_fit() {
    let long = "&".repeat(70_000);
    let mut caption = Caption::default();
    for (_, text) in crate::texts(&mut caption) {
        text.clone_from(&long);
    }
    for (_, list) in crate::lists(&mut caption) {
        *list = vec![long.clone(); 3];
    }
    let kept = written(&caption);
    assert_eq!((kept.headline.len(), kept.usage_terms.len()), (200, 200));
    assert!(JpegHeader::parse(&file(&segments(&caption)), &LIMITS).is_ok());
}

proptest! {
    #[test]
    fn any_packet_is_read(text in "(<[a-z:/?!]{0,6}|>|'|&[a-z#0-9]{0,4};?|<!\\[CDATA\\[|\\PC){0,60}") {
        read_segments(&xmp(text.as_bytes()));
        read_xmp("", &text);
        read_xmp(&text, "");
    }

    #[test]
    fn a_changed_packet_is_read(at in any::<usize>(), byte in any::<u8>()) {
        let caption = Caption { headline: "Snö".into(), keywords: vec!["is".into()], ..Caption::default() };
        let xmp = build_embedded(&caption, &RightsMetadata::default(), &[], UPRIGHT).xmp;
        let embedded = EmbeddedMetadata { xmp, ..EmbeddedMetadata::default() };
        let mut segment = embedded.jpeg_segments();
        let at = 4 + at % (segment.len() - 4);
        segment[at] = byte;
        read_segments(&segment);
    }
}
