//! Tests with exiftool: it reads exactly the values of the document, and no more.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use jpeg::header::JpegHeader;
use jpeg::rewrite::{icc_segments, rewrite_metadata, segment};
use jpeg::samples::{LIMITS, file, jfif};
use metadata::{Caption, RightsMetadata, WriteOptions};
use model::item::Document;

const URI: &str = "https://bilder.example.com/media/image/sdlv_113kUb-R0";
const PLAIN: WriteOptions = WriteOptions { orientation: 1, gps: false, picture: None };
const WITH_GPS: WriteOptions = WriteOptions { orientation: 1, gps: true, picture: None };
/// The tags that the standards require in every block, whatever the document contains.
const TECHNICAL: [&str; 11] = [
    "IPTC:CodedCharacterSet",
    "IPTC:ApplicationRecordVersion",
    "IFD0:Orientation",
    "IFD0:XResolution",
    "IFD0:YResolution",
    "IFD0:ResolutionUnit",
    "IFD0:YCbCrPositioning",
    "ExifIFD:ExifVersion",
    "ExifIFD:ComponentsConfiguration",
    "ExifIFD:FlashpixVersion",
    "ExifIFD:ColorSpace",
];

type Tags = BTreeMap<String, Value>;

/// Runs exiftool on a file; returns its output.
fn run_exiftool(arguments: &[&str], jpeg: &[u8]) -> Vec<u8> {
    let mut child = Command::new("exiftool")
        .args(arguments)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("./test installs exiftool");
    child.stdin.take().expect("piped").write_all(jpeg).expect("read to the end");
    child.wait_with_output().expect("an answer").stdout
}

/// The tags that exiftool reads, by `Group:Tag`. Checks that it reports no error or warning.
fn exiftool(jpeg: &[u8]) -> Tags {
    let complaints = run_exiftool(&["-validate", "-a", "-s3", "-warning", "-error"], jpeg);
    // Colour space, width and height are properties of pixels, which the caption writer does not see.
    let is_other = |line: &&str| {
        *line != "3 Warnings" && !line.starts_with("Missing required JPEG ExifIFD tag 0xa00")
    };
    let complaints = String::from_utf8_lossy(&complaints);
    let complaints: Vec<_> = complaints.lines().filter(is_other).collect();
    assert_eq!(complaints, Vec::<&str>::new());
    let arguments = ["-json", "-struct", "-G1", "-a", "-u", "-n", "-charset", "iptc=UTF8", "-all"];
    let output = run_exiftool(&arguments, jpeg);
    let mut files: Vec<Tags> = serde_json::from_slice(&output).expect("JSON");
    let tags = files.remove(0);
    // A second IIM or XMP block has a numbered group.
    assert!(!tags.keys().any(|key| key.starts_with("IPTC2") || key.starts_with("XMP2")));
    tags
}

/// The tags that carry a caption, without the technical ones.
fn caption_tags(tags: &Tags) -> Tags {
    let groups = ["IPTC:", "XMP-", "IFD0:", "IFD1:", "ExifIFD:", "GPS:", "Photoshop:"];
    tags.iter()
        .filter(|(key, _)| groups.iter().any(|group| key.starts_with(group)))
        .filter(|(key, _)| !TECHNICAL.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), single(value.clone())))
        .collect()
}

/// Unwraps a list of one entry; exiftool prints texts of digits as numbers.
fn single(value: Value) -> Value {
    match value {
        Value::Array(mut entries) if entries.len() == 1 => single(entries.remove(0)),
        Value::Array(entries) => entries.into_iter().map(single).collect(),
        Value::Number(number) => json!(number.to_string()),
        other @ (Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_)) => other,
    }
}

/// The metadata segments of a caption without rights.
fn write(caption: &Caption, originals: &[&[u8]], options: WriteOptions) -> Vec<u8> {
    metadata::write(caption, &RightsMetadata::default(), originals, options)
}

