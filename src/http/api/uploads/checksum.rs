//! Checksums of the bytes of one request (tus, extension `checksum`).

use aws_lc_rs::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::runtime::error::{Error, Result};

/// The supported algorithms by their names in requests. The protocol requires SHA-1.
static ALGORITHMS: [(&str, &Algorithm); 2] =
    [("sha256", &SHA256), ("sha1", &SHA1_FOR_LEGACY_USE_ONLY)];
/// The names of the algorithms, as the service announces them.
pub(super) const ALGORITHM_NAMES: &str = "sha256,sha1";

/// The checksum that a client declared, and the running checksum of the received bytes.
pub(super) struct BodyChecksum {
    context: Context,
    expected: Vec<u8>,
}

impl BodyChecksum {
    /// Parses the header: the name of an algorithm, a space, and the checksum in base64.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let Some((name, encoded)) = text.trim().split_once(' ') else {
            let message = "Upload-Checksum has no checksum after the name of its algorithm";
            return Err(invalid("format", message));
        };
        let algorithm = ALGORITHMS.iter().find(|(known, _)| *known == name);
        let Some((_, algorithm)) = algorithm else {
            let message = format!("Upload-Checksum must use one of {ALGORITHM_NAMES}");
            return Err(invalid("enum", &message));
        };
        let expected = STANDARD.decode(encoded.trim()).map_err(|cause| {
            invalid("format", &format!("Upload-Checksum is not base64: {cause}"))
        })?;
        Ok(Self { context: Context::new(algorithm), expected })
    }

    /// Adds bytes of the body.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Returns whether the bytes have the declared checksum.
    pub(super) fn matches(self) -> bool {
        self.context.finish().as_ref() == self.expected
    }
}

fn invalid(rule: &str, message: &str) -> Error {
    Error::invalid("headers", "Upload-Checksum", rule, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_a_checksum_covers_the_bytes_of_its_request() {
        let check = |text: &str, bytes: &[&[u8]], expected: bool| {
            let mut checksum = BodyChecksum::parse(text).expect("valid");
            bytes.iter().for_each(|bytes| checksum.update(bytes));
            assert_eq!(checksum.matches(), expected, "{text}");
        };
        // The example of the protocol: SHA-1 of `hello world`.
        check("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", &[b"hello ", b"world"], true);
        check("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", &[b"hello"], false);
        let sha256 = "sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
        check(sha256, &[b"hello world"], true);
    }

    #[test]
    fn err_an_unknown_algorithm_or_text_is_refused() {
        for text in ["", "sha1", "md5 XrY7u+Ae7tCTyyK7j1rNww==", "sha1 ?"] {
            assert!(BodyChecksum::parse(text).is_err(), "{text}");
        }
    }
}
