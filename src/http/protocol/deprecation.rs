//! How an answer says that its interface is deprecated (contract api-20).

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

/// RFC 9745. The interfaces were deprecated before this service first had them; the date is the
/// first of the year in which it did.
const DEPRECATED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("deprecation"), HeaderValue::from_static("@1767225600"));

/// The answer with the word that its address is deprecated, and the address that took its place.
pub(crate) fn mark_deprecated(mut response: Response, successor: &str) -> Response {
    let headers = response.headers_mut();
    let (name, value) = DEPRECATED;
    headers.insert(name, value);
    if let Ok(link) = HeaderValue::from_str(&format!("<{successor}>; rel=\"successor-version\"")) {
        headers.insert(header::LINK, link);
    }
    response
}
