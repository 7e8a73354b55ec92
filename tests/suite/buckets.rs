//! A per-test S3 server behind a proxy that counts bytes and injects faults; archives whose originals are stored in
//! it.
//!
//! The server is an emulation that checks signatures. If the variable `TEST_GARAGE` is the path of the
//! Garage program, it is a cluster of three Garage nodes (`tests/garage.sh`).

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, ports::free_port};
use crate::faults::kit::{self, call};
use crate::receivers::Receiver;

/// A fixed base URL, so that every server returns the same bytes.
pub const BASE: [&str; 3] =
    ["server.public_url=http://photos.example", "media.warm=false", "server.unready_s=0"];
/// Timeouts for tests with a hanging bucket: short, but long enough for a busy machine.
pub const SHORT_TIMEOUTS: [&str; 2] = ["store.answer_s=5", "store.give_up_s=12"];
/// Items of the demo archive that tests ingest: a baseline and a progressive photograph, a graphic, a video.
pub const DEMO: [&str; 4] = [
    "image/demo-trumma-och-vin",
    LARGE_PROGRESSIVE,
    "graphic/demo-sweden-map",
    "video/demo-hubble-pan",
];
/// Progressive, and large enough for a standard set with a base.
pub const LARGE_PROGRESSIVE: &str = "image/demo-dandelion-seeding";

/// A fault that the gate injects into requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Hang,
    Close,
    Refuse,
    /// 503, as from an overloaded service.
    Fail,
}

#[derive(Default)]
struct Rules {
    /// The fault for requests whose head contains this text.
    broken: Option<(&'static str, Fault)>,
    /// Connections that hang until the fault is cleared.
    held: Vec<TcpStream>,
}

/// A fault-injecting proxy in front of the S3 server.
pub struct Gate {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of all responses, including their heads.
    bytes: AtomicU64,
    requests: AtomicU64,
    /// Heads of all requests.
    heads: Mutex<Vec<String>>,
    rules: Mutex<Rules>,
}

impl Gate {
    pub fn in_front_of(port: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = Arc::<State>::default();
        let gate = Self { port: listener.local_addr().unwrap().port(), state: Arc::clone(&state) };
        let server = format!("127.0.0.1:{port}");
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (state, server) = (Arc::clone(&state), server.clone());
                std::thread::spawn(move || state.serve(client, &server));
            }
        });
        gate
    }

    /// Injects a fault into every later request whose head contains `text`.
    pub fn inject(&self, text: &'static str, way: Fault) {
        self.state.rules().broken = Some((text, way));
    }

    pub fn clear_fault(&self) {
        let mut rules = self.state.rules();
        rules.broken = None;
        rules.held.clear();
    }

    /// Runs `work`; returns its result and the number of bytes and requests that it caused.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> (T, u64, u64) {
        let read = || (self.state.bytes.load(SeqCst), self.state.requests.load(SeqCst));
        let before = read();
        let done = work();
        let after = read();
        (done, after.0 - before.0, after.1 - before.1)
    }

    /// The number of requests so far whose head contains `text`.
    pub fn request_count(&self, text: &str) -> usize {
        self.state.heads.lock().unwrap().iter().filter(|head| head.contains(text)).count()
    }
}

const REFUSAL: &str = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>\
                       <Message>Not by this key</Message></Error>";
const FAILURE: &str = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code>\
                       <Message>Too much at once</Message></Error>";

impl State {
    fn rules(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one request per connection, so that the gate sees every request.
    fn serve(&self, mut client: TcpStream, server: &str) {
        let mut head = Vec::new();
        let mut piece = [0; 65_536];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match client.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(read) => head.extend_from_slice(&piece[..read]),
            }
        }
        let text = String::from_utf8_lossy(&head[..head.len().min(4096)]).into_owned();
        // The service checks periodically that the bucket exists and which archive it belongs to.
        let counts = !text.contains("/archive-id");
        if counts {
            self.requests.fetch_add(1, SeqCst);
            self.heads.lock().unwrap().push(text.clone());
        }
        let broken = {
            let mut rules = self.rules();
            let broken = rules.broken.filter(|(part, _)| text.contains(part));
            if let Some((_, Fault::Hang)) = broken {
                rules.held.push(client.try_clone().unwrap());
            }
            broken
        };
        match broken {
            None => self.pass(client, head, (server, counts)),
            Some((_, Fault::Close)) => {}
            // The connection is kept open above, without a response.
            Some((_, Fault::Hang)) => {}
            Some((_, way @ (Fault::Refuse | Fault::Fail))) => {
                let (status, body) = match way {
                    Fault::Fail => ("503 Service Unavailable", FAILURE),
                    Fault::Refuse | Fault::Hang | Fault::Close => ("403 Forbidden", REFUSAL),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                drop(client.write_all(answer.as_bytes()));
                drop(client.shutdown(Shutdown::Write));
                // An unread request body would reset the connection before the response is sent.
                while client.read(&mut piece).is_ok_and(|read| read > 0) {}
            }
        }
    }

