//! Limits for the database: its threads, timeouts and connections.

use std::time::Duration;

/// Database calls that may wait for a reader thread.
pub const DB_QUEUE_MAX: usize = 1024;
/// Urgent writes that may wait, and that are done before one of the others: heartbeats, of which a process
/// has one at a time.
pub const DB_URGENT_WRITES_MAX: usize = 8;
/// Reader threads; each has a read connection.
pub const DB_READERS: usize = 2;
/// Search threads; each has a connection. Searches compute more than they wait.
pub const DB_SEARCHERS: usize = 2;
/// Page cache of one read connection, KiB.
pub const DB_CACHE_KIB: i64 = 16 * 1024;
/// Page cache of the write connection, KiB: room for a batch of an archive with its index, so that no page
/// has to be written twice.
pub const DB_WRITE_CACHE_KIB: i64 = 96 * 1024;
/// Milliseconds that a write waits for another process's transaction.
pub const DB_BUSY_MS: u64 = 10_000;
/// Connect timeout of a database server; a new attempt follows after a backoff.
pub const DB_CONNECT_TIME: Duration = Duration::from_secs(5);
/// Hosts that a database URL may name; each gets the connect timeout before the next one is tried.
pub const DB_HOSTS_MAX: usize = 16;
/// The first backoff after a failed connection; doubles with each failure.
pub const DB_RETRY_FIRST: Duration = Duration::from_millis(100);
/// Maximum backoff: a server that is back is in use again within this time.
pub const DB_RETRY_MAX: Duration = Duration::from_secs(2);
/// Statement timeout of a database server, in milliseconds.
pub const DB_STATEMENT_MS: u64 = 60_000;
/// Time after which a server that has not answered, not even with a statement timeout, counts as gone.
pub const DB_ANSWER_TIME: Duration = Duration::from_secs(75);
/// Milliseconds after which a database server ends an idle transaction, so that a process that hangs does not
/// block the writes of others.
pub const DB_IDLE_MS: u64 = 60_000;
/// The same for a transaction that holds the cluster write lock, for which all nodes wait. Shorter than their
/// wait ([`DB_BUSY_MS`]), so that a node that is cut off or stopped costs them a delay but no failure.
pub const DB_WRITE_LOCK_IDLE_MS: u64 = 5_000;
/// Seconds of silence after which each side of a connection sends a keepalive probe.
pub const DB_KEEPALIVE_S: u64 = 10;
/// Unanswered probes, [`DB_KEEPALIVE_S`] apart, after which a connection is closed.
pub const DB_KEEPALIVES: u32 = 3;
/// Prepared statements cached per connection, more than there are.
pub const DB_STATEMENTS_MAX: usize = 512;
/// Rows that a database server sends at a time for a long result.
pub const DB_FETCH_ROWS: i32 = 500;
/// Poll interval for writes of other processes, in case a notification was lost.
pub const DB_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Attempts to create the schema while other processes do the same.
pub const DB_MIGRATE_TRIES: u32 = 10;
/// Milliseconds that one migration of the schema may take.
pub const DB_MIGRATE_MS: u64 = 3_600_000;
/// Interval between two heartbeats of a node. Each is a small transaction.
pub const NODE_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Time without a heartbeat after which a node counts as dead, by the clock of the observing node. Longer
/// than a write may wait for the write lock ([`DB_BUSY_MS`]) plus the interval between two heartbeats.
pub const NODE_HEARTBEAT_EXPIRY: Duration = Duration::from_secs(12);
/// Heartbeats that the observing node must have written within that time: if no node can write, none counts
/// as dead.
pub const NODE_HEARTBEATS_MIN: u32 = 3;
/// Keys in a key file: the current one and, during a rotation, those before and after it.
pub const SECRET_KEYS_MAX: usize = 16;
/// Bytes of a key file that are read.
pub const SECRET_KEY_FILE_BYTES_MAX: u64 = 64 * 1024;
