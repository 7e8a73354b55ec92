//! The binary as its users run it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
};

use reqwest::blocking::{Client, Response};
use tempfile::TempDir;

use super::{WAIT_TIMEOUT, checkout, pause, postgres};

/// The command `wirephoto` in the folder `dir`, isolated from the caller's environment; if tests run on PostgreSQL,
/// with the database of that folder.
pub fn wirephoto(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wirephoto"));
    command.current_dir(dir).stdin(Stdio::null());
    isolate_environment(&mut command, dir);
    command
}

/// Removes inherited `WIREPHOTO_` variables from `command`; if tests run on PostgreSQL, sets the database of the
/// folder `dir`.
pub fn isolate_environment(command: &mut Command, dir: &Path) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WIREPHOTO_") {
            command.env_remove(name);
        }
    }
    if let Some(url) = postgres::url_of(dir) {
        command.env("WIREPHOTO_DATABASE__URL", url);
    }
}

/// Runs `command` to completion.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the binary starts")
}

/// A data directory with the demo archive, ingested once for all tests; tests copy its database and link
/// its originals.
fn demo_archive() -> &'static Path {
    static ARCHIVE: OnceLock<TempDir> = OnceLock::new();
    let dir = ARCHIVE.get_or_init(|| {
        let dir = new_archive("demo-");
        succeed(dir.path(), "ingest", &checkout("media-store/demo"));
        succeed(dir.path(), "import", &checkout("media-store/accounts.json"));
        derive_standard_renditions(dir.path());
        dir
    });
    dir.path()
}

/// A data directory with the accounts of the demo archive and no items, made once for all tests.
fn demo_accounts() -> &'static Path {
    static ARCHIVE: OnceLock<TempDir> = OnceLock::new();
    let dir = ARCHIVE.get_or_init(|| {
        let dir = new_archive("accounts-");
        succeed(dir.path(), "import", &checkout("media-store/accounts.json"));
        dir
    });
    dir.path()
}

/// A folder for an archive that tests copy. Removes that of an earlier run that was interrupted.
fn new_archive(prefix: &str) -> TempDir {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split('-').next());
        // A run at the same time still needs its own.
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    let prefix = format!("{prefix}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(root).expect("folder")
}

