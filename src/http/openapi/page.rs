//! Prepares the OpenAPI document for the page: headings, operations and schemas, as text.

use std::collections::BTreeMap;

use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::{Map, Value};

/// Prefix of references to components.
const SCHEMAS: &str = "#/components/schemas/";
/// Description of the callers of RFC 6749 endpoints.
const CLIENT: &str = "a client with its secret";
/// Deepest nesting of objects whose properties are listed.
const DEPTH_MAX: usize = 4;

/// A piece of text: plain text, code, or a link to a schema on the page.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct TextPiece {
    text: String,
    code: bool,
    href: Option<String>,
}

impl TextPiece {
    fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: false, href: None }
    }

    fn code(text: impl Into<String>) -> Self {
        Self { code: true, ..Self::plain(text) }
    }

    fn schema(name: &str) -> Self {
        Self { href: Some(format!("#schema-{name}")), ..Self::plain(name) }
    }
}

/// A row in a table of parameters or properties.
#[derive(Debug, Serialize)]
struct PropertyRow {
    name: String,
    place: String,
    required: bool,
    kind: Vec<TextPiece>,
    text: Vec<TextPiece>,
    bounds: Vec<TextPiece>,
}

#[derive(Debug, Serialize)]
struct BodyDescription {
    kind: String,
    schema: Vec<TextPiece>,
    rows: Vec<PropertyRow>,
}

#[derive(Debug, Serialize)]
struct ResponseDescription {
    status: String,
    text: Vec<TextPiece>,
    bodies: Vec<BodyDescription>,
    headers: Vec<String>,
}

#[derive(Debug, Serialize)]
struct OperationDescription {
    id: String,
    method: String,
    /// The path, split where a line may break.
    path: Vec<String>,
    server: Option<String>,
    summary: String,
    text: Vec<TextPiece>,
    deprecated: bool,
    access: Vec<TextPiece>,
    parameters: Vec<PropertyRow>,
    body_text: Vec<TextPiece>,
    bodies: Vec<BodyDescription>,
    answers: Vec<ResponseDescription>,
    /// Statuses of the error responses that all operations share.
    refusals: Vec<String>,
}

#[derive(Debug, Serialize)]
struct DocsSection {
    name: String,
    anchor: String,
    text: Vec<TextPiece>,
    operations: Vec<OperationDescription>,
}

#[derive(Debug, Serialize)]
struct SchemaDescription {
    name: String,
    kind: Vec<TextPiece>,
    text: Vec<TextPiece>,
    rows: Vec<PropertyRow>,
}

/// Builds the template's context from `document`.
pub(super) fn context(document: &Value) -> PageValue {
    let about = text(&document["info"]["description"]);
    let about: Vec<Vec<TextPiece>> = about.split("\n\n").map(text_pieces).collect();
    let sections: Vec<DocsSection> =
        elements(&document["tags"]).map(|tag| section(document, tag)).collect();
    let schemas: Vec<SchemaDescription> = members(&document["components"]["schemas"])
        .map(|(name, schema)| SchemaDescription {
            name: name.clone(),
            kind: type_pieces(schema),
            text: text_pieces(text(&schema["description"])),
            rows: property_rows(schema, "", 0),
        })
        .collect();
    context! {
        title => text(&document["info"]["title"]),
        version => text(&document["info"]["version"]),
        server => text(&document["servers"][0]["url"]),
        refusals => PageValue::from(Serde(refusals(document))),
        about => PageValue::from(Serde(about)),
        sections => PageValue::from(Serde(sections)),
        schemas => PageValue::from(Serde(schemas)),
    }
}

