//! The plan of a rendition, as data.
//!
//! A plan contains the hash of the original, the steps in order, the output, and everything else that changes a
//! byte of the result. Its hash is the cache key and the `ETag`. All spellings of a URL for the same rendition
//! have the same plan.

use serde::Serialize;

use super::named_rendition::{output, scaling_steps};
use super::recipes::{StandardSource, StandardUsage};
use super::resize::ShownPart;
use super::{CatalogEntry, MediaSettings, access};
use crate::runtime::config::{RenditionPreset, RenditionWidths};
use crate::runtime::error::{Error, ErrorKind, Result};
use imaging::{EncodeEffort, ImageFormat, OutputOptions, RenderStep, output_size};
use model::item::PictureFile;
use model::media_url::{MediaPath, MediaTarget, PictureOperation};
use model::{
    AssociationKey, ContentHash, CropError, CropSpec, Rect, RenditionExtension, RenditionName,
    RenditionUsage, RenditionVariant, ResizeSpec, Size, scale_crop,
};

/// The format of plans; incremented if the same plan yields different bytes than in an earlier release.
const FORMAT: u32 = 8;

/// The long side in pixels up to which an open rendition with a size carries no more of the caption than the
/// credits. In a list of search hits the whole caption would be the larger part of the bytes.
const SMALL_PX_MAX: u32 = 320;

/// All values that determine the bytes of a rendition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RenditionPlan {
    format: u32,
    /// The original, without the rights that its file states.
    pub source: PictureFile,
    /// The steps in order; empty for the original with its picture data unchanged.
    pub steps: Vec<RenderStep>,
    /// The encoding of the result; `None` for the original's own picture data.
    pub output: Option<OutputOptions>,
    /// The picture of the standard set from which it is made; `None` if it is made from the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) standard: Option<StandardSource>,
    /// The identity of the watermark, if a step draws it.
    pub mark: Option<String>,
    /// True if only the credits of the caption are embedded, and of the rights only those in thumbnails.
    pub credits_only: bool,
    /// Hash of the caption that is embedded in the file.
    pub caption: Option<ContentHash>,
    /// Hash of the rights that are embedded in the file.
    pub rights: Option<ContentHash>,
    /// True if the original's GPS position is retained.
    pub keep_gps: bool,
    /// True if details about the persons shown are retained.
    pub keep_person_details: bool,
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
/// Fails with [`ErrorKind::NotFound`] for a rendition that the item does not have. Fails with
/// [`ErrorKind::InvalidArgument`] for a crop that exceeds the picture, and for a size that the format cannot hold.
pub fn plan(
    entry: &CatalogEntry,
    path: &MediaPath,
    settings: &MediaSettings,
) -> Result<PlannedRendition> {
    let MediaTarget::Rendition(file) = path.target() else {
        return Err(access::not_available(path));
    };
    let format = match file.extension {
        RenditionExtension::Image(format) => format,
        // Requests replace it by a format that the client accepts. Other callers have no preference.
        RenditionExtension::Auto => ImageFormat::Jpeg,
        RenditionExtension::Pdf | RenditionExtension::Eps | RenditionExtension::Mp4 => {
            return Err(access::not_available(path));
        }
    };
    let name = file.name;
    let operations = file.operations();
    // The Hires in a different format would not be the picture that is bought.
    if file.is_whole_hires() && file.extension != RenditionExtension::JPEG {
        return Err(access::not_available(path));
    }
    let named = settings.sizes.source(entry.files(file.association.as_ref()), name);
    let (source, scaling) = named.ok_or_else(|| access::not_available(path))?;
    let base = scaling_steps(scaling, name);
    let upright = source.upright();
    let operated =
        operated_steps(&RenditionBase { name, upright, steps: &base }, operations, settings)?;
    let mut steps = operated.steps;
    // A crop of the whole picture turns a Hires upright that is stored rotated. A file in a different format or
    // with a limit of bytes is always encoded.
    let is_turned = !operations.is_empty() && source.orientation > 1;
    let is_limited = operated.preset.is_some_and(|preset| preset.bytes_max.is_some());
    if steps.is_empty() && (is_turned || is_limited || format != ImageFormat::Jpeg) {
        steps.push(RenderStep::Crop(Rect::new(0, 0, upright)));
    }
    let size = size_after(upright, &steps)?;
    let marked = steps.contains(&RenderStep::Watermark);
    let mut output = output(name, format, &steps, settings);
    if output.is_some() {
        check_size(format, size)?;
    }
    if let (Some(output), Some(preset)) = (&mut output, operated.preset) {
        output.quality = preset.quality.unwrap_or(output.quality);
        output.bytes_max = preset.bytes_max;
    }
    let standard =
        output.as_ref().and_then(|output| StandardSource::find(source, &steps, output, settings));
    let is_kept = standard.is_some_and(|standard| standard.usage == StandardUsage::Stored);
    if let Some(output) = &mut output
        && !is_kept
    {
        // It is made while a request waits.
        output.effort = EncodeEffort::Fast;
    }
    let credits_only = steps != base && is_small(name, operations, size);
    let rights_usage = if credits_only { RenditionUsage::Thumbnail } else { name.usage };
    let plan = RenditionPlan {
        format: FORMAT,
        output,
        standard,
        mark: marked.then(|| settings.watermark.id().to_owned()),
        credits_only,
        caption: caption_hash(entry, file.association.as_ref(), rights_usage, credits_only),
        rights: entry.effective_rights(file.association.as_ref()).hash(rights_usage),
        keep_gps: settings.media.keep_gps,
        keep_person_details: settings.media.keep_person_details,
        source: source.without_rights(),
        steps,
    };
    let text = serde_json::to_vec(&plan).map_err(Error::internal)?;
    let operation = operation_name(name, &plan.steps);
    let class = cache_class(&plan.steps, &base);
    Ok(PlannedRendition { key: ContentHash::new(&text), plan, size, class, format, operation })
}

