//! Evaluates functions of all four types (ISO 32000-1 §7.10), for tints and shadings.

use lopdf::{Dictionary, Document, Object};

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::calculator::Calculator;
use crate::number::{bits, count, dictionary_of, entry, index, interpolate, number};
use crate::number::{numbers, real, resolve, sample_real};
use crate::scope::DocumentScope;

/// A function from `m` numbers to `n` numbers.
#[derive(Debug, Clone)]
pub(super) struct PdfFunction {
    pub(super) domain: Vec<[f32; 2]>,
    range: Vec<[f32; 2]>,
    pub(super) kind: FunctionKind,
}

/// The definition of a function, by type.
#[derive(Debug, Clone)]
pub(super) enum FunctionKind {
    /// Type 0: a table with linear interpolation.
    Sampled(SampleTable),
    /// Type 2: `from + x^exponent * (to - from)`.
    Exponential { from: Vec<f32>, to: Vec<f32>, exponent: f32 },
    /// Type 3: one input, whose domain is divided into intervals.
    Stitching { functions: Vec<PdfFunction>, bounds: Vec<f32>, encode: Vec<[f32; 2]> },
    /// Type 4: a program.
    Calculator(Calculator),
}

/// The samples of a type 0 function; the first input varies fastest.
#[derive(Debug, Clone)]
pub(super) struct SampleTable {
    pub(super) size: Vec<usize>,
    bits: usize,
    encode: Vec<[f32; 2]>,
    decode: Vec<[f32; 2]>,
    samples: Vec<u8>,
}

/// The maximum number of inputs of a table: each doubles the number of samples per interpolation.
const INPUTS_MAX: usize = 8;
/// The maximum number of outputs, which exceeds the number of colorants in a DeviceN space.
const OUTPUTS_MAX: usize = 64;

impl PdfFunction {
    /// Parses a function object.
    ///
    /// Returns `None` if the function is malformed. Fails if it is nested too deeply or decompresses to too much
    /// data.
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

    /// Returns the maximum number of steps of one call.
    fn cost(&self) -> usize {
        match &self.kind {
            FunctionKind::Sampled(table) => (1 << table.size.len()) * (1 + self.range.len()),
            FunctionKind::Exponential { from, .. } => from.len() + 1,
            FunctionKind::Stitching { functions, .. } => {
                // Only one of the functions runs in a call.
                functions.iter().map(PdfFunction::cost).max().unwrap_or(0).saturating_add(1)
            }
            FunctionKind::Calculator(program) => program.cost(),
        }
    }

    /// Evaluates the function; missing inputs are 0.
    ///
    /// Fails if the budget for function steps is spent.
    pub(super) fn evaluate(
        &self,
        inputs: &[f32],
        budget: &mut WorkBudget,
    ) -> Result<Vec<f32>, PdfError> {
        budget.take_steps(self.cost())?;
        Ok(self.value(inputs))
    }

    /// Evaluates without spending budget; nesting was checked when the function was parsed.
    fn value(&self, inputs: &[f32]) -> Vec<f32> {
        let clipped: Vec<f32> = (self.domain.iter().enumerate())
            .map(|(at, limits)| clip(inputs.get(at).copied().unwrap_or(0.0), *limits))
            .collect();
        let mut outputs = match &self.kind {
            FunctionKind::Sampled(table) => table.value(&clipped, &self.domain),
            FunctionKind::Exponential { from, to, exponent } => {
                let power = if *exponent == 1.0 { clipped[0] } else { clipped[0].powf(*exponent) };
                // 0 to a negative power is infinite.
                let power = if power.is_finite() { power } else { 0.0 };
                from.iter().zip(to).map(|(from, to)| from + power * (to - from)).collect()
            }
            FunctionKind::Stitching { functions, bounds, encode } => {
                let x = clipped[0];
                // Intervals are closed at the lower end, so a bound belongs to the upper function (§7.10.4).
                let at = bounds.iter().take_while(|bound| x >= **bound).count();
                let low = if at == 0 { self.domain[0][0] } else { bounds[at - 1] };
                let high = bounds.get(at).copied().unwrap_or(self.domain[0][1]);
                functions[at].value(&[interpolate(x, [low, high], encode[at])])
            }
            FunctionKind::Calculator(program) => program.run(&clipped, self.range.len()),
        };
        for (output, limits) in outputs.iter_mut().zip(&self.range) {
            *output = clip(*output, *limits);
        }
        outputs
    }
}

