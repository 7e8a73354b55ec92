//! Builds the served document, with our URLs and the renditions of the item's files.

use serde_json::{Map, Value, json};

use metadata::RightsMetadata;

use super::addresses::{AddressRewriter, ItemPresence};
use super::complete::standard;
use super::{
    Asset, AssetFile, AssetGroup, Document, DocumentLayout, GraphicFile, MediaLinks, PictureFile,
    RightsLayers, RightsStatements, VideoFile, stated_rights,
};
use crate::{
    AssociationKey, CropError, ItemKey, MediaType, Rect, RenditionExtension, RenditionName,
    RenditionUsage, RenditionVariant, Size, scale_crop,
};

/// The sizes of renditions, from the settings.
#[derive(Clone, Copy, Debug)]
pub struct RenditionSizes {
    /// Long side of a Preview in pixels.
    pub preview_px: u32,
    /// Long side of a Thumbnail in pixels.
    pub thumbnail_px: u32,
    /// Side of the square CroppedThumbnail in pixels.
    pub cropped_thumbnail_px: u32,
    /// Long side of a WebPreview in pixels.
    pub web_preview_px: u32,
}

/// The scaling of a JPEG rendition, before any operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenditionScaling {
    /// Keeps the original size.
    Full,
    /// Scales down to a long side of this many pixels; never enlarges.
    Fit(u32),
    /// Scales to a square with this side in pixels, cropped around the centre of interest.
    Square(u32),
}

impl RenditionSizes {
    /// Returns the scaling of the JPEG rendition `name`; `None` if there is no JPEG of that name.
    ///
    /// This is the table of standard renditions. The sizes in documents and the rendered pixels both come from it.
    /// [`RenditionName::PICTURES`] lists its names.
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
            _ => None,
        }
    }

    /// Returns the size of the JPEG rendition `name` of `files`, uncropped and upright.
    pub fn rendition_size(self, files: AssetGroup<'_>, name: RenditionName) -> Option<Size> {
        let (picture, scaling) = self.source(files, name)?;
        let upright = picture.upright();
        Some(match scaling {
            RenditionScaling::Full => upright,
            RenditionScaling::Fit(long_px) => upright.fit_within(long_px),
            RenditionScaling::Square(px) => {
                // A picture smaller than the square is cropped but never enlarged (contract media-11).
                Size { width: upright.width.min(px), height: upright.height.min(px) }
            }
        })
    }

    /// Returns the source picture of the JPEG rendition `name` and its scaling.
    pub fn source(
        self,
        files: AssetGroup<'_>,
        name: RenditionName,
    ) -> Option<(&PictureFile, RenditionScaling)> {
        let scaling = self.scaling(name)?;
        let picture = match scaling {
            RenditionScaling::Full | RenditionScaling::Fit(_) => files.picture(name.usage)?,
            // A square crop needs the whole picture, not a thumbnail delivered with the item.
            RenditionScaling::Square(_) => files.whole_picture()?,
        };
        Some((picture, scaling))
    }
}

/// A request for the document of one item.
#[derive(Clone, Copy, Debug)]
pub struct DocumentRequest<'a> {
    pub key: &'a ItemKey,
    pub assets: &'a [Asset],
    /// The sizes of the renditions.
    pub sizes: RenditionSizes,
    /// A crop in pixels of the Hires image, which is added to every href.
    pub crop: Option<Rect>,
    pub layout: DocumentLayout,
    /// The default rights and the rights override of the item, which replace the document's values; `None` for a
    /// document that states only its own rights.
    pub rights: Option<RightsStatements<'a>>,
    /// True if the document also states rights that only the files state. Formats that store file rights elsewhere
    /// use a document without them.
    pub with_file_rights: bool,
}

const HIRES: RenditionName = RenditionName::NORMAL_HIRES;
const PREVIEW: RenditionName = RenditionName::NORMAL_PREVIEW;
const WATERMARK_PREVIEW: RenditionName = RenditionName::WATERMARK_PREVIEW;
const THUMBNAIL: RenditionName = RenditionName::NORMAL_THUMBNAIL;
const CROPPED_THUMBNAIL: RenditionName = RenditionName::CROPPED_THUMBNAIL;
const WEB_PREVIEW: RenditionName = RenditionName::WEB_PREVIEW;
const GREY_HIRES: RenditionName = RenditionName::GREY_HIRES;

