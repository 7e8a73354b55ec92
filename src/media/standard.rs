//! Makes the standard renditions of an original, from one decode, to be kept beside it.

use tokio::sync::oneshot;

use super::cost;
use super::make::{FullPicture, count_pixels};
use super::original::{StandardPicture, StandardSet};
use super::recipes::StandardRecipes;
use super::{Media, MediaState, render::RenderError};
use crate::runtime::compute::{self, yield_to_waiting};
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use imaging::{
    ImageFormat, Orientation, OutputColour, RasterError, RenderStep, ShouldContinue,
    encode_pixels, standard_pictures,
};
use model::item::{Asset, AssetGroup, PictureFile};

impl Media {
    /// Makes and keeps the standard renditions of `entry`'s picture, unless they are kept already.
    ///
    /// Returns whether something was made. Fails when the original is missing or damaged, when the queue is
    /// full, and when the store does not answer.
    pub async fn keep_standard(&self, assets: &[Asset]) -> Result<bool> {
        let files = AssetGroup::of_item(assets);
        let Some(picture) = files.whole_picture() else { return Ok(false) };
        let recipes = StandardRecipes::of(picture, &self.inner.settings);
        let (inner, source) = (self.inner.clone(), picture.without_rights());
        let has_random_access = self.inner.originals.has_random_access(picture.blob);
        let working = recipes.working_bytes();
        let memory = cost::standard_memory_bytes(picture, working, has_random_access);
        let (sender, receiver) = oneshot::channel();
        let work = move |_: &compute::MemoryLease| {
            // The receiver is gone when the service stops; then the outcome is not needed.
            drop(sender.send(inner.keep_standard(&source, &recipes)));
        };
        self.inner.compute.submit(memory, || true, work).map_err(|_| RenderError::Overloaded)?;
        Ok(receiver.await.map_err(Error::internal)??)
    }
}

impl MediaState {
    fn keep_standard(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
    ) -> Result<bool, RenderError> {
        if self.complete_standard_set(source, recipes)?.is_some() {
            return Ok(false);
        }
        let set = self.make_standard(source, recipes, &|| true)?;
        self.keep(source, &set)?;
        Ok(true)
    }

    /// Reads the standard set of a picture; `None` if there is none with all of `recipes`.
    pub(super) fn complete_standard_set(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
    ) -> Result<Option<StandardSet>, RenderError> {
        let has = |set: &StandardSet, key| set.find(key).is_some();
        let is_complete = |set: &StandardSet| {
            recipes.pictures.iter().all(|recipe| has(set, recipes.key(recipe)))
        };
        Ok(self.originals.standard_set(source.blob)?.filter(is_complete))
    }

    /// Stores a standard set beside the original.
    pub(super) fn keep(&self, source: &PictureFile, set: &StandardSet) -> Result<(), RenderError> {
        self.originals.keep_standard_set(source.blob, set)?;
        metrics::counter!(telemetry::STANDARD_SETS).increment(1);
        Ok(())
    }

    /// Makes a standard set, for as long as `should_continue` returns true.
    pub(super) fn make_standard(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
        should_continue: ShouldContinue<'_>,
    ) -> Result<StandardSet, RenderError> {
        let original = self.originals.open(source.blob, source.length, &compute::run_parallel)?;
        let head = original.head()?;
        let icc = head.header.icc(&head.bytes).value;
        let picture = original.picture(&head)?;
        let full = FullPicture::read(&original, &head, picture.as_ref())?;
        let render_source = imaging::RenderSource {
            format: ImageFormat::JPEG,
            file: &full.jpeg,
            orientation: Orientation::from_tag(u32::from(source.orientation)),
            icc: icc.as_deref(),
            adobe: head.header.adobe_transform.is_some(),
            stored: source.stored,
            shows: source.stored,
            bands: full.bands(should_continue),
        };
        let steps = recipes.pictures.iter().map(|recipe| recipe.step.clone());
        let steps: Vec<RenderStep> = steps.collect();
        let pixels_max = self.settings.limits.pixels_max;
        let made = standard_pictures(&render_source, &steps, OutputColour::Srgb, pixels_max)?;
        count_pixels(made.decoded_pixels);
        if let Some(warning) = &made.warning {
            tracing::warn!(blob = %source.blob, "picture data is damaged: {warning}");
        }
        let pictures = recipes.pictures.iter().zip(made.pictures).map(|(recipe, pixels)| {
            // Requests go first.
            yield_to_waiting();
            let file = encode_pixels(&pixels, &recipe.output)?.into();
            Ok(StandardPicture { key: recipes.key(recipe), size: pixels.size, file })
        });
        let pictures = pictures.collect::<Result<_, RasterError>>()?;
        Ok(StandardSet { pictures })
    }
}
