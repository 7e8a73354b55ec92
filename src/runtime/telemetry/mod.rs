//! Sets up logs and metrics, and names every metric.
//!
//! Log lines are written to standard error or a file: text on a terminal, otherwise one JSON object per line.
//! Prometheus scrapes the metrics from `/metrics`; all their names and help texts are registered in this
//! file.

mod descriptions;
mod logs;
mod values;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use strum::{EnumString, IntoStaticStr, VariantNames};

pub use descriptions::{Description, descriptions};
pub use logs::{LogFilter, LogSetup, Logs};
pub use values::MetricValues;

use crate::runtime::clock;
use crate::runtime::error::{Error, Result};

/// Start time of this process, in seconds since 1970 (gauge).
pub const START_TIME: &str = "wirephoto_start_time_seconds";
/// Requests by route and status class (counter).
pub const REQUESTS: &str = "wirephoto_http_requests_total";
/// Seconds from the request's header to the response's header, by route (histogram).
pub const REQUEST_SECONDS: &str = "wirephoto_http_request_seconds";
/// Requests refused because of load (load shedding), by reason: the name of the queue or rate limit
/// (counter).
pub const SHED: &str = "wirephoto_requests_shed_total";
/// Bytes of response bodies (counter).
pub const RESPONSE_BYTES: &str = "wirephoto_http_response_bytes_total";
/// Renders waiting for a worker (gauge).
pub const QUEUE_DEPTH: &str = "wirephoto_render_queue_depth";
/// Renders in flight (gauge).
pub const WORKERS_BUSY: &str = "wirephoto_render_workers_busy";
/// Number of render workers (gauge).
pub const WORKERS: &str = "wirephoto_render_workers";
/// Seconds of one render, by operation (histogram).
pub const RENDER_SECONDS: &str = "wirephoto_render_seconds";
/// Seconds of one stage of a render: queue, read, decode, blend, encode (histogram).
pub const STAGE_SECONDS: &str = "wirephoto_stage_seconds";
/// Completed renders, by render path (counter).
pub const RENDER_PATHS: &str = "wirephoto_render_paths_total";
/// Renders by outcome: done, failed, abandoned, too_slow, refused (counter).
pub const RENDERS: &str = "wirephoto_renders_total";
/// Renders that no worker claimed in time because all cores were busy (counter).
pub const RENDERS_STALLED: &str = "wirephoto_renders_stalled_total";
pub const DECODED_MEGAPIXELS: &str = "wirephoto_decoded_megapixels_total";
/// Cache look-ups by tier and outcome (counter).
pub const CACHE_LOOKUPS: &str = "wirephoto_cache_lookups_total";
/// Bytes held by a cache tier (gauge).
pub const CACHE_BYTES: &str = "wirephoto_cache_bytes";
/// Item changes that this process noticed (counter).
pub const ITEMS_CHANGED: &str = "wirephoto_items_changed_total";

