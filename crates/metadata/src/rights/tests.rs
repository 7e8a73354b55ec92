//! Tests of properties from XMP, IIM and JSON to the metadata of a file and back.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::member::{Member, NumberKind, ValueKind};
use super::table::PROPERTIES;
use super::{RightsMetadata, values};
use crate::{Caption, EmbeddedMetadata, FileMetadata, WriteOptions, build_embedded, read};
use jpeg::header::JpegHeader;
use jpeg::rewrite::segment;
use jpeg::samples::{LIMITS, file};

const UPRIGHT: WriteOptions = WriteOptions { orientation: 1, gps: false, picture: None };

/// The IPTC's reference packet, which has a value in every property.
const REFERENCE: &str = include_str!("../../tests/data/iptc-reference.xml");

fn read_packet(packet: &str) -> FileMetadata {
    let embedded =
        EmbeddedMetadata { xmp: packet.as_bytes().to_vec(), ..EmbeddedMetadata::default() };
    read_segments(&embedded.jpeg_segments())
}

fn read_segments(segments: &[u8]) -> FileMetadata {
    let jpeg = file(segments);
    read(&JpegHeader::parse(&jpeg, &LIMITS).expect("a sample"), &jpeg)
}

fn read_xmp(children: &str) -> FileMetadata {
    read_packet(&format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'
           xmlns:plus='http://ns.useplus.org/ldf/xmp/1.0/' xmlns:exif='http://ns.adobe.com/exif/1.0/'
           xmlns:core='http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/'
           xmlns:ext='http://iptc.org/std/Iptc4xmpExt/2008-02-29/'>
         <rdf:Description rdf:about=''>{children}</rdf:Description></rdf:RDF>"
    ))
}

fn rights(value: &Value) -> RightsMetadata {
    RightsMetadata::from_json(value).expect("valid rights")
}

#[test]
fn every_carried_property_of_the_reference_is_read() {
    let reading = read_packet(REFERENCE);
    assert_eq!(reading.warnings, Vec::<String>::new());
    for property in PROPERTIES.iter() {
        let name = property.member.name;
        let is_read = reading.rights.get(name).is_some();
        assert_eq!(is_read, property.is_carried(), "{name}");
    }
    let rights = reading.rights.to_json();
    assert_eq!(
        rights["licensors"][1]["licensorUrl"],
        "https://example.com/LicensorURL_2_ref2023.2"
    );
    assert_eq!(rights["altTextAccessibility"].as_object().map(Map::len), Some(2));
    assert_eq!(rights["locationCreated"][0]["gpsLatitude"], 48.275);
    assert_eq!(rights["locationCreated"][0]["gpsAltitude"], 480.0);
    assert_eq!(rights["locationCreated"][0]["gpsAltitudeRef"], 0);
    assert_eq!(rights["modelAges"], json!([25, 27, 30]));
    let person = &rights["personsShown"][0]["characteristics"][0];
    assert_eq!(person["cvId"], "http://example.com/cv/test99/ref2023.2");
    let region = &rights["imageRegion"][2];
    assert_eq!(region["regionBoundary"]["rbVertices"][1], json!({ "rbX": 0.148, "rbY": 0.041 }));
    assert_eq!(
        region["personInImageNames"][0],
        "Person name no 1 in region persspkr1 (ref2023.2)"
    );
    assert_eq!(region["rRole"][0]["identifiers"][1], "https://example.org/rrole/role_ref2023.2-b");
    assert_eq!(reading.caption.province, "Province/State(Core)(ref2023.2)");
    assert_eq!(reading.caption.sublocation, "Sublocation (Core) (ref2023.2)");
}

#[test]
fn every_property_that_is_read_is_written() {
    let reading = read_packet(REFERENCE);
    let segments = crate::write(&reading.caption, &reading.rights, &[], UPRIGHT);
    assert_eq!(segments, crate::write(&reading.caption, &reading.rights, &[], UPRIGHT));
    let again = read_segments(&segments);
    assert_eq!(again, reading);
    let json = serde_json::to_string(&reading.rights).expect("JSON");
    let stored: RightsMetadata = serde_json::from_str(&json).expect("valid");
    assert_eq!(stored, reading.rights);
    assert_eq!(rights(&reading.rights.to_json()), reading.rights);
}

