//! The places that state the rights in an item: `.metadata.json`, NewsML-G2, ninjs, the document, search, and headers.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::{Value, json};

use super::standard::{Rule, properties};
use super::{PLAIN, PLUS, SOURCE_TYPES, ask, fetch, fixtures, header, json_of};
use crate::common::{Server, checkout, news};

const REFERENCE: &str = "/media/image/reference";

fn server(settings: &[&str]) -> Server {
    let settings = [&PLAIN[..], settings].concat();
    Server::with_pictures(&settings, &[("reference", fixtures::reference())])
}

/// Returns whether an object anywhere in the value has a member of that name.
fn has_member(value: &Value, name: &str) -> bool {
    match value {
        Value::Array(entries) => entries.iter().any(|one| has_member(one, name)),
        Value::Object(members) => {
            members.contains_key(name) || members.values().any(|one| has_member(one, name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[test]
fn metadata_json_has_every_property_by_its_rule_under_the_names_of_the_standard() {
    let names_of = |rules: &[Rule]| -> BTreeSet<String> {
        let named = properties().into_iter().filter(|one| rules.contains(&one.rule));
        named.map(|one| one.name).collect()
    };
    let always = [Rule::Document, Rule::Short, Rule::Carried, Rule::Transformed];
    let server = server(&[]);
    let metadata = json_of(&server, &format!("{REFERENCE}.metadata.json"));
    let found = |metadata: &Value| -> BTreeSet<String> {
        metadata.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(names_of(&[Rule::Never]), BTreeSet::from(["imageRating".to_owned()]));
    assert_eq!(found(&metadata), names_of(&always), "{metadata:#}");
    for (name, value) in [
        ("digitalSourceType", json!(format!("{SOURCE_TYPES}softwareImage"))),
        ("dataMining", json!(format!("{PLUS}DMI-PROHIBITED-GENAIMLTRAINING"))),
        ("headline", json!("The Headline (ref2023.2)")),
        ("description", json!({ "x-default": "The description aka caption (ref2023.2)" })),
        ("creatorNames", json!(["Creator1 (ref2023.2)"])),
        ("keywords", json!(["Keyword1ref2023.2", "Keyword2ref2023.2", "Keyword3ref2023.2"])),
        ("webstatementRights", json!("https://example.com/WebStatementOfRights/ref2023.2")),
        ("aIPromptWriterNam", json!("AI Prompt Writer Name (ref2025.1)")),
        ("maxAvailWidth", json!(1600)),
        ("maxAvailHeight", json!(1067)),
    ] {
        assert_eq!(metadata[name], value, "{name}");
    }
    let alt = "This is the Alt Text description to support accessibility in 2023.2";
    assert_eq!(metadata["altTextAccessibility"], json!({ "x-default": alt, "en": alt }));
    assert_eq!(
        metadata["licensors"][1]["licensorUrl"],
        "https://example.com/LicensorURL_2_ref2023.2"
    );
    assert_eq!(metadata["imageRegion"].as_array().map(Vec::len), Some(3));
    assert_eq!(metadata["imageRegion"][0]["regionBoundary"]["rbX"], 0.31);
    for hidden in ["gpsLatitude", "gpsLongitude", "gpsAltitude", "personsShown"] {
        assert!(!has_member(&metadata, hidden), "{hidden}: {metadata:#}");
    }
    assert!(!has_member(&metadata["imageRegion"], "personInImageNames"));
    let server = server.restart(&["media.keep_gps=true", "media.keep_person_details=true"]);
    let metadata = json_of(&server, &format!("{REFERENCE}.metadata.json"));
    assert_eq!(found(&metadata), names_of(&[&always[..], &[Rule::PersonDetails]].concat()));
    for kept in ["gpsLatitude", "gpsLongitude", "gpsAltitude"] {
        assert!(has_member(&metadata, kept), "{kept}: {metadata:#}");
    }
    assert!(has_member(&metadata["imageRegion"], "personInImageNames"));
}

#[test]
fn the_documents_are_as_open_as_json_and_have_validators() {
    let server = Server::demo();
    let (image, video) = ("/media/image/demo-urtavla", "/media/video/demo-hubble-pan");
    for extension in [".metadata.json", ".ninjs.json"] {
        let path = format!("{image}{extension}");
        let response = server.get(&path);
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(header(&response, "content-type"), "application/json");
        let etag = header(&response, "etag");
        let known = server.get_with(&path, &[("if-none-match", etag.as_str())]);
        assert_eq!(known.status(), 304, "{path}");
        assert_eq!(server.get(&format!("{video}{extension}")).status(), 401);
        assert_eq!(ask(&server, &format!("{video}{extension}")).status(), 200);
        assert_eq!(server.get(&format!("/media/image/unknown{extension}")).status(), 404);
        assert_eq!(server.get(&format!("{image}-crop_w9_h9{extension}")).status(), 400);
    }
}

/// Validates files with a version of the schema of NewsML-G2.
#[track_caller]
fn validate(version: &str, files: &[std::path::PathBuf]) {
    let schema = checkout(&format!("tests/schemas/NewsML-G2_{version}-spec-All-Power.xsd"));
    let mut lint = Command::new("xmllint");
    lint.args(["--nonet", "--noout", "--schema"]).arg(schema).args(files);
    let output = lint.output().expect("./test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn newsml_2_35_states_rights_and_2_30_stays_for_clients_that_compare_versions() {
    let server = server(&[]);
    let folder = tempfile::tempdir().expect("folder");
    let get = |server: &Server, query: &str| {
        String::from_utf8(fetch(server, &format!("{REFERENCE}.xml{query}"))).expect("UTF-8")
    };
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    let is_new = |text: &str| {
        let made = format!("<digitalSourceType uri=\"{SOURCE_TYPES}softwareImage\"/>");
        let mining = format!("<dataMining uri=\"{PLUS}DMI-PROHIBITED-GENAIMLTRAINING\"/>");
        assert!(text.contains("standardversion=\"2.35\"") && !text.contains("\"2.30\""), "{text}");
        assert!(text.contains(&made) && text.contains(&mining), "{text}");
        for stated in [
            "https://example.com/WebStatementOfRights/ref2023.2",
            "https://example.com/LicensorURL_1_ref2023.2",
            "This is the Alt Text description",
        ] {
            assert!(text.contains(stated), "{stated}: {text}");
        }
    };
    let is_old = |text: &str| {
        assert!(text.contains("standardversion=\"2.30\"") && !text.contains("\"2.35\""), "{text}");
        assert!(!text.contains("digitalSourceType") && !text.contains("dataMining"), "{text}");
    };
    let (new, old) = (get(&server, ""), get(&server, "?version=2.30"));
    is_new(&new);
    is_new(&get(&server, "?version=2.35"));
    is_old(&old);
    validate("2.35", &[put("new.xml", &new)]);
    validate("2.30", &[put("old.xml", &old)]);
    let tag = |query: &str| header(&ask(&server, &format!("{REFERENCE}.xml{query}")), "etag");
    assert_ne!(tag(""), tag("?version=2.30"));
    assert_eq!(tag(""), tag("?version=2.35"));
    let refused = ask(&server, &format!("{REFERENCE}.xml?version=2.31"));
    assert_eq!(refused.status(), 400);
    let problem: Value = refused.json().expect("JSON");
    assert_eq!(problem["errors"][0]["path"], "version", "{problem}");
    let server = server.restart(&["media.newsml=2.30"]);
    is_old(&get(&server, ""));
    is_new(&get(&server, "?version=2.35"));
}

#[test]
fn every_media_type_is_valid_newsml_in_both_versions() {
    let server = Server::demo();
    let folder = tempfile::tempdir().expect("folder");
    for version in ["2.30", "2.35"] {
        let mut files = Vec::new();
        for key in demo_items() {
            let path = format!("/media/{key}.xml?version={version}");
            let file = folder.path().join(format!("{}-{version}.xml", key.replace('/', "-")));
            fs::write(&file, fetch(&server, &path)).expect("written");
            files.push(file);
        }
        assert!(files.len() > 10, "{files:?}");
        validate(version, &files);
    }
}

/// The keys of all items of the demo archive.
fn demo_items() -> Vec<String> {
    let list = |path: std::path::PathBuf| -> Vec<String> {
        let entries = fs::read_dir(path).expect("the demo archive").flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name().into_string().expect("a name")).collect()
    };
    let root = checkout("media-store/demo");
    let of_type = |kind: String| {
        let ids = list(root.join(&kind)).into_iter();
        ids.map(move |id| format!("{kind}/{id}")).collect::<Vec<_>>()
    };
    list(root.clone()).into_iter().flat_map(of_type).collect()
}

/// The validator of ninjs 3.1. Its schema refers to that of GeoJSON at another host, which is not fetched.
fn ninjs() -> jsonschema::Validator {
    let text =
        fs::read_to_string(checkout("tests/schemas/ninjs-schema_3.1.json")).expect("schema");
    let remote = "\"$ref\": \"https://geojson.org/schema/GeoJSON.json#\"";
    assert!(text.contains(remote), "the schema of another version");
    let schema = serde_json::from_str(&text.replace(remote, "\"type\": \"object\""));
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    let options = options.should_validate_formats(true);
    options.build(&schema.expect("JSON")).expect("a schema")
}

#[test]
fn ninjs_validates_for_every_media_type_and_states_the_source_type() {
    let validator = ninjs();
    let suite = checkout("tests/schemas/ninjs-3.1-test-suite");
    for (folder, expected) in [("should_pass", true), ("should_fail", false)] {
        let files: Vec<_> = fs::read_dir(suite.join(folder)).expect("folder").flatten().collect();
        assert!(!files.is_empty(), "{folder}");
        for file in files {
            let text = fs::read_to_string(file.path()).expect("a document");
            let document: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(validator.is_valid(&document), expected, "{}", file.path().display());
        }
    }
    let check = |server: &Server, key: &str| {
        let document = json_of(server, &format!("/media/{key}.ninjs.json"));
        let problems: Vec<_> = validator.iter_errors(&document).map(|it| it.to_string()).collect();
        assert!(problems.is_empty(), "{key}: {problems:?}\n{document:#}");
        assert_eq!(document["uri"], format!("{}/media/{key}", server.url), "{key}");
        document
    };
    let demo = Server::demo();
    let items = demo_items();
    assert!(items.len() > 10, "{items:?}");
    for key in items {
        check(&demo, &key);
    }
    drop(demo);
    let server = server(&[]);
    let document = check(&server, "image/reference");
    let uri = format!("{SOURCE_TYPES}softwareImage");
    assert_eq!(document["digitalSourceType"]["uri"], uri.as_str());
    assert_eq!(document["headlines"][0]["value"], "The Headline (ref2023.2)");
    let renditions = document["renditions"].as_array().expect("renditions");
    assert!(renditions.iter().any(|one| {
        one["href"].as_str().is_some_and(|href| href.ends_with("_NormalPreview.jpg"))
    }));
}

#[test]
fn the_document_states_rights_where_its_schema_has_a_place() {
    let schema = fs::read_to_string(checkout("crates/model/assets/ttninjs-schema_1.6.json"));
    let schema: Value = serde_json::from_str(&schema.expect("the schema")).expect("JSON");
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft4);
    let validator = options.should_validate_formats(true).build(&schema).expect("a schema");
    let server = server(&[]);
    let document = json_of(&server, &format!("{REFERENCE}.json"));
    let problems: Vec<_> = validator.iter_errors(&document).map(|it| it.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let indicator = json!([{ "scheme": SOURCE_TYPES, "code": "softwareImage" }]);
    assert_eq!(document["trustindicator"], indicator);
    let page = "https://example.com/WebStatementOfRights/ref2023.2";
    assert_eq!(document["rightsinfo"]["linkedrights"], page);
    assert_eq!(document["usageterms"], "Rights Usage Terms (ref2023.2)");
    // The provider's document counts before the file.
    let own = json!({
        "headline": "Own statements",
        "trustindicator": [{ "scheme": SOURCE_TYPES, "code": "digitalCapture" }],
        "rightsinfo": { "linkedrights": "https://provider.example/rights" },
    });
    let folder = fixtures::folder(server.dir.path(), "image/own", &own, &fixtures::reference());
    fixtures::ingest(&server, &folder);
    let document = json_of(&server, "/media/image/own.json");
    assert_eq!(document["trustindicator"], own["trustindicator"]);
    assert_eq!(document["rightsinfo"], own["rightsinfo"]);
    let ninjs = json_of(&server, "/media/image/own.ninjs.json");
    assert_eq!(ninjs["digitalSourceType"]["literal"], "digitalCapture");
    assert_eq!(ninjs["rightsInfo"]["linkedRights"], "https://provider.example/rights");
}

#[test]
fn search_finds_and_counts_items_by_source_type_and_data_mining() {
    let made = |source_type: &str, data_mining: &str| {
        fixtures::with_xmp(&fixtures::plain(), &fixtures::ai_made(source_type, data_mining))
    };
    let pictures = [
        ("a", made("trainedAlgorithmicMedia", "DMI-PROHIBITED")),
        ("b", made("digitalCapture", "DMI-PROHIBITED-AIMLTRAINING")),
        ("c", made("digitalCapture", "DMI-ALLOWED")),
        ("d", fixtures::plain()),
    ];
    let server = Server::with_pictures(&PLAIN, &pictures);
    server.wait_for_index();
    let search = |query: &str| {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        json_of(&server, &format!("/content/v1/image/search?q={query}&facets=digitalsourcetype"))
    };
    let ids = |query: &str| -> BTreeSet<String> {
        let answer = search(query);
        let hits = answer["hits"].as_array().expect("hits").iter();
        let uri = hits.map(|hit| hit["uri"].as_str().expect("an address").to_owned());
        uri.map(|uri| uri.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    };
    let check = |query: &str, expected: &[&str]| {
        let expected = expected.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(ids(query), expected, "{query}");
    };
    check("digitalsourcetype:trainedAlgorithmicMedia", &["a"]);
    check("digitalsourcetype:digitalCapture", &["b", "c"]);
    check(&format!("digitalsourcetype:\"{SOURCE_TYPES}digitalCapture\""), &["b", "c"]);
    check("datamining:DMI-PROHIBITED", &["a", "b"]);
    check("datamining:DMI-PROHIBITED-AIMLTRAINING", &["b"]);
    check("digitalsourcetype:digitalCapture datamining:DMI-ALLOWED", &["c"]);
    check("NOT digitalsourcetype:trainedAlgorithmicMedia", &["b", "c", "d"]);
    check("trainedAlgorithmicMedia", &[]);
    let counts = &search("")["facets"]["digitalsourcetype"];
    let expected = json!([
        { "key": "digitalCapture", "count": 2 }, { "key": "trainedAlgorithmicMedia", "count": 1 },
    ]);
    assert_eq!(*counts, expected);
}

#[test]
fn headers_for_crawlers_are_sent_where_the_settings_name_them() {
    let names = ["content-usage", "tdm-reservation", "tdm-policy"];
    let rests = ["_NormalPreview.jpg", "_NormalThumbnail.webp", ".jpg", ".json", ".metadata.json"];
    let read = |server: &Server, rest: &str| {
        let response = ask(server, &format!("{REFERENCE}{rest}"));
        assert_eq!(response.status(), 200, "{rest}");
        let etag = header(&response, "etag");
        let path = format!("{REFERENCE}{rest}");
        let key = format!("ApiKey {}", crate::common::DEMO_KEY);
        let headers = [("if-none-match", etag.as_str()), ("authorization", key.as_str())];
        let known = server.get_with(&path, &headers);
        assert_eq!(known.status(), 304, "{rest}");
        (names.map(|name| header(&response, name)), names.map(|name| header(&known, name)))
    };
    let server = server(&[]);
    let none = [""; 3].map(str::to_owned);
    for rest in rests {
        assert_eq!(read(&server, rest).0, none, "{rest}");
    }
    let stated = [
        "media.content_usage=train-ai=n",
        "media.tdm_reservation=true",
        "media.tdm_policy=https://agency.example/tdm.json",
    ];
    let server = server.restart(&[&PLAIN[..], &stated].concat());
    let expected = ["train-ai=n", "1", "https://agency.example/tdm.json"].map(str::to_owned);
    for rest in rests {
        let (full, unchanged) = read(&server, rest);
        assert_eq!(full, expected, "{rest}");
        // A 304 updates the headers of what a cache holds.
        assert_eq!(unchanged, expected, "{rest}");
    }
}

#[test]
fn settings_about_pictures_replace_nothing_in_an_item_without_files() {
    let own = "https://provider.example/rights";
    let story = json!({ "headline": "Only words", "rightsinfo": { "linkedrights": own } });
    let settings = ["media.web_statement=https://agency.example/rights"];
    let server = news::server(&settings, &[("text/story", story)]);
    let document = json_of(&server, "/media/text/story.json");
    assert_eq!(document["rightsinfo"]["linkedrights"], own);
    let newsml = String::from_utf8(fetch(&server, "/media/text/story.xml")).expect("UTF-8");
    assert!(newsml.contains(own) && !newsml.contains("agency.example"), "{newsml}");
}

#[test]
fn items_without_pictures_have_metadata_of_their_document() {
    let server = news::server(&[], &[("text/story", json!({ "headline": "Only words" }))]);
    let metadata = json_of(&server, "/media/text/story.metadata.json");
    assert_eq!(metadata["headline"], "Only words");
    assert_eq!(metadata.get("digitalSourceType"), None);
}
