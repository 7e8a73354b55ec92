//! An S3 server of a test's own with a gate before it, which counts bytes and breaks what a test wants
//! to be broken; archives whose originals lie in it.
//!
//! The server is an emulation that checks signatures. With the variable `WIREPHOTO_TEST_GARAGE`, the path of
//! the program, it is a cluster of three nodes of Garage (`tests/garage.sh`).

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

/// The same addresses from every server, so that the same bytes come.
pub const BASE: [&str; 3] =
    ["server.public_url=http://photos.example", "media.warm=false", "server.unready_s=0"];
/// For buckets that hang: a test should not wait for long, and a busy machine needs its time.
pub const HASTY: [&str; 2] = ["store.answer_s=5", "store.give_up_s=12"];
/// Items of the demo archive that are taken in: a baseline and a progressive photograph, a graphic, a
/// video.
pub const DEMO: [&str; 4] =
    ["image/demo-trumma-och-vin", HEAVY, "graphic/demo-sweden-map", "video/demo-hubble-pan"];
/// Progressive, and heavy enough for a level.
pub const HEAVY: &str = "image/demo-dandelion-seeding";

/// What a gate does with requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Hang,
    Close,
    Refuse,
    /// 503, as from a service that has too much to do.
    Fail,
}

#[derive(Default)]
struct Rules {
    /// What to do with requests whose head contains a text.
    broken: Option<(&'static str, Way)>,
    /// Connections that hang, until the rule ends.
    held: Vec<TcpStream>,
}

/// Stands in front of the S3 server.
pub struct Gate {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of answers, heads and all.
    bytes: AtomicU64,
    requests: AtomicU64,
    /// Their heads.
    heads: Mutex<Vec<String>>,
    rules: Mutex<Rules>,
}

impl Gate {
    pub fn before(port: u64) -> Self {
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

    /// Breaks requests whose head contains `text` from now on.
    pub fn breaks(&self, text: &'static str, way: Way) {
        self.state.rules().broken = Some((text, way));
    }

    pub fn mends(&self) {
        let mut rules = self.state.rules();
        rules.broken = None;
        rules.held.clear();
    }

    /// The bytes and requests that `work` takes.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> (T, u64, u64) {
        let read = || (self.state.bytes.load(SeqCst), self.state.requests.load(SeqCst));
        let before = read();
        let done = work();
        let after = read();
        (done, after.0 - before.0, after.1 - before.1)
    }

    /// How many requests came so far whose head contains `text`.
    pub fn asked(&self, text: &str) -> usize {
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

    /// One request a connection, so that each passes here.
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
        // Looks whether the bucket is there and whose it is come all the time.
        let counts = !text.contains("/archive-id");
        if counts {
            self.requests.fetch_add(1, SeqCst);
            self.heads.lock().unwrap().push(text.clone());
        }
        let broken = {
            let mut rules = self.rules();
            let broken = rules.broken.filter(|(part, _)| text.contains(part));
            if let Some((_, Way::Hang)) = broken {
                rules.held.push(client.try_clone().unwrap());
            }
            broken
        };
        match broken {
            None => self.pass(client, head, (server, counts)),
            Some((_, Way::Close)) => {}
            // It is held above, and nobody answers.
            Some((_, Way::Hang)) => {}
            Some((_, way @ (Way::Refuse | Way::Fail))) => {
                let (status, body) = match way {
                    Way::Fail => ("503 Service Unavailable", FAILURE),
                    Way::Refuse | Way::Hang | Way::Close => ("403 Forbidden", REFUSAL),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\n\
                     Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                drop(client.write_all(answer.as_bytes()));
                drop(client.shutdown(Shutdown::Write));
                // A body that is not read would reset the connection before the answer is.
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

/// The variable that names the program of Garage.
const GARAGE: &str = "WIREPHOTO_TEST_GARAGE";

/// Whether buckets lie in Garage.
pub fn is_garage() -> bool {
    std::env::var_os(GARAGE).is_some()
}

/// How the S3 server refuses.
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
        let gate = Gate::before(s3.ready["port"].as_u64().unwrap());
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

    /// Requests that the S3 server got so far.
    pub fn requests(&self) -> u64 {
        self.gate.state.requests.load(SeqCst)
    }

    /// The settings of an archive whose originals lie below `prefix`, and `more`.
    pub fn settings(&self, prefix: &str, more: &[&str]) -> Vec<String> {
        let own = of_bucket(&self.s3, &format!("127.0.0.1:{}", self.gate.port), prefix);
        let more = BASE.iter().chain(more).map(|setting| (*setting).to_owned());
        own.into_iter().chain(more).collect()
    }

    pub fn obey(&mut self, order: &Value) -> Value {
        self.s3.ask(&order.to_string())
    }

    pub fn keys(&mut self, prefix: &str) -> Vec<String> {
        serde_json::from_value(self.obey(&json!({ "do": "list", "prefix": prefix }))).unwrap()
    }
}

/// The settings of a store below `prefix` in the bucket of an S3 server, which is asked at `endpoint`.
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

/// Runs a command on the data directory in `dir`: what it printed and its status.
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
pub fn well(dir: &Path, settings: &[String], arguments: &[&str]) -> String {
    let (said, status) = run(dir, settings, arguments);
    assert_eq!(status, 0, "{arguments:?}: {said}");
    said
}

pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Takes the items of [`DEMO`] and the accounts in.
pub fn take_in(dir: &Path, settings: &[String]) {
    let demo: Vec<String> =
        DEMO.iter().map(|item| text(&checkout(&format!("media-store/demo/{item}")))).collect();
    let mut arguments = vec!["ingest"];
    arguments.extend(demo.iter().map(String::as_str));
    well(dir, settings, &arguments);
    import(dir, settings);
}

pub fn import(dir: &Path, settings: &[String]) {
    well(dir, settings, &["import", &text(&checkout("media-store/accounts.json"))]);
    let key = json!({"user": "demo-admin", "key": kit::PROVIDER, "name": "bucket"});
    let more = dir.join("more.json");
    fs::write(&more, json!({ "apiKeys": [key] }).to_string()).unwrap();
    well(dir, settings, &["import", &text(&more)]);
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
