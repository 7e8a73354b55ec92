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
use crate::archive::collections::json::{Bare, Shown};
use crate::archive::collections::{Change, Draft};
use crate::archive::content::Form;
use crate::archive::content::Sight;
use crate::http::App;
use crate::http::api;
use crate::http::api::Answer;
use crate::http::api::Caller;
use crate::http::api::Failure;
use crate::http::media;
use crate::http::protocol::request;
use crate::http::protocol::request::Object;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::Query;
use crate::http::protocol::request::Text;
use crate::http::protocol::respond;
use crate::media::{BundleNames, Caller as Buyer, Client, Naming};
use crate::runtime::clock;
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{
    BUNDLE_TRIES, COLLECTION_BODY_BYTES_MAX, COLLECTION_ELEMENTS_MAX, COLLECTION_NAME_CHARS_MAX,
};
use crate::storage::database::Collection;
use model::ItemKey;
use model::item::Layout;

/// What a collection is called.
const NAME: Text = Text::line(COLLECTION_NAME_CHARS_MAX);

/// A decoded part of the path, or why there is none.
type Segment = Result<Path<String>, PathRejection>;

/// The addresses of this file.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/collection/v1/collection", get(list).post(create))
        .route("/collection/v1/collection/{id}", get(load).put(update).delete(remove))
        .route("/collection/v1/collection/{id}/items", post(add_items).delete(remove_items))
        .route("/collection/v1/collection/{id}/zip", get(zip))
}

/// `layout=bare` is for clients that need the names alone (contract collections-4). Items, of
/// which there may be very many, are not read then.
async fn list(State(app): State<App>, Caller(caller): Caller, uri: Uri) -> Answer {
    let choices = [("full", Layout::Full), ("bare", Layout::Bare)];
    let layout = Query::of(&uri)?.one_of("layout", &choices)?.unwrap_or_default();
    if layout == Layout::Bare {
        let found = app.shared.archive.collections.list_heads(&caller).await?;
        return api::json(&found.iter().map(Bare::from).collect::<Vec<_>>());
    }
    let found = app.shared.archive.collections.list(&caller, clock::now()).await?;
    api::json(&found.iter().map(|one| shown(&app, &caller, one)).collect::<Vec<_>>())
}

async fn create(State(app): State<App>, Caller(caller): Caller, request: Request) -> Answer {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let made = app.shared.archive.collections.create(&caller, new(&body)?, clock::now()).await?;
    api::json(&shown(&app, &caller, &made))
}

async fn load(State(app): State<App>, Caller(caller): Caller, id: Segment) -> Answer {
    let now = clock::now();
    let Some(id) = named(id)? else { return Ok(missing()) };
    let found = app.shared.archive.collections.load(&caller, id, now).await?;
    let Some(found) = found else { return Ok(missing()) };
    let mut text = serde_json::to_vec(&shown(&app, &caller, &found)).map_err(Error::internal)?;
    let form = Form { layout: Layout::Full, links: app.shared.media.links().clone() };
    let sight = Sight::of(&caller, now);
    let items = app.shared.archive.content.named(found.content, form, sight).await?;
    // The object that was written goes on.
    text.pop();
    text.extend_from_slice(b",\"items\":");
    text.extend_from_slice(&items);
    text.push(b'}');
    Ok(api::json_text(text.into()))
}

async fn update(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Segment,
    request: Request,
) -> Answer {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let change = change(&body)?;
    let Some(id) = named(id)? else { return Ok(missing()) };
    match app.shared.archive.collections.update(&caller, id, change, clock::now()).await? {
        Some(changed) => api::json(&shown(&app, &caller, &changed)),
        None => Ok(missing()),
    }
}

async fn remove(State(app): State<App>, Caller(caller): Caller, id: Segment) -> Answer {
    let Some(id) = named(id)? else { return Ok(missing()) };
    done(app.shared.archive.collections.delete(&caller, id).await?)
}

async fn add_items(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Segment,
    request: Request,
) -> Answer {
    let now = clock::now();
    let keys = items(request).await?;
    let Some(id) = named(id)? else { return Ok(missing()) };
    let seen = app.shared.archive.content.seen(keys, Sight::of(&caller, now)).await?;
    done(app.shared.archive.collections.add(&caller, id, seen, now).await?)
}

async fn remove_items(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Segment,
    request: Request,
) -> Answer {
    let keys = items(request).await?;
    let Some(id) = named(id)? else { return Ok(missing()) };
    done(app.shared.archive.collections.remove(&caller, id, keys, clock::now()).await?)
}

