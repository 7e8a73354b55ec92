//! Reads a JSON object field by field.
//!
//! A field that was asked for is known; the others are unknown, and each caller decides what that means. A problem
//! names the path of its field, such as `address.visit.city`, and never repeats a value, which may be a secret.

use std::fmt;

use serde_json::{Map, Value};

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFault {
    /// It is required and absent or `null`.
    Missing,
    /// Nothing reads a field of that name.
    Unknown,
    /// It is not what the text says, such as "a number from 1 to 65535".
    Mismatch(String),
    /// It breaks a rule; the text is a predicate, such as "is above the total".
    RuleViolation(String),
}

/// A field that cannot be taken, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the object that has the field, with a dot at its end; empty for the outermost object.
    pub prefix: String,
    /// Name of the field in that object; empty where the fault names the field itself.
    pub name: String,
    /// What is wrong with it.
    pub fault: FieldFault,
}

impl FieldProblem {
    /// Path of the field from the outermost object.
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

/// The value of a field, or nothing where the field is absent.
pub type FieldValue<T> = Result<Option<T>, FieldProblem>;

/// Reads the fields of one object and knows which of them were asked for.
#[derive(Debug)]
pub struct ObjectReader<'a> {
    members: &'a Map<String, Value>,
    prefix: String,
    known: Vec<&'static str>,
    /// What tells this object from others of its kind, for messages; empty until a caller read it.
    pub label: String,
}

impl<'a> ObjectReader<'a> {
    /// Reads `members`; `prefix` is the path of the object with a dot at its end.
    #[must_use]
    pub fn new(prefix: impl Into<String>, members: &'a Map<String, Value>) -> Self {
        Self { members, prefix: prefix.into(), known: Vec::new(), label: String::new() }
    }

    /// Path of the field `name` from the outermost object.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The field `name` as it stands, which may be `null`; it is known from now on.
    pub fn find(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name)
    }

    /// What `read` makes of the field `name`; `null` counts as absent.
    ///
    /// Fails when `read` finds no value: `expected` says what would do.
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

    /// The same for a field that must be there.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, FieldProblem> {
        let value = self.read(name, expected, read)?;
        self.require(name, value)
    }

    /// The value of the field `name`. Fails when the field is absent.
    pub fn require<T>(&self, name: &str, value: Option<T>) -> Result<T, FieldProblem> {
        value.ok_or_else(|| self.problem(name, FieldFault::Missing))
    }

    /// The text `name`, which must be there.
    pub fn required_string(&mut self, name: &'static str) -> Result<&'a str, FieldProblem> {
        self.required(name, "a string", Value::as_str)
    }

    /// The text `name`.
    pub fn string(&mut self, name: &'static str) -> FieldValue<&'a str> {
        self.read(name, "a string", Value::as_str)
    }

    /// The boolean `name`.
    pub fn flag(&mut self, name: &'static str) -> FieldValue<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// The list `name`, each element of which `read` takes; `expected` says what an element is.
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

    /// What `read` makes of the object `name` within this one, all fields of which it must ask for.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, FieldProblem>,
    ) -> FieldValue<T> {
        let Some(members) = self.read(name, "an object", Value::as_object)? else {
            return Ok(None);
        };
        let mut nested = self.within(name, members);
        let value = read(&mut nested)?;
        nested.finish().map(|()| Some(value))
    }

    /// A reader of `members`, which are the object `name` within this one.
    #[must_use]
    pub fn within(&self, name: &str, members: &'a Map<String, Value>) -> Self {
        Self::new(format!("{}{name}.", self.prefix), members)
    }

    /// The fields that were not asked for.
    pub fn unknown(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.members.iter().filter(|(name, _)| !self.known.contains(&name.as_str()))
    }

    /// Fails with the first field that was not asked for.
    pub fn finish(&self) -> Result<(), FieldProblem> {
        match self.unknown().next() {
            Some((name, _)) => Err(self.problem(name, FieldFault::Unknown)),
            None => Ok(()),
        }
    }

    /// A problem of the field `name`: it is not what `expected` says.
    #[must_use]
    pub fn mismatch(&self, name: &str, expected: &str) -> FieldProblem {
        self.problem(name, FieldFault::Mismatch(expected.to_owned()))
    }

    /// A problem of the field `name`: it breaks a rule, as the predicate `why` says.
    #[must_use]
    pub fn violation(&self, name: &str, why: &str) -> FieldProblem {
        self.problem(name, FieldFault::RuleViolation(why.to_owned()))
    }

    fn problem(&self, name: &str, fault: FieldFault) -> FieldProblem {
        FieldProblem { prefix: self.prefix.clone(), name: name.to_owned(), fault }
    }
}
