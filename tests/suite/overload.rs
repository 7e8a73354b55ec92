//! Overload and rate limits: a full queue answers 503 with `Retry-After`, each client has its share, and clients
//! that flood the server or are too slow are cut off while others are served.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use reqwest::{Method, blocking::Response};
use serde_json::Value;

use crate::common::{
    DEMO_KEY, LARGE, Server,
    h2::{self, H2, fields, frame},
    is_before_release, pause, tokens,
};

const THUMBNAIL: &str = "/media/image/demo-urtavla_NormalThumbnail.jpg";
/// Trusts loopback as a proxy, so that the tests can act as clients with different addresses.
const PROXY: &str = "server.trusted_proxies=127.0.0.1";

/// A request from `client` behind the proxy.
fn ask(server: &Server, client: &str, path: &str) -> Response {
    server.get_with(path, &[("X-Forwarded-For", client)])
}

fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// Checks that a response sheds load for `reason`; returns the seconds to wait.
fn assert_shed(response: Response, reason: &str) -> u64 {
    assert_eq!(response.status(), 503, "{reason}");
    assert_eq!(header(&response, "cache-control"), "no-store", "{reason}");
    assert!(header(&response, "content-type").starts_with("application/json"), "{reason}");
    let wait_s = header(&response, "retry-after").parse::<u64>().expect("Retry-After");
    assert!(wait_s > 0, "{reason}");
    let body: Value = response.json().expect("JSON");
    assert!(body["message"].as_str().is_some_and(|text| !text.is_empty()), "{reason}: {body}");
    assert_eq!(body["errors"][0]["errorCode"], reason, "{body}");
    wait_s
}

