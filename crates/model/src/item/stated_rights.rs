//! Writes the rights in an item into its served document (contract items-24).
//!
//! The schema of documents, ttninjs 1.6, has a place for some of the rights in a picture:
//!
//! | Right | Place in the document |
//! | --- | --- |
//! | `digitalSourceType` | an entry of `trustindicator` |
//! | `webstatementRights` | `rightsinfo.linkedrights` |
//! | `usageTerms` | `usageterms` |
//! | `instructions` | `ednote` |
//! | `copyrightOwners` | `copyrightholder` |
//!
//! [`RightsLayers`] has four layers. From strongest to weakest:
//!
//! - the rights override, in `rights_override`;
//! - the source rights, which the source sent beside the files, stored with the picture in `files`;
//! - the default rights, in `default_rights`;
//! - the file rights, from the metadata in the picture file itself, also stored with the picture.
//!
//! [`RightsLayers::get`] and [`RightsLayers::text`] return the value of the strongest layer that has one. A right is
//! stated if a layer other than the file rights has it ([`RightsLayers::is_stated`]). Stated rights replace the
//! document's value.
//!
//! Rights that only the file has are written where the document has no value, not even an empty one, and only in the
//! first three rows. Editors work on the last two: a note or an owner that an editor removed from the document must not
//! return from the file.
//!
//! A value that would break the schema is not written, because a served document is always valid (contract items-5).
//! The document then keeps its own value, even if the right is stated. The stored document stays as its provider
//! sent it.

use metadata::rights::DIGITAL_SOURCE_TYPES;
use serde_json::{Map, Value, json};

use super::web_address::is_web;
use super::{RightsLayers, schema};

/// Writes `rights` into the properties `fields` of a document.
///
/// `with_file_rights` is true if the document itself is served. Without it, only stated rights are written: the document
/// is then the input of a different format, which gets the rights of the file separately, as ninjs does, or shows only
/// the note and the owner, as plain text does.
pub(super) fn write_rights(
    fields: &mut Map<String, Value>,
    rights: RightsLayers<'_>,
    with_file_rights: bool,
) {
    if let Some(term) = text(rights, "digitalSourceType", with_file_rights) {
        write_source_type(fields, term, rights.is_stated("digitalSourceType"));
    }
    if let Some(page) = text(rights, "webstatementRights", with_file_rights) {
        write_page(fields, page, rights.is_stated("webstatementRights"));
    }
    if let Some(terms) = text(rights, "usageTerms", with_file_rights)
        && (rights.is_stated("usageTerms") || !fields.contains_key("usageterms"))
    {
        insert(fields, "usageterms", terms.into());
    }
    if let Some(note) = stated_text(rights, "instructions") {
        insert(fields, "ednote", note.into());
    }
    if rights.is_stated("copyrightOwners")
        && let Some(names) = rights.get("copyrightOwners").and_then(owner_names)
    {
        insert(fields, "copyrightholder", names.into());
    }
}

/// Returns the text of a right, if it is stated or if `with_file_rights` is set.
fn text<'a>(rights: RightsLayers<'a>, name: &str, with_file_rights: bool) -> Option<&'a str> {
    if with_file_rights { rights.text(name) } else { stated_text(rights, name) }
}

/// Returns the text of a right, if it is stated.
fn stated_text<'a>(rights: RightsLayers<'a>, name: &str) -> Option<&'a str> {
    rights.text(name).filter(|_| rights.is_stated(name))
}

