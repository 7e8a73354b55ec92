//! Reads bodies of requests with a size limit.
//!
//! The `Content-Type` of a request with JSON is ignored: `curl -d` declares every body a form. A form on another
//! site's page can therefore send JSON too, but gains nothing: no API accepts a cookie as credentials.

use axum::body::Body;
use futures_util::StreamExt;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::BODY_DISCARD_BYTES_MAX;

/// Reads `body`, of `bytes_max` bytes at most. A `bytes_max` of 0 ignores it.
///
/// Fails with [`ErrorKind::TooLarge`] beyond the limit, and with a validation error when the body ends early.
pub async fn bytes(body: Body, bytes_max: usize) -> Result<Vec<u8>> {
    if bytes_max == 0 {
        return Ok(Vec::new());
    }
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
