//! Writes `itemMeta`: the management metadata of an item.

use super::item::{self, ItemKind, ItemSource};
use super::lexical;
use super::xml::XmlWriter;
use serde_json::Value;

/// Writes the management metadata, in schema order.
pub(super) fn write(xml: &mut XmlWriter, item: &mut ItemSource<'_>, sender: &str) {
    xml.open("itemMeta", []);
    let class = class(item);
    xml.empty("itemClass", [("qcode", class.as_deref())]);
    item::write_named(xml, ("provider", None), Some(sender));
    // The element has `version_time`; this keeps a malformed time as an extension property.
    item.valid_text("versioncreated", lexical::is_date_time);
    xml.leaf("versionCreated", [], item.version_time);
    for (element, name) in [("firstCreated", "firstcreated"), ("embargoed", "embargoed")] {
        xml.leaf_if_any(element, [], item.valid_text(name, lexical::is_date_time));
    }
    item.valid_text("pubstatus", is_status);
    xml.empty("pubStatus", [("qcode", Some(&item::status_qcode(item.members)))]);
    xml.leaf_if_any("profile", [], item.line("profile").as_deref());
    xml.leaf_if_any("title", [], item.text("title"));
    xml.leaf_if_any("edNote", [], item.text("ednote"));
    xml.leaf_if_any("expires", [], item.valid_text("expires", lexical::is_date_time));
    links(xml, item);
    item.about_item.write(xml, "itemMetaExtProperty");
    xml.close("itemMeta");
}

/// Returns the class of the item: the type of a news item, else the class that the standard defines.
fn class(item: &mut ItemSource<'_>) -> Option<String> {
    match item.kind {
        ItemKind::News => {
            item.valid_text("type", lexical::is_code).map(|kind| format!("ninat:{kind}"))
        }
        ItemKind::Planning => Some("plinat:newscoverage".to_owned()),
        ItemKind::Event => Some("cinat:concept".to_owned()),
    }
}

fn is_status(text: &str) -> bool {
    matches!(text, "usable" | "withheld" | "canceled" | "replaced" | "commissioned")
}

fn links(xml: &mut XmlWriter, item: &mut ItemSource<'_>) {
    if let Some(value) = item.members.get("replacing") {
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        // Written in full or not at all: links would lose the positions of the other entries.
        if value.is_array() && values.iter().all(Value::is_string) {
            for replaced in values.iter().filter_map(Value::as_str) {
                let rel = Some("irel:previousVersion");
                xml.empty("link", [("rel", rel), ("residref", Some(replaced))]);
            }
        } else {
            item.about_item.add("replacing", value);
        }
    }
    if let Some(by) = item.text("replacedby") {
        xml.empty("link", [("rel", Some("tt:replacedby")), ("residref", Some(by))]);
    }
    for (index, indicator) in item.entries("trustindicator").into_iter().enumerate() {
        let href = indicator.get("href").and_then(Value::as_str);
        let href = href.filter(|href| lexical::is_uri(href));
        let title = indicator.get("title").and_then(Value::as_str);
        let rel = Some("tt:trustindicator");
        xml.empty("link", [("rel", rel), ("href", href), ("title", title)]);
        let path = format!("trustindicator/{index}/");
        item.about_item.add_unplaced(&path, indicator, |name, _| match name {
            "href" => href.is_some(),
            "title" => title.is_some(),
            _ => false,
        });
    }
}
