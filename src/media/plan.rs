//! The plan: what a rendition is, as data.
//!
//! A plan names the original by its hash, the steps in order, the output and everything else that
//! changes a byte of the result. Its hash is the cache key and the `ETag`; however a URL was
//! spelled, one rendition has one plan.

use serde::Serialize;

use super::{CatalogEntry, MediaSettings, access};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::RENDER_PIXELS_MIN;
use imaging::{
    ImageFormat, Orientation, OutputColour, OutputOptions, OutputSampling, RenderStep,
    decoded_size, output_size, scaled_size,
};
use model::item::{AssetGroup, PictureFile, RenditionScaling};
use model::media_url::{MediaPath, MediaTarget, PictureOperation};
use model::{
    ContentHash, CropError, CropSpec, Rect, RenditionExtension, RenditionName, RenditionUsage,
    RenditionVariant, Size,
};

/// Rises when the same plan would give other bytes than an earlier release's.
const FORMAT: u32 = 3;

/// Everything that decides the bytes of a rendition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RenditionPlan {
    format: u32,
    /// The file it is made from.
    pub source: PictureFile,
    /// What is done, in order; nothing for the original with its picture data untouched.
    pub steps: Vec<RenderStep>,
    /// How the result is encoded; `None` for the original's own picture data.
    pub output: Option<OutputOptions>,
    /// Identity of the watermark, when a step draws it.
    pub mark: Option<String>,
    /// Hash of the caption written into the file.
    pub caption: Option<ContentHash>,
    /// Whether the original's position is kept.
    pub keep_gps: bool,
}

impl RenditionPlan {
    /// The memory that rendering takes at its peak: what is read, what is decoded with what is made
    /// of it on the way, and what is written. Rather too much than too little.
    ///
    /// `known` is what is known of the original: whether it can be entered, and its level's size.
    #[must_use]
    pub fn memory_bytes(&self, known: Option<(bool, Option<Size>)>) -> u64 {
        /// Headers, index, buffers.
        const SMALL: u64 = 4 << 20;
        let Some(first) = self.steps.first() else { return SMALL };
        let components = u64::from(self.source.components);
        let length = self.source.length;
        let only_cuts = self
            .steps
            .iter()
            .all(|step| matches!(step, RenderStep::Crop(_) | RenderStep::Watermark));
        let needed = match known {
            Some((true, _)) if only_cuts => {
                let cut = self.steps.iter().find_map(|step| match step {
                    // Its samples, planes of them, these turned upright, and the file.
                    RenderStep::Crop(crop) => {
                        Some(crop.size().pixels().saturating_mul(components * 4))
                    }
                    RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Watermark => {
                        None
                    }
                });
                // Without a crop it is a mark: the rows from it to the end are moved. What is made of
                // a working copy is held as a whole, and such a copy is longer than the original.
                let copied = if self.source.progressive { 4 * length } else { 0 };
                cut.map_or(length / 2 + copied, |cut| cut.saturating_add(length))
            }
            // Its pixels in bands, put together, and what is made of them.
            Some((_, Some(level))) if self.is_enough(level) => {
                level.pixels().saturating_mul(components * 3)
            }
            Some((enters, _)) => self.memory_bytes_whole(first, enters),
            None => self.memory_bytes_whole(first, false),
        };
        SMALL.saturating_add(needed)
    }

    /// Roughly the pixels that rendering decodes, before it is known which way it takes; none for
    /// the original's own picture data.
    ///
    /// `known` is as for [`RenditionPlan::memory_bytes`]. Where nothing is known the short way is assumed,
    /// which nearly all originals have.
    #[must_use]
    pub fn decoded_pixels(&self, known: Option<(bool, Option<Size>)>) -> u64 {
        /// A level has the size of a Preview.
        const LEVEL_PIXELS: u64 = 1 << 20;
        let whole = self.source.stored.pixels();
        let (is_entered, level) = match known {
            Some((is_entered, level)) => (is_entered, level.map_or(whole, Size::pixels)),
            None => (true, LEVEL_PIXELS.min(whole)),
        };
        let cut = self.steps.iter().find_map(|step| match step {
            RenderStep::Crop(crop) => Some(crop.size().pixels()),
            RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Watermark => None,
        });
        let pixels = match self.steps.first() {
            None => return 0,
            Some(RenderStep::Fit { .. } | RenderStep::Cover { .. }) => level,
            Some(RenderStep::Crop(_)) if is_entered => cut.unwrap_or(whole),
            // A mark is drawn into rows of blocks; those beside it are passed over.
            Some(RenderStep::Watermark) if is_entered => cut.unwrap_or(whole / 8),
            Some(RenderStep::Crop(_) | RenderStep::Watermark) => whole,
        };
        pixels.max(RENDER_PIXELS_MIN)
    }

