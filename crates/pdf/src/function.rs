//! Evaluates functions of all four types (ISO 32000-1 §7.10), for tints and shadings.
//!
//! Evaluation relies on the numbers of entries that the fields below state; [`PdfFunction::parse`] in
//! `function_parser.rs` checks them. An interval is its lower and its upper end; in a damaged file it may be reversed.

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::calculator::Calculator;
use crate::number::{bits, index, interpolate, real, sample_real};

/// A function from `m` numbers to `n` numbers.
#[derive(Debug, Clone)]
pub(super) struct PdfFunction {
    /// The interval of each input, for 1 to 64 inputs.
    pub(super) domain: Vec<[f32; 2]>,
    /// The interval of each output, at most 64. Types 0 and 4 have as many outputs as intervals, at least one. Types 2
    /// and 3 may have fewer intervals or none, and outputs without an interval are not clipped.
    pub(super) range: Vec<[f32; 2]>,
    pub(super) kind: FunctionKind,
}

/// The definition of a function, by type.
#[derive(Debug, Clone)]
pub(super) enum FunctionKind {
    /// Type 0: a table with linear interpolation.
    Sampled(SampleTable),
    /// Type 2: `from + x^exponent * (to - from)`, where `x` is the first input. `from` and `to` have a number for each
    /// of 1 to 64 outputs.
    Exponential { from: Vec<f32>, to: Vec<f32>, exponent: f32 },
    /// Type 3: the first input, whose domain is divided at `bounds`, selects one of `functions` and is mapped to its
    /// interval in `encode`. There is at least one function, one bound less than functions, and an interval in
    /// `encode` for each function.
    Stitching { functions: Vec<PdfFunction>, bounds: Vec<f32>, encode: Vec<[f32; 2]> },
    /// Type 4: a program.
    Calculator(Calculator),
}

/// The table of a type 0 function: a grid with a dimension for each input.
#[derive(Debug, Clone)]
pub(super) struct SampleTable {
    /// The number of grid points along each input, 1 to 2^20; as many as the domain has intervals, at most 8. Their
    /// product is the number of points.
    pub(super) size: Vec<usize>,
    /// 1, 2, 4, 8, 12, 16, 24 or 32.
    pub(super) bits_per_sample: usize,
    /// The interval of grid positions that the domain of each input is mapped to; at least as many as inputs.
    pub(super) encode: Vec<[f32; 2]>,
    /// The interval of each output; sample values 0 to 2^`bits_per_sample` − 1 are mapped to this interval. As many as
    /// in the range.
    pub(super) decode: Vec<[f32; 2]>,
    /// Samples without padding between them: the outputs of each grid point, with the points in order, the first input
    /// varying fastest. Missing samples at the end are 0.
    ///
    /// The sizes announce a length, and the parser refuses a table that announces over 64 bytes more than `samples` has.
    /// So positions that are computed from the sizes do not overflow.
    pub(super) samples: Vec<u8>,
}

impl PdfFunction {
    /// Returns the maximum number of steps of one call, about one for each number that it computes.
    fn cost(&self) -> usize {
        match &self.kind {
            FunctionKind::Sampled(table) => (1 << table.size.len()) * (1 + self.range.len()),
            FunctionKind::Exponential { from, .. } => from.len() + 1,
            FunctionKind::Stitching { functions, .. } => {
                // Only one of the functions runs in a call.
                functions.iter().map(PdfFunction::cost).max().unwrap_or(0) + 1
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
                let x = clipped[0];
                // Most functions are linear, for which `powf` would be slow.
                let power = if *exponent == 1.0 { x } else { x.powf(*exponent) };
                // 0 to a negative power, an overflow or a root of a negative number: all outputs become `from`, since
                // infinity or NaN would not give a colour.
                let power = if power.is_finite() { power } else { 0.0 };
                from.iter().zip(to).map(|(from, to)| from + power * (to - from)).collect()
            }
            FunctionKind::Stitching { functions, bounds, encode } => {
                let x = clipped[0];
                // Intervals are closed at the lower end, so a bound belongs to the upper function (§7.10.4).
                let at = bounds.iter().take_while(|bound| x >= **bound).count();
                let low = if at == 0 { self.domain[0][0] } else { bounds[at - 1] };
                let high = bounds.get(at).copied().unwrap_or(self.domain[0][1]);
                // The last interval is empty if the last bound is the end of the domain. Then `interpolate` returns the
                // lower end of `encode[at]`.
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
    /// Interpolates the outputs linearly between grid points. Each of `inputs` must be within its interval of
    /// `domain`.
    fn value(&self, inputs: &[f32], domain: &[[f32; 2]]) -> Vec<f32> {
        // For each input: the grid points below and above it, and its distance from the lower one, 0 to 1.
        let mut cells = Vec::with_capacity(self.size.len());
        for (at, &size) in self.size.iter().enumerate() {
            let last = size - 1;
            let coordinate = interpolate(inputs[at], domain[at], self.encode[at]);
            let coordinate = clip(coordinate, [0.0, real(last)]);
            // `index` rounds down and is at most `last`. At the last point, both points are the last one and the
            // distance is 0.
            let low = index(coordinate, last);
            cells.push((low, (low + 1).min(last), coordinate - real(low)));
        }
        let outputs = self.decode.len();
        let mut sums = vec![0.0; outputs];
        // Bit `at` of a corner says whether it is the upper grid point of input `at`.
        for corner in 0..1usize << cells.len() {
            let mut weight = 1.0;
            let mut position = 0;
            let mut stride = 1;
            for (at, &(low, high, part)) in cells.iter().enumerate() {
                let upper = (corner >> at) & 1 == 1;
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
        // `sample_real` rounds values above 2^24, here and in `sample` alike, so the largest sample gives exactly the
        // upper end of `decode`.
        let largest = sample_real(u32::MAX >> (32 - self.bits_per_sample));
        sums.iter()
            .zip(&self.decode)
            .map(|(sum, decode)| interpolate(*sum, [0.0, largest], *decode))
            .collect()
    }

    /// Returns the sample with this number, from 0.
    fn sample(&self, number: usize) -> f32 {
        let position = number * self.bits_per_sample;
        sample_real(bits(&self.samples, position, self.bits_per_sample))
    }
}

/// Clips `value` to an interval. NaN, which an overflow before may have left, becomes the lower end, so that later
/// steps compute with numbers.
fn clip(value: f32, [low, high]: [f32; 2]) -> f32 {
    // `f32::clamp` panics if the interval is reversed.
    if value.is_nan() { low } else { value.max(low).min(high) }
}
