//! Measures pictures that were stored before ingest computed perceptual hashes, so that a search finds the same
//! picture among them.

use super::{is_lasting, stops_all};
use crate::archive::ingest::{MeasuredPicture, MeasuringProgress, Uploads};
use crate::media::Media;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{MEASURING_BATCH, MEASURING_SPAN};
use crate::runtime::telemetry;
use crate::storage::database::Db;
use model::item::AssetGroup;

/// The part of the job for standard renditions that visits the items without a perceptual hash, in the order of
/// their numbers, once the renditions are made from which the hashes are computed.
pub(super) struct PictureMeasuring {
    pub(super) media: Media,
    pub(super) db: Db,
    pub(super) uploads: Uploads,
}

impl PictureMeasuring {
    /// Measures the pictures of the next items up to the number `through`; returns whether all were visited.
    ///
    /// Fails when the queue is full, and when the database or the store does not answer; what was measured before
    /// that is stored.
    pub(super) async fn measure_next(&self, through: i64) -> Result<bool> {
        let (before, span_end, numbers) = self
            .db
            .read(move |tx| {
                let progress = MeasuringProgress::load(tx)?;
                let span_end = through.min(progress.at.saturating_add(MEASURING_SPAN));
                let numbers = tx.list_unmeasured_items(progress.at, span_end, MEASURING_BATCH)?;
                Ok((progress, span_end, numbers))
            })
            .await?;
        let is_span_listed = numbers.len() < MEASURING_BATCH;
        let (mut progress, mut measured, mut interruption) = (before, Vec::new(), None);
        for number in numbers {
            match self.item(number).await {
                Ok(found) => {
                    progress.at = number;
                    measured.extend(found);
                }
                Err(cause) => {
                    interruption = Some(cause);
                    break;
                }
            }
        }
        if is_span_listed && interruption.is_none() {
            // The items that were not listed have a hash, or no picture.
            progress.at = progress.at.max(span_end);
        }
        if progress != before {
            self.uploads.fill_hashes(progress, measured, clock::now()).await?;
        }
        // The progress may be ahead of a database that was restored from a backup.
        let behind = (through - progress.at).max(0);
        let gauge = u32::try_from(behind).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::PICTURE_HASHES_BEHIND).set(f64::from(gauge));
        interruption.map_or(Ok(behind == 0), Err)
    }

    /// Measures the picture of item `number`; `None` if it has no picture that can be compared.
    ///
    /// What is wrong with one item is logged and does not stop the others.
    async fn item(&self, number: i64) -> Result<Option<MeasuredPicture>> {
        let (key, assets) = match self.db.read(move |tx| tx.files_of_version(number)).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(cause) if is_lasting(&cause) => {
                tracing::warn!(number, "a picture cannot be measured: {cause}");
                return Ok(None);
            }
            Err(cause) => return Err(cause.into()),
        };
        let Some(picture) = AssetGroup::of_item(&assets).whole_picture() else { return Ok(None) };
        match self.media.picture_hash(picture).await {
            Ok(hash) => Ok(hash.map(|hash| MeasuredPicture { key, blob: picture.blob, hash })),
            Err(cause) => {
                if stops_all(&self.media, &cause).await {
                    return Err(cause);
                }
                tracing::warn!(item = %key, "a picture cannot be measured: {cause}");
                Ok(None)
            }
        }
    }

    /// Reports nothing to do, because another node does it.
    pub(super) fn stand_by() {
        metrics::gauge!(telemetry::PICTURE_HASHES_BEHIND).set(0.0);
    }
}
