//! Makes the standard renditions of an original, from one decode, to be kept beside it.

use tokio::sync::oneshot;

use super::make::FullPicture;
use super::original::{StandardPicture, StandardSet};
use super::plan::{self, PictureRecipe};
use super::{Media, MediaState, render::RenderError};
use crate::runtime::compute::{self, yield_to_waiting};
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use imaging::{
    ImageFormat, Orientation, OutputColour, RasterError, RenderStep, encode_pixels,
    standard_pictures,
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
        let recipes = plan::standard_recipes(files, picture, &self.inner.settings);
        let (inner, source) = (self.inner.clone(), picture.without_rights());
        let memory = plan::standard_memory_bytes(picture);
        let (sender, receiver) = oneshot::channel();
        let work = move |_: &compute::MemoryLease| {
            // The receiver is gone when the service stops; then nobody needs the outcome.
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
        recipes: &[PictureRecipe],
    ) -> Result<bool, RenderError> {
        let kept = self.originals.standard_set(source.blob)?;
        let is_complete =
            |set: &StandardSet| recipes.iter().all(|recipe| set.find(recipe.key).is_some());
        if kept.as_ref().is_some_and(is_complete) {
            return Ok(false);
        }
        let set = self.make_standard(source, recipes)?;
        self.originals.keep_standard_set(source.blob, &set)?;
        metrics::counter!(telemetry::STANDARD_SETS).increment(1);
        Ok(true)
    }

    fn make_standard(
        &self,
        source: &PictureFile,
        recipes: &[PictureRecipe],
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
            bands: full.bands(&|| true),
        };
        let steps: Vec<RenderStep> = recipes.iter().map(|recipe| recipe.step.clone()).collect();
        let pixels_max = self.settings.limits.pixels_max;
        let made = standard_pictures(&render_source, &steps, OutputColour::Srgb, pixels_max)?;
        let pictures = recipes.iter().zip(made.pictures).map(|(recipe, pixels)| {
            // Requests go first.
            yield_to_waiting();
            let file = encode_pixels(&pixels, &recipe.output)?.into();
            Ok(StandardPicture { key: recipe.key, size: pixels.size, file })
        });
        let pictures = pictures.collect::<Result<_, RasterError>>()?;
        Ok(StandardSet { pictures })
    }
}
