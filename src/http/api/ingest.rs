//! The provider's door: items come in and go out over HTTP (contract ingest-8).

use axum::{
    Router,
    body::Body,
    extract::{
        DefaultBodyLimit, FromRequest, FromRequestParts, Multipart, Path, Request, State,
        multipart::{Field, MultipartError},
        rejection::PathRejection,
    },
    http::{HeaderMap, HeaderValue, StatusCode, header},
    routing::put,
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::archive::ingest::{self, Bundle, BundleFile, IngestError, Refusal, Spool, SpooledFile};
use crate::http::App;
use crate::http::api;
use crate::http::api::Answer;
use crate::http::api::Caller;
use crate::http::protocol::request::Problems;
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Detail, Error, Kind, Result};
use crate::runtime::limits::{BODY_DISCARD_BYTES_MAX, DOCUMENT_BYTES_MAX, ITEM_FILES_MAX};
use crate::storage::audit::{self, Action, ObjectKind, Outcome};
use crate::storage::database::Written;
use model::account::ROLE_PROVIDER;
use model::item::{DocumentError, Links};
use model::{ItemId, ItemKey, MediaType};

/// The part that is the document.
const ITEM: &str = "item";

/// The decoded segments of the path, or why there are none.
type Segments = Result<Path<(String, String)>, PathRejection>;

/// The addresses of this file.
pub(crate) fn routes() -> Router<App> {
    // Every part has a limit of its own, which a limit on the whole would only hide.
    Router::new()
        .route("/ingest/v1/{media_type}/{id}", put(put_item).delete(withdraw))
        .layer(DefaultBodyLimit::disable())
}

async fn put_item(State(app): State<App>, segments: Segments, request: Request) -> Answer {
    let (mut parts, body) = request.into_parts();
    let allowed = match Caller::from_request_parts(&mut parts, &app).await {
        Ok(caller) => enter(&app, &caller, Action::ItemStored, segments).map_err(Into::into),
        Err(refused) => Err(refused),
    };
    let (key, seat) = match allowed {
        Ok(allowed) => allowed,
        Err(refused) => {
            discard(body).await;
            return Err(refused);
        }
    };
    let request = Request::from_parts(parts, body);
    let upload = read(app.shared.archive.uploads.spool(), key.media_type, request).await?;
    let is_bare = upload.is_bare;
    let Upload { document, files, .. } = upload;
    let named = |(name, file): &(String, SpooledFile)| BundleFile {
        name: name.clone(),
        path: file.path().to_owned(),
    };
    let bundle = Bundle { key: key.clone(), document, files: files.iter().map(named).collect() };
    let taken = app.shared.archive.uploads.take(bundle, clock::now()).await?;
    let taken = taken.map_err(|error| {
        let event = audit::event(Action::ItemStored).about(ObjectKind::Item, &key);
        audit::record(event.ended(Outcome::Failed).with(&error));
        refusal(error, is_bare)
    })?;
    drop((files, seat));
    app.shared.media.item_changed(&taken.turned);
    app.shared.media.item_changed(&[taken.key]);
    let status = match taken.written {
        Written::Created => StatusCode::CREATED,
        Written::Replaced => StatusCode::OK,
    };
    let text = app.shared.media.document_sent(&key).await?;
    let text = text.ok_or_else(|| Error::internal(format!("item {key} is gone")))?;
    let mut response = respond::json_text(status, text);
    api::no_store(response.headers_mut());
    if let Ok(address) = HeaderValue::from_str(&app.shared.media.links().item(&key)) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    Ok(response)
}

async fn withdraw(State(app): State<App>, caller: Caller, segments: Segments) -> Answer {
    let (key, _seat) = enter(&app, &caller, Action::ItemWithdrawn, segments)?;
    if !app.shared.archive.uploads.withdraw(key.clone(), clock::now()).await? {
        return Err(Error::new(Kind::NotFound, format!("no item {key}")).into());
    }
    app.shared.media.item_changed(&[key]);
    api::text("withdrawn")
}

/// Whether the caller may send and withdraw items, and has room to: which item is meant, and the
/// room. Records who may not.
fn enter(
    app: &App,
    caller: &Caller,
    action: Action,
    segments: Segments,
) -> Result<(ItemKey, ingest::Seat)> {
    let key = key_of(segments);
    if !caller.0.has_role(ROLE_PROVIDER) {
        let event = audit::event(action).ended(Outcome::Refused).with("provider_required");
        audit::record(match &key {
            Ok(key) => event.about(ObjectKind::Item, key),
            Err(_) => event,
        });
        let message = "Only the provider sends and withdraws items";
        return Err(Error::forbidden("provider_required", message));
    }
    Ok((key?, app.shared.archive.uploads.enter()?))
}

