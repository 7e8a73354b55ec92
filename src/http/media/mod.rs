//! Media URLs over HTTP: methods, conditional requests, ranges and caching.

pub(crate) mod archives;
mod body;
mod cors;
pub(crate) mod crawlers;
mod image_negotiation;
mod item_redirect;
mod negotiated_format;
pub(crate) mod surrogate;
mod timing;

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::Response,
};
use jiff::Timestamp;

use crate::access::auth::Principal;
use crate::http::AppState;
use crate::http::api::deliveries;
use crate::http::cache_policy;
use crate::http::cache_policy::CachePolicy;
use crate::http::credentials;
use crate::http::edge;
use crate::http::edge::RenderSummary;
use crate::http::error_response;
use crate::http::protocol::compression::CodingNegotiation;
use crate::http::protocol::conditional::ETag;
use crate::http::protocol::conditional::PreconditionOutcome;
use crate::http::protocol::conditional::Validators;
use crate::http::protocol::conditional::evaluate;
use crate::http::protocol::conditional::print_date;
use crate::http::protocol::disposition;
use crate::http::protocol::range::ByteRange;
use crate::http::protocol::range::MultipartByteranges;
use crate::http::protocol::range::RangeDecision;
use crate::http::protocol::range::ranges;
use crate::http::protocol::range::unsatisfied_range;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::respond;
use crate::http::session;
use crate::http::session::SiteVisitor;
use crate::media;
use crate::media::BodyPart;
use crate::media::FileAnswer;
use crate::media::FileSelection;
use crate::media::MediaAnswer;
use crate::media::MediaCaller;
use crate::media::RenderPayer;
use crate::media::RenditionAnswer;
use crate::media::Sale;
use crate::media::TextAnswer;
use crate::media::cache_keys::CacheKeys;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::{CALLER_LOOKUP_MAX, MEDIA_PATH_BYTES_MAX, RESOLVED_MAX};
use body::parts_body;
use formats::NewsmlVersion;
use item_redirect::redirect_to_item;
use model::account::AgreementId;
use model::media_url::DocumentExtension;
use model::media_url::MediaPath;
use model::media_url::MediaTarget;
use model::media_url::PictureOperation;
use model::{CropSpec, ItemKey};

/// `/media/…`: GET, HEAD and the CORS preflight.
pub(super) async fn media(State(app): State<AppState>, request: Request) -> Response {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let address =
        edge::client_address(&request, &app.shared.edge.live_settings.get().trusted_proxies);
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let incoming = IncomingRequest { method, uri, headers, address };
            let answer = media_response(&app, incoming).await;
            answer.unwrap_or_else(|error| error_response(&app, incoming, &error))
        }
        Method::OPTIONS => cors::preflight(),
        _ => {
            let message = format!("method {method} is not supported for media");
            let mut response = error_response::build(&Error::new(ErrorKind::Unsupported, message));
            let allow = HeaderValue::from_static("GET, HEAD, OPTIONS");
            response.headers_mut().insert(header::ALLOW, allow);
            response
        }
    };
    // Answers to the session cookie stay closed (contract caching-7).
    if credentials::are_explicit(headers, uri) {
        cors::allow_origins(response.headers_mut());
    }
    // Also on 304 and on errors, or a cache would answer all clients alike.
    if negotiated_format::is_negotiated(path_text(uri)) {
        cache_policy::vary_by_format(response.headers_mut());
    }
    response
}

/// Builds the response to a GET or HEAD that failed.
fn error_response(
    app: &AppState,
    IncomingRequest { uri, headers, .. }: IncomingRequest<'_>,
    error: &Error,
) -> Response {
    let mut response = credentials::refuse(error, headers);
    if error.kind() == ErrorKind::NotFound
        && let Ok(path) = MediaPath::parse(path_text(uri))
    {
        // A CDN may cache a 404 briefly, since the item can be published or restored at any time. Only
        // the response to an anonymous request is cacheable: callers with credentials may see more.
        let keys = CacheKeys::of(path.key(), []);
        let is_own =
            credentials::are_presented(headers, uri) || session::has_session_cookie(app, headers);
        app.shared.edge.surrogate.add_keys_to_missing(response.headers_mut(), &keys, is_own);
    }
    // Scripts may read why a picture is missing.
    cors::allow_origins(response.headers_mut());
    response
}

