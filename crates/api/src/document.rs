//! Describes endpoints for OpenAPI 3.1.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, refuse, refuse_callers};
use crate::body::RequestBody;
use crate::endpoint::{Endpoint, Refusal};
use crate::reader::is_in_path;
use crate::{media, property, schema};

/// The part of an OpenAPI document that describes endpoints.
#[derive(Debug)]
pub struct Document {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    paths: Map<String, Value>,
    tags: Vec<Value>,
}

/// The finished parts of a document.
#[derive(Clone, Debug)]
pub struct DocumentParts {
    /// The sections, in the order of their first endpoint.
    pub tags: Vec<Value>,
    /// The operations by path and method.
    pub paths: Map<String, Value>,
    /// The schemas by name.
    pub schemas: Map<String, Value>,
}

impl Document {
    /// Adds the operation `E`.
    ///
    /// Panics if an operation has the same path and method, which a test of the whole document finds.
    pub fn describe<E: Endpoint>(&mut self) {
        let section = E::SECTION;
        if !self.tags.iter().any(|tag| tag["name"] == section.name) {
            self.tags.push(json!({ "name": section.name, "description": section.description }));
        }
        let operation = self.operation::<E>();
        let methods = self.paths.entry(E::PATH).or_insert_with(|| json!({}));
        let method = E::METHOD.as_str().to_ascii_lowercase();
        let methods = methods.as_object_mut().expect("paths are objects");
        let previous = methods.insert(method, operation);
        assert!(previous.is_none(), "{} {} is declared twice", E::METHOD, E::PATH);
    }

    /// Adds the addresses of media.
    pub fn describe_media(&mut self) {
        let section = media::SECTION;
        self.tags.push(json!({ "name": section.name, "description": section.description }));
        media::describe(&mut self.answers, &mut self.paths);
    }

    fn operation<E: Endpoint>(&mut self) -> Value {
        let schema = E::json_schema(&mut self.requests).to_value();
        let text = schema["description"].as_str().map(schema::unwrapped).unwrap_or_default();
        let summary = schema::first_paragraph(&text).trim_end_matches('.');
        let rest = text.split_once("\n\n").map_or("", |(_, rest)| rest);
        let mut operation = json!({
            "tags": [E::SECTION.name],
            "summary": summary,
            "description": if rest.is_empty() { text.as_str() } else { rest },
            "operationId": E::OPERATION_ID,
        });
        if schema["deprecated"] == true {
            operation["deprecated"] = true.into();
        }
        operation["security"] = E::ACCESS.to_security();
        let mut parameters = parameters::<E>(&schema);
        parameters.extend(E::HEADERS.iter().map(|header| {
            json!({
                "name": header.name,
                "in": "header",
                "required": header.required,
                "description": header.description,
                "schema": match header.integer_from {
                    Some(minimum) => json!({ "type": "integer", "format": "int64", "minimum": minimum }),
                    None => json!({ "type": "string" }),
                },
            })
        }));
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        let body = E::Body::describe(&mut self.requests);
        operation["responses"] = self.responses::<E>(body.is_some());
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }

    fn responses<E: Endpoint>(&mut self, has_body: bool) -> Value {
        let mut responses = Map::new();
        if E::ACCESS.accepts_credentials() {
            refuse_callers(&mut responses);
        }
        if has_body && E::ACCESS.accepts_credentials() {
            refuse(&mut responses, "413", "TooLarge");
        }
        for refusal in E::REFUSALS {
            match refusal {
                Refusal::NotFound => refuse(&mut responses, "404", "NotFound"),
                Refusal::NoCollection => refuse(&mut responses, "404", "NoCollection"),
                Refusal::Conflict => refuse(&mut responses, "409", "Conflict"),
                Refusal::Stale => refuse(&mut responses, "412", "Stale"),
                Refusal::TooLarge => refuse(&mut responses, "413", "TooLarge"),
            }
        }
        // An answer may have one of these statuses itself.
        E::Answer::describe(&mut self.answers, &mut responses);
        responses.sort_keys();
        Value::Object(responses)
    }

    /// Returns the described operations and their schemas.
    ///
    /// Panics if a request and an answer have different schemas of one name, which a test of the whole document finds.
    pub fn finish(mut self) -> DocumentParts {
        let mut schemas = self.requests.take_definitions(true);
        for (name, mut schema) in self.answers.take_definitions(true) {
            if let Some(other) = schemas.get(&name) {
                assert_eq!(*other, schema, "{name} differs between requests and answers");
            } else {
                remove_null_of_optional(&mut schema);
            }
            schemas.insert(name, schema);
        }
        let mut paths = Value::Object(self.paths);
        for generator in [&mut self.requests, &mut self.answers] {
            for transform in generator.transforms_mut() {
                transform_schemas(transform, &mut paths);
            }
        }
        let Value::Object(paths) = paths else { unreachable!("it was an object") };
        DocumentParts { tags: self.tags, paths, schemas }
    }
}

impl Default for Document {
    /// Creates a document without operations.
    fn default() -> Self {
        Self {
            requests: schema::for_requests(),
            answers: schema::for_answers(),
            paths: Map::new(),
            tags: Vec::new(),
        }
    }
}

/// Applies `transform` to the schemas within `value`.
fn transform_schemas(transform: &mut dyn schemars::generate::GenTransform, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if name == "schema"
                    && let Ok(schema) = <&mut schemars::Schema>::try_from(&mut *member)
                {
                    transform.transform(schema);
                } else {
                    transform_schemas(transform, member);
                }
            }
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| transform_schemas(transform, element));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Describes the parameters of `E`, whose schema is `schema`.
fn parameters<E: Endpoint>(schema: &Value) -> Vec<Value> {
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    let mut parameters = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mut property = property.clone();
        let members = property.as_object_mut().expect("a property has a schema");
        let description = members.remove("description");
        let element = members.remove(property::REPEATED);
        let is_repeated = element.is_some();
        members.extend(element.map(|element| ("items".to_owned(), element)));
        // An absent parameter is not `null`: a query has no such value.
        remove_null(members);
        let mut parameter = json!({ "name": name });
        if is_in_path(E::PATH, name) {
            parameter["in"] = "path".into();
            parameter["required"] = true.into();
            // Only the type has it: a path without the segment is a different path.
            members.remove("default");
        } else {
            parameter["in"] = "query".into();
            if required.iter().any(|own| *own == name) {
                parameter["required"] = true.into();
            } else {
                parameter["allowEmptyValue"] = true.into();
            }
            if property["type"] == "array" && !is_repeated {
                parameter["style"] = "form".into();
                parameter["explode"] = false.into();
            }
        }
        if let Some(Value::String(description)) = description {
            parameter["description"] = schema::unwrapped(&description).into();
        }
        parameter["schema"] = property;
        parameters.push(parameter);
    }
    parameters
}

/// Removes `null` from the properties that an answer may leave out: an absent property is never `null` as well.
fn remove_null_of_optional(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if required.iter().any(|own| own == name) {
            continue;
        }
        let Some(property) = property.as_object_mut() else { continue };
        remove_null(property);
        let alternatives = property.get("anyOf").and_then(Value::as_array);
        if let Some([object, null]) = alternatives.map(Vec::as_slice)
            && null["type"] == "null"
        {
            let object = object.clone();
            property.remove("anyOf");
            property.extend(object.as_object().cloned().unwrap_or_default());
        }
    }
}

/// Removes `null` from the types and words of a schema.
pub(crate) fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            schema.insert("type".to_owned(), name);
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}
