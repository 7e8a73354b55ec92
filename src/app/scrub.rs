//! The scrub: a background pass that reads every original once per period and verifies its checksum.
//!
//! One node scrubs at a time ([`ClusterLease::Scrubbing`]). A pass visits the items in the order of their
//! numbers; an item that is written during the pass gets a higher number and belongs to the next pass. The
//! progress is stored in the database, so restarts and other nodes continue the pass.
//!
//! Each item gets the same share of the period, which spreads the load evenly for archives of any size;
//! within an original the rate is limited to [`SCRUB_BYTES_S_MAX`]. Holds the numbers of [`SCRUB_ITEMS`]
//! items in memory.

use std::{
    collections::VecDeque, convert::Infallible, io, ops::ControlFlow, sync::Arc, time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::problem::file_of;
use crate::cluster::membership::{ClusterLease, ClusterNode};
use crate::runtime::clock::{self, Stopwatch, has_elapsed};
use crate::runtime::failure_log::FailureLog;
use crate::runtime::telemetry;
use crate::storage::blobs::{BlobReader, BlobStore, StoreError};
use crate::storage::database::{Db, DbError};
use model::item::Asset;
use model::{ContentHash, ItemKey};

/// Items whose files a scrub reads from the database per query.
const SCRUB_ITEMS: usize = 100;
/// Maximum bytes per second that a scrub reads, so that it does not slow renders: 41 TB in 30 days. A larger
/// archive takes longer than `store.scrub_days`.
const SCRUB_BYTES_S_MAX: u64 = 16 * 1024 * 1024;
/// Interval at which a scrub saves its progress; what was read since then is read again after a restart.
const SCRUB_SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before a scrub retries an original that a bucket did not return, or looks for a first item.
const SCRUB_RETRY_DELAY: Duration = Duration::from_secs(60);
/// Interval at which a waiting scrub checks that its node still holds the lease.
const SCRUB_LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Damaged originals that a pass remembers and logs by name. With more, the whole store is probably gone, and
/// `wirephoto check` names them all.
const SCRUB_REPORTED_MAX: usize = 100;
/// Key of the progress in the table `state`.
const SCRUB_KEY: &str = "scrub";

/// Reads the originals of an archive in continuous passes.
#[derive(Clone)]
pub(super) struct OriginalsScrub {
    pub(super) db: Db,
    pub(super) store: BlobStore,
    pub(super) node: ClusterNode,
    /// The time in which all originals are read once.
    pub(super) period: Duration,
}

/// A pass in progress, as the database stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ScrubPass {
    began: Timestamp,
    /// The number of the last item that belongs to the pass.
    last: i64,
    /// Number of items at the start of the pass.
    items: u64,
    /// Number of items that were read.
    done: u64,
    /// The number of the last item that was read.
    at: i64,
    /// The time at which the next item is to be read.
    due: Timestamp,
    /// Damaged originals; at most [`SCRUB_REPORTED_MAX`] are stored.
    damaged: Vec<ContentHash>,
    /// The end of the previous pass.
    #[serde(default)]
    ended: Option<Timestamp>,
}

impl ScrubPass {
    /// Returns the share of the period for each item.
    fn share(&self, period: Duration) -> Duration {
        period.div_f64(to_f64(self.items.max(1)))
    }

    fn report(&self) {
        let ratio = (to_f64(self.done) / to_f64(self.items.max(1))).min(1.0);
        report(ratio, Some(self.began), self.ended);
    }
}

/// Sets the gauges of the pass.
fn report(ratio: f64, began: Option<Timestamp>, ended: Option<Timestamp>) {
    metrics::gauge!(telemetry::SCRUB_DONE_RATIO).set(ratio);
    metrics::gauge!(telemetry::SCRUB_BEGAN_SECONDS).set(unix_seconds(began));
    metrics::gauge!(telemetry::SCRUB_ENDED_SECONDS).set(unix_seconds(ended));
}

