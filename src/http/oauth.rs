//! The OAuth2 and OpenID Connect endpoints for programs (contract login-1, RFC 6749, 6750, 7009): tokens, the claims
//! of a user, discovery and keys. The authorization endpoint, which shows pages, is in `http/site/authorization.rs`.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::access::auth::PresentedCredentials;
use crate::access::oauth::{ClientForm, OAuthErrorCode, OAuthParameters, TokenError};
use crate::http::api::binding::BoundEndpoints;
use crate::http::cache_policy::CachePolicy;
use crate::http::form::form_body;
use crate::http::help_link::HelpAnchor;
use crate::http::protocol::respond;
use crate::http::{AppState, cache_policy, credentials, edge, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use api::oauth::{
    Authorize, AuthorizeByForm, Discover, DiscoverBelowO, DiscoverOAuth, ListKeys, LoadUserInfo,
    LoadUserInfoByPost, RequestToken, RevokeToken,
};

/// The endpoints of OAuth2, whose routes and errors the protocol defines.
pub(super) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .describe::<Authorize>()
        .describe::<AuthorizeByForm>()
        .describe::<RequestToken>()
        .describe::<RevokeToken>()
        .describe::<LoadUserInfo>()
        .describe::<LoadUserInfoByPost>()
        .describe::<ListKeys>()
        .describe::<Discover>()
        .describe::<DiscoverOAuth>()
        .describe::<DiscoverBelowO>()
}

/// `POST /o/oauth2/token`: the token endpoint.
pub(super) async fn token(State(app): State<AppState>, request: Request) -> Response {
    let address = edge::throttled_address(&app, &request);
    let (headers, form) = match protocol_form(request).await {
        Ok(parts) => parts,
        Err(response) => return response,
    };
    let basic = basic_credentials(&headers);
    let request = ClientForm { form: &form, basic, address, now: clock::now() };
    match app.shared.access.oauth.token(request).await {
        Ok(set) => match serde_json::to_string(&set) {
            Ok(text) => without_caching(respond::json_text(StatusCode::OK, text.into())),
            Err(cause) => error_response::build(&Error::internal(cause)),
        },
        Err(error) => token_error_response(&error),
    }
}

/// `POST /o/oauth2/revoke`: token revocation (RFC 7009).
pub(super) async fn revoke(State(app): State<AppState>, request: Request) -> Response {
    let address = edge::throttled_address(&app, &request);
    let (headers, form) = match protocol_form(request).await {
        Ok(parts) => parts,
        Err(response) => return response,
    };
    let basic = basic_credentials(&headers);
    let request = ClientForm { form: &form, basic, address, now: clock::now() };
    match app.shared.access.oauth.revoke(request).await {
        Ok(()) => without_caching(respond::empty(StatusCode::OK)),
        Err(error) => token_error_response(&error),
    }
}

/// Reads the form of a request to an RFC 6749 endpoint, or builds the error response.
async fn protocol_form(
    request: Request,
) -> std::result::Result<(HeaderMap, OAuthParameters), Response> {
    let (headers, form) = form_body(request).await.map_err(|_| {
        invalid_request("a form of the type application/x-www-form-urlencoded is expected")
    })?;
    let form =
        OAuthParameters::parse(&form).map_err(|_| invalid_request("the form cannot be read"))?;
    Ok((headers, form))
}

/// Builds the response to a request whose form cannot be read.
fn invalid_request(description: &str) -> Response {
    let code = OAuthErrorCode::InvalidRequest;
    let body = json!({ "error": code.as_str(), "error_description": description });
    let mut response = respond::json_text(StatusCode::BAD_REQUEST, body.to_string().into());
    response.extensions_mut().insert(HelpAnchor::for_oauth(code));
    without_caching(response)
}

