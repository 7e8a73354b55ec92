//! Handles the items of a collection: adds them from other pages, reorders and removes them.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use minijinja::{context, value::Serde};

use super::api_client::{ApiRefusal, encode_segment};
use super::back_link::MESSAGE_PARAMETERS;
use super::collections::{COLLECTION_NAMES, page_of, refusal_page};
use super::item_summary::key_of;
use super::{FormFields, MemberForm, MemberRequest, PageResult, form_refusal, status_of};
use crate::http::AppState;
use crate::http::form::see_other;
use crate::http::site::login;
use api::collections::{
    AddCollectionItems, Collection, CollectionBody, CollectionChange, CollectionItems,
    CreateCollection, RemoveCollectionItems, UpdateCollection,
};
use model::ItemKey;

/// The message if some items were not added.
const LEFT_OUT: &str = "Some items could not be added: they are no longer available, or your agreements do not cover them.";
/// The message if no item was selected.
const NOTHING: &str = "Select at least one item to add.";

/// The routes for items of a collection.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/collections/add", get(choose).post(add))
        .route("/collections/{id}/order", post(reorder))
        .route("/collections/{id}/take", post(remove_items))
}

/// The items to add and the target collection.
#[derive(Clone, Debug, Default)]
struct AddItemsForm {
    uris: Vec<String>,
    /// The id of the collection; `None` to create one.
    collection: Option<String>,
    name: Option<String>,
    return_to: Option<String>,
}

impl AddItemsForm {
    /// Builds the form from the items' URIs, and from the fields `collection`, `name` and `return_to`.
    fn new<'a>(uris: impl Iterator<Item = &'a str>, fields: [Option<&str>; 3]) -> Self {
        let [collection, name, return_to] = fields;
        // An address on a different host would turn this form into an open redirect.
        let return_to = return_to.filter(|path| login::is_local_page(path));
        let [collection, name, return_to] =
            [collection, name, return_to].map(|field| field.map(str::to_owned));
        Self { uris: uris.map(str::to_owned).collect(), collection, name, return_to }
    }
}

/// `GET /collections/add?uri=…&return_to=…`: asks for the target collection.
async fn choose(member: MemberRequest) -> PageResult {
    let query = &member.query;
    let fields = [query.text("collection")?, query.text("name")?, query.text("return_to")?];
    let request = AddItemsForm::new(query.text("uri")?.into_iter(), fields);
    show_choices(&member, &request, None).await
}

async fn show_choices(
    member: &MemberRequest,
    request: &AddItemsForm,
    refusal: Option<&ApiRefusal>,
) -> PageResult {
    let mut choices = member.ask(&COLLECTION_NAMES).await?;
    // The API lists the oldest collection first, the page the newest.
    choices.reverse();
    let keys = request.uris.iter().filter_map(|uri| key_of(uri));
    let context = context! {
        collections => Serde(choices),
        uris => request.uris.clone(),
        keys => keys.map(|key| key.to_string()).collect::<Vec<_>>(),
        chosen => request.collection.clone(),
        typed_name => request.name.clone(),
        return_to => request.return_to.clone(),
        mistakes => refusal.map(ApiRefusal::sentences),
    };
    member.page_with(status_of(refusal), "collection_add.html", context)
}

/// `POST /collections/add`: adds items to an existing or a new collection, and redirects back. With `step=choose`
/// it asks for the collection instead.
async fn add(posted: MemberForm) -> PageResult {
    let fields = ["collection", "name", "return_to"].map(|name| posted.form.find(name));
    let mut request = AddItemsForm::new(posted.form.all("uri"), fields);
    if posted.form.find("step") == Some("choose") {
        return show_choices(&posted, &request, None).await;
    }
    match add_items(&posted, &mut request).await {
        Ok(id) => Ok(see_other(&match request.return_to {
            Some(back) => with_message_parameters(&back, &[("done", "added"), ("in", &id)]),
            None => with_message(&page_of(&id), "added"),
        })),
        // The form is shown again, because otherwise the selection of items would be lost.
        Err(refusal) => show_choices(&posted, &request, Some(&form_refusal(refusal)?)).await,
    }
}