/// One archive of what the caller may have of the collection; an extension of ours.
async fn zip(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Segment,
    request: Request,
) -> Answer {
    let Some(id) = named(id)? else { return Ok(missing()) };
    let found = archive(&app, &caller, id, request).await;
    found.map_err(Failure::from)?.map_or_else(|| Ok(missing()), Ok)
}

/// The archive of the collection `id`, if `caller` may read it, with what it buys.
pub(crate) async fn archive(
    app: &App,
    caller: &Principal,
    id: Uuid,
    request: Request,
) -> Result<Option<Response>> {
    let now = clock::now();
    let agr = media::agreement(request.uri())?;
    let is_true = |text: &str| text.parse().ok();
    let numbered = Query::of(request.uri())?;
    let numbered = numbered.parsed("numbered", "type", "true or false", is_true)?;
    let files = if numbered == Some(true) { Naming::ByPlace } else { Naming::ById };
    let found = app.shared.archive.collections.look(caller, id, now).await?;
    let Some(Collection { head, content, .. }) = found else { return Ok(None) };
    let buyer = Buyer { principal: Some(caller), agr };
    let names = BundleNames { archive: &head.name, files };
    let (method, headers) = (request.method(), request.headers());
    let mut tries = 0;
    loop {
        tries += 1;
        let now = clock::now();
        let answer = app.shared.media.bundle(&content, names, buyer, now).await?;
        let client = Client::of(Some(caller), None);
        let asked = media::Asked { method, headers, caller: buyer, client, now };
        match media::file(app, &asked, &answer).await {
            // Somebody took the downloads that it counted on: look what is left of it.
            Err(refused) if refused.kind() == Kind::Forbidden && tries < BUNDLE_TRIES => {}
            // An item of it changed meanwhile.
            Ok(None) if tries < BUNDLE_TRIES => {}
            Ok(None) => return Err(media::restless()),
            outcome => return outcome,
        }
    }
}

fn shown<'a>(app: &App, caller: &Principal, collection: &'a Collection) -> Shown<'a> {
    Shown::new(collection, caller, app.shared.media.links())
}

/// The collection that the path names. Ours are called by UUIDs, so another text is the name of none.
fn named(id: Segment) -> Result<Option<Uuid>> {
    let id = request::segment("id", id)?;
    Ok((id.len() == 36).then(|| Uuid::try_parse(&id).ok()).flatten())
}

/// What a new collection is.
fn new(body: &Value) -> Result<Draft> {
    request::object(body, |collection| {
        let (name, public) = facts(collection, Presence::Required);
        Draft { name: name.unwrap_or_default(), public: public.unwrap_or(false) }
    })
}

/// What a collection is to be.
///
/// With `content`, `name` may be left out and stays as it is (contract collections-6). A client
/// that puts items in order would otherwise undo a new name.
fn change(body: &Value) -> Result<Change> {
    let presence = match body.get("content") {
        Some(_) => Presence::NotNull,
        None => Presence::Required,
    };
    request::object(body, |collection| {
        let (name, public) = facts(collection, presence);
        let content = collection
            .texts("content", Presence::NotNull, Text::URI, COLLECTION_ELEMENTS_MAX)
            .given();
        Change { name, public, content: content.map(|uris| keys(&uris)) }
    })
}

/// `name` and `public`.
///
/// Other properties are ignored, so that a client may send back the whole collection that it was
/// given (contract collections-3).
fn facts(collection: &mut Object<'_>, presence: Presence) -> (Option<String>, Option<bool>) {
    collection.allow_others();
    let name = collection.text("name", presence, NAME).given();
    if name.as_ref().is_some_and(String::is_empty) {
        collection.break_rule("name", "minimum", "is empty");
    }
    (name, collection.flag("public", Presence::NotNull).given())
}

/// The items that a body names. What names no item is none that could be there.
async fn items(request: Request) -> Result<Vec<ItemKey>> {
    let body = request::json(request, COLLECTION_BODY_BYTES_MAX).await?;
    let uris = request::objects(&body, COLLECTION_ELEMENTS_MAX, |element| {
        element.allow_others();
        element.required("uri", Text::URI)
    })?;
    Ok(keys(&uris))
}

/// The items that `uris` name, in their order.
fn keys(uris: &[String]) -> Vec<ItemKey> {
    uris.iter().filter_map(|uri| ItemKey::from_uri(uri).ok()).collect()
}

fn done(outcome: Option<()>) -> Answer {
    match outcome {
        Some(()) => api::text("OK"),
        None => Ok(missing()),
    }
}

/// A plain string says that there is no such collection, or none for this caller (contract
/// collections-8).
fn missing() -> Response {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let body = Body::from("No such collection");
    let mut response = respond::typed(StatusCode::NOT_FOUND, kind, body);
    api::no_store(response.headers_mut());
    response
}
