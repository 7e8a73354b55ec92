//! What a CDN is told: the keys that media answers carry, and the calls by which it learns of
//! changes, in order, after the old version is gone, through kills and while it is away.

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
    common::{DEMO_KEY, PATIENCE, Server, news, pause, ports::Refusing},
    deliveries::{ask, run},
};

const PREVIEW: &str = "/media/image/a_NormalPreview.jpg";
const TOKEN: &str = "purge-token-that-nobody-sees";

/// A call that a CDN got.
#[derive(Clone, Debug)]
struct Call {
    line: String,
    headers: HashMap<String, String>,
    body: String,
    /// What the service answered for [`PREVIEW`] while the call was being answered.
    preview: u16,
}

/// A CDN that remembers what it was told, on a port of its own.
pub struct Cdn {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    /// What it answers.
    pub status: Arc<AtomicU16>,
    /// What it refuses calls with; empty: nothing.
    refuses: Arc<Mutex<String>>,
    /// Where it looks for the preview before it answers; empty: it does not.
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
                // A server that is killed leaves half a call behind.
                let Some(call) = stream.ok().and_then(|stream| hear(stream, answer, &origin))
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

    /// The keys of all calls that were answered with a success, in order.
    pub fn keys(&self) -> Vec<String> {
        let calls = self.calls();
        let keys = calls.iter().flat_map(|call| call.headers["surrogate-key"].split(' '));
        keys.map(str::to_owned).collect()
    }

    /// Waits until what was sent to it before is answered: it hears one call after the other.
    pub fn settle(&self) {
        let client = Client::builder().no_proxy().timeout(5 * PATIENCE).build().unwrap();
        client.get(format!("http://127.0.0.1:{}/settle", self.port)).send().unwrap();
    }

    /// Waits until so many calls came.
    fn called(&self, server: &Server, count: usize) {
        server.until(&format!("{count} calls"), || (self.calls().len() == count).then_some(()));
    }

