//! Starts the sender of cache purges to CDNs.

use std::time::Duration;

use tokio::{runtime::Runtime, sync::watch, task::JoinHandle};

use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::ClusterLease;
use crate::distribution::cdn::CdnPurgers;
use crate::http::AppState;
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::storage::database::Db;

/// The sender of cache purges, before it is started.
pub(super) struct PurgeStarter {
    cdn: Option<CdnPurgers>,
    followed: watch::Receiver<i64>,
}

impl PurgeStarter {
    /// Opens the sender according to the settings. Also returns the channel for the row of the item log up to
    /// which this process serves no outdated versions.
    pub(super) fn open(
        config: &Config,
        db: &Db,
        guard: &ClusterGuard,
    ) -> Result<(Self, watch::Sender<i64>)> {
        // The caches start empty, so earlier writes need no purge; the follower publishes its start position
        // in its first run.
        let (sender, followed) = watch::channel(0);
        if !guard.node().role().runs_background_work() {
            return Ok((Self { cdn: None, followed }, sender));
        }
        let cdn = CdnPurgers::open(&config.cdn, db, guard)?;
        if cdn.is_none() {
            // Leave the lease to a node whose settings configure a CDN.
            guard.node().decline_lease(ClusterLease::Purging);
        }
        Ok((Self { cdn, followed }, sender))
    }

    /// Starts a task that sends purges until the service stops; returns `None` if no CDN is configured.
    pub(super) fn start(
        self,
        runtime: &Runtime,
        app: &AppState,
        drain: Duration,
    ) -> Option<JoinHandle<()>> {
        let Self { cdn, followed } = self;
        let stop = app.shared.process.stopping.subscribe();
        Some(runtime.spawn(cdn?.run(followed, stop, drain)))
    }
}
