//! Tells CDNs of changes, by the keys that media answers carry.
//!
//! The item log is read as far as every node of the database has followed it: a CDN that is told earlier
//! would fetch the old version once more, from whichever of them. One node tells at a time, the one that holds
//! [`crate::cluster::membership::ClusterLease::Purging`]; a transaction of one that lost it changes nothing. What is to be
//! told lies in the database until the CDN took it, so that neither a restart nor a kill
//! loses any of it; what was told twice does no harm. Each address is told by itself: one that is away
//! holds no other one up. Keys that an address could not be told
//! of for as long as the item log is kept are given up: caches have forgotten by themselves.

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
use crate::runtime::clock;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{
    ITEM_LOG_RETENTION, PURGE_KEYS_BYTES_MAX, PURGE_LOG_ROWS, PURGE_POLL_INTERVAL,
    PURGE_REFUSED_DELAY, PURGE_RETRY_FIRST, PURGE_RETRY_MAX, PURGES_QUEUED_MAX,
};
use crate::runtime::telemetry;
use crate::storage::database::{Db, DbError, PendingPurge, PurgeBacklog, ReadTx, WriteTx};
use crate::transport::{CachePurger, PurgeError, PurgeResult};
use model::{Backoff, ItemKey, RetryPolicy};

/// How long a CDN is left alone that failed.
const PURGE_RETRIES: RetryPolicy =
    RetryPolicy::without_deadline(PURGE_RETRY_FIRST, PURGE_RETRY_MAX);

/// Whoever tells CDNs of changes.
pub struct CdnPurgers {
    endpoints: Vec<CdnEndpoint>,
}

/// Whoever tells one address.
struct CdnEndpoint {
    db: Db,
    purger: CachePurger,
    /// What its rows and its place in the item log are called.
    name: String,
    /// Its place in the setting, from 1.
    number: usize,
    keys_max: usize,
    retry_interval: Duration,
    guard: ClusterGuard,
}

/// What a turn came to.
struct PurgeRun {
    /// Whether there may be more to do at once.
    more: bool,
    outcome: PurgeOutcome,
    /// Time after which there is something to do at the latest.
    idle: Duration,
}

enum PurgeOutcome {
    /// Nothing was due, or the CDN is left alone.
    Nothing,
    /// The CDN took something.
    Purged,
    /// The CDN took nothing, or not all.
    Failed(PurgeError),
}

/// A CDN that failed is left alone for a while.
struct PurgeBackoff {
    backoff: Backoff,
    /// How long, and since when.
    until: Option<(Duration, Stopwatch)>,
}

impl PurgeBackoff {
    const fn new() -> Self {
        Self { backoff: Backoff::new(PURGE_RETRIES), until: None }
    }

    /// How long it is still left alone.
    fn remaining(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |(wait, since)| wait.saturating_sub(since.elapsed()))
    }

    fn begin(&mut self) -> Duration {
        let wait = self.backoff.fail();
        self.until = Some((wait, Stopwatch::start()));
        wait
    }
}

impl CdnPurgers {
    /// What the settings describe; nothing where they name nobody to tell. Blocks.
    ///
    /// Where the item log was not read for an address before, that begins at its end. Fails when a
    /// setting makes no sense.
    pub fn open(settings: &config::Cdn, db: &Db, guard: &ClusterGuard) -> Result<Option<Self>> {
        let purgers = CachePurger::of(settings)?;
        let names: Vec<String> = purgers.iter().map(CachePurger::name).collect();
        // Without addresses too: the item log is not kept for a reader that does not come.
        if !names.is_empty() || !db.read_blocking(|tx| tx.purging_lanes())?.is_empty() {
            let (names, life) = (names.clone(), guard.node().incarnation());
            db.write_blocking(move |tx| {
                let mut others = tx.as_read().list_nodes()?.into_iter();
                // Another node may have an address to tell.
                if names.is_empty() && others.any(|other| other.incarnation != life) {
                    return Ok(());
                }
                tx.start_purging(&names, key_of)
            })?;
        }
        if names.is_empty() {
            return Ok(None);
        }
        let lane = |((purger, name), number)| CdnEndpoint {
            db: db.clone(),
            purger,
            name,
            number,
            keys_max: settings.purge_keys_max,
            retry_interval: Duration::from_secs(u64::from(settings.purge_again_s)),
            guard: guard.clone(),
        };
        let lanes: Vec<_> = purgers.into_iter().zip(names).zip(1..).map(lane).collect();
        for lane in &lanes {
            // Alerts wait for them, and do not see a series that begins with its first event.
            lane.counted("refused", 0);
            lane.counted("given_up", 0);
        }
        Ok(Some(Self { endpoints: lanes }))
    }

