//! TLS to the database, and passwords that are shown and logged nowhere.

use reqwest::Method;
use serde_json::json;

use super::{Archive, call, text};
use crate::common::postgres::Cluster;
use crate::common::server::{output, wirephoto};
use crate::receivers::python;

#[test]
fn tls_connections_are_made_only_to_trusted_servers() {
    let folder = tempfile::tempdir().unwrap();
    assert!(python("tls_files.py").arg(folder.path()).status().unwrap().success());
    let cluster = Cluster::start();
    let url = cluster.database("archive");
    cluster.enable_tls(&folder.path().join("one/server.pem"));
    let dir = tempfile::tempdir().unwrap();
    let check = |more: &str| {
        let mut command = wirephoto(dir.path());
        command.args(["check", "--set", &format!("database.url={url}?{more}"), "--data"]);
        let output = output(command.arg(dir.path().join("data")));
        (output.status.code(), text(&output))
    };
    let ca = |name: &str| format!("sslrootcert={}", folder.path().join(name).display());
    let (status, said) = check(&format!("sslmode=verify-full&{}", ca("one/ca.pem")));
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = check(&format!("sslmode=require&{}", ca("two/ca.pem")));
    assert!(status == Some(1) && said.contains("certificate"), "{said}");
    let (status, said) = check("sslmode=require");
    assert!(status == Some(1) && said.contains("certificate"), "{said}");
    // The first connection was encrypted: the server rejects one without TLS.
    cluster.set_hba_rules("hostssl all all 127.0.0.1/32 trust");
    let (status, said) = check("sslmode=disable");
    assert!(status == Some(1) && said.contains("no encryption"), "{said}");
    let (status, said) = check(&format!("sslmode=verify-full&{}", ca("one/ca.pem")));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn the_database_password_is_shown_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = wirephoto(dir.path());
        let shown = output(command.args(arguments).arg("--data").arg(dir.path().join("data")));
        assert!(!text(&shown).contains("hunter2"), "{}", text(&shown));
        text(&shown)
    };
    let nowhere = "database.url=postgres://wp:hunter2@127.0.0.1:1/archive";
    let shown = run(&["config", "--set", nowhere, "--set", "database.password=hunter2"]);
    assert!(shown.contains("postgres://wp:***@127.0.0.1:1/archive"), "{shown}");
    let said = run(&["check", "--set", nowhere]);
    assert!(said.contains("database.url"), "{said}");
    run(&["check", "--set", "database.url=postgres://wp:hunter2@127.0.0.1:x/archive"]);
    run(&["check", "--set", "database.url=mysql://wp:hunter2@127.0.0.1/archive"]);
    run(&["check", "--set", "database.url=postgres://wp:hunter2@127.0.0.1/x?sslmode=prefer"]);
}

/// All log lines, including those of the driver, show statements without their values.
#[test]
fn stored_passwords_are_in_no_log_line() {
    let archive = Archive::with(&[]);
    let server = archive.node_with(&["telemetry.log_level=trace"]);
    let settings = json!({
        "host": "files.example", "port": 22, "username": "u", "password": "hunter2hunter2",
        "hostKey": format!("SHA256:{}", "A".repeat(43)),
    });
    let channel = json!({ "method": "sftp", "formats": [".json"], "settings": settings });
    let (status, reported) =
        call(&server, Method::PUT, "/user/v1/channel/archive", Some(&channel));
    assert_eq!(status, 200, "{reported}");
    let (_, log) = server.stop();
    assert!(log.contains("executing statement"), "the driver's lines are there");
    assert!(!log.contains("hunter2hunter2"), "{log}");
}