#[test]
fn notations_of_rdf_give_the_same_licensor() {
    let members = "<plus:LicensorName>Ek Bild</plus:LicensorName>\
                   <plus:LicensorURL rdf:resource='https://example.com/'/>";
    let attributes = "plus:LicensorName='Ek Bild' plus:LicensorURL='https://example.com/'";
    let expected = json!([{ "licensorName": "Ek Bild", "licensorUrl": "https://example.com/" }]);
    for entry in [
        format!("<rdf:Seq><rdf:li rdf:parseType='Resource'>{members}</rdf:li></rdf:Seq>"),
        format!(
            "<rdf:Bag><rdf:li><rdf:Description>{members}</rdf:Description></rdf:li></rdf:Bag>"
        ),
        format!("<rdf:Seq><rdf:li {attributes}/></rdf:Seq>"),
        format!("<rdf:Seq><rdf:li><rdf:Description {attributes}/></rdf:li></rdf:Seq>"),
        format!("<rdf:Description>{members}</rdf:Description>"),
    ] {
        let reading = read_xmp(&format!("<plus:Licensor>{entry}</plus:Licensor>"));
        assert_eq!(reading.rights.get("licensors"), Some(&expected), "{entry}");
        assert_eq!(reading.warnings, Vec::<String>::new(), "{entry}");
    }
    let reading =
        read_xmp(&format!("<plus:Licensor rdf:parseType='Resource'>{members}</plus:Licensor>"));
    assert_eq!(reading.rights.get("licensors"), Some(&expected));
}

#[test]
fn qualifiers_are_ignored_and_values_kept() {
    let reading = read_xmp(
        "<plus:DataMining rdf:parseType='Resource'>\
         <rdf:value>http://ns.useplus.org/ldf/vocab/DMI-ALLOWED</rdf:value><plus:Q>x</plus:Q>\
         </plus:DataMining>\
         <ext:EventId><rdf:Bag><rdf:li><rdf:Description><rdf:value>e1</rdf:value></rdf:Description>\
         </rdf:li><rdf:li>e2</rdf:li></rdf:Bag></ext:EventId>",
    );
    assert_eq!(reading.rights.data_mining(), Some("http://ns.useplus.org/ldf/vocab/DMI-ALLOWED"));
    assert_eq!(reading.rights.get("eventId"), Some(&json!(["e1", "e2"])));
}

#[test]
fn the_first_of_two_values_counts() {
    let reading = read_xmp(
        "<ext:AISystemUsed>A</ext:AISystemUsed><ext:AISystemUsed>B</ext:AISystemUsed>\
         <plus:Licensor><rdf:Seq><rdf:li rdf:parseType='Resource'>\
         <plus:LicensorName>A</plus:LicensorName><plus:LicensorName>B</plus:LicensorName>\
         </rdf:li></rdf:Seq></plus:Licensor>",
    );
    assert_eq!(reading.rights.text("aISystemUsed"), Some("A"));
    assert_eq!(reading.rights.licensors()[0].name, Some("A"));
    let expected =
        ["xmp plus:LicensorName is repeated", "xmp Iptc4xmpExt:AISystemUsed is repeated"];
    assert_eq!(reading.warnings, expected);
    let reading = read_xmp("<ext:MaxAvailWidth>wide</ext:MaxAvailWidth>");
    assert_eq!(reading.warnings, ["xmp Iptc4xmpExt:MaxAvailWidth has no valid value"]);
    assert!(reading.rights.is_empty());
}

#[test]
fn terms_have_one_spelling() {
    let base = "http://cv.iptc.org/newscodes/digitalsourcetype/";
    let code = "trainedAlgorithmicMedia";
    for spelling in
        [code.to_owned(), format!("{base}{code}"), format!("https{}{code}", &base[4..])]
    {
        let expected = format!("{base}{code}");
        let set = rights(&json!({ "digitalSourceType": spelling }));
        assert_eq!(set.digital_source_type(), Some(expected.as_str()));
        let xmp = format!("<ext:DigitalSourceType>{spelling}</ext:DigitalSourceType>");
        assert_eq!(read_xmp(&xmp).rights, set);
    }
    // An unknown term of a file is carried, because it says something to a reader.
    let xmp = "<ext:DigitalSourceType>made by AI</ext:DigitalSourceType>";
    let unknown = read_xmp(xmp).rights;
    assert_eq!(unknown.digital_source_type(), Some("made by AI"));
    let json = serde_json::to_string(&unknown).expect("JSON");
    assert_eq!(serde_json::from_str::<RightsMetadata>(&json).expect("valid"), unknown);
}

