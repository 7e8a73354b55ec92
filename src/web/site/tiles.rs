//! Items as pages show them small: picture, headline, where their pages are.

use serde::Serialize;
use serde_json::Value;

use crate::item::has_picture;
use crate::types::ItemKey;

/// The narrowest and the widest shape that the wall has a class for, width over height in
/// thirtieths; that of an item without a picture.
const SHAPES: [u64; 2] = [15, 75];
const SHAPE_DEFAULT: u64 = 45;

/// What a page shows of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tile {
    /// `<mediaType>/<id>`.
    pub(super) key: String,
    /// What the APIs call it.
    pub(super) uri: String,
    /// Its page.
    pub(super) page: String,
    /// Its headline, else its key.
    pub(super) headline: String,
    /// Its media type.
    pub(super) media_type: &'static str,
    /// Its language, if it says one.
    pub(super) language: Option<String>,
    /// Who made it.
    pub(super) byline: Option<String>,
    /// Its small picture.
    pub(super) picture: Option<Picture>,
    /// The number of its class on the wall.
    pub(super) shape: u64,
}

/// A small picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Picture {
    /// Its address on this site.
    pub(super) src: String,
    /// Pixels.
    pub(super) width: u64,
    /// Pixels.
    pub(super) height: u64,
}

impl Tile {
    /// The tile of a document of the APIs; nothing of one that names no item.
    ///
    /// Addresses are made of the item's identity, never taken from the document.
    pub(super) fn of(document: &Value) -> Option<Self> {
        let uri = document["uri"].as_str()?;
        let key = ItemKey::from_uri(uri).ok()?;
        let text = |name: &str| {
            let text = document[name].as_str().map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let picture = picture(document, &key);
        let shape = picture.as_ref().map_or(SHAPE_DEFAULT, Picture::shape);
        Some(Self {
            headline: text("headline").unwrap_or_else(|| key.to_string()),
            language: text("language"),
            byline: text("byline"),
            page: format!("/item/{key}"),
            media_type: key.media_type.as_str(),
            uri: uri.to_owned(),
            key: key.to_string(),
            picture,
            shape,
        })
    }

    /// The tiles of an array of documents.
    pub(super) fn all(documents: &Value) -> Vec<Self> {
        documents.as_array().into_iter().flatten().filter_map(Self::of).collect()
    }
}

/// Where the small picture of the item of that URI is, if it is a photograph: those always have one.
pub(super) fn thumbnail(uri: &str) -> Option<String> {
    let key = ItemKey::from_uri(uri).ok()?;
    has_picture(key.media_type).then(|| small(&key))
}

fn small(key: &ItemKey) -> String {
    format!("/media/{key}_NormalThumbnail.jpg")
}

fn picture(document: &Value, key: &ItemKey) -> Option<Picture> {
    let renditions = document["renditions"].as_object()?;
    let is_small = |one: &&Value| one["usage"] == "Thumbnail" && one["variant"] == "Normal";
    let found = renditions.values().find(is_small)?;
    let pixels = |name: &str| found[name].as_u64().filter(|pixels| *pixels > 0);
    Some(Picture { src: small(key), width: pixels("width")?, height: pixels("height")? })
}

impl Picture {
    fn shape(&self) -> u64 {
        let [narrowest, widest] = SHAPES;
        let shape = self.width.saturating_mul(30).saturating_add(self.height / 2) / self.height;
        shape.clamp(narrowest, widest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tile_has_addresses_of_ours_only() {
        let document = json!({
            "uri": "https://other.example/media/image/a-1", "headline": " Harbour ",
            "renditions": { "r01": {
                "usage": "Thumbnail", "variant": "Normal", "width": 200, "height": 100,
                "href": "javascript:alert(1)",
            } },
        });
        let tile = Tile::of(&document).unwrap();
        assert_eq!((tile.page.as_str(), tile.headline.as_str()), ("/item/image/a-1", "Harbour"));
        let picture = tile.picture.unwrap();
        assert_eq!(
            (picture.src.as_str(), tile.shape),
            ("/media/image/a-1_NormalThumbnail.jpg", 60)
        );
    }

    #[test]
    fn what_names_no_item_is_no_tile_and_what_lacks_a_picture_has_none() {
        assert_eq!(Tile::of(&json!({ "uri": "javascript:alert(1)" })), None);
        assert_eq!(Tile::of(&json!({ "headline": "x" })), None);
        let text = json!({ "uri": "https://a.example/media/text/b", "renditions": { "r01": {
            "usage": "Thumbnail", "variant": "Normal", "width": 0, "height": 0,
        } } });
        let tile = Tile::of(&text).unwrap();
        assert_eq!((tile.headline.as_str(), tile.picture, tile.shape), ("text/b", None, 45));
    }
}
