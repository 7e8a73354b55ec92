//! The schema ttninjs 1.6, compiled once.

use std::{fmt, sync::OnceLock};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

/// The schema as it is published, JSON Schema draft 4.
pub const SCHEMA: &str = include_str!("../../assets/schemas/ttninjs-schema_1.6.json");
/// Problems listed for one document; the rest adds nothing.
const PROBLEMS_MAX: usize = 8;

/// One place where a document breaks the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the property, empty for the document itself.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{path}: {}", self.message)
    }
}

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the shipped schema is JSON");
        jsonschema::options()
            .with_draft(Draft::Draft4)
            .should_validate_formats(true)
            .build(&schema)
            .expect("the shipped schema compiles")
    })
}

/// Checks the properties of a document.
pub(super) fn check(fields: &Map<String, Value>) -> Result<(), Vec<Problem>> {
    let value = Value::Object(fields.clone());
    let shorten = |text: String| match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    let problems: Vec<Problem> = validator()
        .iter_errors(&value)
        .take(PROBLEMS_MAX)
        .map(|error| Problem {
            path: error.instance_path().to_string(),
            message: shorten(error.to_string()),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