#[test]
fn languages_are_kept_and_one_is_the_default() {
    let alternative = |entries: &str| {
        let xmp =
            format!("<plus:OtherConstraints><rdf:Alt>{entries}</rdf:Alt></plus:OtherConstraints>");
        read_xmp(&xmp).rights.get("otherConstraints").cloned()
    };
    let found = alternative(
        "<rdf:li xml:lang='sv-SE'>Nej</rdf:li><rdf:li xml:lang='X-Default'>No</rdf:li>\
         <rdf:li xml:lang='SV-se'>Jo</rdf:li><rdf:li xml:lang='\"&gt;'>x</rdf:li>",
    );
    assert_eq!(found, Some(json!({ "x-default": "No", "sv-SE": "Nej" })));
    let found = alternative("<rdf:li xml:lang='sv'>Nej</rdf:li>");
    assert_eq!(found, Some(json!({ "x-default": "Nej", "sv": "Nej" })));
}

fn check_error(value: &Value, expected: &str) {
    let error = RightsMetadata::from_json(value).expect_err("invalid");
    assert_eq!(error.to_string(), expected, "{value}");
}

#[test]
fn err_json_names_the_value() {
    check_error(&json!([]), "/: is not an object");
    check_error(&json!({ "x": 1 }), "x: is not a property of IPTC Photo Metadata 2025.1");
    check_error(
        &json!({ "headline": "x" }),
        "headline: is not a property of rights; the item's document has it",
    );
    check_error(&json!({ "licensors": {} }), "licensors: is not an array");
    check_error(
        &json!({ "licensors": [{ "licensorURL": "x" }] }),
        "licensors/0/licensorURL: is not a member of the structure Licensor",
    );
    check_error(
        &json!({ "licensors": [{ "licensorUrl": 7 }] }),
        "licensors/0/licensorUrl: is not a text",
    );
    check_error(&json!({ "modelAges": [25, 2.5] }), "modelAges/1: is out of range");
    check_error(&json!({ "dataMining": null }), "dataMining: is not a text");
    check_error(
        &json!({ "dataMining": "DMI-FORBIDDEN" }),
        "dataMining: is neither a URI nor a known code of http://ns.useplus.org/ldf/vocab/",
    );
    check_error(&json!({ "usageTerms": { "s v": "x" } }), "usageTerms/s v: is not a language tag");
    check_error(
        &json!({ "usageTerms": "x".repeat(65_537) }),
        "usageTerms: has 65537 bytes, more than 65536",
    );
    check_error(
        &json!({ "eventId": vec!["x"; 1_001] }),
        "eventId: has 1001 entries, more than 1000",
    );
    check_error(
        &json!({ "eventId": vec!["x".repeat(60_000); 5] }),
        "/: has 300000 bytes, more than 262144",
    );
    let nested = json!({ "imageRegion": [{ "imageRegion": [] }] });
    check_error(
        &nested,
        "imageRegion/0/imageRegion: is not a member of the structure ImageRegion",
    );
}

