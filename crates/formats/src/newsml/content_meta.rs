//! Writes `contentMeta`: the metadata of the content.

use super::concepts::{self, ConceptList, PositionAsserts};
use super::item::{self, ItemKind, ItemSource};
use super::xml::XmlWriter;
use super::{lexical, rights, text};
use serde_json::{Map, Value};

/// Writes the content metadata in schema order, and returns the assertions to write after it.
pub(super) fn write(xml: &mut XmlWriter, item: &mut ItemSource<'_>) -> PositionAsserts {
    xml.open("contentMeta", []);
    administrative(xml, item);
    if let Some(tag) = item.valid_text("language", lexical::is_language) {
        xml.empty("language", [("tag", Some(tag))]);
    }
    // Of the three items, only a `newsItem` has genres and a credit line.
    if item.kind == ItemKind::News {
        let genre = ConceptList { name: "genre", element: "genre", kind: None };
        concepts::write_list(xml, item, genre);
    }
    let asserts = concepts::write_subjects(xml, item);
    for (name, role) in [("slugline", None), ("slug", Some("tt:slug"))] {
        xml.leaf_if_any("slugline", [("role", role)], item.line(name).as_deref());
    }
    xml.leaf_if_any("headline", [], item.text("headline"));
    if item.kind == ItemKind::News {
        xml.leaf_if_any("creditline", [], item.line("byline").as_deref());
    }
    for (name, role) in [("description_text", None), ("description_usage", Some("tt:usage"))] {
        if let Some(description) = item.text(name) {
            // A plain description has the role that the standard defines for the type of the item.
            let role = role.unwrap_or_else(|| description_role(item));
            xml.leaf("description", [("role", Some(role))], description);
        }
    }
    if let Some(stated) = item.rights {
        rights::write_descriptions(xml, stated);
    }
    // The last elements of the part: by now every property has been written or added to the list.
    item.about_content.write(xml, "contentMetaExtProperty");
    if let Some(stated) = item.rights {
        rights::write_provenance(xml, stated);
    }
    xml.close("contentMeta");
    asserts
}

/// Returns the role of the description: a caption for a picture, a summary for other items.
fn description_role(item: &ItemSource<'_>) -> &'static str {
    match item.members.get("type").and_then(Value::as_str) {
        Some("picture" | "graphic" | "video") => "drol:caption",
        Some(_) | None => "drol:summary",
    }
}

fn administrative(xml: &mut XmlWriter, item: &mut ItemSource<'_>) {
    if let Some(value) = item.members.get("urgency") {
        match value.as_u64().filter(|urgency| (1..=9).contains(urgency)) {
            Some(urgency) => xml.leaf("urgency", [], &urgency.to_string()),
            None => item.about_content.add("urgency", value),
        }
    }
    let created = item.valid_text("contentcreated", lexical::is_date_time);
    xml.leaf_if_any("contentCreated", [], created);
    if let Some(term) = rights::digital_source_type(item) {
        rights::write_term(xml, "digitalSourceType", &term);
    }
    item::write_named(xml, ("located", None), item.line("located").as_deref());
    let source = item.line("source");
    item::write_named(xml, ("infoSource", Some("tt:source")), source.as_deref());
    let sources = ConceptList { name: "infosource", element: "infoSource", kind: None };
    concepts::write_list(xml, item, sources);
    creators(xml, item);
    identifiers(xml, item);
}

fn creators(xml: &mut XmlWriter, item: &mut ItemSource<'_>) {
    let bylines = item.entries("bylines");
    // The plain byline names the same people as `bylines`, so it is a creator only without them.
    if bylines.is_empty()
        && item.kind == ItemKind::News
        && let Some(byline) = item.members.get("byline").and_then(Value::as_str)
    {
        item::write_named(xml, ("creator", None), Some(&lexical::one_line(byline)));
    }
    for (index, byline) in bylines.into_iter().enumerate() {
        creator(xml, byline);
        let path = format!("bylines/{index}/");
        item.about_content.add_unplaced(&path, byline, |name, value| match name {
            "byline" | "firstname" | "lastname" => {
                value.as_str().is_some_and(|name| lexical::one_line(name) == name)
            }
            "email" | "phone" => value.is_string(),
            _ => false,
        });
    }
}

/// Writes a person of the byline with names and contact details.
fn creator(xml: &mut XmlWriter, byline: &Map<String, Value>) {
    xml.open("creator", []);
    let names =
        [("byline", "nrol:full"), ("firstname", "nrol:given"), ("lastname", "nrol:family")];
    for (name, role) in names {
        let name = text(byline, name).map(lexical::one_line);
        xml.leaf_if_any("name", [("role", Some(role))], name.as_deref());
    }
    let email = text(byline, "email");
    let phone = text(byline, "phone");
    if email.or(phone).is_some() {
        xml.open("personDetails", []);
        xml.open("contactInfo", []);
        xml.leaf_if_any("email", [], email);
        xml.leaf_if_any("phone", [], phone);
        xml.close("contactInfo");
        xml.close("personDetails");
    }
    xml.close("creator");
}

/// The identifier that older documents have beside `altids`, and newer ones in it.
const REFERENCE: &str = "originaltransmissionreference";

/// Writes the identifiers that other systems gave the item.
fn identifiers(xml: &mut XmlWriter, item: &mut ItemSource<'_>) {
    let kind = Some("tt:transmissionreference");
    xml.leaf_if_any("altId", [("type", kind)], item.text(REFERENCE));
    let Some(altids) = item.members.get("altids") else { return };
    let Some(members) = altids.as_object() else {
        item.about_content.add("altids", altids);
        return;
    };
    let kind = Some("tt:originaltransmissionreference");
    xml.leaf_if_any("altId", [("type", kind)], text(members, REFERENCE));
    item.about_content
        .add_unplaced("altids/", members, |name, value| name == REFERENCE && value.is_string());
}
