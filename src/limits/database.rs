//! Caps of the database: its threads, and what it takes of an engine.

use std::time::Duration;

/// Database calls that may wait for a reader thread.
pub const DB_QUEUE_MAX: usize = 1024;
/// Writes that go before all others that wait, and as many of which are done before one of those: signs of
/// life, of which a process has one at a time.
pub const DB_FIRST_MAX: usize = 8;
/// Threads that own a read connection each.
pub const DB_READERS: usize = 2;
/// Threads that search, each on a connection of its own. Searches compute more than they wait.
pub const DB_SEARCHERS: usize = 2;
/// Searches that may wait for such a thread; more are answered 503.
pub const SEARCH_QUEUE_MAX: usize = 512;
/// Pages of the database that one reading connection keeps in memory, KiB.
pub const DB_CACHE_KIB: i64 = 16 * 1024;
/// The same for the writing one, which holds a batch of an archive with its index before it has to
/// write pages twice.
pub const DB_WRITE_CACHE_KIB: i64 = 96 * 1024;
/// Values of one facet whose numbers the writing connection remembers; a value takes 100 bytes.
pub const FACET_VALUES_REMEMBERED_MAX: usize = 50_000;
/// Items that one transaction takes into an index that is made anew.
pub const REINDEX_ROWS: usize = 1000;
/// Items that one transaction takes out of it before: some tenths of a second, in which others wait to write.
pub const REINDEX_CLEARED: i64 = 5000;
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
pub const DB_TURN_IDLE_MS: u64 = 5_000;
/// Seconds after which each side of a silent connection asks whether the other is there.
pub const DB_KEEPALIVE_S: u64 = 10;
/// Questions without an answer, [`DB_KEEPALIVE_S`] apart, after which a connection is given up.
pub const DB_KEEPALIVES: u32 = 3;
/// Statements that a connection keeps prepared. There are fewer.
pub const DB_STATEMENTS_MAX: usize = 512;
/// Rows of a long answer that a server of a database sends at a time.
pub const DB_PORTION_ROWS: i32 = 500;
/// Groups of numbers that it sends at a time, each of at most [`DB_GROUP_NUMBERS`].
pub const DB_PORTION_GROUPS: i32 = 8;
/// Numbers that lie so close together are sent as one row, of 8 bytes a number.
pub const DB_GROUP_NUMBERS: i64 = 65_536;
/// Time between two looks at whether others wrote, where nothing was heard of it.
pub const DB_LOOK: Duration = Duration::from_millis(250);
/// Times that the schema is tried to be made, where others try the same.
pub const DB_MIGRATE_TRIES: u32 = 10;
/// Milliseconds that one step of making it may take.
pub const DB_MIGRATE_MS: u64 = 3_600_000;
/// Time between two signs of life of a node. Each is a small transaction.
pub const NODE_BEAT: Duration = Duration::from_secs(2);
/// Time for which a node's beat stands still until it is taken for dead, by the clock of whoever looks. It is longer
/// than a write may wait for its turn ([`DB_BUSY_MS`]) with the time between two.
pub const NODE_STILL: Duration = Duration::from_secs(12);
/// Signs of life that whoever looks wrote within that time: where nobody can write nobody is dead.
pub const NODE_BEATS_MIN: u32 = 3;
/// Bytes that one text of an item may take in PostgreSQL's index of words, which holds less than
/// 1 MiB; a novel takes half of it.
pub const DB_WORDS_BYTES_MAX: usize = 1_000_000;
/// Places of one word in a text that PostgreSQL's index of words keeps.
pub const DB_WORD_PLACES_MAX: usize = 255;
/// The last place of a word that it tells from others.
pub const DB_WORD_PLACE_MAX: usize = 16_383;
/// Numbers of items in a block of PostgreSQL's lists of frequent words. What is behind the last block is
/// looked through row by row.
pub const DB_FOLD_BLOCK: i64 = 4096;
/// Numbers of items before there are such lists; a smaller archive's rows are quickly read.
pub const DB_FOLD_LEAST: i64 = 32_768;
/// A word is frequent that more than one of so many items has. Of a rarer one a million items have 5,000
/// rows to read, which takes 50 to 100 ms.
pub const DB_FOLD_SHARE: i64 = 200;
/// The same for words of which there are lists of two side by side: those make up most of the lists.
pub const DB_FOLD_PAIR_SHARE: i64 = 50;
/// Frequent words of one text.
pub const DB_FOLD_WORDS_MAX: i64 = 4000;
/// Parts of the archive that are looked through for frequent words.
pub const DB_FOLD_PARTS: i64 = 16;
/// Numbers of items in each of them.
pub const DB_FOLD_PART: i64 = 2048;
/// Rows of lists that are used no more that one step removes.
pub const DB_FOLD_REMOVED: i64 = 10_000;
/// Items whose rows are asked for a phrase at a time.
pub const DB_FOLD_ASKED: usize = 1000;
/// Time between two looks whether a block is full.
pub const DB_FOLD_LOOK: Duration = Duration::from_secs(5);
/// The shortest rest between two steps; it lasts as long as the step did.
pub const DB_FOLD_REST: Duration = Duration::from_millis(50);
/// Keys in a key file: the one in force and, while keys are rotated, those before and after it.
pub const SECRET_KEYS_MAX: usize = 16;
/// Bytes of a key file that are read.
pub const SECRET_KEY_FILE_BYTES_MAX: u64 = 64 * 1024;
