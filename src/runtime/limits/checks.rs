//! Caps of checking originals, by command and in the background.

/// Time between two notes of how far a check came; what was read since the last one is read again after an
/// interruption.
pub const CHECK_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Items whose files a scrub reads from the database at a time.
pub const SCRUB_ITEMS: usize = 100;
/// Bytes a second that a scrub reads at most, so that it does not slow renders: 41 TB in 30 days. A larger archive
/// takes longer than `store.scrub_days`.
pub const SCRUB_BYTES_S_MAX: u64 = 16 * 1024 * 1024;
/// Time between two notes of how far a scrub came; what was read since the last one is read again after a
/// restart.
pub const SCRUB_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);
/// Time after which a scrub looks again for an original that a bucket did not give, or for a first item.
pub const SCRUB_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(60);
/// Time between two looks of a waiting scrub whether its node still holds the lease.
pub const SCRUB_LEASE_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Damaged originals that a pass remembers and logs by name. Where there are more, the whole store is likely to be
/// gone, and `wirephoto check` names them all.
pub const SCRUB_REPORTED_MAX: usize = 100;
