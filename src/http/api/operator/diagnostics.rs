//! Recorded ingest errors and slow searches of all nodes.

use serde_json::{Value, json};

use super::{OperatorCall, PageOfList};
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::protocol::request::ValidationErrors;
use crate::runtime::error::Error;
use crate::storage::database::StoredDiagnostic;
use crate::storage::diagnostics::DiagnosticKind;

/// `GET /operator/v1/ingest-error`: files and items that were not ingested, newest first.
pub(super) async fn list_ingest_errors(call: OperatorCall) -> ApiResult {
    let view = |one: &StoredDiagnostic| {
        json!({
            "at": one.record.at,
            "node": one.node,
            "subject": one.record.subject,
            "error": one.record.detail,
            "count": one.record.count,
        })
    };
    list(&call, DiagnosticKind::IngestError, "ingestErrors", view).await
}

/// `GET /operator/v1/slow-search`: searches that took long, newest first.
pub(super) async fn list_slow_searches(call: OperatorCall) -> ApiResult {
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
    list(&call, DiagnosticKind::SlowSearch, "slowSearches", view).await
}

/// Responds with the page of records that `call` asks for, as the property `name`.
async fn list(
    call: &OperatorCall,
    kind: DiagnosticKind,
    name: &str,
    view: fn(&StoredDiagnostic) -> Value,
) -> ApiResult {
    let mut problems = ValidationErrors::new();
    let page = PageOfList::read(&call.query()?, &mut problems);
    let PageOfList { start, size } = problems.finish(page)?;
    let db = &call.app.shared.process.db;
    let found = db.read(move |tx| tx.list_diagnostics(kind, start, size)).await;
    let found: Vec<Value> = found.map_err(Error::from)?.iter().map(view).collect();
    api::json(&json!({ name: found }))
}
