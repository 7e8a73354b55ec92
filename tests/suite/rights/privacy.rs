//! Privacy byte by byte: histories of editing, ids of documents, names of faces, serial numbers and coordinates of
//! originals are in no byte of a rendition or a document.

use std::path::Path;

use serde_json::Value;

use super::fixtures::{self, alternative, bag, entry};
use super::{PLAIN, Renditions, SOURCE_TYPE_TAG, SOURCE_TYPES, exiftool, fetch};
use crate::common::{
    Server, oracle,
    pictures::{Picture, with_segment},
};

/// In every text that no setting lets through.
const NEVER: &str = "zq7-";
/// In every text that only `media.keep_person_details` lets through.
const PERSON: &str = "zq8-";

const RENDITIONS: [&str; 12] = [
    ".jpg",
    "-crop_w200_h150_x5_y5.jpg",
    "-watermark.jpg",
    "-fit_w200.webp",
    "-fit_w200.avif",
    "_NormalPreview.jpg",
    "_NormalPreview.webp",
    "_WatermarkPreview.jpg",
    "_WebPreview.jpg",
    "_NormalThumbnail.jpg",
    "_CroppedThumbnail.webp",
    "_NormalThumbnail.avif",
];

const DOCUMENTS: [&str; 5] =
    [".json", ".metadata.json", ".ninjs.json", ".xml", ".renditions.json"];

/// The property `name` with a text that nothing may show.
fn secret(name: &str) -> String {
    format!("<{name}>{NEVER}{name}</{name}>")
}

/// The properties that editors, cameras and catalogues write into XMP.
fn tool_properties() -> String {
    let names = [
        "xmpMM:DocumentID",
        "xmpMM:InstanceID",
        "xmpMM:OriginalDocumentID",
        "photoshop:History",
        "xmp:CreatorTool",
        "xmp:Label",
        "xmp:Nickname",
        "crs:RawFileName",
        "crs:Version",
        "aux:SerialNumber",
        "aux:OwnerName",
        "aux:LensSerialNumber",
        "exifEX:BodySerialNumber",
        "exifEX:CameraOwnerName",
        "tiff:Model",
        "exif:GPSAreaInformation",
        "exif:UserComment",
    ];
    let texts = names.map(secret).concat();
    let event = entry(&(secret("stEvt:softwareAgent") + &secret("stEvt:instanceID")));
    let history = format!("<xmpMM:History><rdf:Seq>{event}</rdf:Seq></xmpMM:History>");
    let derived = format!(
        "<xmpMM:DerivedFrom rdf:parseType='Resource'>{}</xmpMM:DerivedFrom>",
        secret("stRef:documentID")
    );
    let item = |name: &str| format!("<rdf:li>{NEVER}{name}</rdf:li>");
    let ancestors = bag("photoshop:DocumentAncestors", &item("ancestor"));
    let hierarchy = bag("lr:hierarchicalSubject", &item("People|Family"));
    let position = "<exif:GPSLatitude>63,25.93171N</exif:GPSLatitude>\
        <exif:GPSLongitude>13,4.71826E</exif:GPSLongitude>";
    let comment = format!("<!-- {NEVER}comment -->");
    let rating = "<xmp:Rating>3</xmp:Rating>";
    texts + &history + &derived + &ancestors + &hierarchy + position + &comment + rating
}

/// Regions of faces, as two catalogues write them.
fn faces() -> String {
    let area = "<mwg-rs:Area rdf:parseType='Resource'><stArea:x>0.5</stArea:x><stArea:y>0.5</stArea:y>\
        <stArea:w>0.1</stArea:w><stArea:h>0.1</stArea:h><stArea:unit>normalized</stArea:unit></mwg-rs:Area>";
    let face = entry(&(secret("mwg-rs:Name") + "<mwg-rs:Type>Face</mwg-rs:Type>" + area));
    let list = bag("mwg-rs:RegionList", &face);
    let person = entry(&(secret("MPReg:PersonDisplayName") + &secret("MPReg:PersonEmailDigest")));
    format!(
        "<mwg-rs:Regions rdf:parseType='Resource'>{list}</mwg-rs:Regions>\
         <MP:RegionInfo rdf:parseType='Resource'>{}</MP:RegionInfo>",
        bag("MPRI:Regions", &person)
    )
}