impl SampleTable {
    /// Interpolates the value at inputs that must be within `domain`.
    fn value(&self, inputs: &[f32], domain: &[[f32; 2]]) -> Vec<f32> {
        let mut cells = Vec::with_capacity(self.size.len());
        for (at, &size) in self.size.iter().enumerate() {
            let coordinate = interpolate(inputs[at], domain[at], self.encode[at]);
            let coordinate = clip(coordinate, [0.0, real(size - 1)]);
            let low = index(coordinate, size - 1);
            cells.push((low, (low + 1).min(size - 1), coordinate - real(low)));
        }
        let outputs = self.decode.len();
        let mut sums = vec![0.0; outputs];
        for corner in 0..1usize << cells.len() {
            let mut weight = 1.0;
            let mut position = 0;
            let mut stride = 1;
            for (at, &(low, high, part)) in cells.iter().enumerate() {
                let upper = corner >> at & 1 == 1;
                weight *= if upper { part } else { 1.0 - part };
                position += stride * if upper { high } else { low };
                stride *= self.size[at];
            }
            // Inputs on the grid leave most corners without weight, so reading their samples is skipped.
            if weight != 0.0 {
                for (output, sum) in sums.iter_mut().enumerate() {
                    *sum += weight * self.sample(position * outputs + output);
                }
            }
        }
        let top = if self.bits == 32 { u32::MAX } else { (1 << self.bits) - 1 };
        sums.iter()
            .zip(&self.decode)
            .map(|(sum, decode)| interpolate(*sum, [0.0, sample_real(top)], *decode))
            .collect()
    }

    fn sample(&self, number: usize) -> f32 {
        sample_real(bits(&self.samples, number * self.bits, self.bits))
    }
}

fn table(
    scope: &DocumentScope<'_>,
    dictionary: &Dictionary,
    [domain, range]: [&[[f32; 2]]; 2],
    samples: Vec<u8>,
) -> Option<FunctionKind> {
    let document = scope.document;
    let bits = count(document, dictionary, b"BitsPerSample")?;
    let sizes = match entry(document, dictionary, b"Size") {
        Object::Array(_) => numbers(document, dictionary, b"Size")?,
        _ => vec![real(count(document, dictionary, b"Size")?)],
    };
    let size: Vec<usize> = sizes.iter().map(|size| index(*size, 1 << 20)).collect();
    let total = size.iter().try_fold(range.len(), |total, size| total.checked_mul(*size))?;
    let is_valid = matches!(bits, 1 | 2 | 4 | 8 | 12 | 16 | 24 | 32)
        && size.len() == domain.len()
        && (1..=INPUTS_MAX).contains(&size.len())
        && !size.contains(&0)
        && !range.is_empty()
        // A table that lacks a few bytes is accepted; missing samples are 0.
        && total.checked_mul(bits)?.div_ceil(8) <= samples.len().saturating_add(64);
    if !is_valid {
        return None;
    }
    let whole_table = size.iter().map(|size| [0.0, real(size - 1)]).collect();
    let encode = intervals_or(document, dictionary, b"Encode", whole_table);
    let mut decode = intervals_or(document, dictionary, b"Decode", range.to_vec());
    decode.truncate(range.len());
    Some(FunctionKind::Sampled(SampleTable { size, bits, encode, decode, samples }))
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

/// The number of steps that are spent to parse one part of a stitched function.
const FUNCTION_STEPS: usize = 64;

fn clip(value: f32, [low, high]: [f32; 2]) -> f32 {
    // `f32::clamp` panics if the interval is reversed.
    if value.is_nan() { low } else { value.max(low).min(high) }
}

/// Groups numbers into pairs; a last number without a partner is ignored.
pub(super) fn pairs(flat: &[f32]) -> Vec<[f32; 2]> {
    flat.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
}
