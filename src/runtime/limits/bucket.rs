//! Limits for reading and writing originals in a bucket.

/// Bytes of one part of a multipart upload into a bucket; S3 allows 10,000 parts.
pub const BUCKET_PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts of one original in flight.
pub const BUCKET_PARTS_MAX: usize = 3;
/// Bytes that one request to a bucket asks for; longer reads are several requests.
pub const BUCKET_READ_BYTES: u64 = 4 * 1024 * 1024;
/// Concurrent requests for one scattered read. A crop of 600 rows reads about 40 ranges.
pub const BUCKET_READS_MAX: usize = 16;
/// Bytes read from the start of an object when it is opened: usually everything before the picture data.
pub const BUCKET_OPEN_BYTES: u64 = 32 * 1024;
/// Bytes that the first request for a whole derived file asks for: more than nearly all standard sets have.
pub const BUCKET_WHOLE_BYTES: u64 = 1024 * 1024;
/// Time for which the opened state of an object is cached. Reads of an object replaced since then fail.
pub const BUCKET_OPEN_CACHE_TTL: std::time::Duration = std::time::Duration::from_secs(10);
/// Bytes of the cache for these object starts.
pub const BUCKET_OPEN_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of a bucket's response. A page of a list, 1000 keys, is about 400 kB.
pub const BUCKET_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Minimum rate in bytes per second, below which a request to a bucket is aborted.
pub const BUCKET_BYTES_S_MIN: u64 = 64 * 1024;
/// Retries of a request to a bucket, within `store.give_up_s`.
pub const BUCKET_RETRIES_MAX: usize = 4;
/// Attempt timeout per endpoint in a request that is not retried: less than half of a readiness probe.
pub const BUCKET_SINGLE_ATTEMPT_TIME: std::time::Duration = std::time::Duration::from_millis(900);
/// Originals that are looked up in a store without an archive id: those of this many first and of this many
/// last items.
pub const STORE_SAMPLE_ITEMS: usize = 16;
/// Timeout for listing all originals in a bucket: at a tenth of a second per thousand, 30 million.
pub const BUCKET_LIST_TIME: std::time::Duration = std::time::Duration::from_secs(3600);