fn caption(document: &Value) -> Caption {
    let fields: Map<String, Value> = document.as_object().expect("an object").clone();
    let key = "image/sdlv_113kUb-R0".parse().expect("a key");
    super::from_document(&Document::from_fields(&key, fields).expect("valid"), URI)
}

/// A text as allowed in metadata: lines end with a line feed, control characters are removed.
fn sanitized(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.chars().filter(|&c| c == '\n' || c == '\t' || !c.is_control()).collect()
}

/// The longest prefix of whole characters with at most `bytes_max` bytes, on one line.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut short = text.replace(['\n', '\t'], " ");
    while short.len() > bytes_max {
        short.pop();
        while short.ends_with(' ') && short.len() <= bytes_max {
            short.pop();
        }
    }
    short
}

/// The expected metadata of a document by the table of captions (contract files-12), in exiftool's names.
struct Expected(Tags);

impl Expected {
    fn of(document: &Value) -> Tags {
        let mut expected = Expected(Tags::new());
        expected.texts(document);
        expected.rights(document);
        expected.places(document);
        expected.lists(document);
        expected.moment(document["versioncreated"].as_str().unwrap_or_default());
        if let Some(urgency) = document["urgency"].as_u64() {
            expected.set("IPTC:Urgency", json!(urgency));
            expected.set("XMP-photoshop:Urgency", json!(urgency));
        }
        expected.text("IPTC:UniqueDocumentID", URI);
        expected.text("XMP-iptcExt:DigitalImageGUID", URI);
        expected.0
    }

    fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), single(value));
    }

    fn text(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.set(key, json!(text));
        }
    }

    /// Expects a text that is truncated in IIM and complete in XMP.
    fn pair(&mut self, iim: &str, bytes_max: usize, xmp: &str, value: &Value) {
        let text = sanitized(value.as_str().unwrap_or_default());
        self.text(&format!("IPTC:{iim}"), &cut(&text, bytes_max));
        self.text(&format!("XMP-{xmp}"), &text);
    }

    fn texts(&mut self, document: &Value) {
        self.pair("Headline", 256, "photoshop:Headline", &document["headline"]);
        let title = document.get("slugline").unwrap_or(&document["title"]);
        self.pair("ObjectName", 64, "dc:Title", title);
        self.pair("By-line", 32, "dc:Creator", &document["byline"]);
        let role = &document["bylines"][0]["role"];
        self.pair("By-lineTitle", 32, "photoshop:AuthorsPosition", role);
        self.pair("Credit", 32, "photoshop:Credit", &document["infosource"][0]["name"]);
        self.pair("Source", 32, "photoshop:Source", &document["source"]);
        let reference = &document["originaltransmissionreference"];
        let xmp = "photoshop:TransmissionReference";
        self.pair("OriginalTransmissionReference", 32, xmp, reference);
        let description = sanitized(document["description_text"].as_str().unwrap_or_default());
        let mut short = description.clone();
        while short.len() > 2000 {
            short.pop();
        }
        self.text("IPTC:Caption-Abstract", short.trim_end());
        self.text("XMP-dc:Description", &description);
        self.text("IFD0:ImageDescription", &description);
        self.text("IFD0:Artist", &sanitized(document["byline"].as_str().unwrap_or_default()));
        let language = document["language"].as_str().unwrap_or_default();
        self.text("IPTC:LanguageIdentifier", language.split('-').next().expect("a part"));
        self.text("XMP-dc:Language", language);
    }

    fn rights(&mut self, document: &Value) {
        let text = |name: &str| sanitized(document[name].as_str().unwrap_or_default());
        let (notice, holder) = (text("copyrightnotice"), text("copyrightholder"));
        let right = if notice.is_empty() { &holder } else { &notice };
        self.text("IPTC:CopyrightNotice", &cut(right, 128));
        self.text("IFD0:Copyright", right);
        self.text("XMP-dc:Rights", &notice);
        if !holder.is_empty() {
            let owner = json!([{ "CopyrightOwnerName": holder }]);
            self.set("XMP-plus:CopyrightOwner", owner);
        }
        let (terms, note) = (text("usageterms"), text("ednote"));
        self.text("XMP-xmpRights:UsageTerms", &terms);
        self.text("XMP-photoshop:Instructions", &note);
        let both: Vec<String> = [terms, note].into_iter().filter(|t| !t.is_empty()).collect();
        self.text("IPTC:SpecialInstructions", &cut(&both.join("; "), 256));
    }

    fn places(&mut self, document: &Value) {
        let places = document["place"].as_array().cloned().unwrap_or_default();
        let place = |rel: &str| places.iter().find(|place| place["rel"] == rel);
        if let Some(city) = place("ort") {
            self.pair("City", 32, "photoshop:City", &city["name"]);
        }
        if let Some(province) = place("region") {
            self.pair("Province-State", 32, "photoshop:State", &province["name"]);
        }
        if let Some(sublocation) = place("sublocation") {
            self.pair("Sub-location", 32, "iptcCore:Location", &sublocation["name"]);
        }
        if let Some(country) = place("land") {
            self.pair("Country-PrimaryLocationName", 64, "photoshop:Country", &country["name"]);
            let code = country["code"].as_str().unwrap_or_default();
            self.text("XMP-iptcCore:CountryCode", code);
            let long = if code == "SE" { "SWE" } else { code };
            self.text("IPTC:Country-PrimaryLocationCode", long);
        }
    }

    fn lists(&mut self, document: &Value) {
        let all = |name: &str, field: &str| -> Vec<String> {
            let entries = document[name].as_array().into_iter().flatten();
            let texts = entries.filter_map(|entry| entry[field].as_str());
            texts.map(|text| sanitized(text).replace(['\n', '\t'], " ")).collect()
        };
        let mut list = |key: &str, entries: Vec<String>| {
            if !entries.is_empty() {
                self.set(key, json!(entries));
            }
        };
        list("XMP-iptcExt:PersonInImage", all("person", "name"));
        let codes = all("subject", "code");
        let references = codes.iter().map(|code| format!("IPTC:{code}:::")).collect();
        list("IPTC:SubjectReference", references);
        list("XMP-iptcCore:SubjectCode", codes);
        let words = all("subject", "name");
        list("IPTC:Keywords", words.iter().map(|word| cut(word, 64)).collect());
        list("XMP-dc:Subject", words);
    }

    /// `2026-03-02T09:15:00+01:00`.
    fn moment(&mut self, text: &str) {
        let Some((date, rest)) = text.split_once('T') else { return };
        let date = date.replace('-', ":");
        let (time, offset) = rest.split_at(8);
        self.text("IPTC:DateCreated", &date);
        self.text("IPTC:TimeCreated", rest);
        self.text("XMP-photoshop:DateCreated", &format!("{date} {rest}"));
        self.text("ExifIFD:DateTimeOriginal", &format!("{date} {time}"));
        self.text("ExifIFD:OffsetTimeOriginal", offset);
    }
}

fn check(document: &Value) {
    let jpeg = file(&write(&caption(document), &[], PLAIN));
    let tags = exiftool(&jpeg);
    let (found, expected) = (caption_tags(&tags), Expected::of(document));
    for key in expected.keys().chain(found.keys()) {
        assert_eq!(found.get(key), expected.get(key), "{key}");
    }
    assert_eq!(tags["IPTC:CodedCharacterSet"], "\u{1b}%G");
}

