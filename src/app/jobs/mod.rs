//! The background jobs of a server.

mod follower;
mod for_operators;
mod matching;
mod standard_sets;
mod watched_folder;

use std::convert::Infallible;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::audit_log::sweep_events;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, JobThread, RunOutcome, sweep};
use crate::distribution::notifications::Notifications;
use crate::distribution::recipients::RECIPIENT_SWEEP_INTERVAL;
use crate::http::{DistributionState, SharedState};
use crate::media::Media;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::ITEM_LOG_RETENTION;
use crate::storage::database::{Db, DbError};
pub(super) use follower::start_follower;
use matching::{start_matcher, start_reader_waker};
use standard_sets::StandardSetsJob;
pub(super) use watched_folder::WatchedFolder;

/// Interval between two removals of one kind of expired data: tokens and sessions, rows of the item log,
/// deliveries, and uploads with the parts that no upload has.
const SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(600);
/// Interval between two checks of the clock, and the longest time after a jump for which a restart would
/// not know of it.
const CLOCK_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Interval at which histogram samples are aggregated; each request takes 24 bytes until then.
const METRICS_UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);
/// Interval between two writes of last uses.
const USES_WRITE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);

/// The dependencies of every job: the runtime, and the guard that decides whether the job may run.
#[derive(Clone, Copy)]
pub(super) struct JobContext<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) guard: &'a ClusterGuard,
}

impl JobContext<'_> {
    /// Runs a job until `stop` becomes true.
    pub(super) fn run_until(
        self,
        stop: watch::Receiver<bool>,
        mut job: impl BackgroundJob + 'static,
    ) {
        let guard = self.guard.clone();
        let run = async move { jobs::run(&mut job, &guard, jobs::stopped(stop)).await };
        // Dropping the handle detaches the task; it ends by itself when `stop` becomes true.
        drop(self.runtime.spawn(run));
    }

    /// Runs a job for as long as the runtime exists, including the drain of in-flight requests.
    pub(super) fn run_until_shutdown(self, mut job: impl BackgroundJob + 'static) {
        let guard = self.guard.clone();
        let run = async move { jobs::run(&mut job, &guard, std::future::pending()).await };
        drop(self.runtime.spawn(run));
    }

    /// Starts the timers and sweeps of this process.
    pub(super) fn start_timers(self, shared: &SharedState, config: &Config) {
        let role = shared.process.node.role();
        self.run_until_shutdown(metrics_upkeep(shared));
        // The jobs below write to the database, which a read-only node must not do.
        if !role.is_read_only() {
            self.run_until_shutdown(check_and_save_clock(&shared.process.db, self.guard));
            let spec = JobSpec::every("session-uses", USES_WRITE_INTERVAL);
            self.run_until_shutdown(jobs::periodic(
                spec,
                &shared.access.auth,
                |auth| async move { auth.write_last_used().await.map(|()| RunOutcome::Done) },
            ));
        }
        if role.runs_background_work() {
            self.start_sweeps(shared, config);
        }
    }

    fn start_sweeps(self, shared: &SharedState, config: &Config) {
        let stopping = &shared.process.stopping;
        let DistributionState { deliveries, recipients, .. } = &shared.distribution;
        let oauth = &shared.access.oauth;
        let pending_uploads = shared.archive.uploads.pending();
        let db = &shared.process.db;
        let account_sweep =
            sweep("sweep-accounts", SWEEP_INTERVAL, oauth, |oauth, now| async move {
                oauth.sweep(now).await
            });
        self.run_until(stopping.subscribe(), account_sweep);
        self.run_until(stopping.subscribe(), sweep_item_log(db));
        let delivery_sweep =
            sweep("sweep-deliveries", SWEEP_INTERVAL, deliveries, |all, now| async move {
                all.sweep(now).await
            });
        self.run_until(stopping.subscribe(), delivery_sweep);
        let recipient_sweep = sweep(
            "sweep-recipients",
            RECIPIENT_SWEEP_INTERVAL,
            recipients,
            |all, now| async move { all.sweep(now).await },
        );
        self.run_until(stopping.subscribe(), recipient_sweep);
        self.run_until(stopping.subscribe(), sweep_events(db, config.audit.retention_days));
        let upload_sweep =
            sweep("sweep-uploads", SWEEP_INTERVAL, pending_uploads, |all, now| async move {
                all.sweep(now).await
            });
        self.run_until(stopping.subscribe(), upload_sweep);
        // The same setting enables the pre-rendering of new items.
        if config.media.warm {
            let job = StandardSetsJob { media: shared.media.clone(), db: db.clone() };
            self.run_until(stopping.subscribe(), job);
        }
    }
}

/// Starts the threads for this node's role; the follower is started separately.
pub(super) fn start_threads(
    notifications: &Notifications,
    watched: Option<WatchedFolder>,
    guard: &ClusterGuard,
) -> Result<Vec<JobThread>> {
    let role = guard.node().role();
    let mut threads = Vec::new();
    if role.runs_background_work() {
        threads.push(start_matcher(notifications, guard)?);
    }
    if role.serves_requests() {
        threads.push(start_reader_waker(notifications, guard)?);
    }
    if let Some(watched) = watched {
        threads.push(JobThread::start(watched, guard)?);
    }
    Ok(threads)
}

/// Aggregates samples of histograms, which otherwise accumulate one by one until the next scrape.
fn metrics_upkeep(shared: &SharedState) -> impl BackgroundJob + use<> {
    let spec = JobSpec::every("metrics-upkeep", METRICS_UPKEEP);
    jobs::periodic(spec, &shared.process.metrics, |metrics| async move {
        metrics.run_upkeep();
        Ok::<_, Infallible>(RunOutcome::Done)
    })
}

/// Checks the clock and saves its state for the next start.
fn check_and_save_clock(db: &Db, guard: &ClusterGuard) -> impl BackgroundJob + use<> {
    let spec = JobSpec::every("clock-note", CLOCK_CHECK_INTERVAL);
    let target = (db.clone(), guard.clone());
    jobs::periodic(spec, &target, |(db, guard)| async move {
        let is_saved = guard.clock().check_and_save(&db).await?;
        Ok::<_, Error>(if is_saved { RunOutcome::Done } else { RunOutcome::Idle })
    })
}

/// Returns whether the work on all other items would fail too, because of the queue or the store.
async fn stops_all(media: &Media, cause: &Error) -> bool {
    // A disk error may concern only one file. If the disk is full or the bucket is down, no item can be
    // completed.
    cause.kind() == ErrorKind::Overloaded
        || (cause.kind() == ErrorKind::Unavailable && !media.can_keep_renditions().await)
}

/// Returns whether a retry of the call would fail too.
fn is_lasting(cause: &DbError) -> bool {
    // A text that is not UTF-8 is reported as an error of the engine.
    cause.is_damage() || matches!(cause, DbError::Engine(cause) if !cause.is_resource())
}

/// Removes rows of the item log that all followers have read.
fn sweep_item_log(db: &Db) -> impl BackgroundJob + use<> {
    sweep("sweep-item-log", SWEEP_INTERVAL, db, |db, now| async move {
        db.write(move |tx| tx.sweep_item_log(now - ITEM_LOG_RETENTION)).await
    })
}