fn key_of(segments: Segments) -> Result<ItemKey> {
    let not_utf8 = |_| Error::invalid("path", "id", "format", "the path is not UTF-8");
    let Path((media_type, id)) = segments.map_err(not_utf8)?;
    let mut problems = Problems::new();
    let media_type = problems.keep(MediaType::parse(&media_type).map_err(|_| {
        let names = MediaType::ALL.map(MediaType::as_str).join(", ");
        Error::invalid("path", "mediaType", "enum", format!("mediaType must be one of {names}"))
    }));
    let id = problems.keep(ItemId::parse(&id).map_err(|cause| {
        Error::invalid("path", "id", "pattern", respond::shorten(&cause.to_string()))
    }));
    problems.end(media_type.zip(id).map(|(media_type, id)| ItemKey { media_type, id }))
}

/// Reads what is left of a body that is not wanted, so that the client gets to see the answer and no
/// reset connection.
async fn discard(body: Body) {
    let (mut stream, mut bytes) = (body.into_data_stream(), 0);
    while let Some(Ok(chunk)) = stream.next().await {
        bytes += chunk.len();
        if bytes > BODY_DISCARD_BYTES_MAX {
            return;
        }
    }
}

/// What was uploaded.
#[derive(Debug, Default)]
pub struct Upload {
    /// The document, not yet looked at.
    pub document: Vec<u8>,
    /// Files by the names of their parts.
    pub files: Vec<(String, SpooledFile)>,
    /// Whether the body is the document and has no parts.
    pub is_bare: bool,
}

/// Takes the body of an item of `media_type` apart, files into `spool`.
///
/// Fails with all that is wrong with the parts, and when one has more bytes than it may; then the
/// rest of the body is read as far as [`BODY_DISCARD_BYTES_MAX`].
pub async fn read(spool: &Spool, media_type: MediaType, request: Request) -> Result<Upload> {
    let kind = kind_of(request.headers());
    // As with every JSON body, the type that the request gives it does not matter.
    if !kind.eq_ignore_ascii_case("multipart/form-data") {
        let document = read_bare(request.into_body()).await?;
        return Ok(Upload { document, is_bare: true, ..Upload::default() });
    }
    let mut parts = Multipart::from_request(request, &()).await.map_err(|cause| {
        let message = format!("Content-Type: {}", cause.body_text());
        Error::invalid("headers", "Content-Type", "format", message)
    })?;
    let outcome = read_parts(spool, media_type, &mut parts).await;
    if outcome.is_err() {
        discard_parts(&mut parts).await;
    }
    outcome
}

/// The type of a body without its parameters.
fn kind_of(headers: &HeaderMap) -> String {
    let line = headers.get(header::CONTENT_TYPE).and_then(|line| line.to_str().ok());
    let kind = line.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_owned()
}

/// A document that is the whole body.
async fn read_bare(body: Body) -> Result<Vec<u8>> {
    let mut stream = body.into_data_stream();
    let mut document = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|cause| {
            Error::invalid("body", "", "format", "the body broke off").because(cause)
        })?;
        if let Err(refused) = grow(&mut document, &chunk) {
            discard(Body::from_stream(stream)).await;
            return Err(refused);
        }
    }
    Ok(document)
}

fn grow(document: &mut Vec<u8>, chunk: &Bytes) -> Result<()> {
    let limit = usize::try_from(DOCUMENT_BYTES_MAX).unwrap_or(usize::MAX);
    if document.len() + chunk.len() > limit {
        let message = format!("The document has more than {DOCUMENT_BYTES_MAX} bytes");
        return Err(Error::new(Kind::TooLarge, message));
    }
    document.extend_from_slice(chunk);
    Ok(())
}

