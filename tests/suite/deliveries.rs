//! Deliveries (`docs/contract/deliveries.md`): who may request one, its price, the files that arrive, and retries
//! after an outage of the receiver or the service.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

use api::deliveries::{
    Delivery, DeliveryRepetition, ListDeliveries, LoadDelivery, RepeatDelivery,
};
use api::orders::Order;
use api::user::LoadCaller;
use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::STANDARD};
use model::account::DeliveryState;
use reqwest::{
    Method,
    blocking::Response,
    header::{AUTHORIZATION, LOCATION, RETRY_AFTER},
};
use serde_json::{Value, json};

use crate::common::{
    DEMO_KEY, Server, WAIT_TIMEOUT,
    api::{ApiCaller, Refusal},
    pause,
    pictures::Picture,
    ports::ReservedPort,
    server::demo_originals,
    tokens,
};

/// The item that most of these tests send.
pub const ITEM: &str = "/media/image/demo-urtavla";
pub const OTHER: &str = "/media/image/demo-trollslanda";
const SECRET: &str = "a-secret-of-at-least-24-bytes";

/// A server with short retry intervals.
fn server() -> Server {
    Server::demo_with(&SETTINGS)
}

const SETTINGS: [&str; 2] = ["delivery.retry_first_ms=50", "server.unready_s=0"];
/// A short lease: deliveries of a killed server are soon claimed again. For that test alone, since a slow server
/// could lose so short a lease.
const SHORT_LEASE: [&str; 1] = ["delivery.lease_s=15"];

/// GET with a key.
pub fn ask(server: &Server, path: &str, key: &str) -> Response {
    server.get_with(path, &[("authorization", &format!("ApiKey {key}"))])
}

/// Requests `item` through the channel `name` of the demo editor.
pub fn trigger(server: &Server, item: &str, name: &str) -> Response {
    ask(server, &format!("{item}?channel=user:demo-editor:{name}"), DEMO_KEY)
}

/// HEAD of `item` with the channel `name` of the demo editor.
fn head(server: &Server, item: &str, name: &str) -> Response {
    let path = format!("{}{item}?channel=user:demo-editor:{name}", server.url);
    let request = server.client.request(Method::HEAD, path);
    request.header(AUTHORIZATION, format!("ApiKey {DEMO_KEY}")).send().unwrap()
}

/// The id of the delivery in a response: a new or an existing one.
pub fn id(response: Response) -> String {
    assert!(matches!(response.status().as_u16(), 200 | 202), "{}", response.status());
    let body: Value = response.json().unwrap();
    body["id"].as_str().unwrap().to_owned()
}

fn editor(server: &Server) -> ApiCaller<'_> {
    ApiCaller::key(server, DEMO_KEY)
}

fn find(caller: &ApiCaller<'_>, id: &str) -> Result<Delivery, Refusal> {
    caller.ask(&LoadDelivery { id: id.parse().unwrap() })
}

/// The delivery, once it is in that state.
pub fn until(server: &Server, id: &str, state: &str) -> Delivery {
    server.until(state, || {
        find(&editor(server), id).ok().filter(|found| found.state.as_str() == state)
    })
}

/// The first deliveries of the caller's list.
fn listed(caller: &ApiCaller<'_>) -> Vec<Delivery> {
    caller.ask(&ListDeliveries::default()).unwrap().deliveries
}

/// The orders of the demo editor's organization.
fn orders(server: &Server) -> Vec<Order> {
    let token = tokens::password(server, "demo-editor", "demo-editor-password", "roles");
    ApiCaller::bearer(server, &token).orders()
}