    /// Tells until `stop` turns true; calls that are under way then have `drain` to end. `followed`
    /// is the row of the item log up to which this process serves no old version any more.
    pub async fn run(
        self,
        followed: watch::Receiver<i64>,
        stop: watch::Receiver<bool>,
        drain: Duration,
    ) {
        let lanes = self.endpoints.into_iter();
        join_all(lanes.map(|lane| lane.run(followed.clone(), stop.clone(), drain))).await;
    }
}

/// Tells one address, as a job.
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
        let seq = others.map_or(own, |others| others.min(own));
        let PurgeRun { more, outcome: told, idle } =
            self.endpoint.purge_batch(seq, !self.backoff.remaining().is_zero()).await?;
        self.note_outcome(told);
        if more {
            return Ok(RunOutcome::More);
        }
        let left = self.backoff.remaining();
        let wait = if left.is_zero() { idle } else { left.min(PURGE_POLL_INTERVAL) };
        // Nobody tells when another node has followed on.
        let wait = if seq < own { wait.min(FOLLOWED_POLL_INTERVAL) } else { wait };
        Ok(RunOutcome::DueAfter(wait))
    }

    /// While the CDN is left alone what comes in is noted all the same.
    async fn woken(&mut self) {
        if self.followed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn stand_by(&mut self) {
        self.endpoint.report_nothing();
    }
}

