//! The API of operators below `/operator/v1`: the state of the service, failed work, and statistics (contract
//! operation-60).
//!
//! Only users with the role `ROLE_OPERATOR` may call it. Responses describe other nodes by their rows in the
//! database.

mod diagnostics;
mod downloads;
mod queues;
mod status;

use std::sync::Arc;

use api::operation::{
    ExportDownloads, ListAllDeliveries, ListIngestErrors, ListMessages, ListSlowSearches,
    LoadDownloads, LoadStatus, OperatorCaller, RemoveMessage, RetryDeliveries, RetryDelivery,
    RetryMessage, RetryMessages,
};
use axum::http::request::Parts;

use crate::access::auth::Principal;
use crate::http::api::binding::{Authenticate, BoundEndpoints};
use crate::http::{AppState, credentials};
use crate::runtime::error::Result;

/// The endpoints of operators.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<LoadStatus, _, _>(status::load)
        .bind::<ListAllDeliveries, _, _>(queues::list_deliveries)
        .bind::<RetryDeliveries, _, _>(queues::retry_deliveries)
        .bind::<RetryDelivery, _, _>(queues::retry_delivery)
        .bind::<ListMessages, _, _>(queues::list_messages)
        .bind::<RetryMessages, _, _>(queues::retry_messages)
        .bind::<RetryMessage, _, _>(queues::retry_message)
        .bind_response::<RemoveMessage, _, _>(queues::remove_message)
        .bind::<ListIngestErrors, _, _>(diagnostics::list_ingest_errors)
        .bind::<ListSlowSearches, _, _>(diagnostics::list_slow_searches)
        .bind::<LoadDownloads, _, _>(downloads::load)
        .bind_response::<ExportDownloads, _, _>(downloads::export)
}

impl Authenticate for OperatorCaller {
    type Authenticated = Arc<Principal>;

    /// Refuses callers without the role with `operator_required`.
    async fn authenticate(app: &AppState, parts: &Parts) -> Result<Self::Authenticated> {
        let caller = credentials::require_principal(app, parts).await?;
        caller.require_operator_role()?;
        Ok(caller)
    }
}
