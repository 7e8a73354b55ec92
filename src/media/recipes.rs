//! The recipes of a standard set: the stored pictures of an original, the steps to make each, and the renditions
//! that are made from them.

use std::slice;

use serde::Serialize;
use serde_json::json;

use super::MediaSettings;
use super::named_rendition::{output, scaling_steps};
use imaging::{
    EncodeEffort, ImageFormat, OutputColour, OutputOptions, OutputSampling, RenderStep,
    scaled_size,
};
use model::item::PictureFile;
use model::{ContentHash, RenditionName, Size};

/// The format of picture data without metadata, as in standard sets; incremented if the same recipe yields different
/// bytes than in an earlier release.
const PICTURE_FORMAT: u32 = 5;
/// The standard renditions that the set contains as they are.
const KEPT: [RenditionName; 4] = [
    RenditionName::NORMAL_PREVIEW,
    RenditionName::WEB_PREVIEW,
    RenditionName::NORMAL_THUMBNAIL,
    RenditionName::CROPPED_THUMBNAIL,
];
/// The long side of the base, in percent of the long side of the largest open picture. Scaling down needs more
/// pixels than it yields.
const STANDARD_BASE_PERCENT: u32 = 125;
/// The quality of the base, from which other renditions are encoded once more.
const STANDARD_BASE_QUALITY: u8 = 92;

/// The steps to make one picture of a standard set.
#[derive(Clone, Debug)]
pub(super) struct PictureRecipe {
    pub(super) step: RenderStep,
    pub(super) output: OutputOptions,
    /// The size to which the step scales the upright picture.
    size: Size,
}

impl PictureRecipe {
    /// Returns the recipe of a rendition without operations; `None` if it is not made by scaling.
    fn for_rendition(
        name: RenditionName,
        upright: Size,
        settings: &MediaSettings,
    ) -> Option<Self> {
        let steps = scaling_steps(settings.sizes.scaling(name)?, name);
        let output = output(name, ImageFormat::Jpeg, &steps, settings)?;
        Self::new(steps.into_iter().next()?, output, upright)
    }

    /// Creates the recipe of a picture that `step` scales; `None` if the step does not scale.
    fn new(step: RenderStep, output: OutputOptions, upright: Size) -> Option<Self> {
        let size = scaled_size(upright, &step)?;
        Some(Self { step, output, size })
    }
}

/// The recipes of the pictures in the standard set of an original.
#[derive(Clone, Debug)]
pub(super) struct StandardRecipes {
    orientation: u8,
    components: u8,
    upright: Size,
    /// The standard renditions that can be made from the original. The base, if there is one, comes last.
    pub(super) pictures: Vec<PictureRecipe>,
    has_base: bool,
}

impl MediaSettings {
    /// Returns a text that changes with every setting that affects the standard renditions of a picture.
    pub fn standard_recipe(&self) -> String {
        let media = &self.media;
        // The text is stored: another text means that every picture is visited again.
        format!(
            "{PICTURE_FORMAT} {:?} hires {} preview {} thumbnail {} web_preview {} open_px {}",
            self.sizes,
            media.hires_quality,
            media.preview_quality,
            media.thumbnail_quality,
            media.web_preview_quality,
            media.open_px
        )
    }
}

/// The use of a picture of a standard set for a rendition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandardUsage {
    /// The picture is the rendition.
    Stored,
    /// The blocks of the picture under the watermark are changed.
    Marked,
    /// The rendition is scaled from the picture, which has this size.
    Scaled(Size),
}

/// The picture of a standard set from which a rendition is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StandardSource {
    /// The key of the picture in the set.
    pub(super) key: ContentHash,
    /// The use of the picture for the rendition. The steps of a plan imply it.
    #[serde(skip)]
    pub(super) usage: StandardUsage,
    /// The memory to make the set, from [`StandardRecipes::working_bytes`].
    #[serde(skip)]
    pub(super) working_bytes: u64,
    /// The estimated length of the set in bytes.
    #[serde(skip)]
    pub(super) set_bytes: u64,
}

impl StandardSource {
    /// Finds the picture in the set of `original` from which the rendition with `steps` and `output` is made;
    /// `None` if the rendition is made from the original.
    pub(super) fn find(
        original: &PictureFile,
        steps: &[RenderStep],
        output: &OutputOptions,
        settings: &MediaSettings,
    ) -> Option<Self> {
        // The set is in sRGB.
        let is_small = output.colour == OutputColour::Srgb;
        is_small
            .then(|| StandardRecipes::for_picture(original, settings).source_of(steps, output))?
    }
}

