//! Wraps every request: request id, log line, metrics, traces and recovery from panics.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use http_body::Body as _;
use metrics::{Counter, Histogram};
use parking_lot::RwLock;
use uuid::{Builder, Uuid};

use crate::http::listener::ClientAddr;
use crate::http::protocol::{host, respond};
use crate::http::{AppState, error_response, help_link, security};
use crate::media::RenderTiming;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::NetworkList;
use crate::runtime::error::Error;
use crate::runtime::traces::{RequestTrace, TracedRequest};
use crate::runtime::{clock, telemetry};
use crate::storage::audit;
use model::account::UserId;

/// The header that carries a request's id in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that names the trace of a request (W3C Trace Context).
const TRACEPARENT: &str = "traceparent";
/// Longest request id of a caller that is accepted, in characters.
const REQUEST_ID_CHARS_MAX: usize = 64;
/// The label and log field of requests that match no route.
const UNMATCHED_ROUTE: &str = "unknown";
/// Segments that a secret follows: the tokens of links in mails, and the token of a device.
const BEFORE_SECRETS: [&str; 4] = ["/password/", "/unsubscribe/", "/mail/", "/device/"];

/// Summary of a render, which a handler passes to the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderSummary {
    /// `memory`, `disk` or `miss`.
    pub(crate) cache: Option<&'static str>,
    /// Kind of rendition: the operation of its media URL.
    pub(crate) operation: Option<&'static str>,
    /// Render path, if the rendition was rendered for this request.
    pub(crate) render_path: Option<&'static str>,
    /// Milliseconds spent waiting for the bytes.
    pub(crate) render_ms: Option<f64>,
    /// Time of each stage, if the rendition was rendered for this request.
    pub(crate) timing: Option<RenderTiming>,
}

impl RenderSummary {
    /// Returns the attributes of the request's trace.
    fn trace_attributes(&self) -> Vec<(&'static str, &'static str)> {
        let named = [
            ("wirephoto.operation", self.operation),
            ("wirephoto.cache", self.cache),
            ("wirephoto.render_path", self.render_path),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    fn stages(&self) -> Vec<(&'static str, f64)> {
        self.timing.iter().flat_map(RenderTiming::stages).collect()
    }
}

/// Returns the trace context of a request from a trusted proxy. Any other client could make the service export
/// traces at will.
fn trace_parent<'a>(app: &AppState, request: &'a Request) -> Option<&'a str> {
    let peer = request.extensions().get::<ClientAddr>()?.0.ip();
    let traceparent = request.headers().get(TRACEPARENT)?;
    let trusted = app.shared.edge.live_settings.get().trusted_proxies.contain(peer);
    traceparent.to_str().ok().filter(|_| trusted)
}

/// Runs a request, and records its log line, metrics and trace.
pub(crate) async fn observe(app: &AppState, request: Request, next: Next) -> Response {
    let mut record = RequestRecord::begin(&request);
    record.client = client_address(app, &request);
    if let Some(route) = request.extensions().get::<MatchedPath>() {
        // Metrics are labelled with the pattern, not with the path: the number of labels must stay bounded.
        record.route = Cow::Owned(route.as_str().to_owned());
    }
    let traces = app.shared.edge.traces.as_ref();
    record.trace = traces.and_then(|traces| traces.begin(trace_parent(app, &request)));
    let handling = run_handler(request, next);
    let (mut response, user) =
        audit::scope(app.shared.access.audit.clone(), record.client, handling).await;
    record.user = user;
    let route_class = security::RouteClass::from_route(&record.route);
    security::add_security_headers(
        response.headers_mut(),
        route_class,
        app.shared.edge.strict_transport,
    );
    help_link::add(&mut response, &app.shared.site.url);
    record.end(app, &mut response);
    response
}