/// Converts a number of items; saturates at `u32::MAX`.
fn to_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the seconds since the Unix epoch; 0 without a time.
fn unix_seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, |at| at.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64())
}

/// The result of verifying one original.
enum ScrubFinding {
    Intact,
    /// The reason why the original is considered damaged.
    Damaged(String),
    /// The store cannot be reached at the moment.
    Unreachable(StoreError),
}

/// The reason why this node stops scrubbing.
enum ScrubStop {
    /// A different node has the lease, or may have it.
    LeaseLost,
    Failed(DbError),
}

impl From<DbError> for ScrubStop {
    fn from(cause: DbError) -> Self {
        Self::Failed(cause)
    }
}

impl OriginalsScrub {
    /// Scrubs whenever this node holds the lease, until the service stops.
    pub(super) async fn run(self) {
        let mut log = FailureLog::new("scrub");
        loop {
            self.node.wait_for_lease(ClusterLease::Scrubbing).await;
            let Err(stopped) = self.run_passes(self.node.incarnation(), &mut log).await;
            // Only the node that scrubs reports the progress of the pass.
            report(0.0, None, None);
            // The next wait for the lease delays a retry after its loss; a failure would be retried without a
            // delay.
            if let ScrubStop::Failed(cause) = stopped {
                log.record(&Err::<(), _>(cause));
                tokio::time::sleep(SCRUB_RETRY_DELAY).await;
            }
        }
    }

    /// Continues the current pass and runs further passes while `incarnation` holds the lease.
    async fn run_passes(
        &self,
        incarnation: Uuid,
        log: &mut FailureLog,
    ) -> Result<Infallible, ScrubStop> {
        let stored = self.db.read(|tx| tx.find_state(SCRUB_KEY)).await?;
        // Progress that a later version stored in a different format is ignored.
        let stored: Option<ScrubPass> = stored.and_then(|text| serde_json::from_str(&text).ok());
        let mut pass = match stored {
            Some(pass) => pass,
            None => {
                // Stored at once, so that a service that restarts often still reaches its first item.
                let pass = self.begin(None).await?;
                self.save_pass(&pass, incarnation).await?;
                pass
            }
        };
        let mut last_saved: Option<Stopwatch> = None;
        let mut numbers = VecDeque::new();
        loop {
            log.record(&Ok::<_, DbError>(()));
            pass.report();
            if numbers.is_empty() {
                let at = pass.at;
                let last = pass.last;
                let read = self.db.read(move |tx| tx.list_item_numbers(at, last, SCRUB_ITEMS));
                numbers = read.await?.into();
            }
            let Some(number) = numbers.pop_front() else {
                pass = self.end(pass, incarnation).await?;
                last_saved = Some(Stopwatch::start());
                continue;
            };
            let share = pass.share(self.period);
            self.wait(pass.due, share, incarnation).await?;
            self.item(number, &mut pass, incarnation).await?;
            pass.at = number;
            pass.done += 1;
            // A delay is not compensated by a higher rate.
            pass.due = later(pass.due, share).max(clock::now());
            let is_due = has_elapsed(last_saved, SCRUB_SAVE_INTERVAL);
            // With few items the shares are long, and a restart would begin an unsaved wait from the start.
            if is_due || share >= SCRUB_SAVE_INTERVAL {
                self.save_pass(&pass, incarnation).await?;
                last_saved = Some(Stopwatch::start());
            }
        }
    }

    async fn begin(&self, ended: Option<Timestamp>) -> Result<ScrubPass, DbError> {
        let read = self.db.read(|tx| Ok((tx.last_version()?, tx.count_items()?)));
        let (last, items) = read.await?;
        let began = clock::now();
        let mut pass = ScrubPass {
            began,
            last,
            items,
            done: 0,
            at: 0,
            due: began,
            damaged: Vec::new(),
            ended,
        };
        pass.due = later(began, pass.share(self.period));
        Ok(pass)
    }

