//! Login, consent and logout pages. They work without scripts; every form carries a CSRF token.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use minijinja::context;

use crate::access::auth::{Auth, AuthenticatedLogin, LoginOutcome, LoginRequest, RandomSecret};
use crate::access::oauth::{AuthorizationRequest, OAuthParameters};
use crate::http::form::{form_body, form_body_within, see_other};
use crate::http::session::{self, SiteCookie, SiteVisitor};
use crate::http::site::login_url::login_url;
use crate::http::site::pages::FormTargets;
use crate::http::site::{DeferredForm, pages};
use crate::http::{AppState, edge, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{DEVICE_COOKIE_FOR, LOGIN_BYTES_MAX, RETURN_BYTES_MAX};
use crate::storage::database::{LoginBrowser, LoginOrigin};
use model::account::Permission;

/// Characters of a `User-Agent` that are kept.
const BROWSER_CHARS_MAX: usize = 200;
/// The error message for a failed login. It does not reveal whether the name or the password was wrong.
const WRONG_CREDENTIALS: &str = "Wrong user name or password.";
/// The default target of a login.
const HOME: &str = "/";
/// Prefixes of the pages to which a login may redirect.
const PAGE_PREFIXES: [&str; 7] =
    ["/collections", "/notifications", "/account", "/docs", "/selection", "/desk", "/operator"];

/// The variable content of a login page.
#[derive(Default)]
pub(crate) struct LoginNotice<'a> {
    pub(crate) status: StatusCode,
    pub(crate) error: Option<&'a str>,
    pub(crate) user_name: Option<&'a str>,
    /// True if the name or the password was wrong.
    pub(crate) invalid: bool,
    /// The display name of the client for which the user logs in, if any.
    pub(crate) client_name: Option<String>,
    /// The form that is submitted after the login.
    pub(crate) deferred_form: Option<&'a DeferredForm>,
    /// The name of a message in `base.html` about the previous action.
    pub(crate) done: Option<&'a str>,
}

/// Renders the login page. A successful login redirects to `return_to`.
pub(crate) fn page(
    app: &AppState,
    headers: &HeaderMap,
    return_to: &str,
    notice: &LoginNotice<'_>,
) -> Result<Response> {
    let (cookie, set) = session::form_cookie(app, headers)?;
    let context = context! {
        site_name => app.shared.site.name.clone(),
        action => "/o/login",
        csrf => session::form_token(&cookie),
        return_to => return_to,
        here => login_url(return_to),
        client_name => notice.client_name.clone(),
        error => notice.error,
        done => notice.done,
        invalid => notice.invalid,
        user_name => notice.user_name,
        kept_action => notice.deferred_form.map(|kept| kept.action.as_str()),
        kept_fields => notice.deferred_form.map(|kept| kept.fields.as_str()),
        kept_token => notice.deferred_form.map(|kept| kept.token(&cookie)),
    };
    let targets = match notice.client_name {
        Some(_) => FormTargets::OAuthClients,
        None => FormTargets::OwnPages,
    };
    let mut response = pages::private_page(app, notice.status, "login.html", context, targets)?;
    if let Some(set) = set {
        response.headers_mut().append(header::SET_COOKIE, set);
    }
    Ok(response)
}

/// Renders the login page for a visitor whose session expired while they filled in a form.
pub(crate) fn session_ended_page(
    app: &AppState,
    headers: &HeaderMap,
    deferred: &DeferredForm,
) -> Result<Response> {
    let text = "You have been logged out. Log in to continue; what you entered is kept.";
    let notice =
        LoginNotice { error: Some(text), deferred_form: Some(deferred), ..LoginNotice::default() };
    page(app, headers, &deferred.action, &notice)
}

