//! The HTTP layer: the router, one file per part of the contract, and the pages of the web site.
//!
//! No layer below this one knows a status code or a header. Handlers are thin: they parse the request, call a
//! service and build the response.

pub mod api;
mod api_addresses;
pub(crate) mod cache_policy;
mod compression_policy;
mod credentials;
mod edge;
pub mod error_reference;
mod error_response;
pub mod form;
mod heading_anchor;
mod health;
mod help_link;
pub mod listener;
mod media;
mod oauth;
pub mod openapi;
pub mod protocol;
mod security;
mod session;
pub mod site;
mod state;
mod trailing_slash;

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Ready, ready};
use tower::{Service, util::MapRequest};

use crate::http::api::binding::BoundEndpoints;
use crate::runtime::config::NodeRole;
use crate::runtime::error::{Error, ErrorKind};

use media::response_cache::{self, CacheableRequest};

pub use media::crawlers::CrawlerHeaders;
pub use media::response_cache::ResponseCache;
pub use media::surrogate::SurrogateHeaders;
pub use protocol::compression::Compressor;
use site::ApiRouter;
pub use site::api_docs::ApiDocs;
pub use site::concept_names::ConceptNames;
pub use site::page_renderer::PageRenderer;
pub use state::{
    AccessState, AppState, ArchiveState, DistributionState, EdgeState, ItemCount, LiveSettings,
    ProcessState, SharedState, SiteState,
};

/// A router that handles a path of an API with a trailing slash like the same path without it.
pub type TrimmingRouter = MapRequest<Router, fn(Request) -> Request>;

/// The router, and in front of it the responses to repeated requests for media.
#[derive(Clone)]
pub struct WebService {
    app: AppState,
    router: TrimmingRouter,
}

impl Service<Request> for WebService {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<
        Ready<Result<Response, Infallible>>,
        BoxFuture<'static, Result<Response, Infallible>>,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if let Some(response) = response_cache::respond(&self.app, &request) {
            return Either::Left(ready(Ok(response)));
        }
        let cacheable = CacheableRequest::find(&self.app, &request);
        let app = self.app.clone();
        let responding = self.router.call(request);
        let storing = async move {
            let mut response = responding.await?;
            if let Some(cacheable) = cacheable {
                cacheable.store(&app, &mut response);
            }
            Ok(response)
        };
        Either::Right(storing.boxed())
    }
}

/// Builds the service with the routes that a process of this role serves.
pub fn service(app: AppState) -> WebService {
    let router = match app.shared.process.node.role() {
        NodeRole::All | NodeRole::Web => full_router(app.clone()),
        NodeRole::Worker => {
            let routes = with_compression(&app, operator_routes(&app));
            partial_router(app.clone(), routes)
        }
        NodeRole::Edge => {
            let routes = with_compression(&app, operator_routes(&app)).merge(media_routes());
            partial_router(app.clone(), routes)
        }
    };
    WebService { app, router: MapRequest::new(router, trailing_slash::trim_request) }
}

/// Adds compression for clients that accept it to `routes`.
fn with_compression(app: &AppState, routes: Router<AppState>) -> Router<AppState> {
    routes.layer(middleware::from_fn_with_state(app.clone(), compression_policy::compress_allowed))
}

