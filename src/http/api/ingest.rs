//! Publishes and withdraws items over HTTP, for providers: callers with [`ROLE_PROVIDER`] (contract ingest-8).

use api::ingest::{ItemPath, PutItem, RIGHTS_STATEMENT_BYTES_MAX, WithdrawItem};
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;

use crate::access::auth::Principal;
use crate::archive::ingest::{
    self, BundleFile, FileRefusal, IngestError, IngestedItem, ItemBundle, SpooledFile, UploadSpool,
};
use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::http::api::response::{no_store, plain_text};
use crate::http::protocol::respond;
use crate::http::{AppState, credentials, error_response};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorDetail, ErrorKind, Result};
use crate::runtime::limits::{BODY_DISCARD_BYTES_MAX, DOCUMENT_BYTES_MAX, ITEM_FILES_MAX};
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use crate::storage::database::ItemWriteOutcome;
use metadata::RightsMetadata;
use model::account::ROLE_PROVIDER;
use model::item::{DocumentError, RightsStatementError, parse_rights_statement};
use model::{ItemId, ItemKey, MediaType};

/// The name of the part that holds the document, which is the JSON of the item.
const ITEM_PART: &str = "item";
/// The name of the document in error messages.
const DOCUMENT: &str = "The document";
/// The name of the part with the source rights, which the sender states for the files of the upload.
const RIGHTS_PART: &str = "rights";
/// The beginnings of media types that declare a body as a file instead of a document.
const FILE_TYPES: [&str; 4] = ["image/", "video/", "audio/", "application/pdf"];

/// The endpoints that publish and withdraw items.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind_response::<PutItem, _, _>(put_item)
        .bind_response::<WithdrawItem, _, _>(withdraw)
}

async fn put_item(request: ApiRequest<PutItem>) -> Result<Response> {
    let item = request.parameters().map(|parameters| parameters.item);
    let ApiRequest { app, parts, body, .. } = request;
    // Checked before the body is read: a caller without the right must not fill the disk.
    let caller = credentials::require_principal(&app, &parts).await;
    let authorized =
        caller.and_then(|caller| authorize_provider(&app, &caller, AuditAction::ItemStored, item));
    let (key, permit) = match authorized {
        Ok(authorized) => authorized,
        Err(refused) => {
            drain_body(body).await;
            return Err(refused);
        }
    };
    if let Some(refused) = refuse_bare_file(&parts.headers) {
        drain_body(body).await;
        return Ok(refused);
    }
    let request = Request::from_parts(parts, body);
    let upload = read_upload(app.shared.archive.uploads.spool(), key.media_type, request).await?;
    let is_document_only = upload.is_document_only;
    let ItemUpload { document, files, rights, .. } = upload;
    let files_of_item = files.iter().map(|(name, file)| bundle_file(name, file)).collect();
    let bundle = ItemBundle { key: key.clone(), document, files: files_of_item, rights };
    let ingested = app.shared.archive.uploads.ingest(bundle, clock::now()).await?;
    let ingested = ingested.map_err(|error| {
        let event = audit::event(AuditAction::ItemStored).with_object(ObjectKind::Item, &key);
        audit::record(event.with_outcome(AuditOutcome::Failed).with_detail(&error));
        upload_error(error, is_document_only)
    })?;
    // Released before the response is built: the spooled files occupy disk space, and other uploads are refused
    // while all permits are in use.
    drop((files, permit));
    published_response(&app, &ingested).await
}

fn bundle_file(name: &str, file: &SpooledFile) -> BundleFile {
    BundleFile { name: name.to_owned(), path: file.path().to_owned() }
}

/// Responds with the document of a published item as it is served.
pub(super) async fn published_response(app: &AppState, item: &IngestedItem) -> Result<Response> {
    // This node forgets the old versions at once, so that the response below shows the new version; other nodes
    // follow the item log.
    app.shared.media.item_changed(&item.replaced_items);
    app.shared.media.item_changed(std::slice::from_ref(&item.key));
    let status = match item.written {
        ItemWriteOutcome::Created => StatusCode::CREATED,
        ItemWriteOutcome::Replaced => StatusCode::OK,
    };
    // An item that was removed in the meantime is a 404, not an internal error. A withdrawn item still has its
    // document.
    let text = app.shared.media.document_json(&item.key).await?;
    let mut response = no_store(respond::json_text(status, text));
    if let Ok(address) = HeaderValue::from_str(&app.shared.media.links().item(&item.key)) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    Ok(response)
}

