//! States the rights in an item where the schema of its document has a place (contract items-24).
//!
//! Only a served document states them: the stored one has the word of its provider alone, which always wins.

use metadata::RightsMetadata;
use serde_json::{Map, Value, json};

use super::RightsLayers;
use super::schema;
use super::web_address::is_web;

/// The statements about the rights in an item besides those in its files.
#[derive(Clone, Copy, Debug)]
pub struct RightsStatements<'a> {
    /// What the settings say about every picture.
    pub settings: &'a RightsMetadata,
    /// What was set for the item.
    pub item: &'a RightsMetadata,
}

/// Adds the strongest statements of `rights` to a document, which has none of its own in their places.
pub(super) fn state(fields: &mut Map<String, Value>, rights: RightsLayers<'_>) {
    if let Some(indicator) = rights.digital_source_type().and_then(indicator) {
        let own = fields.get("trustindicator").and_then(Value::as_array);
        let mut indicators = own.cloned().unwrap_or_default();
        let has_scheme = |one: &Value| scheme_of(one) == scheme_of(&indicator);
        if !indicators.iter().any(has_scheme) {
            indicators.push(indicator);
            insert(fields, "trustindicator", Value::Array(indicators));
        }
    }
    let page = rights.text("webstatementRights").filter(|page| is_web(page));
    if let Some(page) = page.filter(|_| !fields.contains_key("rightsinfo")) {
        insert(fields, "rightsinfo", json!({ "linkedrights": page }));
    }
    let terms = rights.text("usageTerms").filter(|_| !fields.contains_key("usageterms"));
    if let Some(terms) = terms {
        insert(fields, "usageterms", terms.into());
    }
}

/// Inserts a value that the schema accepts. A file may state anything, and what is served has to be valid
/// (contract items-5).
fn insert(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let property = json!({ "uri": "http://localhost/", name: value });
    if schema::check(&property).is_ok() {
        fields.insert(name.to_owned(), value);
    }
}

/// Returns the trust indicator for a digital source type: its vocabulary and its code there.
fn indicator(term: &str) -> Option<Value> {
    let (scheme, code) = term.rsplit_once('/')?;
    // A term without a path is not one of a vocabulary.
    let is_term = !code.is_empty() && is_web(scheme);
    is_term.then(|| json!({ "scheme": format!("{scheme}/"), "code": code }))
}

/// Returns the vocabulary of an indicator; documents write it with or without the slash at the end.
fn scheme_of(indicator: &Value) -> Option<&str> {
    indicator.get("scheme")?.as_str().map(|scheme| scheme.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::AssetGroup;

    const SCHEME: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";

    fn check(document: &Value, rights: &Value, expected: &Value) {
        let mut fields = document.as_object().expect("object").clone();
        let settings = &RightsMetadata::default();
        let item = &RightsMetadata::from_json(rights).expect("valid");
        state(&mut fields, RightsLayers { files: AssetGroup::of_item(&[]), settings, item });
        assert_eq!(&Value::Object(fields), expected, "{rights}");
    }

    #[test]
    fn rights_are_stated_where_the_document_has_none() {
        let rights = json!({
            "digitalSourceType": "trainedAlgorithmicMedia",
            "webstatementRights": "https://a.example/terms",
            "usageTerms": "Editorial use",
            "dataMining": "DMI-PROHIBITED",
        });
        let indicator = json!({ "scheme": SCHEME, "code": "trainedAlgorithmicMedia" });
        let expected = json!({
            "headline": "Ice",
            "trustindicator": [indicator],
            "rightsinfo": { "linkedrights": "https://a.example/terms" },
            "usageterms": "Editorial use",
        });
        check(&json!({ "headline": "Ice" }), &rights, &expected);
        let other = json!({ "title": "Checked", "href": "https://a.example/" });
        let own = json!({
            "trustindicator": [other],
            "rightsinfo": { "encodedrights": "x" },
            "usageterms": "",
        });
        let mut expected = own.clone();
        expected["trustindicator"] = json!([other, indicator]);
        check(&own, &rights, &expected);
    }

    #[test]
    fn the_word_of_the_document_stays() {
        let own = json!({
            "trustindicator": [{ "scheme": SCHEME.trim_end_matches('/'), "code": "print" }],
            "rightsinfo": { "linkedrights": "https://b.example/" },
        });
        let rights = json!({
            "digitalSourceType": "digitalCapture", "webstatementRights": "https://a.example/",
        });
        check(&own, &rights, &own);
    }

    #[test]
    fn what_would_break_the_schema_is_left_out() {
        for page in ["javascript:alert(1)", "https://a b", "https://a/%zz", "terms"] {
            let fields = json!({ "headline": "Ice" });
            check(&fields, &json!({ "webstatementRights": page }), &fields);
        }
        check(&json!({}), &json!({ "digitalSourceType": "https://a.example" }), &json!({}));
    }
}
