//! Describes how to try an operation: its parameters as form fields, a sample body, and the credentials that
//! it accepts.

use serde::Serialize;
use serde_json::{Map, Value};

use super::page::{
    TextPiece, access_pieces, default_text, elements, members, operations, plain_text, text,
    text_pieces,
};

/// Placeholder for an API key in the header `Authorization` of code samples.
const API_KEY: &str = "ApiKey YOUR_KEY";
/// Placeholder for an access token in the header `Authorization` of code samples.
const ACCESS_TOKEN: &str = "Bearer YOUR_ACCESS_TOKEN";
/// Preferred initial values of fields, because anonymous callers may use them.
const OPEN_VALUES: [&str; 2] = ["image", "NormalPreview"];
/// Name of a section whose operations are not sent from the page.
const OPERATOR: &str = "Operator";
const OAUTH2: &str = "OAuth2";
/// Deepest nesting of objects in a sample body.
const DEPTH_MAX: usize = 4;
/// Most properties of an object in a sample; a larger object shows only required ones.
const PROPERTIES_MAX: usize = 12;

/// An operation that can be tried on the page.
#[derive(Debug, Serialize)]
pub(in crate::http) struct TrialOperation {
    /// The operation's `operationId` in the document.
    pub(in crate::http) id: String,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub(in crate::http) method: String,
    /// The path with `{names}` of its parameters.
    pub(in crate::http) path: String,
    /// Base URL of the path.
    pub(in crate::http) base: String,
    /// Summary of the operation, its title on the page.
    summary: String,
    text: Vec<TextPiece>,
    access: Vec<TextPiece>,
    /// All parameters except headers, path parameters first.
    pub(in crate::http) fields: Vec<OperationField>,
    /// A sample of the request body, if the operation has one.
    pub(in crate::http) body: Option<SampleBody>,
    /// Value of the header `Authorization` in code samples.
    pub(in crate::http) authorization: Option<&'static str>,
    /// True if the operation accepts an API key in the query (`ak`) and not in the header.
    pub(in crate::http) takes_ak: bool,
    /// True if anonymous callers may call the operation.
    pub(in crate::http) is_open: bool,
    /// True if the response is binary; samples then write it to a file.
    pub(in crate::http) gives_bytes: bool,
    /// The reason why the page does not send this operation; `None` if it does.
    unsent: Option<&'static str>,
}

/// A parameter as a form field.
#[derive(Debug, Serialize)]
pub(in crate::http) struct OperationField {
    pub(in crate::http) name: String,
    pub(in crate::http) place: String,
    required: bool,
    text: Vec<TextPiece>,
    /// The values of an enumeration; empty if the field is free.
    words: Vec<String>,
    /// The default value, or an example.
    placeholder: String,
    default: Option<String>,
    /// Initial value of the field.
    pub(in crate::http) value: String,
}

/// A sample of a request body.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SampleBody {
    pub(in crate::http) kind: String,
    pub(in crate::http) text: String,
}

/// Builds the trials of all operations in `document`.
pub(super) fn trial_operations(document: &Value) -> Vec<TrialOperation> {
    operations(document)
        .map(|(path, method, operation)| trial(document, path, method, operation))
        .collect()
}

fn trial(document: &Value, path: &str, method: &str, found: &Value) -> TrialOperation {
    let server = found["servers"][0]["url"].as_str();
    let mut requirements = elements(&found["security"]).filter_map(Value::as_object).peekable();
    let is_open = requirements.peek().is_none() || requirements.any(Map::is_empty);
    let takes_ak = accepts(found, "ak") && !accepts(found, "apiKey");
    let mut fields: Vec<OperationField> =
        elements(&found["parameters"]).filter_map(field).collect();
    // The sort is stable, so fields otherwise stay in the order of the document.
    fields.sort_by_key(|field| field.place != "path");
    TrialOperation {
        id: text(&found["operationId"]).to_owned(),
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        base: server.unwrap_or(text(&document["servers"][0]["url"])).to_owned(),
        summary: text(&found["summary"]).to_owned(),
        text: text_pieces(text(&found["description"])),
        access: access_pieces(&found["security"]),
        fields,
        body: sample(document, &found["requestBody"]["content"]),
        authorization: authorization_sample(found),
        takes_ak,
        is_open,
        gives_bytes: returns_bytes(&found["responses"]),
        unsent: unsent_reason(path, found, takes_ak),
    }
}

