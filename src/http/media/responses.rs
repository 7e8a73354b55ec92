//! The responses that send media: preconditions, ranges, the purchase and the headers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;

use crate::access::auth::Principal;
use crate::http::cache_policy::CachePolicy;
use crate::http::edge::RenderSummary;
use crate::http::media::request::MediaRequest;
use crate::http::media::response_cache::CacheableResponse;
use crate::http::media::{cors, timing};
use crate::http::protocol::compression::CodingNegotiation;
use crate::http::protocol::conditional::{
    ETag, PreconditionOutcome, Validators, evaluate, print_date,
};
use crate::http::protocol::disposition;
use crate::http::protocol::range::{
    ByteRange, MultipartByteranges, RangeDecision, ranges, unsatisfied_range,
};
use crate::http::protocol::respond;
use crate::http::{AppState, cache_policy};
use crate::media::{
    self, BodyPart, FileAnswer, Media, MediaAnswer, MediaCaller, RenderPayer, RenditionAnswer,
    RenditionSource, Sale, TextAnswer,
};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::RESOLVED_MAX;
use model::account::AgreementId;
use model::media_url::MediaPath;

/// Serves the Hires of an item that a visitor requested through a form of the site, and records its purchase.
pub(crate) async fn download(
    app: &AppState,
    path: &MediaPath,
    principal: Option<&Principal>,
    agr: Option<AgreementId>,
) -> Result<Response> {
    let method = &Method::GET;
    // The form's own headers, such as a range, do not apply to the file.
    let headers = &HeaderMap::new();
    // Only authenticated visitors reach this point.
    let client = RequestClient::for_request(principal, None);
    for _ in 0..RESOLVED_MAX {
        let caller = MediaCaller { principal, agr, now: clock::now() };
        let request = MediaRequest { method, headers, caller, client };
        let response = match app.shared.media.resolve(path, caller).await? {
            MediaAnswer::Rendition(answer) => rendition_response(app, &request, &answer).await?,
            MediaAnswer::File(answer) => file_response(app, &request, &answer).await?,
            MediaAnswer::Page(..) | MediaAnswer::Text(_) => {
                return Err(media::access::not_available(path));
            }
        };
        if let Some(response) = response {
            return Ok(response);
        }
    }
    Err(unstable_item())
}

/// Returns the error for an item that changed during every attempt to serve it.
pub(super) fn unstable_item() -> Error {
    Error::new(ErrorKind::Unavailable, "The item keeps changing; try again")
}

/// Sets the headers that all responses share.
fn set_headers(app: &AppState, response: &mut Response, validators: &Validators, open: bool) {
    let is_refused = response.status().is_client_error();
    let headers = response.headers_mut();
    headers.insert(header::ETAG, validators.etag.print());
    if let Some(seconds) = validators.last_modified {
        headers.insert(header::LAST_MODIFIED, print_date(seconds));
    }
    if open {
        cache_policy::set_open(headers, &app.shared.edge.live_settings.get().open_cache_control);
        cors::allow_origins(headers);
    } else {
        CachePolicy::PrivateRevalidate.set(headers);
        cache_policy::vary_by_caller(headers);
    }
    // 412 and 416 answer the preconditions of one client.
    if is_refused {
        CachePolicy::NoStore.set(headers);
    }
}

fn validators(etag: &str, modified: Option<Timestamp>) -> Result<Validators> {
    let last_modified = modified.and_then(|time| u64::try_from(time.as_second()).ok());
    let etag = ETag::new(etag).ok_or_else(|| Error::internal("an entity tag is not ASCII"))?;
    Ok(Validators { etag, last_modified })
}

/// Serves a JSON document, a text or a list of licences, compressed for clients that accept it.
pub(super) async fn document_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    answer: &TextAnswer,
) -> Result<Response> {
    if !app.shared.edge.live_settings.get().compression {
        return plain_document_response(app, request, answer);
    }
    let negotiation = CodingNegotiation::from_headers(request.headers);
    // Preconditions and ranges apply to the uncompressed text (contract api-11).
    let headers = negotiation.with_plain_tags(request.headers);
    let response =
        plain_document_response(app, &MediaRequest { headers: &headers, ..*request }, answer)?;
    Ok(negotiation.finish(&app.shared.edge.compressor, response).await)
}

