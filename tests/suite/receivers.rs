//! Deliveries to real servers for FTP, SFTP, S3, mail and webhooks: the delivered files equal those of the URLs byte
//! for byte, and errors reveal no secret. The servers are the Python programs in `tests/clients`; their
//! dependencies are installed once, beside the build.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use aws_lc_rs::digest;
use serde_json::{Value, json};

use crate::{
    clients,
    common::{DEMO_KEY, Server, checkout, server::output},
    deliveries::{ITEM, ask, id, run, trigger, until},
};

/// The password that the servers accept.
pub const PASSWORD: &str = "s3cret-password";
/// A password that they refuse and that must not appear anywhere.
const WRONG: &str = "wr0ng-and-hidden";
/// The formats that the channels of these tests deliver.
const FORMATS: [&str; 3] = [".json", "_NormalHires.jpg", "_NormalThumbnail.jpg"];
const SETTINGS: [&str; 2] = ["delivery.retry_first_ms=50", "server.unready_s=0"];

pub fn python(script: &str) -> Command {
    let folder = clients::python_scripts("outbound.txt", "outbound");
    let mut command = clients::client(&folder.join("outbound/bin/python"));
    // From the checkout, because other tests replace their copies while these run.
    command.arg(checkout("tests/clients").join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A server on loopback that is stopped on drop.
pub struct Receiver {
    /// The line that it printed when it was ready.
    pub ready: Value,
    folder: tempfile::TempDir,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Receiver {
    /// Starts a script of `tests/clients` and waits until it reports that it is ready.
    pub fn start(script: &str, mode: &str) -> Self {
        Self::run(python(script), mode)
    }

    /// Runs `command`, which starts such a script, and waits until it reports that it is ready.
    pub fn run(mut command: Command, mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.arg(folder.path()).arg(mode).stderr(log);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut receiver = Self { ready: Value::Null, folder, process, input, output };
        receiver.ready = receiver.next();
        receiver
    }

    /// Sends a signal to the server.
    pub fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// The next line that it prints.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}\n{}", log()))
    }

    /// Sends a line and returns the answer.
    pub fn ask(&mut self, line: &str) -> Value {
        writeln!(self.input, "{line}").unwrap();
        self.next()
    }

    /// The folder of the received files.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// The certificate of its authority in PEM.
    pub fn ca(&self) -> String {
        fs::read_to_string(self.ready["ca"].as_str().unwrap()).unwrap()
    }

    /// The settings of a channel to an account on the server.
    fn account(&self) -> Value {
        json!({
            "host": "127.0.0.1", "port": self.ready["port"], "username": "desk",
            "password": PASSWORD, "path": "in/desk",
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ready["port"])
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// `settings` with `more` added or replaced.
fn with(mut settings: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    settings
}

/// Adds the channel `name` to the demo editor and triggers a delivery of the item through it.
fn deliver(server: &Server, name: &str, method: &str, settings: &Value) -> String {
    let file = server.dir.path().join(format!("{name}.json"));
    fs::write(&file, settings.to_string()).unwrap();
    let file = file.to_string_lossy();
    let mut arguments = vec!["channel", "add", "demo-editor", name, "--method", method];
    arguments.extend(["--settings-file", &*file]);
    arguments.extend(FORMATS.iter().flat_map(|format| ["--format", *format]));
    run(server, &arguments, 0);
    id(trigger(server, ITEM, name))
}

/// The files that the URLs of the item deliver, by name.
fn expected(server: &Server) -> Vec<(String, Vec<u8>)> {
    let file = |format: &&str| {
        let response = ask(server, &format!("{ITEM}{format}"), DEMO_KEY);
        assert_eq!(response.status(), 200, "{format}");
        (format!("demo-urtavla{format}"), response.bytes().unwrap().to_vec())
    };
    FORMATS.iter().map(file).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    let sum = digest::digest(&digest::SHA256, bytes);
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mime(name: &str) -> &'static str {
    if name.ends_with(".json") { "application/json" } else { "image/jpeg" }
}

/// Checks that the folder holds the files of the item and nothing else.
fn check_folder(server: &Server, folder: &Path) {
    for (name, bytes) in expected(server) {
        assert!(fs::read(folder.join(&name)).unwrap() == bytes, "{name} arrived otherwise");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), FORMATS.len());
}

#[test]
fn ftp_and_ftps_servers_get_the_files_that_the_urls_deliver() {
    let server = Server::demo_with(&SETTINGS);
    for (mode, method) in [("plain", "ftp"), ("tls", "ftps"), ("implicit", "ftps")] {
        let receiver = Receiver::start("ftp_server.py", mode);
        let settings = match method {
            "ftp" => receiver.account(),
            _ => {
                let trust = json!({ "ca": receiver.ca(), "implicit": mode == "implicit" });
                with(receiver.account(), &trust)
            }
        };
        let id = deliver(&server, mode, method, &settings);
        until(&server, &id, "delivered");
        check_folder(&server, &receiver.files().join("in/desk"));
    }
}

#[test]
fn an_sftp_server_with_the_pinned_key_gets_the_files_that_the_urls_deliver() {
    let server = Server::demo_with(&SETTINGS);
    let receiver = Receiver::start("sftp_server.py", "password");
    let pinned = json!({ "hostKey": receiver.ready["fingerprints"][0] });
    let settings = with(receiver.account(), &pinned);
    let id = deliver(&server, "sftp", "sftp", &settings);
    until(&server, &id, "delivered");
    check_folder(&server, &receiver.files().join("in/desk"));
    // Nothing is sent to a server with another host key.
    let other = json!({ "hostKey": format!("SHA256:{}", "A".repeat(43)), "path": "other" });
    let other = deliver(&server, "other", "sftp", &with(settings, &other));
    let error = until(&server, &other, "failed").error.unwrap();
    assert!(error.contains("the host key is SHA256:"), "{error}");
    assert!(!receiver.files().join("other").exists());
}

fn bucket(receiver: &Receiver) -> Value {
    json!({
        "endpoint": receiver.url(), "allowHttp": true, "bucket": "bilder", "prefix": "in/desk",
        "region": "eu-north-1", "accessKeyId": receiver.ready["id"],
        "secretAccessKey": receiver.ready["key"],
    })
}

#[test]
fn a_bucket_gets_the_files_that_the_urls_deliver_with_their_media_types() {
    let server = Server::demo_with(&SETTINGS);
    let mut receiver = Receiver::start("s3_server.py", "");
    let id = deliver(&server, "bucket", "s3", &bucket(&receiver));
    until(&server, &id, "delivered");
    for (name, bytes) in expected(&server) {
        let object = receiver.ask(&format!("in/desk/{name}"));
        assert_eq!(object["sha256"], sha256(&bytes), "{name}");
        assert_eq!(object["type"], mime(&name), "{name}");
        assert_eq!(object["count"], FORMATS.len(), "{object}");
    }
}

/// Starts a server whose mails go to `receiver`.
fn mailing(receiver: &Receiver, password: &str) -> Server {
    let port = format!("mail.port={}", receiver.ready["port"]);
    let password = format!("mail.password={password}");
    let mail = ["mail.host=127.0.0.1", "mail.tls=none", "mail.username=desk", &port, &password];
    let from = ["mail.from=Wire <wire@desk.example>"];
    Server::demo_with(&[&SETTINGS[..], &mail, &from].concat())
}

#[test]
fn a_mail_server_gets_a_mail_that_carries_the_files_that_the_urls_deliver() {
    let receiver = Receiver::start("smtp_server.py", "plain");
    let server = mailing(&receiver, PASSWORD);
    let settings = json!({ "to": ["desk@example.com", "Nattchef <natt@example.com>"] });
    let id = deliver(&server, "mail", "email", &settings);
    until(&server, &id, "delivered");
    let envelope = fs::read(receiver.files().join("0.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    let to = json!(["desk@example.com", "natt@example.com"]);
    let wanted = json!({
        "from": "wire@desk.example", "to": to, "encrypted": false, "login": true,
    });
    assert_eq!(envelope, wanted);
    let read = output(python("read_mail.py").arg(receiver.files().join("0.eml")));
    let mail: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(mail["id"], format!("<{id}@desk.example>"));
    assert_eq!(mail["to"], json!(["desk@example.com", "Nattchef <natt@example.com>"]));
    let document: Value = serde_json::from_slice(&expected(&server)[0].1).unwrap();
    assert_eq!(mail["subject"], document["headline"]);
    let files = expected(&server);
    let files = files
        .iter()
        .map(|(name, bytes)| json!({ "name": name, "type": mime(name), "sha256": sha256(bytes) }));
    assert_eq!(mail["files"], Value::from_iter(files));
    assert_eq!(mail["defects"], json!([]));
    assert!(mail["text"].as_str().unwrap().contains(&format!("{}{ITEM}", server.url)), "{mail}");
}

#[test]
fn a_webhook_gets_the_files_with_signatures_that_a_third_party_library_verifies() {
    let server = Server::demo_with(&SETTINGS);
    let mut receiver = Receiver::start("webhook_server.py", "plain");
    let settings = json!({
        "url": format!("{}/status/200", receiver.url()), "allowHttp": true, "mode": "files",
        "secret": receiver.ready["secret"],
    });
    let id = deliver(&server, "hook", "webhook", &settings);
    until(&server, &id, "delivered");
    for (index, (name, bytes)) in expected(&server).into_iter().enumerate() {
        let seen = receiver.next();
        assert_eq!(seen["verified"], true, "{seen}");
        assert_eq!(seen["id"], format!("{id}:{}", index + 1));
        assert_eq!((&seen["file"]["name"], &seen["type"]), (&json!(name), &json!(mime(&name))));
        let sum = sha256(&bytes);
        assert_eq!(seen["sha256"], sum, "{name}");
        assert_eq!(seen["file"]["sha256"], sum, "{name}");
    }
}

/// Checks that the delivery fails permanently on its first attempt and that the password is not disclosed.
fn check_refused(server: &Server, id: &str) {
    let failed = until(server, id, "failed");
    assert_eq!(failed.attempts, 1, "{failed:?}");
    let (listed, _) = run(server, &["delivery", "list", "--json"], 0);
    let (channels, _) = run(server, &["channel", "list", "--json"], 0);
    // As it was sent: the type drops properties that it does not know.
    let sent = ask(server, &format!("/user/v1/delivery/{id}"), DEMO_KEY).text().unwrap();
    for text in [sent, listed, channels, server.log()] {
        assert!(!text.contains(WRONG) && !text.contains(PASSWORD), "{text}");
    }
}

#[test]
fn a_wrong_password_fails_a_delivery_immediately_and_is_disclosed_nowhere() {
    let server = Server::demo_with(&SETTINGS);
    let wrong = json!({ "password": WRONG });
    let ftp = Receiver::start("ftp_server.py", "plain");
    check_refused(&server, &deliver(&server, "ftp", "ftp", &with(ftp.account(), &wrong)));
    let ftps = Receiver::start("ftp_server.py", "tls");
    let settings = with(with(ftps.account(), &wrong), &json!({ "ca": ftps.ca() }));
    check_refused(&server, &deliver(&server, "ftps", "ftps", &settings));
    let sftp = Receiver::start("sftp_server.py", "password");
    let pinned = json!({ "hostKey": sftp.ready["fingerprints"][0] });
    let settings = with(with(sftp.account(), &wrong), &pinned);
    check_refused(&server, &deliver(&server, "sftp", "sftp", &settings));
    let s3 = Receiver::start("s3_server.py", "");
    let settings = with(bucket(&s3), &json!({ "secretAccessKey": WRONG }));
    check_refused(&server, &deliver(&server, "s3", "s3", &settings));
}

#[test]
fn a_mail_server_that_refuses_our_login_fails_a_delivery_and_the_password_is_disclosed_nowhere() {
    let receiver = Receiver::start("smtp_server.py", "plain");
    let server = mailing(&receiver, WRONG);
    let id = deliver(&server, "mail", "email", &json!({ "to": "desk@example.com" }));
    check_refused(&server, &id);
    assert_eq!(fs::read_dir(receiver.files()).unwrap().count(), 0);
}