/// Returns whether the security requirements of an operation name the scheme.
fn accepts(operation: &Value, scheme: &str) -> bool {
    elements(&operation["security"]).any(|requirement| requirement.get(scheme).is_some())
}

/// Returns the value of the header `Authorization` in code samples that call an operation.
fn authorization_sample(operation: &Value) -> Option<&'static str> {
    if accepts(operation, "apiKey") {
        Some(API_KEY)
    } else if accepts(operation, "bearer") {
        Some(ACCESS_TOKEN)
    } else {
        None
    }
}

/// Returns the reason why the page does not send an operation; `None` if it does.
fn unsent_reason(path: &str, found: &Value, takes_ak: bool) -> Option<&'static str> {
    let tag = text(&found["tags"][0]);
    if tag == OPERATOR {
        return Some("This operation is for the operator's tools and is not sent from here.");
    }
    if accepts(found, "client") {
        return Some("This operation takes client credentials and is not sent from here.");
    }
    if path == "/o/oauth2/auth" {
        return Some("A client sends the user's browser here; the request is not sent from here.");
    }
    if tag == OAUTH2 && elements(&found["security"]).next().is_some() {
        return Some("This operation takes an access token and is not sent from here.");
    }
    let mut headers =
        elements(&found["parameters"]).filter(|parameter| parameter["in"] == "header");
    if headers.any(|header| header["required"] == true) {
        return Some("This operation needs a request header and is not sent from here.");
    }
    takes_ak.then_some("This operation takes an application key and is not sent from here.")
}

fn field(parameter: &Value) -> Option<OperationField> {
    let place = text(&parameter["in"]);
    let schema = &parameter["schema"];
    if place == "header" {
        return None;
    }
    let is_list = schema["type"] == "array";
    let words: Vec<String> = elements(&schema["enum"]).map(plain_text).collect();
    let required = parameter["required"] == true;
    let default = default_text(schema).filter(|text| !text.is_empty());
    let open = words.iter().find(|word| OPEN_VALUES.contains(&word.as_str()));
    let first = open.or(words.first());
    let hint =
        if is_list { example_text(&schema["items"], "a,b") } else { example_text(schema, "") };
    Some(OperationField {
        name: text(&parameter["name"]).to_owned(),
        place: place.to_owned(),
        required,
        text: text_pieces(text(&parameter["description"])),
        placeholder: default.clone().unwrap_or(hint),
        default,
        // An optional field starts empty: then the default of the operation applies.
        value: first.filter(|_| required).cloned().unwrap_or_default(),
        words,
    })
}

/// Returns the first example of the schema, else a value of its format, else `other`.
fn example_text(schema: &Value, other: &str) -> String {
    match (schema["examples"].get(0), text(&schema["format"])) {
        (Some(example), _) => plain_text(example),
        (None, "date" | "uuid" | "email" | "uri") => {
            format_example(text(&schema["format"])).to_owned()
        }
        (None, _) => other.to_owned(),
    }
}

fn format_example(format: &str) -> &'static str {
    match format {
        "date-time" => "2026-01-31T12:00:00Z",
        "date" => "2026-01-31",
        "email" => "name@example.com",
        "uuid" => "00000000-0000-0000-0000-000000000000",
        "uri" => "https://example.com/",
        _ => "text",
    }
}

/// Builds a sample body of the first type in `content` that a text field can hold.
fn sample(document: &Value, content: &Value) -> Option<SampleBody> {
    let (kind, media) = members(content)
        .find(|(name, _)| *name == "application/json" || name.ends_with("urlencoded"))?;
    let value = match media.get("example") {
        Some(example) => example.clone(),
        None => example(document, &media["schema"], 0),
    };
    let text = match kind.as_str() {
        "application/json" => format!("{value:#}"),
        _ => {
            let pairs = members(&value).map(|(name, value)| (name.as_str(), plain_text(value)));
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
        }
    };
    Some(SampleBody { kind: kind.clone(), text })
}

