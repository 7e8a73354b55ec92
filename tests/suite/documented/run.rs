//! Runs code blocks of the documentation as a reader would: with the binary on the path and `curl`, at the address
//! that the pages name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::pages::block;
use crate::common::postgres::{self, Cluster};
use crate::common::server::{demo_originals, isolate_environment, output, wirephoto};
use crate::common::{DEMO_KEY, LARGE, Server, pictures::Picture};
use crate::items::provider;

/// A reader at a terminal, with a running service.
pub(super) struct Terminal {
    pub(super) server: Server,
    /// The reader's home and working directory, with the settings.
    home: TempDir,
    /// The folder with the service's originals.
    originals: String,
}

impl Terminal {
    /// With a service over the demo archive.
    pub(super) fn demo() -> Self {
        let originals = demo_originals();
        let originals = originals.strip_prefix("store.originals=").unwrap().to_owned();
        Self::with_server(Server::demo(), originals)
    }

    /// With a service over two small pictures and the demo accounts.
    pub(super) fn small() -> Self {
        let jpeg = Picture::corners(64, 48).jpeg();
        let server = Server::with_pictures(&[], &[("quay", jpeg.clone()), ("ferry", jpeg)]);
        let originals = server.data().join("originals").to_string_lossy().into_owned();
        Self::with_server(server, originals)
    }

    fn with_server(server: Server, originals: String) -> Self {
        let home = tempfile::tempdir().unwrap();
        // `curl` fails on error statuses, and resolves the pages' address to the service.
        let address = server.url.strip_prefix("http://").unwrap();
        let rules = ["127.0.0.1", "localhost"]
            .map(|name| format!("connect-to = \"{name}:8080:{address}\"\n"))
            .concat();
        let rules = format!("fail-with-body\nsilent\nshow-error\nnoproxy = \"*\"\n{rules}");
        fs::write(home.path().join(".curlrc"), rules).unwrap();
        Self { server, home, originals }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn data(&self) -> String {
        self.server.data().to_string_lossy().into_owned()
    }

    /// The settings of the service as a file.
    pub(super) fn settings(&self) -> String {
        let file = self.path("wirephoto.toml");
        let listen = self.server.url.strip_prefix("http://").unwrap();
        let (data, originals) = (self.data(), &self.originals);
        let text = format!(
            "[server]\nlisten = \"{listen}\"\n[data]\ndir = \"{data}\"\n\
             [store]\noriginals = \"{originals}\"\n"
        );
        fs::write(&file, text).unwrap();
        file.to_string_lossy().into_owned()
    }

    /// Runs `text` in a shell, which must succeed; returns its output.
    #[track_caller]
    pub(super) fn run(&self, text: &str) -> String {
        let mut shell = Command::new("bash");
        isolate_environment(&mut shell, self.server.dir.path());
        let others = std::env::var("PATH").unwrap_or_default();
        shell.args(["-euo", "pipefail", "-c", text]).current_dir(self.home.path());
        let own = Path::new(env!("CARGO_BIN_EXE_wirephoto")).parent().unwrap();
        shell.env("PATH", format!("{}:{others}", own.display()));
        shell.env("HOME", self.home.path()).env("CURL_HOME", self.home.path());
        shell.env("WIREPHOTO_DATA__DIR", self.data());
        shell.env("WIREPHOTO_STORE__ORIGINALS", &self.originals);
        let said = output(shell.stdin(Stdio::null()));
        let (out, errors) =
            (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert!(said.status.success(), "{text}\n{out}{errors}");
        out.into_owned()
    }

    /// Writes a photograph to the reader's file `name`.
    pub(super) fn photograph(&self, name: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, Picture::corners(80, 60).jpeg()).unwrap();
        file
    }

    /// Waits for an item that a command ingested.
    pub(super) fn shows(&self, item: &str) {
        let path = format!("/media/image/{item}.json");
        self.server.until(item, || (self.server.get(&path).status() == 200).then_some(()));
    }
}

/// The text with the values that differ for each reader replaced; each must occur.
#[track_caller]
pub fn substitute(text: &str, replaced: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in replaced {
        assert!(text.contains(name), "{text} does not name {name}");
        text = text.replace(name, value);
    }
    text
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|cause| panic!("{cause}: {text}"))
}

