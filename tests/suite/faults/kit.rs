//! Faults that are switched on and off while a server runs, and the requests made meanwhile.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use api::notifications::{CreateEmailNotification, NotificationMediaType, NotificationQuery};
use api::orders::{ListOrders, ORDERS_LISTED_MAX, Order};
use api::user::LoadCaller;
use api::{Answer, Endpoint, NoBody, target};
use reqwest::Method;
use reqwest::StatusCode;
use reqwest::blocking::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cdn::Front;
use crate::common::pictures::Picture;
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, WAIT_TIMEOUT, checkout, news, pause};
use crate::notifications::{email, stream};

/// Size of the control file in bytes, as in `shim.c`.
const CONTROL_BYTES: usize = 4096;
/// The API key of a provider's program.
pub const PROVIDER: &str = "faults-key-0000-0000-000000000001";
/// The API key of a user with prepaid downloads.
pub const BUYER: &str = "demo-key-0000-0000-000000000003";
/// Prepaid downloads of the buyer.
pub const DOWNLOADS: u64 = 1_000_000;

/// The address that clients talk to: a server, or a load balancer in front of several.
pub trait Site: Sync {
    fn url(&self) -> &str;
    fn client(&self) -> &Client;

    /// Returns whether a response leaves the outcome open: the request may have been executed or not.
    fn is_in_doubt(&self, _: StatusCode) -> bool {
        false
    }

    /// The timeout of a poll.
    fn poll_timeout(&self) -> Duration {
        WAIT_TIMEOUT
    }

    fn status(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        let request = self.client().get(format!("{}{path}", self.url()));
        let add =
            |request: RequestBuilder, (name, value): &(&str, &str)| request.header(*name, *value);
        let request = headers.iter().fold(request, add);
        request.send().expect("answer").status().as_u16()
    }
}

impl Site for Server {
    fn url(&self) -> &str {
        &self.url
    }

    fn client(&self) -> &Client {
        &self.client
    }
}

impl Site for Front {
    fn url(&self) -> &str {
        &self.url
    }

    fn client(&self) -> &Client {
        &self.client
    }
}

/// Repeats `poll` until it returns a value or [`WAIT_TIMEOUT`] has passed.
pub fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(start.elapsed() < WAIT_TIMEOUT, "{what} did not happen");
        pause();
    }
}

/// The preloaded library that injects faults into system calls, compiled once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let name = format!("faults-{}.so", std::process::id());
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = checkout("tests/suite/faults/shim.c");
        let mut cc = Command::new("cc");
        let cc = cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        let said = output(cc.arg(&library).arg(source).arg("-ldl"));
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        library
    })
}

/// Faults of the processes that are started with [`Faults::environment`].
pub struct Faults {
    dir: TempDir,
    control: File,
}

impl Faults {
    /// Creates an empty set of faults.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = File::options().create(true).truncate(true).write(true).clone();
        let control = options.open(dir.path().join("control")).unwrap();
        control.write_all_at(&[0; CONTROL_BYTES], 0).unwrap();
        Self { dir, control }
    }

    /// The environment of a process that is subject to these faults.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let control = self.dir.path().join("control");
        [("LD_PRELOAD", shim().into()), ("FAULT_CONTROL", control.into())]
    }

    /// Replaces all faults, each in the syntax of `shim.c`.
    pub fn set(&self, faults: &[&str]) {
        let mut text: Vec<u8> =
            faults.iter().flat_map(|one| format!("{one}\n").into_bytes()).collect();
        text.resize(CONTROL_BYTES, 0);
        // The first byte activates the list.
        self.control.write_all_at(&[0], 0).unwrap();
        self.control.write_all_at(&text[1..], 1).unwrap();
        self.control.write_all_at(&text[..1], 0).unwrap();
    }

    /// Removes all active faults.
    pub fn clear(&self) {
        self.set(&[]);
    }

    /// A server over `dir`, subject to these faults.
    pub fn start(&self, dir: TempDir, settings: &[&str]) -> Server {
        Server::start_with(dir, settings, &self.environment())
    }

    /// Runs a command of the binary on the server's data directory, subject to these faults.
    pub fn command(&self, server: &Server, arguments: &[&str]) -> Output {
        let mut command = wirephoto(server.dir.path());
        command.envs(self.environment());
        output(command.args(arguments).arg("--data").arg(server.data()))
    }
}

/// A data directory with `items` and accounts: the demo accounts, the provider's key and a buyer with
/// [`DOWNLOADS`].
pub fn scene(items: &[(&str, Value)]) -> TempDir {
    scene_with(items, &[])
}

