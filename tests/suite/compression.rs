//! Responses in gzip and brotli: which ones are compressed, their entity tags, and which never are.

use std::io::Read;

use flate2::read::GzDecoder;
use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use crate::common::{DEMO_KEY, LARGE, Server, tokens};
use crate::reload::reload;
use crate::site_account::Person;

const DOCUMENT: &str = "/media/image/demo-urtavla.json";
const SEARCH: &str = "/content/v1/image/search?s=20";

fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
}

fn ask(server: &Server, path: &str, accept: &str) -> Response {
    server.get_with(path, &[("accept-encoding", accept)])
}

/// The content coding of a response, and its decoded body.
fn decoded(response: Response) -> (String, Vec<u8>) {
    let coding = header(&response, "content-encoding");
    let coded = response.bytes().expect("body");
    let mut body = Vec::new();
    match coding.as_str() {
        "gzip" => drop(GzDecoder::new(&*coded).read_to_end(&mut body).expect("gzip")),
        "br" => brotli::BrotliDecompress(&mut &*coded, &mut body).expect("brotli"),
        _ => body = coded.to_vec(),
    }
    (coding, body)
}

fn varies(response: &Response) -> bool {
    header(response, "vary").split(", ").any(|name| name == "Accept-Encoding")
}

#[test]
fn texts_are_compressed_for_clients_that_accept_it() {
    let server = Server::demo();
    for path in [
        DOCUMENT,
        "/media/image/demo-urtavla.xml",
        SEARCH,
        "/openapi.json",
        "/assets/css/site.css",
        "/assets/js/studio.js",
        "/docs",
        "/",
    ] {
        let plain = server.get(path);
        assert_eq!(plain.status(), 200, "{path}");
        assert!(varies(&plain), "{path}");
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        let kind = header(&plain, "content-type");
        let plain = plain.bytes().expect("body");
        for coding in ["gzip", "br"] {
            let answer = ask(&server, path, coding);
            assert!(varies(&answer), "{path}");
            assert_eq!(header(&answer, "content-type"), kind, "{path}");
            assert_eq!(header(&answer, "accept-ranges"), "", "{path}");
            let length: usize = header(&answer, "content-length").parse().expect("a length");
            assert!(
                length < plain.len() * 2 / 3,
                "{path}: {length} of {} in {coding}",
                plain.len()
            );
            let (found, body) = decoded(answer);
            assert_eq!(found, coding, "{path}");
            assert_eq!(body, plain, "{path} in {coding}");
        }
        // Compressed once: the second response is the cached first one.
        let again = || ask(&server, path, "br").bytes().expect("body");
        assert_eq!(again(), again(), "{path}");
    }
}

#[test]
fn the_client_chooses_the_coding_by_weight() {
    let server = Server::demo();
    for (accept, expected) in [
        ("gzip, deflate, br, zstd", "br"),
        ("br;q=0.1, gzip", "gzip"),
        ("gzip;q=0", ""),
        ("identity", ""),
        ("zstd", ""),
        ("*", "br"),
        ("gzip;q=0.5, identity;q=1", ""),
    ] {
        assert_eq!(
            header(&ask(&server, DOCUMENT, accept), "content-encoding"),
            expected,
            "{accept}"
        );
    }
}

#[test]
fn pictures_archives_and_short_responses_are_not_compressed() {
    let server = Server::demo();
    for path in [
        "/media/image/demo-urtavla_NormalPreview.jpg".to_owned(),
        format!("/media/{LARGE}.jpg?ak={DEMO_KEY}"),
        format!("/media/image/demo-urtavla.zip?ak={DEMO_KEY}"),
        "/health/live".to_owned(),
        "/media/image/no-such-item.json".to_owned(),
        "/content/v1/image/search?s=x".to_owned(),
    ] {
        let plain = server.get(&path);
        let answer = ask(&server, &path, "gzip, br");
        assert!(!varies(&answer), "{path}");
        assert_eq!(header(&answer, "content-encoding"), "", "{path}");
        assert_eq!(header(&answer, "content-length"), header(&plain, "content-length"), "{path}");
        assert_eq!(header(&answer, "etag"), header(&plain, "etag"), "{path}");
    }
}

