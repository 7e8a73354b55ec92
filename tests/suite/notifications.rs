//! Notifications through the server: their URLs, streams and mails (`docs/contract/notifications.md`).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use api::content::SearchItems;
use api::notifications::{
    CreateEmailNotification, CreateNotificationStream, Notification, NotificationMediaType,
    NotificationQuery, ReadNotificationStream, RemoveNotification, STREAM_SIZE_DEFAULT,
};
use api::{Endpoint, Json, NoBody};
use model::MediaType;
use model::item::DocumentLayout;
use reqwest::Method;
use reqwest::blocking::Client;
use serde_json::{Value, json};

use crate::common::api::ApiCaller;
use crate::common::server::isolate_environment;
use crate::common::{DEMO_KEY, Server, is_before_release, news, pause, postgres};
use crate::faults::kit;
use crate::search::{BUYER_KEY, ids};

pub fn server(settings: &[&str]) -> Server {
    let old = news::document("Gammal", &["FOTO"], "2026-03-02T09:15:00+01:00");
    news::server(settings, &[("image/old", old)])
}

/// Creates a notification of the demo editor; returns its id.
pub fn make<E>(server: &Server, notification: &E) -> String
where
    E: Endpoint<Body = NoBody, Answer = Json<Notification>>,
{
    ApiCaller::key(server, DEMO_KEY).ask(notification).unwrap().id.to_string()
}

/// A stream of the items that match `q`; of every media type if `media_type` is `None`.
pub fn stream(media_type: Option<MediaType>, q: &str) -> CreateNotificationStream {
    let media_type = NotificationMediaType(media_type);
    CreateNotificationStream { media_type, title: String::new(), query: query(q) }
}

/// A mail to `address` about each photograph that matches `isbrytare`.
pub fn email(title: &str, address: &str) -> CreateEmailNotification {
    CreateEmailNotification {
        media_type: NotificationMediaType(Some(MediaType::Image)),
        title: title.to_owned(),
        query: query("isbrytare"),
        email: address.to_owned(),
    }
}

fn query(q: &str) -> NotificationQuery {
    NotificationQuery { q: Some(q.to_owned()), ..NotificationQuery::default() }
}

/// A poll of a stream, which waits for an item for this many seconds.
pub fn poll(id: &str, seconds: u32) -> ReadNotificationStream {
    ReadNotificationStream {
        media_type: NotificationMediaType(Some(MediaType::Image)),
        id: id.parse().unwrap(),
        s: STREAM_SIZE_DEFAULT,
        layout: DocumentLayout::Full,
        wait: seconds,
    }
}

pub fn ingest_photo(server: &Server, id: &str, headline: &str) {
    let document = news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00");
    news::ingest(server, &format!("image/{id}"), &document);
}

/// Polls a stream until it returns an item.
pub fn read(server: &Server, id: &str) -> String {
    read_within(server, id, 60)
}

/// Polls a stream, which waits for an item for this many seconds.
pub fn read_within(server: &Server, id: &str, seconds: u32) -> String {
    ids(&ApiCaller::key(server, DEMO_KEY).ask(&poll(id, seconds)).unwrap())
}

/// A waiting poll in a separate thread.
pub fn spawn_poll(server: &Server, id: &str) -> JoinHandle<(u16, Value)> {
    let before = server.metric("wirephoto_stream_polls_waiting", "");
    let url = format!("{}/content/v1/_all/notification/{id}/stream", server.url);
    let client = Client::builder().no_proxy().timeout(None).build().unwrap();
    let poll = thread::spawn(move || {
        let request = client.get(url).header("authorization", format!("ApiKey {DEMO_KEY}"));
        let response = request.send().expect("answer");
        (response.status().as_u16(), response.json().expect("JSON"))
    });
    server.until("the poll to wait", || {
        (server.metric("wirephoto_stream_polls_waiting", "") > before).then_some(())
    });
    poll
}

