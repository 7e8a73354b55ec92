//! Defines the limits on parsing a video file.

/// The limits on parsing a video file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoLimits {
    /// Bytes of the index, which is held in memory.
    pub index_bytes: u64,
    /// Total bytes of all fragment headers; one at a time is held in memory.
    pub fragments_bytes: u64,
    /// The number of top-level boxes.
    pub boxes: usize,
    /// The number of tracks of any kind.
    pub tracks: usize,
    /// Width and height in pixels.
    pub side_px: u32,
    pub duration_ms: u64,
}

impl Default for VideoLimits {
    fn default() -> Self {
        Self {
            // Two hours at 50 frames per second with sound have about 10 MB.
            index_bytes: 16 * 1024 * 1024,
            // Two hours in one-second fragments have about 15 MB.
            fragments_bytes: 64 * 1024 * 1024,
            // A day in one-second fragments has about 170,000.
            boxes: 200_000,
            // Real videos have fewer than 20.
            tracks: 64,
            // The highest level of H.265 ends at 16,888.
            side_px: 32_768,
            // A video of more than 30 days has a damaged header.
            duration_ms: 30 * 24 * 3600 * 1000,
        }
    }
}
