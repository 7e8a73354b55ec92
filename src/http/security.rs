//! Security headers: they restrict the features of a response in browsers, and the sites that may embed it.
//!
//! One table for every response. All values are constants, so a cached picture costs no more than two
//! insertions. The content security policy depends on the page, and is set where the page is rendered.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const COOP: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");

/// HSTS for one year. Subdomains and the preload list are the operator's decision.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");
const CROSS_ORIGIN: HeaderValue = HeaderValue::from_static("cross-origin");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
/// Browser features that no page of the site uses.
const NO_FEATURES: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), browsing-topics=(), camera=(), display-capture=(), geolocation=(), \
     gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
);
/// Documents of providers run no scripts and have no origin; a browser's viewer may style them.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");

/// Class of a response by its route, which selects the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteClass {
    /// A media address, whose responses customers' pages embed.
    Media,
    /// An address of the login, which clients open in a separate window.
    Login,
    Other,
}

impl RouteClass {
    /// Returns the class of the matched route.
    pub(crate) fn from_route(route: &str) -> Self {
        match route {
            route if route.starts_with("/media/") => Self::Media,
            route if route.starts_with("/o/") => Self::Login,
            _ => Self::Other,
        }
    }
}

/// Adds the headers of the table; `is_https` is true if clients reach the service by `https`.
pub(crate) fn add_security_headers(headers: &mut HeaderMap, class: RouteClass, is_https: bool) {
    // Browsers ignore the header over plain HTTP, and a
    // server must not send it there (RFC 6797 §7.2).
    if is_https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, TRANSPORT);
    }
    if class == RouteClass::Media {
        // Customers embed renditions in their own pages;
        // `same-origin` would break every one of them.
        headers.insert(CORP, CROSS_ORIGIN);
        if content_type(headers).is_some_and(may_be_active) {
            // A provider's PDF or text shares our origin, so a
            // script in it would act as the visitor.
            headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
        }
        return;
    }
    headers.insert(CORP, SAME_ORIGIN);
    if content_type(headers).is_some_and(|kind| kind.starts_with(b"text/html")) {
        // Only documents can use browser features; on JSON the header would be dead weight.
        headers.insert(PERMISSIONS, NO_FEATURES);
        // A client that opens the login in a window waits there for the result; an opener policy on any page
        // in between would cut the window off from its opener.
        if class == RouteClass::Other {
            headers.insert(COOP, SAME_ORIGIN);
        }
    }
}

fn content_type(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes)
}

/// Returns whether a browser may show a response of this type as a document with scripts or links. Pictures,
/// videos and archives are inert; an SVG is a document.
fn may_be_active(kind: &[u8]) -> bool {
    // An allowlist: an unknown type is sandboxed until it is known to be inert.
    let inert = [&b"image/"[..], b"video/", b"multipart/", b"application/zip"];
    kind.starts_with(b"image/svg") || !inert.iter().any(|inert| kind.starts_with(inert))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(class: RouteClass, kind: Option<&'static str>, is_https: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        add_security_headers(&mut headers, class, is_https);
        headers
    }

    #[test]
    fn the_class_follows_from_the_route() {
        assert_eq!(RouteClass::from_route("/media/{*path}"), RouteClass::Media);
        assert_eq!(RouteClass::from_route("/o/login"), RouteClass::Login);
        for route in ["/", "/item/{media_type}/{id}", "unknown", "/openapi.json"] {
            assert_eq!(RouteClass::from_route(route), RouteClass::Other, "{route}");
        }
    }

    #[test]
    fn documents_of_providers_are_sandboxed_and_pictures_are_not() {
        let sandboxed = |kind| {
            protected(RouteClass::Media, Some(kind), false).contains_key("content-security-policy")
        };
        for kind in [
            "text/xml",
            "text/plain; charset=utf-8",
            "application/json",
            "application/pdf",
            "application/postscript",
            "image/svg+xml",
        ] {
            assert!(sandboxed(kind), "{kind}");
        }
        for kind in ["image/jpeg", "image/avif", "video/mp4", "application/zip"] {
            assert!(!sandboxed(kind), "{kind}");
        }
    }

    #[test]
    fn a_page_keeps_its_window_and_a_login_leaves_it_to_its_client() {
        let html = Some("text/html; charset=utf-8");
        assert_eq!(protected(RouteClass::Other, html, false)[COOP], "same-origin");
        let login = protected(RouteClass::Login, html, true);
        assert!(!login.contains_key(COOP) && login.contains_key(PERMISSIONS));
        assert_eq!(login[header::STRICT_TRANSPORT_SECURITY], "max-age=31536000");
        let api = protected(RouteClass::Other, Some("application/json"), false);
        assert!(!api.contains_key(COOP) && !api.contains_key(header::STRICT_TRANSPORT_SECURITY));
        assert_eq!(api[CORP], "same-origin");
        assert_eq!(protected(RouteClass::Media, Some("image/jpeg"), false)[CORP], "cross-origin");
    }
}