/// Returns the hash of what a rendition carries of the caption; `None` for a thumbnail, which carries nothing of it.
fn caption_hash(
    entry: &CatalogEntry,
    association: Option<&AssociationKey>,
    usage: RenditionUsage,
    credits_only: bool,
) -> Option<ContentHash> {
    if credits_only {
        return Some(entry.credits_hash(association));
    }
    (usage != RenditionUsage::Thumbnail).then(|| entry.caption_of(association).1)
}

/// Returns whether a rendition is an open one with a size, and small. The caller excludes a size that leaves the named
/// rendition as it is (contract media-25).
fn is_small(name: RenditionName, operations: &[PictureOperation], size: Size) -> bool {
    let has_size =
        operations.iter().any(|operation| matches!(operation, PictureOperation::Resize(_)));
    has_size
        && name.usage == RenditionUsage::Preview
        && size.width.max(size.height) <= SMALL_PX_MAX
}

/// Fails with [`ErrorKind::InvalidArgument`] for a size that files of the format cannot have.
fn check_size(format: ImageFormat, size: Size) -> Result<()> {
    if format.supports_size(size) {
        return Ok(());
    }
    let message = format!("{size} pixels; {}", format.size_limits());
    Err(Error::invalid("path", "extension", "maximum", message))
}

/// Returns the cache partition of a rendition with `steps`; `base` are its steps before the operations.
fn cache_class(steps: &[RenderStep], base: &[RenderStep]) -> CacheClass {
    let is_cut_or_scaled =
        steps.iter().any(|step| matches!(step, RenderStep::Crop(_) | RenderStep::Scale { .. }));
    // A fill that is as large as one side of the picture cuts without scaling.
    let is_filled = count_covers(steps) > count_covers(base);
    if is_cut_or_scaled || is_filled { CacheClass::Variant } else { CacheClass::Standard }
}

/// Counts the steps that scale a picture to cover a size.
fn count_covers(steps: &[RenderStep]) -> usize {
    steps.iter().filter(|step| matches!(step, RenderStep::Cover { .. })).count()
}

/// A rendition before its operations.
struct RenditionBase<'a> {
    name: RenditionName,
    /// The size of its source picture.
    upright: Size,
    steps: &'a [RenderStep],
}

/// The steps of a rendition with its operations.
struct OperatedSteps<'a> {
    steps: Vec<RenderStep>,
    preset: Option<&'a RenditionPreset>,
}

/// Applies `operations` to a rendition.
///
/// Fails with [`ErrorKind::InvalidArgument`] for a crop that exceeds the picture and for an unknown preset.
fn operated_steps<'a>(
    base: &RenditionBase<'_>,
    operations: &[PictureOperation],
    settings: &'a MediaSettings,
) -> Result<OperatedSteps<'a>> {
    let mut steps = base.steps.to_vec();
    let resize = operations.iter().find_map(|operation| match operation {
        PictureOperation::Resize(resize) => Some(resize),
        PictureOperation::Crop(_) | PictureOperation::Watermark => None,
    });
    if let Some(resize) = resize {
        return resized_steps(base, operations, resize, settings);
    }
    for operation in operations {
        match operation {
            PictureOperation::Watermark => push_mark(&mut steps),
            PictureOperation::Crop(crop) => {
                let size = size_after(base.upright, &steps)?;
                let crop = crop.resolve(size).map_err(|error| bad_crop(&error))?;
                // A crop of the whole picture changes nothing.
                if crop != Rect::new(0, 0, size) {
                    steps.push(RenderStep::Crop(crop));
                }
            }
            PictureOperation::Resize(_) => {}
        }
    }
    Ok(OperatedSteps { steps, preset: None })
}

