//! The limits of the formats, with their units and reasons.

/// Maximum number of entries of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Maximum length of an entry's name in bytes: what common file systems allow.
pub const ARCHIVE_NAME_BYTES_MAX: usize = 255;
/// Top-level boxes of a video file. A day in one-second fragments has about 170,000.
pub const VIDEO_BOXES_MAX: usize = 200_000;
/// Duration of a video in milliseconds: 30 days. A longer one has a damaged header.
pub const VIDEO_DURATION_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Total bytes of all fragment headers (`moof` boxes) of a video, which are read one by one. Two hours in
/// one-second fragments take about 15 MB.
pub const VIDEO_FRAGMENTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of a video's index (its `moov` box), which is read into memory. Two hours at 50 frames per second
/// with sound take about 10 MB.
pub const VIDEO_INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Width or height of a video in pixels. H.265 at its highest level ends at 16,888.
pub const VIDEO_SIDE_PX_MAX: u32 = 32_768;
/// Tracks of a video; real ones have fewer than 20.
pub const VIDEO_TRACKS_MAX: usize = 64;
