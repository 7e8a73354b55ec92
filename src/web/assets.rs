//! Files compiled into the binary: style sheets, scripts, fonts, icon.

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use rust_embed::RustEmbed;

use super::{
    compression::Unchanging,
    conditional::{ETag, Precondition, Validators, evaluate},
    respond,
};
use crate::error::{Error, Kind};
use crate::types::Hash;

#[derive(RustEmbed)]
#[folder = "assets/"]
#[include = "css/*"]
#[include = "fonts/*"]
#[include = "js/*"]
#[include = "vendor/*"]
#[include = "favicon.svg"]
struct Assets;

/// `GET /assets/…`.
pub(super) async fn asset(
    method: Method,
    headers: HeaderMap,
    Path(path): Path<String>,
) -> Response {
    serve(&method, &headers, &path)
}

/// `GET /favicon.ico`, which browsers ask for unasked.
pub(super) async fn favicon(method: Method, headers: HeaderMap) -> Response {
    serve(&method, &headers, "favicon.svg")
}

fn serve(method: &Method, headers: &HeaderMap, path: &str) -> Response {
    let Some(file) = Assets::get(path) else {
        return respond::error(&Error::new(Kind::NotFound, "no such file"));
    };
    let tag = Hash(file.metadata.sha256_hash()).short();
    let Some(etag) = ETag::new(tag) else {
        return respond::error(&Error::internal("an entity tag is not ASCII"));
    };
    let validators = Validators { etag, last_modified: None };
    let mut response = match evaluate(method, headers, &validators) {
        Precondition::Proceed => {
            respond::typed(StatusCode::OK, content_type(path), Body::from(file.data.into_owned()))
        }
        Precondition::NotModified => {
            respond::typed(StatusCode::NOT_MODIFIED, content_type(path), Body::empty())
        }
        Precondition::Failed => {
            respond::typed(StatusCode::PRECONDITION_FAILED, content_type(path), Body::empty())
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, validators.etag.print());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response.extensions_mut().insert(Unchanging);
    response
}

fn content_type(path: &str) -> HeaderValue {
    HeaderValue::from_static(match path.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("otf") => "font/otf",
        Some("woff2") => "font/woff2",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}