impl PurgeJob<'_> {
    fn note_outcome(&mut self, told: PurgeOutcome) {
        match told {
            PurgeOutcome::Nothing => {}
            PurgeOutcome::Purged => self.backoff = PurgeBackoff::new(),
            PurgeOutcome::Failed(cause) => {
                let (address, wait) = (self.endpoint.number, self.backoff.begin());
                let (tries, s) = (self.backoff.backoff.failures(), wait.as_secs_f64());
                tracing::warn!(address, tries, retry_s = s, "a CDN did not take a purge: {cause}");
            }
        }
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
        let late = async {
            jobs::stopped(stop.clone()).await;
            tokio::time::sleep(drain).await;
        };
        tokio::select! {
            () = jobs::run(&mut job, &self.guard, jobs::stopped(stop.clone())) => {}
            () = late => {}
        }
    }

    /// Notes what changed up to the row `seq`, a transaction's worth, and tells what is due, one
    /// call's worth, unless the CDN is left alone.
    async fn purge_batch(&self, seq: i64, is_resting: bool) -> Result<PurgeRun> {
        let now = clock::now();
        let (waiting, unread) = self.queue_changes(seq, now).await?;
        let (name, keys_max) = (self.name.clone(), self.keys_max);
        let due = self.db.read(move |tx| tx.due_purges(&name, now, keys_max)).await?;
        self.report(waiting, due.first(), now);
        let (due, keys) = batch(due);
        if due.is_empty() || is_resting {
            let wait = waiting.next.map(|next| next.duration_since(now));
            let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
            let idle = wait.map_or(PURGE_POLL_INTERVAL, |wait| wait.min(PURGE_POLL_INTERVAL));
            return Ok(PurgeRun { more: unread, outcome: PurgeOutcome::Nothing, idle });
        }
        let watch = Stopwatch::start();
        let told = self.purger.purge(&keys).await;
        self.count(&told, &keys, watch);
        let failed = self.record_outcome(due, told).await?;
        let more = unread || failed.is_none();
        let told = failed.map_or(PurgeOutcome::Purged, PurgeOutcome::Failed);
        Ok(PurgeRun { more, outcome: told, idle: PURGE_POLL_INTERVAL })
    }

    /// Writes what became of rows; why the CDN is to be left alone, if it is. One that takes none of
    /// the keys may have settings that are wrong.
    async fn record_outcome(
        &self,
        due: Vec<PendingPurge>,
        told: PurgeResult,
    ) -> Result<Option<PurgeError>> {
        let PurgeResult { purged: told, refused, failed, absent: _ } = told;
        let numbers = |has: &dyn Fn(&str) -> bool| -> Vec<i64> {
            due.iter().filter(|purge| has(&purge.key)).map(|purge| purge.number).collect()
        };
        let done = numbers(&|key| told.iter().any(|told| told == key));
        let put_off = numbers(&|key| refused.iter().any(|(refused, _)| refused == key));
        let now = clock::now();
        let again = (!self.retry_interval.is_zero()).then(|| now + self.retry_interval);
        let took = !told.is_empty();
        self.write(move |tx| {
            tx.complete_purges(&done, again)?;
            tx.postpone_purges(&put_off, now + PURGE_REFUSED_DELAY)
        })
        .await?;
        let refusal = refused.into_iter().next().filter(|_| !took).map(|(_, refusal)| refusal);
        Ok(failed.or(refusal))
    }

    /// Notes what changed up to the row `seq`, as far as there is room; how much waits then, and
    /// whether there is more to read at once.
    async fn queue_changes(&self, seq: i64, now: Timestamp) -> Result<(PurgeBacklog, bool)> {
        let name = self.name.clone();
        let look = move |tx: &ReadTx<'_>| {
            let (read, waiting) = (tx.purged_seq(&name)?, tx.purges_waiting(&name, now)?);
            Ok((read, waiting, tx.due_purges(&name, now, 1)?))
        };
        let (read, waiting, oldest) = self.db.read(look).await?;
        let before = now - ITEM_LOG_RETENTION;
        if oldest.first().is_some_and(|purge| purge.since < before) && self.guard.trusts_clock() {
            let name = self.name.clone();
            let lost = self.write(move |tx| tx.drop_expired_purges(&name, before)).await?;
            let (address, lost) = (self.number, lost.unwrap_or_default());
            tracing::error!(address, keys = lost, "a CDN could not be told for days; given up");
            self.counted("given_up", lost);
        }
        let is_full = waiting.due >= u64::try_from(PURGES_QUEUED_MAX).unwrap_or(u64::MAX);
        if is_full || read.is_none_or(|read| read >= seq) {
            return Ok((waiting, false));
        }
        let name = self.name.clone();
        let noted = self.write(move |tx| {
            let rows = tx.note_purges(&name, seq, PURGE_LOG_ROWS, now, key_of)?;
            Ok((tx.as_read().purges_waiting(&name, now)?, rows == PURGE_LOG_ROWS))
        });
        Ok(noted.await?.unwrap_or((waiting, false)))
    }

    /// Writes as long as this node is the one that tells; else nothing.
    async fn write<T, F>(&self, write: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> std::result::Result<T, DbError> + Send + 'static,
    {
        let life = self.guard.node().incarnation();
        let written =
            self.db.write(move |tx| match tx.holds_lease(Work::Purging.as_str(), life)? {
                true => write(tx).map(Some),
                false => Ok(None),
            });
        let written = written.await?;
        if written.is_none() {
            self.guard.node().lose_lease(Work::Purging);
        }
        Ok(written)
    }

    fn count(&self, told: &PurgeResult, keys: &[String], watch: Stopwatch) {
        let address = self.number;
        let (done, refused) = (told.purged.len(), told.refused.len());
        self.counted("done", done - told.absent);
        self.counted("absent", told.absent);
        self.counted("refused", refused);
        self.counted("retry", keys.len() - done - refused);
        for (key, why) in &told.refused {
            tracing::error!(address, key, "a CDN refuses a key: {why}");
        }
        if done > 0 {
            let (first, ms) = (told.purged.first(), watch.elapsed_ms());
            tracing::info!(address, keys = done, first, ms, "purged");
        }
    }

    fn counted(&self, outcome: &'static str, keys: usize) {
        let address = self.number.to_string();
        metrics::counter!(telemetry::PURGES, "address" => address, "outcome" => outcome)
            .increment(u64::try_from(keys).unwrap_or(u64::MAX));
    }

    /// Another node tells of what waits.
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

/// What fits into one call: the rows that it does, and their keys, each once.
fn batch(mut due: Vec<PendingPurge>) -> (Vec<PendingPurge>, Vec<String>) {
    let (mut keys, mut bytes, mut rows) = (Vec::new(), 0, 0);
    let mut seen = HashSet::new();
    for PendingPurge { key, .. } in &due {
        if seen.insert(key.clone()) {
            bytes += key.len() + 1;
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

/// What an operator wants a CDN to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeRequest {
    /// All that it has of us.
    Everything,
    /// What shows these items.
    Items(Vec<ItemKey>),
}

/// Notes what a CDN is to forget, for the server of this database to tell it; how many keys. Blocks.
///
/// Fails when the settings name nobody to tell.
pub fn purge(
    settings: &config::Cdn,
    db: &Db,
    wanted: &PurgeRequest,
    now: Timestamp,
) -> Result<usize> {
    let lanes: Vec<String> = CachePurger::of(settings)?.iter().map(CachePurger::name).collect();
    if lanes.is_empty() {
        let message = "cdn.purge_url is empty: there is no CDN to tell";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let keys: Vec<String> = match wanted {
        PurgeRequest::Everything => vec![EVERYTHING.to_owned()],
        PurgeRequest::Items(items) => items.iter().map(key_of).collect(),
    };
    let count = keys.len();
    db.write_blocking(move |tx| keys.iter().try_for_each(|key| tx.note_purge(key, &lanes, now)))?;
    Ok(count)
}