/// Returns the client's credentials of HTTP Basic in base64.
fn basic_credentials(headers: &HeaderMap) -> Option<&str> {
    let line = headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, value) = line.split_once(' ').unwrap_or((line, ""));
    // An unsupported scheme is failed authentication, not absent authentication.
    Some(if scheme.eq_ignore_ascii_case("basic") { value.trim() } else { "" })
}

/// Returns the status for an error of an RFC 6749 endpoint.
pub(super) fn status(code: OAuthErrorCode) -> StatusCode {
    match code {
        OAuthErrorCode::InvalidClient => StatusCode::UNAUTHORIZED,
        OAuthErrorCode::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        OAuthErrorCode::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        OAuthErrorCode::InvalidRequest
        | OAuthErrorCode::InvalidGrant
        | OAuthErrorCode::UnauthorizedClient
        | OAuthErrorCode::UnsupportedGrantType
        | OAuthErrorCode::UnsupportedResponseType
        | OAuthErrorCode::InvalidScope
        | OAuthErrorCode::AccessDenied
        | OAuthErrorCode::LoginRequired
        | OAuthErrorCode::ConsentRequired
        | OAuthErrorCode::RequestNotSupported
        | OAuthErrorCode::RequestUriNotSupported
        | OAuthErrorCode::RegistrationNotSupported => StatusCode::BAD_REQUEST,
    }
}

fn token_error_response(error: &TokenError) -> Response {
    let status = status(error.code);
    match &error.source {
        Some(busy) if busy.kind() == ErrorKind::Overloaded => error_response::record_shed(busy),
        Some(cause) if error_response::is_counted(cause) => {}
        Some(cause) => tracing::error!(status = status.as_u16(), "token endpoint: {cause}"),
        None => {}
    }
    let body = json!({ "error": error.code.as_str(), "error_description": error.description });
    let mut response = respond::json_text(status, body.to_string().into());
    response.extensions_mut().insert(HelpAnchor::for_oauth(error.code));
    let headers = response.headers_mut();
    // A 401 names a scheme even when the client authenticated in the form (RFC 9110 §15.5.2).
    if error.challenge || status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"wirephoto\", charset=\"UTF-8\"");
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    without_caching(response)
}

fn without_caching(mut response: Response) -> Response {
    cache_policy::forbid_keeping_tokens(response.headers_mut());
    response
}

/// `GET` and `POST /o/v2/user`: the claims of the token's user.
pub(super) async fn user(State(app): State<AppState>, request: Request) -> Response {
    let headers = request.headers().clone();
    let outcome = user_info(&app, &headers).await;
    outcome.unwrap_or_else(|error| credentials::refuse(&error, &headers))
}

async fn user_info(app: &AppState, headers: &HeaderMap) -> Result<Response> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    // Two headers are ambiguous, so neither is accepted.
    let line =
        lines.next().filter(|_| lines.next().is_none()).ok_or_else(credentials::unauthorized)?;
    let line = line.to_str().map_err(|_| credentials::unauthorized())?;
    let PresentedCredentials::Bearer(token) = credentials::parse_authorization(line) else {
        return Err(credentials::unauthorized());
    };
    let found = app.shared.access.oauth.user_info(token, clock::now()).await?;
    let body = found.ok_or_else(credentials::unauthorized)?;
    Ok(without_caching(respond::json_text(StatusCode::OK, body.to_string().into())))
}

/// `GET /.well-known/openid-configuration`, also below `/o`: the metadata of the authorization server.
pub(super) async fn discovery(State(app): State<AppState>) -> Response {
    cacheable_json(app.shared.access.oauth.discovery().to_string())
}

/// `GET /o/oauth2/keys`: the public keys that verify id tokens.
pub(super) async fn keys(State(app): State<AppState>) -> Response {
    cacheable_json(app.shared.access.oauth.key_set().await.to_string())
}

fn cacheable_json(text: String) -> Response {
    let mut response = respond::json_text(StatusCode::OK, text.into());
    CachePolicy::PublicMinutes.set(response.headers_mut());
    response
}