/// Runs a command with the file or folder `input` on the data directory in `dir`.
fn succeed(dir: &Path, command: &str, input: &Path) {
    let output =
        output(wirephoto(dir).arg(command).arg(input).arg("--data").arg(dir.join("data")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Has a server make the standard renditions of `archive`, which would otherwise take every server of the tests
/// many seconds of CPU time. The database stays as it is.
fn derive_standard_renditions(archive: &Path) {
    let server = Server::start(copy_of(archive), &[]);
    server.until("standard renditions of every picture", || {
        // Warnings are lines before it.
        let said = server.command(&["check", "--json"]).stdout;
        let report = said.trim_ascii_end().rsplit(|&byte| byte == b'\n').next()?;
        let report: serde_json::Value = serde_json::from_slice(report).expect("JSON");
        (report["standardRenditions"]["toGo"] == 0).then_some(())
    });
    for kind in DERIVED_KINDS {
        copy_files(
            &server.data().join("derived").join(kind),
            &archive.join("data/derived").join(kind),
        );
    }
}

/// The folders of derived files that are not caches.
const DERIVED_KINDS: [&str; 3] = ["index", "standard", "working"];

/// A copy of `archive`: its database, its derived files and links to its originals.
fn copy_of(archive: &Path) -> TempDir {
    let dir = tempfile::tempdir().expect("folder");
    let (from, data) = (archive.join("data"), dir.path().join("data"));
    fs::create_dir(&data).expect("folder");
    for name in ["wirephoto.db", "wirephoto.db-wal", "secrets.key"] {
        // The WAL exists only if the command that wrote it did not close the database.
        let from = from.join(name);
        assert!(!from.exists() || fs::copy(&from, data.join(name)).is_ok(), "{name}");
    }
    for kind in DERIVED_KINDS {
        let from = from.join("derived").join(kind);
        if from.exists() {
            copy_files(&from, &data.join("derived").join(kind));
        }
    }
    postgres::copy(archive, dir.path());
    link_files(&from.join("originals"), &data.join("originals"));
    dir
}

/// Links the originals below `from` into the folder `to`, so that a test adds and removes its own. The mark is a
/// copy.
fn link_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for entry in fs::read_dir(from).expect("folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            link_files(&entry.path(), &to);
        } else if entry.file_name() == "archive-id" {
            fs::copy(entry.path(), to).expect("a copy");
        } else {
            std::os::unix::fs::symlink(entry.path(), to).expect("a link");
        }
    }
}

/// Copies the files below `from` that are not below `to`.
fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("folder");
    for entry in fs::read_dir(from).expect("folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_files(&entry.path(), &to);
        } else if !to.exists() {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// The setting for the originals of the demo archive.
pub fn demo_originals() -> String {
    format!("store.originals={}", demo_archive().join("data/originals").display())
}

/// A running server with its own data directory.
pub struct Server {
    pub url: String,
    pub dir: TempDir,
    pub child: Child,
    pub client: Client,
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// A server over the demo archive.
    pub fn demo() -> Self {
        Self::demo_with(&[])
    }

    /// A server over the demo archive with settings, each `name=value`.
    pub fn demo_with(settings: &[&str]) -> Self {
        Self::start(copy_of(demo_archive()), settings)
    }

    /// A server over an empty data directory.
    pub fn empty() -> Self {
        Self::start(tempfile::tempdir().expect("folder"), &[])
    }

    /// A server over `pictures`, each an id and a JPEG, and the accounts of the demo archive.
    pub fn with_pictures<I: AsRef<str>>(settings: &[&str], pictures: &[(I, Vec<u8>)]) -> Self {
        let dir = copy_of(demo_accounts());
        let incoming = dir.path().join("incoming");
        fs::create_dir(&incoming).expect("folder");
        for (id, jpeg) in pictures {
            fs::write(incoming.join(format!("{}.jpg", id.as_ref())), jpeg).expect("written");
        }
        succeed(dir.path(), "ingest", &incoming);
        Self::start(dir, settings)
    }

    /// Kills the server; returns the folder of its data directory.
    pub fn kill(mut self) -> TempDir {
        self.signal("KILL");
        assert!(!self.child.wait().expect("ended").success());
        std::mem::replace(&mut self.dir, tempfile::tempdir().expect("folder"))
    }

    /// Stops the server and starts another one over the same data directory.
    pub fn restart(mut self, settings: &[&str]) -> Self {
        self.signal("TERM");
        assert!(self.child.wait().expect("ended").success(), "{}", self.log());
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().expect("folder"));
        drop(self);
        Self::start(dir, settings)
    }

    /// Starts another server over the data directory of one that was killed.
    pub fn restart_killed(mut self, settings: &[&str]) -> Self {
        assert!(!self.child.wait().expect("ended").success());
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().expect("folder"));
        drop(self);
        Self::start(dir, settings)
    }

    /// A server over the data directory `data` in `dir`.
    pub fn start(dir: TempDir, settings: &[&str]) -> Self {
        Self::start_with::<&str>(dir, settings, &[])
    }

    /// A server over the data directory in `dir`, with environment variables.
    pub fn start_with<V: AsRef<std::ffi::OsStr>>(
        dir: TempDir,
        settings: &[&str],
        environment: &[(&str, V)],
    ) -> Self {
        let mut command = wirephoto(dir.path());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        // Tests serve the demo accounts under public URLs.
        command.args(["serve", "--demo-public", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(dir.path().join("data"));
        for setting in settings {
            command.args(["--set", setting]);
        }
        Self::run(dir, command)
    }

    /// A server that `command` starts over the data directory in `dir`.
    pub fn run(dir: TempDir, mut command: Command) -> Self {
        let log = fs::File::create(dir.path().join("log")).expect("log");
        let mut child =
            command.stdout(Stdio::piped()).stderr(log).spawn().expect("the binary starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        let mut url = None;
        while url.is_none() && output.read_line(&mut line).expect("output") > 0 {
            url = line.trim().strip_prefix("listening on ").map(str::to_owned);
            line.clear();
        }
        let log = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        let url = url.unwrap_or_else(|| panic!("the server did not start: {}", log()));
        // Tests examine redirects themselves.
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.no_proxy().timeout(5 * WAIT_TIMEOUT).build().expect("client");
        Self { url, dir, child, client, output }
    }

    /// The server's data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The server's log so far, in complete lines: the last one may still be being written.
    pub fn log(&self) -> String {
        let mut log = fs::read_to_string(self.dir.path().join("log")).expect("log");
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    pub fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.url)).send().expect("answer")
    }

    /// GET with request headers.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.client.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().expect("answer")
    }

    /// POST of a form.
    pub fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.client.post(format!("{}{path}", self.url)).form(fields).send().expect("answer")
    }

    /// The body of a GET that must be 200.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let response = self.get(path);
        assert_eq!(response.status(), 200, "{path}");
        response.bytes().expect("body").to_vec()
    }

    /// The sum of a metric over its series whose labels contain `label`; 0 if there are none.
    pub fn metric(&self, name: &str, label: &str) -> f64 {
        let text = String::from_utf8(self.bytes("/metrics")).expect("text");
        let value = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, labels) = series.split_once('{').unwrap_or((series, ""));
            (found == name && labels.contains(label))
                .then(|| value.parse::<f64>().expect("number"))
        };
        text.lines().filter_map(value).fold(0.0, |sum, value| sum + value)
    }

    /// Runs a command of the binary on the server's data directory. After an ingest, waits until a server with
    /// search finds the new items.
    pub fn command(&self, arguments: &[&str]) -> Output {
        let mut command = wirephoto(self.dir.path());
        let output = output(command.args(arguments).arg("--data").arg(self.data()));
        if arguments.first() == Some(&"ingest") {
            self.wait_for_index();
        }
        output
    }

    /// Waits until search finds every item, whichever process ingested it. Returns at once if the server has no
    /// search or does not answer.
    pub fn wait_for_index(&self) {
        let url = format!("{}/health/search", self.url);
        self.until("an index that holds everything", || {
            let Ok(answer) = self.client.get(&url).send() else { return Some(()) };
            let Ok(state) = answer.json::<serde_json::Value>() else { return Some(()) };
            let waits = state["status"] == "building" || state["rowsBehind"].as_i64() > Some(0);
            (!waits).then_some(())
        });
    }

    /// Repeats `poll` until it returns a value; fails after [`WAIT_TIMEOUT`].
    pub fn until<T>(&self, what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
        let start = std::time::Instant::now();
        loop {
            if let Some(found) = poll() {
                return found;
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "{what} did not happen");
            pause();
        }
    }

    /// Asks the server to stop and waits until it exits.
    pub fn stop(mut self) -> (std::process::ExitStatus, String) {
        self.signal("TERM");
        let status = self.child.wait().expect("ended");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).expect("output");
        (status, self.log())
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill");
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
        postgres::remove(self.dir.path());
    }
}
