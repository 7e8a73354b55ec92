//! Resumable uploads over HTTP: the protocol tus 1.0.0 to send a file in parts, and the operations that describe
//! and publish the file (contract ingest-26 to ingest-29).
//!
//! An upload belongs to the user who created it; for other users it does not exist.

mod checksum;
mod publish;
mod tus;

use axum::{
    Router,
    body::Body,
    extract::{
        DefaultBodyLimit, FromRequestParts, Path, Request, State, rejection::PathRejection,
    },
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ingest::{drain_body, require_provider};
use crate::archive::ingest::PartWriter;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiError;
use crate::http::api::ApiResult;
use crate::http::error_response;
use crate::http::protocol::request;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::slots::SlotGuard;
use crate::storage::audit::{self, AuditAction, AuditOutcome};
use crate::storage::database::PendingUpload;
use checksum::BodyChecksum;

/// The status of bytes that do not have the declared checksum (tus, extension `checksum`).
const CHECKSUM_MISMATCH: u16 = 460;

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of resumable uploads.
pub(crate) fn routes() -> Router<AppState> {
    // Bodies are stored part by part and limited by the declared length.
    Router::new()
        .route("/ingest/v1/uploads", get(list).post(create).options(announce))
        .route(
            "/ingest/v1/uploads/{id}",
            get(show).patch(append).delete(discard).options(announce),
        )
        .route("/ingest/v1/uploads/{id}/document", get(publish::describe))
        .route("/ingest/v1/uploads/{id}/preview", get(publish::preview))
        .route("/ingest/v1/uploads/{id}/publish", post(publish::publish))
        .layer(DefaultBodyLimit::disable())
}

/// Adds the version of the protocol to the response of a handler, errors included.
fn tus_response(outcome: ApiResult) -> Response {
    tus::with_version(outcome.unwrap_or_else(IntoResponse::into_response))
}

/// `OPTIONS`: announces the supported extensions and limits. The protocol requires no credentials for it.
async fn announce(State(app): State<AppState>) -> Response {
    tus::capabilities(app.shared.archive.uploads.pending().limits())
}

async fn list(State(app): State<AppState>, caller: ApiCaller) -> ApiResult {
    require_uploader(&caller)?;
    let pending = app.shared.archive.uploads.pending();
    let found = pending.list(caller.0.user().id, clock::now()).await?;
    api::json(&found.iter().map(upload_json).collect::<Vec<_>>())
}

/// `POST /ingest/v1/uploads`: declares a file.
async fn create(
    State(app): State<AppState>,
    caller: Result<ApiCaller, ApiError>,
    headers: HeaderMap,
) -> Response {
    tus_response(create_upload(&app, caller, &headers).await)
}

async fn create_upload(
    app: &AppState,
    caller: Result<ApiCaller, ApiError>,
    headers: &HeaderMap,
) -> ApiResult {
    let caller = caller?;
    require_uploader(&caller)?;
    tus::check_version(headers)?;
    let new = tus::parse_new(headers)?;
    let user = caller.0.user().id;
    let pending = app.shared.archive.uploads.pending();
    let upload = pending.create(user, new, clock::now()).await?;
    let mut response = tus::with_progress(tus::empty(StatusCode::CREATED), &upload);
    let address = format!("/ingest/v1/uploads/{}", upload.id);
    let address = HeaderValue::from_str(&address).map_err(Error::internal)?;
    response.headers_mut().insert(header::LOCATION, address);
    Ok(response)
}

/// `GET` and `HEAD /ingest/v1/uploads/{id}`: the progress of an upload.
async fn show(OwnUpload(upload): OwnUpload) -> Response {
    let shown = api::json(&upload_json(&upload));
    tus_response(shown.map(|response| tus::with_progress(response, &upload)))
}

/// `PATCH /ingest/v1/uploads/{id}`: appends bytes.
async fn append(State(app): State<AppState>, id: Segment, request: Request) -> Response {
    tus_response(append_body(&app, id, request).await)
}

async fn append_body(app: &AppState, id: Segment, request: Request) -> ApiResult {
    let (mut parts, body) = request.into_parts();
    let begun = match ApiCaller::from_request_parts(&mut parts, app).await {
        Ok(caller) => begin(app, &caller, id, &parts.headers).await.map_err(ApiError::from),
        Err(refused) => Err(refused),
    };
    let (writer, checksum, _slot) = match begun {
        Ok(Begun { writer, checksum, slot }) => (writer, checksum, slot),
        Err(refused) => {
            // Otherwise the client gets a reset connection instead of the refusal.
            drain_body(body).await;
            return Err(refused);
        }
    };
    if !tus::has_bytes_type(&parts.headers) {
        drain_body(body).await;
        let message = "Content-Type must be application/offset+octet-stream";
        let error = Error::invalid("headers", "Content-Type", "enum", message);
        return Ok(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error));
    }
    match receive(writer, checksum, body).await? {
        Received::Stored(upload) => {
            Ok(tus::with_progress(tus::empty(StatusCode::NO_CONTENT), &upload))
        }
        Received::Mismatch => {
            let message = "the bytes do not have the checksum of Upload-Checksum";
            let error = Error::new(ErrorKind::InvalidArgument, message);
            let error = error.with_code("checksum_mismatch");
            let status = StatusCode::from_u16(CHECKSUM_MISMATCH).map_err(Error::internal)?;
            Ok(refusal(status, &error))
        }
    }
}

