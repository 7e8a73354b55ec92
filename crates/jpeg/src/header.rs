//! Parses the markers of a JPEG file into a [`JpegHeader`].
//!
//! The parser reads every marker up to EOI. A file that it accepts has a frame, at least one scan and an end, and
//! complies with the caller's limits. It allocates memory only for the list of segments. Quantisation tables,
//! Huffman tables and entropy-coded data are left to the decoder.
//!
//! If real files deviate from T.81, the parser follows libjpeg, because browsers and editors do the same: bytes
//! between segments that are not a marker are skipped, a short `JFIF` or `Adobe` segment is ignored,
//! and markers without a payload may occur anywhere.

use std::ops::Range;

use crate::codec::ColourSpace;
pub use crate::frame::{CodingProcess, FrameComponent};
use crate::frame::{FrameHeader, colour_space};
pub use crate::header_error::HeaderError;
use geometry::Size;

/// Start of frame, baseline; the codes of the other frames follow up to [`SOF15`].
pub(super) const SOF0: u8 = 0xC0;
pub(super) const DHT: u8 = 0xC4;
/// Reserved for JPEG extensions; its code lies between the codes of the frame markers.
const JPG: u8 = 0xC8;
pub(super) const DAC: u8 = 0xCC;
const SOF15: u8 = 0xCF;
pub(super) const RST0: u8 = 0xD0;
pub(super) const RST7: u8 = 0xD7;
pub(super) const SOI: u8 = 0xD8;
pub(super) const EOI: u8 = 0xD9;
pub(super) const SOS: u8 = 0xDA;
pub(super) const DRI: u8 = 0xDD;
/// The first application segment, used by JFIF.
pub(super) const APP0: u8 = 0xE0;
/// Application segment of EXIF and XMP.
pub(super) const APP1: u8 = 0xE1;
/// Application segment of ICC profiles.
pub(super) const APP2: u8 = 0xE2;
/// Application segment of Photoshop resources.
pub(super) const APP13: u8 = 0xED;
/// Application segment of Adobe's colour transform.
pub(super) const APP14: u8 = 0xEE;
const APP15: u8 = 0xEF;
const COM: u8 = 0xFE;
pub(super) const TEM: u8 = 0x01;

/// Bytes of a `JFIF` payload without the thumbnail: signature, version, density, thumbnail size.
pub(super) const JFIF_BYTES: usize = 14;
/// Bytes of an `Adobe` payload: signature, version, flags, transform.
const ADOBE_BYTES: usize = 12;

/// Limits on the contents of a file, so that a hostile file costs little to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderLimits {
    /// Maximum number of scans. Each scan costs a decoder a pass over the whole picture, even if the
    /// scan has only a few bytes.
    pub scans_max: u32,
    /// Maximum number of segments of any kind.
    pub segments_max: u32,
    /// Maximum payload bytes of all application and comment segments together.
    pub metadata_bytes_max: usize,
}

/// A segment before the first scan, by its position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerSegment {
    /// The marker's code: `E0`–`EF` are APP0–APP15, `FE` is COM.
    pub marker: u8,
    /// Byte range of the payload in the file, after the marker and the length.
    pub payload: Range<usize>,
}

impl MarkerSegment {
    /// Returns the byte range of the whole segment, including the marker and the length.
    ///
    /// Fill bytes before the marker are not included.
    pub fn byte_range(&self) -> Range<usize> {
        // Two bytes of marker and two of length precede every payload.
        self.payload.start.saturating_sub(4)..self.payload.end
    }

    /// Returns whether the segment is metadata: an application (APPn) or comment (COM) segment.
    pub fn is_metadata(&self) -> bool {
        is_metadata(self.marker)
    }
}