/// Returns the text of a value, or an empty text if the value is not a string.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Iterates over the members of an object; a value of any other type has none.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// Iterates over the elements of an array; a value of any other type has none.
pub(super) fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Iterates over the operations of `document` with their paths and methods.
pub(super) fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    members(&document["paths"]).flat_map(|(path, item)| {
        members(item).map(|(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

/// Joins `pieces`, with backticks around code and names of schemas.
pub(super) fn with_backticks(pieces: &[TextPiece]) -> String {
    let mut joined = String::new();
    for piece in pieces {
        if piece.code || piece.href.is_some() {
            joined.push_str(&format!("`{}`", piece.text));
        } else {
            joined.push_str(&piece.text);
        }
    }
    joined
}

/// Splits text into pieces; text between backticks is code.
pub(super) fn text_pieces(text: &str) -> Vec<TextPiece> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts
        .map(|(at, part)| if at % 2 == 0 { TextPiece::plain(part) } else { TextPiece::code(part) })
        .collect()
}

fn section(document: &Value, tag: &Value) -> DocsSection {
    let name = text(&tag["name"]).to_owned();
    let in_section = operations(document).filter(|(_, _, found)| found["tags"][0] == *name);
    DocsSection {
        anchor: name.to_ascii_lowercase().replace(' ', "-"),
        text: text_pieces(text(&tag["description"])),
        operations: in_section
            .map(|(path, method, found)| operation(path, method, found))
            .collect(),
        name,
    }
}

fn operation(path: &str, method: &str, found: &Value) -> OperationDescription {
    // Responses by reference are errors that all operations share; the page describes them once.
    let (refusals, answers): (Vec<_>, Vec<_>) =
        members(&found["responses"]).partition(|(_, answer)| answer.get("$ref").is_some());
    OperationDescription {
        id: text(&found["operationId"]).to_owned(),
        method: method.to_ascii_uppercase(),
        path: path.split_inclusive('/').map(str::to_owned).collect(),
        server: found["servers"][0]["url"].as_str().map(str::to_owned),
        summary: text(&found["summary"]).to_owned(),
        text: text_pieces(text(&found["description"])),
        deprecated: found["deprecated"] == true,
        access: access_pieces(&found["security"]),
        parameters: elements(&found["parameters"]).map(parameter_row).collect(),
        body_text: text_pieces(text(&found["requestBody"]["description"])),
        bodies: bodies(&found["requestBody"]["content"]),
        answers: answers
            .into_iter()
            .map(|(status, answer)| describe_response(status, answer))
            .collect(),
        refusals: refusals.into_iter().map(|(status, _)| status.clone()).collect(),
    }
}

fn parameter_row(parameter: &Value) -> PropertyRow {
    PropertyRow {
        place: text(&parameter["in"]).to_owned(),
        ..property_row(
            text(&parameter["name"]),
            &parameter["schema"],
            parameter["required"] == true,
            text(&parameter["description"]),
        )
    }
}

fn describe_response(status: &str, answer: &Value) -> ResponseDescription {
    ResponseDescription {
        status: status.to_owned(),
        text: text_pieces(text(&answer["description"])),
        bodies: bodies(&answer["content"]),
        headers: members(&answer["headers"]).map(|(name, _)| name.clone()).collect(),
    }
}

/// Describes the error responses that operations refer to, by status.
fn refusals(document: &Value) -> Vec<ResponseDescription> {
    let mut pointers: BTreeMap<&String, &str> = BTreeMap::new();
    for (_, _, operation) in operations(document) {
        for (status, response) in members(&operation["responses"]) {
            let target = response["$ref"].as_str();
            if let Some(pointer) = target.and_then(|target| target.get(1..)) {
                pointers.insert(status, pointer);
            }
        }
    }
    let mut found = Vec::new();
    for (status, pointer) in pointers {
        let response = document.pointer(pointer).unwrap_or(&Value::Null);
        found.push(describe_response(status, response));
    }
    found
}

fn bodies(content: &Value) -> Vec<BodyDescription> {
    members(content).map(|(name, media)| describe_body(name, media)).collect()
}

fn describe_body(name: &str, media: &Value) -> BodyDescription {
    let schema = &media["schema"];
    // A named schema is described under its name; binary bodies have no schema.
    let is_named = schema.get("$ref").is_some();
    let schema_kind =
        if schema.get("contentMediaType").is_some() { vec![] } else { type_pieces(schema) };
    BodyDescription {
        kind: name.to_owned(),
        schema: schema_kind,
        rows: if is_named { Vec::new() } else { property_rows(schema, "", 0) },
    }
}

/// Describes the accepted credentials with the scopes that are required.
pub(super) fn access_pieces(security: &Value) -> Vec<TextPiece> {
    let mut credentials = Vec::new();
    let mut scopes = Vec::new();
    let mut is_open = elements(security).next().is_none();
    for requirement in elements(security) {
        // An empty requirement makes the others optional (OpenAPI 3.1, Security Requirement
        // Object).
        is_open |= requirement.as_object().is_some_and(Map::is_empty);
        for (scheme, needed) in members(requirement) {
            scopes.extend(elements(needed).map(text));
            credentials.extend(match scheme.as_str() {
                "bearer" => Some("an access token"),
                "apiKey" => Some("an API key"),
                "ak" => Some("an API key in the query (`ak`)"),
                "basic" => Some("a user name with its password"),
                "client" => Some(CLIENT),
                _ => None,
            });
        }
    }
    let mut line = match (is_open, credentials.is_empty()) {
        (true, true) => "No credentials needed".to_owned(),
        (true, false) if credentials == [CLIENT] => {
            format!("Requires {CLIENT}, unless the client is public")
        }
        (true, false) => {
            format!(
                "Public content needs no credentials; other content {}",
                credentials.join(" or ")
            )
        }
        (false, _) => format!("Requires {}", credentials.join(" or ")),
    };
    if !scopes.is_empty() {
        let scopes: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
        let noun = if scopes.len() == 1 { "scope" } else { "scopes" };
        line = format!("{line}, with the {noun} {}", scopes.join(" and "));
    }
    text_pieces(&line)
}

/// Describes the type of a schema in a few words.
pub(super) fn type_pieces(schema: &Value) -> Vec<TextPiece> {
    if let Some(name) = text(&schema["$ref"]).strip_prefix(SCHEMAS) {
        return vec![TextPiece::schema(name)];
    }
    // Two kinds of object, or an object that may be null. A schema with a type lists alternative requirements.
    if let [first, second] = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice)
        && schema.get("type").is_none()
    {
        let mut parts = type_pieces(first);
        parts.push(TextPiece::plain(" or "));
        parts.extend(type_pieces(second));
        return parts;
    }
    let names: Vec<&str> = match schema["type"].as_array() {
        Some(names) => names.iter().map(text).collect(),
        None => vec![text(&schema["type"])],
    };
    if names.contains(&"array") {
        let mut parts = vec![TextPiece::plain("list of ")];
        parts.extend(type_pieces(&schema["items"]));
        return parts;
    }
    if schema.get("const").is_some() {
        return vec![TextPiece::plain("always "), TextPiece::code(plain_text(&schema["const"]))];
    }
    let name = match schema["format"].as_str() {
        // `int64` is a detail of the encoding; other formats restrict the value.
        Some(format) if format != "int64" => format!("{} ({format})", names.join(" or ")),
        _ => names.join(" or "),
    };
    vec![TextPiece::plain(name)]
}

/// Prints a value: a string without quotes, any other value as JSON.
pub(super) fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Prints the default of a schema, a list with commas; `None` if it has no default.
pub(super) fn default_text(schema: &Value) -> Option<String> {
    let default = schema.get("default")?;
    Some(match default.as_array() {
        Some(elements) => elements.iter().map(plain_text).collect::<Vec<_>>().join(","),
        None => plain_text(default),
    })
}

/// Describes the enumeration, bounds and default of a schema.
pub(super) fn bound_pieces(schema: &Value) -> Vec<TextPiece> {
    let mut parts = Vec::new();
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    for (index, value) in elements(&inner["enum"]).enumerate() {
        parts.push(TextPiece::plain(if index == 0 { "One of " } else { ", " }));
        parts.push(TextPiece::code(plain_text(value)));
    }
    let minimum = inner["minimum"].as_u64();
    // A maximum of 32 bits is a technical limit, not worth showing.
    let maximum = inner["maximum"].as_u64().filter(|max| *max < u64::from(u32::MAX));
    let range = match (minimum, maximum) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}")),
        (Some(low), None) => Some(format!("{low} or more")),
        (None, Some(high)) => Some(format!("{high} at most")),
        (None, None) => None,
    };
    let length = inner["maxLength"].as_u64().map(|max| format!("{max} characters at most"));
    for bound in range.into_iter().chain(length) {
        push_bound(&mut parts, &bound);
    }
    if let Some(default) = default_text(schema) {
        push_bound(&mut parts, "default ");
        parts.push(TextPiece::code(default));
    }
    parts.retain(|piece| !piece.text.is_empty());
    parts
}