#[test]
fn calls_of_the_guides_work_as_printed() {
    let terminal = Terminal::demo();
    let searches = block("docs/guide/search.md", "curl 'http://127.0.0.1:8080/content").commands();
    let found: Vec<Value> = searches.iter().map(|call| json_of(&terminal.run(call))).collect();
    assert!(found.len() == 3 && found.iter().all(|it| it["hits"].is_array()), "{found:?}");
    assert!(found[0]["total"].as_u64() > Some(0), "{}", found[0]);
    let polls = block("docs/guide/search.md", "curl --get 'http").commands();
    assert!(json_of(&terminal.run(&polls[0]))["total"].as_u64() > Some(0));

    let calls = block("docs/guide/notifications.md", "curl -X POST 'http").commands();
    let stream = json_of(&terminal.run(&calls[0]));
    let listed = json_of(&terminal.run(&calls[1]));
    let ids = listed.as_array().unwrap().iter().map(|one| &one["id"]);
    assert!(ids.into_iter().any(|id| *id == stream["id"]), "{listed}");
    let digest = json_of(&terminal.run(&calls[2]));
    assert_eq!(digest["type"], "scheduled-email", "{digest}");
    assert_eq!(digest["schedule"], "30 6 * * 1-5", "{digest}");

    let calls = block("docs/guide/collections.md", "curl -X POST -H").commands();
    let made = json_of(&terminal.run(&calls[0]));
    let id = made["id"].as_str().unwrap();
    terminal.run(&substitute(&calls[1], &[("<id>", id)]));
    let address = format!("/collection/v1/collection/{id}?ak={DEMO_KEY}");
    let kept: Value = terminal.server.get(&address).json().unwrap();
    assert!(kept["content"][0].as_str().unwrap().ends_with("/demo-bridge-cables"), "{kept}");
    terminal.run(&substitute(&calls[2], &[("<id>", id)]));
    let mut files = fs::read_dir(terminal.home.path()).unwrap().map(|entry| entry.unwrap().path());
    let archive = files.find(|file| file.extension().is_some_and(|end| end == "zip"));
    assert!(fs::read(archive.expect("an archive")).unwrap().starts_with(b"PK"));

    let calls = block("docs/guide/deliveries.md", "curl -i 'http").commands();
    let said = terminal.run(&calls[0]);
    assert!(said.contains(" 202 ") && said.contains("ocation: "), "{said}");
    assert!(json_of(&terminal.run(&calls[1])).is_object());

    terminal.photograph("photo.jpg");
    fs::write(terminal.path("item.json"), json!({ "headline": "Harbour" }).to_string()).unwrap();
    let auth = provider(&terminal.server);
    let key = format!("BASE=http://127.0.0.1:8080 KEY={}", auth.strip_prefix("ApiKey ").unwrap());
    let upload = block("docs/guide/ingest.md", "KEY=...").text;
    let sent = json_of(&terminal.run(&substitute(&upload, &[("KEY=...", &key)])));
    assert!(sent["uri"].as_str().unwrap().ends_with("/media/image/harbour-7"), "{sent}");
    for (start, headline) in
        [("NAME=photo.jpg", "Ice in the harbour"), ("TAG=$(curl", "Ice breaks up")]
    {
        let calls = block("docs/guide/ingest.md", start).text;
        let said = json_of(&terminal.run(&format!("{key}\n{calls}")));
        assert_eq!(said["headline"], headline, "{said}");
    }
}

