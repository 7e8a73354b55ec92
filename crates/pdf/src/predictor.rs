//! Applies the predictors of Flate and LZW streams (ISO 32000-1 §7.4.4.4).

use lopdf::filters::png::{FilterType, decode_row};
use lopdf::{Dictionary, Document};

use crate::number::count;

/// The transformation of rows before compression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predictor {
    /// True for the PNG predictors, false for the TIFF predictor.
    pub(super) is_png: bool,
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
        let is_png = kind >= 10;
        (kind >= 2 && is_valid).then_some(Predictor { is_png, bits, colours, columns })
    }

    /// Adds a TIFF predictor to the parameters of a filter, for lopdf to reverse it.
    pub(super) fn add_tiff(&self, parameters: &mut Dictionary) {
        let Predictor { bits, colours, columns, .. } = *self;
        parameters.set("Predictor", 2);
        for (key, number) in
            [("BitsPerComponent", bits), ("Colors", colours), ("Columns", columns)]
        {
            parameters.set(key, i64::try_from(number).unwrap_or(i64::MAX));
        }
    }

    /// Reverses a PNG predictor. The existing part of an incomplete last row is kept.
    pub(super) fn reverse_png(&self, bytes: &[u8]) -> Vec<u8> {
        let row_bytes = (self.columns * self.colours * self.bits).div_ceil(8);
        let step = (self.colours * self.bits).div_ceil(8);
        let mut above = vec![0; row_bytes];
        let mut result = Vec::with_capacity(bytes.len());
        for packed in bytes.chunks(row_bytes + 1) {
            let Some((&kind, packed)) = packed.split_first() else { break };
            let start = result.len();
            result.extend_from_slice(packed);
            let row = &mut result[start..];
            // A row of an unknown type is treated as not filtered.
            if let Ok(filter) = FilterType::try_from(kind) {
                decode_row(filter, step, &above, row);
            }
            above[..row.len()].copy_from_slice(row);
        }
        result
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