/// Carried structures with members that the standard does not have.
fn foreign_members() -> String {
    let licensor = format!(
        "<rdf:li rdf:parseType='Resource'><plus:LicensorName>Licensor</plus:LicensorName>{}{}</rdf:li>",
        secret("plus:LicensorNotes"),
        secret("xmp:Note")
    );
    format!("<plus:Licensor><rdf:Seq>{licensor}</rdf:Seq></plus:Licensor>")
}

/// Details about persons that the standard has properties for.
fn person_details() -> String {
    let text = |name: &str| format!("<{name}>{PERSON}{name}</{name}>");
    let name = alternative("Iptc4xmpExt:PersonName", &format!("{PERSON}PersonName"));
    let person = entry(&name);
    let item = format!("<rdf:li>{PERSON}PersonInImage</rdf:li>");
    let numbers = [("rbX", "0.1"), ("rbY", "0.1"), ("rbW", "0.5"), ("rbH", "0.5")];
    let numbers =
        numbers.map(|(name, it)| format!("<Iptc4xmpExt:{name}>{it}</Iptc4xmpExt:{name}>"));
    let region = format!(
        "<Iptc4xmpExt:RegionBoundary rdf:parseType='Resource'>\
         <Iptc4xmpExt:rbShape>rectangle</Iptc4xmpExt:rbShape>\
         <Iptc4xmpExt:rbUnit>relative</Iptc4xmpExt:rbUnit>{}</Iptc4xmpExt:RegionBoundary>{}{}{}",
        numbers.concat(),
        alternative("Iptc4xmpExt:Name", &format!("{PERSON}Region")),
        bag("Iptc4xmpExt:PersonInImage", &item),
        bag("Iptc4xmpExt:PersonInImageWDetails", &person)
    );
    bag("Iptc4xmpExt:PersonInImageWDetails", &person)
        + &text("Iptc4xmpExt:AddlModelInfo")
        + &bag("Iptc4xmpExt:ImageRegion", &entry(&region))
}

