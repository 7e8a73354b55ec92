//! Texts that are constant while the process runs, served with their entity tags.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::http::protocol::compression::ImmutableResponse;
use crate::http::protocol::conditional::{ETag, PreconditionOutcome, Validators, evaluate};
use crate::http::protocol::respond;
use crate::runtime::error::{Error, Result};
use model::ContentHash;

/// A text with its entity tag.
#[derive(Clone, Debug)]
pub(crate) struct TaggedText {
    text: Bytes,
    etag: ETag,
}

impl TaggedText {
    /// Computes the tag of `text`.
    pub(crate) fn new(text: String) -> Result<Self> {
        let etag = ETag::new(ContentHash::new(text.as_bytes()).short());
        let etag = etag.ok_or_else(|| Error::internal("an entity tag is not ASCII"))?;
        Ok(Self { text: text.into(), etag })
    }

    /// Responds with the text and the content type `kind`, or with the status that the preconditions of the
    /// request demand.
    pub(crate) fn response(
        &self,
        kind: &'static str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Response {
        let validators = Validators { etag: self.etag.clone(), last_modified: None };
        let mut response = match evaluate(method, headers, &validators) {
            PreconditionOutcome::Proceed => {
                let body = Body::from(self.text.clone());
                respond::typed(StatusCode::OK, HeaderValue::from_static(kind), body)
            }
            PreconditionOutcome::NotModified => respond::empty(StatusCode::NOT_MODIFIED),
            PreconditionOutcome::Failed => respond::empty(StatusCode::PRECONDITION_FAILED),
        };
        // A 304 repeats the tag (RFC 9110 §15.4.5).
        response.headers_mut().insert(header::ETAG, self.etag.print());
        // Constant while the process runs, so the compressor codes it once.
        response.extensions_mut().insert(ImmutableResponse);
        response
    }
}
