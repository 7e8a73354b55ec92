//! The job that ingests files from the watched folder of the settings.

use std::{io, path::Path, time::Duration};

use crate::app::OpenArchive;
use crate::archive::ingest::folder_watch::{FolderWatch, ScanContext};
use crate::cluster::jobs::{BlockingJob, JobSpec, RunOutcome, StopSignal};
use crate::cluster::membership::{ClusterLease, ClusterNode};
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};

/// The watched folder with its polling interval.
pub(in crate::app) struct WatchedFolder {
    watch: FolderWatch,
    interval: Duration,
}

impl WatchedFolder {
    /// Opens the folder of the settings, if there is one and this process runs background work.
    ///
    /// Fails if the folder cannot be used.
    pub(in crate::app) fn open(
        config: &Config,
        archive: &OpenArchive,
        node: &ClusterNode,
    ) -> Result<Option<Self>> {
        let dir = &config.ingest.watch;
        if dir.as_os_str().is_empty() || !node.role().runs_background_work() {
            return Ok(None);
        }
        let ingest = archive.ingest(config)?.for_server();
        let watch = FolderWatch::open(dir, ingest, config.ingest_workers())
            .map_err(|cause| unusable(dir, cause))?;
        let name = watch.name().map_err(|cause| unusable(dir, cause))?.to_string();
        // Nodes may watch different folders, so the lease carries the name of the folder.
        node.request_lease(ClusterLease::Watching, Some(&name));
        let interval = Duration::from_millis(u64::from(config.ingest.watch_interval_ms));
        Ok(Some(Self { watch, interval }))
    }
}

fn unusable(dir: &Path, cause: io::Error) -> Error {
    let message = format!("ingest.watch: folder {} cannot be used", dir.display());
    Error::new(ErrorKind::Unavailable, message).with_source(cause)
}

impl BlockingJob for WatchedFolder {
    type Error = io::Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("watch-folder", self.interval).on_holder_of(ClusterLease::Watching)
    }

    fn run(&mut self, stop: &StopSignal) -> io::Result<RunOutcome> {
        self.watch.scan(&ScanContext { now: &clock::now, stops: &|| stop.is_set() })?;
        Ok(RunOutcome::Done)
    }
}
