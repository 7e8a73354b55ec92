//! Logs and metrics: how they are set up and what they are called.
//!
//! Log lines go to standard error or a file: text on a terminal, one JSON object a line otherwise. Metrics
//! are read by Prometheus from `/metrics`; names and help texts are registered here, so that one
//! look shows what can be watched.

mod descriptions;
mod logs;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

pub use descriptions::{Description, descriptions};
pub use logs::{LogFilter, LogSetup, Logs};

use crate::runtime::clock;
use crate::runtime::error::{Error, Result};

/// When this process started, in seconds since 1970 (gauge).
pub const START_TIME: &str = "wirephoto_start_time_seconds";
/// Requests by route and status class (counter).
pub const REQUESTS: &str = "wirephoto_http_requests_total";
/// Seconds from the request's header to the response's header, by route (histogram).
pub const REQUEST_SECONDS: &str = "wirephoto_http_request_seconds";
/// Requests that were refused because of load, by reason: the name of the queue or budget (counter).
pub const SHED: &str = "wirephoto_requests_shed_total";
/// Bytes of response bodies (counter).
pub const RESPONSE_BYTES: &str = "wirephoto_http_response_bytes_total";
/// Renders waiting for a worker (gauge).
pub const QUEUE_DEPTH: &str = "wirephoto_render_queue_depth";
/// Renders under way (gauge).
pub const WORKERS_BUSY: &str = "wirephoto_render_workers_busy";
/// Workers in all (gauge).
pub const WORKERS: &str = "wirephoto_render_workers";
/// Seconds of one render, by operation (histogram).
pub const RENDER_SECONDS: &str = "wirephoto_render_seconds";
/// Seconds that a stage of a render took: queue, read, decode, blend, encode (histogram).
pub const STAGE_SECONDS: &str = "wirephoto_stage_seconds";
/// Renders that were done, by the way they took (counter).
pub const RENDER_PATHS: &str = "wirephoto_render_paths_total";
/// Renders by outcome: done, failed, abandoned, too_slow, refused (counter).
pub const RENDERS: &str = "wirephoto_renders_total";
/// Renders that no worker got to take for a while, since others kept all cores busy (counter).
pub const RENDERS_STALLED: &str = "wirephoto_renders_stalled_total";
/// Megapixels decoded (counter).
pub const DECODED_MEGAPIXELS: &str = "wirephoto_decoded_megapixels_total";
/// Cache look-ups by tier and outcome (counter).
pub const CACHE_LOOKUPS: &str = "wirephoto_cache_lookups_total";
/// Bytes held by a cache tier (gauge).
pub const CACHE_BYTES: &str = "wirephoto_cache_bytes";
/// Items taken in, by outcome (counter).
pub const ITEMS_CHANGED: &str = "wirephoto_items_changed_total";

