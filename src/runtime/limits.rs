//! Limits that several units share and that are no settings, each with its unit and reason. A limit of one unit stands in that
//! unit. Settings are in `config`.

use std::time::Duration;

pub use api::deliveries::{CHANNEL_FORMATS_MAX, DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT};
pub use api::limits::{EMAIL_CHARS_MAX, HITS_DEFAULT, HITS_MAX, SHORT_TEXT_CHARS_MAX};
pub use api::user::DEVICE_TOKEN_BYTES_MAX;

/// Bytes of an `item.json`. Real documents with long bodies are below 200 kB.
pub const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Changes of the override of one item that are listed, the newest ones. With the limit on the override this
/// also limits the bytes of the list.
pub const RIGHTS_CHANGES_MAX: usize = 100;
/// Cache keys that are due to be purged at a CDN; later changes stay in the item log until there is
/// room. Keys that are due later, such as at the end of an embargo, do not count.
pub const PURGES_QUEUED_MAX: usize = 10_000;
/// Rows of the item log that one transaction searches for keys to purge.
pub const PURGE_LOG_ROWS: usize = 1000;
/// Depth of nested folders that ingest descends into.
pub const INGEST_DEPTH_MAX: usize = 32;
/// Documents that ingest writes in one transaction. More are no faster and delay other writers.
pub const INGEST_BATCH_ITEMS: usize = 4096;
/// Lines per chunk of a document file; a thread validates one chunk at a time.
pub const INGEST_CHUNK_LINES: usize = 64;
/// Chunks after which ingest commits the transaction, also where most of their lines were refused.
pub const INGEST_BATCH_CHUNKS: usize = INGEST_BATCH_ITEMS / INGEST_CHUNK_LINES;
/// Age after which an unfinished upload counts as abandoned.
pub const UPLOAD_ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Files in one item folder, and parts of one upload.
pub const ITEM_FILES_MAX: usize = 200;
/// Times that a media URL is resolved for one request; it is resolved again if the item changed during
/// the render.
pub const RESOLVED_MAX: usize = 3;
/// Cache entries each for access tokens, API keys and sessions; one takes about 200 bytes.
pub const TOKENS_CACHED_MAX: u64 = 100_000;
/// Memory in KiB for hashing one password, by the settings or by a hash that is imported.
pub const HASH_MEMORY_KIB_MAX: u32 = 4 * 1024 * 1024;
/// Passes over that memory for one hash, likewise.
pub const HASH_ITERATIONS_MAX: u32 = 1000;
/// Bytes of an access token, a refresh token, a code or a session that a caller presents.
pub const TOKEN_BYTES_MAX: usize = 128;
/// Bytes of `state` and of `nonce`, each; they are echoed in a redirect URI or an id token.
pub const ECHO_BYTES_MAX: usize = 2 * 1024;
/// Authorizations that a user has for one client; the oldest is revoked to make room.
pub const FAMILIES_MAX: usize = 1000;
/// Used refresh tokens remembered for one authorization, to detect the reuse of a stolen one.
pub const USED_REFRESH_TOKENS_MAX: usize = 1000;
/// Concurrent browser sessions of one user; the oldest is ended to make room.
pub const SESSIONS_MAX: usize = 100;
/// Expired rows of one kind that a sweep removes in one transaction.
pub const SWEEP_ROWS: usize = 500;
/// Bytes of a form. The longest holds a profile, encoded.
pub const FORM_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a login form, which may carry another form encoded once more, at most three bytes for one.
pub const LOGIN_BYTES_MAX: usize = 3 * DESK_FORM_BYTES_MAX + 64 * 1024;
/// Fields of a form of the web site; the form that orders a collection has the most.
pub const SITE_FORM_FIELDS_MAX: usize = 4_000;
/// Pixels of a crop that the crop studio renders from the Hires; a larger one is shown from the Preview.
/// About 2 MB as a JPEG, each time that the frame stops moving.
pub const STUDIO_PROOF_PX_MAX: u64 = 6_000_000;
/// Bytes of the URL that a login returns to.
pub const RETURN_BYTES_MAX: usize = 8 * 1024;
/// Time for which a purchase may be downloaded again (contract purchases-4).
pub const DOWNLOADABLE_FOR: Duration = Duration::from_secs(30 * 86_400);
/// Bytes of an API key that a caller presents.
pub const API_KEY_BYTES_MAX: usize = 256;
/// Roles that one user can have.
pub const ROLES_MAX: usize = 100;
/// Attempts of an import, which restarts if the accounts changed meanwhile.
pub const IMPORT_TRIES: usize = 5;
/// Bytes of a query string, and of any URI of an HTTP/1 request; a list of a thousand product codes
/// takes 10 kB.
pub const QUERY_BYTES_MAX: usize = 64 * 1024;
/// Parameters of a query string, and elements of one list parameter.
pub const QUERY_VALUES_MAX: usize = 1000;
/// Bytes read and discarded beyond the limit of a body, so that the client receives the response
/// instead of a connection reset.
pub const BODY_DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Devices of one user; the ones registered longest ago are removed to make room.
pub const DEVICES_PER_USER_MAX: u32 = 256;
/// Poll interval of the followers for changes by other processes, in milliseconds.
pub const FOLLOW_POLL_MS: u64 = 100;
/// Retention of the item log. Followers are seconds behind at most; a search index that missed more is
/// rebuilt.
pub const ITEM_LOG_RETENTION: Duration = Duration::from_secs(7 * 86_400);
/// Difference between the change in time of day and the elapsed time that counts as a clock jump. Leap
/// seconds and the gradual corrections of time servers are smaller.
pub const CLOCK_JUMP: Duration = Duration::from_secs(60);
/// Interval at which the time is saved while the clock is right; far below [`CLOCK_SUSPECT_DRIFT`].
pub const CLOCK_SAVE_INTERVAL: Duration = Duration::from_secs(1800);
/// Difference between the clock at a start and the last saved time from which the clock is suspect. A
/// service is rarely down for longer; clocks that lost their battery are off by more.
pub const CLOCK_SUSPECT_DRIFT: Duration = Duration::from_secs(86_400);
/// Characters of a query for the search of the documentation; longer ones are refused.
pub const GUIDE_QUERY_CHARS_MAX: usize = 200;
/// Items on one page of photographs.
pub const PAGE_ITEMS: usize = 60;
/// Pages of photographs that can be requested; deeper hits require a narrower search.
pub const PAGES_MAX: usize = 160;
/// Parts of a rendition's body, in memory or in the store. A Hires with a mark needs four: new
/// metadata, the rows above the mark, those with it, those below.
pub const BODY_PARTS_MAX: usize = 8;
/// Bytes read from an original at a time while it is sent.
pub const STREAM_CHUNK_BYTES: usize = 512 * 1024;
/// `Retry-After` in seconds when a queue is full.
pub const RETRY_AFTER_S: u32 = 2;
/// Flaws of one kind that a database check reports; further ones repeat the same.
pub const CHECK_FLAWS_MAX: usize = 1000;
/// Items that wait for pre-rendering; further ones are rendered on request.
pub const WARM_QUEUE_MAX: usize = 10_000;
/// Default seconds for which a benchmark measures each operation.
pub const BENCH_SECONDS: u64 = 2;
/// Bytes of output of an external program for a PDF or a video; a grey PDF of a large graphic is the largest.
pub const PROGRAM_OUTPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of a channel's settings as JSON. A private key and a chain of certificates take 8 kB.
pub const CHANNEL_SETTINGS_BYTES_MAX: usize = 16 * 1024;
/// Private keys of channels that are unlocked concurrently for validation. Each takes up to two seconds
/// of CPU time ([`SFTP_KEY_ROUNDS_MAX`]).
pub const CHANNEL_KEYS_OPENED_MAX: usize = 2;
/// Connect timeout of an external system: name lookup, TCP, TLS.
pub const TRANSPORT_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout for the orderly close of a connection, whose outcome changes nothing.
pub const TRANSPORT_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum transfer rate in bytes per second, below which a transfer is aborted: a 100 MB Hires may
/// take 100 minutes.
pub const TRANSPORT_BYTES_S_MIN: u64 = 16 * 1024;
/// Characters of an external system's error message that are kept for the operator.
pub const TRANSPORT_ERROR_CHARS_MAX: usize = 200;
/// Files of one delivery.
pub const TRANSPORT_FILES_MAX: usize = 200;
/// Characters of a file name in an external system.
pub const TRANSPORT_NAME_CHARS_MAX: usize = 200;
/// Maximum rounds of bcrypt to unlock a private key. `ssh-keygen` uses 24, which take 0.2 s.
pub const SFTP_KEY_ROUNDS_MAX: u32 = 256;
/// Recipients of one mail at most.
pub const MAIL_RECIPIENTS_MAX: usize = 50;
/// Bytes of a mail's attachments before encoding; many servers accept 35 MB encoded.
pub const MAIL_ATTACHMENTS_BYTES: u64 = 25 * 1024 * 1024;
/// Characters of a headline in the subject of a mail.
pub const MAIL_SUBJECT_CHARS_MAX: usize = 200;
/// Timeout for one push message, including the access token that may be fetched first.
pub const PUSH_SEND: Duration = Duration::from_secs(30);
/// Bytes of a push message as JSON: the limit of both services.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 4096;
/// Bytes of a push message's title as JSON. A phone shows fewer than 200.
pub const PUSH_TITLE_BYTES_MAX: usize = 512;
/// Time that a push service stores a message for an offline device: news is old after a day.
pub const PUSH_RETENTION: Duration = Duration::from_secs(86_400);
/// Characters of a name in a mail: title, byline, source.
pub const MAIL_NAME_CHARS_MAX: usize = 120;
/// Items that a digest shows. Mail programs truncate a longer one (at 102 kB of HTML).
pub const MAIL_DIGEST_ITEMS_MAX: usize = 30;
/// Characters of the id of a picture within a mail.
pub const MAIL_CID_CHARS_MAX: usize = 128;
/// Bytes of a certificate file; all public CA certificates together take 220 kB.
pub const CERTIFICATES_BYTES_MAX: u64 = 1024 * 1024;
/// Notifications that one user can have.
pub const NOTIFICATIONS_PER_USER_MAX: usize = 1000;
/// Time without a call after which a stream expires (contract notifications-10).
pub const STREAM_EXPIRY: Duration = Duration::from_secs(300);
/// Items in one queue of a notification; the oldest are dropped.
pub const QUEUED_ITEMS_MAX: usize = 10_000;
/// Time after which a matching transaction takes no further row, so that other writers get the write
/// lock.
pub const MATCHING_TIME: Duration = Duration::from_millis(40);
/// Waiting and parked messages of one user; further ones are dropped and counted.
pub const OUTBOX_PER_USER_MAX: usize = 10_000;
/// Collections of one user. With all of their items a list of them takes 15 MB.
pub const COLLECTIONS_PER_USER_MAX: usize = 200;
/// Items of one collection, more than editors are known to select for one story.
pub const COLLECTION_ITEMS_MAX: usize = 1000;
/// Removed items that a collection remembers; the oldest are dropped.
pub const COLLECTION_REMOVED_MAX: usize = 100;
/// Rows that a migration copies in one transaction.
pub const MIGRATION_BATCH_ROWS: usize = 500;
/// Attempts to get the write lock of the old database; each waits for [`DB_BUSY_MS`].
pub const MIGRATION_LOCK_ATTEMPTS_MAX: u32 = 6;
/// User creations that one administrator may request within [`USER_REQUESTS_WINDOW_S`]. Requests refused
/// because the user name exists count too, so that names cannot be probed.
pub const USER_REQUESTS_MAX: u32 = 100;
/// Window in seconds of [`USER_REQUESTS_MAX`], and of the limit of an organization.
pub const USER_REQUESTS_WINDOW_S: u32 = 3600;
/// Counters of failed logins in the database; one takes about 200 bytes there.
pub const FAILED_LOGINS_MAX: usize = 100_000;
/// Failures that a process writes between two checks of the number of counters; up to three times as many
/// counters may exceed [`FAILED_LOGINS_MAX`].
pub const FAILED_LOGINS_BOUND_EVERY: u32 = 1000;
/// Maximum time that a delayed attempt waits; browsers and programs time out after 30 s or
/// more.
pub const PACE_WAIT_MAX: Duration = Duration::from_secs(20);
/// Lifetime of the cookie that identifies a browser in which a user logged in before.
pub const DEVICE_COOKIE_FOR: Duration = Duration::from_secs(365 * 86_400);
/// Uploads that one form of the site describes and publishes together.
pub const SITE_PUBLISH_ITEMS_MAX: usize = 20;
/// Bytes of a form of the desk. That of [`SITE_PUBLISH_ITEMS_MAX`] uploads has all their captions, in which a
/// character that is not ASCII takes six bytes or more.
pub const DESK_FORM_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a stored part of an upload, which is the most that a process that is killed can lose: what arrived before
/// a connection broke off is stored. Each part in transit is in memory.
pub const UPLOAD_PART_BYTES: usize = 4 * 1024 * 1024;
/// Requests that send parts of uploads at a time, each with at most [`UPLOAD_PART_BYTES`] in memory.
pub const UPLOAD_REQUESTS_MAX: usize = 64;
/// Requests of one user that send parts of uploads at a time.
pub const UPLOAD_REQUESTS_PER_USER_MAX: usize = 8;
/// Long side in pixels of the picture of an unpublished upload.
pub const UPLOAD_PREVIEW_PX: u32 = 512;
/// Searches that may wait for a search thread, or for a reader that loads their hits; more are answered 503.
pub const SEARCH_QUEUE_MAX: usize = 512;
/// Timeout for evaluating one search, which is then answered 503.
pub const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Item versions replaced since the index was last written, which each search has to exclude; with more,
/// searches are answered 503.
pub const SEARCH_REPLACED_MAX: usize = 100_000;
/// Items of one archive of several items.
pub const BUNDLE_ITEMS_MAX: usize = 500;
/// Items of a selection: as many as one archive holds, so that nothing of it is left out for its number.
pub const SELECTION_ITEMS_MAX: usize = BUNDLE_ITEMS_MAX;
/// Rows of a state up to which a queue is counted; a longer one has at least that many.
pub const QUEUE_COUNTED_MAX: usize = 100_000;
/// Days that one statistic covers: three years. Downloads are read by quarters of an hour, 96 a day.
pub const STATISTICS_DAYS_MAX: i32 = 1096;
/// Entries in one list of a page for operators.
pub const OPERATOR_LISTED: usize = 25;
/// Milliseconds that a write waits for another process's transaction.
pub const DB_BUSY_MS: u64 = 10_000;
/// Connect timeout of a database server; a new attempt follows after a backoff.
pub const DB_CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time after which a server that has not answered, not even with a statement timeout, counts as gone.
pub const DB_ANSWER_TIME: Duration = Duration::from_secs(75);
/// Milliseconds after which a database server ends an idle transaction that holds the cluster write lock, for which
/// all nodes wait. Shorter than their wait ([`DB_BUSY_MS`]), so that a node that is cut off or stopped costs them a
/// delay but no failure.
pub const DB_WRITE_LOCK_IDLE_MS: u64 = 5_000;
/// Seconds of silence after which each side of a connection sends a keepalive probe.
pub const DB_KEEPALIVE_S: u64 = 10;
/// Unanswered probes, [`DB_KEEPALIVE_S`] apart, after which a connection is closed.
pub const DB_KEEPALIVES: u32 = 3;
/// Interval between two heartbeats of a node. Each is a small transaction.
pub const NODE_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Time without a heartbeat after which a node counts as dead, by the clock of the observing node. Longer
/// than a write may wait for the write lock ([`DB_BUSY_MS`]) plus the interval between two heartbeats.
pub const NODE_HEARTBEAT_EXPIRY: Duration = Duration::from_secs(12);
/// Heartbeats that the observing node must have written within that time: if no node can write, none counts
/// as dead.
pub const NODE_HEARTBEATS_MIN: u32 = 3;
/// Bytes that one request to a bucket asks for; longer reads are several requests.
pub const BUCKET_READ_BYTES: u64 = 4 * 1024 * 1024;
/// Minimum rate in bytes per second, below which a request to a bucket is aborted.
pub const BUCKET_BYTES_S_MIN: u64 = 64 * 1024;
