//! Caps of search and of the index that it reads.

use std::time::Duration;

/// Threads that evaluate searches.
pub const SEARCH_THREADS: usize = 2;
/// Searches that may wait for such a thread, and for one that reads their hits; more are answered 503.
pub const SEARCH_QUEUE_MAX: usize = 512;
/// Time that the evaluation of one search may take; then it is answered 503.
pub const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Time that a search waits for items that were taken in before it began. Behind it a search answers
/// with what the index holds.
pub const SEARCH_FRESH_WAIT: Duration = Duration::from_secs(1);
/// Times that a search is evaluated because items were replaced meanwhile; the last time within the
/// transaction that reads the hits.
pub const SEARCH_ATTEMPTS_MAX: usize = 3;
/// Versions that were replaced since the index was last written, which each search leaves out; with more of
/// them searches are answered 503.
pub const SEARCH_REPLACED_MAX: usize = 100_000;
/// Seconds after which a client tries again while there is no whole index.
pub const SEARCH_RETRY_S: u32 = 10;
/// Rows of the item log that the index takes in with one commit, which takes about as long as a hundred
/// of them.
pub const INDEX_CHANGES_MAX: usize = 2000;
/// Items that are read at a time while an index is built.
pub const INDEX_BUILD_ITEMS: usize = 1000;
/// Time between two looks of the index at the item log for what other processes wrote.
pub const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two tries to write an index that cannot be written.
pub const INDEX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Folders of indexes in a data directory: one for each process that searches over it.
pub const INDEX_FOLDERS_MAX: usize = 64;
/// Time that a start waits for the search index; one that takes longer is built while the service runs.
pub const SEARCH_START_WAIT: Duration = Duration::from_secs(2);
/// Time between two looks at it.
pub const SEARCH_START_POLL_INTERVAL: Duration = Duration::from_millis(5);