    /// Ends a pass and begins the next one; waits first if the archive has no items.
    async fn end(&self, mut pass: ScrubPass, incarnation: Uuid) -> Result<ScrubPass, ScrubStop> {
        if pass.done > 0 {
            let damaged = pass.damaged.len();
            tracing::info!(items = pass.done, damaged, "scrub finished: all originals were read");
            pass.ended = Some(clock::now());
        } else {
            // Without a wait, an empty archive would end one pass after the other.
            self.wait(later(clock::now(), SCRUB_RETRY_DELAY), SCRUB_RETRY_DELAY, incarnation)
                .await?;
        }
        let next = self.begin(pass.ended).await?;
        self.save_pass(&next, incarnation).await?;
        Ok(next)
    }

    /// Waits until `due`, but at most `longest`, because the clock may have been set.
    async fn wait(
        &self,
        due: Timestamp,
        longest: Duration,
        incarnation: Uuid,
    ) -> Result<(), ScrubStop> {
        let stopwatch = Stopwatch::start();
        loop {
            // A node that lost the lease may hold it again under a new incarnation, after a different node
            // has advanced the pass.
            if !self.node.holds(ClusterLease::Scrubbing) || self.node.incarnation() != incarnation
            {
                return Err(ScrubStop::LeaseLost);
            }
            let remaining =
                Duration::try_from(due.duration_since(clock::now())).unwrap_or_default();
            let remaining = remaining.min(longest.saturating_sub(stopwatch.elapsed()));
            if remaining.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(remaining.min(SCRUB_LEASE_CHECK_INTERVAL)).await;
        }
    }

    /// Stores the progress, in a transaction that verifies that `incarnation` holds the lease.
    async fn save_pass(&self, pass: &ScrubPass, incarnation: Uuid) -> Result<(), ScrubStop> {
        let text =
            serde_json::to_string(pass).map_err(|cause| DbError::File(cause.to_string()))?;
        let written = self.db.write(move |tx| {
            // The lease may have expired unnoticed, and the progress of this node must not replace the
            // progress of the next holder.
            if !tx.holds_lease(ClusterLease::Scrubbing.as_str(), incarnation)? {
                return Ok(false);
            }
            tx.write_state(SCRUB_KEY, &text).map(|()| true)
        });
        if written.await? {
            return Ok(());
        }
        self.node.lose_lease(ClusterLease::Scrubbing);
        Err(ScrubStop::LeaseLost)
    }

    /// Verifies the originals of an item, and waits while the store cannot be reached.
    async fn item(
        &self,
        number: i64,
        pass: &mut ScrubPass,
        incarnation: Uuid,
    ) -> Result<(), ScrubStop> {
        let found = match self.db.read(move |tx| tx.files_of_version(number)).await {
            Ok(found) => found,
            Err(DbError::Damaged { .. }) => {
                tracing::error!(
                    number,
                    "scrub: the row of an item cannot be read; see `wirephoto check`"
                );
                None
            }
            Err(other) => return Err(other.into()),
        };
        // An item that was replaced since belongs to the next pass.
        let Some((key, assets)) = found else { return Ok(()) };
        for (index, asset) in assets.iter().enumerate() {
            // Two files of an item may have the same bytes, which are read once.
            if assets[..index].iter().any(|other| other.blob() == asset.blob()) {
                continue;
            }
            let mut is_unreachable = false;
            while let ControlFlow::Continue(cause) = self.original(&key, asset, pass).await {
                if !is_unreachable {
                    tracing::warn!("scrub paused: originals cannot be read: {cause}");
                }
                is_unreachable = true;
                self.wait(later(clock::now(), SCRUB_RETRY_DELAY), SCRUB_RETRY_DELAY, incarnation)
                    .await?;
            }
        }
        Ok(())
    }

