//! Metadata that is larger than a segment: what is shortened first, and what never.

use serde_json::Value;

use super::exiftool::{self, Tags};
use super::fixtures::{self, alternative};
use super::standard::property;
use super::{PLAIN, Renditions, SOURCE_TYPES};
use crate::common::{Server, pictures::with_segment};

/// Bytes of a chunk of extended XMP (XMP part 3 §1.1.3.1).
const CHUNK_BYTES: usize = 65_400;
const GUID: &str = "0123456789ABCDEF0123456789ABCDEF";

/// The JPEG with extended XMP of these properties.
fn with_extended_xmp(jpeg: &[u8], properties: &str) -> Vec<u8> {
    let packet = fixtures::packet(properties);
    let number = |number: usize| u32::try_from(number).expect("small").to_be_bytes();
    let chunks: Vec<&[u8]> = packet.as_bytes().chunks(CHUNK_BYTES).collect();
    let mut jpeg = jpeg.to_vec();
    for (at, chunk) in chunks.iter().enumerate().rev() {
        let head = [b"http://ns.adobe.com/xmp/extension/\0".as_slice(), GUID.as_bytes()].concat();
        let place = [number(packet.len()), number(at * CHUNK_BYTES)].concat();
        jpeg = with_segment(&jpeg, 0xE1, &[head.as_slice(), &place, chunk].concat());
    }
    jpeg
}

