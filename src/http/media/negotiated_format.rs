//! Media addresses that end in `.auto`: a rendition, which is a picture made of an original, in the format that the
//! client prefers.

use axum::http::StatusCode;
use axum::response::Response;

use crate::http::cache_policy::{CachePolicy, forbids_shared_caches};
use crate::http::media::image_negotiation::accepted_formats;
use crate::http::media::request::MediaRequest;
use crate::media::{self, Media, MediaAnswer, RenderPayer, RenditionAnswer};
use crate::runtime::error::{Error, ErrorKind, Result};
use model::media_url::{MediaPath, RenditionExtension};
use model::token;

/// Returns whether the format of the response to a media path depends on `Accept`.
pub(super) fn is_negotiated(path: &str) -> bool {
    token::strip(path, RenditionExtension::Auto.as_str()).is_some()
}

/// Resolves a path that ends in `.auto` to a rendition in the format that the client prefers.
///
/// Formats that cannot hold the picture are skipped. If the rendition is ready only in the less preferred format, it
/// is served while the preferred one is rendered.
///
/// Fails as [`Media::resolve`] does, and if the picture is too large for every format that the client accepts.
pub(super) async fn resolve(
    media: &Media,
    path: &MediaPath,
    request: &MediaRequest<'_>,
) -> Result<MediaAnswer> {
    let mut unready = None;
    let mut refusal = None;
    for format in accepted_formats(request.headers) {
        let formatted = path.clone().with_image_format(format);
        let mut rendition = match media.resolve(&formatted, request.caller).await {
            Ok(MediaAnswer::Rendition(rendition)) => rendition,
            // A different format may hold a picture of this size.
            Err(error) if is_about_format(&error) => {
                refusal.get_or_insert(error);
                continue;
            }
            other => return other,
        };
        if !media.is_ready(&rendition) {
            unready.get_or_insert(rendition);
            continue;
        }
        // Only if it is public: nothing is rendered for a request that may have to be paid first.
        if let Some(preferred) = unready.filter(|preferred| preferred.open) {
            let payer = RenderPayer::for_client(request.client);
            rendition.is_interim = media.render_ahead(*preferred, payer);
        }
        return Ok(MediaAnswer::Rendition(rendition));
    }
    // No rendition is ready in any format, so the client waits for the preferred one.
    match unready {
        Some(rendition) => Ok(MediaAnswer::Rendition(rendition)),
        None => Err(refusal.unwrap_or_else(|| media::access::not_available(path))),
    }
}

/// Returns whether a path was refused because its format cannot hold the picture.
fn is_about_format(error: &Error) -> bool {
    error.kind() == ErrorKind::InvalidArgument
        && error.details().iter().any(|detail| detail.path == "extension")
}

/// Shortens the cache lifetime of a public rendition that is served until a preferred format is rendered.
pub(super) fn limit_caching(response: &mut Response, answer: &RenditionAnswer) {
    if answer.is_interim && answer.open {
        shorten_max_age(response);
    }
}

/// Makes caches revalidate after some seconds. Errors, such as 412 and 416, are left as they are: they answer the
/// preconditions or the range of one client. So is a response that shared caches must not store.
fn shorten_max_age(response: &mut Response) {
    let status = response.status();
    let is_cacheable = status.is_success() || status == StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    if is_cacheable && !forbids_shared_caches(headers) {
        CachePolicy::Interim.set(headers);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{HeaderValue, header};

    use super::*;

    #[test]
    fn only_what_caches_may_keep_is_kept_for_a_short_time() {
        let check = |status: StatusCode, policy: &'static str, expected: &str| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            let policy = HeaderValue::from_static(policy);
            response.headers_mut().insert(header::CACHE_CONTROL, policy);
            shorten_max_age(&mut response);
            assert_eq!(response.headers()[header::CACHE_CONTROL], expected, "{status}");
        };
        let (open, interim) = ("public, max-age=300", "public, max-age=10");
        check(StatusCode::OK, open, interim);
        check(StatusCode::PARTIAL_CONTENT, open, interim);
        check(StatusCode::NOT_MODIFIED, open, interim);
        check(StatusCode::PRECONDITION_FAILED, "no-store", "no-store");
        check(StatusCode::RANGE_NOT_SATISFIABLE, "no-store", "no-store");
        check(StatusCode::RANGE_NOT_SATISFIABLE, open, open);
        check(StatusCode::OK, "no-store", "no-store");
        check(StatusCode::OK, "private, no-cache", "private, no-cache");
    }
}
