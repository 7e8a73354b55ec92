//! What each agreement of a caller means for an item, for pages that show it before it is used.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    ItemFacts, Orders, coverage,
    purchase::{PurchaseOutcome, PurchaseRequest},
};
use crate::access::auth::Principal;
use crate::runtime::error::Result;
use model::account::Agreement;

/// A covering agreement and what it means now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreementOffer {
    /// The agreement.
    pub agreement: Agreement,
    /// What it means.
    pub state: OfferState,
}

/// What a covering agreement means for an item now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// It delivers, and a purchase is recorded.
    Available,
    /// It delivers: the item was bought before, and may be downloaded again until then.
    Bought(Timestamp),
    /// It delivers once an order is approved; `true` when the order is there already.
    Order(bool),
}

impl Orders {
    /// The agreements of `principal` that cover `item` and deliver it at `now` or can be ordered
    /// from, in the order in which they are used. Writes nothing.
    pub async fn offers(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        now: Timestamp,
    ) -> Result<Vec<AgreementOffer>> {
        let covering = coverage::covering(principal.agreements(), &item.codes(), None, now);
        let wishes: Vec<Arc<PurchaseRequest>> = covering
            .into_iter()
            .map(|agreement| {
                PurchaseRequest::new(principal, item, &[agreement], Some(agreement.id), now)
            })
            .collect();
        let offers = self.db().read(move |tx| {
            let mut offers = Vec::with_capacity(wishes.len());
            for wish in wishes {
                let state = match wish.preview(tx)? {
                    PurchaseOutcome::Bought { until, .. } => OfferState::Bought(until),
                    PurchaseOutcome::Owned | PurchaseOutcome::ToBuy => OfferState::Available,
                    PurchaseOutcome::Order { recorded, .. } => OfferState::Order(recorded),
                    PurchaseOutcome::Exhausted => continue,
                };
                let agreements = wish.agreements().iter().cloned();
                offers.extend(agreements.map(|agreement| AgreementOffer { agreement, state }));
            }
            Ok(offers)
        });
        Ok(offers.await?)
    }
}
