//! Converts between a PDF's reals, counts and samples. Only this module has lossy conversions.

use lopdf::{Dictionary, Document, Object};

/// Converts a count to a real; counts here stay below 2^24, where the conversion is exact.
#[expect(clippy::cast_precision_loss, reason = "counts here stay below 2^24")]
pub(super) fn real(count: usize) -> f32 {
    count as f32
}

/// Converts an unsigned sample of up to 32 bits to a real, rounded to the nearest.
#[expect(clippy::cast_precision_loss, reason = "a sample of 32 bits is rounded to 24")]
pub(super) fn sample_real(sample: u32) -> f32 {
    sample as f32
}

/// Converts `unit`, 0 to 1, to the nearest byte; NaN gives 0.
#[expect(clippy::cast_possible_truncation, reason = "clamped before")]
#[expect(clippy::cast_sign_loss, reason = "clamped before")]
pub(super) fn byte(unit: f32) -> u8 {
    (unit.clamp(0.0, 1.0) * 255.0 + 0.5) as u8
}

/// Converts `unit`, 0 to 1, to the nearest sample; `max` is the sample for 1. NaN gives 0.
#[expect(clippy::cast_possible_truncation, reason = "clamped before")]
#[expect(clippy::cast_sign_loss, reason = "clamped before")]
pub(super) fn sample(unit: f64, max: u32) -> u32 {
    (unit.clamp(0.0, 1.0) * f64::from(max) + 0.5) as u32
}

/// Returns the integer part of `value`, clamped to 0 to `max`; NaN gives 0.
#[expect(clippy::cast_possible_truncation, reason = "clamped before")]
#[expect(clippy::cast_sign_loss, reason = "clamped before")]
pub(super) fn index(value: f32, max: usize) -> usize {
    (value.clamp(0.0, real(max)) as usize).min(max)
}

/// Returns the integer part of a real, saturating; NaN gives 0.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
pub(super) fn whole(value: f32) -> i64 {
    value as i64
}

/// Reads `count` bits, 1 to 32, from the bit `position` of `data`; bits beyond the end are 0.
pub(super) fn bits(data: &[u8], position: usize, count: usize) -> u32 {
    let rest = data.get(position / 8..).unwrap_or_default();
    let mut word = [0; 8];
    // At most seven bits precede the first one, so five bytes hold all bits.
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let aligned = u64::from_be_bytes(word) << (position % 8);
    u32::try_from(aligned >> (64 - count)).unwrap_or(u32::MAX)
}

/// Converts a PDF integer to a real, rounded to the nearest.
#[expect(clippy::cast_precision_loss, reason = "PDF readers compute in single precision")]
fn integer_real(value: i64) -> f32 {
    value as f32
}

/// Resolves references to the object itself. A chain that is too long or dangling gives null.
pub(super) fn resolve<'a>(document: &'a Document, object: &'a Object) -> &'a Object {
    let mut current = object;
    for _ in 0..REFERENCES_MAX {
        match current {
            Object::Reference(id) => match document.objects.get(id) {
                Some(next) => current = next,
                None => return &Object::Null,
            },
            other => return other,
        }
    }
    &Object::Null
}

/// The maximum length of a chain of references; in real files it is one.
const REFERENCES_MAX: usize = 16;

/// Returns the entry of a dictionary with references resolved; null if it is missing.
pub(super) fn entry<'a>(
    document: &'a Document,
    dictionary: &'a Dictionary,
    key: &[u8],
) -> &'a Object {
    dictionary.get(key).map_or(&Object::Null, |object| resolve(document, object))
}

/// Returns the dictionary of a dictionary or stream object.
pub(super) fn dictionary_of(object: &Object) -> Option<&Dictionary> {
    match object {
        Object::Dictionary(dictionary) => Some(dictionary),
        Object::Stream(stream) => Some(&stream.dict),
        _ => None,
    }
}

/// Returns a number as a finite real.
pub(super) fn number(document: &Document, object: &Object) -> Option<f32> {
    match resolve(document, object) {
        Object::Integer(value) => Some(integer_real(*value)),
        Object::Real(value) if value.is_finite() => Some(*value),
        _ => None,
    }
}

/// Returns the numbers of an array entry; other values count as 0. `None` without an array.
pub(super) fn numbers(
    document: &Document,
    dictionary: &Dictionary,
    key: &[u8],
) -> Option<Vec<f32>> {
    let Object::Array(array) = entry(document, dictionary, key) else { return None };
    Some(array.iter().map(|item| number(document, item).unwrap_or(0.0)).collect())
}

/// Groups numbers into pairs; a last number without a partner is ignored.
pub(super) fn pairs(flat: &[f32]) -> Vec<[f32; 2]> {
    flat.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}

/// Returns an entry as a non-negative integer.
pub(super) fn count(document: &Document, dictionary: &Dictionary, key: &[u8]) -> Option<usize> {
    // Converted through a real, so that `8.0` is accepted as well.
    let value = number(document, entry(document, dictionary, key))?;
    usize::try_from(whole(value)).ok()
}

/// Maps `value` from one interval to another; an empty source interval gives the lower end.
pub(super) fn interpolate(value: f32, from: [f32; 2], to: [f32; 2]) -> f32 {
    let width = from[1] - from[0];
    if width == 0.0 { to[0] } else { to[0] + (value - from[0]) * (to[1] - to[0]) / width }
}
