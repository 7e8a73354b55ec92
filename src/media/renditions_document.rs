//! The document `<id>.renditions.json`: the sizes and formats in which the picture of an item is available.
//!
//! The item's own document lists only the standard renditions. Clients look them up by variant and usage, so the
//! last of two equal entries would win.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{CatalogEntry, Media, TextAnswer, access, plan};
use crate::runtime::config::RenditionWidths;
use crate::runtime::error::Result;
use imaging::ImageFormat;
use model::item::{AssetGroup, MediaLinks, RenditionSizes};
use model::media_url::{MediaPath, PictureOperation};
use model::{
    ContentHash, PresetName, RenditionExtension, RenditionName, RenditionUsage, ResizeSpec, Size,
};

/// The name whose sizes a page embeds.
const OPEN: RenditionName = RenditionName::NORMAL_PREVIEW;

impl Media {
    /// Writes the document of `entry`, which `path` names.
    ///
    /// Fails with [`ErrorKind::NotFound`](crate::runtime::error::ErrorKind::NotFound) for an item without a
    /// picture.
    pub(super) fn renditions_document(
        &self,
        entry: &CatalogEntry,
        path: &MediaPath,
        open: bool,
    ) -> Result<TextAnswer> {
        let files = AssetGroup::of_item(&entry.assets);
        let Some(preview) = self.inner.settings.sizes.source(files, OPEN) else {
            return Err(access::not_available(path));
        };
        let upright = preview.0.upright();
        let document = json!({
            "uri": self.inner.links.item(&entry.key),
            "formats": extensions().map(|extension| &extension.as_str()[1..]).collect::<Vec<_>>(),
            "widths": self.widths_json(),
            "renditions": self.renditions_json(entry),
            "presets": self.presets_json(entry),
            "srcset": self.srcset_json(entry, upright),
        });
        let body = Bytes::from(document.to_string());
        let etag = ContentHash::new(&body).short();
        let mime = "application/json";
        let keys = entry.cache_keys().clone();
        Ok(TextAnswer { body, mime, etag, modified: None, open, keys })
    }

    fn widths_json(&self) -> Value {
        match &self.inner.settings.widths {
            RenditionWidths::Any => json!("any"),
            RenditionWidths::Ladder(widths) => json!(widths),
        }
    }

    /// Lists the standard renditions that the item has, with their sizes and URLs.
    fn renditions_json(&self, entry: &CatalogEntry) -> Vec<Value> {
        let files = AssetGroup::of_item(&entry.assets);
        let names = RenditionName::PICTURES.into_iter();
        let described = names.filter_map(|name| {
            let size = self.inner.settings.sizes.rendition_size(files, name)?;
            // The Hires itself exists only as the original. Other formats need an operation.
            let is_hires = name.usage == RenditionUsage::Hires;
            let extensions = extensions()
                .filter(|extension| !is_hires || *extension == RenditionExtension::JPEG);
            let paths = extensions.map(|extension| {
                (extension, MediaPath::rendition(entry.key.clone(), name, extension))
            });
            let jpeg = MediaPath::rendition(entry.key.clone(), name, RenditionExtension::JPEG);
            Some(json!({
                "variant": name.variant.as_str(),
                "usage": name.usage.as_str(),
                "width": size.width,
                "height": size.height,
                "access": access_word(&jpeg),
                "hrefs": self.hrefs(entry, paths),
            }))
        });
        described.collect()
    }

    /// Lists the presets, each as a Preview.
    fn presets_json(&self, entry: &CatalogEntry) -> Map<String, Value> {
        let presets = self.inner.settings.presets.0.iter();
        presets
            .map(|(name, preset)| {
                let paths = extensions().filter_map(|extension| {
                    Some((extension, resized(entry, extension, preset_of(name))?))
                });
                let jpeg = resized(entry, RenditionExtension::JPEG, preset_of(name));
                let access = jpeg.map(|path| access_word(&path));
                let described = json!({
                    "size": preset.size.to_string()[1..],
                    "access": access,
                    "hrefs": self.hrefs(entry, paths),
                });
                (name.to_string(), described)
            })
            .collect()
    }

