//! Changes of items by editors over HTTP (`docs/contract/ingest.md`): merge patches of the version that was read,
//! house rules, history and audit log, withdrawal, metadata templates.

use std::{fs, thread};

use api::ingest::{ItemEdit, ItemPath, ListItemChanges};
use api::uploads::ListTemplates;
use model::MediaType;
use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal};
use crate::common::{DEMO_KEY, Server, news};
use crate::items::{provider, put};

const ITEM: &str = "/ingest/v1/image/ice";

/// A server with two photographs, and the `Authorization` header of a provider.
pub fn scene(settings: &[&str]) -> (Server, String) {
    let document = |headline: &str| {
        let mut document = news::document(headline, &["FOTO"], "2026-03-02T09:15:00+01:00");
        document["subject"] = json!([
            { "name": "ice", "rel": "isAbout" },
            { "code": "06000000", "scheme": "http://cv.iptc.org/newscodes/mediatopic/", "name": "environment", "rel": "isAbout" },
        ]);
        document
    };
    let items = [("image/ice", document("Ice")), ("image/snow", document("Snow"))];
    let server = news::server(settings, &items);
    let auth = provider(&server);
    (server, auth)
}

fn send(
    server: &Server,
    auth: &str,
    (method, path): (Method, &str),
    (body, if_match): (Option<&Value>, Option<&str>),
) -> Response {
    let mut request = server.client.request(method, format!("{}{path}", server.url));
    request = request.header("authorization", auth);
    if let Some(tag) = if_match {
        request = request.header("if-match", tag);
    }
    if let Some(body) = body {
        let kind = "application/merge-patch+json";
        request = request.header("content-type", kind).body(body.to_string());
    }
    request.send().expect("answer")
}

pub fn get(server: &Server, auth: &str, path: &str) -> Response {
    send(server, auth, (Method::GET, path), (None, None))
}

pub fn patch(server: &Server, auth: &str, path: &str, body: &Value, tag: &str) -> Response {
    send(server, auth, (Method::PATCH, path), (Some(body), Some(tag)))
}

fn tag(response: &Response) -> String {
    response.headers()["etag"].to_str().expect("ASCII").to_owned()
}

fn caller<'a>(server: &'a Server, auth: &str) -> ApiCaller<'a> {
    ApiCaller { server, authorization: auth.to_owned() }
}

/// The changes of the photograph, newest first.
fn edits(server: &Server, auth: &str) -> Vec<ItemEdit> {
    let item = ItemPath { media_type: MediaType::Image, id: "ice".to_owned() };
    caller(server, auth).ask(&ListItemChanges { item }).unwrap()
}

/// The summary of a refusal.
fn refusal(response: Response) -> String {
    Refusal::read(response).summary()
}

pub fn served(server: &Server, key: &str) -> Value {
    server.get(&format!("/media/{key}.json?ak={DEMO_KEY}")).json().expect("JSON")
}

fn audit(server: &Server, action: &str) -> Vec<Value> {
    let said = server.command(&["audit", "list", "--action", action, "--json"]);
    let text = String::from_utf8(said.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Changes of items in the audit log with that outcome.
fn outcomes(server: &Server, outcome: &str) -> usize {
    audit(server, "item_changed").iter().filter(|event| event["outcome"] == outcome).count()
}

#[test]
fn a_change_makes_a_new_version_with_its_author() {
    let (server, auth) = scene(&[]);
    let read = get(&server, &auth, ITEM);
    assert_eq!(read.headers()["cache-control"], "no-store");
    let seen = tag(&read);
    let before: Value = read.json().unwrap();
    let change = json!({ "headline": "Ice breaks up", "urgency": 3, "copyrightholder": null });
    let changed = patch(&server, &auth, ITEM, &change, &seen);
    assert_eq!(changed.status(), 200);
    let next = tag(&changed);
    let after: Value = changed.json().unwrap();
    assert_ne!(seen, next);
    assert_eq!((&after["headline"], &after["urgency"]), (&json!("Ice breaks up"), &json!(3)));
    assert_eq!((&before["version"], &after["version"]), (&json!("1"), &json!("2")));
    assert_eq!(
        after["versioncreated"], before["versioncreated"],
        "the picture is as old as before"
    );
    assert!(after.get("copyrightholder").is_none());
    assert_eq!(after["subject"], before["subject"]);
    assert_eq!(served(&server, "image/ice")["headline"], "Ice breaks up", "seen at once");
    server.bytes("/media/image/ice_NormalPreview.jpg");
    // The same change again changes nothing, and a version that was read can be named among others.
    let again = patch(&server, &auth, ITEM, &change, &format!("\"other\", {next}"));
    assert_eq!((again.status().as_u16(), tag(&again)), (200, next));
    let changes: Value = get(&server, &auth, &format!("{ITEM}/changes")).json().unwrap();
    assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
    assert_eq!((&changes[0]["version"], &changes[0]["user"]), (&json!("2"), &json!("demo-admin")));
    let headline = json!({ "property": "headline", "old": "Ice", "new": "Ice breaks up" });
    let listed = changes[0]["changes"].as_array().unwrap();
    assert!(listed.contains(&headline), "{changes}");
    assert!(listed.contains(&json!({ "property": "urgency", "new": "3" })), "{changes}");
    let events = audit(&server, "item_changed");
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|event| event["userName"] == "demo-admin"), "{events:?}");
    let details: Vec<_> = events.iter().filter_map(|event| event["detail"].as_str()).collect();
    assert!(details.contains(&"headline: Ice -> Ice breaks up"), "{details:?}");
}