fn shed(server: &Server, reason: &str) -> f64 {
    server.metric("wirephoto_requests_shed_total", &format!("reason=\"{reason}\""))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A connection that has sent `text` and sends nothing more.
fn left_open(server: &Server, text: &str) -> TcpStream {
    let mut stream = connect(server);
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// Reads until the server has closed or reset the connection.
fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    if let Err(error) = stream.read_to_end(&mut seen) {
        let kind = error.kind();
        assert!(!matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "left open");
    }
    seen
}

/// The resident memory of the server in kilobytes.
fn resident_kb(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

// ---- One client's share ------------------------------------------------------------------------

/// A crop of the Hires that counts ten megapixels; [`small`] is a crop of the Preview that counts a tenth of one.
fn large(n: u32) -> String {
    format!("/media/{LARGE}-crop_w4000_h2500_x{n}_y{n}.jpg?ak={DEMO_KEY}")
}

fn small(n: u32) -> String {
    format!("/media/{LARGE}-crop_w50_h50_x{n}_y{n}_NormalPreview.jpg")
}

#[test]
fn a_client_over_its_render_rate_limit_is_shed_and_others_are_served() {
    let settings = ["media.client_megapixels_s=1", "media.client_megapixels_burst=100", PROXY];
    let server = Server::demo_with(&settings);
    // A user is one client at any address. On a slow machine the token bucket refills during the first ten
    // renders.
    let mut asked = (0..100).map(|n| (n, ask(&server, &format!("192.0.2.{n}"), &large(n))));
    let (last, refused) = asked.find(|(_, response)| response.status() != 200).expect("a limit");
    assert!(last >= 10, "a hundred megapixels at once are allowed, and {last} crops were made");
    let wait_s = assert_shed(refused, "client_megapixels");
    assert!(wait_s <= 10, "{wait_s} s for ten megapixels");
    assert!(shed(&server, "client_megapixels") >= 1.0);
    // Cached renditions and the untouched original cost nothing.
    let original = format!("/media/{LARGE}.jpg?ak={DEMO_KEY}");
    for path in [large(last - 1), large(last - 2), original] {
        assert_eq!(ask(&server, "192.0.2.1", &path).status(), 200, "{path}");
    }
    // Other clients have their own token buckets, even the same address without the key.
    assert_eq!(ask(&server, "192.0.2.1", &small(1)).status(), 200);
    let token = tokens::admin(&server);
    let bearer = format!("Bearer {token}");
    let other = format!("/media/{LARGE}-crop_w4000_h2500_x111_y111.jpg");
    let response = server.get_with(&other, &[("Authorization", &bearer)]);
    assert_eq!(response.status(), 200);
    // A refusal has no lasting effect: the same URL works for another client.
    let response =
        server.get_with(large(last).split('?').next().unwrap(), &[("Authorization", &bearer)]);
    assert_eq!(response.status(), 200);
}

#[test]
fn anonymous_clients_are_limited_by_address_behind_the_proxy_and_by_network() {
    let settings = ["media.client_megapixels_s=1", "media.client_megapixels_burst=1", PROXY];
    let server = Server::demo_with(&settings);
    server.bytes(&format!("/media/{LARGE}_NormalPreview.jpg"));
    // A crop of a Preview counts the pixels that the Preview is rendered from: seven tenths of a megapixel.
    let same = [["2001:db8::1", "2001:db8::2:3"], ["192.0.2.1", "::ffff:192.0.2.1"]];
    for (hosts, first) in same.into_iter().zip([1, 101]) {
        assert_eq!(ask(&server, hosts[0], &small(first)).status(), 200, "{hosts:?}");
        let mut rest = (first + 1..first + 90).map(|n| ask(&server, hosts[1], &small(n)));
        let refused = rest.find(|response| response.status() != 200);
        assert_shed(refused.expect("a limit"), "client_megapixels");
    }
    assert_eq!(ask(&server, "198.51.100.7", &small(200)).status(), 200);
}

#[test]
fn a_rate_limit_of_zero_is_no_limit() {
    let settings = ["media.client_megapixels_s=0", "media.client_megapixels_burst=1"];
    let server = Server::demo_with(&settings);
    for n in 0..5 {
        assert_eq!(server.get(&large(n)).status(), 200);
    }
}

#[test]
fn too_many_logins_of_one_client_leave_slots_for_others() {
    let settings = [
        "auth.hash_workers=1",
        "auth.login_queue_per_address=1",
        "auth.failures_per_user=1000000",
        "auth.failures_per_user_total=1000000",
        "auth.failures_per_address=1000000",
        PROXY,
    ];
    let server = Server::demo_with(&settings);
    let fields = [
        ("grant_type", "password"),
        ("client_id", "demo-app"),
        ("username", "demo-editor"),
        ("password", "wrong"),
        ("scope", "roles"),
    ];
    let log_in = |client: &str| {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let request = server.client.post(format!("{}/o/oauth2/token", server.url));
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let request = request.header("X-Forwarded-For", client);
        let fields = fields.iter().map(|(name, value)| match *name {
            "client_id" => (*name, "demo-client"),
            _ => (*name, *value),
        });
        let fields = fields.chain([("client_secret", "demo-client-secret")]);
        request.body(form.extend_pairs(fields).finish()).send().expect("answer")
    };
    // The client secret is cached from here on, so each login below hashes one password.
    assert_eq!(log_in("192.0.2.1").status(), 400);
    let start = Barrier::new(9);
    let flood = || -> Vec<(u16, String, String)> {
        thread::scope(|scope| {
            let spawn = |_| {
                scope.spawn(|| {
                    start.wait();
                    let response = log_in("192.0.2.1");
                    let headers =
                        ["retry-after", "cache-control"].map(|name| header(&response, name));
                    let [retry, cache] = headers;
                    (response.status().as_u16(), retry, cache)
                })
            };
            let threads: Vec<_> = (0..8).map(spawn).collect();
            start.wait();
            // Another address is served.
            assert_eq!(log_in("198.51.100.1").status(), 400);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    // Until three of them wait at the same time.
    let refused = server.until("a login too many", || {
        let (refused, answered): (Vec<_>, Vec<_>) =
            flood().into_iter().partition(|(status, ..)| *status == 503);
        assert!(!answered.is_empty(), "{refused:?}");
        (!refused.is_empty()).then_some(refused)
    });
    for (_, retry, cache) in refused {
        assert!(retry.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{retry}");
        assert_eq!(cache, "no-store");
    }
    assert!(shed(&server, "client_logins") >= 1.0);
}

// ---- Queues ------------------------------------------------------------------------------------

/// Requests all `paths` concurrently; returns the number of responses per status, and one of those with 503.
fn at_once(server: &Server, paths: &[String]) -> (BTreeMap<u16, usize>, Option<Response>) {
    let start = Barrier::new(paths.len());
    let answers: Vec<Response> = thread::scope(|scope| {
        let ask = |path: &String| {
            let (start, path) = (&start, path.clone());
            scope.spawn(move || {
                start.wait();
                server.get(&path)
            })
        };
        let threads: Vec<_> = paths.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("asked")).collect()
    });
    let (mut counts, mut refused) = (BTreeMap::new(), None);
    for answer in answers {
        *counts.entry(answer.status().as_u16()).or_default() += 1;
        if answer.status() == 503 {
            refused = Some(answer);
        }
    }
    (counts, refused)
}

#[test]
fn a_full_render_queue_is_named_in_the_response() {
    // Without a cache and a rate limit, the same requests render each time.
    let settings = [
        "media.workers=1",
        "media.queue=1",
        "media.client_megapixels_s=0",
        "cache.memory_bytes=0",
        "cache.disk_bytes=0",
    ];
    let server = Server::demo_with(&settings);
    let crops: Vec<String> = (0..12).map(large).collect();
    let refused = server.until("a render too many", || {
        let (counts, refused) = at_once(&server, &crops);
        assert!(counts.contains_key(&200), "{counts:?}");
        refused
    });
    assert_shed(refused, "render_queue");
}

/// Requests new renditions from one address until `is_over`; returns the error codes of the refusals.
fn flood_with_renders(
    server: &Server,
    is_over: &AtomicBool,
    path: impl Fn(u32) -> String + Sync,
) -> BTreeSet<String> {
    let next = AtomicU32::new(0);
    let codes = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let response =
                        ask(server, "192.0.2.1", &path(next.fetch_add(1, Ordering::Relaxed)));
                    if response.status() == 503 {
                        let body: Value = response.json().expect("JSON");
                        let code = body["errors"][0]["errorCode"].as_str().expect("a code");
                        codes.lock().unwrap().insert(code.to_owned());
                    }
                }
            });
        }
    });
    codes.into_inner().unwrap()
}