/// Adds the digital source type `term` to the trust indicators.
///
/// `term` is a URI: codes such as `trainedAlgorithmicMedia` became URIs when the rights were parsed. Other text, which
/// the file may contain, is not added.
///
/// An indicator of the same kind in the document is replaced if `replaces` is true. Otherwise it stays, and `term`
/// is not added.
fn write_source_type(fields: &mut Map<String, Value>, term: &str, replaces: bool) {
    let Some(indicator) = trust_indicator(term) else { return };
    // An indicator is of the same kind if its vocabulary is one of these two: the term's own, or the IPTC vocabulary,
    // which always counts because all its terms are digital source types.
    let schemes = [scheme_of(&indicator), Some(DIGITAL_SOURCE_TYPES.base.trim_end_matches('/'))];
    let own = fields.get("trustindicator").and_then(Value::as_array);
    let mut indicators = own.cloned().unwrap_or_default();
    if replaces {
        // Keeps an indicator without a vocabulary: its scheme is `None`, and neither of `schemes` is.
        indicators.retain(|other| !schemes.contains(&scheme_of(other)));
    } else if indicators.iter().any(|other| schemes.contains(&scheme_of(other))) {
        return;
    }
    indicators.push(indicator);
    insert(fields, "trustindicator", Value::Array(indicators));
}

/// Splits the URI of a term into a trust indicator: the vocabulary and the code in it.
fn trust_indicator(term: &str) -> Option<Value> {
    let (scheme, code) = term.rsplit_once('/')?;
    // A URI without a path names no term of a vocabulary: `https://a.example` is split after `https:/`, which is not a
    // web address.
    let is_term = !code.is_empty() && is_web(scheme);
    is_term.then(|| json!({ "scheme": format!("{scheme}/"), "code": code }))
}

/// Returns the vocabulary of a trust indicator, without the slash at its end, which documents may leave out.
fn scheme_of(indicator: &Value) -> Option<&str> {
    indicator.get("scheme")?.as_str().map(|scheme| scheme.trim_end_matches('/'))
}

/// Writes the address of the page about the rights, if it is a web address.
///
/// An address in the document is replaced if `replaces` is true; encoded rights always stay.
fn write_page(fields: &mut Map<String, Value>, page: &str, replaces: bool) {
    let own = fields.get("rightsinfo");
    // The schema requires exactly one of `linkedrights` and `encodedrights`, so a document with `rightsinfo` has an
    // address or encoded rights. Encoded rights say more than an address.
    let is_free = own.is_none_or(|own| replaces && own.get("encodedrights").is_none());
    if is_free && is_web(page) {
        let mut info = own.and_then(Value::as_object).cloned().unwrap_or_default();
        info.insert("linkedrights".to_owned(), page.into());
        insert(fields, "rightsinfo", Value::Object(info));
    }
}

