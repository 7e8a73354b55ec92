//! The OAuth2 and OpenID Connect endpoints over HTTP (contract login-1, RFC 6749, 6750, 7009,
//! 9207).

use std::net::{IpAddr, Ipv4Addr};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::Response,
};
use minijinja::context;
use serde_json::json;

use crate::access::auth::PresentedCredentials;
use crate::access::oauth::{
    AuthorizationError, AuthorizationRequest, ClientAuthentication, OAuthErrorCode,
    OAuthParameters, Prompt, TokenError,
};
use crate::http::AppState;
use crate::http::credentials;
use crate::http::edge;
use crate::http::error_response;
use crate::http::form::form_body;
use crate::http::form::see_other;
use crate::http::help_link::HelpAnchor;
use crate::http::protocol::respond;
use crate::http::session::SiteVisitor;
use crate::http::site::login;
use crate::http::site::login::LoginNotice;
use crate::http::site::login::LoginPurpose;
use crate::http::site::pages;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};

/// `GET` and `POST /o/oauth2/auth`: the authorization endpoint.
pub(super) async fn authorize(State(app): State<AppState>, request: Request) -> Response {
    let outcome = match *request.method() {
        // HEAD would issue a code that the client never reads.
        Method::HEAD => {
            let message = "method HEAD is not supported here";
            return error_response::build(&Error::new(ErrorKind::Unsupported, message));
        }
        Method::POST => redirect_post_to_get(request).await,
        _ => {
            let (uri, headers) = (request.uri().clone(), request.headers().clone());
            drop(request);
            authorization_response(&app, &uri, &headers).await
        }
    };
    outcome.unwrap_or_else(|error| pages::plain_error_page(&app, &error))
}

/// Redirects a POST to GET: browsers do not send cookies with a form of another site.
async fn redirect_post_to_get(request: Request) -> Result<Response> {
    let (_, form) = form_body(request).await?;
    Ok(see_other(&format!("/o/oauth2/auth?{}", printable_ascii(&form))))
}

/// Keeps the printable ASCII characters of encoded parameters, which are safe in a header and on a page.
fn printable_ascii(encoded: &str) -> String {
    encoded.chars().filter(|c| c.is_ascii_graphic()).collect()
}

async fn authorization_response(
    app: &AppState,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response> {
    let encoded = printable_ascii(uri.query().unwrap_or_default());
    let authorization = match validate(app, &encoded).await? {
        Ok(authorization) => authorization,
        Err(response) => return Ok(response),
    };
    let now = clock::now();
    let oauth = &app.shared.access.oauth;
    let visitor = SiteVisitor::find(app, headers).await?;
    // `max_age` and some values of `prompt` ask for a new login.
    let is_fresh = |visitor: &SiteVisitor| {
        let age_s = now.duration_since(visitor.session.auth_time).as_secs();
        // `max_age=0` asks for one new login; its own duration must not count as age.
        let is_too_old = |max: u64| max == 0 || i64::try_from(max).is_ok_and(|max| age_s > max);
        !authorization.max_age_s.is_some_and(is_too_old)
            && !authorization.prompt.has(Prompt::Login)
            && !authorization.prompt.has(Prompt::SelectAccount)
    };
    // `none` forbids every page, also that of an error (OpenID Connect Core §3.1.2.1).
    let is_silent = authorization.prompt.has(Prompt::None);
    let Some(visitor) = visitor.filter(is_fresh) else {
        if is_silent {
            let refused =
                oauth.refuse(&authorization, OAuthErrorCode::LoginRequired, "login is needed");
            return Ok(redirect_to_client(&refused));
        }
        let return_to =
            format!("/o/oauth2/auth?{}", without_prompt(&encoded, &["login", "select_account"]));
        let notice = LoginNotice {
            purpose: Some(LoginPurpose::for_request(&authorization)),
            ..LoginNotice::default()
        };
        return login::page(app, headers, &return_to, &notice);
    };
    let user = &visitor.account.user;
    if authorization.prompt.has(Prompt::Consent)
        || !oauth.is_consented(&authorization, user.id).await?
    {
        if is_silent {
            let code = OAuthErrorCode::ConsentRequired;
            return Ok(redirect_to_client(&oauth.refuse(
                &authorization,
                code,
                "consent is needed",
            )));
        }
        return login::consent_page(
            app,
            &visitor,
            &authorization,
            &without_prompt(&encoded, &["consent"]),
        );
    }
    let target = oauth.authorize(&authorization, &visitor.account, visitor.cookie(), now).await?;
    Ok(redirect_to_client(&target))
}

/// The purpose of a login that leads to `return_to`; `None` when it leads to a page of the site.
pub(super) async fn login_purpose(app: &AppState, return_to: &str) -> Option<LoginPurpose> {
    let encoded = return_to.strip_prefix("/o/oauth2/auth?")?;
    let parameters = OAuthParameters::parse(encoded).ok()?;
    let authorization = app.shared.access.oauth.request(&parameters).await.ok()?;
    Some(LoginPurpose::for_request(&authorization))
}

/// Validates the authorization request in `encoded`; `Err` holds the response that ends it.
async fn validate(
    app: &AppState,
    encoded: &str,
) -> Result<std::result::Result<AuthorizationRequest, Response>> {
    let Ok(parameters) = OAuthParameters::parse(encoded) else {
        let text = "The login address is not valid.";
        return Ok(Err(message_page(app, "Invalid login link", text)?));
    };
    match app.shared.access.oauth.request(&parameters).await {
        Ok(authorization) => Ok(Ok(authorization)),
        Err(AuthorizationError::Page { title, message: text }) => {
            Ok(Err(message_page(app, title, &text)?))
        }
        Err(AuthorizationError::Redirect(target)) => Ok(Err(redirect_to_client(&target))),
        Err(AuthorizationError::Failed(error)) => Err(error),
    }
}

fn message_page(app: &AppState, title: &str, text: &str) -> Result<Response> {
    let context = context! {
        site_name => app.shared.site.name.clone(),
        title => title,
        message => text,
    };
    pages::private_page(
        app,
        StatusCode::BAD_REQUEST,
        "message.html",
        context,
        pages::FormTargets::OwnPages,
    )
}

/// Redirects to the client with the parameters of `target`, which must not leak through `Referer`.
fn redirect_to_client(target: &str) -> Response {
    let mut response = see_other(target);
    let no_referrer = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, no_referrer);
    response
}

