//! The plan of a rendition, as data.
//!
//! A plan contains the hash of the original, the steps in order, the output, and everything else that changes
//! a byte of the result. Its hash is the cache key and the `ETag`. All spellings of a URL for the same
//! rendition have the same plan.

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

/// Incremented when the same plan yields other bytes than in an earlier release.
const FORMAT: u32 = 3;

/// Everything that determines the bytes of a rendition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RenditionPlan {
    format: u32,
    pub source: PictureFile,
    /// The steps in order; empty for the original with its picture data unchanged.
    pub steps: Vec<RenderStep>,
    /// The encoding of the result; `None` for the original's own picture data.
    pub output: Option<OutputOptions>,
    /// Identity of the watermark, when a step draws it.
    pub mark: Option<String>,
    /// Hash of the caption that is embedded in the file.
    pub caption: Option<ContentHash>,
    /// Whether the original's GPS position is retained.
    pub keep_gps: bool,
}

impl RenditionPlan {
    /// The memory in bytes that rendering takes at its peak: the input, the decoded pixels with all
    /// intermediate results, and the output. A conservative estimate.
    ///
    /// `summary` has the facts about the original: whether it allows random access, and its level's
    /// size.
    #[must_use]
    pub fn memory_bytes(&self, summary: Option<(bool, Option<Size>)>) -> u64 {
        /// Headers, index and buffers.
        const SMALL: u64 = 4 << 20;
        let Some(first) = self.steps.first() else { return SMALL };
        let components = u64::from(self.source.components);
        let length = self.source.length;
        let only_cuts = self
            .steps
            .iter()
            .all(|step| matches!(step, RenderStep::Crop(_) | RenderStep::Watermark));
        let needed = match summary {
            Some((true, _)) if only_cuts => {
                let cut = self.steps.iter().find_map(|step| match step {
                    // The samples, as planes, rotated, and the file.
                    RenderStep::Crop(crop) => {
                        Some(crop.size().pixels().saturating_mul(components * 4))
                    }
                    RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Watermark => {
                        None
                    }
                });
                // A mark alone rewrites the scan data from the mark on: about half the file. The
                // output of a progressive original comes from its working copy, at most 4 times as
                // long, and is held in memory.
                let copied = if self.source.progressive { 4 * length } else { 0 };
                cut.map_or(length / 2 + copied, |cut| cut.saturating_add(length))
            }
            // The level's pixels in bands, joined, and the result.
            Some((_, Some(level))) if self.is_enough(level) => {
                level.pixels().saturating_mul(components * 3)
            }
            Some((has_random_access, _)) => self.memory_bytes_whole(first, has_random_access),
            None => self.memory_bytes_whole(first, false),
        };
        SMALL.saturating_add(needed)
    }

    /// The approximate number of pixels that rendering decodes, before its render path is known; 0 for the
    /// original's own picture data.
    ///
    /// `summary` is as for [`RenditionPlan::memory_bytes`]. Without facts random access is assumed,
    /// because nearly all originals allow it.
    #[must_use]
    pub fn decoded_pixels(&self, summary: Option<(bool, Option<Size>)>) -> u64 {
        /// A level has about the size of a Preview.
        const LEVEL_PIXELS: u64 = 1 << 20;
        let full = self.source.stored.pixels();
        let (has_random_access, level) = match summary {
            Some((has_random_access, level)) => {
                (has_random_access, level.map_or(full, Size::pixels))
            }
            None => (true, LEVEL_PIXELS.min(full)),
        };
        let cut = self.steps.iter().find_map(|step| match step {
            RenderStep::Crop(crop) => Some(crop.size().pixels()),
            RenderStep::Fit { .. } | RenderStep::Cover { .. } | RenderStep::Watermark => None,
        });
        let pixels = match self.steps.first() {
            None => return 0,
            Some(RenderStep::Fit { .. } | RenderStep::Cover { .. }) => level,
            Some(RenderStep::Crop(_)) if has_random_access => cut.unwrap_or(full),
            // Only the rows of blocks under the mark are decoded. Their share depends on the mark; an eighth of
            // the picture covers the default text.
            Some(RenderStep::Watermark) if has_random_access => cut.unwrap_or(full / 8),
            Some(RenderStep::Crop(_) | RenderStep::Watermark) => full,
        };
        pixels.max(RENDER_PIXELS_MIN)
    }

