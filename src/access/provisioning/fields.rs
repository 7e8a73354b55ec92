//! Reads JSON objects property by property, with errors that name the place and never repeat a
//! value.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::AccountsError;
use crate::runtime::limits::ACCOUNT_TEXT_BYTES_MAX;

/// The largest number that every reader of JSON keeps exact (RFC 8259 §6).
const NUMBER_MAX: i64 = (1 << 53) - 1;
/// Characters of a property's name that an error repeats; a key is longer.
const ECHO_CHARS_MAX: usize = 30;

/// Parses `text`; an object that has a property twice is refused.
pub(super) fn parse(text: &str) -> Result<Value, AccountsError> {
    let parsed: Result<Once, _> = serde_json::from_str(text);
    parsed.map(|once| once.0).map_err(|cause| AccountsError::Form(cause.to_string()))
}

/// A value in which no object has a property twice.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Self)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
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
        while let Some(Once(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let Once(value) = entries.next_value()?;
            if map.contains_key(&name) {
                let why = format!("{} is there twice", echo(&name));
                return Err(serde::de::Error::custom(why));
            }
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

/// A property's name for an error; one that could be a key is not repeated.
fn echo(name: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = !name.is_empty() && name.len() <= ECHO_CHARS_MAX && name.chars().all(harmless);
    if word { format!("property {name}") } else { "a property that is no word".to_owned() }
}

/// The properties of an object that were not read yet.
pub(super) struct Fields {
    /// The entry: `users[3] "editor"`.
    place: String,
    /// The object within the entry, with a dot at its end: `address.visit.`.
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The properties of `value`, which must be an object.
    pub(super) fn of(place: String, value: Value) -> Result<Self, AccountsError> {
        match value {
            Value::Object(map) => Ok(Self { place, path: String::new(), map }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                Err(AccountsError::Entry { place, why: "expected an object".to_owned() })
            }
        }
    }

    /// The entry that is read.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The same with a name for people behind the place.
    pub(super) fn name(&mut self, name: &str) {
        self.place = format!("{} {name}", self.place);
    }

    /// An error about a property.
    pub(super) fn refuse(&self, name: &str, why: &str) -> AccountsError {
        let why = format!("{}{name}: {why}", self.path);
        AccountsError::Entry { place: self.place.clone(), why }
    }

    /// Takes a property. `null` counts as missing.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// What `read` makes of a property; `expected` names what it takes.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, AccountsError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let refuse = || self.refuse(name, &format!("expected {expected}"));
        read(value).map(Some).ok_or_else(refuse)
    }

    /// The value, or an error that says that it is missing.
    pub(super) fn need<T>(&self, name: &str, value: Option<T>) -> Result<T, AccountsError> {
        value.ok_or_else(|| self.refuse(name, "is missing"))
    }

    /// A string that is no free text.
    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, AccountsError> {
        self.read(name, "a string", into_string)
    }

    /// Text for people: bounded, and lines of it without control characters.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, AccountsError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        if text.len() > ACCOUNT_TEXT_BYTES_MAX {
            let why = format!("has more than {ACCOUNT_TEXT_BYTES_MAX} bytes");
            return Err(self.refuse(name, &why));
        }
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err(self.refuse(name, "has control characters"));
        }
        Ok(Some(text))
    }

    /// One line of text for people.
    pub(super) fn line(&mut self, name: &str) -> Result<Option<String>, AccountsError> {
        let text = self.text(name)?;
        if text.as_ref().is_some_and(|text| text.contains(['\n', '\t'])) {
            return Err(self.refuse(name, "has control characters"));
        }
        Ok(text)
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, AccountsError> {
        self.read(name, "true or false", |value| value.as_bool())
    }

    /// A number that names something: 1 to 2^53 - 1.
    pub(super) fn id(&mut self, name: &str) -> Result<Option<i64>, AccountsError> {
        self.read(name, "a whole number above 0", |value| as_id(&value))
    }

    /// A number of things.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, AccountsError> {
        let read = |value: Value| u32::try_from(value.as_u64()?).ok();
        self.read(name, "a whole number of 0 or more", read)
    }

    /// A list, each element of which `read` takes; `None` when the property is missing.
    pub(super) fn list<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, AccountsError> {
        let Some(values) = self.read(name, "a list", into_list)? else { return Ok(None) };
        let mut list = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let refuse =
                || self.refuse(&format!("{name}[{index}]"), &format!("expected {expected}"));
            list.push(read(value).ok_or_else(refuse)?);
        }
        Ok(Some(list))
    }

    /// The properties of an object within this one; none when it is missing.
    pub(super) fn within(&mut self, name: &str) -> Result<Option<Self>, AccountsError> {
        let Some(map) = self.read(name, "an object", into_map)? else { return Ok(None) };
        let path = format!("{}{name}.", self.path);
        Ok(Some(Self { place: self.place.clone(), path, map }))
    }

    /// Fails when a property was not read: nobody knows it.
    pub(super) fn end(self) -> Result<(), AccountsError> {
        let Some((name, _)) = self.map.iter().next() else { return Ok(()) };
        let within = self.path.trim_end_matches('.');
        let within = if within.is_empty() { String::new() } else { format!("{within}: ") };
        let why = format!("{within}unknown: {}", echo(name));
        Err(AccountsError::Entry { place: self.place, why })
    }
}

pub(super) fn into_string(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

pub(super) fn into_list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            None
        }
    }
}

pub(super) fn into_map(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

pub(super) fn as_id(value: &Value) -> Option<i64> {
    value.as_i64().filter(|id| (1..=NUMBER_MAX).contains(id))
}
