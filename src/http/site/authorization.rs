//! The authorization endpoint of OAuth2 and OpenID Connect, and the consent form (contract login-1, RFC 6749, RFC
//! 9207).

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use jiff::Timestamp;
use minijinja::context;

use crate::access::oauth::{
    AuthorizationError, AuthorizationRequest, OAuthErrorCode, OAuthParameters, Prompt,
};
use crate::http::form::{form_body, see_other};
use crate::http::session::SiteVisitor;
use crate::http::site::login::LoginNotice;
use crate::http::site::{login, pages};
use crate::http::{AppState, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};

/// `GET` and `POST /o/oauth2/auth`: handles an authorization request.
pub(crate) async fn authorize(State(app): State<AppState>, request: Request) -> Response {
    let outcome = match *request.method() {
        // `HEAD` would issue an authorization code that the client never reads.
        Method::HEAD => {
            let message = "method HEAD is not supported here";
            return error_response::build(&Error::new(ErrorKind::Unsupported, message));
        }
        Method::POST => redirect_post_to_get(request).await,
        _ => {
            let uri = request.uri().clone();
            let headers = request.headers().clone();
            drop(request);
            authorization_response(&app, &uri, &headers).await
        }
    };
    pages::page_or_error(&app, outcome)
}

/// Redirects a `POST` to `GET`, because browsers do not send cookies with the form of a different site.
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
    // `none` forbids any page, including an error page (OpenID Connect Core §3.1.2.1).
    let is_silent = authorization.prompt.contains(&Prompt::None);
    let Some(visitor) = visitor.filter(|visitor| is_fresh(visitor, &authorization, now)) else {
        if is_silent {
            let refused =
                oauth.refuse(&authorization, OAuthErrorCode::LoginRequired, "login is needed");
            return Ok(redirect_to_client(&refused));
        }
        let return_to =
            format!("/o/oauth2/auth?{}", without_prompt(&encoded, &["login", "select_account"]));
        let client_name = Some(authorization.client_name.clone());
        let notice = LoginNotice { client_name, ..LoginNotice::default() };
        return login::page(app, headers, &return_to, &notice);
    };
    let user = &visitor.account.user;
    if authorization.prompt.contains(&Prompt::Consent)
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

/// Returns whether the visitor's login is recent enough. `max_age` and some values of `prompt` request a new
/// login.
fn is_fresh(visitor: &SiteVisitor, authorization: &AuthorizationRequest, now: Timestamp) -> bool {
    let age_s = now.duration_since(visitor.session.auth_time).as_secs();
    let is_too_old = match authorization.max_age_s {
        // Requests one new login. `without_prompt` removes the parameter after it, because the login would already
        // be too old again.
        Some(0) => true,
        Some(max) => i64::try_from(max).is_ok_and(|max| age_s > max),
        None => false,
    };
    !is_too_old
        && !authorization.prompt.contains(&Prompt::Login)
        && !authorization.prompt.contains(&Prompt::SelectAccount)
}

/// Validates the authorization request in `encoded`. The inner `Err` holds the response to an invalid request.
async fn validate(
    app: &AppState,
    encoded: &str,
) -> Result<std::result::Result<AuthorizationRequest, Response>> {
    let Ok(parameters) = OAuthParameters::parse(encoded) else {
        let text = "The login address is not valid.";
        return Ok(Err(message_page(app, text)?));
    };
    match app.shared.access.oauth.request(&parameters).await {
        Ok(authorization) => Ok(Ok(authorization)),
        Err(AuthorizationError::Page(text)) => Ok(Err(message_page(app, &text)?)),
        Err(AuthorizationError::Redirect(target)) => Ok(Err(redirect_to_client(&target))),
        Err(AuthorizationError::Failed(error)) => Err(error),
    }
}

fn message_page(app: &AppState, text: &str) -> Result<Response> {
    let context = context! {
        site_name => app.shared.site.name.clone(),
        title => "Invalid login link",
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

/// Redirects to the client. The parameters of `target` must not leak through `Referer`.
fn redirect_to_client(target: &str) -> Response {
    let mut response = see_other(target);
    let no_referrer = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, no_referrer);
    response
}

/// Removes the values `done` of `prompt`, so that the user is not prompted twice. If `login` is done, also removes
/// `max_age=0`.
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

/// `POST /o/consent`: accepts the visitor's decision on the consent page.
pub(crate) async fn submit_consent(State(app): State<AppState>, request: Request) -> Response {
    pages::page_or_error(&app, consent_response(&app, request).await)
}

async fn consent_response(app: &AppState, request: Request) -> Result<Response> {
    let (headers, form) = form_body(request).await?;
    let form = login::parse(&form)?;
    let encoded = printable_ascii(form.find("request").unwrap_or_default());
    let Some(visitor) = SiteVisitor::find(app, &headers).await? else {
        // The session ended while the page was open, so the authorization starts again with a login.
        return Ok(see_other(&format!("/o/oauth2/auth?{encoded}")));
    };
    // A different site must not be able to consent in the user's name.
    if !visitor.owns_form_token(form.find("csrf")) {
        return Err(login::expired_form());
    }
    // The request is validated again, because its parameters come from the browser.
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
