//! Resumable uploads over HTTP: the protocol tus 1.0.0 to send a file in parts, and the operations that describe
//! and publish the file (contract ingest-26 to ingest-29).
//!
//! An upload belongs to the user who created it; for other users it does not exist.

mod checksum;
mod publish;
mod tus;

use api::Json;
use api::uploads::{
    AppendToUpload, CreateUpload, DescribeUpload, DiscardUpload, ListUploads, LoadUpload,
    PreviewUpload, PublishUpload, Upload,
};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::options;
use futures_util::StreamExt;
use uuid::Uuid;

use super::ingest::{drain_body, require_provider};
use crate::access::auth::Principal;
use crate::archive::ingest::PartWriter;
use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::http::api::response::{self, json};
use crate::http::{AppState, credentials, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::slots::SlotGuard;
use crate::storage::audit::{self, AuditAction, AuditOutcome};
use crate::storage::database::PendingUpload;
use checksum::BodyChecksum;

/// The status of bytes that do not have the declared checksum (tus, extension `checksum`).
const CHECKSUM_MISMATCH: u16 = 460;

/// The endpoints of resumable uploads.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListUploads, _, _>(list)
        .bind_response::<CreateUpload, _, _>(create)
        .bind_response::<LoadUpload, _, _>(show)
        .bind_response::<AppendToUpload, _, _>(append)
        .bind_response::<DiscardUpload, _, _>(discard)
        .bind::<DescribeUpload, _, _>(publish::describe)
        .bind_response::<PreviewUpload, _, _>(publish::preview)
        .bind_response::<PublishUpload, _, _>(publish::publish)
}

/// The routes that announce the protocol.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/ingest/v1/uploads", options(announce))
        .route("/ingest/v1/uploads/{id}", options(announce))
}

/// Adds the version of the protocol to the outcome of a request with these headers, errors included.
fn tus_response(outcome: Result<Response>, headers: &HeaderMap) -> Result<Response> {
    let response = outcome
        .unwrap_or_else(|error| response::refuse(&error, credentials::has_bearer_token(headers)));
    Ok(tus::with_version(response))
}

/// `OPTIONS`: announces the supported extensions and limits. The protocol requires no credentials for it.
async fn announce(State(app): State<AppState>) -> Response {
    tus::capabilities(app.shared.archive.uploads.pending().limits())
}

async fn list(request: ApiRequest<ListUploads>) -> Result<Json<Vec<Upload>>> {
    require_uploader(&request.caller)?;
    let pending = request.app.shared.archive.uploads.pending();
    let found = pending.list(request.caller.user().id, clock::now()).await?;
    Ok(Json(found.into_iter().map(view).collect()))
}

/// Declares a file that will be uploaded.
async fn create(request: ApiRequest<CreateUpload>) -> Result<Response> {
    tus_response(create_upload(&request.app, &request.parts).await, &request.parts.headers)
}

async fn create_upload(app: &AppState, parts: &Parts) -> Result<Response> {
    let caller = credentials::require_principal(app, parts).await?;
    require_uploader(&caller)?;
    tus::check_version(&parts.headers)?;
    let new = tus::parse_new(&parts.headers)?;
    let pending = app.shared.archive.uploads.pending();
    let upload = pending.create(caller.user().id, new, clock::now()).await?;
    let mut response = tus::with_progress(response::empty(StatusCode::CREATED), &upload);
    let address = format!("/ingest/v1/uploads/{}", upload.id);
    let address = HeaderValue::from_str(&address).map_err(Error::internal)?;
    response.headers_mut().insert(header::LOCATION, address);
    Ok(response)
}

/// Responds with the progress of an upload, also to `HEAD`.
async fn show(request: ApiRequest<LoadUpload>) -> Result<Response> {
    let id = request.parameters().map(|parameters| parameters.id);
    let shown = show_upload(&request.app, id, &request.parts).await;
    tus_response(shown, &request.parts.headers)
}

