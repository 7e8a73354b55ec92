//! Validates the `Host` of a request (RFC 9112 §3.2, RFC 9113 §8.3.1).
//!
//! No response depends on it, but proxies in front may route, cache or filter by it. A request that two
//! components could read as two different hosts is refused, so that neither is misled.

use axum::http::{HeaderValue, Request, Version, header};

use crate::runtime::error::{Error, Result};

/// Checks that the request names exactly one host, as its protocol version requires.
///
/// Fails for an HTTP/1.1 request without `Host`, for two `Host` lines, for a value that is not a host and
/// port, and for an HTTP/2 request whose `Host` differs from `:authority`. The `Host` of a request with an
/// absolute URI is validated and then ignored.
pub(crate) fn check<B>(request: &Request<B>) -> Result<()> {
    let mut lines = request.headers().get_all(header::HOST).iter();
    let first = lines.next();
    if lines.next().is_some() {
        return Err(invalid("required", "more than one Host header"));
    }
    let Some(host) = first else {
        // HTTP/1.0 has no `Host`; HTTP/2 has `:authority` instead.
        if request.version() == Version::HTTP_11 {
            return Err(invalid("required", "an HTTP/1.1 request without a Host header"));
        }
        return Ok(());
    };
    if !is_host(host) {
        return Err(invalid("format", "the Host header is not a host and port"));
    }
    if request.version() == Version::HTTP_2
        && let Some(authority) = request.uri().authority()
        && !authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes())
    {
        return Err(invalid("format", "the Host header differs from :authority"));
    }
    Ok(())
}

fn invalid(rule: &str, message: &str) -> Error {
    Error::invalid("headers", "host", rule, message)
}

/// Returns whether the value is `uri-host [":" port]`, without user information. It may be empty when the address
/// has no authority.
fn is_host(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=:[]%".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(version: Version, uri: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        check(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn a_request_names_one_host() {
        let old = Version::HTTP_10;
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for host in ["a.example", "a.example:8080", "[::1]:80", "192.0.2.1", "", "xn--a_b~"] {
            assert!(outcome(one, "/", &[host]), "{host}");
        }
        for host in ["a, b", "user@a.example", "a/b", "a b", "a?b", "a#b", "å.example"] {
            assert!(!outcome(one, "/", &[host]), "{host}");
        }
        assert!(!outcome(one, "/", &[]));
        assert!(!outcome(one, "http://a.example/", &[]));
        assert!(outcome(one, "http://a.example/", &["b.example"]), "it is ignored");
        assert!(outcome(old, "/", &[]));
        for version in [old, one, two] {
            assert!(!outcome(version, "/", &["a.example", "a.example"]));
        }
        assert!(outcome(two, "http://a.example/", &[]));
        assert!(outcome(two, "http://a.example/", &["A.example"]));
        assert!(!outcome(two, "http://a.example/", &["b.example"]));
    }
}
