//! The document as it is served: with our addresses and the renditions of its files.

use serde_json::{Map, Value, json};

use super::addresses::{AddressRewriter, ItemPresence};
use super::{
    Asset, AssetFile, AssetGroup, Document, DocumentLayout, GraphicFile, PictureFile, VideoFile,
};
use crate::{
    AssociationKey, CropError, ItemKey, MediaType, Rect, RenditionExtension, RenditionName,
    RenditionUsage, RenditionVariant, Size, scale_crop,
};

/// Sizes of the renditions, from the settings.
#[derive(Clone, Copy, Debug)]
pub struct RenditionSizes {
    /// Long side of a Preview, pixels.
    pub preview_px: u32,
    /// Long side of a Thumbnail, pixels.
    pub thumbnail_px: u32,
    /// Sides of a CroppedThumbnail, pixels.
    pub cropped_thumbnail_px: u32,
    /// Long side of a WebPreview, pixels.
    pub web_preview_px: u32,
}

/// How a JPEG rendition is scaled before any operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenditionScaling {
    /// Not at all.
    Full,
    /// To a long side of that many pixels, never enlarged.
    Fit(u32),
    /// To a square with sides of that many pixels, cut around the centre of interest.
    Square(u32),
}

impl RenditionSizes {
    /// How the JPEG rendition `name` is scaled; `None` for a name that no JPEG is made under.
    ///
    /// This is the table of standard renditions: sizes in documents and rendered pixels both come
    /// from it. [`RenditionName::PICTURES`] lists its names.
    #[must_use]
    pub fn scaling(self, name: RenditionName) -> Option<RenditionScaling> {
        match (name.variant, name.usage) {
            (RenditionVariant::Normal | RenditionVariant::Watermark, RenditionUsage::Hires) => {
                Some(RenditionScaling::Full)
            }
            (RenditionVariant::Normal | RenditionVariant::Watermark, RenditionUsage::Preview) => {
                Some(RenditionScaling::Fit(self.preview_px))
            }
            (
                RenditionVariant::Normal | RenditionVariant::Watermark,
                RenditionUsage::Thumbnail,
            ) => Some(RenditionScaling::Fit(self.thumbnail_px)),
            (RenditionVariant::Cropped, RenditionUsage::Thumbnail) => {
                Some(RenditionScaling::Square(self.cropped_thumbnail_px))
            }
            (RenditionVariant::Web, RenditionUsage::Preview) => {
                Some(RenditionScaling::Fit(self.web_preview_px))
            }
            (
                RenditionVariant::Normal
                | RenditionVariant::Watermark
                | RenditionVariant::Cropped
                | RenditionVariant::BlackAndWhite
                | RenditionVariant::Framegrab
                | RenditionVariant::Web,
                RenditionUsage::Hires
                | RenditionUsage::Preview
                | RenditionUsage::Thumbnail
                | RenditionUsage::Hidef
                | RenditionUsage::Lores,
            ) => None,
        }
    }

    /// The size of the JPEG rendition `name` of what `files` show, uncropped and upright.
    #[must_use]
    pub fn rendition_size(self, files: AssetGroup<'_>, name: RenditionName) -> Option<Size> {
        let (picture, scaling) = self.source(files, name)?;
        let upright = picture.upright();
        Some(match scaling {
            RenditionScaling::Full => upright,
            RenditionScaling::Fit(long_px) => upright.fit_within(long_px),
            RenditionScaling::Square(px) => {
                Size { width: upright.width.min(px), height: upright.height.min(px) }
            }
        })
    }

    /// The picture that the JPEG rendition `name` is made from, and how it is scaled.
    #[must_use]
    pub fn source(
        self,
        files: AssetGroup<'_>,
        name: RenditionName,
    ) -> Option<(&PictureFile, RenditionScaling)> {
        let scaling = self.scaling(name)?;
        let picture = match scaling {
            RenditionScaling::Full | RenditionScaling::Fit(_) => files.picture(name.usage)?,
            // A square cut needs the whole picture, not a thumbnail that came with it.
            RenditionScaling::Square(_) => files.whole_picture()?,
        };
        Some((picture, scaling))
    }
}

