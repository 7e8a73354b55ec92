//! The density of the wall, which is the size of its pictures. A cookie stores it as a preference of the browser.

use axum::http::HeaderMap;
use strum::{EnumString, IntoStaticStr};

use super::language::{PREFERENCE_S, chosen, set_preference};

/// The cookie that stores a visitor's choice.
const COOKIE: &str = "wirephoto_density";

/// The size of the pictures on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum WallDensity {
    Small,
    #[default]
    Medium,
    Large,
}

impl WallDensity {
    /// Returns the density for a request: the visitor's choice, or medium.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        chosen(headers, COOKIE).unwrap_or_default()
    }

    /// Returns the `Set-Cookie` value that stores the choice for a year.
    pub(super) fn cookie(self) -> String {
        set_preference(COOKIE, self.into(), PREFERENCE_S)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};

    use super::*;

    #[test]
    fn a_density_is_read_from_its_cookie() {
        let of = |cookie: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
            WallDensity::from_headers(&headers)
        };
        assert_eq!(of("x=1; wirephoto_density=large"), WallDensity::Large);
        assert_eq!(of("wirephoto_density=huge"), WallDensity::Medium);
        assert_eq!(WallDensity::from_headers(&HeaderMap::new()), WallDensity::Medium);
    }
}
