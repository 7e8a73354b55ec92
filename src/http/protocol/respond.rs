//! Builds responses: the one table from error kinds to statuses (contract api-15), and JSON.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::runtime::error::ErrorKind;
use model::shorten;

/// Longest part of a caller's text that an error message repeats, in characters.
const ECHO_CHARS_MAX: usize = 200;

/// Returns the status for a kind of error.
pub(crate) fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Stale => StatusCode::PRECONDITION_FAILED,
        ErrorKind::Unsupported => StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        // Never 429: the published client library abandons a stream after a 4xx (contract api-16).
        ErrorKind::Overloaded | ErrorKind::Timeout | ErrorKind::Unavailable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Shortens a caller's text for an error message or a log line.
pub(crate) fn shorten_input(text: &str) -> String {
    shorten(text, ECHO_CHARS_MAX)
}

/// Builds a response with a JSON body.
pub(crate) fn json_text(status: StatusCode, text: Bytes) -> Response {
    typed(status, HeaderValue::from_static("application/json"), Body::from(text))
}

/// Builds a response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Builds a response whose header map has room for the headers of a rendition, about twenty. A map that grows
/// from empty is reallocated three times for each response.
pub(crate) fn with_header_capacity(body: Body) -> Response {
    const HEADERS: usize = 24;
    let mut response = Response::new(body);
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    response
}

/// Builds a response with a content type, and forbids browsers to sniff a different one.
pub(crate) fn typed(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = with_header_capacity(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