/// A photograph whose XMP, IIM, Exif, comment and embedded thumbnail say what may not leave the archive.
fn telling() -> Vec<u8> {
    let xmp = fixtures::ai_made("compositeWithTrainedAlgorithmicMedia", "DMI-PROHIBITED")
        + &tool_properties()
        + &faces()
        + &foreign_members()
        + &person_details();
    let jpeg = fixtures::with_xmp(&Picture::waves(640, 480).jpeg(), &xmp);
    let dir = tempfile::tempdir().expect("folder");
    let thumbnail = dir.path().join("thumbnail.jpg");
    let comment = format!("{NEVER}thumbnail");
    let small = with_segment(&Picture::flat(40, 30, [200, 0, 0]).jpeg(), 0xFE, comment.as_bytes());
    std::fs::write(&thumbnail, small).expect("written");
    let tags = [
        "ExifIFD:UserComment",
        "ExifIFD:OwnerName",
        "ExifIFD:SerialNumber",
        "ExifIFD:LensSerialNumber",
        "IFD0:HostComputer",
        "IFD0:Software",
        "IFD0:Model",
        "IFD0:DocumentName",
        "GPS:GPSAreaInformation",
        "GPS:GPSSatellites",
        "IPTC:Contact",
        "IPTC:OriginatingProgram",
        "IPTC:OwnerID",
        "Comment",
    ];
    let mut arguments: Vec<String> =
        tags.iter().map(|tag| format!("-{tag}={NEVER}{}", tag.replace(':', "-"))).collect();
    arguments.extend(["-GPSLatitude=63.432195", "-GPSLatitudeRef=N"].map(str::to_owned));
    arguments.extend(["-GPSLongitude=13.078638", "-GPSLongitudeRef=E"].map(str::to_owned));
    arguments.push(format!("-ThumbnailImage<={}", thumbnail.display()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    exiftool::write(&jpeg, &arguments)
}

/// A photograph with a note of its camera's maker, a manifest in a segment of its own, and bytes behind its end.
fn with_maker_note() -> Vec<u8> {
    let note = format!("{NEVER}maker-note");
    let count = u32::try_from(note.len()).expect("short").to_be_bytes();
    // IFD0 at 8 names the Exif directory at 26, whose only entry is the note at 44.
    let block = [
        b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x1a\0\0\0\0".as_slice(),
        b"\0\x01\x92\x7c\0\x07",
        &count,
        b"\0\0\0\x2c\0\0\0\0",
        note.as_bytes(),
    ];
    let made = fixtures::ai_made("compositeWithTrainedAlgorithmicMedia", "DMI-PROHIBITED");
    let jpeg = fixtures::with_xmp(&Picture::waves(640, 480).jpeg(), &made);
    let manifest = format!("JP\0\x01{NEVER}manifest");
    let jpeg =
        with_segment(&with_segment(&jpeg, 0xEB, manifest.as_bytes()), 0xE1, &block.concat());
    [jpeg, format!("{NEVER}behind-the-end").into_bytes()].concat()
}

/// The members of an archive, inflated.
fn unpacked(zip: &[u8], folder: &Path) {
    let script = "import sys, io, zipfile\n\
        zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())).extractall(sys.argv[1])";
    oracle::python(script, &[&folder.to_string_lossy()], zip);
}

/// Counts a text in the bytes.
fn count(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count()
}

/// Fetches everything that the server shows of the photographs.
fn everything(server: &Server) -> Renditions {
    let files = Renditions::new();
    for id in ["telling", "maker"] {
        files.fetch(server, id, &RENDITIONS);
        files.fetch(server, id, &DOCUMENTS);
        let page = fetch(server, &format!("/item/image/{id}"));
        files.add(&format!("{id}.html"), &page);
        unpacked(&fetch(server, &format!("/media/image/{id}.zip")), files.folder.path());
    }
    files.add("search.json", &fetch(server, "/content/v1/image/search?s=20&facets=person.name"));
    files
}

#[test]
fn what_tools_cameras_and_catalogues_wrote_is_in_no_byte_of_renditions_and_documents() {
    let pictures = [("telling", telling()), ("maker", with_maker_note())];
    assert!(count(&pictures[0].1, NEVER) >= 40, "{}", count(&pictures[0].1, NEVER));
    assert!(count(&pictures[0].1, PERSON) >= 5 && count(&pictures[1].1, NEVER) == 3);
    let server = Server::with_pictures(&PLAIN, &pictures);
    let files = everything(&server);
    for (name, bytes) in files.bytes() {
        assert_eq!(count(&bytes, NEVER), 0, "{name}");
        assert_eq!(count(&bytes, PERSON), 0, "{name}");
        assert_eq!(count(&bytes, "25.93171"), 0, "{name}");
    }
    let made = format!("{SOURCE_TYPES}compositeWithTrainedAlgorithmicMedia");
    let renditions = Renditions::new();
    for (name, bytes) in files.bytes() {
        if ["jpg", "webp", "avif"].iter().any(|end| name.ends_with(end)) {
            renditions.add(&name, &bytes);
        }
    }
    let tags = renditions.tags();
    // Two photographs, each with the Hires of its archive.
    assert_eq!(tags.len(), 2 * (RENDITIONS.len() + 1));
    for (name, tags) in tags {
        // The renditions do carry metadata of the original.
        assert_eq!(tags.get(SOURCE_TYPE_TAG), Some(&Value::from(made.as_str())), "{name}");
        let position = tags.keys().find(|tag| tag.contains("GPS"));
        assert_eq!(position, None, "{name}");
        assert!(!tags.keys().any(|tag| tag.starts_with("IFD1")), "{name}");
    }
}

#[test]
fn settings_that_keep_persons_and_coordinates_keep_nothing_else() {
    let settings = ["media.keep_person_details=true", "media.keep_gps=true"];
    let pictures = [("telling", telling()), ("maker", with_maker_note())];
    let server = Server::with_pictures(&[&PLAIN[..], &settings].concat(), &pictures);
    for (name, bytes) in everything(&server).bytes() {
        assert_eq!(count(&bytes, NEVER), 0, "{name}");
        if name.starts_with("telling") && (name.contains("Preview") || name.contains("Hires")) {
            assert!(count(&bytes, PERSON) >= 5, "{name}");
        }
    }
}