/// The name and extension of a rendition that an item may have.
type ListedRendition = (RenditionName, RenditionExtension);

const JPG: RenditionExtension = RenditionExtension::JPEG;

/// The renditions of a photograph, in the order of their ids. Clients rely on these ids, so new renditions are
/// appended.
const OF_IMAGES: [ListedRendition; 5] =
    [(HIRES, JPG), (PREVIEW, JPG), (WATERMARK_PREVIEW, JPG), (THUMBNAIL, JPG), (WEB_PREVIEW, JPG)];

/// The renditions of a graphic: the first four for the screen, the next four for print.
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

/// The renditions of a video.
const OF_VIDEOS: [ListedRendition; 5] = [
    (HIRES, RenditionExtension::Mp4),
    (PREVIEW, RenditionExtension::Mp4),
    (THUMBNAIL, JPG),
    (PREVIEW, JPG),
    (WEB_PREVIEW, JPG),
];

/// The renditions of an associated object whose files were delivered with the item.
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
    if media_type == MediaType::Graphic {
        &OF_GRAPHICS
    } else if media_type == MediaType::Video {
        &OF_VIDEOS
    } else {
        &OF_IMAGES
    }
}

impl DocumentRequest<'_> {
    /// Selects the item's own files.
    pub fn files(&self) -> AssetGroup<'_> {
        AssetGroup::of_item(self.assets)
    }

    /// Returns the size of the Normal rendition `usage`, uncropped and upright.
    pub fn size(&self, usage: RenditionUsage) -> Option<Size> {
        self.sizes
            .rendition_size(self.files(), RenditionName::new(RenditionVariant::Normal, usage))
    }

    /// Builds the document with our URLs.
    ///
    /// Its renditions are derived from the files of the item and of its associated objects. Renditions listed in
    /// the stored document are ignored. `presence` returns the parts that this service has of each of
    /// [`Document::linked_items`]; an item without files becomes a mere link.
    ///
    /// Fails with [`CropError`] if the crop exceeds the Hires image.
    pub fn document(
        &self,
        document: Document,
        links: &MediaLinks,
        presence: &dyn Fn(&ItemKey) -> ItemPresence,
    ) -> Result<Value, CropError> {
        let renditions = self.renditions(None, links)?;
        let mut fields = document.fields;
        self.layout.apply(&mut fields);
        // Renditions of the stored document are not served: they are at other hosts or would be 404 (contract
        // items-10).
        if renditions.is_empty() {
            fields.shift_remove("renditions");
        } else {
            fields.insert("renditions".to_owned(), Value::Object(renditions));
        }
        if self.layout == DocumentLayout::Full && !fields.contains_key("$standard") {
            fields.insert("$standard".to_owned(), standard());
        }
        self.state_rights(&mut fields, None);
        // Must come before the associations: the rewriter removes renditions, and renditions of delivered files
        // are added afterwards.
        AddressRewriter { links, presence }.rewrite(self.key, &mut fields);
        self.write_associations(&mut fields, links, presence)?;
        Ok(Value::Object(fields))
    }

    /// Adds renditions to associated objects whose files were delivered with the item. An object that is itself an
    /// item with files is skipped, because it has that item's renditions.
    fn write_associations(
        &self,
        fields: &mut Map<String, Value>,
        links: &MediaLinks,
        presence: &dyn Fn(&ItemKey) -> ItemPresence,
    ) -> Result<(), CropError> {
        let Some(Value::Object(associations)) = fields.get_mut("associations") else {
            return Ok(());
        };
        for (key, associated) in associations {
            // A media URL cannot name an object with an invalid key.
            let Ok(key) = AssociationKey::parse(key) else { continue };
            let Some(associated) = associated.as_object_mut() else { continue };
            let uri = associated.get("uri").and_then(Value::as_str).unwrap_or_default();
            // An object of the archive keeps its own renditions, unless the item refers to itself.
            if ItemKey::from_uri(uri)
                .is_ok_and(|item| item != *self.key && presence(&item) == ItemPresence::Files)
            {
                continue;
            }
            let renditions = self.renditions(Some(&key), links)?;
            if !renditions.is_empty() {
                associated.insert("renditions".to_owned(), Value::Object(renditions));
                associated.insert("representationtype".to_owned(), json!("incomplete"));
                self.state_rights(associated, Some(&key));
            }
        }
        Ok(())
    }

    /// States the rights in the item or in one of its associated objects, in the part of the document that
    /// describes it.
    fn state_rights(&self, fields: &mut Map<String, Value>, association: Option<&AssociationKey>) {
        let Some(RightsStatements { default_rights, rights_override }) = self.rights else {
            return;
        };
        // The layout for lists of items leaves rights out.
        if self.layout == DocumentLayout::Bare {
            return;
        }
        let none = RightsMetadata::default();
        // The rights override of a text does not apply to the photographs in it.
        let rights_override = if association.is_none() { rights_override } else { &none };
        let files = AssetGroup::new(self.assets, association);
        let layers = RightsLayers { files, default_rights, rights_override };
        stated_rights::write_rights(fields, layers, self.with_file_rights);
    }

    /// Builds the renditions of the item, or of one of its associated objects.
    fn renditions(
        &self,
        association: Option<&AssociationKey>,
        links: &MediaLinks,
    ) -> Result<Map<String, Value>, CropError> {
        let files = AssetGroup::new(self.assets, association);
        let listed = match association {
            None => listed_renditions(self.key.media_type),
            Some(_) => &OF_ASSOCIATIONS,
        };
        let mut renditions = Map::new();
        for (index, (name, extension)) in listed.iter().enumerate() {
            // The layout contains no other rendition, so no other URL is built.
            if self.layout == DocumentLayout::Bare && *name != THUMBNAIL {
                continue;
            }
            let href = links.file(self.key, association, *name, *extension);
            let rendition = match extension {
                RenditionExtension::Image(_) | RenditionExtension::Auto => {
                    self.picture(files, association, *name, href, links)?
                }
                RenditionExtension::Pdf | RenditionExtension::Eps | RenditionExtension::Mp4 => {
                    files.find(*name, *extension).map(|asset| describe_asset(asset, &href))
                }
            };
            if let Some(rendition) = rendition {
                // The id counts rows of the table, not entries: a missing rendition does not shift the ids of
                // others.
                renditions.insert(format!("r{index:02}"), rendition);
            }
        }
        Ok(renditions)
    }

    fn picture(
        &self,
        files: AssetGroup<'_>,
        association: Option<&AssociationKey>,
        name: RenditionName,
        href: String,
        links: &MediaLinks,
    ) -> Result<Option<Value>, CropError> {
        // Without a source picture the URL would be 404 (contract items-10).
        let Some(size) = self.sizes.rendition_size(files, name) else { return Ok(None) };
        let hires = files.picture(RenditionUsage::Hires).map(|picture| picture.upright());
        // The crop is in pixels of the item's own Hires, so it does not apply to associated objects.
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
        if name.usage == RenditionUsage::Hires
            && let Some(hires) = hires
        {
            // The size of the uncompressed original in bytes, which a crop does not change.
            rendition["printsize"] = json!(hires.pixels() * 3);
        }
        Ok(Some(rendition))
    }
}

