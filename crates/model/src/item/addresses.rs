//! Rewrites the URLs in a document to our host, whatever host they had at ingest.
//!
//! The host is not part of an item's identity `<mediaType>/<id>` (contract items-1). URIs of the item itself and
//! of the items that it replaces are rewritten to our host, and so are URIs and renditions of associated items in
//! this service. Renditions at other hosts are removed, because a client that follows them would send its API key
//! there.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Document, DocumentLayout, MediaLinks, NESTED, web_address};
use crate::limits::{ASSOCIATION_DEPTH_MAX, ASSOCIATIONS_LOOKED_UP_MAX};
use crate::media_url::MediaPath;
use crate::token::strip_last;
use crate::{ItemKey, ItemUri};

impl Document {
    /// Collects the items named by the associations and assignments that `layout` serves.
    ///
    /// Returns at most [`ASSOCIATIONS_LOOKED_UP_MAX`] items. Items nested deeper than [`ASSOCIATION_DEPTH_MAX`]
    /// are omitted.
    pub fn linked_items(&self, layout: DocumentLayout) -> HashSet<ItemKey> {
        let mut keys = HashSet::new();
        match layout {
            DocumentLayout::Full => collect(&self.fields, 0, &mut keys),
            DocumentLayout::Bare => {
                // The layout serves only the first association, without its associations (contract search-9).
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
        // Items beyond the limit are served as links, like unknown ones.
        if keys.len() < ASSOCIATIONS_LOOKED_UP_MAX {
            keys.extend(key_of(nested));
        }
        collect(nested, depth + 1, keys);
    }
}

/// The parts of an item that this service has, for an item named in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemPresence {
    /// The item is unknown.
    Absent,
    /// The item has a document but no files, so it has no renditions.
    Document,
    /// The item has a document and files.
    Files,
}

/// Rewrites the URLs in a document.
pub(super) struct AddressRewriter<'a> {
    pub(super) links: &'a MediaLinks,
    /// Looks up the parts of an item that the service has.
    pub(super) presence: &'a dyn Fn(&ItemKey) -> ItemPresence,
}

