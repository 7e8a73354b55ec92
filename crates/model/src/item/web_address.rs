//! Validates URLs in documents from providers: only `http` and `https` are allowed.
//!
//! URLs are validated at ingest. Documents that were stored before this check existed may contain other URLs,
//! which are removed when a document is served.

use serde_json::{Map, Value};

use super::schema::{SchemaViolation, VIOLATIONS_MAX, child_pointer};

/// The properties that contain one URL.
const SINGLE: [&str; 4] = ["uri", "href", "linkedrights", "replacedby"];
/// The property that contains a list of URLs.
const LIST: &str = "replacing";

/// Reports whether `address` begins with `http://` or `https://` and a host, and contains no characters that
/// browsers remove.
pub(super) fn is_web(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    // Browsers remove tabs and line feeds from a URL and read a backslash as a slash, so such a URL could evade
    // the check.
    let is_evasive = rest.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    // Browsers skip a second slash in place of the host: `http:///x` leads to the host x.
    is_known && !rest.is_empty() && !rest.starts_with(['/', '?', '#']) && !is_evasive
}

/// Finds the URLs in `document` that are not web addresses, with their locations; at most [`VIOLATIONS_MAX`].
pub(super) fn find_violations(document: &Map<String, Value>) -> Vec<SchemaViolation> {
    let mut found = Vec::new();
    collect_violations(document, "", &mut found);
    found.truncate(VIOLATIONS_MAX);
    found
}

fn collect_violations(
    fields: &Map<String, Value>,
    parent: &str,
    found: &mut Vec<SchemaViolation>,
) {
    for (name, value) in fields {
        let pointer = child_pointer(parent, name);
        if let Some(text) = value.as_str().filter(|_| SINGLE.contains(&name.as_str())) {
            found.extend(check_address(text, &pointer));
        }
        // The JSON parser limits the nesting depth, and therefore this recursion.
        if let Some(inner) = value.as_object() {
            collect_violations(inner, &pointer, found);
        }
        for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
            let pointer = child_pointer(&pointer, &index.to_string());
            if let Some(text) = entry.as_str().filter(|_| name == LIST) {
                found.extend(check_address(text, &pointer));
            }
            if let Some(inner) = entry.as_object() {
                collect_violations(inner, &pointer, found);
            }
        }
        // Bounds the memory for a document full of bad addresses.
        if found.len() >= VIOLATIONS_MAX {
            return;
        }
    }
}

fn check_address(address: &str, pointer: &str) -> Option<SchemaViolation> {
    if is_web(address) {
        return None;
    }
    // The message repeats the address, which may be very long.
    let quoted: String = address.chars().take(80).collect();
    let message = format!("{quoted:?} is not an address that begins with http:// or https://");
    Some(SchemaViolation::new(pointer, "format", message))
}

/// Removes URLs that are not web addresses from a served document. Associations and revisions with such a URI are
/// removed as a whole, because the URI identifies them.
pub(super) fn remove_non_web(fields: &mut Map<String, Value>) {
    if fields.get("replacedby").is_some_and(is_not_web) {
        fields.shift_remove("replacedby");
    }
    let rights = fields.get("rightsinfo").and_then(|rights| rights.get("linkedrights"));
    if rights.is_some_and(is_not_web) {
        fields.shift_remove("rightsinfo");
    }
    if let Some(Value::Array(replaced)) = fields.get_mut(LIST) {
        replaced.retain(|uri| !is_not_web(uri));
    }
    if let Some(Value::Array(indicators)) = fields.get_mut("trustindicator") {
        for indicator in indicators.iter_mut().filter_map(Value::as_object_mut) {
            if indicator.get("href").is_some_and(is_not_web) {
                indicator.shift_remove("href");
            }
        }
    }
    if let Some(Value::Array(revisions)) = fields.get_mut("revisions") {
        // The schema requires the `uri` of a revision, so the entry cannot stay without it.
        revisions.retain(|revision| !has_non_web_uri(revision));
        for revision in revisions.iter_mut().filter_map(Value::as_object_mut) {
            remove_non_web(revision);
        }
    }
    for name in super::NESTED {
        if let Some(Value::Object(nested)) = fields.get_mut(name) {
            nested.retain(|_, object| !has_non_web_uri(object));
        }
    }
}

fn is_not_web(value: &Value) -> bool {
    value.as_str().is_some_and(|address| !is_web(address))
}

fn has_non_web_uri(object: &Value) -> bool {
    object.get("uri").is_some_and(is_not_web)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_web_address_has_a_known_scheme_and_a_host() {
        for ok in ["http://a", "HTTPS://a.example/b?c#d", "https://user@host:1/x"] {
            assert!(is_web(ok), "{ok}");
        }
        for bad in [
            "",
            "a",
            "/media/image/x",
            "//a.example/x",
            "javascript:alert(1)//media/image/x",
            "javascript://a.example/media/image/x",
            "data:text/html,x",
            "urn:isbn:1",
            "file:///etc/passwd",
            "http:///x",
            "http:x",
            "http://a\\b",
            "http://a\tb",
            " http://a",
        ] {
            assert!(!is_web(bad), "{bad}");
        }
    }

    #[test]
    fn every_other_address_of_a_document_is_named_with_its_place() {
        let bad = "javascript:alert(1)";
        let document = json!({
            "uri": "http://a/media/text/t",
            "headline": bad,
            "renditions": { "r0": { "href": bad, "title": bad }, "r1": { "href": "http://a/x" } },
            "associations": {
                "a0": { "uri": bad, "associations": { "b/c": { "renditions": { "r": { "href": bad } } } } },
            },
            "replacing": ["http://a/media/text/s", bad],
            "revisions": [{ "uri": bad, "replacing": [bad] }],
            "trustindicator": [{ "href": bad }],
            "rightsinfo": { "linkedrights": bad },
        });
        let found = find_violations(document.as_object().unwrap());
        let mut found: Vec<_> = found.iter().map(|one| one.path.as_str()).collect();
        found.sort_unstable();
        let expected = [
            "/associations/a0/associations/b~1c/renditions/r/href",
            "/associations/a0/uri",
            "/renditions/r0/href",
            "/replacing/1",
            "/revisions/0/replacing/0",
            "/revisions/0/uri",
            "/rightsinfo/linkedrights",
            "/trustindicator/0/href",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_document_that_was_stored_with_other_addresses_is_served_without_them() {
        let bad = "javascript:alert(1)";
        let mut document = json!({
            "replacing": ["http://a/media/text/s", bad],
            "replacedby": bad,
            "revisions": [{ "uri": bad }, { "uri": "http://a/media/text/s", "replacing": [bad] }],
            "trustindicator": [{ "href": bad, "title": "t" }],
            "rightsinfo": { "linkedrights": bad },
            "associations": { "a0": { "uri": bad }, "a1": { "uri": "http://a/media/image/x" } },
        });
        remove_non_web(document.as_object_mut().unwrap());
        let expected = json!({
            "replacing": ["http://a/media/text/s"],
            "revisions": [{ "uri": "http://a/media/text/s", "replacing": [] }],
            "trustindicator": [{ "title": "t" }],
            "associations": { "a1": { "uri": "http://a/media/image/x" } },
        });
        assert_eq!(document, expected);
    }
}
