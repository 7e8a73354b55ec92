//! The OpenAPI document of the routes for programs, and the parts of its documentation page.
//!
//! The document is data: the files in `assets/openapi`, one for each section of the page. `document.rs`
//! assembles them once, at start.
//!
//! # How to describe a route
//!
//! 1. Add its path to `paths` in the file of its section, with `summary`, `description`, `operationId`,
//!    `parameters`, `requestBody` and `responses` in OpenAPI 3.1. The section's `security`, `responses` and
//!    `server` apply to all of its operations; an operation may override `security` and adds to the
//!    `responses`.
//! 2. Add the schemas of its bodies to `schemas` in the same file; a reference to one is
//!    `$ref: "#/components/schemas/Name"`. Parts that several operations use are in `shared.yaml`; a
//!    reference to one is replaced by its target.
//! 3. List a new section in `SECTIONS` in `document.rs`.
//! 4. Run `cargo test --lib openapi`. The tests read the routes in the sources and fail for a route without a
//!    description, and for a description without a route. They compare enumerations and bounds with the types
//!    and limits that the handlers use: a new one needs a row in `tests.rs`. A page for people is listed in
//!    `PAGES` there instead.
//!
//! Contract api-18, api-19.

pub(super) mod description;
mod document;
mod markdown;
mod news_item;
mod page;
mod trial;

#[cfg(test)]
pub(super) mod tests;

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, header},
    response::Response,
    routing::get,
};

use crate::http::AppState;
use crate::http::cache_policy::CachePolicy;
pub use description::{ApiDescription, ApiDocument};
pub use document::BaseUrls;
pub use markdown::reference;
pub(super) use trial::{SampleBody, TrialOperation};

/// The routes of the document.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/openapi.json", get(serve_document))
}

/// Serves `GET /openapi.json`. Credentials have no effect here, so scripts of any site may read it.
async fn serve_document(
    State(app): State<AppState>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let mut response = app.shared.description.document_response(&method, &headers);
    let headers = response.headers_mut();
    CachePolicy::PublicMinutes.set(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("ETag, X-Request-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}
