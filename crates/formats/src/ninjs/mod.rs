//! Converts a document to ninjs 3.1, the JSON news format of the IPTC.
//!
//! The schema does not allow additional properties, so a property without a place in it is left out; the document
//! in its own schema has all properties. The same applies to a value that does not fit the type at its place, such
//! as a malformed date.

mod concepts;
mod content;
mod events;

use metadata::RightsMetadata;
use metadata::rights::DIGITAL_SOURCE_TYPES;
use serde_json::{Map, Value, json};

use crate::DocumentRights;
use crate::newsml::lexical;
use crate::rights::SourceTypeIndicator;

/// Maximum levels of nested associations that are written. Real documents have two; each level costs stack.
const NESTED_MAX: usize = 16;

/// Members of an object in the order in which they are written, each only if it has a value.
#[derive(Default)]
struct Members(Map<String, Value>);

impl Members {
    fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a list, unless it is empty.
    fn list(&mut self, name: &str, entries: Vec<Value>) {
        self.set(name, (!entries.is_empty()).then_some(entries));
    }
}

/// Returns a text of a document, or `None` if it is missing or empty.
fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns a text that is a complete URI.
fn uri<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    text(members, name).filter(|text| lexical::is_uri(text))
}

/// Returns a text that is a time with an offset.
fn time<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    text(members, name).filter(|text| lexical::is_date_time(text))
}

/// Iterates over the objects in a list.
fn objects<'a>(
    members: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let entries = members.get(name).and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(Value::as_object)
}

/// Converts a document to ninjs.
///
/// `document` is an object of schema 1.6; a property of `rights` is written if the document lacks it. Runs in
/// linear time.
///
/// Contract files-18.
pub fn ninjs(document: &Value, rights: &DocumentRights) -> Value {
    let nothing = Map::new();
    let document = document.as_object().unwrap_or(&nothing);
    let mut members = Members::default();
    members.set("standard", Some(standard()));
    // The only property that the standard requires.
    members.set("uri", Some(text(document, "uri").unwrap_or_default()));
    write_item(&mut members, document, Some(&rights.own));
    members.list("associations", associations(document, Some(rights), 0));
    Value::Object(members.0)
}

fn standard() -> Value {
    json!({
        "name": "ninjs",
        "version": "3.1",
        "schema": "http://www.iptc.org/std/ninjs/ninjs-schema_3.1.json#",
    })
}

/// Lists the associated objects, each with its key as its name.
fn associations(
    document: &Map<String, Value>,
    rights: Option<&DocumentRights>,
    depth: usize,
) -> Vec<Value> {
    let all = document.get("associations").and_then(Value::as_object);
    let all = all.filter(|_| depth < NESTED_MAX).into_iter().flatten();
    let each = all.filter_map(|(key, associated)| {
        let associated = associated.as_object()?;
        let mut members = Members::default();
        members.set("name", Some(key.as_str()));
        // The schema requires the URI of an associated object, too.
        members.set("uri", Some(text(associated, "uri")?));
        let own = rights.and_then(|rights| rights.associations.get(key));
        write_item(&mut members, associated, own);
        members.list("associations", associations(associated, None, depth + 1));
        Some(Value::Object(members.0))
    });
    each.collect()
}

/// Writes the properties of one news object besides its URI and its associations.
fn write_item(
    members: &mut Members,
    document: &Map<String, Value>,
    rights: Option<&RightsMetadata>,
) {
    write_management(members, document);
    write_rights(members, document, rights);
    content::write(members, document, rights);
    concepts::write(members, document);
    if text(document, "type") == Some("event") {
        members.set("eventDetails", events::details(document));
    }
    members.list("plannedCoverage", events::coverage(document));
}

fn write_management(members: &mut Members, document: &Map<String, Value>) {
    members.set("type", news_type(document));
    let representation = text(document, "representationtype");
    let representation =
        representation.map(|word| if word == "complete" { "full" } else { "partial" });
    members.set("representationType", representation);
    members.set("profile", text(document, "profile"));
    members.set("version", text(document, "version"));
    for (name, own) in [
        ("firstCreated", "firstcreated"),
        ("versionCreated", "versioncreated"),
        ("contentCreated", "contentcreated"),
        ("embargoedUntil", "embargoed"),
        ("expires", "expires"),
    ] {
        members.set(name, time(document, own));
    }
    members.set("pubStatus", status(document));
    members.set("urgency", urgency(document));
    members.set("edNote", text(document, "ednote"));
    members.set("language", text(document, "language"));
    members.list("altIds", alternative_ids(document));
}

