//! Reads a JSON object field by field.
//!
//! Fields that a caller reads are known; the others are unknown, and each caller decides how to treat them. A
//! problem names the path of its field, such as `address.visit.city`, and never repeats a value, which may be
//! secret.

use std::fmt;

use serde_json::{Map, Value};

/// The reason why a field is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFault {
    /// The field is required and absent or `null`.
    Missing,
    /// The object has no field of that name in the contract.
    Unknown,
    /// The value is not what the text describes, such as "a number from 1 to 65535".
    Mismatch(String),
    /// The value breaks a rule; the text is a predicate, such as "is above the total".
    RuleViolation(String),
}

/// A rejected field with its path and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the object that contains the field, with a dot at its end; empty for the root object.
    pub prefix: String,
    /// Name of the field in that object; empty if the fault names the field itself.
    pub name: String,
    pub fault: FieldFault,
}

impl FieldProblem {
    /// Returns the path of the field from the root object.
    #[must_use]
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
            FieldFault::RuleViolation(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FieldProblem {}

/// The value of a field, or `None` if the field is absent.
pub type FieldValue<T> = Result<Option<T>, FieldProblem>;

/// Reads the fields of one object and remembers which ones were read.
#[derive(Debug)]
pub struct ObjectReader<'a> {
    members: &'a Map<String, Value>,
    prefix: String,
    known: Vec<&'static str>,
    /// Distinguishes this object from others of its kind in messages; empty until a caller sets it.
    pub label: String,
}

impl<'a> ObjectReader<'a> {
    /// Creates a reader of `members`; `prefix` is the path of the object with a dot at its end.
    #[must_use]
    pub fn new(prefix: impl Into<String>, members: &'a Map<String, Value>) -> Self {
        Self { members, prefix: prefix.into(), known: Vec::new(), label: String::new() }
    }

    /// Returns the path of the field `name` from the root object.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns the raw value of the field `name`, which may be `null`, and marks the field as known.
    pub fn find(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name)
    }

    /// Parses the field `name` with `read`; `null` counts as absent.
    ///
    /// Fails if `read` returns `None`; `expected` describes a valid value.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> FieldValue<T> {
        let Some(value) = self.find(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| self.mismatch(name, expected))
    }

    /// Parses a required field, like [`ObjectReader::read`].
    pub fn required<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, FieldProblem> {
        let value = self.read(name, expected, read)?;
        self.require(name, value)
    }

    /// Unwraps the value of the required field `name`. Fails if it is absent.
    pub fn require<T>(&self, name: &str, value: Option<T>) -> Result<T, FieldProblem> {
        value.ok_or_else(|| self.problem(name, FieldFault::Missing))
    }

    /// Reads the required string `name`.
    pub fn required_string(&mut self, name: &'static str) -> Result<&'a str, FieldProblem> {
        self.required(name, "a string", Value::as_str)
    }

    /// Reads the optional string `name`.
    pub fn string(&mut self, name: &'static str) -> FieldValue<&'a str> {
        self.read(name, "a string", Value::as_str)
    }

    /// Reads the optional boolean `name`.
    pub fn flag(&mut self, name: &'static str) -> FieldValue<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// Reads the list `name` with `read` for each element; `expected` describes a valid element.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> FieldValue<Vec<T>> {
        let Some(values) = self.read(name, "a list", Value::as_array)? else { return Ok(None) };
        let element = |(index, value)| {
            read(value).ok_or_else(|| self.mismatch(&format!("{name}[{index}]"), expected))
        };
        values.iter().enumerate().map(element).collect::<Result<_, _>>().map(Some)
    }

    /// Reads the nested object `name` with `read`, and fails on fields of it that `read` left unknown.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, FieldProblem>,
    ) -> FieldValue<T> {
        let Some(members) = self.read(name, "an object", Value::as_object)? else {
            return Ok(None);
        };
        let mut nested = self.within(name, members);
        // Its reader ends here, so unknown fields of it would be found nowhere else.
        let value = read(&mut nested)?;
        nested.finish().map(|()| Some(value))
    }

    /// Creates a reader for `members`, the value of the nested object `name`.
    #[must_use]
    pub fn within(&self, name: &str, members: &'a Map<String, Value>) -> Self {
        Self::new(format!("{}{name}.", self.prefix), members)
    }

    /// Returns the fields that were not read.
    pub fn unknown(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.members.iter().filter(|(name, _)| !self.known.contains(&name.as_str()))
    }

    /// Fails with the first field that was not read.
    pub fn finish(&self) -> Result<(), FieldProblem> {
        match self.unknown().next() {
            Some((name, _)) => Err(self.problem(name, FieldFault::Unknown)),
            None => Ok(()),
        }
    }

    /// Creates a problem: the field `name` is not `expected`.
    #[must_use]
    pub fn mismatch(&self, name: &str, expected: &str) -> FieldProblem {
        self.problem(name, FieldFault::Mismatch(expected.to_owned()))
    }

    /// Creates a problem: the field `name` breaks the rule in the predicate `why`.
    #[must_use]
    pub fn violation(&self, name: &str, why: &str) -> FieldProblem {
        self.problem(name, FieldFault::RuleViolation(why.to_owned()))
    }

    fn problem(&self, name: &str, fault: FieldFault) -> FieldProblem {
        FieldProblem { prefix: self.prefix.clone(), name: name.to_owned(), fault }
    }
}
