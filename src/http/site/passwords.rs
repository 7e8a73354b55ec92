//! Pages that request a password link, and pages that set a password. They work without scripts.

use std::net::IpAddr;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use minijinja::{Value, context};

use crate::access::users::{NewPassword, OpenedLink, PasswordOutcome};
use crate::http::form::{FormFields, form_body, see_other};
use crate::http::session::SiteCookie;
use crate::http::site::pages::{self, FormTargets, page_or_error};
use crate::http::{AppState, edge, session};
use crate::runtime::clock;
use crate::runtime::error::Result;
use model::account::PasswordLinkKind;

/// Path of the page for a forgotten password. Password links are below it.
const FORGOTTEN: &str = "/o/password";
/// The target of the redirect after a password was set.
pub(crate) const LOGIN_AFTER: &str = "/o/login?done=password";
/// The message if the two entered passwords differ.
pub(crate) const PASSWORDS_DIFFER: &str = "The passwords do not match.";

/// Renders a page with a form for an anonymous visitor. `here` is the path of the page.
fn form_page(
    app: &AppState,
    headers: &HeaderMap,
    status: StatusCode,
    template: &str,
    here: &str,
    context: Value,
) -> Result<Response> {
    let (cookie, set) = session::form_cookie(app, headers)?;
    let context = context! {
        site_name => app.shared.site.name.clone(),
        csrf => session::form_token(&cookie),
        here,
        ..context
    };
    let mut page = pages::private_page(app, status, template, context, FormTargets::OwnPages)?;
    if let Some(set) = set {
        page.headers_mut().append(header::SET_COOKIE, set);
    }
    Ok(page)
}

/// A form submitted by an anonymous visitor.
struct AnonymousForm {
    headers: HeaderMap,
    form: FormFields,
    address: IpAddr,
    /// True if the form has a valid CSRF token.
    has_valid_token: bool,
}

impl AnonymousForm {
    async fn read(app: &AppState, request: Request) -> Result<Self> {
        // Reading the form consumes the request.
        let address = edge::throttled_address(app, &request);
        let (headers, text) = form_body(request).await?;
        let form = FormFields::parse(&text)?;
        let cookie = SiteCookie::Form.find(app, &headers);
        let has_valid_token = session::is_form_token(cookie.as_deref(), form.find("csrf"));
        Ok(Self { headers, form, address, has_valid_token })
    }
}

/// `GET /o/password`: asks for a user name or an e-mail address.
pub(crate) async fn forgotten(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let page = forgotten_page(&app, &headers, None, false);
    page_or_error(&app, page)
}

/// Renders the page with the error of its form, or with the confirmation that a mail was sent.
fn forgotten_page(
    app: &AppState,
    headers: &HeaderMap,
    error: Option<&str>,
    is_sent: bool,
) -> Result<Response> {
    let sends_mails = app.shared.access.users.sends_mails();
    let context = context! { sends_mails, error, is_sent };
    let status = error.map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    form_page(app, headers, status, "forgotten.html", FORGOTTEN, context)
}

/// `POST /o/password`: mails a link if the user exists. The page does not reveal whether the user exists.
pub(crate) async fn ask(State(app): State<AppState>, request: Request) -> Response {
    page_or_error(&app, reset_response(&app, request).await)
}

async fn reset_response(app: &AppState, request: Request) -> Result<Response> {
    let AnonymousForm { headers, form, address, has_valid_token } =
        AnonymousForm::read(app, request).await?;
    // Without a token, a different site could make the browsers of its visitors request mails.
    if !has_valid_token {
        return forgotten_page(app, &headers, Some("The form has expired. Try again."), false);
    }
    let name = form.find("name").unwrap_or_default();
    if name.is_empty() {
        let error = "Enter your user name or e-mail address.";
        return forgotten_page(app, &headers, Some(error), false);
    }
    // The response is the same for an unknown name (contract users-15).
    app.shared.access.users.request_reset(name, address, clock::now()).await?;
    forgotten_page(app, &headers, None, true)
}

/// `GET /o/password/{token}`: asks for the new password. Opening the link does not use it up, because mail
/// programs open links.
pub(crate) async fn show_link(
    State(app): State<AppState>,
    Path(token): Path<String>,
    headers: HeaderMap,
) -> Response {
    page_or_error(&app, link_response(&app, &token, &headers).await)
}

async fn link_response(app: &AppState, token: &str, headers: &HeaderMap) -> Result<Response> {
    match app.shared.access.users.open_link(token, clock::now()).await? {
        Some(link) => set_page(app, headers, &link, None),
        None => invalid_link_page(app, headers),
    }
}

/// Renders the page for a link that is used, withdrawn, expired or unknown.
fn invalid_link_page(app: &AppState, headers: &HeaderMap) -> Result<Response> {
    let context = context! { sends_mails => app.shared.access.users.sends_mails() };
    // A change of language returns to the page on which a new link can be requested.
    form_page(app, headers, StatusCode::NOT_FOUND, "link_gone.html", FORGOTTEN, context)
}

fn set_page(
    app: &AppState,
    headers: &HeaderMap,
    opened: &OpenedLink,
    error: Option<&str>,
) -> Result<Response> {
    let user = &opened.account.user;
    let context = context! {
        user_name => user.user_name.clone(),
        display_name => user.display_name(),
        invited => opened.link.kind == PasswordLinkKind::Invitation,
        keys => opened.keys,
        error,
    };
    let status = error.map_or(StatusCode::OK, |_| StatusCode::BAD_REQUEST);
    let token = app.shared.access.users.password_link_token(opened.link.id);
    let here = format!("{FORGOTTEN}/{token}");
    form_page(app, headers, status, "set_password.html", &here, context)
}

/// `POST /o/password/{token}`: sets the password and redirects to the login.
pub(crate) async fn set(
    State(app): State<AppState>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    page_or_error(&app, password_set_response(&app, &token, request).await)
}

/// Shows the form of a link again, with an error. The link is checked again, because it may have been used or
/// withdrawn in the meantime.
async fn set_page_again(
    app: &AppState,
    headers: &HeaderMap,
    token: &str,
    now: Timestamp,
    error: &str,
) -> Result<Response> {
    match app.shared.access.users.open_link(token, now).await? {
        Some(opened) => set_page(app, headers, &opened, Some(error)),
        None => invalid_link_page(app, headers),
    }
}

async fn password_set_response(app: &AppState, token: &str, request: Request) -> Result<Response> {
    let AnonymousForm { headers, form, address, has_valid_token } =
        AnonymousForm::read(app, request).await?;
    let now = clock::now();
    if !has_valid_token {
        return set_page_again(app, &headers, token, now, "The form has expired. Try again.")
            .await;
    }
    // Not trimmed: spaces around a password are part of it.
    let password = form.find_untrimmed("password").unwrap_or_default();
    if form.find_untrimmed("repeated") != Some(password) {
        return set_page_again(app, &headers, token, now, PASSWORDS_DIFFER).await;
    }
    let new = NewPassword { password, revokes_keys: form.is_ticked("keys"), address };
    match app.shared.access.users.set_by_link(token, new, now).await? {
        PasswordOutcome::Done => Ok(see_other(LOGIN_AFTER)),
        PasswordOutcome::Flawed(flaw) => {
            set_page_again(app, &headers, token, now, flaw.text()).await
        }
        // Only `Gone` occurs, because a link does not ask for the old password.
        PasswordOutcome::Gone | PasswordOutcome::Wrong | PasswordOutcome::Throttled(_) => {
            invalid_link_page(app, &headers)
        }
    }
}
