//! Collections over HTTP (`docs/contract/collections.md`).

use api::collections::{
    AddCollectionItems, Collection, CollectionItems, CreateCollection, DeleteCollection,
    ListCollections, ListedCollection, LoadCollection, LoadCollectionZip, RemoveCollectionItems,
    UpdateCollection,
};
use api::{Done, Json};
use axum::{http::StatusCode, response::Response};
use uuid::Uuid;

use crate::archive::collections::{item_keys, view};
use crate::archive::content::{CallerVisibility, DocumentForm};
use crate::http::api::binding::{ApiRequest, BoundEndpoints, IntoApiResponse, ReadRequest};
use crate::http::api::response::{json_text, plain_text};
use crate::http::media::archives::{self, ArchiveRequest};
use crate::media::{BundleNames, BundleNaming};
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use model::ItemKey;
use model::account::AgreementId;
use model::item::DocumentLayout;

/// The endpoints of collections.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListCollections, _, _>(list)
        .bind::<CreateCollection, _, _>(create)
        .bind_response::<LoadCollection, _, _>(load)
        .bind_response::<UpdateCollection, _, _>(update)
        .bind_response::<DeleteCollection, _, _>(remove)
        .bind_response::<AddCollectionItems, _, _>(add_items)
        .bind_response::<RemoveCollectionItems, _, _>(remove_items)
        .bind_response::<LoadCollectionZip, _, _>(zip)
}

/// Lists the caller's collections.
///
/// `layout=bare` is for clients that need only the names (contract collections-4). The items, which may be very
/// many, are then not read.
async fn list(request: ApiRequest<ListCollections>) -> Result<Json<Vec<ListedCollection>>> {
    let collections = &request.app.shared.archive.collections;
    let caller = &request.caller;
    if request.parameters()?.layout == DocumentLayout::Bare {
        let found = collections.list_heads(caller).await?;
        let heads = found.into_iter().map(view::head);
        return Ok(Json(heads.map(ListedCollection::Bare).collect()));
    }
    let links = request.app.shared.media.links();
    let found = collections.list(caller).await?.into_iter();
    let found = found.map(|collection| view::collection(collection, caller, links));
    Ok(Json(found.map(ListedCollection::Full).collect()))
}

async fn create(request: ApiRequest<CreateCollection>) -> Result<Json<Collection>> {
    let ReadRequest { app, caller, body, .. } = request.read().await?;
    let created = app.shared.archive.collections.create(&caller, body, clock::now()).await?;
    Ok(Json(view::collection(created, &caller, app.shared.media.links())))
}

async fn load(request: ApiRequest<LoadCollection>) -> Result<Response> {
    let now = clock::now();
    let caller = &request.caller;
    let Some(id) = parse_id(&request.parameters()?.id) else { return Ok(missing()) };
    let found = request.app.shared.archive.collections.load(caller, id, now).await?;
    let Some(found) = found else { return Ok(missing()) };
    let keys = found.content.clone();
    let collection = view::collection(found, caller, request.app.shared.media.links());
    let mut text = serde_json::to_vec(&collection).map_err(Error::internal)?;
    let form = DocumentForm {
        layout: DocumentLayout::Full,
        links: request.app.shared.media.links().clone(),
    };
    let visibility = CallerVisibility::new(caller, now);
    let items = request.app.shared.archive.content.visible_list(keys, form, visibility).await?;
    // Appends `items` to the serialized object: the documents are text already, so they need not be parsed and
    // serialized again.
    text.pop();
    text.extend_from_slice(b",\"items\":");
    text.extend_from_slice(&items);
    text.push(b'}');
    Ok(json_text(text.into()))
}

async fn update(request: ApiRequest<UpdateCollection>) -> Result<Response> {
    let ReadRequest { app, caller, parameters, body } = request.read().await?;
    let Some(id) = parse_id(&parameters.id) else { return Ok(missing()) };
    let changed = app.shared.archive.collections.update(&caller, id, body, clock::now()).await?;
    let links = app.shared.media.links();
    found_or_missing(changed.map(|collection| Json(view::collection(collection, &caller, links))))
}

async fn remove(request: ApiRequest<DeleteCollection>) -> Result<Response> {
    let Some(id) = parse_id(&request.parameters()?.id) else { return Ok(missing()) };
    let removed = request.app.shared.archive.collections.delete(&request.caller, id).await?;
    found_or_missing(removed.map(|()| Done))
}

async fn add_items(request: ApiRequest<AddCollectionItems>) -> Result<Response> {
    let now = clock::now();
    let ReadRequest { app, caller, parameters, body } = request.read().await?;
    let Some(id) = parse_id(&parameters.id) else { return Ok(missing()) };
    let visibility = CallerVisibility::new(&caller, now);
    let visible = app.shared.archive.content.visible_items(keys_of(&body), visibility).await?;
    let added = app.shared.archive.collections.add(&caller, id, visible, now).await?;
    found_or_missing(added.map(|()| Done))
}

async fn remove_items(request: ApiRequest<RemoveCollectionItems>) -> Result<Response> {
    let ReadRequest { app, caller, parameters, body } = request.read().await?;
    let Some(id) = parse_id(&parameters.id) else { return Ok(missing()) };
    let keys = keys_of(&body);
    let removed = app.shared.archive.collections.remove(&caller, id, keys, clock::now()).await?;
    found_or_missing(removed.map(|()| Done))
}

/// Responds with a ZIP archive of the files in the collection that the caller may download, and records their
/// purchases; an extension of the contract.
async fn zip(request: ApiRequest<LoadCollectionZip>) -> Result<Response> {
    let LoadCollectionZip { id, agr, numbered } = request.parameters()?;
    let Some(id) = parse_id(&id) else { return Ok(missing()) };
    let found = request.app.shared.archive.collections.peek(&request.caller, id).await?;
    let Some(found) = found else { return Ok(missing()) };
    let files = if numbered { BundleNaming::ByPosition } else { BundleNaming::ById };
    let archive = ArchiveRequest {
        keys: &found.content,
        names: BundleNames { archive: &found.head.name, files },
        principal: &request.caller,
        agr: agr.map(AgreementId),
        method: &request.parts.method,
        headers: &request.parts.headers,
        confirmed: None,
    };
    archives::archive_response(&request.app, archive).await
}

/// Parses the id of a collection. Collections have UUIDs, so any other text names no collection.
fn parse_id(id: &str) -> Option<Uuid> {
    // `try_parse` accepts other spellings, which would give one collection several addresses.
    (id.len() == 36).then(|| Uuid::try_parse(id).ok()).flatten()
}

fn keys_of(items: &CollectionItems) -> Vec<ItemKey> {
    item_keys(items.0.iter().map(|item| &item.uri))
}

fn found_or_missing<A: IntoApiResponse>(answer: Option<A>) -> Result<Response> {
    answer.map_or_else(|| Ok(missing()), A::into_api_response)
}

/// Responds 404 with a plain string: the collection does not exist, or this caller may not read it (contract
/// collections-8).
fn missing() -> Response {
    let mut response = plain_text("No such collection");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