/// Describes a rendition that is served from the blob store unchanged.
fn describe_asset(asset: &Asset, href: &str) -> Value {
    let name = asset.name();
    let mut rendition = json!({
        "usage": name.usage.as_str(),
        "variant": name.variant.as_str(),
        "mimetype": asset.extension().mime_type(),
        "href": href,
        // Rendered pictures do not have this property: their length is unknown until they are rendered.
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
            // Rounded up, or the duration of a clip shorter than a second would be 0.
            rendition["duration"] = json!(duration_ms.div_ceil(1000));
            // A string, as the schema requires.
            rendition["bitrate"] = json!(bitrate.to_string());
        }
    }
    rendition
}

/// Converts points (1/72 inch) to whole millimetres, the unit of print sizes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float is held inside the numbers, and no page is larger"
)]
fn millimetres(points: f32) -> u32 {
    (points * 25.4 / 72.0).round() as u32
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn documented_names_match_the_names_of_rendered_pictures() {
        let sizes = RenditionSizes {
            preview_px: 1024,
            thumbnail_px: 256,
            cropped_thumbnail_px: 256,
            web_preview_px: 512,
        };
        for variant in RenditionVariant::iter() {
            for usage in RenditionUsage::iter() {
                let name = RenditionName::new(variant, usage);
                let is_rendered = sizes.scaling(name).is_some();
                assert_eq!(RenditionName::PICTURES.contains(&name), is_rendered, "{name}");
            }
        }
    }
}
