//! The service error: a kind, the parts that the client may see, and a private cause (contract api-13).
//!
//! Leaf units have closed enums. Higher layers convert them into [`Error`]. Only `http::protocol::respond`
//! maps an [`ErrorKind`] to a status code.

use std::{error::Error as StdError, fmt};

/// The kind of failure that the client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request violates the contract, with a parameter, a body or a rectangle.
    InvalidArgument,
    /// Credentials are missing or not valid.
    Unauthenticated,
    /// The caller is known but lacks a right.
    Forbidden,
    /// The resource does not exist, or is hidden from this caller.
    NotFound,
    /// The current state of the resource does not permit the operation.
    Conflict,
    /// The request expects a different version of the resource, which changed in the meantime.
    Stale,
    /// The URL does not support this method or form of request.
    Unsupported,
    /// A body or picture exceeds a limit.
    TooLarge,
    /// A queue is full; retrying later helps.
    Overloaded,
    /// The work exceeded its time limit; retrying later may help.
    Timeout,
    /// The service is starting, stopping or lacks a resource such as disk space.
    Unavailable,
    /// A bug in the service, or a failing resource.
    Internal,
}

/// One entry of `errors` in the error body (contract api-13). Every field is optional on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetail {
    /// A stable code such as `enum.openapi.requestValidation`.
    pub error_code: String,
    /// `path`, `query`, `headers` or `body`.
    pub location: &'static str,
    pub message: String,
    /// The invalid parameter or property.
    pub path: String,
}

impl ErrorDetail {
    /// Creates an entry for the part `path` at `location` that violates `rule` of the contract (`enum`,
    /// `format`, `pattern`, …).
    pub fn of_rule(
        rule: &str,
        location: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            error_code: format!("{rule}.openapi.requestValidation"),
            location,
            message: message.into(),
            path: path.into(),
        }
    }
}

/// The error of all layers above the leaf units. Its `source` is logged, but never sent to the client.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Vec<ErrorDetail>,
    scope: Option<&'static str>,
    retry_after_s: Option<u32>,
    is_logged: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error with a message that the client may see.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
            scope: None,
            retry_after_s: None,
            is_logged: false,
            source: None,
        }
    }

    /// Creates a validation error for the part `path` at `location`; `rule` is one of the contract's
    /// rules (`enum`, `format`, `pattern`, …).
    pub fn invalid(
        location: &'static str,
        path: impl Into<String>,
        rule: &str,
        message: impl Into<String>,
    ) -> Self {
        Self::invalid_parts(vec![ErrorDetail::of_rule(rule, location, path, message)])
    }

    /// Creates an error for a well-formed part `path` at `location` that the current state does not permit;
    /// `code` gives the reason, such as `order_already_reported`.
    pub fn invalid_with_code(
        location: &'static str,
        path: impl Into<String>,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        let error_code = code.into();
        let path = path.into();
        let detail = ErrorDetail { error_code, location, message: message.clone(), path };
        Self { details: vec![detail], ..Self::new(ErrorKind::InvalidArgument, message) }
    }

    /// Creates the refusal of a caller without valid credentials. The contract fixes its message (api-13).
    pub fn unauthenticated() -> Self {
        Self::new(ErrorKind::Unauthenticated, "Unauthorized").with_code("credentials_required")
    }

    /// Creates a refusal of a known caller; `code` gives the reason, such as `agreement_required`.
    pub fn forbidden(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message).with_code(code)
    }

    /// Creates a refusal because of load; `code` names the queue or rate limit, such as `render_queue`.
    pub fn overloaded(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Overloaded, message).with_code(code)
    }

    /// Adds the seconds after which the client should retry.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// Marks the error as logged by the part of the service that reported it first.
    #[must_use]
    pub fn logged(self) -> Self {
        Self { is_logged: true, ..self }
    }

    /// Adds an `errorCode` that does not refer to a single part of the request.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        let message = self.message.clone();
        let error_code = code.to_owned();
        self.details.push(ErrorDetail {
            error_code,
            location: "headers",
            message,
            path: String::new(),
        });
        self
    }

    /// Creates a refusal of credentials without `scope`, which the challenge names.
    pub fn insufficient_scope(scope: &'static str) -> Self {
        let message = format!("The token lacks the scope {scope}");
        Self { scope: Some(scope), ..Self::forbidden("insufficient_scope", message) }
    }

    /// Creates an error for a bug or a failing resource; the client never sees `source`.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Internal, "Internal error").with_source(source)
    }

    /// Creates a validation error for one or more parts of a request, with an entry for each.
    pub fn invalid_parts(details: Vec<ErrorDetail>) -> Self {
        // The contract fixes this text (api-13). The entries of `errors` describe the faults.
        Self { details, ..Self::new(ErrorKind::InvalidArgument, "Request validation failed") }
    }

    /// Adds the private cause, which is only logged.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind, which determines the status.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message for the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the entries of `errors` in the body.
    pub fn details(&self) -> &[ErrorDetail] {
        &self.details
    }

    /// Returns the seconds after which the client should retry, if known.
    pub fn retry_after_s(&self) -> Option<u32> {
        self.retry_after_s
    }

    /// Returns the scope that the credentials lack, if that is the reason.
    pub fn missing_scope(&self) -> Option<&'static str> {
        self.scope
    }

    /// Returns whether the log has the error already.
    pub fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// Returns the private cause if it is a `T`.
    pub fn cause_as<T: StdError + 'static>(&self) -> Option<&T> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Returns the private cause with its chain of causes, for the log.
    pub fn cause(&self) -> Option<String> {
        Some(chain(self.source.as_deref()?))
    }
}

/// Formats an error with its causes.
pub fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The entry names the fault; the general message of a validation error does not.
        match self.details.first() {
            Some(detail) => write!(f, "{}", detail.message)?,
            None => write!(f, "{}", self.message)?,
        }
        match self.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {}

/// The result type with the service error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
