//! Responses of the authorization endpoint: the client's redirect address with parameters.

use super::parameters::encode;

/// The part of the address that contains the parameters of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseMode {
    /// After `?`, for the client's server.
    Query,
    /// After `#`, for the client's page.
    Fragment,
}

/// Schemes that execute the content of the address.
const EXECUTABLE_SCHEMES: [&str; 5] = ["javascript", "data", "vbscript", "blob", "about"];

/// Returns whether a registered redirect address can be used.
///
/// A mistake of the operator must not become a header of two lines or a script: the address is absolute,
/// consists of URI characters only, and has no fragment (RFC 6749 §3.1.2) and no executable scheme.
pub(super) fn is_usable(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_scheme_character)
        && !EXECUTABLE_SCHEMES.iter().any(|executable| scheme.eq_ignore_ascii_case(executable))
        && !rest.is_empty()
        && rest.bytes().all(is_uri_character)
}

fn is_scheme_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Returns whether a URI may contain `byte` unencoded, outside a fragment.
fn is_uri_character(byte: u8) -> bool {
    const EXCLUDED: &[u8] = b"#\"<>\\^`{|}";
    byte.is_ascii_graphic() && !EXCLUDED.contains(&byte)
}

/// Appends `pairs` to the address `uri`. An existing query stays unchanged.
pub(super) fn redirect_url(uri: &str, mode: ResponseMode, pairs: &[(&str, &str)]) -> String {
    let mut address = uri.to_owned();
    let mut separator = match mode {
        ResponseMode::Fragment => "#",
        // The address is a query already, and its text must not change (contract login-7).
        ResponseMode::Query if uri.ends_with(['?', '&']) => "",
        ResponseMode::Query if uri.contains('?') => "&",
        ResponseMode::Query => "?",
    };
    for (name, value) in pairs {
        address.push_str(separator);
        address.push_str(name);
        address.push('=');
        address.push_str(&encode(value));
        separator = "&";
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_the_query_of_the_address() {
        let check = |uri, mode, expected: &str| {
            assert_eq!(redirect_url(uri, mode, &[("a", "1 &"), ("b", "\r\n")]), expected);
        };
        check("https://c.test/cb", ResponseMode::Query, "https://c.test/cb?a=1%20%26&b=%0D%0A");
        check(
            "https://c.test/?x=%20",
            ResponseMode::Query,
            "https://c.test/?x=%20&a=1%20%26&b=%0D%0A",
        );
        check("https://c.test/?", ResponseMode::Query, "https://c.test/?a=1%20%26&b=%0D%0A");
        check(
            "https://c.test/?x=1&",
            ResponseMode::Query,
            "https://c.test/?x=1&a=1%20%26&b=%0D%0A",
        );
        check(
            "https://c.test/?x=1",
            ResponseMode::Fragment,
            "https://c.test/?x=1#a=1%20%26&b=%0D%0A",
        );
    }

    #[test]
    fn addresses_that_are_no_plain_absolute_uri_are_not_answered_to() {
        for uri in ["https://c.test/cb", "http://127.0.0.1:9/", "com.example.app:/cb?x=1"] {
            assert!(is_usable(uri), "{uri}");
        }
        for uri in [
            "",
            "/cb",
            "c.test",
            ":x",
            "https:",
            "1http://c.test",
            "https://c.test/#f",
            "https://c.test/\r\nx: y",
            "https://c.test/å",
            "https://c.test/ b",
            "https://c.test\\@d.test",
            "JavaScript:alert(1)",
            "data:text/html,x",
        ] {
            assert!(!is_usable(uri), "{uri}");
        }
    }
}
