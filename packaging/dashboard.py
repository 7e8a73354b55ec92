#!/usr/bin/env python3
"""Prints the Grafana dashboard: packaging/dashboard.py > examples/grafana-dashboard.json

Add panels to ROWS: title, Grafana unit, and pairs of expression and legend. `S` selects the instances
chosen on the dashboard, `W` is the window of rates. Tests compare the file with this output and the
metric names with the service's (tests/suite/packaging.rs), and evaluate each expression in a
Prometheus that scrapes a service (tests/suite/signals/dashboard.rs).
"""

import json

S = 'instance=~"$instance"'
W = "[$__rate_interval]"


def rate(name, by="", where=""):
    by = f" by ({by})" if by else ""
    where = f", {where}" if where else ""
    return f"sum{by} (rate({name}{{{S}{where}}}{W}))"


def total(name, by=""):
    by = f" by ({by})" if by else ""
    return f"sum{by} ({name}{{{S}}})"


def largest(name):
    return f"max ({name}{{{S}}})"


def quantile(share, name, by=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(name + '_bucket', labels)})"


def mean(name, by):
    return f"{rate(name + '_sum', by)} / {rate(name + '_count', by)}"


HITS = rate("wirephoto_cache_lookups_total", where='outcome="hit"')
MADE = rate("wirephoto_renders_total", where='outcome="done"')
REQUESTS = "wirephoto_http_requests_total"
FAILED = rate(REQUESTS, where='status="5xx"')

