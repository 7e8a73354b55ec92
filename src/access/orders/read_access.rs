//! Reading rights: what a caller finds by search, or still downloads under an order of its own, it
//! may read by address; nothing else (contract access-13).

use jiff::Timestamp;

use super::report::OrderVisibility;
use super::{ItemFacts, Orders, coverage, uncovered};
use crate::access::auth::{AuthMethod, Principal};
use crate::runtime::error::Result;
use crate::storage::database::ReadTx;
use model::ItemKey;
use model::account::AgreementId;

impl Orders {
    /// Whether a search of `principal` finds `item` at `now`: every item for the provider, else
    /// what one of the caller's agreements in force covers. Reads no database.
    #[must_use]
    pub fn is_found(principal: &Principal, item: ItemFacts<'_>, now: Timestamp) -> bool {
        principal.is_provider() || coverage::any_covers(principal.agreements(), &item.codes(), now)
    }

    /// Fails with `agreement_required` unless `principal` may read `item` at `now`: a search of the
    /// caller finds it, or one of its orders still delivers it.
    ///
    /// Records no purchase and no order. The database is read only where no agreement covers the
    /// item.
    pub async fn check_reading(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        now: Timestamp,
    ) -> Result<()> {
        if Self::is_found(principal, item, now)
            || self.is_owned(principal, item, None, now).await?
        {
            return Ok(());
        }
        Err(uncovered(principal, None, now))
    }

    /// Whether `principal` may read each of `items` at `now`, as [`Orders::check_reading`] says. The
    /// database is read once, for those that no agreement covers.
    pub async fn may_read(
        &self,
        principal: &Principal,
        items: &[ItemFacts<'_>],
        now: Timestamp,
    ) -> Result<Vec<bool>> {
        let is_open = principal.method() == AuthMethod::Operator;
        let found = |item: &ItemFacts<'_>| is_open || Self::is_found(principal, *item, now);
        let mut may: Vec<bool> = items.iter().map(found).collect();
        let places: Vec<usize> = (0..items.len()).filter(|place| !may[*place]).collect();
        if places.is_empty() {
            return Ok(may);
        }
        let keys: Vec<ItemKey> = places.iter().map(|place| items[*place].key.clone()).collect();
        let of = OrderVisibility::of(principal).all_visible();
        let read = move |tx: &ReadTx<'_>| {
            keys.iter().map(|key| tx.has_delivering_order(of, key, None, now)).collect()
        };
        // Many rows: readers of single ones do not wait for them.
        let owned: Vec<bool> = self.inner.db.search(read).await?;
        for (place, is_owned) in places.into_iter().zip(owned) {
            may[place] = is_owned;
        }
        Ok(may)
    }

    /// Whether an order that `principal` sees, placed under the agreement `agr` if one is named,
    /// still delivers `item` at `now`.
    ///
    /// What was bought under an agreement that has ended, or that lost the product since, can be
    /// downloaded again until `downloadableUntil`, without a new row, by those who find the order
    /// in their list (contract purchases-4).
    pub(super) async fn is_owned(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        agr: Option<AgreementId>,
        now: Timestamp,
    ) -> Result<bool> {
        if principal.method() == AuthMethod::Operator {
            return Ok(true);
        }
        let (of, item) = (OrderVisibility::of(principal).all_visible(), item.key.clone());
        let read = move |tx: &ReadTx<'_>| tx.has_delivering_order(of, &item, agr, now);
        Ok(self.inner.db.read(read).await?)
    }
}
