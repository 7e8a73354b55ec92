//! Reads the rights in originals that were stored before rights were read, so that their renditions carry
//! them.

use crate::archive::ingest::{RightsReadingRun, Uploads};
use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::ClusterLease;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::RIGHTS_READING_INTERVAL;
use crate::runtime::telemetry;

/// Visits the items in the order of their numbers and fills their records. One node does it at a time.
pub(super) struct RightsReadingJob {
    pub(super) uploads: Uploads,
}

impl BackgroundJob for RightsReadingJob {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("read-rights", RIGHTS_READING_INTERVAL).on_holder_of(ClusterLease::Sweeping)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        let run = self.uploads.read_stored_rights(clock::now()).await?;
        let RightsReadingRun { progress, last, is_complete } = run;
        // The progress may be ahead of a database that was restored from a backup.
        let behind = u32::try_from((last - progress.at).max(0)).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::RIGHTS_BEHIND).set(f64::from(behind));
        Ok(if is_complete { RunOutcome::Done } else { RunOutcome::More })
    }

    fn stand_by(&mut self) {
        metrics::gauge!(telemetry::RIGHTS_BEHIND).set(0.0);
    }
}
