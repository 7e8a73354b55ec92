//! Media URLs over HTTP: methods, conditional requests, ranges and caching.

pub(crate) mod archives;
mod cors;
pub(crate) mod crawlers;
pub(crate) mod deliveries;
mod image_negotiation;
mod item_redirect;
mod negotiated_format;
mod plain_spelling;
mod request;
pub(crate) mod response_cache;
mod responses;
pub(crate) mod surrogate;
mod timing;

use std::{net::IpAddr, sync::Arc};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::Response;

use crate::access::auth::Principal;
use crate::http::protocol::respond;
use crate::http::session::SiteVisitor;
use crate::http::{AppState, cache_policy, credentials, edge, error_response, session};
use crate::media::cache_keys::CacheKeys;
use crate::media::{self, FileSelection, MediaAnswer, MediaCaller, RenditionAnswer};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::RESOLVED_MAX;
use item_redirect::redirect_to_item;
use model::media_url::{DocumentExtension, MediaPath, MediaTarget, PictureOperation};
use model::{CropSpec, ItemKey};
use plain_spelling::redirect_to_plain;
use request::{MediaRequest, agreement_parameter, newsml_parameter};
use responses::{document_response, file_response, rendition_response, unstable_item};

pub(super) use responses::download;

/// Bytes of a media URL's path. The longest legal one is about 250.
const MEDIA_PATH_BYTES_MAX: usize = 1024;
/// Time that a request for open media waits for its caller to be looked up; then it is answered as an anonymous
/// one. A database that hangs would hold it for a minute.
const CALLER_LOOKUP_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// Handles `/media/…`: GET, HEAD and the CORS preflight.
pub(super) async fn media(State(app): State<AppState>, request: Request) -> Response {
    let method = request.method();
    let uri = request.uri();
    let headers = request.headers();
    let address = edge::client_address(&app, &request);
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let incoming = IncomingRequest { method, uri, headers, address };
            let answer = media_response(&app, incoming).await;
            answer.unwrap_or_else(|error| failure_response(&app, incoming, &error))
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
    // Scripts of other sites may not read responses that only the session cookie permits (contract caching-7).
    if credentials::are_explicit(headers, uri) {
        cors::allow_origins(response.headers_mut());
    }
    // 304 and errors need `Vary` too, or a cache would send the same response to all clients.
    if negotiated_format::is_negotiated(path_text(uri)) {
        cache_policy::vary_by_format(response.headers_mut());
    }
    response
}

/// Builds the response to a GET or HEAD that failed.
fn failure_response(
    app: &AppState,
    IncomingRequest { uri, headers, .. }: IncomingRequest<'_>,
    error: &Error,
) -> Response {
    let mut response = credentials::refuse(error, headers);
    if error.kind() == ErrorKind::NotFound
        && let Ok(path) = MediaPath::parse(path_text(uri))
    {
        // A CDN may cache a 404 only briefly, because the item can be published or restored at any time. Only the
        // response to an anonymous request is cacheable: callers with credentials may see more.
        let keys = CacheKeys::new(path.key(), []);
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

fn path_text(uri: &Uri) -> &str {
    uri.path().strip_prefix("/media/").unwrap_or_default()
}

async fn media_response(app: &AppState, incoming: IncomingRequest<'_>) -> Result<Response> {
    let IncomingRequest { method, uri, headers, .. } = incoming;
    let text = path_text(uri);
    if let Some(redirect) = redirect_to_plain(text, uri.query()) {
        return Ok(redirect);
    }
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
        // A request that costs money is never retried with the session cookie: other sites could trigger it.
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
    // The first error is returned, so that a hidden item looks like a missing one.
    if is_hidden { outcome.map_err(|_| refused) } else { outcome }
}

/// Finds the caller of a request for media. A request for open media waits at most [`CALLER_LOOKUP_MAX`] for it.
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

/// Responds to a caller whose credentials cannot be looked up because of `failure`.
///
/// Serves media that anonymous callers may see, and fails with `failure` for all other media (contract access-16).
async fn unidentified_response(
    app: &AppState,
    incoming: IncomingRequest<'_>,
    path: &MediaPath,
    failure: Error,
) -> Result<Response> {
    // An item under embargo does not exist for anonymous callers, but this caller may have access to it.
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

/// Responds to the media path with the content that `principal` may see.
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
    let client = RequestClient::for_request(principal, address);
    // The item may change while its bytes are obtained; then the path is resolved again.
    for _ in 0..RESOLVED_MAX {
        let caller = MediaCaller { principal, agr, now: clock::now() };
        let request = MediaRequest { method, headers, caller, client };
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
        MediaTarget::Document(file) => Some(file.extension),
        MediaTarget::Item(_) | MediaTarget::Pricelist | MediaTarget::Rendition(_) => None,
    };
    let caller = request.caller;
    if document == Some(DocumentExtension::Xml) {
        match newsml_parameter(uri) {
            Ok(None) => {}
            Ok(Some(version)) => {
                return media.resolve_newsml(path, version, caller).await;
            }
            // The access error comes first: a caller who may not read the document learns nothing else.
            Err(error) => return media.resolve(path, caller).await.and(Err(error)),
        }
    }
    if document == Some(DocumentExtension::Zip) {
        caller.require_principal()?;
        if let Some(channel) = deliveries::channel_parameter(uri)? {
            let formats =
                app.shared.distribution.deliveries.formats_of_channel(caller, &channel).await?;
            return media
                .archive(path.key(), FileSelection::Formats(&formats, None), caller)
                .await;
        }
    }
    if negotiated_format::is_negotiated(path_text(uri)) {
        return negotiated_format::resolve(media, path, request).await;
    }
    media.resolve(path, caller).await
}

/// Adds the headers of a rendition that depend on the form of its address.
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
        // Reports the served size, which may differ from the requested one.
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
/// Deliveries always need credentials; anonymous callers get 401 before any other error.
async fn delivery_response(
    app: &AppState,
    method: &Method,
    uri: &Uri,
    item: &ItemKey,
    crop: Option<CropSpec>,
    principal: Option<&Principal>,
) -> Result<Response> {
    let caller = MediaCaller { principal, agr: None, now: clock::now() };
    caller.require_principal()?;
    let Some(channel) = deliveries::channel_parameter(uri)? else {
        return Err(Error::internal("a query lost its channel"));
    };
    let caller = MediaCaller { agr: agreement_parameter(uri)?, ..caller };
    deliveries::trigger(app, method, item, crop, &channel, caller).await
}