/// Runs a command that must end with `status`; returns both of its outputs.
pub fn run(server: &Server, arguments: &[&str], status: i32) -> (String, String) {
    let output = server.command(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    (stdout, stderr)
}

/// Adds a channel to the demo editor.
pub fn add(server: &Server, name: &str, method: &str, settings: &[String]) {
    let mut arguments = vec!["channel", "add", "demo-editor", name, "--method", method];
    arguments.extend(["--format", ".json", "--format", "_NormalThumbnail.jpg"]);
    for setting in settings {
        arguments.extend(["--setting", setting.as_str()]);
    }
    run(server, &arguments, 0);
}

/// Settings of a webhook that listens on loopback.
pub fn hook(port: u16) -> Vec<String> {
    let url = format!("url=http://127.0.0.1:{port}/in/secret-path");
    vec![url, format!("secret={SECRET}"), "allowHttp=true".to_owned()]
}

/// The next connection; fails after [`WAIT_TIMEOUT`].
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
                return stream;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => pause(),
            Err(error) => panic!("{error}"),
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "no request came");
    }
}

/// A request received by a webhook.
pub struct WebhookRequest {
    pub headers: HashMap<String, String>,
    body: Vec<u8>,
    stream: TcpStream,
}

impl WebhookRequest {
    pub fn accept(listener: &TcpListener) -> Self {
        let stream = accept(listener);
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut headers = HashMap::new();
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some((name, value)) = line.trim().split_once(": ") {
                headers.insert(name.to_ascii_lowercase(), value.to_owned());
            }
            line.clear();
        }
        let length = headers["content-length"].parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        Self { headers, body, stream }
    }

    pub fn answer(mut self, status: &str) -> (HashMap<String, String>, Vec<u8>) {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        self.stream.write_all(head.as_bytes()).unwrap();
        (self.headers, self.body)
    }
}

#[test]
fn a_folder_gets_the_files_that_the_urls_deliver() {
    let server = server();
    add(&server, "folder", "directory", &["path=desk/in".to_owned()]);
    let response = trigger(&server, ITEM, "folder");
    let address = response.headers()[LOCATION].to_str().unwrap().to_owned();
    assert_eq!(response.headers()["cache-control"], "no-store");
    let told: Value = response.json().unwrap();
    let id = told["id"].as_str().unwrap().to_owned();
    assert_eq!(address, format!("/user/v1/delivery/{id}"));
    assert_eq!(told["channel"], "user:demo-editor:folder");
    assert_eq!(told["item"], format!("{}{ITEM}", server.url));
    assert_eq!(told.as_object().unwrap().len(), 4);
    let found = until(&server, &id, "delivered");
    assert_eq!(found.attempts, 1);
    assert!(found.delivered.is_some() && found.error.is_none(), "{found:?}");
    let folder = server.data().join("deliveries/desk/in");
    for suffix in [".json", "_NormalThumbnail.jpg"] {
        let file = fs::read(folder.join(format!("demo-urtavla{suffix}"))).unwrap();
        assert_eq!(file, server.bytes(&format!("{ITEM}{suffix}")), "{suffix}");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    let count = server.metric("wirephoto_deliveries_total", "outcome=\"delivered\"");
    assert!((count - 1.0).abs() < f64::EPSILON, "{count}");
}

#[test]
fn a_channel_selects_the_content_of_an_items_archive() {
    let server = server();
    let path = |channel: &str| format!("{ITEM}.zip?channel=user:demo-editor:{channel}");
    assert_eq!(server.get(&path("demo-mail")).status(), 401);
    assert_eq!(ask(&server, &path("unknown"), DEMO_KEY).status(), 404);
    let archive = |channel: &str| {
        let response = ask(&server, &path(channel), DEMO_KEY);
        assert_eq!(response.status(), 200);
        response.bytes().unwrap().to_vec()
    };
    let names = |archive: &[u8]| {
        let holds =
            |name: &&str| archive.windows(name.len()).any(|found| found == name.as_bytes());
        let all = ["urtavla_NormalHires.jpg", "urtavla_NormalPreview.jpg", "urtavla.xml"];
        all.into_iter().filter(holds).collect::<Vec<_>>()
    };
    let download = archive("demo-download");
    assert_eq!(names(&download), ["urtavla_NormalHires.jpg", "urtavla.xml"]);
    assert_eq!(names(&archive("demo-mail")), ["urtavla_NormalPreview.jpg"]);
    assert_eq!(archive("demo-download"), download, "the same request gives the same bytes");
}

#[test]
fn without_a_mail_server_a_mail_goes_to_the_outbox() {
    let server = server();
    let id = id(trigger(&server, ITEM, "demo-mail"));
    until(&server, &id, "delivered");
    let mail = fs::read_to_string(server.data().join("outbox").join(format!("{id}.eml"))).unwrap();
    for part in ["To: demo-editor@demo-desk.example", "demo-urtavla_NormalPreview.jpg"] {
        assert!(mail.contains(part), "{part}");
    }
}

#[test]
fn a_webhook_call_has_a_signature_that_its_owner_can_verify() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let id = id(trigger(&server, ITEM, "hook"));
    let (headers, body) = WebhookRequest::accept(&listener).answer("204 No Content");
    until(&server, &id, "delivered");
    assert_eq!(headers["webhook-id"], id);
    let signed = [id.as_bytes(), headers["webhook-timestamp"].as_bytes(), &body].join(&b'.');
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), &signed);
    assert_eq!(headers["webhook-signature"], format!("v1,{}", STANDARD.encode(tag)));
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(told["uri"], format!("{}{ITEM}", server.url));
    let names: Vec<_> =
        told["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(names, ["demo-urtavla.json", "demo-urtavla_NormalThumbnail.jpg"]);
}

