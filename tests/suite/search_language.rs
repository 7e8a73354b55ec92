//! The syntax of other query languages (Lucene, Elasticsearch) in searches and notifications, and pasted addresses
//! and ids.

use serde_json::{Value, json};

use crate::common::{DEMO_KEY, Server, news};
use crate::faults::kit;
use crate::notifications;

/// Items of two kinds, oldest first.
fn items() -> Vec<(&'static str, Value)> {
    let of = |headline: &str, day: u32, more: Value| {
        let created = format!("2026-11-{day:02}T09:00:00+01:00");
        let mut document = news::document(headline, &["FOTO"], &created);
        let more = more.as_object().expect("an object").clone();
        document.as_object_mut().expect("an object").extend(more);
        document
    };
    vec![
        ("image/sdl-1", of("Zebra i regn", 1, json!({ "urgency": 1, "webprio": -0.5 }))),
        ("image/sdl-1_R", of("Zebra", 2, json!({ "urgency": 3, "byline": "Anna Ek" }))),
        ("text/sdl-1", of("Skog och hav", 3, json!({ "urgency": 4, "wordcount": 1200 }))),
        ("text/notice", of("Vem vann? Se http://tt.se/vann", 4, json!({ "webprio": 2.5 }))),
    ]
}

fn server() -> Server {
    news::server(&[], &items())
}

fn encoded(query: &str) -> String {
    form_urlencoded::byte_serialize(query.as_bytes()).collect()
}

/// The status and body of a search of the demo editor in every media type.
fn answer(server: &Server, query: &str) -> (u16, Value) {
    let order = "sort=versioncreated:asc";
    let path = format!("/content/v1/_all/search?q={}&{order}", encoded(query));
    let response = server.get_with(&path, &[("Authorization", &format!("ApiKey {DEMO_KEY}"))]);
    (response.status().as_u16(), response.json().expect("JSON"))
}

/// Checks which items a query finds, by their keys without the common prefix.
fn check(server: &Server, query: &str, expected: &[usize]) {
    let (status, answer) = answer(server, query);
    assert_eq!(status, 200, "{query}: {answer}");
    let items = items();
    let uri = |at: &usize| format!("{}/media/{}", server.url, items[*at].0);
    let expected: Vec<String> = expected.iter().map(uri).collect();
    let hits = answer["hits"].as_array().expect("hits");
    let found: Vec<&str> = hits.iter().map(|hit| hit["uri"].as_str().expect("a uri")).collect();
    assert_eq!(found, expected, "{query}");
    assert_eq!(answer["total"], expected.len(), "{query}");
}

#[test]
fn syntax_of_other_query_languages_is_understood_or_refused() {
    let server = server();
    let check = |query: &str, expected: &[usize]| check(&server, query, expected);
    check("*", &[0, 1, 2, 3]);
    check("*:*", &[0, 1, 2, 3]);
    check("zebra && regn", &[0]);
    check("skog || regn", &[0, 2]);
    check("zebra !regn", &[1]);
    check("!zebra", &[2, 3]);
    check("skog & hav", &[2]);
    check("skog – hav", &[2]);
    check("vem vann?", &[3]);
    check("byline:*", &[1]);
    check("urgency:[1 TO 3]", &[0, 1]);
    check("urgency:{1 TO 4}", &[1]);
    check("urgency:>=3", &[1, 2]);
    check("wordcount:>1000", &[2]);
    check("webprio:-0.5 OR webprio:>2.4", &[0, 3]);
    check("-webprio:*", &[1, 2]);
    check("versioncreated:>2026-11-02", &[2, 3]);
    check("versioncreated:<=2026-11-02", &[0, 1]);
    let refused = |query: &str, position: usize| {
        let (status, answer) = answer(&server, query);
        assert_eq!(status, 400, "{query}: {answer}");
        let message = answer["errors"][0]["message"].as_str().expect("a message");
        let end = format!("at character {position}");
        assert!(message.starts_with("q: ") && message.ends_with(&end), "{query}: {message}");
    };
    refused("zeb?a", 4);
    refused("zebra^2", 6);
    refused("zebra~", 6);
    refused("/zeb.a/", 1);
    refused("headline:>a", 10);
    refused("urgency>3", 8);
    refused("headline:[a TO b]", 10);
}

#[test]
fn a_pasted_address_or_id_finds_its_item() {
    let server = server();
    let check = |query: &str, expected: &[usize]| check(&server, query, expected);
    for end in ["", ".json", "_NormalPreview.jpg", "-crop_w10_h10.jpg", "/pricelist", "?ak=a&b=c"]
    {
        check(&format!("{}/media/image/sdl-1{end}", server.url), &[0]);
    }
    check("https://any.host:81/item/text/sdl-1", &[2]);
    check("http://tt.se/media/image/sdl-1 OR http://tt.se/media/text/notice", &[0, 3]);
    check("sdl-1_R", &[1]);
    check("sdl-1", &[0, 2]);
    check("SDL-1", &[]);
    check("id:notice", &[3]);
    check("notice", &[]);
    check("http://tt.se/vann", &[3]);
    check("http://tt.se/saknas", &[]);
}

#[test]
fn a_notification_uses_the_query_language_of_search() {
    let server = server();
    let make = |query: &str| notifications::make(&server, &notifications::stream(None, query));
    let urgent = make("urgency:<=3 && !regn || id:new-2");
    let pasted = make("https://tt.se/media/image/new-2.jpg");
    let everything = make("*:*");
    let news = |id: &str, headline: &str, urgency: i64| {
        let mut document = news::document(headline, &["FOTO"], "2026-11-05T09:15:00+01:00");
        document["urgency"] = json!(urgency);
        news::ingest(&server, &format!("image/{id}"), &document);
    };
    news("new-1", "Storm", 3);
    news("new-2", "Storm", 4);
    news("new-3", "Regn", 1);
    kit::wait_for_matches(&server, 6);
    assert_eq!(notifications::read(&server, &urgent), "new-1 new-2");
    assert_eq!(notifications::read(&server, &pasted), "new-2");
    assert_eq!(notifications::read(&server, &everything), "new-1 new-2 new-3");
}
