//! Marks the responses of deprecated interfaces (contract api-20).

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

/// The `Deprecation` field of RFC 9745. The interfaces were deprecated before this service implemented them; the
/// date is the first day of that year.
const DEPRECATED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("deprecation"), HeaderValue::from_static("@1767225600"));

/// Adds `Deprecation` and a `Link` to the successor of this address.
pub(crate) fn mark_deprecated(mut response: Response, successor: &str) -> Response {
    let headers = response.headers_mut();
    let (name, value) = DEPRECATED;
    headers.insert(name, value);
    if let Ok(link) = HeaderValue::from_str(&format!("<{successor}>; rel=\"successor-version\"")) {
        headers.insert(header::LINK, link);
    }
    response
}
