//! Files compiled into the binary: style sheets, scripts, fonts, icon.
//!
//! Pages address them under a *fingerprint* of all of them, `/assets/<fingerprint>/css/site.css`,
//! and browsers keep what they got there for a year without asking again: another release has
//! another fingerprint. One fingerprint for all keeps relative addresses inside of style sheets and
//! modules working without rewriting them; the price is that a release which changes one file has
//! all of them fetched again, some 200 kB.
//!
//! The plain names, `/assets/css/site.css`, stay for whoever wrote them down.

use std::sync::LazyLock;

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::protocol::compression::ImmutableResponse;
use crate::http::protocol::conditional::ETag;
use crate::http::protocol::conditional::PreconditionOutcome;
use crate::http::protocol::conditional::Validators;
use crate::http::protocol::conditional::evaluate;
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

/// How long a file may be kept under its plain name, behind which another release has another file.
pub(super) const CACHE_SHORT: &str = "public, max-age=300";
/// The same under the fingerprint.
const CACHE_IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// The same under the fingerprint of another release. While nodes are upgraded one after the other,
/// a page of one asks for files that another one answers for: better a file of this release than
/// none, as long as nobody keeps it.
const CACHE_REVALIDATE: &str = "no-cache";

/// The fingerprint of all files, fixed when the process first asks for it. In a debug build, which
/// reads them from the disk, a file that is edited is seen by browsers after the next start.
static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
    let mut names: Vec<_> = SiteAssets::iter().collect();
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
    ContentHash::of(lines.as_bytes()).short()
});

/// The address of a file for pages, which changes with its content.
pub(crate) fn address(path: &str) -> String {
    format!("/assets/{}/{path}", *FINGERPRINT)
}

/// Splits the path of a request into the file's name and how long browsers may keep it.
fn split_fingerprint(path: &str) -> (&str, &'static str) {
    match path.split_once('/') {
        Some((first, name)) if first == *FINGERPRINT => (name, CACHE_IMMUTABLE),
        Some((first, name)) if first.len() == FINGERPRINT.len() => (name, CACHE_REVALIDATE),
        Some(_) | None => (path, CACHE_SHORT),
    }
}

/// `GET /assets/…`.
pub(crate) async fn asset(
    method: Method,
    headers: HeaderMap,
    Path(path): Path<String>,
) -> Response {
    let (name, keeping) = split_fingerprint(&path);
    serve(&method, &headers, name, keeping)
}

/// `GET /favicon.ico`, which browsers ask for unasked.
pub(crate) async fn favicon(method: Method, headers: HeaderMap) -> Response {
    serve(&method, &headers, "favicon.svg", CACHE_SHORT)
}

fn serve(method: &Method, headers: &HeaderMap, path: &str, keep: &'static str) -> Response {
    match SiteAssets::get(path) {
        Some(file) => send(method, headers, path, AssetFile { file, keep }),
        None => respond::error(&Error::new(ErrorKind::NotFound, "no such file")),
    }
}

/// A file in the binary.
pub(super) struct AssetFile {
    pub(super) file: EmbeddedFile,
    /// How long it may be kept: a value of `Cache-Control`.
    pub(super) keep: &'static str,
}

/// Answers with a file, or with 304 where the client has it; its type follows from `path`.
pub(super) fn send(method: &Method, headers: &HeaderMap, path: &str, file: AssetFile) -> Response {
    let AssetFile { file, keep: keeping } = file;
    let tag = ContentHash(file.metadata.sha256_hash()).short();
    let Some(etag) = ETag::new(tag) else {
        return respond::error(&Error::internal("an entity tag is not ASCII"));
    };
    let validators = Validators { etag, last_modified: None };
    let (status, body, keeping) = match evaluate(method, headers, &validators) {
        PreconditionOutcome::Proceed => {
            (StatusCode::OK, Body::from(file.data.into_owned()), keeping)
        }
        PreconditionOutcome::NotModified => (StatusCode::NOT_MODIFIED, Body::empty(), keeping),
        PreconditionOutcome::Failed => {
            (StatusCode::PRECONDITION_FAILED, Body::empty(), "no-store")
        }
    };
    let mut response = respond::typed(status, content_type(path), body);
    let headers = response.headers_mut();
    headers.insert(header::ETAG, validators.etag.print());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keeping));
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
        check("css/site.css", ("css/site.css", CACHE_SHORT));
        check("favicon.svg", ("favicon.svg", CACHE_SHORT));
        let address = address("css/site.css");
        let own = address.strip_prefix("/assets/").expect("an address of ours");
        check(own, ("css/site.css", CACHE_IMMUTABLE));
        check("AAAAAAAAAAAAAAAAAAAAAA/js/try.js", ("js/try.js", CACHE_REVALIDATE));
        check("AAAAAAAAAAAAAAAAAAAAA/js/try.js", ("AAAAAAAAAAAAAAAAAAAAA/js/try.js", CACHE_SHORT));
    }
}
