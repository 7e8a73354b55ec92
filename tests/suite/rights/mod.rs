//! Rights and provenance of pictures (`docs/contract/media.md`, `docs/contract/files.md`): what renditions carry of
//! the metadata of their original, where documents and pages state it, and who sets it.
//!
//! A current exiftool reads the renditions: the one of Debian is older than IPTC Photo Metadata 2025.1.

mod cut;
mod exiftool;
mod fixtures;
mod pages;
mod privacy;
mod properties;
mod regions;
mod set;
mod sources;
mod standard;
mod stated;

use std::fs;

use reqwest::{Method, blocking::Response, header::AUTHORIZATION};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{DEMO_KEY, Server};
use exiftool::Tags;

/// The vocabulary of digital source types.
const SOURCE_TYPES: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";
/// The vocabulary of PLUS for data mining.
const PLUS: &str = "http://ns.useplus.org/ldf/vocab/";
/// The names by which exiftool knows both properties.
const SOURCE_TYPE_TAG: &str = "XMP-iptcExt:DigitalSourceType";
const DATA_MINING_TAG: &str = "XMP-plus:DataMining";

/// No rendition is made before it is asked for, and any width is served.
const PLAIN: [&str; 2] = ["media.warm=false", "media.widths=any"];

/// The text of a header; empty if it is absent.
fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
}

/// GET with the key of the demo editor, who may have everything.
fn ask(server: &Server, path: &str) -> Response {
    server.get_with(path, &[("authorization", &format!("ApiKey {DEMO_KEY}"))])
}

/// The body of a GET with that key, which must be 200.
#[track_caller]
fn fetch(server: &Server, path: &str) -> Vec<u8> {
    let response = ask(server, path);
    assert_eq!(response.status(), 200, "{path}");
    response.bytes().expect("body").to_vec()
}

#[track_caller]
fn json_of(server: &Server, path: &str) -> Value {
    serde_json::from_slice(&fetch(server, path)).unwrap_or_else(|cause| panic!("{path}: {cause}"))
}

/// A request of the provider whose `Authorization` header is `auth`.
fn send(
    server: &Server,
    method: Method,
    path: &str,
    auth: &str,
    body: Option<&Value>,
) -> Response {
    let request = server.client.request(method, format!("{}{path}", server.url));
    let request = request.header(AUTHORIZATION, auth).header("content-type", "application/json");
    let body = body.map(Value::to_string).unwrap_or_default();
    request.body(body).send().expect("answer")
}

/// Renditions of items in a folder, for one call of exiftool.
struct Renditions {
    folder: TempDir,
}

impl Renditions {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("folder") }
    }

    /// Adds a file.
    fn add(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).expect("written");
    }

    /// Adds the renditions `rests` of the photograph `id`, as files of these names.
    #[track_caller]
    fn fetch(&self, server: &Server, id: &str, rests: &[&str]) {
        for rest in rests {
            let name = format!("{id}{rest}");
            self.add(&name, &fetch(server, &format!("/media/image/{name}")));
        }
    }

    /// The tags of every file, by its name.
    fn tags(&self) -> Vec<(String, Tags)> {
        exiftool::read(self.folder.path())
    }

    /// The bytes of every file, by its name.
    fn bytes(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.path()).expect("folder");
        let read = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().expect("a name");
            (name, fs::read(entry.path()).expect("a file"))
        };
        entries.map(|entry| read(entry.expect("an entry"))).collect()
    }
}