/// Joins the names of copyright owners with commas, as captions do. Returns `None` if no owner has a name.
fn owner_names(owners: &Value) -> Option<String> {
    let owners = owners.as_array()?.iter();
    let names: Vec<&str> =
        owners.filter_map(|owner| owner.get("copyrightOwnerName")?.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Sets a property of the document if the schema accepts the value. Files may contain any text.
fn insert(fields: &mut Map<String, Value>, name: &str, value: Value) {
    // The schema requires only `uri`, so this document is valid if the property is.
    let document = json!({ "uri": "http://localhost/", name: value });
    if schema::check(&document).is_ok() {
        fields.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use metadata::RightsMetadata;

    use super::*;
    use crate::item::{Asset, AssetFile, AssetGroup, PictureFile};
    use crate::{ContentHash, RenditionName, Size};

    const SCHEME: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";

    /// The document with the rights in the metadata of a picture.
    fn with_file(document: &Value, rights: &Value, with_file_rights: bool) -> Value {
        let picture = [Asset::own(AssetFile::Picture(PictureFile {
            name: RenditionName::NORMAL_HIRES,
            blob: ContentHash::new(b"x"),
            length: 1,
            stored: Size { width: 3, height: 2 },
            orientation: 1,
            progressive: false,
            is_grey: false,
            picture_hash: None,
            components: 3,
            rights: RightsMetadata::from_json(rights).expect("valid"),
            source_rights: RightsMetadata::default(),
        }))];
        let none = RightsMetadata::default();
        let files = AssetGroup::of_item(&picture);
        let layers = RightsLayers { files, default_rights: &none, rights_override: &none };
        let mut fields = document.as_object().expect("object").clone();
        write_rights(&mut fields, layers, with_file_rights);
        Value::Object(fields)
    }

    fn check(document: &Value, rights: &Value, expected: &Value) {
        assert_eq!(&with_file(document, rights, true), expected, "{rights}");
        assert_eq!(&with_file(document, rights, false), document, "{rights}");
    }

    /// Checks the document with a rights override.
    fn check_stated(document: &Value, rights: &Value, expected: &Value) {
        let item = RightsMetadata::from_json(rights).expect("valid");
        let none = RightsMetadata::default();
        let files = AssetGroup::of_item(&[]);
        let layers = RightsLayers { files, default_rights: &none, rights_override: &item };
        for with_file_rights in [false, true] {
            let mut fields = document.as_object().expect("object").clone();
            write_rights(&mut fields, layers, with_file_rights);
            assert_eq!(&Value::Object(fields), expected, "{rights}");
        }
    }

    #[test]
    fn rights_are_written_where_the_document_has_none() {
        let rights = json!({
            "digitalSourceType": "trainedAlgorithmicMedia",
            "webstatementRights": "https://a.example/terms",
            "usageTerms": "Editorial use",
            "dataMining": "DMI-PROHIBITED",
            "instructions": "Of the file",
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
    fn rights_of_a_file_yield_to_the_document() {
        let own = json!({
            "trustindicator": [{ "scheme": SCHEME.trim_end_matches('/'), "code": "print" }],
            "rightsinfo": { "linkedrights": "https://b.example/" },
            "usageterms": "Of the document",
        });
        let rights = json!({
            "digitalSourceType": "digitalCapture", "webstatementRights": "https://a.example/",
            "usageTerms": "Of the file",
        });
        check(&own, &rights, &own);
    }

    #[test]
    fn stated_rights_replace_those_of_the_document() {
        let other = json!({ "title": "Checked", "href": "https://a.example/" });
        let own = json!({
            "trustindicator": [
                { "scheme": SCHEME.trim_end_matches('/'), "code": "print", "title": "Print" }, other,
            ],
            "rightsinfo": { "linkedrights": "https://b.example/", "langid": "https://b.example/l" },
            "usageterms": "Of the document",
            "copyrightholder": "Of the document",
            "ednote": "Of the document",
        });
        let stated = json!({
            "digitalSourceType": "digitalCapture",
            "webstatementRights": "https://a.example/",
            "usageTerms": "Stated terms",
            "copyrightOwners": [
                { "copyrightOwnerName": "One" }, { "copyrightOwnerId": "2" },
                { "copyrightOwnerName": "Three" },
            ],
            "instructions": "Stated note",
        });
        let expected = json!({
            "trustindicator": [other, { "scheme": SCHEME, "code": "digitalCapture" }],
            "rightsinfo": { "linkedrights": "https://a.example/", "langid": "https://b.example/l" },
            "usageterms": "Stated terms",
            "copyrightholder": "One, Three",
            "ednote": "Stated note",
        });
        check_stated(&own, &stated, &expected);
        // The schema allows a page or an expression, and the expression is another property.
        let expression = json!({ "rightsinfo": { "encodedrights": "x" } });
        let page = json!({ "webstatementRights": "https://a.example/" });
        check_stated(&expression, &page, &expression);
    }

    #[test]
    fn a_source_type_of_another_vocabulary_replaces_that_of_the_document() {
        let own = json!({ "trustindicator": [{ "scheme": SCHEME, "code": "print" }] });
        let term = json!({ "digitalSourceType": "https://a.example/sources/drone" });
        let indicator = json!({ "scheme": "https://a.example/sources/", "code": "drone" });
        check_stated(&own, &term, &json!({ "trustindicator": [indicator] }));
    }

    #[test]
    fn what_would_break_the_schema_is_left_out() {
        for page in ["https://a b", "https://a/%zz", "terms"] {
            let fields = json!({ "headline": "Ice" });
            check(&fields, &json!({ "webstatementRights": page }), &fields);
        }
        check(&json!({}), &json!({ "digitalSourceType": "https://a.example" }), &json!({}));
    }
}
