//! The dialect of JSON Schema that is derived from the types.

use jsonschema::Validator;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

/// The place of schemas in the OpenAPI document, as a JSON Pointer.
const DEFINITIONS: &str = "/components/schemas";

/// Returns the generator of schemas for requests.
pub(crate) fn for_requests() -> SchemaGenerator {
    settings().for_deserialize().into_generator()
}

/// Returns the generator of schemas for answers.
pub(crate) fn for_answers() -> SchemaGenerator {
    settings().for_serialize().into_generator()
}

fn settings() -> SchemaSettings {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = DEFINITIONS.into();
    });
    settings.with_transform(PlainSchema)
}

/// Compiles `schema`, which contains the definitions that it refers to.
pub(crate) fn compile(schema: &Value) -> Validator {
    let options = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_format("uuid", is_uuid)
        .with_format("email", crate::property::is_email)
        .with_format("item-id", |text: &str| model::ItemId::parse(text).is_ok())
        .with_format("uri", crate::property::is_uri)
        .with_format("telephone", crate::property::is_phone_number);
    // The schemas are derived at compile time, and a test compiles each.
    options.build(schema).expect("a derived schema is valid")
}

fn is_uuid(text: &str) -> bool {
    // The crate also accepts UUIDs without hyphens, in braces and as URNs.
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Returns the documentation of `T`; empty if it has none.
pub(crate) fn description<T: JsonSchema>() -> String {
    let mut generator = for_answers();
    let schema = T::json_schema(&mut generator);
    let own = schema.get("description").and_then(Value::as_str);
    if let Some(own) = own {
        return unwrapped(own);
    }
    if schema.get("items").is_some() { "The list.".to_owned() } else { String::new() }
}

/// Returns `text` up to the first empty line.
pub(crate) fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

/// Joins the lines of each paragraph, as Markdown does.
pub fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Brings derived schemas into the form that the document and generated clients use.
#[derive(Clone, Debug)]
struct PlainSchema;

impl Transform for PlainSchema {
    fn transform(&mut self, schema: &mut Schema) {
        merge_constants(schema);
        // JSON Schema knows no unsigned formats; `minimum` says it.
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        if format.starts_with("uint") || format == "double" {
            schema.remove("format");
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = unwrapped(text);
        }
        transform_subschemas(self, schema);
    }
}

/// Replaces the alternatives of an enum with documented variants by one list of words.
fn merge_constants(schema: &mut Schema) {
    let Some(Value::Array(alternatives)) = schema.get("oneOf") else { return };
    let words: Option<Vec<Value>> =
        alternatives.iter().map(|alternative| alternative.get("const").cloned()).collect();
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), words.into());
    }
}