#[test]
fn one_anonymous_client_does_not_take_the_render_queue_from_customers() {
    // One client may have two of the eight places.
    let settings = ["media.workers=2", "media.queue=8", "media.client_megapixels_s=0", PROXY];
    let server = Server::demo_with(&settings);
    for extension in ["jpg", "webp", "avif"] {
        let path = |kind: &str, n: u32| {
            format!("/media/{LARGE}-crop_w{}_h200_x{kind}_NormalPreview.{extension}", 300 + n)
        };
        let is_over = AtomicBool::new(false);
        let codes = thread::scope(|scope| {
            let flood = scope.spawn(|| {
                flood_with_renders(&server, &is_over, |n| path("0", n % 700) + &format!("?n={n}"))
            });
            let share = "reason=\"client_render_queue\"";
            let refused = server.metric("wirephoto_requests_shed_total", share);
            server.until("the flood has its share", || {
                (server.metric("wirephoto_requests_shed_total", share) > refused).then_some(())
            });
            for n in 0..if is_before_release() { 10 } else { 3 } {
                let answer = ask(&server, "192.0.2.2", &format!("{}?ak={DEMO_KEY}", path("1", n)));
                assert_eq!(answer.status(), 200, "{extension}");
                // An anonymous client at another address has places of its own.
                let answer = ask(&server, "192.0.2.3", &path("2", n));
                assert_eq!(answer.status(), 200, "{extension}");
            }
            is_over.store(true, Ordering::Relaxed);
            flood.join().expect("the flood ended")
        });
        assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["client_render_queue"], "{extension}");
    }
}

