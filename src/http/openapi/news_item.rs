//! The schema of the news item as a component: draft 4 turned into OpenAPI 3.1.

use serde_json::{Value, json};

use model::item::SCHEMA;

const ITEM: &str = "NewsItem";
/// The item as it is sent.
const SENT: &str = "NewsItemSent";
const CONTACT: &str = "ContactInfo";
/// Its name in the shipped schema.
const CONTACT_HERE: &str = "contactinfoType";

/// `NewsItem` and what it is made of.
pub(super) fn schemas() -> [(String, Value); 3] {
    let mut item: Value = serde_json::from_str(SCHEMA).expect("the shipped schema is JSON");
    let contact = item["definitions"][CONTACT_HERE].take();
    let fields = item.as_object_mut().expect("the shipped schema is an object");
    for name in ["$schema", "id", "definitions"] {
        fields.shift_remove(name);
    }
    let item = component(item);
    let mut sent = item.clone();
    // Its own address says which item it is.
    sent.as_object_mut().expect("the shipped schema is an object").shift_remove("required");
    [(ITEM, item), (SENT, sent), (CONTACT, component(contact))]
        .map(|(name, schema)| (name.to_owned(), schema))
}

/// The schema with references that hold inside of the document. Nothing else of draft 4 that the
/// shipped schema uses has another meaning in OpenAPI 3.1.
fn component(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                *value = match (name.as_str(), value.as_str()) {
                    ("$ref", Some("#")) => json!(format!("#/components/schemas/{ITEM}")),
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
