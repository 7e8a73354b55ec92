//! Reads the caller's credentials from a request (contract access-1).
//!
//! `Authorization: Bearer <access token>`, `Authorization: ApiKey <key>` or the query parameter `ak`;
//! the header takes precedence. None of them ever enters a cache key, a log line or a link.
//!
//! Scripts on the site's own pages send `Authorization: Session <form token>` with the session cookie. The cookie
//! alone is not accepted here, and other sites cannot know the token, so they cannot act in a visitor's name
//! (CSRF).

use std::{borrow::Cow, sync::Arc};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::Response;
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::access::auth::{AuthMethod, PresentedCredentials, Principal};
use crate::http::session::{SiteCookie, SiteVisitor};
use crate::http::{AppState, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::storage::audit::{self, CredentialKind};

/// Authenticates the caller and records it for the log line and the audit log; `None` without valid
/// credentials.
///
/// Fails when the credentials cannot be looked up.
pub(crate) async fn principal(
    app: &AppState,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Option<Arc<Principal>>> {
    let found = authenticate(app, headers, uri).await?;
    found.iter().for_each(|caller| record_caller(caller));
    Ok(found)
}

/// Records the caller of a request for its log line and for audit events.
pub(crate) fn record_caller(caller: &Principal) {
    let (credential, id) = match caller.method() {
        AuthMethod::Bearer { family } => (CredentialKind::AccessToken, Some(family.0)),
        AuthMethod::ApiKey { key } => (CredentialKind::ApiKey, Some(key)),
        AuthMethod::Basic => (CredentialKind::Basic, None),
        AuthMethod::Session => (CredentialKind::Session, None),
        AuthMethod::Queue | AuthMethod::Operator => (CredentialKind::None, None),
    };
    audit::note_caller(caller.account(), credential, id);
}

async fn authenticate(
    app: &AppState,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Option<Arc<Principal>>> {
    let now = clock::now();
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(line) = lines.next() {
        // Two headers are ambiguous: neither is accepted.
        if lines.next().is_some() {
            return Ok(None);
        }
        // An unreadable header is an unknown scheme and not an absent header: `ak` does not
        // replace it.
        let line = line.to_str().unwrap_or_default();
        if let Some(token) = session_token(line) {
            return session_principal(app, headers, token).await;
        }
        return app.shared.access.auth.find(parse_authorization(line), now).await;
    }
    let Some(key) = query_value(uri, "ak") else { return Ok(None) };
    app.shared.access.auth.find(PresentedCredentials::ApiKey(&key), now).await
}

/// The authorization scheme of the site's own pages.
const SESSION_SCHEME: &str = "Session";

fn session_token(line: &str) -> Option<&str> {
    let (scheme, token) = line.split_once(' ')?;
    scheme.eq_ignore_ascii_case(SESSION_SCHEME).then(|| token.trim())
}

/// Finds the user of the session cookie if `token` is the session's form token.
async fn session_principal(
    app: &AppState,
    headers: &HeaderMap,
    token: &str,
) -> Result<Option<Arc<Principal>>> {
    let Some(visitor) = SiteVisitor::find(app, headers).await? else { return Ok(None) };
    if visitor.owns_form_token(Some(token)) { visitor.principal(app).await } else { Ok(None) }
}

/// Returns the headers that authenticate an internal API call of a page as `visitor`.
pub(crate) fn visitor_headers(app: &AppState, visitor: &SiteVisitor) -> [(HeaderName, String); 2] {
    let authorization = format!("{SESSION_SCHEME} {}", visitor.form_token());
    [
        (header::AUTHORIZATION, authorization),
        (header::COOKIE, SiteCookie::Session.send(app, visitor)),
    ]
}

/// Authenticates the caller of an API, which must be known and have the scope `roles` (contract access-5).
///
/// Fails with `read_only` for a method that may change something, if the credentials may not (contract access-7).
pub(crate) async fn require_principal(app: &AppState, parts: &Parts) -> Result<Arc<Principal>> {
    let found = principal(app, &parts.headers, &parts.uri).await?;
    let caller = found.ok_or_else(unauthorized)?;
    caller.require_scope(model::account::Scope::Roles)?;
    if !parts.method.is_safe() {
        caller.require_write()?;
    }
    Ok(caller)
}

/// Returns the error for a caller who is not known.
pub(crate) fn unauthorized() -> Error {
    Error::unauthenticated()
}

/// Returns whether the request presents credentials of any kind, valid or not.
pub(crate) fn are_presented(headers: &HeaderMap, uri: &Uri) -> bool {
    headers.contains_key(header::AUTHORIZATION) || query_value(uri, "ak").is_some()
}

/// Returns whether the request names its caller itself, validly or not: with the header `Authorization` or with
/// `ak`, and not with the session cookie, which a browser adds to the requests of other sites too.
pub(crate) fn are_explicit(headers: &HeaderMap, uri: &Uri) -> bool {
    match headers.get(header::AUTHORIZATION) {
        // The site's own scheme only confirms that the cookie may be used.
        Some(line) => session_token(line.to_str().unwrap_or_default()).is_none(),
        None => query_value(uri, "ak").is_some(),
    }
}

/// Builds the response to a failed request. A 401 says that the token is invalid if `headers` have a bearer token.
pub(crate) fn refuse(failure: &Error, headers: &HeaderMap) -> Response {
    error_response::build_with_challenge(failure, has_bearer_token(headers))
}

/// Adds the challenge of HTTP Basic to the 401 of an operation that accepts it, for programs that send a password only
/// when asked.
///
/// Not to a page or script in a browser: it would open a dialog for a password.
pub(crate) fn offer_basic(response: &mut Response, headers: &HeaderMap) {
    let line = headers.get(header::AUTHORIZATION).and_then(|line| line.to_str().ok());
    // Browsers send `Sec-Fetch-Mode` only to secure origins; the scheme of the site's own pages tells them anywhere.
    let is_browser = headers.contains_key(header::ORIGIN)
        || headers.contains_key("sec-fetch-mode")
        || line.is_some_and(|line| session_token(line).is_some());
    if !is_browser {
        let challenge = HeaderValue::from_static("Basic realm=\"wirephoto\", charset=\"UTF-8\"");
        response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
}

/// Reads user name and password of `Authorization: Basic` (RFC 7617), if that is the only such header.
pub(crate) fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let line = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    let (scheme, encoded) = line.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    // The first colon ends the name; the password may contain others (RFC 7617 §2).
    let (user_name, password) = text.split_once(':')?;
    Some((user_name.to_owned(), password.to_owned()))
}

/// Returns whether the request presents a bearer token, valid or not.
pub(crate) fn has_bearer_token(headers: &HeaderMap) -> bool {
    let line = headers.get(header::AUTHORIZATION).and_then(|line| line.to_str().ok());
    line.is_some_and(|line| matches!(parse_authorization(line), PresentedCredentials::Bearer(_)))
}

/// Parses the value of `Authorization` by its scheme.
pub(crate) fn parse_authorization(value: &str) -> PresentedCredentials<'_> {
    // The names of schemes are case-insensitive (RFC 9110 §11.1).
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            PresentedCredentials::Bearer(token.trim())
        }
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("apikey") => {
            PresentedCredentials::ApiKey(key.trim())
        }
        _ => PresentedCredentials::Unknown,
    }
}

/// Returns the first value of the query parameter `name`, decoded; an empty value counts as absent.
pub(crate) fn query_value<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let query = uri.query()?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
}