#[test]
fn reading_a_kept_rendition_is_no_render_of_its_client() {
    let settings = [
        "cache.memory_bytes=0",
        "cache.disk_bytes=0",
        "media.client_megapixels_s=1",
        "media.client_megapixels_burst=1",
    ];
    let server = Server::demo_with(&settings);
    let preview = format!("/media/{LARGE}_NormalPreview.jpg");
    // The standard set may not be kept yet.
    server.until("a kept Preview", || {
        let response = server.get(&preview);
        (header(&response, "wirephoto-path") == "stored").then_some(())
    });
    let renders = || server.metric("wirephoto_renders_total", "outcome=\"done\"");
    let before = renders();
    for _ in 0..20 {
        for name in ["NormalPreview", "WebPreview", "NormalThumbnail", "CroppedThumbnail"] {
            let response = server.get(&format!("/media/{LARGE}_{name}.jpg"));
            assert_eq!(response.status(), 200, "{name}");
            assert_eq!(header(&response, "wirephoto-path"), "stored", "{name}");
        }
    }
    assert!(renders() - before < 1.0, "nothing was rendered");
}

/// Checks that a server with `setting` sheds archives that are requested at once, and names `reason`.
fn check_archives(setting: &str, reason: &str) {
    let server = Server::demo_with(&[setting]);
    let path = format!("/media/{LARGE}.zip?ak={DEMO_KEY}");
    let refused = server.until("an archive too many", || {
        let (counts, refused) = at_once(&server, &vec![path.clone(); 24]);
        assert!(counts.contains_key(&200), "{counts:?}");
        refused
    });
    assert_shed(refused, reason);
    // The slot is free again once the archive is complete.
    assert_eq!(server.get(&path).status(), 200);
}

#[test]
fn concurrent_archives_of_one_client_are_limited() {
    check_archives("media.client_archives=1", "client_archives");
}

#[test]
fn concurrent_archives_of_all_clients_are_limited() {
    // The client has not reached its own limit, which is 4.
    check_archives("media.archives=1", "archives");
}

