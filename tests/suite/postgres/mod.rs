//! An archive in PostgreSQL, on a real server from Debian's packages: two nodes over one database, and a database
//! that fails and recovers. A separate command runs the rest of the suite on PostgreSQL too
//! (`docs/operations/postgresql.md`).

mod archive;
mod cluster;
mod lookups;
mod outages;
mod security;

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    process::{Child, Output, Stdio},
};

use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::postgres::{self, Cluster};
use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, news};
use crate::search::ids;

const ROOT: &str = "/collection/v1/collection";

/// An archive in a database on a separate PostgreSQL server.
struct Archive {
    cluster: Cluster,
    setting: String,
    dir: TempDir,
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

impl Archive {
    /// Creates an archive with `items` and the accounts of the demo archive.
    fn with(items: &[(&str, Value)]) -> Self {
        let cluster = Cluster::start();
        let setting = format!("database.url={}", cluster.database("archive"));
        let archive = Self { cluster, setting, dir: tempfile::tempdir().unwrap() };
        archive.ingest(items);
        let accounts = checkout("media-store/accounts.json");
        archive.run(&["import", accounts.to_str().unwrap()], 0);
        archive
    }

    fn ingest(&self, items: &[(&str, Value)]) {
        let incoming = tempfile::tempdir().unwrap();
        news::write(incoming.path(), items);
        self.run(&["ingest", incoming.path().to_str().unwrap()], 0);
    }

    /// Runs a command on the archive; returns its output.
    #[track_caller]
    fn run(&self, arguments: &[&str], status: i32) -> String {
        let mut command = wirephoto(self.dir.path());
        command.args(arguments).args(["--set", &self.setting]).arg("--data");
        let output = output(command.arg(self.dir.path().join("data")));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    /// Starts a node: another server over the same database and data directory.
    fn node(&self) -> Server {
        self.node_with(&[])
    }

    /// Starts a node with settings, each `name=value`.
    fn node_with(&self, settings: &[&str]) -> Server {
        let dir = tempfile::tempdir().unwrap();
        symlink(self.dir.path().join("data"), dir.path().join("data")).unwrap();
        Server::start(dir, &[&[self.setting.as_str()][..], settings].concat())
    }
}

fn photograph(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00")
}

fn older(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-02T09:15:00+01:00")
}

fn call(server: &Server, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = server.client.request(method, format!("{}{path}", server.url));
    let request = request.header("authorization", format!("ApiKey {DEMO_KEY}"));
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    };
    let response = request.send().unwrap();
    (response.status().as_u16(), response.json().unwrap_or_default())
}

fn found(server: &Server, query: &str) -> String {
    let (status, hits) =
        call(server, Method::GET, &format!("/content/v1/image/search?{query}"), None);
    assert_eq!(status, 200, "{query}: {hits}");
    ids(&hits)
}

/// A database session that holds the cluster write lock, as an ingest does.
struct WriteLock(Child);

impl WriteLock {
    fn begin(url: &str) -> Self {
        Self::take(url, "SELECT 'taken' FROM writer FOR UPDATE;")
    }

    /// Starts a session with other statements, which print `taken`.
    fn take(url: &str, sql: &str) -> Self {
        let mut psql = postgres::session(url);
        let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let take = format!("BEGIN;\n{sql}\n");
        child.stdin.as_mut().unwrap().write_all(take.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "taken");
        Self(child)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}
