//! Measures pictures that have no perceptual hash: those that were stored before ingest computed one.
//!
//! The hash is computed from the kept standard renditions, so that no original is read for it. Reducing a picture
//! to its Preview and saving it changes up to three bits of the hash, as measured with photographs of several
//! colour spaces. Search takes pictures for the same up to six bits, so that it finds a picture also where
//! ingest measured one of the two and this module the other.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::cost;
use super::inputs::WholePicture;
use super::make::UPRIGHT;
use super::original::picture_hash;
use super::recipes::StandardRecipes;
use super::{Media, MediaState, render::RenderError};
use crate::runtime::compute::{self, MemoryLease};
use crate::runtime::error::Result;
use model::PictureHash;
use model::item::PictureFile;

/// The number of components of a picture in inks.
const INKS: u8 = 4;

impl Media {
    /// Computes the perceptual hash of `picture`, whose standard renditions are kept; `None` if they are not, or
    /// if it is tiny or has nearly no contrast.
    ///
    /// Fails when the queue is full and when the store does not answer, and for a picture in inks also when its
    /// original is missing or damaged.
    pub async fn picture_hash(&self, picture: &PictureFile) -> Result<Option<PictureHash>> {
        let (inner, source) = (Arc::clone(&self.inner), picture.without_rights());
        let recipes = StandardRecipes::of(&source, &inner.settings);
        let has_random_access = inner.originals.has_random_access(source.blob);
        // More than a kept rendition takes: what the original of a picture in inks may take.
        let memory =
            cost::standard_memory_bytes(&source, recipes.working_bytes(), has_random_access);
        let (outcome, receiver) = oneshot::channel();
        let work = move |_: &MemoryLease| {
            // The receiver is gone when the service stops; then the outcome is not needed.
            drop(outcome.send(inner.measure(&source, &recipes)));
        };
        if let Err(full) = self.inner.compute.submit(None, memory, || true, work) {
            return Err(RenderError::Overloaded(full).into());
        }
        Ok(receiver.await.unwrap_or(Err(RenderError::Panicked))?)
    }
}

impl MediaState {
    fn measure(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
    ) -> Result<Option<PictureHash>, RenderError> {
        // Ingest measures inks as they are stored. In sRGB they would differ in up to eleven bits.
        if source.components == INKS {
            return self.measure_original(source);
        }
        let Some(set) = self.complete_standard_set(source, recipes)? else { return Ok(None) };
        let kept = recipes.whole().and_then(|recipe| set.find(recipes.key(recipe)));
        Ok(kept.and_then(|kept| picture_hash::of_jpeg(&kept.file, kept.size, UPRIGHT)))
    }

    fn measure_original(&self, source: &PictureFile) -> Result<Option<PictureHash>, RenderError> {
        let original = self.originals.open(source.blob, source.length, &compute::run_parallel)?;
        let WholePicture { jpeg, .. } = WholePicture::read(&original)?;
        Ok(picture_hash::of_jpeg(&jpeg, source.stored, source.orientation))
    }
}
