//! Defines colour spaces (ISO 32000-1 §8.6) and converts their colours to grey.

use std::rc::Rc;

use crate::budget::WorkBudget;
use crate::function::PdfFunction;
use crate::number::{byte, index, real};
use crate::profile::GreyProfile;
use crate::{PdfError, luminance};

/// A parsed colour space.
#[derive(Clone)]
pub(super) enum PdfColourSpace {
    /// DeviceGray and equivalent spaces.
    Grey,
    Rgb,
    Cmyk,
    CalGrey {
        gamma: f32,
    },
    CalRgb {
        gamma: [f32; 3],
        /// Columns for red, green and blue, relative to the white point.
        matrix: [[f32; 3]; 3],
    },
    Lab {
        range: [[f32; 2]; 2],
    },
    Icc {
        profile: GreyProfile,
        components: usize,
    },
    Indexed {
        base: Rc<PdfColourSpace>,
        last: usize,
        table: Vec<u8>,
    },
    Tint {
        components: usize,
        alternate: Rc<PdfColourSpace>,
        function: PdfFunction,
    },
    /// Separation with the colorant None, which paints nothing.
    Invisible,
    /// Pattern, with the space of an uncoloured pattern's colour.
    Pattern(Option<Rc<PdfColourSpace>>),
    /// The unknown space at the start of a stream that inherits its colour from its caller.
    Inherited,
}

impl PdfColourSpace {
    /// Returns the number of components of a colour; 0 for patterns and inherited spaces.
    pub(super) fn components(&self) -> usize {
        match self {
            PdfColourSpace::Grey
            | PdfColourSpace::CalGrey { .. }
            | PdfColourSpace::Indexed { .. }
            | PdfColourSpace::Invisible => 1,
            PdfColourSpace::Rgb | PdfColourSpace::CalRgb { .. } | PdfColourSpace::Lab { .. } => 3,
            PdfColourSpace::Cmyk => 4,
            PdfColourSpace::Icc { components, .. } | PdfColourSpace::Tint { components, .. } => {
                *components
            }
            PdfColourSpace::Pattern(_) | PdfColourSpace::Inherited => 0,
        }
    }

    /// Returns whether the numbers of the space itself define its colours, relative to a white point.
    pub(super) fn is_calibrated(&self) -> bool {
        matches!(
            self,
            PdfColourSpace::CalGrey { .. }
                | PdfColourSpace::CalRgb { .. }
                | PdfColourSpace::Lab { .. }
        )
    }

    /// Returns whether grey is a weighted sum of the components, so that it may be computed before or after an
    /// interpolation.
    pub(super) fn is_linear(&self) -> bool {
        matches!(self, PdfColourSpace::Grey | PdfColourSpace::Rgb)
    }

    /// Returns the current colour after the space is selected.
    pub(super) fn initial(&self) -> Vec<f32> {
        match self {
            PdfColourSpace::Cmyk => vec![0.0, 0.0, 0.0, 1.0],
            PdfColourSpace::Icc { components: 4, .. } => vec![0.0, 0.0, 0.0, 1.0],
            // Full tint (ISO 32000-1 §8.6.6.4).
            PdfColourSpace::Tint { components, .. } => vec![1.0; *components],
            PdfColourSpace::Lab { range } => {
                // The value nearest to 0 that the range allows (§8.6.5.4).
                let [a, b] = range.map(|[low, high]| 0.0f32.max(low).min(high));
                vec![0.0, a, b]
            }
            other => vec![0.0; other.components()],
        }
    }

    /// Returns the interval of a component in samples of an image with `bits` bits.
    pub(super) fn sample_range(&self, component: usize, bits: usize) -> [f32; 2] {
        match self {
            PdfColourSpace::Indexed { .. } => [0.0, real((1 << bits.min(16)) - 1)],
            PdfColourSpace::Lab { range } => {
                if component == 0 {
                    [0.0, 100.0]
                } else {
                    range[(component - 1).min(1)]
                }
            }
            _ => [0.0, 1.0],
        }
    }

    /// Returns the grey of a colour, 0 to 1; missing components are 0.
    ///
    /// Fails if the budget for function steps is spent.
    pub(super) fn grey(&self, budget: &mut WorkBudget, colour: &[f32]) -> Result<f32, PdfError> {
        let first = component(colour, 0);
        Ok(match self {
            PdfColourSpace::Grey => first.clamp(0.0, 1.0),
            PdfColourSpace::Rgb => {
                luminance::rgb(first, component(colour, 1), component(colour, 2))
            }
            PdfColourSpace::Cmyk => {
                let [cyan, magenta, yellow, black] = [0, 1, 2, 3].map(|at| component(colour, at));
                luminance::cmyk(cyan, magenta, yellow, black)
            }
            PdfColourSpace::CalGrey { gamma } => {
                let linear = first.clamp(0.0, 1.0).powf(*gamma);
                luminance::xyz([linear; 3])
            }
            PdfColourSpace::CalRgb { gamma, matrix } => {
                let linear =
                    [0, 1, 2].map(|at| component(colour, at).clamp(0.0, 1.0).powf(gamma[at]));
                luminance::xyz(
                    [0, 1, 2].map(|row| {
                        (0..3).map(|column| linear[column] * matrix[column][row]).sum()
                    }),
                )
            }
            PdfColourSpace::Lab { .. } => {
                luminance::lab([first, component(colour, 1), component(colour, 2)])
            }
            PdfColourSpace::Icc { profile, components } => {
                let samples: Vec<u8> =
                    (0..*components).map(|at| byte(component(colour, at))).collect();
                // The initial value is used if the profile cannot be applied.
                let mut grey = [byte(first)];
                profile.greys(&samples, &mut grey);
                f32::from(grey[0]) / 255.0
            }
            PdfColourSpace::Indexed { base, last, table } => {
                let from = index(first, *last) * base.components();
                let colour: Vec<f32> = (0..base.components())
                    .map(|at| {
                        let [low, high] = base.sample_range(at, 8);
                        let unit = f32::from(table.get(from + at).copied().unwrap_or(0)) / 255.0;
                        low + unit * (high - low)
                    })
                    .collect();
                base.grey(budget, &colour)?
            }
            PdfColourSpace::Tint { alternate, function, .. } => {
                let colour = function.evaluate(colour, budget)?;
                alternate.grey(budget, &colour)?
            }
            PdfColourSpace::Invisible | PdfColourSpace::Pattern(_) | PdfColourSpace::Inherited => {
                0.0
            }
        })
    }
}

/// Returns a component of a colour; 0 if it is missing.
pub(super) fn component(colour: &[f32], at: usize) -> f32 {
    colour.get(at).copied().unwrap_or(0.0)
}

/// Returns the device space with this number of components.
pub(super) fn device_space(components: usize) -> Option<PdfColourSpace> {
    match components {
        1 => Some(PdfColourSpace::Grey),
        3 => Some(PdfColourSpace::Rgb),
        4 => Some(PdfColourSpace::Cmyk),
        _ => None,
    }
}
