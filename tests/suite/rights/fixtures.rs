//! Photographs with metadata, and their item folders.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{
    Server, checkout,
    pictures::{Picture, with_segment},
};

/// The size of the reference image, pixels.
pub(super) const REFERENCE_SIZE: (u32, u32) = (1600, 1067);

/// The reference image of the standard, with a value in every property, all in XMP.
pub(super) fn reference() -> Vec<u8> {
    fs::read(checkout("tests/schemas/iptc-reference.jpg")).expect("the reference image")
}

/// A small picture.
pub(super) fn plain() -> Vec<u8> {
    Picture::waves(320, 240).jpeg()
}

/// The JPEG with an XMP packet of these properties.
pub(super) fn with_xmp(jpeg: &[u8], properties: &str) -> Vec<u8> {
    let packet = packet(properties);
    let payload = [b"http://ns.adobe.com/xap/1.0/\0".as_slice(), packet.as_bytes()].concat();
    with_segment(jpeg, 0xE1, &payload)
}

/// An XMP packet of these properties, in RDF.
pub(super) fn packet(properties: &str) -> String {
    let namespaces = [
        ("Iptc4xmpCore", "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/"),
        ("Iptc4xmpExt", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/"),
        ("plus", "http://ns.useplus.org/ldf/xmp/1.0/"),
        ("dc", "http://purl.org/dc/elements/1.1/"),
        ("photoshop", "http://ns.adobe.com/photoshop/1.0/"),
        ("xmp", "http://ns.adobe.com/xap/1.0/"),
        ("xmpMM", "http://ns.adobe.com/xap/1.0/mm/"),
        ("xmpRights", "http://ns.adobe.com/xap/1.0/rights/"),
        ("stEvt", "http://ns.adobe.com/xap/1.0/sType/ResourceEvent#"),
        ("stRef", "http://ns.adobe.com/xap/1.0/sType/ResourceRef#"),
        ("stDim", "http://ns.adobe.com/xap/1.0/sType/Dimensions#"),
        ("stArea", "http://ns.adobe.com/xmp/sType/Area#"),
        ("crs", "http://ns.adobe.com/camera-raw-settings/1.0/"),
        ("exif", "http://ns.adobe.com/exif/1.0/"),
        ("exifEX", "http://cipa.jp/exif/1.0/"),
        ("aux", "http://ns.adobe.com/exif/1.0/aux/"),
        ("tiff", "http://ns.adobe.com/tiff/1.0/"),
        ("lr", "http://ns.adobe.com/lightroom/1.0/"),
        ("mwg-rs", "http://www.metadataworkinggroup.com/schemas/regions/"),
        ("MP", "http://ns.microsoft.com/photo/1.2/"),
        ("MPRI", "http://ns.microsoft.com/photo/1.2/t/RegionInfo#"),
        ("MPReg", "http://ns.microsoft.com/photo/1.2/t/Region#"),
    ];
    let declared = namespaces.map(|(prefix, uri)| format!(" xmlns:{prefix}='{uri}'")).concat();
    format!(
        "<x:xmpmeta xmlns:x='adobe:ns:meta/'>\
         <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\
         <rdf:Description rdf:about=''{declared}>{properties}</rdf:Description>\
         </rdf:RDF></x:xmpmeta>"
    )
}

/// The property `name` with a text in the default language.
pub(super) fn alternative(name: &str, text: &str) -> String {
    format!("<{name}><rdf:Alt><rdf:li xml:lang='x-default'>{text}</rdf:li></rdf:Alt></{name}>")
}

/// The property `name` with the entries `items` of a bag; structures are complete `rdf:li`.
pub(super) fn bag(name: &str, items: &str) -> String {
    format!("<{name}><rdf:Bag>{items}</rdf:Bag></{name}>")
}

/// An entry of a bag that is a structure.
pub(super) fn entry(members: &str) -> String {
    format!("<rdf:li rdf:parseType='Resource'>{members}</rdf:li>")
}

/// Digital source type and data mining, by their codes, in XMP.
pub(super) fn ai_made(source_type: &str, data_mining: &str) -> String {
    format!(
        "<Iptc4xmpExt:DigitalSourceType>{}{source_type}</Iptc4xmpExt:DigitalSourceType>\
         <plus:DataMining>{}{data_mining}</plus:DataMining>",
        super::SOURCE_TYPES,
        super::PLUS
    )
}

/// Writes an item folder with a picture below the server's directory; returns its path.
pub(super) fn folder(root: &Path, key: &str, document: &Value, jpeg: &[u8]) -> PathBuf {
    let folder = root.join(key);
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("item.json"), document.to_string()).expect("written");
    fs::write(folder.join("NormalHires.jpg"), jpeg).expect("written");
    folder
}

/// Ingests a file or folder, which must succeed; returns both outputs.
#[track_caller]
pub(super) fn ingest(server: &Server, path: &Path) -> String {
    let output = server.command(&["ingest", &path.to_string_lossy()]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}
