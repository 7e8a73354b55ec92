//! The HTTP client of push services: HTTP/2 where supported, persistent connections, no redirects, no proxy,
//! bounded responses.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, RequestBuilder, Response, header::RETRY_AFTER};
use serde_json::Value;

use super::error::PushError;
use crate::runtime::error::{Error, Result, chain};
use crate::runtime::limits;
use crate::runtime::tls_client::{CustomAuthority, http_client, read_body};
use crate::transport::client::is_temporary;
use crate::transport::error::clean;

/// Bytes of a push service's response that are read; actual ones are below 4 kB.
const PUSH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Longest `Retry-After` of a push service that is honoured.
const PUSH_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// Interval between two pings on a connection, so that a dead one is noticed before it is used.
const PUSH_PING: Duration = Duration::from_secs(60);
/// Timeout for the response to a ping.
const PUSH_PING_ANSWER: Duration = Duration::from_secs(10);
/// Idle timeout of a connection. Apple asks for connections to be kept open.
const PUSH_IDLE: Duration = Duration::from_secs(3600);

/// The HTTP versions that a service may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpVersions {
    Http2,
    /// HTTP/2, with HTTP/1.1 as a fallback.
    Any,
}

/// Builds a client that trusts the public certificate authorities and `authority`.
pub(super) fn client(authority: &CustomAuthority, protocol: HttpVersions) -> Result<Client> {
    let mut tls = authority.client_config().map_err(Error::internal)?;
    // The HTTP library does not set ALPN in a preconfigured TLS backend.
    tls.alpn_protocols = match protocol {
        HttpVersions::Http2 => vec![b"h2".to_vec()],
        HttpVersions::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let builder = http_client(tls)
        .connect_timeout(limits::TRANSPORT_CONNECT_TIMEOUT)
        .timeout(limits::PUSH_SEND)
        .pool_idle_timeout(PUSH_IDLE)
        // Keep-alive detects connections that the network dropped silently, on which every request would time out.
        .http2_keep_alive_interval(PUSH_PING)
        .http2_keep_alive_timeout(PUSH_PING_ANSWER)
        .http2_keep_alive_while_idle(true);
    let builder = match protocol {
        HttpVersions::Http2 => builder.http2_prior_knowledge(),
        HttpVersions::Any => builder,
    };
    builder.build().map_err(Error::internal)
}

/// The response of a push service.
#[derive(Debug)]
pub(super) struct PushReply {
    /// Host and port of the service, for errors.
    pub(super) endpoint: String,
    pub(super) status: u16,
    /// The value of `Retry-After`, if there is one.
    pub(super) after: Option<Duration>,
    /// The body; null if it is not JSON.
    pub(super) body: Value,
}

impl PushReply {
    /// Formats `ENDPOINT answered STATUS: REASON`, without `secrets`.
    pub(super) fn describe(&self, reason: &str, secrets: &[&str]) -> String {
        let reason = clean(reason, secrets);
        let colon = if reason.is_empty() { "" } else { ": " };
        format!("{} answered {}{colon}{reason}", self.endpoint, self.status)
    }

    /// Returns whether a retry may succeed, according to the status alone.
    pub(super) fn is_temporary(&self) -> bool {
        is_temporary(self.status)
    }
}

/// Sends a request. Returns the response regardless of its status.
///
/// Fails with [`PushError::Retry`] if there is no response.
pub(super) async fn send_request(
    request: RequestBuilder,
    endpoint: &str,
    now: fn() -> Timestamp,
) -> Result<PushReply, PushError> {
    let sent = request.send().await;
    let mut response = sent.map_err(|error| network_error(endpoint, error))?;
    let after = retry_after(&response, now);
    let status = response.status().as_u16();
    let read = read_body(&mut response, PUSH_ANSWER_BYTES_MAX).await;
    let body = read.map_err(|error| network_error(endpoint, error))?;
    // An error of an intermediate proxy may have no JSON; its status still counts.
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(PushReply { endpoint: endpoint.to_owned(), status, after, body })
}

fn network_error(endpoint: &str, error: reqwest::Error) -> PushError {
    // The URL may contain a token.
    let text = clean(&chain(&error.without_url()), &[]);
    PushError::later(format!("{endpoint}: {text}"))
}

fn retry_after(response: &Response, now: fn() -> Timestamp) -> Option<Duration> {
    parse_after(response.headers().get(RETRY_AFTER)?.to_str().ok()?, now())
}

/// Parses `Retry-After` (RFC 9110 §10.2.3), which is a number of seconds or a date.
pub(super) fn parse_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let after = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()?;
            // A date in the past means no delay.
            Duration::try_from(date.duration_since(now)).unwrap_or_default()
        }
    };
    Some(after.min(PUSH_AFTER_MAX))
}
