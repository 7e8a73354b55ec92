//! Sends cache purges to the configured CDNs, by the cache keys in media responses.
//!
//! A change is purged only when every node of the cluster has read it from the item log. If a CDN were purged
//! earlier, it could fetch the old version again from a lagging node. Only the node with the lease
//! [`crate::cluster::membership::ClusterLease::Purging`] purges; a transaction of a node that lost the lease
//! changes nothing. Keys are queued in the database until the CDN accepts them, so neither a restart nor a kill
//! loses any. Purges are idempotent, so a repetition is harmless. Each endpoint has its own queue, so an endpoint
//! that is down does not delay the others. Keys that could not be purged within the retention of the item log are
//! given up: by then, caches have expired them.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::{self, BackgroundJob, JobSpec, RunOutcome};
use crate::cluster::membership::{ClusterLease as Work, limits::FOLLOWED_POLL_INTERVAL};
use crate::media::cache_keys::{EVERYTHING, key_of};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{ITEM_LOG_RETENTION, PURGE_LOG_ROWS, PURGES_QUEUED_MAX};
use crate::runtime::{config, telemetry};
use crate::storage::database::{Db, DbResult, PendingPurge, PurgeBacklog, WriteTx};
use crate::transport::{CachePurger, PurgeError, PurgeResult};
use model::{Backoff, ItemKey, RetryPolicy};

/// Poll interval for keys that the command `purge` wrote.
const PURGE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before the first retry of a failed purge call; doubles with each retry.
const PURGE_RETRY_FIRST: Duration = Duration::from_millis(500);
/// Maximum delay between two attempts of a purge call.
const PURGE_RETRY_MAX: Duration = Duration::from_secs(60);
/// Delay before a refused key is purged again. Either the CDN cannot accept the key, or a setting is
/// wrong and the operator corrects it.
const PURGE_REFUSED_DELAY: Duration = Duration::from_secs(600);
/// Bytes of the keys in one call: a header of 8 KiB is the most that common servers read.
const PURGE_KEYS_BYTES_MAX: usize = 4096;
/// The backoff after a failed purge.
const PURGE_RETRIES: RetryPolicy =
    RetryPolicy::without_deadline(PURGE_RETRY_FIRST, PURGE_RETRY_MAX);

/// The purge endpoints in the settings.
pub struct CdnPurgers {
    endpoints: Vec<CdnEndpoint>,
}

/// One purge endpoint with its queue in the database.
struct CdnEndpoint {
    db: Db,
    purger: CachePurger,
    /// The key of the endpoint's queue and of its position in the item log.
    name: String,
    /// The position in the setting, from 1; names the endpoint in metrics and logs.
    number: usize,
    keys_max: usize,
    retry_interval: Duration,
    guard: ClusterGuard,
}

/// The result of one run of the purge job.
struct PurgeRun {
    /// True if more work may be due immediately.
    more: bool,
    /// The outcome of a call, which failed if the CDN accepted none of the keys; `None` if nothing was due, or the
    /// endpoint is backing off.
    outcome: Option<Result<(), PurgeError>>,
    /// The longest time until the next run.
    idle: Duration,
}

/// The backoff of an endpoint after failed purges.
struct PurgeBackoff {
    backoff: Backoff,
    /// The current wait and its start; `None` while the endpoint works.
    until: Option<(Duration, Stopwatch)>,
}

impl PurgeBackoff {
    const fn new() -> Self {
        Self { backoff: Backoff::new(PURGE_RETRIES), until: None }
    }

    /// Returns the time until the next attempt; zero if the endpoint may be called.
    fn remaining(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |(wait, since)| wait.saturating_sub(since.elapsed()))
    }

    /// Backs off after a failed purge of the endpoint with the number `address`.
    fn begin(&mut self, address: usize, cause: &PurgeError) {
        let wait = self.backoff.fail();
        self.until = Some((wait, Stopwatch::start()));
        let tries = self.backoff.failures();
        let s = wait.as_secs_f64();
        tracing::warn!(address, tries, retry_s = s, "CDN purge failed, retrying: {cause}");
    }
}

