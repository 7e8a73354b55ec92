//! Health checks and metrics for operators' tools: liveness, readiness, search and counters.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode},
    response::Response,
};
use serde_json::{Value, json};

use crate::cluster::membership::{NodeFault, limits::LEASE_VACANT_MAX};
use crate::cluster::readiness::ReadinessVerdict;
use crate::http::AppState;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::respond;
use crate::runtime::telemetry;
use crate::storage::search::IndexStatus;

/// `GET /health/live`: responds whenever the process can respond.
pub(super) async fn live() -> Response {
    // Reads no state: a supervisor restarts a process that fails here, and a restart repairs no
    // database.
    status_response(StatusCode::OK, &json!({ "status": "live" }))
}

/// `GET /health/serving`: 200 unless the service is shutting down, independent of the state of its database;
/// else 503.
///
/// For a load balancer without a ready node: cached renditions are served without a database.
pub(super) async fn serving(State(app): State<AppState>) -> Response {
    if app.shared.process.is_draining() {
        let text = json!({ "status": "not serving", "reason": "draining" });
        return status_response(StatusCode::SERVICE_UNAVAILABLE, &text);
    }
    status_response(StatusCode::OK, &json!({ "status": "serving" }))
}

/// `GET /health/ready`: 200 if the service is not shutting down and no other node can serve more than this one;
/// else 503.
///
/// A ready node also reports faults that all nodes share, and a long absence of workers. Neither is a reason to
/// take this node out of rotation.
pub(super) async fn ready(State(app): State<AppState>) -> Response {
    let verdict = app.shared.process.readiness.verdict();
    // Draining comes first: a healthy node that stops must leave the rotation, too.
    let (status, mut text) = if app.shared.process.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "not ready", "reason": "draining" }))
    } else if verdict.is_ready {
        (StatusCode::OK, ready_text(&app, &verdict))
    } else {
        let reason = verdict.reason();
        (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": "not ready", "reason": reason }))
    };
    if !verdict.faults.is_empty() {
        let faults = verdict.faults.iter().map(|(fault, _)| fault.as_str());
        text["faults"] = faults.collect::<Vec<_>>().into();
    }
    status_response(status, &text)
}

/// `GET /health/search`: 200 when this node has a complete search index, reaches its database and is not
/// shutting down; else 503.
///
/// For a load balancer that routes searches elsewhere in the meantime, and for scripts that wait until
/// uploaded items can be found: `rowsBehind` counts the rows of the item log that are not indexed yet.
pub(super) async fn search(State(app): State<AppState>) -> Response {
    let search = app.shared.archive.content.engine();
    if app.shared.process.is_draining() {
        return refuse_search("draining", "the service is stopping");
    }
    // Hits are read from the database, so an index without it cannot answer.
    if lacks_database(&app) {
        return refuse_search("database", "the database cannot be used");
    }
    match search.status() {
        IndexStatus::Disabled => refuse_search("disabled", "this node does not search"),
        IndexStatus::Building { done, count } => {
            let reason = format!("the search index is being built: {done} of {count} items");
            refuse_search("building", &reason)
        }
        IndexStatus::Ready => match search.rows_behind().await {
            Ok(rows) => {
                status_response(StatusCode::OK, &json!({ "status": "ready", "rowsBehind": rows }))
            }
            Err(cause) => {
                // The lag is a detail, and the index answers searches without it.
                tracing::debug!("search index lag is unknown: {cause}");
                status_response(StatusCode::OK, &json!({ "status": "ready" }))
            }
        },
    }
}

fn refuse_search(status: &str, reason: &str) -> Response {
    let text = json!({ "status": status, "reason": reason });
    status_response(StatusCode::SERVICE_UNAVAILABLE, &text)
}

fn lacks_database(app: &AppState) -> bool {
    let faults = app.shared.process.readiness.verdict().faults;
    faults.iter().any(|(fault, _)| *fault == NodeFault::Database)
}

fn ready_text(app: &AppState, verdict: &ReadinessVerdict) -> Value {
    let mut text = json!({ "status": "ready" });
    let mut details = Vec::new();
    if !verdict.faults.is_empty() {
        details.push(verdict.reason());
    }
    if let Some(unmatched) =
        // A lease that moves to a different node has no holder for a moment, which is normal.
        app.shared.process.node.matching_lag().filter(|time| *time >= LEASE_VACANT_MAX)
    {
        let seconds = unmatched.as_secs();
        details
            .push(format!("no worker for {seconds} s: notifications, mails and deliveries wait"));
    }
    if !details.is_empty() {
        text["detail"] = details.join("; ").into();
    }
    text
}

/// `GET /metrics`: counters, gauges and histograms in Prometheus' text format.
pub(super) async fn metrics(State(app): State<AppState>) -> Response {
    // Set here because the follower itself may be blocked in a database query.
    let behind = app.shared.process.node.log_lag().as_secs_f64();
    metrics::gauge!(telemetry::FOLLOW_BEHIND_SECONDS).set(behind);
    let text = app.shared.process.metrics.render();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    without_caching(respond::typed(StatusCode::OK, kind, Body::from(text)))
}

fn status_response(status: StatusCode, text: &Value) -> Response {
    without_caching(respond::json_text(status, text.to_string().into()))
}

fn without_caching(mut response: Response) -> Response {
    // A cached response would report a state that has passed.
    CachePolicy::NoStore.set(response.headers_mut());
    response
}
