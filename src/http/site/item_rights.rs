//! The rights and provenance on the page of an item: badges, licensors, statements, and structured data about its
//! picture for search engines.

use minijinja::Value as PageValue;
use serde::Serialize;
use serde_json::{Value, json};

use super::SiteRequest;
use super::item_summary::ItemPicture;
use super::source_types::{self, AiUse};
use metadata::rights::{DATA_MINING, DIGITAL_SOURCE_TYPES};
use model::ItemKey;

/// Maximum number of licensors that a page lists.
const LICENSORS_SHOWN: usize = 3;

/// The rights and provenance of a picture, from its metadata. A text is empty if the metadata does not have the
/// property.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct ItemRights {
    ai: Option<AiUse>,
    /// The code of the digital source type; its URI if it is not in the IPTC vocabulary.
    source_type: String,
    ai_system: String,
    /// The code that permits, restricts or prohibits data mining.
    data_mining: String,
    /// True if data mining is prohibited, entirely or in part.
    prohibits_data_mining: bool,
    constraints: String,
    licensors: Vec<ItemLicensor>,
    /// The page that states the rights.
    web_statement: Option<String>,
    /// The alternative text, for people who cannot see the picture.
    alternative: String,
}

/// A party that licenses the picture.
#[derive(Debug, PartialEq, Serialize)]
struct ItemLicensor {
    name: String,
    url: Option<String>,
}

impl ItemRights {
    /// Reads the metadata of an item from a response of the media interface.
    pub(super) fn from_metadata(metadata: &Value) -> Self {
        let source_type = text(&metadata["digitalSourceType"]);
        let code = DIGITAL_SOURCE_TYPES.code(source_type);
        let mining = text(&metadata["dataMining"]);
        let data_mining = DATA_MINING.code(mining).unwrap_or(mining);
        let licensors = metadata["licensors"].as_array().into_iter().flatten();
        let licensors = licensors.filter_map(|licensor| {
            let url = link(&licensor["licensorUrl"]);
            let name = text(&licensor["licensorName"]).to_owned();
            (url.is_some() || !name.is_empty()).then_some(ItemLicensor { name, url })
        });
        Self {
            ai: code.and_then(AiUse::from_code),
            source_type: code.unwrap_or(source_type).to_owned(),
            ai_system: text(&metadata["aISystemUsed"]).to_owned(),
            data_mining: data_mining.to_owned(),
            prohibits_data_mining: data_mining.starts_with("DMI-PROHIBITED"),
            constraints: text(&metadata["otherConstraints"]).to_owned(),
            licensors: licensors.take(LICENSORS_SHOWN).collect(),
            web_statement: link(&metadata["webstatementRights"]),
            alternative: text(&metadata["altTextAccessibility"]).to_owned(),
        }
    }
}

/// Loads the metadata of the item whose served document is `document`. If that fails, the page shows only the
/// rights in the document.
pub(super) async fn load(site: &SiteRequest, key: &ItemKey, document: &Value) -> Value {
    let metadata = site.get(format!("/media/{key}.metadata.json")).await.unwrap_or_default();
    following(metadata, document)
}

/// Returns `metadata` with the rights of the served document. If the provider's document contradicts the file, the
/// document wins, so that the page agrees with the document and with search results.
fn following(metadata: Value, document: &Value) -> Value {
    let mut metadata = if metadata.is_object() { metadata } else { json!({}) };
    if let Some(code) = source_types::stated_in(document) {
        metadata["digitalSourceType"] = format!("{}{code}", DIGITAL_SOURCE_TYPES.base).into();
    }
    if let Some(page) = document["rightsinfo"]["linkedrights"].as_str() {
        metadata["webstatementRights"] = page.into();
    }
    metadata
}

/// Returns the text of a property. If it has a text for each language, returns the text in the default language.
fn text(value: &Value) -> &str {
    let value = value.get("x-default").unwrap_or(value);
    value.as_str().unwrap_or_default()
}

/// Returns the URL in a property; `None` unless its scheme is `http` or `https`. The value comes from a file and
/// may be anything; other schemes must not become links.
fn link(value: &Value) -> Option<String> {
    let text = text(value);
    let is_web = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let is_clean = !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    (is_web && is_clean).then(|| text.to_owned())
}

