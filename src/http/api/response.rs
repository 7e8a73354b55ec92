//! The responses of the JSON APIs, which are never kept, and their errors.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
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

/// The text of a response that is not JSON.
#[derive(Clone, Copy)]
struct PlainText(&'static str);

/// Responds 200 with a text that is not JSON, and must not look like it: the public client library parses every text that
/// is valid JSON.
pub(crate) fn plain_text(text: &'static str) -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = no_store(respond::typed(StatusCode::OK, kind, Body::from(text)));
    response.extensions_mut().insert(PlainText(text));
    response
}

/// Replaces a plain text by the same text as a JSON string, for a client that accepts no plain text (contract api-10).
pub(crate) fn plain_text_as_json(mut response: Response) -> Response {
    if let Some(PlainText(text)) = response.extensions_mut().remove::<PlainText>() {
        *response.body_mut() = Body::from(serde_json::Value::from(text).to_string());
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

/// Returns whether the client accepts JSON and no plain text. Weights are ignored: what a client lists, it can read.
pub(crate) fn accepts_only_json(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let mut accepts_json = false;
    for range in lines.flat_map(|line| line.split(',')) {
        let kind = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if ["text/plain", "text/*", "*/*"].contains(&kind.as_str()) {
            return false;
        }
        accepts_json |= kind == "application/json";
    }
    accepts_json
}

/// Responds without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    no_store(respond::empty(status))
}
