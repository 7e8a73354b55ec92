//! The segments of a JPEG before its picture data.
//!
//! Reads what `excerpt` needs to enter a scan, mends headers that libjpeg-turbo warns about, and
//! counts scans. Metadata in the segments belongs to `media/caption`.

use crate::types::Size;

/// Start of image.
pub(crate) const SOI: u8 = 0xD8;
/// End of image.
pub(crate) const EOI: u8 = 0xD9;
/// Start of scan.
pub(crate) const SOS: u8 = 0xDA;
/// Quantisation tables.
pub(crate) const DQT: u8 = 0xDB;
/// Huffman tables.
pub(crate) const DHT: u8 = 0xC4;
/// Restart interval.
pub(crate) const DRI: u8 = 0xDD;
/// Arithmetic conditioning.
const DAC: u8 = 0xCC;
/// JFIF's marker.
pub(crate) const APP0: u8 = 0xE0;
/// Adobe's marker.
pub(crate) const APP14: u8 = 0xEE;

/// Components of one picture; JPEG allows more in theory, no decoder does.
const COMPONENTS_MAX: usize = 4;

/// One segment: its marker and what follows the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The byte behind `FF`.
    pub marker: u8,
    /// The bytes behind the length.
    pub payload: &'a [u8],
    /// Index of the first byte behind the segment in the file.
    pub end: usize,
}

/// Iterates over the segments of a JPEG up to and with the first start of scan.
///
/// Bytes between segments are skipped. Ends early where the file ends or a length is wrong.
pub struct Segments<'a> {
    jpeg: &'a [u8],
    at: usize,
    done: bool,
}

/// The segments of `jpeg` up to and with the first start of scan; none without a start of image.
#[must_use]
pub fn segments(jpeg: &[u8]) -> Segments<'_> {
    Segments { jpeg, at: 2, done: !jpeg.starts_with(&[0xFF, SOI]) }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        if self.done {
            return None;
        }
        self.done = true;
        let segment = segment_from(self.jpeg, self.at)?;
        self.done = segment.marker == SOS;
        self.at = segment.end;
        Some(segment)
    }
}

/// The first segment with a length at or behind `at`.
fn segment_from(jpeg: &[u8], mut at: usize) -> Option<Segment<'_>> {
    let marker = loop {
        at += jpeg.get(at..)?.iter().position(|byte| *byte == 0xFF)?;
        match *jpeg.get(at + 1)? {
            // A fill byte, a stuffed byte, or a marker without a length.
            0xFF => at += 1,
            0x00 | 0x01 | 0xD0..=0xD8 => at += 2,
            EOI => return None,
            marker => break marker,
        }
    };
    let length = usize::from(u16::from_be_bytes([*jpeg.get(at + 2)?, *jpeg.get(at + 3)?]));
    let end = at + 2 + length;
    let payload = jpeg.get(at + 4..end)?;
    Some(Segment { marker, payload, end })
}

/// True for the markers that start a frame.
#[must_use]
pub fn starts_frame(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, DHT | DAC | 0xC8)
}

/// Counts the scans of `jpeg`, at most `cap` of them; one pass over the bytes.
#[must_use]
pub fn count_scans(jpeg: &[u8], cap: usize) -> usize {
    let (mut at, mut count) = (2, 0);
    while count < cap {
        let Some(segment) = segment_from(jpeg, at) else { break };
        at = segment.end;
        count += usize::from(segment.marker == SOS);
    }
    count
}

/// One component of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The id by which scans name it.
    pub id: u8,
    /// Blocks across in an MCU, 1 to 4.
    pub across: u8,
    /// Blocks down in an MCU, 1 to 4.
    pub down: u8,
    /// Its quantisation table.
    pub table: u8,
}

/// A frame header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The marker: `C0` baseline, `C1` extended, `C2` progressive …
    pub marker: u8,
    /// Bits per sample.
    pub precision: u8,
    /// The picture's size; neither edge is zero.
    pub size: Size,
    /// One to four components.
    pub components: Vec<Component>,
}

impl Frame {
    /// Reads the payload of a frame header, `None` if it is damaged or has no height.
    #[must_use]
    pub fn parse(segment: &Segment<'_>) -> Option<Frame> {
        let (head, rest) = segment.payload.split_first_chunk::<6>()?;
        let [precision, h1, h0, w1, w0, count] = *head;
        let size = Size {
            width: u32::from(u16::from_be_bytes([w1, w0])),
            height: u32::from(u16::from_be_bytes([h1, h0])),
        };
        let count = usize::from(count);
        let sound = (1..=COMPONENTS_MAX).contains(&count) && rest.len() == 3 * count;
        if !sound || size.width == 0 || size.height == 0 {
            return None;
        }
        let component = |part: &[u8]| {
            let (across, down) = (part[1] >> 4, part[1] & 15);
            let valid = (1..=4).contains(&across) && (1..=4).contains(&down);
            valid.then_some(Component { id: part[0], across, down, table: part[2] })
        };
        let components = rest.chunks_exact(3).map(component).collect::<Option<Vec<_>>>()?;
        Some(Frame { marker: segment.marker, precision, size, components })
    }