#[test]
fn commands_of_the_pages_work_as_printed() {
    let terminal = Terminal::small();
    for (page, name) in [("README.md", "pilot"), ("docs/guide/ingest.md", "tug")] {
        terminal.photograph(&format!("Pictures/harbour/{name}.jpg"));
        terminal.run(&block(page, "wirephoto ingest ~/Pictures").text);
        terminal.shows(name);
    }
    let keys = block("docs/operations/accounts.md", "key=$(wirephoto key add").text;
    let said = terminal.run(&format!("{keys}\nprintf '%s' \"$key\""));
    assert!(said.contains("laptop"), "{said}");
    assert!(said.lines().last().unwrap().len() > 20, "the key is in the variable: {said}");
    let users = json_of(&terminal.run("wirephoto user list --json"));
    let editor = users.as_array().unwrap().iter().find(|user| user["userName"] == "demo-editor");
    assert_eq!(editor.unwrap()["active"], false, "{users}");
}

#[test]
fn channels_of_the_guide_work_as_printed() {
    let terminal = Terminal::demo();
    let commands = block("docs/guide/deliveries.md", "wirephoto channel add").commands();
    let [folder, paper, list, retry] = commands.as_slice() else { panic!("{commands:?}") };
    let settings = json!({
        "host": "paper.example", "username": "wire", "password": "x", "path": "in",
        "hostKey": format!("SHA256:{}", "A".repeat(43)),
    });
    fs::write(terminal.path("paper.json"), settings.to_string()).unwrap();
    terminal.run(paper);
    terminal.run(folder);
    // A file in place of the channel's folder makes the delivery fail.
    let place = terminal.server.data().join("deliveries/desk");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "").unwrap();
    let item = format!("/media/{LARGE}?channel=user:demo-editor:desk&ak={DEMO_KEY}");
    let delivery: Value = terminal.server.until("the channel to be known", || {
        let answer = terminal.server.get(&item);
        (answer.status() == 202).then(|| answer.json().unwrap())
    });
    let id = delivery["id"].as_str().unwrap();
    terminal
        .server
        .until("the delivery to fail", || terminal.run(list).contains(id).then_some(()));
    fs::remove_file(&place).unwrap();
    terminal.run(&substitute(retry, &[("0198c5e2-…", id)]));
    terminal.server.until("the delivery", || place.is_dir().then_some(()));
}

#[test]
fn renditions_of_the_guide_are_served_as_printed() {
    let terminal = Terminal::demo();
    let page = "docs/guide/renditions.md";
    for call in block(page, "curl -o preview.jpg").commands() {
        terminal.run(&call);
        let name = call.split_whitespace().nth(2).expect("a file behind -o");
        assert!(fs::read(terminal.path(name)).unwrap().starts_with(&[0xff, 0xd8]), "{call}");
    }
    for call in block(page, "curl -o small.webp").commands() {
        terminal.run(&call);
        let name = call.split_whitespace().nth(2).expect("a file behind -o");
        let file = fs::read(terminal.path(name)).unwrap();
        let is_webp = file.starts_with(b"RIFF") && name.ends_with(".webp");
        assert!(
            is_webp || file[4..].starts_with(b"ftypavif") && name.ends_with(".avif"),
            "{call}"
        );
    }
    let sizes = json_of(&terminal.run(&block(page, "curl http").text));
    let srcset = sizes["srcset"]["avif"].as_str().unwrap();
    assert!(srcset.contains("-fit_w640_NormalPreview.avif 640w, "), "{srcset}");
    let document = json_of(&terminal.run(&block(page, "curl 'http").text));
    let renditions = document["renditions"].as_object().unwrap();
    let has_crop = |it: &Value| it["href"].as_str().is_some_and(|href| href.contains("-crop_w"));
    assert!(renditions.values().any(has_crop), "{document}");
}

