//! The recipes of a standard set: the pictures that are kept beside an original, and how each is made.

use super::MediaSettings;
use super::plan::{PICTURE_FORMAT, output, scaling_steps};
use imaging::{ImageFormat, OutputColour, OutputOptions, OutputSampling, RenderStep};
use model::item::PictureFile;
use model::{ContentHash, RenditionName};

/// The key of the base in a standard set.
pub(super) const STANDARD_BASE: ContentHash = ContentHash([0; 32]);
/// The long side of the base, in percent of the largest open picture's: scaling down needs more pixels than it
/// yields.
const STANDARD_BASE_PERCENT: u32 = 125;
/// The quality of the base, from which other renditions are encoded once more.
const STANDARD_BASE_QUALITY: u8 = 92;

/// How one picture of a standard set is made.
#[derive(Clone, Debug)]
pub(super) struct PictureRecipe {
    pub(super) key: ContentHash,
    pub(super) step: RenderStep,
    pub(super) output: OutputOptions,
}

/// The recipes of the standard set of `picture`: the standard renditions that may be made from it, and the base.
pub(super) fn standard_recipes(
    picture: &PictureFile,
    settings: &MediaSettings,
) -> Vec<PictureRecipe> {
    let names = [
        RenditionName::NORMAL_PREVIEW,
        RenditionName::WEB_PREVIEW,
        RenditionName::NORMAL_THUMBNAIL,
        RenditionName::CROPPED_THUMBNAIL,
    ];
    let recipe = |name| {
        let steps = scaling_steps(settings.sizes.scaling(name)?, name);
        let output = output(name, ImageFormat::JPEG, &steps, settings)?;
        let step = steps.into_iter().next()?;
        Some(PictureRecipe { key: picture_key(picture, &step, &output), step, output })
    };
    let mut recipes: Vec<PictureRecipe> = names.into_iter().filter_map(recipe).collect();
    let open_px = settings.open_px.max(settings.sizes.preview_px);
    let base_px = open_px.saturating_mul(STANDARD_BASE_PERCENT) / 100;
    let upright = picture.upright();
    // A base that is not much smaller than its original saves nothing.
    if upright.width.max(upright.height) > base_px.saturating_mul(2) {
        let output = OutputOptions {
            format: ImageFormat::JPEG,
            quality: STANDARD_BASE_QUALITY,
            sampling: OutputSampling::Keep,
            colour: OutputColour::Srgb,
            bytes_max: None,
        };
        let step = RenderStep::Fit { long_px: base_px };
        recipes.push(PictureRecipe { key: STANDARD_BASE, step, output });
    }
    recipes
}

/// The hash of everything that determines the picture data of a standard rendition.
pub(super) fn picture_key(
    source: &PictureFile,
    step: &RenderStep,
    output: &OutputOptions,
) -> ContentHash {
    let recipe = serde_json::json!([PICTURE_FORMAT, source.orientation, step, output]);
    ContentHash::of(recipe.to_string().as_bytes())
}
