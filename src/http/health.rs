//! Health checks and metrics for operators' tools: liveness, readiness, search and counters.

use api::operator::{
    CheckLiveness, CheckReadiness, CheckSearch, CheckServing, Health, HealthCheck, HealthStatus,
    LoadMetrics,
};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::cluster::membership::{NodeFault, limits::LEASE_VACANT_MAX};
use crate::cluster::readiness::ReadinessVerdict;
use crate::http::AppState;
use crate::http::api::binding::{ApiRequest, BoundEndpoints, IntoApiResponse};
use crate::http::api::response::json;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::respond;
use crate::runtime::error::Result;
use crate::runtime::telemetry;
use crate::storage::search::IndexStatus;

/// Health checks for load balancers.
pub(super) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<CheckLiveness, _, _>(live)
        .bind::<CheckReadiness, _, _>(ready)
        .bind::<CheckServing, _, _>(serving)
        .bind::<CheckSearch, _, _>(search)
}

/// The endpoint that Prometheus scrapes.
pub(super) fn metrics_endpoints() -> BoundEndpoints {
    BoundEndpoints::new().bind_response::<LoadMetrics, _, _>(metrics)
}

impl IntoApiResponse for HealthCheck {
    fn into_api_response(self) -> Result<Response> {
        let status =
            if self.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json(status, &self.0)
    }
}

/// Responds whenever the process can respond.
async fn live(_: ApiRequest<CheckLiveness>) -> Result<HealthCheck> {
    // Reads no state: a supervisor restarts a process that fails here, and a restart repairs no
    // database.
    Ok(HealthCheck(Health::new(HealthStatus::Live)))
}

/// Is ready unless the service is shutting down, independent of the state of its database.
///
/// For a load balancer without a ready node: cached renditions are served without a database.
async fn serving(request: ApiRequest<CheckServing>) -> Result<HealthCheck> {
    if request.app.shared.process.is_draining() {
        return unready(HealthStatus::NotServing, "draining");
    }
    Ok(HealthCheck(Health::new(HealthStatus::Serving)))
}

/// Is ready if the service is not shutting down and no other node can serve more than this one.
///
/// A ready node also reports faults that all nodes share, and a long absence of workers. Neither is a reason to
/// take this node out of rotation.
async fn ready(request: ApiRequest<CheckReadiness>) -> Result<HealthCheck> {
    let verdict = request.app.shared.process.readiness.verdict();
    // Draining comes first: a healthy node that stops must leave the rotation, too.
    let health = if request.app.shared.process.is_draining() {
        Health::unready(HealthStatus::NotReady, "draining")
    } else if verdict.is_ready {
        Health { detail: ready_detail(&request.app, &verdict), ..Health::new(HealthStatus::Ready) }
    } else {
        Health::unready(HealthStatus::NotReady, verdict.reason())
    };
    let faults = verdict.faults.iter().map(|(fault, _)| fault.as_str().to_owned());
    Ok(HealthCheck(Health { faults: faults.collect(), ..health }))
}

/// Is ready when this node has a complete search index, reaches its database and is not shutting down.
///
/// For a load balancer that routes searches elsewhere in the meantime, and for scripts that wait until
/// uploaded items can be found: `rowsBehind` counts the rows of the item log that are not indexed yet.
async fn search(request: ApiRequest<CheckSearch>) -> Result<HealthCheck> {
    let search = request.app.shared.archive.content.engine();
    if request.app.shared.process.is_draining() {
        return unready(HealthStatus::Draining, "the service is stopping");
    }
    // Hits are read from the database, so an index without it cannot answer.
    if lacks_database(&request.app) {
        return unready(HealthStatus::Database, "the database cannot be used");
    }
    match search.status() {
        IndexStatus::Disabled => unready(HealthStatus::Disabled, "this node does not search"),
        IndexStatus::Building { done, count } => {
            let reason = format!("the search index is being built: {done} of {count} items");
            unready(HealthStatus::Building, &reason)
        }
        IndexStatus::Ready => {
            // The lag is a detail, and the index answers searches without it.
            let behind = search.rows_behind().await.inspect_err(|cause| {
                tracing::debug!("search index lag is unknown: {cause}");
            });
            let health = Health::new(HealthStatus::Ready);
            Ok(HealthCheck(Health { rows_behind: behind.ok(), ..health }))
        }
    }
}

fn unready(status: HealthStatus, reason: &str) -> Result<HealthCheck> {
    Ok(HealthCheck(Health::unready(status, reason)))
}

fn lacks_database(app: &AppState) -> bool {
    let faults = app.shared.process.readiness.verdict().faults;
    faults.iter().any(|(fault, _)| *fault == NodeFault::Database)
}

/// Returns what does not work although the node is ready.
fn ready_detail(app: &AppState, verdict: &ReadinessVerdict) -> Option<String> {
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
    (!details.is_empty()).then(|| details.join("; "))
}

/// Responds with counters, gauges and histograms in Prometheus' text format.
async fn metrics(request: ApiRequest<LoadMetrics>) -> Result<Response> {
    // Set here because the follower itself may be blocked in a database query.
    let behind = request.app.shared.process.node.log_lag().as_secs_f64();
    metrics::gauge!(telemetry::FOLLOW_BEHIND_SECONDS).set(behind);
    let text = request.app.shared.process.metrics.render();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let mut response = respond::typed(StatusCode::OK, kind, Body::from(text));
    // A cached response would report a state that has passed.
    CachePolicy::NoStore.set(response.headers_mut());
    Ok(response)
}
