//! Items that somebody names, a collection's for instance: which of them a caller may see.

use jiff::Timestamp;

use super::{coverage, covers};
use crate::access::auth::Principal;
use crate::runtime::error::Result;
use crate::storage::database::{ReadTx, StoredItem};
use crate::storage::search::Coverage;
use model::ItemKey;
use model::item::{Document, PubStatus};

/// What a caller sees at one moment.
#[derive(Clone, Debug)]
pub struct CallerVisibility {
    coverage: Coverage,
    embargoed: bool,
    commissioned: bool,
    now: Timestamp,
}

impl CallerVisibility {
    /// What `caller` sees at `now`: what search finds for it.
    ///
    /// Items of a collection that were replaced are shown, because they were chosen by name, and
    /// say what has taken their place (contract collections-10). An item that has expired is not.
    #[must_use]
    pub fn of(caller: &Principal, now: Timestamp) -> Self {
        Self {
            coverage: coverage(Some(caller), &[], now),
            embargoed: caller.sees_embargoed(),
            commissioned: caller.sees_commissioned(),
            now,
        }
    }

    /// Whether it shows `item`; one whose document cannot be read is not shown.
    pub(super) fn shows(&self, item: &StoredItem) -> bool {
        let hidden = item.embargoed.is_some_and(|until| until > self.now) && !self.embargoed;
        let Ok(document) = Document::from_stored(&item.document) else { return false };
        let status = match document.pub_status() {
            PubStatus::Usable | PubStatus::Replaced => true,
            PubStatus::Commissioned => self.commissioned,
            PubStatus::Withheld | PubStatus::Canceled => false,
        };
        let expired = document.time("expires").is_some_and(|at| at <= self.now);
        !hidden && status && !expired && covers(&self.coverage, &document)
    }
}

/// Those of `keys` that `sight` shows.
pub(super) fn visible_items(
    keys: Vec<ItemKey>,
    sight: &CallerVisibility,
    tx: &ReadTx<'_>,
) -> Result<Vec<ItemKey>> {
    let mut seen = Vec::new();
    for key in keys {
        if tx.find_item(&key)?.is_some_and(|item| sight.shows(&item)) {
            seen.push(key);
        }
    }
    Ok(seen)
}
