//! The density of the wall, which is the size of its pictures. A cookie stores it as a preference of the browser.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderValue, header},
    routing::post,
};
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};

use super::{PageResult, language::preference_cookie, login};
use crate::http::AppState;
use crate::http::form::{FormFields, form_body, see_other};
use crate::runtime::error::Error;

/// The cookie that stores a visitor's choice.
const COOKIE: &str = "wirephoto_density";

/// The size of the pictures on the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum WallDensity {
    Small,
    #[default]
    Medium,
    Large,
}

impl WallDensity {
    fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the density for a request: the visitor's choice, or medium.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let chosen = preference_cookie(headers, COOKIE);
        chosen.and_then(|name| name.parse().ok()).unwrap_or_default()
    }

    /// Returns the `Set-Cookie` value that stores the choice for a year.
    fn cookie(self) -> String {
        let name = self.as_str();
        format!("{COOKIE}={name}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000")
    }
}

/// Returns the route that changes the density.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/density", post(choose))
}

/// `POST /density`: stores the chosen density in a cookie and redirects back.
async fn choose(request: Request) -> PageResult {
    let (_, text) = form_body(request).await?;
    let form = FormFields::parse(&text)?;
    let back = form.find("return_to").filter(|path| login::is_local_page(path));
    let mut response = see_other(back.unwrap_or("/"));
    // No CSRF token is required: a forged request could change only the size of pictures.
    let density = form.find("density").and_then(|name| name.parse::<WallDensity>().ok());
    if let Some(density) = density {
        let cookie = HeaderValue::from_str(&density.cookie()).map_err(Error::internal)?;
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
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