/// Originals that came in or were indexed and can only be decoded as a whole (counter).
pub const NOT_INDEXED: &str = "wirephoto_originals_not_indexed_total";
/// Times that an original was found to be missing, or not to be what came in (counter).
pub const ORIGINALS_DAMAGED: &str = "wirephoto_originals_damaged_total";
/// Originals whose derived files were made again (counter).
pub const INDEX_REBUILDS: &str = "wirephoto_index_rebuilds_total";
/// Part of the items whose originals this pass of the background scrub has read, at the node that scrubs (gauge).
pub const SCRUB_DONE_RATIO: &str = "wirephoto_scrub_done_ratio";
/// When this pass began, in seconds since 1970; 0 at nodes that do not scrub (gauge).
pub const SCRUB_BEGAN_SECONDS: &str = "wirephoto_scrub_began_seconds";
/// When the last whole pass ended, in seconds since 1970; 0 before the first one and at nodes that do not scrub
/// (gauge).
pub const SCRUB_ENDED_SECONDS: &str = "wirephoto_scrub_ended_seconds";
/// Requests to the bucket of originals, by method and outcome: done (answered, also that there is no such
/// object), refused (401, 403 and their like), failed (5xx, 429, no answer) (counter).
pub const BUCKET_REQUESTS: &str = "wirephoto_bucket_requests_total";
/// Bytes of bodies to and from the bucket of originals, by direction: in, out (counter).
pub const BUCKET_BYTES: &str = "wirephoto_bucket_bytes_total";
/// Whether the bucket of originals is left alone because it only failed for a while: 1 or 0 (gauge).
pub const BUCKET_CIRCUIT_OPEN: &str = "wirephoto_bucket_away";
/// Direct ways that could not be gone to their end, by reason (counter).
pub const RENDER_PATHS_ABANDONED: &str = "wirephoto_render_ways_left_total";
/// Whether this process has a whole search index: 1 or 0 (gauge).
pub const SEARCH_INDEX_WHOLE: &str = "wirephoto_search_index_whole";
/// Versions of items in the search index (gauge).
pub const SEARCH_INDEX_ITEMS: &str = "wirephoto_search_index_items";
/// Rows of the item log that this process wrote or read and the search index does not hold yet (gauge).
pub const SEARCH_INDEX_BEHIND: &str = "wirephoto_search_index_rows_behind";
/// Items that a build of the search index has done (gauge).
pub const SEARCH_INDEX_BUILT_ITEMS: &str = "wirephoto_search_index_built_items";
/// Times that the search index was built, or compared with the items because the item log did not say what
/// changed, by kind: built, compared (counter).
pub const SEARCH_INDEX_REPAIRS: &str = "wirephoto_search_index_repairs_total";
/// Long polls that wait for items (gauge).
pub const POLLS_WAITING: &str = "wirephoto_polls_waiting";
/// Logins by password, by outcome: done, refused, throttled, failed (counter).
pub const LOGINS: &str = "wirephoto_logins_total";
/// Passwords and client secrets that were hashed to be compared (counter).
pub const HASHES: &str = "wirephoto_password_hashes_total";
/// Tries to deliver, by method and outcome: delivered, retry, failed, released (counter).
pub const DELIVERIES: &str = "wirephoto_deliveries_total";
/// Seconds of one try to deliver, by method (histogram).
pub const DELIVERY_SECONDS: &str = "wirephoto_delivery_seconds";
/// Deliveries that wait or are being sent, of all processes (gauge).
pub const DELIVERIES_WAITING: &str = "wirephoto_deliveries_waiting";

/// Polls of streams that wait for items (gauge).
pub const STREAM_POLLS: &str = "wirephoto_stream_polls_waiting";
/// Rows of the item log that notifications were not looked for yet (gauge).
pub const MATCHING_BEHIND: &str = "wirephoto_matching_rows_behind";
/// Seconds since the oldest of them was written (gauge).
pub const MATCHING_LAG_SECONDS: &str = "wirephoto_matching_lag_seconds";
/// Items that were matched (counter).
pub const MATCHED_ITEMS: &str = "wirephoto_matched_items_total";
/// Matches, by type of the notification (counter).
pub const MATCHES: &str = "wirephoto_matches_total";
/// Notifications that items are matched with (gauge).
pub const NOTIFICATIONS: &str = "wirephoto_notifications";
/// Items that wait in the queues of streams and scheduled mails (gauge).
pub const QUEUED_ITEMS: &str = "wirephoto_queued_items";
/// Items that fell out of a full queue, and messages that a full outbox did not take (counter).
pub const NOTIFICATIONS_LOST: &str = "wirephoto_notifications_lost_total";
/// Messages that wait or are being sent, by lane (gauge).
pub const OUTBOX_WAITING: &str = "wirephoto_outbox_waiting";
/// Messages that were given up and wait for the operator, by lane (gauge).
pub const OUTBOX_PARKED: &str = "wirephoto_outbox_parked";
/// Tries to send a message, by lane and outcome: sent, dropped, retry, parked, released (counter).
pub const MESSAGES: &str = "wirephoto_messages_total";
/// Seconds of one try to send a message, by lane (histogram).
pub const MESSAGE_SECONDS: &str = "wirephoto_message_seconds";
/// Jumps of the time of day, and starts at which it was far from where it had been (counter).
pub const CLOCK_JUMPS: &str = "wirephoto_clock_jumps_total";

