//! Caps of the database: its threads, and what it takes of an engine.

use std::time::Duration;

/// Database calls that may wait for a reader thread.
pub const DB_QUEUE_MAX: usize = 1024;
/// Writes that go before all others that wait, and as many of which are done before one of those: signs of
/// life, of which a process has one at a time.
pub const DB_URGENT_WRITES_MAX: usize = 8;
/// Threads that own a read connection each.
pub const DB_READERS: usize = 2;
/// Threads that search, each on a connection of its own. Searches compute more than they wait.
pub const DB_SEARCHERS: usize = 2;
/// Pages of the database that one reading connection keeps in memory, KiB.
pub const DB_CACHE_KIB: i64 = 16 * 1024;
/// The same for the writing one, which holds a batch of an archive with its index before it has to
/// write pages twice.
pub const DB_WRITE_CACHE_KIB: i64 = 96 * 1024;
/// Milliseconds a write waits for another process's transaction.
pub const DB_BUSY_MS: u64 = 10_000;
/// Time that a server of a database has to take a connection; a new one is tried after a rest.
pub const DB_CONNECT_TIME: Duration = Duration::from_secs(5);
/// Hosts that the address of a database may name: each has that time before the next one is asked.
pub const DB_HOSTS_MAX: usize = 16;
/// The first rest after a connection that failed; each further one is twice as long.
pub const DB_RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest rest: a server that is back is used again within it.
pub const DB_RETRY_MAX: Duration = Duration::from_secs(2);
/// Milliseconds that a server of a database may work at one statement.
pub const DB_STATEMENT_MS: u64 = 60_000;
/// Time in which the server answers, if only that a statement took too long: behind it is nobody.
pub const DB_ANSWER_TIME: Duration = Duration::from_secs(75);
/// Milliseconds after which a server of a database ends a transaction whose owner says nothing: a
/// process that hangs must not keep the others from writing.
pub const DB_IDLE_MS: u64 = 60_000;
/// The same for one who has the turn to write, for which all nodes wait: less than they wait for it
/// ([`DB_BUSY_MS`]), so that a node that is cut off or stopped meanwhile costs them a wait and no failure.
pub const DB_WRITE_LOCK_IDLE_MS: u64 = 5_000;
/// Seconds after which each side of a silent connection asks whether the other is there.
pub const DB_KEEPALIVE_S: u64 = 10;
/// Questions without an answer, [`DB_KEEPALIVE_S`] apart, after which a connection is given up.
pub const DB_KEEPALIVES: u32 = 3;
/// Statements that a connection keeps prepared. There are fewer.
pub const DB_STATEMENTS_MAX: usize = 512;
/// Rows of a long answer that a server of a database sends at a time.
pub const DB_FETCH_ROWS: i32 = 500;
/// Time between two looks at whether others wrote, where nothing was heard of it.
pub const DB_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Times that the schema is tried to be made, where others try the same.
pub const DB_MIGRATE_TRIES: u32 = 10;
/// Milliseconds that one step of making it may take.
pub const DB_MIGRATE_MS: u64 = 3_600_000;
/// Time between two signs of life of a node. Each is a small transaction.
pub const NODE_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a node's beat stands still until it is taken for dead, by the clock of whoever looks. It is longer
/// than a write may wait for its turn ([`DB_BUSY_MS`]) with the time between two.
pub const NODE_HEARTBEAT_EXPIRY: Duration = Duration::from_secs(12);
/// Signs of life that whoever looks wrote within that time: where nobody can write nobody is dead.
pub const NODE_HEARTBEATS_MIN: u32 = 3;
/// Keys in a key file: the one in force and, while keys are rotated, those before and after it.
pub const SECRET_KEYS_MAX: usize = 16;
/// Bytes of a key file that are read.
pub const SECRET_KEY_FILE_BYTES_MAX: u64 = 64 * 1024;