/// Describes a public picture as an `ImageObject` of schema.org, in JSON-LD.
///
/// Browsers do not execute such a block, and content security policies do not apply to it.
pub(super) fn image_object(picture: &ItemPicture, page: &str, metadata: &Value) -> PageValue {
    let creators = metadata["creatorNames"].as_array().into_iter().flatten();
    let creators: Vec<Value> =
        creators.map(|name| json!({ "@type": "Person", "name": name })).collect();
    let mut licensors = metadata["licensors"].as_array().into_iter().flatten();
    let mut object = json!({
        "@context": "https://schema.org",
        "@type": "ImageObject",
        "contentUrl": picture.url,
        "url": page,
        "width": picture.width,
        "height": picture.height,
        "name": known(metadata, "headline"),
        "caption": known(metadata, "description"),
        "description": known(metadata, "altTextAccessibility"),
        "dateCreated": known(metadata, "dateCreated"),
        "creditText": known(metadata, "creditLine").or_else(|| known(metadata, "source")),
        "copyrightNotice": known(metadata, "copyrightNotice"),
        "creator": (!creators.is_empty()).then_some(creators),
        "license": link(&metadata["webstatementRights"]),
        "acquireLicensePage": licensors.find_map(|licensor| link(&licensor["licensorUrl"])),
        "digitalSourceType": known(metadata, "digitalSourceType").map(source_types::schema_org),
    });
    if let Some(properties) = object.as_object_mut() {
        properties.retain(|_, value| !value.is_null());
    }
    // A text must neither end the block nor begin a comment in it.
    PageValue::from_safe_string(object.to_string().replace('<', "\\u003c"))
}

fn known<'a>(metadata: &'a Value, name: &str) -> Option<&'a str> {
    Some(text(&metadata[name])).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        json!({
            "headline": "</script><!--",
            "creatorNames": ["Anna"],
            "digitalSourceType":
                "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia",
            "dataMining": "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING",
            "licensors": [
                { "licensorName": "Agency", "licensorUrl": "javascript:alert(1)" },
                { "licensorUrl": "https://a.example/license" },
                {},
            ],
            "webstatementRights": "https://a.example/terms",
            "altTextAccessibility": { "x-default": "A ship." },
        })
    }

    #[test]
    fn a_page_shows_what_the_metadata_say() {
        let found = ItemRights::from_metadata(&metadata());
        let licensors = vec![
            ItemLicensor { name: "Agency".to_owned(), url: None },
            ItemLicensor {
                name: String::new(),
                url: Some("https://a.example/license".to_owned()),
            },
        ];
        let expected = ItemRights {
            ai: Some(AiUse::Created),
            source_type: "trainedAlgorithmicMedia".to_owned(),
            data_mining: "DMI-PROHIBITED-AIMLTRAINING".to_owned(),
            prohibits_data_mining: true,
            licensors,
            web_statement: Some("https://a.example/terms".to_owned()),
            alternative: "A ship.".to_owned(),
            ..ItemRights::default()
        };
        assert_eq!(found, expected);
        assert_eq!(ItemRights::from_metadata(&Value::Null), ItemRights::default());
    }

    #[test]
    fn a_page_agrees_with_its_document() {
        let code = "digitalCapture";
        let document = json!({
            "trustindicator": [{ "scheme": DIGITAL_SOURCE_TYPES.base, "code": code }],
            "rightsinfo": { "linkedrights": "https://b.example/terms" },
        });
        let found = ItemRights::from_metadata(&following(metadata(), &document));
        assert_eq!((found.ai, found.source_type.as_str()), (None, code));
        assert_eq!(found.web_statement.as_deref(), Some("https://b.example/terms"));
        assert_eq!(found.data_mining, "DMI-PROHIBITED-AIMLTRAINING");
        let alone = ItemRights::from_metadata(&following(Value::Null, &document));
        assert_eq!((alone.source_type.as_str(), alone.licensors.len()), (code, 0));
        assert_eq!(following(metadata(), &json!({})), metadata());
    }

    #[test]
    fn a_picture_is_described_without_leaving_its_block() {
        let url = "https://a.example/media/image/a_NormalPreview.jpg".to_owned();
        let picture = ItemPicture { url: url.clone(), width: 1024, height: 683 };
        let text = image_object(&picture, "https://a.example/item/image/a", &metadata());
        assert!(!text.to_string().contains('<'), "{text}");
        let found: Value = serde_json::from_str(&text.to_string()).unwrap();
        assert_eq!(found["name"], "</script><!--");
        assert_eq!(found["contentUrl"], url);
        assert_eq!(found["license"], "https://a.example/terms");
        assert_eq!(found["acquireLicensePage"], "https://a.example/license");
        assert_eq!(found["creator"], json!([{ "@type": "Person", "name": "Anna" }]));
        let source_type = "https://schema.org/TrainedAlgorithmicMediaDigitalSource";
        assert_eq!(found["digitalSourceType"], source_type);
        assert_eq!(found.get("creditText"), None);
    }
}
