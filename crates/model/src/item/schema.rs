//! Validates documents against the JSON schema of ttninjs 1.6, the news agency TT's variant of the IPTC's ninjs.

use std::{fmt, sync::LazyLock};

use jsonschema::{Draft, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use crate::text::shorten;

/// The schema as published, in JSON Schema draft 4.
pub const SCHEMA: &str = include_str!("../../assets/ttninjs-schema_1.6.json");
/// Maximum number of reported violations per document; more would not help the sender.
pub(super) const VIOLATIONS_MAX: usize = 8;
/// Maximum length of a message of the validator in characters, since it may quote the value.
const MESSAGE_CHARS_MAX: usize = 300;

/// A violation of the schema, or of a further rule for documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// The JSON pointer of the property, even if it is unknown or missing; empty for the document itself.
    pub path: String,
    /// The violated rule: `enum`, `required`, `type`, `format`, `additionalProperties`, …
    pub rule: String,
    /// A description of the violation.
    pub message: String,
}

impl SchemaViolation {
    /// Creates a violation of `rule` at the property `path`. Public for the few rules of documents that the schema does
    /// not have.
    pub fn new(path: &str, rule: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), rule: rule.to_owned(), message: message.into() }
    }

    /// Converts one error of the validator, with one violation for each unknown property.
    fn from_error(error: &ValidationError<'_>) -> Vec<Self> {
        let pointer = error.instance_path().to_string();
        let kind = error.kind();
        let rule = kind.keyword();
        if let ValidationErrorKind::AdditionalProperties { unexpected } = kind {
            // The validator reports the enclosing object, but the sender needs the property (contract items-5).
            let mut violations = Vec::new();
            for name in unexpected.iter().take(VIOLATIONS_MAX) {
                let path = child_pointer(&pointer, name);
                violations.push(Self::new(&path, rule, format!("'{name}' is unknown")));
            }
            return violations;
        }
        // The message may quote the value, such as a body of many kilobytes.
        let message = shorten(&error.to_string(), MESSAGE_CHARS_MAX);
        if let ValidationErrorKind::Required { property: Value::String(name) } = kind {
            return vec![Self::new(&child_pointer(&pointer, name), rule, message)];
        }
        vec![Self::new(&pointer, rule, message)]
    }
}

/// Returns the JSON pointer of the property `name` of the value at `path`.
pub(super) fn child_pointer(path: &str, name: &str) -> String {
    // RFC 6901 §3. The tilde comes first, or it would escape the escape of the slash.
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pointer of the document itself is empty, which would leave the message without a subject.
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "{path}: {}", self.message)
    }
}

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the shipped schema is JSON");
    jsonschema::options()
        .with_draft(Draft::Draft4)
        // The default of draft 4, but explicit: with the default of draft 2019-09 and later, `uri` and `date-time`
        // would accept any text.
        .should_validate_formats(true)
        .build(&schema)
        .expect("the shipped schema compiles")
});

/// Validates a document against the schema.
///
/// A yes-or-no check is several times cheaper than the list of violations, so it comes first.
pub(super) fn check(document: &Value) -> Result<(), Vec<SchemaViolation>> {
    if VALIDATOR.is_valid(document) {
        return Ok(());
    }
    let errors = VALIDATOR.iter_errors(document).take(VIOLATIONS_MAX);
    let mut problems: Vec<SchemaViolation> =
        errors.flat_map(|error| SchemaViolation::from_error(&error)).collect();
    // A single error can stand for several unknown properties.
    problems.truncate(VIOLATIONS_MAX);
    Err(problems)
}
