//! Sessions, applications and password links over HTTP (contract users-14, users-17, users-18).

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    routing::{delete, get, post},
};
use serde_json::Value;

use crate::access::users::json;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::JSON_BODY_BYTES_MAX;
use model::account::UserId;

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of sessions, applications and users' access.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/session", get(list_sessions))
        .route("/user/v1/session/{id}", delete(end_session))
        .route("/user/v1/application", get(list_applications))
        .route("/user/v1/application/{id}", delete(revoke_application))
        .route("/user/v1/organization/pending-user", get(list_pending))
        .route("/user/v1/organization/user/{id}/access", get(load_access).put(change_access))
        .route(
            "/user/v1/organization/user/{id}/password-link",
            post(send_password_link).delete(withdraw_password_link),
        )
        .route("/user/v1/organization/user/{id}/session", delete(end_logins))
        .route("/user/v1/organization/user/{id}/key", delete(revoke_keys))
}

async fn list_sessions(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let sessions = app.shared.access.users.sessions(&caller, clock::now()).await?;
    api::json(&sessions.iter().map(json::OwnSession::from).collect::<Vec<_>>())
}

async fn end_session(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let id = request::path_segment("id", id)?;
    app.shared.access.users.end_session(&caller, &id, clock::now()).await?;
    api::text("OK")
}

async fn list_applications(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
) -> ApiResult {
    let applications = app.shared.access.users.applications(&caller).await?;
    api::json(&applications.iter().map(json::OwnApplication::from).collect::<Vec<_>>())
}

async fn revoke_application(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let id = request::path_segment("id", id)?;
    app.shared.access.users.revoke_application(&caller, &id, clock::now()).await?;
    api::text("OK")
}

async fn list_pending(State(app): State<AppState>, ApiCaller(caller): ApiCaller) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    api::json(&administration.users_without_password(clock::now()).await?)
}

fn parse_user_id(id: Segment) -> Result<UserId> {
    Ok(UserId(request::path_integer("id", id)?))
}

async fn load_access(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    let state = administration.login_state(parse_user_id(id)?, clock::now()).await?;
    api::json(&json::UserLoginStateView::from(&state))
}

async fn change_access(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    // Parsed after the check of rights: a caller without them gets a 403 even if the request is invalid.
    let id = parse_user_id(id)?;
    let active = parse_active(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    administration.set_active(id, active, clock::now()).await?;
    api::text("OK")
}

/// Parses the body: true if the user becomes active.
fn parse_active(body: &Value) -> Result<bool> {
    request::read_object(body, |access| {
        access.flag("active", Presence::Required).value().unwrap_or_default()
    })
}

async fn send_password_link(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let administration = app.shared.access.users.administration(&caller)?;
    let sent = administration.send_password_link(parse_user_id(id)?, clock::now()).await?;
    api::json(&json::LinkView::from(&sent))
}

async fn withdraw_password_link(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    app.shared
        .access
        .users
        .administration(&caller)?
        .withdraw_password_link(parse_user_id(id)?)
        .await?;
    api::text("OK")
}

async fn end_logins(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    app.shared
        .access
        .users
        .administration(&caller)?
        .end_logins(parse_user_id(id)?, clock::now())
        .await?;
    api::text("OK")
}

async fn revoke_keys(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    app.shared
        .access
        .users
        .administration(&caller)?
        .revoke_keys(parse_user_id(id)?, clock::now())
        .await?;
    api::text("OK")
}