fn plain_document_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    answer: &TextAnswer,
) -> Result<Response> {
    let validators = validators(&answer.etag, answer.modified)?;
    if let Some(response) = precondition_response(app, request, &validators, answer.open) {
        return Ok(response);
    }
    let body = media::RenditionBody::memory(answer.body.clone());
    let decision = ranges(request.method, request.headers, &validators, body.len());
    let kind = HeaderValue::from_static(answer.mime);
    let mut response = range_response(app, &body, &kind, &validators, &decision);
    set_headers(app, &mut response, &validators, answer.open);
    Ok(response)
}

/// Serves a file from the store, or an archive; `None` if an item changed during its assembly.
///
/// Files are never open: graphics, videos and archives all need credentials.
pub(super) async fn file_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    answer: &FileAnswer,
) -> Result<Option<Response>> {
    let validators = validators(&answer.etag, answer.modified)?;
    if let Some(response) = early_response(app, request, &validators, false, &answer.sale).await? {
        return Ok(Some(response));
    }
    let media = &app.shared.media;
    let time_limit = app.shared.edge.live_settings.get().render_timeout;
    let obtained =
        tokio::time::timeout(time_limit, media.obtain_file(answer, request.client)).await;
    let body = obtained.map_err(|_elapsed| {
        Error::new(ErrorKind::Timeout, "The file took too long to assemble; try again")
    })??;
    check_extents(app, &body).await?;
    // Right before the purchase: a withdrawn item is neither delivered nor billed (contract
    // items-23).
    if !media.are_current(answer.source_items.iter()).await? {
        return Ok(None);
    }
    let decision = purchase_ranges(app, request, &body, &validators, &answer.sale).await?;
    let kind = HeaderValue::from_static(answer.mime);
    let mut response = range_response(app, &body, &kind, &validators, &decision);
    set_headers(app, &mut response, &validators, false);
    set_file_name(&mut response, answer.file_name.as_deref());
    Ok(Some(response))
}

/// Sets the name under which a browser saves the response.
fn set_file_name(response: &mut Response, name: Option<&str>) {
    if let Some(name) = name {
        disposition::set_attachment(response.headers_mut(), name);
    }
}

/// Returns the 304 or 412 that the request's preconditions demand, if any.
fn precondition_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    validators: &Validators,
    open: bool,
) -> Option<Response> {
    let status = match evaluate(request.method, request.headers, validators) {
        PreconditionOutcome::NotModified => StatusCode::NOT_MODIFIED,
        PreconditionOutcome::Failed => StatusCode::PRECONDITION_FAILED,
        PreconditionOutcome::Proceed => return None,
    };
    let mut response = respond::with_header_capacity(Body::empty());
    *response.status_mut() = status;
    set_headers(app, &mut response, validators, open);
    Some(response)
}

/// Returns the response if it needs no bytes, and fails if the sale is refused.
///
/// A purchase is recorded only when its bytes are available and about to be sent, so that no 304, 412, 416,
/// 503 or HEAD costs anything.
async fn early_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    validators: &Validators,
    open: bool,
    sale: &Sale,
) -> Result<Option<Response>> {
    let response = precondition_response(app, request, validators, open);
    if let Some(refusal) = sale.refusal() {
        // Access comes before preconditions: a 304 would confirm that the caller's copy is valid.
        if response.is_some() || *request.method == Method::HEAD {
            return Err(refusal);
        }
        // Places the order and fails; succeeds if the order was approved in the meantime.
        app.shared.media.purchase(sale, request.caller).await?;
    }
    Ok(response)
}

/// Verifies the originals behind the stored parts of `body`, before anything is sent.
async fn check_extents(app: &AppState, body: &media::RenditionBody) -> Result<()> {
    if body.parts().iter().any(|part| matches!(part, BodyPart::Store(_))) {
        // The verification blocks on the disk, so it does not run on an async thread.
        let media = app.shared.media.clone();
        let body = body.clone();
        let checked = tokio::task::spawn_blocking(move || media.check_extents(&body));
        checked.await.map_err(Error::internal)??;
    }
    Ok(())
}

/// Decides the ranges of `body` to send, and records their purchase before they are sent.
async fn purchase_ranges(
    app: &AppState,
    request: &MediaRequest<'_>,
    body: &media::RenditionBody,
    validators: &Validators,
    sale: &Sale,
) -> Result<RangeDecision> {
    // HEAD and 416 send no bytes, so they must not charge.
    let decision = ranges(request.method, request.headers, validators, body.len());
    if *request.method != Method::HEAD && decision != RangeDecision::Unsatisfiable {
        app.shared.media.purchase(sale, request.caller).await?;
    }
    Ok(decision)
}

