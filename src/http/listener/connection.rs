//! Serves one connection from accept to close, with or without TLS.

use crate::http::listener::body::{RequestBody, ResponseBody};
use crate::http::listener::counters::{ConnectionCounters, InFlightRequest};
use crate::http::listener::counting_stream::CountingStream;
use crate::http::listener::limits::ListenerLimits;
use crate::http::listener::monitor::{ConnectionFault, ConnectionMonitor, ConnectionVerdict};
use crate::http::listener::refusal::{self, ConnectionLimit};
use crate::http::listener::tls::Certificate;
use crate::runtime::telemetry::{self, GaugeGuard};
use axum::body::Body;
use axum::http::{Request, Response, Version};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use model::network;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_rustls::server::TlsStream;
use tower::{Service, ServiceExt};

/// Smallest read buffer that hyper accepts, in bytes.
const READ_BUFFER_BYTES_MIN: usize = 8 * 1024;
/// Header fields that hyper parses on the stack by default. Setting the same limit explicitly makes hyper clear
/// its tables for every request, which costs 1–2 % of serving a cached picture.
const HEADERS_MAX_OF_HYPER: usize = 100;
/// Flow-control window of one HTTP/2 stream, in bytes: enough for 50 MB/s at 20 ms.
const H2_STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// Flow-control window of one HTTP/2 connection, in bytes.
const H2_CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Largest frame that is accepted, in bytes: a picture is uploaded in few frames.
const H2_FRAME_BYTES_MAX: u32 = 64 * 1024;
/// Largest part of a response in HTTP/2 send buffers, in bytes.
const H2_SEND_BUFFER_BYTES: usize = 1024 * 1024;
/// Most streams that a client may reset before they are accepted (rapid reset, CVE-2023-44487).
const H2_PENDING_RESETS_MAX: usize = 20;
/// Most streams that the server resets because of client errors (CVE-2025-8671, RUSTSEC-2024-0332).
const H2_LOCAL_RESETS_MAX: usize = 64;
/// Time without a frame after which an HTTP/2 client is pinged.
const H2_PING_INTERVAL: Duration = Duration::from_secs(20);
/// Time in which a ping must be answered.
const H2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Address of the peer of a request's connection, an extension of every request.
///
/// This is the address of the socket: behind a proxy, it is the proxy's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddr(pub SocketAddr);

/// A service that handles the requests of connections.
pub trait ConnectionService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> ConnectionService for S where
    S: Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static
{
}

/// State shared by the connections of a listener that were accepted under the same limits.
#[derive(Debug)]
pub struct ListenerState {
    limits: Arc<ListenerLimits>,
    protocols: auto::Builder<TokioExecutor>,
    counts: Arc<ConnectionCounts>,
}

/// Counts of connections, which continue across changes of the limits.
#[derive(Debug, Default)]
struct ConnectionCounts {
    open: AtomicUsize,
    handshakes: AtomicUsize,
    /// Number of open connections of each network. A network without connections has no entry, so there are never
    /// more entries than connections.
    networks: Mutex<HashMap<IpAddr, usize>>,
}

impl ListenerState {
    /// Creates the state of a listener without connections.
    pub fn new(limits: Arc<ListenerLimits>) -> Self {
        let protocols = protocols(&limits);
        Self { limits, protocols, counts: Arc::default() }
    }

    /// Returns the state for `limits` with the same counts.
    pub fn with_limits(self: Arc<Self>, limits: Arc<ListenerLimits>) -> Arc<Self> {
        // Every accept calls this function, so the protocols are rebuilt only after a reload.
        if Arc::ptr_eq(&self.limits, &limits) {
            return self;
        }
        let protocols = protocols(&limits);
        Arc::new(Self { limits, protocols, counts: Arc::clone(&self.counts) })
    }

    /// Returns whether fewer than an eighth of the connections are free.
    fn is_nearly_full(&self) -> bool {
        let max = self.limits.connections_max;
        self.counts.open.load(Relaxed) > max - max / 8
    }
}

/// A permit for one of the connections that a listener may hold.
#[derive(Debug)]
pub struct ConnectionSlot {
    shared: Arc<ListenerState>,
    /// The network that the connection counts against; `None` for a trusted proxy.
    network: Option<IpAddr>,
    _gauge: GaugeGuard,
}

