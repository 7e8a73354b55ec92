//! Recorded ingest errors and slow searches of all nodes.

use api::Json;
use api::operation::{
    IngestError, IngestErrors, ListIngestErrors, ListRange, ListSlowSearches, SlowSearch,
    SlowSearches,
};

use crate::http::AppState;
use crate::http::api::binding::ApiRequest;
use crate::runtime::error::Result;
use crate::storage::database::StoredDiagnostic;
use crate::storage::diagnostics::DiagnosticKind;

/// Lists files and items that were not ingested, newest first.
pub(super) async fn list_ingest_errors(
    request: ApiRequest<ListIngestErrors>,
) -> Result<Json<IngestErrors>> {
    let range = request.parameters()?.range;
    let found = list(&request.app, DiagnosticKind::IngestError, range).await?;
    Ok(Json(IngestErrors { ingest_errors: found.into_iter().map(ingest_error).collect() }))
}

fn ingest_error(StoredDiagnostic { record, node }: StoredDiagnostic) -> IngestError {
    IngestError {
        at: record.at,
        node,
        subject: record.subject,
        error: record.detail,
        count: record.count,
    }
}

/// Lists slow searches of all nodes, newest first.
pub(super) async fn list_slow_searches(
    request: ApiRequest<ListSlowSearches>,
) -> Result<Json<SlowSearches>> {
    let range = request.parameters()?.range;
    let found = list(&request.app, DiagnosticKind::SlowSearch, range).await?;
    Ok(Json(SlowSearches { slow_searches: found.into_iter().map(slow_search).collect() }))
}

fn slow_search(StoredDiagnostic { record, node }: StoredDiagnostic) -> SlowSearch {
    SlowSearch {
        at: record.at,
        node,
        q: record.subject,
        parameters: record.detail,
        milliseconds: record.duration_ms.unwrap_or_default(),
        count: record.count,
    }
}

async fn list(
    app: &AppState,
    kind: DiagnosticKind,
    range: ListRange,
) -> Result<Vec<StoredDiagnostic>> {
    let db = &app.shared.process.db;
    Ok(db.read(move |tx| tx.list_diagnostics(kind, range.start, range.size)).await?)
}
