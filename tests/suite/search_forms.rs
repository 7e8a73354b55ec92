//! Inflected forms of words (`forms`) in the search of the API and on the web site.

use api::notifications::Notification;
use reqwest::Method;
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal};
use crate::common::{DEMO_KEY, Server, news};
use crate::notifications;
use crate::search::ids;

/// Texts and photographs in several languages, oldest first.
fn items() -> Vec<(&'static str, Value)> {
    let of = |headline: &str, day: u32, more: Value| {
        let created = format!("2026-03-{day:02}T09:00:00+01:00");
        let mut document = news::document(headline, &["FOTO"], &created);
        let more = more.as_object().expect("an object").clone();
        document.as_object_mut().expect("an object").extend(more);
        document
    };
    vec![
        ("image/dogs", of("Hundar i snö", 2, json!({ "language": "sv" }))),
        ("image/dog", of("En hund vid sjön", 3, json!({ "language": "sv" }))),
        ("image/bridge", of("Two bridges are closed", 4, json!({ "language": "en" }))),
        ("image/hill", of("Berg i dimma", 5, json!({ "language": "sv", "byline": "Kim Hundar" }))),
        (
            "image/town",
            of("Regn", 6, json!({ "language": "sv", "place": [{ "name": "Bergen" }] })),
        ),
        ("image/house", of("Alte Häuser", 7, json!({ "language": "de" }))),
        ("image/unknown", of("Möten om bilar", 8, json!({}))),
        ("text/talk", of("Kylässä sataa", 9, json!({ "language": "fi" }))),
    ]
}

fn server() -> Server {
    news::server(&[], &items())
}

/// The response to a search of the demo editor in every media type.
fn answer(server: &Server, query: &str) -> Value {
    let path = format!("/content/v1/_all/search?{query}");
    let response = server.get_with(&path, &[("Authorization", &format!("ApiKey {DEMO_KEY}"))]);
    assert_eq!(response.status(), 200, "{query}");
    response.json().expect("JSON")
}

#[test]
fn inflected_forms_are_found_on_request() {
    let server = server();
    let check = |query: &str, expected: &str| {
        let found = answer(&server, query);
        assert_eq!(ids(&found), expected, "{query}");
        assert_eq!(found["total"], expected.split_whitespace().count(), "{query}");
    };
    check("q=hund", "dog");
    check("q=hund&forms=false", "dog");
    check("q=hund&forms=true", "dog dogs");
    check("q=bridge&forms=true", "bridge");
    check("q=haus&forms=true", "house");
    check("q=kyl%C3%A4&forms=true", "talk");
    check("q=m%C3%B6te+bil&forms=true", "unknown");
    check("q=headline:hund&forms=true", "dog dogs");
    // Names, phrases, bylines and excluded words match only as written.
    check("q=Bergen&forms=true", "town");
    check("q=bergen&forms=true", "town hill");
    check("q=%22hund%22&forms=true", "dog");
    check("q=byline:hund&forms=true", "");
    check("q=place.name:berg&forms=true", "");
    check("q=language:sv+-hund&forms=true", "town hill dogs");
    // An accent in the query is significant.
    check("q=mote&forms=true", "unknown");
    check("q=m%C3%B8te&forms=true", "");
    // Exact matches come first when sorted by relevance.
    check("q=hundar&forms=true&sort=relevance", "dogs hill dog");
    check("q=hundar&forms=true&sort=versioncreated:asc", "dogs dog hill");
    let facets = answer(&server, "q=hund&forms=true&facets=product.code");
    assert_eq!(facets["facets"]["product.code"], json!([{ "key": "FOTO", "count": 2 }]));
}

#[test]
fn items_ingested_later_are_found_by_inflected_forms() {
    let server = server();
    let created = "2026-03-20T09:00:00+01:00";
    let mut document = news::document("Fjellene sees", &["FOTO"], created);
    document["language"] = json!("nb");
    news::ingest(&server, "image/hills", &document);
    // The server notices the change of the other process within a second.
    let found = || ids(&answer(&server, "q=fjell&forms=true"));
    server.until("the item is found", || (found() == "hills").then_some(()));
    assert_eq!(ids(&answer(&server, "q=fjell")), "");
    document["headline"] = json!("Broen");
    news::ingest(&server, "image/hills", &document);
    server.until("the next version takes its place", || found().is_empty().then_some(()));
}

#[test]
fn a_value_other_than_true_or_false_is_a_400_that_names_it() {
    let server = server();
    for value in ["1", "yes", "TRUE", "true&forms=true"] {
        let path = format!("/content/v1/image/search?q=hund&forms={value}");
        let refusal = Refusal::read(server.get(&path));
        assert_eq!((refusal.status, refusal.faults.len()), (400, 1), "{value}");
        assert!(refusal.faults[0].ends_with(" query forms"), "{refusal:?}");
    }
}

#[test]
fn the_web_site_finds_inflected_forms_until_they_are_turned_off() {
    let server = server();
    let page = |path: &str| {
        let response = server.get(path);
        assert_eq!(response.status(), 200, "{path}");
        response.text().expect("text").replace("&#x2f;", "/").replace("&amp;", "&")
    };
    let count = |page: &str| page.matches("class=\"headline\"").count();
    let found = page("/?q=hund");
    assert_eq!(count(&found), 2);
    assert!(found.contains("name=\"written\" type=\"checkbox\" value=\"1\">"), "{found}");
    assert!(found.contains("Exact words only"));
    let written = page("/?q=hund&written=1");
    assert_eq!(count(&written), 1);
    assert!(written.contains("name=\"written\" type=\"checkbox\" value=\"1\" checked>"));
    // The facets belong to the same search.
    assert!(written.contains("q=hund&p=FOTO&written=1\""), "{written}");
    assert!(found.contains("q=hund&p=FOTO\""), "{found}");
    let nothing = page("/?q=hundarnas&written=1");
    assert!(count(&nothing) == 0 && nothing.contains("href=\"/?q=hundarnas\""), "{nothing}");
    assert_eq!(count(&page("/?q=hundarnas")), 2);
    assert_eq!(count(&page("/?q=Bergen")), 1);
    let swedish = server.get_with("/?q=hund", &[("accept-language", "sv")]);
    assert!(swedish.text().expect("text").contains("Bara exakta ord"));
}

#[test]
fn notifications_match_only_as_written() {
    let server = server();
    let path = "/content/v1/image/notification/stream?q=hund&forms=true";
    let made = ApiCaller::key(&server, DEMO_KEY).request(Method::POST, path, None);
    let id = made.json::<Notification>().expect("a notification").id.to_string();
    let created = "2026-03-21T09:00:00+01:00";
    for (key, headline) in [("image/later-dogs", "Hundar"), ("image/later-dog", "Hund")] {
        let mut document = news::document(headline, &["FOTO"], created);
        document["language"] = json!("sv");
        news::ingest(&server, key, &document);
    }
    assert_eq!(notifications::read(&server, &id), "later-dog");
}
