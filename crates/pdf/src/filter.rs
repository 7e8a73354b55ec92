//! Decodes the general-purpose stream filters: Flate, LZW, run-length and the two ASCII forms, with predictors. Filters
//! for images, such as DCT and CCITT fax, are left to the caller.
//!
//! Damaged data gives the data that could be decoded before the damage, as in other readers; the ASCII filters skip
//! invalid characters instead. ISO 32000-1 §7.4 defines the formats.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lopdf::{Dictionary, Document, Object};

use crate::budget::WorkBudget;
use crate::number::{count, dictionary_of, entry, resolve};
use crate::predictor::{Predictor, unpredict};
use crate::{PdfError, lzw};

/// A stream's data after its general-purpose filters.
#[derive(Debug)]
pub(super) struct DecodedStream {
    pub(super) bytes: Vec<u8>,
    /// The name and the parameters of the first filter that is not decoded here: an image filter, or an unknown one.
    pub(super) image_filter: Option<(Vec<u8>, Dictionary)>,
    /// True if a predictor was used, which suggests that the data compresses better with a predictor.
    pub(super) predicted: bool,
}

/// The maximum number of filters that are decoded; real files have at most two. Further filters are ignored: the data
/// is returned still encoded by them, as if it were decoded, and gives a wrong picture or none, like damaged data.
const FILTERS_MAX: usize = 8;

/// Decodes the filters of a stream, up to an image filter.
///
/// Fails with [`PdfError::TooMuchData`] if the outputs of the filters together exceed the remaining `budget`.
pub(super) fn decode(
    document: &Document,
    dictionary: &Dictionary,
    content: &[u8],
    budget: &mut WorkBudget,
) -> Result<DecodedStream, PdfError> {
    let filters = names(document, dictionary);
    let parameters = parameters(document, dictionary, filters.len());
    let mut decoded = DecodedStream { bytes: Vec::new(), image_filter: None, predicted: false };
    let mut current: Option<Vec<u8>> = None;
    for (name, parameters) in filters.iter().zip(parameters).take(FILTERS_MAX) {
        // An image filter, which comes last in valid files and which the caller decodes, or an unknown one.
        if !is_general_purpose(name) {
            decoded.image_filter = Some((name.clone(), parameters));
            break;
        }
        let input = current.as_deref().unwrap_or(content);
        let unpacked = unpack(name, input, early_change(document, &parameters), budget)?;
        let predictor = Predictor::read(document, &parameters);
        decoded.predicted |= predictor.is_some();
        current = Some(match predictor {
            Some(predictor) => unpredict(&predictor, unpacked),
            None => unpacked,
        });
    }
    decoded.bytes = match current {
        Some(bytes) => bytes,
        None => {
            // Data that no filter here decodes counts too, because it is copied.
            budget.take_bytes(content.len())?;
            content.to_vec()
        }
    };
    Ok(decoded)
}

/// Returns the names of the filters in decoding order, as written: inline images may abbreviate them, such as `Fl`. The
/// keys of inline images, such as `F` for `Filter`, were expanded when `inline` read them.
pub(super) fn names(document: &Document, dictionary: &Dictionary) -> Vec<Vec<u8>> {
    match entry(document, dictionary, b"Filter") {
        Object::Array(filters) => {
            filters.iter().filter_map(|filter| name(document, filter)).collect()
        }
        other => name(document, other).into_iter().collect(),
    }
}

fn name(document: &Document, object: &Object) -> Option<Vec<u8>> {
    match resolve(document, object) {
        Object::Name(name) => Some(name.clone()),
        _ => None,
    }
}

fn parameters(document: &Document, dictionary: &Dictionary, filters: usize) -> Vec<Dictionary> {
    let mut list = match entry(document, dictionary, b"DecodeParms") {
        Object::Array(list) => {
            list.iter().map(|object| parameters_of_filter(document, object)).collect()
        }
        other => vec![parameters_of_filter(document, other)],
    };
    // A missing entry means the default parameters of its filter.
    list.resize_with(filters, Dictionary::new);
    list
}

fn parameters_of_filter(document: &Document, object: &Object) -> Dictionary {
    dictionary_of(resolve(document, object)).cloned().unwrap_or_default()
}

/// Returns whether the filter with this name, or this abbreviation in inline images, is decoded here. A new filter also
/// needs an arm in [`unpack`], which otherwise returns its data unchanged.
fn is_general_purpose(name: &[u8]) -> bool {
    matches!(
        name,
        b"FlateDecode"
            | b"Fl"
            | b"LZWDecode"
            | b"LZW"
            | b"RunLengthDecode"
            | b"RL"
            | b"ASCIIHexDecode"
            | b"AHx"
            | b"ASCII85Decode"
            | b"A85"
            | b"Crypt"
    )
}