impl StandardRecipes {
    /// Lists the recipes for `picture`.
    pub(super) fn for_picture(picture: &PictureFile, settings: &MediaSettings) -> Self {
        let upright = picture.upright();
        let mut pictures = Vec::new();
        for name in KEPT {
            pictures.extend(PictureRecipe::for_rendition(name, upright, settings));
        }
        let open_px = settings.media.open_px.max(settings.sizes.preview_px);
        let base_px = open_px.saturating_mul(STANDARD_BASE_PERCENT) / 100;
        // A base that is not much smaller than its original saves nothing.
        let has_base = upright.width.max(upright.height) > base_px.saturating_mul(2);
        if has_base {
            let output = OutputOptions {
                format: ImageFormat::Jpeg,
                quality: STANDARD_BASE_QUALITY,
                sampling: OutputSampling::Keep,
                colour: OutputColour::Srgb,
                effort: EncodeEffort::Small,
                bytes_max: None,
            };
            let step = RenderStep::Fit { long_px: base_px };
            pictures.extend(PictureRecipe::new(step, output, upright));
        }
        let PictureFile { orientation, components, .. } = *picture;
        Self { orientation, components, upright, pictures, has_base }
    }

    /// Returns the key of a picture: the hash of all values, besides the original, that determine its data.
    pub(super) fn key(&self, picture: &PictureRecipe) -> ContentHash {
        let PictureRecipe { step, output, .. } = picture;
        // All pictures are reduced from the largest one. Its size depends on settings that are not part of this
        // recipe.
        let largest = self.largest();
        let recipe = json!([PICTURE_FORMAT, self.orientation, largest, step, output]);
        ContentHash::new(recipe.to_string().as_bytes())
    }

    /// Finds the picture from which the sRGB rendition with `steps` and `output` is made.
    fn source_of(&self, steps: &[RenderStep], output: &OutputOptions) -> Option<StandardSource> {
        let needed = scaled_size(self.upright, steps.first()?)?;
        let (usage, unmarked) = match steps {
            [step, RenderStep::Watermark] => (StandardUsage::Marked, slice::from_ref(step)),
            _ => (StandardUsage::Stored, steps),
        };
        let same = self
            .pictures
            .iter()
            .find(|picture| *unmarked == [picture.step.clone()] && picture.output == *output);
        if let Some(picture) = same {
            return Some(self.source(picture, usage));
        }
        let base = self.pictures.last().filter(|_| self.has_base)?;
        let is_enough = needed.width <= base.size.width && needed.height <= base.size.height;
        is_enough.then(|| self.source(base, StandardUsage::Scaled(base.size)))
    }

    fn source(&self, picture: &PictureRecipe, usage: StandardUsage) -> StandardSource {
        // A JPEG of high quality has less than a byte for each pixel.
        let set_bytes = self.pictures.iter().map(|picture| picture.size.pixels()).sum();
        let working_bytes = self.working_bytes();
        StandardSource { key: self.key(picture), usage, working_bytes, set_bytes }
    }

    /// Returns the peak memory in bytes to make the set, without the memory of an original that is decoded as a
    /// whole. It is the larger of two sums: strips of decoded pixels and the largest picture as linear samples, or
    /// all pictures and an encoder.
    pub(super) fn working_bytes(&self) -> u64 {
        /// Memory of `imaging::standard_pictures` for the strips of any picture.
        const STRIPS: u64 = 100 << 20;
        /// Its memory for each pixel of the largest picture.
        const LARGEST_PIXEL: u64 = 12;
        let samples = self.upright.pixels().saturating_mul(u64::from(self.components));
        let strips = STRIPS.min(samples.saturating_mul(8));
        let largest = self.largest().map_or(0, Size::pixels).saturating_mul(LARGEST_PIXEL);
        let pixels = self.pictures.iter().map(|picture| picture.size.pixels() * 3).sum::<u64>();
        let encoders = self.pictures.iter().map(|PictureRecipe { output, size, .. }| {
            output.format.encoder_bytes(size.pixels(), output.sampling)
        });
        let encoding = pixels.saturating_add(encoders.max().unwrap_or(0));
        strips.saturating_add(largest).max(encoding)
    }

