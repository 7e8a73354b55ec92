//! Browser sessions: session cookie, form cookie and the CSRF tokens of forms.
//!
//! All cookies are `HttpOnly` and `SameSite=Lax`, and with TLS `Secure`. The cookies of sessions and forms then
//! have the prefix `__Host-`, so that no other host can set them. A form carries a token that only a page of this
//! site could know: a hash of the cookie, which other sites can neither read nor send.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use serde::Serialize;

use crate::access::auth::{PresentedCredentials, Principal, RandomSecret};
use crate::http::AppState;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::TOKEN_BYTES_MAX;
use crate::storage::audit::{self, CredentialKind};
use crate::storage::database::BrowserSession;
use model::ContentHash;
use model::account::{Account, ROLE_OPERATOR, ROLE_PROVIDER};

/// A cookie of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteCookie {
    /// The cookie of a browser session.
    Session,
    /// The cookie of a form that was shown to an anonymous visitor.
    Form,
    /// The cookie of a browser in which a user has logged in; it outlasts the session.
    ///
    /// Only the login reads it, so it is sent only there: caches forward requests with a cookie to the server. The
    /// prefix `__Host-` would require the path `/`; a cookie that a different host set proves nothing.
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

    /// Returns the cookie's value in a request.
    pub(crate) fn find(self, app: &AppState, headers: &HeaderMap) -> Option<String> {
        let value = cookie_value(headers, self.name(app.shared.site.secure_cookies))?;
        // An overlong value cannot be a token of this service.
        (!value.is_empty() && value.len() <= TOKEN_BYTES_MAX).then(|| value.to_owned())
    }

    /// Returns the value of the request header `Cookie` with `visitor`'s session.
    pub(crate) fn send(self, app: &AppState, visitor: &SiteVisitor) -> String {
        format!("{}={}", self.name(app.shared.site.secure_cookies), visitor.cookie)
    }

    /// Returns the `Set-Cookie` value with a lifetime of `seconds`; if `None`, the cookie expires with the browser
    /// session.
    pub(crate) fn set(
        self,
        app: &AppState,
        value: &str,
        seconds: Option<u32>,
    ) -> Option<HeaderValue> {
        let secure = app.shared.site.secure_cookies;
        let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        let tail = if secure { "; Secure" } else { "" };
        let name = self.name(secure);
        let path = self.path();
        let text = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax{age}{tail}");
        HeaderValue::from_str(&text).ok()
    }
}

/// Returns the value of the cookie `name` in a request.
pub(crate) fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    // HTTP/2 clients may split cookies into several headers (RFC 9113 §8.2.3).
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(own, _)| own.trim() == name)?;
    Some(value.trim())
}

/// Returns the CSRF token of forms, derived from a cookie's value.
pub(crate) fn form_token(cookie: &str) -> String {
    // The prefix separates the uses of a cookie: a token of one kind is not valid as the other kind.
    ContentHash::new(format!("wirephoto form\0{cookie}").as_bytes()).short()
}

/// Returns the token of a deferred form on the login page, derived from the form cookie's value, so that no other
/// site can forge it.
pub(crate) fn deferred_form_token(cookie: &str, action: &str, fields: &str) -> String {
    // The lengths make sure that moving text from the action into the fields changes the hash.
    let lengths = [cookie.len(), action.len()];
    ContentHash::new(format!("wirephoto kept\0{lengths:?}{cookie}{action}{fields}").as_bytes())
        .short()
}

/// Returns whether the token of a form belongs to the cookie.
pub(crate) fn is_form_token(cookie: Option<&str>, token: Option<&str>) -> bool {
    let expected = cookie.map(form_token);
    expected.zip(token).is_some_and(|(expected, token)| tokens_equal(&expected, token))
}

/// Compares two tokens in constant time: their hashes are compared, so the duration reveals nothing about the
/// token.
pub(crate) fn tokens_equal(expected: &str, token: &str) -> bool {
    ContentHash::new(expected.as_bytes()) == ContentHash::new(token.as_bytes())
}

