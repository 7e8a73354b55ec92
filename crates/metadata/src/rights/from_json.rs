//! Validates properties in JSON: checks names, types and sizes against the table.

use serde_json::{Map, Value};
use thiserror::Error;

use super::member::{Member, Structure, ValueKind};
use super::table::Property;
use super::{RIGHTS_BYTES_MAX, RightsMetadata, Vocabulary, values};
use crate::{LIST_ENTRIES_MAX, TEXT_BYTES_MAX};

/// The reason why JSON does not describe rights, with the path of the value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {problem}")]
pub struct RightsError {
    /// The names and list indexes that lead to the value, separated by `/`; `/` for the whole object.
    pub path: String,
    /// The problem of the value.
    pub problem: RightsProblem,
}

/// A problem of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RightsProblem {
    #[error("is not a property of IPTC Photo Metadata 2025.1")]
    UnknownProperty,
    /// The property belongs to the document, or is never carried.
    #[error("is not a property of rights; the item's document has it")]
    NotCarried,
    #[error("is not a member of the structure {structure}")]
    UnknownMember { structure: &'static str },
    #[error("is not {expected}")]
    WrongType { expected: &'static str },
    #[error("is out of range")]
    OutOfRange,
    #[error("has {bytes} bytes, more than {max}")]
    TooLong { bytes: usize, max: usize },
    #[error("has {entries} entries, more than {max}")]
    TooMany { entries: usize, max: usize },
    /// The tag does not have the form of RFC 5646.
    #[error("is not a language tag")]
    NotALanguage,
    #[error("is neither a URI nor a known code of {base}")]
    UnknownCode { base: &'static str },
    /// Readers may follow the address, and its scheme may run a script.
    #[error("is not an address that begins with http:// or https://")]
    UnsafeScheme,
}

/// Parses an object of properties; codes of vocabularies are not checked.
pub(super) fn parse(value: &Value) -> Result<RightsMetadata, RightsError> {
    let mut parser = JsonParser { path: Vec::new() };
    let Value::Object(object) = value else {
        return Err(parser.error(RightsProblem::WrongType { expected: "an object" }));
    };
    let mut properties = Map::new();
    for (name, value) in object {
        let property = Property::named(name);
        let parsed = parser.at(name, |parser| match property {
            Some(property) if property.is_carried() => parser.value(&property.member, value),
            Some(_) => Err(parser.error(RightsProblem::NotCarried)),
            None => Err(parser.error(RightsProblem::UnknownProperty)),
        })?;
        properties.extend(parsed.map(|parsed| (name.clone(), parsed)));
    }
    let rights = RightsMetadata::carried(properties);
    let bytes = rights.bytes();
    if bytes > RIGHTS_BYTES_MAX {
        return Err(parser.error(RightsProblem::TooLong { bytes, max: RIGHTS_BYTES_MAX }));
    }
    Ok(rights)
}

/// Checks that terms of vocabularies are URIs. An unknown code is a typing error.
pub(super) fn check_terms(rights: &RightsMetadata) -> Result<(), RightsError> {
    for (name, value) in &rights.0 {
        if let Some(Property { member: Member { kind: ValueKind::Vocabulary(terms), .. }, .. }) =
            Property::named(name)
            && !Vocabulary::is_uri(values::default_text(value))
        {
            let problem = RightsProblem::UnknownCode { base: terms.base };
            return Err(RightsError { path: name.clone(), problem });
        }
    }
    Ok(())
}

/// A walk through JSON that tracks the path of the current value.
struct JsonParser {
    path: Vec<String>,
}

impl JsonParser {
    fn error(&self, problem: RightsProblem) -> RightsError {
        let path = if self.path.is_empty() { "/".to_owned() } else { self.path.join("/") };
        RightsError { path, problem }
    }

    /// Calls `parse` with `name` added to the path.
    fn at<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&mut JsonParser) -> Result<T, RightsError>,
    ) -> Result<T, RightsError> {
        self.path.push(name.to_owned());
        let parsed = parse(self);
        self.path.pop();
        parsed
    }

    /// Parses a property or member; `None` if it is empty.
    fn value(&mut self, member: &Member, value: &Value) -> Result<Option<Value>, RightsError> {
        if member.many.is_none() {
            return self.single(member.kind, value);
        }
        let Value::Array(entries) = value else {
            return Err(self.error(RightsProblem::WrongType { expected: "an array" }));
        };
        self.check_count(entries.len())?;
        let mut parsed = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let entry = self.at(&index.to_string(), |parser| parser.single(member.kind, entry))?;
            parsed.extend(entry);
        }
        Ok((!parsed.is_empty()).then_some(Value::Array(parsed)))
    }

    fn single(&mut self, kind: ValueKind, value: &Value) -> Result<Option<Value>, RightsError> {
        match kind {
            ValueKind::AltLang => self.alternative(value),
            ValueKind::Structure(structure) => self.structure(structure, value),
            ValueKind::Text | ValueKind::Uri | ValueKind::Url | ValueKind::DateTime => {
                let text = self.text(value)?;
                self.check_scheme(kind, &text)?;
                Ok((!text.is_empty()).then(|| Value::from(text)))
            }
            ValueKind::Vocabulary(terms) => {
                let text = self.text(value)?;
                let unknown = RightsProblem::UnknownCode { base: terms.base };
                let term = terms.normalize(&text).ok_or_else(|| self.error(unknown))?;
                self.check_scheme(kind, &term)?;
                Ok((!term.is_empty()).then(|| Value::from(term)))
            }
            ValueKind::Number(kind) => {
                let wrong = RightsProblem::WrongType { expected: "a number" };
                let number = value.as_f64().ok_or_else(|| self.error(wrong))?;
                let number = values::json_number(kind, number);
                Ok(Some(number.ok_or_else(|| self.error(RightsProblem::OutOfRange))?))
            }
        }
    }

    fn check_scheme(&self, kind: ValueKind, text: &str) -> Result<(), RightsError> {
        if values::is_safe(kind, text) {
            return Ok(());
        }
        Err(self.error(RightsProblem::UnsafeScheme))
    }

    fn text(&self, value: &Value) -> Result<String, RightsError> {
        let Value::String(text) = value else {
            return Err(self.error(RightsProblem::WrongType { expected: "a text" }));
        };
        let bytes = text.len();
        if bytes > TEXT_BYTES_MAX {
            return Err(self.error(RightsProblem::TooLong { bytes, max: TEXT_BYTES_MAX }));
        }
        Ok(values::clean(text))
    }

    fn alternative(&mut self, value: &Value) -> Result<Option<Value>, RightsError> {
        let texts = match value {
            Value::String(_) => vec![(values::X_DEFAULT, self.text(value)?)],
            Value::Object(texts) => {
                self.check_count(texts.len())?;
                let mut parsed = Vec::new();
                for (language, text) in texts {
                    let text = self.at(language, |parser| {
                        if !values::is_language(language) {
                            return Err(parser.error(RightsProblem::NotALanguage));
                        }
                        parser.text(text)
                    })?;
                    parsed.push((language.as_str(), text));
                }
                parsed
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                let expected = "a text or an object of texts by language";
                return Err(self.error(RightsProblem::WrongType { expected }));
            }
        };
        let texts = texts.iter().map(|(language, text)| (*language, text.as_str()));
        Ok(values::language_alternative(texts))
    }

    fn structure(
        &mut self,
        structure: &Structure,
        value: &Value,
    ) -> Result<Option<Value>, RightsError> {
        let Value::Object(members) = value else {
            return Err(self.error(RightsProblem::WrongType { expected: "an object" }));
        };
        let unknown = RightsProblem::UnknownMember { structure: structure.name };
        for name in members.keys() {
            if !structure.members().any(|member| member.name == name) {
                return self.at(name, |parser| Err(parser.error(unknown)));
            }
        }
        let mut parsed = Map::new();
        // In the order of the table, regardless of the order of the JSON.
        for member in structure.members() {
            if let Some(value) = members.get(member.name) {
                let value = self.at(member.name, |parser| parser.value(member, value))?;
                parsed.extend(value.map(|value| (member.name.to_owned(), value)));
            }
        }
        Ok((!parsed.is_empty()).then_some(Value::Object(parsed)))
    }

    fn check_count(&self, entries: usize) -> Result<(), RightsError> {
        let max = LIST_ENTRIES_MAX;
        if entries > max {
            return Err(self.error(RightsProblem::TooMany { entries, max }));
        }
        Ok(())
    }
}
