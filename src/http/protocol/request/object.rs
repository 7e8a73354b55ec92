//! Reads the JSON body of a request and collects all of its problems.
//!
//! Extends [`ObjectReader`] by rules for absent and `null` properties, by the validation of texts, and by the
//! wording of the contract's errors. Problems name the path of their property, with dots: `phoneNumber.direct`.

use std::str::FromStr;

use serde_json::{Map, Value};
use strum::VariantNames;
use uuid::Uuid;

use crate::runtime::error::{Error, ErrorDetail, Result};
use crate::runtime::json_object::ObjectReader;
use crate::runtime::limits::{EMAIL_CHARS_MAX, URI_CHARS_MAX};

/// Most additional properties that are reported, so that a body with thousands of them gets a short response.
const ADDITIONAL_NAMED_MAX: usize = 20;
/// Longest part of an additional property's name that an error repeats, in characters.
const ECHO_CHARS_MAX: usize = 40;

/// The rule for an absent or `null` property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The property must be present and not `null`.
    Required,
    /// The property may be absent, but not `null`.
    NotNull,
    /// The property may be absent or `null`.
    Optional,
}

/// The value of a property. An invalid value is reported and counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue<T> {
    Absent,
    Null,
    Present(T),
}

impl<T> PropertyValue<T> {
    /// Returns the value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Maps the value with `next`; absent if `next` returns `None`.
    fn and_then<U>(self, next: impl FnOnce(T) -> Option<U>) -> PropertyValue<U> {
        match self {
            Self::Present(value) => {
                next(value).map_or(PropertyValue::Absent, PropertyValue::Present)
            }
            Self::Null => PropertyValue::Null,
            Self::Absent => PropertyValue::Absent,
        }
    }

    /// Writes the value to `target`, clears it for `null`, and otherwise does not change it.
    pub fn apply_to(self, target: &mut Option<T>) {
        match self {
            Self::Present(value) => *target = Some(value),
            Self::Null => *target = None,
            Self::Absent => {}
        }
    }
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// One line: no control characters.
    Line,
    /// Several lines: no control characters but tab, line feed and carriage return.
    Lines,
    Email,
    /// A UUID with hyphens.
    Uuid,
    /// A URI with a scheme (RFC 3986).
    Uri,
}

/// The rule that a text must satisfy.
#[derive(Clone, Copy, Debug)]
pub struct TextRule {
    /// Format of the text.
    pub format: TextFormat,
    /// Longest text, in characters.
    pub chars_max: usize,
}

impl TextRule {
    pub const EMAIL: Self = Self { format: TextFormat::Email, chars_max: EMAIL_CHARS_MAX };
    pub const UUID: Self = Self { format: TextFormat::Uuid, chars_max: 36 };

    /// A URI, at most as long as URLs may be.
    pub const URI: Self = Self { format: TextFormat::Uri, chars_max: URI_CHARS_MAX };

    /// Returns the rule for one line of at most `chars_max` characters.
    #[must_use]
    pub const fn line(chars_max: usize) -> Self {
        Self { format: TextFormat::Line, chars_max }
    }

    /// Returns the rule that `text` breaks, with a message that does not name the part.
    #[must_use]
    pub fn check(self, text: &str) -> Option<(&'static str, String)> {
        if text.chars().count() > self.chars_max {
            return Some(("maximum", format!("has more than {} characters", self.chars_max)));
        }
        let (is_valid, rule, expected) = match self.format {
            TextFormat::Line => {
                (has_no_controls_but(text, &[]), "pattern", "must not have control characters")
            }
            TextFormat::Lines => (
                has_no_controls_but(text, &['\t', '\n', '\r']),
                "pattern",
                "must not have control characters",
            ),
            TextFormat::Email => (is_email(text), "format", "is not an e-mail address"),
            TextFormat::Uuid => (is_uuid(text), "format", "is not a UUID"),
            TextFormat::Uri => (is_uri(text), "format", "is not a URI"),
        };
        (!is_valid).then(|| (rule, expected.to_owned()))
    }
}

/// Reads the properties of one object; see [`read_object`].
#[derive(Debug)]
pub struct PropertyReader<'a> {
    reader: ObjectReader<'a>,
    allows_unknown: bool,
    problems: Vec<ErrorDetail>,
}