/// Originals without random access, which can only be decoded as a whole (counter).
pub const NOT_INDEXED: &str = "wirephoto_originals_not_indexed_total";
/// Times that an original was found missing or different from the delivered file (counter).
pub const ORIGINALS_DAMAGED: &str = "wirephoto_originals_damaged_total";
/// Originals whose derived files were rebuilt (counter).
pub const INDEX_REBUILDS: &str = "wirephoto_index_rebuilds_total";
/// Originals whose standard renditions were made and stored (counter).
pub const STANDARD_SETS: &str = "wirephoto_standard_sets_total";
/// Items whose standard renditions the background job has not checked yet, on the node that does it (gauge).
pub const STANDARD_SETS_BEHIND: &str = "wirephoto_standard_sets_behind";
/// Share of the items whose originals the current scrub pass has read, on the node that scrubs (gauge).
pub const SCRUB_DONE_RATIO: &str = "wirephoto_scrub_done_ratio";
/// Start of the current scrub pass, in seconds since 1970; 0 on nodes that do not scrub (gauge).
pub const SCRUB_BEGAN_SECONDS: &str = "wirephoto_scrub_began_seconds";
/// End of the last complete scrub pass, in seconds since 1970; 0 before the first one and on nodes that do
/// not scrub (gauge).
pub const SCRUB_ENDED_SECONDS: &str = "wirephoto_scrub_ended_seconds";
/// Requests to the bucket of originals, by method and outcome: done (answered, including "no such object"),
/// refused (401, 403 and similar), failed (5xx, 429, no answer) (counter).
pub const BUCKET_REQUESTS: &str = "wirephoto_bucket_requests_total";
/// Bytes of bodies to and from the bucket of originals, by direction: in, out (counter).
pub const BUCKET_BYTES: &str = "wirephoto_bucket_bytes_total";
/// 1 while the circuit breaker of the bucket of originals is open, otherwise 0 (gauge).
pub const BUCKET_CIRCUIT_OPEN: &str = "wirephoto_bucket_circuit_open";
/// Fast render paths that were abandoned for a slower one, by reason (counter).
pub const RENDER_PATHS_ABANDONED: &str = "wirephoto_render_paths_abandoned_total";
/// 1 if this process has a complete search index, otherwise 0 (gauge).
pub const SEARCH_INDEX_WHOLE: &str = "wirephoto_search_index_whole";
/// Item versions in the search index (gauge).
pub const SEARCH_INDEX_ITEMS: &str = "wirephoto_search_index_items";
/// Rows of the item log that this process wrote or read and that are not in the search index yet (gauge).
pub const SEARCH_INDEX_BEHIND: &str = "wirephoto_search_index_rows_behind";
/// Items indexed so far by a build of the search index (gauge).
pub const SEARCH_INDEX_BUILT_ITEMS: &str = "wirephoto_search_index_built_items";
/// Times that the search index was built, or compared with the items because the item log had a gap, by kind:
/// built, compared (counter).
pub const SEARCH_INDEX_REPAIRS: &str = "wirephoto_search_index_repairs_total";
/// Long polls that wait for items (gauge).
pub const POLLS_WAITING: &str = "wirephoto_polls_waiting";
/// Password logins, by outcome: done, refused, throttled, failed (counter).
pub const LOGINS: &str = "wirephoto_logins_total";
/// Passwords and client secrets hashed for verification (counter).
pub const HASHES: &str = "wirephoto_password_hashes_total";
/// Delivery attempts, by method and outcome: delivered, retry, failed, released (counter).
pub const DELIVERIES: &str = "wirephoto_deliveries_total";
/// Seconds of one delivery attempt, by method (histogram).
pub const DELIVERY_SECONDS: &str = "wirephoto_delivery_seconds";
/// Deliveries of all processes that are waiting or in flight (gauge).
pub const DELIVERIES_WAITING: &str = "wirephoto_deliveries_waiting";

/// Stream polls that wait for items (gauge).
pub const STREAM_POLLS: &str = "wirephoto_stream_polls_waiting";
/// Rows of the item log that are not matched with notifications yet (gauge).
pub const MATCHING_BEHIND: &str = "wirephoto_matching_rows_behind";
/// Age in seconds of the oldest row that is not matched yet (gauge).
pub const MATCHING_LAG_SECONDS: &str = "wirephoto_matching_lag_seconds";
/// Items matched with notifications (counter).
pub const MATCHED_ITEMS: &str = "wirephoto_matched_items_total";
/// Matches, by notification type (counter).
pub const MATCHES: &str = "wirephoto_matches_total";
/// Notifications that items are matched with (gauge).
pub const NOTIFICATIONS: &str = "wirephoto_notifications";
/// Items waiting in the queues of streams and scheduled mails (gauge).
pub const QUEUED_ITEMS: &str = "wirephoto_queued_items";
/// Items dropped from a full queue, and messages dropped because the outbox was full (counter).
pub const NOTIFICATIONS_LOST: &str = "wirephoto_notifications_lost_total";
/// Messages that are waiting or in flight, by transport (gauge).
pub const OUTBOX_WAITING: &str = "wirephoto_outbox_waiting";
/// Messages parked after the last retry, by transport (gauge).
pub const OUTBOX_PARKED: &str = "wirephoto_outbox_parked";
/// Attempts to send a message, by transport and outcome: sent, dropped, retry, parked, released (counter).
pub const MESSAGES: &str = "wirephoto_messages_total";
/// Seconds of one attempt to send a message, by transport (histogram).
pub const MESSAGE_SECONDS: &str = "wirephoto_message_seconds";
/// Clock jumps while running, and starts with a clock far from the last saved time (counter).
pub const CLOCK_JUMPS: &str = "wirephoto_clock_jumps_total";

