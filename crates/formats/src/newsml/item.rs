//! A document as an item: its kind, its properties by place, and the elements that all items have.

use super::extension::ExtensionProperties;
use super::properties::{self, PropertyPlacement};
use super::xml::XmlWriter;
use super::{NewsmlVersion, codes, lexical, text};
use metadata::RightsMetadata;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The item element of the schema for a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// `newsItem`, for an item with content.
    News,
    Planning,
    /// `conceptItem`, for an event.
    Event,
}

/// A document that is being written as an item.
///
/// Each property is either written by the part that has a place for it, or collected in one of the two lists of
/// extension properties. The parts fill these lists before they are written.
pub(super) struct ItemSource<'a> {
    pub members: &'a Map<String, Value>,
    pub kind: ItemKind,
    /// The item's version time, an `xs:dateTime`.
    pub version_time: &'a str,
    /// The effective rights in the picture of the document.
    pub rights: Option<&'a RightsMetadata>,
    /// Extension properties of `itemMeta`.
    pub about_item: ExtensionProperties<'a>,
    /// Extension properties of `contentMeta`.
    pub about_content: ExtensionProperties<'a>,
}

impl<'a> ItemSource<'a> {
    /// Sorts the document's properties by their places. `sent` is the version time of a document without one.
    pub(super) fn new(members: &'a Map<String, Value>, sent: &'a str) -> ItemSource<'a> {
        let kind = match text(members, "type") {
            Some("planning") => ItemKind::Planning,
            Some("event") => ItemKind::Event,
            Some(_) | None => ItemKind::News,
        };
        let mut item = ItemSource {
            members,
            kind,
            version_time: version_time(members, sent),
            rights: None,
            about_item: ExtensionProperties::default(),
            about_content: ExtensionProperties::default(),
        };
        for (name, value) in members {
            let placed = match properties::placement(name) {
                PropertyPlacement::Everywhere => true,
                PropertyPlacement::NewsItem => kind == ItemKind::News,
                PropertyPlacement::PlanningItem => kind == ItemKind::Planning,
                PropertyPlacement::ConceptItem => kind == ItemKind::Event,
                PropertyPlacement::ContentExtension => false,
                PropertyPlacement::ItemExtension => {
                    item.about_item.add(name, value);
                    true
                }
            };
            if !placed {
                item.about_content.add(name, value);
            }
        }
        item
    }

    /// Returns the text of a placed property. A value of a different type becomes an extension property.
    pub(super) fn text(&mut self, name: &'a str) -> Option<&'a str> {
        let value = self.members.get(name)?;
        if value.is_string() {
            return value.as_str();
        }
        self.about_content.add(name, value);
        None
    }

    /// Returns the text of a placed property if `fits` accepts it; else the property becomes an extension
    /// property.
    pub(super) fn valid_text(&mut self, name: &'a str, fits: fn(&str) -> bool) -> Option<&'a str> {
        let value = self.members.get(name)?;
        let text = value.as_str().filter(|text| fits(text));
        if text.is_none() {
            self.about_content.add(name, value);
        }
        text
    }

    /// Returns the text of a placed property as one line. If it had several lines, an extension property has the
    /// exact text.
    pub(super) fn line(&mut self, name: &'a str) -> Option<Cow<'a, str>> {
        let text = self.text(name)?;
        let line = lexical::one_line(text);
        if line != text {
            self.about_content.add(name, &self.members[name]);
        }
        Some(line)
    }

    /// Returns the entries of a list of objects; a list with other values becomes extension properties.
    pub(super) fn entries(&mut self, name: &'a str) -> Vec<&'a Map<String, Value>> {
        let Some(value) = self.members.get(name) else { return Vec::new() };
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let entries: Option<Vec<_>> = values.iter().map(Value::as_object).collect();
        // A value that is not a list has no entries either, but must not be treated as an empty list.
        entries.filter(|_| value.is_array()).unwrap_or_else(|| {
            self.about_content.add(name, value);
            Vec::new()
        })
    }
}

/// The attributes by which an item is identified.
pub(super) struct ItemIdentity<'a> {
    pub(super) guid: &'a str,
    /// The version number of the item.
    pub(super) version: Option<&'a str>,
    pub(super) language: Option<&'a str>,
}

/// Opens an item's element in a version of the standard, with the catalogs.
pub(super) fn open_item(
    xml: &mut XmlWriter,
    element: &'static str,
    standard: NewsmlVersion,
    identity: &ItemIdentity<'_>,
) {
    let ItemIdentity { guid, version, language } = *identity;
    xml.open(
        element,
        [
            ("standard", Some("NewsML-G2")),
            ("standardversion", Some(standard.as_str())),
            ("conformance", Some("power")),
            ("guid", Some(guid)),
            ("version", version),
            ("xml:lang", language),
        ],
    );
    write_catalogs(xml);
}

/// Writes the references to the catalogs of the aliases.
pub(super) fn write_catalogs(xml: &mut XmlWriter) {
    xml.empty("catalogRef", [("href", Some(codes::CATALOG_STANDARD))]);
    xml.empty("catalogRef", [("href", Some(codes::CATALOG_OURS))]);
}

/// Writes an element for a party or place that is identified only by name, or nothing without a name. `element` is
/// the element's name and the role; `name` is one line.
pub(super) fn write_named(
    xml: &mut XmlWriter,
    element: (&'static str, Option<&str>),
    name: Option<&str>,
) {
    let Some(name) = name else { return };
    xml.open(element.0, [("literal", Some(name)), ("role", element.1)]);
    xml.leaf("name", [], name);
    xml.close(element.0);
}

/// Returns the version time of an item. The schema requires one, so the closest other time is used if it is
/// missing.
pub(super) fn version_time<'a>(members: &'a Map<String, Value>, sent: &'a str) -> &'a str {
    let names = ["versioncreated", "versionstored", "firstcreated", "contentcreated", "datetime"];
    let times = names.iter().filter_map(|name| text(members, name));
    // `sent` comes from the caller and may be malformed, so the chain ends with a valid time.
    let mut times = times.chain([sent, "1970-01-01T00:00:00Z"]);
    times.find(|time| lexical::is_date_time(time)).unwrap_or_default()
}

/// Returns the publishing status as a QCode. The standard's list has three statuses; the others are ours.
pub(super) fn status_qcode(members: &Map<String, Value>) -> String {
    match text(members, "pubstatus") {
        Some(status @ ("replaced" | "commissioned")) => format!("ttstat:{status}"),
        Some(status @ ("withheld" | "canceled")) => format!("stat:{status}"),
        // The default of the standard; `item_meta` keeps an unknown status as an extension property.
        Some(_) | None => "stat:usable".to_owned(),
    }
}