async fn show_upload(app: &AppState, id: Result<String>, parts: &Parts) -> Result<Response> {
    let upload = own_upload(app, id, parts).await?;
    let response = json(StatusCode::OK, &view(upload.clone()))?;
    Ok(tus::with_progress(response, &upload))
}

/// Appends bytes to an upload.
async fn append(request: ApiRequest<AppendToUpload>) -> Result<Response> {
    let id = request.parameters().map(|parameters| parameters.id);
    let ApiRequest { app, parts, body, .. } = request;
    tus_response(append_body(&app, id, &parts, body).await, &parts.headers)
}

async fn append_body(
    app: &AppState,
    id: Result<String>,
    parts: &Parts,
    body: Body,
) -> Result<Response> {
    let (writer, checksum, _slot) = match begin(app, id, parts).await {
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
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Ok(error_response::build_with_status(status, &error));
    }
    match receive(writer, checksum, body).await? {
        Received::Stored(upload) => {
            Ok(tus::with_progress(response::empty(StatusCode::NO_CONTENT), &upload))
        }
        Received::Mismatch => {
            let message = "the bytes do not have the checksum of Upload-Checksum";
            let error = Error::new(ErrorKind::InvalidArgument, message);
            let error = error.with_code("checksum_mismatch");
            let status = StatusCode::from_u16(CHECKSUM_MISMATCH).map_err(Error::internal)?;
            Ok(error_response::build_with_status(status, &error))
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
async fn begin(app: &AppState, id: Result<String>, parts: &Parts) -> Result<Begun> {
    let headers = &parts.headers;
    let caller = credentials::require_principal(app, parts).await?;
    tus::check_version(headers)?;
    let upload = find(app, &caller, id).await?;
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

/// Discards an upload and its bytes.
async fn discard(request: ApiRequest<DiscardUpload>) -> Result<Response> {
    let id = request.parameters().map(|parameters| parameters.id);
    let discarded = discard_upload(&request.app, id, &request.parts).await;
    tus_response(discarded, &request.parts.headers)
}

async fn discard_upload(app: &AppState, id: Result<String>, parts: &Parts) -> Result<Response> {
    let upload = own_upload(app, id, parts).await?;
    app.shared.archive.uploads.pending().discard(upload.id).await?;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Finds the upload of a request of the protocol without a body.
async fn own_upload(app: &AppState, id: Result<String>, parts: &Parts) -> Result<PendingUpload> {
    tus::check_version(&parts.headers)?;
    let caller = credentials::require_principal(app, parts).await?;
    find(app, &caller, id).await
}

/// Checks that the caller may upload, and audits a refusal.
fn require_uploader(caller: &Principal) -> Result<()> {
    require_provider(caller).inspect_err(|_| {
        let event = audit::event(AuditAction::ItemStored).with_outcome(AuditOutcome::Refused);
        audit::record(event.with_detail("provider_required"));
    })
}

/// Finds the caller's upload that a path names.
async fn find(app: &AppState, caller: &Principal, id: Result<String>) -> Result<PendingUpload> {
    require_uploader(caller)?;
    let id = Uuid::try_parse(&id.map_err(unknown_id)?).map_err(|_| no_upload())?;
    let pending = app.shared.archive.uploads.pending();
    pending.find(caller.user().id, id, clock::now()).await?.ok_or_else(no_upload)
}

/// Returns the error for parameters that cannot be read. A text that is no UUID is the id of no upload.
fn unknown_id(error: Error) -> Error {
    let is_of_path = error.details().iter().any(|detail| detail.location == "path");
    if is_of_path { no_upload() } else { error }
}

fn no_upload() -> Error {
    Error::new(ErrorKind::NotFound, "no such upload; it may have expired")
}

fn view(upload: PendingUpload) -> Upload {
    let PendingUpload { id, file_name, fingerprint, length, received, created, expires, .. } =
        upload;
    Upload { id, file_name, length, received, created, expires, fingerprint }
}