impl ConnectionSlot {
    /// Acquires a slot for a connection from `peer`, or returns the limit that is reached. Only the accept
    /// loop calls this, so check and increment need no common lock.
    pub fn acquire(shared: &Arc<ListenerState>, peer: IpAddr) -> Result<Self, ConnectionLimit> {
        let limits = &shared.limits;
        if shared.counts.open.load(Relaxed) >= limits.connections_max {
            return Err(ConnectionLimit::Total);
        }
        // Every connection is counted, so that a limit that is enabled later starts with the right numbers.
        let network = (!limits.trusted_proxies.contain(peer)).then(|| network(peer));
        if let Some(network) = network {
            let mut networks = shared.counts.networks.lock();
            let open = networks.entry(network).or_default();
            // 0 turns the limit off.
            if *open >= limits.connections_per_address && limits.connections_per_address > 0 {
                return Err(ConnectionLimit::PerAddress);
            }
            *open += 1;
        }
        shared.counts.open.fetch_add(1, Relaxed);
        let gauge = GaugeGuard::new(telemetry::CONNECTIONS);
        Ok(Self { shared: Arc::clone(shared), network, _gauge: gauge })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.shared.counts.open.fetch_sub(1, Relaxed);
        let Some(network) = self.network else { return };
        let mut networks = self.shared.counts.networks.lock();
        match networks.get(&network).copied().unwrap_or(0) {
            0 | 1 => drop(networks.remove(&network)),
            more => drop(networks.insert(network, more - 1)),
        }
    }
}

fn protocols(limits: &ListenerLimits) -> auto::Builder<TokioExecutor> {
    let header_bytes = usize::try_from(limits.header_bytes_max).unwrap_or(usize::MAX);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // `ConnectionMonitor` times request heads: hyper's timer would be recreated for every request, and cannot
    // distinguish a slow head from an idle connection.
    builder
        .http1()
        .header_read_timeout(None)
        .max_buf_size(header_bytes.max(READ_BUFFER_BYTES_MIN));
    if limits.headers_max != HEADERS_MAX_OF_HYPER {
        builder.http1().max_headers(limits.headers_max);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams_max)
        .max_header_list_size(limits.header_bytes_max)
        .max_pending_accept_reset_streams(H2_PENDING_RESETS_MAX)
        .max_local_error_reset_streams(H2_LOCAL_RESETS_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .max_frame_size(H2_FRAME_BYTES_MAX)
        .max_send_buf_size(H2_SEND_BUFFER_BYTES)
        .keep_alive_interval(H2_PING_INTERVAL)
        .keep_alive_timeout(H2_PING_TIMEOUT);
    builder
}

/// The phase of the listener in which a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// While the listener still accepted connections.
    BeforeStop,
    /// After the connection had noticed the shutdown.
    Drained,
}

/// A TLS handshake in progress, counted while this value exists.
struct HandshakePermit<'a> {
    counts: &'a ConnectionCounts,
    _gauge: GaugeGuard,
}

impl<'a> HandshakePermit<'a> {
    /// Begins a handshake; `None` if half of all connections are in a handshake already. Otherwise clients that
    /// stall in the handshake could use up all connections.
    fn begin(shared: &'a ListenerState) -> Option<Self> {
        let max = (shared.limits.connections_max / 2).max(1);
        let counts = &*shared.counts;
        // Incremented before the check, so that concurrent handshakes cannot pass the limit
        // together.
        if counts.handshakes.fetch_add(1, Relaxed) >= max {
            counts.handshakes.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self { counts, _gauge: GaugeGuard::new(telemetry::TLS_HANDSHAKES) })
    }
}

impl Drop for HandshakePermit<'_> {
    fn drop(&mut self) {
        self.counts.handshakes.fetch_sub(1, Relaxed);
    }
}

/// Serves `stream` until one side is done, a limit ends it, or a shutdown lets it finish. With a `certificate` it is
/// served over TLS; the handshake has the timeout of a request head.
pub async fn run<S: ConnectionService>(
    stream: TcpStream,
    certificate: Option<Arc<Certificate>>,
    peer: SocketAddr,
    service: S,
    slot: ConnectionSlot,
    mut stop: watch::Receiver<bool>,
) -> ConnectionEnd {
    // Without Nagle's algorithm, small responses are sent at once. A socket that refuses the option is closed
    // already, which the next read reports.
    let _closed = stream.set_nodelay(true);
    let counters = Arc::new(ConnectionCounters::default());
    let Some(certificate) = certificate else {
        let stream = CountingStream::new(stream, Arc::clone(&counters));
        return Box::pin(serve_stream(stream, counters, peer, service, slot, stop)).await;
    };
    let limit = slot.shared.limits.header_timeout;
    let Some(permit) = HandshakePermit::begin(&slot.shared) else {
        record_fault(ConnectionFault::Handshakes, peer);
        return ConnectionEnd::BeforeStop;
    };
    // In a box, so that connections without TLS do not reserve room for a handshake.
    let handshake = Box::pin(handshake(stream, &certificate, &counters));
    let outcome = tokio::select! {
        // At a shutdown, a handshake in progress has no request to lose.
        biased;
        _ = stop.wait_for(|stop| *stop) => return ConnectionEnd::Drained,
        outcome = timeout(limit, handshake) => outcome,
    };
    // The permit limits only handshakes; the connection has its own slot.
    drop(permit);
    match outcome {
        Ok(Ok(stream)) => {
            Box::pin(serve_stream(stream, counters, peer, service, slot, stop)).await
        }
        Ok(Err(cause)) => {
            metrics::counter!(telemetry::TLS_HANDSHAKES_FAILED).increment(1);
            tracing::debug!(%peer, %cause, "TLS handshake failed");
            ConnectionEnd::BeforeStop
        }
        Err(_) => {
            record_fault(ConnectionFault::SlowHandshake, peer);
            ConnectionEnd::BeforeStop
        }
    }
}

