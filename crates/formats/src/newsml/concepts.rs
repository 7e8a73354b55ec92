//! Writes persons, places, products and the other concepts of a document.

use super::item::ItemSource;
use super::xml::XmlWriter;
use super::{codes, lexical, text};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The concept lists that become `subject`, in XML order, with the type of their entries.
pub(crate) const SUBJECTS: [(&str, &str); 8] = [
    ("subject", "cpnat:abstract"),
    ("product", "tt:product"),
    ("person", "cpnat:person"),
    ("organisation", "cpnat:organisation"),
    ("place", "cpnat:geoArea"),
    ("object", "cpnat:object"),
    ("event", "cpnat:event"),
    ("fixture", "tt:story"),
];

/// The scheme whose entries are free-text keywords.
const KEYWORDS: &str = "ttkeyword";

/// The names with which a concept list is written.
#[derive(Clone, Copy)]
pub(super) struct ConceptList<'a> {
    /// The property of the document.
    pub name: &'a str,
    /// The XML element of an entry.
    pub element: &'static str,
    /// The concept type of an entry.
    pub kind: Option<&'a str>,
}

/// The positions of places, which are written separately from the places.
#[derive(Debug, Default)]
pub(super) struct PositionAsserts(Vec<PlacePosition>);

#[derive(Debug)]
struct PlacePosition {
    identity: ConceptIdentity,
    longitude: String,
    latitude: String,
}

/// The attribute by which an assertion refers to its concept.
type ConceptIdentity = (&'static str, String);

impl PositionAsserts {
    /// Writes one assertion per position, with latitude and longitude in degrees.
    pub(super) fn write(&self, xml: &mut XmlWriter) {
        for position in &self.0 {
            let (attribute, identity) = &position.identity;
            xml.open("assert", [(*attribute, Some(identity.as_str()))]);
            xml.open("geoAreaDetails", []);
            let latitude = Some(position.latitude.as_str());
            let longitude = Some(position.longitude.as_str());
            xml.empty("position", [("latitude", latitude), ("longitude", longitude)]);
            xml.close("geoAreaDetails");
            xml.close("assert");
        }
    }
}

/// Writes every list of [`SUBJECTS`] and returns the positions of the places.
pub(super) fn write_subjects(xml: &mut XmlWriter, item: &mut ItemSource<'_>) -> PositionAsserts {
    let mut asserts = PositionAsserts::default();
    for (name, kind) in SUBJECTS {
        let list = ConceptList { name, element: "subject", kind: Some(kind) };
        let entries = item.entries(name);
        // Only places have positions, so only they must be distinguishable.
        let identity_counts = if name == "place" { count(&entries) } else { HashMap::new() };
        for (index, entry) in entries.into_iter().enumerate() {
            let mut placed = Vec::new();
            if name == "place"
                && let Some(position) = position(entry, &identity_counts)
            {
                asserts.0.push(position);
                placed.push("geometry_geojson");
            }
            if name == "subject" && write_keyword(xml, item, index, entry) {
                continue;
            }
            write_entry(xml, item, list, index, entry, &placed);
        }
    }
    asserts
}

/// Writes a list of concepts without positions.
pub(super) fn write_list<'a>(
    xml: &mut XmlWriter,
    item: &mut ItemSource<'a>,
    list: ConceptList<'a>,
) {
    for (index, entry) in item.entries(list.name).into_iter().enumerate() {
        write_entry(xml, item, list, index, entry, &[]);
    }
}

fn write_entry<'a>(
    xml: &mut XmlWriter,
    item: &mut ItemSource<'a>,
    list: ConceptList<'_>,
    index: usize,
    entry: &'a Map<String, Value>,
    placed: &[&str],
) {
    let code = code(entry);
    // A literal identifies a concept only if no vocabulary does.
    let literal = code.is_none().then(|| literal(entry)).flatten();
    // Schema 1.6 has both on subjects only; on other concepts they are unknown properties.
    let is_subject = list.name == "subject";
    let confidence = percent(entry, "confidence").filter(|_| is_subject);
    let relevance = percent(entry, "relevance").filter(|_| is_subject);
    let attributes = [
        ("type", list.kind),
        ("qcode", code.as_deref()),
        ("literal", literal.as_deref()),
        ("confidence", confidence.as_deref()),
        ("relevance", relevance.as_deref()),
    ];
    let name = entry.get("name").and_then(Value::as_str);
    match name.map(lexical::one_line) {
        Some(name) => {
            xml.open(list.element, attributes);
            xml.leaf("name", [], &name);
            xml.close(list.element);
        }
        None => xml.empty(list.element, attributes),
    }
    let path = format!("{}/{index}/", list.name);
    item.about_content.add_unplaced(&path, entry, |member, _| match member {
        // The element has the name on one line; any other form is kept as an extension property.
        "name" => name.is_some_and(|name| lexical::one_line(name) == name),
        "code" | "scheme" => code.is_some(),
        "confidence" => confidence.is_some(),
        "relevance" => relevance.is_some(),
        other => placed.contains(&other),
    });
}

