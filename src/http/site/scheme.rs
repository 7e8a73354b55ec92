//! The colour scheme of the pages: light or dark by the visitor's choice, else the scheme of the visitor's system.

use axum::http::HeaderMap;
use strum::{EnumString, IntoStaticStr};

use super::language::{PREFERENCE_S, chosen, set_preference};

/// A colour scheme of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum ColourScheme {
    /// The scheme that the visitor's system prefers.
    #[default]
    System,
    Light,
    Dark,
}

/// The cookie that stores a visitor's choice.
const COOKIE: &str = "wirephoto_scheme";

model::impl_as_str!(ColourScheme);

impl ColourScheme {
    /// Returns the scheme of a request: the visitor's choice, else the system's.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        chosen(headers, COOKIE).unwrap_or_default()
    }

    /// Returns the `Set-Cookie` value that stores the choice for a year, or removes the cookie for the default.
    pub(super) fn cookie(self) -> String {
        let age_s = if self == Self::System { 0 } else { PREFERENCE_S };
        set_preference(COOKIE, self.as_str(), age_s)
    }
}

tokio::task_local! {
    static CURRENT_SCHEME: ColourScheme;
}

/// Runs `future` with `scheme` as the scheme of its pages.
pub(super) async fn with_scheme<T>(scheme: ColourScheme, future: impl Future<Output = T>) -> T {
    CURRENT_SCHEME.scope(scheme, future).await
}

/// Returns the scheme of the current request; the system's outside of a request.
pub(super) fn current_scheme() -> ColourScheme {
    CURRENT_SCHEME.try_with(|scheme| *scheme).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};

    use super::*;

    #[test]
    fn a_chosen_scheme_is_read_from_its_cookie_and_the_systems_is_the_default() {
        let check = |cookie: &'static str, expected: ColourScheme| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
            assert_eq!(ColourScheme::from_headers(&headers), expected, "{cookie}");
        };
        check("", ColourScheme::System);
        check("a=b; wirephoto_scheme=dark", ColourScheme::Dark);
        check("wirephoto_scheme=light", ColourScheme::Light);
        check("wirephoto_scheme=sepia", ColourScheme::System);
        assert!(ColourScheme::Dark.cookie().starts_with("wirephoto_scheme=dark; Path=/; "));
        assert!(ColourScheme::System.cookie().ends_with("; Max-Age=0"));
    }
}
