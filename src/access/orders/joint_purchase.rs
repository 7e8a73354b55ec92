//! Joint purchases: all of them are recorded, or none.
//!
//! Separate purchases could use the last downloads of a prepaid agreement for an archive that is then not
//! delivered.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;

use super::purchase::{PurchaseOutcome, PurchaseRequest};
use super::{CoverageDecision, ItemFacts, Orders, covering, is_subscription, unrecorded};
use crate::access::auth::{AuthMethod, Principal};
use crate::runtime::error::Result;
use crate::storage::database::{DbError, ReadTx, WriteTx};
use model::account::AgreementId;

/// Downloads of prepaid agreements that a series of requests takes.
pub(super) type Taken = HashMap<AgreementId, u32>;

/// Returns the outcomes of the requests one after the other, without recording them.
fn preview_all(
    wishes: &[Arc<PurchaseRequest>],
    tx: &ReadTx<'_>,
) -> Result<Vec<PurchaseOutcome>, DbError> {
    let mut taken = Taken::new();
    wishes.iter().map(|wish| wish.preview_after(tx, &mut taken)).collect()
}

impl Orders {
    /// Decides for each of `items` whether `principal` may download it at `now`, assuming that it also
    /// downloads the items before it: prepaid downloads are limited. Writes nothing.
    ///
    /// The result has an entry for each item, which fails as [`Orders::check`] does.
    pub async fn check_all(
        &self,
        principal: &Principal,
        items: &[ItemFacts<'_>],
        agr: Option<AgreementId>,
        now: Timestamp,
    ) -> Result<Vec<Result<CoverageDecision>>> {
        let (mut decisions, mut places, mut wishes) = (Vec::new(), Vec::new(), Vec::new());
        for (place, item) in items.iter().enumerate() {
            match self.purchase_request(principal, *item, agr, now).await {
                Ok(None | Some((_, true))) => decisions.push(Ok(CoverageDecision::Delivers)),
                Err(refused) => decisions.push(Err(refused)),
                Ok(Some((wish, false))) => {
                    // A placeholder, overwritten below.
                    decisions.push(Ok(CoverageDecision::Delivers));
                    places.push(place);
                    wishes.push(wish);
                }
            }
        }
        if wishes.is_empty() {
            return Ok(decisions);
        }
        let looked = wishes.clone();
        let wished = self.inner.db.read(move |tx| preview_all(&looked, tx)).await?;
        for ((place, wish), wished) in places.into_iter().zip(&wishes).zip(&wished) {
            decisions[place] = self.cache_and_decide(wish, wished);
        }
        Ok(decisions)
    }

    /// Records that `principal` downloads all of `items` at `now`.
    ///
    /// Fails as [`Orders::purchase`] does, but then records nothing, not even an order: an agreement may have
    /// changed since the items were checked.
    pub async fn purchase_all(
        &self,
        principal: &Principal,
        items: &[ItemFacts<'_>],
        agr: Option<AgreementId>,
        now: Timestamp,
    ) -> Result<()> {
        let mut wishes = Vec::new();
        for item in items {
            wishes.extend(
                self.purchase_request(principal, *item, agr, now).await?.map(|(wish, _)| wish),
            );
        }
        if wishes.is_empty() {
            return Ok(());
        }
        let looked = wishes.clone();
        let wished = self.write(move |tx| record_all(&looked, tx)).await.map_err(unrecorded)?;
        // If one item is refused, the others were not bought either, so nothing is cached.
        if let Some(place) = wished.iter().position(|one| !all_deliver(one)) {
            return self.cache_and_decide(&wishes[place], &wished[place])?.require_delivery();
        }
        for (wish, wished) in wishes.iter().zip(&wished) {
            self.cache_and_decide(wish, wished)?;
        }
        Ok(())
    }

    /// Creates the request for `item` if an order may have to be written, and whether the item is delivered
    /// in any case.
    async fn purchase_request(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        agr: Option<AgreementId>,
        now: Timestamp,
    ) -> Result<Option<(Arc<PurchaseRequest>, bool)>> {
        if principal.method() == AuthMethod::Operator {
            return Ok(None);
        }
        let covering = match covering(principal, item, agr, now) {
            Ok(covering) => covering,
            Err(refused) => {
                let is_owned = self.is_owned(principal, item, agr, now).await?;
                return if is_owned { Ok(None) } else { Err(refused) };
            }
        };
        if self.is_bought(&covering, item.key, now) {
            return Ok(None);
        }
        let subscribed = covering.first().is_some_and(is_subscription);
        Ok(Some((PurchaseRequest::new(principal, item, &covering, agr, now), subscribed)))
    }
}

fn all_deliver(wished: &PurchaseOutcome) -> bool {
    match wished {
        PurchaseOutcome::Bought { .. } | PurchaseOutcome::Owned | PurchaseOutcome::ToBuy => true,
        PurchaseOutcome::Order { .. } | PurchaseOutcome::Exhausted => false,
    }
}

/// Records all requests if all of them deliver; returns the outcomes.
fn record_all(
    wishes: &[Arc<PurchaseRequest>],
    tx: &WriteTx<'_>,
) -> Result<Vec<PurchaseOutcome>, DbError> {
    let looked = preview_all(wishes, &tx.as_read())?;
    if !looked.iter().all(all_deliver) {
        return Ok(looked);
    }
    wishes.iter().map(|wish| wish.record(tx)).collect()
}
