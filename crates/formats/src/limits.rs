//! The limits of the formats, with their units and reasons.

/// Maximum number of entries of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Maximum length of an entry's name in bytes, as in common file systems.
pub const ARCHIVE_NAME_BYTES_MAX: usize = 255;
/// Maximum number of top-level boxes of a video file. A day in one-second fragments has about 170,000.
pub const VIDEO_BOXES_MAX: usize = 200_000;
/// Maximum duration of a video in milliseconds: 30 days. A longer video has a damaged header.
pub const VIDEO_DURATION_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Maximum total bytes of all fragment headers (`moof` boxes) of a video, which are read one by one. Two hours in
/// one-second fragments have about 15 MB.
pub const VIDEO_FRAGMENTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum bytes of a video's index (its `moov` box), which is read into memory. Two hours at 50 frames per second
/// with sound have about 10 MB.
pub const VIDEO_INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum width or height of a video in pixels. The highest level of H.265 ends at 16,888.
pub const VIDEO_SIDE_PX_MAX: u32 = 32_768;
/// Maximum number of tracks of a video; real videos have fewer than 20.
pub const VIDEO_TRACKS_MAX: usize = 64;