/// Renders the login page for a visitor whose login is too old for the form or page at `path`.
///
/// If there is a form, its input is submitted after the login.
pub(crate) fn reauthentication_page(
    app: &AppState,
    headers: &HeaderMap,
    visitor: &SiteVisitor,
    path: &str,
    deferred: Option<&DeferredForm>,
) -> Result<Response> {
    let text = "You logged in more than an hour ago. Enter your password again to continue.";
    let user_name = Some(visitor.account.user.user_name.as_str());
    let notice = LoginNotice {
        error: Some(text),
        user_name,
        deferred_form: deferred,
        ..LoginNotice::default()
    };
    page(app, headers, path, &notice)
}

/// `GET /o/login`: shows the login page.
pub(crate) async fn show(State(app): State<AppState>, uri: Uri, headers: HeaderMap) -> Response {
    pages::page_or_error(&app, show_page(&app, &uri, &headers).await)
}

async fn show_page(app: &AppState, uri: &Uri, headers: &HeaderMap) -> Result<Response> {
    let query = OAuthParameters::parse(uri.query().unwrap_or_default()).ok();
    // An address on a different host would make the login an open redirect.
    let wanted = query.as_ref().and_then(|query| query.find("return_to"));
    let return_to = wanted.filter(|path| is_local_page(path)).unwrap_or(HOME);
    if SiteVisitor::find(app, headers).await?.is_some() {
        // For example after a login in another tab.
        return Ok(see_other(return_to));
    }
    let client_name = client_name(app, return_to).await;
    let done = query.as_ref().and_then(|query| query.find("done"));
    page(app, headers, return_to, &LoginNotice { client_name, done, ..LoginNotice::default() })
}

/// Returns the name of the client for which the login is made; `None` if `return_to` is a page of the site.
async fn client_name(app: &AppState, return_to: &str) -> Option<String> {
    let encoded = return_to.strip_prefix("/o/oauth2/auth?")?;
    let parameters = OAuthParameters::parse(encoded).ok()?;
    let authorization = app.shared.access.oauth.request(&parameters).await.ok()?;
    Some(authorization.client_name)
}

/// `POST /o/login`: logs in with user name and password.
pub(crate) async fn submit(State(app): State<AppState>, request: Request) -> Response {
    pages::page_or_error(&app, log_in(&app, request).await)
}

async fn log_in(app: &AppState, request: Request) -> Result<Response> {
    let address = edge::throttled_address(app, &request);
    let (headers, text) = form_body_within(request, LOGIN_BYTES_MAX).await?;
    let cookie = SiteCookie::Form.find(app, &headers);
    let deferred = DeferredForm::from_login_form(&text, cookie.as_deref());
    // A deferred form may have thousands of fields, which must not count towards the login's limit on fields.
    let form = parse(without_deferred_form(&text))?;
    let return_to = form.find("return_to").filter(|path| is_local_page(path)).unwrap_or(HOME);
    let client_name = client_name(app, return_to).await;
    let typed = form.find("username").unwrap_or_default();
    let canonical = app.shared.access.auth.canonical_user_name(typed).await;
    // If the database is unavailable, the login below reports it.
    let user_name = canonical.as_deref().unwrap_or(typed);
    let again = |status, error: &str| {
        let notice = LoginNotice {
            status,
            error: Some(error),
            user_name: Some(user_name),
            // Only wrong credentials mark the fields as invalid; an overload does not.
            invalid: status == StatusCode::FORBIDDEN,
            client_name: client_name.clone(),
            deferred_form: deferred.as_ref(),
            done: None,
        };
        page(app, &headers, return_to, &notice)
    };
    let retry_later = |text: &str| {
        let mut response = again(StatusCode::SERVICE_UNAVAILABLE, text)?;
        let wait = HeaderValue::from(crate::runtime::limits::RETRY_AFTER_S);
        response.headers_mut().insert(header::RETRY_AFTER, wait);
        Ok(response)
    };
    // Without a token, a different site could log its victim into the attacker's account (login CSRF).
    if !session::is_form_token(cookie.as_deref(), form.find("csrf")) {
        return again(StatusCode::BAD_REQUEST, "The login form has expired. Try again.");
    }
    let device = SiteCookie::Device.find(app, &headers);
    let device_cookie = device.as_deref();
    let password = form.find("password").unwrap_or_default();
    let login = LoginRequest { user_name, password, address, device_cookie, now: clock::now() };
    match app.shared.access.auth.log_in(&login).await {
        Ok(LoginOutcome::Ok(authenticated)) => {
            let target = LoginTarget { return_to, deferred_form: deferred.as_ref(), address };
            match open_session(app, &headers, &authenticated, target).await {
                Ok(response) => {
                    // `None`: the password was changed while it was being verified, so it is wrong by now.
                    response.map_or_else(|| again(StatusCode::FORBIDDEN, WRONG_CREDENTIALS), Ok)
                }
                Err(error) => outage_page(error, retry_later),
            }
        }
        Ok(LoginOutcome::Refused) => again(StatusCode::FORBIDDEN, WRONG_CREDENTIALS),
        Ok(LoginOutcome::Throttled(wait_s)) => {
            let text = "Too many failed attempts. Wait before you try again.";
            let mut response = again(StatusCode::SERVICE_UNAVAILABLE, text)?;
            // The throttle knows when the next attempt is allowed (contract login-21).
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
            Ok(response)
        }
        // Too many logins are being verified. The form keeps the user name for the next attempt.
        Err(error) if error.kind() == ErrorKind::Overloaded => {
            error_response::record_shed(&error);
            retry_later("Many people are logging in right now. Try again.")
        }
        Err(error) => outage_page(error, retry_later),
    }
}

