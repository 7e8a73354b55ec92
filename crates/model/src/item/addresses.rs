//! The addresses in a document: whichever host they came in with, ours go out.
//!
//! An item's identity is `<mediaType>/<id>`, whatever the host (contract items-1). What names the
//! item itself or an item that it replaces is moved to our host; so is what names an associated
//! item that this service has, and its renditions. Renditions at other hosts are left out: a
//! client that follows them would send its key there.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Document, DocumentLayout, MediaLinks, web_address};
use crate::limits::{ASSOCIATION_DEPTH_MAX, ASSOCIATIONS_LOOKED_UP_MAX};
use crate::{
    ItemKey, ItemUri,
    token::{CUTPASTE, INDESIGN, WATERMARK, split_crop, split_suffix, strip},
};

/// Properties that hold whole documents.
pub(super) const NESTED: [&str; 2] = ["associations", "assignments"];

impl Document {
    /// The items that associations and assignments name, as far as `layout` serves them.
    ///
    /// At most [`ASSOCIATIONS_LOOKED_UP_MAX`]; what lies deeper than [`ASSOCIATION_DEPTH_MAX`] is
    /// left out.
    #[must_use]
    pub fn linked_items(&self, layout: DocumentLayout) -> HashSet<ItemKey> {
        let mut keys = HashSet::new();
        match layout {
            DocumentLayout::Full => collect(&self.fields, 0, &mut keys),
            DocumentLayout::Bare => {
                let first = nested_in(&self.fields, "associations").next();
                keys.extend(first.and_then(key_of));
            }
        }
        keys
    }
}

fn nested_in<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let nested = fields.get(name).and_then(Value::as_object);
    nested.into_iter().flat_map(Map::values).filter_map(Value::as_object)
}

fn key_of(fields: &Map<String, Value>) -> Option<ItemKey> {
    ItemKey::from_uri(fields.get("uri")?.as_str()?).ok()
}

fn collect(fields: &Map<String, Value>, depth: usize, keys: &mut HashSet<ItemKey>) {
    if depth == ASSOCIATION_DEPTH_MAX {
        return;
    }
    for nested in NESTED.iter().flat_map(|name| nested_in(fields, name)) {
        if keys.len() < ASSOCIATIONS_LOOKED_UP_MAX {
            keys.extend(key_of(nested));
        }
        collect(nested, depth + 1, keys);
    }
}

/// What this service has of an item that a document names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemPresence {
    /// It is not there.
    Absent,
    /// It came as a document alone, so that it has no renditions.
    Document,
    /// It has files.
    Files,
}

/// Moves the addresses in documents.
pub(super) struct AddressRewriter<'a, L> {
    pub(super) links: &'a L,
    /// What there is of an item.
    pub(super) presence: &'a dyn Fn(&ItemKey) -> ItemPresence,
}