    /// The memory for a picture that is decoded from its own file or a working copy.
    fn memory_bytes_whole(&self, first: &RenderStep, enters: bool) -> u64 {
        let PictureFile { stored, length, orientation, .. } = self.source;
        let components = u64::from(self.source.components);
        let orientation = Orientation::from_tag(u32::from(orientation));
        let samples = |size: Size| size.pixels().saturating_mul(components);
        let decoded = samples(decoded_size(stored, orientation, first));
        // A picture of several scans is held as coefficients, two bytes each, until the last of them.
        let by_scans = self.source.progressive && !enters;
        let coefficients = if by_scans { samples(stored).saturating_mul(2) } else { 0 };
        // The file, or a longer working copy, and its bands; pixels, these turned or converted, and
        // what is written.
        let needed = length.saturating_mul(3).saturating_add(coefficients);
        needed.saturating_add(decoded.saturating_mul(3))
    }

    /// Whether the first step can be made of a level of this size, as stored.
    #[must_use]
    pub fn is_enough(&self, level: Size) -> bool {
        let upright = self.source.upright();
        let wanted = self.steps.first().and_then(|step| scaled_size(upright, step));
        let orientation = Orientation::from_tag(u32::from(self.source.orientation));
        let level = orientation.oriented_size(level);
        wanted.is_some_and(|wanted| wanted.width <= level.width && wanted.height <= level.height)
    }
}

/// Which part of the cache a rendition belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClass {
    /// One of the few renditions that every item has.
    Standard,
    /// One of endless variants, such as a crop.
    Variant,
}

/// A plan with what follows from it.
#[derive(Clone, Debug)]
pub struct PlannedRendition {
    /// The plan.
    pub plan: RenditionPlan,
    /// Its hash.
    pub key: ContentHash,
    /// Pixels of the result.
    pub size: Size,
    /// Its part of the cache.
    pub class: CacheClass,
    /// The format of the result.
    pub format: ImageFormat,
    /// Name of the kind of work, for metrics and logs.
    pub operation: &'static str,
}

/// Plans the picture that `path` names, of the item itself or of one of its associated objects.
///
/// Fails with [`ErrorKind::NotFound`] for a rendition that the item does not have and with
/// [`ErrorKind::InvalidArgument`] for a crop that leaves the picture.
pub fn plan(
    entry: &CatalogEntry,
    path: &MediaPath,
    settings: &MediaSettings,
) -> Result<PlannedRendition> {
    let MediaTarget::Rendition(file) = path.target() else {
        return Err(access::not_available(path));
    };
    let RenditionExtension::Image(format) = file.extension() else {
        return Err(access::not_available(path));
    };
    let (name, operations) = (file.name(), file.operations());
    let missing = || access::not_available(path);
    let files = match file.association() {
        None => AssetGroup::of_item(&entry.assets),
        Some(key) => AssetGroup::of_association(&entry.assets, key),
    };
    let (source, mut steps) = rendition_steps(files, name, settings).ok_or_else(missing)?;
    let upright = source.upright();
    for operation in operations {
        match operation {
            PictureOperation::Watermark if steps.contains(&RenderStep::Watermark) => {}
            PictureOperation::Watermark => steps.push(RenderStep::Watermark),
            PictureOperation::Crop(crop) => {
                let now = size_after(upright, &steps)?;
                let crop = crop.resolve(now).map_err(|error| bad_crop(&error))?;
                // All of the picture is the picture, but a Hires that lies on its side is turned.
                let lies = name.usage == RenditionUsage::Hires && source.orientation > 1;
                if crop != Rect::new(0, 0, now) || (lies && steps.is_empty()) {
                    steps.push(RenderStep::Crop(crop));
                }
            }
        }
    }
    let size = size_after(upright, &steps)?;
    let marked = steps.contains(&RenderStep::Watermark);
    let plan = RenditionPlan {
        format: FORMAT,
        output: output(name, format, &steps, settings),
        mark: marked.then(|| settings.marker.id().to_owned()),
        caption: (name.usage != RenditionUsage::Thumbnail)
            .then(|| entry.caption_of(file.association()).1),
        keep_gps: settings.keep_gps,
        source: source.clone(),
        steps,
    };
    let text = serde_json::to_vec(&plan).map_err(Error::internal)?;
    let operation = operation_name(name, &plan.steps);
    let is_cut = |step: &RenderStep| matches!(step, RenderStep::Crop(_));
    let class =
        if plan.steps.iter().any(is_cut) { CacheClass::Variant } else { CacheClass::Standard };
    Ok(PlannedRendition { key: ContentHash::of(&text), plan, size, class, format, operation })
}

