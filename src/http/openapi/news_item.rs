//! The schema of the news item as OpenAPI 3.1 components, converted from draft 4.

use serde_json::{Value, json};

use model::item::SCHEMA;

const ITEM: &str = "NewsItem";
/// Name of the component for an item in an upload.
const UPLOADED: &str = "NewsItemSent";
const CONTACT: &str = "ContactInfo";
/// Name of the contact's definition in the shipped schema.
const CONTACT_DEFINITION: &str = "contactinfoType";

/// The components `NewsItem`, its upload variant and the contact.
pub(super) fn schemas() -> [(String, Value); 3] {
    let mut item: Value = serde_json::from_str(SCHEMA).expect("the shipped schema is JSON");
    let contact = item["definitions"][CONTACT_DEFINITION].take();
    let fields = item.as_object_mut().expect("the shipped schema is an object");
    // These keywords are for a schema in a file of its own, not for a component.
    for name in ["$schema", "id", "definitions"] {
        fields.shift_remove(name);
    }
    let item = component(item);
    let mut uploaded = item.clone();
    // The address of an upload names the item, so no property is required.
    uploaded.as_object_mut().expect("the shipped schema is an object").shift_remove("required");
    [(ITEM, item), (UPLOADED, uploaded), (CONTACT, component(contact))]
        .map(|(name, schema)| (name.to_owned(), schema))
}

/// Rewrites the references of the shipped schema to references within the document. All other keywords of draft 4
/// that the shipped schema uses have the same meaning in OpenAPI 3.1.
fn component(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            // Generated clients name classes after titles, and the two components of the item share theirs.
            if fields.get("title").is_some_and(Value::is_string) {
                fields.shift_remove("title");
            }
            for (name, value) in fields.iter_mut() {
                *value = match (name.as_str(), value.as_str()) {
                    ("$ref", Some("#")) => json!(format!("#/components/schemas/{ITEM}")),
                    // The only other reference of the shipped schema is to the contact.
                    ("$ref", Some(_)) => json!(format!("#/components/schemas/{CONTACT}")),
                    _ => component(value.take()),
                };
            }
        }
        Value::Array(elements) => {
            for element in elements {
                *element = component(element.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}