ROWS = [
    ("Nodes", [
        ("Ready", "short", [
            (f"min by (instance) (wirephoto_ready{{{S}}})", "{{instance}}"),
        ]),
        ("Faults", "short", [
            (f"max by (instance, fault) (wirephoto_fault{{{S}}})", "{{instance}} {{fault}}"),
        ]),
        ("Free disk space", "bytes", [
            (f"min by (instance, volume) (wirephoto_disk_free_bytes{{{S}}})", "{{instance}} {{volume}}"),
        ]),
        ("Settings that differ between nodes", "short", [
            (f"max by (setting) (wirephoto_nodes_differ{{{S}}})", "{{setting}}"),
        ]),
        ("Nodes by machine", "short", [
            (f"max by (instance, node, host, listen, role) (wirephoto_node_info{{{S}}})",
             "{{instance}}: {{host}} {{listen}} {{role}} {{node}}"),
        ]),
        ("Live nodes", "short", [(largest("wirephoto_nodes"), "nodes")]),
        ("Leases held", "short", [
            (total("wirephoto_lease_held", "lease"), "{{lease}}"),
        ]),
        ("Leases without a holder", "s", [
            (f"max by (lease) (wirephoto_lease_vacant_seconds{{{S}}})", "{{lease}}"),
        ]),
        ("Lag behind the item log", "s", [
            (f"max by (instance) (wirephoto_follow_behind_seconds{{{S}}})", "{{instance}}"),
        ]),
        ("Uptime", "s", [
            (f"time() - max by (instance) (wirephoto_start_time_seconds{{{S}}})", "{{instance}}"),
        ]),
    ]),
    ("Requests", [
        ("Requests by status", "reqps", [(rate(REQUESTS, "status"), "{{status}}")]),
        ("Requests by route", "reqps", [(f"topk(10, {rate(REQUESTS, 'route')})", "{{route}}")]),
        ("5xx responses", "percentunit", [
            (f"{FAILED} / {rate(REQUESTS)}", "share"),
        ]),
        ("Time to response headers", "s", [
            (quantile(0.5, "wirephoto_http_request_seconds"), "half"),
            (quantile(0.95, "wirephoto_http_request_seconds"), "95 %"),
            (quantile(0.99, "wirephoto_http_request_seconds"), "99 %"),
        ]),
        ("Refused because of load", "reqps", [
            (rate("wirephoto_requests_shed_total", "reason"), "{{reason}}"),
        ]),
        ("Sent", "Bps", [(rate("wirephoto_http_response_bytes_total"), "bytes")]),
    ]),
    ("Connections", [
        ("Open connections", "short", [(total("wirephoto_connections"), "open")]),
        ("Connections closed or refused", "ops", [
            (rate("wirephoto_connections_ended_total", "reason"), "{{reason}}"),
            (rate("wirephoto_connections_refused_total"), "refused: too many"),
            (rate("wirephoto_connections_refused_per_address_total"), "refused: too many of one address"),
            (rate("wirephoto_accept_errors_total"), "not accepted"),
        ]),
        ("TLS handshakes", "short", [
            (total("wirephoto_tls_handshakes"), "in progress"),
            (rate("wirephoto_tls_handshakes_failed_total"), "failed a second"),
        ]),
        ("Time until the certificate expires", "s", [
            (f"min (wirephoto_tls_certificate_expires_seconds{{{S}}}) - time()", "seconds"),
        ]),
        ("Polls that wait for items", "short", [
            (total("wirephoto_polls_waiting"), "deprecated stream"),
            (total("wirephoto_stream_polls_waiting"), "streams of notifications"),
        ]),
    ]),
    ("Renditions", [
        ("Renders by outcome", "ops", [(rate("wirephoto_renders_total", "outcome"), "{{outcome}}")]),
        ("Renders by path", "ops", [(rate("wirephoto_render_paths_total", "path"), "{{path}}")]),
        ("Workers and queue", "short", [
            (total("wirephoto_render_workers"), "workers"),
            (total("wirephoto_render_workers_busy"), "busy"),
            (total("wirephoto_render_queue_depth"), "waiting"),
        ]),
        ("Render time, 95 %", "s", [
            (quantile(0.95, "wirephoto_render_seconds", "operation"), "{{operation}}"),
        ]),
        ("Mean stage time", "s", [(mean("wirephoto_stage_seconds", "stage"), "{{stage}}")]),
        ("Stalled renders", "ops", [
            (rate("wirephoto_renders_stalled_total"), "stalled"),
        ]),
        ("Decoded", "Mpixels/s", [(rate("wirephoto_decoded_megapixels_total"), "megapixels")]),
        ("Render paths abandoned, by reason", "ops", [
            (rate("wirephoto_render_paths_abandoned_total", "reason"), "{{reason}}"),
        ]),
    ]),
    ("Cache", [
        ("Cache hit ratio", "percentunit", [(f"{HITS} / ({HITS} + {MADE})", "share")]),
        ("Look-ups", "ops", [
            (rate("wirephoto_cache_lookups_total", "tier, outcome"), "{{tier}} {{outcome}}"),
        ]),
        ("Size", "bytes", [(total("wirephoto_cache_bytes", "tier"), "{{tier}}")]),
    ]),
    ("Archive", [
        ("Items changed", "ops", [(rate("wirephoto_items_changed_total"), "items")]),
        ("Originals", "ops", [
            (rate("wirephoto_originals_not_indexed_total"), "can only be decoded as a whole"),
            (rate("wirephoto_index_rebuilds_total"), "derived files rebuilt"),
        ]),
        ("Originals found damaged", "short", [
            (f"sum by (instance) (increase(wirephoto_originals_damaged_total{{{S}}}{W}))", "{{instance}}"),
        ]),
        ("Scrub: progress of the current pass", "percentunit", [
            (largest("wirephoto_scrub_done_ratio"), "done"),
        ]),
        ("Scrub: age", "s", [
            (f"time() - max (wirephoto_scrub_began_seconds{{{S}}} > 0)", "current pass"),
            (f"time() - max (wirephoto_scrub_ended_seconds{{{S}}} > 0)", "last complete pass"),
        ]),
        ("Standard renditions", "short", [
            (f"sum by (instance) (increase(wirephoto_standard_sets_total{{{S}}}{W}))", "{{instance}} made"),
            (largest("wirephoto_standard_sets_behind"), "items to go"),
        ]),
        ("Requests to the bucket", "ops", [
            (rate("wirephoto_bucket_requests_total", "method, outcome"), "{{method}} {{outcome}}"),
        ]),
        ("Circuit breaker of the bucket", "short", [(largest("wirephoto_bucket_circuit_open"), "open")]),
        ("To and from the bucket", "Bps", [
            (rate("wirephoto_bucket_bytes_total", "direction"), "{{direction}}"),
        ]),
    ]),
    ("Search index", [
        ("Items", "short", [
            (f"max by (instance) (wirephoto_search_index_items{{{S}}})", "{{instance}}"),
            (f"max by (instance) (wirephoto_search_index_built_items{{{S}}})", "{{instance}} built"),
        ]),
        ("Complete", "short", [
            (f"max by (instance) (wirephoto_search_index_whole{{{S}}})", "{{instance}}"),
        ]),
        ("Rows behind", "short", [
            (f"max by (instance) (wirephoto_search_index_rows_behind{{{S}}})", "{{instance}}"),
        ]),
        ("Builds and comparisons", "ops", [
            (rate("wirephoto_search_index_repairs_total", "kind"), "{{kind}}"),
        ]),
    ]),
    ("Database", [
        ("Failed calls", "ops", [
            (rate("wirephoto_database_errors_total", "kind"), "{{kind}}"),
        ]),
        ("Calls", "ops", [(rate("wirephoto_database_wait_seconds_count", "kind"), "{{kind}}")]),
        ("Wait for a thread, 95 %", "s", [
            (quantile(0.95, "wirephoto_database_wait_seconds", "kind"), "{{kind}}"),
        ]),
    ]),
    ("CDN", [
        ("Purges by outcome", "ops", [(rate("wirephoto_purges_total", "outcome"), "{{outcome}}")]),
        ("Keys to purge", "short", [(largest("wirephoto_purges_waiting"), "keys")]),
        ("Purge lag", "s", [(largest("wirephoto_purge_lag_seconds"), "seconds")]),
    ]),
    ("Process", [
        ("Settings reloaded", "ops", [(rate("wirephoto_reloads_total", "outcome"), "{{outcome}}")]),
        ("Trace spans", "ops", [(rate("wirephoto_trace_spans_total", "outcome"), "{{outcome}}")]),
        ("Lost events and clock jumps", "ops", [
            (rate("wirephoto_log_lines_lost_total"), "log lines lost"),
            (rate("wirephoto_audit_events_lost_total"), "audit events not stored"),
            (rate("wirephoto_clock_jumps_total"), "clock jumps"),
        ]),
    ]),
    ("Logins", [
        ("Logins by outcome", "ops", [(rate("wirephoto_logins_total", "outcome"), "{{outcome}}")]),
        ("Passwords hashed", "ops", [(rate("wirephoto_password_hashes_total"), "hashes")]),
    ]),
    ("Deliveries", [
        ("Attempts by outcome", "ops", [
            (rate("wirephoto_deliveries_total", "method, outcome"), "{{method}} {{outcome}}"),
        ]),
        ("Attempt time, 95 %", "s", [
            (quantile(0.95, "wirephoto_delivery_seconds", "method"), "{{method}}"),
        ]),
        # Each node reports the deliveries of all.
        ("Waiting", "short", [(largest("wirephoto_deliveries_waiting"), "deliveries")]),
    ]),
    ("Notifications", [
        ("Matching lag", "s", [(largest("wirephoto_matching_lag_seconds"), "seconds")]),
        ("Matching lag, rows", "short", [
            (largest("wirephoto_matching_rows_behind"), "rows"),
        ]),
        ("Matched", "ops", [
            (rate("wirephoto_matched_items_total"), "items"),
            (rate("wirephoto_matches_total", "type"), "{{type}}"),
        ]),
        ("Notifications", "short", [(largest("wirephoto_notifications"), "notifications")]),
        ("Queued items", "short", [(largest("wirephoto_queued_items"), "items")]),
        ("Dropped from full queues", "ops", [(rate("wirephoto_notifications_lost_total"), "lost")]),
        ("Outbox", "short", [
            (f"max by (transport) (wirephoto_outbox_waiting{{{S}}})", "{{transport}} waiting"),
            (f"max by (transport) (wirephoto_outbox_parked{{{S}}})", "{{transport}} parked"),
        ]),
        ("Messages by outcome", "ops", [
            (rate("wirephoto_messages_total", "transport, outcome"), "{{transport}} {{outcome}}"),
        ]),
        ("Message time, 95 %", "s", [
            (quantile(0.95, "wirephoto_message_seconds", "transport"), "{{transport}}"),
        ]),
    ]),
]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS, WIDTH, HEIGHT = 3, 8, 7