/// A request from its arrival to its response, for its log line, metrics and trace.
pub(crate) struct RequestRecord {
    watch: Stopwatch,
    id: HeaderValue,
    method: Method,
    uri: Uri,
    /// The pattern of the route that matched.
    pub(crate) route: Cow<'static, str>,
    /// The client's address, if it is known.
    client: Option<IpAddr>,
    user: Option<UserId>,
    trace: Option<RequestTrace>,
}

impl RequestRecord {
    /// Begins the record of a request that matched no route yet.
    pub(crate) fn begin(request: &Request) -> Self {
        Self {
            watch: Stopwatch::start(),
            id: request_id(request.headers()),
            method: request.method().clone(),
            uri: request.uri().clone(),
            route: Cow::Borrowed(UNMATCHED_ROUTE),
            client: None,
            user: None,
            trace: None,
        }
    }

    /// Finds the client's address, if the log line will be written.
    pub(crate) fn find_client(&mut self, app: &AppState, request: &Request) {
        if tracing::enabled!(tracing::Level::INFO) {
            self.client = client_address(app, request);
        }
    }

    /// Ends the record: adds the request's id to the response, and writes the log line, the metrics and the trace.
    pub(crate) fn end(self, app: &AppState, response: &mut Response) {
        let route = &*self.route;
        let status = response.status().as_u16();
        let bytes =
            response.body().size_hint().exact().unwrap_or_else(|| content_length(response));
        let render = response.extensions_mut().remove::<RenderSummary>().unwrap_or_default();
        record_metrics(route, status, bytes, &self.watch);
        // Letters, digits and punctuation, so it is always text.
        let request_id = self.id.to_str().unwrap_or_default();
        if !is_routine(route, status) {
            tracing::info!(
                request_id,
                client = self.client.map(tracing::field::display),
                user = self.user.map(|user| user.0),
                method = %self.method,
                route,
                // Without the query, which may hold a key (contract access-9).
                path = logged_path(route, self.uri.path()),
                status,
                bytes,
                operation = render.operation,
                cache = render.cache,
                render_path = render.render_path,
                render_ms = render.render_ms,
                ms = self.watch.elapsed_ms(),
                trace_id = self.trace.as_ref().map(RequestTrace::id),
                "request"
            );
        }
        if let (Some(traces), Some(trace)) = (&app.shared.edge.traces, self.trace) {
            let finished = TracedRequest {
                method: self.method.as_str(),
                route,
                path: &logged_path(route, self.uri.path()),
                status,
                request_id,
                work: &render.trace_attributes(),
                stages: &render.stages(),
                end: clock::now(),
                duration: self.watch.elapsed(),
            };
            traces.end(trace, &finished);
        }
        response.headers_mut().insert(REQUEST_ID, self.id);
    }
}

/// Returns whether a request is a routine call of an operator's tool, which is not logged: tools poll every few
/// seconds. A change of readiness is logged once, where it is detected.
fn is_routine(route: &str, status: u16) -> bool {
    let is_check = route.starts_with("/health/");
    match status {
        200..300 => is_check || route == "/metrics",
        503 => is_check,
        _ => false,
    }
}

/// Returns the path of a request for its log line and trace, without the tokens that authorize their holder.
///
/// Other spellings of an address with a token match no route, and are cut where the token may begin
/// (contract security-13).
fn logged_path(route: &str, path: &str) -> String {
    if route.ends_with("{token}") {
        return route.to_owned();
    }
    let mut shown = respond::shorten_input(path);
    if route == UNMATCHED_ROUTE {
        let lower_case = shown.to_ascii_lowercase();
        let cuts = BEFORE_SECRETS
            .iter()
            .filter_map(|segment| Some(lower_case.find(*segment)? + segment.len()));
        // Percent-encoding may hide such a segment.
        let cuts = cuts.chain(lower_case.find('%'));
        if let Some(cut) = cuts.min() {
            shown.truncate(cut);
            shown.push('…');
        }
    }
    shown
}