#[test]
fn a_waiting_poll_is_woken_by_an_item_that_another_process_ingests() {
    let server = server(&["server.request_timeout_s=1"]);
    let mut photographs = stream(Some(MediaType::Image), "isbrytare");
    photographs.query.p = vec!["FOTO".to_owned()];
    let id = make(&server, &photographs);
    let other = make(&server, &stream(Some(MediaType::Text), "isbrytare"));
    let waiting = spawn_poll(&server, &id);
    let idle = spawn_poll(&server, &other);
    ingest_photo(&server, "oden", "Isbrytare");
    let (status, body) = waiting.join().unwrap();
    assert_eq!((status, ids(&body).as_str()), (200, "oden"));
    assert_eq!(read_within(&server, &id, 1), "");
    // The poll that waits for texts ends, empty, when the service stops.
    server.signal("TERM");
    assert_eq!(idle.join().unwrap(), (200, json!({ "hits": [] })));
}

#[test]
fn a_queue_survives_a_restart_and_returns_items_by_size_and_layout() {
    let server = server(&[]);
    let id = make(&server, &stream(Some(MediaType::Image), ""));
    for number in ["a", "b", "c"] {
        ingest_photo(&server, number, "Isbrytare");
    }
    kit::wait_for_matches(&server, 3);
    let mut server = server.restart(&[]);
    let first = ReadNotificationStream { s: 2, layout: DocumentLayout::Bare, ..poll(&id, 60) };
    let body = ApiCaller::key(&server, DEMO_KEY).ask(&first).unwrap();
    assert_eq!(ids(&body), "a b");
    assert_eq!(body["hits"][0].get("type"), None);
    server.child.kill().unwrap();
    let server = server.restart_killed(&[]);
    assert_eq!(read(&server, &id), "c");
}

#[test]
fn an_excess_poll_gets_retry_after_and_bad_parameters_are_named() {
    let server = server(&["notifications.polls=1"]);
    let id = make(&server, &stream(Some(MediaType::Image), ""));
    let waiting = spawn_poll(&server, &id);
    let path = format!("/content/v1/image/notification/{id}/stream");
    let editor = ApiCaller::key(&server, DEMO_KEY);
    let full = editor.request(Method::GET, &path, None);
    assert_eq!((full.status().as_u16(), full.headers()["retry-after"].len()), (503, 1));
    for (bad, expected) in [
        ("wait=0", "400 minimum query wait"),
        ("wait=61", "400 maximum query wait"),
        ("s=0", "400 minimum query s"),
        ("s=10001", "400 maximum query s"),
        ("layout=wide", "400 enum query layout"),
    ] {
        let refusal = editor.refused(Method::GET, &format!("{path}?{bad}"), None);
        assert_eq!(refusal.summary(), expected);
    }
    assert_eq!(server.get(&path).status(), 401);
    let other = ApiCaller::key(&server, BUYER_KEY).ask(&poll(&id, 60));
    assert_eq!(other.unwrap_err().summary(), "404 stream_not_found headers");
    let media_type = NotificationMediaType(Some(MediaType::Image));
    editor.ask(&RemoveNotification { media_type, id: id.parse().unwrap() }).unwrap();
    // A poll that waits on it ends at once.
    assert_eq!(waiting.join().unwrap().0, 404);
}

/// A poll over its own connection, which can be cut.
struct Poll(TcpStream);

