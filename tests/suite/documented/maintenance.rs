//! Runs the code blocks of `docs/operations/maintenance.md` as an operator would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use super::pages::block;
use super::run::{Terminal, substitute};
use crate::buckets::Bucket;
use crate::common::postgres::{self, Cluster};
use crate::common::server::{isolate_environment, output};
use crate::common::{Server, pictures::Picture, ports::free_port};
use crate::receivers::python;

const PAGE: &str = "docs/operations/maintenance.md";
/// The settings file that the page names.
const SETTINGS: &str = "/etc/wirephoto/wirephoto.toml";

/// Ends a service that a block started when a command of the block fails.
const KILL_ON_EXIT: &str = "trap 'kill $! 2>/dev/null || true' EXIT";

/// An operator at a machine with an archive in PostgreSQL.
struct Machine {
    home: TempDir,
    url: String,
}

impl Machine {
    /// Uses the database at `url`, a key for its secrets, and the further `settings`.
    fn new(url: &str, settings: &str) -> Self {
        let machine = Self { home: tempfile::tempdir().unwrap(), url: url.to_owned() };
        let (data, key) = (machine.path("data"), machine.path("secrets.key"));
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\nunready_s = 0\n[data]\ndir = \"{data}\"\n\
             [database]\nurl = \"{url}\"\n[secrets]\nkey_file = \"{key}\"\n{settings}",
            free_port()
        );
        fs::write(machine.settings(), text).unwrap();
        machine
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_string_lossy().into_owned()
    }

    fn settings(&self) -> String {
        self.path("wirephoto.toml")
    }

    /// Runs `text` in a shell, with the settings that the page names and the URL of the database in `$URL`; it must
    /// succeed.
    #[track_caller]
    fn run(&self, text: &str) -> String {
        let text = text.replace(SETTINGS, &self.settings());
        let mut shell = postgres::shell(&format!("set -eu\n{text}"), &self.url);
        isolate_environment(&mut shell, self.home.path());
        shell.current_dir(self.home.path()).env("NO_PROXY", "*");
        let said = output(&mut shell);
        let (out, errors) =
            (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert!(said.status.success(), "{text}\n{out}{errors}");
        out.into_owned()
    }

    /// Ingests a photograph under this name.
    fn ingest(&self, name: &str) {
        let file = self.path(&format!("{name}.jpg"));
        let number = name.len() * 8;
        fs::write(&file, Picture::corners(64 + number, 48).jpeg()).unwrap();
        self.run(&format!("wirephoto ingest --config {SETTINGS} '{file}'"));
    }

    /// A node at the address in the settings.
    fn serve(self) -> (Server, PathBuf) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wirephoto"));
        isolate_environment(&mut command, self.home.path());
        let settings = PathBuf::from(self.settings());
        command.args(["serve", "--config"]).arg(&settings);
        command.current_dir(self.home.path()).stdin(Stdio::null());
        (Server::run(self.home, command), settings)
    }
}

/// Returns whether the photograph's Preview is a JPEG.
fn shows(server: &Server, name: &str) -> bool {
    server.bytes(&format!("/media/image/{name}_NormalPreview.jpg")).starts_with(&[0xff, 0xd8])
}

