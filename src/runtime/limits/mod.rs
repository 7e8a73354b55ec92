//! Every cap that is not a setting, with its unit and reason. Settings live in `config`.

mod accounts;
mod audit;
mod bucket;
mod checks;
mod compression;
mod database;
mod logins;
mod search;

pub use accounts::*;
pub use audit::*;
pub use bucket::*;
pub use checks::*;
pub use compression::*;
pub use database::*;
pub use logins::*;
pub use search::*;

/// Bytes of a media URL's path. The longest legal one is about 250.
pub const MEDIA_PATH_BYTES_MAX: usize = 1024;
/// Bytes of an `item.json`. Real documents with long bodies are below 200 kB.
pub const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of an accounts file. Ten thousand users take about 5 MB.
pub const ACCOUNTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of the keys of one answer for a CDN. Proxies give all headers of an answer 4 to 8 KiB
/// together, and the keys stand in two of them.
pub const CACHE_KEYS_BYTES_MAX: usize = 1024;
/// Keys that are due to be told to a CDN; changes behind them stay in the item log until there is
/// room. What is due later, as when an embargo ends, does not count.
pub const PURGES_QUEUED_MAX: usize = 10_000;
/// Rows of the item log that are looked through in one transaction for keys to tell a CDN.
pub const PURGE_LOG_ROWS: usize = 1000;
/// Time after which keys are looked for that the command `purge` wrote.
pub const PURGE_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Time until the second try of a call that failed; it doubles with each.
pub const PURGE_RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(500);
/// The longest time between two tries.
pub const PURGE_RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(60);
/// Time after which a key is told again that a CDN refused. It is a key that it cannot take, or a
/// setting that is wrong and that somebody puts right.
pub const PURGE_REFUSED_DELAY: std::time::Duration = std::time::Duration::from_secs(600);
/// Bytes of the keys in one call: a header of 8 KiB is the most that common servers read.
pub const PURGE_KEYS_BYTES_MAX: usize = 4096;
/// Addresses of CDNs, or of caches of ours, that are told.
pub const PURGE_URLS_MAX: usize = 16;
/// Bytes of a watermark picture.
pub const WATERMARK_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Folders within folders that ingest follows.
pub const INGEST_DEPTH_MAX: usize = 32;
/// Files that one run of ingest takes in.
pub const INGEST_FILES_MAX: usize = 1_000_000;
/// Documents that ingest writes in one transaction. More gain nothing and keep other writers waiting.
pub const INGEST_BATCH_ITEMS: usize = 4096;
/// Bytes of documents after which a transaction has enough of them.
pub const INGEST_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// Lines of a file of documents that one thread checks at a time.
pub const INGEST_CHUNK_LINES: usize = 64;
/// Bytes after which it has enough of them.
pub const INGEST_CHUNK_BYTES: usize = 256 * 1024;
/// Such chunks under way: a batch that is being written and one that is being checked.
pub const INGEST_CHUNKS_MAX: usize = 2 * INGEST_BATCH_ITEMS / INGEST_CHUNK_LINES;
/// Files and item folders that one look at the watched folder sees; the rest waits for a later one.
pub const WATCH_ENTRIES_MAX: usize = 10_000;
/// Of these, how many are taken in between two looks at whether the service stops.
pub const WATCH_SLICE: usize = 32;
/// Bad lines of a file of documents that are listed beside it.
pub const WATCH_PROBLEMS_MAX: usize = 1000;
/// Uploads that may wait for those under way; more are answered 503.
pub const UPLOADS_WAITING_MAX: usize = 16;
/// Age after which a file that was being uploaded belongs to nobody any more.
pub const UPLOAD_ABANDONED: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
/// Files in one item folder, and parts of one upload.
pub const ITEM_FILES_MAX: usize = 200;
/// Times that an address is looked up for one request: again when its item changed while its bytes
/// were made.
pub const RESOLVED_MAX: usize = 3;
/// Items whose facts are kept in memory; one takes a few kB.
pub const ITEMS_CACHED_MAX: u64 = 20_000;
/// Time between two removals of expired tokens and sessions.
pub const ACCOUNTS_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Access tokens, API keys and sessions kept in memory, each; one takes about 200 bytes.
pub const TOKENS_CACHED_MAX: u64 = 100_000;
/// Users kept in memory with their agreements; one takes a few kB.
pub const ACCOUNTS_CACHED_MAX: u64 = 20_000;
/// Bytes of an access token, a refresh token, a code or a session that a caller presents.
pub const TOKEN_BYTES_MAX: usize = 128;
/// Bytes of a password or a client secret; longer ones only cost hashing time.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Parameters of a request to an OAuth2 endpoint; real ones have below 20.
pub const PARAMETERS_MAX: usize = 64;
/// Bytes of one of them, decoded. Redirect addresses are the longest.
pub const PARAMETER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of `state` and of `nonce`, each, which come back in an address or in an id token.
pub const ECHO_BYTES_MAX: usize = 2 * 1024;
/// Seconds within which an authorization code is exchanged.
pub const CODE_S: u32 = 60;
/// Authorizations of one client that a user has at a time; the oldest gives way.
pub const FAMILIES_MAX: usize = 1000;
/// Used refresh tokens of one authorization that are remembered, so that a stolen one is noticed.
pub const USED_REFRESH_TOKENS_MAX: usize = 1000;
/// Browsers that a user is logged in with at a time; the oldest login gives way.
pub const SESSIONS_MAX: usize = 100;
/// Rows of a kind that a sweep of what expired removes in its transaction.
pub const SWEEP_ROWS: usize = 500;
/// Seconds after which every process has read a row of the account log.
pub const ACCOUNT_LOG_S: u32 = 3600;
/// How long a password waits for a moment in which nobody else wants to compute.
pub const HASH_QUIET_WAIT: std::time::Duration = std::time::Duration::from_millis(400);
/// Times of that length after which a password is given up: half a minute.
pub const HASH_QUIET_WAITS_MAX: u32 = 75;
/// Passwords beyond that time that may wait for the thread that takes its share.
pub const HASHES_URGENT_MAX: usize = 64;
/// How much longer that thread rests than it works: a sixteenth of a core is its share. With a tenth,
/// cached hits beside a flood of logins fell to 0.89 of what they are alone, with a quarter to 0.79.
pub const HASH_PAUSE_FACTOR: u32 = 15;
/// Bytes of a form. The longest holds a profile, encoded.
pub const FORM_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a login, which may hand on another form, encoded once more: three for one at most.
pub const LOGIN_BYTES_MAX: usize = 3 * FORM_BYTES_MAX + 64 * 1024;
/// Fields of a form of the web site; the order of a collection is the longest.
pub const SITE_FORM_FIELDS_MAX: usize = 4_000;
/// Bytes of an API's answer that a page is made of. A collection with all of its documents is the
/// largest.
pub const SITE_ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Notifications on one page of their list; each is searched for.
pub const SITE_NOTIFICATIONS_PER_PAGE: usize = 20;
/// Items that a page shows of a dry run.
pub const SITE_DRY_RUN_ITEMS: usize = 8;
/// The same of each notification in the list.
pub const SITE_DRY_RUN_ITEMS_LISTED: usize = 4;
/// Product codes that the form of a notification names.
pub const SITE_PRODUCTS_SHOWN: usize = 40;
/// Items on one page of a collection.
pub const SITE_COLLECTION_ITEMS_PER_PAGE: usize = 200;
/// Pixels of a crop that the crop studio shows from the Hires; a larger one is shown from the Preview.
/// About 2 MB as a JPEG, each time that the frame comes to rest.
pub const STUDIO_PROOF_PX_MAX: u64 = 6_000_000;
/// Pictures that the list of collections shows of each.
pub const SITE_STRIP_PICTURES: usize = 6;
/// Sessions whose latest calls are kept in memory for the page `/code`.
pub const ACTIVITY_SESSIONS_MAX: u64 = 1_000;
/// Seconds after which the calls of an idle session are forgotten.
pub const ACTIVITY_KEPT_S: u32 = 12 * 3600;
/// Calls that are kept of a session.
pub const ACTIVITY_CALLS_MAX: usize = 20;
/// Bytes of address and body of a call that is kept; with the two above 80 MB at most.
pub const ACTIVITY_CALL_BYTES_MAX: usize = 4 * 1024;
/// Languages of a browser that are looked at.
pub const ACCEPT_LANGUAGES_MAX: usize = 16;
/// Bytes of the address that a login leads back to.
pub const RETURN_BYTES_MAX: usize = 8 * 1024;
/// Secrets that were verified a short while ago, remembered so that they need no slow hash.
pub const VERIFIED_MAX: u64 = 10_000;
/// Time for which a verified secret is remembered.
pub const VERIFIED_FOR: std::time::Duration = std::time::Duration::from_secs(300);
/// Time for which a purchase may be downloaded again (contract purchases-4).
pub const DOWNLOADABLE_FOR: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Time in which the use of a purchase is to be reported, a month after the last free download
/// (contract purchases-11).
pub const REPORTABLE_FOR: std::time::Duration = std::time::Duration::from_secs(60 * 86_400);
/// Purchases kept in memory, so that a repeated download touches no disk; one takes 200 bytes.
pub const PURCHASES_CACHED_MAX: u64 = 100_000;
/// Orders in one list, as many as hits of a search.
pub const ORDERS_LISTED_MAX: usize = 10_000;
/// Orders in a list, unless the caller says otherwise (contract purchases-12).
pub const ORDERS_SIZE_DEFAULT: usize = 20;
/// Characters of what a customer wants on an invoice.
pub const INVOICE_TEXT_CHARS_MAX: usize = 2000;
/// Bytes of an API key that a caller presents.
pub const API_KEY_BYTES_MAX: usize = 256;
/// Bytes of a name, a description and other free text in accounts.
pub const ACCOUNT_TEXT_BYTES_MAX: usize = 4096;
/// Roles of a user.
pub const ROLES_MAX: usize = 100;
/// Redirect URIs of a client.
pub const REDIRECT_URIS_MAX: usize = 50;
/// Bytes of a redirect URI.
pub const REDIRECT_URI_BYTES_MAX: usize = 2048;
/// Users of an agreement whose change is logged one by one; with more, caches forget everything.
pub const USERS_LOGGED_MAX: usize = 50;
/// Tokens or sessions whose end is logged one by one; when more end at once, caches forget
/// everything.
pub const ENDED_TOKENS_LOGGED_MAX: usize = 1000;
/// Times that an import starts anew because somebody changed accounts meanwhile.
pub const IMPORT_TRIES: usize = 5;
/// Bytes of a query string; a list of a thousand product codes takes 10 kB. No URI of an HTTP/1
/// request is longer.
pub const QUERY_BYTES_MAX: usize = 64 * 1024;
/// Hits of a search at most, and hits passed over (contract search-6).
pub const HITS_MAX: usize = 10_000;
/// Hits of a search that does not say how many (contract search-6).
pub const HITS_DEFAULT: usize = 20;
/// Seconds that a long poll of the deprecated stream waits, unless it says otherwise (contract
/// search-19).
pub const POLL_S: u32 = 60;
/// Seconds that it may say (contract search-19).
pub const POLL_S_MAX: u32 = 300;
/// Long polls that look at once after items came in: with thousands waiting, each look comes a
/// little later, and other searches get their turn in between.
pub const POLLS_SEARCHING_MAX: usize = 2;
/// Parameters of a query string, and elements of a list in it.
pub const QUERY_VALUES_MAX: usize = 1000;
/// Bytes of a JSON body that has no limit of its own.
pub const JSON_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes beyond its limit that are read of a body, so that the client gets to see the answer and
/// no reset connection.
pub const BODY_DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Characters of a name, a department or another short text of a user.
pub const SHORT_TEXT_CHARS_MAX: usize = 200;
/// Characters of an e-mail address (RFC 5321 §4.5.3.1.3, without the angle brackets).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Users of one organization that its administrators can make.
pub const ORGANIZATION_USERS_MAX: u32 = 10_000;
/// Bytes of a user's profile.
pub const PROFILE_BYTES_MAX: usize = 64 * 1024;
/// Live API keys of one user, and revoked ones of its own that are remembered.
pub const KEYS_PER_USER_MAX: usize = 100;
/// Devices of one user; the ones registered longest ago make room.
pub const DEVICES_PER_USER_MAX: u32 = 256;
/// Bytes of a device token. Those in use have below 300; an index of PostgreSQL has room for 2,700.
pub const DEVICE_TOKEN_BYTES_MAX: usize = 2048;
/// Rows of the item log that the follower reads at a time.
pub const LOG_ROWS_MAX: usize = 1000;
/// Milliseconds between two looks at the database for changes by other processes.
pub const FOLLOW_POLL_MS: u64 = 100;
/// Time for which rows of the item log are kept. Who follows the log is seconds behind at most; a
/// search that was asleep for longer reads everything anew.
pub const ITEM_LOG_RETENTION: std::time::Duration = std::time::Duration::from_secs(7 * 86_400);
/// Time between two removals of older rows.
pub const ITEM_LOG_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Difference between the time of day and the time that passed that is a jump of the clock. A leap
/// second and what time servers correct bit by bit are less.
pub const CLOCK_JUMP: std::time::Duration = std::time::Duration::from_secs(60);
/// Time after a jump of the clock in which nothing is removed because it expired: a wrong clock is
/// noticed and set right within it.
pub const CLOCK_TRUST: std::time::Duration = std::time::Duration::from_secs(3600);
/// Time between two looks at the clock, and the longest time for which a restart does not know that
/// it jumped.
pub const CLOCK_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);
/// Time between two notes of a clock that goes on as it should: less than [`CLOCK_SUSPECT_DRIFT`] by far.
pub const CLOCK_SAVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1800);
/// Difference between the clock at a start and the last note of it from which on it is doubted. A
/// service is rarely down for longer; clocks that lost their battery are off by more.
pub const CLOCK_SUSPECT_DRIFT: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Time for which an original is used without derived files that could not be written, before they
/// are made again: that takes a whole decode.
pub const DERIVED_RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of one answer of the content API. Ten thousand ordinary documents take 30 MB.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Names of codes that pages remember, for all languages together.
pub const CONCEPT_NAMES_MAX: usize = 10_000;
/// How long pages remember the name of a code.
pub const CONCEPT_NAME_FOR: std::time::Duration = std::time::Duration::from_secs(10 * 60);
/// How long an error page looks for the name of its visitor.
pub const ERROR_PAGE_VISITOR: std::time::Duration = std::time::Duration::from_secs(1);
/// Characters of a query for the search of the documentation; longer ones are refused.
pub const GUIDE_QUERY_CHARS_MAX: usize = 200;
/// Words of such a query.
pub const GUIDE_QUERY_WORDS_MAX: usize = 12;
/// Sections that the search of the documentation lists.
pub const GUIDE_HITS_MAX: usize = 30;
/// Sections of one page among them.
pub const GUIDE_HITS_PER_PAGE_MAX: usize = 3;
/// Bytes of text that an excerpt shows around the words of the query.
pub const GUIDE_EXCERPT_BYTES: usize = 180;
/// Items on one page of photographs.
pub const PAGE_ITEMS: usize = 60;
/// Pages of photographs that can be asked for; what lies deeper is found by a narrower search.
pub const PAGES_MAX: usize = 160;
/// Renders that may overtake one that waits for memory, so that small ones do not wait for a
/// large one and the large one does not wait for ever.
pub const RENDER_BYPASS_MAX: usize = 64;
/// Time in which no worker took a render that waits, after which one more thread takes it: others
/// keep all cores busy.
pub const RENDER_STALL: std::time::Duration = std::time::Duration::from_secs(1);
/// Time after which a render lets others have its core, at its next step: much less than the slice
/// that the system lets it keep, and much more than the call costs.
pub const RENDER_YIELD_INTERVAL: std::time::Duration = std::time::Duration::from_micros(200);
/// How much longer that thread rests than it works: a quarter of a core is its share.
pub const RENDER_PAUSE_FACTOR: u32 = 3;
/// A full queue of renders is looked through for what nobody wants any more at every so-manieth part of
/// its length of refusals.
pub const SWEEP_PART: usize = 64;
/// Parts of a rendition's body, in memory or in the store. A Hires with a mark needs four: new
/// metadata, the rows above the mark, those with it, those below.
pub const BODY_PARTS_MAX: usize = 8;
/// Bytes read from an original at a time while it is sent.
pub const STREAM_CHUNK_BYTES: usize = 512 * 1024;
/// Such chunks that are asked of a bucket at a time for one body: requests wait for the network.
pub const STREAM_CHUNKS_AHEAD: usize = 3;
/// Segments (APPn, tables, …) of one JPEG. Real files have below 100; an ICC profile of 16 MB
/// takes 255.
pub const JPEG_SEGMENTS_MAX: u32 = 2000;
/// Pixels of one JPEG times its scans. Each scan is a pass over the whole picture, whatever its own
/// length is. A camera's 100 megapixels in 12 scans are 1.2 thousand million.
pub const JPEG_SCAN_PIXELS_MAX: u64 = 8_000_000_000;
/// Bytes of metadata segments of one JPEG that are read.
pub const JPEG_METADATA_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Keys of crops remembered as seen once, for admission to the disk cache.
pub const SEEN_ONCE_MAX: u64 = 100_000;
/// Time between two summaries of what the histograms gathered; 24 bytes a request until then.
pub const METRICS_UPKEEP: std::time::Duration = std::time::Duration::from_secs(5);
/// Seconds a client should wait before it tries again when a queue is full.
pub const RETRY_AFTER_S: u32 = 2;
/// Seconds a client waits before it asks again for a render that was stopped for its time: it will
/// mostly be stopped again, and each try costs that time.
pub const SLOW_RETRY_AFTER_S: u32 = 60;
/// Clients whose reserves of megapixels are kept; those of a few bytes that are full are forgotten.
pub const BUDGET_CLIENTS_MAX: usize = 100_000;
/// Longest wait that a client is told whose reserve is used up, and the most that it can owe, seconds.
pub const BUDGET_WAIT_S_MAX: u32 = 600;
/// Pixels that any render counts for at least: a small one costs more than its pixels.
pub const RENDER_PIXELS_MIN: u64 = 100_000;
/// Seconds for which a "not found" may be cached.
pub const NOT_FOUND_MAX_AGE_S: u32 = 60;
/// Bytes of indexes and sums kept in memory; those of a 100-megapixel original take 250 kB.
pub const INDEX_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of a side file; that of the largest original has a tenth.
pub const SIDE_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Flaws of the database of one kind that a check tells; the rest is the same again.
pub const CHECK_FLAWS_MAX: usize = 1000;
/// How long an original that no item names may be one that just comes in.
pub const ORPHAN_GRACE_PERIOD: std::time::Duration = std::time::Duration::from_secs(5);
/// Age after which it is none that just comes in.
pub const ORPHAN_AGE_MIN: std::time::Duration = std::time::Duration::from_secs(60);
/// Pages of the database that a backup copies at a time: 8 MB, between two moves of its bar.
pub const COPY_PAGES: i32 = 2000;
/// Times that such a step may find the copy locked, which nobody else knows of.
pub const COPY_TRIES_MAX: u32 = 100;
/// Bytes of the note that says what a backup holds.
pub const MANIFEST_BYTES_MAX: u64 = 64 * 1024;
/// Items whose standard renditions wait to be made in the background; more are made on request.
pub const WARM_QUEUE_MAX: usize = 10_000;
/// Bytes behind a mark that are sent from memory; more are streamed from the store.
pub const TAIL_READ_BYTES_MAX: u64 = 256 * 1024;
/// Seconds for which a benchmark measures each operation, unless it is told otherwise.
pub const BENCH_SECONDS: u64 = 2;
/// Seconds that it may be told.
pub const BENCH_SECONDS_MAX: u64 = 60;
/// Renditions that it makes even if they take longer; fewer say nothing.
pub const BENCH_RENDITIONS_MIN: usize = 5;
/// Renditions after which it has seen enough; their times take 8 bytes each.
pub const BENCH_RENDITIONS_MAX: usize = 1_000_000;
/// Time in which a service must say whether it is ready; containers ask every half minute.
pub const HEALTH_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
/// Bytes of what it may say.
pub const HEALTH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a program which reads a PDF or a video may give back: a grey PDF of a large graphic.
pub const PROGRAM_OUTPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of its messages that are looked at.
pub const PROGRAM_MESSAGE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of an EPS in which its comments are looked for; they stand at its beginning.
pub const EPS_HEAD_BYTES: u64 = 64 * 1024;
/// Where the still of a video is taken, milliseconds; of a shorter one in the middle.
pub const STILL_AT_MS: u64 = 1000;
/// Pixels of the long side of a page that a graphic's renditions are made of.
pub const PAGE_PX_MAX: u32 = 4096;
/// Renditions of one archive or delivery that are made at a time.
pub const ARCHIVE_RENDERS_AT_A_TIME: usize = 8;
/// Associated objects whose pictures an archive or delivery of a text holds.
pub const ASSOCIATIONS_SENT_MAX: usize = 100;
/// Characters of a panic's text that are repeated in a refusal.
pub const PANIC_CHARS_MAX: usize = 200;
/// Bytes of a PDF that is read; a larger one is kept and served, without what is made of it.
pub const PDF_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Objects of a PDF; a detailed map has some 10,000.
pub const PDF_OBJECTS_MAX: usize = 1_000_000;
/// Pages, forms, patterns and functions of a PDF within each other.
pub const PDF_DEPTH_MAX: usize = 64;
/// Bytes that all streams of a PDF unpack to.
pub const PDF_DECODED_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Drawing operators of a PDF; a detailed map has some 100,000.
pub const PDF_OPERATORS_MAX: u64 = 50_000_000;
/// Pixels of a page's picture.
pub const PDF_PAGE_PIXELS_MAX: u64 = 32_000_000;
/// Pixels of one image in a PDF.
pub const PDF_IMAGE_PIXELS_MAX: u64 = 150_000_000;
/// Quality of the picture of a page, which Previews are scaled down from.
pub const PDF_PAGE_QUALITY: u8 = 93;
/// Formats of a channel; an item has below 20 files.
pub const CHANNEL_FORMATS_MAX: usize = 32;
/// Bytes of a channel's settings as JSON. A private key and a chain of certificates take 8 kB.
pub const CHANNEL_SETTINGS_BYTES_MAX: usize = 16 * 1024;
/// Channels of one user that it makes itself; the operator may give it more.
pub const CHANNELS_PER_USER_MAX: usize = 50;
/// Private keys of channels that are opened at a time to check them. Each takes a processor up to
/// two seconds ([`SFTP_KEY_ROUNDS_MAX`]).
pub const CHANNEL_KEYS_OPENED_MAX: usize = 2;
/// Tests of channels under way at a time.
pub const CHANNEL_TESTS_MAX: usize = 4;
/// Tests of channels that one user may begin within a minute: people try a few times, and nobody
/// fills somebody's mailbox or looks for open ports this way.
pub const CHANNEL_TESTS_A_MINUTE: usize = 10;
/// Time for the test of a channel: somebody waits in front of a page.
pub const CHANNEL_TEST: std::time::Duration = std::time::Duration::from_secs(10);
/// Time for a connection in a test of a channel, so that what failed is told by its name.
pub const CHANNEL_TEST_CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// Time for one answer in a test of a channel.
pub const CHANNEL_TEST_ANSWER: std::time::Duration = std::time::Duration::from_secs(8);
/// Deliveries in one list.
pub const DELIVERIES_LISTED_MAX: usize = 10_000;
/// Deliveries in a list, unless the caller says otherwise.
pub const DELIVERIES_SIZE_DEFAULT: usize = 20;
/// Time between two looks at the queue when nothing is due: another process may have added to it.
pub const DELIVERY_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Time for which deliveries that came to an end are kept and listed.
pub const DELIVERIES_RETENTION: std::time::Duration = std::time::Duration::from_secs(90 * 86_400);
/// Time between two removals of older ones.
pub const DELIVERIES_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Time for a connection to another system: name, TCP, TLS.
pub const TRANSPORT_CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);
/// Time for one answer of another system, and for one step of a transfer.
pub const TRANSPORT_ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
/// Time for a farewell, whose outcome changes nothing.
pub const TRANSPORT_CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);
/// Bytes a second below which a transfer is given up: a 100 MB Hires may take 100 minutes.
pub const TRANSPORT_BYTES_S_MIN: u64 = 16 * 1024;
/// Bytes of an answer over HTTP that are read.
pub const TRANSPORT_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Characters of what another system said that are kept for the operator.
pub const TRANSPORT_ERROR_CHARS_MAX: usize = 200;
/// Files of one delivery.
pub const TRANSPORT_FILES_MAX: usize = 200;
/// Characters of a name that a file has in another system.
pub const TRANSPORT_NAME_CHARS_MAX: usize = 200;
/// Characters of a delivery's and of a mail's id.
pub const TRANSPORT_ID_CHARS_MAX: usize = 128;
/// Folders within folders of a channel's path.
pub const TRANSPORT_FOLDERS_MAX: usize = 16;
/// Characters of one text of a channel's settings. A chain of certificates is the longest.
pub const TRANSPORT_SETTING_CHARS_MAX: usize = 64 * 1024;
/// Bytes of a webhook's secret, at least (Standard Webhooks asks for 24 to 64).
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;
/// Bytes of one write over SFTP; every server takes 32 KiB.
pub const SFTP_WRITE_BYTES: usize = 32 * 1024;
/// Such writes under way: 1 MiB, so that a distant server is not waited for after each.
pub const SFTP_WRITES_MAX: usize = 32;
/// Questions of one login that are answered with the password.
pub const SFTP_PROMPTS_MAX: usize = 4;
/// Rounds of bcrypt that unlock a private key. `ssh-keygen` makes 24, and takes 0.2 s for them.
pub const SFTP_KEY_ROUNDS_MAX: u32 = 256;
/// Bytes of one part of a large upload to S3, and of the largest upload in one piece.
pub const S3_PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts of one file under way.
pub const S3_PARTS_MAX: usize = 2;
/// Recipients of one mail.
pub const MAIL_RECIPIENTS_MAX: usize = 50;
/// Bytes of one value of a mail's head.
pub const MAIL_HEADER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a mail's attachments, before their encoding; many servers take 35 MB with it.
pub const MAIL_ATTACHMENTS_BYTES: u64 = 25 * 1024 * 1024;
/// Characters of a headline in a mail's subject.
pub const MAIL_SUBJECT_CHARS_MAX: usize = 200;
/// Time for one push message, with the access token that it may need first.
pub const PUSH_SEND: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of an answer of a push service that are read; those in use have below 4 kB.
pub const PUSH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a push message as JSON: what both services take.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 4096;
/// Bytes of its title as JSON. A phone shows below 200 of them.
pub const PUSH_TITLE_BYTES_MAX: usize = 512;
/// Bytes of `apns-collapse-id`: what Apple takes.
pub const PUSH_COLLAPSE_BYTES_MAX: usize = 64;
/// Time for which a service keeps a message for a device that is away: news is old after a day.
pub const PUSH_RETENTION: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Longest wait that a push service can ask for.
pub const PUSH_AFTER_MAX: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Bytes of a key file and of a file of certificates.
pub const PUSH_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Time between two pings on a connection, so that one that died is noticed before it is used.
pub const PUSH_PING: std::time::Duration = std::time::Duration::from_secs(60);
/// Time for the answer to a ping.
pub const PUSH_PING_ANSWER: std::time::Duration = std::time::Duration::from_secs(10);
/// Time that a connection without a message stays open. Apple wants connections to be kept.
pub const PUSH_IDLE: std::time::Duration = std::time::Duration::from_secs(3600);
/// Hex digits of a token of Apple's; those in use have 64 and 160.
pub const APNS_TOKEN_CHARS_MAX: usize = 512;
/// Age at which our token for Apple is renewed: it takes 20 to 60 minutes.
pub const APNS_BEARER_AGE: std::time::Duration = std::time::Duration::from_secs(40 * 60);
/// Time within which Apple takes no second renewal.
pub const APNS_BEARER_AGE_MIN: std::time::Duration = std::time::Duration::from_secs(20 * 60);
/// Time that our request for an access token is valid: Google takes an hour at most.
pub const FCM_ASSERTION: std::time::Duration = std::time::Duration::from_secs(3600);
/// Time before its end from which on an access token is not used, if it is valid for longer than
/// twice that.
pub const FCM_ACCESS_MARGIN: std::time::Duration = std::time::Duration::from_secs(300);
/// Characters of a headline in a mail.
pub const MAIL_HEADLINE_CHARS_MAX: usize = 200;
/// Characters of the description in the mail of one item: a long caption whole.
pub const MAIL_DESCRIPTION_CHARS_MAX: usize = 2000;
/// Characters of a description in a digest, about three lines.
pub const MAIL_DIGEST_DESCRIPTION_CHARS_MAX: usize = 220;
/// Characters of a name in a mail: title, byline, source.
pub const MAIL_NAME_CHARS_MAX: usize = 120;
/// Items that a digest shows. With more, mail programs cut it (at 102 kB of HTML).
pub const MAIL_DIGEST_ITEMS_MAX: usize = 30;
/// Bytes of an address in a mail.
pub const MAIL_URL_BYTES_MAX: usize = 2048;
/// Characters of the id of a picture within a mail.
pub const MAIL_CID_CHARS_MAX: usize = 128;
/// Bytes of an operator's template of a mail.
pub const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of a file of certificates; all public authorities together take 220 kB.
pub const CERTIFICATES_BYTES_MAX: u64 = 1024 * 1024;
/// Notifications of one user.
pub const NOTIFICATIONS_PER_USER_MAX: usize = 1000;
/// Characters of a notification's title and of the product codes, the address and the schedule that
/// it names, each.
pub const NOTIFICATION_TEXT_CHARS_MAX: usize = 250;
/// Product codes, and agreements, of one notification.
pub const NOTIFICATION_LIST_MAX: usize = 200;
/// Time without a call after which a stream is gone (contract notifications-10).
pub const STREAM_EXPIRY: std::time::Duration = std::time::Duration::from_secs(300);
/// Seconds that a poll of a stream waits, unless the client says otherwise, and at most.
pub const STREAM_POLL_S: u32 = 60;
/// Items in one queue of a notification; the oldest fall out.
pub const QUEUED_ITEMS_MAX: usize = 10_000;
/// Calls of readers of streams that wait for the database.
pub const STREAM_READS_MAX: usize = 65_536;
/// Calls of readers of streams that one transaction does.
pub const STREAM_READS_PER_TRANSACTION: usize = 1000;
/// Answers of streams that are written at a time; each waits for a thread that searches.
pub const STREAM_ANSWERS_MAX: usize = 64;
/// Milliseconds between two looks of the matcher at the database.
pub const MATCHING_MS: u64 = 20;
/// Milliseconds between two looks at what comes by the clock: ends of embargoes, scheduled mails.
pub const MATCHING_CLOCK_MS: u64 = 250;
/// Rows of the item log that one transaction matches.
pub const MATCHING_ROWS: usize = 500;
/// Time after which such a transaction takes no further row, so that others get to write.
pub const MATCHING_TIME: std::time::Duration = std::time::Duration::from_millis(40);
/// Time for which items that cannot be read hold matching up: a disk that fails passes, what is damaged
/// does not.
pub const MATCHING_STALL_MAX: std::time::Duration = std::time::Duration::from_secs(20);
/// Items of the archive from which the matcher learns which words are rare.
pub const MATCHING_LEARNED: usize = 1000;
/// Scheduled mails that one transaction prepares.
pub const DIGESTS_AT_A_TIME: usize = 50;
/// Messages of one user that wait or were given up; further ones are not written, and counted.
pub const OUTBOX_PER_USER_MAX: usize = 10_000;
/// Messages in one list of the operator.
pub const OUTBOX_LISTED_MAX: usize = 10_000;
/// Time for which a message that was given up is kept.
pub const OUTBOX_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Time between two looks at the outbox when nothing is due: the operator may have queued something.
pub const OUTBOX_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Messages that a look for lost ones frees at a time, of a lane. One claim takes no more than are sent at a
/// time.
pub const MESSAGES_FREED_MAX: usize = 1000;
/// Time that sending one message may take.
pub const MESSAGE_TIME: std::time::Duration = std::time::Duration::from_secs(180);
/// Time between two signs of life, removals of expired streams and counts of what waits.
pub const NOTIFICATIONS_SWEEP: std::time::Duration = std::time::Duration::from_secs(10);
/// Time that a mail waits for one of its pictures.
pub const MESSAGE_PICTURE_TIME: std::time::Duration = std::time::Duration::from_secs(20);
/// Bytes of one picture in a mail; a Thumbnail takes 20 kB.
pub const MESSAGE_PICTURE_BYTES_MAX: usize = 512 * 1024;
/// Files that are open besides those of connections: the database, the store, logs, mail servers.
pub const FILES_BESIDE_CONNECTIONS: u64 = 1000;
/// Time after which a reader looks again at items that could not be given.
pub const STREAM_RETRY_FIRST: std::time::Duration = std::time::Duration::from_millis(20);
/// The longest such time: it doubles each time.
pub const STREAM_RETRY_MAX: std::time::Duration = std::time::Duration::from_secs(1);
/// Time for all pictures of one mail together.
pub const MESSAGE_PICTURES_TIME: std::time::Duration = std::time::Duration::from_secs(60);
/// Messages that were given up, of all users; the oldest go.
pub const OUTBOX_PARKED_MAX: usize = 100_000;
/// Collections of one user. With all of their items a list of them takes 15 MB.
pub const COLLECTIONS_PER_USER_MAX: usize = 200;
/// Items of one collection; the editor who picked most for one story stayed below.
pub const COLLECTION_ITEMS_MAX: usize = 1000;
/// Items that one call adds, removes or puts in order.
pub const COLLECTION_ELEMENTS_MAX: usize = 1000;
/// Bytes of such a call: that many addresses of 500 bytes each.
pub const COLLECTION_BODY_BYTES_MAX: usize = 512 * 1024;
/// Characters of a collection's name.
pub const COLLECTION_NAME_CHARS_MAX: usize = 200;
/// Items that a collection remembers to have lost; the oldest fall out.
pub const COLLECTION_REMOVED_MAX: usize = 100;
/// Characters of a headline, and of a description, that a lost item is remembered by.
pub const COLLECTION_REMOVED_CHARS_MAX: usize = 2000;
/// Age of a collection's last access from which on the next one is written down: a page that is
/// looked at all the time must not write all the time.
pub const COLLECTION_ACCESSED: std::time::Duration = std::time::Duration::from_secs(60);
/// Time between two looks for items that have expired; until then they are hidden.
pub const COLLECTIONS_SWEEP: std::time::Duration = std::time::Duration::from_secs(2);
/// Items of one archive of several items.
pub const BUNDLE_ITEMS_MAX: usize = 500;
/// Files of such an archive; an article with its pictures has some ten.
pub const BUNDLE_FILES_MAX: usize = 5000;
/// Times that such an archive is put together anew because something was bought meanwhile.
pub const BUNDLE_TRIES: usize = 3;
/// Characters of a name under which a browser saves a file, without its extension; an item's id fits.
pub const FILE_NAME_CHARS_MAX: usize = 128;
/// Characters of a URI that a client sends.
pub const URI_CHARS_MAX: usize = 2048;
/// Traces of requests that wait to be sent; further ones are counted and forgotten. One has up to six
/// spans of half a kilobyte.
pub const TRACES_WAITING_MAX: usize = 2048;
/// Spans that are sent at a time.
pub const TRACES_BATCH_SPANS: usize = 512;
/// Time between two batches, unless more waits.
pub const TRACES_SEND_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Time that a collector of traces has to take a batch.
pub const TRACES_SEND_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Time for the last batches at a stop.
pub const TRACES_LAST_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Bytes of a collector's answer that are read.
pub const TRACES_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Time that systemd is asked to grant a stop beyond the times of the settings.
pub const STOP_GRACE_PERIOD: std::time::Duration = std::time::Duration::from_secs(15);
/// Rows that go from one database into another in one transaction.
pub const MIGRATION_BATCH_ROWS: usize = 500;
/// Bytes of such rows, after which the transaction ends.
pub const MIGRATION_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Values that one statement writes of them at most; SQLite takes 32,766, PostgreSQL 65,535.
pub const MIGRATION_STATEMENT_VALUES_MAX: usize = 8192;
/// Tries to be the one who writes the old database, each of which waits for [`DB_BUSY_MS`].
pub const MIGRATION_LOCK_ATTEMPTS_MAX: u32 = 6;
/// Rounds in which a database that others write is caught up with before they have to wait.
pub const MIGRATION_ROUNDS_MAX: usize = 100;
