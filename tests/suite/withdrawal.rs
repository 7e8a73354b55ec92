//! A withdrawn item disappears from every part of the service (contract items-22): clients poll each URL without a
//! pause while the command runs, and the time of the last response with the item is recorded. `--nocapture` shows the
//! times.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use api::notifications::{
    CreateEmailNotification, CreateScheduledEmailNotification, SCHEDULE_ZONE_DEFAULT,
};
use model::MediaType;
use serde_json::{Value, json};

use crate::{
    common::{DEMO_KEY, Server, WAIT_TIMEOUT, api::ApiCaller, news, pause, ports::ReservedPort},
    deliveries::{id, run, trigger, until},
    faults::kit::{self, Faults},
    notifications::{email, make, poll, stream},
    search::BUYER_KEY,
};

/// The item to be withdrawn.
const ITEM: &str = "image/pic";
/// The number of clients that poll in turns.
const CLIENTS: usize = 3;
/// Consecutive responses without the item, all requested after the command ended, that prove it gone.
const GONE: u32 = 3;

fn photograph() -> Value {
    news::document("Isbrytare i Kvarken", &["FOTO"], "2026-03-05T09:15:00+01:00")
}

/// A text that embeds the item.
fn story() -> Value {
    let mut story = news::document("Reportage", &["FOTO"], "2026-03-05T09:15:00+01:00");
    story["associations"] = json!({"a000": {
        "uri": format!("http://elsewhere.example/media/{ITEM}"), "type": "picture",
    }});
    story
}

/// A server whose mails and deliveries stay queued: connections to the returned port are refused as long as it is
/// held.
fn server() -> (Server, ReservedPort) {
    let other = news::document("Bro", &["FOTO"], "2026-03-02T09:15:00+01:00");
    let items = [(ITEM, photograph()), ("image/other", other), ("text/story", story())];
    let nowhere = ReservedPort::new();
    let mail = format!("mail.port={}", nowhere.port());
    let settings = ["mail.host=127.0.0.1", "mail.tls=none", "server.unready_s=0", &mail];
    let patience = ["notifications.retry_first_ms=200", "delivery.retry_first_ms=200"];
    (news::server(&[&settings[..], &patience].concat(), &items), nowhere)
}

/// A URL whose response can contain the item.
struct ItemUrl {
    name: &'static str,
    path: String,
    /// The API key of the client, if any.
    key: Option<&'static str>,
    /// The text that a response with the item contains; `None`: any successful response is the item.
    sign: &'static str,
}

/// The media URLs, which disappear when the item must no longer be seen.
fn media() -> Vec<ItemUrl> {
    let open = |name, path: &str| {
        let path = format!("/media/{ITEM}{path}");
        ItemUrl { name, path, key: None, sign: "" }
    };
    let known = |name, path: &str| ItemUrl { key: Some(DEMO_KEY), ..open(name, path) };
    let of_text = |name, path: &str, sign| ItemUrl {
        name,
        path: format!("/media/text/story{path}"),
        key: Some(DEMO_KEY),
        sign,
    };
    vec![
        open("Preview", "_NormalPreview.jpg"),
        open("Thumbnail", "_NormalThumbnail.jpg"),
        open("crop", "-crop_w20_h20_x1_y1_NormalPreview.jpg"),
        open("watermark", "_WatermarkPreview.jpg"),
        open("document", ".json"),
        open("NewsML", ".xml"),
        open("address", ""),
        known("Hires", ".jpg"),
        known("Hires crop", "-crop_w30_h30_x2_y2.jpg"),
        // For a caller without an order: an order that can be reported keeps the licences readable.
        ItemUrl { key: Some(BUYER_KEY), ..known("price list", "/pricelist") },
        known("archive", ".zip"),
        of_text("picture of a text", "/a000_NormalPreview.jpg", ""),
        of_text("archive of a text", ".zip", "_a000_Normal"),
    ]
}

