//! The crop that a URL or a form of the studio requests.

use axum::http::StatusCode;
use serde::Serialize;

use super::aspect_ratio::{self, CropFormError, CropSizes};
use crate::http::site::api_client::{ApiCall, ApiRefusal};
use crate::runtime::error::Result;
use model::{CropSpec, Rect, Size};

/// The numbers and options of a crop as entered, not validated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct CropForm {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) width: String,
    pub(super) height: String,
    pub(super) aspect: String,
    pub(super) ratio: String,
    /// The intended use of the crop; see [`super::CROP_USES`].
    pub(super) output: String,
    pub(super) watermark: bool,
}

impl CropForm {
    /// Reads each parameter with `find`.
    ///
    /// Fails if `find` fails.
    pub(super) fn read<'a>(
        find: impl Fn(&'static str) -> Result<Option<&'a str>>,
    ) -> Result<Self> {
        Ok(Self {
            x: find("x")?.unwrap_or_default().to_owned(),
            y: find("y")?.unwrap_or_default().to_owned(),
            width: find("width")?.unwrap_or_default().to_owned(),
            height: find("height")?.unwrap_or_default().to_owned(),
            aspect: find("aspect")?.unwrap_or_default().to_owned(),
            ratio: find("ratio")?.unwrap_or_default().to_owned(),
            output: find("output")?.unwrap_or_default().to_owned(),
            watermark: find("watermark")?.is_some(),
        })
    }

    /// Returns the URL of `page` with the crop in its query.
    pub(super) fn url_on(&self, page: &str) -> String {
        let watermark = if self.watermark { "1" } else { "" };
        let pairs = [
            ("x", self.x.as_str()),
            ("y", &self.y),
            ("width", &self.width),
            ("height", &self.height),
            ("aspect", &self.aspect),
            ("ratio", &self.ratio),
            ("output", &self.output),
            ("watermark", watermark),
        ];
        ApiCall::get(page).query(pairs.map(|(name, value)| (name, Some(value)))).target
    }

    /// Lists the entered numbers, each with its name in the crop operator and its name in errors.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let all = [
            ("w", "crop.w", self.width.as_str()),
            ("h", "crop.h", self.height.as_str()),
            ("x", "crop.x", self.x.as_str()),
            ("y", "crop.y", self.y.as_str()),
        ];
        all.into_iter().filter(|(_, _, text)| !text.is_empty())
    }

    /// Returns the parameters of a crop operator, not validated.
    fn parameters(&self) -> String {
        self.numbers().map(|(name, _, text)| format!("_{name}{text}")).collect()
    }

    /// Returns the rectangle in a picture of size `image`; `None` if the numbers are invalid.
    pub(super) fn rect(&self, image: Size) -> Option<Rect> {
        let parameters = self.parameters();
        if parameters.is_empty() {
            // Without numbers, the crop is the complete picture, as for a crop operator without `w` and `h`.
            return Some(Rect::new(0, 0, image));
        }
        CropSpec::parse(&parameters).ok()?.resolve(image).ok()
    }

    /// Returns the operator that cuts the requested crop from the Hires, with its rectangle. If the numbers are
    /// invalid, there is no rectangle, and the API reports the error.
    ///
    /// Fails if the ratio is invalid, or if a number contains characters that a URL cannot contain.
    pub(super) fn operator(&self, sizes: CropSizes) -> Result<(String, Option<Rect>), ApiRefusal> {
        let image = sizes.hires;
        // Any other character could end the path, or begin a further parameter of the operator.
        if let Some((_, path, _)) = self.numbers().find(|(_, _, text)| !text.chars().all(is_plain))
        {
            return Err(invalid_form(CropFormError::Number(path)));
        }
        // The API has no parameter for the ratio, so its errors are detected here.
        let ratio = aspect_ratio::parse(&self.aspect, &self.ratio, image).map_err(invalid_form)?;
        // The call is made despite the invalid numbers, because the API explains the error.
        let Some(rect) = self.rect(image) else {
            return Ok((format!("-crop{}", self.parameters()), None));
        };
        let rect = ratio.map_or(rect, |ratio| aspect_ratio::with_ratio(rect, ratio, sizes));
        Ok((operator(rect), Some(rect)))
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '.' || c == '-'
}

/// Returns the operator that cuts exactly `rect`.
pub(super) fn operator(rect: Rect) -> String {
    CropSpec::try_from(rect).map(|spec| spec.to_string()).unwrap_or_default()
}

fn invalid_form(error: CropFormError) -> ApiRefusal {
    let (path, message) = match error {
        CropFormError::Number(path) => (path, "Enter the crop in whole pixels."),
        CropFormError::Preset => ("aspect", "This aspect ratio does not exist."),
        CropFormError::Ratio => {
            ("ratio", "Enter two numbers up to 10,000, for example 5:7 or 1.91:1.")
        }
    };
    let code = "format.openapi.requestValidation";
    ApiRefusal::of_field(StatusCode::BAD_REQUEST, code, path, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(given: &[(&str, &str)]) -> CropForm {
        let find = |name: &str| given.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
        CropForm::read(|name| Ok(find(name))).unwrap()
    }

    #[test]
    fn numbers_become_the_operator_that_cuts_them() {
        let image = Size::new(60, 40);
        let sizes = CropSizes { hires: image, preview: image };
        let check = |given: &[(&str, &str)], expected: &str| {
            let (operator, rect) = wanted(given).operator(sizes).unwrap();
            assert_eq!(operator, expected, "{given:?}");
            assert_eq!(rect.is_some(), operator.ends_with(|c: char| c.is_ascii_digit()));
        };
        check(&[], "-crop_w60_h40_x0_y0");
        check(&[("aspect", "1:1")], "-crop_w40_h40_x10_y0");
        check(&[("x", "10"), ("width", "007")], "-crop_w7_h40_x10_y0");
        check(&[("x", "1e")], "-crop_x1e");
        let refuses = |given: &[(&str, &str)], path: &str| {
            let refusal = wanted(given).operator(sizes).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.errors[0].path.as_str()), (400, path));
        };
        refuses(&[("aspect", "custom")], "ratio");
        refuses(&[("x", "a/b")], "crop.x");
        refuses(&[("height", "1_x5")], "crop.h");
    }
}
