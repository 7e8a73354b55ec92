//! Parses the bodies of HTML forms, and redirects after a form was sent.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::http::cache_policy::CachePolicy;
use crate::http::error_response;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{FORM_BYTES_MAX, SITE_FORM_FIELDS_MAX};
use model::account::AgreementId;

/// Reads the encoded body of a form, with the request's headers.
///
/// Fails for any other content type, for a body beyond [`FORM_BYTES_MAX`], and for a body that is not ASCII.
pub async fn form_body(request: Request) -> Result<(HeaderMap, String)> {
    form_body_within(request, FORM_BYTES_MAX).await
}

/// Reads a form like [`form_body`], with a different limit in bytes.
pub(crate) async fn form_body_within(
    request: Request,
    bytes_max: usize,
) -> Result<(HeaderMap, String)> {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    // A body of a different type would parse as a form without the expected fields.
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")) {
        let message = "expected a body of the type application/x-www-form-urlencoded";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    // The library does not distinguish a limit from a broken connection, so the message names both.
    let bytes = to_bytes(body, bytes_max).await.map_err(|cause| {
        let message = format!("the form cannot be read or has more than {bytes_max} bytes");
        Error::new(ErrorKind::TooLarge, message).with_source(cause)
    })?;
    let text = String::from_utf8(bytes.to_vec());
    // URL-encoded text is ASCII; other bytes would be replaced silently by the decoder.
    let text = text.ok().filter(|text| text.is_ascii());
    let text =
        text.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, "the form is not URL-encoded"))?;
    Ok((parts.headers, text))
}

/// The fields of a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormFields(pub(crate) Vec<(String, String)>);

impl FormFields {
    /// Parses an encoded form; fails when it has more than [`SITE_FORM_FIELDS_MAX`] fields.
    pub fn parse(encoded: &str) -> Result<Self> {
        let pairs = form_urlencoded::parse(encoded.as_bytes()).into_owned();
        // One field more than allowed is enough to refuse the form, so an endless form is not collected.
        let pairs: Vec<_> = pairs.take(SITE_FORM_FIELDS_MAX + 1).collect();
        if pairs.len() > SITE_FORM_FIELDS_MAX {
            let message = format!("The form has more than {SITE_FORM_FIELDS_MAX} fields");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(Self(pairs))
    }

    /// Iterates over names and values as they were entered.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the field `name`, trimmed; `None` if it is absent or empty.
    pub fn find<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Returns the field `name`, trimmed; empty if it is absent.
    pub fn text(&self, name: &str) -> String {
        self.find(name).unwrap_or_default().to_owned()
    }

    /// Returns the field `name` as it was entered, with the spaces around it.
    pub fn find_untrimmed(&self, name: &str) -> Option<&str> {
        self.fields().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Parses the field `agr`, the id of an agreement; `None` if it is absent.
    pub(crate) fn agreement(&self) -> Result<Option<AgreementId>> {
        let Some(text) = self.find("agr") else { return Ok(None) };
        match text.parse::<i64>() {
            Ok(id) => Ok(Some(AgreementId(id))),
            Err(_) => Err(Error::invalid("body", "agr", "type", "agr is not a number")),
        }
    }

    /// Iterates over the values of the field `name`, trimmed, without empty ones.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let matching = self.0.iter().filter(move |(own, _)| own == name);
        // Browsers send empty fields as well, which mean the same as missing ones.
        matching.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns whether the check box `name` is ticked.
    pub fn is_ticked(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

/// Redirects to a page by GET after a form was sent. The response is never cached.
pub(crate) fn see_other(location: &str) -> Response {
    // Refuses line breaks, which could add headers to the response.
    let Ok(location) = HeaderValue::from_str(location) else {
        return error_response::build(&Error::internal(
            "a redirect address has control characters",
        ));
    };
    let mut response = Response::new(Body::empty());
    // 303 continues with `GET`, so that a reload does not send the form again (RFC 9110 §15.4.4).
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    CachePolicy::NoStore.set(headers);
    response
}