impl Poll {
    fn send(site: &impl kit::Site, id: &str) -> Option<Self> {
        let mut stream = TcpStream::connect(site.url().strip_prefix("http://")?).ok()?;
        stream.set_read_timeout(Some(site.poll_timeout())).ok()?;
        let request = format!(
            "GET /content/v1/_all/notification/{id}/stream?wait=5&s=3&layout=bare HTTP/1.1\r\n\
             host: h\r\nauthorization: ApiKey {DEMO_KEY}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        Some(Self(stream))
    }

    /// Everything that is received, and whether the body is complete.
    fn receive(mut self) -> (String, bool) {
        let mut bytes = Vec::new();
        // Bytes received before an error count.
        drop(self.0.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return (text, false) };
        let length = head.to_ascii_lowercase();
        let length = length.split_once("content-length: ").map(|(_, rest)| rest);
        let length = length.and_then(|rest| rest.lines().next()?.trim().parse::<usize>().ok());
        let whole = head.starts_with("HTTP/1.1 200") && length == Some(body.len());
        (body.to_owned(), whole)
    }
}

#[test]
fn a_client_that_vanishes_while_it_waits_loses_nothing() {
    let server = server(&[]);
    for round in 0..5 {
        let id = make(&server, &stream(None, ""));
        let before = server.metric("wirephoto_stream_polls_waiting", "");
        let poll = Poll::send(&server, &id).unwrap();
        server.until("the poll to wait", || {
            (server.metric("wirephoto_stream_polls_waiting", "") > before).then_some(())
        });
        drop(poll);
        server.until("the poll to end", || {
            (server.metric("wirephoto_stream_polls_waiting", "") <= before).then_some(())
        });
        ingest_photo(&server, &format!("i{round}"), "Isbrytare");
        assert_eq!(read(&server, &id), format!("i{round}"));
    }
}

/// The ids of items in a body, complete or not.
fn item_ids(body: &str) -> Vec<String> {
    let uris = body.split("\"uri\":\"").skip(1);
    let id = |rest: &str| rest.split('"').next()?.rsplit('/').next().map(str::to_owned);
    uris.filter_map(id).collect()
}

/// The deliveries of every item.
#[derive(Default)]
pub struct ReceivedItems {
    /// The number of complete responses that each item was in.
    pub whole: BTreeMap<String, u32>,
    /// Items of interrupted responses, whose outcome is unknown.
    pub doubtful: Vec<String>,
}

impl ReceivedItems {
    /// Records the response of one poll; returns its items.
    pub fn poll(&mut self, site: &impl kit::Site, id: &str) -> Vec<String> {
        let Some(poll) = Poll::send(site, id) else { return Vec::new() };
        let (body, complete) = poll.receive();
        let items = item_ids(&body);
        for id in items.iter().cloned() {
            match complete {
                true => *self.whole.entry(id).or_default() += 1,
                false => self.doubtful.push(id),
            }
        }
        items
    }

    /// Polls until the item `last` arrives, which is queued behind all others.
    pub fn poll_until(&mut self, site: &impl kit::Site, id: &str, last: &str) {
        kit::until("the last item to come", || {
            self.poll(site, id).iter().any(|item| item == last).then_some(())
        });
    }

    /// Checks that each item arrived once, except those in doubt, which may never have arrived.
    fn check(&self, count: usize) {
        for number in 0..count {
            let id = format!("i{number}");
            let times = self.whole.get(&id).copied().unwrap_or_default();
            let doubted = self.doubtful.contains(&id);
            assert!(times == 1 || (doubted && times == 0), "{id} came {times} times, {doubted}");
        }
    }
}

/// Ingests items, a few at a time, until it is stopped; returns their number.
fn feed(data: std::path::PathBuf, stopped: std::sync::mpsc::Receiver<()>) -> JoinHandle<usize> {
    thread::spawn(move || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("items.jsonl");
        let mut count = 0;
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            let lines: Vec<String> = (count..count + 3).map(line).collect();
            std::fs::write(&file, lines.join("\n")).unwrap();
            let mut ingest = std::process::Command::new(env!("CARGO_BIN_EXE_wirephoto"));
            isolate_environment(&mut ingest, data.parent().unwrap());
            let ingest = ingest.arg("ingest").arg(&file).arg("--data").arg(&data);
            let output = ingest.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            count += 3;
            // Readers take three items per poll and have to keep up.
            (0..20).for_each(|_| pause());
        }
        count
    })
}