impl CdnPurgers {
    /// Opens the endpoints in the settings; `None` if there are none. Blocks.
    ///
    /// A new endpoint starts at the end of the item log. Fails if a setting is invalid.
    pub fn open(settings: &config::Cdn, db: &Db, guard: &ClusterGuard) -> Result<Option<Self>> {
        let purgers = CachePurger::from_settings(settings)?;
        let names: Vec<String> = purgers.iter().map(CachePurger::name).collect();
        // Needed even without endpoints: a removed endpoint must not retain rows of the item log.
        if !names.is_empty() || !db.read_blocking(|tx| tx.purging_endpoints())?.is_empty() {
            let names = names.clone();
            let incarnation = guard.node().incarnation();
            db.write_blocking(move |tx| {
                let mut others = tx.list_nodes()?.into_iter();
                // A different node may still have an endpoint in its configuration.
                if names.is_empty() && others.any(|other| other.incarnation != incarnation) {
                    return Ok(());
                }
                tx.start_purging(&names, key_of)
            })?;
        }
        if names.is_empty() {
            return Ok(None);
        }
        let mut endpoints = Vec::with_capacity(purgers.len());
        for ((purger, name), number) in purgers.into_iter().zip(names).zip(1..) {
            let endpoint = CdnEndpoint {
                db: db.clone(),
                purger,
                name,
                number,
                keys_max: settings.purge_keys_max,
                retry_interval: Duration::from_secs(u64::from(settings.purge_again_s)),
                guard: guard.clone(),
            };
            // Initialize the series at zero, because an alert does not see the first event of a new series.
            endpoint.count_keys("refused", 0);
            endpoint.count_keys("given_up", 0);
            endpoints.push(endpoint);
        }
        Ok(Some(Self { endpoints }))
    }

    /// Purges until `stop` turns true. Calls in flight then have the time `drain` to finish. `followed` is the row
    /// of the item log up to which this process no longer serves old versions.
    pub async fn run(
        self,
        followed: watch::Receiver<i64>,
        stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let endpoints = self.endpoints.into_iter();
        join_all(endpoints.map(|endpoint| endpoint.run(followed.clone(), stop.clone(), drain)))
            .await;
    }
}

/// The background job that purges one endpoint.
struct PurgeJob<'a> {
    endpoint: &'a CdnEndpoint,
    followed: watch::Receiver<i64>,
    backoff: PurgeBackoff,
}

impl BackgroundJob for PurgeJob<'_> {
    type Error = Error;

    fn spec(&self) -> JobSpec {
        JobSpec::every("cdn-purge", PURGE_POLL_INTERVAL).on_holder_of(Work::Purging)
    }

    async fn run(&mut self) -> Result<RunOutcome> {
        let own = *self.followed.borrow_and_update();
        let others = self.endpoint.guard.node().followed_by_others();
        // If a purge came before a lagging node has read the change, the CDN could fetch the old version from that
        // node.
        let seq = others.map_or(own, |others| others.min(own));
        let PurgeRun { more, outcome, idle } =
            self.endpoint.purge_batch(seq, !self.backoff.remaining().is_zero()).await?;
        match outcome {
            None => {}
            Some(Ok(())) => self.backoff = PurgeBackoff::new(),
            Some(Err(cause)) => self.backoff.begin(self.endpoint.number, &cause),
        }
        if more {
            return Ok(RunOutcome::More);
        }
        let remaining = self.backoff.remaining();
        let wait = if remaining.is_zero() { idle } else { remaining.min(PURGE_POLL_INTERVAL) };
        // Other nodes send no wake-up for their progress, so it is polled.
        let wait = if seq < own { wait.min(FOLLOWED_POLL_INTERVAL) } else { wait };
        Ok(RunOutcome::DueAfter(wait))
    }

    /// Changes are queued during backoff too.
    async fn wait_for_work(&mut self) {
        if self.followed.changed().await.is_err() {
            // The sender was dropped, so no more changes will be announced.
            std::future::pending::<()>().await;
        }
    }

    fn stand_by(&mut self) {
        self.endpoint.report_nothing();
    }
}

impl CdnEndpoint {
    async fn run(
        self,
        followed: watch::Receiver<i64>,
        stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let mut job = PurgeJob { endpoint: &self, followed, backoff: PurgeBackoff::new() };
        let drain_end = async {
            jobs::stopped(stop.clone()).await;
            tokio::time::sleep(drain).await;
        };
        // The next run repeats a call that is interrupted here. This is harmless, because purges are idempotent.
        tokio::select! {
            () = jobs::run(&mut job, &self.guard, jobs::stopped(stop.clone())) => {}
            () = drain_end => {}
        }
    }