async fn withdraw(request: ApiRequest<WithdrawItem>) -> Result<Response> {
    let item = request.parameters().map(|parameters| parameters.item);
    let action = AuditAction::ItemWithdrawn;
    let (key, _permit) = authorize_provider(&request.app, &request.caller, action, item)?;
    if !request.app.shared.archive.uploads.withdraw(key.clone(), clock::now()).await? {
        return Err(no_item(&key));
    }
    request.app.shared.media.item_changed(&[key]);
    Ok(plain_text("withdrawn"))
}

/// Checks that the caller may upload and withdraw items, and that there is capacity. Returns the item and the
/// permit; a refused caller is audited.
pub(super) fn authorize_provider(
    app: &AppState,
    caller: &Principal,
    action: AuditAction,
    item: Result<ItemPath>,
) -> Result<(ItemKey, ingest::UploadPermit)> {
    // Parsed first for the audit event, but its error is reported last: a caller that is not a provider learns
    // only that.
    let key = item.and_then(parse_item_key);
    require_provider(caller).inspect_err(|_| {
        let event = audit::event(action)
            .with_outcome(AuditOutcome::Refused)
            .with_detail("provider_required");
        audit::record(match &key {
            Ok(key) => event.with_object(ObjectKind::Item, key),
            Err(_) => event,
        });
    })?;
    Ok((key?, app.shared.archive.uploads.admit()?))
}

/// Returns the key of the item that a path names. Fails unless the caller is a provider: others may not read stored
/// documents and their changes.
pub(super) fn readable_key(caller: &Principal, item: Result<ItemPath>) -> Result<ItemKey> {
    // Checked first: a caller without the role learns nothing about the item.
    require_provider(caller)?;
    parse_item_key(item?)
}

/// Fails with `provider_required` for a caller that may not write items.
pub(super) fn require_provider(caller: &Principal) -> Result<()> {
    if caller.has_role(ROLE_PROVIDER) {
        return Ok(());
    }
    let message = "Only providers may send, change and withdraw items";
    Err(Error::forbidden("provider_required", message))
}

/// Parses the id of an item. Some rules for ids are not in the pattern of the API's description.
fn parse_item_key(item: ItemPath) -> Result<ItemKey> {
    let ItemPath { media_type, id } = item;
    let id = ItemId::parse(&id).map_err(|cause| {
        Error::invalid("path", "id", "pattern", respond::shorten_input(&cause.to_string()))
    })?;
    Ok(ItemKey { media_type, id })
}

/// Returns the error for an item that does not exist.
pub(super) fn no_item(key: &ItemKey) -> Error {
    Error::new(ErrorKind::NotFound, format!("no item {key}"))
}

/// Reads the rest of a refused body up to a limit, so that the client gets the response instead of a reset
/// connection.
pub(super) async fn drain_body(body: Body) {
    let mut stream = body.into_data_stream();
    let mut bytes = 0;
    while let Some(Ok(chunk)) = stream.next().await {
        bytes += chunk.len();
        if bytes > BODY_DISCARD_BYTES_MAX {
            return;
        }
    }
}

/// The parts of an uploaded item.
#[derive(Debug, Default)]
pub struct ItemUpload {
    /// The document, not validated yet.
    pub document: Vec<u8>,
    /// The files by the names of their parts.
    pub files: Vec<(String, SpooledFile)>,
    /// The source rights of the files.
    pub rights: RightsMetadata,
    /// True if the body is the document and has no parts.
    pub is_document_only: bool,
}

