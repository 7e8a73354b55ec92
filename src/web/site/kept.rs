//! What was typed into a form whose session ended: it goes with the login, and is sent once more.
//!
//! Nothing is kept on the server. The fields travel through the login page, and behind it a page
//! shows them and asks whether they are to be sent; so no other site can make a browser send
//! anything by itself.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use minijinja::{context, value::Serde};
use serde::Serialize;

use super::{App, Form, login};
use crate::error::Result;
use crate::web::{
    pages::{self, Leads},
    session::Visitor,
};

/// A form that could not be taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) struct Kept {
    /// The path it was sent to.
    pub(in crate::web) action: String,
    /// Its fields, encoded.
    pub(in crate::web) fields: String,
}

#[derive(Serialize)]
struct Field {
    name: String,
    value: String,
}

impl Kept {
    /// The form that came from a page of ours to `action`; nothing when it came from elsewhere.
    pub(super) fn of(headers: &HeaderMap, action: &str, fields: &str) -> Option<Self> {
        let kept = Self { action: action.to_owned(), fields: fields.to_owned() };
        (is_from_us(headers) && login::is_ours(action)).then_some(kept)
    }

    /// The form that `login`, the encoded form of a login page, hands on.
    pub(in crate::web) fn handed_on(login: &str) -> Option<Self> {
        let value = |wanted: &str| {
            let mut pairs = form_urlencoded::parse(login.as_bytes());
            pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let kept = Self { action: value("kept_action")?, fields: value("kept_fields")? };
        login::is_ours(&kept.action).then_some(kept)
    }

    /// The page that shows what was typed and sends it for `visitor`.
    pub(in crate::web) fn page(&self, app: &App, visitor: &Visitor) -> Result<Response> {
        let Form(pairs) = Form::parse(&self.fields)?;
        let is_theirs = |(name, _): &(String, String)| name != "csrf";
        let field = |(name, value)| Field { name, value };
        let fields: Vec<Field> = pairs.into_iter().filter(is_theirs).map(field).collect();
        let context = context! {
            action => self.action.clone(),
            fields => minijinja::Value::from(Serde(fields)),
            ..pages::head(app, Some(visitor), "/")
        };
        pages::private(app, StatusCode::OK, "kept.html", context, Leads::Home)
    }
}

/// Whether a page of ours sent the request. Browsers name the sender of every form.
fn is_from_us(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, authority)| text(header::HOST) == Some(authority))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_of_another_site_is_not_kept() {
        let check = |origin: Option<&'static str>, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("pictures.example:8080"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(
                Kept::of(&headers, "/collections", "a=1").is_some(),
                expected,
                "{origin:?}"
            );
        };
        check(Some("https://pictures.example:8080"), true);
        check(Some("https://evil.example"), false);
        check(Some("https://pictures.example"), false);
        check(Some("null"), false);
        check(None, false);
    }

    #[test]
    fn a_form_is_handed_on_to_pages_of_ours_only() {
        let kept =
            Kept::handed_on("kept_action=/collections/x&kept_fields=name%3Da%2526").unwrap();
        assert_eq!((kept.action.as_str(), kept.fields.as_str()), ("/collections/x", "name=a%26"));
        assert_eq!(Kept::handed_on("kept_action=//evil.example/&kept_fields=a"), None);
        assert_eq!(Kept::handed_on("kept_action=/o/login&kept_fields=a"), None);
        assert_eq!(Kept::handed_on("kept_fields=a"), None);
    }
}