/// Returns whether a request has a session cookie, valid or not.
pub(crate) fn has_session_cookie(app: &AppState, headers: &HeaderMap) -> bool {
    SiteCookie::Session.find(app, headers).is_some()
}

/// A user who is logged in in this browser.
#[derive(Clone)]
pub(crate) struct SiteVisitor {
    pub(crate) account: Arc<Account>,
    /// The browser session with its login time and expiry.
    pub(crate) session: Arc<BrowserSession>,
    cookie: String,
}

/// The data about a visitor that the head of a page shows.
#[derive(Serialize)]
pub(crate) struct VisitorSummary {
    user_name: String,
    display_name: String,
    organization_name: Option<String>,
}

impl SiteVisitor {
    /// Finds the visitor of the request's session cookie.
    pub(crate) async fn find(app: &AppState, headers: &HeaderMap) -> Result<Option<Self>> {
        match SiteCookie::Session.find(app, headers) {
            Some(cookie) => Self::find_by_cookie(app, &cookie).await,
            None => Ok(None),
        }
    }

    /// Finds the visitor of a session cookie's value.
    pub(crate) async fn find_by_cookie(app: &AppState, cookie: &str) -> Result<Option<Self>> {
        let auth = &app.shared.access.auth;
        let Some(session) = auth.session(cookie, clock::now()).await? else { return Ok(None) };
        // The user may have been deactivated or removed since the login.
        let Some(account) = auth.account(session.user).await? else { return Ok(None) };
        audit::note_caller(&account, CredentialKind::Session, None);
        Ok(Some(Self { account, session, cookie: cookie.to_owned() }))
    }

    /// Returns whether the visitor may open the pages of operators.
    pub(crate) fn has_operator_role(&self) -> bool {
        self.account.user.roles.iter().any(|role| role == ROLE_OPERATOR)
    }

    /// Authenticates the visitor as a caller of the services.
    pub(crate) async fn principal(&self, app: &AppState) -> Result<Option<Arc<Principal>>> {
        app.shared
            .access
            .auth
            .find(PresentedCredentials::Session(&self.cookie), clock::now())
            .await
    }

    /// Returns whether the visitor has the role of a provider, who publishes and changes items.
    pub(crate) fn is_provider(&self) -> bool {
        self.account.user.roles.iter().any(|role| role == ROLE_PROVIDER)
    }

    /// Returns the value of the session cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns the CSRF token of forms on the visitor's pages.
    pub(crate) fn form_token(&self) -> String {
        form_token(&self.cookie)
    }

    /// Returns a name of the session, under which scripts store data that belongs to it. The name reveals nothing
    /// about the cookie, and grants no access.
    pub(crate) fn session_name(&self) -> String {
        ContentHash::new(format!("wirephoto session name\0{}", self.cookie).as_bytes()).short()
    }

    /// Returns whether a form with `token` was shown to this visitor.
    pub(crate) fn owns_form_token(&self, token: Option<&str>) -> bool {
        is_form_token(Some(&self.cookie), token)
    }

    /// Returns the data about the visitor that the head of a page shows.
    pub(crate) fn head(&self) -> VisitorSummary {
        let organization = self.account.organization.as_ref();
        VisitorSummary {
            user_name: self.account.user.user_name.clone(),
            display_name: self.account.user.display_name(),
            organization_name: organization.and_then(|organization| organization.name.clone()),
        }
    }

    /// Ends the browser session.
    pub(crate) async fn log_out(&self, app: &AppState) -> Result<()> {
        app.shared.access.oauth.close_session(&self.cookie, clock::now()).await
    }
}

/// Returns the form cookie of a request, or a new one with its `Set-Cookie` value.
pub(crate) fn form_cookie(
    app: &AppState,
    headers: &HeaderMap,
) -> Result<(String, Option<HeaderValue>)> {
    if let Some(cookie) = SiteCookie::Form.find(app, headers) {
        // Forms in other tabs carry the token of this cookie, so it is not replaced.
        return Ok((cookie, None));
    }
    let secret = RandomSecret::new()?;
    let value = secret.reveal().to_owned();
    // It lasts as long as the browser session: an anonymous form needs no longer.
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
