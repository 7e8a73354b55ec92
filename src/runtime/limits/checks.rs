//! Limits for verifying originals, by command and in the background.

/// Interval at which a check saves its progress; what was read since then is read again after an
/// interruption.
pub const CHECK_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Items whose files a scrub reads from the database per query.
pub const SCRUB_ITEMS: usize = 100;
/// Maximum bytes per second that a scrub reads, so that it does not slow renders: 41 TB in 30 days. A larger
/// archive takes longer than `store.scrub_days`.
pub const SCRUB_BYTES_S_MAX: u64 = 16 * 1024 * 1024;
/// Interval at which a scrub saves its progress; what was read since then is read again after a restart.
pub const SCRUB_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);
/// Delay before a scrub retries an original that a bucket did not return, or looks for a first item.
pub const SCRUB_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(60);
/// Interval at which a waiting scrub checks that its node still holds the lease.
pub const SCRUB_LEASE_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Damaged originals that a pass remembers and logs by name. With more, the whole store is probably gone, and
/// `wirephoto check` names them all.
pub const SCRUB_REPORTED_MAX: usize = 100;
