//! The responses of the JSON APIs, which are never kept, and their errors.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use bytes::Bytes;
use serde::Serialize;

use crate::http::cache_policy::CachePolicy;
use crate::http::error_response;
use crate::http::protocol::respond;
use crate::runtime::error::{Error, Result};

/// Forbids caches to store a response.
pub(crate) fn no_store(mut response: Response) -> Response {
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

/// Responds to a failed request; `has_bearer` is true if it has a bearer token, which decides the challenge of a 401.
pub(crate) fn refuse(error: &Error, has_bearer: bool) -> Response {
    no_store(error_response::build_with_challenge(error, has_bearer))
}

/// Responds 200 with a text that is JSON already.
pub(crate) fn json_text(text: Bytes) -> Response {
    no_store(respond::json_text(StatusCode::OK, text))
}

/// Responds with `value` as JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Response> {
    let text = serde_json::to_vec(value).map_err(Error::internal)?;
    Ok(no_store(respond::json_text(status, text.into())))
}

/// Responds 200 with a text that is not JSON, and must not look like it: the public client library parses every text that
/// is valid JSON.
pub(crate) fn plain_text(text: &'static str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    no_store(respond::typed(StatusCode::OK, kind, Body::from(text)))
}

/// Responds without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    no_store(respond::empty(status))
}
