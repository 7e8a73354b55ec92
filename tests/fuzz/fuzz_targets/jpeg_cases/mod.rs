//! Shared by the targets of the JPEG engine: their input, pictures to mutate, and a decoder of coefficients that is
//! independent of the engine.
//!
//! Input: a byte whose lowest bit selects the form, a byte of options, four 16-bit numbers for a rectangle, eight
//! spare bytes, and then either a JPEG file or the choices for [`build`], followed by changes to its bytes.

pub mod build;
pub mod choices;
pub mod plain;

use std::borrow::Cow;

use jpeg::codec::{DecodeOutput, decode_planes, read_header};
use jpeg::codec::{DecodeScale, Pixels, Planes, decode};
use jpeg::header::{HeaderLimits, JpegHeader};
use jpeg::repair::repair;
use jpeg::rewrite::colour_segments;
use jpeg::scan::index::{IndexEntry, ScanIndex};
use jpeg::scan::{ByteRanges, Scan};
use model::{Rect, Size};

use choices::Choices;
use plain::Plain;

/// Limits that small files do not reach.
pub const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: 20, segments_max: 200, metadata_bytes_max: 1 << 20 };

/// Larger pictures cost time and cover nothing new.
const PIXELS_MAX: u64 = 1 << 17;

/// The longest edge in pixels that libjpeg-turbo accepts (`JPEG_MAX_DIMENSION`).
const EDGE_MAX: u32 = 65_500;

/// Changes to a built picture at most.
const CHANGES_MAX: usize = 12;

/// One input of a target.
pub struct Case {
    /// The file.
    pub jpeg: Vec<u8>,
    /// Bits for the target to choose by.
    pub options: u8,
    /// The position and size of a rectangle, in units of 1/65536.
    pub corners: [u16; 4],
    /// ByteRanges for the target.
    pub spare: [u8; 8],
}

impl Case {
    /// Parses the input of the fuzzer.
    pub fn read(data: &[u8]) -> Option<Self> {
        let (head, rest) = data.split_first_chunk::<18>()?;
        let [mode, options, x0, x1, y0, y1, w0, w1, h0, h1, spare @ ..] = *head;
        let corners = [[x0, x1], [y0, y1], [w0, w1], [h0, h1]].map(u16::from_le_bytes);
        let jpeg = if mode & 1 == 0 {
            rest.to_vec()
        } else {
            let mut choices = Choices::new(rest);
            let mut jpeg = build::picture(&mut choices);
            change(&mut jpeg, &mut choices);
            jpeg
        };
        Some(Self { jpeg, options, corners, spare })
    }

    /// A rectangle in a picture of `size`.
    pub fn rect(&self, size: Size) -> Rect {
        let [x, y, width, height] = self.corners;
        let part = |of: u32, part: u16| {
            u32::try_from(u64::from(of) * u64::from(part) >> 16).expect("less than the whole")
        };
        let (x, y) = (part(size.width, x), part(size.height, y));
        let size = Size::new(part(size.width - x, width) + 1, part(size.height - y, height) + 1);
        Rect::new(x, y, size)
    }
}

/// Changes, removes or inserts a few bytes.
fn change(jpeg: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..CHANGES_MAX {
        if choices.is_empty() || jpeg.is_empty() {
            return;
        }
        let (kind, at) = (choices.byte(), usize::from(choices.word()) % jpeg.len());
        let value = choices.byte();
        match kind % 8 {
            0..4 => jpeg[at] ^= value,
            4 => jpeg[at] = value,
            5 => jpeg.insert(at, value),
            6 => drop(jpeg.drain(at..(at + usize::from(value % 8)).min(jpeg.len()))),
            _ => {
                let marker = [0xFF, 0xD0 | value];
                jpeg.splice(at..at, marker);
            }
        }
    }
}

/// A file that the engine accepts.
pub struct Opened {
    /// The file.
    pub jpeg: Vec<u8>,
    /// Its headers.
    pub header: JpegHeader,
    /// The layout of its scan.
    pub scan: Scan,
    /// The index of its scan.
    pub index: ScanIndex,
    /// The segments that define the meaning of the components.
    pub colour: Vec<u8>,
}

impl Opened {
    /// Indexes the file, unless it is unfit for the engine or too large.
    pub fn new(jpeg: Vec<u8>) -> Option<Self> {
        let header = JpegHeader::parse(&jpeg, &LIMITS).ok()?;
        let Size { width, height } = header.size;
        if header.size.pixels() > PIXELS_MAX || width.max(height) > EDGE_MAX {
            return None;
        }
        let scan = Scan::read(&header, &jpeg).ok()?;
        let index = ScanIndex::build(&scan, &jpeg).ok()?;
        let colour = colour_segments(&header, &jpeg);
        Some(Self { jpeg, header, scan, index, colour })
    }

    /// The same file with an index of more entries, if `options` select it: the engine's index of a small file may have
    /// only one.
    pub fn finer(mut self, case: &Case) -> Self {
        if case.options & 128 != 0 {
            let every = 1 + u32::from(case.spare[7] % 32);
            let starts = self.plain().starts;
            let entry = |(place, dc): &(u64, [i32; 4])| IndexEntry {
                bit_position: *place,
                dc: dc.map(|dc| i16::try_from(dc).expect("the engine took it")),
            };
            self.index.entries = starts.iter().step_by(at(every.into())).map(entry).collect();
            self.index.spacing = every;
            let length = u64::try_from(self.jpeg.len()).expect("64 bits");
            assert!(self.index.matches_scan(&self.scan, length));
        }
        self
    }

    /// The coefficients from the plain decoder, which must accept everything that the engine accepts.
    pub fn plain(&self) -> Plain {
        Plain::read(&self.header, &self.jpeg).expect("the plain decoder reads it too")
    }

    /// Only the bytes of `ranges`.
    pub fn only(
        &self,
        ranges: impl IntoIterator<Item = std::ops::Range<u64>>,
    ) -> ByteRanges<'static> {
        let mut bytes = ByteRanges::default();
        for range in ranges {
            bytes.push(range.start, self.jpeg[at(range.start)..at(range.end)].to_vec());
        }
        bytes
    }

    /// The file for libjpeg-turbo, without header segments that cause warnings.
    pub fn repair(&self) -> Cow<'_, [u8]> {
        if read_header(&self.jpeg).is_ok() {
            return Cow::Borrowed(&self.jpeg);
        }
        let repaired = repair(&self.jpeg).expect("there is a scan");
        read_header(&repaired).expect("libjpeg-turbo takes the headers that the engine takes");
        Cow::Owned(repaired)
    }
}

/// An offset as an index.
pub fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset in memory")
}

/// libjpeg-turbo's pixels of a file that the engine accepts; `extra` bytes follow its last MCU.
pub fn pixels(jpeg: &[u8], scale: DecodeScale, extra: usize) -> Pixels {
    undamaged(decode(jpeg, scale).expect("libjpeg-turbo decodes what the engine takes"), extra)
}

/// libjpeg-turbo's planes of such a file.
pub fn planes(jpeg: &[u8], extra: usize) -> Planes {
    undamaged(decode_planes(jpeg).expect("libjpeg-turbo decodes what the engine takes"), extra)
}

fn undamaged<T>(decoded: DecodeOutput<T>, extra: usize) -> T {
    if let Some(warning) = decoded.warning {
        let is_extra = extra > 0 && warning.contains(" extraneous bytes before marker ");
        assert!(is_extra, "libjpeg-turbo warns: {warning}");
    }
    decoded.value
}
