//! JSON of accounts files: objects without duplicate properties, and the values of properties.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::AccountsError;
use crate::runtime::json_object::{FieldFault, FieldProblem, FieldValue, ObjectReader};
use crate::runtime::limits::ACCOUNT_TEXT_BYTES_MAX;

/// The largest number that every JSON reader represents exactly (RFC 8259 §6).
const NUMBER_MAX: i64 = (1 << 53) - 1;
/// Most characters of a property's name that an error repeats; an API key may be longer.
const ECHO_CHARS_MAX: usize = 30;

/// Parses `text`; refuses an object with a duplicate property.
pub(super) fn parse(text: &str) -> Result<Value, AccountsError> {
    let parsed: Result<UniqueKeysValue, _> = serde_json::from_str(text);
    parsed.map(|unique| unique.0).map_err(|cause| AccountsError::Form(cause.to_string()))
}

/// A JSON value without duplicate properties.
struct UniqueKeysValue(Value);

impl<'de> Deserialize<'de> for UniqueKeysValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(UniqueKeysValue(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let UniqueKeysValue(value) = entries.next_value()?;
            // `serde_json` would use the last of two equal names, although one of them is a
            // mistake.
            if map.contains_key(&name) {
                let why = format!("{} occurs twice", echo(&name));
                return Err(serde::de::Error::custom(why));
            }
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

/// Returns a property's name for an error; does not repeat a name that could be a key.
fn echo(name: &str) -> String {
    let is_word_character = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_word =
        !name.is_empty() && name.len() <= ECHO_CHARS_MAX && name.chars().all(is_word_character);
    if is_word {
        format!("property {name}")
    } else {
        "a property whose name is not a word".to_owned()
    }
}

/// Returns the text of a problem for [`AccountsError::Entry`].
pub(super) fn why(problem: FieldProblem) -> String {
    let path = problem.path();
    match problem.fault {
        FieldFault::Missing => format!("{path}: is missing"),
        FieldFault::Mismatch(expected) => format!("{path}: expected {expected}"),
        FieldFault::RuleViolation(why) if path.is_empty() => why,
        FieldFault::RuleViolation(why) => format!("{path}: {why}"),
        FieldFault::Unknown => {
            let within = problem.prefix.strip_suffix('.');
            let within = within.map_or_else(String::new, |within| format!("{within}: "));
            format!("{within}unknown: {}", echo(&problem.name))
        }
    }
}

/// Reads text for people: bounded, without control characters except line breaks and tabs.
pub(super) fn text(fields: &mut ObjectReader<'_>, name: &'static str) -> FieldValue<String> {
    let Some(text) = fields.string(name)? else { return Ok(None) };
    if text.len() > ACCOUNT_TEXT_BYTES_MAX {
        return Err(
            fields.violation(name, &format!("has more than {ACCOUNT_TEXT_BYTES_MAX} bytes"))
        );
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err(fields.violation(name, "has control characters"));
    }
    Ok(Some(text.to_owned()))
}

/// Reads one line of text for people.
pub(super) fn line(fields: &mut ObjectReader<'_>, name: &'static str) -> FieldValue<String> {
    let text = text(fields, name)?;
    if text.as_ref().is_some_and(|text| text.contains(['\n', '\t'])) {
        return Err(fields.violation(name, "has control characters"));
    }
    Ok(text)
}

/// Describes the values that [`as_id`] accepts.
pub(super) const ID_EXPECTED: &str = "a whole number above 0";
/// Describes the values that [`as_count`] accepts.
pub(super) const COUNT_EXPECTED: &str = "a whole number of 0 or more";

/// Parses an identifier: 1 to 2^53 - 1.
pub(super) fn as_id(value: &Value) -> Option<i64> {
    value.as_i64().filter(|id| (1..=NUMBER_MAX).contains(id))
}

/// Parses a count: 0 or more.
pub(super) fn as_count(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}
