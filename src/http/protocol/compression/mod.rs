//! Content coding of responses, gzip or brotli, for clients that accept one (RFC 9110 §8.4, §12.5.3).
//!
//! - *Routes*: the caller decides which routes are compressed, because it knows which responses hold secrets. Only
//!   text responses are compressed.
//! - *Entity tags* are strong and differ by coding: `"x"` becomes `"x+br"` or `"x+gzip"`. Handlers know only
//!   `"x"`: when a request has the tag of an accepted coding, its plain tag is added for the handler, and a
//!   304 names the tag that the client has.
//! - *Ranges* refer to the plain representation. A partial response is never compressed, and a compressed
//!   response does not offer ranges.
//! - *Time*: responses of more than [`COMPRESSED_AT_ONCE_BYTES_MAX`] are compressed on the runtime's blocking
//!   threads, with as many permits as there are cores. When no permit is free the response is sent plain,
//!   which costs a busy machine less. Files embedded in the program are compressed once, with more effort.

mod accept_encoding;
mod encode;
mod entity_tags;

use std::{
    borrow::Cow, collections::HashMap, num::NonZero, sync::Arc, thread::available_parallelism,
};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::Semaphore;

use accept_encoding::AcceptedCodings;
use encode::{CodingEffort, ContentCoding, encode};

/// Minimum bytes of a response that is compressed. A shorter one fits into one packet either way.
const COMPRESSED_BYTES_MIN: u64 = 1000;
/// Maximum bytes of a response that is compressed on the thread that built it: that takes 0.2 ms, less than
/// a round trip to another thread may take on a busy machine.
const COMPRESSED_AT_ONCE_BYTES_MAX: usize = 16 * 1024;

/// Marks a response that is constant under its entity tag for as long as the process runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImmutableResponse;

/// Compresses bodies with a limited number of permits, and caches the results for bodies that never change.
#[derive(Clone, Debug)]
pub struct Compressor {
    permits: Arc<Semaphore>,
    /// Compressed bodies of responses marked as [`ImmutableResponse`], by entity tag. Only files and texts
    /// embedded in the program are marked, so their number is bounded.
    cache: Arc<RwLock<HashMap<(HeaderValue, ContentCoding), Bytes>>>,
}

impl Default for Compressor {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self { permits: Arc::new(Semaphore::new(cores)), cache: Arc::default() }
    }
}

/// Handles the request, and compresses its response with the client's preferred coding, if it can be compressed.
pub(crate) async fn compress_response(
    compressor: &Compressor,
    mut request: Request,
    next: Next,
) -> Response {
    let negotiation = CodingNegotiation::from_headers(request.headers());
    if let Cow::Owned(headers) = negotiation.with_plain_tags(request.headers()) {
        *request.headers_mut() = headers;
    }
    let response = next.run(request).await;
    negotiation.finish(compressor, response).await
}

/// The content codings and validators of a request.
pub(crate) struct CodingNegotiation {
    accepted: AcceptedCodings,
    /// The lines of the request's `If-None-Match`.
    if_none_match: Vec<HeaderValue>,
}

impl CodingNegotiation {
    /// Reads the request's headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        Self {
            accepted: AcceptedCodings::from_headers(headers),
            if_none_match: headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect(),
        }
    }

    /// Adds the tag of the plain representation for each tag of an accepted coding.
    pub(crate) fn with_plain_tags<'a>(&self, headers: &'a HeaderMap) -> Cow<'a, HeaderMap> {
        entity_tags::with_plain_tags(headers, &self.accepted)
    }

    /// Compresses the response with the client's preferred coding, if it can be compressed.
    pub(crate) async fn finish(
        &self,
        compressor: &Compressor,
        mut response: Response,
    ) -> Response {
        match response.status() {
            StatusCode::OK => self.encode_response(compressor, response).await,
            StatusCode::NOT_MODIFIED => {
                add_vary(response.headers_mut());
                entity_tags::restore_client_tag(
                    response.headers_mut(),
                    &self.if_none_match,
                    &self.accepted,
                );
                response
            }
            // A range refers to the plain bytes and is never compressed, but caches must still key on the
            // coding.
            StatusCode::PARTIAL_CONTENT => {
                add_vary(response.headers_mut());
                response
            }
            _ => response,
        }
    }

    async fn encode_response(&self, compressor: &Compressor, mut response: Response) -> Response {
        // A body of unknown length is a stream, which is not buffered here.
        let length = response.body().size_hint().exact();
        let is_long = length.is_some_and(|length| length >= COMPRESSED_BYTES_MIN);
        if !is_long || !is_compressible(response.headers()) {
            return response;
        }
        // Added even if this client gets the plain body: a cache must not serve the plain body to every client.
        add_vary(response.headers_mut());
        let Some(coding) = self.accepted.preferred() else { return response };
        let (mut parts, body) = response.into_parts();
        let body = match to_bytes(body, usize::MAX).await {
            Ok(body) => body,
            // A body in memory cannot break off; if it did, the client should see it.
            Err(cause) => {
                let broken = futures_util::stream::iter([Err::<Bytes, _>(cause)]);
                return Response::from_parts(parts, Body::from_stream(broken));
            }
        };
        let tag = parts.extensions.get::<ImmutableResponse>().and(parts.headers.get(header::ETAG));
        let coded = match tag {
            Some(tag) => compressor.encode_cached(tag.clone(), coding, body.clone()).await,
            None => compressor.encode_fresh(coding, body.clone()).await,
        };
        // A body that compression does not shorten is sent plain.
        let Some(coded) = coded.filter(|coded| coded.len() < body.len()) else {
            return Response::from_parts(parts, Body::from(body));
        };
        set_coding_headers(&mut parts.headers, coding);
        Response::from_parts(parts, Body::from(coded))
    }
}