    /// Waits until these keys were told last.
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

/// Reads a call and answers it; the call, unless the answer is a failure.
fn hear(mut stream: TcpStream, answer: impl Fn(&str) -> u16, origin: &str) -> Option<Call> {
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

/// A CDN that takes keys in a header, and the settings for it.
pub fn settings(cdn: &Cdn) -> Vec<String> {
    settings_with(cdn, "cdn.purge_again_s=0")
}

fn settings_with(cdn: &Cdn, again: &str) -> Vec<String> {
    // A call that takes its time on a busy machine is not made twice.
    let patient = "cdn.purge_timeout_s=60";
    let fixed = ["cdn.purge_header=Surrogate-Key", again, "server.unready_s=0", patient];
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
fn every_answer_below_media_names_what_it_shows() {
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
    // What shows an item within another is named by both.
    let both = ["text.story image.a text wirephoto", "text.story,image.a,text,wirephoto"];
    for path in ["/a000_NormalPreview.jpg", ".json", ".xml", ".zip", "-cutpaste.txt"] {
        let response = ask(&server, &format!("/media/text/story{path}"), DEMO_KEY);
        assert_eq!((response.status().as_u16(), keys(&response)), (200, both), "{path}");
    }
    // What is not there may come; what is kept of its absence is short-lived and has its name too.
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
fn the_operator_names_the_headers_or_leaves_them_out_and_says_how_long_a_cdn_keeps() {
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
    // What is not there for somebody may be there for others.
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

/// A picture that shows more items than its keys have room for.
#[test]
fn what_names_too_many_items_is_not_for_shared_caches() {
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
    // Its pictures show nothing but itself.
    let preview = server.get("/media/image/crowd_NormalPreview.jpg");
    assert!(preview.headers()["cache-control"].to_str().unwrap().starts_with("public"));
}

#[test]
fn a_cdn_is_told_when_the_old_version_is_gone_and_never_before() {
    let cdn = Cdn::start();
    let server = news::server(&strs(&settings(&cdn)), &items());
    *cdn.origin.lock().unwrap() = server.url.clone();
    for round in 1..=3 {
        assert_eq!(server.get(PREVIEW).status(), 200);
        run(&server, &["withdraw", "image/a"], 0);
        cdn.called(&server, 2 * round - 1);
        let call = cdn.calls().pop().unwrap();
        assert_eq!(call.preview, 404, "round {round}: the CDN would have fetched the old version");
        news::take_in(&server, "image/a", &document(&format!("A {round}")));
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
    // What comes in for the first time was in no cache.
    news::take_in(&server, "image/new", &document("New"));
    run(&server, &["withdraw", "image/b"], 0);
    cdn.until(&server, &["image.b"]);
    assert!(!cdn.keys().contains(&"image.new".to_owned()));
    assert!(!server.log().contains(TOKEN));
}

#[test]
fn what_a_cdn_did_not_take_survives_a_kill_and_is_told_in_order_once_it_is_back() {
    let cdn = Cdn::start();
    // Changes before it was set up are nobody's concern.
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
    cdn.settle();
    cdn.status.store(200, Ordering::Relaxed);
    // Withdrawn while nobody serves: it is told by the next that does.
    news::take_in(&server, "image/b", &document("B again"));
    let server = server.restart_killed(&strs(&settings));
    let order = ["image.b", "text.story", "image.a"].map(str::to_owned);
    server.until("what waited", || cdn.keys().starts_with(&order).then_some(()));
    assert!(!cdn.keys().contains(&"image.c".to_owned()), "{:?}", cdn.keys());
    server.until("nothing to wait", || {
        (server.metric("wirephoto_purges_waiting", "") == 0.0).then_some(())
    });
    // Without an address nobody is told, and nothing is kept for later.
    let server = server.restart(&[]);
    run(&server, &["withdraw", "image/b"], 0);
    let before = cdn.calls().len();
    let server = server.restart(&strs(&settings));
    run(&server, &["purge", "--set", &cdn.url(), "--set", &settings[0], "image/zzz"], 0);
    cdn.until(&server, &["image.zzz"]);
    assert_eq!(cdn.calls().len(), before + 1);
}

#[test]
fn an_embargo_that_ends_is_a_change_and_each_change_is_told_twice() {
    let cdn = Cdn::start();
    let settings = settings_with(&cdn, "cdn.purge_again_s=1");
    let server = news::server(&strs(&settings), &items());
    run(&server, &["withdraw", "image/b"], 0);
    cdn.until(&server, &["image.b", "image.b"]);
    // Long enough for a busy machine to take it in and to tell of it twice.
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(45);
    let mut later = document("Later");
    later["embargoed"] = json!(until.to_string());
    *cdn.origin.lock().unwrap() = server.url.clone();
    news::take_in(&server, "image/a", &later);
    cdn.until(&server, &["image.a", "image.a"]);
    cdn.until(&server, &["image.a", "image.a", "image.a"]);
    let seen: Vec<u16> = cdn.calls().iter().skip(2).map(|call| call.preview).collect();
    assert_eq!(seen, [404, 404, 200]);
    assert!(jiff::Timestamp::now() >= until);
}

#[test]
fn calls_take_the_form_that_each_cdn_knows() {
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
fn settings_that_tell_nobody_anything_are_refused_by_name() {
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
    check(&[url, "cdn.purge_header=k", &secret], "cdn.purge_authorization holds");
    check(&[url, "cdn.purge_header=k", "cdn.purge_ca=/none"], "cdn.purge_ca /none cannot be read");
    let (_, said) = run(&server, &["purge", "http://h/none", "--set", url], 2);
    assert!(said.contains("names no item"), "{said}");
    let authorization = format!("cdn.purge_authorization=Bearer {TOKEN}");
    let (shown, _) = run(&server, &["config", "--set", &authorization], 0);
    assert!(!shown.contains(TOKEN) && shown.contains("***"));
}

#[test]
fn an_address_that_is_away_holds_no_other_one_up_and_is_told_once_it_is_back() {
    let (away, cdn) = (Refusing::new(), Cdn::start());
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
    let told = ["image.b", "text.story", "image.a"];
    for (key, name) in told.into_iter().zip(["image/b", "text/story", "image/a"]) {
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
    // Waits double with each try: it may take as long again as it was away.
    let start = std::time::Instant::now();
    while back.keys() != told {
        assert!(start.elapsed() < 4 * PATIENCE, "told of {:?}", back.keys());
        pause();
    }
    assert_eq!(cdn.keys(), told, "nothing is told twice");
    back.status.store(503, Ordering::Relaxed);
    // An address that is corrected is told of what the wrong one could not be.
    run(&server, &["withdraw", "image/c"], 0);
    cdn.until(&server, &["image.c"]);
    let other = Cdn::start();
    settings.push(both(other.port));
    let server = server.restart(&strs(&settings));
    other.until(&server, &["image.c"]);
    assert_eq!((other.keys().len(), cdn.keys().len()), (1, 4));
}

#[test]
fn a_key_that_a_cdn_refuses_holds_no_other_one_up() {
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
    let told = || server.log().contains("refuses a key") && server.log().contains("image.b");
    server.until("a word on it", || told().then_some(()));
    // Who starts the service may have changed why.
    cdn.refuses.lock().unwrap().clear();
    let server = server.restart(&strs(&settings));
    cdn.until(&server, &["image.b"]);
    // A cache that has nothing of a key has nothing to forget.
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
