//! Responses to connections that are refused: beyond a limit, or without TLS.

use crate::runtime::telemetry;
use std::{net::SocketAddr, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Most refusals that are sent at once; further connections are closed without a response.
const REFUSALS_MAX: usize = 64;
/// Time for a refused client to read the response and disconnect.
const LINGER: Duration = Duration::from_secs(1);
/// Most bytes of its request that a refused client may send in that time.
const LINGER_BYTES_MAX: u64 = 64 * 1024;
/// Refusals per log line, beginning with the first refusal.
const REFUSALS_PER_LOG: u64 = 1000;

/// Returns the complete response to a connection beyond a limit.
fn too_many(message: &str) -> String {
    response("503 Service Unavailable", "Retry-After: 2\r\n", message)
}

/// Returns the complete response to a client that speaks HTTP on a TLS port.
pub fn needs_tls() -> String {
    response("400 Bad Request", "", "this port speaks TLS, use an https address")
}

/// Builds a response with further header lines; the body is the service's error document.
fn response(status: &str, headers: &str, message: &str) -> String {
    let body = format!("{{\"message\":\"{message}\",\"errors\":[]}}\n");
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\n{headers}Connection: close\r\n\r\n{body}"
    )
}

/// The limit that refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// The listener has `connections_max` connections.
    Total,
    /// The client's address has `connections_per_address` connections.
    PerAddress,
}

/// Sends and counts the refusals of one listener.
#[derive(Debug, Default)]
pub struct ConnectionRefusals {
    sending: JoinSet<()>,
    count: u64,
    address_count: u64,
}

impl ConnectionRefusals {
    /// Sends a 503 and closes the connection, without blocking the accept loop. Over TLS (`is_tls`) the connection
    /// is closed without a response, which would need a handshake.
    pub fn refuse(
        &mut self,
        stream: TcpStream,
        client: (SocketAddr, ConnectionLimit),
        is_tls: bool,
    ) {
        let message = self.record(client);
        // Collects ended refusals, which no longer count against the limit.
        while self.sending.try_join_next().is_some() {}
        if !is_tls && self.sending.len() < REFUSALS_MAX {
            self.sending.spawn(async move {
                let response = too_many(message);
                let _elapsed = timeout(LINGER, send_refusal(stream, &response)).await;
            });
        }
    }

    /// Counts and logs a refusal, and returns its message.
    fn record(&mut self, client: (SocketAddr, ConnectionLimit)) -> &'static str {
        let (peer, limit) = client;
        match limit {
            ConnectionLimit::Total => {
                metrics::counter!(telemetry::CONNECTIONS_REFUSED).increment(1);
                // A flood of connections must not become a flood of log lines.
                if self.count.is_multiple_of(REFUSALS_PER_LOG) {
                    let refused = self.count + 1;
                    tracing::warn!(%peer, refused, "too many connections, refusing");
                }
                self.count += 1;
                "too many connections"
            }
            ConnectionLimit::PerAddress => {
                metrics::counter!(telemetry::ADDRESS_CONNECTIONS_REFUSED).increment(1);
                if self.address_count.is_multiple_of(REFUSALS_PER_LOG) {
                    tracing::warn!(
                        %peer,
                        refused = self.address_count + 1,
                        "too many connections from one address, refusing; list proxies in \
                         server.trusted_proxies, see server.connections_per_address"
                    );
                }
                self.address_count += 1;
                "too many connections from this address"
            }
        }
    }
}

/// Sends the response and waits for the client to close: closing first, with unread data, would reset the
/// connection and discard the response.
pub async fn send_refusal(mut stream: TcpStream, response: &str) {
    let sent = stream.write_all(response.as_bytes()).await;
    if sent.is_ok() && stream.shutdown().await.is_ok() {
        let mut unread = stream.take(LINGER_BYTES_MAX);
        let mut scratch = [0; 1024];
        while matches!(unread.read(&mut scratch).await, Ok(1..)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_of_the_answers_are_right() {
        for response in [too_many("too many connections"), needs_tls()] {
            let (head, body) = response.split_once("\r\n\r\n").expect("head and body");
            let length = format!("Content-Length: {}\r\n", body.len());
            assert!(head.contains(&length), "{length}");
            serde_json::from_str::<serde_json::Value>(body).expect("JSON");
        }
    }
}
