//! Makes the standard renditions that are missing, because settings changed or because the node that received
//! a new item had no time to make them.

use super::{is_lasting, stops_all};
use crate::app::standard_progress::StandardProgress;
use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::ClusterLease;
use crate::media::Media;
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use crate::storage::database::Db;

/// Items whose standard renditions are looked at in one run of the job, after which its progress is stored.
const STANDARD_SETS_BATCH: usize = 16;
/// Time between two looks for pictures whose standard renditions are not kept yet.
const STANDARD_SETS_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);

/// Visits the items in the order of their numbers and makes missing standard renditions. A new version has a
/// higher number, so it is visited too.
///
/// One node runs this job at a time. It also runs while the service is busy, because its renders yield to
/// requests.
pub(super) struct StandardSetsJob {
    pub(super) media: Media,
    pub(super) db: Db,
}

/// The outcome of a visit to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemOutcome {
    /// The standard renditions are stored, or the item has no picture.
    Complete,
    /// The standard renditions cannot be made, now or at all.
    Failed,
}

impl StandardSetsJob {
    /// Makes the missing standard renditions of item `number`.
    ///
    /// A problem with one item is logged and does not stop the others: `wirephoto check` reports it, and a
    /// request makes the renditions once they can be made again. Fails if the queue is full, the database or
    /// the store does not answer, or the disk has no room (contract reliability-18).
    async fn item(&self, number: i64) -> Result<ItemOutcome> {
        let (key, assets) = match self.db.read(move |tx| tx.files_of_version(number)).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(ItemOutcome::Complete),
            Err(cause) if is_lasting(&cause) => {
                tracing::warn!(number, "standard renditions cannot be made: {cause}");
                return Ok(ItemOutcome::Failed);
            }
            Err(cause) => return Err(cause.into()),
        };
        match self.media.keep_standard(&assets).await {
            Ok(_) => Ok(ItemOutcome::Complete),
            Err(cause) => {
                if stops_all(&self.media, &cause).await {
                    return Err(cause);
                }
                tracing::warn!(item = %key, "standard renditions cannot be made: {cause}");
                Ok(ItemOutcome::Failed)
            }
        }
    }

    async fn save(&self, progress: &StandardProgress) -> Result<()> {
        let progress = progress.clone();
        Ok(self.db.write(move |tx| progress.save(tx)).await?)
    }

    /// Makes the missing renditions of the next items; returns whether all items were visited.
    async fn make_next(&self) -> Result<bool> {
        let recipe = self.media.settings().standard_recipe();
        let (before, last, numbers) = self
            .db
            .read(move |tx| {
                let progress = StandardProgress::load(tx, recipe)?;
                let last = tx.last_version()?;
                let numbers = tx.list_item_numbers(progress.at, last, STANDARD_SETS_BATCH)?;
                Ok((progress, last, numbers))
            })
            .await?;
        let is_last = numbers.len() < STANDARD_SETS_BATCH;
        let mut progress = before.clone();
        let mut interruption = None;
        for number in numbers {
            match self.item(number).await {
                Ok(outcome) => {
                    progress.at = number;
                    progress.failed += u64::from(outcome == ItemOutcome::Failed);
                }
                Err(cause) => {
                    interruption = Some(cause);
                    break;
                }
            }
        }
        if is_last && interruption.is_none() {
            progress.at = last;
        }
        let behind = u32::try_from(last - progress.at).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::STANDARD_SETS_BEHIND).set(f64::from(behind));
        // Progress before an interruption is saved too, so that the next run begins at the item that failed.
        let saved = if progress == before { Ok(()) } else { self.save(&progress).await };
        match interruption {
            Some(cause) => Err(cause),
            None => saved.map(|()| is_last),
        }
    }
}

impl BackgroundJob for StandardSetsJob {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("standard-renditions", STANDARD_SETS_INTERVAL)
            .on_holder_of(ClusterLease::Sweeping)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        Ok(if self.make_next().await? { RunOutcome::Done } else { RunOutcome::More })
    }

    fn stand_by(&mut self) {
        metrics::gauge!(telemetry::STANDARD_SETS_BEHIND).set(0.0);
    }
}
