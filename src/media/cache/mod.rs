//! The rendition cache: memory in front of disk, both bounded by bytes.
//!
//! Each tier has two partitions: one for the few standard renditions of every item, and one for crops and other
//! variants. The number of variants is unlimited, so a shared partition would let crops evict Previews. Within a
//! partition moka's policy admits by frequency of use. The disk tier survives a restart. It admits a variant on
//! its second render.

mod body;
mod disk;
mod record;

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use moka::sync::Cache;

use super::plan::{CacheClass, PlannedRendition};
use crate::runtime::error::{Error, Result};
use crate::runtime::failure_log::OutageLog;
use crate::runtime::{config, telemetry};
pub use body::{BlobExtent, BodyPart, RenditionBody};
use disk::DiskTier;
pub(crate) use disk::check_files;
use model::ContentHash;

/// Keys of crops requested once so far, remembered for admission to the disk cache.
const SEEN_ONCE_MAX: u64 = 100_000;

/// One value for each of a tier's two partitions.
struct Partitions<T> {
    standard: T,
    variants: T,
}

impl<T> Partitions<T> {
    fn get(&self, class: CacheClass) -> &T {
        match class {
            CacheClass::Standard => &self.standard,
            CacheClass::Variant => &self.variants,
        }
    }
}

/// Divides the capacity of a tier, in bytes.
fn shares(bytes: u64, crops_share: f32) -> Partitions<u64> {
    // A share in thousandths keeps the arithmetic in integers.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the setting is between 0 and 0.9"
    )]
    let thousandths = (crops_share * 1000.0).round() as u64;
    let variants = bytes / 1000 * thousandths.min(1000);
    Partitions { standard: bytes - variants, variants }
}

/// Bytes of an entry in addition to its body: key, counters, the map's slot.
const ENTRY_BYTES: usize = 256;

/// Creates a partition of the memory tier with room for `bytes_max` bytes.
fn new_partition(bytes_max: u64) -> Cache<ContentHash, RenditionBody> {
    Cache::builder()
        .max_capacity(bytes_max)
        .weigher(|_: &ContentHash, body: &RenditionBody| {
            // Parts in the store need no memory, but each entry has a cost of its own.
            u32::try_from(body.memory_bytes() + ENTRY_BYTES).unwrap_or(u32::MAX)
        })
        .build()
}

/// The time without a failure after which the disk tier counts as writable again: on a disk that is nearly full,
/// small files still fit.
const DISK_QUIET: Duration = Duration::from_secs(60);

/// Both tiers; a tier with a budget of 0 is absent.
pub(super) struct RenditionCache {
    memory: Option<Partitions<Cache<ContentHash, RenditionBody>>>,
    disk: Option<Arc<DiskTier>>,
    requested_once: Cache<ContentHash, ()>,
    /// Failures to write to the disk tier.
    disk_outage: OutageLog,
}

impl RenditionCache {
    /// Opens the cache, whose disk tier is in `dir`.
    pub(super) fn open(dir: &Path, budget: &config::Cache) -> Result<Self> {
        let memory = (budget.memory_bytes > 0).then(|| {
            let Partitions { standard, variants } =
                shares(budget.memory_bytes, budget.crops_share);
            Partitions { standard: new_partition(standard), variants: new_partition(variants) }
        });
        let disk = if budget.disk_bytes > 0 {
            let Partitions { standard, variants } = shares(budget.disk_bytes, budget.crops_share);
            Some(Arc::new(DiskTier::open(dir, standard, variants).map_err(Error::internal)?))
        } else {
            None
        };
        let requested_once = Cache::new(SEEN_ONCE_MAX);
        Ok(Self { memory, disk, requested_once, disk_outage: OutageLog::new() })
    }

    /// Returns whether at least one tier is enabled.
    pub(super) fn is_enabled(&self) -> bool {
        self.memory.is_some() || self.disk.is_some()
    }

    /// Returns whether the disk tier has the rendition.
    pub(super) fn is_on_disk(&self, planned: &PlannedRendition) -> bool {
        let Some(disk) = &self.disk else { return false };
        // The index is in memory, so this costs no access to the disk.
        let found = disk.contains(planned.class, planned.key);
        count("disk", found);
        found
    }

    /// Looks the body up in the memory tier.
    pub(super) fn find_in_memory(&self, planned: &PlannedRendition) -> Option<RenditionBody> {
        self.memory.as_ref()?.get(planned.class).get(&planned.key)
    }

    /// Reads the body from the disk tier and adds it to the memory tier; blocks on the disk.
    pub(super) fn read_from_disk(&self, planned: &PlannedRendition) -> Option<RenditionBody> {
        let found = self.disk.as_ref()?.read(planned.class, planned.key)?;
        // The next request for it is a hit in memory.
        self.insert(planned, &found);
        Some(found)
    }

    /// Adds a body to the memory tier.
    pub(super) fn insert(&self, planned: &PlannedRendition, body: &RenditionBody) {
        if let Some(memory) = &self.memory {
            memory.get(planned.class).insert(planned.key, body.clone());
        }
    }

    /// Writes a newly rendered body to the disk tier if it is admitted there; blocks on the disk.
    pub(super) fn write_to_disk(&self, planned: &PlannedRendition, body: &RenditionBody) {
        let Some(disk) = &self.disk else { return };
        let admitted = match planned.class {
            CacheClass::Standard => true,
            CacheClass::Variant => self.requested_once.contains_key(&planned.key),
        };
        // A variant that is requested only once would evict other variants without ever being a hit.
        if !admitted {
            self.requested_once.insert(planned.key, ());
            return;
        }
        match disk.write(planned.class, planned.key, body) {
            Ok(()) => {
                if let Some(ended) = self.disk_outage.end_after(DISK_QUIET) {
                    let failures = ended.failures;
                    let seconds = ended.lasted.as_secs();
                    tracing::info!(failures, seconds, "rendition cache: written to disk again");
                }
            }
            // The rendition was delivered, so a full disk must not turn into an error. Every write would fail.
            Err(cause) => {
                if self.disk_outage.record() {
                    tracing::warn!("rendition cache: {cause}; further failures are counted");
                }
            }
        }
    }

    /// Reports the sizes of the tiers to the metrics.
    pub(super) fn report(&self) {
        if let Some(memory) = &self.memory {
            let bytes = memory.standard.weighted_size() + memory.variants.weighted_size();
            gauge("memory", bytes);
        }
        if let Some(disk) = &self.disk {
            gauge("disk", disk.bytes());
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; 2^53 bytes are far away")]
fn gauge(tier: &'static str, bytes: u64) {
    metrics::gauge!(telemetry::CACHE_BYTES, "tier" => tier).set(bytes as f64);
}

/// Counts a lookup in a tier as a cache hit or miss.
pub(super) fn count(tier: &'static str, hit: bool) {
    static MEMORY_HITS: LazyLock<metrics::Counter> = LazyLock::new(|| counter("memory", true));
    if (tier, hit) == ("memory", true) {
        // The handle is cached because every hit in memory is counted here. The other outcomes cost far more than
        // a lookup.
        MEMORY_HITS.increment(1);
    } else {
        counter(tier, hit).increment(1);
    }
}

fn counter(tier: &'static str, hit: bool) -> metrics::Counter {
    let outcome = if hit { "hit" } else { "miss" };
    metrics::counter!(telemetry::CACHE_LOOKUPS, "tier" => tier, "outcome" => outcome)
}