async fn discard_parts(parts: &mut Multipart) {
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

/// Reads the parts: the document into memory, files that are taken to the disk.
///
/// Fails with everything that is wrong with their names at once.
async fn read_parts(
    spool: &Spool,
    media_type: MediaType,
    parts: &mut Multipart,
) -> Result<Upload> {
    let mut upload = Upload::default();
    let mut document = None;
    let mut problems = Vec::new();
    let mut unwanted = 0;
    for count in 0.. {
        let Some(mut field) = parts.next_field().await.map_err(broken)? else { break };
        if count == ITEM_FILES_MAX {
            let message = format!("The upload has more than {ITEM_FILES_MAX} parts");
            return Err(Error::new(Kind::TooLarge, message));
        }
        let name = name_of(&field);
        let known = if name == ITEM { Ok(()) } else { is_taken(media_type, &name) };
        let is_repeated = match name.as_str() {
            ITEM => document.is_some(),
            _ => upload.files.iter().any(|(known, _)| *known == name),
        };
        if let Err(problem) = known {
            problems.push(problem);
        } else if is_repeated {
            let message = format!("the part {name} came twice");
            problems.push(Detail::of_rule("maximum", "body", name, message));
        } else if name == ITEM {
            document = Some(read_document(&mut field).await?);
            continue;
        } else {
            let file = read_file(spool, &name, &mut field).await?;
            upload.files.push((name, file));
            continue;
        }
        while let Some(chunk) = field.chunk().await.map_err(broken)? {
            unwanted += chunk.len();
            if unwanted > BODY_DISCARD_BYTES_MAX {
                return Err(Error::invalid_parts(problems));
            }
        }
    }
    if document.is_none() {
        let message = "the part item is missing: the document";
        problems.insert(0, Detail::of_rule("required", "body", ITEM, message));
    }
    match document {
        Some(document) if problems.is_empty() => Ok(Upload { document, ..upload }),
        _ => Err(Error::invalid_parts(problems)),
    }
}

/// The name of a part: its own, or its file's where its own is no file's.
fn name_of(field: &Field<'_>) -> String {
    let own = field.name().unwrap_or_default();
    if own == ITEM || own.contains('.') {
        return own.to_owned();
    }
    field.file_name().unwrap_or(own).to_owned()
}

fn is_taken(media_type: MediaType, name: &str) -> Result<(), Detail> {
    ingest::FileName::parse(media_type, name).map(drop).map_err(|error| {
        let name = respond::shorten(name);
        let message = format!("the part {name:?} {error}");
        Detail::of_rule("additionalProperties", "body", name, message)
    })
}

async fn read_document(field: &mut Field<'_>) -> Result<Vec<u8>> {
    let mut document = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(broken)? {
        grow(&mut document, &chunk)?;
    }
    Ok(document)
}

async fn read_file(spool: &Spool, name: &str, field: &mut Field<'_>) -> Result<SpooledFile> {
    let limit = spool.file_bytes_max();
    let mut file = spool.create().await?;
    while let Some(chunk) = field.chunk().await.map_err(broken)? {
        if file.bytes() + chunk.len() as u64 > limit {
            let message = format!("{name} has more than {limit} bytes (media.file_bytes_max)");
            return Err(Error::new(Kind::TooLarge, message));
        }
        file = file.append(chunk).await?;
    }
    Ok(file)
}

fn broken(cause: MultipartError) -> Error {
    let message = "the body is not multipart/form-data, or broke off";
    Error::invalid("body", "", "format", message).because(cause)
}

/// The answer to an item that is not taken in.
fn refusal(error: IngestError, is_bare: bool) -> Error {
    let refusals = error.into_refusals();
    let too_large = |refusal: &&Refusal| matches!(refusal.error, IngestError::TooLarge { .. });
    if let Some(refusal) = refusals.iter().find(too_large) {
        return Error::new(Kind::TooLarge, refusal.to_string());
    }
    let item = if is_bare { "" } else { ITEM };
    Error::invalid_parts(refusals.iter().flat_map(|refusal| details(refusal, item)).collect())
}

fn details(refusal: &Refusal, item: &str) -> Vec<Detail> {
    let detail = |rule: &str, path: &str, message: String| {
        vec![Detail::of_rule(rule, "body", path, message)]
    };
    match &refusal.error {
        IngestError::Document(DocumentError::Schema(problems)) => {
            let each = |problem: &model::item::Problem| {
                let path = dotted(&problem.path);
                let message = format!("{path} {}", problem.message);
                Detail::of_rule(&problem.rule, "body", path, message.trim())
            };
            problems.iter().map(each).collect()
        }
        IngestError::Document(error @ DocumentError::Mismatch { property, .. }) => {
            detail("enum", property, error.to_string())
        }
        IngestError::Document(error @ DocumentError::NotJson(_)) => {
            detail("format", item, error.to_string())
        }
        error @ IngestError::NoPicture => detail("required", "NormalHires.jpg", error.to_string()),
        error @ (IngestError::Unreadable(_)
        | IngestError::Empty
        | IngestError::TooLarge { .. }
        | IngestError::TooSlow(_)
        | IngestError::Panicked(_)
        | IngestError::Picture(_)
        | IngestError::Kind
        | IngestError::Name(_)
        | IngestError::Uri(_)
        | IngestError::SameId(_)
        | IngestError::Refused(_)
        | IngestError::Store(_)
        | IngestError::Program(_)
        | IngestError::Db(_)) => {
            detail("format", &refusal.file, format!("{} {error}", refusal.file))
        }
    }
}

/// The path of a property as the API writes paths: `person.0.name`.
fn dotted(pointer: &str) -> String {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    path.replace("~1", "/").replace("~0", "~")
}