#[test]
fn a_change_of_an_outdated_version_is_refused() {
    let (server, auth) = scene(&[]);
    let seen = tag(&get(&server, &auth, ITEM));
    let mine = json!({ "headline": "Mine" });
    // Without a version the change could undo another one.
    let blind = send(&server, &auth, (Method::PATCH, ITEM), (Some(&mine), None));
    assert_eq!(refusal(blind), "400 required headers If-Match");
    let theirs = json!({ "headline": "Theirs" });
    assert_eq!(patch(&server, &auth, ITEM, &theirs, &seen).status(), 200);
    let refused = patch(&server, &auth, ITEM, &mine, &seen);
    assert_eq!(refusal(refused), "412 version_conflict headers");
    assert_eq!(served(&server, "image/ice")["headline"], "Theirs");
    assert_eq!(patch(&server, &auth, ITEM, &mine, &format!("W/{seen}")).status(), 412);
    assert_eq!(patch(&server, &auth, ITEM, &mine, "*").status(), 200);
    assert_eq!(patch(&server, &auth, "/ingest/v1/image/none", &mine, "*").status(), 404);
    // Of several changes of one version at a time, one is made.
    let seen = tag(&get(&server, &auth, ITEM));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let race = |number: usize| {
            let (server, auth, seen) = (&server, &auth, &seen);
            scope.spawn(move || {
                let change = json!({ "headline": format!("Number {number}") });
                patch(server, auth, ITEM, &change, seen).status().as_u16()
            })
        };
        let running: Vec<_> = (0..6).map(race).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |status: u16| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(200), count(412)), (1, 5), "{statuses:?}");
}

#[test]
fn house_rules_and_the_schema_refuse_a_change_with_every_problem() {
    let (server, auth) = scene(&["ingest.required_fields=headline,byline"]);
    let change = |body: &Value| refusal(patch(&server, &auth, ITEM, body, "*"));
    assert_eq!(change(&json!({ "urgency": 4 })), "400 required body byline");
    let both = json!({ "headline": null, "byline": " " });
    assert_eq!(change(&both), "400 required body headline, required body byline");
    let version = json!({ "version": "9" });
    assert_eq!(change(&version), "400 additionalProperties body version");
    assert_eq!(change(&json!({ "pubstatus": "canceled" })), "400 enum body pubstatus");
    assert_eq!(change(&json!([])), "400 type body");
    let wrong = json!({ "byline": "Ada", "urgency": "soon", "mood": 1 });
    let refused = Refusal::read(patch(&server, &auth, ITEM, &wrong, "*"));
    assert_eq!((refused.status, refused.faults.len()), (400, 2), "{refused:?}");
    let fine = patch(&server, &auth, ITEM, &json!({ "byline": "Ada" }), "*");
    assert_eq!(fine.status(), 200);
    // Refusals are written a moment later.
    server.until("an event of each refusal", || (outcomes(&server, "failed") == 5).then_some(()));
}

