//! A purchase against the database: its preview, and its record in one transaction.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::coverage::{AgreementCandidate, AgreementChoice, choose, product_in_common};
use super::report::OrderVisibility;
use super::{Buyer, ItemFacts};
use crate::runtime::limits::DOWNLOADABLE_FOR;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{DbError, OrdersOf, ReadTx, WriteTx};
use model::ItemKey;
use model::account::{
    Agreement, AgreementId, AgreementType, Approver, Order, OrderAgreement, OrderId,
    OrganizationId, Product, ProductId, UserId,
};
use model::item::Document;

/// Time within which the use of a purchase must be reported, a month after the last free download
/// (contract purchases-11).
const REPORTABLE_FOR: Duration = Duration::from_secs(60 * 86_400);

/// The prepaid downloads that a series of requests uses up, by agreement.
pub(super) type Taken = HashMap<AgreementId, u32>;

/// A download that a caller requests, with the agreements that cover it.
#[derive(Debug)]
pub(super) struct PurchaseRequest {
    user: UserId,
    pub(super) item: ItemKey,
    codes: Vec<String>,
    headline: String,
    byline: String,
    source: String,
    /// Covering agreements, in the order in which they are used.
    pub(super) agreements: Vec<Agreement>,
    /// The orders that the caller sees.
    own_orders: OrdersOf,
    agr: Option<AgreementId>,
    /// The audit event of the order, attributed to the caller.
    event: AuditEvent,
    now: Timestamp,
}

/// The outcome of a purchase request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PurchaseOutcome {
    /// There is an order under which the item may be downloaded.
    Bought {
        /// The organization that bought the item.
        organization: OrganizationId,
        /// The agreement of the order.
        agreement: AgreementId,
        /// The end of the time in which the item may be downloaded.
        until: Timestamp,
    },
    /// A visible order under a different agreement still delivers the item.
    Owned,
    /// The item may be downloaded once an order under this agreement is written.
    ToBuy { agreement: AgreementId },
    /// An order under this agreement must be approved first.
    Order {
        agreement: AgreementId,
        /// True if that order is recorded already.
        recorded: bool,
    },
    /// All agreements are prepaid and have no downloads left.
    Exhausted,
}

impl PurchaseOutcome {
    fn bought(agreement: &Agreement, until: Timestamp) -> Self {
        Self::Bought { organization: agreement.organization, agreement: agreement.id, until }
    }

    /// Returns whether nothing has to be written.
    pub(super) fn is_recorded(self) -> bool {
        match self {
            Self::Bought { .. } | Self::Owned | Self::Exhausted => true,
            Self::ToBuy { .. } => false,
            Self::Order { recorded, .. } => recorded,
        }
    }
}

impl PurchaseRequest {
    pub(super) fn new(
        buyer: Buyer<'_>,
        item: ItemFacts<'_>,
        covering: &[&Agreement],
    ) -> Arc<Self> {
        let Buyer { principal, agr, now } = buyer;
        Arc::new(Self {
            user: principal.user().id,
            item: item.key.clone(),
            codes: item.codes(),
            // An order stores these texts, because the item may change or be withdrawn later.
            headline: text_or_empty(item.document, "headline"),
            byline: text_or_empty(item.document, "byline"),
            source: text_or_empty(item.document, "source"),
            agreements: covering.iter().copied().cloned().collect(),
            own_orders: OrderVisibility::new(principal).all_visible(),
            agr,
            event: audit::event(AuditAction::OrderCreated).by_user(principal.user()),
            now,
        })
    }

    /// Returns the outcome of the request in the present state of the database.
    pub(super) fn preview(&self, tx: &ReadTx<'_>) -> Result<PurchaseOutcome, DbError> {
        self.preview_after(tx, &mut Taken::new())
    }

    /// Returns the outcome if the downloads in `taken` are used up already; adds the download of this
    /// request.
    pub(super) fn preview_after(
        &self,
        tx: &ReadTx<'_>,
        taken: &mut Taken,
    ) -> Result<PurchaseOutcome, DbError> {
        let Some(choice) = self.choose(tx, taken)? else { return Ok(PurchaseOutcome::Owned) };
        Ok(match choice {
            AgreementChoice::Free(agreement, live) => {
                PurchaseOutcome::bought(agreement, live.downloadable_until)
            }
            AgreementChoice::Buy(agreement) => {
                if agreement.kind == AgreementType::Prepaid {
                    *taken.entry(agreement.id).or_default() += 1;
                }
                PurchaseOutcome::ToBuy { agreement: agreement.id }
            }
            AgreementChoice::Order { agreement, recorded } => {
                PurchaseOutcome::Order { agreement: agreement.id, recorded }
            }
            AgreementChoice::Exhausted => PurchaseOutcome::Exhausted,
        })
    }