/// Adds a bound to `parts`, separated from the previous one.
fn push_bound(parts: &mut Vec<TextPiece>, bound: &str) {
    let separator = if parts.is_empty() { "" } else { "; " };
    parts.push(TextPiece::plain(separator));
    parts.push(TextPiece::plain(bound));
}

fn property_row(name: &str, schema: &Value, required: bool, description: &str) -> PropertyRow {
    PropertyRow {
        name: name.to_owned(),
        place: String::new(),
        required,
        kind: type_pieces(schema),
        text: text_pieces(description),
        bounds: bound_pieces(schema),
    }
}

/// Lists the properties of an object and of nested objects, as paths such as `a.b`, or `a[].b` for list elements.
fn property_rows(schema: &Value, prefix: &str, depth: usize) -> Vec<PropertyRow> {
    let mut found = Vec::new();
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    let mark = if schema["type"] == "array" && depth > 0 { "[]" } else { "" };
    let separator = if depth > 0 { "." } else { "" };
    for (name, property) in members(&inner["properties"]) {
        let path = format!("{prefix}{mark}{separator}{name}");
        let required = elements(&inner["required"]).any(|listed| listed == name);
        found.push(property_row(&path, property, required, text(&property["description"])));
        if depth < DEPTH_MAX {
            found.extend(property_rows(property, &path, depth + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(parts: &[TextPiece]) -> String {
        parts.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn a_schema_is_summarized_in_a_few_words() {
        let check =
            |schema: Value, expected: &str| assert_eq!(joined(&type_pieces(&schema)), expected);
        check(json!({ "type": "string", "format": "date" }), "string (date)");
        check(json!({ "type": ["string", "null"] }), "string or null");
        check(
            json!({ "type": "array", "items": { "$ref": "#/components/schemas/A" } }),
            "list of A",
        );
        check(json!({ "const": "Bearer" }), "always Bearer");
    }

    #[test]
    fn values_bounds_and_default_are_described() {
        let check =
            |schema: Value, expected: &str| assert_eq!(joined(&bound_pieces(&schema)), expected);
        check(json!({ "minimum": 0, "maximum": 10, "default": 2 }), "0 to 10; default 2");
        check(json!({ "enum": ["a", "b"], "default": "a" }), "One of a, b; default a");
        check(json!({ "type": "string" }), "");
        check(
            json!({ "type": "array", "items": { "enum": ["a"] }, "default": ["a"] }),
            "One of a; default a",
        );
    }

    #[test]
    fn properties_within_properties_have_dots() {
        let schema = json!({ "properties": {
            "a": { "properties": { "b": { "type": "string" } } },
            "c": { "type": "array", "items": { "properties": { "d": {} } } },
        } });
        let names: Vec<String> =
            property_rows(&schema, "", 0).into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["a", "a.b", "c", "c[].d"]);
    }

    #[test]
    fn code_stands_between_backticks() {
        let found = text_pieces("send `a` or `b`");
        let codes: Vec<&str> =
            found.iter().filter(|piece| piece.code).map(|piece| piece.text.as_str()).collect();
        assert_eq!(codes, ["a", "b"]);
        assert_eq!(joined(&found), "send a or b");
    }
}
