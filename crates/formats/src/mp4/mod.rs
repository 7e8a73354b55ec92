//! Reads the properties of a video file: size, duration, bit rate, fast start.
//!
//! Parses the boxes of MP4 and QuickTime files (ISO/IEC 14496-12 and 14496-14, Apple's QuickTime File
//! Format). Only the index (`moov`) and, in fragmented files, the fragment headers (`moof`) are read into
//! memory, up to [`VideoLimits`]; media data is skipped. Pictures and sound are never decoded, and the caller
//! opens the file.
//!
//! The parser is our own, because the published parser that we evaluated (`re_mp4` 0.5.1) lists every sample of
//! every track and panics on two of three files with one modified entry count.

mod boxes;
mod display;
mod error;
mod fragments;
mod movie;
mod scan;

use std::fmt;
use std::io::{Read, Seek};

pub use crate::mp4::error::VideoError;

use crate::mp4::fragments::add_fragment;
use crate::mp4::movie::MovieIndex;
use crate::mp4::scan::{read_exactly, scan};

/// The four-character code of a box, or of the codec of a sample entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxKind(pub [u8; 4]);

impl BoxKind {
    const MOOF: Self = Self(*b"moof");
    const MOOV: Self = Self(*b"moov");
}

/// Prints the four characters, or their bytes in hexadecimal if one of them is not printable ASCII.
impl fmt::Display for BoxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A code of only spaces would print as nothing.
        match std::str::from_utf8(&self.0).map(|text| text.trim_end_matches(' ')) {
            Ok(text)
                if !text.is_empty() && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) =>
            {
                f.write_str(text)
            }
            Ok(_) | Err(_) => write!(f, "0x{:08x}", u32::from_be_bytes(self.0)),
        }
    }
}

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