/// Events of the audit log that could not be stored in the table (counter).
pub const AUDIT_EVENTS_LOST: &str = "wirephoto_audit_events_lost_total";
/// Log lines that could not be written to the log file (counter).
pub const LOG_LINES_LOST: &str = "wirephoto_log_lines_lost_total";
/// Reloads of the settings, by outcome: done, failed (counter).
pub const RELOADS: &str = "wirephoto_reloads_total";
/// Expiry of the TLS certificate in use, in seconds since 1970 (gauge).
pub const CERTIFICATE_EXPIRES: &str = "wirephoto_tls_certificate_expires_seconds";
/// Trace spans, by outcome: sent, dropped (the queue was full), failed (counter).
pub const SPANS: &str = "wirephoto_trace_spans_total";
/// Cache keys to purge at a CDN, by address (1, 2, … in the order of the setting) and outcome: done, absent
/// (the CDN had nothing cached under them), retry, refused, given_up (counter).
pub const PURGES: &str = "wirephoto_purges_total";
/// Cache keys that wait to be purged, including keys that are due later, by address (gauge).
pub const PURGES_WAITING: &str = "wirephoto_purges_waiting";
/// Seconds since the oldest change whose purge is overdue or that was not examined yet, by address (gauge).
pub const PURGE_LAG_SECONDS: &str = "wirephoto_purge_lag_seconds";
/// Seconds since this node last reached the end of the item log (gauge).
pub const FOLLOW_BEHIND_SECONDS: &str = "wirephoto_follow_behind_seconds";
/// Live nodes of the cluster (gauge).
pub const NODES: &str = "wirephoto_nodes";
/// 1 if a setting that should be equal on all nodes differs on a live node, otherwise 0, by setting (gauge).
pub const NODES_DIFFER: &str = "wirephoto_nodes_differ";
/// 1 if this node is ready to serve requests, otherwise 0 (gauge).
pub const READY: &str = "wirephoto_ready";
/// 1 if this node has a fault, otherwise 0, by fault: database, search, store, disk (gauge).
pub const FAULT: &str = "wirephoto_fault";
/// Bytes that can still be written to the file system of a folder, by volume: data (the data directory), store
/// (the folder of originals, if the settings name one) (gauge).
pub const DISK_FREE_BYTES: &str = "wirephoto_disk_free_bytes";
/// 1 if this node holds the lease of a background job, otherwise 0, by lease: matching, purging, sweeping,
/// scrubbing (gauge).
pub const LEASE_HELD: &str = "wirephoto_lease_held";
/// Seconds for which no node has held the lease, by lease: matching, sweeping (gauge).
pub const LEASE_VACANT_SECONDS: &str = "wirephoto_lease_vacant_seconds";
/// Database calls that failed in the engine, by kind: away (unreachable, or not the primary), timeout (too
/// slow), busy (a lock was held), other (counter).
pub const DATABASE_ERRORS: &str = "wirephoto_database_errors_total";
/// Seconds that a database call waited for a thread, by kind: read, search, write, claim (histogram).
pub const DATABASE_WAIT_SECONDS: &str = "wirephoto_database_wait_seconds";
pub const CONNECTIONS: &str = "wirephoto_connections";
/// Connections closed by the server, by reason (counter).
pub const CONNECTIONS_ENDED: &str = "wirephoto_connections_ended_total";
/// Connections refused because too many are open (counter).
pub const CONNECTIONS_REFUSED: &str = "wirephoto_connections_refused_total";
/// Connections refused because too many are open from one address (counter).
pub const ADDRESS_CONNECTIONS_REFUSED: &str = "wirephoto_connections_refused_per_address_total";
/// Connections that the operating system failed to accept (counter).
pub const ACCEPT_ERRORS: &str = "wirephoto_accept_errors_total";
/// TLS handshakes in progress (gauge).
pub const TLS_HANDSHAKES: &str = "wirephoto_tls_handshakes";
/// TLS handshakes that failed (counter).
pub const TLS_HANDSHAKES_FAILED: &str = "wirephoto_tls_handshakes_failed_total";

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
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    gauge!(START_TIME, "Start time of this process, in seconds since 1970");
    counter!(REQUESTS, "Requests by route and status class");
    histogram!(REQUEST_SECONDS, "Seconds from request headers to response headers, by route");
    counter!(SHED, "Requests refused because of load, by reason");
    counter!(RESPONSE_BYTES, "Bytes of response bodies, as announced by Content-Length");
    gauge!(QUEUE_DEPTH, "Renders waiting for a worker");
    gauge!(WORKERS_BUSY, "Renders in flight");
    gauge!(WORKERS, "Render workers");
    histogram!(RENDER_SECONDS, "Seconds of one render, by operation");
    histogram!(
        STAGE_SECONDS,
        "Seconds of one stage of a render: queue, read, decode, blend, encode"
    );
    counter!(RENDER_PATHS, "Renders by render path");
    counter!(NOT_INDEXED, "Originals that can only be decoded as a whole");
    counter!(
        CLOCK_JUMPS,
        "Clock jumps: by a minute or more while running, by a day or more across a restart"
    );
    counter!(ORIGINALS_DAMAGED, "Times that an original was found missing or damaged");
    counter!(INDEX_REBUILDS, "Originals whose derived files were rebuilt");
    counter!(STANDARD_SETS, "Originals whose standard renditions were made and kept");
    gauge!(
        STANDARD_SETS_BEHIND,
        "Items whose standard renditions the background job has not looked at yet, on the node that does it"
    );
    gauge!(SCRUB_DONE_RATIO, "Share of the current scrub pass that is done");
    gauge!(SCRUB_BEGAN_SECONDS, "Start of the current scrub pass, in seconds since 1970");
    gauge!(SCRUB_ENDED_SECONDS, "End of the last complete scrub pass, in seconds since 1970");
    counter!(BUCKET_REQUESTS, "Requests to the bucket of originals, by method and outcome");
    counter!(
        BUCKET_BYTES,
        "Bytes of bodies sent to and received from the bucket of originals, by direction"
    );
    gauge!(BUCKET_CIRCUIT_OPEN, "1 while the circuit breaker of the bucket of originals is open");
    counter!(
        RENDER_PATHS_ABANDONED,
        "Fast render paths that were abandoned for a slower one, by reason"
    );
    counter!(RENDERS, "Renders by outcome");
    counter!(RENDERS_STALLED, "Renders delayed because all cores were busy");
    counter!(DECODED_MEGAPIXELS, "Megapixels decoded");
    counter!(CACHE_LOOKUPS, "Rendition cache look-ups by tier and outcome");
    gauge!(CACHE_BYTES, "Bytes held by a tier of the rendition cache");
    counter!(ITEMS_CHANGED, "Items changed, as seen by this process");
    counter!(PURGES, "Cache keys to purge at a CDN, by address and outcome");
    gauge!(PURGES_WAITING, "Cache keys that wait to be purged at a CDN, by address");
    gauge!(
        PURGE_LAG_SECONDS,
        "Seconds since the oldest change that has not been purged at a CDN, by address"
    );
    gauge!(POLLS_WAITING, "Long polls that wait for items");
    describe_search();
    describe_deliveries_and_nodes();
    describe_notifications();
    describe_connections();
}

