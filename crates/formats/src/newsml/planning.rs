//! Writes `newsCoverageSet`: the assignments of a planning item.

use super::extension::ExtensionProperties;
use super::item::ItemSource;
use super::xml::XmlWriter;
use super::{lexical, text};
use serde_json::{Map, Value};

/// Writes one coverage per assignment; nothing without assignments.
pub(super) fn write(xml: &mut XmlWriter, item: &ItemSource<'_>) {
    let assignments = item.members.get("assignments").and_then(Value::as_object);
    let Some(assignments) = assignments.filter(|assignments| !assignments.is_empty()) else {
        return;
    };
    xml.open("newsCoverageSet", []);
    let nothing = Map::new();
    for (key, assignment) in assignments {
        xml.open("newsCoverage", []);
        write_planning(xml, assignment.as_object().unwrap_or(&nothing));
        let rel = Some("tt:assignmentid");
        xml.empty("newsCoverageExtProperty", [("rel", rel), ("value", Some(key))]);
        xml.close("newsCoverage");
    }
    xml.close("newsCoverageSet");
}

/// Writes the planned item. An assignment is a whole document, so the paths of its extension properties start
/// at its own root.
fn write_planning(xml: &mut XmlWriter, assignment: &Map<String, Value>) {
    let mut placed = Vec::new();
    xml.open("planning", []);
    if let Some(kind) = text(assignment, "type").filter(|kind| lexical::is_code(kind)) {
        placed.push("type");
        xml.empty("itemClass", [("qcode", Some(&format!("ninat:{kind}")))]);
    }
    let time = text(assignment, "datetime");
    if let Some(time) = time.filter(|time| lexical::is_date_time(time)) {
        placed.push("datetime");
        xml.leaf("scheduled", [], time);
    }
    for (element, name) in
        [("headline", "headline"), ("description", "description_text"), ("edNote", "ednote")]
    {
        if let Some(text) = text(assignment, name) {
            placed.push(name);
            xml.leaf(element, [], text);
        }
    }
    let mut rest = ExtensionProperties::default();
    rest.add_unplaced("", assignment, |name, _| placed.contains(&name));
    rest.write(xml, "planningExtProperty");
    xml.close("planning");
}