/// The parts of an HTTP request that a media response depends on.
#[derive(Clone, Copy)]
struct IncomingRequest<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    /// The client's address, if it is known.
    address: Option<IpAddr>,
}

/// A request for media with its authenticated caller.
pub(super) struct MediaRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) caller: MediaCaller<'a>,
    /// The client that a render is charged to under the rate limit.
    pub(super) client: Option<RequestClient>,
    pub(super) now: Timestamp,
}

fn path_text(uri: &Uri) -> &str {
    uri.path().strip_prefix("/media/").unwrap_or_default()
}

async fn media_response(app: &AppState, incoming: IncomingRequest<'_>) -> Result<Response> {
    let IncomingRequest { method, uri, headers, .. } = incoming;
    let text = path_text(uri);
    if text.len() > MEDIA_PATH_BYTES_MAX {
        let message = format!("the path is longer than {MEDIA_PATH_BYTES_MAX} bytes");
        return Err(Error::invalid("path", "path", "format", message));
    }
    let path = MediaPath::parse(text).map_err(|error| {
        Error::invalid("path", error.part(), "format", respond::shorten_input(&error.to_string()))
    })?;
    if let MediaTarget::Item(crop) = path.target()
        && credentials::query_value(uri, "channel").is_some()
    {
        let principal = credentials::principal(app, headers, uri).await?;
        return delivery_response(app, method, uri, path.key(), *crop, principal.as_deref()).await;
    }
    let principal = match find_principal(app, incoming, &path).await {
        Ok(principal) => principal,
        Err(failure) => return unidentified_response(app, incoming, &path, failure).await,
    };
    let refused = match response_for(app, incoming, &path, principal.as_deref()).await {
        // What costs money is never retried with the session, which other sites could use.
        Err(error) if !media::access::needs_purchase(&path) => error,
        outcome => return outcome,
    };
    // An item under embargo does not exist for anonymous callers.
    let is_hidden = refused.kind() == ErrorKind::NotFound;
    if !is_hidden && refused.kind() != ErrorKind::Unauthenticated {
        return Err(refused);
    }
    // The site's own pages embed pictures by URL, so only the session cookie identifies their visitor.
    let Some(visitor) = cookie_principal(app, uri, headers).await? else { return Err(refused) };
    let outcome = response_for(app, incoming, &path, Some(&visitor)).await;
    // The first error stands, so that a hidden item looks like a missing one.
    if is_hidden { outcome.map_err(|_| refused) } else { outcome }
}

/// Finds the caller of a request for media. Open media wait for it only for a moment.
async fn find_principal(
    app: &AppState,
    IncomingRequest { uri, headers, .. }: IncomingRequest<'_>,
    path: &MediaPath,
) -> Result<Option<Arc<Principal>>> {
    let finding = credentials::principal(app, headers, uri);
    if !media::access::is_open(path) {
        return finding.await;
    }
    match tokio::time::timeout(CALLER_LOOKUP_MAX, finding).await {
        Ok(found) => found,
        Err(_) => Err(Error::new(ErrorKind::Timeout, "The credentials cannot be verified now")),
    }
}

/// Responds to a caller whose credentials cannot be looked up, because of `failure`: with what is open to anonymous
/// callers, and with that failure otherwise (contract access-16).
async fn unidentified_response(
    app: &AppState,
    incoming: IncomingRequest<'_>,
    path: &MediaPath,
    failure: Error,
) -> Result<Response> {
    // An item under embargo does not exist for anonymous callers, and may for this one.
    let is_public = media::access::is_open(path)
        && app.shared.media.item(path.key(), None, clock::now()).await.is_ok();
    if !is_public {
        return Err(failure);
    }
    response_for(app, incoming, path, None).await
}

