//! Limits for what operators see: diagnostics, figures of nodes, statistics.

/// Diagnostic records that wait to be written, a kilobyte each; more are counted and dropped.
pub const DIAGNOSTICS_PENDING_MAX: usize = 200;
/// Interval at which pending diagnostic records are written. An interval without one writes nothing.
pub const DIAGNOSTICS_WRITE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);
/// Diagnostic records of one kind that the table keeps, the newest ones.
pub const DIAGNOSTICS_KEPT_MAX: usize = 1000;
/// Time for which diagnostic records are kept: queries may contain the names of persons.
pub const DIAGNOSTICS_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Interval between two removals of older diagnostic records.
pub const DIAGNOSTICS_SWEEP: std::time::Duration = std::time::Duration::from_secs(3600);
/// Characters of the file, item or query of a diagnostic record.
pub const DIAGNOSTIC_SUBJECT_CHARS_MAX: usize = 300;
/// Characters of the error or the parameters of a diagnostic record.
pub const DIAGNOSTIC_DETAIL_CHARS_MAX: usize = 600;
/// Refused lines of a file of documents that its diagnostic record names.
pub const DIAGNOSTIC_LINES_MAX: usize = 3;
/// Interval at which a node publishes its figures for the other nodes.
pub const FIGURES_INTERVAL: std::time::Duration = std::time::Duration::from_secs(60);
/// Time after which a node publishes figures that did not change once more, so that their age says that it
/// lives.
pub const FIGURES_UNCHANGED_MAX: std::time::Duration = std::time::Duration::from_secs(600);
/// Time for which all requests use one count of the items in the database, which takes a scan of the table.
pub const ITEM_COUNT_LIFETIME: std::time::Duration = std::time::Duration::from_secs(60);
/// Rows of a state up to which a queue is counted; a longer one has at least that many.
pub const QUEUE_COUNTED_MAX: usize = 100_000;
/// Hours over which recent errors and slow searches are counted.
pub const DIAGNOSTICS_RECENT_HOURS: i64 = 24;
/// Failed deliveries that one request queues again, the newest ones.
pub const DELIVERIES_RETRIED_MAX: usize = 1000;
/// Days that one statistic covers: three years. Downloads are read by quarters of an hour, 96 a day.
pub const STATISTICS_DAYS_MAX: i32 = 1096;
/// Days that a statistic covers if no day is given.
pub const STATISTICS_DAYS_DEFAULT: i32 = 30;
/// Rows of a statistic as CSV, which is built in memory.
pub const STATISTICS_ROWS_MAX: usize = 100_000;
/// Rows that a page of statistics shows; the CSV has all.
pub const STATISTICS_SHOWN: usize = 50;
/// Entries in one list of a page for operators.
pub const OPERATOR_LISTED: usize = 25;
