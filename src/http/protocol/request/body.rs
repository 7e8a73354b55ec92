//! Reads JSON bodies of requests with a size limit.
//!
//! The `Content-Type` of the request is ignored: `curl -d` declares every body a form. A form on another
//! site's page can therefore send JSON too, but gains nothing: no API accepts a cookie as credentials.

use axum::{body::Body, extract::Request};
use futures_util::StreamExt;
use serde_json::Value;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::BODY_DISCARD_BYTES_MAX;

/// Reads the body of `request` as JSON of `bytes_max` bytes at most.
///
/// Fails with [`ErrorKind::TooLarge`] beyond the limit, and with a validation error when the body is
/// truncated, empty or not JSON.
pub async fn json(request: Request, bytes_max: usize) -> Result<Value> {
    let bytes = read(request.into_body(), bytes_max).await?;
    parse_json(&bytes)
}

/// Parses `bytes` as JSON; an empty text is a validation error.
pub fn parse_json(bytes: &[u8]) -> Result<Value> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::invalid("body", "", "required", "the body is empty, expected JSON"));
    }
    serde_json::from_slice(bytes).map_err(|cause| {
        Error::invalid("body", "", "format", format!("the body is not JSON: {cause}"))
    })
}

async fn read(body: Body, bytes_max: usize) -> Result<Vec<u8>> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut excess = 0_usize;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|cause| {
            Error::invalid("body", "", "format", "the body ended early").with_source(cause)
        })?;
        if excess > 0 || chunk.len() > bytes_max - bytes.len() {
            // A client that is still sending would not read an early response, so some of the excess is
            // discarded.
            excess = excess.saturating_add(chunk.len());
            if excess > BODY_DISCARD_BYTES_MAX {
                break;
            }
            continue;
        }
        bytes.extend_from_slice(&chunk);
    }
    if excess > 0 {
        let message = format!("The body has more than {bytes_max} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(bytes)
}
