//! Locates the two schemas for the tests.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The JSON schema of documents.
const DOCUMENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../model/assets/ttninjs-schema_1.6.json");
/// The XML schema of messages; it imports `xml.xsd` from the same directory.
const MESSAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/schemas/NewsML-G2_2.30-spec-All-Power.xsd");

/// Loads the JSON schema of documents.
pub(super) fn document() -> Value {
    serde_json::from_slice(&std::fs::read(DOCUMENT).unwrap()).unwrap()
}

/// Asserts that every message is valid. One call validates all of them, because loading the schema takes most
/// of the time.
pub(super) fn assert_valid(messages: &[Vec<u8>], folder: &Path) {
    let mut command = Command::new("xmllint");
    // Tests use no network, and `--huge` lifts the parser's limits on long texts.
    command.args(["--nonet", "--noout", "--huge", "--schema", MESSAGE]);
    for (index, message) in messages.iter().enumerate() {
        let path = folder.join(format!("{index}.xml"));
        std::fs::write(&path, message).unwrap();
        command.arg(path);
    }
    let output = command.output().expect("xmllint is installed");
    let report = String::from_utf8_lossy(&output.stderr);
    let errors = report.lines().filter(|line| !line.ends_with(" validates"));
    let errors: Vec<_> = errors.take(5).collect();
    assert!(output.status.success() && errors.is_empty(), "{errors:#?}");
    assert_eq!(report.lines().count(), messages.len(), "each message has its line");
}
