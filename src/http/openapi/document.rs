//! Assembles the OpenAPI document from the files in `assets/openapi`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::news_item;
use super::page::{members, text};

/// The document without its sections.
const DOCUMENT: &str = include_str!("../../../assets/openapi/document.yaml");
/// The targets of references that begin with [`TO_SHARED`].
const SHARED: &str = include_str!("../../../assets/openapi/shared.yaml");
const TO_SHARED: &str = "shared.yaml#";
/// The sections, in the order of the documentation page.
const SECTIONS: [&str; 14] = [
    include_str!("../../../assets/openapi/content.yaml"),
    include_str!("../../../assets/openapi/notifications.yaml"),
    include_str!("../../../assets/openapi/collections.yaml"),
    include_str!("../../../assets/openapi/user.yaml"),
    include_str!("../../../assets/openapi/orders.yaml"),
    include_str!("../../../assets/openapi/deliveries.yaml"),
    include_str!("../../../assets/openapi/organization.yaml"),
    include_str!("../../../assets/openapi/media.yaml"),
    include_str!("../../../assets/openapi/oauth2.yaml"),
    include_str!("../../../assets/openapi/search.yaml"),
    include_str!("../../../assets/openapi/ingest.yaml"),
    include_str!("../../../assets/openapi/uploads.yaml"),
    include_str!("../../../assets/openapi/operation.yaml"),
    include_str!("../../../assets/openapi/operator.yaml"),
];

/// Base URLs of the service.
#[derive(Clone, Copy, Debug)]
pub struct BaseUrls<'a> {
    /// Base URL of everything except media and OAuth2.
    pub public: &'a str,
    /// Base URL of media.
    pub media: &'a str,
    /// Base URL of the OAuth2 service.
    pub auth: &'a str,
}

impl BaseUrls<'_> {
    /// Replaces `${public}`, `${media}` and `${auth}` in `text` by the base URLs.
    fn fill(&self, text: &str) -> String {
        let names = [("${public}", self.public), ("${media}", self.media), ("${auth}", self.auth)];
        names.into_iter().fold(text.to_owned(), |text, (name, base)| text.replace(name, base))
    }
}

/// Assembles the document of the service at `bases`.
///
/// The files are compiled in, so an error in them is a bug and panics. Every test that starts a server would
/// detect it.
pub(super) fn assemble(bases: BaseUrls<'_>) -> Value {
    let shared = parse_yaml(SHARED);
    let mut document = resolve(&parse_yaml(DOCUMENT), &shared, bases);
    let mut tags = Vec::new();
    let mut paths = Map::new();
    let mut schemas: Map<String, Value> =
        cloned_members(&document["components"]["schemas"]).chain(news_item::schemas()).collect();
    for file in SECTIONS {
        let section = resolve(&parse_yaml(file), &shared, bases);
        tags.push(json!({ "name": section["name"], "description": section["description"] }));
        for (path, item) in members(&section["paths"]) {
            let item = members(item).map(|(method, operation)| {
                (method.clone(), complete_operation(operation, &section, bases.public))
            });
            let previous = paths.insert(path.clone(), item.collect());
            assert!(previous.is_none(), "{path} is described in two sections");
        }
        schemas.extend(cloned_members(&section["schemas"]));
    }
    document["tags"] = tags.into();
    document["components"]["schemas"] = schemas.into();
    document["paths"] = paths.into();
    document
}

fn cloned_members(object: &Value) -> impl Iterator<Item = (String, Value)> {
    members(object).map(|(name, value)| (name.clone(), value.clone()))
}

/// Completes an operation with its tag and the defaults of its section: `responses` that it does not define
/// itself, `security` if it has none, and `server` if that differs from `public`.
fn complete_operation(operation: &Value, section: &Value, public: &str) -> Value {
    let mut completed = operation.clone();
    completed["tags"] = json!([section["name"]]);
    if completed.get("security").is_none() {
        completed["security"] = section["security"].clone();
    }
    if let Some(server) = section.get("server").filter(|server| *server != public) {
        completed["servers"] = json!([{ "url": server }]);
    }
    // The operation's own responses come last and replace the section's responses.
    let responses = members(&section["responses"]).chain(members(&operation["responses"]));
    // The map sorts them by status.
    completed["responses"] = json!(responses.collect::<BTreeMap<_, _>>());
    completed
}

/// Replaces references to `shared` by their targets, and `${public}`, `${media}` and `${auth}` by the
/// addresses of `bases`.
fn resolve(value: &Value, shared: &Value, bases: BaseUrls<'_>) -> Value {
    if let Some(pointer) = text(&value["$ref"]).strip_prefix(TO_SHARED) {
        let target = shared.pointer(pointer);
        let target = target.unwrap_or_else(|| panic!("shared.yaml has no {pointer}"));
        // A target may contain references of its own.
        return resolve(target, shared, bases);
    }
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), resolve(value, shared, bases)))
            .collect(),
        Value::Array(elements) => {
            elements.iter().map(|element| resolve(element, shared, bases)).collect()
        }
        Value::String(text) => bases.fill(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Parses a file of `assets/openapi`.
fn parse_yaml(file: &str) -> Value {
    let read = YamlLoader::load_from_str(file);
    let read = read.unwrap_or_else(|error| panic!("a file of assets/openapi: {error}"));
    read.into_iter().next().map_or(Value::Null, to_json)
}

/// Converts the value to JSON. Keys must be text, so the files quote statuses.
fn to_json(yaml: Yaml) -> Value {
    match yaml {
        Yaml::String(text) => text.into(),
        Yaml::Integer(number) => number.into(),
        Yaml::Boolean(flag) => flag.into(),
        Yaml::Array(elements) => elements.into_iter().map(to_json).collect(),
        Yaml::Hash(members) => members
            .into_iter()
            .map(|(name, value)| (name.into_string().expect("keys are text"), to_json(value)))
            .collect(),
        // A test refuses these values in the files.
        Yaml::Real(_) | Yaml::Alias(_) | Yaml::Null | Yaml::BadValue => Value::Null,
    }
}