    /// Decides, and writes an order if the decision needs one.
    pub(super) fn record(&self, tx: &WriteTx<'_>) -> Result<PurchaseOutcome, DbError> {
        let Some(choice) = self.choose(tx, &Taken::new())? else {
            return Ok(PurchaseOutcome::Owned);
        };
        match choice {
            AgreementChoice::Free(agreement, live) => {
                Ok(PurchaseOutcome::bought(agreement, live.downloadable_until))
            }
            AgreementChoice::Buy(agreement) => {
                if agreement.kind == AgreementType::Prepaid
                    && !tx.take_prepaid(agreement.id, self.now)?
                {
                    // Cannot happen within this transaction, which saw that a download is left.
                    return Ok(PurchaseOutcome::Exhausted);
                }
                let order = self.order(tx, agreement)?;
                self.insert(tx, &order)?;
                Ok(PurchaseOutcome::bought(agreement, order.downloadable_until))
            }
            AgreementChoice::Order { agreement, recorded } => {
                // A customer approves a single order, so a repeated request adds no order (contract
                // purchases-3).
                if !recorded {
                    self.insert(tx, &self.order(tx, agreement)?)?;
                }
                Ok(PurchaseOutcome::Order { agreement: agreement.id, recorded: true })
            }
            AgreementChoice::Exhausted => Ok(PurchaseOutcome::Exhausted),
        }
    }

    /// Chooses an agreement if the downloads in `taken` are used up already. Returns `None` if a visible order, whose
    /// agreement may have ended, still delivers the item, so that the choice would cost a download or an order in
    /// vain.
    fn choose(
        &self,
        tx: &ReadTx<'_>,
        taken: &Taken,
    ) -> Result<Option<AgreementChoice<'_>>, DbError> {
        let choice = choose(&self.candidates(tx, taken)?);
        let is_free = match choice {
            AgreementChoice::Free(..) => true,
            // A Subscription costs nothing, and records its downloads.
            AgreementChoice::Buy(agreement) => agreement.kind == AgreementType::Subscription,
            AgreementChoice::Order { .. } | AgreementChoice::Exhausted => false,
        };
        let is_owned = !is_free
            && tx.has_delivering_order(self.own_orders, &self.item, self.agr, self.now)?;
        Ok((!is_owned).then_some(choice))
    }

    fn insert(&self, tx: &WriteTx<'_>, order: &Order) -> Result<(), DbError> {
        let id = tx.insert_order(order)?;
        let kind = order.agreement.kind.as_str();
        let detail = format!("{} under {kind} agreement {}", order.item, order.agreement.id);
        tx.write_audit(&self.event.clone().with_object(ObjectKind::Order, id).with_detail(detail))
    }

    fn candidates(
        &self,
        tx: &ReadTx<'_>,
        taken: &Taken,
    ) -> Result<Vec<AgreementCandidate<'_>>, DbError> {
        let mut candidates = Vec::with_capacity(self.agreements.len());
        for agreement in &self.agreements {
            let id = agreement.id;
            let live = tx.find_live_order(agreement.organization, &self.item, id, self.now)?;
            let remaining = match agreement.kind {
                // Read in this transaction: concurrent downloads must not use up more than are left (contract
                // purchases-5).
                AgreementType::Prepaid => {
                    let used = taken.get(&id).copied().unwrap_or_default();
                    tx.prepaid_remaining(id)?.saturating_sub(used)
                }
                AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal => 0,
            };
            candidates.push(AgreementCandidate { agreement, live, remaining });
        }
        Ok(candidates)
    }

    /// Creates the order for a purchase under `agreement`.
    fn order(&self, tx: &ReadTx<'_>, agreement: &Agreement) -> Result<Order, DbError> {
        Ok(Order {
            id: OrderId(0),
            organization: agreement.organization,
            user: self.user,
            item: self.item.clone(),
            headline: self.headline.clone(),
            byline: self.byline.clone(),
            source: self.source.clone(),
            agreement: OrderAgreement {
                id: agreement.id,
                name: agreement.name.clone(),
                kind: agreement.kind,
                // The approver is not stored with the order: the agreement decides when the order
                // is reported.
                approver: Approver::default(),
            },
            product: self.product(tx, agreement)?,
            license: None,
            created: self.now,
            downloadable_until: after(self.now, DOWNLOADABLE_FOR),
            reporting_deadline: Some(after(self.now, REPORTABLE_FOR)),
            reported: None,
            approved: None,
            // These orders wait for the customer, who approves or rejects them.
            manual: matches!(agreement.kind, AgreementType::Direct | AgreementType::Normal),
            invoice_text: None,
        })
    }

    /// Returns the product as which the item is bought.
    ///
    /// For a super agreement that lists none of the item's products, this is the item's own product, or else
    /// the first product of the agreement, or else a product with the name of the agreement (contract
    /// purchases-9).
    fn product(&self, tx: &ReadTx<'_>, agreement: &Agreement) -> Result<Product, DbError> {
        if let Some(product) = product_in_common(agreement, &self.codes) {
            return Ok(product.clone());
        }
        if let Some(product) = tx.first_known_product(&self.codes)? {
            return Ok(product);
        }
        if let Some(product) = agreement.products.first() {
            return Ok(product.clone());
        }
        Ok(Product {
            id: ProductId(0),
            code: String::new(),
            name: agreement.name.clone(),
            description: None,
        })
    }
}

fn text_or_empty(document: &Document, name: &str) -> String {
    document.text(name).unwrap_or_default().to_owned()
}

/// Returns the time `duration` after `now`, saturating.
fn after(now: Timestamp, duration: Duration) -> Timestamp {
    now.checked_add(duration).unwrap_or(Timestamp::MAX)
}
