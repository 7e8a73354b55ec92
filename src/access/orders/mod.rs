//! Purchases: decides whether a caller may download an item under an agreement, and records orders (contract
//! purchases-4, access-15).
//!
//! [`Orders::check`] decides and writes nothing; [`Orders::purchase`] records. Rights come from the principal
//! each time. Only past purchases are cached in memory, so that a repeated download touches no disk.

pub mod coverage;
mod joint_purchase;
mod offers;
mod purchase;
mod quotes;
mod read_access;
mod report;
mod statistics;
pub mod view;

use std::sync::Arc;

use jiff::Timestamp;
use moka::sync::Cache;

pub use joint_purchase::ConfirmedPayers;
pub use offers::{AgreementOffer, OfferState};
pub use quotes::PurchaseQuote;
pub use report::ItemOrder;
pub use statistics::{DayRange, StatisticsRequest, downloads_as_csv};

use crate::access::auth::{Auth, AuthMethod, Principal};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{Db, DbError, WriteTx};
use model::ItemKey;
use model::account::{Agreement, AgreementId, AgreementType, OrganizationId};
use model::item::Document;
use purchase::{PurchaseOutcome, PurchaseRequest};

/// Purchases cached in memory, so that a repeated download reads no disk; one takes 200 bytes.
const PURCHASES_CACHED_MAX: u64 = 100_000;

/// A caller who reads or buys items.
#[derive(Clone, Copy, Debug)]
pub struct Buyer<'a> {
    pub principal: &'a Principal,
    /// The agreement to buy under; `None`: any agreement of the caller.
    pub agr: Option<AgreementId>,
    pub now: Timestamp,
}

/// The properties of an item that purchases need.
#[derive(Clone, Copy, Debug)]
pub struct ItemFacts<'a> {
    pub key: &'a ItemKey,
    pub document: &'a Document,
}

impl ItemFacts<'_> {
    /// Returns the codes of the item's products.
    pub fn codes(&self) -> Vec<String> {
        product_codes(self.document)
    }
}

fn product_codes(document: &Document) -> Vec<String> {
    document.texts("product", "code").map(str::to_owned).collect()
}

/// The decision for a caller with a covering agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverageDecision {
    /// The item is delivered once the purchase is recorded.
    Delivers,
    /// Nothing is delivered until an order under this agreement is approved.
    OrderRequired(AgreementId),
}

impl CoverageDecision {
    /// Fails with `order_required` if nothing is delivered yet.
    pub fn require_delivery(self) -> Result<()> {
        let Self::OrderRequired(agreement) = self else { return Ok(()) };
        let message = format!("Agreement {agreement} delivers only approved orders");
        Err(Error::forbidden("order_required", message))
    }
}

/// Checks and records purchases. Cheap to clone.
#[derive(Clone)]
pub struct Orders {
    db: Db,
    auth: Option<Auth>,
    /// The time until which a bought item may be downloaded again. Orders are never removed and approved
    /// orders stay approved, so an entry stays valid unless the database loses rows.
    bought: Cache<PurchaseKey, Timestamp>,
}

/// Key of the purchase cache: the buyer, the agreement and the item.
type PurchaseKey = (OrganizationId, AgreementId, ItemKey);

impl Orders {
    /// Creates the purchases over `db`. `auth` invalidates its caches when a purchase changes an account; a
    /// command that serves no requests passes `None`.
    pub fn new(db: Db, auth: Option<Auth>) -> Self {
        Self { db, auth, bought: Cache::new(PURCHASES_CACHED_MAX) }
    }

    /// Clears the cache of purchases, after the database has lost rows.
    pub fn clear_cache(&self) {
        self.bought.invalidate_all();
    }

    /// Returns the database that holds the orders.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Decides whether `buyer` may download `item`. Writes nothing; under a Subscription it reads nothing either.
    /// An order that still delivers the item suffices, even if a different agreement covers it now.
    ///
    /// Fails with `agreement_required` if neither an agreement nor an order delivers the item, and with `read_only` if
    /// credentials that change nothing would record an order.
    pub async fn check(&self, buyer: Buyer<'_>, item: ItemFacts<'_>) -> Result<CoverageDecision> {
        self.check_all(buyer, &[item]).await?.remove(0)
    }

    /// Returns whether `buyer` may download `item` under a Subscription.
    pub fn is_subscribed(&self, buyer: Buyer<'_>, item: ItemFacts<'_>) -> bool {
        buyer.principal.method() == AuthMethod::Operator
            || covering(buyer, item)
                .is_ok_and(|covering| covering.first().is_some_and(is_subscription))
    }

    /// Records that `buyer` downloads `item`. Idempotent: an existing order is not recorded again.
    ///
    /// Fails with `agreement_required`; with `order_required` after an order was recorded that is not
    /// approved yet; with `read_only` if credentials that change nothing would record an order; with
    /// [`ErrorKind::Unavailable`] if nothing can be recorded. Deliver the item only after `Ok`.
    pub async fn purchase(&self, buyer: Buyer<'_>, item: ItemFacts<'_>) -> Result<()> {
        let Some(covering) = self.payers(buyer, item).await? else { return Ok(()) };
        let request = PurchaseRequest::new(buyer, item, &covering);
        let preview_request = Arc::clone(&request);
        // A read does not acquire the write lock, and an earlier order makes the write unnecessary.
        let previewed =
            self.db.read(move |tx| preview_request.preview(tx)).await.map_err(recording_error)?;
        require_recordable(buyer, &previewed)?;
        let outcome = if previewed.is_recorded() {
            previewed
        } else {
            let record_request = Arc::clone(&request);
            // The preview may be stale, so the write transaction decides again.
            self.write(move |tx| record_request.record(tx)).await.map_err(recording_error)?
        };
        self.cache_and_decide(&request, &outcome)?.require_delivery()
    }