#[test]
fn keys_and_passwords_are_rotated_as_documented() {
    let terminal = Terminal::small();
    let settings = terminal.settings();
    let config = (SETTINGS, settings.as_str());
    let key = || fs::read(terminal.server.data().join("secrets.key")).unwrap();
    let before = key();
    terminal.run(&substitute(&block(PAGE, "wirephoto secrets rotate").text, &[config]));
    assert_ne!(before, key());

    let keys = || terminal.server.get("/o/oauth2/keys").json::<Value>().unwrap();
    let count = keys()["keys"].as_array().unwrap().len();
    let listed =
        terminal.run(&substitute(&block(PAGE, "wirephoto signing-key rotate").text, &[config]));
    assert!(listed.lines().count() > 1, "{listed}");
    let is_new = || (keys()["keys"].as_array().unwrap().len() == count + 1).then_some(());
    terminal.server.until("the new key in the key set", is_new);

    let commands = block(PAGE, "wirephoto key add").commands();
    let [add, list, disable, secret, password] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    let user = ("USER", "demo-editor");
    let added = terminal.run(&substitute(add, &[user, config]));
    let listed = terminal.run(&substitute(list, &[user, config]));
    let row = listed.lines().find(|line| line.contains("desk-2027")).expect("the new key");
    let id = row.split_whitespace().next().unwrap();
    let call = || {
        let authorization = format!("ApiKey {}", added.trim());
        terminal.server.get_with("/user/v1/user", &[("authorization", &authorization)]).status()
    };
    terminal.server.until("the new key to count", || (call() == 200).then_some(()));
    terminal.run(&substitute(disable, &[("KEY_ID", id), config]));
    terminal.server.until("the key to be off", || (call() == 401).then_some(()));
    let new = terminal.run(&substitute(secret, &[("CLIENT", "demo-client"), config]));
    assert!(new.trim().len() > 20, "{new}");
    terminal.run(&format!("NEW=a-new-password-1\n{}", substitute(password, &[user, config])));
    let log_in = |user: &str| {
        let fields = [
            ("grant_type", "password"),
            ("username", user),
            ("password", "a-new-password-1"),
            ("client_id", "demo-client"),
            ("client_secret", new.trim()),
            ("scope", "openid roles"),
        ];
        terminal.server.post_form("/o/oauth2/token", &fields).status()
    };
    // No user has this name: the error is about the client until its new secret is valid, which was set before the
    // password. Failed logins of a real user would lock it out.
    terminal.server.until("the new secret", || (log_in("nobody") != 401).then_some(()));
    assert_eq!(log_in("demo-editor"), 200);
}

#[test]
fn the_password_of_the_database_is_rotated_as_documented() {
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    postgres::run(&url, "ALTER ROLE wirephoto PASSWORD 'the-old-one'");
    cluster.set_hba_rules("host all all 127.0.0.1/32 scram-sha-256\n");
    let with_password = url.replace("wirephoto@", "wirephoto:the-old-one@");
    let machine = Machine::new(&url, "");
    let file = machine.path("database-password");
    let group = output(Command::new("id").arg("-gn"));
    let group = String::from_utf8(group.stdout).unwrap();
    let text = substitute(
        &block(PAGE, "NEW=$(openssl").text,
        &[
            ("/etc/wirephoto/database-password", &file),
            ("-g wirephoto", &format!("-g {}", group.trim())),
            ("\"$URL\"", &format!("'{with_password}'")),
        ],
    );
    machine.run(&text);
    let new = fs::read_to_string(&file).unwrap();
    assert_eq!(new.len(), 48, "{new}");
    let export = format!("export WIREPHOTO_DATABASE__PASSWORD=\"$(cat '{file}')\"");
    machine.run(&format!("{export}\nwirephoto nodes --config {SETTINGS}"));
    let old = "export WIREPHOTO_DATABASE__PASSWORD=the-old-one";
    machine.run(&format!("{old}\n! wirephoto nodes --config {SETTINGS}"));
}

#[test]
fn a_node_is_replaced_as_documented() {
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    let old = Machine::new(&url, "");
    let shared = old.path("shared");
    let store = format!("[store]\noriginals = \"{shared}\"\n");
    let add_store = |machine: &Machine| {
        let text = fs::read_to_string(machine.settings()).unwrap();
        fs::write(machine.settings(), text + &store).unwrap();
    };
    add_store(&old);
    old.ingest("quay");
    let key = old.path("secrets.key");
    let (old, old_settings) = old.serve();
    for folder in ["outbox", "deliveries"] {
        fs::create_dir_all(old.data().join(folder)).unwrap();
        fs::write(old.data().join(folder).join("kept"), folder).unwrap();
    }
    let new = Machine::new(&url, "");
    add_store(&new);
    fs::copy(&key, new.path("secrets.key")).unwrap();
    let (new, settings) = new.serve();
    // The page's address is the one in the settings.
    let operator = Machine { home: tempfile::tempdir().unwrap(), url };
    fs::copy(&settings, operator.settings()).unwrap();
    let waits = block(PAGE, "until wirephoto health").text;
    let nodes = operator.run(&substitute(&waits, &[("http://127.0.0.1:8080", &new.url)]));
    assert!(nodes.contains("\"ready\""), "{nodes}");
    let rows = nodes.lines().filter(|line| line.contains(" all ")).count();
    assert_eq!(rows, 2, "{nodes}");
    drop(old_settings);
    let (from, to) = (old.data(), new.data());
    let dir = {
        old.signal("TERM");
        old
    };
    let copy = block(PAGE, "rsync -a --ignore-missing-args").text;
    let places = [("OLD", from.to_str().unwrap()), ("DATA", to.to_str().unwrap())];
    operator.run(&substitute(&copy, &places));
    for folder in ["outbox", "deliveries"] {
        assert_eq!(fs::read_to_string(to.join(folder).join("kept")).unwrap(), folder);
    }
    let listed = || operator.run(&format!("wirephoto nodes --config {SETTINGS}"));
    new.until("the old node to be gone", || {
        (listed().lines().filter(|line| line.contains(" all ")).count() == 1).then_some(())
    });
    assert!(shows(&new, "quay"));
    drop(dir);
}

