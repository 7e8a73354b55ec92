//! Makes the standard renditions of an original, from one decode, and stores them beside it.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::inputs::{ReadMemory, WholePicture};
use super::make::{FullPicture, count_pixels};
use super::original::{StandardPicture, StandardSet};
use super::recipes::StandardRecipes;
use super::sets_in_flight::SetAdmission;
use super::{Media, MediaState, cost, render_error::RenderError};
use crate::runtime::compute::{self, yield_to_waiting};
use crate::runtime::error::Result;
use crate::runtime::fair_queue::QueueFull;
use crate::runtime::telemetry;
use imaging::{
    ImageFormat, Orientation, OutputColour, RasterError, RenderStep, ShouldContinue,
    encode_pixels, standard_pictures,
};
use model::item::{Asset, AssetGroup, PictureFile};

impl Media {
    /// Makes and stores the standard renditions of the whole picture in `assets`, unless they are stored already.
    ///
    /// Returns whether any were made. Fails if the original is missing or damaged, if the queue is full, and if
    /// the store does not answer.
    pub async fn keep_standard(&self, assets: &[Asset]) -> Result<bool> {
        let files = AssetGroup::of_item(assets);
        let Some(picture) = files.whole_picture() else { return Ok(false) };
        let recipes = StandardRecipes::for_picture(picture, &self.inner.settings);
        let inner = Arc::clone(&self.inner);
        let source = picture.without_rights();
        let permit = inner.store_reads.admit(None, source.length).await;
        let permit = permit.map_err(RenderError::Overloaded)?;
        let media = Arc::clone(&inner);
        let original = source.clone();
        let needed = recipes.clone();
        let read = tokio::task::spawn_blocking(move || media.read_unkept(&original, &needed));
        let read = read.await.unwrap_or(Err(RenderError::Panicked))?;
        let Some(UnkeptPicture { picture }) = read else { return Ok(false) };
        let memory = permit.end_turn();
        let (outcome, mut receiver) = mpsc::channel(1);
        KeepJob { inner, source, recipes, picture, memory, outcome }.submit();
        Ok(receiver.recv().await.unwrap_or(Err(RenderError::Panicked))?)
    }
}

/// A job that makes the standard set of an original before a request needs it.
struct KeepJob {
    inner: Arc<MediaState>,
    source: PictureFile,
    recipes: StandardRecipes,
    /// The picture of the original; `None` if the worker has to read it.
    picture: Option<WholePicture>,
    #[expect(dead_code, reason = "dropping it frees the memory of the picture")]
    memory: ReadMemory,
    outcome: mpsc::Sender<Result<bool, RenderError>>,
}

/// A picture whose standard set is not stored.
struct UnkeptPicture {
    /// The picture as it was read; `None` if derived files have to be rebuilt first.
    picture: Option<WholePicture>,
}

impl KeepJob {
    fn submit(self) {
        let has_random_access = self.inner.originals.has_random_access(self.source.blob);
        let working = self.recipes.working_bytes();
        let memory = cost::standard_memory_bytes(&self.source, working, has_random_access);
        let compute = self.inner.compute.clone();
        let outcome = self.outcome.clone();
        if let Err(full) = compute.submit(None, memory, || true, move |_| self.run()) {
            report(&outcome, Err(RenderError::Overloaded(full)));
        }
    }

    /// Makes the set, unless a different job is making it. In that case, the job runs again afterwards and looks
    /// for the set.
    fn run(self) {
        let sets = self.inner.sets_in_flight.clone();
        let original = self.source.blob;
        match sets.admit(original, self, Self::submit) {
            SetAdmission::Admitted(job, claim) => {
                let Self { inner, source, recipes, picture, outcome, .. } = job;
                // Without a claim, a different job has made the set in the meantime.
                let is_made = claim.is_none();
                report(&outcome, inner.keep_standard(&source, &recipes, picture, is_made));
            }
            SetAdmission::Waiting => {}
            SetAdmission::Refused(job) => {
                report(&job.outcome, Err(RenderError::Overloaded(QueueFull::AllPlaces)));
            }
        }
    }
}

fn report(sender: &mpsc::Sender<Result<bool, RenderError>>, outcome: Result<bool, RenderError>) {
    // The receiver is gone if the service is stopping. The outcome is not needed then.
    drop(sender.try_send(outcome));
}

impl MediaState {
    fn keep_standard(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
        picture: Option<WholePicture>,
        is_made: bool,
    ) -> Result<bool, RenderError> {
        if is_made && self.complete_standard_set(source, recipes)?.is_some() {
            return Ok(false);
        }
        let set = self.make_standard(source, recipes, picture, &|| true)?;
        self.keep(source, &set)?;
        Ok(true)
    }

    /// Reads a picture whose standard set is not stored; `None` if it is stored.
    fn read_unkept(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
    ) -> Result<Option<UnkeptPicture>, RenderError> {
        if self.complete_standard_set(source, recipes)?.is_some() {
            return Ok(None);
        }
        let original = self.originals.open_derived(source.blob, source.length)?;
        match original.as_ref().map(WholePicture::read).transpose() {
            // The worker rebuilds damaged files.
            Err(cause) if cause.is_derived() => Ok(Some(UnkeptPicture { picture: None })),
            picture => Ok(Some(UnkeptPicture { picture: picture? })),
        }
    }

    /// Reads the standard set of a picture; `None` if no set has the pictures of all `recipes`.
    pub(super) fn complete_standard_set(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
    ) -> Result<Option<StandardSet>, RenderError> {
        let set = self.originals.standard_set(source.blob)?.filter(|set| {
            recipes.pictures.iter().all(|recipe| set.find(recipes.key(recipe)).is_some())
        });
        if set.is_some() {
            self.sets_in_flight.release(source.blob);
        }
        Ok(set)
    }

    /// Stores a standard set beside the original.
    pub(super) fn keep(&self, source: &PictureFile, set: &StandardSet) -> Result<(), RenderError> {
        let kept = self.originals.keep_standard_set(source.blob, set);
        // Without space each job makes a set of its own. Waiting for each other would only delay them.
        self.sets_in_flight.release(source.blob);
        kept?;
        metrics::counter!(telemetry::STANDARD_SETS).increment(1);
        Ok(())
    }

    /// Makes a standard set from its picture, for as long as `should_continue` returns true. Reads the picture if
    /// it is `None`.
    pub(super) fn make_standard(
        &self,
        source: &PictureFile,
        recipes: &StandardRecipes,
        picture: Option<WholePicture>,
        should_continue: ShouldContinue<'_>,
    ) -> Result<StandardSet, RenderError> {
        let WholePicture { head, picture, jpeg } = match picture {
            Some(picture) => picture,
            None => {
                let original =
                    self.originals.open(source.blob, source.length, &compute::run_parallel)?;
                WholePicture::read(&original)?
            }
        };
        let icc = head.header.icc(&head.bytes);
        let full = FullPicture::new(jpeg, &head, picture.as_ref());
        let render_source = imaging::RenderSource {
            format: ImageFormat::Jpeg,
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
            // Waiting requests run first.
            yield_to_waiting();
            let file = encode_pixels(&pixels, &recipe.output)?.into();
            Ok(StandardPicture { key: recipes.key(recipe), size: pixels.size, file })
        });
        let pictures = pictures.collect::<Result<_, RasterError>>()?;
        Ok(StandardSet { pictures })
    }
}