/// The URLs of lists and pages with the item.
fn lists(collection: &str) -> Vec<ItemUrl> {
    let editor = Some(DEMO_KEY);
    // The owner's view of a collection still names withdrawn items.
    let reader = Some(BUYER_KEY);
    let place = |name, path: String, key, sign| ItemUrl { name, path, key, sign };
    let search = "/content/v1/image/search?q=isbrytare&facets=product.code";
    vec![
        place("search", search.to_owned(), editor, ITEM),
        place("search, all", "/content/v1/_all/search?s=100".to_owned(), editor, "\"Isbrytare i"),
        place("deprecated search", format!("/api/search?ak={DEMO_KEY}&q=isbrytare"), None, ITEM),
        place(
            "deprecated stream",
            "/content/v1/image/stream?wait=0&q=isbrytare".to_owned(),
            editor,
            ITEM,
        ),
        place("search page", "/?q=isbrytare".to_owned(), None, "Isbrytare i Kvarken"),
        place("item page", format!("/item/{ITEM}"), None, ""),
        place("crop studio", format!("/item/{ITEM}/crop"), None, ""),
        place(
            "collection",
            format!("/collection/v1/collection/{collection}"),
            reader,
            "\"Isbrytare i",
        ),
        place(
            "archive of a collection",
            format!("/collection/v1/collection/{collection}/zip"),
            editor,
            "pic.json",
        ),
    ]
}

/// The observations of a client for one URL.
#[derive(Clone, Copy, Default)]
struct Observation {
    held: Option<Instant>,
    /// Consecutive responses without the item since the command ended.
    gone: u32,
}

impl ItemUrl {
    /// Returns whether a response at this moment has the item.
    fn holds(&self, server: &Server) -> bool {
        let key = self.key.map(|key| ("authorization", format!("ApiKey {key}")));
        let headers: Vec<_> = key.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = server.get_with(&self.path, &headers);
        let (status, body) = (response.status().as_u16(), response.bytes().unwrap());
        let has = |sign: &str| body.windows(sign.len()).any(|window| window == sign.as_bytes());
        matches!(status, 200 | 302) && (self.sign.is_empty() || has(self.sign))
    }
}

/// Polls every URL without a pause while `withdraw` runs; returns the milliseconds from its end to the last response
/// with the item, by URL.
fn times(
    server: &Server,
    places: &[ItemUrl],
    withdraw: impl FnOnce(),
) -> BTreeMap<&'static str, u128> {
    let seen: Vec<Mutex<Observation>> = places.iter().map(|_| Mutex::default()).collect();
    let (stop, ended) = (AtomicBool::new(false), Mutex::new(None::<Instant>));
    let look = |client: usize| {
        while !stop.load(Ordering::Relaxed) {
            for at in (client..places.len()).step_by(CLIENTS) {
                let asked = Instant::now();
                let holds = places[at].holds(server);
                let after = ended.lock().unwrap().is_some_and(|end| asked > end);
                let mut seen = seen[at].lock().unwrap();
                match holds {
                    true => *seen = Observation { held: Some(Instant::now()), gone: 0 },
                    false => seen.gone += u32::from(after),
                }
            }
        }
    };
    let missing = |is_done: &dyn Fn(Observation) -> bool| {
        let left = places.iter().zip(&seen).filter(|(_, seen)| !is_done(*seen.lock().unwrap()));
        left.map(|(place, _)| place.name).collect::<Vec<_>>()
    };
    let wait = |what: &str, is_done: &dyn Fn(Observation) -> bool| {
        let start = Instant::now();
        while !missing(is_done).is_empty() {
            if start.elapsed() > WAIT_TIMEOUT {
                stop.store(true, Ordering::Relaxed);
                panic!("{what}: {:?}", missing(is_done));
            }
            pause();
        }
    };
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let look = &look;
            scope.spawn(move || look(client));
        }
        wait("it was never there", &|seen| seen.held.is_some());
        withdraw();
        *ended.lock().unwrap() = Some(Instant::now());
        wait("it does not go", &|seen| seen.gone >= GONE);
        stop.store(true, Ordering::Relaxed);
    });
    let end = ended.lock().unwrap().unwrap();
    let late = |seen: &Mutex<Observation>| {
        let held = seen.lock().unwrap().held.unwrap();
        held.saturating_duration_since(end).as_millis()
    };
    places.iter().zip(&seen).map(|(place, seen)| (place.name, late(seen))).collect()
}

/// Prints how late the last response with the item was for each URL.
fn print_times(how: &str, times: &BTreeMap<&'static str, u128>) {
    let slowest = times.values().max().unwrap();
    drop(writeln!(std::io::stderr(), "{how}: the slowest {slowest} ms, all {times:?}"));
}

fn make_collection(server: &Server) -> String {
    ApiCaller::key(server, DEMO_KEY).collect("c", true, &[ITEM, "image/other"])
}

