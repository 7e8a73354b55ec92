//! The service error: a kind, what the client may see, and a private cause (contract api-13).
//!
//! Leaf units have their own closed enums. Sections turn those into [`Error`]; `http::protocol::respond`
//! holds the only table from [`ErrorKind`] to a status code.

use std::{error::Error as StdError, fmt};

/// What went wrong, as the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks the contract: a parameter, a body, a rectangle.
    InvalidArgument,
    /// Credentials are missing or not valid.
    Unauthenticated,
    /// The caller is known but may not.
    Forbidden,
    /// The thing does not exist, or not for this caller.
    NotFound,
    /// The state of the thing does not allow it.
    Conflict,
    /// A method or form of request that the address does not have.
    Unsupported,
    /// A body or picture beyond a limit.
    TooLarge,
    /// A queue is full; a later try helps.
    Overloaded,
    /// The work took longer than its limit; a later try may help.
    Timeout,
    /// The service is starting, stopping or lacks a resource such as disk space.
    Unavailable,
    /// Our mistake.
    Internal,
}

/// One entry of `errors` in the error body (contract api-13). Every field is optional on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetail {
    /// A stable code such as `enum.openapi.requestValidation`.
    pub error_code: String,
    /// `path`, `query`, `headers` or `body`.
    pub location: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The parameter or property that is wrong.
    pub path: String,
}

impl ErrorDetail {
    /// An entry for the part `path` at `location` that breaks `rule` of the contract (`enum`,
    /// `format`, `pattern`, …).
    #[must_use]
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

/// An error above the leaf units. The `source` goes to the log, never to the client.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    details: Vec<ErrorDetail>,
    scope: Option<&'static str>,
    retry_after_s: Option<u32>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with a sentence that the client may see.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
            scope: None,
            retry_after_s: None,
            source: None,
        }
    }

    /// A failed validation of the part `path` at `location`; `rule` is one of the contract's
    /// rules (`enum`, `format`, `pattern`, …).
    #[must_use]
    pub fn invalid(
        location: &'static str,
        path: impl Into<String>,
        rule: &str,
        message: impl Into<String>,
    ) -> Self {
        let code = format!("{rule}.openapi.requestValidation");
        let message = message.into();
        Self {
            message: "Request validation failed".to_owned(),
            ..Self::invalid_with_code(location, path, code, message)
        }
    }

    /// A well-formed part `path` at `location` that the state of things does not allow; `code`
    /// says why, `order_already_reported` for instance.
    #[must_use]
    pub fn invalid_with_code(
        location: &'static str,
        path: impl Into<String>,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        let (error_code, path) = (code.into(), path.into());
        let detail = ErrorDetail { error_code, location, message: message.clone(), path };
        Self { details: vec![detail], ..Self::new(ErrorKind::InvalidArgument, message) }
    }

    /// A refusal of a caller that is known; `code` says why, `agreement_required` for instance.
    #[must_use]
    pub fn forbidden(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message).with_code(code)
    }

    /// A refusal because of load; `code` names the queue or budget, `render_queue` for instance.
    #[must_use]
    pub fn overloaded(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Overloaded, message).with_code(code)
    }

    /// The same error with the seconds after which a later try helps.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// The same error with an `errorCode` of its own that belongs to no one part of the request.
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

    /// A refusal of credentials that do not carry `scope`; a challenge names it.
    #[must_use]
    pub fn insufficient_scope(scope: &'static str) -> Self {
        let message = format!("The token lacks the scope {scope}");
        Self { scope: Some(scope), ..Self::forbidden("insufficient_scope", message) }
    }

    /// Our own mistake or a failing resource; the client learns nothing of `source`.
    #[must_use]
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Internal, "Internal error").with_source(source)
    }

    /// A failed validation of one or more parts of a request, each with its own entry.
    #[must_use]
    pub fn invalid_parts(details: Vec<ErrorDetail>) -> Self {
        Self { details, ..Self::new(ErrorKind::InvalidArgument, "Request validation failed") }
    }

    /// The same error with its private cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind, which decides the status.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence for the client.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The entries of `errors` in the body.
    #[must_use]
    pub fn details(&self) -> &[ErrorDetail] {
        &self.details
    }

    /// Seconds after which a later try helps, where that is known.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u32> {
        self.retry_after_s
    }

    /// The scope that the credentials lack.
    #[must_use]
    pub fn missing_scope(&self) -> Option<&'static str> {
        self.scope
    }

    /// The private cause with its own causes, for the log.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        let first: &dyn StdError = self.source.as_deref()?;
        let mut text = first.to_string();
        let mut next = first.source();
        while let Some(cause) = next {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            next = cause.source();
        }
        Some(text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Result with the service error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
