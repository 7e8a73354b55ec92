//! Validation of requests: query parameters, and bodies within their limits. `crates/api` validates what it declares.
//!
//! Every problem becomes an entry `{errorCode, location, message, path}` of a 400 (contract api-14), with
//! `errorCode` `<rule>.openapi.requestValidation`. Problems in several parts are reported together. Unknown
//! query parameters are ignored; unknown properties of a body are errors unless its schema allows them.

mod body;
mod query;

#[cfg(test)]
pub(in crate::http) mod tests;

pub use body::bytes;
pub use query::QueryParameters;
pub(in crate::http) use query::elements;

use crate::runtime::error::{Error, ErrorDetail, Result};

/// Collects the validation errors of the parts of a request.
#[derive(Debug, Default)]
pub struct ValidationErrors(Vec<ErrorDetail>);

impl ValidationErrors {
    /// Returns the value, or records the error and returns `None`.
    ///
    /// Every error must be a validation error.
    pub fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(&error);
                None
            }
        }
    }

    /// Records a validation error. A part that two checks refuse is recorded once.
    pub fn add(&mut self, error: &Error) {
        for detail in error.details() {
            if !self.0.iter().any(|known| is_same_part(known, detail)) {
                self.0.push(detail.clone());
            }
        }
    }

    /// Sorts the errors by the position of the parameter that each of them names.
    pub fn sort_by_key(&mut self, position: impl Fn(&str) -> usize) {
        self.0.sort_by_key(|detail| position(&detail.path));
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

fn is_same_part(one: &ErrorDetail, other: &ErrorDetail) -> bool {
    one.location == other.location && one.path == other.path
}
