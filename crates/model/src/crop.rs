//! The crop operation, as text and as a rectangle.

use std::fmt;

use crate::operation_parameters::{ParameterError, PixelOperation, PixelValues};
use crate::token;
use geometry::{CropError, Rect, Size};

/// The parameters of a `-crop` operation, in pixels of the image to crop.
///
/// A missing width or height extends to the edge of the image. A missing offset is 0 and equal to a written `_x0`.
/// Width and height are never 0. At least one parameter is given.
///
/// Contract media-13, media-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CropSpec {
    width: Option<u32>,
    height: Option<u32>,
    x: u32,
    y: u32,
}

impl CropSpec {
    /// Builds a crop of `width` times `height` pixels at `x`, `y`.
    ///
    /// Fails with [`ParameterError::Zero`] on a zero width or height.
    pub fn new(
        width: Option<u32>,
        height: Option<u32>,
        x: u32,
        y: u32,
    ) -> Result<Self, ParameterError> {
        // Offsets may be 0; a crop without area may not (contract media-14).
        let sides = PixelValues { width, height, x: None, y: None };
        sides.check_sides(PixelOperation::Crop)?;
        Ok(Self { width, height, x, y })
    }

    /// Returns the width in pixels; `None` extends to the right edge.
    pub fn width(self) -> Option<u32> {
        self.width
    }

    /// Returns the height in pixels; `None` extends to the lower edge.
    pub fn height(self) -> Option<u32> {
        self.height
    }

    /// Returns the offset from the left edge in pixels.
    pub fn x(self) -> u32 {
        self.x
    }

    /// Returns the offset from the upper edge in pixels.
    pub fn y(self) -> u32 {
        self.y
    }

    /// Parses the parameters that follow `-crop`: `_w800_h600_x10_y20`.
    ///
    /// Parameters come in any order and either case, each at most once, with values of digits only.
    ///
    /// Fails with [`ParameterError`], which names the parameter.
    pub fn parse(parameters: &str) -> Result<Self, ParameterError> {
        let PixelValues { width, height, x, y } =
            PixelValues::parse(PixelOperation::Crop, parameters)?;
        Ok(Self { width, height, x: x.unwrap_or(0), y: y.unwrap_or(0) })
    }

    /// Computes the rectangle that the crop cuts from an upright image of size `image`.
    ///
    /// Fails with [`CropError`], which contains `image`, when the rectangle exceeds the image or is empty.
    pub fn resolve(self, image: Size) -> Result<Rect, CropError> {
        // Saturates, so that an offset beyond the edge gives an empty rectangle, which is refused below.
        let width = self.width.unwrap_or(image.width.saturating_sub(self.x));
        let height = self.height.unwrap_or(image.height.saturating_sub(self.y));
        let rect = Rect { x: self.x, y: self.y, width, height };
        rect.checked_in(image)
    }
}

impl TryFrom<Rect> for CropSpec {
    type Error = ParameterError;

    /// Builds the crop that cuts exactly `rect`; fails with [`ParameterError::Zero`] if `rect` is empty.
    fn try_from(rect: Rect) -> Result<Self, ParameterError> {
        Self::new(Some(rect.width), Some(rect.height), rect.x, rect.y)
    }
}