/// The contents of the markers of a JPEG file: size, coding process, components, segments.
///
/// ```
/// use jpeg::frame::CodingProcess;
/// use jpeg::header::{HeaderLimits, JpegHeader};
///
/// let limits = HeaderLimits { scans_max: 100, segments_max: 1_000, metadata_bytes_max: 1 << 20 };
/// let jpeg = jpeg::samples::file(&jpeg::samples::adobe(1));
/// let header = JpegHeader::parse(&jpeg, &limits)?;
/// assert_eq!((header.size.width, header.size.height), (640, 480));
/// assert_eq!(header.process, CodingProcess::Baseline);
/// assert_eq!(header.metadata().count(), 1);
/// # Ok::<(), jpeg::header::HeaderError>(())
/// ```
///
/// All ranges and offsets are in bytes of the file from which the header was parsed, and are valid only for that
/// file. The methods with the file's bytes as an argument find nothing in a range beyond their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JpegHeader {
    /// Size of the picture as stored, in pixels, before any EXIF orientation.
    pub size: Size,
    /// Coding process, such as baseline or progressive.
    pub process: CodingProcess,
    /// Bits per sample, 8 in nearly all files.
    pub precision: u8,
    /// The frame's components, one to four, in the order of the frame.
    pub components: Vec<FrameComponent>,
    /// MCUs between restart markers in the first scan; 0 means no restarts.
    pub restart_interval: u16,
    /// The transform of the last Adobe APP14 segment: 0 none, 1 YCbCr, 2 YCCK. `None` without a segment.
    pub adobe_transform: Option<u8>,
    /// True if a `JFIF` APP0 segment is present.
    pub jfif: bool,
    /// Number of scans in the file.
    pub scans: u32,
    /// All segments before the first scan, in file order.
    pub segments: Vec<MarkerSegment>,
    /// Offset of the marker that opens the first scan.
    pub first_scan: usize,
    /// Offset of the first byte after the EOI marker. Bytes after it are ignored: second pictures, gain maps, junk.
    pub end: usize,
}

impl JpegHeader {
    /// Parses the markers of `jpeg` from SOI to EOI.
    ///
    /// Costs one pass at memory speed. The entropy-coded data is skipped, so it may be damaged even if
    /// parsing succeeds.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] if the file is not a JPEG, is truncated or inconsistent, or exceeds `limits`. Such a file
    /// should not reach a decoder.
    pub fn parse(jpeg: &[u8], limits: &HeaderLimits) -> Result<JpegHeader, HeaderError> {
        let mut walk = MarkerWalk::new(jpeg, limits)?;
        walk.read()?;
        walk.finish()
    }

    /// Parses the markers before the first scan if only the start of the file is available.
    ///
    /// `jpeg` holds the file at least up to the data of the first scan; `end` is the offset after EOI, which the
    /// caller knows. The rest is not read, so the result has one scan and no metadata after it.
    ///
    /// # Errors
    ///
    /// The same as [`JpegHeader::parse`].
    pub fn parse_start(
        jpeg: &[u8],
        limits: &HeaderLimits,
        end: usize,
    ) -> Result<JpegHeader, HeaderError> {
        let mut walk = MarkerWalk { start_only: true, ..MarkerWalk::new(jpeg, limits)? };
        walk.read()?;
        walk.at = end;
        walk.finish()
    }

    /// Iterates over the metadata segments (APPn and COM) before the first scan, in file order.
    pub fn metadata(&self) -> impl Iterator<Item = &MarkerSegment> {
        self.segments.iter().filter(|segment| segment.is_metadata())
    }

    /// Returns whether a decoder must hold all coefficients until it has read the last scan, as for progressive
    /// files.
    pub fn needs_coefficient_buffer(&self) -> bool {
        self.scans > 1
            || matches!(
                self.process,
                CodingProcess::Progressive | CodingProcess::ArithmeticProgressive
            )
    }

    /// Determines the colour model of the components as libjpeg does; `None` for two components, for which no
    /// colour model exists.
    pub fn colour(&self) -> Option<ColourSpace> {
        colour_space(self.process, &self.components, self.jfif, self.adobe_transform)
    }
}

