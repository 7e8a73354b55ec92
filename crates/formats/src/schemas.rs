//! Locates the schemas for the tests.

use super::NewsmlVersion;
use jsonschema::{Draft, Registry};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The JSON schema of documents.
const DOCUMENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../model/assets/ttninjs-schema_1.6.json");
/// The directory of the schemas of standards. Those of messages import `xml.xsd` from it.
const STANDARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/schemas");
/// The identifier of the schema of positions, to which that of ninjs refers.
const POSITIONS: &str = "https://geojson.org/schema/GeoJSON.json";

/// Loads the JSON schema of documents.
pub(super) fn document() -> Value {
    serde_json::from_slice(&std::fs::read(DOCUMENT).unwrap()).unwrap()
}

/// Asserts that every message is valid in its version. One call validates all of them, because loading the schema
/// takes most of the time.
pub(super) fn assert_valid(messages: &[Vec<u8>], version: NewsmlVersion, folder: &Path) {
    let schema = format!("{STANDARDS}/NewsML-G2_{}-spec-All-Power.xsd", version.as_str());
    let mut command = Command::new("xmllint");
    // Tests use no network, and `--huge` lifts the parser's limits on long texts.
    command.args(["--nonet", "--noout", "--huge", "--schema", &schema]);
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

/// Whether the formats of texts, such as `uri`, are checked, too. Hostile documents break them where the document's own
/// schema allows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFormats {
    Checked,
    Ignored,
}

/// Returns what is wrong with each of `documents` by the schema of ninjs 3.1.
pub(super) fn ninjs_errors(documents: &[Value], formats: TextFormats) -> Vec<Vec<String>> {
    let text = std::fs::read(format!("{STANDARDS}/ninjs-schema_3.1.json")).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    // The schema of positions is at another host, and tests use no network.
    let point = json!({
        "type": "object",
        "required": ["type", "coordinates"],
        "properties": {
            "type": { "const": "Point" },
            "coordinates": { "type": "array", "minItems": 2, "items": { "type": "number" } },
        },
    });
    let registry = Registry::new().add(POSITIONS, point).unwrap().prepare().unwrap();
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(formats == TextFormats::Checked)
        .with_registry(&registry)
        .build(&schema)
        .unwrap();
    let each = documents.iter().map(|document| {
        let errors = validator.iter_errors(document);
        errors.map(|error| format!("{error} at {}", error.instance_path())).collect()
    });
    each.collect()
}

/// Reads the documents of the IPTC's test suite for ninjs in `folder`.
pub(super) fn ninjs_suite(folder: &str) -> Vec<Value> {
    let files = std::fs::read_dir(format!("{STANDARDS}/ninjs-3.1-test-suite/{folder}")).unwrap();
    let texts = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    texts.map(|text| serde_json::from_slice(&text).unwrap()).collect()
}
