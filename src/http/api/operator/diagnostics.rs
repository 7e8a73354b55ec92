//! Recorded ingest errors and slow searches of all nodes.

use axum::{extract::State, http::Uri};
use serde_json::{Value, json};

use super::{OperatorCaller, PageOfList};
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::runtime::error::Result;
use crate::storage::database::StoredDiagnostic;
use crate::storage::diagnostics::DiagnosticKind;

/// `GET /operator/v1/ingest-error`: files and items that were not ingested, newest first.
pub(super) async fn list_ingest_errors(
    State(app): State<AppState>,
    _: OperatorCaller,
    uri: Uri,
) -> ApiResult {
    let view = |one: &StoredDiagnostic| {
        json!({
            "at": one.record.at,
            "node": one.node,
            "subject": one.record.subject,
            "error": one.record.detail,
            "count": one.record.count,
        })
    };
    let found = list(&app, DiagnosticKind::IngestError, &uri).await?;
    api::json(&json!({ "ingestErrors": found.iter().map(view).collect::<Vec<Value>>() }))
}

/// `GET /operator/v1/slow-search`: searches that took long, newest first.
pub(super) async fn list_slow_searches(
    State(app): State<AppState>,
    _: OperatorCaller,
    uri: Uri,
) -> ApiResult {
    let view = |one: &StoredDiagnostic| {
        json!({
            "at": one.record.at,
            "node": one.node,
            "q": one.record.subject,
            "parameters": one.record.detail,
            "milliseconds": one.record.duration_ms.unwrap_or_default(),
            "count": one.record.count,
        })
    };
    let found = list(&app, DiagnosticKind::SlowSearch, &uri).await?;
    api::json(&json!({ "slowSearches": found.iter().map(view).collect::<Vec<Value>>() }))
}

async fn list(app: &AppState, kind: DiagnosticKind, uri: &Uri) -> Result<Vec<StoredDiagnostic>> {
    let mut problems = ValidationErrors::new();
    let page = PageOfList::read(&QueryParameters::of(uri)?, &mut problems);
    let PageOfList { start, size } = problems.finish(page)?;
    let read = app.shared.process.db.read(move |tx| tx.list_diagnostics(kind, start, size));
    Ok(read.await?)
}