/// Serves a rendition; `None` if the item changed during the wait for the bytes.
///
/// A response sent after the CDN purge of a withdrawn item would stay in the CDN until it expires.
pub(super) async fn rendition_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    answer: &RenditionAnswer,
) -> Result<Option<Response>> {
    let validators = validators(&answer.etag, answer.modified)?;
    let cacheable = answer
        .public()
        .map(|rendition| CacheableResponse { rendition, validators: validators.clone() });
    let early = early_response(app, request, &validators, answer.open, &answer.sale).await?;
    if let Some(mut response) = early {
        if let Some(cacheable) = cacheable {
            response.extensions_mut().insert(cacheable);
        }
        return Ok(Some(response));
    }
    let obtained = match app.shared.media.find_cached(answer) {
        // A cache hit does not count against the client's share of the renders.
        Some(obtained) => obtained,
        None => {
            let payer = RenderPayer::for_client(request.client);
            app.shared
                .media
                .obtain_for(answer, app.shared.edge.live_settings.get().render_timeout, payer)
                .await?
        }
    };
    check_extents(app, &obtained.body).await?;
    if !app.shared.media.are_current(answer.source_items()).await? {
        return Ok(None);
    }
    let decision =
        purchase_ranges(app, request, &obtained.body, &validators, &answer.sale).await?;
    let mime = HeaderValue::from_static(answer.planned.format.mime_type());
    let mut response = range_response(app, &obtained.body, &mime, &validators, &decision);
    set_headers(app, &mut response, &validators, answer.open);
    set_file_name(&mut response, answer.file_name.as_deref());
    // The operator can turn off the headers that describe the render (contract media-27).
    if app.shared.edge.live_settings.get().work_headers && response.status().is_success() {
        timing::add_headers(response.headers_mut(), &obtained.source, answer.open);
    }
    response.extensions_mut().insert(RenderSummary {
        cache: Some(obtained.source.as_str()),
        render_path: timing::render_path(&obtained.source),
        operation: Some(answer.planned.operation),
        render_ms: Some(obtained.waited_ms),
        timing: timing::render_timing(&obtained.source),
    });
    if obtained.source == RenditionSource::Memory
        && matches!(obtained.body.parts(), [BodyPart::Memory(_)])
        && let Some(cacheable) = cacheable
    {
        response.extensions_mut().insert(cacheable);
    }
    Ok(Some(response))
}

/// Builds the response with the full body or the requested ranges.
fn range_response(
    app: &AppState,
    body: &media::RenditionBody,
    kind: &HeaderValue,
    validators: &Validators,
    decision: &RangeDecision,
) -> Response {
    let length = body.len();
    let media = &app.shared.media;
    let mut response = match decision {
        RangeDecision::Full => {
            let sent = parts_body(media, body.slice(0..length));
            let mut response = respond::typed(StatusCode::OK, kind.clone(), sent);
            set_length(response.headers_mut(), length);
            response
        }
        RangeDecision::Single(range) => {
            let sent = parts_body(media, body.slice(byte_offsets(*range)));
            let mut response = respond::typed(StatusCode::PARTIAL_CONTENT, kind.clone(), sent);
            let headers = response.headers_mut();
            set_length(headers, range.len());
            headers.insert(header::CONTENT_RANGE, range.content_range(length));
            response
        }
        RangeDecision::Multi(ranges) => {
            let framing = MultipartByteranges::new(ranges, kind, length, &validators.etag);
            let mut parts = Vec::new();
            for part in framing.parts {
                parts.push(BodyPart::Memory(part.head));
                parts.extend(body.slice(byte_offsets(part.range)));
            }
            parts.push(BodyPart::Memory(framing.tail));
            let kind = framing.content_type;
            let sent = parts_body(media, parts);
            let mut response = respond::typed(StatusCode::PARTIAL_CONTENT, kind, sent);
            set_length(response.headers_mut(), framing.length);
            response
        }
        RangeDecision::Unsatisfiable => {
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let mut response = respond::typed(status, kind.clone(), Body::empty());
            response.headers_mut().insert(header::CONTENT_RANGE, unsatisfied_range(length));
            response
        }
    };
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

/// Builds a body from `parts`, in order.
fn parts_body(media: &Media, parts: Vec<BodyPart>) -> Body {
    // A body in memory has a known length and needs no stream.
    if let [BodyPart::Memory(bytes)] = parts.as_slice() {
        return Body::from(bytes.clone());
    }
    Body::from_stream(media.stream(parts))
}

fn byte_offsets(range: ByteRange) -> std::ops::Range<u64> {
    // A range of HTTP includes its last byte.
    range.first()..range.last() + 1
}

fn set_length(headers: &mut HeaderMap, length: u64) {
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
}
