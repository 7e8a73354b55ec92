//! Collections over HTTP (`docs/contract/collections.md`).

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderValue, StatusCode, Uri},
    response::Response,
    routing::{get, post},
};
use serde_json::Value;
use uuid::Uuid;

use crate::access::auth::Principal;
use crate::archive::collections::json::{CollectionSummary, CollectionView};
use crate::archive::collections::{CollectionChange, CollectionDraft};
use crate::archive::content::CallerVisibility;
use crate::archive::content::DocumentForm;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiError;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::media;
use crate::http::media::archives;
use crate::http::media::archives::ArchiveRequest;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::PropertyReader;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::TextRule;
use crate::http::protocol::respond;
use crate::media::{BundleNames, BundleNaming, MediaCaller};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{
    COLLECTION_BODY_BYTES_MAX, COLLECTION_ELEMENTS_MAX, COLLECTION_NAME_CHARS_MAX,
};
use crate::storage::database::Collection;
use model::ItemKey;
use model::item::DocumentLayout;

/// The rule for the name of a collection.
const NAME: TextRule = TextRule::line(COLLECTION_NAME_CHARS_MAX);

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// The routes of collections.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/collection/v1/collection", get(list).post(create))
        .route("/collection/v1/collection/{id}", get(load).put(update).delete(remove))
        .route("/collection/v1/collection/{id}/items", post(add_items).delete(remove_items))
        .route("/collection/v1/collection/{id}/zip", get(zip))
}

/// Lists the caller's collections.
///
/// `layout=bare` is for clients that need only the names (contract collections-4). The items, which may be very
/// many, are then not read.
async fn list(State(app): State<AppState>, ApiCaller(caller): ApiCaller, uri: Uri) -> ApiResult {
    let layout = QueryParameters::from_uri(&uri)?.variant::<DocumentLayout>("layout")?;
    if layout == Some(DocumentLayout::Bare) {
        let found = app.shared.archive.collections.list_heads(&caller).await?;
        return api::json(&found.iter().map(CollectionSummary::from).collect::<Vec<_>>());
    }
    let found = app.shared.archive.collections.list(&caller).await?;
    let documents: Vec<_> =
        found.iter().map(|collection| collection_json(&app, &caller, collection)).collect();
    api::json(&documents)
}

async fn create(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    request: Request,
) -> ApiResult {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let created =
        app.shared.archive.collections.create(&caller, parse_draft(&body)?, clock::now()).await?;
    api::json(&collection_json(&app, &caller, &created))
}

async fn load(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let now = clock::now();
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    let found = app.shared.archive.collections.load(&caller, id, now).await?;
    let Some(found) = found else { return Ok(missing_response()) };
    let mut text =
        serde_json::to_vec(&collection_json(&app, &caller, &found)).map_err(Error::internal)?;
    let form =
        DocumentForm { layout: DocumentLayout::Full, links: app.shared.media.links().clone() };
    let visibility = CallerVisibility::new(&caller, now);
    let items = app.shared.archive.content.visible_list(found.content, form, visibility).await?;
    // Appends `items` to the serialized object: the documents are text already, so they need not be parsed and
    // serialized again.
    text.pop();
    text.extend_from_slice(b",\"items\":");
    text.extend_from_slice(&items);
    text.push(b'}');
    Ok(api::json_text(text.into()))
}

async fn update(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let change = parse_change(&body)?;
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    match app.shared.archive.collections.update(&caller, id, change, clock::now()).await? {
        Some(changed) => api::json(&collection_json(&app, &caller, &changed)),
        None => Ok(missing_response()),
    }
}

async fn remove(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
) -> ApiResult {
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    ok_or_missing(app.shared.archive.collections.delete(&caller, id).await?)
}

async fn add_items(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let now = clock::now();
    let keys = read_item_keys(request).await?;
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    let visible = app
        .shared
        .archive
        .content
        .visible_items(keys, CallerVisibility::new(&caller, now))
        .await?;
    ok_or_missing(app.shared.archive.collections.add(&caller, id, visible, now).await?)
}

async fn remove_items(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let keys = read_item_keys(request).await?;
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    ok_or_missing(app.shared.archive.collections.remove(&caller, id, keys, clock::now()).await?)
}

/// Responds with a ZIP archive of the files in the collection that the caller may download; an extension of
/// the contract.
async fn zip(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Segment,
    request: Request,
) -> ApiResult {
    let Some(id) = parse_id(id)? else { return Ok(missing_response()) };
    let found = archive(&app, &caller, id, request).await;
    found.map_err(ApiError::from)?.map_or_else(|| Ok(missing_response()), Ok)
}

