//! Cache purges of CDNs: the keys that media responses carry, and the purge requests, which are sent in order, after
//! the old version is gone, and survive kills and outages of the CDN.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    thread,
};

use reqwest::{
    blocking::{Client, Response},
    header::{ETAG, IF_NONE_MATCH},
};
use serde_json::{Value, json};

use crate::{
    common::{DEMO_KEY, Server, WAIT_TIMEOUT, news, pause, ports::ReservedPort},
    deliveries::{ask, run},
};

const PREVIEW: &str = "/media/image/a_NormalPreview.jpg";
const TOKEN: &str = "purge-token-that-nobody-sees";

/// A purge request that a CDN received.
#[derive(Clone, Debug)]
struct Call {
    line: String,
    headers: HashMap<String, String>,
    body: String,
    /// The response of the service for [`PREVIEW`] while the purge was being answered.
    preview: u16,
}

/// A CDN that records its purge requests, on its own port.
pub struct Cdn {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    /// The status that it answers.
    pub status: Arc<AtomicU16>,
    /// Requests that contain this text are refused; empty: none.
    refuses: Arc<Mutex<String>>,
    /// The server from which it fetches the preview before it answers; empty: it does not.
    origin: Arc<Mutex<String>>,
    stop: Arc<AtomicBool>,
}

impl Cdn {
    pub fn start() -> Self {
        Self::over(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn over(listener: TcpListener) -> Self {
        let cdn = Self {
            port: listener.local_addr().unwrap().port(),
            calls: Arc::default(),
            status: Arc::new(AtomicU16::new(200)),
            refuses: Arc::default(),
            origin: Arc::default(),
            stop: Arc::default(),
        };
        let refuses = Arc::clone(&cdn.refuses);
        let (calls, status) = (Arc::clone(&cdn.calls), Arc::clone(&cdn.status));
        let (origin, stop) = (Arc::clone(&cdn.origin), Arc::clone(&cdn.stop));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let origin = origin.lock().unwrap().clone();
                let refused = refuses.lock().unwrap().clone();
                let answer = |call: &str| match refused.is_empty() || !call.contains(&refused) {
                    true => status.load(Ordering::Relaxed),
                    false => 400,
                };
                // A killed server leaves a truncated request.
                let Some(call) =
                    stream.ok().and_then(|stream| answer_purge(stream, answer, &origin))
                else {
                    continue;
                };
                calls.lock().unwrap().push(call);
            }
        });
        cdn
    }

    fn url(&self) -> String {
        format!("cdn.purge_url=http://127.0.0.1:{}/service/purge", self.port)
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The keys of all purges that were answered with success, in order.
    pub fn keys(&self) -> Vec<String> {
        let calls = self.calls();
        let keys = calls.iter().flat_map(|call| call.headers["surrogate-key"].split(' '));
        keys.map(str::to_owned).collect()
    }

    /// Waits until all earlier requests are answered: they are handled one at a time.
    pub fn wait_until_idle(&self) {
        let client = Client::builder().no_proxy().timeout(5 * WAIT_TIMEOUT).build().unwrap();
        client.get(format!("http://127.0.0.1:{}/settle", self.port)).send().unwrap();
    }

    /// Waits until `count` requests have arrived.
    fn called(&self, server: &Server, count: usize) {
        server.until(&format!("{count} calls"), || (self.calls().len() == count).then_some(()));
    }

    /// Waits until `expected` are the last purged keys.
    pub fn until(&self, server: &Server, expected: &[&str]) {
        server.until(&format!("{expected:?} to be told"), || {
            self.keys()
                .ends_with(&expected.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>())
                .then_some(())
        });
    }
}

impl Drop for Cdn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Reads a request and answers it; returns the request, unless the answer is a failure.
fn answer_purge(
    mut stream: TcpStream,
    answer: impl Fn(&str) -> u16,
    origin: &str,
) -> Option<Call> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut headers) = (String::new(), HashMap::new());
    reader.read_line(&mut line).ok()?;
    let mut header = String::new();
    while reader.read_line(&mut header).ok()? > 2 {
        let (name, value) = header.trim().split_once(": ")?;
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
        header.clear();
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let preview = match origin.is_empty() {
        true => 0,
        false => {
            let client = Client::builder().no_proxy().build().unwrap();
            client.get(format!("{origin}{PREVIEW}")).send().ok()?.status().as_u16()
        }
    };
    let keys = headers.get("surrogate-key").map_or("", String::as_str);
    let status = answer(&format!("{line}{keys}"));
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).ok()?;
    let body = String::from_utf8(body).unwrap();
    (status == 200).then(|| Call { line: line.trim().to_owned(), headers, body, preview })
}

