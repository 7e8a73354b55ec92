//! Parses functions of all four types (ISO 32000-1 §7.10).

use lopdf::{Dictionary, Document, Object};

use crate::PdfError;
use crate::calculator::Calculator;
use crate::function::{FunctionKind, PdfFunction, SampleTable};
use crate::number::{count, dictionary_of, entry, index, number, numbers, pairs, real, resolve};
use crate::scope::DocumentScope;

/// The maximum number of inputs of a table: each doubles the number of samples per interpolation.
const INPUTS_MAX: usize = 8;
/// The maximum number of grid points along an input of a table, which single-precision numbers count exactly.
const GRID_POINTS_MAX: usize = 1 << 20;
/// The maximum number of outputs, which exceeds the number of colorants in a DeviceN space.
const OUTPUTS_MAX: usize = 64;
/// The number of steps that are spent to parse one part of a stitched function.
const FUNCTION_STEPS: usize = 64;

impl PdfFunction {
    /// Parses a function object.
    ///
    /// Returns `None` if the function is malformed or has more inputs, outputs or grid points than the limits above.
    /// Fails if it is nested too deeply or decompresses to too much data.
    pub(super) fn parse(
        scope: &mut DocumentScope<'_>,
        object: &Object,
        depth: usize,
    ) -> Result<Option<PdfFunction>, PdfError> {
        scope.budget.check_depth(depth, "functions")?;
        let document = scope.document;
        let object = resolve(document, object);
        let Some(dictionary) = dictionary_of(object) else { return Ok(None) };
        let domain = intervals(document, dictionary, b"Domain");
        let Some(domain) = domain.filter(|domain| !domain.is_empty()) else {
            return Ok(None);
        };
        let range = intervals(document, dictionary, b"Range").unwrap_or_default();
        // These numbers multiply the steps of every call.
        if range.len() > OUTPUTS_MAX || domain.len() > OUTPUTS_MAX {
            return Ok(None);
        }
        let kind = match (count(document, dictionary, b"FunctionType"), object) {
            (Some(0), Object::Stream(stream)) => {
                let samples = scope.data(stream)?;
                table(scope, &stream.dict, [&domain, &range], samples)
            }
            (Some(2), _) => exponential(scope, dictionary),
            (Some(3), _) => stitching(scope, dictionary, depth)?,
            (Some(4), Object::Stream(stream)) => {
                let text = scope.data(stream)?;
                Calculator::parse(&text)
                    // `Range` is required here (ISO 32000-1 §7.10.2), because it gives the number of results.
                    .filter(|_| !range.is_empty())
                    .map(FunctionKind::Calculator)
            }
            _ => None,
        };
        Ok(kind.map(|kind| PdfFunction { domain, range, kind }))
    }
}

fn table(
    scope: &DocumentScope<'_>,
    dictionary: &Dictionary,
    [domain, range]: [&[[f32; 2]]; 2],
    samples: Vec<u8>,
) -> Option<FunctionKind> {
    let document = scope.document;
    let bits_per_sample = count(document, dictionary, b"BitsPerSample")?;
    let sizes = match entry(document, dictionary, b"Size") {
        Object::Array(_) => numbers(document, dictionary, b"Size")?,
        _ => vec![real(count(document, dictionary, b"Size")?)],
    };
    // One more than the limit stands for all larger sizes, which are refused below.
    let size: Vec<usize> = sizes.iter().map(|size| index(*size, GRID_POINTS_MAX + 1)).collect();
    let total = size.iter().try_fold(range.len(), |total, size| total.checked_mul(*size))?;
    let is_valid = matches!(bits_per_sample, 1 | 2 | 4 | 8 | 12 | 16 | 24 | 32)
        && size.len() == domain.len()
        && (1..=INPUTS_MAX).contains(&size.len())
        && size.iter().all(|size| (1..=GRID_POINTS_MAX).contains(size))
        && !range.is_empty()
        // A table that lacks a few bytes is accepted; missing samples are 0.
        && total.checked_mul(bits_per_sample)?.div_ceil(8) <= samples.len().saturating_add(64);
    if !is_valid {
        return None;
    }
    let whole_table = size.iter().map(|size| [0.0, real(size - 1)]).collect();
    let encode = intervals_or(document, dictionary, b"Encode", whole_table);
    let mut decode = intervals_or(document, dictionary, b"Decode", range.to_vec());
    decode.truncate(range.len());
    Some(FunctionKind::Sampled(SampleTable { size, bits_per_sample, encode, decode, samples }))
}