    /// The memory for a picture that is decoded as a whole, from its own file or a working copy.
    fn memory_bytes_whole(&self, first: &RenderStep, has_random_access: bool) -> u64 {
        let PictureFile { stored, length, orientation, .. } = self.source;
        let components = u64::from(self.source.components);
        let orientation = Orientation::from_tag(u32::from(orientation));
        let samples = |size: Size| size.pixels().saturating_mul(components);
        let decoded = samples(decoded_size(stored, orientation, first));
        // A progressive picture is held as coefficients, two bytes each, until its last scan.
        let by_scans = self.source.progressive && !has_random_access;
        let coefficients = if by_scans { samples(stored).saturating_mul(2) } else { 0 };
        // The file, or a longer working copy, and its bands; the pixels, the pixels rotated or
        // converted, and the output.
        let needed = length.saturating_mul(3).saturating_add(coefficients);
        needed.saturating_add(decoded.saturating_mul(3))
    }

    /// Whether a level of this size, before the EXIF orientation is applied, suffices for the first step.
    #[must_use]
    pub fn is_enough(&self, level: Size) -> bool {
        let upright = self.source.upright();
        let needed = self.steps.first().and_then(|step| scaled_size(upright, step));
        let orientation = Orientation::from_tag(u32::from(self.source.orientation));
        let level = orientation.oriented_size(level);
        needed.is_some_and(|needed| needed.width <= level.width && needed.height <= level.height)
    }
}

/// The cache partition of a rendition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClass {
    /// One of the few renditions that every item has.
    Standard,
    /// One of an unlimited number of variants, such as a crop.
    Variant,
}

/// A plan with the values that follow from it.
#[derive(Clone, Debug)]
pub struct PlannedRendition {
    pub plan: RenditionPlan,
    /// The hash of the plan.
    pub key: ContentHash,
    /// Size of the result in pixels.
    pub size: Size,
    pub class: CacheClass,
    /// The file format of the result.
    pub format: ImageFormat,
    /// Name of the kind of work, for metrics and logs.
    pub operation: &'static str,
}

/// Plans the picture that `path` refers to, of the item itself or of one of its associated objects.
///
/// Fails with [`ErrorKind::NotFound`] for a rendition that the item does not have, and with
/// [`ErrorKind::InvalidArgument`] for a crop that exceeds the picture.
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
            // A Watermark variant has its mark already.
            PictureOperation::Watermark if steps.contains(&RenderStep::Watermark) => {}
            PictureOperation::Watermark => steps.push(RenderStep::Watermark),
            PictureOperation::Crop(crop) => {
                let current = size_after(upright, &steps)?;
                let crop = crop.resolve(current).map_err(|error| bad_crop(&error))?;
                // A crop of the whole picture does nothing, except that it turns a rotated Hires upright.
                let is_rotated = name.usage == RenditionUsage::Hires && source.orientation > 1;
                if crop != Rect::new(0, 0, current) || (is_rotated && steps.is_empty()) {
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
        // Thumbnails carry no caption, so a changed one leaves them cached (contract media-25).
        caption: (name.usage != RenditionUsage::Thumbnail)
            .then(|| entry.caption_of(file.association()).1),
        keep_gps: settings.keep_gps,
        source: source.clone(),
        steps,
    };
    let text = serde_json::to_vec(&plan).map_err(Error::internal)?;
    let operation = operation_name(name, &plan.steps);
    // Only crops are unlimited in number; a marked Preview exists once for each item.
    let is_cut = |step: &RenderStep| matches!(step, RenderStep::Crop(_));
    let class =
        if plan.steps.iter().any(is_cut) { CacheClass::Variant } else { CacheClass::Standard };
    Ok(PlannedRendition { key: ContentHash::of(&text), plan, size, class, format, operation })
}

/// The source file and the steps of a rendition without operations.
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

/// The encoding of a rendition; `None` for the original's own picture data, which is JPEG.
fn output(
    name: RenditionName,
    format: ImageFormat,
    steps: &[RenderStep],
    settings: &MediaSettings,
) -> Option<OutputOptions> {
    // Small renditions are sRGB without another profile (contract media-23).
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
            // Crops and marks of the Hires keep its profile and colour space (contract media-22).
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

/// The crop of a `.json` request in pixels of the hires image; `None` if there is none.
///
/// Fails with [`ErrorKind::NotFound`] when the item has no picture to crop.
pub(super) fn json_crop(entry: &CatalogEntry, crop: Option<CropSpec>) -> Result<Option<Rect>> {
    let Some(crop) = crop else { return Ok(None) };
    let hires = AssetGroup::of_item(&entry.assets)
        .picture(RenditionUsage::Hires)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{} has no picture", entry.key)))?;
    crop.resolve(hires.upright()).map(Some).map_err(|error| bad_crop(&error))
}

/// The error for a crop that exceeds the picture; the message contains the picture's size.
pub(super) fn bad_crop(error: &CropError) -> Error {
    Error::invalid("path", "crop", "maximum", error.to_string())
}
