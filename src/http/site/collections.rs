//! The list of the visitor's collections, and the page of a collection: its items, name, visibility and ZIP
//! archive.
//!
//! `collection_items.rs` adds, reorders and removes items.

use std::collections::HashMap;

use axum::{
    Router,
    extract::Path,
    http::StatusCode,
    routing::{get, post},
};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::{Value, json};

use super::api_client::{ApiCall, ApiRefusal, call_file, encode_segment, text};
use super::item_summary::{ItemSummary, key_of};
use super::{MemberForm, MemberRequest, PageError, PageResult};
use crate::http::AppState;
use crate::http::form::see_other;
use crate::runtime::limits::{PAGES_MAX, SITE_COLLECTION_ITEMS_PER_PAGE, SITE_STRIP_PICTURES};
use model::item::has_picture;

/// The API path of the caller's collections, with their items.
pub(super) const COLLECTIONS: &str = "/collection/v1/collection";

/// The API path of the caller's collections without their items, for lists to choose from. A collection may have
/// very many items.
pub(super) const COLLECTION_NAMES: &str = "/collection/v1/collection?layout=bare";

/// The routes of the collection pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/collections", get(list).post(create))
        .route("/collections/{id}", get(show).post(save))
        .route("/collections/{id}/delete", post(remove))
        .route("/collections/{id}/zip", post(zip))
}

/// Returns the API path of a collection.
pub(super) fn address(id: &str) -> String {
    format!("{COLLECTIONS}/{}", encode_segment(id))
}

/// Returns the path of a collection's page.
pub(super) fn page_of(id: &str) -> String {
    format!("/collections/{}", encode_segment(id))
}

/// Lists the URIs of a collection's items.
pub(super) fn content(collection: &Value) -> Vec<&str> {
    let content = collection["content"].as_array().into_iter().flatten();
    content.filter_map(Value::as_str).collect()
}

/// Returns the URL of an item's thumbnail; `None` unless it is a photograph, because other items may not have one.
fn thumbnail(uri: &str) -> Option<String> {
    let key = key_of(uri)?;
    has_picture(key.media_type).then(|| format!("/media/{key}_NormalThumbnail.jpg"))
}

/// A collection in the list.
#[derive(Serialize)]
struct CollectionRow {
    name: String,
    page: String,
    public: bool,
    created: String,
    /// Number of items, if known.
    count: Option<usize>,
    pictures: Vec<String>,
}

impl CollectionRow {
    fn from_json(collection: &Value) -> Self {
        let pictures = content(collection).into_iter().filter_map(thumbnail);
        Self {
            name: text(collection, "name").to_owned(),
            page: page_of(text(collection, "id")),
            public: collection["public"] == true,
            created: text(collection, "created").to_owned(),
            count: collection["content"].as_array().map(Vec::len),
            pictures: pictures.take(SITE_STRIP_PICTURES).collect(),
        }
    }
}

async fn list(member: MemberRequest) -> PageResult {
    show_list(&member, None).await
}

/// Loads the visitor's collections; without their items if the response would be too long for a page.
async fn load_all(member: &MemberRequest) -> Result<Value, ApiRefusal> {
    match member.get(COLLECTIONS).await {
        Err(refusal) if refusal.is_too_long() => member.get(COLLECTION_NAMES).await,
        found => found,
    }
}

/// Shows the list. `again` is the name of a collection that could not be created, and the error.
async fn show_list(member: &MemberRequest, again: Option<(&str, &ApiRefusal)>) -> PageResult {
    let all = load_all(member).await?;
    let rows: Vec<CollectionRow> =
        // The API lists the oldest collection first.
        all.as_array().into_iter().flatten().rev().map(CollectionRow::from_json).collect();
    let context = context! {
        rows => PageValue::from(Serde(rows)),
        name => again.map(|(name, _)| name),
        mistakes => again.map(|(_, refusal)| refusal.sentences()),
    };
    let status = again.map_or(StatusCode::OK, |(_, refusal)| refusal.status);
    member.page_with(status, "collections.html", context)
}