/// Writes a subject as a keyword and returns true, or returns false if it has other properties.
fn write_keyword<'a>(
    xml: &mut XmlWriter,
    item: &mut ItemSource<'a>,
    index: usize,
    entry: &'a Map<String, Value>,
) -> bool {
    let is_keyword = text(entry, "scheme").and_then(codes::alias) == Some(KEYWORDS);
    // The element `keyword` is plain text, without room for a code.
    if !is_keyword || entry.contains_key("code") {
        return false;
    }
    let Some(name) = text(entry, "name") else { return false };
    let line = lexical::one_line(name);
    let confidence = percent(entry, "confidence");
    let relevance = percent(entry, "relevance");
    let attributes = [("confidence", confidence.as_deref()), ("relevance", relevance.as_deref())];
    xml.leaf("keyword", attributes, &line);
    let path = format!("subject/{index}/");
    item.about_content.add_unplaced(&path, entry, |member, _| match member {
        // The element itself implies the scheme.
        "scheme" => true,
        "name" => line == name,
        "confidence" => confidence.is_some(),
        "relevance" => relevance.is_some(),
        _ => false,
    });
    true
}

/// Returns the QCode of an entry, if its scheme has an alias and its code is valid.
fn code(entry: &Map<String, Value>) -> Option<String> {
    let alias = entry.get("scheme").and_then(Value::as_str).and_then(codes::alias)?;
    let code = entry.get("code").and_then(Value::as_str).filter(|code| lexical::is_code(code))?;
    Some(format!("{alias}:{code}"))
}

/// Returns the identifier of an entry without a QCode: its code, else its name. It may be altered to fit the type;
/// the exact values are in the members.
fn literal(entry: &Map<String, Value>) -> Option<String> {
    let literal = text(entry, "code").or_else(|| text(entry, "name"))?;
    Some(lexical::clean(&lexical::one_line(literal)).into_owned())
}

fn percent(entry: &Map<String, Value>, name: &str) -> Option<String> {
    let percent = entry.get(name)?.as_u64()?;
    (percent <= 100).then(|| percent.to_string())
}

fn identity(entry: &Map<String, Value>) -> Option<ConceptIdentity> {
    let code = code(entry).map(|code| ("qcode", code));
    code.or_else(|| Some(("literal", literal(entry)?)))
}

fn count(entries: &[&Map<String, Value>]) -> HashMap<ConceptIdentity, usize> {
    let mut counts = HashMap::new();
    for identity in entries.iter().filter_map(|entry| identity(entry)) {
        *counts.entry(identity).or_default() += 1;
    }
    counts
}

/// Returns the position of a place. `None` unless it is a pair of plain decimals and the place can be
/// distinguished from all other places of the document.
fn position(
    entry: &Map<String, Value>,
    identity_counts: &HashMap<ConceptIdentity, usize>,
) -> Option<PlacePosition> {
    let geometry = entry.get("geometry_geojson")?.as_object()?;
    let [Value::Number(longitude), Value::Number(latitude)] =
        geometry.get("coordinates")?.as_array()?.as_slice()
    else {
        return None;
    };
    let longitude = longitude.to_string();
    let latitude = latitude.to_string();
    // Further members of the geometry would be lost in the assertion.
    let plain = geometry.len() == 2
        && geometry.get("type")?.as_str()? == "Point"
        && lexical::is_decimal(&longitude)
        && lexical::is_decimal(&latitude);
    let identity =
        identity(entry).filter(|identity| plain && identity_counts.get(identity) == Some(&1))?;
    Some(PlacePosition { identity, longitude, latitude })
}
