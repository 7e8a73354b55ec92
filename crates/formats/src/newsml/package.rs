//! Writes a message: its items, and the package that relates them to each other.

use super::item::{self, ItemIdentity, ItemKind, ItemSource};
use super::xml::XmlWriter;
use super::{
    MessageHeader, NewsmlVersion, content, content_meta, event, item_meta, lexical, planning,
    rights, text,
};
use crate::DocumentRights;
use metadata::RightsMetadata;
use serde_json::{Map, Value};
use std::ops::Range;

/// A document in the message.
struct PackageEntry<'a> {
    /// The key of the association; empty for the main document.
    key: &'a str,
    members: &'a Map<String, Value>,
    /// The effective rights in its picture; `None` if the version has no place for them.
    rights: Option<&'a RightsMetadata>,
    /// The range of its associated documents in the list of all entries.
    associated: Range<usize>,
}

/// Writes a document as a NewsML-G2 message in UTF-8.
///
/// `document` is an object of schema 1.6; unknown properties become extension properties. A property of `rights`
/// is written if the document lacks it and the version has a place for it. Runs in linear time.
///
/// Contract files-1, files-2, files-3.
pub fn newsml(document: &Value, rights: &DocumentRights, message: &MessageHeader<'_>) -> Vec<u8> {
    let nothing = Map::new();
    let main = document.as_object().unwrap_or(&nothing);
    let version = message.version;
    let has_rights = version == NewsmlVersion::V2_35;
    let entries = entries(main, has_rights.then_some(rights));
    let sender = lexical::one_line(message.sender);
    let versioned = item::version_time(main, message.sent);
    // A malformed time would make the message invalid.
    let sent = if lexical::is_date_time(message.sent) { message.sent } else { versioned };
    let mut xml = XmlWriter::start();
    xml.open("newsMessage", [("xmlns", Some("http://iptc.org/std/nar/2006-10-01/"))]);
    xml.open("header", []);
    xml.leaf("sent", [], sent);
    item::write_catalogs(&mut xml);
    xml.leaf("sender", [], &sender);
    xml.empty("signal", [("qcode", Some("nmsig:atomic"))]);
    xml.close("header");
    xml.open("itemSet", []);
    let package =
        NewsPackage { main, entries: &entries, sender: &sender, version, version_time: versioned };
    package.write(&mut xml);
    for entry in &entries {
        let source = ItemSource { rights: entry.rights, ..ItemSource::new(entry.members, sent) };
        source.write(&mut xml, &sender, version);
    }
    xml.close("itemSet");
    xml.close("newsMessage");
    xml.finish()
}

/// Lists the main document and everything associated with it, breadth first.
fn entries<'a>(
    main: &'a Map<String, Value>,
    rights: Option<&'a DocumentRights>,
) -> Vec<PackageEntry<'a>> {
    let own = rights.map(|rights| &rights.own);
    let mut entries = vec![PackageEntry { key: "", members: main, rights: own, associated: 0..0 }];
    let mut index = 0;
    // The list is also the queue of the search, so the associated documents of each document are a range of the
    // list.
    while index < entries.len() {
        let first = entries.len();
        let associations = entries[index].members.get("associations").and_then(Value::as_object);
        for (key, association) in associations.into_iter().flatten() {
            if let Some(members) = association.as_object() {
                // The key names an object of the main document only.
                let rights = rights.filter(|_| index == 0);
                let rights = rights.and_then(|rights| rights.associations.get(key));
                entries.push(PackageEntry { key, members, rights, associated: 0..0 });
            }
        }
        entries[index].associated = first..entries.len();
        index += 1;
    }
    entries
}

impl ItemSource<'_> {
    /// Writes the item with its metadata and its content.
    fn write(mut self, xml: &mut XmlWriter, sender: &str, standard: NewsmlVersion) {
        let element = match self.kind {
            ItemKind::News => "newsItem",
            ItemKind::Planning => "planningItem",
            ItemKind::Event => "conceptItem",
        };
        let guid = self.text("uri").unwrap_or_default();
        let version = self.valid_text("version", lexical::is_positive);
        // Only looked up, because `content_meta` writes the property.
        let language = text(self.members, "language").filter(|tag| lexical::is_language(tag));
        item::open_item(xml, element, standard, &ItemIdentity { guid, version, language });
        rights::write(xml, &mut self);
        item_meta::write(xml, &mut self, sender);
        // Called before `content_meta`, which writes the extension properties that are found here.
        let bodies = content::take(&mut self);
        if self.kind == ItemKind::Event {
            event::take(&mut self);
        }
        let asserts = content_meta::write(xml, &mut self);
        asserts.write(xml);
        match self.kind {
            ItemKind::News => content::write(xml, &self, &bodies),
            ItemKind::Planning => planning::write(xml, &self),
            ItemKind::Event => event::write(xml, &self),
        }
        xml.close(element);
    }
}

struct NewsPackage<'a> {
    main: &'a Map<String, Value>,
    entries: &'a [PackageEntry<'a>],
    sender: &'a str,
    /// The version of the standard.
    version: NewsmlVersion,
    version_time: &'a str,
}

impl NewsPackage<'_> {
    fn write(&self, xml: &mut XmlWriter) {
        let guid = format!("{}-pack", text(self.main, "uri").unwrap_or_default());
        let version = text(self.main, "version").filter(|text| lexical::is_positive(text));
        let identity = ItemIdentity { guid: &guid, version, language: None };
        item::open_item(xml, "packageItem", self.version, &identity);
        xml.open("itemMeta", []);
        xml.empty("itemClass", [("qcode", Some("ninat:composite"))]);
        item::write_named(xml, ("provider", None), Some(self.sender));
        xml.leaf("versionCreated", [], self.version_time);
        xml.empty("pubStatus", [("qcode", Some(&item::status_qcode(self.main)))]);
        xml.close("itemMeta");
        xml.open("groupSet", [("root", Some("root"))]);
        for (index, entry) in self.entries.iter().enumerate() {
            if index == 0 {
                xml.open("group", [("id", Some("root")), ("role", Some("group:main"))]);
                self.item_ref(xml, index);
                xml.close("group");
            }
            if !entry.associated.is_empty() {
                let id = group(index);
                let role = Some("group:package");
                let mode = Some("pgrmod:bag");
                xml.open("group", [("id", Some(&id)), ("role", role), ("mode", mode)]);
                for associated in entry.associated.clone() {
                    self.item_ref(xml, associated);
                }
                xml.close("group");
            }
        }
        xml.close("groupSet");
        xml.close("packageItem");
    }

    /// Writes a reference to an item, and to the group of its associated items.
    fn item_ref(&self, xml: &mut XmlWriter, index: usize) {
        let entry = &self.entries[index];
        let residref = [("residref", Some(text(entry.members, "uri").unwrap_or_default()))];
        // The main document is not an association of a document, so it has no key.
        if index == 0 {
            xml.empty("itemRef", residref);
        } else {
            xml.open("itemRef", residref);
            xml.leaf("altId", [("type", Some("tt:associd"))], entry.key);
            xml.close("itemRef");
        }
        if !entry.associated.is_empty() {
            xml.empty("groupRef", [("idref", Some(&group(index)))]);
        }
    }
}

/// Returns the name of the group of items associated with the item `index`; the main item is 0.
fn group(index: usize) -> String {
    if index == 0 { "media".to_owned() } else { format!("media-{index}") }
}