/// The texts of a photograph, which are longer than any segment together, by property.
fn texts() -> [(&'static str, String); 3] {
    [
        ("aIPromptInformation", "A prompt of many words. ".repeat(2700).trim().to_owned()),
        ("extDescrAccessibility", "A description in detail. ".repeat(2400).trim().to_owned()),
        ("usageTerms", "Terms of use, one by one. ".repeat(1100).trim().to_owned()),
    ]
}

/// A photograph with these texts; its description is there in so many languages.
fn photograph(languages: usize) -> Vec<u8> {
    let [(_, prompt), (_, description), (_, terms)] = texts();
    let main = fixtures::ai_made("trainedAlgorithmicMedia", "DMI-PROHIBITED-AIMLTRAINING")
        + &format!(
            "<xmpNote:HasExtendedXMP xmlns:xmpNote='http://ns.adobe.com/xmp/note/'>{GUID}\
             </xmpNote:HasExtendedXMP>"
        )
        + &alternative("xmpRights:UsageTerms", &terms)
        + "<xmpRights:WebStatement>https://agency.example/rights</xmpRights:WebStatement>";
    let others = ["sv", "de", "nb", "fi", "da"].iter().take(languages - 1);
    let others = others.map(|tag| format!("<rdf:li xml:lang='{tag}'>{description}</rdf:li>"));
    let descriptions = format!(
        "<rdf:li xml:lang='x-default'>{description}</rdf:li>{}",
        others.collect::<String>()
    );
    let more = format!(
        "<Iptc4xmpExt:AIPromptInformation>{prompt}</Iptc4xmpExt:AIPromptInformation>\
         <Iptc4xmpCore:ExtDescrAccessibility><rdf:Alt>{descriptions}</rdf:Alt>\
         </Iptc4xmpCore:ExtDescrAccessibility>"
    );
    fixtures::with_xmp(&with_extended_xmp(&fixtures::plain(), &more), &main)
}

/// The part of a text that a rendition has: all of it, or its beginning.
#[derive(Debug, PartialEq, PartialOrd)]
enum Kept {
    Nothing,
    Part,
    All,
}

#[track_caller]
fn kept(name: &str, tags: &Tags, known: &str, text: &str) -> Kept {
    let Some(found) = tags.get(&property(known).xmp).and_then(Value::as_str) else {
        return Kept::Nothing;
    };
    // A mark may say that the text goes on.
    let start = found.trim_end_matches(['…', '.', ' ']);
    assert!(text.starts_with(start), "{name}: {known} is another text");
    if found == text { Kept::All } else { Kept::Part }
}

/// The first segment of XMP, which every reader knows.
fn standard_packet(jpeg: &[u8]) -> &[u8] {
    let signature = b"http://ns.adobe.com/xap/1.0/\0";
    let found = jpeg.windows(signature.len()).position(|part| part == signature);
    let start = found.expect("XMP");
    let length = u16::from_be_bytes([jpeg[start - 2], jpeg[start - 1]]);
    &jpeg[start..start + usize::from(length) - 2]
}

#[test]
fn prompts_are_shortened_before_descriptions_before_rights_and_the_source_type_never() {
    // Long, too long with its prompt, too long with its description.
    let pictures =
        [("long", photograph(1)), ("longer", photograph(3)), ("longest", photograph(6))];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let renditions = Renditions::new();
    let rests = [
        ".jpg",
        "-crop_w100_h100.jpg",
        "_NormalPreview.jpg",
        "_NormalPreview.webp",
        "-fit_w160.avif",
        "_NormalThumbnail.jpg",
    ];
    for (id, _) in &pictures {
        renditions.fetch(&server, id, &rests);
    }
    let source_type = format!("{SOURCE_TYPES}trainedAlgorithmicMedia");
    for (name, tags) in renditions.tags() {
        exiftool::is_sound(&name, &tags);
        assert_eq!(tags[super::SOURCE_TYPE_TAG], source_type, "{name}");
        let mining = format!("{}DMI-PROHIBITED-AIMLTRAINING", super::PLUS);
        assert_eq!(tags[super::DATA_MINING_TAG], mining, "{name}");
        if name.contains("Thumbnail") {
            continue;
        }
        assert_eq!(tags["XMP-xmpRights:WebStatement"], "https://agency.example/rights", "{name}");
        let kept = texts().map(|(known, text)| kept(&name, &tags, known, &text));
        let [prompt, description, terms] = &kept;
        // What counts more is complete before anything is there of what counts less.
        assert!(*terms == Kept::All, "{name}: {kept:?}");
        assert!(*description == Kept::All || *prompt == Kept::Nothing, "{name}: {kept:?}");
        let id = name.split(['.', '-', '_']).next().unwrap_or_default();
        let is_cut = |kept: &Kept| *kept != Kept::All;
        let expected = match id {
            "long" => [false, false],
            "longer" => [true, false],
            _ => [true, true],
        };
        assert_eq!([prompt, description].map(is_cut), expected, "{name}: {kept:?}");
    }
    for (name, file) in renditions.bytes() {
        if name.ends_with(".jpg") {
            let packet = String::from_utf8_lossy(standard_packet(&file)).into_owned();
            assert!(packet.contains(&source_type), "{name}: not in the standard packet");
            assert!(packet.contains("DMI-PROHIBITED-AIMLTRAINING"), "{name}");
        }
    }
}

#[test]
fn a_long_prompt_leaves_the_caption_of_the_document_whole() {
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let description = "What the picture shows. ".repeat(800).trim().to_owned();
    let document = serde_json::json!({
        "headline": "A picture with a long prompt", "description_text": description,
        "byline": "Åsa Öberg", "copyrightnotice": "© Åsa Öberg",
    });
    let folder = fixtures::folder(server.dir.path(), "image/long", &document, &photograph(3));
    fixtures::ingest(&server, &folder);
    let renditions = Renditions::new();
    renditions.fetch(&server, "long", &[".jpg", "_NormalPreview.jpg", "_NormalPreview.webp"]);
    for (name, tags) in renditions.tags() {
        exiftool::is_sound(&name, &tags);
        assert_eq!(tags["XMP-photoshop:Headline"], "A picture with a long prompt", "{name}");
        assert_eq!(tags["XMP-dc:Description"], description.as_str(), "{name}");
        assert_eq!(tags["XMP-dc:Rights"], "© Åsa Öberg", "{name}");
        let source_type = format!("{SOURCE_TYPES}trainedAlgorithmicMedia");
        assert_eq!(tags[super::SOURCE_TYPE_TAG], source_type, "{name}");
    }
}