    /// Verifies an original. A damaged original is logged with its item, and counted once per pass. Returns
    /// `Continue` if the store cannot be reached.
    async fn original(
        &self,
        key: &ItemKey,
        asset: &Asset,
        pass: &mut ScrubPass,
    ) -> ControlFlow<(), StoreError> {
        let hash = asset.blob();
        let length = asset.length();
        let mut found = self.verify_original(hash, length).await;
        if let ScrubFinding::Damaged(_) = found {
            // The original may have been replaced while it was read, so verify it once more.
            found = self.verify_original(hash, length).await;
        }
        let why = match found {
            ScrubFinding::Intact => return ControlFlow::Break(()),
            ScrubFinding::Unreachable(cause) => return ControlFlow::Continue(cause),
            ScrubFinding::Damaged(why) => why,
        };
        let is_known = pass.damaged.contains(&hash);
        let is_remembered = is_known || pass.damaged.len() < SCRUB_REPORTED_MAX;
        if !is_known {
            metrics::counter!(telemetry::ORIGINALS_DAMAGED).increment(1);
        }
        if !is_known && is_remembered {
            pass.damaged.push(hash);
        }
        if is_remembered {
            let file = file_of(key, asset);
            tracing::error!(original = %hash, file, "the scrub found a damaged original: {why}");
            if pass.damaged.len() == SCRUB_REPORTED_MAX && !is_known {
                tracing::error!(
                    "scrub: further damaged originals of this pass are not logged; \
                     `wirephoto check` lists them"
                );
            }
        }
        ControlFlow::Break(())
    }

    async fn verify_original(&self, hash: ContentHash, length: u64) -> ScrubFinding {
        match self.hash_slowly(hash, length).await {
            Ok(found) if found == hash => ScrubFinding::Intact,
            Ok(_) => ScrubFinding::Damaged("it was changed after ingest".to_owned()),
            Err(cause @ (StoreError::Missing(_) | StoreError::Io { .. })) => {
                // If a disk is not mounted, every file in the folder is missing although nothing is lost.
                let store = self.store.clone();
                match blocking(move || store.check_reachable()).await {
                    Ok(()) if matches!(cause, StoreError::Missing(_)) => {
                        ScrubFinding::Damaged("it is missing".to_owned())
                    }
                    Ok(()) => ScrubFinding::Damaged(cause.to_string()),
                    Err(cause) => ScrubFinding::Unreachable(cause),
                }
            }
            Err(cause @ (StoreError::Length { .. } | StoreError::Corrupted(_))) => {
                ScrubFinding::Damaged(cause.to_string())
            }
            Err(
                // An unreachable or wrong store says nothing about the originals.
                cause @ (StoreError::Unavailable { .. }
                | StoreError::OtherArchive { .. }
                | StoreError::Setting { .. }),
            ) => ScrubFinding::Unreachable(cause),
        }
    }

    /// Hashes an original piece by piece, with pauses in between.
    async fn hash_slowly(
        &self,
        hash: ContentHash,
        length: u64,
    ) -> Result<ContentHash, StoreError> {
        let store = self.store.clone();
        let reader = blocking(move || {
            // Cached metadata of a bucket would hide that an object is missing.
            store.invalidate(hash);
            store.reader(hash, length)
        });
        let reader: Arc<BlobReader> = Arc::new(reader.await?);
        let mut hasher = ContentHash::hasher();
        for range in reader.pieces() {
            let bytes = range.end - range.start;
            let reader = Arc::clone(&reader);
            hasher = blocking(move || {
                hasher.update(&reader.read(range)?);
                Ok(hasher)
            })
            .await?;
            let pause = Duration::from_micros(bytes.saturating_mul(1_000_000) / SCRUB_BYTES_S_MAX);
            tokio::time::sleep(pause).await;
        }
        Ok(hasher.finish())
    }
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Runs blocking work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| {
        Err(StoreError::Io { path: "an original".to_owned(), cause: io::Error::other(cause) })
    })
}
