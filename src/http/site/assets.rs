//! Serves files compiled into the binary: style sheets, scripts, fonts and the icon.
//!
//! The URLs in pages contain a *fingerprint* of all files, `/assets/<fingerprint>/css/site.css`. Browsers cache
//! the files for a year without revalidation, because a release that changes a file has a different fingerprint.
//! One fingerprint for all files keeps relative URLs in style sheets and modules valid without rewriting. The cost
//! is that a change of one file invalidates all of them, about 200 kB.
//!
//! Paths without a fingerprint, `/assets/css/site.css`, remain valid for existing references.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::cache_policy::CachePolicy;
use crate::http::error_response;
use crate::http::protocol::compression::ImmutableResponse;
use crate::http::protocol::conditional::{ETag, PreconditionOutcome, Validators, evaluate};
use crate::http::protocol::respond;
use crate::runtime::error::{Error, ErrorKind};
use model::ContentHash;

#[derive(RustEmbed)]
#[folder = "assets/"]
#[include = "css/*"]
#[include = "fonts/*"]
#[include = "js/*"]
#[include = "vendor/*"]
#[include = "favicon.svg"]
struct SiteAssets;

/// The fingerprint of all files, computed on first use. A debug build reads the files from disk, so browsers load
/// an edited file after the next start.
static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
    let mut names: Vec<_> = SiteAssets::iter().collect();
    // The order of embedded files is unspecified, but all nodes must compute the same fingerprint.
    names.sort_unstable();
    let mut lines = String::new();
    for name in names {
        if let Some(file) = SiteAssets::get(&name) {
            lines.push_str(&format!(
                "{name} {}\n",
                ContentHash(file.metadata.sha256_hash()).short()
            ));
        }
    }
    ContentHash::new(lines.as_bytes()).short()
});

/// Returns the URL of a file for use in pages. It contains the fingerprint.
pub(crate) fn address(path: &str) -> String {
    format!("/assets/{}/{path}", *FINGERPRINT)
}

/// Splits the path of a request into the file's name and its cache policy.
fn split_fingerprint(path: &str) -> (&str, CachePolicy) {
    match path.split_once('/') {
        Some((first, name)) if first == *FINGERPRINT => (name, CachePolicy::Immutable),
        // The fingerprint of a different release. All fingerprints have the same length, which no folder name has.
        Some((first, name)) if first.len() == FINGERPRINT.len() => (name, CachePolicy::Revalidate),
        // A new release changes the file under the same path.
        Some(_) | None => (path, CachePolicy::PublicMinutes),
    }
}

pub(crate) async fn asset(
    method: Method,
    headers: HeaderMap,
    Path(path): Path<String>,
) -> Response {
    let (name, policy) = split_fingerprint(&path);
    serve(&method, &headers, name, policy)
}

/// `GET /favicon.ico`, which browsers request on their own.
pub(crate) async fn favicon(method: Method, headers: HeaderMap) -> Response {
    // Browsers accept an SVG under this name, because the response has its content type.
    serve(&method, &headers, "favicon.svg", CachePolicy::PublicMinutes)
}

fn serve(method: &Method, headers: &HeaderMap, path: &str, policy: CachePolicy) -> Response {
    match SiteAssets::get(path) {
        Some(file) => send(method, headers, path, file, policy),
        None => error_response::build(&Error::new(ErrorKind::NotFound, "no such file")),
    }
}

/// Responds with a file, or with 304 if the client already has it. The extension of `path` determines the content
/// type.
pub(super) fn send(
    method: &Method,
    headers: &HeaderMap,
    path: &str,
    file: EmbeddedFile,
    policy: CachePolicy,
) -> Response {
    let tag = ContentHash(file.metadata.sha256_hash()).short();
    let Some(etag) = ETag::new(tag) else {
        return error_response::build(&Error::internal("an entity tag is not ASCII"));
    };
    // The tag identifies the content exactly, so no date is needed.
    let validators = Validators { etag, last_modified: None };
    let (status, body, policy) = match evaluate(method, headers, &validators) {
        PreconditionOutcome::Proceed => {
            (StatusCode::OK, Body::from(file.data.into_owned()), policy)
        }
        PreconditionOutcome::NotModified => (StatusCode::NOT_MODIFIED, Body::empty(), policy),
        // A cache must not store the outcome of one client's precondition.
        PreconditionOutcome::Failed => {
            (StatusCode::PRECONDITION_FAILED, Body::empty(), CachePolicy::NoStore)
        }
    };
    let mut response = respond::typed(status, content_type(path), body);
    let headers = response.headers_mut();
    headers.insert(header::ETAG, validators.etag.print());
    policy.set(headers);
    // Lets the compression layer cache its output, since the bytes never change.
    response.extensions_mut().insert(ImmutableResponse);
    response
}

fn content_type(path: &str) -> HeaderValue {
    HeaderValue::from_static(match path.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("otf") => "font/otf",
        Some("woff2") => "font/woff2",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_long_is_only_what_the_fingerprint_is_of() {
        let check = |path: &str, expected| assert_eq!(split_fingerprint(path), expected, "{path}");
        check("css/site.css", ("css/site.css", CachePolicy::PublicMinutes));
        check("favicon.svg", ("favicon.svg", CachePolicy::PublicMinutes));
        let address = address("css/site.css");
        let own = address.strip_prefix("/assets/").expect("an address of ours");
        check(own, ("css/site.css", CachePolicy::Immutable));
        check("AAAAAAAAAAAAAAAAAAAAAA/js/try.js", ("js/try.js", CachePolicy::Revalidate));
        check(
            "AAAAAAAAAAAAAAAAAAAAA/js/try.js",
            ("AAAAAAAAAAAAAAAAAAAAA/js/try.js", CachePolicy::PublicMinutes),
        );
    }
}
