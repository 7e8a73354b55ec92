//! Parses the frame header, the segment (SOF) that states the size, coding process and components of a picture, and
//! determines the colour model.
//!
//! The JPEG standard, T.81, defines the segment in B.2.2, but no colour model for the samples: JFIF and Adobe each
//! added a segment for it. If they disagree, libjpeg's precedence is the de facto rule, and this module follows it.

use crate::codec::ColourSpace;
use crate::header_error::HeaderError;
use geometry::Size;

/// Maximum number of components in a frame. libjpeg accepts up to ten, but no colour model has more than the four
/// of CMYK.
const COMPONENTS_MAX: usize = 4;

/// The coding process, which the marker of the frame states (T.81 table B.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingProcess {
    /// SOF0: sequential, Huffman, 8 bits.
    Baseline,
    /// SOF1: sequential, Huffman, 8 or 12 bits.
    Extended,
    Progressive,
    Lossless,
    /// SOF9: sequential, arithmetic coding.
    ArithmeticSequential,
    /// SOF10: progressive, arithmetic coding.
    ArithmeticProgressive,
    /// SOF11: lossless, arithmetic coding.
    ArithmeticLossless,
    /// SOF5–7 and SOF13–15: a differential frame of a hierarchical file. No common decoder
    /// supports it.
    Hierarchical,
}

/// One component (colour channel) of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameComponent {
    /// Identifier, freely chosen by the encoder; usually 1, 2, 3.
    pub id: u8,
    /// Horizontal sampling factor, 1 to 4.
    pub h: u8,
    /// Vertical sampling factor, 1 to 4.
    pub v: u8,
    /// Number of the component's quantisation table, 0 to 3.
    pub tq: u8,
}

/// Determines the colour model as libjpeg does (`default_decompress_parms`).
///
/// With three components, a JFIF segment means YCbCr. Without a JFIF segment, Adobe's transform decides, then
/// the component identifiers `R`, `G`, `B`; lossless files with neither segment are RGB. With four components,
/// a missing Adobe transform or transform 0 means CMYK, any other transform YCCK. Returns `None` for any other
/// number of components.
pub(super) fn colour_space(
    process: CodingProcess,
    components: &[FrameComponent],
    jfif: bool,
    adobe_transform: Option<u8>,
) -> Option<ColourSpace> {
    match (components, adobe_transform) {
        ([_], _) => Some(ColourSpace::Grey),
        ([_, _, _], _) if jfif => Some(ColourSpace::YCbCr),
        ([_, _, _], Some(0)) => Some(ColourSpace::Rgb),
        // libjpeg interprets an unknown transform as YCbCr and warns.
        ([_, _, _], Some(_)) => Some(ColourSpace::YCbCr),
        ([a, b, c], None) => {
            let is_lossless =
                matches!(process, CodingProcess::Lossless | CodingProcess::ArithmeticLossless);
            let is_rgb = is_lossless || [a.id, b.id, c.id] == *b"RGB";
            Some(if is_rgb { ColourSpace::Rgb } else { ColourSpace::YCbCr })
        }
        ([_, _, _, _], None | Some(0)) => Some(ColourSpace::Cmyk),
        ([_, _, _, _], Some(_)) => Some(ColourSpace::Ycck),
        _ => None,
    }
}

/// The parsed payload of a frame segment.
pub(super) struct FrameHeader {
    pub(super) size: Size,
    pub(super) process: CodingProcess,
    /// Number of bits per sample.
    pub(super) precision: u8,
    pub(super) components: Vec<FrameComponent>,
}

impl FrameHeader {
    /// Parses the payload of the segment `marker`: precision, height, width, and three bytes per component.
    ///
    /// Fails with [`HeaderError::ZeroSize`] if there are no pixels, and with `bad`, the caller's error for this
    /// segment, if `marker` starts no frame or the payload is inconsistent.
    pub(super) fn parse(
        marker: u8,
        payload: &[u8],
        bad: HeaderError,
    ) -> Result<FrameHeader, HeaderError> {
        let process = process(marker).ok_or(bad)?;
        let &[precision, y1, y2, x1, x2, count, ref rest @ ..] = payload else {
            return Err(bad);
        };
        let count = usize::from(count);
        // libjpeg also refuses a length that does not match the components.
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
        let components: Vec<FrameComponent> = rest
            .chunks_exact(3)
            .map(|c| FrameComponent { id: c[0], h: c[1] >> 4, v: c[1] & 15, tq: c[2] })
            .collect();
        // The ranges of T.81 table B.2.
        let sampling = 1..=4;
        if !components
            .iter()
            .all(|c| sampling.contains(&c.h) && sampling.contains(&c.v) && c.tq < 4)
            || !precision_fits(process, precision)
        {
            return Err(bad);
        }
        Ok(FrameHeader { size, process, precision, components })
    }
}

/// Returns the coding process of a marker SOF0 to SOF15; `None` for markers between them that start no frame.
fn process(marker: u8) -> Option<CodingProcess> {
    Some(match marker {
        0xC0 => CodingProcess::Baseline,
        0xC1 => CodingProcess::Extended,
        0xC2 => CodingProcess::Progressive,
        0xC3 => CodingProcess::Lossless,
        0xC9 => CodingProcess::ArithmeticSequential,
        0xCA => CodingProcess::ArithmeticProgressive,
        0xCB => CodingProcess::ArithmeticLossless,
        0xC5..=0xC7 | 0xCD..=0xCF => CodingProcess::Hierarchical,
        _ => return None,
    })
}

/// Returns whether the process allows this number of bits per sample (T.81 table B.2).
fn precision_fits(process: CodingProcess, precision: u8) -> bool {
    match process {
        CodingProcess::Baseline => precision == 8,
        CodingProcess::Extended
        | CodingProcess::Progressive
        | CodingProcess::ArithmeticSequential
        | CodingProcess::ArithmeticProgressive => precision == 8 || precision == 12,
        CodingProcess::Lossless
        | CodingProcess::ArithmeticLossless
        | CodingProcess::Hierarchical => (2..=16).contains(&precision),
    }
}
