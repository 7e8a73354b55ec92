//! Each property of the standard in each rendition and format: it is there by its rule, and nothing else is.

use serde_json::Value;

use super::standard::{Property, Rule, properties};
use super::{PLAIN, Renditions, ask, exiftool, exiftool::Tags, fetch, fixtures};
use crate::common::{Server, oracle};
use crate::deliveries::{id, until};

/// Renditions of the whole picture that carry its caption.
const WHOLE: [&str; 17] = [
    ".jpg",
    "-crop_w1600_h1067.jpg",
    "-watermark.jpg",
    "_NormalPreview.jpg",
    "_NormalPreview.webp",
    "_NormalPreview.avif",
    "_WatermarkPreview.jpg",
    "_WebPreview.jpg",
    "_WebPreview.webp",
    "-fit_w480_NormalPreview.jpg",
    "-fit_w480_NormalPreview.webp",
    "-fit_w480_NormalPreview.avif",
    "-fit_w500.jpg",
    "-fit_w500.webp",
    "-fit_w500.avif",
    "-watermark-fit_w240.jpg",
    "-preset_card_NormalPreview.jpg",
];

/// Open renditions with a size of at most 320 pixels, which carry the credits of the caption.
const SMALL: [&str; 4] = [
    "-fit_w320_NormalPreview.jpg",
    "-fit_w320_NormalPreview.webp",
    "-fit_w320_NormalPreview.avif",
    "-crop_w200_h150-fit_w160_WatermarkPreview.jpg",
];

/// The properties that small renditions carry besides those of thumbnails.
const CREDITS: [&str; 3] = ["creatorNames", "creditLine", "copyrightNotice"];

const THUMBNAILS: [&str; 7] = [
    "_NormalThumbnail.jpg",
    "_NormalThumbnail.webp",
    "_NormalThumbnail.avif",
    "_CroppedThumbnail.jpg",
    "_CroppedThumbnail.webp",
    "_WatermarkThumbnail.jpg",
    "-fit_w160_NormalThumbnail.jpg",
];

const PRESET: &str = r#"media.presets={"card":{"fit":[480,0]}}"#;

/// Groups of tags about the container and its pixels.
const CONTAINERS: [&str; 7] =
    ["ExifTool", "System", "JFIF", "Composite", "QuickTime", "Meta", "RIFF"];

/// Tags about the file and its pixels, and those without which a block is not valid.
const TECHNICAL: [&str; 26] = [
    "SourceFile",
    "File:FileType",
    "File:FileTypeExtension",
    "File:MIMEType",
    "File:ExifByteOrder",
    "File:CurrentIPTCDigest",
    "File:ImageWidth",
    "File:ImageHeight",
    "File:EncodingProcess",
    "File:BitsPerSample",
    "File:ColorComponents",
    "File:YCbCrSubSampling",
    "IFD0:Orientation",
    "IFD0:XResolution",
    "IFD0:YResolution",
    "IFD0:ResolutionUnit",
    "IFD0:YCbCrPositioning",
    "ExifIFD:ExifVersion",
    "ExifIFD:ComponentsConfiguration",
    "ExifIFD:FlashpixVersion",
    "ExifIFD:ColorSpace",
    "ExifIFD:ExifImageWidth",
    "ExifIFD:ExifImageHeight",
    "IPTC:CodedCharacterSet",
    "IPTC:ApplicationRecordVersion",
    // The identifier, for which the standard has no dataset.
    "IPTC:UniqueDocumentID",
];

/// The metadata that a rendition may carry.
#[derive(Clone, Copy)]
struct Carries {
    /// True if it carries the caption; thumbnails do not.
    caption: bool,
    /// True if it carries the credits of the caption at least.
    credits: bool,
    /// True if the settings keep coordinates.
    gps: bool,
    /// True if the settings keep details of persons.
    person_details: bool,
}

impl Carries {
    /// By the default settings.
    const DEFAULT: Self = Self { caption: true, credits: true, gps: false, person_details: false };

    fn has(self, property: &Property) -> bool {
        match property.rule {
            Rule::Short => true,
            Rule::Document if CREDITS.contains(&property.name.as_str()) => self.credits,
            Rule::Document | Rule::Carried | Rule::Transformed => self.caption,
            Rule::PersonDetails => self.caption && self.person_details,
            Rule::Never => false,
        }
    }
}

