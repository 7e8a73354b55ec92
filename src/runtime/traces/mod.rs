//! Traces of requests for an OpenTelemetry collector (OTLP over HTTP).
//!
//! Spans are built afterwards from the data of a request's log line, without measurements of their own. A
//! request that is not traced costs only the decision. Spans wait in a bounded queue and are sent in batches.
//! Spans that do not fit are counted and dropped, so a slow or unreachable collector delays no request.
//!
//! Metric: `wirephoto_trace_spans_total{outcome}`.

mod context;
mod export;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tokio::sync::mpsc;
use uuid::Uuid;

pub use export::TraceExporter;

use crate::runtime::error::Result;
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::telemetry;
use context::TraceParent;

/// Traces of requests that wait to be sent; further ones are counted and dropped. One has up to six
/// spans of half a kilobyte.
const TRACES_WAITING_MAX: usize = 2048;

/// The settings of the trace collector.
#[derive(Clone, Copy, Debug)]
pub struct TraceSetup<'a> {
    /// Base URL of the collector.
    pub url: &'a str,
    /// Headers for the collector, `NAME=VALUE` separated by commas.
    pub headers: &'a str,
    /// Share of requests that are traced, 0 to 1.
    pub ratio: f32,
}

/// Decides which requests are traced and queues their spans; cheap to clone.
#[derive(Clone)]
pub struct RequestTracer {
    queue: mpsc::Sender<Vec<SpanData>>,
    ratio: HotSwap<f32>,
    drawn: Arc<AtomicU64>,
}

/// The ids of a traced request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    id: TraceId,
    span: SpanId,
    parent: Option<SpanId>,
}

impl RequestTrace {
    /// Returns the trace id as shown in logs, 32 hexadecimal digits.
    pub fn id(&self) -> String {
        self.id.to_string()
    }
}

/// An answered request that is traced.
#[derive(Debug)]
pub struct TracedRequest<'a> {
    pub method: &'a str,
    /// The route pattern, such as `/media/{*path}`.
    pub route: &'a str,
    /// The path as it is logged.
    pub path: &'a str,
    pub status: u16,
    pub request_id: &'a str,
    /// Further attributes of the span, by name.
    pub work: &'a [(&'static str, &'a str)],
    /// Names and milliseconds of the stages of a render, in order.
    pub stages: &'a [(&'static str, f64)],
    pub end: Timestamp,
    pub duration: Duration,
}

impl RequestTracer {
    /// Creates the tracer and its exporter. Nothing is sent before [`TraceExporter::run`].
    ///
    /// Fails with the setting's name if the URL or the headers are invalid.
    pub fn start(setup: TraceSetup<'_>) -> Result<(Self, TraceExporter)> {
        let (queue, waiting) = mpsc::channel(TRACES_WAITING_MAX);
        let export = TraceExporter::new(setup, waiting)?;
        // A random start, so that nodes that start together do not sample in step.
        let drawn = Arc::new(AtomicU64::new(Uuid::new_v4().as_u64_pair().0));
        Ok((Self { queue, ratio: HotSwap::new(setup.ratio), drawn }, export))
    }

    /// Sets the share of requests that are traced from now on.
    pub fn set_ratio(&self, ratio: f32) {
        self.ratio.set(ratio);
    }

    /// Decides whether a request is traced.
    ///
    /// `caller` is the header `traceparent` (W3C Trace Context) of a trusted proxy. If it is present, the
    /// caller decides: a request that the caller samples is traced as part of the caller's trace. Without the
    /// header, the request is sampled at random.
    pub fn begin(&self, caller: Option<&str>) -> Option<RequestTrace> {
        // An invalid header counts as absent, as the standard requires.
        if let Some(parent) = caller.and_then(TraceParent::parse) {
            let trace =
                RequestTrace { id: parent.trace, span: new_span_id(), parent: Some(parent.span) };
            return parent.sampled.then_some(trace);
        }
        self.draw().then(|| RequestTrace {
            id: TraceId::from(Uuid::new_v4().as_u128()),
            span: new_span_id(),
            parent: None,
        })
    }

