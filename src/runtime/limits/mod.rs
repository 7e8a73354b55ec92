//! Every cap that is not a setting, with its unit and reason. Settings live in `config`.

mod accounts;
mod audit;
mod bucket;
mod checks;
mod compression;
mod database;
mod desk;
mod logins;
mod operator;
mod search;
mod selection;

pub use api::limits::{HITS_DEFAULT, HITS_MAX};

pub use accounts::*;
pub use api::deliveries::{CHANNEL_FORMATS_MAX, DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT};
pub use api::limits::{EMAIL_CHARS_MAX, SHORT_TEXT_CHARS_MAX};
pub use api::user::DEVICE_TOKEN_BYTES_MAX;
pub use audit::*;
pub use bucket::*;
pub use checks::*;
pub use compression::*;
pub use database::*;
pub use desk::*;
pub use logins::*;
pub use operator::*;
pub use search::*;
pub use selection::*;

/// Bytes of a media URL's path. The longest legal one is about 250.
pub const MEDIA_PATH_BYTES_MAX: usize = 1024;
/// Bytes of an `item.json`. Real documents with long bodies are below 200 kB.
pub const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Changes of the override of one item that are listed, the newest ones. With the limit on the override this
/// also limits the bytes of the list.
pub const RIGHTS_CHANGES_MAX: usize = 100;
/// Bytes of an accounts file. Ten thousand users take about 5 MB.
pub const ACCOUNTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the cache keys in one response. Proxies allow 4 to 8 KiB for all headers of a response, and
/// two headers carry the keys.
pub const CACHE_KEYS_BYTES_MAX: usize = 1024;
/// Cache keys that are due to be purged at a CDN; later changes stay in the item log until there is
/// room. Keys that are due later, such as at the end of an embargo, do not count.
pub const PURGES_QUEUED_MAX: usize = 10_000;
/// Rows of the item log that one transaction searches for keys to purge.
pub const PURGE_LOG_ROWS: usize = 1000;
/// Poll interval for keys that the command `purge` wrote.
pub const PURGE_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Delay before the first retry of a failed purge call; doubles with each retry.
pub const PURGE_RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(500);
/// Maximum delay between two attempts of a purge call.
pub const PURGE_RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// Delay before a refused key is purged again. Either the CDN cannot accept the key, or a setting is
/// wrong and the operator corrects it.
pub const PURGE_REFUSED_DELAY: std::time::Duration = std::time::Duration::from_secs(600);
/// Bytes of the keys in one call: a header of 8 KiB is the most that common servers read.
pub const PURGE_KEYS_BYTES_MAX: usize = 4096;
/// Purge addresses, of CDNs or of our own caches.
pub const PURGE_URLS_MAX: usize = 16;
/// Bytes of the watermark's PNG file.
pub const WATERMARK_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Depth of nested folders that ingest descends into.
pub const INGEST_DEPTH_MAX: usize = 32;
/// Files that one ingest run accepts.
pub const INGEST_FILES_MAX: usize = 1_000_000;
/// Documents that ingest writes in one transaction. More are no faster and delay other writers.
pub const INGEST_BATCH_ITEMS: usize = 4096;
/// Bytes of documents after which ingest commits the transaction.
pub const INGEST_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// Lines per chunk of a document file; a thread validates one chunk at a time.
pub const INGEST_CHUNK_LINES: usize = 64;
/// Bytes after which such a chunk ends early.
pub const INGEST_CHUNK_BYTES: usize = 256 * 1024;
/// Chunks after which ingest commits the transaction, also where most of their lines were refused.
pub const INGEST_BATCH_CHUNKS: usize = INGEST_BATCH_ITEMS / INGEST_CHUNK_LINES;
/// Chunks in flight: one batch being written and one being validated.
pub const INGEST_CHUNKS_MAX: usize = 2 * INGEST_BATCH_CHUNKS;
/// Files and item folders that one poll of the watched folder handles; the rest waits for the next poll.
pub const WATCH_ENTRIES_MAX: usize = 10_000;
/// How many of them are ingested between two checks for a shutdown.
pub const WATCH_SLICE: usize = 32;
/// Invalid lines of a document file that are listed in the report next to it.
pub const WATCH_PROBLEMS_MAX: usize = 1000;
/// Uploads that may wait for a free slot; more are answered 503.
pub const UPLOADS_WAITING_MAX: usize = 16;
/// Age after which an unfinished upload counts as abandoned.
pub const UPLOAD_ABANDONED: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// Files in one item folder, and parts of one upload.
pub const ITEM_FILES_MAX: usize = 200;
/// Times that a media URL is resolved for one request; it is resolved again if the item changed during
/// the render.
pub const RESOLVED_MAX: usize = 3;
/// Time that a request for open media waits for its caller to be looked up; then it is answered as an anonymous
/// one. A database that hangs would hold it for a minute.
pub const CALLER_LOOKUP_MAX: std::time::Duration = std::time::Duration::from_secs(2);
/// Items cached in memory; one takes a few kB.
pub const ITEMS_CACHED_MAX: u64 = 20_000;
/// Time between two removals of expired tokens and sessions.
pub const ACCOUNTS_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Cache entries each for access tokens, API keys and sessions; one takes about 200 bytes.
pub const TOKENS_CACHED_MAX: u64 = 100_000;
/// Users cached in memory with their agreements; one takes a few kB.
pub const ACCOUNTS_CACHED_MAX: u64 = 20_000;
/// Bytes of an access token, a refresh token, a code or a session that a caller presents.
pub const TOKEN_BYTES_MAX: usize = 128;
/// Parameters of a request to an OAuth2 endpoint; real requests have fewer than 20.
pub const PARAMETERS_MAX: usize = 64;
/// Bytes of one decoded OAuth2 parameter. Redirect URIs are the longest.
pub const PARAMETER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of `state` and of `nonce`, each; they are echoed in a redirect URI or an id token.
pub const ECHO_BYTES_MAX: usize = 2 * 1024;
/// Seconds that an authorization code is valid.
pub const CODE_S: u32 = 60;
/// Authorizations that a user has for one client; the oldest is revoked to make room.
pub const FAMILIES_MAX: usize = 1000;
/// Used refresh tokens remembered for one authorization, to detect the reuse of a stolen one.
pub const USED_REFRESH_TOKENS_MAX: usize = 1000;
/// Concurrent browser sessions of one user; the oldest is ended to make room.
pub const SESSIONS_MAX: usize = 100;
/// Expired rows of one kind that a sweep removes in one transaction.
pub const SWEEP_ROWS: usize = 500;
/// Seconds for which rows of the account log are kept; every process has read them by then.
pub const ACCOUNT_LOG_S: u32 = 3600;
/// Time that a password hash waits for an idle core before it becomes overdue.
pub const HASH_QUIET_WAIT: std::time::Duration = std::time::Duration::from_millis(400);
/// Number of these waits after which a password hash is abandoned: half a minute in all.
pub const HASH_QUIET_WAITS_MAX: u32 = 75;
/// Overdue password hashes that may wait for the thread with a guaranteed CPU share.
pub const HASHES_URGENT_MAX: usize = 64;
/// Ratio of that thread's pauses to its work: its share is a sixteenth of a core. During a flood of logins,
/// the throughput of cache hits falls to 0.89 of normal with a share of a tenth, and to 0.79 with a quarter.
pub const HASH_PAUSE_FACTOR: u32 = 15;
/// Bytes of a form. The longest holds a profile, encoded.
pub const FORM_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a login form, which may carry another form encoded once more, at most three bytes for one.
pub const LOGIN_BYTES_MAX: usize = 3 * DESK_FORM_BYTES_MAX + 64 * 1024;
/// Fields of a form of the web site; the form that orders a collection has the most.
pub const SITE_FORM_FIELDS_MAX: usize = 4_000;
/// Bytes of an API response that a page is built from. A collection with all its documents is the
/// largest.
pub const SITE_ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Notifications per page of their list; each one costs a search.
pub const SITE_NOTIFICATIONS_PER_PAGE: usize = 20;
/// Sample matches that the page of a notification shows.
pub const SITE_DRY_RUN_ITEMS: usize = 8;
/// Sample matches of each notification in the list.
pub const SITE_DRY_RUN_ITEMS_LISTED: usize = 4;
/// Product codes that the notification form lists.
pub const SITE_PRODUCTS_SHOWN: usize = 40;
/// Items on one page of a collection.
pub const SITE_COLLECTION_ITEMS_PER_PAGE: usize = 200;
/// Pixels of a crop that the crop studio renders from the Hires; a larger one is shown from the Preview.
/// About 2 MB as a JPEG, each time that the frame stops moving.
pub const STUDIO_PROOF_PX_MAX: u64 = 6_000_000;
/// Pictures that the list of collections shows for each collection.
pub const SITE_STRIP_PICTURES: usize = 6;
/// Languages of an `Accept-Language` header that are considered.
pub const ACCEPT_LANGUAGES_MAX: usize = 16;
/// Bytes of the URL that a login returns to.
pub const RETURN_BYTES_MAX: usize = 8 * 1024;
/// Recently verified secrets in the cache that spares them another slow hash.
pub const VERIFIED_MAX: u64 = 10_000;
/// Time for which a verified secret is remembered.
pub const VERIFIED_FOR: std::time::Duration = std::time::Duration::from_secs(300);
/// Time for which a purchase may be downloaded again (contract purchases-4).
pub const DOWNLOADABLE_FOR: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Time within which the use of a purchase must be reported, a month after the last free download
/// (contract purchases-11).
pub const REPORTABLE_FOR: std::time::Duration = std::time::Duration::from_secs(60 * 86_400);
/// Purchases cached in memory, so that a repeated download reads no disk; one takes 200 bytes.
pub const PURCHASES_CACHED_MAX: u64 = 100_000;
/// Bytes of an API key that a caller presents.
pub const API_KEY_BYTES_MAX: usize = 256;
/// Roles that one user can have.
pub const ROLES_MAX: usize = 100;
/// Redirect URIs that one client can register.
pub const REDIRECT_URIS_MAX: usize = 50;
/// Users of a changed agreement that the account log names; with more, caches are cleared as a whole.
pub const USERS_LOGGED_MAX: usize = 50;
/// Ended tokens or sessions that the account log names; if more end at once, caches are cleared as a
/// whole.
pub const ENDED_TOKENS_LOGGED_MAX: usize = 1000;
/// Attempts of an import, which restarts if the accounts changed meanwhile.
pub const IMPORT_TRIES: usize = 5;
/// Bytes of a query string, and of any URI of an HTTP/1 request; a list of a thousand product codes
/// takes 10 kB.
pub const QUERY_BYTES_MAX: usize = 64 * 1024;
/// Long polls that search at the same time when new items arrive. With thousands waiting, this spreads
/// their searches so that others run in between.
pub const POLLS_SEARCHING_MAX: usize = 2;
/// Parameters of a query string, and elements of one list parameter.
pub const QUERY_VALUES_MAX: usize = 1000;
/// Bytes of a JSON body for which no other limit is defined.
pub const JSON_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes read and discarded beyond the limit of a body, so that the client receives the response
/// instead of a connection reset.
pub const BODY_DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Users that the administrators of one organization can create.
pub const ORGANIZATION_USERS_MAX: u32 = 10_000;
/// Valid API keys of one user, and separately the revoked ones that are remembered.
pub const KEYS_PER_USER_MAX: usize = 100;
/// Devices of one user; the ones registered longest ago are removed to make room.
pub const DEVICES_PER_USER_MAX: u32 = 256;
/// Rows of the item log that the follower reads at a time.
pub const LOG_ROWS_MAX: usize = 1000;
/// Poll interval of the followers for changes by other processes, in milliseconds.
pub const FOLLOW_POLL_MS: u64 = 100;
/// Retention of the item log. Followers are seconds behind at most; a search index that missed more is
/// rebuilt.
pub const ITEM_LOG_RETENTION: std::time::Duration = std::time::Duration::from_secs(7 * 86_400);
/// Interval between two removals of older rows of the item log.
pub const ITEM_LOG_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Difference between the change in time of day and the elapsed time that counts as a clock jump. Leap
/// seconds and the gradual corrections of time servers are smaller.
pub const CLOCK_JUMP: std::time::Duration = std::time::Duration::from_secs(60);
/// Time after a clock jump during which nothing is removed as expired: enough for a wrong clock to be
/// noticed and corrected.
pub const CLOCK_TRUST: std::time::Duration = std::time::Duration::from_secs(3600);
/// Interval between two checks of the clock, and the longest time after a jump for which a restart would
/// not know of it.
pub const CLOCK_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Interval at which the time is saved while the clock is right; far below [`CLOCK_SUSPECT_DRIFT`].
pub const CLOCK_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1800);
/// Difference between the clock at a start and the last saved time from which the clock is suspect. A
/// service is rarely down for longer; clocks that lost their battery are off by more.
pub const CLOCK_SUSPECT_DRIFT: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Delay before derived files that could not be written are rebuilt, which takes a whole decode. Until
/// then the original is used without them.
pub const DERIVED_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of one response of the content API. Ten thousand ordinary documents take 30 MB.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Concept names that pages cache in each language.
pub const CONCEPT_NAMES_MAX: usize = 10_000;
/// How long an error page waits for the name of the logged-in user.
pub const ERROR_PAGE_VISITOR: std::time::Duration = std::time::Duration::from_secs(1);
/// Characters of a query for the search of the documentation; longer ones are refused.
pub const GUIDE_QUERY_CHARS_MAX: usize = 200;
/// Words of a query for the documentation.
pub const GUIDE_QUERY_WORDS_MAX: usize = 12;
/// Sections in the results of a documentation search.
pub const GUIDE_HITS_MAX: usize = 30;
/// Sections of one page in these results.
pub const GUIDE_HITS_PER_PAGE_MAX: usize = 3;
/// Bytes of text that an excerpt shows around the words of the query.
pub const GUIDE_EXCERPT_BYTES: usize = 180;
/// Items on one page of photographs.
pub const PAGE_ITEMS: usize = 60;
/// Saved searches on the first page of the site, the latest.
pub const SITE_SAVED_SEARCHES: usize = 12;
/// Orders of an item by the visitor's organization on its page, the latest.
pub const SITE_ITEM_ORDERS: usize = 6;
/// Items with the same picture on the page of a photograph.
pub const SITE_SAME_PICTURE_ITEMS: usize = 12;
/// Items of the same event, or of the same place and time, on the page of an item.
pub const SITE_SIMILAR_ITEMS: usize = 12;
/// Pages of photographs that can be requested; deeper hits require a narrower search.
pub const PAGES_MAX: usize = 160;
/// Renders that may overtake one that waits for memory, so that small ones do not wait for a
/// large one and the large one does not starve.
pub const RENDER_BYPASS_MAX: usize = 64;
/// Time after which a waiting render that no worker claimed runs on an extra thread, because other
/// programs keep all cores busy.
pub const RENDER_STALL: std::time::Duration = std::time::Duration::from_secs(1);
/// Minimum interval between two yields of a render to other threads: far below the scheduler's time slice,
/// far above the cost of the call.
pub const RENDER_YIELD_INTERVAL: std::time::Duration = std::time::Duration::from_micros(200);
/// Ratio of the extra render thread's pauses to its work: its share is a quarter of a core.
pub const RENDER_PAUSE_FACTOR: u32 = 3;
/// A full render queue is swept for abandoned requests once per this fraction of its length in
/// refusals (64: every 1/64).
pub const SWEEP_PART: usize = 64;
/// Parts of a rendition's body, in memory or in the store. A Hires with a mark needs four: new
/// metadata, the rows above the mark, those with it, those below.
pub const BODY_PARTS_MAX: usize = 8;
/// Bytes read from an original at a time while it is sent.
pub const STREAM_CHUNK_BYTES: usize = 512 * 1024;
/// Chunks prefetched from a bucket for one body, since each request waits for the network.
pub const STREAM_CHUNKS_AHEAD: usize = 3;
/// Segments (APPn, tables, …) of one JPEG. Real files have fewer than 100; an ICC profile of 16 MB
/// takes 255.
pub const JPEG_SEGMENTS_MAX: u32 = 2000;
/// Pixels of one JPEG times its scans. Each scan is a pass over the whole picture, however short its
/// data. 100 megapixels of a camera in 12 scans are 1.2 billion.
pub const JPEG_SCAN_PIXELS_MAX: u64 = 8_000_000_000;
/// Bytes of metadata segments of one JPEG that are read.
pub const JPEG_METADATA_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Keys of crops requested once so far, remembered for admission to the disk cache.
pub const SEEN_ONCE_MAX: u64 = 100_000;
/// Interval at which histogram samples are aggregated; each request takes 24 bytes until then.
pub const METRICS_UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);
/// `Retry-After` in seconds when a queue is full.
pub const RETRY_AFTER_S: u32 = 2;
/// `Retry-After` in seconds for a render that exceeded its time limit: it will probably exceed it again,
/// and each attempt costs that time.
pub const SLOW_RETRY_AFTER_S: u32 = 60;
/// Maximum length of the file with an original's standard renditions, in bytes.
pub const STANDARD_SET_BYTES_MAX: u64 = 128 << 20;
/// Jobs that wait until the standard set of one original is made; more are refused.
pub const SET_WAITERS_MAX: usize = 256;
/// Originals whose standard sets are known to be there, of 32 bytes each.
pub const SETS_KNOWN_MAX: u64 = 100_000;
/// Items whose standard renditions are looked at in one run of the job, after which its progress is stored.
pub const STANDARD_SETS_BATCH: usize = 16;
/// Time between two looks for pictures whose standard renditions are not kept yet.
pub const STANDARD_SETS_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);
/// Encoders that take at least this many times as long as JPEG's share a budget of their own.
pub const SLOW_ENCODING_COST_MIN: u32 = 50;
/// Clients whose token buckets of megapixels are kept; full buckets are dropped first.
pub const BUDGET_CLIENTS_MAX: usize = 100_000;
/// Longest `Retry-After` of a client over its rate limit, and the most that it can owe, in seconds.
pub const BUDGET_WAIT_S_MAX: u32 = 600;
/// Minimum pixels that a render is charged: a small one costs more than its pixels.
pub const RENDER_PIXELS_MIN: u64 = 100_000;
/// Seconds for which a 404 response may be cached.
pub const NOT_FOUND_MAX_AGE_S: u32 = 60;
/// Bytes of cached scan indexes and checksums; those of a 100-megapixel original take 250 kB.
pub const INDEX_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of a side file; that of the largest original is a tenth of this.
pub const SIDE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Flaws of one kind that a database check reports; further ones repeat the same.
pub const CHECK_FLAWS_MAX: usize = 1000;
/// How long an unreferenced original may belong to an ingest in progress.
pub const ORPHAN_GRACE_PERIOD: std::time::Duration = std::time::Duration::from_secs(5);
/// Age from which an unreferenced original counts as an orphan.
pub const ORPHAN_AGE_MIN: std::time::Duration = std::time::Duration::from_secs(60);
/// Database pages that a backup copies per step: 8 MB, then the progress bar advances.
pub const COPY_PAGES: i32 = 2000;
/// Times that such a step may find the copy locked, though no other process uses it.
pub const COPY_TRIES_MAX: u32 = 100;
/// Bytes of the manifest of a backup.
pub const MANIFEST_BYTES_MAX: u64 = 64 * 1024;
/// Items that wait for pre-rendering; further ones are rendered on request.
pub const WARM_QUEUE_MAX: usize = 10_000;
/// Bytes after a local mark that are sent from memory; more are streamed from the store.
pub const TAIL_READ_BYTES_MAX: u64 = 256 * 1024;
/// Default seconds for which a benchmark measures each operation.
pub const BENCH_SECONDS: u64 = 2;
/// Maximum seconds per operation of a benchmark.
pub const BENCH_SECONDS_MAX: u64 = 60;
/// Minimum renditions of a benchmark, even if they take longer; fewer say nothing.
pub const BENCH_RENDITIONS_MIN: usize = 5;
/// Renditions after which a benchmark stops; their times take 8 bytes each.
pub const BENCH_RENDITIONS_MAX: usize = 1_000_000;
/// Timeout of the command that checks readiness; containers run it every half minute.
pub const HEALTH_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
/// Bytes of the response to that check.
pub const HEALTH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of output of an external program for a PDF or a video; a grey PDF of a large graphic is the largest.
pub const PROGRAM_OUTPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of the program's messages (standard error) that are read.
pub const PROGRAM_MESSAGE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes at the beginning of an EPS that are searched for its comments.
pub const EPS_HEAD_BYTES: u64 = 64 * 1024;
/// Position of the still of a video, in milliseconds; for a shorter video, the middle.
pub const STILL_AT_MS: u64 = 1000;
/// Long side in pixels of the page image that a graphic's renditions are scaled from.
pub const PAGE_PX_MAX: u32 = 4096;
/// Concurrent renders for one archive or delivery.
pub const ARCHIVE_RENDERS_AT_A_TIME: usize = 8;
/// Associated objects whose pictures are included in an archive or delivery of a text.
pub const ASSOCIATIONS_SENT_MAX: usize = 100;
/// Characters of a panic message that an error repeats.
pub const PANIC_CHARS_MAX: usize = 200;
/// Bytes of a PDF that is processed; a larger one is stored and served without derived renditions.
pub const PDF_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Objects of a PDF; a detailed map has some 10,000.
pub const PDF_OBJECTS_MAX: usize = 1_000_000;
/// Nesting depth of pages, forms, patterns and functions of a PDF.
pub const PDF_DEPTH_MAX: usize = 64;
/// Decompressed bytes of all streams of a PDF.
pub const PDF_DECODED_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Drawing operators of a PDF; a detailed map has some 100,000.
pub const PDF_OPERATORS_MAX: u64 = 50_000_000;
/// Pixels of a rendered PDF page.
pub const PDF_PAGE_PIXELS_MAX: u64 = 32_000_000;
/// Pixels of one image in a PDF.
pub const PDF_IMAGE_PIXELS_MAX: u64 = 150_000_000;
/// JPEG quality of the page image that Previews are scaled from.
pub const PDF_PAGE_QUALITY: u8 = 93;
/// Bytes of a channel's settings as JSON. A private key and a chain of certificates take 8 kB.
pub const CHANNEL_SETTINGS_BYTES_MAX: usize = 16 * 1024;
/// Channels that one user can create; the operator can add more.
pub const CHANNELS_PER_USER_MAX: usize = 50;
/// Private keys of channels that are unlocked concurrently for validation. Each takes up to two seconds
/// of CPU time ([`SFTP_KEY_ROUNDS_MAX`]).
pub const CHANNEL_KEYS_OPENED_MAX: usize = 2;
/// Concurrent tests of channels.
pub const CHANNEL_TESTS_MAX: usize = 4;
/// Channel tests that one user may start per minute: enough for a few attempts, too few to flood a
/// mailbox or to scan ports.
pub const CHANNEL_TESTS_A_MINUTE: usize = 10;
/// Timeout of a channel test, since a user waits for the page.
pub const CHANNEL_TEST: std::time::Duration = std::time::Duration::from_secs(10);
/// Connect timeout in a channel test; shorter than the whole, so that the error names the failed step.
pub const CHANNEL_TEST_CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// Timeout for one response in a channel test.
pub const CHANNEL_TEST_ANSWER: std::time::Duration = std::time::Duration::from_secs(8);
/// Poll interval of the queue when nothing is due, since another process may have added a delivery.
pub const DELIVERY_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Retention of completed deliveries.
pub const DELIVERIES_RETENTION: std::time::Duration = std::time::Duration::from_secs(90 * 86_400);
/// Interval between two removals of older deliveries.
pub const DELIVERIES_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Connect timeout of an external system: name lookup, TCP, TLS.
pub const TRANSPORT_CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);
/// Timeout for one response of an external system, and for one step of a transfer.
pub const TRANSPORT_ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// Timeout for the orderly close of a connection, whose outcome changes nothing.
pub const TRANSPORT_CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
/// Minimum transfer rate in bytes per second, below which a transfer is aborted: a 100 MB Hires may
/// take 100 minutes.
pub const TRANSPORT_BYTES_S_MIN: u64 = 16 * 1024;
/// Bytes of an HTTP response of an external system that are read.
pub const TRANSPORT_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Characters of an external system's error message that are kept for the operator.
pub const TRANSPORT_ERROR_CHARS_MAX: usize = 200;
/// Files of one delivery.
pub const TRANSPORT_FILES_MAX: usize = 200;
/// Characters of a file name in an external system.
pub const TRANSPORT_NAME_CHARS_MAX: usize = 200;
/// Characters of the id of a delivery or a mail.
pub const TRANSPORT_ID_CHARS_MAX: usize = 128;
/// Nesting depth of folders in a channel's path.
pub const TRANSPORT_FOLDERS_MAX: usize = 16;
/// Characters of one text in a channel's settings. A certificate chain is the longest.
pub const TRANSPORT_SETTING_CHARS_MAX: usize = 64 * 1024;
/// Minimum bytes of a webhook's secret (Standard Webhooks asks for 24 to 64).
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;
/// Bytes of one write over SFTP; every server accepts 32 KiB.
pub const SFTP_WRITE_BYTES: usize = 32 * 1024;
/// SFTP writes in flight: 1 MiB, so that a distant server does not cost a round trip for each.
pub const SFTP_WRITES_MAX: usize = 32;
/// Prompts of one keyboard-interactive login that are answered with the password.
pub const SFTP_PROMPTS_MAX: usize = 4;
/// Maximum rounds of bcrypt to unlock a private key. `ssh-keygen` uses 24, which take 0.2 s.
pub const SFTP_KEY_ROUNDS_MAX: u32 = 256;
/// Bytes of one part of a large upload to S3, and of the largest upload in one piece.
pub const S3_PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts of one file in flight.
pub const S3_PARTS_MAX: usize = 2;
/// Recipients of one mail at most.
pub const MAIL_RECIPIENTS_MAX: usize = 50;
/// Bytes of one header value of a mail.
pub const MAIL_HEADER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a mail's attachments before encoding; many servers accept 35 MB encoded.
pub const MAIL_ATTACHMENTS_BYTES: u64 = 25 * 1024 * 1024;
/// Characters of a headline in the subject of a mail.
pub const MAIL_SUBJECT_CHARS_MAX: usize = 200;
/// Timeout for one push message, including the access token that may be fetched first.
pub const PUSH_SEND: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of a push service's response that are read; actual ones are below 4 kB.
pub const PUSH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a push message as JSON: the limit of both services.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 4096;
/// Bytes of a push message's title as JSON. A phone shows fewer than 200.
pub const PUSH_TITLE_BYTES_MAX: usize = 512;
/// Bytes of `apns-collapse-id`: Apple's limit.
pub const PUSH_COLLAPSE_BYTES_MAX: usize = 64;
/// Time that a push service stores a message for an offline device: news is old after a day.
pub const PUSH_RETENTION: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Longest `Retry-After` of a push service that is honoured.
pub const PUSH_AFTER_MAX: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Bytes of a key file or a certificate file for push services.
pub const PUSH_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Interval between two pings on a connection, so that a dead one is noticed before it is used.
pub const PUSH_PING: std::time::Duration = std::time::Duration::from_secs(60);
/// Timeout for the response to a ping.
pub const PUSH_PING_ANSWER: std::time::Duration = std::time::Duration::from_secs(10);
/// Idle timeout of a connection. Apple asks for connections to be kept open.
pub const PUSH_IDLE: std::time::Duration = std::time::Duration::from_secs(3600);
/// Hex digits of an Apple device token; those in use have 64 or 160.
pub const APNS_TOKEN_CHARS_MAX: usize = 512;
/// Age at which our provider token for Apple is renewed; Apple requires 20 to 60 minutes.
pub const APNS_BEARER_AGE: std::time::Duration = std::time::Duration::from_secs(40 * 60);
/// Minimum age for a renewal: Apple rejects more frequent ones.
pub const APNS_BEARER_AGE_MIN: std::time::Duration = std::time::Duration::from_secs(20 * 60);
/// Validity of our assertion for an access token: Google accepts an hour at most.
pub const FCM_ASSERTION: std::time::Duration = std::time::Duration::from_secs(3600);
/// Margin before expiry in which an access token is no longer used, if its lifetime is more than twice
/// that.
pub const FCM_ACCESS_MARGIN: std::time::Duration = std::time::Duration::from_secs(300);
/// Characters of a headline in a mail.
pub const MAIL_HEADLINE_CHARS_MAX: usize = 200;
/// Characters of the description in the mail of one item: enough for a long caption.
pub const MAIL_DESCRIPTION_CHARS_MAX: usize = 2000;
/// Characters of a description in a digest, about three lines.
pub const MAIL_DIGEST_DESCRIPTION_CHARS_MAX: usize = 220;
/// Characters of a name in a mail: title, byline, source.
pub const MAIL_NAME_CHARS_MAX: usize = 120;
/// Items that a digest shows. Mail programs truncate a longer one (at 102 kB of HTML).
pub const MAIL_DIGEST_ITEMS_MAX: usize = 30;
/// Bytes of a URL in a mail.
pub const MAIL_URL_BYTES_MAX: usize = 2048;
/// Characters of the id of a picture within a mail.
pub const MAIL_CID_CHARS_MAX: usize = 128;
/// Bytes of a custom mail template.
pub const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of a certificate file; all public CA certificates together take 220 kB.
pub const CERTIFICATES_BYTES_MAX: u64 = 1024 * 1024;
/// Notifications that one user can have.
pub const NOTIFICATIONS_PER_USER_MAX: usize = 1000;
/// Time without a call after which a stream expires (contract notifications-10).
pub const STREAM_EXPIRY: std::time::Duration = std::time::Duration::from_secs(300);
/// Items in one queue of a notification; the oldest are dropped.
pub const QUEUED_ITEMS_MAX: usize = 10_000;
/// Calls of stream readers that may wait for the database.
pub const STREAM_READS_MAX: usize = 65_536;
/// Calls of stream readers that one transaction handles.
pub const STREAM_READS_PER_TRANSACTION: usize = 1000;
/// Stream responses built concurrently; each waits for a search thread.
pub const STREAM_ANSWERS_MAX: usize = 64;
/// Poll interval of the matcher, in milliseconds.
pub const MATCHING_MS: u64 = 20;
/// Interval of the matcher's checks for events due by time (ends of embargoes, scheduled mails), in
/// milliseconds.
pub const MATCHING_CLOCK_MS: u64 = 250;
/// Rows of the item log that one transaction matches.
pub const MATCHING_ROWS: usize = 500;
/// Time after which a matching transaction takes no further row, so that other writers get the write
/// lock.
pub const MATCHING_TIME: std::time::Duration = std::time::Duration::from_millis(40);
/// Time for which unreadable items block matching: a disk error may be temporary, damage is
/// permanent.
pub const MATCHING_STALL_MAX: std::time::Duration = std::time::Duration::from_secs(20);
/// Items of the archive from which the matcher estimates word frequencies.
pub const MATCHING_LEARNED: usize = 1000;
/// Scheduled mails that one transaction prepares.
pub const DIGESTS_AT_A_TIME: usize = 50;
/// Waiting and parked messages of one user; further ones are dropped and counted.
pub const OUTBOX_PER_USER_MAX: usize = 10_000;
/// Messages in one list for the operator.
pub const OUTBOX_LISTED_MAX: usize = 10_000;
/// Retention of parked messages.
pub const OUTBOX_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Poll interval of the outbox when nothing is due, since the operator may have queued a message.
pub const OUTBOX_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Messages of one transport that a sweep for lost claims releases at a time. One claim takes no more than are
/// sent at a time.
pub const MESSAGES_RELEASED_MAX: usize = 1000;
/// Timeout for sending one message.
pub const MESSAGE_TIME: std::time::Duration = std::time::Duration::from_secs(180);
/// Interval of the notification sweep: records a heartbeat, releases orphaned claims, removes expired
/// streams, counts waiting messages.
pub const NOTIFICATIONS_SWEEP: std::time::Duration = std::time::Duration::from_secs(10);
/// Timeout for one picture of a mail.
pub const MESSAGE_PICTURE_TIME: std::time::Duration = std::time::Duration::from_secs(20);
/// Bytes of one picture in a mail; a Thumbnail takes 20 kB.
pub const MESSAGE_PICTURE_BYTES_MAX: usize = 512 * 1024;
/// File descriptors needed besides those of connections: the database, the store, logs, mail servers.
pub const FILES_BESIDE_CONNECTIONS: u64 = 1000;
/// Delay before a stream reader first retries items that could not be delivered.
pub const STREAM_RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(20);
/// Maximum of that delay, which doubles with each retry.
pub const STREAM_RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Timeout for all pictures of one mail together.
pub const MESSAGE_PICTURES_TIME: std::time::Duration = std::time::Duration::from_secs(60);
/// Parked messages of all users; the oldest are removed.
pub const OUTBOX_PARKED_MAX: usize = 100_000;
/// Collections of one user. With all of their items a list of them takes 15 MB.
pub const COLLECTIONS_PER_USER_MAX: usize = 200;
/// Items of one collection, more than editors are known to select for one story.
pub const COLLECTION_ITEMS_MAX: usize = 1000;
/// Removed items that a collection remembers; the oldest are dropped.
pub const COLLECTION_REMOVED_MAX: usize = 100;
/// Characters of the headline, and of the description, remembered of a removed item.
pub const COLLECTION_REMOVED_CHARS_MAX: usize = 2000;
/// Minimum interval between two writes of a collection's last access, so that a page in constant use
/// does not cause constant writes.
pub const COLLECTION_ACCESSED: std::time::Duration = std::time::Duration::from_secs(60);
/// Items of one archive of several items.
pub const BUNDLE_ITEMS_MAX: usize = 500;
/// Files of such an archive; an article with its pictures has about ten.
pub const BUNDLE_FILES_MAX: usize = 5000;
/// Attempts to build such an archive, which restarts if a purchase was made meanwhile.
pub const BUNDLE_TRIES: usize = 3;
/// Characters of a download's file name without its extension; an item's id fits.
pub const FILE_NAME_CHARS_MAX: usize = 128;
/// Traces of requests that wait to be sent; further ones are counted and dropped. One has up to six
/// spans of half a kilobyte.
pub const TRACES_WAITING_MAX: usize = 2048;
/// Spans in one batch to the collector.
pub const TRACES_BATCH_SPANS: usize = 512;
/// Interval between two batches, unless a full batch waits.
pub const TRACES_SEND_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Timeout for sending one batch to the collector.
pub const TRACES_SEND_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Time for the last batches at shutdown.
pub const TRACES_LAST_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Bytes of a collector's response that are read.
pub const TRACES_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Extra time for a shutdown that systemd is asked for, beyond the times in the settings.
pub const STOP_GRACE_PERIOD: std::time::Duration = std::time::Duration::from_secs(15);
/// Rows that a migration copies in one transaction.
pub const MIGRATION_BATCH_ROWS: usize = 500;
/// Bytes of copied rows after which a migration commits.
pub const MIGRATION_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Bound values of one insert statement of a migration; SQLite accepts 32,766, PostgreSQL 65,535.
pub const MIGRATION_STATEMENT_VALUES_MAX: usize = 8192;
/// Attempts to get the write lock of the old database; each waits for [`DB_BUSY_MS`].
pub const MIGRATION_LOCK_ATTEMPTS_MAX: u32 = 6;
/// Catch-up rounds of a migration while the old database is written, before writers are blocked.
pub const MIGRATION_ROUNDS_MAX: usize = 100;
