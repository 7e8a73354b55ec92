//! The layouts of a served document (contract search-9).

use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::{RenditionUsage, RenditionVariant};

/// The part of a document that is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum DocumentLayout {
    #[default]
    Full,
    /// The data for a list: eight properties, the first association, the thumbnail.
    Bare,
}

/// The properties of the layout `bare` (contract search-9).
const BARE: [&str; 8] = [
    "headline",
    "date",
    "uri",
    "renditions",
    "associations",
    "pubstatus",
    "originaltransmissionreference",
    "copyrightholder",
];

impl DocumentLayout {
    /// Removes the properties that the layout does not include.
    /// The first association remains. It is reduced like the item and loses its own associations: a list shows the
    /// picture of an article, but no articles that the picture belongs to.
    pub(super) fn apply(self, fields: &mut Map<String, Value>) {
        if self == Self::Full {
            return;
        }
        reduce(fields);
        let Some(Value::Object(associations)) = fields.get_mut("associations") else { return };
        let first = std::mem::take(associations).into_iter().next();
        let Some((name, Value::Object(mut association))) = first else {
            fields.shift_remove("associations");
            return;
        };
        reduce(&mut association);
        association.shift_remove("associations");
        associations.insert(name, Value::Object(association));
    }
}

fn reduce(fields: &mut Map<String, Value>) {
    fields.retain(|name, _| BARE.contains(&name.as_str()));
    let Some(Value::Object(renditions)) = fields.get_mut("renditions") else { return };
    match thumbnail(renditions) {
        Some(thumbnail) => renditions.retain(|id, _| *id == thumbnail),
        // The layout contains only the thumbnail, so a larger picture is no substitute (contract search-9).
        None => drop(fields.shift_remove("renditions")),
    }
}

/// Finds the id of the Normal Thumbnail; without one, the id of any thumbnail.
fn thumbnail(renditions: &Map<String, Value>) -> Option<String> {
    let mut thumbnails = renditions
        .iter()
        .filter(|(_, rendition)| has_text(rendition, "usage", RenditionUsage::Thumbnail.as_str()));
    let normal = thumbnails
        .clone()
        .find(|(_, rendition)| has_text(rendition, "variant", RenditionVariant::Normal.as_str()));
    normal.or_else(|| thumbnails.next()).map(|(id, _)| id.clone())
}

fn has_text(rendition: &Value, name: &str, text: &str) -> bool {
    rendition.get(name).and_then(Value::as_str) == Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(document: &Value, expected: &Value) {
        let mut fields = document.as_object().expect("object").clone();
        DocumentLayout::Bare.apply(&mut fields);
        assert_eq!(&Value::Object(fields), expected);
    }

    #[test]
    fn bare_keeps_eight_properties_and_of_renditions_the_thumbnail() {
        let thumbnail = json!({ "usage": "Thumbnail", "variant": "Normal", "href": "http://a/t" });
        let expected = json!({
            "uri": "http://a/media/text/x", "headline": "H", "date": "2026-03-02",
            "pubstatus": "usable", "originaltransmissionreference": "x", "copyrightholder": "TT",
            "renditions": { "r03": thumbnail },
        });
        let mut document = expected.clone();
        document["body_text"] = json!("long");
        document["$standard"] = json!({ "name": "TTNINJS" });
        document["renditions"] = json!({
            "r00": { "usage": "Hires", "variant": "Normal" },
            "r02": { "usage": "Thumbnail", "variant": "Cropped" },
            "r03": thumbnail,
        });
        check(&document, &expected);
    }

    #[test]
    fn bare_keeps_the_first_association_cut_like_the_item() {
        let inner = json!({ "uri": "http://a/media/image/z" });
        let document = json!({
            "associations": {
                "b": {
                    "uri": "http://a/media/image/y", "headline": "Y", "byline": "B",
                    "renditions": { "r0": { "usage": "Preview" } },
                    "associations": { "a": inner },
                },
                "a": inner,
            },
        });
        let cut = json!({ "uri": "http://a/media/image/y", "headline": "Y" });
        check(&document, &json!({ "associations": { "b": cut } }));
        check(&json!({ "associations": {}, "renditions": {} }), &json!({}));
    }
}
