//! The renditions that URLs name without operations: the steps that make them, and their encoding.

use super::MediaSettings;
use imaging::{
    EncodeEffort, ImageFormat, OutputColour, OutputOptions, OutputSampling, RenderStep,
};
use model::item::RenditionScaling;
use model::{RenditionName, RenditionUsage, RenditionVariant};

/// Returns the steps of a rendition without operations, which is scaled by `scaling`.
pub(super) fn scaling_steps(scaling: RenditionScaling, name: RenditionName) -> Vec<RenderStep> {
    let scale = match scaling {
        RenditionScaling::Full => None,
        RenditionScaling::Fit(long_px) => Some(RenderStep::Fit { long_px }),
        RenditionScaling::Square(side) => Some(RenderStep::Cover { width: side, height: side }),
    };
    let mark = (name.variant == RenditionVariant::Watermark).then_some(RenderStep::Watermark);
    scale.into_iter().chain(mark).collect()
}

/// Returns the encoding of a rendition; `None` for the original's own picture data, which is JPEG.
pub(super) fn output(
    name: RenditionName,
    format: ImageFormat,
    steps: &[RenderStep],
    settings: &MediaSettings,
) -> Option<OutputOptions> {
    let media = &settings.media;
    match name.usage {
        RenditionUsage::Preview if name.variant == RenditionVariant::Web => {
            Some(small_output(format, media.web_preview_quality))
        }
        RenditionUsage::Preview => Some(small_output(format, media.preview_quality)),
        RenditionUsage::Thumbnail => Some(small_output(format, media.thumbnail_quality)),
        RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores
            if steps.is_empty() && format == ImageFormat::Jpeg =>
        {
            None
        }
        RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores => {
            // Crops and marks of the Hires retain its profile and colour space (contract media-22).
            Some(OutputOptions {
                format,
                quality: media.hires_quality,
                sampling: OutputSampling::Keep,
                colour: OutputColour::Keep,
                effort: EncodeEffort::Small,
                bytes_max: None,
            })
        }
    }
}

/// Returns the encoding of a small rendition: sRGB without any other profile (contract media-23).
fn small_output(format: ImageFormat, quality: u8) -> OutputOptions {
    OutputOptions {
        format,
        quality,
        sampling: OutputSampling::S420,
        colour: OutputColour::Srgb,
        effort: EncodeEffort::Small,
        bytes_max: None,
    }
}
