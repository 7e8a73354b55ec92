//! Reads the properties of a video file: size, duration, bit rate, fast start.
//!
//! Parses the boxes of MP4 and QuickTime files (ISO/IEC 14496-12 and 14496-14, Apple's QuickTime File
//! Format). Only the index (`moov`) and, in fragmented files, the fragment headers (`moof`) are read into
//! memory, up to [`VideoLimits`]; media data is skipped. Pictures and sound are never decoded, and the caller
//! opens the file.
//!
//! The parser is our own, because the published parser that we evaluated (`re_mp4` 0.5.1) lists every sample of
//! every track and panics on two of three files with one modified entry count.

mod box_kind;
mod boxes;
mod display;
mod error;
mod fragments;
mod limits;
mod movie;
mod scan;

use std::io::{Read, Seek};

pub use crate::mp4::box_kind::BoxKind;
pub use crate::mp4::error::VideoError;
pub use crate::mp4::limits::VideoLimits;

use crate::mp4::fragments::add_fragment;
use crate::mp4::movie::MovieIndex;
use crate::mp4::scan::{read_exactly, scan};

/// The properties of a video file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoFacts {
    /// Width in pixels as displayed: rotated and with square pixels.
    pub width: u32,
    /// Height in pixels as displayed.
    pub height: u32,
    /// Duration in milliseconds, rounded; 0 if the file does not state it.
    pub duration_ms: u64,
    /// Average bits per second of the whole file, rounded; 0 if the duration is unknown.
    pub bitrate_bps: u64,
    /// True if the index precedes the media data, so that playback can start before the download ends.
    pub fast_start: bool,
}

/// Reads the properties of a video file of `size_bytes` bytes.
///
/// The video track is the first enabled one, or the first one if none is enabled. The duration comes from the
/// movie header or, if absent there, from the tracks after their edit lists. In a fragmented file it comes from
/// `mehd`, else from all fragments.
///
/// Needs a few reads for a plain file and two per fragment for a fragmented one; a buffered reader gains nothing.
/// Uses memory of at most twice [`VideoLimits::index_bytes`].
///
/// Fails with [`VideoError`], which describes the damage or names the exceeded limit.
///
/// Renditions of a video have the `width`, `height` and `duration` that this function returns (contract files-8).
pub fn facts<R: Read + Seek>(
    reader: &mut R,
    size_bytes: u64,
    limits: &VideoLimits,
) -> Result<VideoFacts, VideoError> {
    let layout = scan(reader, size_bytes, limits)?;
    let mut movie = MovieIndex::parse(&layout.index, limits)?;
    // Without `mvex` the index is complete, and stray fragments do not belong to the movie.
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
        fast_start: layout.fast_start,
    })
}

fn bitrate_bps(size_bytes: u64, duration_ms: u64) -> u64 {
    // The product of a length and 8,000 can exceed 64 bits.
    let millibits = u128::from(size_bytes) * 8 * 1000;
    let duration_ms = u128::from(duration_ms);
    let rounded = (millibits + duration_ms / 2).checked_div(duration_ms).unwrap_or(0);
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod test_movies;
#[cfg(test)]
mod tests;
