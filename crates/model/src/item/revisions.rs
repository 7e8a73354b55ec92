//! The items that a document replaces, and its revision history (contract items-16). The history consists of the
//! histories of the replaced items in the order of `replacing`, followed by the item itself.

use serde_json::{Map, Value, json};

use super::{Document, PubStatus, stored_uri};
use crate::ItemKey;
use crate::limits::REVISIONS_MAX;

/// The properties of an entry in a revision history, besides its `uri`.
const REVISION_FIELDS: [&str; 3] = ["slug", "versioncreated", "replacing"];

impl Document {
    /// Returns the items that this item, `key`, replaces: each once, never itself, in the order of `replacing`.
    /// The host and any crop in a URI are ignored; URIs that do not name an item are skipped.
    pub fn replaced_keys(&self, key: &ItemKey) -> Vec<ItemKey> {
        let mut keys: Vec<ItemKey> = Vec::new();
        let uris = self.fields.get("replacing").and_then(Value::as_array).into_iter().flatten();
        for found in uris.filter_map(|uri| ItemKey::from_uri(uri.as_str()?).ok()) {
            // A document may list an item twice, or itself; the transaction writes each replaced item once.
            if found != *key && !keys.contains(&found) {
                keys.push(found);
            }
        }
        keys
    }

    /// Returns the item that has replaced this one.
    pub fn replaced_by(&self) -> Option<ItemKey> {
        ItemKey::from_uri(self.text("replacedby")?).ok()
    }

    /// Marks this item as replaced by the item `by`.
    pub fn set_replaced_by(&mut self, by: &ItemKey) {
        self.set_pub_status(PubStatus::Replaced);
        self.fields.insert("replacedby".to_owned(), json!(stored_uri(by)));
    }

    /// Copies the replacement of the item from its earlier version `old`, unless this document names one.
    pub fn inherit_replacement(&mut self, old: &Self) {
        if let Some(by) = old.fields.get("replacedby") {
            self.fields.entry("replacedby").or_insert_with(|| by.clone());
        }
    }

    /// Writes the revision history of this document, which belongs to the item `key` and replaces `replaced`: the
    /// items of [`Document::replaced_keys`], with their documents if they exist.
    ///
    /// If one of them does not exist, the history in this document is kept in front, because it is the only record
    /// of that item. A document that replaces nothing keeps its history.
    pub fn write_revisions(&mut self, key: &ItemKey, replaced: &[(ItemKey, Option<Self>)]) {
        if replaced.is_empty() {
            return;
        }
        let mut history = RevisionHistory::default();
        // Only the sender knows the history of an item that is missing here.
        if replaced.iter().any(|(_, document)| document.is_none()) {
            history.extend(self.own_revisions(), key);
        }
        for (replaced_key, document) in replaced {
            let Some(document) = document else { continue };
            history.extend(document.own_revisions(), key);
            // The history of an item that replaced others already ends with that item.
            if !history.contains(replaced_key) {
                history.extend([&document.revision(replaced_key)], key);
            }
        }
        // Last, even if an earlier history contains it (contract items-16).
        let own = self.revision(key);
        self.fields.insert("revisions".to_owned(), history.finish_with(own));
    }

    fn own_revisions(&self) -> impl Iterator<Item = &Value> {
        self.fields.get("revisions").and_then(Value::as_array).into_iter().flatten()
    }

    /// Builds the history entry for this document.
    fn revision(&self, key: &ItemKey) -> Value {
        let mut entry = Map::new();
        entry.insert("uri".to_owned(), json!(stored_uri(key)));
        for name in REVISION_FIELDS {
            if let Some(value) = self.fields.get(name) {
                entry.insert(name.to_owned(), value.clone());
            }
        }
        Value::Object(entry)
    }
}

/// A revision history under construction. Each item occurs once, so the history stays finite if items replace each
/// other in a cycle.
#[derive(Default)]
struct RevisionHistory {
    entries: Vec<Value>,
    keys: Vec<ItemKey>,
}

impl RevisionHistory {
    fn contains(&self, key: &ItemKey) -> bool {
        self.keys.contains(key)
    }

