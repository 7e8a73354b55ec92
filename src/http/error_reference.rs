//! The reference page of errors, and the link from an error response to its entry.

use std::fmt::Write;

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use strum::IntoEnumIterator;

use crate::access::oauth::OAuthErrorCode;
use crate::http::oauth;
use crate::http::protocol::respond::status;
use crate::http::site::guide;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::error_codes::{ERROR_CODES, VALIDATION_RULES, meaning};
use crate::runtime::markdown::cell;

const PAGE: &str = "/docs/guide/reference/errors";

/// The anchor of an error's entry; an extension of the response until the header is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HelpAnchor(String);

impl HelpAnchor {
    /// The anchor of `error`: its first code if the page lists it, else its status.
    pub(crate) fn of(error: &Error) -> Self {
        let code = error.details().first().map(|detail| detail.error_code.as_str());
        let listed = code.filter(|code| is_listed(code));
        Self(listed.map_or_else(|| status(error.kind()).as_u16().to_string(), guide::anchor))
    }

    /// The anchor of an error of the token endpoint.
    pub(crate) fn of_oauth(code: OAuthErrorCode) -> Self {
        Self(guide::anchor(code.as_str()))
    }

    /// The path and fragment of the entry on this server.
    pub(crate) fn path(&self) -> String {
        format!("{PAGE}#{}", self.0)
    }
}

/// Adds `Link: <…>; rel="help"` (RFC 8288) to an error response, with a URL below `site_url`. The body, which
/// clients parse, does not change.
pub(crate) fn link(response: &mut Response, site_url: &str) {
    let Some(anchor) = response.extensions_mut().remove::<HelpAnchor>() else { return };
    append(response.headers_mut(), &format!("<{site_url}{}>; rel=\"help\"", anchor.path()));
}

fn append(headers: &mut HeaderMap, link: &str) {
    if let Ok(link) = HeaderValue::from_str(link) {
        // Appended, because deprecated interfaces have a `Link` to their successor.
        headers.append(header::LINK, link);
    }
}

/// Whether the page has an entry for `code`.
fn is_listed(code: &str) -> bool {
    let rule = code.strip_suffix(".openapi.requestValidation");
    // A validation code is built from its rule, so only the rule is listed.
    match rule {
        Some(rule) => VALIDATION_RULES.iter().any(|entry| entry.rule == rule),
        None => ERROR_CODES.iter().any(|entry| entry.code == code),
    }
}

/// The kinds of errors in the order of their statuses.
const STATUSES: [ErrorKind; 12] = [
    ErrorKind::InvalidArgument,
    ErrorKind::Unauthenticated,
    ErrorKind::Forbidden,
    ErrorKind::NotFound,
    ErrorKind::Unsupported,
    ErrorKind::Conflict,
    ErrorKind::Stale,
    ErrorKind::TooLarge,
    ErrorKind::Internal,
    ErrorKind::Overloaded,
    ErrorKind::Timeout,
    ErrorKind::Unavailable,
];

/// Renders the page as Markdown: every status, every `errorCode`, every error of the OAuth2 endpoints.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "Errors of the APIs have a JSON body, `{\"message\": …, \"errors\": [{\"errorCode\", \"location\", \
         \"message\", \"path\"}]}`. Compare `errorCode`; the messages are for people and may change. Every error \
         response also has a header `Link: <…>; rel=\"help\"`, which leads to the entry on this page.\n\n## \
         Statuses\n\n",
    );
    let mut last = None;
    for kind in STATUSES {
        let number = status(kind);
        let reason = number.canonical_reason().unwrap_or_default();
        // Several kinds share a status, which has one heading.
        match last == Some(number) {
            true => push_paragraph(&mut page, meaning(kind)),
            false => {
                let number = number.as_u16();
                push_paragraph(
                    &mut page,
                    &format!("### {number}\n\n**{reason}**. {}", meaning(kind)),
                );
            }
        }
        last = Some(number);
    }
    page.push_str("## Error codes\n\n| Code | Status |\n| --- | --- |\n");
    for entry in ERROR_CODES {
        let (code, number) = (entry.code, status(entry.kind).as_u16());
        writeln!(page, "| [`{code}`](#{}) | {number} |", guide::anchor(code))
            .expect("a text grows");
    }
    page.push('\n');
    for entry in ERROR_CODES {
        let (code, number) = (entry.code, status(entry.kind).as_u16());
        push_paragraph(
            &mut page,
            &format!("### {code}\n\nStatus {number}. {}\n\n{}", entry.meaning, entry.remedy),
        );
    }
    push_paragraph(
        &mut page,
        "## Validation\n\nA request that breaks a rule of the contract is answered 400. `errors` has an entry for \
         each part that is wrong: `location` is `path`, `query`, `headers` or `body`, `path` names the parameter or \
         the property. Correct all of them and send the request again; the same request fails again.",
    );
    for entry in VALIDATION_RULES {
        push_paragraph(
            &mut page,
            &format!(
                "### {}.openapi.requestValidation\n\nStatus 400. {}",
                entry.rule, entry.meaning
            ),
        );
    }
    push_paragraph(
        &mut page,
        "## OAuth2\n\nThe endpoints for tokens answer as RFC 6749 defines: `{\"error\": …, \"error_description\": \
         …}`. The authorization endpoint sends the same codes to the client's redirect address.",
    );
    for code in OAuthErrorCode::iter() {
        let number = oauth::status(code).as_u16();
        push_paragraph(
            &mut page,
            &format!("### {}\n\nStatus {number}. {}", code.as_str(), cell(code.meaning())),
        );
    }
    page
}

fn push_paragraph(page: &mut String, paragraph: &str) {
    page.push_str(paragraph);
    page.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_links_to_its_code_else_to_its_status() {
        let check = |error: Error, expected: &str| {
            assert_eq!(HelpAnchor::of(&error).path(), format!("{PAGE}#{expected}"));
        };
        check(Error::forbidden("agreement_required", "no"), "agreement_required");
        check(Error::invalid("query", "s", "maximum", "no"), "maximumopenapirequestvalidation");
        check(Error::new(ErrorKind::NotFound, "no"), "404");
        check(Error::forbidden("of_another_release", "no"), "403");
    }
}