/// Returns the intervals of an array entry, or the default if the entry has too few.
fn intervals_or(
    document: &Document,
    dictionary: &Dictionary,
    key: &[u8],
    default: Vec<[f32; 2]>,
) -> Vec<[f32; 2]> {
    let found = intervals(document, dictionary, key);
    // A list that is too short would leave inputs without an interval.
    found.filter(|found| found.len() >= default.len()).unwrap_or(default)
}

/// Returns the intervals of an array entry; `None` without an array.
fn intervals(document: &Document, dictionary: &Dictionary, key: &[u8]) -> Option<Vec<[f32; 2]>> {
    numbers(document, dictionary, key).map(|flat| pairs(&flat))
}

fn exponential(scope: &DocumentScope<'_>, dictionary: &Dictionary) -> Option<FunctionKind> {
    let document = scope.document;
    let from = numbers(document, dictionary, b"C0").unwrap_or(vec![0.0]);
    let to = numbers(document, dictionary, b"C1").unwrap_or(vec![1.0]);
    let exponent = number(document, entry(document, dictionary, b"N"))?;
    let is_valid = from.len() == to.len() && (1..=OUTPUTS_MAX).contains(&from.len());
    is_valid.then_some(FunctionKind::Exponential { from, to, exponent })
}

fn stitching(
    scope: &mut DocumentScope<'_>,
    dictionary: &Dictionary,
    depth: usize,
) -> Result<Option<FunctionKind>, PdfError> {
    let document = scope.document;
    let Object::Array(array) = entry(document, dictionary, b"Functions") else { return Ok(None) };
    let bounds = numbers(document, dictionary, b"Bounds").unwrap_or_default();
    let encode = numbers(document, dictionary, b"Encode").map(|flat| pairs(&flat));
    let encode = encode.unwrap_or_default();
    let is_valid =
        !array.is_empty() && bounds.len() + 1 == array.len() && encode.len() >= array.len();
    if !is_valid {
        return Ok(None);
    }
    let mut functions = Vec::new();
    for object in array {
        // Functions that share their parts could otherwise double the work at every level.
        scope.budget.take_steps(FUNCTION_STEPS)?;
        match PdfFunction::parse(scope, object, depth + 1)? {
            Some(function) => functions.push(function),
            None => return Ok(None),
        }
    }
    Ok(Some(FunctionKind::Stitching { functions, bounds, encode }))
}

#[cfg(test)]
mod tests {
    use lopdf::{Stream, dictionary};

    use super::*;
    use crate::test_documents::{LIMITS, list};

    #[test]
    fn a_table_with_too_many_grid_points_is_refused_and_not_cut() {
        let document = Document::with_version("1.5");
        let mut scope = DocumentScope::new(&document, &LIMITS);
        for (points, is_parsed) in [(1_i64 << 20, true), ((1_i64 << 20) + 1, false)] {
            let head = dictionary! {
                "FunctionType" => 0, "Domain" => list(&[0.0, 1.0]), "Range" => list(&[0.0, 1.0]),
                "Size" => points, "BitsPerSample" => 1,
            };
            let table = Object::from(Stream::new(head, vec![0; 1 << 18]));
            let function = PdfFunction::parse(&mut scope, &table, 0).unwrap();
            assert_eq!(function.is_some(), is_parsed, "{points} points");
        }
    }
}