    /// Lists the URLs in the formats that can hold their pictures.
    fn hrefs(
        &self,
        entry: &CatalogEntry,
        paths: impl Iterator<Item = (RenditionExtension, MediaPath)>,
    ) -> Map<String, Value> {
        let mut hrefs = Map::new();
        for (extension, path) in paths {
            if self.is_held(entry, extension, &path) {
                let name = extension.as_str()[1..].to_owned();
                hrefs.insert(name, self.inner.links.url(&path).into());
            }
        }
        hrefs
    }

    /// Returns whether the format `extension` of `path` can hold its picture.
    fn is_held(
        &self,
        entry: &CatalogEntry,
        extension: RenditionExtension,
        path: &MediaPath,
    ) -> bool {
        let RenditionExtension::Image(format) = extension else { return true };
        let settings = &self.inner.settings;
        let RenditionSizes { preview_px, thumbnail_px, cropped_thumbnail_px, web_preview_px } =
            settings.sizes;
        let sides = [preview_px, thumbnail_px, cropped_thumbnail_px, web_preview_px];
        let largest = sides.into_iter().fold(settings.open_px, u32::max);
        // The size of each picture is needed only if the settings allow very large pictures.
        format.holds_size(Size::new(largest, largest)) || plan::plan(entry, path, settings).is_ok()
    }

    /// Returns for each format the candidates of an `<img srcset>`, in ascending width.
    fn srcset_json(&self, entry: &CatalogEntry, upright: Size) -> Map<String, Value> {
        let formats = ImageFormat::all().map(|format| {
            let extension = RenditionExtension::Image(format);
            (extension.as_str()[1..].to_owned(), self.srcset(entry, upright, extension).into())
        });
        formats.collect()
    }

    /// Returns the candidates of an `<img srcset>` in one format: the widths of the ladder up to the width of the
    /// open picture, and that width itself.
    fn srcset(
        &self,
        entry: &CatalogEntry,
        upright: Size,
        extension: RenditionExtension,
    ) -> String {
        let open_width = upright.fit_within(self.inner.settings.open_px).width;
        let rungs = match &self.inner.settings.widths {
            RenditionWidths::Any => &[][..],
            RenditionWidths::Ladder(widths) => widths,
        };
        let widths = rungs.iter().copied().filter(|width| *width < open_width).chain([open_width]);
        let candidates = widths.filter_map(|width| {
            let fit = ResizeSpec::Fit { width: Some(width), height: None };
            let path = resized(entry, extension, fit)?;
            let path = Some(path).filter(|path| self.is_held(entry, extension, path))?;
            Some(format!("{} {width}w", self.inner.links.url(&path)))
        });
        candidates.collect::<Vec<_>>().join(", ")
    }
}

/// Lists the extensions of pictures, `.auto` last.
fn extensions() -> impl Iterator<Item = RenditionExtension> {
    ImageFormat::all().map(RenditionExtension::Image).chain([RenditionExtension::Auto])
}

fn preset_of(name: &PresetName) -> ResizeSpec {
    ResizeSpec::Preset(name.clone())
}

/// Returns the path of the item's open picture in a different size.
fn resized(
    entry: &CatalogEntry,
    extension: RenditionExtension,
    size: ResizeSpec,
) -> Option<MediaPath> {
    let path = MediaPath::rendition(entry.key.clone(), OPEN, extension);
    path.with_operation(PictureOperation::Resize(size)).ok()
}

/// Returns the word for the requirement of a rendition: nothing, a purchase, or an agreement by which the item may
/// be read, as for the Preview of a video.
fn access_word(path: &MediaPath) -> &'static str {
    if access::is_open(path) {
        "open"
    } else if access::needs_purchase(path) {
        "purchase"
    } else {
        "agreement"
    }
}