/// Renders the login page with the entered name if the login could not be verified because of an outage;
/// returns any other error unchanged.
fn outage_page(
    error: Error,
    retry_later: impl FnOnce(&str) -> Result<Response>,
) -> Result<Response> {
    // After an internal error, a retry would not help.
    if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout) {
        return Err(error);
    }
    error_response::log_failure(&error);
    retry_later("You cannot log in right now. Try again.")
}

/// The target of a login.
#[derive(Clone, Copy)]
struct LoginTarget<'a> {
    /// The page to redirect to if there is no deferred form.
    return_to: &'a str,
    /// The form that the visitor was filling in when the session expired, if any.
    deferred_form: Option<&'a DeferredForm>,
    /// The network address of the client.
    address: IpAddr,
}

/// Opens a session for a user who just logged in, and ends the browser's previous session. `None` if the login was
/// invalidated in the meantime.
async fn open_session(
    app: &AppState,
    headers: &HeaderMap,
    authenticated: &AuthenticatedLogin,
    target: LoginTarget<'_>,
) -> Result<Option<Response>> {
    // The new cookie replaces the old one. The old session would otherwise remain valid, although unused.
    if let Some(visitor) = SiteVisitor::find(app, headers).await? {
        visitor.log_out(app).await?;
    }
    let device = app.shared.access.auth.issue_device_cookie(authenticated, clock::now()).await?;
    let before = SiteCookie::Device.find(app, headers);
    let browser = LoginBrowser {
        now: Auth::device_hash(&device).ok_or_else(|| Error::internal("no device"))?,
        // The previous cookie identifies a known browser. A login from a new browser is reported by mail.
        before: before.as_deref().and_then(Auth::device_hash),
    };
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let from = LoginOrigin {
        browser: agent.map(|agent| agent.chars().take(BROWSER_CHARS_MAX).collect()),
        address: Some(target.address.to_string()),
    };
    let opened =
        app.shared.access.oauth.open_session(authenticated, from, browser, clock::now()).await?;
    let Some(session) = opened else { return Ok(None) };
    let mut response = after_login(app, &session, target).await?;
    // Read at each login, because the setting can change without a restart.
    let seconds = Some(app.shared.edge.live_settings.get().session_s);
    let device_seconds = u32::try_from(DEVICE_COOKIE_FOR.as_secs()).ok();
    let cookies = [
        SiteCookie::Session.set(app, session.reveal(), seconds),
        SiteCookie::Device.set(app, &device, device_seconds),
        // The form cookie is used up; the next login gets a new one.
        SiteCookie::Form.set(app, "", Some(0)),
    ];
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(Some(response))
}

