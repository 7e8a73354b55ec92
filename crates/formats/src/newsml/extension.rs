//! Writes extension properties, which carry the JSON values that have no place in NewsML-G2: no element or attribute
//! of its own.
//!
//! An extension property is an empty element such as
//! `<contentMetaExtProperty rel="ttninjs:person/0/contactinfo/1/value" value="…"/>`. Its `value` is the text, and its
//! `rel` the prefix `ttninjs:`, for the JSON schema of documents, with the path of the value: from the root of the
//! document, or from the rendition or assignment whose element has the property. In a step of the path, letters,
//! digits, `_`, `-`, `.` and `$` are written unchanged, every other byte as `%` and two hexadecimal digits. Lists and
//! objects without content are omitted.
//!
//! A value that does not fit its place in NewsML-G2, such as a text of several lines in an element for one, is also
//! written as an extension property, with its exact text.

use super::xml::XmlWriter;
use model::percent_encode;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The length in bytes up to which a path is extended into the list or object that it leads to.
///
/// Below a longer path, the whole list or object is one property with JSON text and `type="tt:json"`. Each level
/// repeats the path above it, so without a limit, deep nesting would make the output quadratic in the input.
const PATH_MAX_BYTES: usize = 200;

/// Extension properties that are collected until the writer is where the schema of NewsML-G2 allows them.
#[derive(Debug, Default)]
pub(super) struct ExtensionProperties<'a> {
    properties: Vec<ExtensionProperty<'a>>,
}

#[derive(Debug)]
struct ExtensionProperty<'a> {
    path: Cow<'a, str>,
    value: Cow<'a, str>,
    /// True if `value` is JSON text.
    is_json: bool,
}

impl<'a> ExtensionProperties<'a> {
    /// Adds a property of the document, including all nested values.
    pub(super) fn add(&mut self, name: &'a str, value: &'a Value) {
        self.add_at(step(name), value);
    }

    /// Adds the members of an object that have no place. `parent` is the path of the object with a final `/`, or empty.
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
        let (value, is_json): (Cow<'a, str>, bool) = match value {
            // A null has no content, like an empty list.
            Value::Null => return,
            Value::String(text) => (text.as_str().into(), false),
            Value::Bool(true) => ("true".into(), false),
            Value::Bool(false) => ("false".into(), false),
            Value::Number(number) => (number.to_string().into(), false),
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
        self.properties.push(ExtensionProperty { path, value, is_json });
    }

    /// Writes all properties as elements named `element`.
    pub(super) fn write(&self, xml: &mut XmlWriter, element: &'static str) {
        let mut rel = String::from("ttninjs:");
        let prefix_bytes = rel.len();
        for property in &self.properties {
            // One buffer is used for all paths, which saves an allocation for each.
            rel.truncate(prefix_bytes);
            rel.push_str(&property.path);
            let kind = property.is_json.then_some("tt:json");
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
