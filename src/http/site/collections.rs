//! The list of the visitor's collections, and the page of a collection: its items, name, visibility and ZIP
//! archive.
//!
//! `collection_items.rs` adds, reorders and removes items.

use std::collections::HashMap;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use minijinja::{context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::api_client::{ApiRefusal, encode_segment};
use super::item_summary::{ItemSummary, key_of};
use super::{
    FormFields, MemberForm, MemberRequest, PageResult, form_refusal, numbered_pager, status_of,
};
use crate::http::AppState;
use crate::http::form::see_other;
use api::collections::{
    CollectionBody, CollectionChange, CollectionWithItems, CollectionWithoutContent,
    CreateCollection, DeleteCollection, ListCollections, ListedCollection, LoadCollection,
    LoadCollectionZip, UpdateCollection,
};
use api::user::LoadCaller;
use model::item::{DocumentLayout, has_picture};

/// Items on one page of a collection.
const SITE_COLLECTION_ITEMS_PER_PAGE: usize = 200;
/// Pictures that the list of collections shows for each collection.
const SITE_STRIP_PICTURES: usize = 6;

/// The request for the caller's collections without their items, for lists to choose from. A collection may have
/// very many items.
pub(super) const COLLECTION_NAMES: ListCollections =
    ListCollections { layout: DocumentLayout::Bare };

/// The routes of the collection pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/collections", get(list).post(create))
        .route("/collections/{id}", get(show).post(save))
        .route("/collections/{id}/delete", post(remove))
        .route("/collections/{id}/zip", post(zip))
}

/// Returns the path of a collection's page.
pub(super) fn page_of(id: &str) -> String {
    format!("/collections/{}", encode_segment(id))
}

/// Returns the URL of an item's thumbnail; `None` unless it is a photograph, because other items may not have one.
fn thumbnail(uri: &str) -> Option<String> {
    let key = key_of(uri)?;
    has_picture(key.media_type).then(|| format!("/media/{key}_NormalThumbnail.jpg"))
}

/// A collection in the list.
#[derive(Serialize)]
struct CollectionRow<'a> {
    #[serde(flatten)]
    head: &'a CollectionWithoutContent,
    page: String,
    /// Number of items, if known.
    count: Option<usize>,
    pictures: Vec<String>,
}

impl<'a> CollectionRow<'a> {
    fn new(collection: &'a ListedCollection) -> Self {
        let head = collection.head();
        let content = collection.content();
        let pictures = content.into_iter().flatten().filter_map(|uri| thumbnail(uri));
        Self {
            head,
            page: page_of(&head.id.to_string()),
            count: content.map(<[String]>::len),
            pictures: pictures.take(SITE_STRIP_PICTURES).collect(),
        }
    }
}

async fn list(member: MemberRequest) -> PageResult {
    show_list(&member, None).await
}

/// Loads the visitor's collections; without their items if the response would be too long for a page.
async fn load_all(member: &MemberRequest) -> Result<Vec<ListedCollection>, ApiRefusal> {
    match member.ask(&ListCollections::default()).await {
        Err(refusal) if refusal.is_too_long() => member.ask(&COLLECTION_NAMES).await,
        found => found,
    }
}

/// Shows the list. `again` is the name of a collection that could not be created, and the error.
async fn show_list(member: &MemberRequest, again: Option<(&str, &ApiRefusal)>) -> PageResult {
    let all = load_all(member).await?;
    // The API lists the oldest collection first.
    let rows: Vec<CollectionRow<'_>> = all.iter().rev().map(CollectionRow::new).collect();
    let context = context! {
        rows => Serde(rows),
        name => again.map(|(name, _)| name),
        mistakes => again.map(|(_, refusal)| refusal.sentences()),
    };
    let status = status_of(again.map(|(_, refusal)| refusal));
    member.page_with(status, "collections.html", context)
}