#[test]
fn each_coding_has_its_own_entity_tag_for_a_304() {
    let server = Server::demo();
    for path in [DOCUMENT, "/openapi.json", "/assets/css/site.css"] {
        let tag = |accept| header(&ask(&server, path, accept), "etag");
        let (plain, gzip, br) = (tag("identity"), tag("gzip"), tag("br"));
        assert!(plain != gzip && plain != br && gzip != br, "{plain} {gzip} {br}");
        assert!([&plain, &gzip, &br].iter().all(|tag| tag.starts_with('"')), "strong: {br}");
        let known = |tags: &str, accept| {
            let headers = [("if-none-match", tags), ("accept-encoding", accept)];
            let answer = server.get_with(path, &headers);
            let status = answer.status().as_u16();
            assert!(varies(&answer), "{path} {status}");
            (status, header(&answer, "etag"))
        };
        let all = "gzip, br";
        for (have, accept) in [(&plain, "identity"), (&gzip, "gzip"), (&br, "br"), (&gzip, all)] {
            assert_eq!(known(have, accept), (304, have.clone()), "{path} {accept}");
            assert_eq!(known(&format!("W/{have}"), accept), (304, have.clone()), "{path}");
        }
        // A cache with several variants learns which one is meant.
        assert_eq!(known(&format!("{plain}, {gzip}, {br}"), all), (304, br.clone()), "{path}");
        // A tag of a coding that the client does not accept is no match.
        assert_eq!(known(&br, "gzip"), (200, gzip.clone()), "{path}");
        assert_eq!(known(&gzip, "identity"), (200, plain.clone()), "{path}");
        let other = format!("{}x\"", gzip.trim_end_matches('"'));
        assert_eq!(known(&other, all), (200, br.clone()), "{path}");
        let headers = [("if-match", gzip.as_str()), ("accept-encoding", "gzip")];
        assert_eq!(server.get_with(path, &headers).status(), 200, "{path}");
        let headers = [("if-match", br.as_str()), ("accept-encoding", "gzip")];
        assert_eq!(server.get_with(path, &headers).status(), 412, "{path}");
    }
}

#[test]
fn ranges_apply_to_the_identity_coding_and_head_matches_get() {
    let server = Server::demo();
    let plain = server.get(DOCUMENT);
    let tag = header(&plain, "etag");
    let plain = plain.bytes().expect("body");
    let coded = header(&ask(&server, DOCUMENT, "gzip"), "etag");
    let part = |more: &[(&str, &str)]| {
        let headers = [("range", "bytes=10-19"), ("accept-encoding", "gzip")];
        server.get_with(DOCUMENT, &[&headers[..], more].concat())
    };
    for more in [&[][..], &[("if-range", tag.as_str())]] {
        let answer = part(more);
        assert_eq!((answer.status().as_u16(), varies(&answer)), (206, true), "{more:?}");
        assert_eq!(
            (header(&answer, "content-encoding"), header(&answer, "etag")),
            (String::new(), tag.clone())
        );
        assert_eq!(header(&answer, "content-range"), format!("bytes 10-19/{}", plain.len()));
        assert_eq!(answer.bytes().expect("body"), plain[10..20]);
    }
    // Compressed representations have no ranges: the client gets the whole.
    let whole = part(&[("if-range", &coded)]);
    assert_eq!((whole.status().as_u16(), header(&whole, "etag")), (200, coded));
    assert_eq!(decoded(whole), ("gzip".to_owned(), plain.to_vec()));
    for path in [DOCUMENT, SEARCH, "/assets/css/site.css"] {
        for accept in ["identity", "gzip", "br"] {
            let send = |method: Method| {
                let request = server.client.request(method, format!("{}{path}", server.url));
                request.header("accept-encoding", accept).send().expect("answer")
            };
            let (head, get) = (send(Method::HEAD), send(Method::GET));
            for name in ["content-encoding", "content-length", "etag", "vary", "accept-ranges"] {
                assert_eq!(header(&head, name), header(&get, name), "{path} {accept} {name}");
            }
            assert_eq!(head.bytes().expect("no body").len(), 0);
        }
    }
}