#[test]
fn only_providers_read_and_change_stored_documents() {
    let (server, auth) = scene(&[]);
    let editor = format!("ApiKey {DEMO_KEY}");
    let change = json!({ "headline": "x" });
    assert_eq!(get(&server, &editor, ITEM).status(), 403);
    assert_eq!(get(&server, &editor, &format!("{ITEM}/changes")).status(), 403);
    assert_eq!(get(&server, &editor, "/ingest/v1/templates").status(), 403);
    assert_eq!(patch(&server, &editor, ITEM, &change, "*").status(), 403);
    server.until("an event of the refusal", || (outcomes(&server, "refused") == 1).then_some(()));
    // A wrong template hides neither the refusal nor the item from its event.
    let other = "/ingest/v1/image/snow?template=x";
    assert_eq!(patch(&server, &editor, other, &change, "*").status(), 403);
    server.until("an event that names the item", || {
        let events = audit(&server, "item_changed");
        events.iter().any(|event| event["object"] == "item/image/snow").then_some(())
    });
    assert_eq!(server.get(ITEM).status(), 401);
    assert_eq!(get(&server, &auth, "/ingest/v1/image/none").status(), 404);
    assert_eq!(get(&server, &auth, "/ingest/v1/image/none/changes").status(), 404);
}

#[test]
fn a_withdrawn_item_stays_editable_and_is_published_again() {
    let (server, auth) = scene(&[]);
    let gone = send(&server, &auth, (Method::DELETE, ITEM), (None, None));
    assert_eq!(gone.status(), 200);
    assert_eq!(server.get("/media/image/ice_NormalPreview.jpg").status(), 404);
    let read = get(&server, &auth, ITEM);
    let seen = tag(&read);
    assert_eq!(read.json::<Value>().unwrap()["pubstatus"], "canceled");
    let again = json!({ "pubstatus": "usable", "headline": "Ice again" });
    assert_eq!(patch(&server, &auth, ITEM, &again, &seen).status(), 200);
    server.bytes("/media/image/ice_NormalPreview.jpg");
    assert_eq!(served(&server, "image/ice")["headline"], "Ice again");
    let edits = edits(&server, &auth);
    let withdrawn = json!([{ "property": "pubstatus", "old": "usable", "new": "canceled" }]);
    assert_eq!(json!(edits[1].changes), withdrawn);
    assert_eq!(edits[1].user.as_deref(), Some("demo-admin"));
}

#[test]
fn an_embargo_is_set_and_ended_by_a_change() {
    let (server, auth) = scene(&[]);
    let preview = || server.get("/media/image/ice_NormalPreview.jpg").status().as_u16();
    let change = |embargo: Value| -> Value {
        let changed = patch(&server, &auth, ITEM, &json!({ "embargoed": embargo }), "*");
        assert_eq!(changed.status(), 200);
        changed.json().unwrap()
    };
    let until = json!("2999-01-01T00:00:00Z");
    assert_eq!((&change(until.clone())["embargoed"], preview()), (&until, 404));
    assert_eq!((change(Value::Null).get("embargoed"), preview()), (None, 200));
}

#[test]
fn a_document_that_withdraws_an_item_is_in_its_history() {
    let (server, auth) = scene(&[]);
    let held = json!({ "pubstatus": "commissioned" });
    assert_eq!(patch(&server, &auth, ITEM, &held, "*").status(), 200);
    // The same document again withdraws nothing.
    for headline in ["Gone", "Still gone"] {
        let document = json!({ "headline": headline, "pubstatus": "canceled" }).to_string();
        let body = ("application/json", document.into_bytes());
        assert_eq!(put(&server, "image/ice", &auth, body).status(), 200);
    }
    let edits = edits(&server, &auth);
    assert_eq!(edits.len(), 2, "{edits:?}");
    let withdrawn = json!([{ "property": "pubstatus", "old": "commissioned", "new": "canceled" }]);
    assert_eq!(json!(edits[0].changes), withdrawn);
    assert_eq!(edits[0].user.as_deref(), Some("demo-admin"));
}

