//! The document `<id>.renditions.json`: the sizes and formats in which the picture of an item is available.
//!
//! The item's own document lists only the standard renditions. Clients look them up by variant and usage, so the
//! last of two equal entries would win.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{CatalogEntry, Media, TextAnswer, access, plan};
use crate::runtime::config::RenditionWidths;
use crate::runtime::error::{Error, Result};
use api::media::{
    AvailablePreset, AvailableRendition, Candidates, PictureAccess, PictureLinks, PictureWidths,
    Renditions,
};
use imaging::ImageFormat;
use model::item::{AssetGroup, RenditionSizes};
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
        let document = Renditions {
            uri: self.inner.links.item(&entry.key),
            formats: extensions().map(|extension| extension.as_str()[1..].to_owned()).collect(),
            widths: self.widths(),
            renditions: self.renditions(entry),
            presets: self.presets(entry),
            srcset: self.candidates(entry, upright),
        };
        let body = Bytes::from(serde_json::to_vec(&document).map_err(Error::internal)?);
        let etag = ContentHash::new(&body).short();
        let mime = "application/json";
        let keys = entry.cache_keys().clone();
        Ok(TextAnswer { body, mime, etag, modified: None, open, keys })
    }

    fn widths(&self) -> PictureWidths {
        match &self.inner.settings.media.widths {
            RenditionWidths::Any => PictureWidths::Any("any".to_owned()),
            RenditionWidths::Ladder(widths) => PictureWidths::Ladder(widths.clone()),
        }
    }

    /// Lists the standard renditions that the item has, with their sizes and URLs.
    fn renditions(&self, entry: &CatalogEntry) -> Vec<AvailableRendition> {
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
            Some(AvailableRendition {
                variant: name.variant.as_str().to_owned(),
                usage: name.usage.as_str().to_owned(),
                width: size.width,
                height: size.height,
                access: picture_access(&jpeg),
                hrefs: self.hrefs(entry, paths),
            })
        });
        described.collect()
    }

    /// Lists the presets, each as a Preview.
    fn presets(&self, entry: &CatalogEntry) -> BTreeMap<String, AvailablePreset> {
        let mut presets = BTreeMap::new();
        for (name, preset) in &self.inner.settings.media.presets.0 {
            let paths = extensions().filter_map(|extension| {
                Some((extension, resized(entry, extension, preset_of(name))?))
            });
            // The open picture takes every preset.
            let Some(jpeg) = resized(entry, RenditionExtension::JPEG, preset_of(name)) else {
                continue;
            };
            let Ok(planned) = plan::plan(entry, &jpeg, &self.inner.settings) else { continue };
            let described = AvailablePreset {
                size: preset.size.to_string()[1..].to_owned(),
                width: planned.size.width,
                height: planned.size.height,
                access: picture_access(&jpeg),
                hrefs: self.hrefs(entry, paths),
            };
            presets.insert(name.to_string(), described);
        }
        presets
    }

    /// Lists the URLs in the formats that can hold their pictures.
    fn hrefs(
        &self,
        entry: &CatalogEntry,
        paths: impl Iterator<Item = (RenditionExtension, MediaPath)>,
    ) -> PictureLinks {
        let mut hrefs = PictureLinks::default();
        for (extension, path) in paths {
            if !self.is_held(entry, extension, &path) {
                continue;
            }
            hrefs.insert(&extension.as_str()[1..], self.inner.links.url(&path));
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
        let largest = sides.into_iter().fold(settings.media.open_px, u32::max);
        // The size of each picture is needed only if the settings allow very large pictures.
        format.supports_size(Size::new(largest, largest))
            || plan::plan(entry, path, settings).is_ok()
    }

    /// Returns the candidates of an `<img srcset>` in each recommended format, in ascending width.
    fn candidates(&self, entry: &CatalogEntry, upright: Size) -> Candidates {
        let avif = RenditionExtension::Image(ImageFormat::Avif);
        Candidates {
            jpg: self.srcset(entry, upright, RenditionExtension::JPEG),
            avif: self.srcset(entry, upright, avif),
        }
    }

    /// Returns the candidates of an `<img srcset>` in one format: the widths of the ladder up to the width of the
    /// open picture, and that width itself.
    fn srcset(
        &self,
        entry: &CatalogEntry,
        upright: Size,
        extension: RenditionExtension,
    ) -> String {
        let open_width = upright.fit_within(self.inner.settings.media.open_px).width;
        let rungs = match &self.inner.settings.media.widths {
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

/// Returns the requirement of a rendition: nothing, a purchase, or an agreement by which the item may
/// be read, as for the Preview of a video.
fn picture_access(path: &MediaPath) -> PictureAccess {
    if access::is_open(path) {
        PictureAccess::Open
    } else if access::needs_purchase(path) {
        PictureAccess::Purchase
    } else {
        PictureAccess::Agreement
    }
}