/// A document with a value for every row of the table.
fn full(text: impl Fn(&str) -> String) -> Value {
    json!({
        "versioncreated": "2026-03-02T09:15:00+01:00",
        "urgency": 4,
        "language": "sv-SE",
        "headline": text("rubrik"),
        "slugline": text("isbrytare"),
        "description_text": format!("{}\nFoto: {}", text("bildtext"), text("kod 99999")),
        "byline": text("Åsa Öberg"),
        "bylines": [{ "byline": text("Åsa Öberg"), "role": text("Fotograf") }],
        "infosource": [{ "name": text("Bildbyrån"), "rel": "credit" }],
        "source": text("källa"),
        "copyrightnotice": text("© Bildbyrån"),
        "copyrightholder": text("Bildbyrån AB"),
        "usageterms": text("Ej för reklam"),
        "ednote": text("Får ej beskäras"),
        "originaltransmissionreference": text("jobb-7"),
        "person": [{ "name": text("Erik Bärg") }, { "name": text("Maj Ek") }],
        "place": [
            { "name": text("Hamnen"), "rel": "sublocation" },
            { "name": text("Åmål"), "rel": "ort" },
            { "name": text("Dalsland"), "rel": "region" },
            { "name": text("Sverige"), "rel": "land", "code": "SE" },
        ],
        "subject": [
            { "code": "13000000", "scheme": "http://tt.se/spec/subref/1.0/" },
            { "code": "04000000", "scheme": "http://tt.se/spec/subref/1.0/" },
            { "name": text("snö"), "scheme": "http://tt.se/spec/keyword/1.0/" },
            { "name": text("is"), "scheme": "http://tt.se/spec/keyword/1.0/" },
        ],
    })
}

#[test]
fn exiftool_reads_every_row_of_the_table_and_nothing_else() {
    check(&full(str::to_owned));
    check(&json!({}));
    check(&json!({ "title": "kort titel", "copyrightholder": "Byrån", "ednote": "Obs!" }));
}

#[test]
fn exiftool_reads_hostile_texts_as_they_are() {
    check(&full(|text| format!("{text} <b>&amp;</b> ]]> <!--' \"--> %s $x \\n ;:|")));
    check(&full(|text| format!("{text}\u{0}\u{7}\u{1B}%G\u{85}\u{9F}\tå\r\nä\rö")));
    check(&full(|text| format!("👩‍🚒🇸🇪❄️ {text} שלום 雪が降る e\u{301} \u{202E}x\u{202C}")));
}

#[test]
fn exiftool_reads_long_texts_cut_in_iim_and_whole_in_xmp() {
    check(&full(|text| format!("{text} {}", "å".repeat(400))));
    check(&full(|text| format!("{text}{}", "😀".repeat(300))));
    let description = "Måndag & tisdag. ".repeat(900).trim().to_owned();
    check(&json!({ "headline": "x", "description_text": description }));
}

#[test]
fn exiftool_reports_no_error_for_values_that_do_not_fit() {
    let words: Vec<Value> = (0..900).map(|i| json!({ "name": format!("{i} ordet") })).collect();
    let mut document = full(|text| format!("{text} {}", "<å&>".repeat(3_000)));
    document["subject"] = json!(words);
    document["description_text"] = json!("Snö & is. ".repeat(20_000));
    let jpeg = file(&write(&caption(&document), &[], PLAIN));
    let tags = exiftool(&jpeg);
    let description = tags["XMP-dc:Description"].as_str().expect("text");
    assert!(description.len() > 5_000 && description.starts_with("Snö & is. Snö"));
    // What does not fit into a segment continues in extended XMP.
    let mut kinds = segments(&jpeg);
    assert!(kinds.len() > 3, "{kinds:?}");
    kinds.dedup();
    assert_eq!(kinds, ["Exif", "http", "Photoshop"]);
}

/// The signatures of the metadata segments of a file, in order.
fn segments(jpeg: &[u8]) -> Vec<String> {
    let header = JpegHeader::parse(jpeg, &LIMITS).expect("a sample");
    assert_eq!(header.end, jpeg.len());
    let name = |payload: &[u8]| {
        payload.iter().take_while(|b| b.is_ascii_alphabetic()).map(|&b| char::from(b)).collect()
    };
    header.metadata().map(|segment| name(&jpeg[segment.payload.clone()])).collect()
}

