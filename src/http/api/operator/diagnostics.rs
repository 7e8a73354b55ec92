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
    list(&call, DiagnosticKind::IngestError, "ingestErrors", ingest_error_json).await
}

fn ingest_error_json(diagnostic: &StoredDiagnostic) -> Value {
    json!({
        "at": diagnostic.record.at,
        "node": diagnostic.node,
        "subject": diagnostic.record.subject,
        "error": diagnostic.record.detail,
        "count": diagnostic.record.count,
    })
}

/// `GET /operator/v1/slow-search`: slow searches, newest first.
pub(super) async fn list_slow_searches(call: OperatorCall) -> ApiResult {
    list(&call, DiagnosticKind::SlowSearch, "slowSearches", slow_search_json).await
}

fn slow_search_json(diagnostic: &StoredDiagnostic) -> Value {
    json!({
        "at": diagnostic.record.at,
        "node": diagnostic.node,
        "q": diagnostic.record.subject,
        "parameters": diagnostic.record.detail,
        "milliseconds": diagnostic.record.duration_ms.unwrap_or_default(),
        "count": diagnostic.record.count,
    })
}

/// Responds with the page of records that `call` requests, as the property `name`.
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