/// `POST /collections`: creates a collection.
async fn create(posted: MemberForm) -> PageResult {
    let name = posted.form.find("name").unwrap_or_default();
    let body = json!({ "name": name, "public": posted.form.is_ticked("public") });
    match posted.call(&ApiCall::post(COLLECTIONS).json(body)).await {
        Ok(created) => Ok(see_other(&format!("{}?done=created", page_of(text(&created, "id"))))),
        // The form keeps the typed name.
        Err(refusal) if refusal.is_mistake() => show_list(&posted, Some((name, &refusal))).await,
        Err(refusal) => Err(refusal.into()),
    }
}

/// A position of a collection, with its item.
#[derive(Serialize)]
struct CollectionCell {
    uri: String,
    key: String,
    /// Position in the collection, from 1.
    place: usize,
    /// The item's summary, if the visitor may see the item.
    hit: Option<ItemSummary>,
}

#[derive(Serialize)]
struct RemovedItem {
    key: String,
    headline: Option<String>,
    description: Option<String>,
    at: String,
}

/// The error of a change, and the entered name.
#[derive(Default)]
pub(super) struct CollectionFormError<'a> {
    pub(super) refusal: Option<ApiRefusal>,
    pub(super) name: Option<&'a str>,
}

/// `GET /collections/{id}`: shows a collection. The owner can change it; other visitors can only read it.
async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    show_one(&member, &id, CollectionFormError::default()).await
}

/// Renders the page of a collection.
pub(super) async fn show_one(
    member: &MemberRequest,
    id: &str,
    form_error: CollectionFormError<'_>,
) -> PageResult {
    let page = member.query.integer("page", 1..=i64::try_from(PAGES_MAX).unwrap_or(i64::MAX))?;
    let page = page.and_then(|page| usize::try_from(page).ok()).unwrap_or(1);
    let found = member.get(address(id)).await?;
    // Only its owner can change a public collection (contract collections-9).
    let is_own = text(&found, "owner") == member.visitor.account.user.user_name;
    let (cells, total, hidden) = cells(&found, is_own, page);
    // In the form of the archive, the visitor can choose the agreement that pays.
    let user = member.get("/user/v1/user").await?;
    let here = page_of(id);
    // After an error the form shows the typed name, while the heading shows the stored one.
    let name = form_error.name.unwrap_or(text(&found, "name"));
    let refusal = form_error.refusal.as_ref();
    let context = context! {
        here_url => here.clone(),
        name => text(&found, "name"),
        typed_name => name,
        owner => text(&found, "owner"),
        is_own => is_own,
        public => found["public"] == true,
        created => text(&found, "created"),
        modified => text(&found, "modified"),
        share_url => format!("{}{here}", member.app.shared.site.url),
        cells => PageValue::from(Serde(cells)),
        total => content(&found).len(),
        seen => content(&found).len() - hidden,
        hidden => hidden,
        page => page,
        newer_url => (page > 1).then(|| numbered_page(id, page - 1)),
        older_url => (page * SITE_COLLECTION_ITEMS_PER_PAGE < total)
            .then(|| numbered_page(id, page + 1)),
        removed => PageValue::from(Serde(removed_items(&found))),
        agreements => PageValue::from(Serde(user["agreements"].clone())),
        mistakes => refusal.map(ApiRefusal::sentences),
    };
    let status = refusal.map_or(StatusCode::OK, |refusal| refusal.status);
    member.page_with(status, "collection.html", context)
}

/// Returns the path of page `page` of the collection `id`.
fn numbered_page(id: &str, page: usize) -> String {
    format!("{}?page={page}", page_of(id))
}