/// The file and the steps that make a rendition without operations.
fn rendition_steps<'a>(
    files: AssetGroup<'a>,
    name: RenditionName,
    settings: &MediaSettings,
) -> Option<(&'a PictureFile, Vec<RenderStep>)> {
    let (source, scaling) = settings.sizes.source(files, name)?;
    let scale = match scaling {
        RenditionScaling::Full => None,
        RenditionScaling::Fit(long_px) => Some(RenderStep::Fit { long_px }),
        RenditionScaling::Square(side) => Some(RenderStep::Cover { width: side, height: side }),
    };
    let mark = (name.variant == RenditionVariant::Watermark).then_some(RenderStep::Watermark);
    Some((source, scale.into_iter().chain(mark).collect()))
}

/// How a rendition is encoded; `None` for the original's own picture data, which are a JPEG's.
fn output(
    name: RenditionName,
    format: ImageFormat,
    steps: &[RenderStep],
    settings: &MediaSettings,
) -> Option<OutputOptions> {
    let small = |quality| OutputOptions {
        format,
        quality,
        sampling: OutputSampling::S420,
        colour: OutputColour::Srgb,
    };
    let qualities = settings.qualities;
    match name.usage {
        RenditionUsage::Preview if name.variant == RenditionVariant::Web => {
            Some(small(qualities.web_preview))
        }
        RenditionUsage::Preview => Some(small(qualities.preview)),
        RenditionUsage::Thumbnail => Some(small(qualities.thumbnail)),
        RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores
            if steps.is_empty() && format == ImageFormat::JPEG =>
        {
            None
        }
        RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores => {
            Some(OutputOptions {
                format,
                quality: qualities.hires,
                sampling: OutputSampling::Keep,
                colour: OutputColour::Keep,
            })
        }
    }
}

fn operation_name(name: RenditionName, steps: &[RenderStep]) -> &'static str {
    let cropped = steps.iter().any(|step| matches!(step, RenderStep::Crop(_)));
    let marked = steps.contains(&RenderStep::Watermark);
    match (name.usage, cropped, marked) {
        (_, true, true) => "crop-watermark",
        (_, true, false) => "crop",
        (RenditionUsage::Preview, false, true) => "watermark-preview",
        (_, false, true) => "watermark",
        (RenditionUsage::Preview, false, false) if name.variant == RenditionVariant::Web => {
            "web-preview"
        }
        (RenditionUsage::Preview, false, false) => "preview",
        (RenditionUsage::Thumbnail, false, false) => "thumbnail",
        (RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores, false, false) => {
            "original"
        }
    }
}

fn size_after(upright: Size, steps: &[RenderStep]) -> Result<Size> {
    output_size(upright, steps).map_err(Error::internal)
}

/// The crop of a `.json` request, in pixels of the hires image; an absent one is `None`.
///
/// Fails with [`ErrorKind::NotFound`] when the item has no picture to crop.
pub(super) fn json_crop(entry: &CatalogEntry, crop: Option<CropSpec>) -> Result<Option<Rect>> {
    let Some(crop) = crop else { return Ok(None) };
    let hires = AssetGroup::of_item(&entry.assets)
        .picture(RenditionUsage::Hires)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{} has no picture", entry.key)))?;
    crop.resolve(hires.upright()).map(Some).map_err(|error| bad_crop(&error))
}

/// The answer to a crop that leaves the picture; the message carries the picture's size.
pub(super) fn bad_crop(error: &CropError) -> Error {
    Error::invalid("path", "crop", "maximum", error.to_string())
}
