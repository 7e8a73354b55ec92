//! Defines the errors of reading a video file.

use std::io;

use thiserror::Error;

use crate::mp4::box_kind::BoxKind;

/// The damage of a video file, or the limit that it exceeds.
#[derive(Debug, Error)]
pub enum VideoError {
    /// The file is shorter than any box.
    #[error("the file is not an MP4: it has {size_bytes} bytes")]
    TooShort {
        /// The length of the file in bytes.
        size_bytes: u64,
    },
    /// The first box is not a box with which an MP4 or QuickTime file starts.
    #[error("the file is not an MP4: it starts with {found}, expected ftyp")]
    NotMp4 {
        /// The bytes at the position of the first box's kind.
        found: BoxKind,
    },
    /// The file consists of boxes, but has no index.
    #[error("the MP4 has no moov box: it holds no movie, or its recording was never finished")]
    NoIndex,
    /// The file has an index, but no media data.
    #[error("the MP4 is cut off: it has no mdat box")]
    NoMedia,
    /// A box extends beyond the end of the file.
    #[error("the MP4 is cut off: its {kind} box ends at byte {end}, the file at {size_bytes}")]
    Truncated {
        kind: BoxKind,
        /// The end of the box, in bytes from the start of the file.
        end: u64,
        /// The length of the file in bytes.
        size_bytes: u64,
    },
    /// A required child box is missing.
    #[error("the MP4 is damaged: its {parent} box holds no {kind} box")]
    Missing {
        kind: BoxKind,
        /// The box that should contain the missing box.
        parent: BoxKind,
    },
    /// A box is shorter than its fields require, or its size is impossible.
    #[error("the MP4 is damaged: its {kind} box is too short for what it should hold")]
    Damaged { kind: BoxKind },
    /// The index is compressed, as in some old QuickTime files; current players do not read it either.
    #[error("the movie's index is compressed (cmov), which is not supported")]
    CompressedIndex,
    /// The index is larger than [`VideoLimits::index_bytes`](super::VideoLimits::index_bytes).
    #[error("the MP4's moov box has {size_bytes} bytes, at most {max_bytes} are read")]
    IndexTooLarge {
        /// The length of the index in bytes.
        size_bytes: u64,
        /// The maximum length in bytes.
        max_bytes: u64,
    },
    /// The fragment headers exceed [`VideoLimits::fragments_bytes`](super::VideoLimits::fragments_bytes).
    #[error("the MP4's moof boxes have more than {max_bytes} bytes together")]
    FragmentsTooLarge {
        /// The maximum length in bytes.
        max_bytes: u64,
    },
    /// The file has more top-level boxes than [`VideoLimits::boxes`](super::VideoLimits::boxes).
    #[error("the MP4 has more than {max} boxes")]
    TooManyBoxes {
        /// The maximum number of boxes.
        max: usize,
    },
    /// The file has more tracks than [`VideoLimits::tracks`](super::VideoLimits::tracks).
    #[error("the MP4 has more than {max} tracks")]
    TooManyTracks {
        /// The maximum number of tracks.
        max: usize,
    },
    /// The file has no video track.
    #[error("the MP4 has no video track")]
    NoVideoTrack,
    /// The picture is empty, or a side exceeds [`VideoLimits::side_px`](super::VideoLimits::side_px).
    #[error("the video is {width}x{height}, expected sides of 1 to {max} pixels")]
    Size {
        /// Width in pixels as displayed.
        width: u64,
        /// Height in pixels as displayed.
        height: u64,
        /// The maximum side in pixels.
        max: u32,
    },
    /// The duration exceeds [`VideoLimits::duration_ms`](super::VideoLimits::duration_ms).
    #[error("the video is {ms} ms long, at most {max} ms are allowed")]
    Duration {
        /// The duration in milliseconds.
        ms: u64,
        /// The maximum duration in milliseconds.
        max: u64,
    },
    /// Reading from the file failed.
    #[error("the video file cannot be read")]
    Read(#[from] io::Error),
}