/// Returns the login's own fields. The fields of a deferred form follow them and may be long.
fn without_deferred_form(form: &str) -> &str {
    form.split_once("&kept_token=").map_or(form, |(before, _)| before)
}

/// Redirects after a login: to the deferred form, else to `return_to`.
async fn after_login(
    app: &AppState,
    session: &RandomSecret,
    target: LoginTarget<'_>,
) -> Result<Response> {
    let LoginTarget { return_to, deferred_form: deferred, .. } = target;
    let Some(deferred) = deferred else { return Ok(see_other(return_to)) };
    match SiteVisitor::find_by_cookie(app, session.reveal()).await? {
        Some(visitor) => deferred.page(app, &visitor),
        // The session has already ended. The page at `return_to` asks for a login again.
        None => Ok(see_other(return_to)),
    }
}

/// `POST /o/logout`: ends the session.
pub(crate) async fn submit_logout(State(app): State<AppState>, request: Request) -> Response {
    pages::page_or_error(&app, log_out(&app, request).await)
}

async fn log_out(app: &AppState, request: Request) -> Result<Response> {
    let (headers, form) = form_body(request).await?;
    let form = parse(&form)?;
    let return_to = form.find("return_to").filter(|path| is_local_page(path)).unwrap_or(HOME);
    if let Some(visitor) = SiteVisitor::find(app, &headers).await? {
        // Without a session there is nothing to protect, and the cookie is removed in any case.
        if !visitor.owns_form_token(form.find("csrf")) {
            return Err(expired_form());
        }
        visitor.log_out(app).await?;
    }
    let mut response = see_other(return_to);
    if let Some(cookie) = SiteCookie::Session.set(app, "", Some(0)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the error for a form without a valid token.
pub(crate) fn expired_form() -> Error {
    Error::new(ErrorKind::InvalidArgument, "The form has expired. Go back and try again.")
}

/// Parses a form of the site.
pub(crate) fn parse(form: &str) -> Result<OAuthParameters> {
    OAuthParameters::parse(form)
        .map_err(|_| Error::new(ErrorKind::InvalidArgument, "The form cannot be read"))
}

/// Renders the page that asks a visitor whether a client may act on their behalf. `encoded` holds the
/// parameters of the authorization request.
pub(crate) fn consent_page(
    app: &AppState,
    visitor: &SiteVisitor,
    request: &AuthorizationRequest,
    encoded: &str,
) -> Result<Response> {
    let user = &visitor.account.user;
    let granted = Permission::all()
        .filter(|permission| permission.is_granted(request.scopes, request.scopes_enforced, user));
    let permissions: Vec<&str> = granted.map(Permission::text).collect();
    let context = context! {
        site_name => app.shared.site.name.clone(),
        action => "/o/consent",
        logout_action => "/o/logout",
        return_to => format!("/o/oauth2/auth?{encoded}"),
        csrf => visitor.form_token(),
        request => encoded,
        client_name => request.client_name.clone(),
        redirect_host => redirect_origin(&request.redirect_uri),
        user_name => user.user_name.clone(),
        display_name => user.display_name(),
        permissions,
    };
    pages::private_page(app, StatusCode::OK, "consent.html", context, FormTargets::OAuthClients)
}

/// Returns the scheme, host and port of a URI; only the scheme if it has no host.
pub(crate) fn redirect_origin(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once(':') else { return String::new() };
    match rest.strip_prefix("//") {
        Some(rest) if matches!(scheme, "http" | "https") => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            format!("{scheme}://{}", &rest[..end])
        }
        // Private schemes of native applications have no host (RFC 8252 §7.1).
        _ => format!("{scheme}:"),
    }
}

/// Returns whether a path from a request leads to a page of this site, so that a redirect to it is safe.
pub(crate) fn is_local_page(path: &str) -> bool {
    is_plain_path(path) && leads_to_page(path)
}

/// Returns whether the path leads to the login page or a password page.
pub(crate) fn is_login_page(path: &str) -> bool {
    let page = path.split('?').next().unwrap_or_default();
    let is_gate = ["/o/login", "/o/password"].contains(&page) || page.starts_with("/o/password/");
    is_gate && is_plain_path(path)
}

/// Returns whether a browser requests the path on this host and exactly as written.
fn is_plain_path(path: &str) -> bool {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // Browsers resolve dot segments, including encoded ones, before they send a request.
    let path_only = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let dots = path_only.contains("/.") || path_only.contains("%2e");
    // A browser resolves `//host` to a different host.
    plain && !dots && !path.contains("//") && path.len() <= RETURN_BYTES_MAX
}

fn leads_to_page(path: &str) -> bool {
    // The API of operators is below their pages.
    let is_page = PAGE_PREFIXES.into_iter().any(|prefix| is_below(path, prefix))
        && !is_below(path, "/operator/v1");
    path == HOME
        || path.starts_with("/?")
        || path.starts_with("/item/")
        || is_page
        // An authorization request continues after the login. Without parameters it would be invalid.
        || path.starts_with("/o/oauth2/auth?")
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        // `/docsy` is not below `/docs`.
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::site::language::PageLanguage;

    #[test]
    fn every_permission_has_its_swedish_and_its_row_in_the_documentation() {
        let swedish = crate::http::site::language::translations(PageLanguage::Swedish).unwrap();
        let scopes = |enforced: bool, permission: Permission| {
            let names: Vec<_> =
                permission.scopes(enforced).iter().map(|one| one.as_str()).collect();
            names.join(" ")
        };
        let rows = Permission::all().map(|permission| {
            let text = permission.text();
            assert!(swedish.contains_key(text), "no Swedish of `{text}`");
            format!("| {text} | {} | {} |", scopes(false, permission), scopes(true, permission))
        });
        let documented = std::fs::read_to_string("docs/guide/scopes.md").unwrap();
        let missing: Vec<String> = rows.filter(|row| !documented.contains(row)).collect();
        assert!(missing.is_empty(), "docs/guide/scopes.md lacks\n{}", missing.join("\n"));
    }

    #[test]
    fn a_login_leads_to_pages_of_ours_only() {
        for path in [
            "/",
            "/item/image/x",
            "/?page=2",
            "/o/oauth2/auth?client_id=a&x=%2F%2Fb",
            "/selection",
            "/desk/templates/new",
            "/operator/downloads?by=item",
        ] {
            assert!(is_local_page(path), "{path}");
        }
        for path in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/",
            "/item/..//evil.example",
            "/docs/../o/consent",
            "/docs/%2E%2e/o/consent",
            "/docs/.%2e/o/consent",
            "/docsy",
            "/operator/v1/status",
            "/o/oauth2/auth",
            "/o/logout",
            "/item/a\r\nb",
            "/item/å",
            "javascript:alert(1)",
        ] {
            assert!(!is_local_page(path), "{path}");
        }
    }

    #[test]
    fn the_origin_of_a_redirect_address_is_found() {
        let check = |uri, origin: &str| assert_eq!(redirect_origin(uri), origin);
        check("https://app.example/cb?x=1", "https://app.example");
        check("http://127.0.0.1:9000/cb", "http://127.0.0.1:9000");
        check("http://[::1]:9000", "http://[::1]:9000");
        check("com.example.app:/cb", "com.example.app:");
        check("com.example.app://cb", "com.example.app:");
    }
}
