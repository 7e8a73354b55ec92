//! One node: what it serves and finds, and a dump that is restored.

use std::{
    fs,
    path::Path,
    process::Output,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use reqwest::Method;
use serde_json::{Value, json};

use super::{Archive, ROOT, call, found, older, photograph, text};
use crate::common::postgres;
use crate::common::server::output;
use crate::common::tokens;
use crate::documented::{pages::block, run::substitute};

#[test]
fn an_archive_in_postgresql_is_served_searched_and_checked() {
    let archive = Archive::with(&[
        ("image/ice", older("Isbrytare i Kvarken")),
        ("image/sea", photograph("Segelbåt i Kvarken, utan is")),
    ]);
    let server = archive.node();
    assert!(!server.data().join("wirephoto.db").exists());
    assert!(server.bytes("/media/image/ice_NormalPreview.jpg").starts_with(&[0xff, 0xd8]));
    for (query, expected) in [
        ("q=isbrytare", "ice"),
        ("q=%22i+kvarken%22&sort=default:asc", "ice sea"),
        ("q=%22kvarken+i%22", ""),
        ("q=seg*", "sea"),
        ("q=segelb%C3%A5t", "sea"),
        ("q=segelb%C3%B6t", ""),
        ("q=headline:is", "sea"),
        ("q=kvarken+-is", "ice"),
        ("p=FOTO&q=utan", "sea"),
        ("p=SPORT", ""),
    ] {
        assert_eq!(found(&server, query), expected, "{query}");
    }
    let token = tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    let auth = format!("Bearer {token}");
    let user: Value =
        server.get_with("/user/v1/user", &[("authorization", &auth)]).json().unwrap();
    assert_eq!(user["userName"], "demo-editor");
    archive.run(&["reindex"], 0);
    archive.run(&["check"], 0);
    assert_eq!(found(&server, "q=isbrytare"), "ice");
    for kind in ["read", "search", "write"] {
        let label = format!("kind=\"{kind}\"");
        server.until("a call that waited", || {
            (server.metric("wirephoto_database_wait_seconds_count", &label) > 0.0).then_some(())
        });
    }
    let target = archive.dir.path().join("backup");
    let said = archive.run(&["backup", target.to_str().unwrap()], 1);
    assert!(said.contains("pg_dump"), "{said}");
    drop(server);
    // A database written by a later version of the product.
    let url = archive.cluster.url("archive");
    postgres::run(&url, "UPDATE writer SET schema = 9999");
    let said = archive.run(&["check"], 1);
    assert!(said.contains("schema 9999"), "{said}");
}

/// Runs the block of `docs/operations/postgresql.md` that begins with `start` in the folder `dir`, with the data
/// directory `data`, on the database at `url`.
fn as_documented(start: &str, dir: &Path, data: &Path, url: &str) -> Output {
    let (backup, place) = (dir.join("backup"), data.to_str().unwrap());
    fs::create_dir_all(&backup).unwrap();
    let mut block = block("docs/operations/postgresql.md", start).text;
    if let Some((_, address)) = block.split_once("URL='") {
        block = block.replace(address.split('\'').next().unwrap(), url);
    }
    let settings = dir.join("wirephoto.toml");
    fs::write(&settings, "").unwrap();
    let backup = backup.to_str().unwrap();
    let block = substitute(&block, &[("FILE", settings.to_str().unwrap()), ("/backup", backup)]);
    let mut shell = postgres::shell(&format!("set -e\n{block}"), url);
    shell.env("WIREPHOTO_DATABASE__URL", url).env("WIREPHOTO_DATA__DIR", place);
    output(shell.current_dir(dir))
}

#[test]
fn a_dump_taken_while_the_service_runs_restores_the_archive_of_that_moment() {
    let archive = Archive::with(&[
        ("image/ice", older("Isbrytare i Kvarken")),
        ("image/sea", photograph("Segelbåt i Kvarken, utan is")),
    ]);
    let (dir, server) = (archive.dir.path(), archive.node());
    let body = json!({"name": "desk"});
    let (status, made) = call(&server, Method::POST, ROOT, Some(&body));
    assert_eq!(status, 200, "{made}");
    let token = tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    let token = format!("Bearer {token}");
    let stop = AtomicBool::new(false);
    let dumped = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                call(&server, Method::POST, ROOT, Some(&body));
            }
        });
        let url = archive.cluster.url("archive");
        let dumped = as_documented("export PGPASSWORD", dir, &dir.join("data"), &url);
        stop.store(true, Ordering::Relaxed);
        dumped
    });
    assert!(dumped.status.success(), "{}", text(&dumped));
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    // Items ingested later are not in the dump.
    archive.ingest(&[("image/new", photograph("Slussen"))]);
    archive.run(&["withdraw", "image/ice"], 0);
    let url = archive.cluster.database("restored");
    let restored = as_documented("pg_restore ", dir, &data, &url);
    assert!(restored.status.success(), "{}", text(&restored));
    drop(server);
    let Archive { cluster, .. } = archive;
    let again = Archive { cluster, setting: format!("database.url={url}"), dir: home };
    again.run(&["check"], 0);
    let server = again.node();
    for (query, expected) in [
        ("q=isbrytare", "ice"),
        ("q=%22i+kvarken%22&sort=default:asc", "ice sea"),
        ("q=seg*", "sea"),
        ("q=kvarken+-is", "ice"),
        ("p=FOTO", "sea ice"),
        ("q=slussen", ""),
    ] {
        assert_eq!(found(&server, query), expected, "{query}");
    }
    for item in ["ice", "sea"] {
        let preview = server.bytes(&format!("/media/image/{item}_NormalPreview.jpg"));
        assert!(preview.starts_with(&[0xff, 0xd8]), "{item}");
    }
    // Keys, tokens and logins work, and everything created before the dump is there.
    let path = format!("{ROOT}/{}", made["id"].as_str().unwrap());
    assert_eq!(call(&server, Method::GET, &path, None).0, 200);
    assert_eq!(server.get_with("/user/v1/user", &[("authorization", &token)]).status(), 200);
    tokens::password(&server, "demo-editor", "demo-editor-password", "openid roles");
    // New rows get new numbers: no number is assigned twice.
    again.ingest(&[("image/later", photograph("Slussen"))]);
    server
        .until("the item to be found", || (found(&server, "q=slussen") == "later").then_some(()));
}
