//! The metadata of an original that a rendition carries on: XMP, IIM in UTF-8 and in Latin-1, Exif, and extended XMP.

use std::fs;

use serde_json::{Value, json};

use super::standard::property;
use super::{PLAIN, Renditions, ask, exiftool, fetch, fixtures, header, json_of};
use crate::common::Server;

/// Properties in IIM: exiftool's tag, the name in the standard, and a text of at most 32 bytes in both encodings.
const IIM: [(&str, &str, &str); 17] = [
    ("ObjectName", "title", "Älvdal i snö"),
    ("SpecialInstructions", "instructions", "Får ej beskäras"),
    ("OriginalTransmissionReference", "jobid", "Jöbb 7"),
    ("Writer-Editor", "captionWriter", "Pål Årud"),
    ("By-lineTitle", "jobtitle", "Fotograf på fältet"),
    ("Headline", "headline", "Räv på isen"),
    ("Caption-Abstract", "description", "En räv går över Ångermanälven."),
    ("By-line", "creatorNames", "Åsa Öberg"),
    ("Credit", "creditLine", "Bildbyrån"),
    ("CopyrightNotice", "copyrightNotice", "© Åsa Öberg"),
    ("Source", "source", "Källa"),
    ("City", "cityName", "Åre"),
    ("Sub-location", "sublocationName", "Torget på ön"),
    ("Province-State", "provinceState", "Jämtlands län"),
    // A number precedes the name.
    ("ObjectAttributeReference", "intellectualGenre", "001:Aktuellt på fältet"),
    ("Country-PrimaryLocationName", "countryName", "Österrike"),
    ("Country-PrimaryLocationCode", "countryCode", "AUT"),
];

/// Properties in Exif.
const EXIF: [(&str, &str, &str); 4] = [
    ("IFD0:Copyright", "copyrightNotice", "(c) Exif"),
    ("IFD0:Artist", "creatorNames", "Exif Photographer"),
    ("IFD0:ImageDescription", "description", "A description in Exif"),
    // Exif 3.0.
    ("ExifIFD:ImageTitle", "title", "A title in Exif"),
];

const RENDITIONS: [&str; 4] =
    [".jpg", "_NormalPreview.jpg", "-fit_w480_NormalPreview.webp", "-crop_w100_h80.avif"];

/// The only entry of a list, or the value itself.
fn single(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([one]) => one,
        _ => value,
    }
}

