//! What has to do with a CDN: how long it keeps what, and who tells it of changes.

use std::time::Duration;

use tokio::{runtime::Runtime, sync::watch, task::JoinHandle};

use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::ClusterLease;
use crate::distribution::cdn::CdnPurgers;
use crate::http::AppState;
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::storage::database::Db;

/// `Cache-Control` of open renditions.
pub(super) fn open_policy(config: &Config) -> String {
    let shared = match config.cdn.max_age_s {
        0 => String::new(),
        seconds => format!(", s-maxage={seconds}"),
    };
    format!(
        "public, max-age={}{shared}, stale-while-revalidate={}",
        config.media.max_age_s, config.media.stale_while_revalidate_s
    )
}

/// Whoever tells a CDN of changes, before it begins.
pub(super) struct PurgeStarter {
    cdn: Option<CdnPurgers>,
    followed: watch::Receiver<i64>,
}

impl PurgeStarter {
    /// What the settings say, and where to say up to which row of the item log nobody is given old
    /// versions by this process any more.
    pub(super) fn of(
        config: &Config,
        db: &Db,
        guard: &ClusterGuard,
    ) -> Result<(Self, watch::Sender<i64>)> {
        // What was written before this process began is in none of its caches; its follower says
        // with its first look how far that is.
        let (sender, followed) = watch::channel(0);
        if !guard.node().role().runs_background_work() {
            return Ok((Self { cdn: None, followed }, sender));
        }
        let cdn = CdnPurgers::open(&config.cdn, db, guard)?;
        if cdn.is_none() {
            // A node with settings that name an address tells it.
            guard.node().decline_lease(ClusterLease::Purging);
        }
        Ok((Self { cdn, followed }, sender))
    }

    /// Tells until the service stops, if there is somebody to tell.
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