impl Compressor {
    /// Compresses the body; `None` when the machine is busy.
    async fn encode_fresh(&self, coding: ContentCoding, body: Bytes) -> Option<Bytes> {
        if body.len() <= COMPRESSED_AT_ONCE_BYTES_MAX {
            return encode(coding, CodingEffort::Each, &body).ok();
        }
        self.encode_blocking(coding, CodingEffort::Each, body).await
    }

    /// Compresses a constant body once and caches the result under `tag`.
    async fn encode_cached(
        &self,
        tag: HeaderValue,
        coding: ContentCoding,
        body: Bytes,
    ) -> Option<Bytes> {
        let key = (tag, coding);
        if let Some(coded) = self.find(&key) {
            return Some(coded);
        }
        // Concurrent first requests may each compress the body, with the same result.
        let coded = self.encode_blocking(coding, CodingEffort::Once, body).await?;
        let mut cache = self.cache.write();
        cache.insert(key, coded.clone());
        Some(coded)
    }

    fn find(&self, key: &(HeaderValue, ContentCoding)) -> Option<Bytes> {
        self.cache.read().get(key).cloned()
    }

    async fn encode_blocking(
        &self,
        coding: ContentCoding,
        effort: CodingEffort,
        body: Bytes,
    ) -> Option<Bytes> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let work = tokio::task::spawn_blocking(move || {
            let coded = encode(coding, effort, &body);
            // Held by the thread, which finishes its work even if the request is cancelled.
            drop(permit);
            coded
        });
        work.await.ok()?.ok()
    }
}

/// Returns whether a response with these headers is text, not compressed yet, and sets no cookie.
fn is_compressible(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kinds = [&b"application/json"[..], b"text/", b"image/svg+xml"];
    kinds.iter().any(|prefix| kind.starts_with(prefix))
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::SET_COOKIE)
}

/// Sets the headers for the coding of the body.
fn set_coding_headers(headers: &mut HeaderMap, coding: ContentCoding) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    entity_tags::set_coded_tag(headers, coding);
    // Both headers describe the plain body; the server computes the length of the compressed body.
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::ACCEPT_RANGES);
}

/// Adds `Accept-Encoding` to `Vary`: the response depends on it.
fn add_vary(headers: &mut HeaderMap) {
    const ALONE: HeaderValue = HeaderValue::from_static("Accept-Encoding");
    let others = headers.get(header::VARY).and_then(|value| value.to_str().ok());
    let value = match others {
        Some(others) => HeaderValue::from_str(&format!("{others}, Accept-Encoding")),
        None => Ok(ALONE),
    };
    headers.insert(header::VARY, value.unwrap_or(ALONE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_depends_on_is_one_list() {
        let mut headers = HeaderMap::new();
        add_vary(&mut headers);
        assert_eq!(headers[header::VARY], "Accept-Encoding");
        headers.insert(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
        add_vary(&mut headers);
        assert_eq!(headers[header::VARY], "Authorization, Cookie, Accept-Encoding");
        assert_eq!(headers.get_all(header::VARY).iter().count(), 1);
    }

    #[test]
    fn text_is_coded_and_pictures_archives_and_what_brings_cookies_are_not() {
        let of = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers
        };
        for kind in [
            "application/json",
            "text/html; charset=utf-8",
            "text/css; charset=utf-8",
            "text/javascript; charset=utf-8",
            "text/xml",
            "text/plain; charset=utf-8",
            "image/svg+xml",
        ] {
            assert!(is_compressible(&of(kind)), "{kind}");
        }
        for kind in [
            "image/jpeg",
            "image/webp",
            "video/mp4",
            "application/zip",
            "application/pdf",
            "font/woff2",
            "multipart/byteranges; boundary=x",
        ] {
            assert!(!is_compressible(&of(kind)), "{kind}");
        }
        for (name, value) in [(header::SET_COOKIE, "a=b"), (header::CONTENT_ENCODING, "br")] {
            let mut headers = of("text/html");
            headers.insert(name, HeaderValue::from_static(value));
            assert!(!is_compressible(&headers), "{value}");
        }
    }

    #[tokio::test]
    async fn a_machine_that_is_busy_codes_nothing_large() {
        let compressor =
            Compressor { permits: Arc::new(Semaphore::new(0)), ..Compressor::default() };
        let body = |length: usize| Bytes::from("a".repeat(length));
        let large = body(COMPRESSED_AT_ONCE_BYTES_MAX + 1);
        assert_eq!(compressor.encode_fresh(ContentCoding::Gzip, large.clone()).await, None);
        let tag = HeaderValue::from_static("\"x\"");
        assert_eq!(
            compressor.encode_cached(tag.clone(), ContentCoding::Gzip, large.clone()).await,
            None
        );
        assert!(
            compressor.encode_fresh(ContentCoding::Gzip, body(2000)).await.unwrap().len() < 200
        );
        // A cached body needs no permit.
        compressor.permits.add_permits(1);
        let coded = compressor
            .encode_cached(tag.clone(), ContentCoding::Gzip, large.clone())
            .await
            .unwrap();
        compressor.permits.close();
        assert_eq!(
            compressor.encode_cached(tag.clone(), ContentCoding::Gzip, large.clone()).await,
            Some(coded)
        );
        assert_eq!(compressor.encode_cached(tag, ContentCoding::Brotli, large).await, None);
    }
}