/// Finds the user whose browser session sent the request, unless the request has other credentials.
///
/// Pictures on the site's pages are requested without an `Authorization` header. Other sites could trigger
/// such requests too, so the session counts only for requests that are free of charge and change nothing.
async fn cookie_principal(
    app: &AppState,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Arc<Principal>>> {
    if credentials::are_presented(headers, uri) {
        return Ok(None);
    }
    match SiteVisitor::find(app, headers).await? {
        Some(visitor) => visitor.principal(app).await,
        None => Ok(None),
    }
}

/// Responds to the media path as `principal` may see it.
async fn response_for(
    app: &AppState,
    IncomingRequest { method, uri, headers, address }: IncomingRequest<'_>,
    path: &MediaPath,
    principal: Option<&Principal>,
) -> Result<Response> {
    // Anonymous callers get 401 before any other error.
    let is_bought = principal.is_some() && media::access::needs_purchase(path);
    // An item's URL accepts `agr` for deliveries, so a malformed value is reported without a channel too.
    let accepts_agr = is_bought || matches!(path.target(), MediaTarget::Item(_));
    let agr = if accepts_agr { agreement_parameter(uri)? } else { None };
    let caller = MediaCaller { principal, agr };
    let client = RequestClient::of(principal, address);
    // The item may change while its bytes are obtained; then the path is resolved again.
    for _ in 0..RESOLVED_MAX {
        let request = MediaRequest { method, headers, caller, client, now: clock::now() };
        let answer = resolve_answer(app, uri, path, &request).await?;
        let keys = answer.cache_keys();
        let response = match answer {
            MediaAnswer::Page(key, crop) => {
                Some(redirect_to_item(&app.shared.site.url, &key, crop))
            }
            MediaAnswer::Text(answer) => Some(document_response(app, &request, &answer).await?),
            MediaAnswer::Rendition(answer) => {
                let response = rendition_response(app, &request, &answer).await?;
                response.map(|response| describe_rendition(response, path, &answer))
            }
            MediaAnswer::File(answer) => file_response(app, &request, &answer).await?,
        };
        if let Some(mut response) = response {
            app.shared.edge.surrogate.add_keys(response.headers_mut(), &keys);
            app.shared.edge.crawlers.add(response.headers_mut());
            return Ok(response);
        }
    }
    Err(unstable_item())
}

/// The error for an item that changed during every attempt to serve it.
pub(super) fn unstable_item() -> Error {
    Error::new(ErrorKind::Unavailable, "The item keeps changing; try again")
}

/// Resolves the media path to an answer. For an archive, the `channel` parameter selects its files; for
/// NewsML-G2, `version` selects the version of the standard.
async fn resolve_answer(
    app: &AppState,
    uri: &Uri,
    path: &MediaPath,
    request: &MediaRequest<'_>,
) -> Result<MediaAnswer> {
    let media = &app.shared.media;
    let document = match path.target() {
        MediaTarget::Document(file) => Some(file.extension()),
        MediaTarget::Item(_) | MediaTarget::Pricelist | MediaTarget::Rendition(_) => None,
    };
    let caller = request.caller;
    if document == Some(DocumentExtension::Xml) {
        match newsml_parameter(uri) {
            Ok(None) => {}
            Ok(Some(version)) => {
                return media.resolve_newsml(path, version, caller, request.now).await;
            }
            // A caller who may not read the document learns that first.
            Err(error) => return media.resolve(path, caller, request.now).await.and(Err(error)),
        }
    }
    if document == Some(DocumentExtension::Zip) {
        caller.require_principal()?;
        if let Some(channel) = deliveries::channel_parameter(uri)? {
            let formats =
                app.shared.distribution.deliveries.formats_of_channel(caller, &channel).await?;
            return media
                .archive(path.key(), FileSelection::Formats(&formats, None), caller, request.now)
                .await;
        }
    }
    if negotiated_format::is_negotiated(path_text(uri)) {
        return negotiated_format::resolve(media, path, request).await;
    }
    media.resolve(path, caller, request.now).await
}

/// Adds the headers of a rendition that depend on how its address is written.
fn describe_rendition(
    mut response: Response,
    path: &MediaPath,
    answer: &RenditionAnswer,
) -> Response {
    negotiated_format::limit_caching(&mut response, answer);
    let MediaTarget::Rendition(file) = path.target() else { return response };
    let is_resized =
        file.operations().iter().any(|operation| matches!(operation, PictureOperation::Resize(_)));
    if is_resized {
        // Tells the size that is served where it is not the one that was asked for.
        let size = answer.planned.size;
        let size = format!("{}x{}", size.width, size.height);
        if let Ok(size) = HeaderValue::from_str(&size) {
            response.headers_mut().insert("wirephoto-size", size);
        }
    }
    response
}

/// Triggers a delivery: an item's URL with a `channel` parameter.
///
/// Deliveries always take credentials; anonymous callers get 401 before any other error.
async fn delivery_response(
    app: &AppState,
    method: &Method,
    uri: &Uri,
    item: &ItemKey,
    crop: Option<CropSpec>,
    principal: Option<&Principal>,
) -> Result<Response> {
    MediaCaller { principal, agr: None }.require_principal()?;
    let Some(channel) = deliveries::channel_parameter(uri)? else {
        return Err(Error::internal("a query lost its channel"));
    };
    let caller = MediaCaller { principal, agr: agreement_parameter(uri)? };
    deliveries::trigger(app, method, item, crop, &channel, caller).await
}

/// Serves the Hires of an item that a visitor requested through a form of the site, with its purchase.
pub(super) async fn download(
    app: &AppState,
    path: &MediaPath,
    caller: MediaCaller<'_>,
) -> Result<Response> {
    // The form's own headers, such as a range, do not apply to the file.
    let (method, headers) = (&Method::GET, &HeaderMap::new());
    // Only authenticated visitors reach this point.
    let client = RequestClient::of(caller.principal, None);
    for _ in 0..RESOLVED_MAX {
        let request = MediaRequest { method, headers, caller, client, now: clock::now() };
        let response = match app.shared.media.resolve(path, caller, request.now).await? {
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

/// Reads the query parameter `agr`: the agreement that pays for the purchase.
pub(super) fn agreement_parameter(uri: &Uri) -> Result<Option<AgreementId>> {
    // A number beyond 64 bits saturates, so the range excludes both ends.
    let found = QueryParameters::of(uri)?.integer("agr", i64::MIN + 1..=i64::MAX - 1)?;
    Ok(found.map(AgreementId))
}

/// Reads the query parameter `version`: a version of NewsML-G2.
fn newsml_parameter(uri: &Uri) -> Result<Option<NewsmlVersion>> {
    // Other parameters of a document have no meaning, and so no mistakes.
    if credentials::query_value(uri, "version").is_none() {
        return Ok(None);
    }
    QueryParameters::of(uri)?.variant("version")
}

/// Sets the headers that 200, 206 and 304 share.
fn set_headers(app: &AppState, headers: &mut HeaderMap, validators: &Validators, open: bool) {
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
}

fn validators(etag: &str, modified: Option<Timestamp>) -> Result<Validators> {
    let last_modified = modified.and_then(|time| u64::try_from(time.as_second()).ok());
    let etag = ETag::new(etag).ok_or_else(|| Error::internal("an entity tag is not ASCII"))?;
    Ok(Validators { etag, last_modified })
}

/// Builds a response without a body for a request that its preconditions decide.
fn bodyless_response(
    app: &AppState,
    status: StatusCode,
    validators: &Validators,
    open: bool,
) -> Response {
    let mut response = respond::with_header_capacity(Body::empty());
    *response.status_mut() = status;
    set_headers(app, response.headers_mut(), validators, open);
    forbid_caching_errors(&mut response);
    response
}

/// Makes 412 and 416 uncacheable: they answer the preconditions of one client.
fn forbid_caching_errors(response: &mut Response) {
    if response.status().is_client_error() {
        CachePolicy::NoStore.set(response.headers_mut());
    }
}

/// Serves a JSON document, a text or a list of licences, compressed for clients that accept it.
async fn document_response(
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
    set_headers(app, response.headers_mut(), &validators, answer.open);
    forbid_caching_errors(&mut response);
    Ok(response)
}

/// Serves a file from the store, or an archive; `None` when an item changed during its assembly.
///
/// Files are never open: graphics, videos and archives all take credentials.
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
    let timed_out =
        |_| Error::new(ErrorKind::Timeout, "The file took too long to assemble; try again");
    let body = obtained.map_err(timed_out)??;
    check_extents(app, &body).await?;
    // Right before the purchase: a withdrawn item is neither delivered nor billed (contract
    // items-23).
    if !media.are_current(answer.source_items()).await? {
        return Ok(None);
    }
    let decision = purchase_ranges(app, request, &body, &validators, &answer.sale).await?;
    let kind = HeaderValue::from_static(answer.mime);
    let mut response = range_response(app, &body, &kind, &validators, &decision);
    set_headers(app, response.headers_mut(), &validators, false);
    forbid_caching_errors(&mut response);
    set_file_name(&mut response, answer.file_name.as_deref());
    Ok(Some(response))
}

/// Sets the name under which a browser saves the response.
fn set_file_name(response: &mut Response, name: Option<&str>) {
    if let Some(value) = name.and_then(disposition::attachment) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
}

/// The response that the request's preconditions already determine, if any.
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
    Some(bodyless_response(app, status, validators, open))
}

/// The response that needs no bytes, if any.
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
        app.shared.media.purchase(sale, request.caller, request.now).await?;
    }
    Ok(response)
}