/// A request that may append bytes.
struct Begun {
    writer: PartWriter,
    checksum: Option<BodyChecksum>,
    slot: SlotGuard,
}

/// Checks the caller, the headers and the limits of a request that appends, before its body is read.
async fn begin(
    app: &AppState,
    caller: &ApiCaller,
    id: Segment,
    headers: &HeaderMap,
) -> Result<Begun> {
    tus::check_version(headers)?;
    let upload = find(app, caller, id).await?;
    let checksum = tus::checksum(headers)?.map(BodyChecksum::parse).transpose()?;
    let pending = app.shared.archive.uploads.pending();
    let slot = pending.admit(upload.user)?;
    let offset = tus::offset(headers)?;
    let writer = pending.append(upload, checksum.is_some());
    writer.check_offset(offset)?;
    Ok(Begun { writer, checksum, slot })
}

/// The outcome of receiving a body.
enum Received {
    Stored(PendingUpload),
    /// The bytes do not have the declared checksum; no byte is stored.
    Mismatch,
}

/// Stores the bytes of a body. If the connection breaks, the bytes that arrived are stored, unless a checksum
/// covers the whole body.
async fn receive(
    mut writer: PartWriter,
    mut checksum: Option<BodyChecksum>,
    body: Body,
) -> Result<Received> {
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let Ok(chunk) = chunk else {
            match checksum {
                Some(_) => writer.abandon().await,
                None => drop(writer.finish(clock::now()).await?),
            }
            return Err(Error::invalid("body", "", "format", "the body ended early"));
        };
        if let Some(checksum) = &mut checksum {
            checksum.update(&chunk);
        }
        if let Err(refused) = writer.push(&chunk, clock::now()).await {
            writer.abandon().await;
            drain_body(Body::from_stream(stream)).await;
            return Err(refused);
        }
    }
    if checksum.is_some_and(|checksum| !checksum.matches()) {
        writer.abandon().await;
        return Ok(Received::Mismatch);
    }
    Ok(Received::Stored(writer.finish(clock::now()).await?))
}

/// `DELETE /ingest/v1/uploads/{id}`: discards an upload.
async fn discard(State(app): State<AppState>, OwnUpload(upload): OwnUpload) -> Response {
    let discarded = app.shared.archive.uploads.pending().discard(upload.id).await;
    let discarded = discarded.map(|()| tus::empty(StatusCode::NO_CONTENT));
    tus_response(discarded.map_err(ApiError::from))
}

/// The caller's upload that the path names, in a request of the protocol without a body.
struct OwnUpload(PendingUpload);

impl OwnUpload {
    async fn read(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, app).await;
        let id = Path::<String>::from_request_parts(parts, app).await;
        tus::check_version(&parts.headers)?;
        Ok(Self(find(app, &caller?, id).await?))
    }
}

impl FromRequestParts<AppState> for OwnUpload {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Response> {
        Self::read(parts, app).await.map_err(|refused| tus_response(Err(refused)))
    }
}

/// Builds the response for an error with a status that no kind of error has.
fn refusal(status: StatusCode, error: &Error) -> Response {
    let mut response = error_response::build(error);
    *response.status_mut() = status;
    response
}

/// Checks that the caller may upload, and audits a refusal.
fn require_uploader(caller: &ApiCaller) -> Result<()> {
    require_provider(caller).inspect_err(|_| {
        let event = audit::event(AuditAction::ItemStored).with_outcome(AuditOutcome::Refused);
        audit::record(event.with_detail("provider_required"));
    })
}

/// Finds the caller's upload that the path names.
async fn find(app: &AppState, caller: &ApiCaller, id: Segment) -> Result<PendingUpload> {
    require_uploader(caller)?;
    let id = request::path_segment("id", id)?;
    // `try_parse` accepts other spellings, which would give one upload several addresses.
    let id =
        (id.len() == 36).then(|| Uuid::try_parse(&id).ok()).flatten().ok_or_else(no_upload)?;
    let pending = app.shared.archive.uploads.pending();
    pending.find(caller.0.user().id, id, clock::now()).await?.ok_or_else(no_upload)
}

fn no_upload() -> Error {
    Error::new(ErrorKind::NotFound, "no such upload; it may have expired")
}

fn upload_json(upload: &PendingUpload) -> Value {
    let mut listed = json!({
        "id": upload.id.to_string(),
        "fileName": upload.file_name,
        "length": upload.length,
        "received": upload.received,
        "created": upload.created.to_string(),
        "expires": upload.expires.to_string(),
    });
    if let Some(fingerprint) = &upload.fingerprint {
        listed["fingerprint"] = json!(fingerprint);
    }
    listed
}