    /// Adds new entries, except for the entry of `own`, which comes last.
    fn extend<'a>(&mut self, entries: impl IntoIterator<Item = &'a Value>, own: &ItemKey) {
        for entry in entries {
            let uri = entry.get("uri").and_then(Value::as_str).unwrap_or_default();
            match ItemKey::from_uri(uri) {
                Ok(key) if key == *own || self.contains(&key) => continue,
                Ok(key) => self.keys.push(key),
                // Entries that are not items of this archive can only be compared as a whole.
                Err(_) if self.entries.contains(entry) => continue,
                Err(_) => {}
            }
            self.entries.push(entry.clone());
        }
    }

    /// Returns the history with its last entry; the oldest entries beyond the limit are dropped.
    fn finish_with(mut self, own: Value) -> Value {
        // The item's own entry counts and is never dropped.
        let excess = (self.entries.len() + 1).saturating_sub(REVISIONS_MAX);
        self.entries.drain(..excess);
        self.entries.push(own);
        Value::Array(self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> ItemKey {
        format!("text/{id}").parse().expect("key")
    }

    fn document(id: &str, replacing: &[&str]) -> Document {
        let uris: Vec<_> =
            replacing.iter().map(|id| format!("http://a/media/text/{id}")).collect();
        let text = json!({ "slug": id.to_uppercase(), "replacing": uris }).to_string();
        Document::parse(&key(id), &text).expect("document")
    }

    fn write(mut document: Document, id: &str, replaced: &[(&str, &Document)]) -> Document {
        let stored = |other: &ItemKey| {
            let found = replaced.iter().find(|(id, _)| key(id) == *other);
            found.map(|(_, document)| (*document).clone())
        };
        let keys = document.replaced_keys(&key(id));
        let replaced: Vec<_> = keys.into_iter().map(|key| (key.clone(), stored(&key))).collect();
        document.write_revisions(&key(id), &replaced);
        document
    }

    fn ids(document: &Document) -> Vec<String> {
        let uris = document.texts("revisions", "uri");
        uris.map(|uri| ItemKey::from_uri(uri).expect("uri").id.to_string()).collect()
    }

    #[test]
    fn a_history_is_that_of_the_replaced_items_followed_by_the_item() {
        let (a, x) = (document("a", &[]), document("x", &[]));
        let b = write(document("b", &["a"]), "b", &[("a", &a)]);
        assert_eq!(ids(&b), ["a", "b"]);
        let c = write(document("c", &["x", "b"]), "c", &[("b", &b), ("x", &x)]);
        assert_eq!(ids(&c), ["x", "a", "b", "c"]);
        let slugs: Vec<_> = c.texts("revisions", "slug").collect();
        assert_eq!(slugs, ["X", "A", "B", "C"]);
        assert_eq!(
            c.value("revisions").expect("list")[2]["replacing"].as_array().map(Vec::len),
            Some(1)
        );
    }

    #[test]
    fn a_repeated_write_adds_no_second_entry() {
        let a = document("a", &[]);
        let b = write(document("b", &["a", "a"]), "b", &[("a", &a)]);
        let again = write(b.clone(), "b", &[("a", &a)]);
        assert_eq!(again, b);
    }

    #[test]
    fn a_cyclic_history_terminates() {
        let mut a = document("a", &["b"]);
        let mut b = document("b", &["a", "b"]);
        for _ in 0..5 {
            b = write(b, "b", &[("a", &a)]);
            a = write(a, "a", &[("b", &b)]);
        }
        assert_eq!(ids(&a), ["b", "a"]);
        assert_eq!(ids(&b), ["a", "b"]);
    }

    #[test]
    fn a_history_is_bounded_and_keeps_the_newest() {
        let mut last = document("i0", &[]);
        for number in 1..REVISIONS_MAX + 10 {
            let (id, before) = (format!("i{number}"), format!("i{}", number - 1));
            last = write(document(&id, &[&before]), &id, &[(&before, &last)]);
        }
        let ids = ids(&last);
        assert_eq!(ids.len(), REVISIONS_MAX);
        assert_eq!(ids.last(), Some(&format!("i{}", REVISIONS_MAX + 9)));
    }

    #[test]
    fn references_to_unknown_items_are_unchanged() {
        let mut b = document("b", &["gone", "a"]);
        let sent =
            json!([{ "uri": "http://a/media/text/gone", "slug": "OLD" }, { "uri": "urn:x" }]);
        b.fields.insert("revisions".to_owned(), sent);
        let b = write(b, "b", &[("a", &document("a", &[]))]);
        let uris: Vec<_> = b.texts("revisions", "uri").collect();
        assert_eq!(uris[..2], ["http://a/media/text/gone", "urn:x"]);
        assert_eq!(uris[2..], [stored_uri(&key("a")), stored_uri(&key("b"))]);
    }
}