#[test]
fn an_address_that_runs_a_script_is_refused_and_not_read() {
    let problem = "is not an address that begins with http:// or https://";
    for address in [
        "javascript:alert(1)",
        "Java\nScript:x",
        "data:text/html,x",
        "ftp://a.example",
        // A host with a port has the form of a scheme, and browsers read it as one.
        "a.example:8080/licence",
    ] {
        let licensor = json!({ "licensors": [{ "licensorUrl": address }] });
        check_error(&licensor, &format!("licensors/0/licensorUrl: {problem}"));
    }
    check_error(&json!({ "eventId": ["javascript:x"] }), &format!("eventId/0: {problem}"));
    let source = json!({ "digitalSourceType": "javascript:x" });
    check_error(&source, &format!("digitalSourceType: {problem}"));
    let others = json!({
        "licensors": [{ "licensorUrl": "www.example.com/licence" }],
        "eventId": ["urn:example:1", "Event: of a name"],
    });
    assert_eq!(rights(&others).to_json(), others);
    let reading = read_xmp(
        "<plus:Licensor><rdf:Seq><rdf:li plus:LicensorName='A' plus:LicensorURL='javascript:x'/>
         </rdf:Seq></plus:Licensor><ext:DigitalSourceType>javascript:x</ext:DigitalSourceType>
         <ext:EventId><rdf:Bag><rdf:li>javascript:x</rdf:li><rdf:li>urn:x</rdf:li></rdf:Bag></ext:EventId>",
    );
    let expected = json!({ "licensors": [{ "licensorName": "A" }], "eventId": ["urn:x"] });
    assert_eq!(reading.rights.to_json(), expected);
}

#[test]
fn ok_json_is_normalized() {
    let set = rights(&json!({
        "usageTerms": " Editorial\u{0} use\r\n",
        "aISystemUsed": "",
        "licensors": [{ "licensorName": "A" }, {}],
        "eventId": [],
    }));
    let expected = json!({ "usageTerms": { "x-default": "Editorial use" }, "licensors": [{ "licensorName": "A" }] });
    assert_eq!(set.to_json(), expected);
    assert_eq!(set.text("usageTerms"), Some("Editorial use"));
    assert_eq!(set.text("licensors"), None);
    assert!(RightsMetadata::from_json(&json!({})).expect("valid").is_empty());
}

#[test]
fn properties_over_others_take_their_places() {
    let original = rights(&json!({ "dataMining": "DMI-ALLOWED", "eventName": "E" }));
    let set = rights(&json!({ "dataMining": "DMI-PROHIBITED", "aISystemUsed": "S" }));
    let both = original.overlaid(&set);
    let expected = rights(&json!({
        "dataMining": "DMI-PROHIBITED", "eventName": "E", "aISystemUsed": "S",
    }));
    assert_eq!(both, expected);
    assert_eq!(both.to_json().to_string(), expected.to_json().to_string());
    assert_eq!(
        both.without("dataMining"),
        rights(&json!({ "eventName": "E", "aISystemUsed": "S" }))
    );
    assert_eq!(set.without("eventName"), set);
}

#[test]
fn thumbnails_have_a_short_packet_alone() {
    let reading = read_packet(REFERENCE);
    let short = reading.rights.short();
    let names: Vec<String> =
        short.to_json().as_object().expect("object").keys().cloned().collect();
    assert_eq!(names, ["digitalSourceType", "dataMining", "otherConstraints"]);
    let long =
        rights(&json!({ "otherConstraints": { "x-default": "å".repeat(5_000), "sv": "x" } }));
    let cut = json!({ "x-default": "å".repeat(500) });
    assert_eq!(long.short().get("otherConstraints"), Some(&cut));
    let embedded = build_embedded(&Caption::default(), &short, &[], UPRIGHT);
    assert!(embedded.exif.is_empty() && embedded.iim.is_empty());
    assert!(embedded.xmp.len() < 900, "{}", embedded.xmp.len());
    assert_eq!(read_segments(&embedded.jpeg_segments()).rights, short);
}

#[test]
fn a_correction_wins_and_details_that_agree_with_it_are_kept() {
    let rights = rights(&json!({
        "copyrightOwners": [{ "copyrightOwnerId": "7", "copyrightOwnerName": "Ek" }],
        "usageTerms": { "x-default": "Free", "sv": "Fri" },
        "title": "original",
    }));
    let agrees = Caption {
        copyright_holder: "Ek".into(),
        usage_terms: "Free".into(),
        ..Caption::default()
    };
    let all = crate::properties(&agrees, &rights);
    for name in ["copyrightOwners", "usageTerms", "title"] {
        assert_eq!(all.get(name), rights.get(name), "{name}");
    }
    let corrects = Caption {
        copyright_holder: "Ask".into(),
        usage_terms: "Paid".into(),
        title: "corrected".into(),
        ..Caption::default()
    };
    let all = crate::properties(&corrects, &rights);
    assert_eq!(all["copyrightOwners"], json!([{ "copyrightOwnerName": "Ask" }]));
    assert_eq!(all["usageTerms"], json!({ "x-default": "Paid" }));
    assert_eq!(all["title"], json!({ "x-default": "corrected" }));
}

