//! Joint purchases: either all of several purchases are recorded, or none is.
//!
//! Separate purchases could use the last downloads of a prepaid agreement for an archive that is then not
//! delivered.

use std::{collections::HashMap, sync::Arc};

use super::purchase::{PurchaseOutcome, PurchaseRequest, Taken};
use super::{
    Buyer, CoverageDecision, ItemFacts, Orders, cost_changed, is_subscription, recording_error,
    require_recordable,
};
use crate::runtime::error::Result;
use crate::storage::database::{DbError, ReadTx, WriteTx};
use model::ItemKey;
use model::account::AgreementId;

/// The agreement that pays for each item to be bought, as the buyer confirmed. Other items must cost nothing.
pub type ConfirmedPayers = HashMap<ItemKey, AgreementId>;

/// Returns the outcomes of the requests one after the other, without recording them. Repeated requests for an
/// item have the outcome of the first request.
pub(super) fn preview_all(
    requests: &[Arc<PurchaseRequest>],
    tx: &ReadTx<'_>,
) -> Result<Vec<PurchaseOutcome>, DbError> {
    let mut taken = Taken::new();
    let mut previewed: HashMap<&ItemKey, PurchaseOutcome> = HashMap::new();
    let mut outcomes = Vec::with_capacity(requests.len());
    for request in requests {
        let outcome = match previewed.get(&request.item) {
            // An item is bought once, so a repeated request uses up no further prepaid download.
            Some(outcome) => *outcome,
            None => request.preview_after(tx, &mut taken)?,
        };
        previewed.insert(&request.item, outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

impl Orders {
    /// Decides for each of `items` whether `buyer` may download it, assuming that it also downloads the items
    /// before it: prepaid downloads are limited. Writes nothing.
    ///
    /// The result has an entry for each item, which fails as [`Orders::check`] does.
    pub async fn check_all(
        &self,
        buyer: Buyer<'_>,
        items: &[ItemFacts<'_>],
    ) -> Result<Vec<Result<CoverageDecision>>> {
        let mut decisions = Vec::new();
        let mut indexes = Vec::new();
        let mut requests = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let payers = self.payers(buyer, *item).await;
            // A Subscription uses up no download, but records an order.
            if let Ok(Some(covering)) = &payers
                && (buyer.principal.is_read_only()
                    || !covering.first().is_some_and(is_subscription))
            {
                indexes.push(index);
                requests.push(PurchaseRequest::new(buyer, *item, covering));
            }
            // For the items of `requests` a placeholder, overwritten below.
            decisions.push(payers.map(|_| CoverageDecision::Delivers));
        }
        if requests.is_empty() {
            return Ok(decisions);
        }
        let previewed = requests.clone();
        let outcomes = self.db.read(move |tx| preview_all(&previewed, tx)).await?;
        for ((index, request), outcome) in indexes.into_iter().zip(&requests).zip(&outcomes) {
            let decision = self.cache_and_decide(request, outcome);
            decisions[index] = require_recordable(buyer, outcome).and(decision);
        }
        Ok(decisions)
    }

    /// Records that `buyer` downloads all of `items`.
    ///
    /// Fails as [`Orders::purchase`] does, but then records nothing, not even an order: an agreement may have
    /// changed since the items were checked. With `confirmed` also fails with [`ErrorKind::Stale`] if the
    /// purchase differs from the confirmed purchase, which the recording transaction decides.
    ///
    /// [`ErrorKind::Stale`]: crate::runtime::error::ErrorKind::Stale
    pub async fn purchase_all(
        &self,
        buyer: Buyer<'_>,
        items: &[ItemFacts<'_>],
        confirmed: Option<Arc<ConfirmedPayers>>,
    ) -> Result<()> {
        let mut requests = Vec::new();
        for item in items {
            if let Some(covering) = self.payers(buyer, *item).await? {
                requests.push(PurchaseRequest::new(buyer, *item, &covering));
            }
        }
        if requests.is_empty() {
            return Ok(());
        }
        if buyer.principal.is_read_only() {
            let previewed = requests.clone();
            let outcomes = self.db.read(move |tx| preview_all(&previewed, tx)).await?;
            outcomes.iter().try_for_each(|outcome| require_recordable(buyer, outcome))?;
        }
        let recorded = requests.clone();
        let outcomes = self
            .write(move |tx| record_all(&recorded, confirmed.as_deref(), tx))
            .await
            .map_err(recording_error)?;
        let Some(outcomes) = outcomes else { return Err(cost_changed()) };
        // If one item is refused, the others were not bought either, so nothing is cached.
        if let Some(index) = outcomes.iter().position(|outcome| !delivers(outcome)) {
            return self.cache_and_decide(&requests[index], &outcomes[index])?.require_delivery();
        }
        for (request, outcome) in requests.iter().zip(&outcomes) {
            self.cache_and_decide(request, outcome)?;
        }
        Ok(())
    }
}

fn delivers(outcome: &PurchaseOutcome) -> bool {
    !matches!(outcome, PurchaseOutcome::Order { .. } | PurchaseOutcome::Exhausted)
}

/// Returns whether the outcome costs the buyer no more than was confirmed for the item.
fn is_confirmed(
    confirmed: &ConfirmedPayers,
    request: &PurchaseRequest,
    outcome: PurchaseOutcome,
) -> bool {
    match outcome {
        PurchaseOutcome::Bought { .. } | PurchaseOutcome::Owned => true,
        PurchaseOutcome::ToBuy { agreement } => confirmed.get(&request.item) == Some(&agreement),
        PurchaseOutcome::Order { .. } | PurchaseOutcome::Exhausted => false,
    }
}

/// Records all requests if all of them deliver; returns the outcomes. Records nothing and returns `None` if
/// the outcomes differ from the confirmed purchase.
fn record_all(
    requests: &[Arc<PurchaseRequest>],
    confirmed: Option<&ConfirmedPayers>,
    tx: &WriteTx<'_>,
) -> Result<Option<Vec<PurchaseOutcome>>, DbError> {
    let previewed = preview_all(requests, tx)?;
    if let Some(confirmed) = confirmed {
        let mut pairs = requests.iter().zip(&previewed);
        if !pairs.all(|(request, outcome)| is_confirmed(confirmed, request, *outcome)) {
            return Ok(None);
        }
    }
    // Refusals return `Ok` and commit, so nothing may have been written before.
    if !previewed.iter().all(delivers) {
        return Ok(Some(previewed));
    }
    let recorded: Result<Vec<_>, DbError> =
        requests.iter().map(|request| request.record(tx)).collect();
    recorded.map(Some)
}