/// Applies `operations`, of which `resize` is one, to a rendition.
///
/// A whole picture and a crop of the Hires are scaled once, from the original or the standard set, whatever the
/// size of the named rendition. [`ShownPart::open`] describes the crop of an open rendition.
fn resized_steps<'a>(
    base: &RenditionBase<'_>,
    operations: &[PictureOperation],
    resize: &ResizeSpec,
    settings: &'a MediaSettings,
) -> Result<OperatedSteps<'a>> {
    let preset = match resize {
        ResizeSpec::Preset(name) => Some(settings.media.presets.0.get(name).ok_or_else(|| {
            Error::invalid("path", "preset", "enum", format!("there is no preset {name}"))
        })?),
        ResizeSpec::Fit { .. } | ResizeSpec::Fill(_) => None,
    };
    let wanted = preset.map_or(resize, |preset| &preset.size);
    let is_bought = access::is_bought_usage(base.name.usage);
    let exact = RenditionWidths::Any;
    // A preset is a single size already, and a buyer gets exactly the requested size.
    let widths = if is_bought || preset.is_some() { &exact } else { &settings.media.widths };
    let named_size = size_after(base.upright, base.steps)?;
    let crop = match operations.iter().find_map(|operation| match operation {
        PictureOperation::Crop(crop) => Some(crop),
        PictureOperation::Watermark | PictureOperation::Resize(_) => None,
    }) {
        None => Rect::new(0, 0, named_size),
        Some(crop) => crop.resolve(named_size).map_err(|error| bad_crop(&error))?,
    };
    let marks_first =
        matches!(operations, [PictureOperation::Watermark, PictureOperation::Crop(_), ..]);
    let is_scaled_whole = base
        .steps
        .iter()
        .all(|step| matches!(step, RenderStep::Fit { .. } | RenderStep::Watermark));
    let is_marked = base.steps.contains(&RenderStep::Watermark)
        || operations.contains(&PictureOperation::Watermark)
        || preset.is_some_and(|preset| preset.mark);
    // The crop may be part of a picture that has to be made first: a picture with a mark, or a square around the
    // centre of interest.
    let is_made_first = marks_first || !is_scaled_whole;
    let picture = if is_made_first { named_size } else { base.upright };
    let part = if is_bought {
        scale_crop(crop, named_size, picture).map(|region| ShownPart::full_size(region, picture))
    } else {
        ShownPart::open(crop, named_size, picture, settings.media.open_px)
    };
    let mut steps = if is_made_first { base.steps.to_vec() } else { Vec::new() };
    if marks_first {
        push_mark(&mut steps);
    }
    steps.extend(part.map_err(Error::internal)?.steps(wanted, widths));
    if !is_made_first && is_named(base.upright, named_size, &steps) {
        steps = base.steps.to_vec();
        steps.retain(|step| *step != RenderStep::Watermark);
    }
    if is_marked {
        push_mark(&mut steps);
    }
    Ok(OperatedSteps { steps, preset })
}

/// Returns whether `steps` show the whole picture `upright` in the size of the named rendition. The result is then
/// that rendition.
fn is_named(upright: Size, named_size: Size, steps: &[RenderStep]) -> bool {
    let whole = Rect::new(0, 0, upright);
    match steps {
        // The whole picture in its own size, as in the Preview of a small picture.
        [] => named_size == upright,
        [step] => *step == RenderStep::Scale { region: whole, size: named_size },
        _ => false,
    }
}

/// Adds the mark, unless the picture already has it.
fn push_mark(steps: &mut Vec<RenderStep>) {
    if !steps.contains(&RenderStep::Watermark) {
        steps.push(RenderStep::Watermark);
    }
}

fn operation_name(name: RenditionName, steps: &[RenderStep]) -> &'static str {
    let cropped = steps.iter().any(|step| matches!(step, RenderStep::Crop(_)));
    let marked = steps.contains(&RenderStep::Watermark);
    if steps.iter().any(|step| matches!(step, RenderStep::Scale { .. })) {
        return if marked { "resize-watermark" } else { "resize" };
    }
    if cropped {
        return if marked { "crop-watermark" } else { "crop" };
    }
    if marked {
        let is_preview = name.usage == RenditionUsage::Preview;
        return if is_preview { "watermark-preview" } else { "watermark" };
    }
    match name.usage {
        RenditionUsage::Preview if name.variant == RenditionVariant::Web => "web-preview",
        RenditionUsage::Preview => "preview",
        RenditionUsage::Thumbnail => "thumbnail",
        RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores => "original",
    }
}