#[test]
fn the_identifier_is_that_of_the_picture_in_every_standard() {
    let rights = rights(&json!({ "digitalImageGuid": "urn:picture" }));
    let caption = Caption { uri: "urn:item".into(), ..Caption::default() };
    let embedded = build_embedded(&caption, &rights, &[], UPRIGHT);
    let xmp = EmbeddedMetadata { iim: Vec::new(), ..embedded.clone() };
    let iim = EmbeddedMetadata { iim: embedded.iim, ..EmbeddedMetadata::default() };
    for standard in [xmp, iim] {
        assert_eq!(read_segments(&standard.jpeg_segments()).caption.uri, "urn:picture");
    }
    let embedded = build_embedded(&caption, &RightsMetadata::default(), &[], UPRIGHT);
    assert_eq!(read_segments(&embedded.jpeg_segments()).caption.uri, "urn:item");
}

#[test]
fn prompts_move_to_extended_xmp_before_rights() {
    let long = "p".repeat(60_000);
    let rights = rights(&json!({
        "digitalSourceType": "trainedAlgorithmicMedia",
        "aIPromptInformation": long,
        "aISystemUsed": "System",
        "altTextAccessibility": "Alt",
    }));
    let caption = Caption { description: "d".repeat(10_000), ..Caption::default() };
    let embedded = build_embedded(&caption, &rights, &[], UPRIGHT);
    let split = embedded.split_xmp.as_ref().expect("more than a segment");
    let main = String::from_utf8_lossy(&split.main);
    assert!(main.contains("digitalsourcetype") && main.contains("System") && main.contains("Alt"));
    assert!(!main.contains("AIPromptInformation"));
    let again = read_segments(&embedded.jpeg_segments());
    assert_eq!((again.rights, again.caption), (rights, caption));
    // Other formats have no limit, and one packet with everything.
    assert!(String::from_utf8_lossy(&embedded.xmp).contains("AIPromptInformation"));
}

#[test]
fn what_is_too_large_in_all_is_cut_in_order() {
    let text = "&".repeat(30_000);
    let rights = rights(&json!({
        "digitalSourceType": "trainedAlgorithmicMedia",
        "dataMining": "DMI-PROHIBITED",
        "aIPromptInformation": text,
        "altTextAccessibility": text,
        "usageTerms": "Terms",
        "licensors": [{ "licensorName": "Ek" }],
    }));
    let embedded = build_embedded(&Caption::default(), &rights, &[], UPRIGHT);
    let again = read_segments(&embedded.jpeg_segments()).rights;
    assert!(again.get("aIPromptInformation").is_none());
    for name in ["digitalSourceType", "dataMining", "altTextAccessibility", "licensors"] {
        assert_eq!(again.get(name), rights.get(name), "{name}");
    }
}

#[test]
fn a_file_with_too_much_loses_prompts_first() {
    let long = "x".repeat(65_000);
    let names =
        ["AIPromptInformation", "AIPromptWriterName", "AISystemUsed", "AISystemVersionUsed"];
    let texts = names.map(|name| format!("<ext:{name}>{long}</ext:{name}>")).concat();
    let alternative = format!("<core:AltTextAccessibility>{long}</core:AltTextAccessibility>");
    let guid = "0123456789ABCDEF0123456789ABCDEF";
    let frame = |children: &str| {
        format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'
               xmlns:core='http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/'
               xmlns:note='http://ns.adobe.com/xmp/note/'
               xmlns:ext='http://iptc.org/std/Iptc4xmpExt/2008-02-29/'>
             <rdf:Description>{children}</rdf:Description></rdf:RDF>"
        )
    };
    let main = frame(&format!("<note:HasExtendedXMP>{guid}</note:HasExtendedXMP>"));
    let extended = frame(&format!("{texts}{alternative}"));
    let mut segments = segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", main.as_bytes()]);
    let length = u32::try_from(extended.len()).expect("small").to_be_bytes();
    for (index, part) in extended.as_bytes().chunks(60_000).enumerate() {
        let offset = u32::try_from(index * 60_000).expect("small").to_be_bytes();
        let signature = b"http://ns.adobe.com/xmp/extension/\0";
        segments.extend(segment(0xE1, &[signature, guid.as_bytes(), &length, &offset, part]));
    }
    let reading = read_segments(&segments);
    assert_eq!(reading.warnings, ["the properties of rights are too large"]);
    assert!(reading.rights.get("aIPromptInformation").is_none());
    assert!(reading.rights.get("altTextAccessibility").is_some());
}