/// As [`scene`], in the database and store of the settings.
pub fn scene_with(items: &[(&str, Value)], settings: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let incoming = dir.path().join("incoming");
    std::fs::create_dir_all(&incoming).unwrap();
    news::write(&incoming, items);
    let more = json!({
        "agreements": [{
            "id": 1002, "organization": 2, "type": "Prepaid", "superAgreement": false,
            "products": ["FOTO"], "prepaids": {"total": DOWNLOADS, "remaining": DOWNLOADS},
        }],
        "apiKeys": [{"user": "demo-admin", "key": PROVIDER, "name": "faults"}],
    });
    let accounts = dir.path().join("more.json");
    std::fs::write(&accounts, more.to_string()).unwrap();
    let demo = checkout("media-store/accounts.json");
    for (word, file) in [("ingest", &incoming), ("import", &demo), ("import", &accounts)] {
        let mut command = wirephoto(dir.path());
        command.arg(word).arg(file).arg("--data").arg(dir.path().join("data"));
        // Slow password hashing is not under test.
        command.args(["--set", "auth.hash_memory_kib=64", "--set", "auth.hash_iterations=1"]);
        command.args(settings.iter().flat_map(|setting| ["--set", *setting]));
        let said = output(&mut command);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    dir
}

/// A photograph's document with this headline.
pub fn document(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00")
}

/// A small photograph, different for each number.
pub fn photograph(number: usize) -> Vec<u8> {
    Picture::flat(32, 32, colour(number)).jpeg()
}

/// The colour of a photograph; neighbouring numbers differ by more than JPEG changes.
pub fn colour(number: usize) -> [u8; 3] {
    let level = |place: u32| u8::try_from(number / 16_usize.pow(place) % 16 * 16).unwrap();
    [level(0), level(1), level(2)]
}

/// A request with an API key.
pub fn call(site: &impl Site, method: Method, path: &str, key: &str) -> RequestBuilder {
    let request = site.client().request(method, format!("{}{path}", site.url()));
    request.header("authorization", format!("ApiKey {key}"))
}

/// A request with a JSON body.
pub fn call_with(
    site: &impl Site,
    (method, path): (Method, &str),
    key: &str,
    body: &Value,
) -> RequestBuilder {
    let request = call(site, method, path, key).header("content-type", "application/json");
    request.body(body.to_string())
}

/// The upload of a photograph with its document.
pub fn upload(site: &impl Site, key: &str, headline: &str, jpeg: &[u8]) -> RequestBuilder {
    let mut body = Vec::new();
    let document = document(headline).to_string().into_bytes();
    for (name, bytes) in [("item", document.as_slice()), ("NormalHires.jpg", jpeg)] {
        let head = format!("--xyzzy\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    body.extend(b"--xyzzy--\r\n");
    call(site, Method::PUT, &format!("/ingest/v1/{key}"), PROVIDER)
        .header("content-type", "multipart/form-data; boundary=xyzzy")
        .body(body)
}

/// The form of the demo client, followed by `fields`.
pub fn form<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let client = [("client_id", "demo-client"), ("client_secret", "demo-client-secret")];
    [fields, &client].concat()
}

/// The form of a login by password.
pub fn login() -> Vec<(&'static str, &'static str)> {
    form(&[
        ("grant_type", "password"),
        ("username", "demo-editor"),
        ("password", "demo-editor-password"),
        ("scope", "roles user"),
    ])
}

/// A POST of a form to the OAuth2 service.
pub fn post(site: &impl Site, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
    site.client().post(format!("{}/o/oauth2/{path}", site.url())).form(fields)
}

/// The JSON of a response that must be successful.
#[track_caller]
pub fn ok_json(response: Response) -> Value {
    let status = response.status();
    let text = response.text().unwrap();
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// A string field of a JSON object.
#[track_caller]
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}")).to_owned()
}

/// Calls an endpoint of the APIs, which must answer.
#[track_caller]
fn ask<E>(site: &impl Site, endpoint: &E, key: &str) -> <E::Answer as Answer>::Content
where
    E: Endpoint<Body = NoBody>,
{
    let answer = call(site, E::METHOD, &target(endpoint), key).send().unwrap();
    serde_json::from_value(ok_json(answer)).unwrap()
}

/// Creates a stream of the items of every media type that match `q`; returns its id.
pub fn create_stream(site: &impl Site, q: &str) -> String {
    ask(site, &stream(None, q), DEMO_KEY).id.to_string()
}

/// Creates a notification that mails every item.
pub fn create_mail(site: &impl Site) {
    let media_type = NotificationMediaType(None);
    let query = NotificationQuery::default();
    let mail = CreateEmailNotification { media_type, query, ..email("t", "a@example.org") };
    ask(site, &mail, DEMO_KEY);
}

/// Polls a stream for at most a second; the response has the ids of items.
pub fn read_stream(site: &impl Site, id: &str) -> Response {
    let path = format!("/content/v1/_all/notification/{id}/stream?wait=1&layout=bare");
    call(site, Method::GET, &path, DEMO_KEY).send().unwrap()
}

/// Waits until `count` items have been queued.
pub fn wait_for_matches(server: &Server, count: u32) {
    server.until("the items to be queued", || {
        let found = server.metric("wirephoto_matches_total", "");
        (found >= f64::from(count)).then_some(())
    });
}

/// The number of downloads that the buyer has used.
pub fn downloads_used(site: &impl Site) -> u64 {
    let agreements = ask(site, &LoadCaller {}, BUYER).agreements;
    let prepaid = agreements.iter().find(|agreement| agreement.id == 1002).unwrap();
    DOWNLOADS - u64::from(prepaid.prepaids.unwrap().remaining)
}

/// The orders of the buyer's organization.
pub fn orders(site: &impl Site) -> Vec<Order> {
    ask(site, &ListOrders { size: ORDERS_LISTED_MAX, ..ListOrders::default() }, BUYER).orders
}