/// Events of the audit log that could not be stored in the table (counter).
pub const AUDIT_EVENTS_LOST: &str = "wirephoto_audit_events_lost_total";
/// Log lines that the file did not take (counter).
pub const LOG_LINES_LOST: &str = "wirephoto_log_lines_lost_total";
/// Times that settings were read anew, by outcome: done, failed (counter).
pub const RELOADS: &str = "wirephoto_reloads_total";
/// When the certificate ends that TLS is served with, in seconds since 1970 (gauge).
pub const CERTIFICATE_EXPIRES: &str = "wirephoto_tls_certificate_expires_seconds";
/// Spans of traces, by outcome: sent, dropped because too many waited, failed (counter).
pub const SPANS: &str = "wirephoto_trace_spans_total";
/// Keys that a CDN was to be told of, by the address that is called (1, 2, … in the order of the
/// setting) and outcome: done, absent (it has nothing of them), retry, refused, given_up (counter).
pub const PURGES: &str = "wirephoto_purges_total";
/// Keys that a CDN is still to be told of, also those that are due later, by address (gauge).
pub const PURGES_WAITING: &str = "wirephoto_purges_waiting";
/// Seconds since the oldest change that a CDN was not told of though it could be, or that was not
/// looked at yet, by address (gauge).
pub const PURGE_LAG_SECONDS: &str = "wirephoto_purge_lag_seconds";
/// Seconds since this node last knew that it had followed the item log to its end (gauge).
pub const FOLLOW_BEHIND_SECONDS: &str = "wirephoto_follow_behind_seconds";
/// Nodes of the database that live (gauge).
pub const NODES: &str = "wirephoto_nodes";
/// Settings that all nodes should have alike and that another living node has otherwise, by setting: 1 or 0
/// (gauge).
pub const NODES_DIFFER: &str = "wirephoto_nodes_differ";
/// Whether this node is ready: 1 or 0 (gauge).
pub const READY: &str = "wirephoto_ready";
/// Whether this node cannot do something now, by fault: database, search, store, disk (gauge).
pub const FAULT: &str = "wirephoto_fault";
/// Whether this node does the work that one node does at a time, by lease: matching, purging, sweeping,
/// scrubbing (gauge).
pub const LEASE_HELD: &str = "wirephoto_lease_held";
/// Seconds for which no node has done that work, by lease: matching, sweeping (gauge).
pub const LEASE_VACANT_SECONDS: &str = "wirephoto_lease_vacant_seconds";
/// Calls of the database that the engine could not do, by kind: away (it cannot be reached, or is not the one
/// that writes), timeout (it took too long), busy (others held what was needed), other (counter).
pub const DATABASE_ERRORS: &str = "wirephoto_database_errors_total";
/// Seconds that a call of the database waited for a thread, by kind: read, search, write, claim (histogram).
pub const DATABASE_WAIT_SECONDS: &str = "wirephoto_database_wait_seconds";
/// Connections open (gauge).
pub const CONNECTIONS: &str = "wirephoto_connections";
/// Connections that the service closed, by reason (counter).
pub const CONNECTIONS_ENDED: &str = "wirephoto_connections_ended_total";
/// Connections refused because too many are open (counter).
pub const CONNECTIONS_REFUSED: &str = "wirephoto_connections_refused_total";
/// Connections refused because too many are open from one address (counter).
pub const ADDRESS_CONNECTIONS_REFUSED: &str = "wirephoto_connections_refused_per_address_total";
/// Connections that the system could not accept (counter).
pub const ACCEPT_ERRORS: &str = "wirephoto_accept_errors_total";
/// TLS handshakes in progress (gauge).
pub const TLS_HANDSHAKES: &str = "wirephoto_tls_handshakes";
/// TLS handshakes that failed (counter).
pub const TLS_HANDSHAKES_FAILED: &str = "wirephoto_tls_handshakes_failed_total";

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the metrics recorder and gives what `/metrics` prints.
///
/// Fails when a recorder was installed before.
pub fn start_metrics() -> Result<PrometheusHandle> {
    let seconds =
        [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(Error::internal)?;
    describe();
    register_counters();
    metrics::gauge!(START_TIME).set(clock::now().as_duration().as_secs_f64());
    Ok(handle)
}

/// Counters that alerts wait for begin at 0: what appears with its first event rose from nothing,
/// which `increase` does not see. Those with labels that settings give begin where these are read. What is counted
/// before the first scrape is told by [`START_TIME`].
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
    // A share of none is no number, and a cache that never hits is what the rule is for.
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
    gauge!(START_TIME, "When this process started, seconds since 1970");
    counter!(REQUESTS, "Requests by route and status class");
    histogram!(REQUEST_SECONDS, "Seconds from request to response header, by route");
    counter!(SHED, "Requests refused because of load, by reason");
    counter!(RESPONSE_BYTES, "Bytes of response bodies announced");
    gauge!(QUEUE_DEPTH, "Renders waiting for a worker");
    gauge!(WORKERS_BUSY, "Renders under way");
    gauge!(WORKERS, "Render workers");
    histogram!(RENDER_SECONDS, "Seconds of one render, by operation");
    histogram!(
        STAGE_SECONDS,
        "Seconds of one stage of a render: queue, read, decode, blend, encode"
    );
    counter!(RENDER_PATHS, "Renders by the way they took");
    counter!(NOT_INDEXED, "Originals that can only be decoded as a whole");
    counter!(
        CLOCK_JUMPS,
        "Jumps of the time of day by a minute or more, by a day or more between two lives"
    );
    counter!(
        ORIGINALS_DAMAGED,
        "Times that an original was found to be missing, or not to be what came in"
    );
    counter!(INDEX_REBUILDS, "Originals whose derived files were made again");
    gauge!(SCRUB_DONE_RATIO, "Part of this pass that the background scrub has done");
    gauge!(SCRUB_BEGAN_SECONDS, "Begin of this pass of the scrub, seconds since 1970");
    gauge!(SCRUB_ENDED_SECONDS, "End of the last whole pass of the scrub, seconds since 1970");
    counter!(BUCKET_REQUESTS, "Requests to the bucket of originals, by method and outcome");
    counter!(BUCKET_BYTES, "Bytes of bodies to and from the bucket of originals, by direction");
    gauge!(
        BUCKET_CIRCUIT_OPEN,
        "1 while the bucket of originals is left alone because it only failed"
    );
    counter!(RENDER_PATHS_ABANDONED, "Direct ways that could not be gone to their end");
    counter!(RENDERS, "Renders by outcome");
    counter!(RENDERS_STALLED, "Renders that waited while others kept all cores busy");
    counter!(DECODED_MEGAPIXELS, "Megapixels decoded");
    counter!(CACHE_LOOKUPS, "Rendition cache look-ups by tier and outcome");
    gauge!(CACHE_BYTES, "Bytes held by a tier of the rendition cache");
    counter!(ITEMS_CHANGED, "Items changed, as seen by this process");
    counter!(PURGES, "Keys that a CDN was to be told of, by address and outcome");
    gauge!(PURGES_WAITING, "Keys that a CDN is still to be told of, by address");
    gauge!(PURGE_LAG_SECONDS, "Seconds since the oldest change that a CDN was not told of");
    gauge!(POLLS_WAITING, "Long polls that wait for items");
    gauge!(SEARCH_INDEX_WHOLE, "1 while this process has a whole search index");
    gauge!(SEARCH_INDEX_ITEMS, "Versions of items in the search index");
    gauge!(SEARCH_INDEX_BEHIND, "Rows of the item log that the search index does not hold yet");
    gauge!(SEARCH_INDEX_BUILT_ITEMS, "Items that a build of the search index has done");
    counter!(SEARCH_INDEX_REPAIRS, "Times that the search index was built or compared, by kind");
    describe_deliveries_and_nodes();
    describe_notifications();
    describe_connections();
}

