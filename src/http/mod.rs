//! The HTTP edge: router, one file per part of the contract, pages.
//!
//! Nothing below this unit knows a status code or a header. Handlers are thin: parse, ask a
//! section, answer.

pub mod api;
mod health;
pub mod listener;
mod media;
mod oauth;
pub mod openapi;
pub mod protocol;
pub mod site;
mod state;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::header,
    middleware::{self, Next},
    response::Response,
    routing::{any, get, post},
};
use tower::util::MapRequest;

use crate::runtime::config::NodeRole;
use crate::runtime::error::Error;
use crate::runtime::error::ErrorKind;

pub use protocol::compression::Compressor;
pub use protocol::surrogate::SurrogateHeaders;
use site::ApiRouter;
pub use site::ConceptNames;
pub use site::SessionActivity;
pub use site::pages::PageRenderer;
pub use state::{
    AccessState, AppState, ArchiveState, DistributionState, EdgeState, LiveSettings, ProcessState,
    SharedState, SiteState,
};

/// A router that takes addresses with a slash at their end for those without it.
pub type WebService = MapRequest<Router, fn(Request) -> Request>;

/// The service over the addresses that a process of this role has.
pub fn service(app: AppState) -> WebService {
    let router = match app.shared.process.node.role() {
        NodeRole::All | NodeRole::Web => full_router(app),
        NodeRole::Worker => {
            let routes = with_compression(&app, operator_routes(&app));
            partial_router(app, routes)
        }
        NodeRole::Edge => {
            let routes = with_compression(&app, operator_routes(&app)).merge(media_routes());
            partial_router(app, routes)
        }
    };
    MapRequest::new(router, protocol::trailing_slash::trim_request)
}

/// The routes with their answers compressed for clients that accept it.
///
/// Those of pictures are left out: a cached one must not pass through anything that it has no use for.
fn with_compression(app: &AppState, routes: Router<AppState>) -> Router<AppState> {
    routes.layer(middleware::from_fn_with_state(
        app.clone(),
        protocol::compression::compress_response,
    ))
}

/// The router of a process that leaves most addresses to others.
fn partial_router(app: AppState, routes: Router<AppState>) -> Router {
    routes
        .fallback(not_on_this_node)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(protocol::cors::allow_cross_origin))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// The router over all addresses.
fn full_router(app: AppState) -> Router {
    let apis = api_routes(&app);
    // Pages call the APIs by a router of their own, without what stands around every request.
    let called = ApiRouter(apis.clone().merge(media_routes()).with_state(app.clone()));
    let pages = page_routes().layer(middleware::from_fn_with_state(app.clone(), site::localize));
    with_compression(&app, apis.merge(pages.layer(Extension(called))))
        .merge(media_routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(protocol::cors::allow_cross_origin))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// The service of the listener for operators' tools alone.
pub fn admin_service(app: AppState) -> WebService {
    let routes = with_compression(&app, health_routes().merge(metrics_routes()));
    MapRequest::new(partial_router(app, routes), protocol::trailing_slash::trim_request)
}

/// What operators' tools call at the listener for everybody.
fn operator_routes(app: &AppState) -> Router<AppState> {
    match app.shared.process.has_admin_listener {
        true => health_routes(),
        false => health_routes().merge(metrics_routes()),
    }
}

/// What balancers ask.
fn health_routes() -> Router<AppState> {
    Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/health/serving", get(health::serving))
        .route("/health/search", get(health::search))
}

/// What monitoring collects.
fn metrics_routes() -> Router<AppState> {
    Router::new().route("/metrics", get(health::metrics))
}

/// Media.
fn media_routes() -> Router<AppState> {
    Router::new().route("/media/{*path}", any(media::media)).route("/media/", any(media::media))
}

/// What programs call besides media.
fn api_routes(app: &AppState) -> Router<AppState> {
    operator_routes(app)
        .route("/o/oauth2/token", post(oauth::token))
        .route("/o/oauth2/revoke", post(oauth::revoke))
        .route("/o/oauth2/keys", get(oauth::keys))
        .route("/o/v2/user", get(oauth::user).post(oauth::user))
        .route("/.well-known/openid-configuration", get(oauth::discovery))
        .route("/.well-known/oauth-authorization-server", get(oauth::discovery))
        .route("/o/.well-known/openid-configuration", get(oauth::discovery))
        .merge(api::content::routes())
        .merge(openapi::routes())
        .merge(api::collections::routes())
        .merge(api::user::routes())
        .merge(api::keys::routes())
        .merge(api::logins::routes())
        .merge(api::channels::routes())
        .merge(api::orders::routes())
        .merge(api::deliveries::routes())
        .merge(api::ingest::routes())
}

/// What people look at in a browser.
fn page_routes() -> Router<AppState> {
    Router::new()
        .route("/assets/{*path}", get(site::assets::asset))
        .route("/favicon.ico", get(site::assets::favicon))
        .route("/o/oauth2/auth", get(oauth::authorize).post(oauth::authorize))
        .route("/o/login", get(site::login::show).post(site::login::submit))
        .route("/o/password", get(site::passwords::forgotten).post(site::passwords::ask))
        .route("/o/password/{token}", get(site::passwords::show_link).post(site::passwords::set))
        .route("/o/consent", post(oauth::submit_consent))
        .route("/o/logout", post(site::login::submit_logout))
        .merge(site::routes())
        .merge(api::unsubscribe::routes())
        .merge(site::mail_consent::routes())
}

async fn observe(State(app): State<AppState>, request: Request, next: Next) -> Response {
    protocol::edge::observe(&app, request, next).await
}

async fn not_found(State(app): State<AppState>, request: Request) -> Response {
    if let Some(redirect) = protocol::trailing_slash::redirect_to_page(request.uri()) {
        return redirect;
    }
    let path = request.uri().path();
    let error = Error::new(
        ErrorKind::NotFound,
        format!("no address {}", protocol::respond::shorten(path)),
    );
    match accepts_html(&request) {
        true => site::ErrorPageRequest::of(&request).into_error_page(app, error).await,
        false => protocol::respond::error(&error),
    }
}

/// Whether a browser shows the answer as a page: programs do not name HTML.
fn accepts_html(request: &Request) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|line| line.to_str().ok());
    accepted.any(|line| line.split(',').any(|one| one.trim().starts_with("text/html")))
}

async fn not_on_this_node(State(app): State<AppState>, request: Request) -> Response {
    let path = protocol::respond::shorten(request.uri().path());
    let what = match app.shared.process.node.role() {
        NodeRole::Edge => "only reads and serves media alone",
        NodeRole::All | NodeRole::Web | NodeRole::Worker => "does the work beside requests alone",
    };
    let message = format!("no address {path} at this node, which {what}; ask another one");
    protocol::respond::error(&Error::new(ErrorKind::NotFound, message))
}

async fn method_not_allowed(State(app): State<AppState>, request: Request) -> Response {
    let message = format!("method {} is not supported here", request.method());
    let error = Error::new(ErrorKind::Unsupported, message);
    let serves_pages = match app.shared.process.node.role() {
        NodeRole::All | NodeRole::Web => true,
        NodeRole::Worker | NodeRole::Edge => false,
    };
    match serves_pages && accepts_html(&request) {
        true => site::ErrorPageRequest::of(&request).into_error_page(app, error).await,
        false => protocol::respond::error(&error),
    }
}
