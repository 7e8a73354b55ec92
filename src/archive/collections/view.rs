//! Views of collections for clients (contract collections-1).

use api::collections::{CollectionWithoutContent, RemovedCollectionItem};

use crate::access::auth::Principal;
use crate::storage::database::{Collection, CollectionHead, LostItem};
use model::item::MediaLinks;

/// Creates the view of a collection without its items.
pub fn head(head: CollectionHead) -> CollectionWithoutContent {
    CollectionWithoutContent {
        id: head.id,
        name: head.name,
        owner: head.owner_name,
        public: head.public,
        created: head.created,
        accessed: head.accessed,
        modified: head.modified,
    }
}

/// Creates the view of `collection` for `reader`, with URLs from `links`.
///
/// Only the owner gets `removedContent` (contract collections-11). A withdrawn item is no longer readable, and
/// its headline would reveal it to readers who could not see the item before either.
pub fn collection(
    collection: Collection,
    reader: &Principal,
    links: &MediaLinks,
) -> api::collections::Collection {
    let is_own = collection.head.owner == reader.user().id;
    let removed = collection.removed.into_iter().map(|lost| removed_item(lost, links));
    api::collections::Collection {
        head: head(collection.head),
        content: collection.content.iter().map(|key| links.item(key)).collect(),
        removed_content: is_own.then(|| removed.collect()),
    }
}

fn removed_item(lost: LostItem, links: &MediaLinks) -> RemovedCollectionItem {
    RemovedCollectionItem {
        uri: links.item(&lost.key),
        headline: lost.headline,
        description_text: lost.description,
        timestamp: lost.at,
    }
}
