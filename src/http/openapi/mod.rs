//! The OpenAPI document of the routes for programs, and the parts of its documentation page.
//!
//! `crates/api` declares the operations as types, and `crate::http::api` binds them to handlers; the document derives from both.
//! `assets/openapi` has its head and the error responses. `document.rs` assembles them once, at start.
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

use api::operator::LoadOpenApi;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::http::cache_policy::CachePolicy;
use crate::runtime::error::Result;
pub use description::{ApiDescription, ApiDocument};
pub use document::BaseUrls;
pub use markdown::reference;
pub(super) use trial::{SampleBody, TrialOperation};

/// The endpoint of the document.
pub(super) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new().bind_response::<LoadOpenApi, _, _>(serve_document)
}

/// Serves the document. Credentials have no effect here, so scripts of any site may read it.
async fn serve_document(request: ApiRequest<LoadOpenApi>) -> Result<Response> {
    let method = &request.parts.method;
    let mut response =
        request.app.shared.description.document_response(method, &request.parts.headers);
    let headers = response.headers_mut();
    CachePolicy::PublicMinutes.set(headers);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("ETag, X-Request-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    Ok(response)
}