    /// Queues changes up to the row `seq`, at most as many as one transaction allows. Then sends due purges, at
    /// most as many as one call allows, unless the endpoint is backing off (`is_backing_off`).
    async fn purge_batch(&self, seq: i64, is_backing_off: bool) -> Result<PurgeRun> {
        let now = clock::now();
        let (waiting, unread) = self.queue_changes(seq, now).await?;
        let name = self.name.clone();
        let keys_max = self.keys_max;
        let due = self.db.read(move |tx| tx.due_purges(&name, now, keys_max)).await?;
        self.report(waiting, due.first(), now);
        let (due, keys) = batch(due);
        if due.is_empty() || is_backing_off {
            let wait = waiting.next.map(|next| next.duration_since(now));
            let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
            let idle = wait.map_or(PURGE_POLL_INTERVAL, |wait| wait.min(PURGE_POLL_INTERVAL));
            return Ok(PurgeRun { more: unread, outcome: None, idle });
        }
        let stopwatch = Stopwatch::start();
        let result = self.purger.purge(&keys).await;
        self.count(&result, &keys, stopwatch);
        let outcome = self.record_outcome(due, result).await?;
        // After a success, further keys may be due.
        let more = unread || outcome.is_ok();
        Ok(PurgeRun { more, outcome: Some(outcome), idle: PURGE_POLL_INTERVAL })
    }

    /// Records the outcome of the rows of a call, and returns the outcome for the endpoint. An endpoint that refuses
    /// all keys has failed too, since its settings may be wrong.
    async fn record_outcome(
        &self,
        due: Vec<PendingPurge>,
        result: PurgeResult,
    ) -> Result<Result<(), PurgeError>> {
        let PurgeResult { purged, refused, failed, absent: _ } = result;
        // A key may be in several rows, which one call completes together.
        let done = row_numbers(&due, |key| purged.iter().any(|purged| purged == key));
        let postponed = row_numbers(&due, |key| refused.iter().any(|(refused, _)| refused == key));
        let now = clock::now();
        let repeat_at = (!self.retry_interval.is_zero()).then(|| now + self.retry_interval);
        let accepted_any = !purged.is_empty();
        self.write(move |tx| {
            tx.complete_purges(&done, repeat_at)?;
            tx.postpone_purges(&postponed, now + PURGE_REFUSED_DELAY)
        })
        .await?;
        let refusal =
            refused.into_iter().next().filter(|_| !accepted_any).map(|(_, refusal)| refusal);
        Ok(failed.or(refusal).map_or(Ok(()), Err))
    }

    /// Queues changes up to the row `seq` while the queue has room. Returns the backlog, and whether there are
    /// more rows to read immediately.
    async fn queue_changes(&self, seq: i64, now: Timestamp) -> Result<(PurgeBacklog, bool)> {
        let name = self.name.clone();
        let queue = self.db.read(move |tx| {
            let read = tx.purged_seq(&name)?;
            let waiting = tx.purges_waiting(&name, now)?;
            Ok((read, waiting, tx.due_purges(&name, now, 1)?))
        });
        let (read, waiting, oldest) = queue.await?;
        let before = now - ITEM_LOG_RETENTION;
        // Expiry needs a trusted clock, because a clock that jumped ahead would drop purges that are still due.
        if oldest.first().is_some_and(|purge| purge.since < before) && self.guard.trusts_clock() {
            let name = self.name.clone();
            let lost = self.write(move |tx| tx.drop_expired_purges(&name, before)).await?;
            let address = self.number;
            let lost = lost.unwrap_or_default();
            tracing::error!(address, keys = lost, "CDN purges given up: retention exceeded");
            self.count_keys("given_up", lost);
        }
        // If the queue is full, the log is not read. The log retains the changes, so the queue does not grow
        // without bound.
        let is_full = waiting.due >= u64::try_from(PURGES_QUEUED_MAX).unwrap_or(u64::MAX);
        if is_full || read.is_none_or(|read| read >= seq) {
            return Ok((waiting, false));
        }
        let name = self.name.clone();
        let queued = self.write(move |tx| {
            let rows = tx.note_purges(&name, seq, PURGE_LOG_ROWS, now, key_of)?;
            Ok((tx.purges_waiting(&name, now)?, rows == PURGE_LOG_ROWS))
        });
        Ok(queued.await?.unwrap_or((waiting, false)))
    }