/// Builds the archive of the collection `id` and records its purchases; `None` if `caller` may not read it.
pub(crate) async fn archive(
    app: &AppState,
    caller: &Principal,
    id: Uuid,
    request: Request,
) -> Result<Option<Response>> {
    let agr = media::agreement_parameter(request.uri())?;
    let query = QueryParameters::from_uri(request.uri())?;
    let numbered =
        query.parsed("numbered", "type", "true or false", |text| text.parse::<bool>().ok())?;
    let files = if numbered == Some(true) { BundleNaming::ByPosition } else { BundleNaming::ById };
    let found = app.shared.archive.collections.peek(caller, id).await?;
    let Some(Collection { head, content, .. }) = found else { return Ok(None) };
    let asked = ArchiveRequest {
        keys: &content,
        names: BundleNames { archive: &head.name, files },
        buyer: MediaCaller { principal: Some(caller), agr },
        method: request.method(),
        headers: request.headers(),
        confirmed: None,
    };
    archives::archive_response(app, asked).await.map(Some)
}

fn collection_json<'a>(
    app: &AppState,
    caller: &Principal,
    collection: &'a Collection,
) -> CollectionView<'a> {
    CollectionView::new(collection, caller, app.shared.media.links())
}

/// Parses the id of a collection. Collections have UUIDs, so any other text names no collection.
fn parse_id(id: Segment) -> Result<Option<Uuid>> {
    let id = request::path_segment("id", id)?;
    // `try_parse` accepts other spellings, which would give one collection several addresses.
    Ok((id.len() == 36).then(|| Uuid::try_parse(&id).ok()).flatten())
}

/// Parses the body that creates a collection.
fn parse_draft(body: &Value) -> Result<CollectionDraft> {
    request::read_object(body, |collection| {
        let (name, public) = name_and_visibility(collection, Presence::Required);
        CollectionDraft { name: name.unwrap_or_default(), public: public.unwrap_or(false) }
    })
}

/// Parses the body that updates a collection.
///
/// With `content`, `name` may be absent and does not change (contract collections-6). Otherwise a client that
/// reorders items would overwrite a concurrent rename.
fn parse_change(body: &Value) -> Result<CollectionChange> {
    let presence = match body.get("content") {
        Some(_) => Presence::NotNull,
        None => Presence::Required,
    };
    request::read_object(body, |collection| {
        let (name, public) = name_and_visibility(collection, presence);
        let content = collection
            .texts("content", Presence::NotNull, TextRule::URI, COLLECTION_ELEMENTS_MAX)
            .value();
        CollectionChange { name, public, content: content.map(|uris| item_keys(&uris)) }
    })
}

/// Reads `name` and `public`.
///
/// Other properties are ignored, so that a client may send back the whole collection that it received
/// (contract collections-3).
fn name_and_visibility(
    collection: &mut PropertyReader<'_>,
    presence: Presence,
) -> (Option<String>, Option<bool>) {
    collection.allow_unknown();
    let name = collection.text("name", presence, NAME).value();
    if name.as_ref().is_some_and(String::is_empty) {
        collection.report_rule("name", "minimum", "is empty");
    }
    (name, collection.flag("public", Presence::NotNull).value())
}

/// Reads the items that a body lists. A URI that names no item is skipped.
async fn read_item_keys(request: Request) -> Result<Vec<ItemKey>> {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let uris = request::read_objects(&body, COLLECTION_ELEMENTS_MAX, |element| {
        element.allow_unknown();
        element.required("uri", TextRule::URI)
    })?;
    Ok(item_keys(&uris))
}

/// Parses `uris` as item keys, in order; other URIs are skipped.
fn item_keys(uris: &[String]) -> Vec<ItemKey> {
    uris.iter().filter_map(|uri| ItemKey::from_uri(uri).ok()).collect()
}

fn ok_or_missing(outcome: Option<()>) -> ApiResult {
    match outcome {
        Some(()) => api::text("OK"),
        None => Ok(missing_response()),
    }
}

/// Responds 404 with a plain string: the collection does not exist, or this caller may not read it (contract
/// collections-8).
fn missing_response() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let body = Body::from("No such collection");
    let mut response = respond::typed(StatusCode::NOT_FOUND, kind, body);
    CachePolicy::NoStore.set(response.headers_mut());
    response
}
