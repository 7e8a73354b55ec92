//! `wirephoto health`: asks a running service for its readiness, for containers, scripts and other callers
//! that read an exit status.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use api::operator::{Health, HealthStatus};
use jiff::Timestamp;
use reqwest::{Client, redirect::Policy};
use serde_json::json;

use super::{CommandFailure, print_error, print_json, print_line};
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind};

/// Timeout of the command that checks readiness; containers run it every half minute.
const HEALTH_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
/// Bytes of the response to that check.
const HEALTH_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks the service at `base`, or by default the service that these settings would start, and prints its
/// answer.
///
/// Fails if there is no answer, and with exit status 1 if the service is not ready.
pub(super) fn check_service(
    config: &Config,
    base: Option<&str>,
    json: bool,
) -> Result<(), CommandFailure> {
    let base =
        base.map_or_else(|| address(config.server.listen, config.serves_tls()), str::to_owned);
    let url = format!("{}/health/ready", base.trim_end_matches('/'));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::internal)?;
    let reply = runtime
        .block_on(get(&url, CertificateTrust::Any))
        .map_err(|cause| Error::new(ErrorKind::Unavailable, format!("{url}: {cause}")))?;
    let HealthReply { status, body, date: _ } = reply;
    let state = body.as_ref().map(|health| health.status);
    let ready = status == 200 && state == Some(HealthStatus::Ready);
    let reason = body.and_then(|health| health.reason).filter(|_| !ready);
    if json {
        print_json(&json!({ "url": url, "ready": ready, "status": status, "reason": reason }));
    } else if ready {
        print_line("ready");
    } else {
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        print_error(&format!("{url} answered {status}{reason}"));
    }
    if ready { Ok(()) } else { Err(CommandFailure::Reported) }
}

/// Returns the URL at which this machine reaches a service that listens on `listen`.
fn address(listen: SocketAddr, tls: bool) -> String {
    let ip = match listen.ip() {
        // A service can listen on an unspecified address, but a client cannot connect to it.
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, listen.port()))
}

/// The TLS certificates that a request accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateTrust {
    /// Certificates that a browser would accept.
    Checked,
    /// Any certificate: it is issued for the public address instead of the local one, and the request carries
    /// no secret.
    Any,
}

/// The answer of a health endpoint.
pub(super) struct HealthReply {
    pub(super) status: u16,
    /// The body; `None` if it is not that of this service.
    pub(super) body: Option<Health>,
    /// The server's clock, from its `Date` header.
    pub(super) date: Option<Timestamp>,
}

/// Requests a JSON document; returns an error text if there is no usable answer.
pub(super) async fn get(url: &str, certificates: CertificateTrust) -> Result<HealthReply, String> {
    // An error means that a provider is installed already, which is fine.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    // A redirect or a proxy of the environment would answer in place of the service.
    let client = Client::builder().timeout(HEALTH_WAIT).redirect(Policy::none()).no_proxy();
    let client = client.tls_danger_accept_invalid_certs(certificates == CertificateTrust::Any);
    let client = client.build().map_err(root_cause)?;
    let mut response = client.get(url).send().await.map_err(root_cause)?;
    let status = response.status().as_u16();
    let date = response.headers().get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let date = date.map(|date| date.timestamp());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(root_cause)? {
        body.extend_from_slice(&chunk);
        // Any service may answer at the address, with a body of any length.
        if body.len() > HEALTH_ANSWER_BYTES_MAX {
            return Err("the answer is too long to be that of this service".to_owned());
        }
    }
    Ok(HealthReply { status, body: serde_json::from_slice(&body).ok(), date })
}

/// Returns the text of an error's root cause, without the URL. It is more specific than the outer texts.
fn root_cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_everywhere_is_asked_on_this_machine() {
        let check = |listen: &str, expected: &str| {
            assert_eq!(address(listen.parse().unwrap(), expected.starts_with("https")), expected);
        };
        check("0.0.0.0:8080", "http://127.0.0.1:8080");
        check("[::]:80", "http://[::1]:80");
        check("192.0.2.7:8080", "http://192.0.2.7:8080");
        check("0.0.0.0:443", "https://127.0.0.1:443");
    }
}