impl fmt::Display for CropSpec {
    /// Prints the canonical operation with its name, `-crop_w800_h600_x10_y20`.
    ///
    /// Offsets are always printed; a missing width or height is not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(token::CROP)?;
        if let Some(width) = self.width {
            write!(f, "_w{width}")?;
        }
        if let Some(height) = self.height {
            write!(f, "_h{height}")?;
        }
        // Offsets of 0 are printed too: one crop has one spelling (contract media-9).
        write!(f, "_x{}_y{}", self.x, self.y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation_parameters::PixelParameter;

    fn check(parameters: &str, expected: Result<&str, &str>) {
        let found = CropSpec::parse(parameters);
        match (found, expected) {
            (Ok(spec), Ok(canonical)) => {
                assert_eq!(spec.to_string(), canonical, "{parameters}");
            }
            (Err(error), Err(message)) => {
                let text = format!("{}: {error}", error.part());
                assert!(text.contains(message), "{parameters}: {text}");
            }
            (found, _) => panic!("{parameters}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn ok_one_to_four_parameters_in_any_order_and_case() {
        check("_w800_h600_x10_y20", Ok("-crop_w800_h600_x10_y20"));
        check("_y20_x10_h600_w800", Ok("-crop_w800_h600_x10_y20"));
        check("_W800_X10_H600_Y20", Ok("-crop_w800_h600_x10_y20"));
        check("_w800_h600", Ok("-crop_w800_h600_x0_y0"));
        check("_x0", Ok("-crop_x0_y0"));
        check("_h7", Ok("-crop_h7_x0_y0"));
    }

    #[test]
    fn ok_leading_zeros_and_the_limits_of_integers() {
        check("_w0800_x000", Ok("-crop_w800_x0_y0"));
        check("_w00000000000000000001", Ok("-crop_w1_x0_y0"));
        check("_w2147483647_x2147483648", Ok("-crop_w2147483647_x2147483648_y0"));
        check("_w4294967295_x4294967295", Ok("-crop_w4294967295_x4294967295_y0"));
    }

    #[test]
    fn err_a_number_that_is_too_large_names_its_parameter() {
        check("_w4294967296", Err("crop.w: crop parameter \"_w\" is too large: 4294967296"));
        check("_h18446744073709551615", Err("crop.h: crop parameter \"_h\" is too large"));
        check("_x18446744073709551616", Err("crop.x: crop parameter \"_x\" is too large"));
        check("_y99999999999999999999999", Err("crop.y: crop parameter \"_y\" is too large"));
        check("_w000000000000000000001", Err("crop.w: crop parameter \"_w\" is too large"));
    }

    #[test]
    fn err_a_value_that_is_not_an_integer_names_its_parameter() {
        check("_w-10", Err("crop.w: crop parameter \"_w\" needs a whole number of pixels"));
        check("_h+10", Err("crop.h: crop parameter \"_h\" needs"));
        check("_x1.5", Err("crop.x: crop parameter \"_x\" needs"));
        check(
            "_y",
            Err("crop.y: crop parameter \"_y\" needs a whole number of pixels, found \"\""),
        );
        check("_w0x10", Err("crop.w: crop parameter \"_w\" needs"));
        check("_w1e3", Err("crop.w: crop parameter \"_w\" needs"));
        check("_w١", Err("crop.w: crop parameter \"_w\" needs"));
    }

    #[test]
    fn err_zero_repeated_unknown_and_missing_parameters() {
        check("_w0_h10", Err("crop.w: crop parameter \"_w\" is zero"));
        check("_w10_h000", Err("crop.h: crop parameter \"_h\" is zero"));
        check("_w10_w10", Err("crop.w: crop parameter \"_w\" is given more than once"));
        check("_x1_X2", Err("crop.x: crop parameter \"_x\" is given more than once"));
        check("_w10_z5", Err("crop: unknown crop parameter \"_z5\""));
        check("_w10_", Err("crop: unknown crop parameter \"_\""));
        check("__w10", Err("crop: unknown crop parameter \"_\""));
        check("_10", Err("crop: unknown crop parameter \"_10\""));
        check("w10", Err("crop: unknown crop parameter \"_w10\""));
        check("", Err("crop: \"-crop\" needs at least one"));
    }

    #[test]
    fn a_spec_resolves_against_the_image() {
        let image = Size::new(800, 600);
        let resolve = |parameters: &str| {
            let rect = CropSpec::parse(parameters).unwrap().resolve(image);
            rect.map(|rect| rect.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(resolve("_w800_h600"), Ok("800x600+0+0".to_owned()));
        assert_eq!(resolve("_x10"), Ok("790x600+10+0".to_owned()));
        assert_eq!(resolve("_w5_y599"), Ok("5x1+0+599".to_owned()));
        assert_eq!(
            resolve("_w900_h700_x10"),
            Err("crop 900x700+10+0 leaves the 800x600 image".to_owned())
        );
        assert_eq!(
            resolve("_w4294967295_x4294967295"),
            Err("crop 4294967295x600+4294967295+0 leaves the 800x600 image".to_owned())
        );
        assert_eq!(
            resolve("_x800"),
            Err("crop 0x600+800+0 lies outside the 800x600 image".to_owned())
        );
        assert_eq!(
            resolve("_y4294967295"),
            Err("crop 800x0+0+4294967295 lies outside the 800x600 image".to_owned())
        );
    }

    #[test]
    fn a_rectangle_becomes_the_operator_that_cuts_it() {
        let rect = Rect { x: 1, y: 2, width: 3, height: 4 };
        let spec = CropSpec::try_from(rect).unwrap();
        assert_eq!(spec.resolve(Size::new(10, 10)), Ok(rect));
        let empty = CropSpec::try_from(Rect { height: 0, ..rect });
        assert_eq!(
            empty,
            Err(ParameterError::Zero {
                operation: PixelOperation::Crop,
                parameter: PixelParameter::Height,
            })
        );
    }
}
