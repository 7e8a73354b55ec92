//! Reads the parameters of a request: path and query become a JSON object, which is checked by the schema that the OpenAPI
//! document shows and then becomes the endpoint's type. A violation of the schema is a [`Fault`].

use std::marker::PhantomData;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::endpoint::Endpoint;
use crate::fault::{Fault, Location};
use crate::{property, schema};

/// The name and decoded value of a path segment or query parameter; the value is `None` if it is not UTF-8.
pub type DecodedParameter = (String, Option<String>);

/// Maximum number of elements of a list, which bounds the memory for one request.
const ELEMENTS_MAX: usize = 1000;

/// The type of a parameter's value; of a list, the type of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueType {
    Text,
    Integer,
    Boolean,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    location: Location,
    value_type: ValueType,
    is_list: bool,
    /// True if each element of the list is a parameter of its own, because elements may contain commas.
    is_repeated: bool,
}

/// The valid parameters of a request, and the faults of the others.
#[derive(Debug)]
pub struct PartialRequest<E> {
    /// The parameters, of which invalid ones count as absent; `None` if a required one is absent.
    pub parameters: Option<E>,
    /// The faults of all parameters, in the order of the parameters.
    pub faults: Vec<Fault>,
}

/// Reads and checks the parameters of one operation.
#[derive(Debug)]
pub struct RequestReader<E> {
    parameters: Vec<Parameter>,
    validator: Validator,
    endpoint: PhantomData<fn() -> E>,
}

impl<E: Endpoint> RequestReader<E> {
    /// Reads the parameters from the named segments of the path and from the query. Unknown query parameters are ignored, and a
    /// parameter without a value counts as absent.
    ///
    /// Fails with all faults.
    pub fn read(
        &self,
        path: &[DecodedParameter],
        query: &[DecodedParameter],
    ) -> Result<E, Vec<Fault>> {
        let PartialRequest { parameters, faults } = self.read_valid(path, query);
        parameters.filter(|_| faults.is_empty()).ok_or(faults)
    }

    /// Reads the valid parameters. Callers can check them further and then report all faults together.
    pub fn read_valid(
        &self,
        path: &[DecodedParameter],
        query: &[DecodedParameter],
    ) -> PartialRequest<E> {
        let mut faults = Vec::new();
        let mut values = Map::new();
        for parameter in &self.parameters {
            let pairs = match parameter.location {
                Location::Path => path,
                Location::Query | Location::Body => query,
            };
            match parameter.read(pairs) {
                Ok(Some(value)) => {
                    values.insert(parameter.name.clone(), value);
                }
                Ok(None) => {}
                Err(fault) => faults.push(fault),
            }
        }
        let mut values = Value::Object(values);
        for fault in Fault::collect(&self.validator, &values, |name| self.locate(name)) {
            // If a segment of the path is not UTF-8, `path` does not have the others, although the request has them.
            let is_unread_segment =
                fault.rule == "required" && fault.location == Location::Path && !faults.is_empty();
            // A parameter that could not be read is not also reported as missing, and a list is reported once.
            if !is_unread_segment && !faults.iter().any(|known| known.path == fault.path) {
                faults.push(fault);
            }
        }
        faults.sort_by_key(|fault| self.position(&fault.path));
        if let Value::Object(values) = &mut values {
            values.retain(|name, _| !faults.iter().any(|fault| fault.path == *name));
        }
        match serde_json::from_value(values) {
            Ok(parameters) => PartialRequest { parameters: Some(parameters), faults },
            Err(cause) => {
                if faults.is_empty() {
                    faults.push(Fault::new("format", Location::Query, "", cause.to_string()));
                }
                PartialRequest { parameters: None, faults }
            }
        }
    }

    /// Returns the position of the parameter `name`, for the order of faults.
    pub fn position(&self, name: &str) -> usize {
        let found = self.parameters.iter().position(|parameter| parameter.name == name);
        found.unwrap_or(self.parameters.len())
    }

    fn locate(&self, name: &str) -> Location {
        let found = self.parameters.iter().find(|parameter| parameter.name == name);
        found.map_or(Location::Query, |parameter| parameter.location)
    }
}

