//! Offers: the state of each covering agreement for an item, which pages show before the download.

use std::sync::Arc;

use jiff::Timestamp;

use super::purchase::{PurchaseOutcome, PurchaseRequest};
use super::report::OrderVisibility;
use super::{Buyer, ItemFacts, Orders, coverage};
use crate::access::auth::Principal;
use crate::runtime::error::Result;
use crate::storage::database::{DbError, OrdersOf, ReadTx};
use model::ItemKey;
use model::account::Agreement;

/// An agreement and its state for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgreementOffer {
    pub agreement: Agreement,
    pub state: OfferState,
}

/// The state of an agreement for an item.
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
    /// the order in which they are used. If there is no such agreement, lists the agreement of an order that
    /// still delivers the item, which may have ended since. Writes nothing.
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
                // One request for each agreement, because the page shows the state of every agreement.
                let buyer = Buyer { principal, agr: Some(agreement.id), now };
                PurchaseRequest::new(buyer, item, &[agreement])
            })
            .collect();
        let visible = OrderVisibility::new(principal).all_visible();
        let key = item.key.clone();
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
                let agreements = request.agreements.iter().cloned();
                offers.extend(agreements.map(|agreement| AgreementOffer { agreement, state }));
            }
            if offers.is_empty() {
                offers.extend(offer_of_order(tx, visible, &key, now)?);
            }
            Ok(offers)
        });
        Ok(offers.await?)
    }
}

/// Returns the agreement of the order that delivers `item` the longest (contract purchases-4).
fn offer_of_order(
    tx: &ReadTx<'_>,
    visible: OrdersOf,
    item: &ItemKey,
    now: Timestamp,
) -> Result<Option<AgreementOffer>, DbError> {
    let Some(order) = tx.find_delivering_order(visible, item, now)? else { return Ok(None) };
    let agreement = Agreement {
        id: order.agreement.id,
        organization: order.organization,
        kind: order.agreement.kind,
        super_agreement: false,
        products: vec![order.product],
        name: order.agreement.name,
        description: None,
        expires: None,
        prepaids: None,
    };
    let state = OfferState::Bought(order.downloadable_until);
    Ok(Some(AgreementOffer { agreement, state }))
}