    /// The first frame header of `jpeg`.
    #[must_use]
    pub fn find(jpeg: &[u8]) -> Option<Frame> {
        Frame::parse(&segments(jpeg).find(|segment| starts_frame(segment.marker))?)
    }

    /// The size in pixels of what the stream codes at a time: an MCU, 8x8 for one component.
    #[must_use]
    pub fn mcu(&self) -> Size {
        if self.components.len() == 1 {
            return Size { width: 8, height: 8 };
        }
        let most = |edge: fn(&Component) -> u8| {
            8 * u32::from(self.components.iter().map(edge).max().unwrap_or(1))
        };
        Size { width: most(|part| part.across), height: most(|part| part.down) }
    }
}

/// Appends a segment; `payload` is shorter than 65534 bytes.
pub(crate) fn push_segment(out: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 2).expect("callers pass payloads of segments");
    out.extend_from_slice(&[0xFF, marker]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The same picture with only the headers that decoding needs, and without bytes between them.
///
/// libjpeg-turbo takes stray bytes, unknown JFIF versions and unknown Adobe transforms for damage
/// and refuses; other readers show such files. `None` if there is no scan.
#[must_use]
pub fn cleaned(jpeg: &[u8]) -> Option<Vec<u8>> {
    let components = Frame::find(jpeg)?.components.len();
    let mut out = vec![0xFF, SOI];
    for segment in segments(jpeg) {
        match segment.marker {
            DQT | DHT | DRI | DAC => push_segment(&mut out, segment.marker, segment.payload),
            APP0 if segment.payload.starts_with(b"JFIF\0\x01") => {
                push_segment(&mut out, segment.marker, segment.payload);
            }
            APP14 if segment.payload.starts_with(b"Adobe") && segment.payload.len() >= 12 => {
                let mut payload = segment.payload.to_vec();
                if payload[11] > 2 {
                    // What the library assumes after its warning.
                    payload[11] = if components == 4 { 2 } else { 1 };
                }
                push_segment(&mut out, segment.marker, &payload);
            }
            SOS => {
                push_segment(&mut out, segment.marker, segment.payload);
                out.extend_from_slice(jpeg.get(segment.end..)?);
                return Some(out);
            }
            marker if starts_frame(marker) => push_segment(&mut out, marker, segment.payload),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Vec<u8> {
        let mut jpeg = vec![0xFF, SOI];
        push_segment(&mut jpeg, APP0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        push_segment(&mut jpeg, 0xC0, &[8, 0, 10, 0, 20, 1, 1, 0x22, 0]);
        push_segment(&mut jpeg, SOS, &[1, 1, 0, 0, 63, 0]);
        jpeg.extend_from_slice(&[1, 2, 0xFF, 0, 0xFF, 0xD0, 3, 0xFF, EOI]);
        jpeg
    }

    #[test]
    fn a_frame_tells_size_and_components() {
        let frame = Frame::find(&stream()).expect("frame");
        assert_eq!(frame.size, Size { width: 20, height: 10 });
        assert_eq!(frame.components, [Component { id: 1, across: 2, down: 2, table: 0 }]);
        assert_eq!(frame.mcu(), Size { width: 8, height: 8 });
    }

    #[test]
    fn a_frame_without_height_is_none() {
        let mut broken = stream();
        let at = broken.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("frame") + 5;
        broken[at..at + 2].copy_from_slice(&[0, 0]);
        assert_eq!(Frame::find(&broken), None);
    }

    #[test]
    fn every_prefix_of_a_file_is_read_without_panic() {
        let jpeg = stream();
        for end in 0..jpeg.len() {
            let segments = segments(&jpeg[..end]).count();
            assert!(segments <= 3);
            assert!(count_scans(&jpeg[..end], 9) <= 1);
        }
    }

    #[test]
    fn cleaning_drops_stray_bytes_and_metadata() {
        let mut dirty = vec![0xFF, SOI, 9, 9];
        push_segment(&mut dirty, 0xE1, b"Exif\0\0");
        dirty.extend_from_slice(&stream()[2..]);
        assert_eq!(cleaned(&dirty), Some(stream()));
    }

    #[test]
    fn cleaning_gives_an_unknown_adobe_transform_its_usual_meaning() {
        let mut dirty = vec![0xFF, SOI];
        push_segment(&mut dirty, APP14, b"Adobe\0\x64\0\0\0\0\x07");
        dirty.extend_from_slice(&stream()[2..]);
        let clean = cleaned(&dirty).expect("has a scan");
        let adobe = segments(&clean).find(|segment| segment.marker == APP14).expect("kept");
        assert_eq!(adobe.payload[11], 1);
    }

    #[test]
    fn scans_are_counted_up_to_the_cap() {
        let mut jpeg = stream();
        jpeg.truncate(jpeg.len() - 2);
        let scan =
            jpeg[jpeg.windows(2).position(|pair| pair == [0xFF, SOS]).expect("scan")..].to_vec();
        for _ in 0..4 {
            jpeg.extend_from_slice(&scan);
        }
        assert_eq!(count_scans(&jpeg, 99), 5);
        assert_eq!(count_scans(&jpeg, 3), 3);
    }
}