#[test]
fn backups_work_as_documented() {
    let terminal = Terminal::small();
    let page = "docs/operations/backup.md";
    let (data, target, again) = (terminal.data(), terminal.path("backup"), terminal.path("again"));
    let (target, again) = (target.to_str().unwrap(), again.to_str().unwrap());
    let backup = block(page, "wirephoto backup --data DIR TARGET").text;
    terminal.run(&substitute(&backup, &[("DIR", &data), ("TARGET", target)]));
    assert!(Path::new(target).join("backup.json").exists());
    let settings = terminal.settings();
    let own =
        [("/etc/wirephoto/wirephoto.toml", settings.as_str()), ("/backup/wirephoto", target)];
    let nightly = block(page, "15 2 * * 1-6").commands();
    assert_eq!(nightly.len(), 2);
    for line in nightly {
        // Five fields of time and the user precede the command.
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[5], "wirephoto", "{line}");
        terminal.run(&substitute(&words[6..].join(" "), &own));
    }
    let elsewhere = format!("export WIREPHOTO_STORE__ORIGINALS={again}/originals\n");
    let restore =
        substitute(&block(page, "wirephoto restore").text, &[("DIR", again), ("SOURCE", target)]);
    let checks = substitute(&block(page, "wirephoto check").text, &[("DIR", again)]);
    let first = checks.lines().next().unwrap();
    terminal.run(&format!("{elsewhere}{restore}\n{first} --repair\n{checks}"));
    assert!(Path::new(again).join("originals").is_dir());
}

#[test]
fn a_service_is_operated_as_documented() {
    let terminal = Terminal::small();
    let settings = terminal.settings();
    let config = ("/etc/wirephoto/wirephoto.toml", settings.as_str());
    // The user who runs the test stands in for the user `wirephoto`.
    let user = ("sudo -u wirephoto ", "");
    let commands = block("docs/operations/install.md", "sudo -u wirephoto").commands();
    let buoy = terminal.photograph("photographs/buoy.jpg");
    let folder = buoy.parent().unwrap().to_str().unwrap();
    terminal.run(&substitute(&commands[0], &[user, config, ("/srv/photographs", folder)]));
    terminal.shows("buoy");
    let key = terminal
        .run(&substitute(&commands[1], &[("add editor", "add demo-editor"), user, config]));
    assert!(key.trim().len() > 20, "{key}");
    terminal.run(&substitute(
        &block("docs/operations/install.md", "until wirephoto health").text,
        &[config],
    ));
    terminal.run(&block("docs/guide/scopes.md", "wirephoto client add").text);
    assert!(terminal.run("wirephoto client list").contains("desk-plugin"));
    let key = || fs::read(terminal.server.data().join("secrets.key")).unwrap();
    let before = key();
    terminal.run(&block("docs/operations/secrets.md", "wirephoto secrets rotate").text);
    assert_ne!(before, key());
}

#[test]
fn manual_and_completions_are_generated_as_documented() {
    let terminal = Terminal::small();
    let root = terminal.path("root");
    let made = ["usr/local/share/man/man5", "etc/bash_completion.d"];
    let made = made.into_iter().chain(["usr/local/share/zsh/site-functions"]);
    made.for_each(|place| fs::create_dir_all(root.join(place)).unwrap());
    fs::create_dir_all(terminal.path(".config/fish/completions")).unwrap();
    let root = root.to_str().unwrap();
    let (usr, etc) = (format!("{root}/usr/local"), format!("{root}/etc/bash"));
    let commands = block("docs/operations/install.md", "wirephoto man").text;
    terminal.run(&substitute(&commands, &[("/usr/local", &usr), ("/etc/bash", &etc)]));
    for file in [
        "root/usr/local/share/man/man1/wirephoto.1",
        "root/usr/local/share/man/man5/wirephoto.toml.5",
        "root/etc/bash_completion.d/wirephoto",
        "root/usr/local/share/zsh/site-functions/_wirephoto",
        ".config/fish/completions/wirephoto.fish",
    ] {
        assert!(fs::metadata(terminal.path(file)).unwrap().len() > 100, "{file}");
    }
}

#[test]
fn a_database_is_created_as_documented() {
    let cluster = Cluster::start();
    // The cluster's user has the name of the role that the page creates.
    let statements = substitute(
        &block("docs/operations/postgresql.md", "CREATE ROLE").text,
        &[("wirephoto", "desk")],
    );
    for statement in statements.lines() {
        postgres::run(&cluster.url("postgres"), statement);
    }
    let dir = tempfile::tempdir().unwrap();
    let url = cluster.url("desk").replace("wirephoto@", "desk@");
    let mut command = wirephoto(dir.path());
    command.args(["check", "--set", &format!("database.url={url}"), "--data"]);
    let said = output(command.arg(dir.path().join("data")));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
