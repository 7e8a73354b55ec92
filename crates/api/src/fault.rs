//! The faults of a request, in the words of the contract's errors (contract api-14).

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;
use strum::IntoStaticStr;

/// Most faults that are reported, so that a body with thousands of them gets an answer that a person can read.
const FAULTS_MAX: usize = 20;
/// Longest part of a caller's text that a message repeats, in characters.
const ECHO_CHARS_MAX: usize = 40;

/// The part of a request that has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Location {
    /// The path of the address.
    Path,
    /// The query of the address.
    Query,
    /// The body.
    Body,
}

model::impl_as_str!(Location);

/// Something that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The broken rule: `enum`, `required`, `type`, `format`, `minimum`, `maximum`, `additionalProperties` or `pattern`.
    pub rule: &'static str,
    /// The part of the request.
    pub location: Location,
    /// The name of the parameter, or the path of the property with dots: `license.uuid`. Empty for the whole body.
    pub path: String,
    /// The message for a person, which begins with the path.
    pub message: String,
}

impl Fault {
    /// Describes a fault at `path`.
    pub fn new(
        rule: &'static str,
        location: Location,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { rule, location, path: path.into(), message: message.into() }
    }

    /// Collects the faults of `value`. `locate` tells the part of the request by the first name of the path.
    pub(crate) fn collect(
        validator: &Validator,
        value: &Value,
        locate: impl Fn(&str) -> Location,
    ) -> Vec<Self> {
        let mut faults = Vec::new();
        for error in validator.iter_errors(value) {
            add(&mut faults, &error, &locate);
            if faults.len() >= FAULTS_MAX {
                break;
            }
        }
        // What is declared comes first, in its order.
        faults.sort_by_key(|fault| fault.rule == "additionalProperties");
        faults
    }
}

/// Adds the faults that `error` stands for.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of a library, of which few occur")]
fn add(faults: &mut Vec<Fault>, error: &ValidationError<'_>, locate: &impl Fn(&str) -> Location) {
    let path = path_of(error, locate);
    let instance = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let path = joined(&path, property.as_str().unwrap_or_default());
            push(faults, "required", &path, "is missing", locate);
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for name in unexpected.iter().take(FAULTS_MAX) {
                // The client chose the name, so the error repeats only the start of it.
                let name: String = name.chars().take(ECHO_CHARS_MAX).collect();
                let message = "is not an allowed property";
                push(faults, "additionalProperties", &joined(&path, &name), message, locate);
            }
        }
        // A value that may be null: the alternative that is not `null` says what is wrong.
        ValidationErrorKind::AnyOf { context }
        | ValidationErrorKind::OneOfNotValid { context }
            if !instance.is_null() =>
        {
            for nested in context.first().into_iter().flatten() {
                add(faults, nested, locate);
            }
        }
        _ => {
            let (rule, message) = describe(error, locate(first_name(&path)));
            push(faults, rule, &path, &message, locate);
        }
    }
}

/// Returns the path of the property with dots. Of a parameter it is the name alone: an element of a list has no path.
fn path_of(error: &ValidationError<'_>, locate: &impl Fn(&str) -> Location) -> String {
    let pointer = error.instance_path().as_str().trim_start_matches('/');
    let name = pointer.split('/').next().unwrap_or_default();
    if locate(name) == Location::Body { pointer.replace('/', ".") } else { name.to_owned() }
}

fn push(
    faults: &mut Vec<Fault>,
    rule: &'static str,
    path: &str,
    message: &str,
    locate: &impl Fn(&str) -> Location,
) {
    let name = if path.is_empty() { "the body" } else { path };
    let fault = Fault::new(rule, locate(first_name(path)), path, format!("{name} {message}"));
    match faults.iter_mut().find(|known| known.path == path) {
        Some(known) if rank(rule) < rank(known.rule) => *known = fault,
        Some(_) => {}
        None => faults.push(fault),
    }
}

/// The order in which rules are checked: of a value that breaks several, the first is reported.
fn rank(rule: &str) -> usize {
    let order = ["required", "type", "enum", "minimum", "maximum", "pattern", "format"];
    order.iter().position(|known| *known == rule).unwrap_or(order.len())
}