/// Runs the handler, and responds with an error if the `Host` is invalid or the handler panics.
async fn run_handler(request: Request, next: Next) -> Response {
    if let Err(refusal) = host::check(&request) {
        return error_response::build(&refusal);
    }
    // Handlers hold no lock and no half-written state across an await, so unwinding is safe.
    let outcome = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    outcome.unwrap_or_else(|_| error_response::build(&Error::internal("a handler panicked")))
}

/// The metrics of one route, cached because a look-up by name and labels costs more than counting.
struct RouteMeters {
    classes: [Counter; 5],
    seconds: Histogram,
    bytes: Counter,
}

impl RouteMeters {
    /// Finds the metrics of `route`, or registers them.
    fn for_route(route: &str) -> Arc<Self> {
        static METERS: LazyLock<RwLock<HashMap<String, Arc<RouteMeters>>>> =
            LazyLock::new(RwLock::default);
        let cached = METERS.read();
        if let Some(meters) = cached.get(route) {
            return Arc::clone(meters);
        }
        // Released before the write lock, or this thread would wait for its own read lock.
        drop(cached);
        let meters = Arc::new(Self {
            classes: ["1xx", "2xx", "3xx", "4xx", "5xx"]
                .map(|class| request_counter(route, class)),
            seconds: metrics::histogram!(telemetry::REQUEST_SECONDS, "route" => route.to_owned()),
            bytes: metrics::counter!(telemetry::RESPONSE_BYTES),
        });
        let mut cached = METERS.write();
        cached.insert(route.to_owned(), Arc::clone(&meters));
        meters
    }
}

/// Returns the counter of a route's requests with a status of `class`, such as `2xx`.
fn request_counter(route: &str, class: &'static str) -> Counter {
    metrics::counter!(telemetry::REQUESTS, "route" => route.to_owned(), "status" => class)
}

fn record_metrics(route: &str, status: u16, bytes: u64, watch: &Stopwatch) {
    let meters = RouteMeters::for_route(route);
    let class = usize::from(status / 100).clamp(1, 5) - 1;
    meters.classes[class].increment(1);
    meters.bytes.increment(bytes);
    meters.seconds.record(watch.elapsed().as_secs_f64());
}

fn content_length(response: &Response) -> u64 {
    let value = response.headers().get(axum::http::header::CONTENT_LENGTH);
    value.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// Returns the caller's request id if it is well-formed, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(REQUEST_ID) {
        Some(received) if received.to_str().is_ok_and(is_well_formed) => received.clone(),
        Some(_) | None => {
            let mut text = Uuid::encode_buffer();
            let text = new_id().hyphenated().encode_lower(&mut text);
            HeaderValue::from_str(text).expect("hexadecimal digits and hyphens")
        }
    }
}