#[test]
fn one_version_of_an_item_is_one_delivery_and_one_purchase() {
    let server = server();
    let ids: Vec<String> = thread::scope(|scope| {
        let ask = || id(trigger(&server, ITEM, "demo-folder"));
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    until(&server, &ids[0], "delivered");
    let again: Value = trigger(&server, ITEM, "demo-folder").json().unwrap();
    assert_eq!((&again["id"], &again["state"]), (&json!(ids[0]), &json!("delivered")));
    assert_eq!(orders(&server).len(), 1);
    // Through another channel it is another delivery, and a download of the same order.
    assert_ne!(id(trigger(&server, ITEM, "demo-mail")), ids[0]);
    assert_eq!(orders(&server).len(), 1);
}

#[test]
fn a_delivery_is_sent_again_on_request_and_bought_once() {
    let server = server();
    let (_, buyer) = others(&server);
    let first = trigger(&server, ITEM, "demo-folder");
    assert_eq!(first.status(), 202);
    let id = id(first);
    until(&server, &id, "delivered");
    let file = server.data().join("deliveries/demo-editor/demo-urtavla.json");
    fs::remove_file(&file).unwrap();
    let again = trigger(&server, ITEM, "demo-folder");
    assert_eq!(again.status(), 200, "nothing is queued");
    assert_eq!(again.json::<Value>().unwrap()["state"], "delivered");
    let address = format!("{}/user/v1/delivery/{id}", server.url);
    let post = |body: &str| {
        let auth = format!("ApiKey {DEMO_KEY}");
        let request = server.client.post(&address).header(AUTHORIZATION, auth);
        request.header("content-type", "application/json").body(body.to_owned()).send().unwrap()
    };
    for body in ["{}", r#"{"again": false}"#, r#"{"again": 1}"#, r#"{"again": true, "x": 1}"#] {
        assert_eq!(post(body).status(), 400, "{body}");
    }
    let repetition = RepeatDelivery { id: id.parse().unwrap() };
    let other = ApiCaller::key(&server, &buyer);
    let refused = other.send(&repetition, &DeliveryRepetition { again: true }).unwrap_err();
    assert_eq!(refused.status, 404, "it is somebody else's");
    assert!(!file.exists());
    let sent = post(r#"{"again": true}"#);
    assert_eq!(sent.headers()[LOCATION], format!("/user/v1/delivery/{id}").as_str());
    assert_eq!(sent.status(), 202);
    server.until("the file", || file.exists().then_some(()));
    assert_eq!(until(&server, &id, "delivered").attempts, 1);
    assert_eq!(orders(&server).len(), 1);
    // The agreement is checked at each request.
    let path = format!("{ITEM}?channel=user:demo-editor:demo-folder&agr=4711");
    assert_eq!(ask(&server, &path, DEMO_KEY).status(), 403);
}

#[test]
fn a_uri_with_the_editors_crop_sends_that_region() {
    let server = server();
    let cropped = format!("{ITEM}-crop_w800_h600_x10_y20");
    let id = id(trigger(&server, &cropped, "demo-folder"));
    assert_eq!(until(&server, &id, "delivered").item, format!("{}{cropped}", server.url));
    let folder = server.data().join("deliveries/demo-editor");
    let picture = fs::read(folder.join("demo-urtavla-crop_w800_h600_x10_y20_NormalHires.jpg"));
    assert_eq!(Picture::decode(&picture.unwrap()).size(), (800, 600));
    let document = fs::read(folder.join("demo-urtavla-crop_w800_h600_x10_y20.json")).unwrap();
    assert_eq!(document, server.bytes(&format!("{cropped}.json")));
    // The whole picture is another delivery.
    assert_ne!(self::id(trigger(&server, ITEM, "demo-folder")), id);
    assert_eq!(trigger(&server, &format!("{ITEM}-crop_w0"), "demo-folder").status(), 400);
}

#[test]
fn a_new_document_of_the_item_is_another_delivery() {
    let server = server();
    let first = id(trigger(&server, ITEM, "demo-folder"));
    until(&server, &first, "delivered");
    let document: Value = serde_json::from_slice(&server.bytes(&format!("{ITEM}.json"))).unwrap();
    let mut document = document;
    document["headline"] = json!("Another headline");
    let line = server.dir.path().join("again.jsonl");
    fs::write(&line, format!("{document}\n")).unwrap();
    run(&server, &["ingest", &line.to_string_lossy()], 0);
    let second = server.until("the new document", || {
        Some(id(trigger(&server, ITEM, "demo-folder"))).filter(|id| *id != first)
    });
    until(&server, &second, "delivered");
    let file = server.data().join("deliveries/demo-editor/demo-urtavla.json");
    assert!(fs::read_to_string(file).unwrap().contains("Another headline"));
}

/// A user who administers the demo editor's organization, and the buyer of another organization.
fn others(server: &Server) -> (String, String) {
    let (key, _) = run(server, &["key", "add", "demo-admin"], 0);
    (key.trim().to_owned(), "demo-key-0000-0000-000000000003".to_owned())
}

#[test]
fn a_channel_is_usable_by_its_owner_alone_while_it_is_open() {
    let server = server();
    let (admin, buyer) = others(&server);
    let status = |path: &str, key: &str| ask(&server, path, key).status().as_u16();
    let path = format!("{ITEM}?channel=user:demo-editor:demo-folder");
    assert_eq!(server.get(&path).status(), 401);
    assert_eq!(server.get(&format!("{path}&ak=wrong")).status(), 401);
    assert_eq!((status(&path, &admin), status(&path, &buyer)), (404, 404));
    assert_eq!(trigger(&server, ITEM, "unknown").status(), 404);
    assert_eq!(trigger(&server, "/media/image/unknown", "demo-folder").status(), 404);
    run(&server, &["channel", "disable", "demo-editor", "demo-folder"], 0);
    assert_eq!(trigger(&server, ITEM, "demo-folder").status(), 404);
    run(&server, &["channel", "enable", "demo-editor", "demo-folder"], 0);
    for (channel, code) in [
        ("user:demo-editor:demo-download", "enum.openapi.requestValidation"),
        ("demo-folder", "pattern.openapi.requestValidation"),
        ("user:demo-editor:", "pattern.openapi.requestValidation"),
    ] {
        let response = ask(&server, &format!("{ITEM}?channel={channel}"), DEMO_KEY);
        assert_eq!(response.status(), 400, "{channel}");
        let body: Value = response.json().unwrap();
        assert_eq!(body["errors"][0]["errorCode"], code, "{body}");
        assert_eq!(body["errors"][0]["path"], "channel", "{body}");
    }
    assert!(listed(&editor(&server)).is_empty(), "nothing of it was queued");
    let agr = ask(&server, &format!("{path}&agr=x"), DEMO_KEY);
    assert_eq!(agr.status(), 400);
    assert_eq!(status(&format!("{path}&agr=1001&ak=ignored"), DEMO_KEY), 202);
}

#[test]
fn a_delivery_is_bought_as_a_download_is() {
    let server = server();
    let (_, buyer) = others(&server);
    let folder = ["--method", "directory", "--format", ".json", "--setting", "path=buyer"];
    run(&server, &[&["channel", "add", "demo-buyer", "in"], &folder[..]].concat(), 0);
    let outcome = |agr: i64| {
        let path = format!("{ITEM}?channel=user:demo-buyer:in&agr={agr}");
        let response = ask(&server, &path, &buyer);
        let status = response.status().as_u16();
        let body: Value = response.json().unwrap();
        (status, body["errors"][0]["errorCode"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(outcome(1001), (403, "agreement_required".to_owned()), "not the buyer's");
    assert_eq!(outcome(1003), (403, "order_required".to_owned()), "somebody has to approve");
    let caller = ApiCaller::key(&server, &buyer);
    assert!(listed(&caller).is_empty());
    assert_eq!(outcome(1002), (202, String::new()));
    assert_eq!(outcome(1002), (200, String::new()));
    let prepaids = caller.ask(&LoadCaller {}).unwrap().agreements[0].prepaids.unwrap();
    assert_eq!((prepaids.total, prepaids.remaining), (10, 9));
    assert_eq!(listed(&caller).len(), 1);
}

#[test]
fn a_head_request_reports_the_delivery_without_triggering_it() {
    let server = server();
    let head = |channel: &str| head(&server, ITEM, channel);
    let before = head("demo-folder");
    assert_eq!((before.status().as_u16(), before.headers().get(LOCATION)), (202, None));
    assert_eq!(
        (head("unknown").status().as_u16(), head("demo-download").status().as_u16()),
        (404, 400)
    );
    assert!(listed(&editor(&server)).is_empty());
    let id = id(trigger(&server, ITEM, "demo-folder"));
    let address = format!("/user/v1/delivery/{id}");
    assert_eq!(head("demo-folder").headers()[LOCATION], address.as_str());
}

#[test]
fn a_temporary_failure_is_retried_until_it_succeeds() {
    let server = server();
    let away = ReservedPort::new();
    add(&server, "hook", "webhook", &hook(away.port()));
    let id = id(trigger(&server, ITEM, "hook"));
    let waiting = server.until("a second try", || {
        let found = find(&editor(&server), &id).unwrap();
        (found.state == DeliveryState::Queued && found.attempts >= 2).then_some(found)
    });
    assert!(waiting.error.is_some() && waiting.next_attempt.is_some(), "{waiting:?}");
    let listener = away.listen();
    // A temporary error response is retried as well.
    WebhookRequest::accept(&listener).answer("503 Service Unavailable");
    WebhookRequest::accept(&listener).answer("200 OK");
    let found = until(&server, &id, "delivered");
    assert!(found.error.is_none() && found.attempts >= 4, "{found:?}");
    let log = server.log();
    assert!(log.contains("\"outcome\":\"retry\"") && !log.contains(SECRET), "{log}");
    assert!(!log.contains("secret-path"), "{log}");
}

#[test]
fn a_permanent_failure_says_why_and_is_retried_on_request() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let id = id(trigger(&server, ITEM, "hook"));
    WebhookRequest::accept(&listener).answer("410 Gone");
    let failed = until(&server, &id, "failed");
    assert!(failed.error.unwrap().contains("410"));
    let (listed, _) = run(&server, &["delivery", "list", "--state", "failed", "--json"], 0);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["id"], json!(id), "the operator sees it");
    // By its owner, with the same request.
    let again: Value = trigger(&server, ITEM, "hook").json().unwrap();
    assert_eq!((&again["id"], &again["state"]), (&json!(id), &json!("queued")));
    WebhookRequest::accept(&listener).answer("410 Gone");
    until(&server, &id, "failed");
    // By the operator.
    run(&server, &["delivery", "retry", &id], 0);
    WebhookRequest::accept(&listener).answer("200 OK");
    until(&server, &id, "delivered");
    let (_, stderr) = run(&server, &["delivery", "retry", &id], 1);
    assert!(stderr.contains("is delivered"), "{stderr}");
    let nobody = "00000000-0000-0000-0000-000000000000";
    run(&server, &["delivery", "retry", nobody], 1);
    run(&server, &["delivery", "retry", "x"], 2);
}

#[test]
fn a_delivery_in_flight_at_a_kill_is_sent_again_under_the_same_id() {
    let settings = [&SETTINGS[..], &SHORT_LEASE].concat();
    let mut server = Server::demo_with(&settings);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let id = id(trigger(&server, ITEM, "hook"));
    let first = WebhookRequest::accept(&listener);
    assert_eq!(find(&editor(&server), &id).unwrap().state, DeliveryState::Sending);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    drop(first);
    let dir = std::mem::replace(&mut server.dir, tempfile::tempdir().unwrap());
    drop(server);
    let server = Server::start(dir, &[&settings[..], &[&demo_originals()]].concat());
    let (headers, _) = WebhookRequest::accept(&listener).answer("200 OK");
    assert_eq!(headers["webhook-id"], id);
    assert_eq!(until(&server, &id, "delivered").attempts, 2);
}

#[test]
fn a_stop_leaves_unfinished_deliveries_in_the_queue() {
    let mut server = Server::demo_with(&["server.drain_s=0", "server.unready_s=0"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let id = id(trigger(&server, ITEM, "hook"));
    let _hanging = WebhookRequest::accept(&listener);
    server.signal("TERM");
    assert!(server.child.wait().unwrap().success(), "{}", server.log());
    let (listed, _) = run(&server, &["delivery", "list", "--json"], 0);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let found = (&listed[0]["id"], &listed[0]["state"], &listed[0]["attempts"]);
    assert_eq!(found, (&json!(id), &json!("queued"), &json!(0)));
}

#[test]
fn rights_and_channels_are_checked_when_a_delivery_is_sent() {
    let server = server();
    let away = ReservedPort::new();
    add(&server, "hook", "webhook", &hook(away.port()));
    let first = id(trigger(&server, ITEM, "hook"));
    run(&server, &["channel", "remove", "demo-editor", "hook"], 0);
    let error = |id: &str| {
        let look = || {
            let (listed, _) =
                run(&server, &["delivery", "list", "--state", "failed", "--json"], 0);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            let found = listed.as_array().unwrap().iter().find(|one| one["id"] == *id).cloned();
            found.map(|one| one["error"].as_str().unwrap().to_owned())
        };
        server.until("the failure", look)
    };
    assert_eq!(error(&first), "the channel was removed");
    add(&server, "hook", "webhook", &hook(away.port()));
    let second = id(trigger(&server, OTHER, "hook"));
    run(&server, &["user", "disable", "demo-editor"], 0);
    assert_eq!(error(&second), "the user is disabled");
}

#[test]
fn an_item_without_the_formats_of_a_channel_is_neither_sent_nor_bought() {
    let server = server();
    let folder = ["--method", "directory", "--format", "_NormalPreview.mp4"];
    run(&server, &[&["channel", "add", "demo-editor", "film"], &folder[..]].concat(), 0);
    let refused = trigger(&server, ITEM, "film");
    assert_eq!(refused.status(), 404);
    let body: Value = refused.json().unwrap();
    let said = body["message"].as_str().unwrap_or_default();
    assert!(said.contains("has none of the channel's formats"), "{body}");
    assert!(orders(&server).is_empty());
    assert!(listed(&editor(&server)).is_empty());
}

#[test]
fn a_hanging_receiver_blocks_its_own_channel_and_no_other() {
    let server = Server::demo_with(&["delivery.workers=3"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let first = id(trigger(&server, ITEM, "hook"));
    let hanging = WebhookRequest::accept(&listener);
    let second = id(trigger(&server, OTHER, "hook"));
    let folder = id(trigger(&server, ITEM, "demo-folder"));
    until(&server, &folder, "delivered");
    let state = |id: &str| find(&editor(&server), id).unwrap().state;
    let expected = (DeliveryState::Sending, DeliveryState::Queued);
    assert_eq!((state(&first), state(&second)), expected);
    hanging.answer("200 OK");
    WebhookRequest::accept(&listener).answer("200 OK");
    until(&server, &first, "delivered");
    until(&server, &second, "delivered");
}

#[test]
fn too_many_deliveries_of_an_organization_are_answered_503_and_cost_nothing() {
    let server = Server::demo_with(&["delivery.queue_max=1", "server.drain_s=0"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&server, "hook", "webhook", &hook(listener.local_addr().unwrap().port()));
    let first = id(trigger(&server, ITEM, "hook"));
    let posted = WebhookRequest::accept(&listener);
    let full = trigger(&server, OTHER, "hook");
    assert_eq!(full.status(), 503);
    assert!(full.headers().contains_key(RETRY_AFTER));
    let asked = [OTHER, ITEM].map(|item| head(&server, item, "hook").status().as_u16());
    assert_eq!(asked, [503, 200], "HEAD answers as GET does");
    assert_eq!(id(trigger(&server, ITEM, "hook")), first, "what is there is told of");
    assert_eq!(orders(&server).len(), 1);
    posted.answer("200 OK");
    until(&server, &first, "delivered");
    let second = id(trigger(&server, OTHER, "hook"));
    WebhookRequest::accept(&listener).answer("200 OK");
    until(&server, &second, "delivered");
}

#[test]
fn deliveries_are_listed_for_their_owner_and_the_organizations_administrator() {
    let server = server();
    let (admin, buyer) = others(&server);
    let (first, second) =
        (id(trigger(&server, ITEM, "demo-folder")), id(trigger(&server, OTHER, "demo-folder")));
    until(&server, &first, "delivered");
    until(&server, &second, "delivered");
    let [admin, buyer] = [&admin, &buyer].map(|key| ApiCaller::key(&server, key));
    let editor = editor(&server);
    let list = |caller: &ApiCaller<'_>, asked: &ListDeliveries| -> Vec<String> {
        let found = caller.ask(asked).unwrap().deliveries.into_iter();
        found.map(|delivery| delivery.id.to_string()).collect()
    };
    let all = ListDeliveries::default();
    assert_eq!(list(&editor, &all), [second.clone(), first.clone()]);
    let page = ListDeliveries { size: 1, start: 1, state: None };
    assert_eq!(list(&editor, &page), std::slice::from_ref(&first));
    let failed = ListDeliveries { state: Some(DeliveryState::Failed), ..all.clone() };
    assert!(list(&editor, &failed).is_empty());
    let delivered = ListDeliveries { state: Some(DeliveryState::Delivered), ..all.clone() };
    assert_eq!(list(&admin, &delivered).len(), 2);
    assert!(list(&buyer, &all).is_empty());
    assert!(find(&editor, &first).is_ok() && find(&admin, &first).is_ok());
    assert_eq!(find(&buyer, &first).unwrap_err().status, 404);
    assert_eq!(ask(&server, "/user/v1/delivery/x", DEMO_KEY).status(), 400);
    assert_eq!(ask(&server, "/user/v1/delivery?state=gone", DEMO_KEY).status(), 400);
    assert_eq!(server.get(&format!("/user/v1/delivery/{first}")).status(), 401);
}

#[test]
fn channels_are_added_and_removed_by_command_and_their_secrets_are_never_shown() {
    let server = Server::demo();
    let file = server.dir.path().join("hook.json");
    let settings = json!({ "url": "https://hooks.example/path-secret", "secret": SECRET });
    fs::write(&file, settings.to_string()).unwrap();
    let add = ["channel", "add", "demo-editor", "hook", "--method", "webhook", "--format", ".JPG"];
    let from_file = ["--settings-file", &file.to_string_lossy()].map(str::to_owned);
    let from_file = from_file.each_ref().map(String::as_str);
    let (stdout, stderr) = run(&server, &[&add[..], &from_file].concat(), 0);
    assert!(stdout.is_empty() && stderr.contains("user:demo-editor:hook"), "{stderr}");
    run(&server, &[&add[..], &from_file].concat(), 1);
    let list = |more: &[&str]| run(&server, &[&["channel", "list"], more].concat(), 0).0;
    let listed: Value = serde_json::from_str(&list(&["--user", "demo-editor", "--json"])).unwrap();
    let found = listed.as_array().unwrap().iter().find(|one| one["name"] == "hook").unwrap();
    assert_eq!(found["channel"], "user:demo-editor:hook");
    assert_eq!(found["formats"], json!(["_NormalHires.jpg"]));
    assert_eq!(found["settings"]["secret"], "***");
    assert_eq!(found["active"], true);
    run(&server, &["channel", "disable", "demo-editor", "hook"], 0);
    assert!(list(&[]).contains("disabled"));
    for shown in [list(&[]), listed.to_string()] {
        assert!(!shown.contains(SECRET) && !shown.contains("path-secret"), "{shown}");
    }
    run(&server, &["channel", "remove", "demo-editor", "hook"], 0);
    assert!(!list(&[]).contains("hook"));
    run(&server, &["channel", "remove", "demo-editor", "hook"], 1);
    let bad = |arguments: &[&str], status: i32, part: &str| {
        let (_, stderr) = run(&server, arguments, status);
        assert!(stderr.contains(part) && !stderr.contains(SECRET), "{stderr}");
    };
    let secret = format!("secret={SECRET}");
    bad(&[&add[..], &["--setting", &secret]].concat(), 1, "settings.url is missing");
    bad(&[&add[..], &["--setting", SECRET]].concat(), 2, "NAME=VALUE");
    bad(&[&add[..], &["--setting", &format!("secret:={SECRET}")]].concat(), 2, "JSON");
    bad(
        &["channel", "add", "nobody", "x", "--method", "download", "--format", ".json"],
        1,
        "nobody",
    );
    bad(
        &["channel", "add", "demo-editor", "x", "--method", "pigeon", "--format", ".json"],
        2,
        "sftp",
    );
    bad(
        &["channel", "add", "demo-editor", "x", "--method", "download", "--format", ".zip"],
        1,
        ".zip",
    );
    bad(&["channel", "add", "demo-editor", "x", "--method", "download"], 2, "--format");
}

#[test]
fn channels_are_imported_with_the_accounts_file_and_a_bad_one_is_named_with_its_setting() {
    let server = Server::demo();
    let file = server.dir.path().join("channels.json");
    let import = |channel: Value, status: i32| {
        fs::write(&file, json!({ "channels": [channel] }).to_string()).unwrap();
        run(&server, &["import", "--json", &file.to_string_lossy()], status)
    };
    let channel = |settings: Value| {
        json!({ "owner": "demo-editor", "name": "ftp", "method": "ftp", "formats": [".jpg"],
            "settings": settings })
    };
    let whole = json!({ "host": "ftp.example", "username": "u", "password": SECRET });
    let counts = |stdout: &str| -> Value {
        let report: Value = serde_json::from_str(stdout).unwrap();
        report["channels"].clone()
    };
    let (stdout, _) = import(channel(whole.clone()), 0);
    assert_eq!(counts(&stdout), json!({ "created": 1, "updated": 0, "unchanged": 0 }));
    let (stdout, _) = import(channel(whole.clone()), 0);
    assert_eq!(counts(&stdout), json!({ "created": 0, "updated": 0, "unchanged": 1 }));
    let mut wrong = whole;
    wrong["port"] = json!("21");
    let (_, stderr) = import(channel(wrong), 1);
    assert!(stderr.contains(r#"channels[0] "user:demo-editor:ftp": settings.port"#), "{stderr}");
    assert!(!stderr.contains(SECRET), "{stderr}");
}
