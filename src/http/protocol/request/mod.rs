//! What a request says, checked: query parameters, path segments, JSON bodies.
//!
//! Whatever is wrong becomes an entry `{errorCode, location, message, path}` of a 400
//! (contract api-14), with `errorCode` `<rule>.openapi.requestValidation`. Where several parts are
//! wrong, all of them are told at once. Unknown query parameters are ignored; unknown properties
//! of a body are not.

mod body;
mod object;
mod query;

#[cfg(test)]
pub(in crate::http) mod tests;

use axum::extract::{Path, rejection::PathRejection};

pub use body::{json, parse_json};
pub use object::{
    Presence, PropertyReader, PropertyValue, TextFormat, TextRule, is_email, read_object,
    read_objects,
};
pub use query::QueryParameters;
pub(in crate::http) use query::{elements, parse_choice};

use crate::runtime::error::{Error, ErrorDetail, Result};

/// Collects what is wrong with the parts of a request.
#[derive(Debug, Default)]
pub struct ValidationErrors(Vec<ErrorDetail>);

impl ValidationErrors {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value, or nothing and one more problem.
    ///
    /// Every error must be a failed validation.
    pub fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.extend_from_slice(error.details());
                None
            }
        }
    }

    /// What was read, if there is no problem.
    ///
    /// Fails with all of them. `read` is there when nothing was reported.
    pub fn finish<T>(self, read: Option<T>) -> Result<T> {
        match read {
            Some(read) if self.0.is_empty() => Ok(read),
            _ => Err(Error::invalid_parts(self.0)),
        }
    }
}

/// The parameter `name` as a number of things, `max` at most.
pub fn count(query: &QueryParameters, name: &str, max: usize) -> Result<Option<usize>> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let found = query.integer(name, 0..=max)?;
    found.map(|value| usize::try_from(value).map_err(Error::internal)).transpose()
}

/// The decoded segment `name` of the path.
///
/// Fails when it is not UTF-8.
pub fn path_segment(name: &str, path: Result<Path<String>, PathRejection>) -> Result<String> {
    match path {
        Ok(Path(text)) => Ok(text),
        Err(_) => Err(Error::invalid("path", name, "format", format!("{name} is not UTF-8"))),
    }
}

/// The segment `name` of the path as an integer.
pub fn path_integer(name: &str, path: Result<Path<String>, PathRejection>) -> Result<i64> {
    let wrong = || Error::invalid("path", name, "type", format!("{name} is not an integer"));
    path_segment(name, path)?.parse().map_err(|_| wrong())
}
