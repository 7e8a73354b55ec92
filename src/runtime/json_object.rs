//! Reads a JSON object field by field.
//!
//! A field is known once the caller has read it, and the caller decides how to treat unknown fields. A problem names the
//! path of its field, such as `address.visit.city`, and never repeats a value, which may be secret.

use std::fmt;

use serde_json::{Map, Value};

/// The reason for which a field is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFault {
    /// The field is required and absent or `null`.
    Missing,
    /// The caller knows no field of that name.
    Unknown,
    /// The value is not what the text describes, such as "a number from 1 to 65535".
    Mismatch(String),
}

/// A rejected field with its path and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the object that contains the field, with a dot at its end; empty for the outermost object.
    pub prefix: String,
    /// Name of the field in that object.
    pub name: String,
    pub fault: FieldFault,
}

impl FieldProblem {
    /// Returns the path of the field from the outermost object.
    pub fn path(&self) -> String {
        format!("{}{}", self.prefix, self.name)
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.prefix, self.name)?;
        match &self.fault {
            FieldFault::Missing => f.write_str("is missing"),
            FieldFault::Unknown => f.write_str("is unknown"),
            FieldFault::Mismatch(expected) => write!(f, "is not {expected}"),
        }
    }
}

impl std::error::Error for FieldProblem {}

/// The value of a field; `None` if the field is absent.
pub type FieldValue<T> = Result<Option<T>, FieldProblem>;

/// Reads the fields of one object and records the names of the fields that were read.
#[derive(Debug)]
pub struct ObjectReader<'a> {
    members: &'a Map<String, Value>,
    prefix: String,
    known: Vec<&'static str>,
}

impl<'a> ObjectReader<'a> {
    /// Creates a reader of the object `members`; `prefix` is its path, as in [`FieldProblem`].
    pub fn new(prefix: impl Into<String>, members: &'a Map<String, Value>) -> Self {
        Self { members, prefix: prefix.into(), known: Vec::new() }
    }

    /// Returns the path of the field `name` from the outermost object.
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns the raw value of the field `name`, which may be `null`, and marks the field as known.
    pub fn find(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name)
    }

    /// Reads the field `name` with `parse`; `null` counts as absent.
    ///
    /// Fails with [`FieldFault::Mismatch`] if `parse` returns `None`; `expected` describes a valid value.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: impl FnOnce(&'a Value) -> Option<T>,
    ) -> FieldValue<T> {
        let Some(value) = self.find(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        parse(value).map(Some).ok_or_else(|| FieldProblem {
            prefix: self.prefix.clone(),
            name: name.to_owned(),
            fault: FieldFault::Mismatch(expected.to_owned()),
        })
    }

    /// Reads the optional boolean `name`.
    pub fn flag(&mut self, name: &'static str) -> FieldValue<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// Creates a reader for `members`, the value of the nested object `name`.
    pub fn within(&self, name: &str, members: &'a Map<String, Value>) -> Self {
        Self::new(format!("{}{name}.", self.prefix), members)
    }

    /// Returns the fields that were not read.
    pub fn unknown(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.members.iter().filter(|(name, _)| !self.known.contains(&name.as_str()))
    }
}
