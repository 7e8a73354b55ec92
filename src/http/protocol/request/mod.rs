//! Validation of requests: query parameters, path segments and JSON bodies.
//!
//! Every problem becomes an entry `{errorCode, location, message, path}` of a 400 (contract api-14), with
//! `errorCode` `<rule>.openapi.requestValidation`. Problems in several parts are reported together. Unknown
//! query parameters are ignored; unknown properties of a body are errors.

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

/// Collects the validation errors of the parts of a request.
#[derive(Debug, Default)]
pub struct ValidationErrors(Vec<ErrorDetail>);

impl ValidationErrors {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value, or records the error and returns `None`.
    ///
    /// Every error must be a validation error.
    pub fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.extend_from_slice(error.details());
                None
            }
        }
    }

    /// Returns `read` if no error was recorded.
    ///
    /// Fails with all recorded errors. `read` must be `Some` if there are no errors.
    pub fn finish<T>(self, read: Option<T>) -> Result<T> {
        match read {
            Some(read) if self.0.is_empty() => Ok(read),
            _ => Err(Error::invalid_parts(self.0)),
        }
    }
}

/// Reads the parameter `name` as a count from 0 to `max`.
pub fn count(query: &QueryParameters, name: &str, max: usize) -> Result<Option<usize>> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let found = query.integer(name, 0..=max)?;
    found.map(|value| usize::try_from(value).map_err(Error::internal)).transpose()
}

/// Reads the decoded path segment `name`.
///
/// Fails when it is not UTF-8.
pub fn path_segment(name: &str, path: Result<Path<String>, PathRejection>) -> Result<String> {
    match path {
        Ok(Path(text)) => Ok(text),
        Err(_) => Err(Error::invalid("path", name, "format", format!("{name} is not UTF-8"))),
    }
}

/// Reads the path segment `name` as an integer.
pub fn path_integer(name: &str, path: Result<Path<String>, PathRejection>) -> Result<i64> {
    path_segment(name, path)?
        .parse()
        .map_err(|_| Error::invalid("path", name, "type", format!("{name} is not an integer")))
}
