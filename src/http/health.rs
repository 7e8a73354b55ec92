//! What an operator's tools ask: is it alive, is it ready, what does it count.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use serde_json::json;

use crate::cluster::membership::{NodeFault, limits::LEASE_VACANT_MAX};
use crate::cluster::readiness::ReadinessVerdict;
use crate::http::AppState;
use crate::http::protocol::respond;
use crate::runtime::telemetry;
use crate::storage::search::IndexStatus;

/// `GET /health/live`: the process answers.
pub(super) async fn live() -> Response {
    without_caching(respond::json_text(
        StatusCode::OK,
        json!({ "status": "live" }).to_string().into(),
    ))
}

/// `GET /health/serving`: the service is not stopping, whatever its database does; else 503. For a balancer
/// that has nobody left who is ready: what is in a cache is served without a database.
pub(super) async fn serving(State(app): State<AppState>) -> Response {
    let (status, text) = match app.shared.process.is_draining() {
        false => (StatusCode::OK, json!({ "status": "serving" })),
        true => (
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "not serving", "reason": "draining" }),
        ),
    };
    without_caching(respond::json_text(status, text.to_string().into()))
}

/// `GET /health/ready`: the service is not stopping, and this node can do what others can; else 503. What is
/// wrong with all nodes, and that no node has done the work beside requests for a while, is told by a node that is
/// ready too: it answers all the same.
pub(super) async fn ready(State(app): State<AppState>) -> Response {
    let verdict = app.shared.process.readiness.verdict();
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
    without_caching(respond::json_text(status, text.to_string().into()))
}

/// `GET /health/search`: this node has a whole search index, reaches its database and is not stopping; else 503. For a balancer that sends searches
/// elsewhere meanwhile, and for scripts that wait until what they took in is found: `rowsBehind` counts the
/// rows of the item log that the index does not hold yet.
pub(super) async fn search(State(app): State<AppState>) -> Response {
    let search = app.shared.archive.content.engine();
    let refused = |status: &str, reason: String| {
        (StatusCode::SERVICE_UNAVAILABLE, json!({ "status": status, "reason": reason }))
    };
    let lacks_database = || {
        let faults = app.shared.process.readiness.verdict().faults;
        faults.iter().any(|(fault, _)| *fault == NodeFault::Database)
    };
    let (status, text) = match search.status() {
        _ if app.shared.process.is_draining() => {
            refused("draining", "the service stops".to_owned())
        }
        // Hits are read from the database: a whole index alone answers nothing.
        _ if lacks_database() => refused("database", "the database cannot be used".to_owned()),
        IndexStatus::Disabled => refused("disabled", "this node does not search".to_owned()),
        IndexStatus::Building { done, count } => {
            let reason = format!("the search index is being built: {done} of {count} items");
            refused("building", reason)
        }
        IndexStatus::Ready => match search.rows_behind().await {
            Ok(rows) => (StatusCode::OK, json!({ "status": "ready", "rowsBehind": rows })),
            Err(cause) => {
                tracing::debug!("it is not known how far the search index is: {cause}");
                (StatusCode::OK, json!({ "status": "ready" }))
            }
        },
    };
    without_caching(respond::json_text(status, text.to_string().into()))
}

fn ready_text(app: &AppState, verdict: &ReadinessVerdict) -> serde_json::Value {
    let mut text = json!({ "status": "ready" });
    let mut details = Vec::new();
    if !verdict.faults.is_empty() {
        details.push(verdict.reason());
    }
    if let Some(unmatched) =
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
    // Here, since whoever follows may hang in a question to the database.
    let behind = app.shared.process.node.log_lag().as_secs_f64();
    metrics::gauge!(telemetry::FOLLOW_BEHIND_SECONDS).set(behind);
    let text = app.shared.process.metrics.render();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    without_caching(respond::typed(StatusCode::OK, kind, Body::from(text)))
}

fn without_caching(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
