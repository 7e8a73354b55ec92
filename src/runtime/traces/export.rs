//! Sends spans to the collector in batches.

use std::{collections::HashMap, fmt, future::Future, pin::Pin};

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::TraceSetup;
use crate::runtime::error::{Error, Result};
use crate::runtime::telemetry;
use crate::runtime::tls_client::{CustomAuthority, http_client, read_body};

/// Spans in one batch to the collector.
const TRACES_BATCH_SPANS: usize = 512;
/// Interval between two batches, unless a full batch waits.
const TRACES_SEND_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
/// Timeout for sending one batch to the collector.
const TRACES_SEND_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Time for the last batches at shutdown.
const TRACES_LAST_TIME: std::time::Duration = std::time::Duration::from_secs(2);
/// Bytes of a collector's response that are read.
const TRACES_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Sends queued spans to the collector.
pub struct TraceExporter {
    exporter: SpanExporter,
    waiting: mpsc::Receiver<Vec<SpanData>>,
    failing: bool,
}

impl TraceExporter {
    pub(super) fn new(
        setup: TraceSetup<'_>,
        waiting: mpsc::Receiver<Vec<SpanData>>,
    ) -> Result<Self> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(ExportClient(client()?))
            .with_endpoint(format!("{}/v1/traces", setup.url))
            .with_headers(headers(setup.headers)?)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(TRACES_SEND_TIME)
            // Retries would delay later batches; a failed batch is counted and dropped.
            .with_retry_policy(RetryPolicy::disabled())
            .build();
        let mut exporter = exporter.map_err(|cause| {
            let message = format!("telemetry.otlp_url: {cause}");
            Error::invalid("body", "telemetry.otlp_url", "format", message)
        })?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "wirephoto"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ]);
        exporter.set_resource(&resource.build());
        Ok(Self { exporter, waiting, failing: false })
    }

    /// Sends queued spans at a fixed interval until `end` turns true, then the remaining ones within
    /// [`TRACES_LAST_TIME`].
    pub async fn run(mut self, mut end: watch::Receiver<bool>) {
        let mut ticks = interval(TRACES_SEND_INTERVAL);
        // After a slow send, the missed ticks must not cause several sends in a row.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ended = std::pin::pin!(async move { drop(end.wait_for(|end| *end).await) });
        loop {
            tokio::select! {
                () = &mut ended => break,
                _ = ticks.tick() => {}
            }
            let mut sending = std::pin::pin!(self.send_all());
            tokio::select! {
                () = &mut sending => {}
                () = &mut ended => {
                    // A send in progress at shutdown gets half the time of the final one.
                    drop(timeout(TRACES_LAST_TIME / 2, sending).await);
                    break;
                }
            }
        }
        let last = timeout(TRACES_LAST_TIME, self.send_all()).await;
        // `send` reports its own failures, but the timeout ended this one before it could.
        if last.is_err() && !self.failing {
            tracing::warn!("traces cannot be sent: no response before shutdown");
        }
    }

    /// Sends all queued spans in batches.
    async fn send_all(&mut self) {
        let mut batch = Vec::new();
        while let Ok(spans) = self.waiting.try_recv() {
            batch.extend(spans);
            if batch.len() >= TRACES_BATCH_SPANS {
                self.send(std::mem::take(&mut batch)).await;
            }
        }
        if !batch.is_empty() {
            self.send(batch).await;
        }
    }

    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let sent = timeout(TRACES_SEND_TIME, self.exporter.export(batch)).await;
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(cause)) => Some(cause.to_string()),
            Err(_) => Some("no response in time".to_owned()),
        };
        // Logs only the first failure and the recovery.
        match &failure {
            Some(cause) if !self.failing => tracing::warn!("traces cannot be sent: {cause}"),
            None if self.failing => tracing::info!("traces are sent again"),
            Some(_) | None => {}
        }
        self.failing = failure.is_some();
        let outcome = if self.failing { "failed" } else { "sent" };
        metrics::counter!(telemetry::SPANS, "outcome" => outcome).increment(count);
    }
}

/// Parses `NAME=VALUE` separated by commas, the format of the variable OTEL_EXPORTER_OTLP_HEADERS.
///
/// The error does not repeat the text, which may contain a secret.
fn headers(text: &str) -> Result<HashMap<String, String>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let headers = parts.map(parse_header).collect::<Option<HashMap<_, _>>>();
    headers.ok_or_else(|| {
        let message = "telemetry.otlp_headers: expected NAME=VALUE separated by commas";
        Error::invalid("body", "telemetry.otlp_headers", "format", message.to_owned())
    })
}

fn parse_header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let name = name.trim();
    let value = value.trim();
    let is_valid = HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok();
    is_valid.then(|| (name.to_owned(), value.to_owned()))
}

fn client() -> Result<Client> {
    let tls = CustomAuthority::default().client_config().map_err(Error::internal)?;
    http_client(tls).timeout(TRACES_SEND_TIME).build().map_err(Error::internal)
}

/// The HTTP client of the exporter.
struct ExportClient(Client);

impl fmt::Debug for ExportClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl ExportClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Errors must not contain the URL, which may carry a token.
        let request = reqwest::Request::try_from(request).map_err(reqwest::Error::without_url)?;
        let response = self.0.execute(request).await;
        let mut response = response.map_err(reqwest::Error::without_url)?;
        // The exporter reads no more than an error message from the body.
        let body = read_body(&mut response, TRACES_ANSWER_BYTES_MAX).await;
        let body = body.map_err(reqwest::Error::without_url)?;
        let builder = Response::builder().status(response.status().as_u16());
        Ok(builder.body(body)?)
    }
}

impl HttpClient for ExportClient {
    // The signature that async-trait generates for `async fn`.
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_what_is_none_is_not_repeated() {
        let read = headers("Authorization=Basic dXNlcjp4, x-tenant = news ,").unwrap();
        assert_eq!(read["Authorization"], "Basic dXNlcjp4");
        assert_eq!(read["x-tenant"], "news");
        assert!(headers("").unwrap().is_empty());
        for bad in ["secret", "a b=secret", "x=sec\nret"] {
            let error = headers(bad).unwrap_err().to_string();
            assert!(error.contains("telemetry.otlp_headers") && !error.contains("sec"), "{error}");
        }
    }
}
