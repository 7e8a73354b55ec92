//! Limits for the audit log.

/// Events that wait to be written to the table, a few hundred bytes each. Events that do not fit are counted
/// and remain log lines only.
pub const AUDIT_QUEUE_MAX: usize = 4096;
/// Events written in one transaction.
pub const AUDIT_BATCH_EVENTS: usize = 256;
/// Characters of the detail of an event.
pub const AUDIT_DETAIL_CHARS_MAX: usize = 300;
/// Characters of an old and of a new value in the detail of an event, which has room for both.
pub const AUDIT_VALUE_CHARS_MAX: usize = 120;
/// Characters of an id or a user name in an event; those of items and channels are shorter.
pub const AUDIT_ID_CHARS_MAX: usize = 250;
/// Networks whose throttled logins are counted separately; all others are counted together.
pub const AUDIT_THROTTLED_KEYS_MAX: usize = 1024;
/// Seconds over which the throttled logins of a network are recorded as one event.
pub const AUDIT_THROTTLED_WINDOW_S: i64 = 300;
/// Interval at which these windows are checked for their end.
pub const AUDIT_WINDOWS_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);
/// Attempts to write a batch, for a database that is briefly unavailable.
pub const AUDIT_WRITE_ATTEMPTS: u32 = 5;
/// Delay between two such attempts.
pub const AUDIT_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(1);
/// Rows of the table, about 1.5 GB; beyond that the oldest are removed regardless of their age.
pub const AUDIT_ROWS_MAX: i64 = 5_000_000;
/// Interval at which expired rows are removed.
pub const AUDIT_SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(600);
/// Rows removed in one transaction.
pub const AUDIT_SWEEP_ROWS: usize = 1000;
/// Default number of events that `wirephoto audit list` prints.
pub const AUDIT_LISTED_DEFAULT: usize = 100;
/// Maximum number of events that it prints.
pub const AUDIT_LISTED_MAX: usize = 1_000_000;
