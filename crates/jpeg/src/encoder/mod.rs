//! Encodes small renditions: optimised for the quality at a number of bytes rather than for speed.
//!
//! `codec` encodes with libjpeg-turbo, which is several times faster and right for large pictures. This encoder is
//! for pictures that are encoded once and sent often, and with less effort for small pictures that a request waits
//! for. Its smallest files are about a quarter smaller at the same SSIMULACRA2 score (seven photographs at 1024
//! pixels), because
//! - the transform starts from colours that were never rounded (`colour`, `transform`),
//! - chroma is subsampled so that the decoder's interpolation restores it (`colour`),
//! - the levels of a block are chosen by their error and their size together (`trellis`), and errors count less
//!   where texture hides them (`quantize`),
//! - the scans of a progressive file and their Huffman tables are chosen by measuring (`progressive`).
//!
//! The bytes depend only on the pixels and options: there are no threads, and no functions of the platform's
//! mathematical library, whose last digits differ.

mod colour;
mod effort;
pub(crate) mod file;
mod huffman;
mod progressive;
mod quantize;
mod scan;
mod transform;
mod trellis;

#[cfg(test)]
mod tests;

use geometry::Size;

use crate::codec::{ChromaSubsampling, CodecError, ColourSpace, Pixels, Planes};
use crate::coefficient_grid::CoefficientGrid;
use crate::encoder::colour::Plane;
pub use crate::encoder::effort::EncodeEffort;
use crate::encoder::quantize::{CHROMA, Component, LUMA};
use crate::rewrite::segment;

/// JFIF 1.01, square pixels, no thumbnail.
const JFIF: &[u8] = b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0";

/// Quality, chroma subsampling and effort for [`encode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The quality from 1 to 100; values outside are clamped.
    ///
    /// The scale resembles libjpeg's: the steps of quantisation shrink with it, to 1 at 100.
    pub quality: u8,
    /// [`ChromaSubsampling::Full`] or [`ChromaSubsampling::Quarter`]; grey pictures ignore it.
    pub sampling: ChromaSubsampling,
    /// The time that encoding may take.
    pub effort: EncodeEffort,
}

/// Encodes grey or RGB pixels as a JFIF file without metadata.
///
/// `pixels` has 1 channel (grey) or 3 (sRGB), and each side has 1 to 65,535 pixels. With [`EncodeEffort::Small`] the
/// file is progressive, or baseline if that is smaller, as for pictures of a few hundred bytes. The same input gives
/// the same bytes on every machine. Memory use is 20 to 60 bytes per pixel, and the time about 50 ms per megapixel of
/// a photograph at quality 85, up to 0.8 s per megapixel of noise at quality 100.
///
/// Fails with [`CodecError::Encode`] if the pixels do not have this form and with [`CodecError::Unsupported`] for
/// other samplings.
pub fn encode(pixels: &Pixels, options: &EncodeOptions) -> Result<Vec<u8>, CodecError> {
    check(pixels)?;
    check_sampling(options.sampling)?;
    let is_halved = options.sampling == ChromaSubsampling::Quarter && pixels.channels == 3;
    let factor = if is_halved { 2 } else { 1 };
    let (luma, chroma) = planes(pixels, factor, options.effort);
    let grids = quantise(&luma, &chroma, factor, options);
    Ok(file::write(pixels.size, &segment(0xE0, &[JFIF]), &grids, options.effort))
}

/// Encodes the planes of a grey or YCbCr picture as [`encode`] does, with the subsampling that they have.
///
/// `options.sampling` is ignored. Chroma is not subsampled again, so it is as sharp as the planes are.
///
/// Fails with [`CodecError::Encode`] if the planes do not have a size that a file can have, and with
/// [`CodecError::Unsupported`] for samplings other than 4:4:4 and 4:2:0.
pub fn encode_planes(planes: &Planes, options: &EncodeOptions) -> Result<Vec<u8>, CodecError> {
    check_size(planes.size)?;
    check_sampling(planes.chroma)?;
    let is_halved =
        planes.chroma == ChromaSubsampling::Quarter && planes.space != ColourSpace::Grey;
    let factor = if is_halved { 2 } else { 1 };
    let mut components = colour::components(planes).into_iter();
    let luma = components.next().expect("every picture has luma");
    let chroma: Vec<Plane> = components.collect();
    let grids = quantise(&luma, &chroma, factor, options);
    Ok(file::write(planes.size, &segment(0xE0, &[JFIF]), &grids, options.effort))
}

fn check_sampling(sampling: ChromaSubsampling) -> Result<(), CodecError> {
    if matches!(sampling, ChromaSubsampling::Full | ChromaSubsampling::Quarter) {
        return Ok(());
    }
    Err(CodecError::Unsupported("chroma other than 4:4:4 and 4:2:0".to_owned()))
}

fn check_size(size: Size) -> Result<(), CodecError> {
    let sides = 1..=u32::from(u16::MAX);
    if sides.contains(&size.width) && sides.contains(&size.height) {
        return Ok(());
    }
    Err(CodecError::Encode(format!("a JPEG file cannot have {size} pixels")))
}

/// Fails unless the pixels can be encoded.
fn check(pixels: &Pixels) -> Result<(), CodecError> {
    let Pixels { size, channels, data } = pixels;
    check_size(*size)?;
    let found = data.len();
    if !matches!(channels, 1 | 3) || found as u64 != size.pixels() * *channels as u64 {
        return Err(CodecError::Encode(format!("{found} samples for {size} x {channels}")));
    }
    Ok(())
}

/// Converts pixels to a luma plane, and to two chroma planes unless the picture is grey.
fn planes(pixels: &Pixels, factor: u8, effort: EncodeEffort) -> (Plane, Vec<Plane>) {
    if pixels.channels == 1 {
        return (colour::grey_plane(pixels), Vec::new());
    }
    let [luma, blue, red] = colour::ycbcr_planes(pixels);
    let chroma = if factor == 2 {
        vec![colour::halved(&blue, effort), colour::halved(&red, effort)]
    } else {
        vec![blue, red]
    };
    (luma, chroma)
}

/// Quantises the planes: the coefficients of luma, then of two chroma components unless the picture is grey.
fn quantise(
    luma: &Plane,
    chroma: &[Plane],
    factor: u8,
    options: &EncodeOptions,
) -> Vec<CoefficientGrid> {
    let scale = quantize::scale(options.quality);
    let rounds = quantize::rounds(options.effort);
    let luma_steps = LUMA.steps(scale);
    let chroma_steps = CHROMA.steps(scale);
    let sensitivities = quantize::sensitivities(luma);
    let luma_grid = transform::coefficients(luma);
    let chroma: Vec<Component> = (2..)
        .zip(chroma)
        .map(|(id, plane)| {
            let grid = transform::coefficients(plane);
            let sensitivities =
                quantize::covered(&sensitivities, &luma_grid, &grid, usize::from(factor));
            Component { id, quant_number: 1, grid, factor: 1, sensitivities }
        })
        .collect();
    let luma = Component { id: 1, quant_number: 0, grid: luma_grid, factor, sensitivities };
    let mut grids = LUMA.quantise(&[luma], &luma_steps, scale, rounds);
    grids.extend(CHROMA.quantise(&chroma, &chroma_steps, scale, rounds));
    grids
}