/// The values of a property in XMP, by tag: one for each language.
fn values(tags: &Tags, property: &Property) -> Vec<(String, Value)> {
    let found = tags.iter().filter(|(tag, _)| property.is_xmp(tag));
    found.map(|(tag, value)| (tag.clone(), without_short_lists(value.clone()))).collect()
}

/// Replaces the lists of one entry within structures by the entry: some files have none where the standard has one.
fn without_short_lists(value: Value) -> Value {
    match value {
        Value::Array(entries) => entries.into_iter().map(without_short_lists).collect(),
        Value::Object(members) => {
            let single = |mut value: Value| match value.as_array_mut() {
                Some(entries) if entries.len() == 1 => entries.remove(0),
                Some(_) | None => value,
            };
            let members = members.into_iter();
            members.map(|(name, value)| (name, single(without_short_lists(value)))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// Removes the members `names` of structures, at any depth.
fn without(value: Value, names: &[&str]) -> Value {
    match value {
        Value::Array(entries) => entries.into_iter().map(|one| without(one, names)).collect(),
        Value::Object(members) => {
            let members = members.into_iter().filter(|(name, _)| !names.contains(&name.as_str()));
            members.map(|(name, value)| (name, without(value, names))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// Regions without names of persons; the name of a region is mostly that of a person, too.
fn without_persons(regions: Value) -> Value {
    let members = ["Name", "PersonInImage", "PersonInImageWDetails"];
    let change = |mut region: Value| {
        let region_members = region.as_object_mut().expect("a region");
        members.iter().for_each(|name| drop(region_members.remove(*name)));
        region
    };
    let Value::Array(regions) = regions else { panic!("{regions} is no list") };
    regions.into_iter().map(change).collect()
}

/// Returns whether two values are the same; numbers of a region may be rounded.
fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_alike(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |name: &String, a: &Value| other.get(name).is_some_and(|b| is_alike(a, b));
            one.len() == other.len() && one.iter().all(|(name, a)| same(name, a))
        }
        (Value::Number(a), Value::Number(b)) => {
            let number = |it: &serde_json::Number| it.as_f64().expect("a number");
            (number(a) - number(b)).abs() < 0.001
        }
        _ => one == other,
    }
}

/// The value of a property that a rendition of the whole picture must have, by the value in the original.
fn transformed(property: &Property, original: Value, carries: Carries) -> Value {
    let (width, height) = fixtures::REFERENCE_SIZE;
    match property.name.as_str() {
        "maxAvailWidth" => width.into(),
        "maxAvailHeight" => height.into(),
        "locationCreated" | "locationsShown" if !carries.gps => {
            let members = ["GPSLatitude", "GPSLongitude", "GPSAltitude", "GPSAltitudeRef"];
            without(original, &members)
        }
        "imageRegion" if !carries.person_details => without_persons(original),
        _ => original,
    }
}

/// Checks that a rendition has each property by its rule, with the value of the original.
#[track_caller]
fn has_properties(name: &str, tags: &Tags, original: &Tags, carries: Carries) {
    for property in properties() {
        let expected: Vec<_> = match carries.has(&property) {
            true => values(original, &property),
            false => Vec::new(),
        };
        let change = |(tag, value)| (tag, transformed(&property, value, carries));
        let expected: Vec<_> = expected.into_iter().map(change).collect();
        let found = values(tags, &property);
        let same = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && is_alike(&a.1, &b.1));
        assert!(same, "{name}, {}: {found:#?} instead of {expected:#?}", property.name);
    }
}

/// Checks that a rendition has no tags but those of properties that it may carry, and technical ones.
#[track_caller]
fn has_nothing_else(name: &str, tags: &Tags, carries: Carries) {
    let allowed: Vec<Property> =
        properties().into_iter().filter(|property| carries.has(property)).collect();
    for tag in tags.keys() {
        let group = tag.split(':').next().unwrap_or_default();
        let is_container = CONTAINERS.contains(&group) || group.starts_with("ICC");
        let is_technical = is_container || TECHNICAL.contains(&tag.as_str());
        let is_position = carries.gps && (group == "GPS" || tag.starts_with("XMP-exif:GPS"));
        let is_carried = allowed.iter().any(|property| property.is_tag(tag));
        assert!(is_technical || is_position || is_carried, "{name} has {tag}: {:#}", tags[tag]);
    }
}

#[track_caller]
fn check(name: &str, tags: &Tags, original: &Tags, carries: Carries) {
    exiftool::is_sound(name, tags);
    has_properties(name, tags, original, carries);
    has_nothing_else(name, tags, carries);
    if let Some(identifier) = tags.get("IPTC:UniqueDocumentID") {
        assert_eq!(tags.get("XMP-iptcExt:DigitalImageGUID"), Some(identifier), "{name}");
    }
}

/// The Hires in the archive of the reference image.
fn from_archive(server: &Server) -> Vec<u8> {
    let script = "import sys, io, zipfile\n\
        archive = zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
        sys.stdout.buffer.write(archive.read('reference_NormalHires.jpg'))";
    oracle::python(script, &[], &fetch(server, "/media/image/reference.zip"))
}

/// The Hires that a delivery puts into a folder.
fn delivered(server: &Server) -> Vec<u8> {
    let path = "/media/image/reference?channel=user:demo-editor:demo-folder";
    let delivery = id(ask(server, path));
    until(server, &delivery, "delivered");
    let file = server.data().join("deliveries/demo-editor/reference_NormalHires.jpg");
    std::fs::read(file).expect("the Hires was delivered")
}

fn settings(more: &[&'static str]) -> Vec<&'static str> {
    [&PLAIN[..], &[PRESET, "media.preview_px=400"], more].concat()
}

#[test]
fn every_rendition_has_each_property_by_its_rule_and_nothing_else() {
    let pictures = [("reference", fixtures::reference())];
    let server = Server::with_pictures(&settings(&[]), &pictures);
    let renditions = Renditions::new();
    renditions.add("original.jpg", &pictures[0].1);
    renditions.fetch(&server, "reference", &WHOLE);
    renditions.fetch(&server, "reference", &SMALL);
    renditions.fetch(&server, "reference", &THUMBNAILS);
    renditions.add("archive.jpg", &from_archive(&server));
    renditions.add("delivered.jpg", &delivered(&server));
    let tags = renditions.tags();
    let original = &tags.iter().find(|(name, _)| name == "original.jpg").expect("read").1;
    for property in properties() {
        assert!(!values(original, &property).is_empty(), "no {} to carry", property.name);
    }
    let mut checked = 0;
    for (name, tags) in tags.iter().filter(|(name, _)| name != "original.jpg") {
        let credits = !name.contains("Thumbnail");
        let caption = credits && !SMALL.iter().any(|rest| name.ends_with(rest));
        check(name, tags, original, Carries { caption, credits, ..Carries::DEFAULT });
        checked += 1;
    }
    assert_eq!(checked, WHOLE.len() + SMALL.len() + THUMBNAILS.len() + 2);
}

#[test]
fn coordinates_and_details_of_persons_are_carried_where_the_settings_keep_them() {
    let pictures = [("reference", fixtures::reference())];
    let renditions = Renditions::new();
    renditions.add("original.jpg", &pictures[0].1);
    let mut server =
        Server::with_pictures(&settings(&["media.keep_person_details=true"]), &pictures);
    let rests = [".jpg", "-fit_w480_NormalPreview.webp", "_NormalThumbnail.jpg"];
    let fetch_as = |server: &Server, kept: &str| {
        for rest in rests {
            let body = fetch(server, &format!("/media/image/reference{rest}"));
            renditions.add(&format!("{kept}{rest}"), &body);
        }
    };
    fetch_as(&server, "persons");
    server = server.restart(&settings(&["media.keep_gps=true"]));
    fetch_as(&server, "gps");
    let tags = renditions.tags();
    let original = &tags.iter().find(|(name, _)| name == "original.jpg").expect("read").1;
    for (name, tags) in tags.iter().filter(|(name, _)| name != "original.jpg") {
        let (caption, gps) = (!name.contains("Thumbnail"), name.starts_with("gps"));
        let credits = caption;
        check(name, tags, original, Carries { caption, credits, gps, person_details: !gps });
    }
    assert_eq!(tags.len(), 1 + 2 * rests.len());
}
