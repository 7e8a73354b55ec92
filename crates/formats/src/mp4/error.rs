//! Why the facts of a video file cannot be read.

use std::io;

use thiserror::Error;

use crate::mp4::boxes::BoxKind;

/// What is wrong with a video file, or which limit it leaves.
#[derive(Debug, Error)]
pub enum VideoError {
    /// The file is shorter than any box.
    #[error("the file is not an MP4: it has {size_bytes} bytes")]
    TooShort {
        /// Its length in bytes.
        size_bytes: u64,
    },
    /// The file does not start with a box that an MP4 or QuickTime file starts with.
    #[error("the file is not an MP4: it starts with {found}, expected ftyp")]
    NotMp4 {
        /// What stands where the first box's kind would be.
        found: BoxKind,
    },
    /// The file is made of boxes, but none of them is an index.
    #[error("the MP4 has no moov box: it holds no movie, or its recording was never finished")]
    NoIndex,
    /// The file has an index, but nothing of what it points to.
    #[error("the MP4 is cut off: it has no mdat box")]
    NoMedia,
    /// A box ends after the file.
    #[error("the MP4 is cut off: its {kind} box ends at byte {end}, the file at {size_bytes}")]
    Truncated {
        /// The box.
        kind: BoxKind,
        /// Where it should end, in bytes from the start of the file.
        end: u64,
        /// The file's length in bytes.
        size_bytes: u64,
    },
    /// A box that we need is missing inside another one.
    #[error("the MP4 is damaged: its {parent} box holds no {kind} box")]
    Missing {
        /// The box that should be there.
        kind: BoxKind,
        /// Where it should be.
        parent: BoxKind,
    },
    /// A box is shorter than its fields say, or its size is impossible.
    #[error("the MP4 is damaged: its {kind} box is too short for what it should hold")]
    Damaged {
        /// The box.
        kind: BoxKind,
    },
    /// The index is packed, as old QuickTime files could be; no player of today reads it.
    #[error("the movie's index is compressed (cmov), which is not supported")]
    CompressedIndex,
    /// The index is larger than [`VideoLimits::index_bytes`](super::VideoLimits::index_bytes).
    #[error("the MP4's moov box has {size_bytes} bytes, at most {max_bytes} are read")]
    IndexTooLarge {
        /// Its length in bytes.
        size_bytes: u64,
        /// The most bytes that are read.
        max_bytes: u64,
    },
    /// The fragment headers leave
    /// [`VideoLimits::fragments_bytes`](super::VideoLimits::fragments_bytes).
    #[error("the MP4's moof boxes have more than {max_bytes} bytes together")]
    FragmentsTooLarge {
        /// The most bytes that are read.
        max_bytes: u64,
    },
    /// There are more boxes at the top than [`VideoLimits::boxes`](super::VideoLimits::boxes).
    #[error("the MP4 has more than {max} boxes")]
    TooManyBoxes {
        /// The most boxes that are looked at.
        max: usize,
    },
    /// There are more tracks than [`VideoLimits::tracks`](super::VideoLimits::tracks).
    #[error("the MP4 has more than {max} tracks")]
    TooManyTracks {
        /// The most tracks that are looked at.
        max: usize,
    },
    /// No track holds moving pictures.
    #[error("the MP4 has no video track")]
    NoVideoTrack,
    /// The picture is empty, or a side leaves [`VideoLimits::side_px`](super::VideoLimits::side_px).
    #[error("the video is {width}x{height}, expected sides of 1 to {max} pixels")]
    Size {
        /// Width in pixels as shown.
        width: u64,
        /// Height in pixels as shown.
        height: u64,
        /// The longest side in pixels.
        max: u32,
    },
    /// The length leaves [`VideoLimits::duration_ms`](super::VideoLimits::duration_ms).
    #[error("the video is {ms} ms long, at most {max} ms are allowed")]
    Duration {
        /// Its length in milliseconds.
        ms: u64,
        /// The most milliseconds.
        max: u64,
    },
    /// The reader failed.
    #[error("the video file cannot be read")]
    Read(#[from] io::Error),
}
