//! The API of operators below `/operator/v1`: the state of the service, failed work, and statistics (contract
//! operation-60).
//!
//! Only users with the role `ROLE_OPERATOR` may call it. Responses describe other nodes by their rows in the
//! database.

mod diagnostics;
mod downloads;
mod queues;
mod status;

use axum::{
    Router,
    extract::FromRequestParts,
    http::{Uri, request::Parts},
    routing::{get, post},
};

use crate::http::AppState;
use crate::http::api::{ApiCaller, ApiError};
use crate::http::protocol::request;
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::runtime::error::Result;
use crate::runtime::limits::{DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT};

/// The routes of operators.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/operator/v1/status", get(status::load))
        .route(
            "/operator/v1/delivery",
            get(queues::list_deliveries).post(queues::retry_deliveries),
        )
        .route("/operator/v1/delivery/{id}", post(queues::retry_delivery))
        .route("/operator/v1/message", get(queues::list_messages).post(queues::retry_messages))
        .route(
            "/operator/v1/message/{id}",
            post(queues::retry_message).delete(queues::remove_message),
        )
        .route("/operator/v1/ingest-error", get(diagnostics::list_ingest_errors))
        .route("/operator/v1/slow-search", get(diagnostics::list_slow_searches))
        .route("/operator/v1/download", get(downloads::list))
        .route("/operator/v1/download.csv", get(downloads::export))
}

/// A call by an operator; callers without the role are refused with `operator_required`.
pub(super) struct OperatorCall {
    app: AppState,
    uri: Uri,
}

impl FromRequestParts<AppState> for OperatorCall {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let ApiCaller(caller) = ApiCaller::from_request_parts(parts, app).await?;
        caller.require_operator_role()?;
        Ok(Self { app: app.clone(), uri: parts.uri.clone() })
    }
}

impl OperatorCall {
    /// Parses the query of the call.
    fn query(&self) -> Result<QueryParameters> {
        QueryParameters::from_uri(&self.uri)
    }
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageOfList {
    /// Number of entries to skip.
    start: usize,
    /// Maximum number of entries.
    size: usize,
}

impl PageOfList {
    /// Reads the parameters `size` and `start`.
    fn read(query: &QueryParameters, problems: &mut ValidationErrors) -> Option<Self> {
        let size = problems.check(request::count(query, "size", DELIVERIES_LISTED_MAX));
        let start_max = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
        let start = problems.check(request::count(query, "start", start_max));
        // Both are read before the first `?`, so that all problems are reported together.
        Some(Self { start: start?.unwrap_or(0), size: size?.unwrap_or(DELIVERIES_SIZE_DEFAULT) })
    }
}