/// Builds a value that the schema allows.
fn example(document: &Value, schema: &Value, depth: usize) -> Value {
    if let Some(found) = text(&schema["$ref"]).strip_prefix('#') {
        let found = document.pointer(found);
        return found.map_or(Value::Null, |schema| example(document, schema, depth));
    }
    // Alternatives: an object that may be `null`, or one of several forms.
    if schema.get("type").is_none()
        && let Some(first) = schema["anyOf"].get(0)
    {
        return example(document, first, depth);
    }
    let preset = [schema.get("const"), schema["examples"].get(0), schema.get("default")];
    let preset = preset.into_iter().chain([schema["enum"].get(0)]).flatten().next();
    if let Some(preset) = preset {
        return preset.clone();
    }
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
    match text(kind) {
        "object" => Value::Object(properties(document, schema, depth)),
        "array" => Value::Array(vec![example(document, &schema["items"], depth + 1)]),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(Value::from(1)),
        "boolean" => Value::from(false),
        _ => Value::from(format_example(text(&schema["format"]))),
    }
}

fn properties(document: &Value, schema: &Value, depth: usize) -> Map<String, Value> {
    let shows_all = depth < DEPTH_MAX && members(&schema["properties"]).count() <= PROPERTIES_MAX;
    let mut shown = Map::new();
    for (name, property) in members(&schema["properties"]) {
        // Required properties are always included, or the sample would not be valid.
        if shows_all || elements(&schema["required"]).any(|required| required == name) {
            shown.insert(name.clone(), example(document, property, depth + 1));
        }
    }
    shown
}

/// Returns whether the success response is binary.
fn returns_bytes(responses: &Value) -> bool {
    let content = members(responses).find(|(status, _)| status.starts_with('2'));
    let mut kinds = content.into_iter().flat_map(|(_, answer)| members(&answer["content"]));
    kinds.next().is_some_and(|(kind, _)| !is_text_type(kind))
}

fn is_text_type(kind: &str) -> bool {
    kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::whole;
    use super::*;

    #[test]
    fn only_what_a_visitor_may_call_is_sent() {
        let trials = trial_operations(&whole());
        let trial = |id: &str| trials.iter().find(|trial| trial.id == id).unwrap();
        for id in ["search", "getUser", "removeNotification", "getKeys", "getHires"] {
            assert_eq!(trial(id).unsent, None, "{id}");
        }
        for id in ["requestToken", "revokeToken", "authorize", "getUserInfo", "getMetrics"] {
            assert!(trial(id).unsent.is_some(), "{id}");
        }
        assert!(trial("searchWithKey").takes_ak && trial("searchWithKey").unsent.is_some());
        assert_eq!(trial("getUser").authorization, Some(API_KEY));
        assert_eq!(trial("addOrganizationUser").authorization, Some(ACCESS_TOKEN));
        assert_eq!(trial("getKeys").authorization, None);
        assert!(trial("search").is_open && trial("getKeys").is_open && !trial("getUser").is_open);
        assert!(trial("getHires").gives_bytes && !trial("search").gives_bytes);
    }

    #[test]
    fn a_parameter_becomes_a_field() {
        let parameter = json!({
            "name": "facets", "in": "query", "required": false, "description": "`a`",
            "schema": { "type": "array", "items": { "enum": ["a", "b"] }, "default": ["a", "b"] },
        });
        let found = field(&parameter).unwrap();
        assert_eq!((found.placeholder.as_str(), found.value.as_str()), ("a,b", ""));
        assert!(found.words.is_empty());
        let parameter = json!({
            "name": "mediaType", "in": "path", "required": true,
            "schema": { "type": "string", "enum": ["_all", "image"] },
        });
        assert_eq!(field(&parameter).unwrap().value, "image");
        assert!(field(&json!({ "name": "Range", "in": "header", "schema": {} })).is_none());
    }

    #[test]
    fn every_body_that_is_taken_begins_as_one_that_its_schema_allows() {
        let document = whole();
        let mut count = 0;
        for trial in trial_operations(&document) {
            let Some(body) = &trial.body else { continue };
            let method = trial.method.to_ascii_lowercase();
            let content = &document["paths"][&trial.path][&method]["requestBody"]["content"];
            let mut schema = content[&body.kind]["schema"].clone();
            let value = match body.kind.as_str() {
                "application/json" => serde_json::from_str(&body.text).unwrap(),
                _ => form_urlencoded::parse(body.text.as_bytes())
                    .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())))
                    .collect(),
            };
            schema["components"] = document["components"].clone();
            let validator = jsonschema::draft202012::new(&schema).unwrap();
            if let Some(error) = validator.iter_errors(&value).next() {
                panic!("{}: {} {error}\n{value:#}", trial.id, error.instance_path());
            }
            count += 1;
        }
        assert!(count >= 8, "{count}");
    }
}