/// Kills the server after this many microseconds.
fn kill_after(server: &Server, us: u64) -> JoinHandle<()> {
    let process = server.child.id().to_string();
    thread::spawn(move || {
        thread::sleep(Duration::from_micros(us));
        let status = std::process::Command::new("kill").args(["-s", "KILL", &process]).status();
        assert!(status.unwrap().success());
    })
}

/// Checks that each of `count` items was mailed once.
fn check_mails(server: &Server, count: usize) {
    let folder = server.data().join("outbox");
    let mails = || {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_mail = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "eml");
        entries.map(|entry| entry.path()).filter(is_mail).collect::<Vec<_>>()
    };
    // The timeout restarts with every progress.
    let mut written = 0;
    while written < count {
        written = server.until("a further mail to be written", || {
            let now = mails().len();
            assert!(
                server.metric("wirephoto_outbox_parked", "mail") == 0.0,
                "a mail was given up"
            );
            (now > written).then_some(now)
        });
    }
    let mut told = BTreeMap::<String, u32>::new();
    for path in mails() {
        let mail = std::fs::read_to_string(path).unwrap();
        let subject = mail.split_once("Subject: ").unwrap().1.lines().next().unwrap().to_owned();
        *told.entry(subject).or_default() += 1;
    }
    assert!(told.values().all(|times| *times == 1), "{told:?}");
    assert_eq!(told.len(), count);
}

/// Kills the server at random moments while items are ingested and streams are read, and accounts for every item:
/// each was in one complete response, unless the response was interrupted after it began, which leaves the outcome
/// unknown; and each was mailed once.
#[test]
fn a_server_killed_again_and_again_loses_and_duplicates_nothing() {
    // Two nodes over PostgreSQL are killed by tests of their own.
    let kills = if is_before_release() && !postgres::is_used() { 100 } else { 30_usize };
    let settings = [
        "server.unready_s=0",
        "notifications.mail_workers=16",
        // Every mail is checked: none may wait for the next hour and be merged with others.
        "mail.user_per_hour=1000000",
        "mail.recipient_per_hour=1000000",
        // A message whose sender is killed some thirty times is given up with the default of a day, and on a slow
        // machine few servers live long enough to send one.
        "notifications.retry_hours=720",
    ];
    let mut server = server(&settings);
    let id = make(&server, &stream(None, "isbrytare"));
    let media_type = NotificationMediaType(None);
    let mail = CreateEmailNotification { media_type, ..email("t", "a@example.org") };
    make(&server, &mail);
    let (stop, stopped) = std::sync::mpsc::channel();
    let feeder = feed(server.data(), stopped);
    let mut seen = ReceivedItems::default();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let killer = kill_after(&server, random % 150_000);
        while !killer.is_finished() {
            seen.poll(&server, &id);
        }
        killer.join().unwrap();
        server = server.restart_killed(&settings);
    }
    stop.send(()).unwrap();
    let count = feeder.join().unwrap();
    assert!(count > kills, "{count} items are no load");
    // One more item, queued behind all others.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last.jsonl");
    std::fs::write(&file, line(count)).unwrap();
    assert!(server.command(&["ingest", &file.to_string_lossy()]).status.success());
    seen.poll_until(&server, &id, &format!("i{count}"));
    seen.check(count + 1);
    check_mails(&server, count + 1);
    // The index was killed as often, and holds each item once.
    let search = SearchItems {
        media_type: Some(MediaType::Text),
        q: "isbrytare".to_owned(),
        size: 0,
        ..SearchItems::default()
    };
    let found = ApiCaller::key(&server, DEMO_KEY).ask(&search).unwrap();
    assert_eq!(found.total, u64::try_from(count + 1).unwrap());
}

/// A document with its number in the headline.
fn line(number: usize) -> String {
    let document = json!({
        "uri": format!("http://h/media/text/i{number}"),
        "headline": format!("isbrytare{number}"),
        "body_text": "isbrytare",
        "versioncreated": "2026-03-05T09:15:00Z",
        "product": [{ "code": "FOTO" }],
    });
    document.to_string()
}
