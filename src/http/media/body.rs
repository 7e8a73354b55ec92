//! Response bodies whose bytes come from memory and from the store.

use axum::body::Body;

use crate::media::{BodyPart, Media};

/// Builds a body from `parts`, in order.
pub(crate) fn parts_body(media: &Media, parts: Vec<BodyPart>) -> Body {
    // A body in memory has a known length and needs no stream.
    if let [BodyPart::Memory(bytes)] = parts.as_slice() {
        return Body::from(bytes.clone());
    }
    Body::from_stream(media.stream(parts))
}
