//! The schema ttninjs 1.6, compiled once.

use std::{fmt, sync::OnceLock};

use jsonschema::{Draft, ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

/// The schema as it is published, JSON Schema draft 4.
pub const SCHEMA: &str = include_str!("../../assets/ttninjs-schema_1.6.json");
/// Problems listed for one document; the rest adds nothing.
pub(super) const VIOLATIONS_MAX: usize = 8;
/// Characters of a problem's message; a message may quote the value.
const MESSAGE_CHARS_MAX: usize = 300;

/// One place where a document breaks the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON pointer of the property, empty for the document itself. A property that is unknown or
    /// missing is named too.
    pub path: String,
    /// The rule that is broken: `enum`, `required`, `type`, `format`, `additionalProperties`, …
    pub rule: String,
    /// What is wrong with it.
    pub message: String,
}

impl SchemaViolation {
    /// A problem with the property at `path` that the schema does not know of.
    #[must_use]
    pub fn new(path: &str, rule: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), rule: rule.to_owned(), message: message.into() }
    }

    /// The problems that one error of the validator stands for: an unknown property each.
    fn of(error: &ValidationError<'_>) -> Vec<Self> {
        let at = error.instance_path().to_string();
        let kind = error.kind();
        let rule = kind.keyword();
        if let ValidationErrorKind::AdditionalProperties { unexpected } = kind {
            let unknown = |name: &String| {
                Self::new(&child_pointer(&at, name), rule, format!("'{name}' is unknown"))
            };
            return unexpected.iter().take(VIOLATIONS_MAX).map(unknown).collect();
        }
        let mut message = error.to_string();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
            message.push('…');
        }
        if let ValidationErrorKind::Required { property: Value::String(name) } = kind {
            return vec![Self::new(&child_pointer(&at, name), rule, message)];
        }
        vec![Self::new(&at, rule, message)]
    }
}

/// The JSON pointer of the property `name` of what is at `path`.
pub(super) fn child_pointer(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl fmt::Display for SchemaViolation {
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

/// Checks a document.
///
/// The verdict alone is several times cheaper than the list of problems, so that is asked first.
pub(super) fn check(document: &Value) -> Result<(), Vec<SchemaViolation>> {
    if validator().is_valid(document) {
        return Ok(());
    }
    let errors = validator().iter_errors(document).take(VIOLATIONS_MAX);
    let mut problems: Vec<SchemaViolation> =
        errors.flat_map(|error| SchemaViolation::of(&error)).collect();
    problems.truncate(VIOLATIONS_MAX);
    Err(problems)
}
