//! Applies the predictors of Flate and LZW streams (ISO 32000-1 §7.4.4.4).

use lopdf::{Dictionary, Document};

use crate::number::count;

/// The transformation of rows before compression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predictor {
    png: bool,
    bits: usize,
    colours: usize,
    columns: usize,
}

impl Predictor {
    /// Parses the predictor in a stream's parameters; `None` without a predictor or if its numbers are invalid.
    pub(super) fn read(document: &Document, parameters: &Dictionary) -> Option<Predictor> {
        let kind = count(document, parameters, b"Predictor").unwrap_or(1);
        let bits = count(document, parameters, b"BitsPerComponent").unwrap_or(8);
        let colours = count(document, parameters, b"Colors").unwrap_or(1);
        let columns = count(document, parameters, b"Columns").unwrap_or(1);
        let is_valid = matches!(bits, 1 | 2 | 4 | 8 | 16)
            && (1..=64).contains(&colours)
            && (1..=1 << 20).contains(&columns);
        // All values from 10 to 15 mean the same, because each row names its own filter.
        (kind >= 2 && is_valid).then_some(Predictor { png: kind >= 10, bits, colours, columns })
    }

    fn row_bytes(&self) -> usize {
        (self.columns * self.colours * self.bits).div_ceil(8)
    }
}

/// Reverses the predictor. The existing part of an incomplete last row is kept.
pub(super) fn unpredict(predictor: &Predictor, bytes: Vec<u8>) -> Vec<u8> {
    if predictor.png { png(predictor, &bytes) } else { tiff(predictor, bytes) }
}

fn png(predictor: &Predictor, bytes: &[u8]) -> Vec<u8> {
    let row_bytes = predictor.row_bytes();
    let step = (predictor.colours * predictor.bits).div_ceil(8);
    let mut above = vec![0; row_bytes];
    let mut row = vec![0; row_bytes];
    let mut result = Vec::with_capacity(bytes.len());
    for packed in bytes.chunks(row_bytes + 1) {
        let Some((&kind, packed)) = packed.split_first() else { break };
        for (at, &byte) in packed.iter().enumerate() {
            let left = if at >= step { row[at - step] } else { 0 };
            let up = above[at];
            let upper_left = if at >= step { above[at - step] } else { 0 };
            row[at] = byte.wrapping_add(match kind {
                1 => left,
                2 => up,
                3 => left.midpoint(up),
                4 => paeth(left, up, upper_left),
                // Type 0 means that the row was not filtered; unknown types are treated in the same way.
                _ => 0,
            });
        }
        result.extend_from_slice(&row[..packed.len()]);
        std::mem::swap(&mut above, &mut row);
    }
    result
}

fn paeth(left: u8, up: u8, upper_left: u8) -> u8 {
    let a = i16::from(left);
    let b = i16::from(up);
    let c = i16::from(upper_left);
    let estimate = a + b - c;
    let to_a = (estimate - a).abs();
    let to_b = (estimate - b).abs();
    let to_c = (estimate - c).abs();
    // The order of the comparisons is part of the format (PNG specification §9.4).
    if to_a <= to_b && to_a <= to_c {
        left
    } else if to_b <= to_c {
        up
    } else {
        upper_left
    }
}

fn tiff(predictor: &Predictor, mut bytes: Vec<u8>) -> Vec<u8> {
    let colours = predictor.colours;
    for row in bytes.chunks_mut(predictor.row_bytes()) {
        match predictor.bits {
            8 => {
                for at in colours..row.len() {
                    row[at] = row[at].wrapping_add(row[at - colours]);
                }
            }
            16 => {
                // An odd length would leave half a sample at the end of a damaged row.
                for at in (2 * colours..row.len().saturating_sub(1)).step_by(2) {
                    let left =
                        u16::from_be_bytes([row[at - 2 * colours], row[at - 2 * colours + 1]]);
                    let sum = left.wrapping_add(u16::from_be_bytes([row[at], row[at + 1]]));
                    row[at..at + 2].copy_from_slice(&sum.to_be_bytes());
                }
            }
            bits => tiff_bits(row, bits, colours),
        }
    }
    bytes
}

/// Reverses the TIFF predictor for rows whose samples share bytes.
fn tiff_bits(row: &mut [u8], bits: usize, colours: usize) {
    let mask = (1u8 << bits) - 1;
    let per_byte = 8 / bits;
    for at in colours..row.len() * per_byte {
        let left_at = at - colours;
        let left_shift = 8 - bits - left_at % per_byte * bits;
        let shift = 8 - bits - at % per_byte * bits;
        let left = row[left_at / per_byte] >> left_shift & mask;
        let current = row[at / per_byte] >> shift & mask;
        let sum = left.wrapping_add(current) & mask;
        row[at / per_byte] = row[at / per_byte] & !(mask << shift) | sum << shift;
    }
}

/// Transforms rows of 8-bit grey samples so that they compress better: each row uses `Up` or `Sub`, depending on
/// which gives the smaller numbers. The result is decoded with predictor 15.
pub(super) fn predict(samples: &[u8], columns: usize) -> Vec<u8> {
    let mut result = Vec::with_capacity(samples.len() + samples.len() / columns.max(1) + 1);
    let mut above = vec![0; columns];
    for row in samples.chunks(columns.max(1)) {
        let left = std::iter::once(&0).chain(row);
        let sub: Vec<u8> =
            row.iter().zip(left).map(|(sample, left)| sample.wrapping_sub(*left)).collect();
        let up: Vec<u8> =
            row.iter().zip(&above).map(|(sample, up)| sample.wrapping_sub(*up)).collect();
        let (kind, packed) = if cost(&sub) <= cost(&up) { (1, sub) } else { (2, up) };
        result.push(kind);
        result.extend(packed);
        above[..row.len()].copy_from_slice(row);
    }
    result
}

/// Returns the sum of absolute differences, by which PNG encoders choose filters.
fn cost(differences: &[u8]) -> u64 {
    differences.iter().map(|value| u64::from((*value).min(value.wrapping_neg()))).sum()
}
