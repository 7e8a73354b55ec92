//! The size of a rendition, as an operation in its URL.

use std::fmt;

use thiserror::Error;

use crate::operation_parameters::{ParameterError, PixelOperation, PixelParameter, PixelValues};
use crate::token;
use geometry::Size;

/// The requested size in a URL: `-fit_w640_h480`, `-fill_w640_h360` or `-preset_card`.
///
/// Pictures are never enlarged: a size that is larger than allowed is reduced in the same ratio.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResizeSpec {
    /// Scales down in the picture's own ratio until it fits into the box. At least one side is given.
    Fit { width: Option<u32>, height: Option<u32> },
    /// Scales down until the picture just covers the size, and cuts off the rest around the focus.
    Fill(Size),
    /// The definition with this name in the settings.
    Preset(PresetName),
}

impl ResizeSpec {
    /// Returns the name in URLs, without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fit { .. } => token::FIT,
            Self::Fill(_) => token::FILL,
            Self::Preset(_) => token::PRESET,
        }
    }

    /// Parses the parameters that follow the operation `name`, one of [`token::RESIZES`].
    ///
    /// Fails with [`ResizeError`], which names the parameter.
    pub fn parse(name: &str, parameters: &str) -> Result<Self, ResizeError> {
        if name.eq_ignore_ascii_case(token::PRESET) {
            let preset = parameters.strip_prefix('_').unwrap_or(parameters);
            return Ok(Self::Preset(PresetName::parse(preset)?));
        }
        let is_fill = name.eq_ignore_ascii_case(token::FILL);
        let operation = if is_fill { PixelOperation::Fill } else { PixelOperation::Fit };
        let PixelValues { width, height, .. } = PixelValues::parse(operation, parameters)?;
        if !is_fill {
            return Ok(Self::Fit { width, height });
        }
        let width = width.ok_or_else(|| missing(PixelParameter::Width))?;
        let height = height.ok_or_else(|| missing(PixelParameter::Height))?;
        Ok(Self::Fill(Size { width, height }))
    }
}

fn missing(parameter: PixelParameter) -> ParameterError {
    ParameterError::Missing { operation: PixelOperation::Fill, parameter }
}

impl fmt::Display for ResizeSpec {
    /// Prints the canonical operation, such as `-fit_w640_h480`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Fit { width, height } => {
                if let Some(width) = width {
                    write!(f, "_w{width}")?;
                }
                height.map_or(Ok(()), |height| write!(f, "_h{height}"))
            }
            Self::Fill(Size { width, height }) => write!(f, "_w{width}_h{height}"),
            Self::Preset(name) => write!(f, "_{name}"),
        }
    }
}

/// The name of a preset: a lower-case letter, followed by lower-case letters and digits, at most 32 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresetName(Box<str>);

impl PresetName {
    /// The maximum number of characters of a name.
    pub const CHARS_MAX: usize = 32;

    /// Parses a name. Case is ignored, as everywhere in media URLs.
    ///
    /// Fails with [`ResizeError::PresetName`].
    pub fn parse(text: &str) -> Result<Self, ResizeError> {
        let name = text.to_ascii_lowercase();
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && name.len() <= Self::CHARS_MAX;
        if !is_name {
            return Err(ResizeError::PresetName { found: text.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// Returns the name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PresetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error for a malformed size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResizeError {
    /// A number is malformed.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The text is not the name of a preset.
    #[error(
        "the preset name {found:?} is not a letter followed by letters and digits, at most {}",
        PresetName::CHARS_MAX
    )]
    PresetName { found: String },
}

impl ResizeError {
    /// Returns the part of the URL at fault, such as `fit.w` or `preset`.
    pub fn part(&self) -> String {
        match self {
            Self::Parameter(error) => error.part(),
            Self::PresetName { .. } => "preset".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let (_, name, parameters) = token::split_resize(text).expect("a size");
        let found = ResizeSpec::parse(name, parameters);
        match (found, expected) {
            (Ok(spec), Ok(canonical)) => assert_eq!(spec.to_string(), canonical, "{text}"),
            (Err(error), Err(message)) => {
                let found = format!("{}: {error}", error.part());
                assert!(found.contains(message), "{text}: {found}");
            }
            (found, _) => panic!("{text}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn ok_sizes_print_in_their_canonical_spelling() {
        check("x-fit_w640", Ok("-fit_w640"));
        check("x-fit_h480", Ok("-fit_h480"));
        check("x-FIT_H0480_W640", Ok("-fit_w640_h480"));
        check("x-fill_h360_w640", Ok("-fill_w640_h360"));
        check("x-preset_card", Ok("-preset_card"));
        check("x-Preset_Card2", Ok("-preset_card2"));
    }

    #[test]
    fn err_a_malformed_size_names_its_parameter() {
        check("x-fit_", Err("fit: unknown fit parameter \"_\", expected _w or _h"));
        check("x-fit_w0", Err("fit.w: fit parameter \"_w\" is zero"));
        check("x-fit_w10_w20", Err("fit.w: fit parameter \"_w\" is given more than once"));
        check("x-fit_x10", Err("fit: unknown fit parameter \"_x10\""));
        check("x-fit_w-10", Err("fit.w: fit parameter \"_w\" needs a whole number"));
        check("x-fit_w4294967296", Err("fit.w: fit parameter \"_w\" is too large"));
        check("x-fill_w10", Err("fill.h: \"-fill\" needs \"_h\""));
        check("x-fill_h10", Err("fill.w: \"-fill\" needs \"_w\""));
        check("x-preset_", Err("preset: the preset name \"\""));
        check("x-preset_2up", Err("preset: the preset name \"2up\""));
        check("x-preset_a_b", Err("preset: the preset name \"a_b\""));
        check(&format!("x-preset_{}", "a".repeat(33)), Err("preset: the preset name"));
    }
}