#[test]
fn a_withdrawn_item_disappears_everywhere_soon() {
    let (server, _nowhere) = server();
    let again = |change: &dyn Fn(&mut Value)| {
        let mut document = photograph();
        change(&mut document);
        news::ingest(&server, ITEM, &document);
    };
    let everywhere = || {
        let mut places = media();
        places.extend(lists(&make_collection(&server)));
        places
    };
    let withdrawn = times(&server, &everywhere(), || {
        run(&server, &["withdraw", ITEM], 0);
    });
    print_times("withdrawn", &withdrawn);
    again(&|_| ());
    let withheld = times(&server, &everywhere(), || {
        again(&|document| document["pubstatus"] = json!("withheld"));
    });
    print_times("withheld", &withheld);
    again(&|_| ());
    let embargoed = times(&server, &everywhere(), || {
        again(&|document| document["embargoed"] = json!("2099-01-01T00:00:00Z"));
    });
    print_times("put under embargo", &embargoed);
    again(&|_| ());
    // A replaced item is still served by its address, and no longer found.
    let mut places = lists(&make_collection(&server));
    places.retain(|place| place.name.contains("search") || place.name.contains("stream"));
    let replaced = times(&server, &places, || {
        let mut new = news::document("Ny bild", &["FOTO"], "2026-03-06T09:15:00+01:00");
        new["replacing"] = json!([format!("http://elsewhere.example/media/{ITEM}")]);
        news::ingest(&server, "image/new", &new);
    });
    print_times("replaced", &replaced);
}

#[test]
fn queued_work_for_an_item_is_withdrawn_with_it() {
    let (server, nowhere) = server();
    let stream_id = make(&server, &stream(Some(MediaType::Image), "isbrytare"));
    let mail = email("t", "desk@example.com");
    make(&server, &mail);
    let CreateEmailNotification { media_type, title, query, email } = mail;
    let scheduled = CreateScheduledEmailNotification {
        media_type,
        title,
        query,
        email,
        schedule: "0 4 1 1 *".to_owned(),
        timezone: SCHEDULE_ZONE_DEFAULT.to_owned(),
        tr: None,
    };
    make(&server, &scheduled);
    let mut newer = photograph();
    newer["versioncreated"] = json!("2026-03-07T09:15:00+01:00");
    newer["version"] = json!("2");
    news::ingest(&server, ITEM, &newer);
    let outbox = || {
        let (said, _) = run(&server, &["outbox", "list", "--json"], 0);
        let list: Value = serde_json::from_str(&said).unwrap();
        list.as_array().unwrap().len()
    };
    server.until("the mail to wait", || (outbox() == 1).then_some(()));
    server.until("the queues to hold it", || {
        (server.metric("wirephoto_matches_total", "") >= 3.0).then_some(())
    });
    let hook = format!("url=http://127.0.0.1:{}/", nowhere.port());
    let secret = "secret=a-secret-of-at-least-24-bytes";
    let channel = ["channel", "add", "demo-editor", "nowhere", "--method", "webhook"];
    let settings = ["--format", ".json", "--setting", &hook, "--setting", secret];
    run(&server, &[&channel[..], &settings, &["--setting", "allowHttp:=true"]].concat(), 0);
    let delivery = id(trigger(&server, &format!("/media/{ITEM}"), "nowhere"));
    until(&server, &delivery, "queued");

    run(&server, &["withdraw", ITEM], 0);
    let start = Instant::now();
    // The first read of the queue after the command ended returns nothing.
    let read = ApiCaller::key(&server, DEMO_KEY).ask(&poll(&stream_id, 1)).unwrap();
    assert_eq!(read, json!({ "hits": [] }));
    server.until("the mail to be dropped", || (outbox() == 0).then_some(()));
    let mail = start.elapsed().as_millis();
    let failed = until(&server, &delivery, "failed");
    let sent = start.elapsed().as_millis();
    assert!(failed.error.unwrap().contains("no item"));
    // A scheduled mail re-checks its items when it is written: none is left.
    let said = format!("mail dropped after {mail} ms, delivery given up after {sent} ms");
    drop(writeln!(std::io::stderr(), "{said}"));
}

/// The response to a request that was in flight.
struct PendingResponse {
    status: u16,
    policy: String,
    etag: String,
    body: Vec<u8>,
}

