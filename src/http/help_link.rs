//! The link from an error response to its entry on the reference page of errors.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use crate::access::oauth::OAuthErrorCode;
use crate::http::heading_anchor::anchor;
use crate::http::protocol::respond::status;
use crate::runtime::error::Error;
use crate::runtime::error_codes::{ERROR_CODES, VALIDATION_RULES};

/// The path of the reference page of errors on this server.
const PAGE: &str = "/docs/guide/reference/errors";

/// The anchor of an error's entry on the page. The response carries it as an extension until [`add`] writes the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HelpAnchor(String);

impl HelpAnchor {
    /// Returns the anchor of `error`: its first code if the page lists it, else its status.
    pub(crate) fn for_error(error: &Error) -> Self {
        let code = error.details().first().map(|detail| detail.error_code.as_str());
        match code.filter(|code| is_listed(code)) {
            Some(code) => Self(anchor(code)),
            None => Self(status(error.kind()).as_u16().to_string()),
        }
    }

    /// Returns the anchor of an OAuth2 error, which the page lists by its code.
    pub(crate) fn for_oauth(code: OAuthErrorCode) -> Self {
        Self(anchor(code.as_str()))
    }

    /// Returns the path and fragment of the entry on this server.
    pub(crate) fn path(&self) -> String {
        format!("{PAGE}#{}", self.0)
    }
}

/// Adds `Link: <…>; rel="help"` (RFC 8288) to an error response, with a URL below `site_url`. The body, which
/// clients parse, does not change.
pub(crate) fn add(response: &mut Response, site_url: &str) {
    let Some(anchor) = response.extensions_mut().remove::<HelpAnchor>() else { return };
    append(response.headers_mut(), &format!("<{site_url}{}>; rel=\"help\"", anchor.path()));
}

fn append(headers: &mut HeaderMap, link: &str) {
    if let Ok(link) = HeaderValue::from_str(link) {
        // Appended, because deprecated interfaces have a `Link` to their successor.
        headers.append(header::LINK, link);
    }
}

/// Returns whether the page has an entry for `code`.
fn is_listed(code: &str) -> bool {
    // A code such as `maximum.openapi.requestValidation` is built from the rule that was broken, and the table has the
    // rule alone.
    match code.strip_suffix(".openapi.requestValidation") {
        Some(rule) => VALIDATION_RULES.iter().any(|entry| entry.rule == rule),
        None => ERROR_CODES.iter().any(|entry| entry.code == code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::error::ErrorKind;

    #[test]
    fn an_error_links_to_its_code_else_to_its_status() {
        let check = |error: Error, expected: &str| {
            assert_eq!(HelpAnchor::for_error(&error).path(), format!("{PAGE}#{expected}"));
        };
        check(Error::forbidden("agreement_required", "no"), "agreement_required");
        check(Error::invalid("query", "s", "maximum", "no"), "maximumopenapirequestvalidation");
        check(Error::new(ErrorKind::NotFound, "no"), "404");
        check(Error::forbidden("of_another_release", "no"), "403");
    }
}
