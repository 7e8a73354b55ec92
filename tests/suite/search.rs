//! Search (`docs/contract/search.md`) through the server.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::common::api::{Refusal, UNAUTHORIZED};
use crate::common::{DEMO_KEY, Server, checkout, news, tokens};

/// The key of the demo buyer, whose agreements cover the product `FOTO`.
pub const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";

/// Photographs, oldest first; `d` is commissioned, `e` under embargo, `c` was replaced.
fn photographs() -> Vec<(&'static str, Value)> {
    let with = |mut document: Value, more: Value| {
        let more = more.as_object().unwrap().clone();
        document.as_object_mut().unwrap().extend(more);
        document
    };
    let a = news::document("Isbrytare i Strömmen", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let b = news::document("Match i regn", &["SPORT"], "2026-03-05T00:00:00+01:00");
    let c = news::document("Äldre bild", &["FOTO", "SPORT"], "2026-03-06T12:00:00+01:00");
    let d = news::document("Beställt", &["FOTO"], "2026-03-07T12:00:00+01:00");
    let e = news::document("Hemligt", &["FOTO"], "2026-03-08T12:00:00+01:00");
    let facts = json!({
        "person": [{ "name": "Erik Berg" }],
        "place": [{ "name": "Stockholm" }],
        "subject": [{ "code": "13000000", "name": "Vetenskap" }],
    });
    vec![
        ("image/a", with(a, facts)),
        ("image/b", b),
        ("image/c", with(c, json!({ "pubstatus": "replaced" }))),
        ("image/d", with(d, json!({ "pubstatus": "commissioned" }))),
        ("image/e", with(e, json!({ "embargoed": "2035-01-01T00:00:00Z" }))),
        ("image/f", json!({ "headline": "Nyss", "product": [{ "code": "FOTO" }] })),
    ]
}

/// Starts a server with the items of every test.
fn server() -> Server {
    news::server(&[], &photographs())
}

/// The response to a search of photographs with the demo editor's key.
fn search(server: &Server, query: &str) -> Value {
    let response = ask(server, &format!("/content/v1/image/search?{query}"));
    assert_eq!(response.status(), 200, "{query}");
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    response.json().unwrap()
}

fn ask(server: &Server, path: &str) -> Response {
    server.get_with(path, &[("Authorization", &format!("ApiKey {DEMO_KEY}"))])
}

/// The ids of the hits, in order.
pub fn ids(hits: &Value) -> String {
    let hits = hits.get("hits").unwrap_or(hits).as_array().expect("hits");
    let id = |hit: &Value| hit["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    hits.iter().map(id).collect::<Vec<_>>().join(" ")
}

fn found(server: &Server, query: &str) -> String {
    ids(&search(server, query))
}

/// The summary of a refusal.
fn refused(response: Response) -> String {
    Refusal::read(response).summary()
}

#[test]
fn a_search_gives_hits_the_total_and_facets() {
    let server = server();
    let answer = search(&server, "");
    assert_eq!(
        answer.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["hits", "total", "facets"]
    );
    // Neither replaced nor commissioned nor embargoed items, the latest first.
    assert_eq!(ids(&answer), "f b a");
    assert_eq!((&answer["total"], &answer["facets"]), (&json!(3), &json!({})));
    assert_eq!(answer["hits"][1]["uri"], format!("{}/media/image/b", server.url));
    assert_eq!(answer["hits"][1].get("_tstamp"), None);
    let asked = "facets=product.code&facets[]=person.name,place.name&facets=subject.code";
    let answer = search(&server, asked);
    let facets = json!({
        "product.code": [{ "key": "FOTO", "count": 2 }, { "key": "SPORT", "count": 1 }],
        "person.name": [{ "key": "Erik Berg", "count": 1 }],
        "place.name": [{ "key": "Stockholm", "count": 1 }],
        "subject.code": [{ "key": "13000000", "count": 1 }],
    });
    assert_eq!(answer["facets"], facets);
    assert_eq!(
        search(&server, "facets=person.name&p=SPORT")["facets"],
        json!({ "person.name": [] })
    );
    for media_type in ["_all", "image"] {
        let path = format!("/content/v1/{media_type}/search");
        assert_eq!(ids(&ask(&server, &path).json().unwrap()), "f b a", "{media_type}");
    }
    let others =
        ["video", "graphic", "text", "feature", "page", "planning", "calendar", "stockfoto"];
    for media_type in others {
        let answer: Value =
            ask(&server, &format!("/content/v1/{media_type}/search")).json().unwrap();
        assert_eq!(answer, json!({ "hits": [], "total": 0, "facets": {} }), "{media_type}");
    }
}

#[test]
fn products_narrow_and_exclude_in_every_spelling_of_a_list() {
    let server = server();
    let check =
        |query: &str, expected: &str| assert_eq!(found(&server, query), expected, "{query}");
    check("p=FOTO", "f a");
    check("p=-FOTO", "b");
    check("p=FOTO,-SPORT&pubstatus=replaced", "");
    check("p=NONE", "");
    check("p=", "f b a");
    for both in
        ["p=FOTO,SPORT", "p=FOTO&p=SPORT", "p[]=FOTO&p[]=SPORT", "p%5B%5D=FOTO&p%5b%5d=SPORT"]
    {
        check(both, "f b a");
    }
    check("q=isbrytare", "a");
    check("q=str%C3%B6mmen+isbrytare", "a");
    check("q=isbrytare+OR+regn", "b a");
    check("q=", "f b a");
    check("unknown=1&p[x]=2", "f b a");
}

#[test]
fn times_statuses_pages_and_sort_orders_are_applied() {
    let server = server();
    let check =
        |query: &str, expected: &str| assert_eq!(found(&server, query), expected, "{query}");
    for last in ["h", "d", "w", "m"] {
        check(&format!("tr={last}"), "f");
    }
    check("trs=2026-03-02&tre=2026-03-06", "b a");
    check("trs=2026-03-05&tre=2026-03-06", "b");
    check("tre=2026-03-05", "a");
    check("trs=2026-03-06", "f");
    check("trs=2026-03-06&tre=2026-03-02", "");
    check("tr=h&tre=2026-03-06", "");
    check("pubstatus=replaced", "c");
    check("pubstatus=replaced,usable", "f c b a");
    check("s=1", "f");
    check("s=1&fr=1", "b");
    check("s=10000&fr=2", "a");
    check("fr=10000", "");
    let none = search(&server, "s=0");
    assert_eq!((ids(&none).as_str(), &none["total"]), ("", &json!(3)));
    for (sort, expected) in [
        ("default:desc", "f b a"),
        ("default:asc", "a b f"),
        ("date:desc", "f b a"),
        ("date:asc", "a b f"),
        ("versioncreated:desc", "f b a"),
        ("versioncreated:asc", "a b f"),
    ] {
        check(&format!("sort={sort}"), expected);
    }
    for sort in ["versionstored:desc", "versionstored:asc", "relevance"] {
        assert!(search(&server, &format!("sort={sort}&q=i"))["total"].is_u64(), "{sort}");
    }
}

#[test]
fn a_poll_by_the_time_of_storage_misses_nothing_that_arrives_late() {
    let server = server();
    let stored = search(&server, "s=1")["hits"][0]["versionstored"].as_str().unwrap().to_owned();
    let stored = stored.replace('+', "%2B");
    let late = news::document("Sen", &["FOTO"], "2020-01-01T12:00:00+01:00");
    news::ingest(&server, "image/late", &late);
    let mut freed = news::document("Fri", &["FOTO"], "2020-01-01T12:00:00+01:00");
    freed["embargoed"] = json!("2026-03-09T12:00:00+01:00");
    news::ingest(&server, "image/freed", &freed);
    let by_storage = format!("q=sen+versionstored:[{stored}+TO+*]&sort=versionstored:asc");
    server.until("the index", || (found(&server, &by_storage) == "late").then_some(()));
    let by_embargo = "q=fri+embargoed:[2026-03-09T10:59:00Z+TO+*]";
    server.until("the index", || (found(&server, by_embargo) == "freed").then_some(()));
    // In the order of their dates, both come before the latest hit of the search before.
    for q in ["sen", "fri"] {
        assert_eq!(found(&server, &format!("q={q}&last=http://x/media/image/f")), "");
    }
}

#[test]
fn a_bad_parameter_is_a_400_that_names_it() {
    let server = server();
    let check = |query: &str, expected: &str| {
        let path = format!("/content/v1/image/search?{query}");
        assert_eq!(refused(ask(&server, &path)), format!("400 {expected}"), "{query}");
    };
    check("s=10001", "maximum query s");
    check("s=-1&fr=x&tr=z", "enum query tr, minimum query s, type query fr");
    check("trs=2026-13-01&tre=x", "format query trs, format query tre");
    check("sort=up&layout=x&facets=x", "enum query sort, enum query facets, enum query layout");
    check("pubstatus=withheld", "enum query pubstatus");
    check("agr=x", "type query agr");
    check("agr=1002", "enum query agr");
    check("q=%FF", "format query q");
    check("p=%ED%A0%80", "format query p");
    check("q=(isbrytare", "format query q");
    let response = ask(&server, "/content/v1/image/search?q=isbrytare+)");
    let body: Value = response.json().unwrap();
    assert_eq!(body["message"], "Request validation failed");
    assert!(body["errors"][0]["message"].as_str().unwrap().contains("character 11"), "{body}");
    for media_type in ["images", "IMAGE", "all", "%FF"] {
        let answer = ask(&server, &format!("/content/v1/{media_type}/search"));
        let Refusal { status, faults, .. } = Refusal::read(answer);
        assert_eq!(status, 400, "{media_type}");
        assert!(faults[0].ends_with("path mediaType"), "{faults:?}");
    }
}

#[test]
fn an_overlong_query_is_refused_immediately() {
    let server = server();
    for q in ["a".repeat(64_000), "a+".repeat(10_000), "(".repeat(1000) + "a" + &")".repeat(1000)]
    {
        let found = refused(ask(&server, &format!("/content/v1/image/search?q={q}")));
        assert_eq!(found, "400 format query q");
    }
    // A URI is at most 64 KiB; the client library does not even send a longer one.
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    let head = format!("GET /content/v1/image/search?q={} HTTP/1.1\r\n", "a".repeat(66_000));
    stream.write_all(format!("{head}Host: x\r\n\r\n").as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 414");
}

#[test]
fn agreements_limit_what_is_found() {
    let server = server();
    let of = |key: &str, query: &str| {
        let path = format!("/content/v1/_all/search?ak={key}&{query}");
        ids(&server.get(&path).json().unwrap())
    };
    assert_eq!(of(BUYER_KEY, ""), "f a");
    assert_eq!(of(BUYER_KEY, "p=SPORT"), "");
    assert_eq!(of(BUYER_KEY, "agr=1003"), "f a");
    assert_eq!(of(BUYER_KEY, "agr[]=1003&agr[]=1002&p=-SPORT"), "f a");
    assert_eq!(of(DEMO_KEY, "agr=1001"), "f b a");
    let path = format!("/content/v1/image/search?ak={BUYER_KEY}&agr=1001");
    assert_eq!(refused(server.get(&path)), "400 enum query agr");
    // Users of the provider see everything, including embargoed items, unless an agreement is named.
    let token = tokens::admin(&server);
    let bearer = [("Authorization", format!("Bearer {token}"))];
    let bearer = bearer.each_ref().map(|(name, value)| (*name, value.as_str()));
    let all = server.get_with("/content/v1/image/search", &bearer);
    assert_eq!(ids(&all.json().unwrap()), "f e b a");
    let one = server.get_with("/content/v1/image/search?agr=1004", &bearer);
    assert_eq!(ids(&one.json().unwrap()), "f e a");
}

#[test]
fn commissioned_items_need_admin_privileges() {
    let server = server();
    let path = "/content/v1/image/search?pubstatus=commissioned";
    assert_eq!(ask(&server, path).status(), 403);
    let roles = tokens::password(&server, "demo-editor", "demo-editor-password", "roles admin");
    let bearer =
        |token: &str| server.get_with(path, &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(refused(bearer(&roles)), "403 admin_required headers");
    let admin = bearer(&tokens::admin(&server));
    assert_eq!((admin.status().as_u16(), ids(&admin.json().unwrap()).as_str()), (200, "d"));
    assert_eq!(server.get(path).status(), 401);
}

#[test]
fn photographs_are_found_without_credentials_unless_configured_otherwise() {
    let server = server();
    let answer = server.get("/content/v1/image/search?q=isbrytare&facets=product.code");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    assert_eq!(ids(&answer.json().unwrap()), "a");
    let check = |path: &str, headers: &[(&str, &str)]| {
        let response = server.get_with(path, headers);
        assert_eq!(response.status(), 401, "{path} {headers:?}");
        assert!(response.headers().contains_key(WWW_AUTHENTICATE), "{path}");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        assert_eq!(response.text().unwrap(), UNAUTHORIZED);
    };
    let nonsense = refused(server.get("/content/v1/nonsense/search"));
    assert_eq!(nonsense, "400 enum path mediaType");
    for path in ["_all", "text", "stockfoto", "video"] {
        check(&format!("/content/v1/{path}/search"), &[]);
    }
    check("/content/v1/image/search?agr=1001", &[]);
    check("/content/v1/image/search?ak=wrong", &[]);
    for line in ["Bearer wrong", "ApiKey wrong", "Basic !", "Basic eDp5", "Other x"] {
        check("/content/v1/image/search", &[("Authorization", line)]);
    }
    let server = server.restart(&["search.open_images=false"]);
    assert_eq!(server.get("/content/v1/image/search").status(), 401);
    assert_eq!(ask(&server, "/content/v1/image/search").status(), 200);
    let page = server.get("/?q=match");
    assert_eq!(
        (page.status().as_u16(), &page.headers()["location"]),
        (303, &"/o/login?return_to=%2F%3Fq%3Dmatch".parse().unwrap())
    );
}

#[test]
fn only_the_search_accepts_http_basic() {
    let server = server();
    let basic = |path: &str, password: &str| {
        let request = server.client.get(format!("{}{path}", server.url));
        request.basic_auth("demo-buyer", Some(password)).send().unwrap()
    };
    let good = basic("/content/v1/_all/search", "demo-buyer-password");
    assert_eq!(ids(&good.json().unwrap()), "f a");
    assert_eq!(basic("/content/v1/_all/search", "wrong").status(), 401);
    assert_eq!(basic("/content/v1/image/search", "wrong").status(), 401);
    for path in ["/content/v1/image/stream?wait=0", "/user/v1/user", "/api/search"] {
        assert_eq!(basic(path, "demo-buyer-password").status(), 401, "{path}");
    }
    let token = tokens::password(&server, "demo-buyer", "demo-buyer-password", "roles");
    let bearer = format!("Bearer {token}");
    let found = server.get_with("/content/v1/text/search", &[(AUTHORIZATION.as_str(), &bearer)]);
    assert_eq!(found.status(), 200);
}

#[test]
fn a_refused_search_offers_http_basic_except_in_a_browser() {
    let server = server();
    let offers_basic = |path: &str, headers: &[(&str, &str)]| {
        let response = server.get_with(path, headers);
        assert_eq!(response.status(), 401, "{path} {headers:?}");
        let lines = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let lines: Vec<&str> = lines.map(|line| line.to_str().unwrap()).collect();
        assert!(lines[0].starts_with("Bearer "), "{lines:?}");
        lines.contains(&r#"Basic realm="wirephoto", charset="UTF-8""#)
    };
    let search = "/content/v1/text/search";
    assert!(offers_basic(search, &[]));
    assert!(offers_basic(search, &[("authorization", "Basic eDp5")]));
    assert!(offers_basic(search, &[("authorization", "Bearer wrong")]));
    assert!(!offers_basic(search, &[("origin", "https://desk.example")]));
    assert!(!offers_basic(search, &[("sec-fetch-mode", "cors")]));
    assert!(!offers_basic(search, &[("authorization", "Session ended")]));
    assert!(!offers_basic("/content/v1/text/stream?wait=0", &[]));
    assert!(!offers_basic("/user/v1/user", &[]));
}

/// A text with pictures: one of ours with another host and a crop in its URI, and an unknown one.
fn article() -> Value {
    let rendition = |id: &str, usage: &str| {
        json!({
            "usage": usage, "variant": "Normal", "mimetype": "image/jpeg",
            "href": format!("https://other.example/x/media/image/{id}_Normal{usage}.jpg"),
        })
    };
    let picture = |uri: &str, id: &str| {
        json!({
            "uri": format!("https://other.example/media/image/{uri}"), "type": "picture",
            "headline": "Bilden", "byline": "Någon",
            "renditions": { "r0": rendition(id, "Preview"), "r1": rendition(id, "Thumbnail") },
        })
    };
    json!({
        "uri": "https://other.example/media/text/t", "headline": "Artikel",
        "body_text": "Om is.", "versioncreated": "2026-03-01T00:00:00Z",
        "product": [{ "code": "FOTO" }],
        "associations": {
            "a000": picture("a-crop_w10_h20_x1_y2", "a"), "a001": picture("gone", "gone"),
        },
    })
}

#[test]
fn every_hit_validates_and_carries_our_addresses() {
    let schema = std::fs::read_to_string(checkout("crates/model/assets/ttninjs-schema_1.6.json"));
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft4);
    let validator = options.should_validate_formats(true).build(&schema).unwrap();
    let items: Vec<_> = photographs().into_iter().chain([("text/t", article())]).collect();
    let server = news::server(&[], &items);
    let key = format!("ApiKey {DEMO_KEY}");
    let document = server.get_with("/media/text/t.json", &[("Authorization", &key)]);
    let document: Value = document.json().unwrap();
    for layout in ["full", "bare"] {
        let path = format!("/content/v1/_all/search?layout={layout}&pubstatus=usable,replaced");
        let answer: Value = ask(&server, &path).json().unwrap();
        assert_eq!(ids(&answer), "f c b a t");
        for hit in answer["hits"].as_array().unwrap() {
            let problems: Vec<_> =
                validator.iter_errors(hit).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{hit}: {problems:?}");
        }
        let ours = |path: &str| json!(format!("{}/media/{path}", server.url));
        let text = &answer["hits"][4];
        let linked = &text["associations"]["a000"];
        assert_eq!(text["uri"], ours("text/t"));
        assert_eq!(linked["uri"], ours("image/a-crop_w10_h20_x1_y2"));
        assert_eq!(linked["renditions"]["r1"]["href"], ours("image/a_NormalThumbnail.jpg"));
        let names: Vec<_> = text.as_object().unwrap().keys().cloned().collect();
        if layout == "full" {
            assert_eq!(*text, document);
            assert_eq!(text["$standard"]["version"], "1.6");
            let theirs = |text: &Value, name: &str| text["associations"]["a001"][name].clone();
            assert_eq!(theirs(text, "uri"), theirs(&article(), "uri"));
            // The service does not hold that picture, so it is a link.
            assert_eq!(theirs(text, "renditions"), Value::Null);
            assert_eq!(theirs(text, "representationtype"), json!("associated"));
            continue;
        }
        let mut names = names;
        names.sort_unstable();
        assert_eq!(names, ["associations", "date", "headline", "pubstatus", "uri"]);
        assert_eq!(text["associations"].as_object().unwrap().len(), 1);
        let mut kept: Vec<_> = linked.as_object().unwrap().keys().collect();
        kept.sort_unstable();
        assert_eq!(kept, ["headline", "renditions", "uri"]);
        let photograph = &answer["hits"][3];
        let thumbnails: Vec<_> = photograph["renditions"].as_object().unwrap().values().collect();
        assert_eq!((thumbnails.len(), &thumbnails[0]["usage"]), (1, &json!("Thumbnail")));
        assert_eq!(photograph["copyrightholder"], "TT");
    }
}

#[test]
fn the_deprecated_search_gives_a_list_and_accepts_only_a_key() {
    let server = server();
    let list = |query: &str| {
        let response = server.get(&format!("/api/search?ak={BUYER_KEY}&{query}"));
        assert_eq!(response.status(), 200, "{query}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("deprecation").starts_with('@'), "RFC 9745");
        assert_eq!(header("link"), "</content/v1/_all/search>; rel=\"successor-version\"");
        ids(&response.json().unwrap())
    };
    assert_eq!(list(""), "f a");
    assert_eq!(list("sort=asc"), "a f");
    assert_eq!(list("sort=desc&s=1&fr=1"), "a");
    assert_eq!(list("trs=2026-03-02&tre=2026-03-03&agr=1002&p=FOTO&q=isbrytare"), "a");
    assert_eq!(list("tr=h&sort=stor"), "f");
    assert_eq!(list("sort=rel&q=isbrytare"), "a");
    let bad = server.get(&format!("/api/search?ak={BUYER_KEY}&tr=m&sort=default:desc&s=10001"));
    assert_eq!(refused(bad), "400 enum query tr, maximum query s, enum query sort");
    for path in ["/api/search", "/api/search?ak=wrong", "/api/search/agreements"] {
        assert_eq!(ask(&server, path).status(), 401, "{path}: a header is not looked at");
    }
    let answer = server.get(&format!("/api/search/agreements?ak={BUYER_KEY}"));
    let product = json!([{
        "id": 10, "name": "Photo", "productCode": "FOTO",
        "description": "Demo product: the photographs of the demo archive",
    }]);
    let expected = json!({ "1002": product, "1003": product });
    assert_eq!(answer.json::<Value>().unwrap(), expected);
}

#[test]
fn the_first_page_searches_photographs() {
    let server = server();
    let page = server.get("/?q=isbrytare");
    assert_eq!(page.status(), 200);
    let text = page.text().unwrap();
    let text = text.replace("&#x2f;", "/");
    assert!(text.contains("/item/image/a") && !text.contains("/item/image/b"), "{text}");
    assert!(text.contains("value=\"isbrytare\""), "{text}");
    let none = server.get("/?q=nothinglikeit");
    assert_eq!(none.status(), 200);
    assert!(none.text().unwrap().contains("No results"));
    // An invalid query is searched for as words.
    let words = server.get("/?q=%28%3Cb%3E");
    assert_eq!(words.status(), 200);
    let text = words.text().unwrap();
    assert!(text.contains("&lt;b&gt;") && !text.contains("<b>"), "{text}");
    for path in ["/?page=0", "/?page=x", "/?q=%FF", "/?page=1000"] {
        assert_eq!(server.get(path).status(), 400, "{path}");
    }
}

#[test]
fn one_command_rebuilds_the_index_while_the_server_runs() {
    let server = server();
    let before = search(&server, "q=i&facets=product.code&s=50");
    let output = server.command(&["reindex", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reported: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reported, json!({ "items": 6 }));
    // Each process that searches builds the new index beside the current one.
    let built = |label: &str| server.metric("wirephoto_search_index_repairs_total", label);
    server.until("a new index", || {
        assert_eq!(search(&server, "q=i&facets=product.code&s=50"), before);
        let is_there = server.data().join("search/1/2").exists();
        (built("kind=\"built\"") >= 2.0 && is_there).then_some(())
    });
    // The new index is updated, too.
    let new = news::document("Match i sol", &["FOTO"], "2026-03-09T12:00:00+01:00");
    news::ingest(&server, "image/g", &new);
    assert_eq!(found(&server, "q=match&sort=versioncreated:desc"), "g b");
}

#[test]
fn the_query_language_is_understood_as_documented() {
    let server = server();
    let check = |query: &str, expected: &str| {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let query = format!("q={query}&sort=versioncreated:asc&pubstatus=usable,replaced");
        assert_eq!(found(&server, &query), expected, "{query}");
    };
    check("isbrytare", "a");
    check("isbrytare strommen", "a");
    check("strömmen", "a");
    check("stromm*", "a");
    check("aldre", "c");
    check("Äldre", "c");
    check("isbrytäre", "");
    check("regn OR isbrytare", "a b");
    check("i NOT regn", "a");
    check("i -isbrytare", "b");
    check("+i +match", "b");
    check("(isbrytare OR match) i", "a b");
    check("\"match i\"", "b");
    check("\"i match\"", "");
    check("person.name:\"Erik Berg\"", "a");
    check("person.name:berg", "a");
    check("subject.code:13000000", "a");
    check("13000000", "a");
    check("product.code:SPORT", "b c");
    check("versioncreated:[2026-03-05 TO 2026-03-06]", "b c");
    check("headline:stockholm", "");
    check("place.name:stockholm OR headline:bild", "a c");
}

#[test]
fn the_page_of_a_text_asks_for_a_login() {
    let text = news::document("Hemlig plan", &["TEXT"], "2026-03-02T09:15:00+01:00");
    let server = news::server(&[], &[("text/t", text)]);
    let response = server.get("/item/text/t");
    assert_eq!(response.status(), 303);
    let target = response.headers()["location"].to_str().unwrap().to_owned();
    assert!(target.starts_with("/o/login?return_to="), "{target}");
}

#[test]
fn a_replaced_commissioned_item_stays_commissioned() {
    let document = |headline: &str| {
        let mut document = news::document(headline, &["FOTO"], "2026-03-02T09:15:00+01:00");
        document["pubstatus"] = json!("commissioned");
        document
    };
    let server = news::server(&[], &[("image/old", document("Beställt"))]);
    let mut new = document("Beställt igen");
    new["replacing"] = json!(["http://tt.se/media/image/old"]);
    news::ingest(&server, "image/new", &new);
    for status in ["usable", "replaced", "usable,replaced"] {
        let path = format!("/content/v1/image/search?pubstatus={status}");
        let answer: Value = server.get(&path).json().unwrap();
        assert_eq!(answer["total"], 0, "{status}");
    }
    let auth = format!("Bearer {}", tokens::admin(&server));
    let path = "/content/v1/image/search?pubstatus=commissioned&sort=versionstored:desc";
    let answer: Value = server.get_with(path, &[("Authorization", &auth)]).json().unwrap();
    assert_eq!(answer["total"], 2);
}
