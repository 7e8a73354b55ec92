//! The accept loop: HTTP/1.1 and HTTP/2, with or without TLS, with limits for every client.
//!
//! `axum::serve` limits neither slow request heads, idle connections, slow readers nor the duration of a
//! graceful shutdown; this module does. Each connection counts its traffic (`counters`), and a slow tick
//! compares the counters with the limits (`monitor`), so that serving a request sets no timer. Only
//! connections are closed here; a handler enforces its own timeout.
//!
//! A connection beyond `connections_max` gets a 503 with `Retry-After` and is closed. In the kernel's backlog it
//! would hang without any visible reason, health checks included; refusals are counted and logged. A connection
//! beyond `connections_per_address` from one address is refused in the same way, which keeps a single client from
//! using up all connections. Before the limit is reached, idle connections close early: above seven eighths of the
//! limit they get one or two ticks instead of the idle timeout.
//!
//! Metrics: `wirephoto_connections` (gauge), `wirephoto_connections_refused_total`,
//! `wirephoto_connections_refused_per_address_total`, `wirephoto_connections_ended_total{reason}`,
//! `wirephoto_accept_errors_total`, `wirephoto_tls_handshakes` (gauge),
//! `wirephoto_tls_handshakes_failed_total`.

mod body;
mod connection;
mod counters;
mod counting_stream;
mod flood;
mod limits;
mod monitor;
mod refusal;
mod tls;

pub use connection::ClientAddr;
pub use limits::ListenerLimits;
pub use tls::Certificate;

use crate::http::listener::{
    connection::{ConnectionEnd, ConnectionService, ConnectionSlot, ListenerState},
    refusal::ConnectionRefusals,
};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::telemetry;
use futures_util::FutureExt;
use model::{Backoff, RetryPolicy};
use std::{io, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Exponential backoff after failed accepts.
const ACCEPT_RETRIES: RetryPolicy =
    RetryPolicy::without_deadline(Duration::from_millis(10), Duration::from_secs(1));

/// Settings of a listener, which may change while it runs.
#[derive(Debug, Clone)]
pub struct ListenerSettings {
    /// The limits of connections that are accepted from now on.
    pub limits: HotSwap<ListenerLimits>,
    /// The certificate of TLS connections; `None` for connections without TLS.
    pub certificate: Option<HotSwap<Certificate>>,
}

/// The outcome of the connections that were open at shutdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// Number of connections that closed in time.
    pub finished: usize,
    /// Number of connections that were dropped after the drain timeout.
    pub cut: usize,
}

/// Serves `service` on `listener` until `stop` becomes true or its sender is dropped.
///
/// Then the listening socket closes, idle connections close, and requests in flight finish: over HTTP/1 with
/// `Connection: close`, over HTTP/2 after GOAWAY. The remaining connections are dropped after the limit `drain`.
/// Every request carries its [`ClientAddr`]. An HTTP/2 client has `header_timeout` for its first request. The
/// minimum rates apply to the whole connection, not to each of its streams. A panic in the service ends only its
/// HTTP/1 connection or its HTTP/2 stream.
pub async fn serve<S: ConnectionService>(
    listener: TcpListener,
    service: S,
    settings: ListenerSettings,
    mut stop: watch::Receiver<bool>,
) -> DrainReport {
    let ListenerSettings { limits, certificate } = settings;
    // Registered at start, so that alerts see the first increment.
    metrics::counter!(telemetry::CONNECTIONS_REFUSED).increment(0);
    metrics::counter!(telemetry::ADDRESS_CONNECTIONS_REFUSED).increment(0);
    metrics::counter!(telemetry::ACCEPT_ERRORS).increment(0);
    let mut shared = Arc::new(ListenerState::new(limits.get()));
    let mut connections = JoinSet::new();
    let mut refusals = ConnectionRefusals::default();
    let mut backoff = Backoff::new(ACCEPT_RETRIES);
    loop {
        let (stream, peer) = tokio::select! {
            // After a stop no connection is accepted, even if one is waiting.
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &mut backoff) => accepted,
        };
        // Collects ended connections, which would otherwise pile up until the shutdown.
        while connections.try_join_next().is_some() {}
        // Changed limits apply from the next connection on; open connections keep their limits.
        shared = shared.with_limits(limits.get());
        let service = service.clone();
        let stop = stop.clone();
        let certificate = certificate.as_ref().map(HotSwap::get);
        match ConnectionSlot::acquire(&shared, peer.ip()) {
            Ok(slot) => {
                let run = connection::run(stream, certificate, peer, service, slot, stop);
                connections.spawn(catch_panics(run, peer));
            }
            Err(limit) => refusals.refuse(stream, (peer, limit), certificate.is_some()),
        }
    }
    // Closed before the drain, so that new connections are refused and go to a different node.
    drop(listener);
    drain(connections, limits.get().drain).await
}

/// Runs one connection and contains its panics, which are logged.
async fn catch_panics(
    run: impl Future<Output = ConnectionEnd>,
    peer: SocketAddr,
) -> ConnectionEnd {
    // The connection's state is dropped with it; state that handlers share must survive a handler's panic
    // anyway.
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!(%peer, "panic in a request handler, its connection is closed");
        ConnectionEnd::BeforeStop
    })
}

/// Accepts the next connection. Errors are logged and retried with backoff, never returned.
async fn accept(listener: &TcpListener, backoff: &mut Backoff) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                backoff.reset();
                return accepted;
            }
            // The fault of one client: neither an error of the service nor a reason to wait.
            Err(error) if is_client_abort(&error) => {}
            Err(error) => {
                // Most often the process is out of file descriptors, and without a pause the loop
                // would spin.
                let pause = backoff.fail();
                metrics::counter!(telemetry::ACCEPT_ERRORS).increment(1);
                tracing::error!(%error, pause_ms = pause.as_millis(), "cannot accept connections");
                sleep(pause).await;
            }
        }
    }
}

/// Returns whether an accept failed only because its client disconnected in the backlog.
fn is_client_abort(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Waits at most `time` for the open connections, then drops the rest.
async fn drain(mut connections: JoinSet<ConnectionEnd>, time: Duration) -> DrainReport {
    let mut finished = 0;
    let all = async {
        while let Some(ended) = connections.join_next().await {
            // A connection that ended just before the stop may be joined only now; it does not count.
            finished += usize::from(matches!(ended, Ok(ConnectionEnd::Drained)));
        }
    };
    let _elapsed = timeout(time, all).await;
    let cut = connections.len();
    connections.shutdown().await;
    DrainReport { finished, cut }
}

#[cfg(test)]
mod tests;