fn first_name(path: &str) -> &str {
    path.split('.').next().unwrap_or_default()
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() || name.is_empty() {
        return format!("{prefix}{name}");
    }
    format!("{prefix}.{name}")
}

/// Returns the rule that is broken, and a message without the path.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds of a library, of which few occur")]
fn describe(error: &ValidationError<'_>, location: Location) -> (&'static str, String) {
    let instance = error.instance();
    match error.kind() {
        ValidationErrorKind::Type { kind } => ("type", describe_type(instance, kind, location)),
        ValidationErrorKind::Enum { options } => {
            let words = options.as_array().into_iter().flatten().filter(|word| !word.is_null());
            let words: Vec<String> = words.map(echo).collect();
            let expected = match words.as_slice() {
                [word] => word.clone(),
                _ => format!("one of {}", words.join(", ")),
            };
            if location == Location::Body {
                return ("enum", format!("must be {expected}"));
            }
            ("enum", format!("is `{}`, expected {expected}", echo(instance)))
        }
        ValidationErrorKind::Minimum { limit } => {
            ("minimum", format!("is {}, expected at least {limit}", echo(instance)))
        }
        ValidationErrorKind::Maximum { limit } => {
            ("maximum", format!("is {}, expected at most {limit}", echo(instance)))
        }
        ValidationErrorKind::MaxLength { limit } => {
            ("maximum", format!("has more than {limit} characters"))
        }
        ValidationErrorKind::MinLength { limit: 1 } => ("minimum", "is empty".to_owned()),
        ValidationErrorKind::MinLength { limit } => {
            ("minimum", format!("has fewer than {limit} characters"))
        }
        ValidationErrorKind::MaxItems { limit } => {
            ("maximum", format!("has more than {limit} elements"))
        }
        ValidationErrorKind::MinItems { .. } => {
            ("minimum", "has no elements, expected at least one".to_owned())
        }
        ValidationErrorKind::Pattern { pattern } => ("pattern", describe_pattern(pattern)),
        ValidationErrorKind::Format { format } if format == "item-id" => {
            ("pattern", "is not the id of an item".to_owned())
        }
        ValidationErrorKind::Format { format } => ("format", describe_format(format).to_owned()),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            ("type", "must not be null".to_owned())
        }
        // The derived schemas have no other keywords.
        _ => ("format", "is not valid".to_owned()),
    }
}

fn describe_pattern(pattern: &str) -> String {
    match pattern {
        crate::property::LINE | crate::property::LINES => {
            "must not have control characters".to_owned()
        }
        crate::property::CODE => "has a `-` without a product code after it".to_owned(),
        crate::property::VISIBLE_LINE => "is empty or has control characters".to_owned(),
        crate::property::ELEMENTS => "has no elements, expected at least one".to_owned(),
        other => format!("does not match {other}"),
    }
}

fn describe_format(format: &str) -> &'static str {
    match format {
        "uuid" => "is not a UUID",
        "email" => "is not an e-mail address",
        "uri" => "is not a URI",
        "telephone" => "is not a telephone number",
        "date-time" => "is not a time as in RFC 3339",
        "date" => "is not a date as in RFC 3339",
        _ => "is not valid",
    }
}

fn describe_type(instance: &Value, kind: &TypeKind, location: Location) -> String {
    if instance.is_null() {
        return "must not be null".to_owned();
    }
    let expected: Vec<&str> = match kind {
        TypeKind::Single(kind) => vec![type_name(*kind)],
        TypeKind::Multiple(kinds) => {
            let named = kinds.iter().filter(|kind| *kind != JsonType::Null);
            named.map(type_name).collect()
        }
    };
    let expected = expected.join(" or ");
    match (location, instance) {
        (Location::Body, _) => {
            format!("is {}, expected {expected}", type_name(JsonType::from(instance)))
        }
        (_, Value::Array(_)) => "is given more than once".to_owned(),
        (_, _) => format!("is `{}`, expected {expected}", echo(instance)),
    }
}

/// The start of a caller's value.
fn echo(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return model::shorten(text, ECHO_CHARS_MAX);
    }
    model::shorten(&value.to_string(), ECHO_CHARS_MAX)
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}
