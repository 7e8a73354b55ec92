//! Sets up logs and metrics, and names every metric.
//!
//! Log lines are written to standard error or a file: text on a terminal, otherwise one JSON object per line.
//! Prometheus scrapes the metrics from `/metrics`; all their names and help texts are registered in this
//! file.

mod logs;
mod values;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use strum::{EnumString, IntoStaticStr, VariantNames};

pub use logs::{LogFilter, LogSetup, Logs};
pub use values::MetricValues;

use crate::runtime::clock;
use crate::runtime::error::{Error, Result};

/// A metric of this process.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    /// The help text in `/metrics` and in the reference pages.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug)]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// Defines a constant for the name of each metric, and the list of all metrics.
macro_rules! metric_table {
    ($($kind:ident $constant:ident = $name:literal: $help:literal;)*) => {
        $(#[doc = $help] pub const $constant: &str = $name;)*

        /// All metrics, in the order of the table.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: $name, kind: MetricKind::$kind, help: $help },)*];
    };
}

metric_table! {
    Gauge START_TIME = "wirephoto_start_time_seconds":
        "Start time of this process, in seconds since 1970";
    Counter REQUESTS = "wirephoto_http_requests_total":
        "Requests by route and status, such as 5xx";
    Histogram REQUEST_SECONDS = "wirephoto_http_request_seconds":
        "Seconds from request headers to response headers, by route";
    Counter SHED = "wirephoto_requests_shed_total":
        "Requests refused because of load, by reason: the name of the queue or rate limit";
    Counter RESPONSE_BYTES = "wirephoto_http_response_bytes_total":
        "Bytes of response bodies, as announced by Content-Length";
    Gauge QUEUE_DEPTH = "wirephoto_render_queue_depth": "Renders waiting for a worker";
    Gauge WORKERS_BUSY = "wirephoto_render_workers_busy": "Renders in flight";
    Gauge WORKERS = "wirephoto_render_workers": "Render workers";
    Histogram RENDER_SECONDS = "wirephoto_render_seconds": "Seconds of one render, by operation";
    Histogram STAGE_SECONDS = "wirephoto_stage_seconds":
        "Seconds of one stage of a render, by stage: queue, read, decode, blend, encode";
    Counter RENDER_PATHS = "wirephoto_render_paths_total": "Renders by path (Wirephoto-Path)";
    Counter RENDERS = "wirephoto_renders_total":
        "Renders by outcome: done, failed, abandoned, too_slow, refused";
    Counter RENDERS_STALLED = "wirephoto_renders_stalled_total":
        "Renders delayed because all cores were busy";
    Counter DECODED_MEGAPIXELS = "wirephoto_decoded_megapixels_total": "Megapixels decoded";
    Counter CACHE_LOOKUPS = "wirephoto_cache_lookups_total":
        "Rendition cache look-ups by tier and outcome";
    Gauge CACHE_BYTES = "wirephoto_cache_bytes": "Bytes in the rendition cache, by tier";
    Counter ITEMS_CHANGED = "wirephoto_items_changed_total":
        "Items changed, as seen by this process";

    Counter NOT_INDEXED = "wirephoto_originals_not_indexed_total":
        "Originals that can only be decoded as a whole";
    Counter ORIGINALS_DAMAGED = "wirephoto_originals_damaged_total":
        "Times that an original was found missing or damaged";
    Counter INDEX_REBUILDS = "wirephoto_index_rebuilds_total":
        "Originals whose derived files were rebuilt";
    Counter STANDARD_SETS = "wirephoto_standard_sets_total":
        "Originals whose standard renditions were made and kept";
    Gauge STANDARD_SETS_BEHIND = "wirephoto_standard_sets_behind":
        "Items whose standard renditions the background job has not looked at yet, on the node \
         that does it";
    Gauge SCRUB_DONE_RATIO = "wirephoto_scrub_done_ratio":
        "Share of the current scrub pass that is done";
    Gauge SCRUB_BEGAN_SECONDS = "wirephoto_scrub_began_seconds":
        "Start of the current scrub pass, in seconds since 1970; 0 on nodes that do not scrub";
    Gauge SCRUB_ENDED_SECONDS = "wirephoto_scrub_ended_seconds":
        "End of the last complete scrub pass, in seconds since 1970; 0 before the first one and \
         on nodes that do not scrub";
    Counter BUCKET_REQUESTS = "wirephoto_bucket_requests_total":
        "Requests to the bucket of originals, by method and outcome: done (answered, also if \
         the object is missing), refused (401, 403 and similar), failed (5xx, 429, no answer)";
    Counter BUCKET_BYTES = "wirephoto_bucket_bytes_total":
        "Bytes of bodies sent to and received from the bucket of originals, by direction: in, out";
    Gauge BUCKET_CIRCUIT_OPEN = "wirephoto_bucket_circuit_open":
        "1 while the circuit breaker of the bucket of originals is open";
    Counter RENDER_PATHS_ABANDONED = "wirephoto_render_paths_abandoned_total":
        "Fast render paths that were abandoned for a slower one, by reason";
    Gauge SEARCH_INDEX_WHOLE = "wirephoto_search_index_whole":
        "1 while this process has a complete search index";
    Gauge SEARCH_INDEX_ITEMS = "wirephoto_search_index_items": "Item versions in the search index";
    Gauge SEARCH_INDEX_BEHIND = "wirephoto_search_index_rows_behind":
        "Rows of the item log that are not in the search index yet";
    Gauge SEARCH_INDEX_BUILT_ITEMS = "wirephoto_search_index_built_items":
        "Items indexed so far by a build of the search index";
    Counter SEARCH_INDEX_REPAIRS = "wirephoto_search_index_repairs_total":
        "Times that the search index was built, or compared with the items because the item log \
         had a gap, by kind: built, compared";
    Gauge POLLS_WAITING = "wirephoto_polls_waiting": "Long polls that wait for items";
    Counter LOGINS = "wirephoto_logins_total":
        "Password logins, by outcome: done, refused, throttled, failed";
    Counter HASHES = "wirephoto_password_hashes_total":
        "Passwords and client secrets hashed for verification";
    Counter DELIVERIES = "wirephoto_deliveries_total":
        "Delivery attempts, by method and outcome: delivered, retry, failed, released";
    Histogram DELIVERY_SECONDS = "wirephoto_delivery_seconds":
        "Seconds of one delivery attempt, by method";
    Gauge DELIVERIES_WAITING = "wirephoto_deliveries_waiting":
        "Deliveries that are waiting or in flight";

    Gauge STREAM_POLLS = "wirephoto_stream_polls_waiting": "Stream polls that wait for items";
    Gauge MATCHING_BEHIND = "wirephoto_matching_rows_behind":
        "Rows of the item log that are not matched with notifications yet";
    Gauge MATCHING_LAG_SECONDS = "wirephoto_matching_lag_seconds":
        "Age in seconds of the oldest row of the item log that is not matched yet";
    Counter MATCHED_ITEMS = "wirephoto_matched_items_total": "Items matched with notifications";
    Counter MATCHES = "wirephoto_matches_total": "Matches, by type of notification";
    Gauge NOTIFICATIONS = "wirephoto_notifications": "Notifications that items are matched with";
    Gauge QUEUED_ITEMS = "wirephoto_queued_items":
        "Items waiting in the queues of streams and scheduled mails";
    Counter NOTIFICATIONS_LOST = "wirephoto_notifications_lost_total":
        "Items and messages dropped because a queue was full";
    Gauge OUTBOX_WAITING = "wirephoto_outbox_waiting":
        "Messages that are waiting or in flight, by transport";
    Gauge OUTBOX_PARKED = "wirephoto_outbox_parked":
        "Messages parked after the last retry, by transport";
    Counter MESSAGES = "wirephoto_messages_total":
        "Attempts to send a message, by transport and outcome: sent, dropped, retry, parked, \
         released";
    Histogram MESSAGE_SECONDS = "wirephoto_message_seconds":
        "Seconds of one attempt to send a message, by transport";
    Counter CLOCK_JUMPS = "wirephoto_clock_jumps_total":
        "Clock jumps: by a minute or more while running, by a day or more across a restart";

    Counter AUDIT_EVENTS_LOST = "wirephoto_audit_events_lost_total":
        "Audit events that could not be stored in the table";
    Counter LOG_LINES_LOST = "wirephoto_log_lines_lost_total":
        "Log lines that could not be written to the log file";
    Counter RELOADS = "wirephoto_reloads_total":
        "Reloads of the settings, by outcome: done, failed";
    Gauge CERTIFICATE_EXPIRES = "wirephoto_tls_certificate_expires_seconds":
        "Expiry of the TLS certificate in use, in seconds since 1970";
    Counter SPANS = "wirephoto_trace_spans_total":
        "Trace spans, by outcome: sent, dropped (the queue was full), failed";
    Counter PURGES = "wirephoto_purges_total":
        "Cache keys to purge at a CDN, by address (1, 2, … in the order of the setting) and \
         outcome: done, absent (the CDN had nothing cached under them), retry, refused, \
         given_up";
    Gauge PURGES_WAITING = "wirephoto_purges_waiting":
        "Cache keys that wait to be purged at a CDN, by address";
    Gauge PURGE_LAG_SECONDS = "wirephoto_purge_lag_seconds":
        "Seconds since the oldest change that has not been purged at a CDN, by address";
    Gauge FOLLOW_BEHIND_SECONDS = "wirephoto_follow_behind_seconds":
        "Seconds since this node last reached the end of the item log";
    Gauge NODE_INFO = "wirephoto_node_info":
        "1; says which node this is, by node, host, listen (its address in the settings), role";
    Gauge NODES = "wirephoto_nodes": "Live nodes of the cluster";
    Gauge NODES_DIFFER = "wirephoto_nodes_differ":
        "1 while another live node has another value, by setting";
    Gauge READY = "wirephoto_ready": "1 while this node is ready to serve requests";
    Gauge FAULT = "wirephoto_fault":
        "1 while this node has a fault, by fault: database, search, store, disk";
    Gauge DISK_FREE_BYTES = "wirephoto_disk_free_bytes":
        "Bytes that can still be written to a file system, by volume: data, store";
    Gauge LEASE_HELD = "wirephoto_lease_held":
        "1 while this node holds a lease, by lease: matching, purging, sweeping, scrubbing";
    Gauge LEASE_VACANT_SECONDS = "wirephoto_lease_vacant_seconds":
        "Seconds for which no node has held a lease, by lease: matching, sweeping";
    Counter DATABASE_ERRORS = "wirephoto_database_errors_total":
        "Database calls that failed in the engine, by kind: away (unreachable, or not the \
         primary), timeout (too slow), busy (a lock was held), other";
    Histogram DATABASE_WAIT_SECONDS = "wirephoto_database_wait_seconds":
        "Seconds that a database call waited for a thread, by kind: read, search, write, claim";
    Gauge CONNECTIONS = "wirephoto_connections": "Open connections";
    Counter CONNECTIONS_ENDED = "wirephoto_connections_ended_total":
        "Connections closed by the server, by reason";
    Counter CONNECTIONS_REFUSED = "wirephoto_connections_refused_total":
        "Connections refused because too many are open";
    Counter ADDRESS_CONNECTIONS_REFUSED = "wirephoto_connections_refused_per_address_total":
        "Connections refused because too many are open from one address";
    Counter ACCEPT_ERRORS = "wirephoto_accept_errors_total":
        "Connections that the operating system failed to accept";
    Gauge TLS_HANDSHAKES = "wirephoto_tls_handshakes": "TLS handshakes in progress";
    Counter TLS_HANDSHAKES_FAILED = "wirephoto_tls_handshakes_failed_total":
        "TLS handshakes that failed";
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    Text,
    /// One JSON object per line.
    Json,
}

/// Installs the metrics recorder and returns the handle that renders `/metrics`.
///
/// Fails if a recorder is already installed.
pub fn start_metrics() -> Result<PrometheusHandle> {
    let seconds =
        [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
    // Without buckets the exporter writes summaries, which cannot be added up over nodes.
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(Error::internal)?;
    describe();
    register_counters();
    metrics::gauge!(START_TIME).set(clock::now().as_duration().as_secs_f64());
    Ok(handle)
}

/// One of the things that a gauge counts, from its creation until it is dropped.
#[derive(Debug)]
pub struct GaugeGuard(metrics::Gauge);

impl GaugeGuard {
    /// Counts one more in the gauge `name`.
    pub fn new(name: &'static str) -> Self {
        let gauge = metrics::gauge!(name);
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Sets the metric to 1 if the circuit breaker of the bucket of originals is open, otherwise to 0.
pub fn set_bucket_circuit_open(is_open: bool) {
    metrics::gauge!(BUCKET_CIRCUIT_OPEN).set(f64::from(u8::from(is_open)));
}

/// Counts a fast render path that was abandoned for a slower one.
pub fn count_abandoned_path(reason: &'static str) {
    metrics::counter!(RENDER_PATHS_ABANDONED, "reason" => reason).increment(1);
}

/// Registers the counters that alerts use, with the value 0.
///
/// A series that first appears with its first event has no earlier sample, so `increase` in an alert misses
/// that event. Counters whose labels depend on settings are registered by the code that reads those settings.
/// For events before the first scrape, alerts use [`START_TIME`].
fn register_counters() {
    for counter in [
        metrics::counter!(ORIGINALS_DAMAGED),
        metrics::counter!(CLOCK_JUMPS),
        metrics::counter!(LOG_LINES_LOST),
        metrics::counter!(AUDIT_EVENTS_LOST),
        metrics::counter!(NOTIFICATIONS_LOST),
        metrics::counter!(LOGINS, "outcome" => "throttled"),
        metrics::counter!(RELOADS, "outcome" => "failed"),
        metrics::counter!(RENDERS, "outcome" => "refused"),
        metrics::counter!(RENDERS, "outcome" => "failed"),
    ] {
        counter.increment(0);
    }
    // Without a series for hits the hit ratio is undefined, and the alert is about caches that never hit.
    for tier in ["memory", "disk"] {
        metrics::counter!(CACHE_LOOKUPS, "tier" => tier, "outcome" => "hit").increment(0);
    }
    for kind in ["away", "timeout", "busy", "other"] {
        metrics::counter!(DATABASE_ERRORS, "kind" => kind).increment(0);
    }
}

fn describe() {
    for Metric { name, kind, help } in METRICS.iter().copied() {
        match kind {
            MetricKind::Counter => metrics::describe_counter!(name, help),
            MetricKind::Gauge => metrics::describe_gauge!(name, help),
            MetricKind::Histogram => metrics::describe_histogram!(name, help),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