    /// Samples at random with a mixed counter (SplitMix64), since random bits from the operating system cost
    /// more than routing.
    fn draw(&self) -> bool {
        let count = self.drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        let mixed = (count ^ (count >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let sample = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(sample) < f64::from(*self.ratio.get()) * 4_294_967_296.0
    }

    /// Queues the spans of an answered request; drops and counts them if the queue is full.
    pub fn end(&self, trace: RequestTrace, request: &TracedRequest<'_>) {
        let spans = spans(trace, request);
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        if self.queue.try_send(spans).is_err() {
            metrics::counter!(telemetry::SPANS, "outcome" => "dropped").increment(count);
        }
    }
}

/// Builds the span of a request and the spans of its render stages.
fn spans(trace: RequestTrace, request: &TracedRequest<'_>) -> Vec<SpanData> {
    let end = SystemTime::from(request.end);
    let start = end.checked_sub(request.duration).unwrap_or(end);
    let mut attributes = vec![
        text_attribute("http.request.method", request.method),
        text_attribute("http.route", request.route),
        text_attribute("url.path", request.path),
        KeyValue::new("http.response.status_code", i64::from(request.status)),
        text_attribute("wirephoto.request_id", request.request_id),
    ];
    attributes.extend(request.work.iter().map(|(name, value)| text_attribute(name, value)));
    let name = format!("{} {}", request.method, request.route);
    let mut server_span = span(trace.id, trace.span, name);
    server_span.parent_span_id = trace.parent.unwrap_or(SpanId::INVALID);
    server_span.parent_span_is_remote = trace.parent.is_some();
    server_span.span_kind = SpanKind::Server;
    server_span.start_time = start;
    server_span.end_time = end;
    server_span.attributes = attributes;
    // A 4xx is an error of the client, not of this span (OpenTelemetry's conventions for HTTP).
    if request.status >= 500 {
        server_span.status = Status::error("");
    }
    let mut spans = vec![server_span];
    // The response is sent as soon as it is rendered, so the stages end with the request. A request that
    // joined a render of an earlier request may have started after the first stages.
    let total = request.stages.iter().map(|(_, ms)| stage_duration(*ms)).sum();
    let mut position = end.checked_sub(total).unwrap_or(start);
    for (name, ms) in request.stages {
        let mut stage = span(trace.id, new_span_id(), format!("render {name}"));
        stage.parent_span_id = trace.span;
        stage.start_time = position.max(start);
        position = position.checked_add(stage_duration(*ms)).unwrap_or(end);
        stage.end_time = position.max(start);
        spans.push(stage);
    }
    spans
}

fn new_span_id() -> SpanId {
    SpanId::from(Uuid::new_v4().as_u64_pair().1)
}

fn text_attribute(name: &'static str, value: &str) -> KeyValue {
    KeyValue::new(name, value.to_owned())
}

fn stage_duration(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

fn span(trace: TraceId, id: SpanId, name: String) -> SpanData {
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("wirephoto").build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(ratio: f32) -> RequestTracer {
        let (queue, _nobody) = mpsc::channel(1);
        RequestTracer { queue, ratio: HotSwap::new(ratio), drawn: Arc::default() }
    }

    #[test]
    fn chance_keeps_to_the_ratio() {
        let drawn = |ratio: f32| {
            let traces = traces(ratio);
            (0..10_000).filter(|_| traces.begin(None).is_some()).count()
        };
        assert_eq!((drawn(0.0), drawn(1.0)), (0, 10_000));
        let tenth = drawn(0.1);
        assert!((900..1100).contains(&tenth), "{tenth}");
    }

    #[test]
    fn a_believed_caller_decides_for_its_request() {
        let head = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
        let traced = traces(0.0).begin(Some(&format!("{head}01"))).unwrap();
        assert_eq!(traced.id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(traced.parent, Some(SpanId::from(0xb7ad_6b71_6920_3331)));
        assert_eq!(traces(1.0).begin(Some(&format!("{head}00"))), None);
        assert!(traces(1.0).begin(Some("nonsense")).is_some());
    }

    #[test]
    fn stages_follow_one_another_within_their_request() {
        let trace = traces(1.0).begin(None).unwrap();
        let stages = [("queue", 1.0), ("decode", 20.0), ("encode", 4.0)];
        let done = TracedRequest {
            method: "GET",
            route: "/media/{*path}",
            path: "/media/image/x",
            status: 200,
            request_id: "id",
            work: &[("wirephoto.cache", "miss")],
            stages: &stages,
            end: Timestamp::from_second(1_700_000_000).unwrap(),
            duration: Duration::from_millis(20),
        };
        let spans = spans(trace, &done);
        let (request, stages) = spans.split_first().unwrap();
        assert_eq!(request.name, "GET /media/{*path}");
        assert!(stages.iter().all(|stage| stage.parent_span_id == trace.span));
        assert!(stages.iter().all(|stage| stage.start_time >= request.start_time));
        assert!(stages.windows(2).all(|pair| pair[0].end_time == pair[1].start_time));
        assert_eq!(stages.last().unwrap().end_time, request.end_time);
    }
}