/// Verifies the originals behind the stored parts of `body`, before anything is sent.
async fn check_extents(app: &AppState, body: &media::RenditionBody) -> Result<()> {
    if body.parts().iter().any(|part| matches!(part, BodyPart::Store(_))) {
        // The verification blocks on the disk, so it does not run on an async thread.
        let (media, checked_body) = (app.shared.media.clone(), body.clone());
        let checked = tokio::task::spawn_blocking(move || media.check_extents(&checked_body));
        checked.await.map_err(Error::internal)??;
    }
    Ok(())
}

/// Decides which ranges of `body` are sent, and records the purchase before they are.
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
        app.shared.media.purchase(sale, request.caller, request.now).await?;
    }
    Ok(decision)
}

/// Serves a rendition; `None` when the item changed during the wait for it.
///
/// A response sent after the CDN purge of a withdrawn item would stay in the CDN until it expires.
async fn rendition_response(
    app: &AppState,
    request: &MediaRequest<'_>,
    answer: &RenditionAnswer,
) -> Result<Option<Response>> {
    let validators = validators(&answer.etag, answer.modified)?;
    let early = early_response(app, request, &validators, answer.open, &answer.sale).await?;
    if let Some(response) = early {
        return Ok(Some(response));
    }
    let obtained = match app.shared.media.find_cached(answer) {
        // A cache hit is not charged to the client's share of the renders.
        Some(obtained) => obtained,
        None => {
            let payer = RenderPayer::of(request.client);
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
    set_headers(app, response.headers_mut(), &validators, answer.open);
    forbid_caching_errors(&mut response);
    set_file_name(&mut response, answer.file_name.as_deref());
    // The operator can hide how renditions are made (contract media-27).
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
    let send = |parts: Vec<BodyPart>| parts_body(&app.shared.media, parts);
    let mut response = match decision {
        RangeDecision::Full => {
            let mut response =
                respond::typed(StatusCode::OK, kind.clone(), send(body.slice(0..length)));
            set_length(response.headers_mut(), length);
            response
        }
        RangeDecision::Single(range) => {
            let sent = send(body.slice(byte_offsets(*range)));
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
            let mut response = respond::typed(StatusCode::PARTIAL_CONTENT, kind, send(parts));
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

fn byte_offsets(range: ByteRange) -> std::ops::Range<u64> {
    // A range of HTTP includes its last byte.
    range.first()..range.last() + 1
}

fn set_length(headers: &mut HeaderMap, length: u64) {
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
}
