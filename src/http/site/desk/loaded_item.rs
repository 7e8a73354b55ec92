//! An item that an editor edits: its stored document, its history, and the URL of its form.

use api::Tagged;
use api::ingest::{ChangeItem, ItemEdit, ItemPath, ListItemChanges, LoadStoredItem};
use axum::http::StatusCode;
use minijinja::{Value as PageValue, context, value::Serde};
use serde_json::{Map, Value};

use super::{PageError, SiteRequest};
use crate::http::site::api_client::{ApiCall, ApiRefusal};
use crate::http::site::item_summary::ItemSummary;
use crate::http::site::{login, not_found};
use crate::runtime::error::Result;
use model::ItemKey;

/// Maximum number of changes in the history on a page.
const HISTORY_SHOWN: usize = 20;

/// An item with its stored document.
pub(super) struct LoadedItem {
    pub(super) key: ItemKey,
    pub(super) document: Map<String, Value>,
    /// The entity tag of the document, quotes included.
    pub(super) tag: String,
}

impl LoadedItem {
    /// Returns the text of a property of the document; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.document.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the version of the document, for display.
    pub(super) fn version(&self) -> &str {
        self.text("version")
    }

    /// Returns the name of the item's publication status.
    pub(super) fn status(&self) -> &str {
        self.text("pubstatus")
    }

    /// Returns the details of the item that pages show.
    pub(super) fn head(&self) -> PageValue {
        context! {
            key => self.key.to_string(),
            headline => self.text("headline"),
            status => self.status(),
            version => self.version(),
            stored => self.text("versionstored"),
            language => self.text("language"),
        }
    }
}

/// Loads the stored document of an item; `None` if the item does not exist.
pub(super) async fn find(
    site: &SiteRequest,
    key: &ItemKey,
) -> Result<Option<LoadedItem>, PageError> {
    match site.ask(&LoadStoredItem { item: ItemPath::new(key) }).await {
        Ok(Tagged { value: document, tag }) => {
            Ok(Some(LoadedItem { key: key.clone(), document, tag }))
        }
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Loads the stored document of an item. Fails with 404 if the item does not exist.
pub(super) async fn load(site: &SiteRequest, key: &ItemKey) -> Result<LoadedItem, PageError> {
    let missing = "This item does not exist or is no longer available.";
    find(site, key).await?.ok_or_else(|| not_found(missing))
}

/// Changes the version `tag` of an item by a merge patch of its document; `*` stands for any version.
pub(super) async fn change(
    site: &SiteRequest,
    key: &ItemKey,
    patch: &Map<String, Value>,
    tag: &str,
) -> Result<(), ApiRefusal> {
    let change = ChangeItem { item: ItemPath::new(key), template: None };
    site.send_if_match(&change, patch, Some(tag)).await.map(drop)
}

/// Returns the URL of the form for the items `keys`, with the further parameters `more`.
pub(super) fn edit_page(keys: &[ItemKey], more: &[(&str, Option<&str>)]) -> String {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let items = names.iter().map(|name| ("item", Some(name.as_str())));
    ApiCall::get("/desk/edit").query(items.chain(more.iter().copied())).target
}

/// Loads the summary of an item with its pictures; `None` if the item is not served.
pub(super) async fn summary(site: &SiteRequest, key: &ItemKey) -> Option<ItemSummary> {
    let document = site.get(format!("/media/{key}.json")).await.ok()?;
    ItemSummary::from_document(&document)
}

/// Loads the changes that editors made to an item, and its withdrawals, the newest first.
pub(super) async fn changes(
    site: &SiteRequest,
    key: &ItemKey,
) -> Result<Vec<ItemEdit>, ApiRefusal> {
    site.ask(&ListItemChanges { item: ItemPath::new(key) }).await
}

/// Returns the first [`HISTORY_SHOWN`] of `changes`, for the template.
pub(super) fn latest(changes: &[ItemEdit]) -> PageValue {
    PageValue::from(Serde(changes.iter().take(HISTORY_SHOWN).collect::<Vec<_>>()))
}

/// Loads the latest changes of an item, for the template.
pub(super) async fn history(site: &SiteRequest, key: &ItemKey) -> Result<PageValue, ApiRefusal> {
    Ok(latest(&changes(site, key).await?))
}

/// Returns the page to which the editor returns; `None` if it is not a page of the site.
pub(super) fn return_page(site: &SiteRequest) -> Result<Option<&str>> {
    Ok(site.parameter("return_to")?.filter(|path| login::is_local_page(path)))
}