/// Adds the items and returns the collection's id.
async fn add_items(posted: &MemberForm, request: &mut AddItemsForm) -> Result<String, ApiRefusal> {
    if request.uris.is_empty() {
        return Err(ApiRefusal::new(StatusCode::BAD_REQUEST, NOTHING));
    }
    let id = match &request.collection {
        Some(id) => id.clone(),
        None => {
            let name = request.name.clone().unwrap_or_default();
            let body = CollectionBody { name, public: false };
            let created = posted.send(&CreateCollection {}, &body).await?;
            // If the next call fails, a retry must use this collection instead of creating a second one.
            let id = created.head.id.to_string();
            request.collection = Some(id.clone());
            request.name = None;
            id
        }
    };
    let items = CollectionItems::from_uris(request.uris.iter().map(String::as_str));
    posted.send(&AddCollectionItems { id: id.clone() }, &items).await?;
    // The API does not report items that it skipped, so the collection is loaded. Items are compared by key,
    // because the API writes their URIs with its own base URL.
    let found = load_without_items(posted, &id).await?;
    let present: Vec<ItemKey> = found.content.iter().filter_map(|uri| key_of(uri)).collect();
    let is_added = |uri: &String| key_of(uri).is_some_and(|key| present.contains(&key));
    if !request.uris.iter().all(is_added) {
        return Err(ApiRefusal::new(StatusCode::CONFLICT, LEFT_OUT));
    }
    Ok(id)
}

/// Sets the parameter `done` of `path`, and removes earlier message parameters.
fn with_message(path: &str, done: &str) -> String {
    with_message_parameters(path, &[("done", done)])
}

/// Sets the message parameters (`done`, and `in` with a collection's id) of `path`, and removes earlier ones.
fn with_message_parameters(path: &str, message: &[(&str, &str)]) -> String {
    // The fragment follows the query, so it is split off and appended at the end.
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let added = message.iter().map(|(name, value)| format!("{name}={}", encode_segment(value)));
    let pairs = query.split('&').filter(|pair| is_kept(pair)).map(str::to_owned).chain(added);
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
    format!("{path}?{}{fragment}", pairs.collect::<Vec<_>>().join("&"))
}

/// Returns whether a query parameter is kept when a message is set.
fn is_kept(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    !pair.is_empty() && !MESSAGE_PARAMETERS.contains(&name)
}

