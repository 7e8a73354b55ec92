//! The OpenAPI document, ready to be served, and the operations that can be tried.

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use minijinja::Value as PageValue;
use serde_json::Value;

use super::document::{self, BaseUrls};
use super::page;
use super::trial::{TrialOperation, trial_operations};
use crate::http::protocol::tagged_text::TaggedText;
use crate::runtime::error::Result;

/// The OpenAPI document of a service.
pub struct ApiDocument(Value);

impl ApiDocument {
    /// Assembles the document of the service at `bases`.
    pub fn assemble(bases: BaseUrls<'_>) -> Self {
        Self(document::assemble(bases))
    }

    /// Returns the context of the documentation page.
    pub(in crate::http) fn page_context(&self) -> PageValue {
        page::context(&self.0)
    }
}

/// The serialized document, with the operations that can be tried.
pub struct ApiDescription {
    document: TaggedText,
    trials: Vec<TrialOperation>,
}

impl ApiDescription {
    /// Prepares `document` to be served.
    pub fn new(document: &ApiDocument) -> Result<Self> {
        Ok(Self {
            document: TaggedText::new(document.0.to_string())?,
            trials: trial_operations(&document.0),
        })
    }

    /// Responds with the document.
    pub(super) fn document_response(&self, method: &Method, headers: &HeaderMap) -> Response {
        self.document.response("application/json", method, headers)
    }

    /// Finds the operation with the id `id`.
    pub(in crate::http) fn operation(&self, id: &str) -> Option<&TrialOperation> {
        self.trials.iter().find(|trial| trial.id == id)
    }
}