/// Addresses of renditions: how the hrefs are written is the caller's to say, so that this unit
/// needs no knowledge of media URLs.
pub trait MediaLinks {
    /// `{media_url}`, without a slash at the end.
    fn base(&self) -> &str;
    /// `{media_url}/media/<key>`.
    fn item(&self, key: &ItemKey) -> String;
    /// The URL of a JPEG rendition, with a crop in its own pixels.
    fn rendition(&self, key: &ItemKey, name: RenditionName, crop: Option<Rect>) -> String;
    /// The URL of a rendition of the item or of one of its associated objects.
    fn file(
        &self,
        key: &ItemKey,
        association: Option<&AssociationKey>,
        name: RenditionName,
        extension: RenditionExtension,
    ) -> String;
}

/// How a document is asked for.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRequest<'a> {
    /// The item.
    pub key: &'a ItemKey,
    /// Its files.
    pub assets: &'a [Asset],
    /// Sizes of the renditions.
    pub sizes: RenditionSizes,
    /// A crop in pixels of the hires image that every href is to carry.
    pub crop: Option<Rect>,
    /// How much of the document.
    pub layout: DocumentLayout,
}

const HIRES: RenditionName = RenditionName::NORMAL_HIRES;
const PREVIEW: RenditionName = RenditionName::NORMAL_PREVIEW;
const WATERMARK_PREVIEW: RenditionName = RenditionName::WATERMARK_PREVIEW;
const THUMBNAIL: RenditionName = RenditionName::NORMAL_THUMBNAIL;
const CROPPED_THUMBNAIL: RenditionName = RenditionName::CROPPED_THUMBNAIL;
const WEB_PREVIEW: RenditionName = RenditionName::WEB_PREVIEW;
const GREY_HIRES: RenditionName = RenditionName::GREY_HIRES;

/// A rendition that an item may have.
type ListedRendition = (RenditionName, RenditionExtension);

const JPG: RenditionExtension = RenditionExtension::JPEG;

/// The renditions of a photograph, in the order of their ids. Clients know these ids, so a new
/// rendition is listed last.
const OF_IMAGES: [ListedRendition; 5] =
    [(HIRES, JPG), (PREVIEW, JPG), (WATERMARK_PREVIEW, JPG), (THUMBNAIL, JPG), (WEB_PREVIEW, JPG)];

/// Those of a graphic: first what is looked at, then what is printed.
const OF_GRAPHICS: [ListedRendition; 10] = [
    (PREVIEW, JPG),
    (WATERMARK_PREVIEW, JPG),
    (THUMBNAIL, JPG),
    (CROPPED_THUMBNAIL, JPG),
    (HIRES, RenditionExtension::Pdf),
    (GREY_HIRES, RenditionExtension::Pdf),
    (HIRES, RenditionExtension::Eps),
    (GREY_HIRES, RenditionExtension::Eps),
    (HIRES, JPG),
    (WEB_PREVIEW, JPG),
];

/// Those of a video.
const OF_VIDEOS: [ListedRendition; 5] = [
    (HIRES, RenditionExtension::Mp4),
    (PREVIEW, RenditionExtension::Mp4),
    (THUMBNAIL, JPG),
    (PREVIEW, JPG),
    (WEB_PREVIEW, JPG),
];

/// Those of an associated object whose files came with the item.
const OF_ASSOCIATIONS: [ListedRendition; 12] = [
    (HIRES, JPG),
    (PREVIEW, JPG),
    (WATERMARK_PREVIEW, JPG),
    (THUMBNAIL, JPG),
    (CROPPED_THUMBNAIL, JPG),
    (HIRES, RenditionExtension::Pdf),
    (HIRES, RenditionExtension::Eps),
    (PREVIEW, RenditionExtension::Mp4),
    (GREY_HIRES, RenditionExtension::Pdf),
    (GREY_HIRES, RenditionExtension::Eps),
    (HIRES, RenditionExtension::Mp4),
    (WEB_PREVIEW, JPG),
];

