//! Builds the responses to failed requests (contract api-13), and logs the failures.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::http::cache_policy::CachePolicy;
use crate::http::help_link::HelpAnchor;
use crate::http::protocol::respond::{self, status};
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::RETRY_AFTER_S;
use crate::runtime::telemetry;
use crate::storage::database::{DbError, outage};

/// Builds the response to a failed request, and logs the failure.
pub(crate) fn build(error: &Error) -> Response {
    let status = status(error.kind());
    log_failure(error);
    let errors: Vec<_> = error
        .details()
        .iter()
        .map(|detail| {
            json!({
                "errorCode": detail.error_code,
                "location": detail.location,
                "message": detail.message,
                "path": detail.path,
            })
        })
        .collect();
    let body = json!({ "message": error.message(), "errors": errors });
    let mut response = respond::json_text(status, body.to_string().into());
    let headers = response.headers_mut();
    CachePolicy::for_error(error.kind()).set(headers);
    match error.kind() {
        ErrorKind::Unauthenticated => {
            // A request without a token learns only the schemes (RFC 6750 §3).
            let challenge =
                HeaderValue::from_static("Bearer realm=\"wirephoto\", ApiKey realm=\"wirephoto\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        ErrorKind::Overloaded | ErrorKind::Timeout | ErrorKind::Unavailable => {
            // A rate limit knows when it admits the client again; other overloads are short.
            let wait_s = error.retry_after_s().unwrap_or(RETRY_AFTER_S);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait_s));
        }
        ErrorKind::Forbidden => {
            // RFC 6750 §3.1: the client learns the scope to request; other refusals have no challenge.
            if let Some(scope) = error.missing_scope()
                && let Ok(challenge) = HeaderValue::from_str(&format!(
                    "Bearer realm=\"wirephoto\", error=\"insufficient_scope\", scope=\"{scope}\""
                ))
            {
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
        }
        ErrorKind::InvalidArgument
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Stale
        | ErrorKind::Unsupported
        | ErrorKind::TooLarge
        | ErrorKind::Internal => {}
    }
    // The link needs the site's URL, which only the outer layer knows.
    response.extensions_mut().insert(HelpAnchor::for_error(error));
    response
}

/// Builds the response to a failed request like [`build`], with a status that no kind of error has.
pub(crate) fn build_with_status(status: StatusCode, failure: &Error) -> Response {
    let mut response = build(failure);
    *response.status_mut() = status;
    response
}

/// Builds the response to a failed request like [`build`]; a 401 to a request with a bearer token says that the token
/// is invalid.
pub(crate) fn build_with_challenge(failure: &Error, has_bearer: bool) -> Response {
    let mut response = build(failure);
    // RFC 6750 §3.1: with `invalid_token` an OAuth2 client knows that a refresh may help.
    if failure.kind() == ErrorKind::Unauthenticated && has_bearer {
        let challenge = HeaderValue::from_static(
            "Bearer realm=\"wirephoto\", error=\"invalid_token\", ApiKey realm=\"wirephoto\"",
        );
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Logs a server error with its cause; a refusal because of load or of an outage is only counted.
pub(crate) fn log_failure(error: &Error) {
    let status = status(error.kind());
    if error.kind() == ErrorKind::Overloaded {
        record_shed(error);
    // A client's mistake has its status in the request line; only our own failures need a cause.
    } else if status.is_server_error() && !is_counted(error) {
        // Walking the chain of sources allocates, so it happens only for errors that are logged.
        let cause = error.cause().unwrap_or_default();
        tracing::error!(status = status.as_u16(), "{}: {cause}", error.message());
    }
}

/// Returns whether the failure needs no log line of its own: an API has logged it, or it is counted as part of an
/// outage.
pub(crate) fn is_counted(error: &Error) -> bool {
    error.is_logged() || error.cause_as::<DbError>().is_some_and(outage::count_refused)
}

/// Counts a request that load shedding refused. An overload must not flood the log: the log line of the
/// request has the status, and the metric has the reason.
pub(crate) fn record_shed(error: &Error) {
    // The first error code names the queue or rate limit that was full.
    let reason = error.details().first().map_or("other", |detail| detail.error_code.as_str());
    metrics::counter!(telemetry::SHED, "reason" => reason.to_owned()).increment(1);
    tracing::debug!(reason, "{}", error.message());
}