/// Splits the body of an item of `media_type` into its parts, and writes files to `spool`.
///
/// Fails with all problems of the parts, or at once if a part exceeds its limit. The rest of the body is then
/// discarded, up to [`BODY_DISCARD_BYTES_MAX`].
pub async fn read_upload(
    spool: &UploadSpool,
    media_type: MediaType,
    mut request: Request,
) -> Result<ItemUpload> {
    let kind = content_type(request.headers());
    // As with every JSON body, the declared type of the document is ignored.
    if !kind.eq_ignore_ascii_case("multipart/form-data") {
        let document = read_document_body(request.into_body()).await?;
        return Ok(ItemUpload { document, is_document_only: true, ..ItemUpload::default() });
    }
    // Every part has a separate limit, which a limit on the whole body would only hide.
    DefaultBodyLimit::disable().apply(&mut request);
    let mut parts = Multipart::from_request(request, &()).await.map_err(|cause| {
        let message = format!("Content-Type: {}", cause.body_text());
        Error::invalid("headers", "Content-Type", "format", message)
    })?;
    let outcome = read_parts(spool, media_type, &mut parts).await;
    if outcome.is_err() {
        drain_parts(&mut parts).await;
    }
    outcome
}

/// Returns the media type of a body without its parameters.
fn content_type(headers: &HeaderMap) -> String {
    let line = headers.get(header::CONTENT_TYPE).and_then(|line| line.to_str().ok());
    let kind = line.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_owned()
}

/// Builds the refusal of a body that is declared as a file, which has to be a part beside the document.
fn refuse_bare_file(headers: &HeaderMap) -> Option<Response> {
    let kind = content_type(headers).to_ascii_lowercase();
    // A document is accepted with every other type, because clients declare it in many ways.
    if !FILE_TYPES.iter().any(|file_type| kind.starts_with(file_type)) {
        return None;
    }
    let message = format!(
        "Content-Type is {}, expected multipart/form-data with the document as the part item and the file as a \
         part such as NormalHires.jpg, or application/json with the document alone",
        respond::shorten_input(&kind)
    );
    let error = Error::invalid("headers", "Content-Type", "enum", message);
    Some(error_response::build_with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error))
}

/// Reads a body that is only the document.
async fn read_document_body(body: Body) -> Result<Vec<u8>> {
    let mut stream = body.into_data_stream();
    let mut document = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|cause| {
            Error::invalid("body", "", "format", "the body ended early").with_source(cause)
        })?;
        if let Err(refused) = append_chunk(&mut document, &chunk, DOCUMENT, DOCUMENT_BYTES_MAX) {
            drain_body(Body::from_stream(stream)).await;
            return Err(refused);
        }
    }
    Ok(document)
}