/// IIM with these datasets of record 2, in a Photoshop segment.
fn iim(charset: &[u8], datasets: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let envelope = (!charset.is_empty()).then_some((1, 90, charset));
    let datasets = datasets.iter().map(|(number, value)| (2, *number, *value));
    for (record, number, value) in envelope.into_iter().chain(datasets) {
        bytes.extend([0x1C, record, number]);
        bytes.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
        bytes.extend_from_slice(value);
    }
    let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
    segment(0xED, &[b"Photoshop 3.0\x008BIM\x04\x04\0\0", &length, &bytes])
}

#[test]
fn iim_has_its_carried_properties_in_utf8_and_latin1() {
    let utf8 = iim(
        b"\x1B%G",
        &[
            (4, b"001:Aktuellt"),
            (5, "fjäll".as_bytes()),
            (40, "Får ej beskäras".as_bytes()),
            (85, "Fotograf".as_bytes()),
            (103, "jobb-1".as_bytes()),
            (122, "Åsa Ek".as_bytes()),
            (92, "Södra torget".as_bytes()),
            (95, "Jämtland".as_bytes()),
        ],
    );
    let latin1 = iim(
        b"",
        &[
            (4, b"Aktuellt"),
            (5, b"fj\xE4ll"),
            (40, b"F\xE5r ej besk\xE4ras"),
            (85, b"Fotograf"),
            (103, b"jobb-1"),
            (122, b"\xC5sa Ek"),
            (92, b"S\xF6dra torget"),
            (95, b"J\xE4mtland"),
        ],
    );
    let expected = rights(&json!({
        "title": "fjäll",
        "jobtitle": "Fotograf",
        "jobid": "jobb-1",
        "captionWriter": "Åsa Ek",
        "instructions": "Får ej beskäras",
        "intellectualGenre": "Aktuellt",
    }));
    for segments in [utf8, latin1] {
        let reading = read_segments(&segments);
        assert_eq!(reading.rights, expected);
        assert_eq!(reading.caption.sublocation, "Södra torget");
        assert_eq!(reading.caption.province, "Jämtland");
        let again = crate::write(&reading.caption, &reading.rights, &[], UPRIGHT);
        assert_eq!(read_segments(&again), reading);
    }
}

#[test]
fn what_differs_between_the_standards_is_a_warning() {
    let caption = Caption { title: "xmp".into(), ..Caption::default() };
    let rights = rights(&json!({ "captionWriter": "A long name that IIM cuts after 32 bytes" }));
    let xmp = build_embedded(&caption, &rights, &[], UPRIGHT).xmp;
    let xmp = EmbeddedMetadata { xmp, ..EmbeddedMetadata::default() }.jpeg_segments();
    let iim = iim(b"", &[(5, b"secret"), (122, b"A long name that IIM cuts after")]);
    let reading = read_segments(&[xmp, iim].concat());
    assert_eq!(reading.warnings, ["title differs between xmp and iim"]);
    assert_eq!((reading.caption, reading.rights.text("title")), (caption, Some("xmp")));
}

