//! Caches the responses to open renditions in memory, and answers repeated requests without the router.
//!
//! A first request passes through the router, whose response is stored under the path of its URL. A later request for
//! the path gets the same headers and the bytes in memory, if nothing that they depend on has changed: the version and
//! the visibility of the item, and the settings. Everything else goes through the router: other methods, parameters,
//! credentials, ranges, and preconditions that fail.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use moka::sync::Cache;

use crate::http::edge::{REQUEST_ID, RenderSummary, RequestRecord};
use crate::http::media::negotiated_format;
use crate::http::protocol::conditional::{PreconditionOutcome, Validators, evaluate};
use crate::http::protocol::host;
use crate::http::{AppState, LiveSettings};
use crate::media::{PublicRendition, RenditionSource};
use crate::runtime::clock;

/// The route of media URLs, as the router names it.
const MEDIA_ROUTE: &str = "/media/{*path}";
/// Responses that each of the two caches holds; one takes about 3 kB.
const RESPONSES_MAX: u64 = 5_000;
/// Headers of requests whose response differs from a cached one, or depends on the caller.
const OTHER_RESPONSES: [HeaderName; 3] = [header::AUTHORIZATION, header::COOKIE, header::RANGE];

/// The responses to open renditions, by the path of their URL.
#[derive(Clone)]
pub struct ResponseCache {
    /// Responses with the whole file, without its bytes.
    whole: Cache<String, Arc<CachedResponse>>,
    /// Responses that the client's copy is current.
    not_modified: Cache<String, Arc<CachedResponse>>,
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self { whole: Cache::new(RESPONSES_MAX), not_modified: Cache::new(RESPONSES_MAX) }
    }
}

/// The rendition and the validators of a response that may be cached. The handler adds them as an extension.
#[derive(Clone)]
pub(crate) struct CacheableResponse {
    pub(crate) rendition: PublicRendition,
    pub(crate) validators: Validators,
}

struct CachedResponse {
    source: CacheableResponse,
    /// The settings with which the headers were built.
    settings: Arc<LiveSettings>,
    headers: HeaderMap,
}

/// A request whose response may be cached.
pub(crate) struct CacheableRequest {
    path: String,
    settings: Arc<LiveSettings>,
}

impl CacheableRequest {
    /// Returns the request if its response depends on nothing but its path, the item, the settings and preconditions.
    pub(crate) fn find(app: &AppState, request: &Request) -> Option<Self> {
        let settings = app.shared.edge.live_settings.get();
        let is_cacheable = is_cacheable(app, request);
        is_cacheable.then(|| Self { path: request.uri().path().to_owned(), settings })
    }

    /// Stores the response to the request, if its handler permits it.
    pub(crate) fn store(self, app: &AppState, response: &mut Response) {
        let responses = &app.shared.edge.responses;
        let cache = match response.status() {
            StatusCode::OK => &responses.whole,
            // Preconditions are evaluated with the validators of the whole file.
            StatusCode::NOT_MODIFIED if responses.whole.contains_key(&self.path) => {
                &responses.not_modified
            }
            _ => return,
        };
        let Some(source) = response.extensions_mut().remove::<CacheableResponse>() else {
            return;
        };
        let mut headers = response.headers().clone();
        headers.remove(REQUEST_ID);
        let known = CachedResponse { source, settings: self.settings, headers };
        cache.insert(self.path, Arc::new(known));
    }
}

/// Returns the response to a request that is like an earlier one; `None` for the router to respond.
pub(crate) fn respond(app: &AppState, request: &Request) -> Option<Response> {
    if !is_cacheable(app, request) {
        return None;
    }
    let responses = &app.shared.edge.responses;
    let path = request.uri().path();
    let mut record = RequestRecord::begin(request);
    let whole = responses.whole.get(path).filter(|whole| whole.has_current_settings(app))?;
    let validators = &whole.source.validators;
    let mut response = match evaluate(request.method(), request.headers(), validators) {
        PreconditionOutcome::Proceed => whole.with_file(app)?,
        PreconditionOutcome::NotModified => {
            let known = responses.not_modified.get(path)?;
            // One of both may be the response of an earlier version.
            let is_same = known.source.validators == *validators;
            known.without_file(app).filter(|_| is_same && known.has_current_settings(app))?
        }
        PreconditionOutcome::Failed => return None,
    };
    record.route = MEDIA_ROUTE.into();
    record.find_client(app, request);
    record.end(app, &mut response);
    Some(response)
}

impl CachedResponse {
    /// Returns whether the settings are those with which the headers were built.
    fn has_current_settings(&self, app: &AppState) -> bool {
        Arc::ptr_eq(&self.settings, &app.shared.edge.live_settings.get())
    }

    fn with_file(&self, app: &AppState) -> Option<Response> {
        let rendition = &self.source.rendition;
        let bytes = app.shared.media.find_public(rendition, clock::now())?;
        let mut response = self.with_body(Body::from(bytes));
        response.extensions_mut().insert(RenderSummary {
            cache: Some(RenditionSource::Memory.as_str()),
            operation: Some(rendition.operation()),
            render_ms: Some(0.0),
            ..RenderSummary::default()
        });
        Some(response)
    }

    fn without_file(&self, app: &AppState) -> Option<Response> {
        if !app.shared.media.is_public(&self.source.rendition, clock::now()) {
            return None;
        }
        let mut response = self.with_body(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        Some(response)
    }

    fn with_body(&self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.headers_mut() = self.headers.clone();
        response
    }
}

/// Returns whether the response depends on nothing but the path, the item, the settings and preconditions.
fn is_cacheable(app: &AppState, request: &Request) -> bool {
    let uri = request.uri();
    let headers = request.headers();
    request.method() == Method::GET
        && uri.path().starts_with("/media/")
        && uri.query().is_none()
        && !negotiated_format::is_negotiated(uri.path())
        && !OTHER_RESPONSES.iter().any(|name| headers.contains_key(name))
        && host::check(request).is_ok()
        // Traces show the work of handlers.
        && app.shared.edge.traces.is_none()
}