#[test]
fn a_bucket_is_moved_as_documented() {
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    let bucket = Bucket::start();
    let given = bucket.settings("old", &[]);
    let store: String = given
        .iter()
        .filter_map(|setting| setting.strip_prefix("store."))
        .map(|setting| {
            let (name, value) = setting.split_once('=').unwrap();
            let quote = if value == "true" { "" } else { "\"" };
            format!("{name} = {quote}{value}{quote}\n")
        })
        .collect();
    let machine = Machine::new(&url, &format!("[store]\n{store}"));
    machine.ingest("quay");
    let command =
        block(PAGE, "wirephoto migrate --config /etc/wirephoto/wirephoto.toml --store s3").text;
    let command = substitute(&command, &[("s3://BUCKET/PREFIX", "s3://bilder/new")]);
    let said = machine.run(&command);
    assert!(said.contains("1 originals"), "{said}");
    machine.ingest("ferry");
    machine.run(&command);
    let text = fs::read_to_string(machine.settings()).unwrap();
    let moved = substitute(&text, &[("s3://bilder/old", "s3://bilder/new")]);
    fs::write(machine.settings(), &moved).unwrap();
    let check = block(PAGE, "wirephoto check --config").text;
    let said = machine.run(&check);
    assert!(said.contains("0 problems"), "{said}");

    // Through a folder to another service, which here is the same one under another prefix.
    let transfer = machine.path("transfer/originals");
    let setting = |name: &str| {
        let mark = format!("store.{name}=");
        given.iter().find_map(|one| one.strip_prefix(&mark)).unwrap().to_owned()
    };
    let ways = substitute(
        &block(PAGE, "wirephoto migrate --config /etc/wirephoto/wirephoto.toml --store /srv").text,
        &[
            ("/srv/transfer/originals", &transfer),
            ("s3://BUCKET/PREFIX", "s3://bilder/third"),
            ("https://s3.example", &setting("endpoint")),
            ("REGION", &setting("region")),
            ("=ID ", &format!("={} ", setting("access_key_id"))),
            ("'…'", &setting("secret_access_key")),
        ],
    );
    machine.run(&ways);
    fs::write(machine.settings(), substitute(&moved, &[("s3://bilder/new", "s3://bilder/third")]))
        .unwrap();
    let said = machine.run(&check);
    assert!(said.contains("0 problems"), "{said}");

    let (node, _) = machine.serve();
    assert!(shows(&node, "quay") && shows(&node, "ferry"));
}