fn describe_search() {
    use metrics::{describe_counter as counter, describe_gauge as gauge};
    gauge!(SEARCH_INDEX_WHOLE, "1 while this process has a complete search index");
    gauge!(SEARCH_INDEX_ITEMS, "Item versions in the search index");
    gauge!(SEARCH_INDEX_BEHIND, "Rows of the item log that are not in the search index yet");
    gauge!(SEARCH_INDEX_BUILT_ITEMS, "Items indexed so far by a build of the search index");
    counter!(
        SEARCH_INDEX_REPAIRS,
        "Times that the search index was built or compared with the items, by kind"
    );
}

fn describe_deliveries_and_nodes() {
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    counter!(LOGINS, "Password logins, by outcome");
    counter!(DELIVERIES, "Delivery attempts, by method and outcome");
    histogram!(DELIVERY_SECONDS, "Seconds of one delivery attempt, by method");
    gauge!(DELIVERIES_WAITING, "Deliveries that are waiting or in flight");
    counter!(LOG_LINES_LOST, "Log lines that could not be written to the log file");
    counter!(AUDIT_EVENTS_LOST, "Audit events that could not be stored in the table");
    counter!(RELOADS, "Reloads of the settings, by outcome");
    gauge!(CERTIFICATE_EXPIRES, "Expiry of the TLS certificate in use, in seconds since 1970");
    counter!(SPANS, "Trace spans, by outcome");
    counter!(HASHES, "Passwords and client secrets hashed for verification");
    gauge!(FOLLOW_BEHIND_SECONDS, "Seconds since this node last reached the end of the item log");
    gauge!(NODES, "Live nodes of the cluster");
    gauge!(NODES_DIFFER, "1 for a setting that differs on another live node");
    gauge!(READY, "1 while this node is ready to serve requests");
    gauge!(FAULT, "1 while this node has a fault, by fault");
    gauge!(
        DISK_FREE_BYTES,
        "Bytes that can still be written to the file system of a volume: data or store"
    );
    gauge!(LEASE_HELD, "1 while this node holds a lease, by lease");
    gauge!(LEASE_VACANT_SECONDS, "Seconds for which no node has held a lease, by lease");
    counter!(DATABASE_ERRORS, "Database calls that failed in the engine, by kind");
    histogram!(DATABASE_WAIT_SECONDS, "Seconds that a database call waited for a thread, by kind");
}

