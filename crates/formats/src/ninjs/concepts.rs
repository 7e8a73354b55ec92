//! Converts persons, organisations, places and the other concepts of a document.

use serde_json::{Map, Value, json};

use super::{Members, objects, text, uri};
use crate::newsml::lexical;

/// Writes the lists of concepts.
pub(super) fn write(members: &mut Members, document: &Map<String, Value>) {
    members.list("people", objects(document, "person").map(contacted).collect());
    members.list("organisations", objects(document, "organisation").map(organisation).collect());
    let mut places: Vec<Value> = objects(document, "place").map(place).collect();
    places.extend(venue(document));
    members.list("places", places);
    let mut subjects: Vec<Value> = objects(document, "subject").map(subject).collect();
    // Products are the provider's own subjects, and the standard has no other place for stories.
    subjects.extend(objects(document, "product").map(|product| related(product, "product")));
    subjects.extend(objects(document, "fixture").map(|story| related(story, "fixture")));
    members.list("subjects", subjects);
    members.list("events", objects(document, "event").map(plain).collect());
    members.list("objects", objects(document, "object").map(plain).collect());
    members.list("genres", objects(document, "genre").map(genre).collect());
    let mut sources: Vec<Value> = objects(document, "infosource").map(source).collect();
    if let Some(name) = text(document, "source") {
        sources.push(json!({ "name": name, "role": "source" }));
    }
    members.list("infoSources", sources);
}

/// Returns the URI of a concept: its scheme followed by its code, if the result is a URI.
pub(super) fn complete_uri(concept: &Map<String, Value>) -> Option<String> {
    let scheme = text(concept, "scheme")?;
    let code = text(concept, "code")?;
    // Documents write schemes with or without the slash at the end.
    let separator = if scheme.ends_with(['/', '#', ':']) { "" } else { "/" };
    Some(format!("{scheme}{separator}{code}")).filter(|uri| lexical::is_uri(uri))
}

/// Builds the members that all concepts share.
fn identified(concept: &Map<String, Value>) -> Members {
    let mut members = Members::default();
    members.set("name", text(concept, "name"));
    members.set("uri", complete_uri(concept));
    members.set("literal", text(concept, "code"));
    members
}

/// Builds the members of a concept with its relationship to the content.
fn related_members(concept: &Map<String, Value>) -> Members {
    let mut members = identified(concept);
    members.set("rel", text(concept, "rel"));
    members
}

fn plain(concept: &Map<String, Value>) -> Value {
    Value::Object(related_members(concept).0)
}

fn genre(concept: &Map<String, Value>) -> Value {
    Value::Object(identified(concept).0)
}

/// Converts a concept. `rel` is its relationship to the content unless the document states one.
fn related(concept: &Map<String, Value>, rel: &str) -> Value {
    let mut members = identified(concept);
    members.set("rel", Some(text(concept, "rel").unwrap_or(rel)));
    Value::Object(members.0)
}

fn contacted(concept: &Map<String, Value>) -> Value {
    let mut members = related_members(concept);
    members.list("contactInfo", contacts(concept));
    Value::Object(members.0)
}

fn organisation(concept: &Map<String, Value>) -> Value {
    let mut members = related_members(concept);
    let symbols = objects(concept, "symbols").map(|symbol| {
        let mut members = Members::default();
        members.set("exchange", text(symbol, "exchange"));
        members.set("symbolType", uri(symbol, "symboltype"));
        members.set("symbol", text(symbol, "symbol").or(text(symbol, "ticker")));
        Value::Object(members.0)
    });
    members.list("symbols", symbols.collect());
    members.list("contactInfo", contacts(concept));
    Value::Object(members.0)
}

fn place(concept: &Map<String, Value>) -> Value {
    let mut members = related_members(concept);
    members.list("contactInfo", contacts(concept));
    let point = concept.get("geometry_geojson").filter(|geometry| is_point(geometry));
    members.set("geoJSON", point.cloned());
    Value::Object(members.0)
}

/// Returns whether a geometry is a point of GeoJSON, which has two or three numbers.
fn is_point(geometry: &Value) -> bool {
    let coordinates = geometry.get("coordinates").and_then(Value::as_array);
    geometry.get("type").and_then(Value::as_str) == Some("Point")
        && coordinates.is_some_and(|numbers| {
            (2..=3).contains(&numbers.len()) && numbers.iter().all(Value::is_number)
        })
}

/// Returns the place of an event, as named in its body.
fn venue(document: &Map<String, Value>) -> Option<Value> {
    let body = document.get("body_event")?.as_object()?;
    let mut members = Members::default();
    let mut address = Members::default();
    address.list("lines", text(body, "address").into_iter().map(Value::from).collect());
    address.set("locality", text(body, "city"));
    address.set("area", text(body, "region_text"));
    address.set("country", text(body, "country"));
    let name = text(body, "arena").or(text(body, "city"));
    if name.is_none() && address.0.is_empty() {
        return None;
    }
    members.set("name", name);
    members.set("rel", Some("venue"));
    if !address.0.is_empty() {
        members.list("contactInfo", vec![json!({ "address": address.0 })]);
    }
    Some(Value::Object(members.0))
}

fn subject(concept: &Map<String, Value>) -> Value {
    let mut members = related_members(concept);
    members.set("creator", text(concept, "creator"));
    for name in ["relevance", "confidence"] {
        let percent = concept.get(name).and_then(Value::as_u64);
        members.set(name, percent.filter(|percent| *percent <= 100));
    }
    Value::Object(members.0)
}

fn source(concept: &Map<String, Value>) -> Value {
    let mut members = identified(concept);
    members.set("role", text(concept, "rel"));
    members.list("contactInfo", contacts(concept));
    Value::Object(members.0)
}

/// Converts contact details. The schema allows a value or an address, so an entry with both becomes two.
fn contacts(concept: &Map<String, Value>) -> Vec<Value> {
    let mut contacts = Vec::new();
    for contact in objects(concept, "contactinfo") {
        let mut common = Members::default();
        for name in ["type", "role", "lang", "name"] {
            common.set(name, text(contact, name));
        }
        let value = text(contact, "value").map(Value::from);
        let address = contact.get("address").and_then(Value::as_object).map(address);
        for (name, detail) in [("value", value), ("address", address)] {
            if let Some(detail) = detail {
                let mut members = common.0.clone();
                members.insert(name.to_owned(), detail);
                contacts.push(Value::Object(members));
            }
        }
    }
    contacts
}

fn address(address: &Map<String, Value>) -> Value {
    let mut members = Members::default();
    let lines = address.get("lines").and_then(Value::as_array).into_iter().flatten();
    members.list("lines", lines.filter(|line| line.is_string()).cloned().collect());
    members.set("locality", text(address, "locality"));
    members.set("area", text(address, "area"));
    members.set("postalCode", text(address, "postalcode"));
    members.set("country", text(address, "country"));
    Value::Object(members.0)
}