fn listed_renditions(media_type: MediaType) -> &'static [ListedRendition] {
    match media_type {
        MediaType::Graphic => &OF_GRAPHICS,
        MediaType::Video => &OF_VIDEOS,
        MediaType::Image
        | MediaType::Stockfoto
        | MediaType::Text
        | MediaType::Feature
        | MediaType::Page
        | MediaType::Planning
        | MediaType::Calendar => &OF_IMAGES,
    }
}

impl DocumentRequest<'_> {
    /// The item's own files.
    #[must_use]
    pub fn files(&self) -> AssetGroup<'_> {
        AssetGroup::of_item(self.assets)
    }

    /// The size of the Normal rendition `usage`, uncropped and upright.
    #[must_use]
    pub fn size(&self, usage: RenditionUsage) -> Option<Size> {
        self.sizes
            .rendition_size(self.files(), RenditionName::new(RenditionVariant::Normal, usage))
    }

    /// The document with our addresses.
    ///
    /// Renditions are those of the item's files and of its associated objects' files, whatever the
    /// document lists. `held` says what this service has of [`Document::linked_items`]; what has
    /// no files becomes a mere link.
    ///
    /// Fails with [`CropError`] when the crop leaves the hires image.
    pub fn document<L: MediaLinks>(
        &self,
        document: Document,
        links: &L,
        held: &dyn Fn(&ItemKey) -> ItemPresence,
    ) -> Result<Value, CropError> {
        let renditions = self.renditions(None, links)?;
        let mut fields = document.fields;
        self.layout.apply(&mut fields);
        if renditions.is_empty() {
            fields.shift_remove("renditions");
        } else {
            fields.insert("renditions".to_owned(), Value::Object(renditions));
        }
        if self.layout == DocumentLayout::Full && !fields.contains_key("$standard") {
            fields.insert("$standard".to_owned(), standard());
        }
        AddressRewriter { links, presence: held }.rewrite(self.key, &mut fields);
        self.write_associations(&mut fields, links, held)?;
        Ok(Value::Object(fields))
    }

    /// Gives associated objects whose files came with the item their renditions. An object that is
    /// an item of ours is shown by that item's.
    fn write_associations<L: MediaLinks>(
        &self,
        fields: &mut Map<String, Value>,
        links: &L,
        held: &dyn Fn(&ItemKey) -> ItemPresence,
    ) -> Result<(), CropError> {
        let Some(Value::Object(associations)) = fields.get_mut("associations") else {
            return Ok(());
        };
        for (key, associated) in associations {
            let Ok(key) = AssociationKey::parse(key) else { continue };
            let Some(associated) = associated.as_object_mut() else { continue };
            let uri = associated.get("uri").and_then(Value::as_str).unwrap_or_default();
            if ItemKey::from_uri(uri)
                .is_ok_and(|item| item != *self.key && held(&item) == ItemPresence::Files)
            {
                continue;
            }
            let renditions = self.renditions(Some(&key), links)?;
            if !renditions.is_empty() {
                associated.insert("renditions".to_owned(), Value::Object(renditions));
                associated.insert("representationtype".to_owned(), json!("incomplete"));
            }
        }
        Ok(())
    }

    /// The renditions of the item, or of one of its associated objects.
    fn renditions<L: MediaLinks>(
        &self,
        association: Option<&AssociationKey>,
        links: &L,
    ) -> Result<Map<String, Value>, CropError> {
        let files = match association {
            None => self.files(),
            Some(key) => AssetGroup::of_association(self.assets, key),
        };
        let listed = match association {
            None => listed_renditions(self.key.media_type),
            Some(_) => &OF_ASSOCIATIONS,
        };
        let mut renditions = Map::new();
        for (place, (name, extension)) in listed.iter().enumerate() {
            if self.layout == DocumentLayout::Bare && *name != THUMBNAIL {
                continue;
            }
            let href = links.file(self.key, association, *name, *extension);
            let told = match extension {
                RenditionExtension::Image(_) => {
                    self.picture(files, association, *name, href, links)?
                }
                RenditionExtension::Pdf | RenditionExtension::Eps | RenditionExtension::Mp4 => {
                    files.find(*name, *extension).map(|asset| describe_asset(asset, &href))
                }
            };
            if let Some(told) = told {
                renditions.insert(format!("r{place:02}"), told);
            }
        }
        Ok(renditions)
    }

    fn picture<L: MediaLinks>(
        &self,
        files: AssetGroup<'_>,
        association: Option<&AssociationKey>,
        name: RenditionName,
        href: String,
        links: &L,
    ) -> Result<Option<Value>, CropError> {
        let Some(size) = self.sizes.rendition_size(files, name) else { return Ok(None) };
        let hires = files.picture(RenditionUsage::Hires).map(|picture| picture.upright());
        let crop = match (self.crop, association, hires) {
            (Some(crop), None, Some(hires)) => Some(scale_crop(crop, hires, size)?),
            _ => None,
        };
        let (width, height) =
            crop.map_or((size.width, size.height), |crop| (crop.width, crop.height));
        let href = match crop {
            Some(_) => links.rendition(self.key, name, crop),
            None => href,
        };
        let mut rendition = json!({
            "usage": name.usage.as_str(),
            "variant": name.variant.as_str(),
            "mimetype": "image/jpeg",
            "href": href,
            "width": width,
            "height": height,
        });
        if let (RenditionUsage::Hires, Some(hires)) = (name.usage, hires) {
            // Bytes of the uncompressed original; a crop does not change it.
            rendition["printsize"] = json!(hires.pixels() * 3);
        }
        Ok(Some(rendition))
    }
}

