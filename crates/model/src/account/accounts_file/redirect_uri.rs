//! Redirect URIs that a client may register (RFC 6749 §3.1.2, RFC 8252 §7).

/// Maximum length of a redirect URI in bytes.
const REDIRECT_URI_BYTES_MAX: usize = 2048;

/// Returns the rule that the redirect URI `text` breaks; `None` if it is valid.
///
/// A valid URI is absolute and has no fragment, wildcard, user name or characters that a URI must escape. Its
/// scheme is `https`, `http` or a private-use scheme of an app, which contains a dot (RFC 8252 §7.1). This
/// excludes all schemes that a browser executes or opens itself.
pub(super) fn redirect_uri_problem(text: &str) -> Option<&'static str> {
    if text.is_empty() || text.len() > REDIRECT_URI_BYTES_MAX {
        return Some("a redirect URI has 1 to 2048 bytes");
    }
    if text.contains('#') {
        return Some("a redirect URI has no fragment");
    }
    // Redirect URIs are compared exactly, so a wildcard would match nothing (contract login-7).
    if text.contains('*') {
        return Some("a redirect URI has no wildcard");
    }
    if text.bytes().any(must_be_escaped) {
        return Some("a redirect URI has only characters that a URI may have");
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Some("a redirect URI is absolute");
    };
    let mut bytes = scheme.bytes();
    let starts_with_letter = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !starts_with_letter
        || !bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return Some("a redirect URI is absolute");
    }
    if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
        return match rest.strip_prefix("//") {
            Some(rest) => host_problem(rest),
            None => Some("a redirect URI names a host"),
        };
    }
    if !scheme.contains('.') {
        return Some(
            "a scheme is https, http or an app's own with a dot, such as com.example.app",
        );
    }
    if rest.is_empty() { Some("a redirect URI has a path") } else { None }
}

fn must_be_escaped(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"<>\\^`{|}".contains(&byte)
}

/// Returns the rule that the authority at the start of `rest` breaks; `None` if it is valid.
fn host_problem(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    // A user name can disguise the host, as in `https://trusted.example@attacker.example/`.
    if authority.contains('@') {
        return Some("a redirect URI has no user name");
    }
    // An IPv6 address is in brackets; its colons do not start a port (RFC 3986 §3.2.2).
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Some("a redirect URI names a host");
    }
    let port_fits = match port.strip_prefix(':') {
        // `parse` would accept a leading `+`.
        Some(digits) => !digits.starts_with('+') && digits.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    if port_fits { None } else { Some("a port is a number up to 65535") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_web_loopback_and_private_use_addresses_are_taken() {
        for text in [
            "http://127.0.0.1:9000/cb",
            "http://[::1]:9000/cb",
            "https://desk.example/cb?x=1&y=%20",
            "https://desk.example",
            "com.example.app:/cb",
            "com.example.app://cb",
        ] {
            assert_eq!(redirect_uri_problem(text), None, "{text}");
        }
    }

    #[test]
    fn err_everything_else_is_refused() {
        for text in [
            "",
            "/cb",
            "cb",
            "//desk.example/cb",
            "https:/cb",
            "https:///cb",
            "https://:80/cb",
            "https://[::1/cb",
            "https://desk.example/cb#x",
            "https://*.example/cb",
            "https://user@desk.example/cb",
            "https://desk.example:99999/cb",
            "https://desk.example:/cb",
            "https://desk.example:+80/cb",
            "https://desk.example/c b",
            "https://desk.example/\\cb",
            "https://désk.example/cb",
            "https://desk.example/cb\n",
            "javascript:alert(1)",
            "data:text/html,x",
            "app:/cb",
            "1com.example:/cb",
            "com.example.app:",
            "urn:ietf:wg:oauth:2.0:oob",
        ] {
            assert!(redirect_uri_problem(text).is_some(), "{text}");
        }
        assert!(
            redirect_uri_problem(&format!("https://x/{}", "y".repeat(REDIRECT_URI_BYTES_MAX)))
                .is_some()
        );
    }
}
