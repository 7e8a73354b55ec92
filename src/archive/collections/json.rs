//! The JSON of collections in the API (contract collections-1).

use jiff::Timestamp;
use serde::Serialize;

use crate::access::auth::Principal;
use crate::storage::database::{Collection, CollectionHead, LostItem};
use model::item::MediaLinks;

/// A collection without its items.
#[derive(Debug, Serialize)]
pub struct CollectionSummary<'a> {
    id: String,
    name: &'a str,
    owner: &'a str,
    public: bool,
    created: Timestamp,
    accessed: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<Timestamp>,
}

impl<'a> From<&'a CollectionHead> for CollectionSummary<'a> {
    fn from(head: &'a CollectionHead) -> Self {
        Self {
            id: head.id.to_string(),
            name: &head.name,
            owner: &head.owner_name,
            public: head.public,
            created: head.created,
            accessed: head.accessed,
            modified: head.modified,
        }
    }
}

/// A collection with its items as URLs of this service.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CollectionView<'a> {
    #[serde(flatten)]
    head: CollectionSummary<'a>,
    content: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_content: Option<Vec<RemovedItemView<'a>>>,
}

#[derive(Debug, Serialize)]
struct RemovedItemView<'a> {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description_text: Option<&'a str>,
    timestamp: Timestamp,
}

impl<'a> RemovedItemView<'a> {
    fn new(lost: &'a LostItem, links: &impl MediaLinks) -> Self {
        Self {
            uri: links.item(&lost.key),
            headline: lost.headline.as_deref(),
            description_text: lost.description.as_deref(),
            timestamp: lost.at,
        }
    }
}

impl<'a> CollectionView<'a> {
    /// Creates the view of `collection` for `reader`, with URLs from `links`.
    ///
    /// Only the owner gets `removedContent` (contract collections-11). A withdrawn item is no longer readable, and
    /// its headline would reveal it to readers who could not see the item before either.
    #[must_use]
    pub fn new(collection: &'a Collection, reader: &Principal, links: &impl MediaLinks) -> Self {
        let Collection { head, content, removed } = collection;
        let is_own = head.owner == reader.user().id;
        let removed = removed.iter().map(|lost| RemovedItemView::new(lost, links));
        Self {
            head: CollectionSummary::from(head),
            content: content.iter().map(|key| links.item(key)).collect(),
            removed_content: is_own.then(|| removed.collect()),
        }
    }
}
