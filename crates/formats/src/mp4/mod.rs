//! What a video file says about itself: size, length, codecs, whether it starts fast.
//!
//! Reads the boxes of MP4 and QuickTime files (ISO/IEC 14496-12 and 14496-14, Apple's QuickTime
//! File Format). Only the index (`moov`) and, in fragmented files, the fragments' headers (`moof`)
//! are read into memory, up to [`VideoLimits`]; media data is skipped. Pictures and sound are never
//! decoded, and opening the file is left to the caller.
//!
//! Our own walker, because the published reader we looked at (`re_mp4` 0.5.1) lists every sample of
//! every track and panics on two of three files in which one entry count was changed.

mod boxes;
mod codec;
mod display;
mod error;
mod fragments;
mod movie;
mod scan;

use std::io::{Read, Seek};

pub use crate::mp4::boxes::BoxKind;
pub use crate::mp4::error::VideoError;

use crate::limits::{
    VIDEO_BOXES_MAX, VIDEO_DURATION_MS_MAX, VIDEO_FRAGMENTS_BYTES_MAX, VIDEO_INDEX_BYTES_MAX,
    VIDEO_SIDE_PX_MAX, VIDEO_TRACKS_MAX,
};
use crate::mp4::fragments::add_fragment;
use crate::mp4::movie::{MovieIndex, Track};
use crate::mp4::scan::{read_exactly, scan};

/// What a video file says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoFacts {
    /// Width of the picture as it is shown, in pixels: rotated and with square pixels.
    pub width: u32,
    /// Height of the picture as it is shown, in pixels.
    pub height: u32,
    /// Length in milliseconds, rounded; 0 if the file does not say.
    pub duration_ms: u64,
    /// Bits per second of the whole file, rounded; 0 if the length is unknown.
    pub bitrate_bps: u64,
    /// The video track's codec in the form of RFC 6381, `avc1.64001f` for instance. What we cannot
    /// spell out is the four characters of its sample entry.
    pub video_codec: String,
    /// The codec of the first enabled audio track in the same form.
    pub audio_codec: Option<String>,
    /// Frames per second of the video track on average; none if it lists no frames.
    pub frame_rate: Option<f64>,
    /// Whether the index comes before the media data, so that a player can start early.
    pub fast_start: bool,
}

/// How much of a video file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoLimits {
    /// Bytes of the index, which is held in memory.
    pub index_bytes: u64,
    /// Bytes of all fragment headers together; one at a time is held in memory.
    pub fragments_bytes: u64,
    /// Boxes at the top of the file.
    pub boxes: usize,
    /// Tracks of any kind.
    pub tracks: usize,
    /// Pixels of each side of the picture.
    pub side_px: u32,
    /// Length in milliseconds.
    pub duration_ms: u64,
}

impl Default for VideoLimits {
    fn default() -> Self {
        Self {
            index_bytes: VIDEO_INDEX_BYTES_MAX,
            fragments_bytes: VIDEO_FRAGMENTS_BYTES_MAX,
            boxes: VIDEO_BOXES_MAX,
            tracks: VIDEO_TRACKS_MAX,
            side_px: VIDEO_SIDE_PX_MAX,
            duration_ms: VIDEO_DURATION_MS_MAX,
        }
    }
}

/// Reads the facts of a video file of `size_bytes` bytes.
///
/// The video track is the first enabled one, or the first one if none is enabled. The length is
/// the movie header's; where that is silent, the tracks' after their edit lists; in a fragmented
/// file that of `mehd`, else of all fragments.
///
/// Costs a few reads for a plain file and two for each fragment of a fragmented one; a caller that
/// gives a buffered reader gains nothing. Memory: twice [`VideoLimits::index_bytes`] at most.
///
/// Fails with [`VideoError`], which says what is wrong with the file or which limit it leaves.
///
/// `width`, `height` and `duration` of a video's renditions come from here (contract files-8).
pub fn facts<R: Read + Seek>(
    reader: &mut R,
    size_bytes: u64,
    limits: &VideoLimits,
) -> Result<VideoFacts, VideoError> {
    let layout = scan(reader, size_bytes, limits)?;
    let mut movie = MovieIndex::parse(&layout.index, limits)?;
    if movie.fragmented {
        for range in &layout.fragments {
            let moof = read_exactly(reader, range.clone(), BoxKind::MOOF)?;
            add_fragment(&moof, &mut movie)?;
        }
    }
    let (width, height) = movie.display_size(limits)?;
    let duration_ms = movie.duration_ms(limits)?;
    Ok(VideoFacts {
        width,
        height,
        duration_ms,
        bitrate_bps: bitrate_bps(size_bytes, duration_ms),
        frame_rate: movie.video.clock.frames_per_s(movie.video.timescale),
        video_codec: movie.video.codec,
        audio_codec: movie.audio.map(|Track { codec, .. }| codec),
        fast_start: layout.fast_start,
    })
}

fn bitrate_bps(size_bytes: u64, duration_ms: u64) -> u64 {
    let millibits = u128::from(size_bytes) * 8 * 1000;
    let duration_ms = u128::from(duration_ms);
    let rounded = (millibits + duration_ms / 2).checked_div(duration_ms).unwrap_or(0);
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod test_movies;
#[cfg(test)]
mod tests;
