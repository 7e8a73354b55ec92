//! The reader of a stream in the guide on notifications, run as printed: it misses nothing that arrives while it is
//! killed, or after its stream has gone.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::{pages::block, run::substitute};
use crate::common::{DEMO_KEY, Server};
use crate::notifications::{ingest_photo, server};

/// The running reader, which prints what it receives to a file.
struct Reader(Child);

impl Reader {
    fn start(folder: &Path) -> Self {
        let printed = fs::File::options().create(true).append(true).open(folder.join("printed"));
        let mut command = Command::new("python3");
        command.arg("reader.py").current_dir(folder).env("no_proxy", "*");
        command.stdin(Stdio::null()).stdout(printed.unwrap());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Removes all streams of the demo editor.
fn remove_streams(server: &Server) {
    let streams = format!("/content/v1/_all/notification?ak={DEMO_KEY}");
    let streams: Vec<Value> = server.get(&streams).json().unwrap();
    assert!(!streams.is_empty());
    for stream in streams {
        let id = stream["id"].as_str().unwrap();
        let path = format!("{}/content/v1/_all/notification/{id}?ak={DEMO_KEY}", server.url);
        assert_eq!(server.client.delete(path).send().unwrap().status(), 200);
    }
}

#[test]
fn the_reader_of_the_guide_misses_nothing_after_a_kill_and_without_its_stream() {
    let server = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = block("docs/guide/notifications.md", "import datetime").text;
    let changes = [("http://127.0.0.1:8080", server.url.as_str()), ("\"hav\"", "\"isbrytare\"")];
    fs::write(folder.path().join("reader.py"), substitute(&script, &changes)).unwrap();
    let wait_for = |id: &str| {
        let uri = format!("/media/image/{id} ");
        server.until(id, || {
            let printed = fs::read_to_string(folder.path().join("printed")).unwrap();
            printed.contains(&uri).then_some(())
        });
    };
    let reader = Reader::start(folder.path());
    server.until("the reader to wait", || {
        (server.metric("wirephoto_stream_polls_waiting", "") > 0.0).then_some(())
    });
    ingest_photo(&server, "read", "Isbrytare");
    wait_for("read");
    drop(reader);
    remove_streams(&server);
    ingest_photo(&server, "while-killed", "Isbrytare");
    let reader = Reader::start(folder.path());
    wait_for("while-killed");
    remove_streams(&server);
    ingest_photo(&server, "without-stream", "Isbrytare");
    wait_for("without-stream");
    drop(reader);
}