/// Performs the TLS handshake. A client that speaks HTTP without TLS gets a plain HTTP error.
async fn handshake(
    stream: TcpStream,
    certificate: &Certificate,
    counters: &Arc<ConnectionCounters>,
) -> io::Result<TlsStream<CountingStream>> {
    let mut first = [0];
    // A TLS record of a handshake begins with byte 22, an HTTP method with a letter. The byte is
    // only peeked, because the TLS library has to read it.
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        refusal::send_refusal(stream, &refusal::needs_tls()).await;
        return Err(io::Error::other("HTTP without TLS"));
    }
    certificate.acceptor.accept(CountingStream::new(stream, Arc::clone(counters))).await
}

/// Serves the requests on `io`, whose traffic `counters` counts.
async fn serve_stream<S: ConnectionService>(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    counters: Arc<ConnectionCounters>,
    peer: SocketAddr,
    service: S,
    slot: ConnectionSlot,
    mut stop: watch::Receiver<bool>,
) -> ConnectionEnd {
    let shared = &slot.shared;
    let limits = &shared.limits;
    let requests = Arc::clone(&counters);
    let handler = service_fn(move |request| {
        handle_request(service.clone(), request, peer, Arc::clone(&requests))
    });
    let io = TokioIo::new(io);
    let mut connection = pin!(slot.shared.protocols.serve_connection(io, handler));
    let mut monitor = ConnectionMonitor::new(limits);
    let mut ticks = tick_timer(limits);
    // A dropped sender could never stop the service any more, so it counts as a stop.
    let mut stopped = pin!(stop.wait_for(|stop| *stop));
    let mut end = ConnectionEnd::BeforeStop;
    loop {
        tokio::select! {
            // In this order, so that data that has arrived is counted before a tick judges the
            // counters.
            biased;
            done = connection.as_mut() => {
                if let Err(error) = done {
                    tracing::debug!(%peer, error, "connection ended");
                }
                return end;
            }
            _ = &mut stopped, if end == ConnectionEnd::BeforeStop => {
                end = ConnectionEnd::Drained;
                monitor.start_closing();
                connection.as_mut().graceful_shutdown();
            }
            _ = ticks.tick() => match monitor.check(&counters.sample(), shared.is_nearly_full()) {
                ConnectionVerdict::Continue => {}
                ConnectionVerdict::Close(fault) => {
                    record_fault(fault, peer);
                    monitor.start_closing();
                    connection.as_mut().graceful_shutdown();
                }
                ConnectionVerdict::Abort(fault) => {
                    record_fault(fault, peer);
                    // A connection that is only idle holds no data for a reset to discard.
                    counters.reset.store(fault != ConnectionFault::Idle, Relaxed);
                    return end;
                }
            }
        }
    }
}

/// Creates the ticks at which a connection is checked. After a late tick, the next tick comes a whole interval
/// later, so that clients are not blamed for time in which the machine was suspended.
fn tick_timer(limits: &ListenerLimits) -> Interval {
    let mut ticks = interval(limits.tick_interval());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval comes at once; the reset gives a new connection a whole interval.
    ticks.reset();
    ticks
}

fn record_fault(fault: ConnectionFault, peer: SocketAddr) {
    metrics::counter!(telemetry::CONNECTIONS_ENDED, "reason" => fault.name()).increment(1);
    tracing::debug!(%peer, reason = fault.name(), "connection closed by a limit");
}

/// Passes one request to the service and keeps it in flight until its response is sent.
async fn handle_request<S: ConnectionService>(
    service: S,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    counters: Arc<ConnectionCounters>,
) -> Result<Response<ResponseBody>, Infallible> {
    // Begun before the handler runs: a slow handler must not make its connection look idle.
    let in_flight = InFlightRequest::begin(&counters, request.version() == Version::HTTP_2);
    request.extensions_mut().insert(ClientAddr(peer));
    let request = request.map(|body| RequestBody::wrap(body, &counters));
    let response = service.oneshot(request).await?;
    Ok(response.map(|body| ResponseBody::new(body, in_flight)))
}