def panel(number, title, unit, queries, x, y):
    targets = [
        {"datasource": SOURCE, "expr": query, "legendFormat": legend, "refId": chr(ord("A") + at)}
        for at, (query, legend) in enumerate(queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": targets,
    }


def panels():
    made, y = [], 0
    for row, entries in ROWS:
        place = {"x": 0, "y": y, "w": COLUMNS * WIDTH, "h": 1}
        made.append({"id": len(made) + 1, "type": "row", "title": row, "gridPos": place,
                     "collapsed": False, "panels": []})
        y += 1
        for at, (title, unit, queries) in enumerate(entries):
            x, down = at % COLUMNS * WIDTH, at // COLUMNS * HEIGHT
            made.append(panel(len(made) + 1, title, unit, queries, x, y + down))
        y += -(-len(entries) // COLUMNS) * HEIGHT
    return made


def variables():
    instances = "label_values(wirephoto_render_workers, instance)"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {"name": "instance", "label": "Instance", "type": "query", "datasource": SOURCE,
         "query": {"query": instances, "refId": "instances"}, "definition": instances,
         "includeAll": True, "multi": True, "refresh": 2, "sort": 1,
         "current": {"text": "All", "value": "$__all"}},
    ]


print(json.dumps({
    "title": "Wirephoto",
    "uid": "wirephoto",
    "tags": ["wirephoto"],
    "schemaVersion": 39,
    "editable": True,
    "graphTooltip": 1,
    "refresh": "30s",
    "time": {"from": "now-6h", "to": "now"},
    "templating": {"list": variables()},
    "panels": panels(),
}, indent=1))
