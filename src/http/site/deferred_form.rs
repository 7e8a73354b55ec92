//! A form whose session expired before the visitor sent it. Its input is preserved during the login and submitted
//! afterwards.
//!
//! The server stores nothing. The login page carries the fields along in fields named `kept_…`, with a token derived from
//! the form cookie, the cookie of visitors without a session, whose value other sites do not know. The page after the
//! login shows the input and asks for confirmation, so a different site cannot make a browser submit a form. Secrets are
//! left out and must be entered again, because a different user may log in.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use minijinja::{context, value::Serde};

use super::{AppState, FormFields, kept_labels, login};
use crate::http::session::{self, SiteVisitor};
use crate::http::site::pages::{self, FormTargets};
use crate::runtime::error::Result;

/// Prefix of the names of fields that hold a channel's secrets.
const SECRET_PREFIX: &str = "secret.";
/// The fields of the form that changes a password.
const PASSWORD_FIELDS: [&str; 3] = ["old", "password", "repeated"];

/// A form that is submitted after the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeferredForm {
    /// The path to which the form was sent.
    pub(in crate::http) action: String,
    /// The form's fields, encoded.
    pub(in crate::http) fields: String,
}

impl DeferredForm {
    /// Creates the deferred form for `action`; `None` unless a page with one of `origins` sent it.
    pub(crate) fn new(
        headers: &HeaderMap,
        origins: &[&str],
        action: &str,
        fields: &str,
    ) -> Option<Self> {
        let form = Self { action: action.to_owned(), fields: without_secrets(fields) };
        // Otherwise a different site could prepare a form that its victim submits after the login.
        (is_same_origin(headers, origins) && login::is_local_page(action)).then_some(form)
    }

    /// Reads the deferred form from `text`, the encoded form of a login page. `None` if there is no deferred form,
    /// or its token was not derived from the form cookie `cookie`.
    pub(in crate::http) fn from_login_form(text: &str, cookie: Option<&str>) -> Option<Self> {
        let action = find_value(text, "kept_action")?;
        let fields = find_value(text, "kept_fields")?;
        let form = Self { action, fields };
        // Compared in constant time. The token covers the action and the fields, so another site can set neither.
        session::tokens_equal(&form.token(cookie?), &find_value(text, "kept_token")?)
            .then_some(form)
    }

    /// Returns the token that protects the deferred form on the login page. It is valid only with the form cookie
    /// `cookie`.
    pub(in crate::http) fn token(&self, cookie: &str) -> String {
        session::deferred_form_token(cookie, &self.action, &self.fields)
    }

    /// Renders the page that shows the input and submits it for `visitor`.
    pub(in crate::http) fn page(&self, app: &AppState, visitor: &SiteVisitor) -> Result<Response> {
        let form = FormFields::parse(&self.fields)?;
        // The page's head names the visitor who logged in, who may differ from the visitor who filled in the form.
        let context = context! {
            action => self.action.clone(),
            shown => Serde(kept_labels::shown(&form)),
            fields => Serde(form.0),
            ..pages::head(app, Some(visitor), "/")
        };
        pages::private_page(app, StatusCode::OK, "kept.html", context, FormTargets::OwnPages)
    }
}

/// Returns the value of the field `name` of an encoded form.
fn find_value(form: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(form.as_bytes());
    pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
}

/// Removes the CSRF token and secrets from the encoded form `fields`.
pub fn without_secrets(fields: &str) -> String {
    let pairs = form_urlencoded::parse(fields.as_bytes());
    // The CSRF token belongs to the session that ended. The page adds the token of the new session.
    let pairs = pairs.filter(|(name, _)| name != "csrf" && !is_secret(name));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn is_secret(name: &str) -> bool {
    name.starts_with(SECRET_PREFIX) || PASSWORD_FIELDS.contains(&name)
}

/// Returns whether a page of one of `origins` sent the request. Each is a host with its port, or a complete
/// origin. Browsers send `Origin` with every form.
fn is_same_origin(headers: &HeaderMap, origins: &[&str]) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
    let Some((_, authority)) = origin.and_then(|origin| origin.split_once("://")) else {
        // If the origin is missing or `null`, the sender is unknown.
        return false;
    };
    // Only hosts are compared, because the scheme is unknown behind a proxy that terminates TLS.
    origins.iter().any(|own| own.split_once("://").map_or(*own, |(_, own)| own) == authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_of_another_site_is_not_kept() {
        let check = |origin: Option<&'static str>, expected: bool| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let own = ["pictures.example:8080", "https://desk.example"];
            let kept = DeferredForm::new(&headers, &own, "/collections", "a=1");
            assert_eq!(kept.is_some(), expected, "{origin:?}");
        };
        check(Some("https://pictures.example:8080"), true);
        check(Some("https://desk.example"), true);
        check(Some("https://evil.example"), false);
        check(Some("https://pictures.example"), false);
        check(Some("null"), false);
        check(None, false);
    }

    #[test]
    fn a_form_is_handed_on_only_by_the_page_that_was_given_it() {
        let kept =
            DeferredForm { action: "/collections".to_owned(), fields: "name=a%26".to_owned() };
        let login = |token: &str, fields: &str| {
            let pairs =
                [("kept_token", token), ("kept_action", "/collections"), ("kept_fields", fields)];
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
        };
        let good = login(&kept.token("cookie"), "name=a%26");
        assert_eq!(DeferredForm::from_login_form(&good, Some("cookie")), Some(kept.clone()));
        assert_eq!(DeferredForm::from_login_form(&good, Some("another")), None);
        assert_eq!(DeferredForm::from_login_form(&good, None), None);
        let changed = login(&kept.token("cookie"), "name=b");
        assert_eq!(DeferredForm::from_login_form(&changed, Some("cookie")), None);
        assert_eq!(DeferredForm::from_login_form(&login("", "name=a%26"), Some("cookie")), None);
    }

    #[test]
    fn secrets_are_not_kept() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static("http://a.example"));
        let fields = "name=n&secret.password=p&csrf=c&b=%C3%A5+";
        let kept =
            DeferredForm::new(&headers, &["a.example"], "/account/channels/edit", fields).unwrap();
        assert_eq!(kept.fields, "name=n&b=%C3%A5+");
        assert_eq!(without_secrets("old=a&password=b&repeated=b&keys=on"), "keys=on");
    }
}