/// Removes the values of `prompt` that are done, so that the user is not prompted twice.
fn without_prompt(encoded: &str, done: &[&str]) -> String {
    let pairs = form_urlencoded::parse(encoded.as_bytes());
    let mut remaining = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if name == "max_age" && value == "0" && done.contains(&"login") {
            continue;
        }
        if name != "prompt" {
            remaining.append_pair(&name, &value);
            continue;
        }
        let values: Vec<&str> = value.split(' ').filter(|value| !done.contains(value)).collect();
        if !values.is_empty() {
            remaining.append_pair("prompt", &values.join(" "));
        }
    }
    remaining.finish()
}

/// `POST /o/consent`: the visitor's decision on the consent page.
pub(super) async fn submit_consent(State(app): State<AppState>, request: Request) -> Response {
    let outcome = consent_response(&app, request).await;
    outcome.unwrap_or_else(|error| pages::plain_error_page(&app, &error))
}

async fn consent_response(app: &AppState, request: Request) -> Result<Response> {
    let (headers, form) = form_body(request).await?;
    let form = login::parse(&form)?;
    let encoded = printable_ascii(form.find("request").unwrap_or_default());
    let Some(visitor) = SiteVisitor::find(app, &headers).await? else {
        // The session ended while the page was open, so the request begins again with a login.
        return Ok(see_other(&format!("/o/oauth2/auth?{encoded}")));
    };
    // Another site must not consent in the user's name.
    if !visitor.owns_form_token(form.find("csrf")) {
        return Err(login::expired_form());
    }
    // Validated again, because the parameters come back from the browser.
    let authorization = match validate(app, &encoded).await? {
        Ok(authorization) => authorization,
        Err(response) => return Ok(response),
    };
    let oauth = &app.shared.access.oauth;
    if form.find("decision") != Some("allow") {
        let code = OAuthErrorCode::AccessDenied;
        return Ok(redirect_to_client(&oauth.refuse(&authorization, code, "the user refused")));
    }
    let now = clock::now();
    oauth.consent(&authorization, visitor.account.user.id, now).await?;
    Ok(redirect_to_client(
        &oauth.authorize(&authorization, &visitor.account, visitor.cookie(), now).await?,
    ))
}

/// `POST /o/oauth2/token`: the token endpoint.
pub(super) async fn token(State(app): State<AppState>, request: Request) -> Response {
    let client =
        edge::client_address(&request, &app.shared.edge.live_settings.get().trusted_proxies);
    // Failed attempts are limited by network; clients without an address share one.
    let address = client.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let (headers, form) = match protocol_form(request).await {
        Ok(parts) => parts,
        Err(response) => return response,
    };
    let client = client_authentication(&headers);
    match app.shared.access.oauth.token(&form, client, address, clock::now()).await {
        Ok(set) => match serde_json::to_string(&set) {
            Ok(text) => without_caching(respond::json_text(StatusCode::OK, text.into())),
            Err(cause) => error_response::build(&Error::internal(cause)),
        },
        Err(error) => token_error_response(&error),
    }
}

