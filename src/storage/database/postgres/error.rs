//! Classifies the errors of the server and of the connection to it.

use std::error::Error as _;

use tokio_postgres::types::Type;

use crate::storage::database::error::{DbError, EngineError, ErrorClass, wrong_value};

/// Prefixes of SQLSTATEs and their classes. The first match counts. All others are mistakes.
const CLASSES: [(&str, ErrorClass); 12] = [
    // The connection ended, the operator ends it, or this is not the primary server.
    ("08", ErrorClass::Unreachable),
    ("57P0", ErrorClass::Unreachable),
    ("25006", ErrorClass::Unreachable),
    // The server cancelled a statement, or ended a transaction that was idle for too long.
    ("57014", ErrorClass::TimedOut),
    ("25P03", ErrorClass::TimedOut),
    ("55P03", ErrorClass::Locked),
    ("40", ErrorClass::Conflict),
    ("XX001", ErrorClass::Damaged),
    ("XX002", ErrorClass::Damaged),
    // Memory, disks and connections; operator intervention; files.
    ("53", ErrorClass::Resource),
    ("57", ErrorClass::Resource),
    ("58", ErrorClass::Resource),
];

/// Prefixes of SQLSTATEs after which a connection is unusable. A read-only server is not the primary, so its
/// connection is dropped too.
const SESSION_ENDING_CODES: [&str; 5] = ["08", "57P0", "25P03", "25006", "0A000"];

fn class_of(code: &str) -> ErrorClass {
    let class = CLASSES.iter().find(|(prefix, _)| code.starts_with(prefix));
    class.map_or(ErrorClass::Mistake, |(_, class)| *class)
}

/// Creates the error of a connection that cannot be established, or that broke.
pub(super) fn unreachable(text: String) -> EngineError {
    EngineError { class: ErrorClass::Unreachable, code: None, text }
}

/// Returns whether the connection is unusable after this error.
pub(super) fn ends_session(error: &DbError) -> bool {
    let DbError::Engine(error) = error else { return false };
    match &error.code {
        Some(code) => SESSION_ENDING_CODES.iter().any(|prefix| code.starts_with(prefix)),
        None => error.class == ErrorClass::Unreachable,
    }
}

/// A parameter whose type differs from the type in the statement.
#[derive(Debug, thiserror::Error)]
#[error("a parameter is not what the statement expects, which is {0}")]
pub(super) struct ParamMismatch(pub(super) Type);

impl From<tokio_postgres::Error> for EngineError {
    /// Omits the details of the server's report, which may repeat the content of a row.
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(reported) = error.as_db_error() {
            let code = reported.code().code();
            let text = format!("{} (SQLSTATE {code})", reported.message());
            return Self { class: class_of(code), code: Some(code.to_owned()), text };
        }
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            // The driver wraps it like an error of the connection, which is not at fault.
            if cause.is::<ParamMismatch>() {
                return wrong_value(cause.to_string());
            }
            text = format!("{text}: {cause}");
            next = cause.source();
        }
        unreachable(text)
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        EngineError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_a_code_is_of_a_class() {
        for (code, class) in [
            ("08006", ErrorClass::Unreachable),
            ("57P01", ErrorClass::Unreachable),
            ("25006", ErrorClass::Unreachable),
            ("57014", ErrorClass::TimedOut),
            ("25P03", ErrorClass::TimedOut),
            ("55P03", ErrorClass::Locked),
            ("40P01", ErrorClass::Conflict),
            ("53100", ErrorClass::Resource),
            ("57000", ErrorClass::Resource),
            ("58030", ErrorClass::Resource),
            ("XX001", ErrorClass::Damaged),
            ("XX002", ErrorClass::Damaged),
            ("23505", ErrorClass::Mistake),
            ("42P07", ErrorClass::Mistake),
        ] {
            assert_eq!(class_of(code), class, "{code}");
        }
    }
}