impl<L: MediaLinks> AddressRewriter<'_, L> {
    /// Moves the addresses in the document of the item `key`, whose `uri` becomes its first
    /// property. Its renditions are the caller's to write.
    pub(super) fn rewrite(&self, key: &ItemKey, fields: &mut Map<String, Value>) {
        let uri = self.links.item(key);
        fields.shift_remove("uri");
        fields.shift_insert(0, "uri".to_owned(), Value::String(uri));
        web_address::remove_non_web(fields);
        self.write_own(fields);
        self.write_nested(fields, 0);
    }

    /// Moves the renditions of `key`, an associated item that this service has, and leaves out
    /// those that are no address of it.
    fn write_renditions(&self, key: &ItemKey, fields: &mut Map<String, Value>) {
        let Some(Value::Object(renditions)) = fields.get_mut("renditions") else { return };
        renditions.retain(|_, rendition| {
            let Some(Value::String(href)) = rendition.get_mut("href") else { return false };
            let Some(path) = path_of(href, key) else { return false };
            *href = format!("{}{path}", self.links.base());
            true
        });
    }

    /// The relations of one document.
    fn write_own(&self, fields: &mut Map<String, Value>) {
        self.write_relations(fields);
        if let Some(Value::Array(revisions)) = fields.get_mut("revisions") {
            for revision in revisions.iter_mut().filter_map(Value::as_object_mut) {
                revision.get_mut("uri").into_iter().for_each(|uri| self.write_uri(uri));
                self.write_relations(revision);
            }
        }
    }

    /// What a document or one of its revisions replaces and is replaced by.
    fn write_relations(&self, fields: &mut Map<String, Value>) {
        fields.get_mut("replacedby").into_iter().for_each(|uri| self.write_uri(uri));
        if let Some(Value::Array(replacing)) = fields.get_mut("replacing") {
            for uri in replacing {
                self.write_uri(uri);
            }
        }
    }

    fn write_uri(&self, value: &mut Value) {
        if let Value::String(uri) = value
            && let Ok(named) = ItemUri::parse(uri)
        {
            *uri = self.uri(&named);
        }
    }

    /// The item's address; a crop that it came with stays on it.
    fn uri(&self, named: &ItemUri) -> String {
        let item = self.links.item(&named.key);
        named.crop.map_or_else(|| item.clone(), |crop| format!("{item}{crop}"))
    }

    /// Associations and assignments. Those of items that this service lacks keep their `uri`. They and
    /// those that came as documents alone are mere links: their renditions are elsewhere.
    fn write_nested(&self, fields: &mut Map<String, Value>, depth: usize) {
        for name in NESTED {
            let Some(Value::Object(nested)) = fields.get_mut(name) else { continue };
            for one in nested.values_mut().filter_map(Value::as_object_mut) {
                web_address::remove_non_web(one);
                let uri = one.get("uri").and_then(Value::as_str);
                let named = uri.and_then(|uri| ItemUri::parse(uri).ok());
                // What lies deeper was not looked up.
                let is_near = depth < ASSOCIATION_DEPTH_MAX;
                let held =
                    named.as_ref().filter(|_| is_near).map(|named| (self.presence)(&named.key));
                let held = held.unwrap_or(ItemPresence::Absent);
                if let Some(named) = named.filter(|_| held != ItemPresence::Absent) {
                    one.insert("uri".to_owned(), Value::String(self.uri(&named)));
                    self.write_renditions(&named.key, one);
                    self.write_own(one);
                }
                if held != ItemPresence::Files || is_empty(one.get("renditions")) {
                    strip_renditions(one);
                }
                self.write_nested(one, depth + 1);
            }
        }
    }
}

fn is_empty(renditions: Option<&Value>) -> bool {
    renditions.and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Takes the renditions out of an associated item, which says then that it is a link.
fn strip_renditions(fields: &mut Map<String, Value>) {
    if fields.shift_remove("renditions").is_some() && fields.contains_key("representationtype") {
        let representation = Value::String("associated".to_owned());
        fields.insert("representationtype".to_owned(), representation);
    }
}

/// The path of `href` from `/media/` on, if it is one of the item `key`: of a rendition, another
/// form of the item, or an associated object below it.
///
/// What follows the path belonged to the other host and is dropped.
fn path_of<'a>(href: &'a str, key: &ItemKey) -> Option<&'a str> {
    let (_scheme, rest) = href.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let folder = format!("/media/{}/", key.media_type);
    let (at, _) = rest.rmatch_indices(folder.as_str()).next()?;
    let path = &rest[at..];
    let name = path[folder.len()..].split('/').next()?;
    // It becomes an address of ours, so it must not lead to another one.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_safe = path.chars().all(is_plain) && !path.contains("..");
    (is_safe && is_of(name, key.id.as_str())).then_some(path)
}

/// Whether the file `name` is of the item `id`, read from the right as media URLs are.
fn is_of(name: &str, id: &str) -> bool {
    // An id has no dots.
    let mut stem = name.split('.').next().unwrap_or_default();
    while stem != id {
        let operation =
            || [WATERMARK, CUTPASTE, INDESIGN].iter().find_map(|token| strip(stem, token));
        let suffix = || split_suffix(stem).map(|(before, _)| before);
        let crop = || split_crop(stem).map(|(before, _)| before);
        let Some(before) = suffix().or_else(operation).or_else(crop) else { return false };
        stem = before;
    }
    true
}