impl<E: Endpoint> Default for RequestReader<E> {
    /// Compiles the schema of `E`.
    fn default() -> Self {
        let schema = schema::for_requests().into_root_schema_for::<E>().to_value();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let parameters =
            properties.map(|(name, property)| parameter::<E>(name, property)).collect();
        Self { parameters, validator: schema::compile(&schema), endpoint: PhantomData }
    }
}

/// Derives the form of the parameter `name` from its schema.
fn parameter<E: Endpoint>(name: &str, schema: &Value) -> Parameter {
    let is_list = has_type(schema, "array");
    let element = if is_list { &schema["items"] } else { schema };
    let value_type = if has_type(element, "integer") {
        ValueType::Integer
    } else if has_type(element, "boolean") {
        ValueType::Boolean
    } else {
        ValueType::Text
    };
    let location = if is_in_path(E::PATH, name) { Location::Path } else { Location::Query };
    let is_repeated = schema.get(property::REPEATED).is_some();
    Parameter { name: name.to_owned(), location, value_type, is_list, is_repeated }
}

fn has_type(schema: &Value, name: &str) -> bool {
    let own = &schema["type"];
    own == name || own.as_array().is_some_and(|names| names.iter().any(|own| own == name))
}

/// Returns whether `name` is a segment of `path`.
pub(crate) fn is_in_path(path: &str, name: &str) -> bool {
    path.contains(&format!("{{{name}}}"))
}

impl Parameter {
    /// Reads the value from `pairs`; `None` if it is absent.
    fn read(&self, pairs: &[DecodedParameter]) -> Result<Option<Value>, Fault> {
        if self.is_list {
            return self.read_list(pairs);
        }
        let mut found = pairs
            .iter()
            .filter(|(name, value)| *name == self.name && value.as_deref() != Some(""));
        let Some((_, value)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(self.fault("type", "is given more than once"));
        }
        Ok(Some(self.value_type.convert(self.decoded(value)?)))
    }

    fn read_list(&self, pairs: &[DecodedParameter]) -> Result<Option<Value>, Fault> {
        let mut elements = Vec::new();
        for (name, value) in pairs {
            if self.is_repeated {
                if *name == self.name && value.as_deref() != Some("") {
                    elements.push(self.value_type.convert(self.decoded(value)?));
                }
                continue;
            }
            // The client library of integrations appends brackets to the names of lists (contract api-6).
            if name != &self.name && name.strip_suffix("[]") != Some(&self.name) {
                continue;
            }
            let texts = self.decoded(value)?.split(',').map(str::trim);
            let texts = texts.filter(|text| !text.is_empty());
            elements.extend(texts.map(|text| self.value_type.convert(text)));
            if elements.len() > ELEMENTS_MAX {
                let message = format!("has more than {ELEMENTS_MAX} elements");
                return Err(self.fault("maximum", &message));
            }
        }
        Ok((!elements.is_empty()).then_some(Value::Array(elements)))
    }

    fn decoded<'a>(&self, value: &'a Option<String>) -> Result<&'a str, Fault> {
        value.as_deref().ok_or_else(|| self.fault("format", "is not UTF-8"))
    }

    fn fault(&self, rule: &'static str, message: &str) -> Fault {
        Fault::new(rule, self.location, &self.name, format!("{} {message}", self.name))
    }
}

impl ValueType {
    /// Converts `text`. If it is not of this type, it stays a text, which the schema then refuses.
    fn convert(self, text: &str) -> Value {
        match self {
            Self::Text => text.into(),
            Self::Integer => parse_integer(text).map_or_else(|| text.into(), Value::from),
            Self::Boolean => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
        }
    }
}

/// Parses an integer, also with a fraction of zeros: clients whose numbers are all floating-point write `20.0`. A number
/// beyond 64 bits becomes the nearest one, which is outside the range of every parameter.
pub fn parse_integer(text: &str) -> Option<i64> {
    let integer = match text.split_once('.') {
        Some((integer, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => {
            integer
        }
        Some(_) | None => text,
    };
    let digits = integer.strip_prefix(['-', '+']).unwrap_or(integer);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits fail to parse only if they are too many.
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(integer.parse().unwrap_or(limit))
}