fn size_after(upright: Size, steps: &[RenderStep]) -> Result<Size> {
    output_size(upright, steps).map_err(Error::internal)
}

/// Returns the crop of a `.json` request in pixels of the hires image; `None` if there is no crop.
///
/// Fails with [`ErrorKind::NotFound`] if the item has no picture to crop.
pub(super) fn json_crop(entry: &CatalogEntry, crop: Option<CropSpec>) -> Result<Option<Rect>> {
    let Some(crop) = crop else { return Ok(None) };
    let hires = entry
        .files(None)
        .picture(RenditionUsage::Hires)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{} has no picture", entry.key)))?;
    crop.resolve(hires.upright()).map(Some).map_err(|error| bad_crop(&error))
}

/// Returns the error for a crop that exceeds the picture. The message contains the picture's size.
pub(super) fn bad_crop(error: &CropError) -> Error {
    Error::invalid("path", "crop", "maximum", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::test_plans::{picture, plan_of, settings};

    #[test]
    fn a_limit_of_bytes_is_never_answered_with_the_data_of_the_original() {
        let presets = r#"{"plain":{"fit":[9000,0]},"limited":{"fit":[9000,0],"max_bytes":50000}}"#;
        let settings = settings(&[("media.presets", presets)]);
        let planned = |rest: &str| plan_of(&picture(600, 400), rest, &settings).expect(rest).plan;
        let plain = planned("-preset_plain.jpg");
        assert!(plain.steps.is_empty() && plain.output.is_none(), "{plain:?}");
        for rest in ["-preset_limited", "-crop_w64_h48-preset_limited"] {
            let limited = planned(&format!("{rest}.jpg"));
            assert!(matches!(limited.steps[..], [RenderStep::Crop(_)]), "{limited:?}");
            let output = limited.output.expect("it is encoded");
            assert_eq!(output.bytes_max, Some(50_000));
            assert!(!output.keeps_original());
        }
    }

    #[test]
    fn small_sizes_of_open_names_carry_the_credits_alone() {
        let settings = settings(&[]);
        let check = |picture: &PictureFile, rest: &str, expected: bool| {
            let plan = plan_of(picture, rest, &settings).expect(rest).plan;
            assert_eq!(plan.credits_only, expected, "{rest}");
        };
        let large = picture(6000, 4000);
        for rest in [
            "-fit_w320_NormalPreview.jpg",
            "-fit_w160_WatermarkPreview.webp",
            "-fill_w320_h320_WebPreview.avif",
            "-crop_w100_h80-fit_w80_NormalPreview.jpg",
        ] {
            check(&large, rest, true);
        }
        for rest in [
            "_NormalPreview.jpg",
            "-fit_w480_NormalPreview.jpg",
            "-crop_w100_h80_NormalPreview.jpg",
            "-fit_w160.jpg",
            "-crop_w100_h80-fit_w80.webp",
            "-fit_w160_NormalThumbnail.jpg",
        ] {
            check(&large, rest, false);
        }
        check(&picture(4000, 6000), "-fit_w320_NormalPreview.jpg", false);
        // It is the Preview.
        check(&picture(300, 200), "-fit_w320_NormalPreview.jpg", false);
        check(&picture(300, 200), "-fit_w320_NormalPreview.webp", false);
    }

    #[test]
    fn a_size_that_a_format_does_not_hold_names_the_limit() {
        let (wide, large) = (picture(17_000, 10), picture(6000, 4000));
        let settings = settings(&[]);
        for (picture, rest, limit) in [
            (&wide, "-crop_w16384_h10.webp", "at most 16383 pixels on a side"),
            (&wide, "-fit_w16385.avif", "at most 16384 pixels on a side and 16000000 in all"),
            (&large, "-watermark.avif", "6000x4000 pixels; avif files have at most"),
        ] {
            let refused = plan_of(picture, rest, &settings).expect_err(rest);
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{rest}");
            let detail = &refused.details()[0];
            assert_eq!((detail.location, detail.path.as_str()), ("path", "extension"), "{rest}");
            assert!(detail.message.contains(limit), "{rest}: {}", detail.message);
        }
        for (picture, rest) in [
            (&wide, ".jpg"),
            (&wide, "-watermark.jpg"),
            (&wide, "-fit_w16383.webp"),
            (&large, "-fit_w4800.avif"),
            (&large, "_NormalPreview.avif"),
        ] {
            assert!(plan_of(picture, rest, &settings).is_ok(), "{rest}");
        }
    }
}