/// Appends a chunk to `bytes`, or fails if they would be more than `limit`. `what` names the bytes in the error.
fn append_chunk(bytes: &mut Vec<u8>, chunk: &Bytes, what: &str, limit: u64) -> Result<()> {
    // Checked before the chunk is copied, so that memory stays within the limit.
    if bytes.len() as u64 + chunk.len() as u64 > limit {
        let message = format!("{what} has more than {limit} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    bytes.extend_from_slice(chunk);
    Ok(())
}

async fn drain_parts(parts: &mut Multipart) {
    let mut bytes = 0;
    while let Ok(Some(mut field)) = parts.next_field().await {
        while let Ok(Some(chunk)) = field.chunk().await {
            bytes += chunk.len();
            if bytes > BODY_DISCARD_BYTES_MAX {
                return;
            }
        }
    }
}

/// Reads the parts: document and rights into memory, accepted files to disk.
async fn read_parts(
    spool: &UploadSpool,
    media_type: MediaType,
    parts: &mut Multipart,
) -> Result<ItemUpload> {
    let mut upload = ItemUpload::default();
    let mut document = None;
    let mut rights = None;
    let mut problems = Vec::new();
    let mut discarded_bytes = 0;
    for count in 0.. {
        let Some(mut field) = parts.next_field().await.map_err(multipart_error)? else { break };
        if count == ITEM_FILES_MAX {
            let message = format!("The upload has more than {ITEM_FILES_MAX} parts");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let name = part_name(&field);
        let mut refusal = match name.as_str() {
            ITEM_PART | RIGHTS_PART => None,
            _ => check_part_name(media_type, &name).err(),
        };
        let is_repeated = match name.as_str() {
            ITEM_PART => document.is_some(),
            RIGHTS_PART => rights.is_some(),
            _ => upload.files.iter().any(|(other, _)| *other == name),
        };
        if is_repeated {
            let message = format!("the part {name} occurs twice");
            refusal = Some(ErrorDetail::of_rule("maximum", "body", name.as_str(), message));
        }
        if let Some(problem) = refusal {
            problems.push(problem);
            // Discarded, and the next part is read, so that one response reports all problems.
            while let Some(chunk) = field.chunk().await.map_err(multipart_error)? {
                discarded_bytes += chunk.len();
                if discarded_bytes > BODY_DISCARD_BYTES_MAX {
                    return Err(Error::invalid_parts(problems));
                }
            }
        } else if name == ITEM_PART {
            document = Some(read_part(&mut field, DOCUMENT, DOCUMENT_BYTES_MAX).await?);
        } else if name == RIGHTS_PART {
            rights = Some(read_rights(&mut field).await?);
        } else {
            let file = read_file(spool, &name, &mut field).await?;
            upload.files.push((name, file));
        }
    }
    if document.is_none() {
        let message = "the part item is missing: the document";
        problems.insert(0, ErrorDetail::of_rule("required", "body", ITEM_PART, message));
    }
    problems.extend(rights.as_ref().and_then(|stated| rights_problem(stated, &upload.files)));
    upload.rights = rights.and_then(|stated| stated.ok()).unwrap_or_default();
    match document {
        Some(document) if problems.is_empty() => Ok(ItemUpload { document, ..upload }),
        _ => Err(Error::invalid_parts(problems)),
    }
}

/// Returns the name of a part, or its file name if the part's name does not name a file.
fn part_name(field: &Field<'_>) -> String {
    let part_name = field.name().unwrap_or_default();
    if [ITEM_PART, RIGHTS_PART].contains(&part_name) || part_name.contains('.') {
        return part_name.to_owned();
    }
    field.file_name().unwrap_or(part_name).to_owned()
}

fn check_part_name(media_type: MediaType, name: &str) -> Result<(), ErrorDetail> {
    ingest::FileName::parse(media_type, name).map(drop).map_err(|error| {
        let name = respond::shorten_input(name);
        let message = format!("the part {name:?} {error}");
        ErrorDetail::of_rule("additionalProperties", "body", name, message)
    })
}

/// Reads a part of at most `limit` bytes; `what` names it in the error.
async fn read_part(field: &mut Field<'_>, what: &str, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(multipart_error)? {
        append_chunk(&mut bytes, &chunk, what, limit)?;
    }
    Ok(bytes)
}

/// Reads and parses the part with rights; the inner error is about its content.
async fn read_rights(field: &mut Field<'_>) -> Result<Result<RightsMetadata, ErrorDetail>> {
    let text = read_part(field, RIGHTS_PART, RIGHTS_STATEMENT_BYTES_MAX as u64).await?;
    let parsed = match serde_json::from_slice(&text) {
        Ok(value) => parse_rights_statement(&value).map_err(|cause| rights_error(&cause)),
        Err(cause) => {
            let message = format!("the part {RIGHTS_PART} is not JSON: {cause}");
            Err(ErrorDetail::of_rule("format", "body", RIGHTS_PART, message))
        }
    };
    Ok(parsed)
}

/// Returns the problem of a part with rights: invalid content, or an upload without files.
fn rights_problem(
    stated: &Result<RightsMetadata, ErrorDetail>,
    files: &[(String, SpooledFile)],
) -> Option<ErrorDetail> {
    match stated {
        Err(problem) => Some(problem.clone()),
        Ok(_) if files.is_empty() => {
            let message = format!(
                "the part {RIGHTS_PART} is about files, and there are none; the rights in an item \
                 that exists are set at its own address, which ends in /rights"
            );
            Some(ErrorDetail::of_rule("format", "body", RIGHTS_PART, message))
        }
        Ok(_) => None,
    }
}

/// Describes the refused property of a rights statement.
pub(super) fn rights_error(cause: &RightsStatementError) -> ErrorDetail {
    let rule = match cause {
        RightsStatementError::Property(_) | RightsStatementError::Region => "format",
        RightsStatementError::Empty { .. } => "minimum",
        RightsStatementError::TooLarge { .. } => "maximum",
    };
    ErrorDetail::of_rule(rule, "body", dotted_path(cause.path()), cause.to_string())
}

async fn read_file(spool: &UploadSpool, name: &str, field: &mut Field<'_>) -> Result<SpooledFile> {
    let limit = spool.file_bytes_max;
    let mut file = spool.create().await?;
    while let Some(chunk) = field.chunk().await.map_err(multipart_error)? {
        // Checked while reading, because a part has no length of its own in a multipart body.
        if file.bytes() + chunk.len() as u64 > limit {
            let message = format!("{name} has more than {limit} bytes (media.file_bytes_max)");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        file = file.append(chunk).await?;
    }
    Ok(file)
}

fn multipart_error(cause: MultipartError) -> Error {
    let message = "the body is not multipart/form-data, or ended early";
    Error::invalid("body", "", "format", message).with_source(cause)
}

/// Builds the error response for an item that ingest refused. `is_document_only` is true if the body of the request is
/// the document itself, not a part of it.
pub(super) fn upload_error(error: IngestError, is_document_only: bool) -> Error {
    let refusals = error.into_refusals();
    let too_large =
        refusals.iter().find(|refusal| matches!(refusal.error, IngestError::TooLarge { .. }));
    // A file that is too large is a 413, which no list of other problems may hide.
    if let Some(refusal) = too_large {
        return Error::new(ErrorKind::TooLarge, refusal.to_string());
    }
    let document_part = if is_document_only { "" } else { ITEM_PART };
    Error::invalid_parts(
        refusals.iter().flat_map(|refusal| error_details(refusal, document_part)).collect(),
    )
}

fn error_details(refusal: &FileRefusal, document_part: &str) -> Vec<ErrorDetail> {
    match &refusal.error {
        IngestError::Document(DocumentError::Schema(problems)) => {
            problems.iter().map(schema_detail).collect()
        }
        IngestError::Document(error @ DocumentError::Mismatch { property, .. }) => {
            vec![body_detail("enum", property, error.to_string())]
        }
        IngestError::Document(error @ DocumentError::NotJson(_)) => {
            vec![body_detail("format", document_part, error.to_string())]
        }
        error @ IngestError::NoPicture => {
            vec![body_detail("required", "NormalHires.jpg", error.to_string())]
        }
        error @ (IngestError::Unreadable(_)
        | IngestError::Empty
        | IngestError::TooLarge { .. }
        | IngestError::TooSlow(_)
        | IngestError::Panicked(_)
        | IngestError::Picture(_)
        | IngestError::Kind
        | IngestError::Name(_)
        | IngestError::Uri(_)
        | IngestError::Rights { .. }
        | IngestError::SameId(_)
        | IngestError::Refused(_)
        | IngestError::Store(_)
        | IngestError::Program(_)
        | IngestError::Db(_)) => {
            vec![body_detail("format", &refusal.file, format!("{} {error}", refusal.file))]
        }
    }
}

fn body_detail(rule: &str, path: &str, message: String) -> ErrorDetail {
    ErrorDetail::of_rule(rule, "body", path, message)
}

fn schema_detail(problem: &model::item::SchemaViolation) -> ErrorDetail {
    let path = dotted_path(&problem.path);
    let message = format!("{path} {}", problem.message);
    ErrorDetail::of_rule(&problem.rule, "body", path, message.trim())
}

/// Converts a JSON pointer to the API's notation of paths: `person.0.name`.
fn dotted_path(pointer: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    // In this order, or `~01` would become `/` instead of `~1` (RFC 6901 §4).
    path.replace("~1", "/").replace("~0", "~")
}