/// The move of an item within a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemMove<'a> {
    /// One position towards the front.
    Earlier,
    /// One position towards the end.
    Later,
    /// To the position before the given item.
    Before(&'a str),
    /// To the position after the given item.
    After(&'a str),
}

/// Parses the URI of the item that a form moves, and its move.
fn parse_move(form: &FormFields) -> Option<(&str, ItemMove<'_>)> {
    // The three forms share one URL. The first field that is present decides.
    if let Some(uri) = form.find("earlier") {
        return Some((uri, ItemMove::Earlier));
    }
    if let Some(uri) = form.find("later") {
        return Some((uri, ItemMove::Later));
    }
    // The buttons above move the item by one position. Dragging names its new neighbour.
    let moved = form.find("moved")?;
    if let Some(neighbour) = form.find("before") {
        return Some((moved, ItemMove::Before(neighbour)));
    }
    let neighbour = form.find("after")?;
    Some((moved, ItemMove::After(neighbour)))
}

/// Returns `content` with `uri` moved; unchanged if it does not contain `uri`.
fn move_item(mut content: Vec<String>, uri: &str, step: ItemMove<'_>) -> Vec<String> {
    // If the item was removed in the meantime, there is nothing to move.
    let Some(at) = position(&content, uri) else { return content };
    let moved = content.remove(at);
    // From here on, positions refer to the list without the moved item.
    let to = match step {
        ItemMove::Earlier => at.saturating_sub(1),
        ItemMove::Later => (at + 1).min(content.len()),
        // If the neighbour was removed in the meantime, the item keeps its position.
        ItemMove::Before(other) => position(&content, other).unwrap_or(at),
        ItemMove::After(other) => position(&content, other).map_or(at, |position| position + 1),
    };
    content.insert(to, moved);
    content
}

fn position(content: &[String], uri: &str) -> Option<usize> {
    content.iter().position(|own| own == uri)
}

/// Loads a collection without the documents of its items. A `GET` would include them; a `PUT` with an empty order
/// changes nothing and returns the collection without them.
async fn load_without_items(posted: &MemberForm, id: &str) -> Result<Collection, ApiRefusal> {
    put_in_order(posted, id, Vec::new()).await
}

/// Moves the items `content` to the front.
async fn put_in_order(
    posted: &MemberForm,
    id: &str,
    content: Vec<String>,
) -> Result<Collection, ApiRefusal> {
    let change = CollectionChange { content: Some(content), ..CollectionChange::default() };
    posted.send(&UpdateCollection { id: id.to_owned() }, &change).await
}

/// `POST /collections/{id}/order`: moves one item. The move applies to the current order, so items that were added
/// in the meantime are kept. The name and the visibility do not change.
async fn reorder(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let found = load_without_items(&posted, &id).await?;
    let Some((uri, step)) = parse_move(&posted.form) else { return Ok(see_other(&page_of(&id))) };
    match put_in_order(&posted, &id, move_item(found.content, uri, step)).await {
        Ok(_) => {
            let key = key_of(uri).map(|key| format!("#{key}")).unwrap_or_default();
            // The anchor keeps the moved item in view after the redirect.
            let page = format!("{}{key}", return_page(&posted, &id));
            Ok(see_other(&with_message(&page, "ordered")))
        }
        Err(refusal) => refusal_page(&posted, &id, refusal, None).await,
    }
}

/// Returns the URL of the page of the collection's list that contained the form.
fn return_page(posted: &MemberForm, id: &str) -> String {
    let page = posted.form.find("page").and_then(|page| page.parse::<usize>().ok());
    // The URL of the first page has no parameter, so that the page has a single URL.
    match page.filter(|page| *page > 1) {
        Some(page) => format!("{}?page={page}", page_of(id)),
        None => page_of(id),
    }
}

/// `POST /collections/{id}/take`: removes items.
async fn remove_items(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let items = CollectionItems::from_uris(posted.form.all("uri"));
    match posted.send(&RemoveCollectionItems { id: id.clone() }, &items).await {
        Ok(()) => Ok(see_other(&with_message(&return_page(&posted, &id), "taken"))),
        Err(refusal) => refusal_page(&posted, &id, refusal, None).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_put_into_an_address_with_and_without_a_query() {
        let check = |path, expected: &str| assert_eq!(with_message(path, "added"), expected);
        check("/", "/?done=added");
        check("/?q=a%26b&page=2", "/?q=a%26b&page=2&done=added");
        check("/item/image/x?done=saved&a=1#top", "/item/image/x?a=1&done=added#top");
        check("/?", "/?done=added");
        check("/?done=added&in=x&q=a", "/?q=a&done=added");
        let named = with_message_parameters("/?q=a&in=old", &[("done", "added"), ("in", "a&b")]);
        assert_eq!(named, "/?q=a&done=added&in=a%26b");
    }

    #[test]
    fn an_item_moves_and_the_others_keep_their_order() {
        let check = |uri, step, expected: &str| {
            let content = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
            assert_eq!(move_item(content, uri, step).concat(), expected, "{step:?}");
        };
        check("c", ItemMove::Earlier, "acbd");
        check("a", ItemMove::Earlier, "abcd");
        check("b", ItemMove::Later, "acbd");
        check("d", ItemMove::Later, "abcd");
        check("d", ItemMove::Before("a"), "dabc");
        check("a", ItemMove::Before("d"), "bcad");
        check("a", ItemMove::After("d"), "bcda");
        check("d", ItemMove::After("a"), "adbc");
        check("b", ItemMove::After("gone"), "abcd");
        check("gone", ItemMove::Later, "abcd");
    }

    #[test]
    fn a_form_moves_one_item() {
        let check = |encoded: &str, expected| {
            assert_eq!(parse_move(&FormFields::parse(encoded).unwrap()), expected, "{encoded}");
        };
        check("earlier=a", Some(("a", ItemMove::Earlier)));
        check("later=a", Some(("a", ItemMove::Later)));
        check("moved=a&before=b", Some(("a", ItemMove::Before("b"))));
        check("moved=a&after=b&before=", Some(("a", ItemMove::After("b"))));
        check("moved=a", None);
        check("x=1", None);
    }
}
