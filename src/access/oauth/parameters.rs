//! Parameters of a request: form-urlencoded names and values, in a query or a body.

use std::fmt;

/// Parameters of a request to an OAuth2 endpoint; real requests have fewer than 20.
const PARAMETERS_MAX: usize = 64;
/// Bytes of one decoded OAuth2 parameter. Redirect URIs are the longest.
const PARAMETER_BYTES_MAX: usize = 8 * 1024;

/// Form or query parameters, decoded, in their original order.
///
/// `Debug` prints only names, because values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthParameters(Vec<(String, String)>);

/// The reason why a text is not a valid list of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The text has more than [`PARAMETERS_MAX`] parameters.
    #[error("more than {PARAMETERS_MAX} parameters")]
    TooMany,
    /// A name or a value has more than [`PARAMETER_BYTES_MAX`] bytes.
    #[error("a parameter of more than {PARAMETER_BYTES_MAX} bytes")]
    TooLong,
    /// A `%` is not followed by two hex digits.
    #[error("a percent sign without two hex digits")]
    Percent,
    /// A name or value is not UTF-8.
    #[error("a parameter that is not UTF-8")]
    Utf8,
}

impl OAuthParameters {
    /// Parses `application/x-www-form-urlencoded` text: `a=1&b=two+words%21`.
    ///
    /// Unlike a browser's parser, it refuses malformed text instead of guessing.
    pub fn parse(encoded: &str) -> Result<Self, ParametersError> {
        let mut pairs = Vec::new();
        for part in encoded.split('&').filter(|part| !part.is_empty()) {
            // Counted before decoding, so that a flood of parameters costs little.
            if pairs.len() == PARAMETERS_MAX {
                return Err(ParametersError::TooMany);
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self(pairs))
    }

    /// Returns the first value of the parameter `name`. An empty value counts as absent (RFC 6749 §3.1).
    pub fn find(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(own, _)| own == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the first of `names` that occurs more than once. Names that an endpoint does not know may be
    /// repeated: they are ignored.
    pub(super) fn find_repeated<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.count(name) > 1)
    }

    /// Counts the values of the parameter `name`.
    fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(own, _)| own == name).count()
    }
}

impl fmt::Debug for OAuthParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Decodes a form-urlencoded `text`.
pub(super) fn decode(text: &str) -> Result<String, ParametersError> {
    let mut bytes = Vec::with_capacity(text.len().min(PARAMETER_BYTES_MAX));
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'+' => b' ',
            b'%' => {
                let high = rest.next().and_then(hex);
                let low = rest.next().and_then(hex);
                let (high, low) = high.zip(low).ok_or(ParametersError::Percent)?;
                high << 4 | low
            }
            other => other,
        };
        // The limit is on decoded bytes, since percent-encoding may triple the length.
        if bytes.len() == PARAMETER_BYTES_MAX {
            return Err(ParametersError::TooLong);
        }
        bytes.push(decoded);
    }
    String::from_utf8(bytes).map_err(|_| ParametersError::Utf8)
}

fn hex(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// Percent-encodes everything but the unreserved characters of RFC 3986, so that the text is safe in a query,
/// a fragment and a header.
pub(super) fn encode(text: &str) -> String {
    model::percent_encode(text, is_unreserved)
}

/// Returns whether `byte` is an unreserved character of RFC 3986.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ok_parameters() {
        let parameters = OAuthParameters::parse("a=1+2&b=%C3%a5%26&c&d=&&e==&a=3").unwrap();
        assert_eq!(parameters.find("a"), Some("1 2"));
        assert_eq!(parameters.find("b"), Some("å&"));
        assert_eq!(parameters.find("c"), None);
        assert_eq!(parameters.find("d"), None);
        assert_eq!(parameters.find("e"), Some("="));
        assert_eq!(parameters.find("f"), None);
        assert_eq!(parameters.find_repeated(&["b", "a"]), Some("a"));
        assert_eq!(parameters.find_repeated(&["b", "c"]), None);
        assert_eq!(format!("{parameters:?}"), r#"["a", "b", "c", "d", "e", "a"]"#);
    }

    #[test]
    fn err_parameters() {
        let check =
            |text: &str, error| assert_eq!(OAuthParameters::parse(text), Err(error), "{text}");
        for text in ["a=%", "a=%4", "a=%4g", "%zz=1", "a=%+1", "a=%é"] {
            check(text, ParametersError::Percent);
        }
        check("a=%C3", ParametersError::Utf8);
        check("a=%C0%80", ParametersError::Utf8);
        check(&format!("a={}", "x".repeat(PARAMETER_BYTES_MAX + 1)), ParametersError::TooLong);
        check(&"a=1&".repeat(PARAMETERS_MAX + 1), ParametersError::TooMany);
        assert!(OAuthParameters::parse(&format!("a={}", "x".repeat(PARAMETER_BYTES_MAX))).is_ok());
        assert!(OAuthParameters::parse(&"a=1&".repeat(PARAMETERS_MAX)).is_ok());
    }

    proptest! {
        #[test]
        fn text_decodes_as_it_was_encoded(text in any::<String>()) {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(decode(&encoded), Ok(text));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>()) {
            let _ = OAuthParameters::parse(&text);
        }
    }
}