fn describe_deliveries_and_nodes() {
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    counter!(LOGINS, "Logins by password, by outcome");
    counter!(DELIVERIES, "Tries to deliver, by method and outcome");
    histogram!(DELIVERY_SECONDS, "Seconds of one try to deliver, by method");
    gauge!(DELIVERIES_WAITING, "Deliveries that wait or are being sent");
    counter!(LOG_LINES_LOST, "Log lines that the file did not take");
    counter!(AUDIT_EVENTS_LOST, "Events of the audit log that could not be stored in the table");
    counter!(RELOADS, "Times that settings were read anew, by outcome");
    gauge!(CERTIFICATE_EXPIRES, "End of the TLS certificate in use, seconds since 1970");
    counter!(SPANS, "Spans of traces by outcome");
    counter!(HASHES, "Passwords and client secrets hashed to be compared");
    gauge!(FOLLOW_BEHIND_SECONDS, "Seconds since this node last saw the end of the item log");
    gauge!(NODES, "Nodes of the database that live");
    gauge!(NODES_DIFFER, "1 for a setting that another living node has otherwise");
    gauge!(READY, "1 while this node is ready to answer requests");
    gauge!(FAULT, "1 while this node cannot do something, by fault");
    gauge!(LEASE_HELD, "Whether this node does the work that one node does at a time, by lease");
    gauge!(LEASE_VACANT_SECONDS, "Seconds for which no node has done that work, by lease");
    counter!(DATABASE_ERRORS, "Calls of the database that the engine could not do, by kind");
    histogram!(DATABASE_WAIT_SECONDS, "Seconds that a call of the database waited for a thread");
}