/// Requests the paths, each with a key or without, from a server whose disk blocks reads of originals; once all of
/// them wait, runs `meanwhile`, and then unblocks the disk.
fn during_render(
    (server, faults): (&Server, &Faults),
    paths: &[(&str, Option<&str>)],
    meanwhile: impl FnOnce(),
) -> Vec<PendingResponse> {
    let looked = || server.metric("wirephoto_cache_lookups_total", "tier=\"memory\"");
    faults.set(&["stall-read /originals/"]);
    let ask = |path: &str, key: Option<&str>| {
        let key = key.map(|key| ("authorization", format!("ApiKey {key}")));
        let headers: Vec<_> = key.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = server.get_with(path, &headers);
        let header = |name: &str| {
            response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        PendingResponse {
            status: response.status().as_u16(),
            policy: header("cache-control"),
            etag: header("etag"),
            body: response.bytes().unwrap().to_vec(),
        }
    };
    thread::scope(|scope| {
        let asked: Vec<_> = paths
            .iter()
            .map(|(path, key)| {
                let before = looked();
                let one = scope.spawn(move || ask(path, *key));
                // The lookup has succeeded and the render has started; an archive makes several lookups.
                server.until("it to wait", || (looked() > before).then_some(()));
                one
            })
            .collect();
        meanwhile();
        assert!(asked.iter().all(|one| !one.is_finished()), "somebody did not wait");
        faults.clear();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn renditions_in_flight_of_a_withdrawn_or_changed_item_are_neither_delivered_nor_billed() {
    let faults = Faults::new();
    let items = [(ITEM, photograph()), ("text/story", story())];
    // Requests wait for the disk as long as the test needs.
    let long_timeouts = ["media.render_time_s=300", "server.request_timeout_s=600"];
    let settings = ["cdn.max_age_s=86400", "media.warm=false", "server.unready_s=0"];
    let settings = [&settings[..], &long_timeouts].concat();
    let server = faults.start(kit::scene(&items), &settings);
    let crop = |n: u32| format!("/media/{ITEM}-crop_w20_h20_x{n}_y{n}_NormalPreview.jpg");
    let (first, second) = (crop(1), crop(2));
    // The new version is delivered.
    let mut newer = photograph();
    newer["headline"] = json!("Isbrytare");
    let etag = |path: &str| server.get(path).headers()["etag"].to_str().unwrap().to_owned();
    let old = etag(&first);
    let changed = during_render((&server, &faults), &[(&second, None)], || {
        news::ingest(&server, ITEM, &newer);
        server.until("the new version", || {
            let document = server.get(&format!("/media/{ITEM}.json")).text().unwrap();
            (!document.contains("Kvarken")).then_some(())
        });
    });
    assert_eq!((changed[0].status, &changed[0].etag), (200, &etag(&second)));
    assert_ne!(etag(&first), old);
    // The withdrawn item is not.
    let path = |suffix: &str| format!("/media/{ITEM}{suffix}");
    let (preview, third) = (path("_NormalPreview.jpg"), crop(3));
    let (hires, part, all) = (path(".jpg"), path("-crop_w30_h30_x2_y2.jpg"), path(".zip"));
    let buyer = Some(kit::BUYER);
    let paths = [
        (preview.as_str(), None),
        (&third, None),
        (&hires, buyer),
        (&part, buyer),
        (&all, buyer),
        ("/media/text/story/a000_NormalPreview.jpg", Some(DEMO_KEY)),
        ("/media/text/story.zip", Some(DEMO_KEY)),
    ];
    let mut gone = during_render((&server, &faults), &paths, || {
        run(&server, &["withdraw", ITEM], 0);
        server.until("it to be gone", || {
            (server.get(&format!("/media/{ITEM}.json")).status() == 404).then_some(())
        });
    });
    let archive = gone.pop().unwrap();
    let name = b"_a000_Normal";
    let has_it = archive.body.windows(name.len()).any(|window| window == name);
    assert_eq!((archive.status, has_it), (200, false), "the archive is made without it");
    for (answer, (path, key)) in gone.iter().zip(paths) {
        let policy = if key.is_none() { "max-age=60, s-maxage=60" } else { "private, no-cache" };
        assert_eq!((answer.status, answer.policy.as_str()), (404, policy), "{path}");
    }
    assert_eq!(
        (kit::downloads_used(&server), kit::orders(&server).len()),
        (0, 0),
        "nothing of it is sold"
    );
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
