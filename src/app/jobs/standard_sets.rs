//! Keeps the standard renditions of every picture: those of archives from before they were kept, those that
//! other settings made out of date, and those that a new item's node had no time for.

use serde::{Deserialize, Serialize};

use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::ClusterLease;
use crate::media::Media;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{STANDARD_SETS_BATCH, STANDARD_SETS_INTERVAL};
use crate::runtime::telemetry;
use crate::storage::database::Db;

/// The name of the progress in the database.
const STATE_KEY: &str = "standard-sets";

/// How far the job has come, in the order of the items' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Progress {
    /// What the settings ask for; other settings begin again.
    recipe: String,
    /// The number of the last item that was looked at.
    at: i64,
}

/// Visits the items in the order of their numbers, which new versions extend, and makes what is missing.
///
/// One node does it at a time. It works while the service is otherwise busy too, because renders yield to
/// requests.
pub(super) struct StandardSetsJob {
    pub(super) media: Media,
    pub(super) db: Db,
}

impl StandardSetsJob {
    /// Makes what item `number` lacks. An original that is missing or damaged is left to `wirephoto check`.
    async fn item(&self, number: i64) -> Result<()> {
        let found = self.db.read(move |tx| tx.files_of_version(number)).await?;
        let Some((key, assets)) = found else { return Ok(()) };
        match self.media.keep_standard(&assets).await {
            Ok(_) => Ok(()),
            // The store or the queue may recover, so the item is visited again.
            Err(cause)
                if matches!(
                    cause.kind(),
                    ErrorKind::Unavailable | ErrorKind::Overloaded | ErrorKind::Timeout
                ) =>
            {
                Err(cause)
            }
            Err(cause) => {
                tracing::warn!(item = %key, "standard renditions cannot be made: {cause}");
                Ok(())
            }
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
        let recipe = self.media.settings().standard_recipe();
        let stored = self.db.read(|tx| tx.find_state(STATE_KEY)).await?;
        let stored = stored.and_then(|text| serde_json::from_str::<Progress>(&text).ok());
        let mut progress = match stored {
            Some(progress) if progress.recipe == recipe => progress,
            Some(_) | None => Progress { recipe, at: 0 },
        };
        let at = progress.at;
        let (last, numbers) = self
            .db
            .read(move |tx| {
                let last = tx.last_version()?;
                Ok((last, tx.list_item_numbers(at, last, STANDARD_SETS_BATCH)?))
            })
            .await?;
        let is_last = numbers.len() < STANDARD_SETS_BATCH;
        for number in numbers {
            self.item(number).await?;
            progress.at = number;
        }
        if is_last {
            progress.at = last;
        }
        let behind = u32::try_from(last - progress.at).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::STANDARD_SETS_BEHIND).set(f64::from(behind));
        if progress.at != at {
            let text = serde_json::to_string(&progress).map_err(Error::internal)?;
            self.db.write(move |tx| tx.write_state(STATE_KEY, &text)).await?;
        }
        Ok(if is_last { RunOutcome::Done } else { RunOutcome::More })
    }

    fn stand_by(&mut self) {
        metrics::gauge!(telemetry::STANDARD_SETS_BEHIND).set(0.0);
    }
}