    fn pass(&self, mut client: TcpStream, mut head: Vec<u8>, (server, counts): (&str, bool)) {
        let line = head.windows(2).position(|end| end == b"\r\n").unwrap();
        head.splice(line..line, *b"\r\nConnection: close");
        let mut server = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || {
            let sent = to.write_all(&head).and_then(|()| std::io::copy(&mut from, &mut to));
            drop(sent.map(|_| to.shutdown(Shutdown::Write)));
        });
        let mut piece = [0; 65_536];
        while let Ok(read @ 1..) = server.read(&mut piece) {
            if counts {
                self.bytes.fetch_add(read as u64, SeqCst);
            }
            if client.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        drop(client.shutdown(Shutdown::Both));
        drop(server.shutdown(Shutdown::Both));
    }
}

/// The variable with the path of the Garage program.
const GARAGE: &str = "TEST_GARAGE";

/// Returns whether the buckets of this run are in Garage.
pub fn is_garage() -> bool {
    std::env::var_os(GARAGE).is_some()
}

/// The S3 server's refusals.
pub struct Refusals {
    pub unknown_key: &'static str,
    pub wrong_secret: &'static str,
}

/// An S3 server behind a gate.
pub struct Bucket {
    pub s3: Receiver,
    pub gate: Gate,
}

impl Bucket {
    pub fn start() -> Self {
        let s3 = if is_garage() {
            let ports = [(); 6].map(|()| free_port().to_string());
            Receiver::start("garage_server.py", &ports.join(","))
        } else {
            Receiver::start("s3_server.py", "")
        };
        let gate = Gate::in_front_of(s3.ready["port"].as_u64().unwrap());
        Self { s3, gate }
    }

    pub fn refusals(&self) -> Refusals {
        if is_garage() {
            Refusals {
                unknown_key: "AccessDenied: Forbidden: No such key",
                wrong_secret: "AccessDenied: Forbidden: Invalid signature",
            }
        } else {
            Refusals { unknown_key: "InvalidAccessKeyId", wrong_secret: "SignatureDoesNotMatch" }
        }
    }

    /// The number of requests that the S3 server has received.
    pub fn requests(&self) -> u64 {
        self.gate.state.requests.load(SeqCst)
    }

    /// The settings of an archive whose originals are below `prefix`, followed by `more`.
    pub fn settings(&self, prefix: &str, more: &[&str]) -> Vec<String> {
        let own = of_bucket(&self.s3, &format!("127.0.0.1:{}", self.gate.port), prefix);
        let more = BASE.iter().chain(more).map(|setting| (*setting).to_owned());
        own.into_iter().chain(more).collect()
    }

    pub fn send_command(&mut self, order: &Value) -> Value {
        self.s3.ask(&order.to_string())
    }

    pub fn keys(&mut self, prefix: &str) -> Vec<String> {
        serde_json::from_value(self.send_command(&json!({ "do": "list", "prefix": prefix })))
            .unwrap()
    }
}

/// The settings of a store below `prefix` in the bucket of an S3 server that is reached at `endpoint`.
pub fn of_bucket(s3: &Receiver, endpoint: &str, prefix: &str) -> [String; 6] {
    let text = |name: &str| s3.ready[name].as_str().unwrap().to_owned();
    [
        format!("store.originals=s3://bilder/{prefix}"),
        format!("store.endpoint=http://{endpoint}"),
        "store.plain_http=true".to_owned(),
        "store.region=eu-north-1".to_owned(),
        format!("store.access_key_id={}", text("id")),
        format!("store.secret_access_key={}", text("key")),
    ]
}

/// Runs a command on the data directory in `dir`; returns its output and status.
pub fn run(dir: &Path, settings: &[String], arguments: &[&str]) -> (String, i32) {
    let mut command = wirephoto(dir);
    command.args(arguments).arg("--data").arg(dir.join("data"));
    for setting in settings {
        command.args(["--set", setting]);
    }
    let said = output(&mut command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (format!("{}{}", text(&said.stdout), text(&said.stderr)), said.status.code().unwrap_or(-1))
}

#[track_caller]
pub fn run_ok(dir: &Path, settings: &[String], arguments: &[&str]) -> String {
    let (said, status) = run(dir, settings, arguments);
    assert_eq!(status, 0, "{arguments:?}: {said}");
    said
}

pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Ingests the items of [`DEMO`] and imports the accounts.
pub fn ingest_demo(dir: &Path, settings: &[String]) {
    let demo: Vec<String> =
        DEMO.iter().map(|item| text(&checkout(&format!("media-store/demo/{item}")))).collect();
    let mut arguments = vec!["ingest"];
    arguments.extend(demo.iter().map(String::as_str));
    run_ok(dir, settings, &arguments);
    import(dir, settings);
}

pub fn import(dir: &Path, settings: &[String]) {
    run_ok(dir, settings, &["import", &text(&checkout("media-store/accounts.json"))]);
    let key = json!({"user": "demo-admin", "key": kit::PROVIDER, "name": "bucket"});
    let more = dir.join("more.json");
    fs::write(&more, json!({ "apiKeys": [key] }).to_string()).unwrap();
    run_ok(dir, settings, &["import", &text(&more)]);
}

pub fn serve(dir: tempfile::TempDir, settings: &[String]) -> Server {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    Server::start(dir, &settings)
}

pub fn get(server: &Server, path: &str) -> Response {
    call(server, Method::GET, path, DEMO_KEY).send().unwrap()
}

pub fn body(server: &Server, path: &str) -> Vec<u8> {
    let response = get(server, path);
    assert_eq!(response.status(), 200, "{path}: {}", server.log());
    response.bytes().unwrap().to_vec()
}