    /// Returns the size of the largest picture.
    fn largest(&self) -> Option<Size> {
        self.pictures.iter().map(|picture| picture.size).max_by_key(|size| size.pixels())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::plan::PlannedRendition;
    use crate::media::test_plans::{picture, plan_of, settings};

    const LARGE: (u32, u32) = (6000, 4000);

    fn planned(size: (u32, u32), rest: &str, changed: &[(&str, &str)]) -> PlannedRendition {
        plan_of(&picture(size.0, size.1), rest, &settings(changed)).expect(rest)
    }

    #[test]
    fn small_renditions_are_made_from_the_set_where_it_has_their_pixels() {
        let check = |size, rest: &str, expected: Option<StandardUsage>| {
            let found = planned(size, rest, &[]).plan.standard.map(|standard| standard.usage);
            assert_eq!(found, expected, "{rest} of {size:?}");
        };
        let base = Some(StandardUsage::Scaled(Size::new(1280, 853)));
        for rest in
            ["_NormalPreview", "_WebPreview", "_CroppedThumbnail", "-fit_w1024_NormalPreview"]
        {
            check(LARGE, &format!("{rest}.jpg"), Some(StandardUsage::Stored));
            check((1500, 1000), &format!("{rest}.jpg"), Some(StandardUsage::Stored));
        }
        for rest in [
            "_WatermarkPreview",
            "_WatermarkThumbnail",
            "-watermark_NormalPreview",
            "-watermark_WebPreview",
            "-watermark_CroppedThumbnail",
            "-fit_w1024_WatermarkPreview",
        ] {
            check(LARGE, &format!("{rest}.jpg"), Some(StandardUsage::Marked));
            check((1500, 1000), &format!("{rest}.jpg"), Some(StandardUsage::Marked));
        }
        for rest in [
            "-fit_w640_NormalPreview.jpg",
            "-crop_w600_h400_NormalPreview.jpg",
            "-crop_w9_h9_x9_y9-fit_w9_NormalThumbnail.webp",
            "-fit_w640_WatermarkPreview.jpg",
            "_WatermarkPreview.webp",
            "_NormalPreview.avif",
        ] {
            check(LARGE, rest, base);
            check((1500, 1000), rest, None);
        }
        for rest in [".jpg", "-fit_w640.jpg", "-crop_w64_h64.webp"] {
            check(LARGE, rest, None);
        }
    }

    #[test]
    fn a_setting_that_changes_the_pictures_of_a_set_changes_what_is_made_from_them() {
        let key = |rest: &str, changed: &[(&str, &str)]| planned(LARGE, rest, changed).key;
        let changes: [(&str, &str); 3] = [
            ("media.open_px", "1200"),
            ("media.preview_px", "1100"),
            ("media.web_preview_px", "1800"),
        ];
        // The largest picture of the set decides about the thumbnail too.
        for rest in
            ["-fit_w640_NormalPreview.jpg", "_NormalThumbnail.jpg", "_WatermarkThumbnail.webp"]
        {
            for change in changes {
                assert_ne!(key(rest, &[]), key(rest, &[change]), "{rest} {change:?}");
            }
            assert_eq!(key(rest, &[]), key(rest, &[("media.web_preview_px", "400")]), "{rest}");
        }
        for change in changes {
            assert_eq!(key("-fit_w640.jpg", &[]), key("-fit_w640.jpg", &[change]), "{change:?}");
        }
    }

    #[test]
    fn the_pictures_of_a_set_have_keys_of_their_own() {
        let recipes = StandardRecipes::for_picture(&picture(6000, 4000), &settings(&[]));
        let keys = recipes.pictures.iter().map(|picture| recipes.key(picture));
        let keys: std::collections::BTreeSet<[u8; 32]> = keys.map(|key| key.0).collect();
        assert_eq!((keys.len(), recipes.has_base), (5, true));
    }

    #[test]
    fn making_a_set_takes_memory_for_its_largest_picture() {
        let working = |changed: &[(&str, &str)]| {
            StandardRecipes::for_picture(&picture(12_000, 8000), &settings(changed))
                .working_bytes()
        };
        assert_eq!(working(&[]), (100 << 20) + 1280 * 853 * 12);
        // The base of an open picture of 4000 pixels has 5000.
        assert_eq!(working(&[("media.open_px", "4000")]), (100 << 20) + 5000 * 3333 * 12);
        // Encoding a large WebPreview takes more than reducing it.
        let large = 8000 * 5333;
        assert!(working(&[("media.web_preview_px", "8000")]) > large * 60);
    }
}