/// An Exif block of a camera: texts, a maker note, a GPS position, a directory with a thumbnail.
fn camera(word: &str) -> Vec<u8> {
    use exif::experimental::Writer;
    use exif::{Field, In, Rational, Tag};
    let ascii = |text: &str| exif::Value::Ascii(vec![text.as_bytes().to_vec()]);
    let degrees =
        |n| exif::Value::Rational([n, 0, 0].map(|num| Rational { num, denom: 1 }).into());
    let fields = [
        (Tag::Make, ascii(word)),
        (Tag::Software, ascii(word)),
        (Tag::ImageDescription, ascii(word)),
        (Tag::DateTime, ascii("2001:01:01 01:01:01")),
        (Tag::DateTimeOriginal, ascii("2001:01:01 01:01:01")),
        (Tag::MakerNote, exif::Value::Undefined(word.as_bytes().to_vec(), 0)),
        (Tag::UserComment, exif::Value::Undefined(word.as_bytes().to_vec(), 0)),
        (Tag::GPSLatitudeRef, ascii("N")),
        (Tag::GPSLatitude, degrees(59)),
        (Tag::GPSLongitudeRef, ascii("E")),
        (Tag::GPSLongitude, degrees(18)),
    ];
    let fields = fields.map(|(tag, value)| Field { tag, ifd_num: In::PRIMARY, value });
    let thumbnail = [b"\xFF\xD8".as_slice(), word.as_bytes(), b"\xFF\xD9"].concat();
    let mut writer = Writer::new();
    fields.iter().for_each(|field| writer.push_field(field));
    writer.set_jpeg(&thumbnail, In::THUMBNAIL);
    let mut tiff = std::io::Cursor::new(Vec::new());
    writer.write(&mut tiff, true).expect("known types");
    tiff.into_inner()
}

const SECRET: &str = "hemligt";

/// A picture with all metadata that other programs leave in files, and a second picture after its end.
fn cluttered() -> Vec<u8> {
    let secret = SECRET.as_bytes();
    let resource = |id: [u8; 2], data: &[u8]| {
        let length = u32::try_from(data.len()).expect("short").to_be_bytes();
        let pad = vec![0; data.len() % 2];
        segment(0xED, &[b"Photoshop 3.0\x008BIM", &id, &[0, 0], &length, data, &pad])
    };
    let iim = [b"\x1C\x02\x69\0\x07".as_slice(), secret].concat();
    let xmp = format!(
        "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf=\
         'http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description rdf:about='' \
         xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/' photoshop:History='{SECRET}'/>\
         </rdf:RDF></x:xmpmeta>"
    );
    let extension = b"http://ns.adobe.com/xmp/extension/\x000123456789ABCDEF0123456789ABCDEF";
    let exif = |word: &str| segment(0xE1, &[b"Exif\0\0", &camera(word)]);
    let parts = [
        jfif(),
        segment(0xE0, &[b"JFXX\0\x10", secret]),
        exif(SECRET),
        exif(&format!("{SECRET}2")),
        segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", xmp.as_bytes()]),
        segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", xmp.as_bytes()]),
        segment(0xE1, &[extension, &[0, 0, 0, 7, 0, 0, 0, 0], secret]),
        segment(0xE2, &[b"MPF\0", secret]),
        segment(0xE2, &[b"FPXR\0", secret]),
        segment(0xE3, &[b"Meta\0\0", secret]),
        segment(0xE4, &[secret]),
        segment(0xEB, &[b"JP", secret]),
        segment(0xEC, &[b"Ducky\0", secret]),
        resource([4, 4], &iim),
        resource([4, 4], &iim),
        // The path of a thumbnail, a print setting, a caption resource of Photoshop.
        resource([4, 0x0C], secret),
        resource([3, 0xED], secret),
        resource([3, 0xF0], secret),
        segment(0xFE, &[secret]),
    ];
    let trailer = [file(&exif(SECRET)).as_slice(), b"\0\0\0\x18ftypmp42", secret].concat();
    [file(&parts.concat()), trailer].concat()
}

