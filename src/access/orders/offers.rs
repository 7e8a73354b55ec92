//! Offers: the state of each covering agreement for an item, which pages show before the download.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    ItemFacts, Orders, coverage,
    purchase::{PurchaseOutcome, PurchaseRequest},
};
use crate::access::auth::Principal;
use crate::runtime::error::Result;
use model::account::Agreement;

/// A covering agreement and its state for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreementOffer {
    pub agreement: Agreement,
    pub state: OfferState,
}

/// The state of a covering agreement for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferState {
    /// The agreement delivers, and a purchase is recorded.
    Available,
    /// The item was bought before, and may be downloaded again until this time.
    Bought(Timestamp),
    /// The agreement delivers once an order is approved; `true` if the order is recorded already.
    Order(bool),
}

impl Orders {
    /// Lists the agreements of `principal` that cover `item` and deliver it at `now` or allow an order, in
    /// the order in which they are used. Writes nothing.
    pub async fn offers(
        &self,
        principal: &Principal,
        item: ItemFacts<'_>,
        now: Timestamp,
    ) -> Result<Vec<AgreementOffer>> {
        let covering = coverage::covering(principal.agreements(), &item.codes(), None, now);
        let requests: Vec<Arc<PurchaseRequest>> = covering
            .into_iter()
            .map(|agreement| {
                // One request for each agreement, because the page shows the state of all and not
                // of the first.
                PurchaseRequest::new(principal, item, &[agreement], Some(agreement.id), now)
            })
            .collect();
        let offers = self.db().read(move |tx| {
            let mut offers = Vec::with_capacity(requests.len());
            for request in requests {
                let state = match request.preview(tx)? {
                    PurchaseOutcome::Bought { until, .. } => OfferState::Bought(until),
                    PurchaseOutcome::Owned | PurchaseOutcome::ToBuy { .. } => {
                        OfferState::Available
                    }
                    PurchaseOutcome::Order { recorded, .. } => OfferState::Order(recorded),
                    PurchaseOutcome::Exhausted => continue,
                };
                let agreements = request.agreements().iter().cloned();
                offers.extend(agreements.map(|agreement| AgreementOffer { agreement, state }));
            }
            Ok(offers)
        });
        Ok(offers.await?)
    }
}
