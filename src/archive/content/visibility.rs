//! Visibility of items that are requested by name, such as the items of a collection.

use jiff::Timestamp;

use super::{coverage, covers};
use crate::access::auth::Principal;
use crate::runtime::error::Result;
use crate::storage::database::{ReadTx, StoredItem};
use crate::storage::search::Coverage;
use model::ItemKey;
use model::item::{Document, PubStatus};

/// The rights of a caller at one moment.
#[derive(Clone, Debug)]
pub struct CallerVisibility {
    coverage: Coverage,
    embargoed: bool,
    commissioned: bool,
    now: Timestamp,
}

impl CallerVisibility {
    /// Creates the visibility of `caller` at `now`, the same as in a search.
    ///
    /// Replaced items of a collection are shown, because they were chosen by name, and they name their replacement
    /// (contract collections-10).
    pub fn new(caller: &Principal, now: Timestamp) -> Self {
        Self::of_search(Some(caller), now)
    }

    /// Creates the visibility of a caller in a search at `now`. A caller without credentials sees published items.
    pub fn of_search(caller: Option<&Principal>, now: Timestamp) -> Self {
        Self {
            coverage: coverage(caller, &[], now),
            embargoed: caller.is_some_and(Principal::sees_embargoed),
            commissioned: caller.is_some_and(Principal::sees_commissioned),
            now,
        }
    }

    /// Returns whether the caller may see `item`. An item whose document cannot be parsed is not shown.
    pub(super) fn shows(&self, item: &StoredItem) -> bool {
        let hidden = item.embargoed.is_some_and(|until| until > self.now) && !self.embargoed;
        let Ok(document) = Document::from_stored(&item.document) else { return false };
        let status = match document.pub_status() {
            PubStatus::Usable | PubStatus::Replaced => true,
            PubStatus::Commissioned => self.commissioned,
            PubStatus::Withheld | PubStatus::Canceled => false,
        };
        !hidden && status && covers(&self.coverage, &document)
    }
}

/// Filters `keys` by `visibility`.
pub(super) fn visible_items(
    keys: Vec<ItemKey>,
    visibility: &CallerVisibility,
    tx: &ReadTx<'_>,
) -> Result<Vec<ItemKey>> {
    let mut visible = Vec::new();
    for key in keys {
        if tx.find_item(&key)?.is_some_and(|item| visibility.shows(&item)) {
            visible.push(key);
        }
    }
    Ok(visible)
}
