//! Lists the properties of IPTC Photo Metadata that an item has, under the names of the standard's technical
//! reference.

use metadata::{Caption, RightsMetadata};
use serde_json::{Map, Value, json};

/// The key of an alternative in the default language.
const DEFAULT_LANGUAGE: &str = "x-default";

/// Lists the properties of an item: those of its document, which `caption` has, and its `rights`.
///
/// The values have the shapes of the standard's data model: texts in several languages are objects by language
/// tag, properties with several values are lists. Properties without a value are left out. Where both state a
/// property, the rights count: they include the word of the operator.
#[must_use]
pub fn photo_metadata(caption: &Caption, rights: &RightsMetadata) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            properties.insert(name.to_owned(), value);
        }
    };
    set("headline", text(&caption.headline));
    set("description", alternative(&caption.description));
    set("creatorNames", list(std::slice::from_ref(&caption.byline)));
    set("jobtitle", text(&caption.byline_role));
    set("creditLine", text(&caption.credit));
    set("source", text(&caption.source));
    set("copyrightNotice", alternative(&caption.copyright_notice));
    set("copyrightOwners", owner(&caption.copyright_holder));
    set("usageTerms", alternative(&caption.usage_terms));
    set("dateCreated", text(caption.created.as_deref().unwrap_or_default()));
    set("cityName", text(&caption.city));
    set("countryName", text(&caption.country));
    set("countryCode", text(&caption.country_code));
    set("personInImageNames", list(&caption.persons));
    set("subjectCodes", list(&caption.subject_codes));
    set("keywords", list(&caption.keywords));
    set("title", alternative(&caption.title));
    set("instructions", text(&caption.instructions));
    set("jobid", text(&caption.transmission_reference));
    set("digitalImageGuid", text(&caption.uri));
    if let Value::Object(stated) = rights.to_json() {
        properties.extend(stated);
    }
    properties
}

fn text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!(text))
}

fn alternative(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ DEFAULT_LANGUAGE: text }))
}

fn list(entries: &[String]) -> Option<Value> {
    let entries: Vec<&String> = entries.iter().filter(|entry| !entry.is_empty()).collect();
    (!entries.is_empty()).then(|| json!(entries))
}

fn owner(name: &str) -> Option<Value> {
    (!name.is_empty()).then(|| json!([{ "copyrightOwnerName": name }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_document_and_rights_have_the_names_of_the_standard() {
        let caption = Caption {
            headline: "Ice".to_owned(),
            description: "A ship.".to_owned(),
            byline: "Anna Andersson".to_owned(),
            copyright_holder: "TT".to_owned(),
            usage_terms: "None".to_owned(),
            keywords: vec!["ice".to_owned(), String::new()],
            ..Caption::default()
        };
        let stated = json!({
            "digitalSourceType": "trainedAlgorithmicMedia",
            "usageTerms": { "x-default": "Editorial use" },
        });
        let rights = RightsMetadata::from_json(&stated).unwrap();
        let expected = json!({
            "headline": "Ice",
            "description": { "x-default": "A ship." },
            "creatorNames": ["Anna Andersson"],
            "copyrightOwners": [{ "copyrightOwnerName": "TT" }],
            "usageTerms": { "x-default": "Editorial use" },
            "keywords": ["ice"],
            "digitalSourceType":
                "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
        });
        assert_eq!(Value::Object(photo_metadata(&caption, &rights)), expected);
        assert_eq!(photo_metadata(&Caption::default(), &RightsMetadata::default()), Map::new());
    }
}
