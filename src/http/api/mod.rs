//! Shared parts of the JSON API handlers: the authenticated caller, responses and errors.

pub(crate) mod channels;
pub(crate) mod collections;
pub(crate) mod content;
pub(crate) mod deliveries;
pub mod ingest;
pub(crate) mod item_edits;
pub(crate) mod item_rights;
pub(crate) mod keys;
pub(crate) mod logins;
pub(crate) mod operator;
pub(crate) mod orders;
pub(crate) mod templates;
pub(crate) mod uploads;
pub(crate) mod user;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde::Serialize;

use crate::access::auth::Principal;
use crate::http::AppState;
use crate::http::cache_policy::CachePolicy;
use crate::http::credentials;
use crate::http::error_response;
use crate::http::protocol::respond;
use crate::runtime::error::{Error, Result};

/// The result of an API handler.
pub(crate) type ApiResult = Result<Response, ApiError>;

/// The authenticated caller of an API, whose credentials carry the scope `roles` (contract access-5).
pub(crate) struct ApiCaller(pub(crate) Arc<Principal>);

impl FromRequestParts<AppState> for ApiCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let found = credentials::require_principal(app, &parts.headers, &parts.uri).await;
        let has_bearer = credentials::has_bearer_token(&parts.headers);
        found.map(Self).map_err(|error| ApiError { error, has_bearer })
    }
}

/// The error of a failed API request.
pub(crate) struct ApiError {
    error: Error,
    /// True if the request has a bearer token, which decides the challenge of a 401.
    has_bearer: bool,
}

impl ApiError {
    /// Wraps the error of a request with these headers.
    pub(crate) fn new(error: Error, headers: &HeaderMap) -> Self {
        Self { error, has_bearer: credentials::has_bearer_token(headers) }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self { error, has_bearer: false }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = error_response::build_with_challenge(&self.error, self.has_bearer);
        CachePolicy::NoStore.set(response.headers_mut());
        response
    }
}

/// Responds 200 with `value` as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> ApiResult {
    let text = serde_json::to_vec(value).map_err(Error::internal)?;
    Ok(json_text(text.into()))
}

/// Responds 200 with a text that is JSON already.
pub(crate) fn json_text(text: Bytes) -> Response {
    let mut response = respond::json_text(StatusCode::OK, text);
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

/// Responds 200 with a plain string that must not look like a JSON number or boolean: the public client
/// library parses every text that is valid JSON.
pub(crate) fn text(text: &'static str) -> ApiResult {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(text));
    CachePolicy::NoStore.set(response.headers_mut());
    Ok(response)
}