fn document(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00")
}

pub fn items() -> Vec<(&'static str, Value)> {
    let mut story = document("Reportage");
    story["associations"] = json!({"a000": {
        "uri": "http://elsewhere.example/media/image/a", "type": "picture",
    }});
    vec![
        ("image/a", document("A")),
        ("image/b", document("B")),
        ("image/c", document("C")),
        ("text/story", story),
    ]
}

/// The settings for a CDN that receives keys in a header.
pub fn settings(cdn: &Cdn) -> Vec<String> {
    settings_with(cdn, "cdn.purge_again_s=0")
}

fn settings_with(cdn: &Cdn, again: &str) -> Vec<String> {
    // A request that is slow on a busy machine is not sent twice.
    let long_timeout = "cdn.purge_timeout_s=60";
    let fixed = ["cdn.purge_header=Surrogate-Key", again, "server.unready_s=0", long_timeout];
    let authorization = format!("cdn.purge_authorization=Fastly-Key: {TOKEN}");
    fixed.map(str::to_owned).into_iter().chain([cdn.url(), authorization]).collect()
}

fn strs(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

fn keys(response: &Response) -> [&str; 2] {
    let header =
        |name: &str| response.headers().get(name).map_or("", |value| value.to_str().unwrap());
    [header("surrogate-key"), header("cache-tag")]
}

#[test]
fn every_media_response_carries_the_keys_of_what_it_shows() {
    let server = news::server(&[], &items());
    let own = ["image.a image wirephoto", "image.a,image,wirephoto"];
    for path in ["_NormalPreview.jpg", "-crop_w9_h9_x0_y0_NormalPreview.jpg", ".json", ".xml", ""]
    {
        assert_eq!(keys(&server.get(&format!("/media/image/a{path}"))), own, "{path}");
        let preview = ask(&server, &format!("/media/image/a{path}"), DEMO_KEY);
        assert_eq!(keys(&preview), own, "{path} with a key");
    }
    for path in [".jpg", ".zip", "/pricelist"] {
        assert_eq!(keys(&ask(&server, &format!("/media/image/a{path}"), DEMO_KEY)), own, "{path}");
    }
    let etag = server.get(PREVIEW).headers()[ETAG].to_str().unwrap().to_owned();
    let unchanged = server.get_with(PREVIEW, &[(IF_NONE_MATCH.as_str(), &etag)]);
    assert_eq!((unchanged.status().as_u16(), keys(&unchanged)), (304, own));
    let part = server.get_with(PREVIEW, &[("range", "bytes=0-9")]);
    assert_eq!((part.status().as_u16(), keys(&part)), (206, own));
    // A response that shows an item within another carries the keys of both.
    let both = ["text.story image.a text wirephoto", "text.story,image.a,text,wirephoto"];
    for path in ["/a000_NormalPreview.jpg", ".json", ".xml", ".zip", "-cutpaste.txt"] {
        let response = ask(&server, &format!("/media/text/story{path}"), DEMO_KEY);
        assert_eq!((response.status().as_u16(), keys(&response)), (200, both), "{path}");
    }
    // A missing item may be published later, so a 404 is cached briefly and carries its key too.
    for path in ["/media/image/none.json", "/media/image/none_NormalPreview.jpg"] {
        let missing = server.get(path);
        let named = ["image.none image wirephoto", "image.none,image,wirephoto"];
        assert_eq!((missing.status().as_u16(), keys(&missing)), (404, named));
        assert_eq!(missing.headers()["cache-control"], "max-age=60");
        assert_eq!(missing.headers()["vary"], "Authorization, Cookie");
    }
    for path in ["/", "/content/v1/image/search", "/media/image/a.jpg"] {
        assert_eq!(keys(&server.get(path)), ["", ""], "{path}");
    }
}

#[test]
fn key_headers_and_the_cache_lifetime_of_cdns_are_configurable() {
    let server = news::server(
        &["cdn.surrogate_key_header=xkey", "cdn.cache_tag_header=", "cdn.max_age_s=86400"],
        &[("image/a", document("A"))],
    );
    let response = server.get(PREVIEW);
    assert_eq!(response.headers()["xkey"], "image.a image wirephoto");
    assert_eq!(keys(&response), ["", ""]);
    let policy = "public, max-age=300, s-maxage=86400, stale-while-revalidate=60";
    assert_eq!(response.headers()["cache-control"], policy);
    let missing = server.get("/media/image/none.json");
    assert_eq!(missing.headers()["cache-control"], "max-age=60, s-maxage=60");
    // A 404 for one user may be a 200 for another.
    let key = format!("ApiKey {DEMO_KEY}");
    let by_query = format!("/media/image/none.json?ak={DEMO_KEY}");
    for (path, header) in [
        ("/media/image/none.json", ("authorization", key.as_str())),
        (by_query.as_str(), ("accept", "*/*")),
        ("/media/image/none.json", ("cookie", "wirephoto_session=abc")),
        ("/media/image/a.zip?channel=user:demo-editor:none", ("authorization", &key)),
    ] {
        let missing = server.get_with(path, &[header]);
        assert_eq!(missing.status(), 404, "{path} {header:?}");
        assert_eq!(missing.headers()["cache-control"], "private, no-cache", "{path} {header:?}");
        assert_eq!(missing.headers()["vary"], "Authorization, Cookie");
    }
    let hires = ask(&server, "/media/image/a.jpg", DEMO_KEY);
    assert_eq!(hires.headers()["cache-control"], "private, no-cache");
    let refused = server.command(&["config", "--set", "cdn.cache_tag_header=a b"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("cdn.cache_tag_header"), "{said}");
}

/// A document that shows more items than fit into the key header.
#[test]
fn a_response_that_names_too_many_items_is_not_for_shared_caches() {
    let mut crowd = document("Crowd");
    let one = |at: usize| {
        let uri = format!("http://elsewhere.example/media/image/one-of-many-{at:03}");
        (format!("a{at:03}"), json!({ "uri": uri, "type": "picture" }))
    };
    crowd["associations"] = (0..100).map(one).collect();
    let server = news::server(&[], &[("image/crowd", crowd)]);
    let document = server.get("/media/image/crowd.json");
    assert_eq!(document.headers()["cache-control"], "private, no-cache");
    assert_eq!(keys(&document)[0], "image.crowd image wirephoto");
    // Its renditions show only the item itself.
    let preview = server.get("/media/image/crowd_NormalPreview.jpg");
    assert!(preview.headers()["cache-control"].to_str().unwrap().starts_with("public"));
}

#[test]
fn a_cdn_is_purged_only_after_the_old_version_is_gone() {
    let cdn = Cdn::start();
    let server = news::server(&strs(&settings(&cdn)), &items());
    *cdn.origin.lock().unwrap() = server.url.clone();
    for round in 1..=3 {
        assert_eq!(server.get(PREVIEW).status(), 200);
        run(&server, &["withdraw", "image/a"], 0);
        cdn.called(&server, 2 * round - 1);
        let call = cdn.calls().pop().unwrap();
        assert_eq!(call.preview, 404, "round {round}: the CDN would have fetched the old version");
        news::ingest(&server, "image/a", &document(&format!("A {round}")));
        cdn.called(&server, 2 * round);
        assert_eq!(cdn.calls().pop().unwrap().preview, 200);
    }
    let calls = cdn.calls();
    let Call { line, headers, .. } = &calls[0];
    assert_eq!(line, "POST /service/purge HTTP/1.1");
    assert_eq!(
        (headers["fastly-key"].as_str(), headers["surrogate-key"].as_str()),
        (TOKEN, "image.a")
    );
    server.until("the metrics", || {
        let done = server.metric("wirephoto_purges_total", "done");
        (done > 5.0 && server.metric("wirephoto_purge_lag_seconds", "") == 0.0).then_some(())
    });
    // A new item was in no cache.
    news::ingest(&server, "image/new", &document("New"));
    run(&server, &["withdraw", "image/b"], 0);
    cdn.until(&server, &["image.b"]);
    assert!(!cdn.keys().contains(&"image.new".to_owned()));
    assert!(!server.log().contains(TOKEN));
}

#[test]
fn undelivered_purges_survive_a_kill_and_are_sent_in_order_once_the_cdn_is_back() {
    let cdn = Cdn::start();
    // Changes before the CDN was configured are not sent.
    let server = news::server(&[], &items());
    run(&server, &["withdraw", "image/c"], 0);
    let settings = settings(&cdn);
    let mut server = server.restart(&strs(&settings));
    cdn.status.store(503, Ordering::Relaxed);
    for key in ["image/b", "text/story", "image/a"] {
        run(&server, &["withdraw", key], 0);
    }
    server.until("a try that failed", || {
        (server.metric("wirephoto_purges_total", "retry") > 0.0).then_some(())
    });
    server.until("the lag", || {
        (server.metric("wirephoto_purge_lag_seconds", "") > 0.0).then_some(())
    });
    assert!(server.log().contains("answered 503") && !server.log().contains(TOKEN));
    server.child.kill().unwrap();
    assert!(!server.child.wait().unwrap().success());
    cdn.wait_until_idle();
    cdn.status.store(200, Ordering::Relaxed);
    // A withdrawal while no server runs is sent by the next one that starts.
    news::ingest(&server, "image/b", &document("B again"));
    let server = server.restart_killed(&strs(&settings));
    let order = ["image.b", "text.story", "image.a"].map(str::to_owned);
    server.until("what waited", || cdn.keys().starts_with(&order).then_some(()));
    assert!(!cdn.keys().contains(&"image.c".to_owned()), "{:?}", cdn.keys());
    server.until("nothing to wait", || {
        (server.metric("wirephoto_purges_waiting", "") == 0.0).then_some(())
    });
    // Without an address nothing is sent, and nothing is queued for later.
    let server = server.restart(&[]);
    run(&server, &["withdraw", "image/b"], 0);
    let before = cdn.calls().len();
    let server = server.restart(&strs(&settings));
    run(&server, &["purge", "--set", &cdn.url(), "--set", &settings[0], "image/zzz"], 0);
    cdn.until(&server, &["image.zzz"]);
    assert_eq!(cdn.calls().len(), before + 1);
}

#[test]
fn the_end_of_an_embargo_is_a_change_and_each_change_is_purged_twice() {
    let cdn = Cdn::start();
    let settings = settings_with(&cdn, "cdn.purge_again_s=1");
    let server = news::server(&strs(&settings), &items());
    run(&server, &["withdraw", "image/b"], 0);
    cdn.until(&server, &["image.b", "image.b"]);
    // Long enough for a busy machine to ingest it and to send both purges.
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(25);
    let mut later = document("Later");
    later["embargoed"] = json!(until.to_string());
    *cdn.origin.lock().unwrap() = server.url.clone();
    news::ingest(&server, "image/a", &later);
    cdn.until(&server, &["image.a", "image.a"]);
    cdn.until(&server, &["image.a", "image.a", "image.a"]);
    let seen: Vec<u16> = cdn.calls().iter().skip(2).map(|call| call.preview).collect();
    assert_eq!(seen, [404, 404, 200]);
    assert!(jiff::Timestamp::now() >= until);
}

#[test]
fn purge_requests_have_the_format_of_each_cdn() {
    let cdn = Cdn::start();
    let by_body = [
        "cdn.purge_body={\"tags\": [{keys_json}]}",
        "cdn.purge_authorization=Bearer abc:def",
        "cdn.purge_keys_max=2",
        "cdn.purge_again_s=0",
        &cdn.url(),
    ];
    let server = news::server(&by_body, &items());
    let names = ["image/a", "image/b", "image/c"];
    run(&server, &[&["purge", "--set", &cdn.url(), "--set", by_body[0]], &names[..]].concat(), 0);
    cdn.called(&server, 2);
    let calls = cdn.calls();
    let bodies: Vec<&str> = calls.iter().map(|call| call.body.as_str()).collect();
    assert_eq!(bodies, [r#"{"tags": ["image.a","image.b"]}"#, r#"{"tags": ["image.c"]}"#]);
    let headers = &calls[0].headers;
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["authorization"], "Bearer abc:def");
    // One call for each key.
    let url = format!("cdn.purge_url=http://127.0.0.1:{}/tags/{{key}}", cdn.port);
    let server = server.restart(&[&url, "cdn.purge_method=PURGE", "cdn.purge_again_s=0"]);
    run(&server, &["purge", "--set", &url, "--all"], 0);
    run(&server, &["purge", "--set", &url, "http://any.example/media/text/story"], 0);
    cdn.called(&server, 4);
    let lines: Vec<String> = cdn.calls().into_iter().skip(2).map(|call| call.line).collect();
    assert_eq!(lines, ["PURGE /tags/wirephoto HTTP/1.1", "PURGE /tags/text.story HTTP/1.1"]);
}

#[test]
fn purge_settings_without_effect_are_refused_by_name() {
    let server = news::server(&[], &items());
    let check = |settings: &[&str], expected: &str| {
        let mut arguments = vec!["purge", "image/a"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
        let (_, said) = run(&server, &arguments, 2);
        assert!(said.contains(expected), "{settings:?}: {said}");
    };
    let url = "cdn.purge_url=http://127.0.0.1:9/";
    check(&[], "cdn.purge_url is empty");
    check(&["cdn.purge_url=ftp://h/{key}"], "cdn.purge_url is not");
    check(&[url], "cdn.purge_url has no {key}");
    check(&[url, "cdn.purge_header=a b"], "cdn.purge_header");
    let secret = format!("cdn.purge_authorization={TOKEN}\u{e5}");
    check(&[url, "cdn.purge_header=k", &secret], "cdn.purge_authorization has characters");
    check(&[url, "cdn.purge_header=k", "cdn.purge_ca=/none"], "cdn.purge_ca /none cannot be read");
    let (_, said) = run(&server, &["purge", "http://h/none", "--set", url], 2);
    assert!(said.contains("names no item"), "{said}");
    let authorization = format!("cdn.purge_authorization=Bearer {TOKEN}");
    let (shown, _) = run(&server, &["config", "--set", &authorization], 0);
    assert!(!shown.contains(TOKEN) && shown.contains("***"));
}

#[test]
fn an_unreachable_cdn_delays_no_other_and_is_purged_once_it_is_back() {
    let (away, cdn) = (ReservedPort::new(), Cdn::start());
    let port = away.port();
    let mut settings = settings(&cdn);
    let both = |first: u16| {
        format!(
            "cdn.purge_url=http://127.0.0.1:{first}/service/purge \
             http://127.0.0.1:{}/service/purge",
            cdn.port
        )
    };
    settings.push(both(port));
    let server = news::server(&strs(&settings), &items());
    let reported = ["image.b", "text.story", "image.a"];
    for (key, name) in reported.into_iter().zip(["image/b", "text/story", "image/a"]) {
        run(&server, &["withdraw", name], 0);
        cdn.until(&server, &[key]);
    }
    let waiting = |address: &str| {
        server.metric("wirephoto_purges_waiting", &format!("address=\"{address}\""))
    };
    let lag = |address: &str| {
        server.metric("wirephoto_purge_lag_seconds", &format!("address=\"{address}\""))
    };
    server.until("what waits for one", || {
        let late = (lag("1") > 0.0, lag("2") > 0.0);
        ((waiting("1"), waiting("2"), late) == (3.0, 0.0, (true, false))).then_some(())
    });
    let back = Cdn::over(away.listen());
    // The backoff doubles with each attempt: recovery may take as long as the outage.
    let start = std::time::Instant::now();
    while back.keys() != reported {
        assert!(start.elapsed() < 4 * WAIT_TIMEOUT, "told of {:?}", back.keys());
        pause();
    }
    assert_eq!(cdn.keys(), reported, "nothing is told twice");
    back.status.store(503, Ordering::Relaxed);
    // A corrected address receives the purges that the wrong one did not.
    run(&server, &["withdraw", "image/c"], 0);
    cdn.until(&server, &["image.c"]);
    let other = Cdn::start();
    settings.push(both(other.port));
    let server = server.restart(&strs(&settings));
    other.until(&server, &["image.c"]);
    assert_eq!((other.keys().len(), cdn.keys().len()), (1, 4));
}

#[test]
fn a_key_that_a_cdn_refuses_delays_no_other_key() {
    let cdn = Cdn::start();
    let settings = settings(&cdn);
    let server = news::server(&strs(&settings), &items());
    *cdn.refuses.lock().unwrap() = "image.b".to_owned();
    let hook = [cdn.url(), settings[0].clone()];
    let purge = ["purge", "--set", &hook[0], "--set", &hook[1]];
    let all = ["image/a", "image/b", "image/c"];
    run(&server, &[&purge[..], &all[..]].concat(), 0);
    cdn.until(&server, &["image.a", "image.c"]);
    run(&server, &["withdraw", "text/story"], 0);
    cdn.until(&server, &["text.story"]);
    let count = |outcome: &str| server.metric("wirephoto_purges_total", outcome);
    server.until("the count", || ((count("refused"), count("done")) == (1.0, 3.0)).then_some(()));
    let reported = || server.log().contains("refuses a key") && server.log().contains("image.b");
    server.until("a word on it", || reported().then_some(()));
    // The operator may have fixed the cause before the restart.
    cdn.refuses.lock().unwrap().clear();
    let server = server.restart(&strs(&settings));
    cdn.until(&server, &["image.b"]);
    // A cache without anything for the key answers 404, which counts as success.
    cdn.status.store(404, Ordering::Relaxed);
    let url = format!("cdn.purge_url=http://127.0.0.1:{}/tags/{{key}}", cdn.port);
    let server = server.restart(&[&url, "cdn.purge_method=PURGE", "cdn.purge_again_s=0"]);
    run(&server, &["withdraw", "image/a"], 0);
    server.until("it to be absent", || {
        (server.metric("wirephoto_purges_total", "absent") == 1.0).then_some(())
    });
    server.until("nothing to wait", || {
        (server.metric("wirephoto_purges_waiting", "") == 0.0).then_some(())
    });
}