/// Reads `value`, the body, as an object with `read`.
///
/// Fails with all problems that `read` reported, and with the properties that it did not read.
pub fn read_object<T>(
    value: &Value,
    read: impl FnOnce(&mut PropertyReader<'_>) -> T,
) -> Result<T> {
    let Value::Object(members) = value else {
        let message = format!("the body is {}, expected an object", json_type(value));
        return Err(Error::invalid("body", "", "type", message));
    };
    let mut object = PropertyReader::new(ObjectReader::new("", members));
    let outcome = read(&mut object);
    let problems = object.finish();
    if problems.is_empty() { Ok(outcome) } else { Err(Error::invalid_parts(problems)) }
}

/// Reads `value`, the body, as a list of 1 to `max` objects, each with `read`.
///
/// Fails with all problems that `read` reported, and stops when there are more than a person would read. Paths
/// begin with the index of the element, `3.uri`.
pub fn read_objects<T>(
    value: &Value,
    max: usize,
    mut read: impl FnMut(&mut PropertyReader<'_>) -> T,
) -> Result<Vec<T>> {
    let Value::Array(elements) = value else {
        let message = format!("the body is {}, expected an array", json_type(value));
        return Err(Error::invalid("body", "", "type", message));
    };
    if elements.is_empty() {
        let message = "the body has no elements, expected at least one";
        return Err(Error::invalid("body", "", "minimum", message));
    }
    check_length("", elements.len(), max)?;
    let mut outcomes = Vec::new();
    let mut problems = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        if problems.len() >= ADDITIONAL_NAMED_MAX {
            break;
        }
        // Reported instead of failing at once, so that all wrong elements are named together.
        let Value::Object(members) = element else {
            let message = format!("{index} is {}, expected an object", json_type(element));
            problems.push(ErrorDetail::of_rule("type", "body", index.to_string(), message));
            continue;
        };
        let mut object = PropertyReader::new(ObjectReader::new(format!("{index}."), members));
        outcomes.push(read(&mut object));
        problems.extend(object.finish());
    }
    if problems.is_empty() { Ok(outcomes) } else { Err(Error::invalid_parts(problems)) }
}

fn check_length(path: &str, length: usize, max: usize) -> Result<()> {
    if length <= max {
        return Ok(());
    }
    let name = if path.is_empty() { "the body" } else { path };
    let message = format!("{name} has {length} elements, at most {max} are allowed");
    Err(Error::invalid("body", path, "maximum", message))
}

impl<'a> PropertyReader<'a> {
    fn new(reader: ObjectReader<'a>) -> Self {
        Self { reader, allows_unknown: false, problems: Vec::new() }
    }

    /// Ignores properties that are not read, instead of reporting them.
    pub fn allow_unknown(&mut self) {
        self.allows_unknown = true;
    }

    /// Reports that the property `name` breaks a rule with its own `errorCode`.
    pub fn report(&mut self, name: &str, error_code: &str, message: &str) {
        let path = self.reader.path(name);
        let message = format!("{path} {message}");
        let error_code = error_code.to_owned();
        self.problems.push(ErrorDetail { error_code, location: "body", message, path });
    }

    /// Reports that the property `name` breaks `rule` of the contract.
    pub fn report_rule(&mut self, name: &str, rule: &str, message: &str) {
        let path = self.reader.path(name);
        let message = format!("{path} {message}");
        self.problems.push(ErrorDetail::of_rule(rule, "body", path, message));
    }

    /// Reads the text `name`.
    pub fn text(
        &mut self,
        name: &'static str,
        presence: Presence,
        text: TextRule,
    ) -> PropertyValue<String> {
        let found = self.read(name, presence, "a string", Value::as_str);
        found.and_then(|found| self.check(name, text, found))
    }

    /// Reads the text `name`, which is required; returns an empty text after it reported a problem.
    pub fn required(&mut self, name: &'static str, text: TextRule) -> String {
        self.text(name, Presence::Required, text).value().unwrap_or_default()
    }

    /// Reads the text `name` as the word of a variant of `T`.
    pub fn variant<T: FromStr + VariantNames>(
        &mut self,
        name: &'static str,
        presence: Presence,
    ) -> PropertyValue<T> {
        self.read(name, presence, "a string", Value::as_str).and_then(|text| {
            let found = text.parse().ok();
            if found.is_none() {
                let words = T::VARIANTS.join(", ");
                self.report_rule(name, "enum", &format!("must be one of {words}"));
            }
            found
        })
    }

    /// Reads the boolean `name`.
    pub fn flag(&mut self, name: &'static str, presence: Presence) -> PropertyValue<bool> {
        self.read(name, presence, "a boolean", Value::as_bool)
    }

    /// Reads the list `name` of up to `max` texts.
    pub fn texts(
        &mut self,
        name: &'static str,
        presence: Presence,
        text: TextRule,
        max: usize,
    ) -> PropertyValue<Vec<String>> {
        self.read(name, presence, "an array", Value::as_array).and_then(|elements| {
            if let Err(too_long) = check_length(&self.reader.path(name), elements.len(), max) {
                self.problems.extend_from_slice(too_long.details());
                return None;
            }
            // Problems of other properties must not make this one invalid.
            let before = self.problems.len();
            let mut texts = Vec::new();
            for (index, element) in elements.iter().enumerate() {
                let path = format!("{name}.{index}");
                match element.as_str() {
                    Some(found) => texts.extend(self.check(&path, text, found)),
                    None => self.report_type(&path, element, "a string"),
                }
                // A list of thousands of wrong elements gets a response that a person can read.
                if self.problems.len() - before >= ADDITIONAL_NAMED_MAX {
                    break;
                }
            }
            (self.problems.len() == before).then_some(texts)
        })
    }

    /// Reads the object `name` with `read`.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        presence: Presence,
        read: impl FnOnce(&mut PropertyReader<'_>) -> T,
    ) -> PropertyValue<T> {
        self.read(name, presence, "an object", Value::as_object).and_then(|members| {
            let mut nested = PropertyReader::new(self.reader.within(name, members));
            let outcome = read(&mut nested);
            self.problems.extend(nested.finish());
            Some(outcome)
        })
    }

    /// Reads the object `name` unchecked, for a caller that validates its properties.
    pub fn members(
        &mut self,
        name: &'static str,
        presence: Presence,
    ) -> PropertyValue<Map<String, Value>> {
        self.read(name, presence, "an object", |value| value.as_object().cloned())
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        presence: Presence,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> PropertyValue<T> {
        match (self.reader.find(name), presence) {
            (None, Presence::Required) => self.report_rule(name, "required", "is missing"),
            (None, Presence::NotNull | Presence::Optional) => {}
            (Some(Value::Null), Presence::Required | Presence::NotNull) => {
                self.report_rule(name, "type", "must not be null");
            }
            (Some(Value::Null), Presence::Optional) => return PropertyValue::Null,
            (Some(value), _) => match read(value) {
                Some(read) => return PropertyValue::Present(read),
                None => self.report_type(name, value, expected),
            },
        }
        PropertyValue::Absent
    }

    /// Returns the text `found` of the property `name` if it satisfies `text`, else reports a problem.
    fn check(&mut self, name: &str, text: TextRule, found: &str) -> Option<String> {
        let Some((rule, message)) = text.check(found) else { return Some(found.to_owned()) };
        self.report_rule(name, rule, &message);
        None
    }

    fn report_type(&mut self, name: &str, value: &Value, expected: &str) {
        let message = format!("is {}, expected {expected}", json_type(value));
        self.report_rule(name, "type", &message);
    }

    fn finish(mut self) -> Vec<ErrorDetail> {
        if !self.allows_unknown {
            let others: Vec<_> = self.reader.unknown().take(ADDITIONAL_NAMED_MAX).collect();
            for (name, _) in others {
                // The client chose the name, so the error repeats only the start of it.
                let name: String = name.chars().take(ECHO_CHARS_MAX).collect();
                let message = "is not an allowed property";
                self.report_rule(&name, "additionalProperties", message);
            }
        }
        self.problems
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns whether `text` has no control characters besides the `allowed` ones.
fn has_no_controls_but(text: &str, allowed: &[char]) -> bool {
    !text.contains(|c: char| c.is_control() && !allowed.contains(&c))
}

fn is_uuid(text: &str) -> bool {
    // The crate also accepts UUIDs without hyphens, in braces and as URNs.
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Returns whether `text` is a URI: a scheme, followed only by characters that URIs may contain (RFC 3986).
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let has_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let mut escapes = rest.split('%');
    has_scheme
        && !rest.is_empty()
        && escapes.next().is_some_and(is_plain)
        && escapes.all(begins_with_escape)
}

/// Returns whether URIs may contain all characters of `part` without an escape.
fn is_plain(part: &str) -> bool {
    part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=".contains(c))
}

/// Returns whether the text after a `%` begins with two hex digits, followed only by plain characters.
fn begins_with_escape(part: &str) -> bool {
    let Some((digits, rest)) = part.split_at_checked(2) else { return false };
    digits.chars().all(|c| c.is_ascii_hexdigit()) && is_plain(rest)
}

/// Returns whether `text` is an e-mail address: a dot-atom, `@` and a domain with a dot (RFC 5321).
///
/// Quoted local parts, address literals and non-ASCII characters are refused: such mail is not delivered
/// everywhere, and most of these addresses are mistakes.
#[must_use]
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    // The limits of RFC 5321 §4.5.3.1: 64 octets before the `@`, 254 in all.
    let is_short = text.len() <= EMAIL_CHARS_MAX && local.len() <= 64;
    is_short
        && local.split('.').all(is_atom)
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

/// Returns whether `part` is an atom of the text before the `@`.
fn is_atom(part: &str) -> bool {
    let allowed = "!#$%&'*+/=?^_`{|}~-";
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || allowed.contains(c))
}

/// Returns whether `part` is a label of a domain.
fn is_label(part: &str) -> bool {
    let has_outer_hyphen = part.starts_with('-') || part.ends_with('-');
    (1..=63).contains(&part.len())
        && !has_outer_hyphen
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