/// A response that repeats words of the request next to a secret must have the same length whatever the words are.
#[test]
fn responses_with_secrets_are_never_compressed() {
    let server = Server::demo_with(&["auth.hash_memory_kib=64"]);
    let all = "gzip, br";
    // Space for words that would be short in a compressed response.
    let words = "repeated+".repeat(200);
    let stranger = ask(&server, &format!("/?q={words}"), all);
    assert_eq!(header(&stranger, "content-encoding"), "br", "no secret is on it");
    let person = Person::log_in(&server, "demo-editor");
    for path in [
        format!("/?q={words}"),
        "/item/image/demo-urtavla".to_owned(),
        "/account/keys".to_owned(),
        "/docs".to_owned(),
    ] {
        let page = person.get_with(&path, &[("accept-encoding", all)]);
        assert_eq!(
            (page.status().as_u16(), header(&page, "content-encoding")),
            (200, String::new()),
            "{path}"
        );
        assert!(!varies(&page), "{path}");
    }
    let login = ask(&server, &format!("/o/login?return_to=/?q={words}"), all);
    assert_eq!(
        (login.status().as_u16(), header(&login, "content-encoding")),
        (200, String::new())
    );
    assert!(login.bytes().expect("body").len() > 1000, "long enough to be compressed");

    let form = [
        ("grant_type", "password"),
        ("client_id", "demo-client"),
        ("client_secret", "demo-client-secret"),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
        ("scope", "openid roles email user customer profile collection"),
    ];
    let request = server.client.post(format!("{}/o/oauth2/token", server.url)).form(&form);
    let set = request.header("accept-encoding", all).send().expect("answer");
    assert_eq!((set.status().as_u16(), header(&set, "content-encoding")), (200, String::new()));
    let set: Value = set.json().expect("JSON");
    let token = format!("Bearer {}", set["access_token"].as_str().expect("a token"));
    for at in 0..8 {
        let request = server.client.post(format!("{}/user/v1/key", server.url));
        let request = request.header("authorization", &token).header("accept-encoding", all);
        let name = format!("{at}{}", "x".repeat(150));
        let made = request.body(json!({ "name": name }).to_string()).send().expect("answer");
        assert_eq!(
            (made.status().as_u16(), header(&made, "content-encoding")),
            (200, String::new())
        );
    }
    let headers = [("authorization", token.as_str()), ("accept-encoding", all)];
    let keys = server.get_with("/user/v1/key", &headers);
    assert_eq!(header(&keys, "content-encoding"), "");
    assert!(keys.bytes().expect("body").len() > 1000, "long enough to be compressed");
    // Tokens still work, compressed or not.
    drop(tokens::password(&server, "demo-editor", "demo-editor-password", "roles"));
}

#[test]
fn the_operator_turns_compression_off() {
    let server = Server::demo();
    let tag = header(&ask(&server, DOCUMENT, "gzip"), "etag");
    reload(&server, "[server]\ncompression = false\n", "settings reloaded");
    for path in [DOCUMENT, SEARCH, "/assets/css/site.css", "/"] {
        let answer = ask(&server, path, "gzip, br");
        assert_eq!(
            (answer.status().as_u16(), header(&answer, "content-encoding")),
            (200, String::new()),
            "{path}"
        );
        assert!(!varies(&answer), "{path}");
    }
    let headers = [("if-none-match", tag.as_str()), ("accept-encoding", "gzip")];
    assert_eq!(server.get_with(DOCUMENT, &headers).status(), 200);
}
