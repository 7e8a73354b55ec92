//! Default rights, source rights and rights overrides: which of them counts, and what follows a change.

use std::fs;

use model::MediaType;
use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use super::exiftool::{self, Tags};
use super::{
    DATA_MINING_TAG, PLAIN, PLUS, Renditions, SOURCE_TYPE_TAG, SOURCE_TYPES, ask, fetch, fixtures,
    header, json_of, send,
};
use crate::common::{
    DEMO_KEY, Server, news, pictures::Picture, server::output, server::wirephoto,
};
use crate::items::{form, provider, put};
use crate::notifications;
use crate::purges;

const RIGHTS: &str = "/ingest/v1/image/quay/rights";

/// A photograph that was made by a machine and whose data mining is allowed.
fn quay() -> Vec<u8> {
    fixtures::with_xmp(
        &fixtures::plain(),
        &fixtures::ai_made("trainedAlgorithmicMedia", "DMI-ALLOWED"),
    )
}

fn mining(code: &str) -> Value {
    json!(format!("{PLUS}{code}"))
}

/// The tags of renditions of an item: Hires, Preview and Thumbnail.
fn tags_of(server: &Server, id: &str) -> Vec<(String, Tags)> {
    let renditions = Renditions::new();
    let rests = [".jpg", "_NormalPreview.webp", "_NormalThumbnail.jpg"];
    renditions.fetch(server, id, &rests);
    let tags = renditions.tags();
    tags.iter().for_each(|(name, tags)| exiftool::is_sound(name, tags));
    tags
}

/// Checks what every rendition of an item says about data mining.
#[track_caller]
fn says(server: &Server, id: &str, code: &str) {
    for (name, tags) in tags_of(server, id) {
        assert_eq!(tags.get(DATA_MINING_TAG), Some(&mining(code)), "{name}");
    }
}

/// The path and the rule of each error of a 400.
#[track_caller]
fn problems(response: Response) -> Vec<String> {
    assert_eq!(response.status(), 400);
    let body: Value = response.json().expect("JSON");
    let text = |one: &Value, name: &str| one[name].as_str().expect("text").to_owned();
    let errors = body["errors"].as_array().expect("errors").iter();
    errors.map(|one| format!("{} {}", text(one, "location"), text(one, "path"))).collect()
}

#[test]
fn settings_state_rights_for_every_picture_and_win_over_the_original() {
    let pictures = [("plain", fixtures::plain()), ("reference", fixtures::reference())];
    let server = Server::with_pictures(&PLAIN, &pictures);
    let tag = |server: &Server, rest: &str| {
        header(&ask(server, &format!("/media/image/{rest}")), "etag")
    };
    let rests = ["plain.jpg", "plain_NormalThumbnail.jpg", "reference_NormalPreview.jpg"];
    let before = rests.map(|rest| tag(&server, rest));
    assert!(tags_of(&server, "plain").iter().all(|(_, tags)| !tags.contains_key(DATA_MINING_TAG)));
    let stated = [
        "media.licensor=Bildbyrån",
        "media.licensor_url=https://agency.example/licence?from=picture",
        "media.web_statement=https://agency.example/rights",
        "media.data_mining=DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING",
    ];
    let server = server.restart(&[&PLAIN[..], &stated].concat());
    for (id, _) in pictures {
        says(&server, id, "DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING");
        for (name, tags) in tags_of(&server, id) {
            if name.contains("Thumbnail") {
                continue;
            }
            let licensor = &tags["XMP-plus:Licensor"];
            assert_eq!(licensor.as_array().map(Vec::len), Some(1), "{name}: {licensor}");
            let expected = json!({
                "LicensorName": "Bildbyrån",
                "LicensorURL": "https://agency.example/licence?from=picture",
            });
            assert_eq!(licensor[0], expected, "{name}");
            let page = "https://agency.example/rights";
            assert_eq!(tags["XMP-xmpRights:WebStatement"], page, "{name}");
        }
    }
    for (rest, old) in rests.iter().zip(before) {
        assert_ne!(tag(&server, rest), old, "{rest}");
    }
    let metadata = json_of(&server, "/media/image/reference.metadata.json");
    assert_eq!(metadata["licensors"][0]["licensorName"], "Bildbyrån");
    for wrong in ["media.data_mining=DMI-MAYBE", "media.web_statement=agency.example"] {
        let said = output(wirephoto(server.dir.path()).args(["config", "--set", wrong]));
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let name = wrong.split('=').next().unwrap_or_default();
        assert!(!said.status.success() && text.contains(name), "{wrong}: {text}");
    }
}

