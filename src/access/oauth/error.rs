//! Errors of the provider, with the codes of RFC 6749 and OpenID Connect.

use std::fmt;

use strum::{EnumIter, IntoStaticStr};

use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::RETRY_AFTER_S;
use crate::storage::database::DbError;

/// The code of an error (RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6). The reference page lists
/// the codes in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum OAuthErrorCode {
    /// A parameter is missing, repeated or malformed.
    InvalidRequest,
    /// The client did not authenticate itself.
    InvalidClient,
    /// A code, password or refresh token is wrong or expired, or was issued to a different client.
    InvalidGrant,
    /// The client may not use this grant or response type.
    UnauthorizedClient,
    /// There is no such `grant_type`.
    UnsupportedGrantType,
    /// There is no such `response_type`.
    UnsupportedResponseType,
    /// A scope is unknown, malformed, or more than was granted.
    InvalidScope,
    /// The user refused the request.
    AccessDenied,
    /// The user would have to log in, but `prompt=none` forbids asking.
    LoginRequired,
    /// The user would have to consent, but `prompt=none` forbids asking.
    ConsentRequired,
    /// The parameter `request` is not supported.
    RequestNotSupported,
    /// The parameter `request_uri` is not supported.
    RequestUriNotSupported,
    /// The parameter `registration` is not supported.
    RegistrationNotSupported,
    /// The provider failed; its log has the cause.
    ServerError,
    /// The provider is overloaded or throttles the client; a retry may succeed.
    TemporarilyUnavailable,
}

impl OAuthErrorCode {
    /// Returns an explanation of the error, and the remedy for the client.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::InvalidRequest => {
                "A parameter is missing, repeated or malformed; `error_description` names it."
            }
            Self::InvalidClient => {
                "The client is unknown or its secret is wrong. Check `client_id` and the secret."
            }
            Self::InvalidGrant => {
                "The code, password or refresh token is wrong, expired, used before or issued to another client. \
                 Authorize again."
            }
            Self::UnauthorizedClient => {
                "The client is not registered for this grant or response type. The operator can change that."
            }
            Self::UnsupportedGrantType => "The server has no such `grant_type`.",
            Self::UnsupportedResponseType => "The server has no such `response_type`.",
            Self::InvalidScope => {
                "A scope is unknown, malformed, or exceeds what was granted. Request fewer scopes."
            }
            Self::AccessDenied => "The user refused the request.",
            Self::ServerError => "The server failed. Retry, and tell the operator if it persists.",
            Self::TemporarilyUnavailable => {
                "The server is overloaded, or too many logins failed. Retry after the seconds that `Retry-After` \
                 names."
            }
            Self::LoginRequired => {
                "The user is not logged in, and `prompt=none` forbids to ask. Authorize without it."
            }
            Self::ConsentRequired => {
                "The user has not consented yet, and `prompt=none` forbids to ask. Authorize without it."
            }
            Self::RequestNotSupported => "The parameter `request` is not supported. Leave it out.",
            Self::RequestUriNotSupported => {
                "The parameter `request_uri` is not supported. Leave it out."
            }
            Self::RegistrationNotSupported => {
                "The parameter `registration` is not supported. Leave it out."
            }
        }
    }
}

model::impl_as_str!(OAuthErrorCode);

/// Replaces the characters that RFC 6749 §5.2 does not allow: all except printable ASCII without `"` and `\`.
pub(super) fn description(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ' ' | '!' | '#'..='[' | ']'..='~' => c,
            _ => '?',
        })
        .collect()
}

/// The reason why an authorization request does not lead to a login.
pub enum AuthorizationError {
    /// There is no trusted address for a redirect: the client is unknown, or it has not registered the
    /// redirect address. The user sees a page with this explanation, plain text that may repeat parts of the
    /// request, and is not redirected.
    Page(String),
    /// The browser is redirected to this address, which notifies the client.
    Redirect(String),
    /// The provider failed, with the internal cause.
    Failed(Error),
}

impl fmt::Debug for AuthorizationError {
    /// Leaves out the address, because it contains the client's `state`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(message) => write!(f, "Page({message})"),
            Self::Redirect(_) => f.write_str("Redirect"),
            Self::Failed(error) => write!(f, "Failed({error})"),
        }
    }
}

impl From<Error> for AuthorizationError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The reason why the token or revocation endpoint refuses a request.
#[derive(Debug)]
pub struct TokenError {
    /// The value of `error`.
    pub code: OAuthErrorCode,
    /// The value of `error_description`: printable ASCII without quotes and backslashes.
    pub description: String,
    /// True if the client tried HTTP Basic, so that the response names that scheme.
    pub challenge: bool,
    /// Seconds after which a retry may succeed.
    pub retry_after_s: Option<u64>,
    /// The internal cause, for the log.
    pub source: Option<Box<Error>>,
}

impl TokenError {
    pub(super) fn new(code: OAuthErrorCode, text: &str) -> Self {
        let description = description(text);
        Self { code, description, challenge: false, retry_after_s: None, source: None }
    }

    pub(super) fn throttled(wait_s: u64) -> Self {
        let text = "too many failed logins";
        let error = Self::new(OAuthErrorCode::TemporarilyUnavailable, text);
        Self { retry_after_s: Some(wait_s), ..error }
    }
}

impl From<Error> for TokenError {
    fn from(cause: Error) -> Self {
        // Only after these errors may a retry succeed.
        let error = if matches!(
            cause.kind(),
            ErrorKind::Overloaded | ErrorKind::Timeout | ErrorKind::Unavailable
        ) {
            let wait_s = cause.retry_after_s().unwrap_or(RETRY_AFTER_S);
            let error = Self::new(OAuthErrorCode::TemporarilyUnavailable, "the service is busy");
            Self { retry_after_s: Some(u64::from(wait_s)), ..error }
        } else {
            // Mistakes of the client are `TokenError`s from the start, so any other error is a failure of the
            // service.
            Self::new(OAuthErrorCode::ServerError, "the service failed")
        };
        Self { source: Some(Box::new(cause)), ..error }
    }
}

impl From<DbError> for TokenError {
    fn from(cause: DbError) -> Self {
        Error::from(cause).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_holds_only_what_the_rfc_allows() {
        assert_eq!(description("a \"b\"\\\r\né~!#[]"), "a ?b?????~!#[]");
    }

    #[test]
    fn temporary_faults_differ_from_internal_errors() {
        for kind in [ErrorKind::Overloaded, ErrorKind::Unavailable, ErrorKind::Timeout] {
            let error = TokenError::from(Error::new(kind, "x"));
            assert_eq!(error.code, OAuthErrorCode::TemporarilyUnavailable);
            assert!(error.retry_after_s.is_some() && error.source.is_some());
        }
        let error = TokenError::from(Error::internal("x"));
        assert_eq!((error.code, error.retry_after_s), (OAuthErrorCode::ServerError, None));
        assert!(error.source.is_some());
    }
}
