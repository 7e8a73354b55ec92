//! What the errors of the server, and of the way to it, mean for callers.

use std::error::Error as _;

use tokio_postgres::types::Type;

use crate::storage::database::error::{DbError, EngineError, ErrorClass};

/// SQLSTATEs, or their beginnings, and what they mean; the first that fits counts. All others are mistakes.
const CLASSES: [(&str, ErrorClass); 12] = [
    // The connection ended, the operator ends it, or this is not the server that writes.
    ("08", ErrorClass::Unreachable),
    ("57P0", ErrorClass::Unreachable),
    ("25006", ErrorClass::Unreachable),
    // The server ended a statement, or a transaction that said nothing.
    ("57014", ErrorClass::TimedOut),
    ("25P03", ErrorClass::TimedOut),
    ("55P03", ErrorClass::Locked),
    ("40", ErrorClass::Conflict),
    ("XX001", ErrorClass::Damaged),
    ("XX002", ErrorClass::Damaged),
    // Memory, disks and connections; files; what else the operator does.
    ("53", ErrorClass::Resource),
    ("57", ErrorClass::Resource),
    ("58", ErrorClass::Resource),
];

/// Those behind which a connection is of no use any more: a server that only reads is not the one
/// that writes.
const SESSION_ENDING_CODES: [&str; 5] = ["08", "57P0", "25P03", "25006", "0A000"];

fn class_of(code: &str) -> ErrorClass {
    let known = CLASSES.iter().find(|(start, _)| code.starts_with(start));
    known.map_or(ErrorClass::Mistake, |(_, class)| *class)
}

/// There is no connection, or it broke.
pub(super) fn unreachable(text: String) -> EngineError {
    EngineError { class: ErrorClass::Unreachable, code: None, text }
}

/// A parameter or a column is not what was expected.
pub(super) fn wrong_value(text: String) -> EngineError {
    EngineError { class: ErrorClass::Mistake, code: None, text }
}

/// Whether a connection is of no use any more behind this error.
pub(super) fn ends_session(error: &DbError) -> bool {
    let DbError::Engine(error) = error else { return false };
    match &error.code {
        Some(code) => SESSION_ENDING_CODES.iter().any(|known| code.starts_with(known)),
        None => error.class == ErrorClass::Unreachable,
    }
}

/// A parameter that is not of the type that a statement expects.
#[derive(Debug, thiserror::Error)]
#[error("a parameter is not what the statement expects, which is {0}")]
pub(super) struct ParamMismatch(pub(super) Type);

impl From<tokio_postgres::Error> for EngineError {
    /// Details of what the server reports may repeat what is in a row: they are left out.
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(reported) = error.as_db_error() {
            let code = reported.code().code();
            let text = format!("{} (SQLSTATE {code})", reported.message());
            return Self { class: class_of(code), code: Some(code.to_owned()), text };
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(one) = cause {
            if one.is::<ParamMismatch>() {
                return wrong_value(one.to_string());
            }
            text = format!("{text}: {one}");
            cause = one.source();
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
