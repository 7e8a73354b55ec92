//! CORS of media: scripts of any site may read open media, and the media that their own credentials give access to
//! (contract caching-7).
//!
//! A script chooses `Authorization` and `ak` itself. The browser adds a session cookie on its own, so a response
//! that only the cookie permits has none of these headers. `http/api_addresses.rs` is about the APIs.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::http::protocol::cors::set;
use crate::http::protocol::respond;

/// Answers a preflight with the methods and headers that a script may send.
pub(crate) fn preflight() -> Response {
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    allow_origins(headers);
    set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS");
    set(
        headers,
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        // The published client library sends `Content-Type` with every request.
        "Authorization, Content-Type, Range, If-Range, If-Match, If-None-Match, \
         If-Modified-Since, If-Unmodified-Since",
    );
    set(headers, header::ACCESS_CONTROL_MAX_AGE, "86400");
    response
}

/// Lets scripts of any origin read a response and the headers of a download or a range.
pub(crate) fn allow_origins(headers: &mut HeaderMap) {
    set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(
        headers,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "Accept-Ranges, Content-Disposition, Content-Range, Content-Length, ETag, Location, \
         Retry-After, Server-Timing, Wirephoto-Path, Wirephoto-Size",
    );
}
