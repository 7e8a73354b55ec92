//! The storage of a running server, and the checks that keep it usable.

use super::OpenArchive;
use super::jobs::WatchedFolder;
use super::scrub::OriginalsScrub;
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::{ClusterLease, ClusterNode};
use crate::media::original::OriginalStore;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Result};
use crate::storage::blobs::BlobStore;
use crate::storage::database::Db;
use crate::storage::diagnostics::DiagnosticLog;

/// The storage of a running server.
pub(super) struct ServerStorage {
    pub(super) db: Db,
    pub(super) store: BlobStore,
    pub(super) originals: OriginalStore,
    pub(super) watched: Option<WatchedFolder>,
    /// Ingest errors and slow searches that wait to be written to the database.
    pub(super) diagnostics: DiagnosticLog,
    /// Decides which work this node may do at the moment.
    pub(super) guard: ClusterGuard,
}

impl ServerStorage {
    /// Opens the connections to the database and removes files that a killed process left in the store. If
    /// the store did not answer, its ownership is checked again in the background.
    pub(super) fn open(config: &Config, archive: OpenArchive, node: &ClusterNode) -> Result<Self> {
        let watched = WatchedFolder::open(config, &archive, node)?;
        let OpenArchive { db, originals, diagnostics, memory: _, undetermined_store } = archive;
        let store = originals.store.clone();
        db.open_connections();
        if let Some(check) = undetermined_store {
            check.retry()?;
        }
        store.report();
        let swept = store.sweep().map_err(Error::internal)?;
        if swept > 0 {
            tracing::info!(files = swept, "removed leftovers of interrupted writes");
        }
        let clock = ClockGuard::start(&db, node.name().as_deref());
        let guard = ClusterGuard::new(node.clone(), clock);
        Ok(Self { db, store, originals, watched, diagnostics, guard })
    }

    /// The scrub of the originals, if the settings enable it and this process runs background work.
    pub(super) fn scrub(&self, config: &Config) -> Option<OriginalsScrub> {
        let period = config.store.scrub_days.for_location(&config.store.originals)?;
        let node = self.guard.node();
        if !node.role().runs_background_work() {
            return None;
        }
        // One node scrubs at a time (contract operation-21).
        node.request_lease(ClusterLease::Scrubbing, None);
        Some(OriginalsScrub {
            db: self.db.clone(),
            store: self.store.clone(),
            node: node.clone(),
            period,
        })
    }
}