fn describe_notifications() {
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    gauge!(STREAM_POLLS, "Stream polls that wait for items");
    gauge!(MATCHING_BEHIND, "Rows of the item log that are not matched with notifications yet");
    gauge!(
        MATCHING_LAG_SECONDS,
        "Age in seconds of the oldest row of the item log that is not matched yet"
    );
    counter!(MATCHED_ITEMS, "Items matched with notifications");
    counter!(MATCHES, "Matches, by notification type");
    gauge!(NOTIFICATIONS, "Notifications that items are matched with");
    gauge!(QUEUED_ITEMS, "Items waiting in the queues of streams and scheduled mails");
    counter!(NOTIFICATIONS_LOST, "Items and messages dropped because a queue was full");
    gauge!(OUTBOX_WAITING, "Messages that are waiting or in flight, by transport");
    gauge!(OUTBOX_PARKED, "Messages parked after the last retry, by transport");
    counter!(MESSAGES, "Attempts to send a message, by transport and outcome");
    histogram!(MESSAGE_SECONDS, "Seconds of one attempt to send a message, by transport");
}

fn describe_connections() {
    use metrics::{describe_counter as counter, describe_gauge as gauge};
    gauge!(CONNECTIONS, "Open connections");
    counter!(CONNECTIONS_ENDED, "Connections closed by the server, by reason");
    counter!(CONNECTIONS_REFUSED, "Connections refused because too many are open");
    counter!(
        ADDRESS_CONNECTIONS_REFUSED,
        "Connections refused because too many are open from one address"
    );
    counter!(ACCEPT_ERRORS, "Connections that the operating system failed to accept");
    gauge!(TLS_HANDSHAKES, "TLS handshakes in progress");
    counter!(TLS_HANDSHAKES_FAILED, "TLS handshakes that failed");
}
