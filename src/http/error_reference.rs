//! The reference page of errors. Error responses link to its entries (`help_link`).

use std::fmt::Write;

use strum::IntoEnumIterator;

use crate::access::oauth::OAuthErrorCode;
use crate::http::heading_anchor::anchor;
use crate::http::oauth;
use crate::http::protocol::respond::status;
use crate::runtime::error::ErrorKind;
use crate::runtime::error_codes::{ERROR_CODES, VALIDATION_RULES, meaning};
use crate::runtime::markdown::cell;

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
pub fn reference() -> String {
    let mut page = String::from(
        "Errors of the APIs have a JSON body, `{\"message\": …, \"errors\": [{\"errorCode\", \"location\", \
         \"message\", \"path\"}]}`. Compare `errorCode`; the messages are for people and may change. Every such \
         response also has a header `Link: <…>; rel=\"help\"`, which leads to the entry on this page.\n\n## \
         Statuses\n\n",
    );
    let mut last = None;
    for kind in STATUSES {
        let number = status(kind);
        let reason = number.canonical_reason().unwrap_or_default();
        // Several kinds share a status, which has one heading.
        if last == Some(number) {
            push_paragraph(&mut page, meaning(kind));
        } else {
            let heading = format!("### {}\n\n**{reason}**. {}", number.as_u16(), meaning(kind));
            push_paragraph(&mut page, &heading);
        }
        last = Some(number);
    }
    page.push_str("## Error codes\n\n| Code | Status |\n| --- | --- |\n");
    for entry in ERROR_CODES {
        let code = entry.code;
        let number = status(entry.kind).as_u16();
        writeln!(page, "| [`{code}`](#{}) | {number} |", anchor(code)).expect("a text grows");
    }
    page.push('\n');
    for entry in ERROR_CODES {
        let code = entry.code;
        let number = status(entry.kind).as_u16();
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