/// The state of one pass over the markers.
struct MarkerWalk<'a> {
    jpeg: &'a [u8],
    limits: &'a HeaderLimits,
    at: usize,
    frame: Option<FrameHeader>,
    restart_interval: u16,
    adobe_transform: Option<u8>,
    jfif: bool,
    scans: u32,
    first_scan: usize,
    segments: Vec<MarkerSegment>,
    segment_count: u32,
    metadata_bytes: usize,
    /// True if the walk stops at the first scan, whose data may not be in `jpeg`.
    start_only: bool,
}

impl<'a> MarkerWalk<'a> {
    /// Starts after SOI; fails if `jpeg` does not begin with it.
    fn new(jpeg: &'a [u8], limits: &'a HeaderLimits) -> Result<Self, HeaderError> {
        if jpeg.is_empty() {
            return Err(HeaderError::Empty);
        }
        if !jpeg.starts_with(&[0xFF, SOI]) {
            return Err(HeaderError::NotJpeg);
        }
        Ok(MarkerWalk {
            jpeg,
            limits,
            at: 2,
            frame: None,
            restart_interval: 0,
            adobe_transform: None,
            jfif: false,
            scans: 0,
            first_scan: 0,
            segments: Vec::new(),
            segment_count: 0,
            metadata_bytes: 0,
            start_only: false,
        })
    }

    /// Reads the segments up to the end of the file, or up to the first scan if only the start is wanted.
    fn read(&mut self) -> Result<(), HeaderError> {
        while !self.start_only || self.scans == 0 {
            let (marker, offset) = self.next_marker()?;
            match marker {
                EOI => break,
                // libjpeg also refuses a second SOI.
                SOI => return Err(HeaderError::BadSegment { marker, offset }),
                TEM | RST0..=RST7 => {}
                _ => self.segment(marker, offset)?,
            }
        }
        Ok(())
    }

    /// Finds the next marker and moves past it; returns its code and the offset of its `FF`.
    fn next_marker(&mut self) -> Result<(u8, usize), HeaderError> {
        let start = self.at;
        let truncated = HeaderError::Truncated { offset: start };
        loop {
            let rest = self.jpeg.get(self.at..).ok_or(truncated)?;
            let gap = memchr::memchr(0xFF, rest).ok_or(truncated)?;
            self.at += gap + 1;
            // Any number of FF fill bytes may precede the code (T.81 B.1.1.2).
            while self.jpeg.get(self.at) == Some(&0xFF) {
                self.at += 1;
            }
            let code = *self.jpeg.get(self.at).ok_or(truncated)?;
            self.at += 1;
            if code != 0 {
                return Ok((code, self.at - 2));
            }
            // FF 00 is not a marker; libjpeg skips it too.
        }
    }

    /// Reads the segment whose marker was just found and, after SOS, skips the scan's data.
    fn segment(&mut self, marker: u8, offset: usize) -> Result<(), HeaderError> {
        let truncated = HeaderError::Truncated { offset };
        let length = match self.jpeg.get(self.at..self.at + 2) {
            Some(&[high, low]) => usize::from(u16::from_be_bytes([high, low])),
            _ => return Err(truncated),
        };
        if length < 2 {
            return Err(HeaderError::BadSegment { marker, offset });
        }
        // The length counts its own two bytes.
        let range = self.at + 2..self.at + length;
        let payload = self.jpeg.get(range.clone()).ok_or(truncated)?;
        self.at = range.end;
        // Called before the segment is stored, so that a hostile file cannot fill memory.
        self.count(marker, payload.len())?;
        let bad = HeaderError::BadSegment { marker, offset };
        match marker {
            SOS => return self.scan(payload, offset),
            // A later interval applies only to later scans.
            DRI if self.scans == 0 => match *payload {
                [high, low] => self.restart_interval = u16::from_be_bytes([high, low]),
                _ => return Err(bad),
            },
            // Decoders choose a colour model at the first scan.
            APP0 | APP14 if self.scans == 0 => self.application(marker, payload),
            // The codes of these segments lie between the codes of the frame markers, but the segments do not
            // start a frame.
            DHT | JPG | DAC => {}
            SOF0..=SOF15 if self.frame.is_some() => {
                return Err(HeaderError::SecondFrame { offset });
            }
            SOF0..=SOF15 => self.frame = Some(FrameHeader::parse(marker, payload, bad)?),
            _ => {}
        }
        if self.scans == 0 {
            self.segments.push(MarkerSegment { marker, payload: range });
        }
        Ok(())
    }