#[test]
fn uploads_polls_and_connections_over_their_limits_are_shed() {
    let settings = ["ingest.workers=1", "search.polls=1", "server.connections_max=60"];
    let server = Server::demo_with(&settings);
    // Uploads: one in flight and sixteen queued, none of which has sent anything yet.
    let bearer = format!("Bearer {}", tokens::admin(&server));
    let upload = format!(
        "PUT /ingest/v1/image/slow HTTP/1.1\r\nHost: a\r\nAuthorization: {bearer}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    );
    // One more each time: the request below may have taken the slot when they arrived.
    let held = RefCell::new((0..24).map(|_| left_open(&server, &upload)).collect::<Vec<_>>());
    let refused = server.until("an upload too many", || {
        held.borrow_mut().push(left_open(&server, &upload));
        let url = format!("{}/ingest/v1/image/other", server.url);
        let request = server.client.request(Method::PUT, url).header("Authorization", &bearer);
        let response = request.header("Content-Type", "application/json").body("{}").send();
        let response = response.unwrap();
        (response.status() == 503).then_some(response)
    });
    assert_shed(refused, "uploads");
    drop(held);
    // Polls: one waits, unless the request below arrives first.
    let poll = "/content/v1/image/stream?q=neverheardof&wait=60";
    let held = RefCell::new(Vec::new());
    let refused = server.until("a poll too many", || {
        held.borrow_mut().push(left_open(&server, &request(poll)));
        let response = server.get(&poll.replace("60", "0"));
        (response.status() == 503).then_some(response)
    });
    assert_shed(refused, "polls");
    drop(held);
    // Connections: open ones continue, one more gets 503 with `Retry-After`.
    let open = RefCell::new(Vec::new());
    let answer = server.until("a connection too many", || {
        let mut one = left_open(&server, &request("/health/live"));
        let mut first = [0; 12];
        one.read_exact(&mut first).unwrap();
        let refused = (&first[9..] == b"503").then(|| read_to_close(&mut one));
        open.borrow_mut().push(one);
        refused.map(|rest| String::from_utf8(rest).unwrap().to_lowercase())
    });
    assert!(open.borrow().len() > 40, "{}", open.borrow().len());
    for expected in ["retry-after: ", "content-type: application/json", "cache-control: no-store"]
    {
        assert!(answer.contains(expected), "{answer}");
    }
}

// ---- Slow clients ------------------------------------------------------------------------------

fn ended(server: &Server, reason: &str) -> f64 {
    let label = format!("reason=\"{reason}\"");
    server.metric("wirephoto_connections_ended_total", &label)
}

/// The path of a response that is larger than the socket buffers of the kernel.
fn original() -> String {
    format!("/media/{LARGE}.jpg?ak={DEMO_KEY}")
}

#[test]
fn slow_readers_and_writers_are_cut_off_over_http_1_and_2() {
    let settings = ["server.header_timeout_s=1", "server.rate_window_s=1"];
    let server = Server::demo_with(&settings);
    let bearer = format!("Bearer {}", tokens::admin(&server));
    let login = "POST /o/oauth2/token HTTP/1.1\r\nHost: a\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 900\r\n\r\n";
    // A request head and bodies of a form and of an upload that never end.
    let upload = format!(
        "PUT /ingest/v1/image/slow HTTP/1.1\r\nHost: a\r\nAuthorization: {bearer}\r\n\
         Content-Type: application/json\r\nContent-Length: 900\r\n\r\n"
    );
    for text in ["GET / HTTP/1.1\r\nX-Slow: ", login, &upload] {
        let mut slow = left_open(&server, text);
        drip(&mut slow, |slow| slow.write_all(b"a").is_ok());
        assert!(!read_to_close(&mut slow).starts_with(b"HTTP/1.1 2"), "{text}");
    }
    // The same over HTTP/2: a head without its end, and a body sent byte by byte.
    let mut head = H2::connect(&server, &[]);
    assert!(head.send(&frame(h2::HEADERS, 0, 1, &fields("GET", THUMBNAIL, &[]))));
    head.read_to_goaway();
    let mut body = H2::connect(&server, &[]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let block = fields("POST", "/o/oauth2/token", &form);
    assert!(body.send(&frame(h2::HEADERS, h2::END_HEADERS, 1, &block)));
    drip(&mut body, |body| body.send(&frame(h2::DATA, 0, 1, b"a")));
    body.read_to_goaway();
    // Slow readers: one stops reading, one opens no flow-control window.
    let mut stopped = left_open(&server, &request(&original()).repeat(8));
    let mut closed = H2::connect(&server, &[(4, 0)]);
    assert!(closed.get(1, &original()));
    server.until("the slow readers to be cut", || {
        (ended(&server, "slow_reader") >= 2.0).then_some(())
    });
    read_to_close(&mut stopped);
    closed.read_to_goaway();
    assert!(ended(&server, "slow_head") >= 2.0 && ended(&server, "slow_body") >= 3.0);
    assert_eq!(server.get(THUMBNAIL).status(), 200);
}

/// Repeats `one` slowly until it fails.
fn drip<T>(slow: &mut T, one: impl Fn(&mut T) -> bool) {
    for _ in 0..2000 {
        if !one(slow) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("the connection stays open");
}

// ---- Floods of HTTP/2 --------------------------------------------------------------------------

/// Sends the bytes of each round until the connection ends, while another thread reads the responses; returns the
/// error code of the GOAWAY frame.
fn flood(server: &Server, settings: &[(u16, u32)], bytes: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut client = H2::connect(server, settings);
    let reader = H2 { stream: client.stream.try_clone().unwrap() };
    let reader = thread::spawn(move || reader.read_to_goaway());
    let mut round = 0;
    while client.send(&bytes(round)) {
        round += 1;
    }
    reader.join().unwrap()
}

/// A request that stays open as long as its connection.
fn held_open() -> Vec<u8> {
    let poll = fields("GET", "/content/v1/image/stream?q=neverheardof&wait=290", &[]);
    frame(h2::HEADERS, h2::END_STREAM | h2::END_HEADERS, 1, &poll)
}

/// The identifier of the client's stream number `n`.
fn stream(n: u32) -> u32 {
    2 * n + 1
}

#[test]
fn a_flood_of_frames_closes_only_its_own_connection() {
    // No limit on idle connections or slow heads closes them first.
    let server = Server::demo_with(&["server.header_timeout_s=600", "server.idle_timeout_s=3600"]);
    let thumbnail = server.bytes(THUMBNAIL);
    let mut other = H2::connect(&server, &[]);
    let before = resident_kb(&server);
    thread::scope(|scope| {
        let floods = scope.spawn(|| flood_in_turn(&server));
        for n in 1.. {
            served(&mut other, n, &thumbnail);
            if floods.is_finished() {
                break;
            }
            pause();
        }
        floods.join().expect("each flood is cut off");
    });
    let after = resident_kb(&server);
    assert!(after < before + 96 * 1024, "{before} kB before, {after} kB after");
}

/// Floods the server with one kind of frame after the other, each on a connection of its own, and checks that it is cut
/// off.
fn flood_in_turn(server: &Server) {
    let many = |one: Vec<u8>| one.repeat(16 * 1024 / one.len().max(1) + 1);
    let settings: Vec<u8> = [0, 4, 0, 1, 0, 0].repeat(2700);
    // Frames that cost the client little, repeated during a request in flight.
    let floods: [(&str, Vec<u8>); 7] = [
        ("pings", many(frame(h2::PING, 0, 0, &[7; 8]))),
        ("settings", frame(h2::SETTINGS, 0, 0, &settings)),
        ("small settings", many(frame(h2::SETTINGS, 0, 0, &[]))),
        ("priorities", many(frame(h2::PRIORITY, 0, 3, &[0, 0, 0, 0, 1]))),
        ("windows", many(frame(h2::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
        ("unknown frames", frame(200, 0, 0, &[0; 16_000])),
        ("answers to no ping", many(frame(h2::PING, 1, 0, &[7; 8]))),
    ];
    for (name, bytes) in &floods {
        let cut = ended(server, "flood");
        let farewell = flood(server, &[], |round| match round {
            0 => [held_open(), bytes.clone()].concat(),
            _ => bytes.clone(),
        });
        assert!(ended(server, "flood") > cut || farewell.is_some(), "{name}");
    }
    for (name, (farewell, expected)) in protocol_floods(server) {
        assert!(farewell.is_none_or(|code| expected.contains(&code)), "{name}: {farewell:?}");
    }
}

/// The error code of the GOAWAY frame that was received, and those that are allowed.
type Farewell = (Option<u32>, &'static [u32]);

/// Floods that the protocol forbids, each with the received and the allowed error codes.
fn protocol_floods(server: &Server) -> Vec<(&'static str, Farewell)> {
    const PROTOCOL: u32 = 1;
    const FLOW: u32 = 3;
    const CALM: u32 = 11;
    let get =
        |n: u32, flags: u8| frame(h2::HEADERS, flags, stream(n), &fields("GET", THUMBNAIL, &[]));
    let whole = h2::END_STREAM | h2::END_HEADERS;
    let post = frame(h2::HEADERS, h2::END_HEADERS, 1, &fields("POST", "/o/oauth2/token", &[]));
    let reset = |n: u32| frame(h2::RST_STREAM, 0, stream(n), &[0, 0, 0, 8]);
    let resets = flood(server, &[], |round| {
        let range = round * 100..round * 100 + 100;
        range.flat_map(|n| [get(n, whole), reset(n)].concat()).collect()
    });
    let continuations = flood(server, &[], |round| match round {
        0 => get(0, 0),
        _ => frame(h2::CONTINUATION, 0, 1, &[0x40, 1, b'a', 1, b'b'].repeat(1000)),
    });
    let empty = flood(server, &[], |round| match round {
        0 => post.clone(),
        _ => frame(h2::DATA, 0, 1, &[]).repeat(1000),
    });
    // Each stream gets a frame that violates the protocol, so the server has to reset it.
    let errors = flood(server, &[], |round| {
        let range = round * 100..round * 100 + 100;
        let zero = |n: u32| frame(h2::WINDOW_UPDATE, 0, stream(n), &[0; 4]);
        range.flat_map(|n| [get(n, whole), zero(n)].concat()).collect()
    });
    let window = flood(server, &[], |_| frame(h2::WINDOW_UPDATE, 0, 0, &[127, 255, 255, 255]));
    vec![
        ("rapid resets", (resets, &[CALM, PROTOCOL])),
        ("continuations", (continuations, &[CALM, PROTOCOL])),
        ("empty data", (empty, &[CALM, PROTOCOL])),
        ("made resets", (errors, &[CALM, PROTOCOL])),
        ("a window beyond all bounds", (window, &[FLOW])),
    ]
}

/// Checks that another client is served on its own connection.
fn served(other: &mut H2, n: u32, expected: &[u8]) {
    assert!(other.get(stream(n), THUMBNAIL));
    let mut body: Vec<u8> = Vec::new();
    loop {
        let frame = other.next().expect("another's connection lives");
        if frame.stream == stream(n) && frame.kind == h2::DATA {
            body.extend(&frame.payload);
        }
        if frame.stream == stream(n) && frame.flags & h2::END_STREAM != 0 && frame.kind < 2 {
            break;
        }
    }
    assert!(body == expected, "{} of {} bytes", body.len(), expected.len());
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    assert!(other.send(&frame(h2::WINDOW_UPDATE, 0, 0, &length)));
}

#[test]
fn streams_over_the_limit_are_refused_one_by_one() {
    let server = Server::demo_with(&["search.polls=1000"]);
    let mut client = H2::connect(&server, &[]);
    let poll = fields("GET", "/content/v1/image/stream?q=neverheardof&wait=290", &[]);
    for n in 0..110 {
        let flags = h2::END_STREAM | h2::END_HEADERS;
        assert!(client.send(&frame(h2::HEADERS, flags, stream(n), &poll)));
    }
    let mut refused = 0;
    while refused < 10 {
        let frame = client.next().expect("the connection lives");
        if frame.kind == h2::RST_STREAM {
            assert_eq!(frame.payload, [0, 0, 0, 7], "refused, to be sent again");
            refused += 1;
        }
    }
    server.until("the others to wait", || {
        (server.metric("wirephoto_polls_waiting", "") >= 100.0).then_some(())
    });
}

// ---- Idle connections --------------------------------------------------------------------------

/// The number of idle connections that the test opens. `WIREPHOTO_IDLE_CONNECTIONS=20000 cargo test --test
/// suite -- idle_connections` needs `ulimit -Hn` of at least 51000 for the server. Where the system allows fewer
/// open files, the test opens fewer connections.
fn idle_connections() -> usize {
    let wanted = std::env::var("WIREPHOTO_IDLE_CONNECTIONS")
        .map_or(2000, |count| count.parse().expect("number"));
    // The server needs two and a half files per connection, and a thousand more.
    let files = u64::try_from(wanted * 5 / 2 + 1000).unwrap();
    let allowed = rlimit::increase_nofile_limit(files).expect("a limit");
    wanted.min(usize::try_from(allowed.saturating_sub(1000)).unwrap() * 2 / 5)
}

#[test]
fn thousands_of_idle_connections_cost_little_and_others_are_served() {
    let count = idle_connections();
    let connections = format!("server.connections_max={}", count * 5 / 4);
    let settings =
        [&*connections, "server.connections_per_address=0", "server.idle_timeout_s=600"];
    let server = Server::demo_with(&settings);
    let thumbnail = server.bytes(THUMBNAIL);
    let before = resident_kb(&server);
    let address = server.url.trim_start_matches("http://").to_owned();
    let ask = request("/health/live");
    // Each connection has served one request: idle means waiting for the next one.
    let mut idle: Vec<TcpStream> = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(ask.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first[9..], b"200");
        idle.push(stream);
    }
    let held = server.metric("wirephoto_connections", "");
    assert!(held >= count as f64, "{held} of {count}");
    let each_kb = (resident_kb(&server).saturating_sub(before)) as f64 / count as f64;
    assert!(each_kb < 32.0, "{each_kb} kB an idle connection");
    assert!(server.bytes(THUMBNAIL) == thumbnail);
    // All of them still work.
    for stream in [0, count / 2, count - 1] {
        let stream = &mut idle[stream];
        stream.write_all(ask.as_bytes()).unwrap();
        let mut rest = vec![0; 100];
        assert!(stream.read(&mut rest).unwrap() > 0);
    }
}
