//! The login in a browser: session cookie, form cookie and the tokens that protect forms.
//!
//! All cookies are `HttpOnly` and `SameSite=Lax`, and behind TLS `Secure`. Those of sessions and
//! forms have the `__Host-` prefix then, so that no other host can set them. A form carries a token that only a page of ours
//! could have been given: a hash of the cookie, which other sites can neither read nor send along.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use serde::Serialize;

use crate::access::auth::{PresentedCredentials, Principal, RandomSecret};
use crate::http::AppState;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::TOKEN_BYTES_MAX;
use crate::storage::audit::{self, CredentialId, CredentialKind};
use crate::storage::database::BrowserSession;
use model::ContentHash;
use model::account::Account;

/// Which cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteCookie {
    /// A login.
    Session,
    /// A form that was shown to somebody who is not logged in.
    Form,
    /// A browser that a user logged in with, which outlasts the session.
    ///
    /// Only the login reads it, so it goes there alone: caches pass on what carries a cookie. The
    /// `__Host-` prefix would need the path `/`; a cookie that another host set proves nothing.
    Device,
}

impl SiteCookie {
    fn name(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Self::Session, false) => "wirephoto_session",
            (Self::Session, true) => "__Host-wirephoto_session",
            (Self::Form, false) => "wirephoto_form",
            (Self::Form, true) => "__Host-wirephoto_form",
            (Self::Device, false) => "wirephoto_device",
            (Self::Device, true) => "__Secure-wirephoto_device",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Session | Self::Form => "/",
            Self::Device => "/o/login",
        }
    }

    /// The cookie's value in a request.
    pub(crate) fn find(self, app: &AppState, headers: &HeaderMap) -> Option<String> {
        let name = self.name(app.shared.site.secure_cookies);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        let value = pairs.map(|(key, value)| (key.trim(), value.trim()));
        let value = value.filter(|(key, _)| *key == name).map(|(_, value)| value).next()?;
        (!value.is_empty() && value.len() <= TOKEN_BYTES_MAX).then(|| value.to_owned())
    }

    /// The request header with `visitor`'s session.
    pub(crate) fn send(self, app: &AppState, visitor: &SiteVisitor) -> String {
        format!("{}={}", self.name(app.shared.site.secure_cookies), visitor.cookie)
    }

    /// The header that sets the cookie for `seconds`; without them it ends with the browser.
    pub(crate) fn set(
        self,
        app: &AppState,
        value: &str,
        seconds: Option<u32>,
    ) -> Option<HeaderValue> {
        let secure = app.shared.site.secure_cookies;
        let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        let tail = if secure { "; Secure" } else { "" };
        let (name, path) = (self.name(secure), self.path());
        let text = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax{age}{tail}");
        HeaderValue::from_str(&text).ok()
    }
}

/// The token that a form carries, made from a cookie's value.
pub(crate) fn form_token(cookie: &str) -> String {
    ContentHash::of(format!("wirephoto form\0{cookie}").as_bytes()).short()
}

/// The token of what a login page hands on, made from the form cookie's value: nobody else could
/// have put it there.
pub(crate) fn deferred_form_token(cookie: &str, action: &str, fields: &str) -> String {
    let lengths = [cookie.len(), action.len()];
    ContentHash::of(format!("wirephoto kept\0{lengths:?}{cookie}{action}{fields}").as_bytes())
        .short()
}

/// Whether the token of a form belongs to the cookie.
pub(crate) fn is_form_token(cookie: Option<&str>, token: Option<&str>) -> bool {
    let expected = cookie.map(form_token);
    expected.zip(token).is_some_and(|(expected, token)| tokens_equal(&expected, token))
}

/// Whether two tokens are the same. Comparing takes the same time for every wrong one of one
/// length: hashes are compared.
pub(crate) fn tokens_equal(expected: &str, token: &str) -> bool {
    let hash = |text: &str| ContentHash::of(text.as_bytes());
    hash(expected) == hash(token)
}

/// Whether a request shows the cookie of a login, whoever's it is and whether it still counts.
pub(crate) fn has_session_cookie(app: &AppState, headers: &HeaderMap) -> bool {
    SiteCookie::Session.find(app, headers).is_some()
}

/// Somebody who is logged in in this browser.
#[derive(Clone)]
pub(crate) struct SiteVisitor {
    /// The user.
    pub(crate) account: Arc<Account>,
    /// When and until when.
    pub(crate) session: Arc<BrowserSession>,
    cookie: String,
}

/// What the head of a page shows of a visitor.
#[derive(Serialize)]
pub(crate) struct VisitorSummary {
    user_name: String,
    display_name: String,
    organization_name: Option<String>,
}

impl SiteVisitor {
    /// The visitor that the request's session cookie belongs to.
    pub(crate) async fn find(app: &AppState, headers: &HeaderMap) -> Result<Option<Self>> {
        match SiteCookie::Session.find(app, headers) {
            Some(cookie) => Self::of(app, &cookie).await,
            None => Ok(None),
        }
    }

    /// The visitor that a session cookie of that value belongs to.
    pub(crate) async fn of(app: &AppState, cookie: &str) -> Result<Option<Self>> {
        let auth = &app.shared.access.auth;
        let Some(session) = auth.session(cookie, clock::now()).await? else { return Ok(None) };
        let Some(account) = auth.account(session.user).await? else { return Ok(None) };
        audit::note_caller(&account, CredentialKind::Session, CredentialId::None);
        Ok(Some(Self { account, session, cookie: cookie.to_owned() }))
    }

    /// The visitor as a caller of the sections.
    pub(crate) async fn principal(&self, app: &AppState) -> Result<Option<Arc<Principal>>> {
        app.shared
            .access
            .auth
            .find(PresentedCredentials::Session(&self.cookie), clock::now())
            .await
    }

    /// The session cookie's value.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The token of forms on the visitor's pages.
    pub(crate) fn form_token(&self) -> String {
        form_token(&self.cookie)
    }

    /// Whether a form with that token was shown to this visitor.
    pub(crate) fn owns_form_token(&self, token: Option<&str>) -> bool {
        is_form_token(Some(&self.cookie), token)
    }

    /// What the head of a page shows.
    pub(crate) fn head(&self) -> VisitorSummary {
        let organization = self.account.organization.as_ref();
        VisitorSummary {
            user_name: self.account.user.user_name.clone(),
            display_name: self.account.user.display_name(),
            organization_name: organization.and_then(|one| one.name.clone()),
        }
    }

    /// Ends the session.
    pub(crate) async fn log_out(&self, app: &AppState) -> Result<()> {
        app.shared.access.oauth.close_session(&self.cookie, clock::now()).await
    }
}

/// The form cookie of a request, or a new one with the header that sets it.
pub(crate) fn form_cookie(
    app: &AppState,
    headers: &HeaderMap,
) -> Result<(String, Option<HeaderValue>)> {
    if let Some(cookie) = SiteCookie::Form.find(app, headers) {
        return Ok((cookie, None));
    }
    let secret = RandomSecret::new()?;
    let value = secret.reveal().to_owned();
    let set = SiteCookie::Form.set(app, &value, None);
    Ok((value, set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_token_belongs_to_one_cookie() {
        let token = form_token("cookie");
        assert!(is_form_token(Some("cookie"), Some(&token)));
        assert!(!is_form_token(Some("another"), Some(&token)));
        assert!(!is_form_token(Some("cookie"), Some("")));
        assert!(!is_form_token(Some("cookie"), None));
        assert!(!is_form_token(None, Some(&token)));
        assert!(!is_form_token(None, None));
    }
}