fn describe_notifications() {
    use metrics::{
        describe_counter as counter, describe_gauge as gauge, describe_histogram as histogram,
    };
    gauge!(STREAM_POLLS, "Polls of streams that wait for items");
    gauge!(MATCHING_BEHIND, "Rows of the item log that notifications were not looked for yet");
    gauge!(MATCHING_LAG_SECONDS, "Seconds since the oldest of them was written");
    counter!(MATCHED_ITEMS, "Items that were matched");
    counter!(MATCHES, "Matches, by type of the notification");
    gauge!(NOTIFICATIONS, "Notifications that items are matched with");
    gauge!(QUEUED_ITEMS, "Items that wait in the queues of streams and scheduled mails");
    counter!(NOTIFICATIONS_LOST, "Items and messages that full queues did not take");
    gauge!(OUTBOX_WAITING, "Messages that wait or are being sent, by lane");
    gauge!(OUTBOX_PARKED, "Messages that were given up and wait for the operator, by lane");
    counter!(MESSAGES, "Tries to send a message, by lane and outcome");
    histogram!(MESSAGE_SECONDS, "Seconds of one try to send a message, by lane");
}

fn describe_connections() {
    use metrics::{describe_counter as counter, describe_gauge as gauge};
    gauge!(CONNECTIONS, "Connections open");
    counter!(CONNECTIONS_ENDED, "Connections that the service closed, by reason");
    counter!(CONNECTIONS_REFUSED, "Connections refused because too many are open");
    counter!(
        ADDRESS_CONNECTIONS_REFUSED,
        "Connections refused because too many are open from one address"
    );
    counter!(ACCEPT_ERRORS, "Connections that the system could not accept");
    gauge!(TLS_HANDSHAKES, "TLS handshakes in progress");
    counter!(TLS_HANDSHAKES_FAILED, "TLS handshakes that failed");
}
