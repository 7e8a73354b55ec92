//! Prepares quantisation tables for division by multiplication.

/// Largest table entry that [`Divisors`] needs to distinguish.
///
/// Coefficients are at most 1024 away from zero, so every entry above 2048, including this one, rounds all of them
/// to 0. 8 times this value fits the 16-bit reciprocals.
const STEP_MAX: u16 = 4095;

/// Eight times a quantisation table, as reciprocals: division as two multiplications.
///
/// For a divisor `d` and a magnitude `m`, `(m + d/2) / d` is the top 16 bits of the product `(m + correction) *
/// reciprocal`, then the top 16 bits of that product times `scale`. The reciprocal is `2^(16+b) / d`, b being the
/// highest bit of `d`, rounded to nearest. If it was rounded down, the correction is `d/2 + 1` instead of `d/2`.
/// (Agner Fog, "Optimizing subroutines in assembly language", chapter on division.) The result is exact for all
/// magnitudes that the transform gives; a test checks every step up to 4100 around every half.
#[derive(Clone, Debug)]
pub struct Divisors {
    /// The corrections by `[row][column]`, as in the next two fields.
    pub(super) corrections: [[u16; 8]; 8],
    pub(super) reciprocals: [[u16; 8]; 8],
    pub(super) scales: [[u16; 8]; 8],
}

impl Divisors {
    /// Prepares a quantisation table: 64 steps, row by row (not in zigzag order).
    ///
    /// A step of 0, which T.81 B.2.4.1 forbids, is treated as 1.
    pub fn new(table: &[u16; 64]) -> Divisors {
        let mut divisors =
            Divisors { corrections: [[0; 8]; 8], reciprocals: [[0; 8]; 8], scales: [[0; 8]; 8] };
        for (index, step) in table.iter().enumerate() {
            let row = index / 8;
            let column = index % 8;
            let (correction, reciprocal, scale) = reciprocal(8 * (*step).clamp(1, STEP_MAX));
            divisors.corrections[row][column] = correction;
            divisors.reciprocals[row][column] = reciprocal;
            divisors.scales[row][column] = scale;
        }
        divisors
    }
}

/// Computes correction, reciprocal and scale of a divisor in `8..=32760`.
fn reciprocal(divisor: u16) -> (u16, u16, u16) {
    let half = divisor / 2;
    let power = 16 + divisor.ilog2();
    let quotient = (1u32 << power) / u32::from(divisor);
    let remainder = (1u32 << power) % u32::from(divisor);
    let (correction, quotient, power) = if remainder == 0 {
        // A power of two: 2^16 would not fit, so quotient and power are reduced by one bit.
        (half, quotient / 2, power - 1)
    } else if remainder <= u32::from(half) {
        (half + 1, quotient, power)
    } else {
        (half, quotient + 1, power)
    };
    let fits = "at most 2^16 - 1, because the divisor has 15 bits and is not a power of two";
    (correction, u16::try_from(quotient).expect(fits), 1 << (32 - power))
}