/// Returns whether the width of LZW codes grows one code earlier than necessary, which is the default (§7.4.4.3,
/// Table 8).
fn early_change(document: &Document, parameters: &Dictionary) -> bool {
    count(document, parameters, b"EarlyChange") != Some(0)
}

/// Decodes one filter, and spends the length of the result from the budget.
fn unpack(
    name: &[u8],
    input: &[u8],
    early_change: bool,
    budget: &mut WorkBudget,
) -> Result<Vec<u8>, PdfError> {
    // One byte more than the budget has left: output that is cut there exceeds it, so `take_bytes` below fails.
    let max = budget.remaining_bytes().saturating_add(1);
    let bytes = match name {
        b"FlateDecode" | b"Fl" => inflate(input, max),
        b"LZWDecode" | b"LZW" => lzw::decode(input, early_change, max),
        b"RunLengthDecode" | b"RL" => run_lengths(input, max),
        // These two need no limit: a byte of input gives at most four bytes (`z` in ASCII85).
        b"ASCIIHexDecode" | b"AHx" => hexadecimal(input),
        b"ASCII85Decode" | b"A85" => ascii85(input),
        // `Crypt` (§7.4.10): encrypted files were refused at loading, and in others it changes nothing.
        _ => input.to_vec(),
    };
    budget.take_bytes(bytes.len())?;
    Ok(bytes)
}

fn inflate(input: &[u8], max: usize) -> Vec<u8> {
    // A guess, of at most 16 MiB, so that a large input cannot reserve memory that its output does not need.
    let mut bytes = Vec::with_capacity(input.len().saturating_mul(3).min(max).min(1 << 24));
    let limit = u64::try_from(max).unwrap_or(u64::MAX);
    // A damaged end is common, so the data before it is kept.
    let _ = ZlibDecoder::new(input).take(limit).read_to_end(&mut bytes);
    if bytes.is_empty() && input.len() > 2 {
        // The two bytes of the zlib header are broken, but the data after them may be intact.
        let _ = flate2::read::DeflateDecoder::new(&input[2..]).take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// Compresses data for a new stream with `FlateDecode`.
pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(6));
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

fn run_lengths(input: &[u8], max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut position = 0;
    while let Some(&length) = input.get(position) {
        position += 1;
        let length = usize::from(length);
        // Up to 127, `length + 1` bytes follow as they are; from 129, the next byte is repeated `257 - length` times;
        // 128 ends the data (§7.4.5).
        if length == 128 || bytes.len() >= max {
            break;
        }
        if length < 128 {
            let end = (position + length + 1).min(input.len());
            bytes.extend_from_slice(&input[position..end]);
            position = end;
        } else if let Some(&value) = input.get(position) {
            bytes.resize(bytes.len() + 257 - length, value);
            position += 1;
        }
    }
    bytes.truncate(max);
    bytes
}

pub(super) fn hexadecimal(input: &[u8]) -> Vec<u8> {
    let digits = input.iter().take_while(|&&byte| byte != b'>');
    let mut nibbles = digits.filter_map(|&byte| char::from(byte).to_digit(16));
    let mut bytes = Vec::with_capacity(input.len() / 2);
    while let Some(high) = nibbles.next() {
        // A missing last digit counts as 0 (§7.4.2).
        bytes.push((high << 4 | nibbles.next().unwrap_or(0)).to_le_bytes()[0]);
    }
    bytes
}

fn ascii85(input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(input.len() / 5 * 4);
    let mut group = 0u32;
    let mut digits = 0;
    // PostScript writes this prefix. PDF does not, but some files have it.
    let input = input.strip_prefix(b"<~").unwrap_or(input);
    for &byte in input.iter().take_while(|&&byte| byte != b'~') {
        match byte {
            // `z` denotes four zero bytes, and occurs only between groups (§7.4.3).
            b'z' if digits == 0 => bytes.extend_from_slice(&[0; 4]),
            b'!'..=b'u' => {
                group = group.wrapping_mul(85).wrapping_add(u32::from(byte - b'!'));
                digits += 1;
                if digits == 5 {
                    bytes.extend_from_slice(&group.to_be_bytes());
                    group = 0;
                    digits = 0;
                }
            }
            _ => {}
        }
    }
    if digits > 1 {
        for _ in digits..5 {
            // A partial group is padded with the largest digit, because the encoder truncated it (§7.4.3).
            group = group.wrapping_mul(85).wrapping_add(84);
        }
        bytes.extend_from_slice(&group.to_be_bytes()[..digits - 1]);
    }
    bytes
}
