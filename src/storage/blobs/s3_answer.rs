//! Interprets the answers of a bucket: recognizes refusals, and names the setting that is probably wrong.

use std::time::Duration;

use crate::runtime::error::chain;
use crate::runtime::limits;
use model::shorten;

/// The start of the message of a request that was not answered in time.
pub(super) const NO_ANSWER: &str = "no answer within";

/// Returns the setting that is likely to be wrong, judging by the service's answer: its status between
/// spaces, and the body.
pub(super) fn likely_setting(answer: &str) -> &'static str {
    match code(answer).as_deref() {
        Some("NoSuchBucket" | "InvalidBucketName") => "store.originals",
        Some("InvalidAccessKeyId") => "store.access_key_id",
        Some("InvalidToken" | "ExpiredToken" | "TokenRefreshRequired") => "store.session_token",
        Some("SignatureDoesNotMatch") => "store.secret_access_key",
        // Garage's message for a wrong secret.
        Some("AccessDenied") if answer.contains("Invalid signature") => "store.secret_access_key",
        Some(
            "AuthorizationHeaderMalformed"
            | "PermanentRedirect"
            | "TemporaryRedirect"
            | "IllegalLocationConstraintException",
        ) => "store.region",
        Some("AccessDenied" | "AllAccessDisabled" | "AccountProblem") => "store.access_key_id",
        // The answer to a HEAD has no body, and so no code.
        Some(_) | None if answer.contains(" 403 ") => "store.access_key_id",
        Some(_) | None if answer.contains(" 404 ") => "store.originals",
        Some(_) | None => "store.endpoint",
    }
}

/// Describes the reason that an answer with this status and body counts as a failure. For a refusal, names
/// the setting that is likely to be wrong.
pub(super) fn failure_reason(status: u16, body: &[u8]) -> String {
    let answer = format!(" {status} {}", String::from_utf8_lossy(body));
    let message = error_message(&answer);
    let message = message.map(|message| format!(": {}", tidy(&message))).unwrap_or_default();
    match status {
        401 | 403 => format!("it answers {status}{message}; see {}", likely_setting(&answer)),
        _ => format!("it answers {status}{message}"),
    }
}

/// Returns whether the bucket may exist and be slow: it sent no answer in time, or asked the client to retry
/// later, and refused nothing.
pub(super) fn is_slow(error: &object_store::Error) -> bool {
    let text = chain(error);
    let retryable = [" 429 ", " 500 ", " 502 ", " 503 ", " 504 "];
    text.contains(NO_ANSWER) || retryable.iter().any(|status| text.contains(status))
}

/// Returns whether a different address of the same service may succeed: no answer arrived, or this address
/// itself failed.
pub(super) fn may_succeed_elsewhere(error: &object_store::Error) -> bool {
    // Every other variant is an answer about the object, which is the same at each address.
    let object_store::Error::Generic { .. } = error else { return false };
    let text = chain(error);
    // 429 may concern this address only; other 4xx answers are the same everywhere.
    !(400..500).any(|status| status != 429 && text.contains(&format!(" {status} ")))
}

/// Returns whether the bucket refuses our credentials.
pub(super) fn is_refusal(error: &object_store::Error) -> bool {
    let text = chain(error);
    [" 401 ", " 403 "].iter().any(|status| text.contains(status))
}

/// Runs `work` for `limit` at most.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let source = format!("{NO_ANSWER} {limit:?}").into();
        Err(object_store::Error::Generic { store: "S3", source })
    })
}

/// Returns whether the object or the bucket does not exist.
pub(super) fn is_missing(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
}

/// Returns whether the bucket itself does not exist.
pub(super) fn is_without_bucket(error: &object_store::Error) -> bool {
    is_missing(error) && code(&chain(error)).as_deref() == Some("NoSuchBucket")
}

/// Returns whether the object has been replaced since it was opened.
pub(super) fn is_replaced(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::Precondition { .. })
}

/// Returns whether the object ends before the first requested byte.
pub(super) fn is_too_short(error: &object_store::Error) -> bool {
    let text = chain(error);
    code(&text).as_deref() == Some("InvalidRange") || text.contains(" 416 ")
}

fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0.to_owned())
}

fn code(text: &str) -> Option<String> {
    element(text, "Code")
}

/// Describes a failure in the words of the service or of the system. Answers are not repeated in full,
/// because they reveal how the request was signed.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let text = chain(error);
    let message = error_message(&text).unwrap_or_else(|| {
        // The outer errors repeat the request. The innermost error comes from the system.
        let mut deepest = error;
        while let Some(cause) = deepest.source() {
            deepest = cause;
        }
        deepest.to_string()
    });
    tidy(&message)
}

/// Returns code and message of an error answer.
fn error_message(answer: &str) -> Option<String> {
    let code = code(answer)?;
    Some(match element(answer, "Message") {
        Some(message) => format!("{code}: {message}"),
        None => code,
    })
}

/// Shortens a message of a service or the system to one line.
fn tidy(message: &str) -> String {
    let line = message.split(['<', '\n']).next().unwrap_or_default();
    let line = line.trim_end_matches([' ', ':']);
    shorten(&line.replace(char::is_control, ""), limits::TRANSPORT_ERROR_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_failing_service_is_why_its_circuit_opens() {
        assert_eq!(
            failure_reason(
                403,
                b"<Error><Code>AccessDenied</Code><Message>No such key</Message></Error>"
            ),
            "it answers 403: AccessDenied: No such key; see store.access_key_id"
        );
        assert_eq!(
            failure_reason(503, b"<Error><Code>SlowDown</Code></Error>"),
            "it answers 503: SlowDown"
        );
        assert_eq!(failure_reason(502, b"<html>Bad Gateway"), "it answers 502");
    }
}