/// A rendition that is a file as it lies in the store.
fn describe_asset(asset: &Asset, href: &str) -> Value {
    let name = asset.name();
    let mut rendition = json!({
        "usage": name.usage.as_str(),
        "variant": name.variant.as_str(),
        "mimetype": asset.extension().mime_type(),
        "href": href,
        "sizeinbytes": asset.length(),
    });
    match &asset.file {
        AssetFile::Picture(_) => {}
        AssetFile::Graphic(GraphicFile { points, .. }) => {
            if let Some((width, height)) = points {
                rendition["width"] = json!(millimetres(*width));
                rendition["height"] = json!(millimetres(*height));
                rendition["unit"] = json!("MM");
            }
        }
        AssetFile::Video(VideoFile { shown, duration_ms, bitrate, .. }) => {
            rendition["width"] = json!(shown.width);
            rendition["height"] = json!(shown.height);
            rendition["duration"] = json!(duration_ms.div_ceil(1000));
            rendition["bitrate"] = json!(bitrate.to_string());
        }
    }
    rendition
}

/// Points (1/72 inch) to whole millimetres, as prints are measured.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float is held inside the numbers, and no page is larger"
)]
fn millimetres(points: f32) -> u32 {
    (points * 25.4 / 72.0).round() as u32
}

/// What the document says of its schema.
fn standard() -> Value {
    json!({
        "name": "TTNINJS",
        "version": "1.6",
        "schema": "https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_are_documented_are_those_that_pictures_are_made_under() {
        let sizes = RenditionSizes {
            preview_px: 1024,
            thumbnail_px: 256,
            cropped_thumbnail_px: 256,
            web_preview_px: 512,
        };
        for variant in RenditionVariant::ALL {
            for usage in RenditionUsage::ALL {
                let name = RenditionName::new(variant, usage);
                let is_made = sizes.scaling(name).is_some();
                assert_eq!(RenditionName::PICTURES.contains(&name), is_made, "{name}");
            }
        }
    }
}