/// Returns the type of a news object; both schemas have the same words.
fn news_type(document: &Map<String, Value>) -> Option<&str> {
    let word = text(document, "type")?;
    match word {
        "text" | "audio" | "video" | "picture" | "graphic" | "composite" | "component"
        | "event" | "planning" => Some(word),
        _ => None,
    }
}

/// Returns the status of a news object. The standard has no word for a replaced or commissioned item; an item
/// without a status counts as usable.
fn status(document: &Map<String, Value>) -> Option<&str> {
    text(document, "pubstatus").filter(|word| matches!(*word, "usable" | "withheld" | "canceled"))
}

/// Returns the urgency, 1 to 9; JSON may have it as `4` or `4.0`.
fn urgency(document: &Map<String, Value>) -> Option<u8> {
    let number = document.get("urgency")?.as_f64()?;
    (1..=9).find(|urgency| f64::from(*urgency) == number)
}

fn alternative_ids(document: &Map<String, Value>) -> Vec<Value> {
    const REFERENCE: &str = "originaltransmissionreference";
    let listed = document.get("altids").and_then(Value::as_object).into_iter().flatten();
    let listed: Vec<_> =
        listed.filter_map(|(role, value)| Some((role.as_str(), value.as_str()?))).collect();
    // Older documents have the reference outside the list, newer documents in both places.
    let own = text(document, REFERENCE).map(|value| (REFERENCE, value));
    let own = own.filter(|own| !listed.contains(own));
    let all = own.into_iter().chain(listed);
    all.map(|(role, value)| json!({ "role": role, "value": value })).collect()
}

fn write_rights(
    members: &mut Members,
    document: &Map<String, Value>,
    rights: Option<&RightsMetadata>,
) {
    let usage_terms = rights.and_then(|rights| rights.text("usageTerms"));
    let web_statement = rights.and_then(|rights| rights.text("webstatementRights"));
    members.set("copyrightHolder", text(document, "copyrightholder"));
    members.set("copyrightNotice", text(document, "copyrightnotice"));
    members.set("usageTerms", text(document, "usageterms").or(usage_terms));
    members.set("rightsInfo", rights_info(document, web_statement));
    let term = rights.and_then(RightsMetadata::digital_source_type);
    members.set("digitalSourceType", digital_source_type(document, term));
    members.list("trustIndicators", objects(document, "trustindicator").map(indicator).collect());
}

/// Returns the rights expression of the document, else the page that states its rights. The schema allows only one
/// of them.
fn rights_info(document: &Map<String, Value>, web_statement: Option<&str>) -> Option<Value> {
    let own = document.get("rightsinfo").and_then(Value::as_object);
    let mut members = Members::default();
    if let Some(expression) = own.and_then(|own| text(own, "encodedrights")) {
        members.set("langId", own.and_then(|own| uri(own, "langid")));
        members.set("encodedRights", Some(expression));
    } else {
        let page = own.and_then(|own| uri(own, "linkedrights"));
        let page = page.or(web_statement.filter(|page| lexical::is_uri(page)));
        members.set("linkedRights", Some(page?));
    }
    Some(Value::Object(members.0))
}

/// Returns the digital source type of the document, else `term`.
fn digital_source_type(document: &Map<String, Value>, term: Option<&str>) -> Option<Value> {
    let mut members = Members::default();
    if let Some(indicator) = SourceTypeIndicator::find(document) {
        members.set("name", Some(indicator.title).filter(|title| !title.is_empty()));
        members.set("uri", Some(indicator.uri()).filter(|uri| lexical::is_uri(uri)));
        members.set("literal", Some(indicator.code));
    } else {
        let term = term?;
        members.set("uri", Some(term).filter(|uri| lexical::is_uri(uri)));
        members.set("literal", Some(DIGITAL_SOURCE_TYPES.code(term).unwrap_or(term)));
    }
    Some(Value::Object(members.0))
}

fn indicator(indicator: &Map<String, Value>) -> Value {
    let mut members = Members::default();
    members.set("role", concepts::complete_uri(indicator));
    members.set("title", text(indicator, "title"));
    members.set("href", uri(indicator, "href"));
    Value::Object(members.0)
}