#[test]
fn nothing_outside_the_table_survives() {
    let secrets = "
        <photoshop:History xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/'>SECRET</photoshop:History>
        <xmpMM:DocumentID xmlns:xmpMM='http://ns.adobe.com/xap/1.0/mm/'>SECRET</xmpMM:DocumentID>
        <xmpMM:History xmlns:xmpMM='http://ns.adobe.com/xap/1.0/mm/'><rdf:Seq><rdf:li
          rdf:parseType='Resource'><plus:LicensorName>SECRET</plus:LicensorName></rdf:li></rdf:Seq>
          </xmpMM:History>
        <crs:RawFileName xmlns:crs='http://ns.adobe.com/camera-raw-settings/1.0/'>SECRET</crs:RawFileName>
        <aux:SerialNumber xmlns:aux='http://ns.adobe.com/exif/1.0/aux/'>SECRET</aux:SerialNumber>
        <mwg:Regions xmlns:mwg='http://www.metadataworkinggroup.com/schemas/regions/'>SECRET</mwg:Regions>
        <xmp:Rating xmlns:xmp='http://ns.adobe.com/xap/1.0/'>4711</xmp:Rating>
        <exif:UserComment>SECRET</exif:UserComment>
        <exif:GPSLatitude>47,11N</exif:GPSLatitude><exif:GPSLongitude>47,11E</exif:GPSLongitude>
        <ext:Unknown>SECRET</ext:Unknown>
        <plus:Licensor><rdf:Seq><rdf:li rdf:parseType='Resource'><plus:LicensorName>Ek</plus:LicensorName>
          <plus:LicensorNotes>SECRET</plus:LicensorNotes></rdf:li></rdf:Seq></plus:Licensor>";
    let reading = read_xmp(secrets);
    assert_eq!(reading.rights, rights(&json!({ "licensors": [{ "licensorName": "Ek" }] })));
    let embedded = build_embedded(&reading.caption, &reading.rights, &[], UPRIGHT);
    for block in [&embedded.xmp, &embedded.exif, &embedded.iim] {
        let text = String::from_utf8_lossy(block);
        assert!(!text.contains("SECRET") && !text.contains("47,11") && !text.contains("4711"));
    }
}

#[test]
fn hostile_packets_are_read_in_bounds() {
    let deep = format!("<plus:Licensor>{}x", "<rdf:Seq><rdf:li>".repeat(1_000));
    assert!(read_xmp(&deep).warnings.iter().any(|warning| warning.contains("nested deeper")));
    let many = "<rdf:li>x</rdf:li>".repeat(2_000);
    let reading = read_xmp(&format!("<ext:EventId><rdf:Bag>{many}</rdf:Bag></ext:EventId>"));
    let events = reading.rights.get("eventId").and_then(Value::as_array).expect("a list");
    assert_eq!(events.len(), 1_000);
    let bomb = "<ext:AISystemUsed>&lol;&lol;</ext:AISystemUsed>".repeat(500);
    let reading = read_xmp(&bomb);
    assert!(reading.rights.is_empty());
    assert_eq!(reading.warnings, ["xmp refers to an unknown entity"]);
    let region = "<ext:ImageRegion><rdf:Bag><rdf:li rdf:parseType='Resource'>".repeat(5);
    assert!(read_xmp(&region).rights.is_empty());
}

#[test]
fn coordinates_round_trip() {
    for degrees in [0.0, 59.325, -33.856_784, 48.999_999_999, -0.000_001, 90.0] {
        let value = Value::from(degrees);
        let printed = values::print_number(NumberKind::Latitude, &value);
        let parsed =
            values::parse_xmp(ValueKind::Number(NumberKind::Latitude), &printed).expect(&printed);
        let parsed = parsed.as_f64().expect("a number");
        assert!((parsed - degrees).abs() < 1e-8, "{degrees} {printed} {parsed}");
    }
    let printed = values::print_number(NumberKind::Latitude, &json!(48.275));
    assert_eq!(printed, "48,16.5N");
    assert_eq!(values::print_number(NumberKind::Longitude, &json!(-0.999_999_999_9)), "1,0W");
    assert_eq!(values::print_number(NumberKind::Altitude, &json!(480.0)), "480/1");
    assert_eq!(values::print_number(NumberKind::Altitude, &json!(1.25)), "1250/1000");
    assert_eq!(values::parse_xmp(ValueKind::Number(NumberKind::Altitude), "1/0"), None);
    assert_eq!(values::parse_xmp(ValueKind::Number(NumberKind::Decimal), "NaN"), None);
    assert_eq!(values::parse_xmp(ValueKind::Number(NumberKind::Integer), "-1"), None);
}