#[test]
fn a_data_directory_moves_to_another_disk_as_documented() {
    let terminal = Terminal::small();
    let (old, new) = (terminal.server.data(), terminal.path("disk"));
    fs::create_dir(&new).unwrap();
    let places = [("OLD", old.to_str().unwrap()), ("NEW", new.to_str().unwrap())];
    terminal.run(&substitute(&block(PAGE, "rsync -a --exclude").text, &places));
    let buoy = terminal.photograph("photographs/buoy.jpg");
    terminal.run(&format!("wirephoto ingest '{}'", buoy.display()));
    terminal.shows("buoy");
    terminal.server.signal("TERM");
    terminal.server.until("it to end", || (!is_held(&old)).then_some(()));
    terminal.run(&substitute(&block(PAGE, "rsync -a --delete").text, &places));
    let home = tempfile::tempdir().unwrap();
    fs::rename(&new, home.path().join("data")).unwrap();
    let server = Server::start(home, &[]);
    assert!(["quay", "ferry", "buoy"].iter().all(|name| shows(&server, name)));
    let said = server.command(&["check"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

/// Returns whether a process holds files of the folder open.
fn is_held(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let files = processes.filter_map(|one| fs::read_dir(one.path().join("fd")).ok()).flatten();
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|it| it.starts_with(folder))
}

/// Settings that a second service over a copy cannot share with the real one: a listener, a log file, a certificate.
fn unshared_settings(home: &Path) -> String {
    fs::create_dir(home.join("tls")).unwrap();
    let status = python("tls_files.py").arg(home.join("tls")).status().unwrap();
    assert!(status.success());
    let (log, pem) = (home.join("service.log"), home.join("tls/one/server.pem"));
    let (log, pem) = (log.display(), pem.display());
    format!(
        "[server]\nadmin_listen = \"127.0.0.1:{}\"\ntls_certificate = \"{pem}\"\n\
         tls_key = \"{pem}\"\n[telemetry]\nlog_file = \"{log}\"\n",
        free_port()
    )
}

/// Writes `more` settings behind those of a file; a section that the file has already gets the new lines.
fn extend_settings(file: &str, more: &str) {
    let text = fs::read_to_string(file).unwrap();
    let (server, rest) = more.split_once("[telemetry]").unwrap();
    let server = server.strip_prefix("[server]\n").unwrap();
    let text = text.replacen("[server]\n", &format!("[server]\n{server}"), 1);
    fs::write(file, format!("{text}\n[telemetry]{rest}")).unwrap();
}

#[test]
fn a_test_restore_works_as_documented() {
    let machine = Machine::new("", "");
    extend_settings(&machine.settings(), &unshared_settings(machine.home.path()));
    machine.ingest("quay");
    let (backup, place) = (machine.path("backup"), machine.path("rehearsal"));
    let (home, port) = (machine.path(""), free_port().to_string());
    let (service, settings) = machine.serve();
    let operator = Machine { home: tempfile::tempdir().unwrap(), url: String::new() };
    fs::copy(&settings, operator.settings()).unwrap();
    operator.run(&format!("wirephoto backup --config {SETTINGS} '{backup}'"));
    let log = fs::read_to_string(format!("{home}/service.log")).unwrap();
    let text = substitute(
        &block(PAGE, "export WIREPHOTO_DATA__DIR=").text,
        &[
            ("/backup/wirephoto", &backup),
            ("/srv/rehearsal", &place),
            ("8099", &port),
            ("ID", "quay"),
        ],
    );
    operator.run(&format!("{KILL_ON_EXIT}\n{text}"));
    let picture = fs::read(operator.home.path().join("rehearsal.jpg")).unwrap();
    assert!(picture.starts_with(&[0xff, 0xd8]) && !Path::new(&place).exists());
    let after = fs::read_to_string(format!("{home}/service.log")).unwrap();
    assert!(!after[log.len()..].contains("rehearsal"), "{after}");
    operator.run(&format!("wirephoto ingest --config {SETTINGS} '{home}/quay.jpg'"));
    drop(service);
}

#[test]
fn a_test_restore_from_a_dump_works_as_documented() {
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    let machine = Machine::new(&url, "");
    extend_settings(&machine.settings(), &unshared_settings(machine.home.path()));
    machine.ingest("quay");
    let (backup, place) = (machine.path("backup"), machine.path("rehearsal"));
    let (data, port) = (machine.path("data"), free_port().to_string());
    let home = machine.path("");
    let (service, settings) = machine.serve();
    let operator = Machine { home: tempfile::tempdir().unwrap(), url };
    fs::copy(&settings, operator.settings()).unwrap();
    operator.run(&format!(
        "pg_dump --format=custom --file=wirephoto.dump \"$URL\"\n\
         mkdir -p {backup}\nrsync -a {data}/originals/ {backup}/originals/"
    ));
    let text = substitute(
        &block(PAGE, "psql --quiet \"$URL\" --command \"CREATE").text,
        &[
            ("/backup/originals", &format!("{backup}/originals")),
            ("/srv/rehearsal", &place),
            ("8099", &port),
            ("ID", "quay"),
        ],
    );
    operator.run(&format!("{KILL_ON_EXIT}\nREHEARSAL='{}'\n{text}", cluster.url("rehearsal")));
    let picture = fs::read(operator.home.path().join("rehearsal.jpg")).unwrap();
    assert!(picture.starts_with(&[0xff, 0xd8]));
    assert!(!Path::new(&place).exists());
    let databases = postgres::run(&cluster.url("postgres"), "SELECT datname FROM pg_database");
    assert!(!databases.contains("rehearsal"), "{databases}");
    // The service has its store and its log for itself.
    let log = fs::read_to_string(format!("{home}/service.log")).unwrap();
    assert!(!log.contains("rehearsal") && !log.contains("another value"), "{log}");
    operator.run(&format!("wirephoto ingest --config {SETTINGS} '{home}/quay.jpg'"));
    drop(service);
}
