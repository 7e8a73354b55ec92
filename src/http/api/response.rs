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

/// Responds to a failed request; `has_bearer` is true if it has a bearer token, which decides the challenge of a 401.
pub(crate) fn refuse(error: &Error, has_bearer: bool) -> Response {
    let mut response = error_response::build_with_challenge(error, has_bearer);
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

/// Responds 200 with a text that is JSON already.
pub(crate) fn json_text(text: Bytes) -> Response {
    let mut response = respond::json_text(StatusCode::OK, text);
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

/// Responds with `value` as JSON.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Result<Response> {
    let text = serde_json::to_vec(value).map_err(Error::internal)?;
    let mut response = respond::json_text(status, text.into());
    CachePolicy::NoStore.set(response.headers_mut());
    Ok(response)
}

/// Responds 200 with a text that is not JSON, and must not look like it: the public client library parses every text that
/// is valid JSON.
pub(crate) fn plain_text(text: &'static str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(text));
    CachePolicy::NoStore.set(response.headers_mut());
    response
}