    /// Counts a segment whose payload has `bytes` bytes; fails if that exceeds a limit.
    fn count(&mut self, marker: u8, bytes: usize) -> Result<(), HeaderError> {
        let HeaderLimits { segments_max, metadata_bytes_max, .. } = *self.limits;
        self.segment_count += 1;
        if self.segment_count > segments_max {
            return Err(HeaderError::TooMany { what: "segments", limit: segments_max });
        }
        if is_metadata(marker) {
            self.metadata_bytes += bytes;
        }
        if self.metadata_bytes > metadata_bytes_max {
            return Err(HeaderError::TooMuchMetadata { limit: metadata_bytes_max });
        }
        Ok(())
    }

    fn application(&mut self, marker: u8, payload: &[u8]) {
        if marker == APP0 {
            self.jfif |= is_jfif(payload);
        } else if let Some(transform) = adobe_transform(payload) {
            self.adobe_transform = Some(transform);
        }
    }

    /// Checks a scan header and moves to the marker after the scan's entropy-coded data.
    fn scan(&mut self, payload: &[u8], offset: usize) -> Result<(), HeaderError> {
        let frame = self.frame.as_ref().ok_or(HeaderError::NoFrame)?;
        let bad = HeaderError::BadSegment { marker: SOS, offset };
        let (&count, rest) = payload.split_first().ok_or(bad)?;
        let count = usize::from(count);
        if count == 0 || count > frame.components.len() || rest.len() != 2 * count + 3 {
            return Err(bad);
        }
        // A scan may name only components of the frame (T.81 B.2.3).
        for selector in rest.chunks_exact(2).take(count) {
            if !frame.components.iter().any(|component| component.id == selector[0]) {
                return Err(bad);
            }
        }
        if self.scans == 0 {
            self.first_scan = offset;
        }
        self.scans += 1;
        // Refused before the data is searched, so that a hostile file costs little.
        if self.scans > self.limits.scans_max {
            return Err(HeaderError::TooMany { what: "scans", limit: self.limits.scans_max });
        }
        if self.start_only {
            return Ok(());
        }
        self.at = entropy_end(self.jpeg, self.at).ok_or(HeaderError::Truncated { offset })?;
        Ok(())
    }

    fn finish(self) -> Result<JpegHeader, HeaderError> {
        let frame = self.frame.ok_or(HeaderError::NoFrame)?;
        if self.scans == 0 {
            return Err(HeaderError::NoScan);
        }
        Ok(JpegHeader {
            size: frame.size,
            process: frame.process,
            precision: frame.precision,
            components: frame.components,
            restart_interval: self.restart_interval,
            adobe_transform: self.adobe_transform,
            jfif: self.jfif,
            scans: self.scans,
            segments: self.segments,
            first_scan: self.first_scan,
            end: self.at,
        })
    }
}

/// Finds the marker that ends the entropy-coded data at `at`; `None` if the file ends first.
fn entropy_end(jpeg: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(0xFF, jpeg.get(at..)?)?;
        match *jpeg.get(at + 1)? {
            0x00 | RST0..=RST7 => at += 2,
            // A fill byte: the next FF may start the marker.
            0xFF => at += 1,
            _ => return Some(at),
        }
    }
}

fn is_metadata(marker: u8) -> bool {
    matches!(marker, APP0..=APP15 | COM)
}

/// Returns whether an APP0 payload belongs to a JFIF segment.
pub(super) fn is_jfif(payload: &[u8]) -> bool {
    payload.len() >= JFIF_BYTES && payload.starts_with(b"JFIF\0")
}

/// Reads the colour transform of an APP14 payload; `None` if the payload is not Adobe's.
pub(super) fn adobe_transform(payload: &[u8]) -> Option<u8> {
    if !payload.starts_with(b"Adobe") {
        return None;
    }
    payload.get(ADOBE_BYTES - 1).copied()
}