/// The plain Hires of an original: the metadata of a document followed by its picture data.
fn hires(original: &[u8], caption: &Caption, icc: Option<&[u8]>, keep: WriteOptions) -> Vec<u8> {
    let header = JpegHeader::parse(original, &LIMITS).expect("a sample");
    let metadata = write(caption, &header.exif(original), keep);
    let (head, tail) = rewrite_metadata(original, &header, &metadata, icc);
    [&head, &original[tail]].concat()
}

fn has_secret(jpeg: &[u8]) -> bool {
    jpeg.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

#[test]
fn metadata_of_the_original_that_the_document_lacks_is_removed() {
    let (original, document) = (cluttered(), full(str::to_owned));
    assert!(has_secret(&original));
    let jpeg = hires(&original, &caption(&document), None, PLAIN);
    assert!(!has_secret(&jpeg));
    assert_eq!(segments(&jpeg), ["JFIF", "Exif", "http", "Photoshop"]);
    let tags = exiftool(&jpeg);
    assert_eq!(caption_tags(&tags), Expected::of(&document));
    let groups = ["SourceFile", "ExifTool", "System", "File", "JFIF", "Composite"];
    let groups = [groups.as_slice(), &["IFD0", "ExifIFD", "IPTC"]].concat();
    for key in tags.keys().filter(|key| !key.starts_with("XMP-")) {
        assert!(groups.contains(&key.split(':').next().expect("a group")), "{key}");
    }
    assert!(!tags.keys().any(|key| key.contains("Thumbnail") || key.contains("MakerNote")));
}

#[test]
fn an_original_without_a_document_leaves_nothing() {
    let jpeg = hires(&cluttered(), &Caption::default(), None, PLAIN);
    assert!(!has_secret(&jpeg));
    assert_eq!(segments(&jpeg), ["JFIF"]);
}

#[test]
fn only_the_profile_and_a_kept_position_come_from_the_original() {
    let profile = moxcms::ColorProfile::new_srgb().encode().expect("a profile");
    let original = cluttered();
    let original = [&original[..2], &icc_segments(&profile), &original[2..]].concat();
    let jpeg = hires(&original, &caption(&json!({})), Some(&profile), WITH_GPS);
    assert!(!has_secret(&jpeg));
    assert_eq!(segments(&jpeg), ["JFIF", "Exif", "http", "Photoshop", "ICC"]);
    let tags = exiftool(&jpeg);
    assert_eq!(tags["GPS:GPSLatitude"], json!(59));
    assert_eq!(tags["GPS:GPSLongitude"], json!(18));
    assert!(tags.keys().any(|key| key.starts_with("ICC")));
}

#[test]
fn exiftool_reads_the_documents_position_only_where_it_is_kept() {
    let mut document = full(str::to_owned);
    document["place"][0]["geometry_geojson"] =
        json!({ "type": "Point", "coordinates": [-70.6483, -33.4569] });
    let caption = caption(&document);
    let tags = exiftool(&hires(&cluttered(), &caption, None, WITH_GPS));
    let number = |key: &str| tags[key].as_f64().expect("a number");
    assert!((number("Composite:GPSLatitude") + 33.4569).abs() < 1e-6);
    assert!((number("Composite:GPSLongitude") + 70.6483).abs() < 1e-6);
    let tags = exiftool(&hires(&cluttered(), &caption, None, PLAIN));
    assert!(!tags.keys().any(|key| key.contains("GPS")), "{tags:#?}");
}
