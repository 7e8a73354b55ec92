//! Every cap of the formats, with its unit and reason.

/// Entries of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Bytes of an entry's name: what common file systems take.
pub const ARCHIVE_NAME_BYTES_MAX: usize = 255;
/// Boxes at the top of a video file. A day in fragments of a second has about 170,000.
pub const VIDEO_BOXES_MAX: usize = 200_000;
/// Milliseconds of a video: 30 days. A longer one has a damaged header.
pub const VIDEO_DURATION_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Bytes of all fragment headers (`moof` boxes) of a video together; they are read one by one. Two
/// hours in fragments of a second take about 15 MB.
pub const VIDEO_FRAGMENTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of a video's index (its `moov` box), which is read into memory. Two hours at 50 frames a
/// second with sound take about 10 MB.
pub const VIDEO_INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Pixels of a video's side. H.265 at its highest level ends at 16,888.
pub const VIDEO_SIDE_PX_MAX: u32 = 32_768;
/// Tracks of a video; real ones have below 20.
pub const VIDEO_TRACKS_MAX: usize = 64;
