//! The document as it is served: with our addresses and the renditions of its files.

use serde_json::{Map, Value, json};

use super::{Asset, Document, Layout, addresses::Addresses};
use crate::types::{CropError, ItemKey, Rect, RenditionName, Size, Usage, Variant, scale_crop};

/// Sizes of the renditions, from the settings.
#[derive(Clone, Copy, Debug)]
pub struct RenditionSizes {
    /// Long side of a Preview, pixels.
    pub preview_px: u32,
    /// Long side of a Thumbnail, pixels.
    pub thumbnail_px: u32,
}

/// Addresses of renditions: how the hrefs are written is the caller's to say, so that this unit
/// needs no knowledge of media URLs.
pub trait Links {
    /// `{media_url}`, without a slash at the end.
    fn base(&self) -> &str;
    /// `{media_url}/media/<key>`.
    fn item(&self, key: &ItemKey) -> String;
    /// The URL of a JPEG rendition, with a crop in its own pixels.
    fn rendition(&self, key: &ItemKey, name: RenditionName, crop: Option<Rect>) -> String;
}

/// How a document is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// The item.
    pub key: &'a ItemKey,
    /// Its files.
    pub assets: &'a [Asset],
    /// Sizes of the renditions.
    pub sizes: RenditionSizes,
    /// A crop in pixels of the hires image that every href is to carry.
    pub crop: Option<Rect>,
    /// How much of the document.
    pub layout: Layout,
}

/// The renditions of a photograph, in the order of their ids.
const IMAGE_RENDITIONS: [(&str, Variant, Usage); 4] = [
    ("r00", Variant::Normal, Usage::Hires),
    ("r01", Variant::Normal, Usage::Preview),
    ("r02", Variant::Watermark, Usage::Preview),
    ("r03", Variant::Normal, Usage::Thumbnail),
];

impl Served<'_> {
    /// The file that a rendition is made from: its own if one came in, else the original.
    #[must_use]
    pub fn source(assets: &[Asset], usage: Usage) -> Option<&Asset> {
        let own = RenditionName { variant: Variant::Normal, usage };
        let named = |name| assets.iter().find(|asset| asset.name == name);
        named(own).or_else(|| named(RenditionName::NORMAL_HIRES))
    }

    /// The size of the rendition `usage`, uncropped and upright.
    #[must_use]
    pub fn size(&self, usage: Usage) -> Option<Size> {
        let upright = Self::source(self.assets, usage)?.upright();
        Some(match usage {
            Usage::Preview => upright.fit_within(self.sizes.preview_px),
            Usage::Thumbnail => upright.fit_within(self.sizes.thumbnail_px),
            Usage::Hires | Usage::Hidef | Usage::Lores => upright,
        })
    }

    /// The document with our addresses.
    ///
    /// Renditions of the item's files take the place of those in the document. `holds` says which
    /// of [`Document::linked_items`] this service has; what is told of others stays untouched.
    ///
    /// Fails with [`CropError`] when the crop leaves the hires image.
    pub fn document<L: Links>(
        &self,
        document: Document,
        links: &L,
        holds: &dyn Fn(&ItemKey) -> bool,
    ) -> Result<Value, CropError> {
        let renditions = self.renditions(links)?;
        let mut fields = document.fields;
        self.layout.cut(&mut fields);
        if !renditions.is_empty() {
            fields.insert("renditions".to_owned(), Value::Object(renditions));
        }
        if self.layout == Layout::Full && !fields.contains_key("$standard") {
            fields.insert("$standard".to_owned(), standard());
        }
        Addresses { links, holds }.write(self.key, &mut fields);
        Ok(Value::Object(fields))
    }

    fn renditions<L: Links>(&self, links: &L) -> Result<Map<String, Value>, CropError> {
        let mut renditions = Map::new();
        let Some(hires) = self.size(Usage::Hires) else { return Ok(renditions) };
        for (id, variant, usage) in IMAGE_RENDITIONS {
            if self.layout == Layout::Bare && usage != Usage::Thumbnail {
                continue;
            }
            let Some(size) = self.size(usage) else { continue };
            let crop = self.crop.map(|crop| scale_crop(crop, hires, size)).transpose()?;
            let (width, height) =
                crop.map_or((size.width, size.height), |crop| (crop.width, crop.height));
            let name = RenditionName { variant, usage };
            let mut rendition = json!({
                "usage": usage.as_str(),
                "variant": variant.as_str(),
                "mimetype": "image/jpeg",
                "href": links.rendition(self.key, name, crop),
                "width": width,
                "height": height,
            });
            if usage == Usage::Hires {
                // Bytes of the uncompressed original; a crop does not change it.
                rendition["printsize"] = json!(hires.pixels() * 3);
            }
            renditions.insert(id.to_owned(), rendition);
        }
        Ok(renditions)
    }
}

/// What the document says of its schema.
fn standard() -> Value {
    json!({
        "name": "TTNINJS",
        "version": "1.6",
        "schema": "https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json",
    })
}
