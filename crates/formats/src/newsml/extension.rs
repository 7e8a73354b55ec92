//! Writes extension properties: a property without a place in NewsML-G2 is written as its JSON path with its
//! value.
//!
//! `rel` is `ttninjs:` followed by the path from the document's root, with `/` between its steps, as in
//! `ttninjs:person/0/contactinfo/1/value`; `value` is the text. Letters, digits, `_`, `-`, `.` and `$` are written
//! unchanged in a step, every other byte as `%` and two hexadecimal digits. If a path would become too long, the
//! whole subtree is written as JSON text with `type="tt:json"`, which keeps the output linear in the input. Lists
//! and objects without content are omitted.
//!
//! An extension property is exact. If the same property also has a place in the standard, that place holds the
//! part of the value that its type allows.

use super::xml::XmlWriter;
use model::percent_encode;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The maximum length of a path in bytes; longer paths are not extended.
const PATH_MAX_BYTES: usize = 200;

/// Extension properties that are collected until the schema's place for them is reached.
#[derive(Debug, Default)]
pub(super) struct ExtensionProperties<'a> {
    properties: Vec<ExtensionProperty<'a>>,
}

#[derive(Debug)]
struct ExtensionProperty<'a> {
    path: Cow<'a, str>,
    value: Cow<'a, str>,
    json: bool,
}

impl<'a> ExtensionProperties<'a> {
    /// Adds a property of the document, including all nested values.
    pub(super) fn add(&mut self, name: &'a str, value: &'a Value) {
        self.add_at(step(name), value);
    }

    /// Adds the members of an object below the path `parent`, except the members that have a place.
    pub(super) fn add_unplaced(
        &mut self,
        parent: &str,
        object: &'a Map<String, Value>,
        is_placed: impl Fn(&str, &Value) -> bool,
    ) {
        for (name, value) in object.iter().filter(|(name, value)| !is_placed(name, value)) {
            self.add_at(Cow::Owned(format!("{parent}{}", step(name))), value);
        }
    }

    fn add_at(&mut self, path: Cow<'a, str>, value: &'a Value) {
        let (value, json): (Cow<'a, str>, bool) = match value {
            // A null has no content, like an empty list.
            Value::Null => return,
            Value::String(text) => (text.as_str().into(), false),
            Value::Bool(true) => ("true".into(), false),
            Value::Bool(false) => ("false".into(), false),
            Value::Number(number) => (number.to_string().into(), false),
            // Each level repeats the path above it, so unlimited depth would make the output
            // quadratic.
            Value::Array(values) if path.len() <= PATH_MAX_BYTES => {
                for (index, value) in values.iter().enumerate() {
                    self.add_at(Cow::Owned(format!("{path}/{index}")), value);
                }
                return;
            }
            Value::Object(members) if path.len() <= PATH_MAX_BYTES => {
                for (name, value) in members {
                    self.add_at(Cow::Owned(format!("{path}/{}", step(name))), value);
                }
                return;
            }
            Value::Array(_) | Value::Object(_) => (value.to_string().into(), true),
        };
        self.properties.push(ExtensionProperty { path, value, json });
    }

    /// Writes all properties as elements named `element`.
    pub(super) fn write(&self, xml: &mut XmlWriter, element: &'static str) {
        let mut rel = String::from("ttninjs:");
        let alias = rel.len();
        for property in &self.properties {
            // One buffer is used for all paths, which saves an allocation for each.
            rel.truncate(alias);
            rel.push_str(&property.path);
            let kind = property.json.then_some("tt:json");
            let value = Some(property.value.as_ref());
            xml.empty(element, [("type", kind), ("rel", Some(&rel)), ("value", value)]);
        }
    }
}

/// Encodes a name as a step of a path.
fn step(name: &str) -> Cow<'_, str> {
    if name.bytes().all(is_plain) { name.into() } else { percent_encode(name, is_plain).into() }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte)
}
