//! The background scrub of originals: it finds damaged ones, and is resumed after a restart or by another node.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::Server;
use crate::common::pictures::Picture;
use crate::common::server::{output, wirephoto};
use crate::nodes::{start_node_beside, wait_until};
use crate::receivers::sha256;

const DAMAGED: &str = "wirephoto_originals_damaged_total";
const DONE: &str = "wirephoto_scrub_done_ratio";

/// Ingests photographs one after the other and starts a server; returns the files of their originals in that order.
fn archive(ids: &[&str], settings: &[&str]) -> (Server, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut originals = Vec::new();
    for (width, id) in (64..).step_by(8).zip(ids) {
        let file = dir.path().join(format!("{id}.jpg"));
        let jpeg = Picture::waves(width, 48).jpeg();
        fs::write(&file, &jpeg).unwrap();
        let mut command = wirephoto(dir.path());
        let taken = output(command.arg("ingest").arg(&file).arg("--data").arg(&data));
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
        let name = sha256(&jpeg);
        originals.push(data.join("originals").join(&name[..2]).join(&name[2..]));
    }
    (Server::start(dir, settings), originals)
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Replaces a file with a named pipe, so that a reader blocks there.
fn block(path: &Path) {
    fs::rename(path, path.with_extension("aside")).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn unblock(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::rename(path.with_extension("aside"), path).unwrap();
}

fn kill_and_start(mut server: Server, settings: &[&str]) -> Server {
    server.signal("KILL");
    server.child.wait().unwrap();
    server.restart_killed(settings)
}

#[test]
fn a_scrub_finds_damaged_originals_and_resumes_after_a_restart() {
    // A pass takes less than a second, and the next one follows.
    let fast = ["media.warm=false", "store.scrub_days=0.00001"];
    let never = ["media.warm=false", "store.scrub_days=0"];
    let (server, originals) = archive(&["first", "second", "third"], &never);
    assert_eq!(server.metric("wirephoto_lease_held", "scrubbing"), 0.0);
    block(&originals[1]);
    let server = server.restart(&fast);
    server.until("the first item to be read", || (server.metric(DONE, "") > 0.3).then_some(()));
    assert_eq!(server.metric(DAMAGED, ""), 0.0);
    // Originals that this pass has read are not read again, and later ones are.
    unblock(&originals[1]);
    block(&originals[2]);
    flip(&originals[0]);
    flip(&originals[1]);
    let server = kill_and_start(server, &fast);
    server
        .until("the second item to be read", || (server.metric(DAMAGED, "") > 0.0).then_some(()));
    let log = server.log();
    assert!(log.contains("image/second NormalHires.jpg"), "the item is named: {log}");
    assert!(!log.contains("image/first "), "it was read before the restart: {log}");
    assert_eq!(server.metric("wirephoto_scrub_ended_seconds", ""), 0.0);
    unblock(&originals[2]);
    let server = kill_and_start(server, &fast);
    server
        .until("the next pass to find both", || (server.metric(DAMAGED, "") >= 2.0).then_some(()));
    assert!(server.metric("wirephoto_scrub_ended_seconds", "") > 0.0);
    assert!(server.metric("wirephoto_scrub_began_seconds", "") > 0.0);
    let log = server.log();
    assert!(log.contains("image/first NormalHires.jpg"), "{log}");
    assert!(!log.contains("image/third "), "{log}");
}

#[test]
fn one_of_two_nodes_scrubs_and_the_other_one_takes_over_when_it_dies() {
    let fast = ["media.warm=false", "store.scrub_days=0.00001", "server.unready_s=0"];
    let never = ["media.warm=false", "store.scrub_days=0"];
    let (server, originals) = archive(&["first", "second"], &never);
    fs::remove_file(&originals[0]).unwrap();
    // Each of them blocks at the second item.
    block(&originals[1]);
    let mut first = server.restart(&fast);
    first.until("the first item to be read", || (first.metric(DONE, "") >= 0.5).then_some(()));
    assert_eq!(first.metric(DAMAGED, ""), 1.0);
    assert!(first.log().contains("it is missing"), "{}", first.log());
    let second = start_node_beside(&first, &fast);
    second.until("both to be seen", || (second.metric("wirephoto_nodes", "") > 1.0).then_some(()));
    let held = |server: &Server| server.metric("wirephoto_lease_held", "scrubbing");
    assert_eq!((held(&first), held(&second)), (1.0, 0.0));
    assert_eq!((second.metric(DAMAGED, ""), second.metric(DONE, "")), (0.0, 0.0));
    first.signal("KILL");
    first.child.wait().unwrap();
    wait_until("the other one to scrub", || second.metric(DONE, "") >= 0.5);
    assert_eq!((held(&second), second.metric(DAMAGED, "")), (1.0, 0.0), "it reads nothing twice");
}
