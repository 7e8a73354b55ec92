//! Caps of reading and writing originals in a bucket.

/// Bytes of one part of an original on its way into a bucket; S3 takes 10,000 parts.
pub const BUCKET_PART_BYTES: usize = 8 * 1024 * 1024;
/// Such parts of one original under way.
pub const BUCKET_PARTS_MAX: usize = 3;
/// Bytes that one request to a bucket asks for; longer reads are several requests.
pub const BUCKET_READ_BYTES: u64 = 4 * 1024 * 1024;
/// Requests under way for one read of many places. A crop of 600 rows reads some 40.
pub const BUCKET_READS_MAX: usize = 16;
/// Bytes of an object's start that come with the first look: as a rule all before the picture data.
pub const BUCKET_OPEN_BYTES: u64 = 32 * 1024;
/// Time for which what it found is kept. Reads of what was replaced since fail.
pub const BUCKET_OPEN_CACHE_TTL: std::time::Duration = std::time::Duration::from_secs(10);
/// Bytes of these starts in memory.
pub const BUCKET_OPEN_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of an answer of a bucket. A page of a list, 1000 keys, has about 400 kB.
pub const BUCKET_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes a second below which a request to a bucket is given up.
pub const BUCKET_BYTES_S_MIN: u64 = 64 * 1024;
/// Tries of a request to a bucket after the first, within `store.give_up_s`.
pub const BUCKET_RETRIES_MAX: usize = 4;
/// Time for each of several addresses of a bucket in a request that is not tried again: less than half of a look.
pub const BUCKET_SINGLE_ATTEMPT_TIME: std::time::Duration = std::time::Duration::from_millis(900);
/// Originals that are looked for in a store which does not say to which archive it belongs: those of so many
/// items that came first and last.
pub const STORE_SAMPLE_ITEMS: usize = 16;
/// Time for the list of all originals in a bucket: a thousand in a tenth of a second, 30 millions.
pub const BUCKET_LIST_TIME: std::time::Duration = std::time::Duration::from_secs(3600);
