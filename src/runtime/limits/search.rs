//! Limits for search and the search index.

use std::time::Duration;

/// Threads that evaluate searches.
pub const SEARCH_THREADS: usize = 2;
/// Searches that may wait for a search thread, or for a reader that loads their hits; more are answered 503.
pub const SEARCH_QUEUE_MAX: usize = 512;
/// Timeout for evaluating one search, which is then answered 503.
pub const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Timeout for suggestions while a text is typed: later ones are of no use.
pub const SUGGESTION_TIME_MAX: Duration = Duration::from_secs(2);
/// Time for another spelling of a search without hits, which anybody can ask for: after it there is none.
pub const RESPELLING_TIME_MAX: Duration = Duration::from_millis(150);
/// Time that a search waits for the index to contain items that were published before it began; after that it
/// answers with what the index holds.
pub const SEARCH_FRESH_WAIT: Duration = Duration::from_secs(1);
/// Attempts to evaluate a search while items are replaced meanwhile; the last attempt runs within the
/// transaction that reads the hits.
pub const SEARCH_ATTEMPTS_MAX: usize = 3;
/// Item versions replaced since the index was last written, which each search has to exclude; with more,
/// searches are answered 503.
pub const SEARCH_REPLACED_MAX: usize = 100_000;
/// `Retry-After` in seconds while there is no complete index.
pub const SEARCH_RETRY_S: u32 = 10;
/// Rows of the item log that the index applies in one commit. A commit takes about as long as a hundred
/// rows.
pub const INDEX_CHANGES_MAX: usize = 2000;
/// Items read at a time while an index is built.
pub const INDEX_BUILD_ITEMS: usize = 1000;
/// Interval at which the index polls the item log for changes by other processes.
pub const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Delay between two attempts to write an index after a failure.
pub const INDEX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Index folders in a data directory: one for each process that searches over it.
pub const INDEX_FOLDERS_MAX: usize = 64;
/// Time that a start waits for the search index; a longer build continues while the service runs.
pub const SEARCH_START_WAIT: Duration = Duration::from_secs(2);
/// Poll interval during that wait.
pub const SEARCH_START_POLL_INTERVAL: Duration = Duration::from_millis(5);
