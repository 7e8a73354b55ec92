//! The exiftool that npm distributes, in the version that `tests/clients/package.json` pins.

use std::{path::Path, process::Command};

use serde_json::{Map, Value};

use crate::{clients, common::oracle};

/// Tags by `Group:Tag`.
pub(super) type Tags = Map<String, Value>;

/// exiftool without the settings of the user who runs the tests. Text is UTF-8.
fn command() -> Command {
    let script = clients::node_scripts().join("node_modules/exiftool-vendored.pl/bin/exiftool");
    let mut command = Command::new("perl");
    command.arg(script).args(["-config", "", "-charset", "filename=UTF8"]);
    command
}

/// The tags of every file in a folder, unknown ones included, by file name; structures are objects, and values are
/// as in the file.
pub(super) fn read(folder: &Path) -> Vec<(String, Tags)> {
    let mut command = command();
    command.args(["-json", "-struct", "-G1", "-a", "-u", "-n", "-validate", "-error", "-warning"]);
    command.args(["-all", "-charset", "iptc=UTF8"]).arg(folder);
    let output = oracle::pipe(&mut command, b"");
    let mut files: Vec<Tags> = serde_json::from_slice(&output).expect("JSON");
    for tags in &mut files {
        // exiftool leaves out the address of the vocabulary.
        if let Some(Value::String(code)) = tags.get_mut(super::DATA_MINING_TAG) {
            code.insert_str(0, super::PLUS);
        }
    }
    let name = |tags: &Tags| tags["System:FileName"].as_str().expect("a name").to_owned();
    let mut files: Vec<_> = files.into_iter().map(|tags| (name(&tags), tags)).collect();
    files.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, tags) in &files {
        assert_eq!(tags.get("ExifTool:Error"), None, "{name}");
    }
    files
}

/// Checks that exiftool finds no mistake in the metadata of a file.
#[track_caller]
pub(super) fn is_sound(name: &str, tags: &Tags) {
    let count = tags["ExifTool:Validate"].as_str().expect("errors, warnings and minor warnings");
    let warning = tags.get("ExifTool:Warning").and_then(Value::as_str).unwrap_or_default();
    assert_eq!(count, "0 0 0", "{name}: {warning}");
}

/// The JPEG with metadata that exiftool writes.
pub(super) fn write(jpeg: &[u8], arguments: &[&str]) -> Vec<u8> {
    let mut command = command();
    command.arg("-q").args(arguments).args(["-o", "-", "-"]);
    oracle::pipe(&mut command, jpeg)
}

#[test]
fn exiftool_is_the_pinned_one_and_knows_the_standard() {
    let output = oracle::pipe(command().arg("-ver"), b"");
    let version = String::from_utf8(output).expect("a version");
    let manifest = crate::common::checkout("tests/clients/package.json");
    let manifest = std::fs::read_to_string(manifest).expect("the manifest");
    assert!(manifest.contains(&format!("\"exiftool-vendored.pl\": \"{}.", version.trim())));
    let reading = super::Renditions::new();
    reading.add("reference.jpg", &super::fixtures::reference());
    let (_, tags) = reading.tags().remove(0);
    assert!(tags.contains_key("XMP-iptcExt:AIPromptWriterName"), "{tags:#?}");
}
