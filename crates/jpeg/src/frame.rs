//! The frame: size, coding process, components, and what colours they mean.
//!
//! T.81 B.2.2 gives the frame's segment. What colour model the samples have is not in T.81 at
//! all; JFIF and Adobe each added a segment for it, and libjpeg's way to weigh them is the rule
//! that everybody follows.

use crate::header::HeaderError;
use geometry::Size;

/// Components of a frame: libjpeg takes up to ten, colour models have at most the four of CMYK.
const COMPONENTS_MAX: usize = 4;

/// The coding process, which the marker of the frame states (T.81 table B.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// SOF0: sequential, Huffman, 8 bits.
    Baseline,
    /// SOF1: sequential, Huffman, 8 or 12 bits.
    Extended,
    /// SOF2: progressive, Huffman.
    Progressive,
    /// SOF3: lossless, Huffman.
    Lossless,
    /// SOF9: sequential, arithmetic coding.
    ArithmeticSequential,
    /// SOF10: progressive, arithmetic coding.
    ArithmeticProgressive,
    /// SOF11: lossless, arithmetic coding.
    ArithmeticLossless,
    /// SOF5–7 and SOF13–15: a differential frame of a hierarchical file. No common decoder
    /// reads it.
    Hierarchical,
}

/// One component (colour channel) of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Identifier, freely chosen by the encoder; usually 1, 2, 3.
    pub id: u8,
    /// Horizontal sampling factor, 1 to 4.
    pub h: u8,
    /// Vertical sampling factor, 1 to 4.
    pub v: u8,
    /// Number of its quantisation table, 0 to 3.
    pub tq: u8,
}

/// The colour model of the stored samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// One channel of luma.
    Gray,
    /// Luma and two chroma channels.
    YCbCr,
    /// Red, green, blue, not transformed.
    Rgb,
    /// Four inks, not transformed. Adobe's files store them inverted.
    Cmyk,
    /// Four inks with the first three transformed. Adobe's files store them inverted.
    Ycck,
}

impl Colour {
    /// Decides the colour model as libjpeg does (`default_decompress_parms`).
    ///
    /// With three components a JFIF segment settles YCbCr, then Adobe's transform counts, then
    /// the component identifiers `R`, `G`, `B`; lossless files without either are RGB. With four,
    /// Adobe's transform 0 or its absence is CMYK, anything else YCCK.
    pub fn of(
        process: Process,
        components: &[Component],
        jfif: bool,
        adobe_transform: Option<u8>,
    ) -> Option<Colour> {
        match (components, adobe_transform) {
            ([_], _) => Some(Colour::Gray),
            ([_, _, _], _) if jfif => Some(Colour::YCbCr),
            ([_, _, _], Some(0)) => Some(Colour::Rgb),
            ([_, _, _], Some(_)) => Some(Colour::YCbCr),
            ([a, b, c], None) => Some(match process {
                Process::Lossless | Process::ArithmeticLossless => Colour::Rgb,
                Process::Baseline
                | Process::Extended
                | Process::Progressive
                | Process::ArithmeticSequential
                | Process::ArithmeticProgressive
                | Process::Hierarchical => {
                    if [a.id, b.id, c.id] == *b"RGB" {
                        Colour::Rgb
                    } else {
                        Colour::YCbCr
                    }
                }
            }),
            ([_, _, _, _], None | Some(0)) => Some(Colour::Cmyk),
            ([_, _, _, _], Some(_)) => Some(Colour::Ycck),
            _ => None,
        }
    }
}

/// The frame's segment, read.
pub(super) struct Frame {
    pub(super) size: Size,
    pub(super) process: Process,
    pub(super) precision: u8,
    pub(super) components: Vec<Component>,
}

impl Frame {
    /// Reads a frame's payload: precision, height, width, and three bytes per component.
    ///
    /// Fails with `bad` when it contradicts itself.
    pub(super) fn parse(
        marker: u8,
        payload: &[u8],
        bad: HeaderError,
    ) -> Result<Frame, HeaderError> {
        let process = process(marker).ok_or(bad)?;
        let &[precision, y1, y2, x1, x2, count, ref rest @ ..] = payload else {
            return Err(bad);
        };
        let count = usize::from(count);
        if count == 0 || count > COMPONENTS_MAX || rest.len() != 3 * count {
            return Err(bad);
        }
        let size = Size {
            width: u32::from(u16::from_be_bytes([x1, x2])),
            height: u32::from(u16::from_be_bytes([y1, y2])),
        };
        if size.width == 0 || size.height == 0 {
            return Err(HeaderError::ZeroSize { width: size.width, height: size.height });
        }
        let components: Vec<Component> = rest
            .chunks_exact(3)
            .map(|c| Component { id: c[0], h: c[1] >> 4, v: c[1] & 15, tq: c[2] })
            .collect();
        let sampling = 1..=4;
        if !components
            .iter()
            .all(|c| sampling.contains(&c.h) && sampling.contains(&c.v) && c.tq < 4)
            || !precision_fits(process, precision)
        {
            return Err(bad);
        }
        Ok(Frame { size, process, precision, components })
    }
}

fn process(marker: u8) -> Option<Process> {
    Some(match marker {
        0xC0 => Process::Baseline,
        0xC1 => Process::Extended,
        0xC2 => Process::Progressive,
        0xC3 => Process::Lossless,
        0xC9 => Process::ArithmeticSequential,
        0xCA => Process::ArithmeticProgressive,
        0xCB => Process::ArithmeticLossless,
        0xC5..=0xC7 | 0xCD..=0xCF => Process::Hierarchical,
        _ => return None,
    })
}

/// The bits per sample that each process allows (T.81 table B.2).
fn precision_fits(process: Process, precision: u8) -> bool {
    match process {
        Process::Baseline => precision == 8,
        Process::Extended
        | Process::Progressive
        | Process::ArithmeticSequential
        | Process::ArithmeticProgressive => precision == 8 || precision == 12,
        Process::Lossless | Process::ArithmeticLossless | Process::Hierarchical => {
            (2..=16).contains(&precision)
        }
    }
}
