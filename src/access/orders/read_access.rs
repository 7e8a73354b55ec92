//! Read access: a caller may read an item by its address if its search finds the item, or if one of its
//! orders still delivers it (contract access-13).

use jiff::Timestamp;

use super::report::OrderVisibility;
use super::{Buyer, ItemFacts, Orders, coverage, coverage_error};
use crate::access::auth::{AuthMethod, Principal};
use crate::runtime::error::Result;
use model::ItemKey;

impl Orders {
    /// Returns whether a search of `principal` finds `item` at `now`: any item for the provider, otherwise an
    /// item that one of the caller's agreements in force covers. Does not read the database.
    pub fn is_found(principal: &Principal, item: ItemFacts<'_>, now: Timestamp) -> bool {
        principal.is_provider() || coverage::any_covers(principal.agreements(), &item.codes(), now)
    }

    /// Fails with `agreement_required` unless `principal` may read `item` at `now`: a search of the caller
    /// finds it, or one of its orders still delivers it.
    ///
    /// Records no purchase and no order. Reads the database only if no agreement covers the item.
    pub async fn check_reading(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let reader = Buyer { principal, agr: None, now };
        if Self::is_found(principal, item, now) || self.is_owned(reader, item).await? {
            return Ok(());
        }
        Err(coverage_error(reader))
    }

    /// Returns for each of `items` whether `principal` may read it at `now`, as in [`Orders::check_reading`].
    /// Reads the database once, for the items that no agreement covers.
    pub async fn may_read(
        &self,
        principal: &Principal,
        items: &[ItemFacts<'_>],
        now: Timestamp,
    ) -> Result<Vec<bool>> {
        let is_open = principal.method() == AuthMethod::Operator;
        let mut allowed: Vec<bool> =
            items.iter().map(|item| is_open || Self::is_found(principal, *item, now)).collect();
        let not_covered: Vec<usize> = (0..items.len()).filter(|index| !allowed[*index]).collect();
        if not_covered.is_empty() {
            return Ok(allowed);
        }
        let keys: Vec<ItemKey> =
            not_covered.iter().map(|index| items[*index].key.clone()).collect();
        let visible = OrderVisibility::new(principal).all_visible();
        // A read of many rows must not delay short reads, so it uses the connections for searches.
        let owned: Vec<bool> = self
            .db
            .search(move |tx| {
                keys.iter().map(|key| tx.has_delivering_order(visible, key, None, now)).collect()
            })
            .await?;
        for (index, is_owned) in not_covered.into_iter().zip(owned) {
            allowed[index] = is_owned;
        }
        Ok(allowed)
    }

    /// Returns whether a visible order of `buyer`, placed under the agreement that `buyer` names, if any, still
    /// delivers `item`.
    ///
    /// An item that was bought under an agreement that has ended, or has lost the product since, can be
    /// downloaded again until `downloadableUntil`, without a new order, by callers who see the order in their
    /// list (contract purchases-4).
    pub(super) async fn is_owned(&self, buyer: Buyer<'_>, item: ItemFacts<'_>) -> Result<bool> {
        let Buyer { principal, agr, now } = buyer;
        if principal.method() == AuthMethod::Operator {
            return Ok(true);
        }
        let visible = OrderVisibility::new(principal).all_visible();
        let item = item.key.clone();
        let is_owned =
            self.db.read(move |tx| tx.has_delivering_order(visible, &item, agr, now)).await?;
        Ok(is_owned)
    }
}
