//! The HTTP client of webhooks, S3 and purges: no redirects, no proxy, bounded responses.

use reqwest::{Client, Url};

use crate::runtime::error::chain;
use crate::runtime::tls_client::http_client;
use crate::transport::conversation::{TransportTimeouts, host_and_port};
use crate::transport::error::{SendFault, SendRefusal};
use crate::transport::network_policy::NetworkPolicy;
use crate::transport::settings::{FieldProblem, invalid_setting};
use crate::transport::tls::{CustomAuthority, client_config};

/// Bytes of an HTTP response of an external system that are read.
pub(super) const TRANSPORT_ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Builds a client that trusts the public certificate authorities and `authority`.
///
/// Host names resolve only to addresses that `policy` allows. The caller checks IP literals with
/// [`NetworkPolicy::check`].
pub(super) fn client(
    authority: &CustomAuthority,
    timeouts: TransportTimeouts,
    policy: NetworkPolicy,
) -> Result<Client, SendFault> {
    let built = http_client(client_config(authority)?)
        .dns_resolver(std::sync::Arc::new(policy))
        .connect_timeout(timeouts.connect)
        .build();
    built.map_err(|error| SendRefusal::Certificate(error.without_url().to_string()).into())
}

/// Returns whether a request with this status may be retried.
pub(super) fn is_temporary(status: u16) -> bool {
    // 408, 425 and 429 ask for a retry; 5xx is a fault of the server.
    matches!(status, 408 | 425 | 429 | 500..)
}

impl From<reqwest::Error> for SendFault {
    fn from(error: reqwest::Error) -> Self {
        // The URL may contain a token.
        let error = error.without_url();
        match Self::of_chain(&error) {
            Some(fault) => fault,
            None => Self::Network(std::io::Error::other(chain(&error))),
        }
    }
}

/// Parses the URL in the setting `name`. Its scheme is `https`, or also `http` if `plain` is true. It has no user
/// name and password, which belong in settings that are not listed.
pub(super) fn address(name: &'static str, text: &str, plain: bool) -> Result<Url, FieldProblem> {
    let url = Url::parse(text)
        .map_err(|_| invalid_setting(name, "an address such as https://example.org/"))?;
    match url.scheme() {
        "https" => {}
        "http" if plain => {}
        "http" => return Err(invalid_setting(name, "https; settings.allowHttp permits http")),
        _ => return Err(invalid_setting(name, "an address that begins with https://")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid_setting(name, "an address without a user name and password"));
    }
    // A fragment is never sent, so it can only be a mistake.
    if url.host_str().is_none() || url.fragment().is_some() {
        return Err(invalid_setting(name, "an address with a host and without a fragment"));
    }
    Ok(url)
}

/// Returns host and port of a URL.
pub(super) fn host_and_port_of(url: &Url) -> String {
    // `host_and_port` adds the brackets of an IPv6 address.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host_and_port(host, url.port_or_known_default().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_and_carries_no_password() {
        let parse = |text, plain| address("url", text, plain).map(|url| host_and_port_of(&url));
        assert_eq!(parse("https://h/x?token=1", false), Ok("h:443".into()));
        assert_eq!(parse("http://[::1]:81/", true), Ok("[::1]:81".into()));
        for text in
            ["http://h/", "ftp://h/", "https://u:p@h/", "https://u@h/", "h/x", "https://h/#a"]
        {
            let error = address("url", text, false).unwrap_err().to_string();
            assert!(
                error.starts_with("settings.url is not ") && !error.contains("u:p"),
                "{error}"
            );
        }
    }
}