fn any_number(kind: NumberKind) -> BoxedStrategy<Value> {
    match kind {
        NumberKind::Integer => (0..100_u64).prop_map(Value::from).boxed(),
        NumberKind::Decimal => (-1e6..1e6_f64).prop_map(Value::from).boxed(),
        // Sixtieths of a degree are written without rounding.
        NumberKind::Latitude | NumberKind::Longitude => {
            (-80..80_i32).prop_map(|whole| Value::from(f64::from(whole))).boxed()
        }
        NumberKind::Altitude => (0..9_000_u32).prop_map(|px| Value::from(f64::from(px))).boxed(),
    }
}

/// A value of a member, with every member of its structures.
fn any_value(member: &'static Member, regions: bool) -> BoxedStrategy<Value> {
    let text = "[a-zåäö<&\"' ]{0,12}[a-z]";
    let single = match member.kind {
        ValueKind::Text
        | ValueKind::Uri
        | ValueKind::Url
        | ValueKind::DateTime
        | ValueKind::Vocabulary(_) => {
            text.prop_map(|text: String| Value::from(text.trim())).boxed()
        }
        ValueKind::AltLang => (text, proptest::option::of(text))
            .prop_map(|(default, other)| {
                let mut texts = json!({ "x-default": default.trim() });
                if let Some(other) = other {
                    texts["sv-SE"] = other.trim().into();
                }
                texts
            })
            .boxed(),
        ValueKind::Number(kind) => any_number(kind),
        ValueKind::Structure(structure) => {
            let members: Vec<&Member> = structure.members().collect();
            let members = members.into_iter().filter(|_| regions || !structure.any_property());
            let pairs: Vec<BoxedStrategy<(String, Value)>> = members
                .map(|member| {
                    any_value(member, false)
                        .prop_map(|value| (member.name.to_owned(), value))
                        .boxed()
                })
                .collect();
            pairs.prop_map(|pairs| Value::Object(pairs.into_iter().collect())).boxed()
        }
    };
    if member.many.is_some() {
        proptest::collection::vec(single, 1..3).prop_map(Value::Array).boxed()
    } else {
        single
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_value_of_any_property_is_read_back(
        values in PROPERTIES
            .iter()
            .filter(|property| property.is_carried())
            .map(|property| any_value(&property.member, true))
            .collect::<Vec<_>>(),
        skip in 0..12_usize,
    ) {
        let names = PROPERTIES.iter().filter(|property| property.is_carried());
        let pairs = names.zip(values).enumerate().filter(|(at, _)| skip == 0 || at % skip != 0);
        let object = pairs.map(|(_, (property, value))| (property.member.name.to_owned(), value));
        let object = Value::Object(object.collect());
        // Codes of vocabularies are not checked, as when a record is loaded.
        let rights: RightsMetadata = serde_json::from_value(object).expect("valid");
        let segments = crate::write(&Caption::default(), &rights, &[], UPRIGHT);
        let again = read_segments(&segments);
        prop_assert_eq!(again.rights, rights);
        prop_assert_eq!(again.warnings, Vec::<String>::new());
    }
}

proptest! {
    #[test]
    fn a_changed_reference_is_read_and_written_again(
        changes in proptest::collection::vec((any::<usize>(), 0..12_usize), 1..6),
    ) {
        let mut packet = REFERENCE.to_owned();
        for (at, what) in changes {
            let at = packet.floor_char_boundary(at % packet.len());
            let end = packet.ceil_char_boundary((at + what * 3).min(packet.len()));
            let texts = ["", "<", ">", "/>", "&amp;", "'", "\n", "\t", "1", ",", "12:x; ", "\u{FFFF}"];
            packet.replace_range(at..end, texts[what]);
        }
        let reading = read_packet(&packet);
        let segments = crate::write(&reading.caption, &reading.rights, &[], UPRIGHT);
        let again = read_segments(&segments);
        prop_assert_eq!(&again.warnings, &Vec::<String>::new());
        prop_assert_eq!(again.caption, reading.caption);
        let json = reading.rights.to_json().to_string();
        let stored: RightsMetadata = serde_json::from_str(&json).expect("valid");
        prop_assert_eq!(&stored, &reading.rights);
        let names = |rights: &RightsMetadata| {
            rights.to_json().as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(names(&again.rights), names(&reading.rights));
    }
}