/// Builds the router of a process that serves only some of the routes.
fn partial_router(app: AppState, routes: Router<AppState>) -> Router {
    routes
        .fallback(not_on_this_node)
        .method_not_allowed_fallback(method_not_allowed)
        // Around the fallbacks, so that scripts can read their errors, too (contract api-12).
        .layer(middleware::from_fn(api_addresses::allow_scripts))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Builds the router with all routes.
fn full_router(app: AppState) -> Router {
    let apis = api_routes(&app);
    // Pages call the APIs through a router of their own, without the layers around an external request.
    let internal_apis = ApiRouter(apis.clone().merge(media_routes()).with_state(app.clone()));
    let pages = page_routes().layer(middleware::from_fn_with_state(app.clone(), site::localize));
    // Layers that are added later are outer, so `observe` sees every request.
    with_compression(&app, apis.merge(pages.layer(Extension(internal_apis))))
        .merge(media_routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(api_addresses::allow_scripts))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Builds the service of the separate listener for operators' tools.
pub fn admin_service(app: AppState) -> TrimmingRouter {
    let routes = with_compression(&app, tool_routes());
    MapRequest::new(partial_router(app, routes), trailing_slash::trim_request)
}

/// Routes for operators' tools on the public listener.
fn operator_routes(app: &AppState) -> Router<AppState> {
    // With an admin listener, `/metrics` must not be reachable on the public one.
    if app.shared.process.has_admin_listener {
        return health::endpoints().into_router();
    }
    tool_routes()
}

/// Routes for operators' tools: health checks, and the metrics that Prometheus scrapes.
fn tool_routes() -> Router<AppState> {
    health::endpoints().merge(health::metrics_endpoints()).into_router()
}

/// The endpoints that `crates/api` declares, whichever nodes and listeners serve them.
fn declared_endpoints() -> BoundEndpoints {
    let tools = health::endpoints().merge(health::metrics_endpoints());
    api::endpoints().merge(oauth::endpoints()).merge(openapi::endpoints()).merge(tools)
}

fn media_routes() -> Router<AppState> {
    // The wildcard does not match the empty path, which is a malformed media URL, not an unknown page.
    Router::new().route("/media/{*path}", any(media::media)).route("/media/", any(media::media))
}

/// All routes for programs, except media.
fn api_routes(app: &AppState) -> Router<AppState> {
    operator_routes(app)
        .route("/o/oauth2/token", post(oauth::token))
        .route("/o/oauth2/revoke", post(oauth::revoke))
        .route("/o/oauth2/keys", get(oauth::keys))
        .route("/o/v2/user", get(oauth::user).post(oauth::user))
        .route("/.well-known/openid-configuration", get(oauth::discovery))
        .route("/.well-known/oauth-authorization-server", get(oauth::discovery))
        .route("/o/.well-known/openid-configuration", get(oauth::discovery))
        .merge(api::endpoints().into_router())
        .merge(openapi::endpoints().into_router())
        .merge(api::uploads::routes())
}

/// Pages that people open in a browser.
fn page_routes() -> Router<AppState> {
    Router::new()
        .route("/assets/{*path}", get(site::assets::asset))
        .route("/favicon.ico", get(site::assets::favicon))
        .route(
            "/o/oauth2/auth",
            get(site::authorization::authorize).post(site::authorization::authorize),
        )
        .route("/o/login", get(site::login::show).post(site::login::submit))
        .route("/o/password", get(site::passwords::forgotten).post(site::passwords::ask))
        .route("/o/password/{token}", get(site::passwords::show_link).post(site::passwords::set))
        .route("/o/consent", post(site::authorization::submit_consent))
        .route("/o/logout", post(site::login::submit_logout))
        .merge(site::routes())
        .merge(site::unsubscribe::routes())
        .merge(site::mail_consent::routes())
}

async fn observe(State(app): State<AppState>, request: Request, next: Next) -> Response {
    edge::observe(&app, request, next).await
}

async fn not_found(State(app): State<AppState>, request: Request) -> Response {
    // A page with a trailing slash is not missing: the browser gets the canonical address.
    if let Some(redirect) = trailing_slash::redirect_to_page(request.uri()) {
        return redirect;
    }
    let path = request.uri().path();
    let error = Error::new(
        ErrorKind::NotFound,
        format!("no address {}", protocol::respond::shorten_input(path)),
    );
    if accepts_html(&request) {
        return site::ErrorPageRequest::new(&request).into_error_page(app, error).await;
    }
    error_response::build(&error)
}

/// Returns whether the client is a browser that shows the response as a page: programs do not list `text/html`.
fn accepts_html(request: &Request) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter();
    let mut lines = accepted.filter_map(|line| line.to_str().ok());
    lines.any(|line| line.split(',').any(|kind| kind.trim().starts_with("text/html")))
}

async fn not_on_this_node(State(app): State<AppState>, request: Request) -> Response {
    let path = protocol::respond::shorten_input(request.uri().path());
    let what = match app.shared.process.node.role() {
        NodeRole::Edge => "only serves media and never writes",
        NodeRole::All | NodeRole::Web | NodeRole::Worker => "only runs background jobs",
    };
    let message = format!("no address {path} at this node, which {what}; use another node");
    error_response::build(&Error::new(ErrorKind::NotFound, message))
}

async fn method_not_allowed(State(app): State<AppState>, request: Request) -> Response {
    let message = format!("method {} is not supported here", request.method());
    let error = Error::new(ErrorKind::Unsupported, message);
    let serves_pages = match app.shared.process.node.role() {
        NodeRole::All | NodeRole::Web => true,
        NodeRole::Worker | NodeRole::Edge => false,
    };
    if serves_pages && accepts_html(&request) {
        return site::ErrorPageRequest::new(&request).into_error_page(app, error).await;
    }
    error_response::build(&error)
}
