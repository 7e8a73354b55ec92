//! Evaluates functions of all four types (ISO 32000-1 §7.10), for tints and shadings.

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::calculator::Calculator;
use crate::number::{bits, index, interpolate, real, sample_real};

/// A function from `m` numbers to `n` numbers.
#[derive(Debug, Clone)]
pub(super) struct PdfFunction {
    pub(super) domain: Vec<[f32; 2]>,
    pub(super) range: Vec<[f32; 2]>,
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
    pub(super) bits: usize,
    pub(super) encode: Vec<[f32; 2]>,
    pub(super) decode: Vec<[f32; 2]>,
    pub(super) samples: Vec<u8>,
}

impl PdfFunction {
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

fn clip(value: f32, [low, high]: [f32; 2]) -> f32 {
    // `f32::clamp` panics if the interval is reversed.
    if value.is_nan() { low } else { value.max(low).min(high) }
}