/// `POST /collections`: creates a collection.
async fn create(posted: MemberForm) -> PageResult {
    let name = posted.form.find("name").unwrap_or_default();
    let body = CollectionBody { name: name.to_owned(), public: posted.form.is_ticked("public") };
    match posted.send(&CreateCollection {}, &body).await {
        Ok(created) => {
            let page = page_of(&created.head.id.to_string());
            Ok(see_other(&format!("{page}?done=created")))
        }
        // The form keeps the typed name.
        Err(refusal) => show_list(&posted, Some((name, &form_refusal(refusal)?))).await,
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

/// `GET /collections/{id}`: shows a collection. The owner can change it; other visitors can only read it.
async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    show_one(&member, &id, None, None).await
}

/// Renders the page of a collection, with the error of a change and the entered name.
async fn show_one(
    member: &MemberRequest,
    id: &str,
    refusal: Option<&ApiRefusal>,
    typed_name: Option<&str>,
) -> PageResult {
    let page = member.page_number()?;
    let CollectionWithItems { collection, items } =
        member.ask(&LoadCollection { id: id.to_owned() }).await?;
    let head = &collection.head;
    // Only its owner can change a public collection (contract collections-9).
    let is_own = head.owner == member.visitor.account.user.user_name;
    let (cells, total, hidden) = cells(&collection.content, &items, is_own, page);
    // In the form of the archive, the visitor can choose the agreement that pays.
    let user = member.ask(&LoadCaller {}).await?;
    let removed = collection.removed_content.unwrap_or_default();
    let here = page_of(id);
    let context = context! {
        here_url => here.clone(),
        // After an error the form shows the typed name, while the heading shows the stored one.
        typed_name => typed_name.unwrap_or(&head.name),
        is_own => is_own,
        share_url => format!("{}{here}", member.app.shared.site.url),
        cells => Serde(cells),
        total => collection.content.len(),
        seen => collection.content.len() - hidden,
        hidden => hidden,
        page => page,
        agreements => Serde(user.agreements),
        // The latest first.
        removed => Serde(removed.into_iter().rev().collect::<Vec<_>>()),
        mistakes => refusal.map(ApiRefusal::sentences),
        ..context! {
            ..Serde(head),
            ..numbered_pager(&here, page, page * SITE_COLLECTION_ITEMS_PER_PAGE < total)
        }
    };
    member.page_with(status_of(refusal), "collection.html", context)
}

/// Returns the cells of a page, their number on all pages, and the number of items that are hidden from the
/// visitor. The owner also sees hidden positions, to move and remove them.
fn cells(
    content: &[String],
    items: &[Value],
    is_own: bool,
    page: usize,
) -> (Vec<CollectionCell>, usize, usize) {
    let items = items.iter().filter_map(ItemSummary::from_document);
    let mut hits: HashMap<String, ItemSummary> = items.map(|hit| (hit.key.clone(), hit)).collect();
    let mut cells = Vec::new();
    for (at, uri) in content.iter().enumerate() {
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

/// `POST /collections/{id}`: saves the name and the visibility.
async fn save(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let name = posted.form.find("name").unwrap_or_default();
    let change = CollectionChange {
        name: Some(name.to_owned()),
        public: Some(posted.form.is_ticked("public")),
        content: None,
    };
    match posted.send(&UpdateCollection { id: id.clone() }, &change).await {
        Ok(_) => Ok(see_other(&format!("{}?done=saved", page_of(&id)))),
        Err(refusal) => refusal_page(&posted, &id, refusal, Some(name)).await,
    }
}

/// Shows the collection with the error of a change, and the entered name. If the error is not a mistake in the form,
/// returns it.
pub(super) async fn refusal_page(
    posted: &MemberForm,
    id: &str,
    refusal: ApiRefusal,
    typed_name: Option<&str>,
) -> PageResult {
    // A missing collection has no page on which the error could be shown.
    if !refusal.is_mistake() || refusal.status == StatusCode::NOT_FOUND {
        return Err(refusal.into());
    }
    show_one(posted, id, Some(&refusal), typed_name).await
}

async fn remove(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    posted.ask(&DeleteCollection { id }).await?;
    Ok(see_other("/collections?done=removed"))
}

/// `POST /collections/{id}/zip`: buys and downloads all items that the visitor may download, in order. The page
/// uses a form, because a link must not buy anything.
async fn zip(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let outcome = match parse_zip(&id, &posted.form) {
        Ok(request) => posted.load_file(&request).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(response) => Ok(response),
        Err(refusal) => refusal_page(&posted, &id, refusal, None).await,
    }
}

fn parse_zip(id: &str, form: &FormFields) -> Result<LoadCollectionZip, ApiRefusal> {
    let agr = form.find("agr").map(str::parse::<i64>).transpose();
    let agr = agr.map_err(|_| ApiRefusal::invalid("type", "agr", "is not a number"))?;
    // Numbered names keep the order of the collection when the archive is unpacked.
    Ok(LoadCollectionZip { id: id.to_owned(), agr, numbered: true })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_counts_what_a_collection_holds_where_that_is_known() {
        let listed = |collection: &Value| -> ListedCollection {
            serde_json::from_value(collection.clone()).unwrap()
        };
        let id = "2c916e2d-b755-446d-9e18-d636a1447141";
        let mut collection = json!({
            "id": id, "name": "n", "owner": "o", "public": true,
            "created": "2026-01-05T10:00:00Z", "accessed": "2026-01-05T10:00:00Z",
        });
        let bare = listed(&collection);
        let bare = CollectionRow::new(&bare);
        collection["content"] = json!(["http://x/media/image/a", "http://x/media/text/b"]);
        let full = listed(&collection);
        let full = CollectionRow::new(&full);
        assert_eq!((full.count, full.page), (Some(2), format!("/collections/{id}")));
        assert_eq!(full.pictures, ["/media/image/a_NormalThumbnail.jpg"]);
        assert_eq!((bare.count, bare.head.name.as_str(), bare.head.public), (None, "n", true));
        assert!(bare.pictures.is_empty());
    }
}