    /// Writes only while this node holds the purging lease. Returns `None` if the node lost it.
    async fn write<T, F>(&self, write: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> DbResult<T> + Send + 'static,
    {
        let incarnation = self.guard.node().incarnation();
        let written = self.db.write(move |tx| {
            if !tx.holds_lease(Work::Purging.as_str(), incarnation)? {
                return Ok(None);
            }
            write(tx).map(Some)
        });
        let written = written.await?;
        if written.is_none() {
            self.guard.node().lose_lease(Work::Purging);
        }
        Ok(written)
    }

    fn count(&self, result: &PurgeResult, keys: &[String], stopwatch: Stopwatch) {
        let address = self.number;
        for (outcome, count) in outcome_counts(result, keys.len()) {
            self.count_keys(outcome, count);
        }
        for (key, why) in &result.refused {
            tracing::error!(address, key, "a CDN refuses a key: {why}");
        }
        let done = result.purged.len();
        if done > 0 {
            let first = result.purged.first();
            let ms = stopwatch.elapsed_ms();
            tracing::info!(address, keys = done, first, ms, "purged");
        }
    }

    fn count_keys(&self, outcome: &'static str, keys: usize) {
        let address = self.number.to_string();
        metrics::counter!(telemetry::PURGES, "address" => address, "outcome" => outcome)
            .increment(u64::try_from(keys).unwrap_or(u64::MAX));
    }

    /// Zeroes the gauges of a node without the lease, because the lease holder reports the backlog.
    fn report_nothing(&self) {
        let address = self.number.to_string();
        metrics::gauge!(telemetry::PURGE_LAG_SECONDS, "address" => address.clone()).set(0.0);
        metrics::gauge!(telemetry::PURGES_WAITING, "address" => address).set(0);
    }

    fn report(&self, waiting: PurgeBacklog, oldest: Option<&PendingPurge>, now: Timestamp) {
        let oldest = oldest.map(|purge| purge.since).into_iter().chain(waiting.unread).min();
        let lag = oldest.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0));
        let address = self.number.to_string();
        metrics::gauge!(telemetry::PURGE_LAG_SECONDS, "address" => address.clone()).set(lag);
        let keys = u32::try_from(waiting.keys).unwrap_or(u32::MAX);
        metrics::gauge!(telemetry::PURGES_WAITING, "address" => address).set(keys);
    }
}

/// Returns the numbers of the rows whose key is affected.
fn row_numbers(rows: &[PendingPurge], is_affected: impl Fn(&str) -> bool) -> Vec<i64> {
    rows.iter().filter(|row| is_affected(&row.key)).map(|row| row.number).collect()
}

/// Counts the keys of a call with `keys` keys by outcome, under the names in the metric.
///
/// The numbers come from the transport. If they contradict each other, a count is 0, because a counter must not
/// fail the purge.
fn outcome_counts(result: &PurgeResult, keys: usize) -> [(&'static str, usize); 4] {
    let purged = result.purged.len();
    let refused = result.refused.len();
    [
        ("done", purged.saturating_sub(result.absent)),
        ("absent", result.absent),
        ("refused", refused),
        ("retry", keys.saturating_sub(purged).saturating_sub(refused)),
    ]
}

/// Selects the rows for one call and returns them with their keys without duplicates.
fn batch(mut due: Vec<PendingPurge>) -> (Vec<PendingPurge>, Vec<String>) {
    let mut keys = Vec::new();
    let mut bytes = 0;
    let mut rows = 0;
    let mut seen = HashSet::new();
    for PendingPurge { key, .. } in &due {
        if seen.insert(key.clone()) {
            bytes += key.len() + 1;
            // At least one key per call, however long, or the queue would never advance.
            if bytes > PURGE_KEYS_BYTES_MAX && !keys.is_empty() {
                break;
            }
            keys.push(key.clone());
        }
        rows += 1;
    }
    due.truncate(rows);
    (due, keys)
}

/// A purge requested by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeRequest {
    /// All objects of this service.
    Everything,
    /// The objects that show these items.
    Items(Vec<ItemKey>),
}

/// Queues a purge, which the server of this database sends. Returns the number of keys. Blocks.
///
/// Fails if the settings have no endpoint.
pub fn purge(
    settings: &config::Cdn,
    db: &Db,
    request: &PurgeRequest,
    now: Timestamp,
) -> Result<usize> {
    let purgers = CachePurger::from_settings(settings)?;
    let names: Vec<String> = purgers.iter().map(CachePurger::name).collect();
    if names.is_empty() {
        let message = "cdn.purge_url is empty: there is no CDN to purge";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let keys: Vec<String> = match request {
        PurgeRequest::Everything => vec![EVERYTHING.to_owned()],
        PurgeRequest::Items(items) => items.iter().map(key_of).collect(),
    };
    let count = keys.len();
    db.write_blocking(move |tx| keys.iter().try_for_each(|key| tx.note_purge(key, &names, now)))?;
    Ok(count)
}
