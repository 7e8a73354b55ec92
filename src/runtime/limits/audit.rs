//! Caps of the audit log.

/// Events that wait to be written to the table. They hold some hundred bytes each; what finds no
/// room is counted and stays a log line.
pub const AUDIT_QUEUE_MAX: usize = 4096;
/// Events that are written in one transaction.
pub const AUDIT_BATCH_EVENTS: usize = 256;
/// Characters of the detail of an event.
pub const AUDIT_DETAIL_CHARS_MAX: usize = 300;
/// Characters of an id or a user name in an event; those of items and channels are shorter.
pub const AUDIT_ID_CHARS_MAX: usize = 250;
/// Networks whose throttled logins are counted apart; those of all others are counted together.
pub const AUDIT_THROTTLED_KEYS_MAX: usize = 1024;
/// Seconds in which the throttled logins of a network are recorded together.
pub const AUDIT_THROTTLED_WINDOW_S: i64 = 300;
/// Time between two looks whether such a window is over.
pub const AUDIT_WINDOWS_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);
/// Tries to write a batch, for a database that is away for a moment.
pub const AUDIT_WRITE_ATTEMPTS: u32 = 5;
/// Time between two of them.
pub const AUDIT_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(1);
/// Rows of the table, about 1.5 GB; the oldest go first, however young they are.
pub const AUDIT_ROWS_MAX: i64 = 5_000_000;
/// Time between two looks for rows that are to be removed.
pub const AUDIT_SWEEP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(600);
/// Rows that are removed in one transaction.
pub const AUDIT_SWEEP_ROWS: usize = 1000;
/// Events that `wirephoto audit list` prints unless it is told otherwise.
pub const AUDIT_LISTED_DEFAULT: usize = 100;
/// Events that it prints at most.
pub const AUDIT_LISTED_MAX: usize = 1_000_000;