impl AddressRewriter<'_> {
    /// Rewrites the URLs in the document of the item `key` and makes its `uri` the first property. The item's own
    /// renditions are left to the caller.
    pub(super) fn rewrite(&self, key: &ItemKey, fields: &mut Map<String, Value>) {
        let uri = self.links.item(key);
        // `shift_remove` throughout: plain `remove` moves the last property into the gap, which reorders the
        // document.
        fields.shift_remove("uri");
        fields.shift_insert(0, "uri".to_owned(), Value::String(uri));
        web_address::remove_non_web(fields);
        self.write_own(fields);
        self.write_nested(fields, 0);
    }

    /// Rewrites the renditions of `key`, an associated item in this service. Renditions whose URL does not belong
    /// to the item are removed.
    fn write_renditions(&self, key: &ItemKey, fields: &mut Map<String, Value>) {
        let Some(Value::Object(renditions)) = fields.get_mut("renditions") else { return };
        renditions.retain(|_, rendition| {
            let Some(Value::String(href)) = rendition.get_mut("href") else { return false };
            let Some(path) = path_of(href, key) else { return false };
            *href = format!("{}{path}", self.links.base);
            true
        });
    }

    /// Rewrites the relations of one document.
    fn write_own(&self, fields: &mut Map<String, Value>) {
        self.write_relations(fields);
        if let Some(Value::Array(revisions)) = fields.get_mut("revisions") {
            for revision in revisions.iter_mut().filter_map(Value::as_object_mut) {
                revision.get_mut("uri").into_iter().for_each(|uri| self.write_uri(uri));
                self.write_relations(revision);
            }
        }
    }

    /// Rewrites the items that a document or one of its revisions replaces or is replaced by.
    fn write_relations(&self, fields: &mut Map<String, Value>) {
        fields.get_mut("replacedby").into_iter().for_each(|uri| self.write_uri(uri));
        if let Some(Value::Array(replacing)) = fields.get_mut("replacing") {
            for uri in replacing {
                self.write_uri(uri);
            }
        }
    }

    fn write_uri(&self, value: &mut Value) {
        // A URI that names no item of this service, such as `urn:…`, stays unchanged.
        if let Value::String(uri) = value
            && let Ok(named) = ItemUri::parse(uri)
        {
            *uri = self.uri(&named);
        }
    }

    /// Returns the item's URL at our host, with the crop of the original URI.
    fn uri(&self, named: &ItemUri) -> String {
        let item = self.links.item(&named.key);
        // The editors' crop is in pixels of the Hires image, so it is valid at any host (contract items-12).
        named.crop.map_or_else(|| item.clone(), |crop| format!("{item}{crop}"))
    }

    /// Rewrites associations and assignments. Items unknown to this service keep their `uri`. They and items
    /// without files become mere links, because their renditions are elsewhere.
    fn write_nested(&self, fields: &mut Map<String, Value>, depth: usize) {
        for name in NESTED {
            let Some(Value::Object(nested)) = fields.get_mut(name) else { continue };
            for linked in nested.values_mut().filter_map(Value::as_object_mut) {
                web_address::remove_non_web(linked);
                let uri = linked.get("uri").and_then(Value::as_str);
                let named = uri.and_then(|uri| ItemUri::parse(uri).ok());
                // Items at deeper levels were not looked up.
                let was_looked_up = depth < ASSOCIATION_DEPTH_MAX;
                let presence = named
                    .as_ref()
                    .filter(|_| was_looked_up)
                    .map_or(ItemPresence::Absent, |named| (self.presence)(&named.key));
                if let Some(named) = named.filter(|_| presence != ItemPresence::Absent) {
                    linked.insert("uri".to_owned(), Value::String(self.uri(&named)));
                    self.write_renditions(&named.key, linked);
                    self.write_own(linked);
                }
                // Without renditions the item is only a link, whatever the document says (contract items-11).
                if presence != ItemPresence::Files || is_empty(linked.get("renditions")) {
                    strip_renditions(linked);
                }
                self.write_nested(linked, depth + 1);
            }
        }
    }
}

fn is_empty(renditions: Option<&Value>) -> bool {
    renditions.and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Removes the renditions of an associated item and marks it as a link.
fn strip_renditions(fields: &mut Map<String, Value>) {
    // The property is optional in the schema, so only an existing value is corrected.
    if fields.shift_remove("renditions").is_some() && fields.contains_key("representationtype") {
        let representation = Value::String("associated".to_owned());
        fields.insert("representationtype".to_owned(), representation);
    }
}

/// Returns the path of `href` from `/media/` on, if it belongs to the item `key`: to a rendition, a different form
/// of the item, or an associated object.
///
/// Query and fragment belong to the other host and are dropped.
fn path_of<'a>(href: &'a str, key: &ItemKey) -> Option<&'a str> {
    let (_scheme, rest) = href.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let folder = format!("/media/{}/", key.media_type);
    // The last match: the path at the other host may contain the same segments before it.
    let (start, _) = rest.rmatch_indices(folder.as_str()).next()?;
    let path = &rest[start..];
    let name = path[folder.len()..].split('/').next()?;
    // The path is appended to our base URL, so it must not escape from it.
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    // A longer path cannot be served, and taking it apart would need quadratic time.
    let is_short = path.len() <= "/media/".len() + MediaPath::BYTES_MAX;
    let is_safe = is_plain && is_short && !path.contains("..");
    (is_safe && is_of(name, key.id.as_str())).then_some(path)
}

/// Reports whether the file `name` belongs to the item `id`. The name is parsed from the right, like media URLs.
fn is_of(name: &str, id: &str) -> bool {
    // Ids contain no dots.
    let mut stem = name.split('.').next().unwrap_or_default();
    // Each round strips at least one character, so the loop ends.
    while stem != id {
        let Some(before) = strip_last(stem) else { return false };
        stem = before;
    }
    true
}
