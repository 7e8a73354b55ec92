//! The numeric parameters of operations in media URLs, such as `_w800_h600`.

use strum::{Display, EnumString};
use thiserror::Error;

/// The maximum number of digits of a number, including leading zeros: enough for any `u64`.
const DIGITS_MAX: usize = 20;

/// An operation whose parameters are numbers of pixels. It prints its name in URLs without the dash, as in error
/// bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(Display)]
#[strum(serialize_all = "lowercase")]
pub enum PixelOperation {
    Crop,
    Fit,
    Fill,
}

impl PixelOperation {
    /// Returns the parameters that the operation accepts.
    fn parameters(self) -> &'static [PixelParameter] {
        match self {
            Self::Crop => &[
                PixelParameter::Width,
                PixelParameter::Height,
                PixelParameter::X,
                PixelParameter::Y,
            ],
            Self::Fit | Self::Fill => &[PixelParameter::Width, PixelParameter::Height],
        }
    }

    /// Returns the list of parameters in messages.
    fn expected(self) -> &'static str {
        match self {
            Self::Crop => "_w, _h, _x or _y",
            Self::Fit | Self::Fill => "_w or _h",
        }
    }
}

/// One parameter of an operation, a number of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(Display, EnumString)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum PixelParameter {
    #[strum(serialize = "w")]
    Width,
    #[strum(serialize = "h")]
    Height,
    /// `_x`: the offset from the left edge.
    X,
    /// `_y`: the offset from the upper edge.
    Y,
}

/// The error for malformed parameters of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// The operation has no parameters.
    #[error("\"-{operation}\" needs at least one of {}", operation.expected().replace(" or ", " and "))]
    NoParameters { operation: PixelOperation },
    /// The operation does not accept the parameter.
    #[error(
        "unknown {operation} parameter {:?}, expected {}",
        format!("_{found}"), operation.expected()
    )]
    Unknown {
        operation: PixelOperation,
        /// The parameter without its underscore.
        found: String,
    },
    /// A required parameter is missing.
    #[error("\"-{operation}\" needs \"_{parameter}\"")]
    Missing { operation: PixelOperation, parameter: PixelParameter },
    /// A parameter occurs more than once.
    #[error("{operation} parameter \"_{parameter}\" is given more than once")]
    Repeated { operation: PixelOperation, parameter: PixelParameter },
    /// A value contains characters other than digits.
    #[error(
        "{operation} parameter \"_{parameter}\" needs a whole number of pixels, found {found:?}"
    )]
    NotANumber { operation: PixelOperation, parameter: PixelParameter, found: String },
    /// A value has too many digits or exceeds `u32`.
    #[error(
        "{operation} parameter \"_{parameter}\" is too large: {found}, \
         at most {} in {DIGITS_MAX} digits",
        u32::MAX
    )]
    TooLarge { operation: PixelOperation, parameter: PixelParameter, found: String },
    /// A width or height is zero.
    #[error("{operation} parameter \"_{parameter}\" is zero")]
    Zero { operation: PixelOperation, parameter: PixelParameter },
}

impl ParameterError {
    /// Returns the part of the URL at fault: an operation such as `crop`, or one of its parameters such as
    /// `crop.w`.
    pub fn part(&self) -> String {
        match self {
            Self::NoParameters { operation } | Self::Unknown { operation, .. } => {
                operation.to_string()
            }
            Self::Missing { operation, parameter }
            | Self::Repeated { operation, parameter }
            | Self::NotANumber { operation, parameter, .. }
            | Self::TooLarge { operation, parameter, .. }
            | Self::Zero { operation, parameter } => format!("{operation}.{parameter}"),
        }
    }
}

/// The parameter values of an operation in a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PixelValues {
    pub(crate) width: Option<u32>,
    pub(crate) height: Option<u32>,
    pub(crate) x: Option<u32>,
    pub(crate) y: Option<u32>,
}

impl PixelValues {
    /// Parses the parameters that follow an operation's name: `_w800_h600_x10_y20`.
    ///
    /// Parameters come in any order and either case, each at most once, with values of digits only. Leading zeros
    /// are ignored, within the limit of 20 digits.
    ///
    /// Fails with [`ParameterError`], which names the operation and the parameter.
    pub(crate) fn parse(
        operation: PixelOperation,
        parameters: &str,
    ) -> Result<Self, ParameterError> {
        let mut values = Self::default();
        let mut rest = parameters.split('_');
        // The text must begin with an underscore, so the part before the first underscore is empty.
        let before = rest.next().unwrap_or_default();
        if !before.is_empty() {
            return Err(ParameterError::Unknown { operation, found: before.to_owned() });
        }
        for text in rest {
            let (parameter, value) = parse_parameter(operation, text)?;
            let slot = values.slot(parameter);
            if slot.is_some() {
                return Err(ParameterError::Repeated { operation, parameter });
            }
            *slot = Some(value);
        }
        if values == Self::default() {
            return Err(ParameterError::NoParameters { operation });
        }
        values.check_sides(operation)?;
        Ok(values)
    }

    /// Fails with [`ParameterError::Zero`] if the width or height is zero; offsets may be 0.
    pub(crate) fn check_sides(self, operation: PixelOperation) -> Result<(), ParameterError> {
        let sides = [(self.width, PixelParameter::Width), (self.height, PixelParameter::Height)];
        match sides.into_iter().find(|(side, _)| *side == Some(0)) {
            Some((_, parameter)) => Err(ParameterError::Zero { operation, parameter }),
            None => Ok(()),
        }
    }

    fn slot(&mut self, parameter: PixelParameter) -> &mut Option<u32> {
        match parameter {
            PixelParameter::Width => &mut self.width,
            PixelParameter::Height => &mut self.height,
            PixelParameter::X => &mut self.x,
            PixelParameter::Y => &mut self.y,
        }
    }
}

/// Parses one parameter without its underscore: `w800`.
fn parse_parameter(
    operation: PixelOperation,
    text: &str,
) -> Result<(PixelParameter, u32), ParameterError> {
    let (letter, digits) = text.split_at_checked(1).unwrap_or_default();
    let parameter = letter.parse::<PixelParameter>().ok();
    let Some(parameter) = parameter.filter(|found| operation.parameters().contains(found)) else {
        return Err(ParameterError::Unknown { operation, found: text.to_owned() });
    };
    // `u32::from_str` alone would accept a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let found = digits.to_owned();
        return Err(ParameterError::NotANumber { operation, parameter, found });
    }
    match digits.parse() {
        Ok(value) if digits.len() <= DIGITS_MAX => Ok((parameter, value)),
        Ok(_) | Err(_) => {
            let found = digits.to_owned();
            Err(ParameterError::TooLarge { operation, parameter, found })
        }
    }
}
