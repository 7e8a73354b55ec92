//! The HTTP edge: router, one file per part of the contract, pages.
//!
//! Nothing below this unit knows a status code or a header. Handlers are thin: parse, ask a
//! section, answer.

mod api;
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

use crate::runtime::config::Role;
use crate::runtime::error::Error;
use crate::runtime::error::Kind;

pub use protocol::compression::Compressor;
pub use protocol::surrogate::Surrogate;
pub use site::Activity;
use site::Apis;
pub use site::ConceptNames;
pub use site::pages::Pages;
pub use state::{
    AccessState, App, ArchiveState, DistributionState, EdgeState, ProcessState, Shared, SiteState,
    Tuned,
};

/// A router that takes addresses with a slash at their end for those without it.
pub type WebService = MapRequest<Router, fn(Request) -> Request>;

/// The service over the addresses that a process of this role has.
pub fn service(app: App) -> WebService {
    let router = match app.shared.process.node.role() {
        Role::All | Role::Web => whole(app),
        Role::Worker => {
            let routes = compressed(&app, tools(&app));
            part(app, routes)
        }
        Role::Edge => {
            let routes = compressed(&app, tools(&app)).merge(pictures());
            part(app, routes)
        }
    };
    MapRequest::new(router, protocol::slash::trim)
}

/// The routes with their answers compressed for clients that accept it.
///
/// Those of pictures are left out: a cached one must not pass through anything that it has no use for.
fn compressed(app: &App, routes: Router<App>) -> Router<App> {
    routes.layer(middleware::from_fn_with_state(app.clone(), protocol::compression::around))
}

/// The router of a process that leaves most addresses to others.
fn part(app: App, routes: Router<App>) -> Router {
    routes
        .fallback(elsewhere)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(protocol::cors::allow))
        .layer(middleware::from_fn_with_state(app.clone(), watch))
        .with_state(app)
}

/// The router over all addresses.
fn whole(app: App) -> Router {
    let apis = apis(&app);
    // Pages call the APIs by a router of their own, without what stands around every request.
    let called = Apis(apis.clone().merge(pictures()).with_state(app.clone()));
    let pages = pages().layer(middleware::from_fn_with_state(app.clone(), site::dress));
    compressed(&app, apis.merge(pages.layer(Extension(called))))
        .merge(pictures())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn(protocol::cors::allow))
        .layer(middleware::from_fn_with_state(app.clone(), watch))
        .with_state(app)
}

/// The service of the listener for operators' tools alone.
pub fn admin_service(app: App) -> WebService {
    let routes = compressed(&app, health().merge(measures()));
    MapRequest::new(part(app, routes), protocol::slash::trim)
}

/// What operators' tools call at the listener for everybody.
fn tools(app: &App) -> Router<App> {
    match app.shared.process.has_admin_listener {
        true => health(),
        false => health().merge(measures()),
    }
}

/// What balancers ask.
fn health() -> Router<App> {
    Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/health/serving", get(health::serving))
        .route("/health/search", get(health::search))
}

/// What monitoring collects.
fn measures() -> Router<App> {
    Router::new().route("/metrics", get(health::metrics))
}

/// Media.
fn pictures() -> Router<App> {
    Router::new().route("/media/{*path}", any(media::media)).route("/media/", any(media::media))
}

/// What programs call besides media.
fn apis(app: &App) -> Router<App> {
    tools(app)
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
fn pages() -> Router<App> {
    Router::new()
        .route("/assets/{*path}", get(site::assets::asset))
        .route("/favicon.ico", get(site::assets::favicon))
        .route("/o/oauth2/auth", get(oauth::authorize).post(oauth::authorize))
        .route("/o/login", get(site::login::show).post(site::login::submit))
        .route("/o/password", get(site::passwords::forgotten).post(site::passwords::ask))
        .route("/o/password/{token}", get(site::passwords::open).post(site::passwords::set))
        .route("/o/consent", post(oauth::decide))
        .route("/o/logout", post(site::login::leave))
        .merge(site::routes())
        .merge(api::unsubscribe::routes())
        .merge(site::mails::routes())
}

async fn watch(State(app): State<App>, request: Request, next: Next) -> Response {
    protocol::edge::watch(&app, request, next).await
}

async fn not_found(State(app): State<App>, request: Request) -> Response {
    if let Some(redirect) = protocol::slash::redirect(request.uri()) {
        return redirect;
    }
    let path = request.uri().path();
    let error =
        Error::new(Kind::NotFound, format!("no address {}", protocol::respond::shorten(path)));
    match wants_page(&request) {
        true => site::Asked::of(&request).stray(app, error).await,
        false => protocol::respond::error(&error),
    }
}

/// Whether a browser shows the answer as a page: programs do not name HTML.
fn wants_page(request: &Request) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|line| line.to_str().ok());
    accepted.any(|line| line.split(',').any(|one| one.trim().starts_with("text/html")))
}

async fn elsewhere(State(app): State<App>, request: Request) -> Response {
    let path = protocol::respond::shorten(request.uri().path());
    let what = match app.shared.process.node.role() {
        Role::Edge => "only reads and serves media alone",
        Role::All | Role::Web | Role::Worker => "does the work beside requests alone",
    };
    let message = format!("no address {path} at this node, which {what}; ask another one");
    protocol::respond::error(&Error::new(Kind::NotFound, message))
}

async fn method_not_allowed(State(app): State<App>, request: Request) -> Response {
    let message = format!("method {} is not supported here", request.method());
    let error = Error::new(Kind::Unsupported, message);
    let serves_pages = match app.shared.process.node.role() {
        Role::All | Role::Web => true,
        Role::Worker | Role::Edge => false,
    };
    match serves_pages && wants_page(&request) {
        true => site::Asked::of(&request).stray(app, error).await,
        false => protocol::respond::error(&error),
    }
}
