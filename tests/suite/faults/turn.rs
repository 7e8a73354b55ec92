//! A node that is suspended in the middle of a write transaction: the others wait for the write lock, not for the
//! node.

use std::io::Write;
use std::process::Stdio;
use std::thread;

use reqwest::Method;
use serde_json::json;

use super::kit::{call_with, document, scene_with, until};
use crate::balancer::is_stopped;
use crate::common::postgres::{self, Cluster};
use crate::common::{DEMO_KEY, Server};

/// Creates a collection; returns the status of the response.
fn collect(server: &Server, name: &str) -> u16 {
    let at = (Method::POST, "/collection/v1/collection");
    let made = call_with(server, at, DEMO_KEY, &json!({ "name": name })).send();
    made.expect("answer").status().as_u16()
}

#[test]
fn a_node_suspended_with_the_write_lock_delays_the_others_without_failures() {
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    let setting = format!("database.url={url}");
    let settings = [setting.as_str(), "server.unready_s=0"];
    let dir = scene_with(&[("image/old", document("Gammal"))], &settings);
    let still = Server::start(dir, &settings);
    let originals = format!("store.originals={}", still.data().join("originals").display());
    let settings = [&settings[..], &["server.role=web", originals.as_str()]].concat();
    let other = Server::start(tempfile::tempdir().unwrap(), &settings);
    // Another session makes it wait while it holds the write lock.
    let mut holder =
        postgres::session(&url).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = holder.stdin.take().unwrap();
    input.write_all(b"BEGIN; LOCK TABLE collections IN SHARE MODE;\n").unwrap();
    let count = |condition: &str| {
        let tables = "pg_locks JOIN pg_stat_activity USING (pid)";
        let sql = format!("SELECT count(*) FROM {tables} WHERE {condition}");
        postgres::run(&url, &sql).parse::<u32>().unwrap()
    };
    let table = "relation = 'collections'::regclass";
    let held = format!("{table} AND granted AND mode = 'ShareLock'");
    let waits = format!("{table} AND NOT granted AND query LIKE 'INSERT INTO collections%'");
    until("the table to be held", || (count(&held) > 0).then_some(()));
    thread::scope(|scope| {
        let held_up = scope.spawn(|| collect(&still, "still"));
        until("it to wait", || (count(&waits) > 0).then_some(()));
        still.signal("STOP");
        until("its threads to stop", || is_stopped(still.child.id()).then_some(()));
        drop(input);
        assert!(holder.wait().unwrap().success());
        assert_eq!(collect(&other, "other"), 200, "{}", other.log());
        still.signal("CONT");
        assert_eq!(held_up.join().unwrap(), 503, "its transaction is over: {}", still.log());
    });
    let made =
        postgres::run(&url, "SELECT name FROM collections WHERE name IN ('still', 'other')");
    assert_eq!(made, "other");
    assert_eq!(collect(&still, "again"), 200);
}