/// Returns the cells of a page, their number on all pages, and the number of items that are hidden from the
/// visitor. The owner also sees hidden positions, to move and remove them.
fn cells(found: &Value, is_own: bool, page: usize) -> (Vec<CollectionCell>, usize, usize) {
    let items = ItemSummary::list(&found["items"]);
    let mut hits: HashMap<String, ItemSummary> =
        items.into_iter().map(|hit| (hit.key.clone(), hit)).collect();
    let mut cells = Vec::new();
    for (at, uri) in content(found).into_iter().enumerate() {
        let Some(key) = key_of(uri) else { continue };
        let key = key.to_string();
        // A collection contains an item at most once, so its summary can be moved out of the map.
        let hit = hits.remove(&key);
        cells.push(CollectionCell { uri: uri.to_owned(), key, place: at + 1, hit });
    }
    // `items` omits items that the visitor may not see; `content` lists all (contract collections-10).
    let hidden = cells.iter().filter(|cell| cell.hit.is_none()).count();
    let shown = cells.into_iter().filter(|cell| is_own || cell.hit.is_some());
    let shown = shown.collect::<Vec<_>>();
    let total = shown.len();
    // The page number comes from the URL. A page beyond the end is empty.
    let first = (page - 1).saturating_mul(SITE_COLLECTION_ITEMS_PER_PAGE);
    let cells = shown.into_iter().skip(first).take(SITE_COLLECTION_ITEMS_PER_PAGE).collect();
    (cells, total, hidden)
}

/// Lists the items that were removed from the collection, the latest first.
fn removed_items(found: &Value) -> Vec<RemovedItem> {
    let removed = found["removedContent"].as_array().into_iter().flatten().rev();
    removed.filter_map(removed_item).collect()
}

/// Reads an item that was removed from the collection; `None` if its URI or the time is missing.
fn removed_item(item: &Value) -> Option<RemovedItem> {
    Some(RemovedItem {
        key: key_of(item["uri"].as_str()?)?.to_string(),
        headline: item["headline"].as_str().map(str::to_owned),
        description: item["description_text"].as_str().map(str::to_owned),
        at: item["timestamp"].as_str()?.to_owned(),
    })
}

/// `POST /collections/{id}`: saves the name and the visibility.
async fn save(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let name = posted.form.find("name").unwrap_or_default();
    let body = json!({ "name": name, "public": posted.form.is_ticked("public") });
    match posted.call(&ApiCall::put(address(&id)).json(body)).await {
        Ok(_) => Ok(see_other(&format!("{}?done=saved", page_of(&id)))),
        Err(refusal) => {
            refusal_page(
                &posted,
                &id,
                CollectionFormError { refusal: Some(refusal), name: Some(name) },
            )
            .await
        }
    }
}

/// Shows the collection with the error of a change. If the error is not a mistake in the form, returns it.
pub(super) async fn refusal_page(
    posted: &MemberForm,
    id: &str,
    form_error: CollectionFormError<'_>,
) -> PageResult {
    match form_error.refusal {
        // A missing collection has no page on which the error could be shown.
        Some(refusal) if !refusal.is_mistake() || refusal.status == StatusCode::NOT_FOUND => {
            Err(PageError::from(refusal))
        }
        refusal => show_one(posted, id, CollectionFormError { refusal, ..form_error }).await,
    }
}

async fn remove(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    posted.call(&ApiCall::delete(address(&id))).await?;
    Ok(see_other("/collections?done=removed"))
}

/// `POST /collections/{id}/zip`: buys and downloads all items that the visitor may download, in order. The page
/// uses a form, because a link must not buy anything.
async fn zip(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let call = ApiCall::get(format!("{}/zip", address(&id)));
    // Numbered names keep the order of the collection when the archive is unpacked.
    let call = call.query([("agr", posted.form.find("agr")), ("numbered", Some("true"))]);
    let visitor = Some(&posted.visitor);
    match call_file(&posted.app, &posted.apis, visitor, &call).await {
        Ok(response) => Ok(response),
        Err(refusal) => {
            refusal_page(&posted, &id, CollectionFormError { refusal: Some(refusal), name: None })
                .await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_what_a_collection_holds_where_that_is_known() {
        let uri = |key: &str| format!("http://x/media/{key}");
        let full = json!({ "id": "i", "content": [uri("image/a"), uri("text/b")] });
        let row = CollectionRow::from_json(&full);
        assert_eq!((row.count, row.page.as_str()), (Some(2), "/collections/i"));
        assert_eq!(row.pictures, ["/media/image/a_NormalThumbnail.jpg"]);
        let bare = CollectionRow::from_json(&json!({ "id": "i", "name": "n", "public": true }));
        assert_eq!((bare.count, bare.name.as_str(), bare.public), (None, "n", true));
        assert!(bare.pictures.is_empty());
    }
}