/// `POST /o/oauth2/revoke`: token revocation (RFC 7009).
pub(super) async fn revoke(State(app): State<AppState>, request: Request) -> Response {
    let address =
        edge::client_address(&request, &app.shared.edge.live_settings.get().trusted_proxies);
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let (headers, form) = match protocol_form(request).await {
        Ok(parts) => parts,
        Err(response) => return response,
    };
    let client = client_authentication(&headers);
    match app.shared.access.oauth.revoke(&form, client, address, clock::now()).await {
        Ok(()) => without_caching(login::empty_response(StatusCode::OK)),
        Err(error) => token_error_response(&error),
    }
}

/// Reads the form of a request to an RFC 6749 endpoint, or builds the error response.
async fn protocol_form(
    request: Request,
) -> std::result::Result<(HeaderMap, OAuthParameters), Response> {
    let invalid = |text: &str| {
        let code = OAuthErrorCode::InvalidRequest;
        let body = json!({ "error": code.as_str(), "error_description": text });
        let mut response = respond::json_text(StatusCode::BAD_REQUEST, body.to_string().into());
        response.extensions_mut().insert(HelpAnchor::for_oauth(code));
        without_caching(response)
    };
    let (headers, form) = form_body(request).await.map_err(|_| {
        invalid("a form of the type application/x-www-form-urlencoded is expected")
    })?;
    let form = OAuthParameters::parse(&form).map_err(|_| invalid("the form cannot be read"))?;
    Ok((headers, form))
}

fn client_authentication(headers: &HeaderMap) -> ClientAuthentication<'_> {
    let line = headers.get(header::AUTHORIZATION).map(|line| line.to_str().unwrap_or_default());
    match line.map(|line| line.split_once(' ').unwrap_or((line, ""))) {
        None => ClientAuthentication::None,
        Some((scheme, value)) if scheme.eq_ignore_ascii_case("basic") => {
            ClientAuthentication::Basic { header: value.trim() }
        }
        // An unsupported scheme is failed authentication, not absent authentication.
        Some(_) => ClientAuthentication::Basic { header: "" },
    }
}

/// The status of an error of an RFC 6749 endpoint.
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
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // RFC 6749 §5.1 requires both headers.
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// `GET` and `POST /o/v2/user`: the claims of the token's user.
pub(super) async fn user(State(app): State<AppState>, request: Request) -> Response {
    let headers = request.headers().clone();
    let outcome = user_info(&app, &headers).await;
    outcome.unwrap_or_else(|error| credentials::refuse(&error, &headers))
}

async fn user_info(app: &AppState, headers: &HeaderMap) -> Result<Response> {
    let unauthorized = || Error::new(ErrorKind::Unauthenticated, "Unauthorized");
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    // Two headers are ambiguous, so neither is accepted.
    let line = lines.next().filter(|_| lines.next().is_none()).ok_or_else(unauthorized)?;
    let line = line.to_str().map_err(|_| unauthorized())?;
    let PresentedCredentials::Bearer(token) = credentials::parse_authorization(line) else {
        return Err(unauthorized());
    };
    let found = app.shared.access.oauth.user_info(token, clock::now()).await?;
    let body = found.ok_or_else(unauthorized)?;
    Ok(without_caching(respond::json_text(StatusCode::OK, body.to_string().into())))
}

/// `GET /.well-known/openid-configuration`, also below `/o`.
pub(super) async fn discovery(State(app): State<AppState>) -> Response {
    cacheable_json(app.shared.access.oauth.discovery().to_string())
}

/// `GET /o/oauth2/keys`: the public keys that verify id tokens.
pub(super) async fn keys(State(app): State<AppState>) -> Response {
    cacheable_json(app.shared.access.oauth.key_set().await.to_string())
}

fn cacheable_json(text: String) -> Response {
    let mut response = respond::json_text(StatusCode::OK, text.into());
    let policy = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, policy);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_was_seen_to_does_not_come_again() {
        let check = |encoded, done: &[&str], expected: &str| {
            assert_eq!(without_prompt(encoded, done), expected);
        };
        check("a=1&prompt=login&b=%20", &["login"], "a=1&b=+");
        check("prompt=login+consent", &["login"], "prompt=consent");
        check("a=1", &["login"], "a=1");
        check("a=1&max_age=0", &["login"], "a=1");
        check("max_age=0&prompt=consent", &["consent"], "max_age=0");
    }
}