/// Returns whether a caller's id is safe to copy into the log and the response: it has only plain characters.
fn is_well_formed(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= REQUEST_ID_CHARS_MAX
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Generates a UUIDv7: the time, followed by a random start that is incremented for every request, because a
/// system call for random bits costs more than routing.
fn new_id() -> Uuid {
    static START: LazyLock<u128> = LazyLock::new(|| Uuid::now_v7().as_u128());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = u128::from(COUNT.fetch_add(1, Relaxed));
    let bits = START.wrapping_add(count).to_be_bytes();
    let mut tail = [0; 10];
    tail.copy_from_slice(&bits[6..]);
    let millis = u64::try_from(clock::now().as_millisecond()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// Returns the client's address, if it is known.
pub(crate) fn client_address(app: &AppState, request: &Request) -> Option<IpAddr> {
    let settings = app.shared.edge.live_settings.get();
    address_of(request.extensions(), request.headers(), &settings.trusted_proxies)
}

/// Returns the address by whose network failed attempts are limited. Clients without an address share 0.0.0.0, so that
/// they cannot evade the limit.
pub(crate) fn throttled_address(app: &AppState, request: &Request) -> IpAddr {
    client_address(app, request).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Returns the address of the client of a request with these extensions and headers: the address of the peer, or the
/// address that a trusted proxy reports.
///
/// Each proxy appends the address of its caller, so the list is read from the end, past the trusted proxies.
pub(crate) fn address_of(
    extensions: &Extensions,
    headers: &HeaderMap,
    trusted: &NetworkList,
) -> Option<IpAddr> {
    // A dual-stack listener reports an IPv4 peer as `::ffff:192.0.2.1`.
    let peer = extensions.get::<ClientAddr>()?.0.ip().to_canonical();
    if !trusted.contain(peer) {
        return Some(peer);
    }
    let lines = headers.get_all("x-forwarded-for").iter();
    let text = lines.filter_map(|line| line.to_str().ok()).collect::<Vec<_>>().join(",");
    // Entries to the left of a malformed entry could be forged, so the list ends there.
    let mut hops = text.rsplit(',').map_while(parse_hop);
    hops.find(|hop| !trusted.contain(*hop)).or(Some(peer))
}

/// Parses one entry of `X-Forwarded-For`; some proxies append the port.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let plain = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip()));
    plain.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn check(peer: &str, forwarded: &str, expected: &str) {
        let trusted: NetworkList = "10.0.0.1, 10.0.0.2, 172.16.0.0/12".parse().unwrap();
        let peer: SocketAddr = peer.parse().unwrap();
        let mut request = Request::builder().header("x-forwarded-for", forwarded);
        request.extensions_mut().unwrap().insert(ClientAddr(peer));
        let request = request.body(Body::empty()).unwrap();
        let found = address_of(request.extensions(), request.headers(), &trusted);
        assert_eq!(found, Some(expected.parse().unwrap()), "{peer} {forwarded}");
    }

    #[test]
    fn forwarded_addresses_are_believed_from_trusted_proxies_only() {
        check("192.0.2.7:99", "198.51.100.1", "192.0.2.7");
        check("10.0.0.1:99", "198.51.100.1", "198.51.100.1");
        check("10.0.0.1:99", "203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1");
        check("172.31.255.1:99", "198.51.100.1, 172.16.9.9", "198.51.100.1");
        check("172.32.0.1:99", "198.51.100.1", "172.32.0.1");
        check("10.0.0.1:99", "198.51.100.1:5000, [2001:db8::1]:5000", "2001:db8::1");
        check("10.0.0.1:99", "garbage", "10.0.0.1");
        check("10.0.0.1:99", "198.51.100.1, garbage", "10.0.0.1");
        check("[::ffff:10.0.0.1]:99", "198.51.100.1, ::ffff:10.0.0.2", "198.51.100.1");
    }

    #[test]
    fn a_token_is_in_no_logged_path_however_it_is_spelled() {
        let check = |route: &str, path: &str, expected: &str| {
            assert_eq!(logged_path(route, path), expected, "{path}");
        };
        check("/o/password/{token}", "/o/password/secret", "/o/password/{token}");
        check("unknown", "/o/password/secret/", "/o/password/…");
        check("unknown", "//O//Password/secret/x", "//O//Password/…");
        check("unknown", "/unsubscribe/secret/mail/x", "/unsubscribe/…");
        check("unknown", "/user/v1/device/secret/x", "/user/v1/device/…");
        check("unknown", "/o/p%61ssword/secret", "/o/p…");
        check("unknown", "/mail%2Fsecret", "/mail…");
        check("unknown", "/nothing/here", "/nothing/here");
        check("/media/{*path}", "/media/image/mail/x.jpg", "/media/image/mail/x.jpg");
    }

    #[test]
    fn a_callers_request_id_is_taken_over_when_it_is_clean() {
        let check = |given: &str, is_accepted: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(given).unwrap());
            assert_eq!(request_id(&headers) == given, is_accepted, "{given}");
        };
        check("abc-123_x.y", true);
        check("", false);
        check("a b", false);
        check("a\"b", false);
        check(&"a".repeat(65), false);
    }
}