    /// Returns the agreements that cover `item`, under which a purchase may have to be recorded. Returns `None` if
    /// the item is delivered without a purchase: under an earlier order, or to the operator, who is no customer.
    async fn payers<'a>(
        &self,
        buyer: Buyer<'a>,
        item: ItemFacts<'_>,
    ) -> Result<Option<Vec<&'a Agreement>>> {
        if buyer.principal.method() == AuthMethod::Operator {
            return Ok(None);
        }
        let covering = match covering(buyer, item) {
            Ok(covering) => covering,
            // An order still delivers an item that no agreement covers any more (contract purchases-4).
            Err(refused) => {
                let is_owned = self.is_owned(buyer, item).await?;
                return if is_owned { Ok(None) } else { Err(refused) };
            }
        };
        let is_bought = self.is_bought(&covering, item.key, buyer.now);
        Ok((!is_bought).then_some(covering))
    }

    async fn write<T, F>(&self, write: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, DbError> + Send + 'static,
    {
        match &self.auth {
            Some(auth) => auth.write(write).await,
            None => self.db.write(write).await,
        }
    }

    /// Returns whether the cache has a purchase of the item under one of `covering`.
    fn is_bought(&self, covering: &[&Agreement], item: &ItemKey, now: Timestamp) -> bool {
        covering.iter().any(|agreement| {
            let key = (agreement.organization, agreement.id, item.clone());
            self.bought.get(&key).is_some_and(|until| until > now)
        })
    }

    /// Caches a purchase, and returns the decision for the caller.
    fn cache_and_decide(
        &self,
        request: &PurchaseRequest,
        outcome: &PurchaseOutcome,
    ) -> Result<CoverageDecision> {
        match *outcome {
            PurchaseOutcome::Bought { organization, agreement, until } => {
                let key = (organization, agreement, request.item.clone());
                self.bought.insert(key, until);
                Ok(CoverageDecision::Delivers)
            }
            // Not cached: `ToBuy` is not recorded yet, and `Owned` is an order under an agreement that is not
            // part of the request.
            PurchaseOutcome::Owned | PurchaseOutcome::ToBuy { .. } => {
                Ok(CoverageDecision::Delivers)
            }
            PurchaseOutcome::Order { agreement, .. } => {
                Ok(CoverageDecision::OrderRequired(agreement))
            }
            PurchaseOutcome::Exhausted => Err(exhausted(&request.agreements)),
        }
    }
}

/// Fails with `read_only` if `outcome` needs an order and the credentials of `buyer` change nothing.
fn require_recordable(buyer: Buyer<'_>, outcome: &PurchaseOutcome) -> Result<()> {
    if outcome.is_recorded() { Ok(()) } else { buyer.principal.require_write() }
}

fn is_subscription(agreement: &&Agreement) -> bool {
    agreement.kind == AgreementType::Subscription
}

/// Returns the agreements of `buyer` that cover `item`, at least one. A Subscription is used alone, regardless of
/// purchases under other agreements.
fn covering<'a>(buyer: Buyer<'a>, item: ItemFacts<'_>) -> Result<Vec<&'a Agreement>> {
    let Buyer { principal, agr, now } = buyer;
    let mut covering = coverage::covering(principal.agreements(), &item.codes(), agr, now);
    if covering.first().is_some_and(is_subscription) {
        covering.truncate(1);
    }
    if covering.is_empty() { Err(coverage_error(buyer)) } else { Ok(covering) }
}

/// Creates the refusal for an item that no agreement of `buyer` covers, or not the agreement that `buyer` names.
fn coverage_error(Buyer { principal, agr, now }: Buyer<'_>) -> Error {
    let agreements = principal.agreements();
    let own = agr.and_then(|id| agreements.iter().find(|agreement| agreement.id == id));
    let message = match (agr, own) {
        (Some(id), None) => format!("The user has no agreement {id}"),
        (Some(id), Some(own)) if !own.is_in_force(now) => format!("Agreement {id} has expired"),
        (Some(id), Some(_)) => format!("Agreement {id} does not cover the item"),
        (None, _) if agreements.is_empty() => "The user has no agreement".to_owned(),
        (None, _) => "No valid agreement of the user covers the item".to_owned(),
    };
    Error::forbidden("agreement_required", message)
}

/// Creates the error for a purchase that differs from the confirmed purchase. Nothing was recorded.
pub fn cost_changed() -> Error {
    let message = "The cost has changed since it was confirmed, so nothing was bought";
    Error::new(ErrorKind::Stale, message)
}

fn exhausted(agreements: &[Agreement]) -> Error {
    let ids: Vec<String> = agreements.iter().map(|agreement| agreement.id.to_string()).collect();
    let message = format!("The prepaid agreement {} is used up", ids.join(", "));
    Error::forbidden("agreement_required", message)
}

/// Creates the error for a purchase that cannot be recorded: it did not happen, so a retry may succeed.
fn recording_error(cause: DbError) -> Error {
    // A read-only node refuses every write; a retry there is useless.
    if matches!(cause, DbError::ReadsOnly) {
        return cause.into();
    }
    Error::new(ErrorKind::Unavailable, "The purchase cannot be recorded now").with_source(cause)
}

#[cfg(test)]
mod coverage_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod several_tests;
#[cfg(test)]
mod test_fixture;
#[cfg(test)]
mod tests;