#[test]
fn a_source_states_rights_for_its_files_and_a_wrong_statement_stops_them() {
    let settings = [&PLAIN[..], &["media.data_mining=DMI-PROHIBITED"]].concat();
    let server = Server::with_pictures::<&str>(&settings, &[]);
    let root = server.dir.path().join("source");
    let near = root.join("near");
    fs::create_dir_all(&near).expect("folder");
    let write = |name: &str, bytes: &[u8]| fs::write(root.join(name), bytes).expect("written");
    write("rights.json", br#"{"dataMining": "DMI-PROHIBITED-GENAIMLTRAINING", "jobid": "far"}"#);
    write("far.jpg", &quay());
    write("near/rights.json", br#"{"jobid": "near"}"#);
    write("near/close.jpg", &Picture::flat(90, 60, [9, 90, 9]).jpeg());
    fixtures::ingest(&server, &root);
    for (id, job) in [("far", "far"), ("close", "near")] {
        says(&server, id, "DMI-PROHIBITED-GENAIMLTRAINING");
        let (name, tags) = tags_of(&server, id).remove(0);
        assert_eq!(tags["XMP-photoshop:TransmissionReference"], job, "{name}");
    }
    write("near/rights.json", br#"{"licensors": [{"licensorUrl": 7}]}"#);
    write("near/other.jpg", &Picture::flat(90, 60, [90, 9, 9]).jpeg());
    let said = server.command(&["ingest", &near.to_string_lossy()]);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{errors}");
    assert!(errors.contains("rights.json") && errors.contains("licensorUrl"), "{errors}");
    assert_eq!(server.get("/media/image/other.json").status(), 404);

    let (auth, jpeg) = (provider(&server), fixtures::plain());
    let item = br#"{"headline": "Sent"}"#;
    let rights = br#"{"dataMining": "DMI-PROHIBITED-SEECONSTRAINT", "otherConstraints": {"x-default": "No training"}}"#;
    let parts: &[(&str, &[u8])] =
        &[("item", item), ("rights", rights), ("NormalHires.jpg", &jpeg)];
    assert_eq!(put(&server, "image/sent", &auth, form(parts)).status(), 201);
    says(&server, "sent", "DMI-PROHIBITED-SEECONSTRAINT");
    for (name, tags) in tags_of(&server, "sent") {
        assert_eq!(tags["XMP-plus:OtherConstraints"], "No training", "{name}");
    }
    let wrong: &[(&str, &[u8])] = &[
        ("item", item),
        ("rights", br#"{"dataMining": "DMI-MAYBE"}"#),
        ("NormalHires.jpg", &jpeg),
    ];
    let found = problems(put(&server, "image/wrong", &auth, form(wrong)));
    assert_eq!(found, ["body dataMining"]);
    let regions: &[(&str, &[u8])] = &[
        ("item", item),
        ("rights", br#"{"imageRegion": [{"name": {"x-default": "ball"}}]}"#),
        ("NormalHires.jpg", &jpeg),
    ];
    let found = problems(put(&server, "image/wrong", &auth, form(regions)));
    assert_eq!(found, ["body imageRegion"]);
    assert_eq!(server.get("/media/image/wrong.json").status(), 404);
}

#[test]
fn a_statement_in_an_item_folder_without_files_is_refused() {
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let source = server.dir.path().join("source");
    let document = json!({ "headline": "First" });
    let folder = fixtures::folder(&source, "image/quay", &document, &quay());
    fixtures::ingest(&server, &folder);
    fs::remove_file(folder.join("NormalHires.jpg")).expect("removed");
    fs::write(folder.join("item.json"), r#"{"headline": "Second"}"#).expect("written");
    let statement = folder.join("rights.json");
    fs::write(&statement, r#"{"dataMining": "DMI-PROHIBITED"}"#).expect("written");
    let said = server.command(&["ingest", &folder.to_string_lossy()]);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(1), "{errors}");
    assert!(errors.contains("rights.json: is about files"), "{errors}");
    assert_eq!(json_of(&server, "/media/image/quay.json")["headline"], "First");
    says(&server, "quay", "DMI-ALLOWED");
    // A statement around the folder is about other files too, so it stops no document.
    fs::rename(&statement, source.join("rights.json")).expect("moved");
    fixtures::ingest(&server, &source);
    server.until("the document", || {
        (json_of(&server, "/media/image/quay.json")["headline"] == "Second").then_some(())
    });
    says(&server, "quay", "DMI-ALLOWED");
}

#[test]
fn a_statement_in_the_watched_folder_holds_for_what_arrives_in_it() {
    let watched = tempfile::tempdir().expect("folder");
    fs::write(watched.path().join("rights.json"), r#"{"dataMining": "DMI-PROHIBITED"}"#)
        .expect("written");
    let settings = [
        format!("ingest.watch={}", watched.path().display()),
        "ingest.watch_interval_ms=20".to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(PLAIN).collect();
    let server = Server::with_pictures::<&str>(&settings, &[]);
    fs::write(watched.path().join("quay.part"), quay()).expect("written");
    fs::rename(watched.path().join("quay.part"), watched.path().join("quay.jpg"))
        .expect("renamed");
    let path = "/media/image/quay.json";
    server.until("the photograph", || (server.get(path).status() == 200).then_some(()));
    says(&server, "quay", "DMI-PROHIBITED");
    assert!(watched.path().join("rights.json").exists(), "it holds for the next photograph too");
}

#[test]
fn only_providers_set_rights_and_an_error_names_the_property() {
    let server = Server::with_pictures(&PLAIN, &[("quay", quay())]);
    let auth = provider(&server);
    let change = json!({ "dataMining": "DMI-PROHIBITED" });
    let buyer = "ApiKey demo-key-0000-0000-000000000003";
    for (method, body) in [(Method::PUT, Some(&change)), (Method::GET, None)] {
        assert_eq!(send(&server, method.clone(), RIGHTS, "", body).status(), 401);
        for other in [format!("ApiKey {DEMO_KEY}"), buyer.to_owned()] {
            let refused = send(&server, method.clone(), RIGHTS, &other, body);
            assert_eq!(refused.status(), 403, "{method} {other}");
            let body: Value = refused.json().expect("JSON");
            assert_eq!(body["errors"][0]["errorCode"], "provider_required");
        }
    }
    let unknown = "/ingest/v1/image/unknown/rights";
    assert_eq!(send(&server, Method::PUT, unknown, &auth, Some(&change)).status(), 404);
    assert_eq!(send(&server, Method::GET, unknown, &auth, None).status(), 404);
    let refused = |body: Value| problems(send(&server, Method::PUT, RIGHTS, &auth, Some(&body)));
    assert_eq!(refused(json!({ "dataMining": "DMI-MAYBE" })), ["body dataMining"]);
    assert_eq!(refused(json!({ "noProperty": "x" })), ["body noProperty"]);
    assert_eq!(refused(json!({ "headline": "of the document" })), ["body headline"]);
    assert_eq!(refused(json!({ "imageRating": 3 })), ["body imageRating"]);
    assert_eq!(refused(json!({ "jobid": "8", "dataMinning": null })), ["body dataMinning"]);
    assert_eq!(refused(json!({ "headline": null })), ["body headline"]);
    assert_eq!(refused(json!({ "imageRegion": [] })), ["body imageRegion"]);
    assert_eq!(refused(json!({ "jobid": "8", "usageTerms": "" })), ["body usageTerms"]);
    assert_eq!(refused(json!({ "licensors": [] })), ["body licensors"]);
    assert_eq!(
        refused(json!({ "licensors": [{ "licensorName": "A" }, { "licensorUrl": 7 }] })),
        ["body licensors.1.licensorUrl"]
    );
    let script = "javascript:alert(1)";
    assert_eq!(refused(json!({ "webstatementRights": script })), ["body webstatementRights"]);
    assert_eq!(
        refused(json!({ "licensors": [{ "licensorUrl": script }] })),
        ["body licensors.0.licensorUrl"]
    );
    assert_eq!(refused(json!({ "jobid": "8", "usageTerms": 7 })), ["body usageTerms"]);
    assert_eq!(refused(json!([])), ["body "]);
    let set = send(&server, Method::GET, RIGHTS, &auth, None);
    assert_eq!(set.json::<Value>().expect("JSON"), json!({}), "nothing was set");
    says(&server, "quay", "DMI-ALLOWED");
}

#[test]
fn what_is_set_for_an_item_has_a_limit_in_all() {
    let server = Server::with_pictures(&PLAIN, &[("quay", quay())]);
    let auth = provider(&server);
    let set = |name: &str, text: String| {
        send(&server, Method::PUT, RIGHTS, &auth, Some(&json!({ name: text })))
    };
    assert_eq!(set("usageTerms", "x".repeat(40_000)).status(), 200);
    let refused = set("otherConstraints", "y".repeat(40_000));
    assert_eq!(refused.status(), 400);
    let problem: Value = refused.json().expect("JSON");
    let message = problem["errors"][0]["message"].as_str().expect("text");
    assert!(message.contains("at most 65536 are allowed"), "{message}");
    assert_eq!(set("otherConstraints", "y".repeat(70_000)).status(), 413);
    let listed = send(&server, Method::GET, RIGHTS, &auth, None).json::<Value>().expect("JSON");
    assert_eq!(listed.as_object().map(serde_json::Map::len), Some(1), "the rest stays");
    assert_eq!(set("usageTerms", "short".to_owned()).status(), 200);
    assert_eq!(set("otherConstraints", "y".repeat(40_000)).status(), 200);
}

/// The renditions and documents of the item, by what follows its id.
const SERVED: [&str; 8] = [
    ".jpg",
    "_NormalPreview.jpg",
    "_NormalPreview.webp",
    "-crop_w90_h80.jpg",
    "_NormalThumbnail.jpg",
    ".json",
    ".xml",
    ".metadata.json",
];

fn entity_tags(server: &Server) -> Vec<String> {
    let tag = |rest: &&str| header(&ask(server, &format!("/media/image/quay{rest}")), "etag");
    SERVED.iter().map(tag).collect()
}

#[test]
fn what_is_set_for_an_item_wins_everywhere_and_null_takes_it_back() {
    let settings = [&PLAIN[..], &["media.data_mining=DMI-PROHIBITED-AIMLTRAINING"]].concat();
    let server = Server::with_pictures(&settings, &[("quay", quay())]);
    let auth = provider(&server);
    let set = |body: Value| {
        let answer = send(&server, Method::PUT, RIGHTS, &auth, Some(&body));
        assert_eq!(answer.status(), 200, "{body}");
        answer.json::<Value>().expect("JSON")
    };
    let found_by = |query: &str| {
        let path = format!("/content/v1/image/search?q={query}");
        json_of(&server, &path)["total"] == 1
    };
    says(&server, "quay", "DMI-PROHIBITED-AIMLTRAINING");
    let (first, pixels) =
        (entity_tags(&server), fetch(&server, "/media/image/quay_NormalPreview.jpg"));
    let change = json!({
        "dataMining": "DMI-PROHIBITED", "digitalSourceType": "compositeSynthetic",
        "webstatementRights": "https://agency.example/rights",
    });
    let expected = json!({
        "dataMining": mining("DMI-PROHIBITED"),
        "digitalSourceType": format!("{SOURCE_TYPES}compositeSynthetic"),
        "webstatementRights": "https://agency.example/rights",
    });
    assert_eq!(set(change.clone()), expected);
    let listed = send(&server, Method::GET, RIGHTS, &auth, None);
    assert_eq!(listed.json::<Value>().expect("JSON"), expected);
    says(&server, "quay", "DMI-PROHIBITED");
    for (name, tags) in tags_of(&server, "quay") {
        assert_eq!(tags[SOURCE_TYPE_TAG], expected["digitalSourceType"], "{name}");
    }
    let second = entity_tags(&server);
    for ((rest, old), new) in SERVED.iter().zip(&first).zip(&second) {
        assert_ne!(old, new, "{rest}");
        let path = format!("/media/image/quay{rest}");
        let key = format!("ApiKey {DEMO_KEY}");
        let known = server.get_with(&path, &[("if-none-match", old), ("authorization", &key)]);
        assert_eq!(known.status(), 200, "{rest}: a client with the old version gets the new one");
    }
    // Only metadata differs.
    let now = fetch(&server, "/media/image/quay_NormalPreview.jpg");
    assert!(Picture::decode(&now) == Picture::decode(&pixels) && now != pixels);
    let metadata = json_of(&server, "/media/image/quay.metadata.json");
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&metadata[name], value, "{name}");
    }
    server.until("search to know", || {
        let new = found_by("digitalsourcetype:compositeSynthetic");
        (new && !found_by("digitalsourcetype:trainedAlgorithmicMedia")).then_some(())
    });
    // The same again changes nothing.
    assert_eq!(set(change), expected);
    assert_eq!(entity_tags(&server), second);
    // What is taken back is that of the settings and of the original again.
    let left = json!({ "webstatementRights": "https://agency.example/rights" });
    assert_eq!(set(json!({ "dataMining": null, "digitalSourceType": null })), left);
    says(&server, "quay", "DMI-PROHIBITED-AIMLTRAINING");
    assert_eq!(set(json!({ "webstatementRights": null })), json!({}));
    assert_eq!(entity_tags(&server)[..5], first[..5], "the renditions are those of the beginning");
}

#[test]
fn what_is_set_wins_where_the_original_and_the_document_say_the_same_property() {
    let server = Server::with_pictures(&PLAIN, &[("quay", fixtures::reference())]);
    let auth = provider(&server);
    let texts = [
        ("title", "XMP-dc:Title"),
        ("usageTerms", "XMP-xmpRights:UsageTerms"),
        ("instructions", "XMP-photoshop:Instructions"),
        ("jobid", "XMP-photoshop:TransmissionReference"),
        ("jobtitle", "XMP-photoshop:AuthorsPosition"),
        ("altTextAccessibility", "XMP-iptcCore:AltTextAccessibility"),
        ("digitalImageGuid", "XMP-iptcExt:DigitalImageGUID"),
    ];
    let mut change = json!({
        "copyrightOwners": [{ "copyrightOwnerName": "Set owner" }], "subjectCodes": ["04000000"],
    });
    for (name, _) in texts {
        change[name] = json!(format!("Set {name}"));
    }
    let answer = send(&server, Method::PUT, RIGHTS, &auth, Some(&change));
    assert_eq!(answer.status(), 200, "{}", answer.text().unwrap_or_default());
    let metadata = json_of(&server, "/media/image/quay.metadata.json");
    assert_eq!(metadata["usageTerms"], json!({ "x-default": "Set usageTerms" }));
    assert_eq!(metadata["instructions"], "Set instructions");
    for (file, tags) in tags_of(&server, "quay") {
        if file.contains("Thumbnail") {
            continue;
        }
        for (name, tag) in texts {
            assert_eq!(tags[tag], format!("Set {name}"), "{file}");
        }
        let owner = json!([{ "CopyrightOwnerName": "Set owner" }]);
        assert_eq!(tags["XMP-plus:CopyrightOwner"], owner, "{file}");
        assert_eq!(tags["XMP-iptcCore:SubjectCode"].to_string().matches("4000000").count(), 1);
    }
}

#[test]
fn what_is_set_replaces_the_value_of_the_document_in_every_format() {
    let server = Server::with_pictures::<&str>(&PLAIN, &[]);
    let sent = json!({
        "headline": "The quay",
        "usageterms": "Sent terms",
        "copyrightholder": "Sent owner",
        "ednote": "Sent note",
        "trustindicator": [{ "scheme": SOURCE_TYPES, "code": "print" }],
        "rightsinfo": { "linkedrights": "https://provider.example/rights" },
    });
    let folder = fixtures::folder(server.dir.path(), "image/quay", &sent, &quay());
    fixtures::ingest(&server, &folder);
    let read = |rest: &str| {
        let text = fetch(&server, &format!("/media/image/quay{rest}"));
        String::from_utf8(text).expect("UTF-8")
    };
    let formats = [".json", ".ninjs.json", ".xml", ".xml?version=2.30"];
    let texts = ["terms", "owner", "note"];
    let has = |text: &str, words: &[String]| words.iter().all(|word| text.contains(word));
    let sent = texts.map(|text| format!("Sent {text}"));
    let set = texts.map(|text| format!("Set {text}"));
    for rest in formats {
        let text = read(rest);
        assert!(has(&text, &sent) && text.contains("provider.example"), "{rest}: {text}");
    }
    let change = json!({
        "usageTerms": "Set terms",
        "copyrightOwners": [{ "copyrightOwnerName": "Set owner" }],
        "instructions": "Set note",
        "digitalSourceType": "compositeWithTrainedAlgorithmicMedia",
        "webstatementRights": "https://agency.example/rights",
    });
    let auth = provider(&server);
    let answer = send(&server, Method::PUT, RIGHTS, &auth, Some(&change));
    assert_eq!(answer.status(), 200, "{}", answer.text().unwrap_or_default());
    for rest in formats {
        let text = read(rest);
        assert!(has(&text, &set) && text.contains("agency.example/rights"), "{rest}: {text}");
        assert!(!text.contains("Sent ") && !text.contains("provider.example"), "{rest}: {text}");
        assert!(text.contains("compositeWithTrainedAlgorithmicMedia"), "{rest}: {text}");
    }
    let metadata = json_of(&server, "/media/image/quay.metadata.json");
    for (name, value) in [
        ("usageTerms", json!({ "x-default": "Set terms" })),
        ("copyrightOwners", json!([{ "copyrightOwnerName": "Set owner" }])),
        ("instructions", json!("Set note")),
        ("webstatementRights", json!("https://agency.example/rights")),
    ] {
        assert_eq!(metadata[name], value, "{name}");
    }
    let page = server.get_with("/item/image/quay", &[("accept-language", "en")]);
    let page = page.text().expect("text");
    assert!(has(&page, &set) && page.contains("agency.example"), "{page}");
    assert!(!page.contains("Sent ") && !page.contains("provider.example"), "{page}");
    assert!(page.contains("Edited with AI"), "{page}");
    let back = json!({ "usageTerms": null, "webstatementRights": null });
    let answer = send(&server, Method::PUT, RIGHTS, &auth, Some(&back));
    assert_eq!(answer.status(), 200, "{}", answer.text().unwrap_or_default());
    let document = json_of(&server, "/media/image/quay.json");
    assert_eq!(document["usageterms"], "Sent terms");
    assert_eq!(document["rightsinfo"]["linkedrights"], "https://provider.example/rights");
}

/// The audit events about rights in the item, newest first.
fn events(server: &Server) -> Vec<Value> {
    let list = ["audit", "list", "--json", "--action", "item_rights_changed"];
    let listed = server.command(&[&list[..], &["--object", "item/image/quay"]].concat());
    let text = String::from_utf8(listed.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn each_change_is_recorded_with_user_time_old_and_new_value() {
    let server = Server::with_pictures(&PLAIN, &[("quay", quay())]);
    let auth = provider(&server);
    let set = |body: Value| {
        let answer = send(&server, Method::PUT, RIGHTS, &auth, Some(&body));
        assert_eq!(answer.status(), 200, "{body}");
    };
    let before = jiff::Timestamp::now();
    set(json!({ "dataMining": "DMI-PROHIBITED", "jobid": "7" }));
    set(json!({ "dataMining": "DMI-ALLOWED" }));
    // A change that changes nothing is none.
    set(json!({ "dataMining": "DMI-ALLOWED" }));
    set(json!({ "dataMining": null }));
    assert_eq!(
        send(&server, Method::PUT, RIGHTS, &format!("ApiKey {DEMO_KEY}"), Some(&json!({})))
            .status(),
        403
    );
    // An event that changes nothing is written a moment later.
    let listed = server.until("the refused attempt", || {
        let listed = events(&server);
        (listed.len() == 5).then_some(listed)
    });
    let of = |outcome: &str| listed.iter().filter(|one| one["outcome"] == outcome).count();
    assert_eq!((of("done"), of("refused")), (4, 1), "{listed:#?}");
    let done: Vec<&Value> = listed.iter().filter(|one| one["outcome"] == "done").collect();
    let details: Vec<&str> =
        done.iter().map(|one| one["detail"].as_str().expect("text")).collect();
    let (allowed, prohibited) = (mining("DMI-ALLOWED"), mining("DMI-PROHIBITED"));
    let (allowed, prohibited) =
        (allowed.as_str().expect("text"), prohibited.as_str().expect("text"));
    assert_eq!(details[0], format!("dataMining: {allowed} -> none"));
    assert_eq!(details[1], format!("dataMining: {prohibited} -> {allowed}"));
    let first = [format!("dataMining: none -> {prohibited}"), "jobid: none -> 7".to_owned()];
    assert!(first.iter().all(|one| details[2..].contains(&one.as_str())), "{details:?}");
    for event in done {
        assert_eq!(
            (&event["userName"], &event["credential"]),
            (&json!("demo-admin"), &json!("api_key"))
        );
        let at: jiff::Timestamp = event["at"].as_str().expect("a time").parse().expect("a time");
        assert!(at >= before - jiff::SignedDuration::from_secs(1), "{event}");
    }
    let changes = send(&server, Method::GET, &format!("{RIGHTS}/changes"), &auth, None);
    let changes: Value = changes.json().expect("JSON");
    let changes = changes.as_array().expect("a list");
    let rights: Vec<&Value> = changes.iter().map(|one| &one["rights"]).collect();
    let expected = [
        json!({ "dataMining": null }),
        json!({ "dataMining": allowed }),
        json!({ "jobid": "7", "dataMining": prohibited }),
    ];
    assert_eq!(rights, expected.iter().collect::<Vec<_>>());
    assert!(changes.iter().all(|one| one["user"] == "demo-admin" && one["changed"].is_string()));
}

#[test]
fn what_is_set_survives_new_versions_a_withdrawal_and_a_restart() {
    let server = Server::with_pictures(&PLAIN, &[("quay", quay())]);
    let auth = provider(&server);
    let change = json!({ "dataMining": "DMI-PROHIBITED" });
    assert_eq!(send(&server, Method::PUT, RIGHTS, &auth, Some(&change)).status(), 200);
    let document = json!({ "headline": "A new version" });
    let other = fixtures::with_xmp(
        &Picture::corners(300, 200).jpeg(),
        &fixtures::ai_made("digitalCapture", "DMI-ALLOWED"),
    );
    let folder = fixtures::folder(server.dir.path(), "image/quay", &document, &other);
    fixtures::ingest(&server, &folder);
    let is_new = || {
        let document = json_of(&server, "/media/image/quay.json");
        (document["headline"] == "A new version").then_some(())
    };
    server.until("the new version", is_new);
    says(&server, "quay", "DMI-PROHIBITED");
    for (name, tags) in tags_of(&server, "quay") {
        assert_eq!(tags[SOURCE_TYPE_TAG], format!("{SOURCE_TYPES}digitalCapture"), "{name}");
    }
    let withdrawn = server.command(&["withdraw", "image/quay"]);
    assert!(withdrawn.status.success());
    server.until("the withdrawal", || {
        (ask(&server, "/media/image/quay.json").status() == 404).then_some(())
    });
    fixtures::ingest(&server, &folder);
    server.until("the item to be back", || {
        (ask(&server, "/media/image/quay.json").status() == 200).then_some(())
    });
    says(&server, "quay", "DMI-PROHIBITED");
    let server = server.restart(&PLAIN);
    says(&server, "quay", "DMI-PROHIBITED");
}

#[test]
fn a_change_of_rights_is_found_by_searches_and_repeats_no_stream() {
    let photograph = |headline: &str, day: u8| {
        news::document(headline, &["FOTO"], &format!("2026-03-0{day}T09:15:00+01:00"))
    };
    let server = news::server(&PLAIN, &[("image/quay", photograph("Quay", 2))]);
    let query = "datamining:DMI-PROHIBITED OR headline:later";
    let stream = notifications::stream(Some(MediaType::Image), query);
    let stream = notifications::make(&server, &stream);
    let auth = provider(&server);
    let change = json!({ "dataMining": "DMI-PROHIBITED" });
    assert_eq!(send(&server, Method::PUT, RIGHTS, &auth, Some(&change)).status(), 200);
    server.until("search to know", || {
        let found = json_of(&server, "/content/v1/image/search?q=datamining:DMI-PROHIBITED");
        (found["total"] == 1).then_some(())
    });
    // What follows the change in the item log comes first.
    news::ingest(&server, "image/other", &photograph("Later", 3));
    assert_eq!(notifications::read(&server, &stream), "other");
    news::ingest(&server, "image/quay", &photograph("Quay", 4));
    assert_eq!(notifications::read(&server, &stream), "quay");
}

#[test]
fn a_change_of_rights_is_purged_from_the_cdn() {
    let cdn = purges::Cdn::start();
    let settings = purges::settings(&cdn);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let server = news::server(&settings, &purges::items());
    let auth = provider(&server);
    let change = json!({ "dataMining": "DMI-PROHIBITED" });
    let path = "/ingest/v1/image/a/rights";
    assert_eq!(send(&server, Method::PUT, path, &auth, Some(&change)).status(), 200);
    // Texts that embed the photograph are purged with it.
    server.until("the purge", || cdn.keys().contains(&"image.a".to_owned()).then_some(()));
    says(&server, "a", "DMI-PROHIBITED");
}