fn in_iim(encoding: &[&str]) -> Vec<u8> {
    let texts = IIM.map(|(tag, _, text)| format!("-IPTC:{tag}={text}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    exiftool::write(&fixtures::plain(), &[encoding, &texts[..]].concat())
}

fn in_exif() -> Vec<u8> {
    let texts = EXIF.map(|(tag, _, text)| format!("-{tag}={text}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    exiftool::write(&fixtures::plain(), &texts)
}

#[test]
fn iim_in_either_encoding_and_exif_count_where_xmp_says_nothing() {
    let utf_8 = in_iim(&["-IPTC:CodedCharacterSet=UTF8"]);
    let latin_1 = in_iim(&["-charset", "iptc=Latin"]);
    let has = |file: &[u8], part: &[u8]| file.windows(part.len()).any(|window| window == part);
    assert!(has(&utf_8, "Räv".as_bytes()) && has(&latin_1, b"R\xE4v"));
    let pictures = [("utf8", utf_8), ("latin1", latin_1), ("exif", in_exif())];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let renditions = Renditions::new();
    for (id, _) in &pictures {
        renditions.fetch(&server, id, &RENDITIONS);
    }
    let tags = renditions.tags();
    assert_eq!(tags.len(), 3 * RENDITIONS.len());
    for (name, tags) in tags {
        exiftool::is_sound(&name, &tags);
        let expected = if name.starts_with("exif") { &EXIF[..] } else { &IIM[..] };
        for (_, known, text) in expected {
            let (tag, text) = (property(known).xmp, text.trim_start_matches("001:"));
            let found = tags.get(&tag).map(single);
            assert_eq!(found, Some(&json!(text)), "{name} {tag}: {tags:#?}");
        }
    }
}

#[test]
fn xmp_wins_over_iim_and_iim_over_exif_and_a_difference_is_a_warning() {
    let iim = [
        "-IPTC:CodedCharacterSet=UTF8",
        "-IPTC:Writer-Editor=Writer in IIM",
        "-IPTC:ObjectName=Title in IIM",
        "-IPTC:CopyrightNotice=Notice in IIM",
        "-IFD0:Copyright=Notice in Exif",
        "-XMP-dc:Title=Title in XMP",
    ];
    let agreed = ["-IPTC:ObjectName=One title", "-XMP-dc:Title=One title"];
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let file = |name: &str, arguments: &[&str]| {
        let path = server.dir.path().join(name);
        fs::write(&path, exiftool::write(&fixtures::plain(), arguments)).expect("written");
        fixtures::ingest(&server, &path)
    };
    let said = file("differs.jpg", &iim);
    assert!(said.contains("warning"), "{said}");
    let said = file("agrees.jpg", &agreed);
    assert!(!said.contains("warning"), "{said}");
    let renditions = Renditions::new();
    renditions.fetch(&server, "differs", &RENDITIONS);
    for (name, tags) in renditions.tags() {
        let text = |known: &str| single(&tags[&property(known).xmp]).clone();
        assert_eq!(text("title"), "Title in XMP", "{name}");
        assert_eq!(text("captionWriter"), "Writer in IIM", "{name}");
        assert_eq!(text("copyrightNotice"), "Notice in IIM", "{name}");
    }
}

#[test]
fn the_file_of_an_associated_object_says_what_its_renditions_carry() {
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let story = json!({ "headline": "A story", "associations": { "a000": {
        "uri": "http://elsewhere.example/media/image/not-here", "type": "picture",
        "headline": "Its photograph",
    }}});
    let folder = server.dir.path().join("text/story");
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("item.json"), story.to_string()).expect("written");
    fs::write(folder.join("a000_NormalHires.jpg"), fixtures::reference()).expect("written");
    fixtures::ingest(&server, &folder);
    let renditions = Renditions::new();
    for name in ["NormalHires.jpg", "NormalPreview.jpg", "NormalPreview.webp"] {
        let path = format!("/media/text/story/a000_{name}");
        renditions.add(name, &fetch(&server, &path));
    }
    for (name, tags) in renditions.tags() {
        let made = format!("{}softwareImage", super::SOURCE_TYPES);
        assert_eq!(tags[super::SOURCE_TYPE_TAG], made, "{name}");
        assert_eq!(tags["XMP-photoshop:Headline"], "Its photograph", "{name}");
        assert_eq!(tags[&property("licensors").xmp].as_array().map(Vec::len), Some(2), "{name}");
        assert_eq!(tags[&property("maxAvailWidth").xmp], 1600, "{name}");
    }
    let metadata = "/media/text/story.metadata.json";
    let first = fetch(&server, metadata);
    let document: Value = serde_json::from_slice(&first).expect("JSON");
    assert_eq!(document["headline"], "A story");
    let associations = document["associations"].as_object().expect("an object");
    assert_eq!(associations.len(), 1, "{document:#}");
    assert_eq!(associations["a000"]["headline"], "Its photograph");
    assert_eq!(associations["a000"]["maxAvailWidth"], 1600);
    assert_eq!(fetch(&server, metadata), first, "kept after the first request");
    // Unlike those of documents with links, its bytes depend on the item alone.
    assert_ne!(header(&ask(&server, metadata), "last-modified"), "");
}

#[test]
fn instructions_that_the_document_does_not_have_are_not_passed_on() {
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let note = "Ring Änna före publicering";
    let [xmp, iim] = ["-XMP-photoshop:Instructions", "-IPTC:SpecialInstructions"]
        .map(|tag| format!("{tag}={note}"));
    let jpeg = exiftool::write(&fixtures::plain(), &["-IPTC:CodedCharacterSet=UTF8", &iim, &xmp]);
    let documents = [
        ("same", json!({ "headline": "The same note", "ednote": note })),
        ("other", json!({ "headline": "Another note", "ednote": "Not in Norway" })),
        ("none", json!({ "headline": "No note" })),
    ];
    let expected = [Some(note), Some("Not in Norway"), None];
    let renditions = Renditions::new();
    for ((id, document), expected) in documents.iter().zip(expected) {
        let key = format!("image/{id}");
        fixtures::ingest(&server, &fixtures::folder(server.dir.path(), &key, document, &jpeg));
        renditions.fetch(&server, id, &RENDITIONS);
        let metadata = json_of(&server, &format!("/media/{key}.metadata.json"));
        assert_eq!(metadata.get("instructions").and_then(Value::as_str), expected, "{id}");
    }
    for (name, tags) in renditions.tags() {
        let at = documents.iter().position(|(id, _)| name.starts_with(id)).expect("a photograph");
        let found = tags.get("XMP-photoshop:Instructions").and_then(Value::as_str);
        assert_eq!(found, expected[at], "{name}");
    }
    for (name, bytes) in renditions.bytes() {
        let has_note = bytes.windows(note.len()).any(|part| part == note.as_bytes());
        assert_eq!(has_note, name.starts_with("same"), "{name}");
    }
}

#[test]
fn every_language_of_a_text_is_carried() {
    let texts = "<Iptc4xmpCore:AltTextAccessibility><rdf:Alt>\
        <rdf:li xml:lang='x-default'>A fox on the ice</rdf:li>\
        <rdf:li xml:lang='sv'>En räv på isen</rdf:li>\
        <rdf:li xml:lang='de-AT'>Ein Fuchs auf dem Eis</rdf:li>\
        </rdf:Alt></Iptc4xmpCore:AltTextAccessibility>";
    let pictures = [("fox", fixtures::with_xmp(&fixtures::plain(), texts))];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let renditions = Renditions::new();
    renditions.fetch(&server, "fox", &RENDITIONS);
    let tag = property("altTextAccessibility").xmp;
    for (name, tags) in renditions.tags() {
        assert_eq!(tags[&tag], "A fox on the ice", "{name}");
        assert_eq!(tags[&format!("{tag}-sv")], "En räv på isen", "{name}");
        assert_eq!(tags[&format!("{tag}-de-AT")], "Ein Fuchs auf dem Eis", "{name}");
    }
}

#[test]
fn properties_in_extended_xmp_are_carried() {
    let guid = "0123456789ABCDEF0123456789ABCDEF";
    let note = format!(
        "<xmpNote:HasExtendedXMP xmlns:xmpNote='http://ns.adobe.com/xmp/note/'>{guid}</xmpNote:HasExtendedXMP>"
    );
    let main = fixtures::ai_made("trainedAlgorithmicMedia", "DMI-PROHIBITED") + &note;
    let prompt = "A long prompt. ".repeat(200);
    let extension = fixtures::packet(&format!(
        "<Iptc4xmpExt:AIPromptInformation>{prompt}</Iptc4xmpExt:AIPromptInformation>"
    ));
    let total = u32::try_from(extension.len()).expect("small").to_be_bytes();
    let signature = b"http://ns.adobe.com/xmp/extension/\0".as_slice();
    let chunk = [signature, guid.as_bytes(), &total, &[0; 4], extension.as_bytes()].concat();
    let jpeg = crate::common::pictures::with_segment(&fixtures::plain(), 0xE1, &chunk);
    let pictures = [("long", fixtures::with_xmp(&jpeg, &main))];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let renditions = Renditions::new();
    renditions.fetch(&server, "long", &RENDITIONS);
    for (name, tags) in renditions.tags() {
        exiftool::is_sound(&name, &tags);
        assert_eq!(tags[&property("aIPromptInformation").xmp], prompt.trim(), "{name}");
        let made = format!("{}trainedAlgorithmicMedia", super::SOURCE_TYPES);
        assert_eq!(tags[super::SOURCE_TYPE_TAG], made, "{name}");
    }
}
