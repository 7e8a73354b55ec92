//! Converts samples of several components to greys.

use std::collections::HashMap;

use crate::number::{byte, interpolate, real};
use crate::scope::DocumentScope;
use crate::space::PdfColourSpace;
use crate::{PdfError, luminance};

/// Decompressed pixels: `[height][width][components]` of `bits` bits, most significant first, each row padded to a
/// byte. Missing bytes at the end count as 0.
#[derive(Debug)]
pub(super) struct ImageSamples {
    pub(super) bytes: Vec<u8>,
    /// Bits per sample: 1, 2, 4, 8 or 16.
    pub(super) bits: usize,
    pub(super) components: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl ImageSamples {
    fn row_bytes(&self) -> usize {
        (self.width * self.components * self.bits).div_ceil(8)
    }

    /// Copies the samples of row `y` into `row`, one number each.
    fn read_row(&self, y: usize, row: &mut [u16]) {
        let start = (y * self.row_bytes()).min(self.bytes.len());
        let end = (start + self.row_bytes()).min(self.bytes.len());
        let bytes = &self.bytes[start..end];
        row.fill(0);
        match self.bits {
            8 => row.iter_mut().zip(bytes).for_each(|(to, from)| *to = u16::from(*from)),
            16 => {
                for (to, from) in row.iter_mut().zip(bytes.chunks_exact(2)) {
                    *to = u16::from_be_bytes([from[0], from[1]]);
                }
            }
            bits => {
                let per_byte = 8 / bits;
                let mask = (1u8 << bits) - 1;
                for (at, to) in row.iter_mut().enumerate() {
                    let Some(byte) = bytes.get(at / per_byte) else { break };
                    *to = u16::from(byte >> (8 - bits - at % per_byte * bits) & mask);
                }
            }
        }
    }

    /// Returns tables from samples to bytes, where 0 and 255 are the ends of the space's intervals; `None` if
    /// samples are such bytes already. Only the upper byte of 16-bit samples is used.
    fn tables(&self, space: &PdfColourSpace, decode: Option<&[f32]>) -> Option<Vec<Vec<u8>>> {
        let decode = decode.filter(|decode| decode.len() >= 2 * self.components);
        if self.bits == 8 && decode.is_none() {
            return None;
        }
        let max = (1usize << self.bits.min(8)) - 1;
        let tables = (0..self.components).map(|component| {
            let range = space.sample_range(component, self.bits);
            let interval =
                decode.map_or(range, |decode| [decode[2 * component], decode[2 * component + 1]]);
            let table = (0..=max).map(|sample| {
                let value = interpolate(real(sample), [0.0, real(max)], interval);
                byte(interpolate(value, range, [0.0, 1.0]))
            });
            table.collect::<Vec<u8>>()
        });
        Some(tables.collect())
    }
}

/// Computes the greys of samples: `[height][width]`.
///
/// Fails if a limit is reached.
pub(super) fn greys(
    scope: &mut DocumentScope<'_>,
    samples: &ImageSamples,
    space: &PdfColourSpace,
    decode: Option<&[f32]>,
) -> Result<Vec<u8>, PdfError> {
    let ImageSamples { width, height, components, .. } = *samples;
    scope.budget.take_bytes(width * height)?;
    let tables = samples.tables(space, decode);
    let shift = samples.bits.saturating_sub(8);
    let mut greys = vec![0; width * height];
    let mut raw = vec![0u16; width * components];
    let mut units = vec![0u8; width * components];
    let mut cache = HashMap::new();
    for (y, row) in greys.chunks_exact_mut(width).enumerate() {
        let start = y * units.len();
        match (&tables, samples.bytes.get(start..start + units.len())) {
            // Samples of 8 bits are used in place.
            (None, Some(bytes)) => grey_row(scope, space, bytes, row, &mut cache)?,
            (None, None) => {
                // The data ends within this row, so the missing samples count as 0.
                samples.read_row(y, &mut raw);
                units.iter_mut().zip(&raw).for_each(|(unit, raw)| *unit = raw.to_le_bytes()[0]);
                grey_row(scope, space, &units, row, &mut cache)?;
            }
            (Some(tables), _) => {
                samples.read_row(y, &mut raw);
                for (at, (unit, raw)) in units.iter_mut().zip(&raw).enumerate() {
                    *unit = tables[at % components][usize::from(raw >> shift)];
                }
                grey_row(scope, space, &units, row, &mut cache)?;
            }
        }
    }
    Ok(greys)
}

/// The maximum number of cached colours, for spaces in which each colour costs a function call.
const CACHED_COLOURS_MAX: usize = 1 << 16;

/// Computes the greys of one row; `cache` has the greys of earlier colours.
fn grey_row(
    scope: &mut DocumentScope<'_>,
    space: &PdfColourSpace,
    units: &[u8],
    row: &mut [u8],
    cache: &mut HashMap<Vec<u8>, u8>,
) -> Result<(), PdfError> {
    match space {
        // A row in these three spaces is converted faster than its colours could be looked up.
        PdfColourSpace::Rgb => {
            for (grey, pixel) in row.iter_mut().zip(units.chunks_exact(3)) {
                *grey = luminance::rgb_byte(pixel[0], pixel[1], pixel[2]);
            }
        }
        PdfColourSpace::Cmyk => {
            for (grey, inks) in row.iter_mut().zip(units.chunks_exact(4)) {
                let cyan = f32::from(inks[0]) / 255.0;
                let magenta = f32::from(inks[1]) / 255.0;
                let yellow = f32::from(inks[2]) / 255.0;
                let black = f32::from(inks[3]) / 255.0;
                *grey = byte(luminance::cmyk(cyan, magenta, yellow, black));
            }
        }
        PdfColourSpace::Icc { profile, .. } => profile.greys(units, row),
        space => {
            let components = space.components();
            for (grey, pixel) in row.iter_mut().zip(units.chunks_exact(components)) {
                if let Some(found) = cache.get(pixel) {
                    *grey = *found;
                    continue;
                }
                let colour: Vec<f32> = (pixel.iter().enumerate())
                    .map(|(at, unit)| {
                        let range = space.sample_range(at, 8);
                        interpolate(f32::from(*unit), [0.0, 255.0], range)
                    })
                    .collect();
                *grey = byte(space.grey(&mut scope.budget, &colour)?);
                // A photograph can have a colour of its own for each pixel.
                if cache.len() == CACHED_COLOURS_MAX {
                    cache.clear();
                }
                cache.insert(pixel.to_vec(), *grey);
            }
        }
    }
    Ok(())
}

/// Builds the stencil of a colour key: a pixel is masked if all its samples are within their intervals.
///
/// `key` has a lowest and a highest sample for each component. The result has one bit per pixel, rows padded
/// to bytes, 1 where masked.
pub(super) fn key_mask(samples: &ImageSamples, key: &[f32]) -> Vec<u8> {
    let ImageSamples { width, height, components, .. } = *samples;
    let row_bytes = width.div_ceil(8);
    let mut mask = vec![0; row_bytes * height];
    if key.len() < 2 * components {
        return mask;
    }
    let mut raw = vec![0u16; width * components];
    for (y, row) in mask.chunks_exact_mut(row_bytes).enumerate() {
        samples.read_row(y, &mut raw);
        for (x, pixel) in raw.chunks_exact(components).enumerate() {
            let is_masked = pixel
                .iter()
                .zip(key.chunks_exact(2))
                .all(|(sample, ends)| (ends[0]..=ends[1]).contains(&f32::from(*sample)));
            row[x / 8] |= u8::from(is_masked) << (7 - x % 8);
        }
    }
    mask
}
