//! Handles paths with a trailing slash.
//!
//! For APIs the slash has no meaning: it is removed before routing, so log lines, metrics and tables keyed by route see
//! one path. Pages redirect, because relative links and browser histories depend on the address shown. Media redirect
//! too (`media/plain_spelling.rs`), because caches store an answer for each address.

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use crate::http::api_addresses;
use crate::http::cache_policy::CachePolicy;
use crate::http::site::login;

/// Prefixes of pages that mails link to.
const MAILED_PAGES: [&str; 3] = ["/unsubscribe/", "/mail/", "/o/password/"];

/// Removes the trailing slash from a request to an API.
pub(crate) fn trim_request(mut request: Request) -> Request {
    if let Some(uri) = without_slash(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

/// Returns the URI without its trailing slash; `None` if it has none or belongs to a page or to media.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/')?;
    // Pages and media keep their slash here, because the redirect has to show the new address.
    if !is_for_programs(path) {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(with_query(path, uri)?);
    Uri::from_parts(parts).ok()
}

fn is_for_programs(path: &str) -> bool {
    api_addresses::is_api(path)
        || path.starts_with("/health/")
        || ["/metrics", "/openapi.json"].contains(&path)
}

fn with_query(path: &str, uri: &Uri) -> Option<PathAndQuery> {
    match uri.query() {
        Some(query) => format!("{path}?{query}").parse().ok(),
        None => path.parse().ok(),
    }
}

/// Redirects the path of a page with a trailing slash; `None` if it has none or is not a page.
///
/// `None` also for `//host/`: a browser would read the rest as the address of a different site.
pub(crate) fn redirect_to_page(uri: &Uri) -> Option<Response> {
    let path = uri.path().strip_suffix('/')?;
    let location = with_query(path, uri)?;
    let is_page = login::is_local_page(location.as_str())
        // These pages are not local pages, because a login must not return to them.
        || ["/o/login", "/o/password"].contains(&path)
        || MAILED_PAGES.iter().any(|prefix| path.starts_with(prefix));
    if !is_page {
        return None;
    }
    let location = HeaderValue::from_str(location.as_str()).ok()?;
    let mut response = Response::new(Body::empty());
    // 308 preserves the method and body of a form that was sent to the address with a slash.
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    // A cached permanent redirect would outlive any change of our routes.
    CachePolicy::NoStore.set(headers);
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slash_of_an_address_for_programs_is_taken_off() {
        let check = |given: &str, expected: Option<&str>| {
            let found = without_slash(&given.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{given}");
        };
        check("/content/v1/image/search/", Some("/content/v1/image/search"));
        check("/content/v1/image/search/?q=a/&s=1", Some("/content/v1/image/search?q=a/&s=1"));
        check("http://a.example/user/v1/user/", Some("http://a.example/user/v1/user"));
        check("/health/ready/", Some("/health/ready"));
        for other in ["/", "/user/v1/user", "/account/", "/o/login/", "/o/oauth2/auth/"] {
            check(other, None);
        }
        for media in ["/media/", "/media/image/x_NormalPreview.jpg/"] {
            check(media, None);
        }
    }

    #[test]
    fn a_page_is_redirected_within_the_site() {
        let location = |given: &str| {
            let response = redirect_to_page(&given.parse().unwrap())?;
            Some(response.headers()[header::LOCATION].to_str().unwrap().to_owned())
        };
        assert_eq!(location("/account/").as_deref(), Some("/account"));
        assert_eq!(location("/item/image/x/?done=a").as_deref(), Some("/item/image/x?done=a"));
        assert_eq!(location("/o/login/?return_to=/").as_deref(), Some("/o/login?return_to=/"));
        assert_eq!(location("/unsubscribe/a.b/").as_deref(), Some("/unsubscribe/a.b"));
        for other in [
            "/",
            "/account",
            "//evil.example/",
            "/\\evil.example/",
            "///",
            "/nothing/",
            "//evil.example/account/",
            "/account//evil.example/",
        ] {
            assert_eq!(location(other), None, "{other}");
        }
    }
}