#[test]
fn templates_belong_to_an_organization_or_to_the_archive() {
    let (server, auth) = scene(&[]);
    let template = |name: &str, shared: bool, fields: Value| json!({ "name": name, "shared": shared, "fields": fields });
    let create = |auth: &str, body: &Value| {
        send(&server, auth, (Method::POST, "/ingest/v1/templates"), (Some(body), None))
    };
    let fields = json!({
        "source": "Agency", "byline": { "apply": "fill", "value": "Desk" },
        "keyword": { "apply": "append", "value": ["winter", "ice"] },
    });
    let own = create(&auth, &template("Own", false, fields.clone()));
    assert_eq!(own.status(), 201);
    let location = own.headers()["location"].to_str().unwrap().to_owned();
    let own: Value = own.json().unwrap();
    assert_eq!(own["user"], "demo-admin");
    let all = create(&auth, &template("All", true, json!({ "source": "All" })));
    assert_eq!(all.status(), 201);
    let shared = all.headers()["location"].to_str().unwrap().to_owned();
    let wrong = create(&auth, &template("", false, json!({ "mood": "x" })));
    assert_eq!(wrong.status(), 400);
    // A provider of another organization.
    let accounts = server.dir.path().join("more.json");
    let more = json!({
        "users": [{ "id": 201, "organization": 2, "userName": "demo-provider",
                    "roles": ["ROLE_PROVIDER"], "active": true, "password": "demo-provider-password" }],
        "apiKeys": [{ "user": "demo-provider", "key": "provider-key-0000-0000", "name": "a" }],
    });
    fs::write(&accounts, more.to_string()).unwrap();
    let imported = server.command(&["import", &accounts.to_string_lossy()]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let other = "ApiKey provider-key-0000-0000";
    let templates = |auth: &str| caller(&server, auth).ask(&ListTemplates {});
    let listed = server.until("the key to count", || templates(other).ok());
    let names: Vec<&str> = listed.iter().map(|template| template.name.as_str()).collect();
    assert_eq!(names, ["All"]);
    assert_eq!(get(&server, other, &location).status(), 404);
    // All providers use a shared template, and its author's organization changes it.
    let taken = template("Mine", false, json!({}));
    for (method, body) in [(Method::PUT, Some(&taken)), (Method::DELETE, None)] {
        let refused = send(&server, other, (method, &shared), (body, None));
        assert_eq!(refused.status(), 403);
        assert!(refused.text().unwrap().contains("template_owner_required"));
    }
    assert_eq!(templates(&auth).unwrap().len(), 2);
    // Applied to an item, before the patch.
    let path = format!("{ITEM}?template={}", own["id"]);
    assert_eq!(patch(&server, other, &path, &json!({}), "*").status(), 404);
    let applied = patch(&server, &auth, &path, &json!({ "source": "Mine" }), "*");
    let item: Value = applied.json().unwrap();
    assert_eq!((&item["source"], &item["byline"]), (&json!("Mine"), &json!("Desk")));
    let subjects = item["subject"].as_array().unwrap();
    let subjects: Vec<_> = subjects.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["environment", "ice", "winter"], "codes stay, nothing is there twice");
    // A change is made on the version that was read.
    let read = get(&server, &auth, &location);
    let seen = tag(&read);
    let put = |body: &Value, tag: &str| {
        send(&server, &auth, (Method::PUT, &location), (Some(body), Some(tag))).status().as_u16()
    };
    assert_eq!(put(&template("Own 2", false, fields.clone()), &seen), 200);
    assert_eq!(put(&template("Own 3", false, fields), &seen), 412);
    assert_eq!(send(&server, &auth, (Method::DELETE, &location), (None, None)).status(), 200);
    assert_eq!(get(&server, &auth, &location).status(), 404);
    let actions = ["template_created", "template_changed", "template_removed"];
    assert_eq!(actions.map(|action| audit(&server, action).len()), [2, 1, 1]);
}

#[test]
fn a_change_of_a_template_keeps_its_owner_unless_it_says_who_uses_it() {
    let (server, auth) = scene(&[]);
    let path = "/ingest/v1/templates";
    let create = |body: &Value| {
        let created = send(&server, &auth, (Method::POST, path), (Some(body), None));
        assert_eq!(created.status(), 201, "{body}");
        created.headers()["location"].to_str().expect("ASCII").to_owned()
    };
    let put = |address: &str, body: &Value| {
        send(&server, &auth, (Method::PUT, address), (Some(body), None))
    };
    let unstated = |name: &str| json!({ "name": name, "fields": {} });
    let stated =
        |name: &str, shared: bool| json!({ "name": name, "shared": shared, "fields": {} });
    let shared = |answer: Response| -> Value {
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().expect("JSON")["shared"].clone()
    };
    let all = create(&stated("All", true));
    assert_eq!(shared(put(&all, &unstated("Every"))), true);
    assert_eq!(shared(put(&all, &stated("Mine", false))), false);
    assert_eq!(shared(put(&all, &unstated("Own"))), false);
    // The archive has as many templates as an owner can have.
    for number in 0..200 {
        create(&stated(&format!("Template {number}"), true));
    }
    assert_eq!(put(&all, &stated("All", true)).status(), 409);
    assert_eq!(shared(put(&all, &unstated("Own again"))), false);
}
