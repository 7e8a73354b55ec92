//! Quotes for archives of several items: the items that an archive would contain, and the cost of each.
//!
//! A quote renders and records nothing. It decides in the same way as [`Media::bundle`], so that an archive that
//! is requested right after it contains the same items at the same cost.

use std::sync::Arc;

use super::bundle::{BundleOutcome, Exclusion, ExclusionCause};
use super::{CatalogEntry, Media, MediaCaller, facts};
use crate::access::orders::PurchaseQuote;
use crate::runtime::error::{Error, Result};
use model::ItemKey;
use model::account::AgreementId;

/// The quote for one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemQuote {
    pub key: ItemKey,
    /// Codes of the item's products, by which its licences are found; empty if it is not visible.
    pub codes: Vec<String>,
    pub state: QuoteState,
    /// The pictures that an archive would contain with a text, and the cost of each.
    pub bundled: Vec<BundledQuote>,
}

/// The quote for an item that is bought with a different item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledQuote {
    pub key: ItemKey,
    pub purchase: PurchaseQuote,
}

/// The decision whether an archive would contain an item, and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuoteState {
    /// The agreements of the caller decide.
    Purchase(PurchaseQuote),
    /// The item is left out, whatever the agreements say.
    LeftOut(ExclusionCause),
}

impl QuoteState {
    /// Returns whether the item would be delivered.
    pub fn delivers(&self) -> bool {
        matches!(self, Self::Purchase(PurchaseQuote::Bought { .. } | PurchaseQuote::Buys(_)))
    }

    /// Returns the agreement under which a purchase would be recorded; `None` if the item costs nothing now.
    pub fn payer(&self) -> Option<AgreementId> {
        match self {
            Self::Purchase(purchase) => purchase.payer(),
            Self::LeftOut(_) => None,
        }
    }
}

impl ItemQuote {
    /// Lists the agreements under which purchases would be recorded, for the item and for its bundled pictures.
    pub fn payers(&self) -> impl Iterator<Item = (&ItemKey, AgreementId)> {
        let own = self.state.payer().map(|payer| (&self.key, payer));
        let bundled =
            self.bundled.iter().filter_map(|quote| Some((&quote.key, quote.purchase.payer()?)));
        own.into_iter().chain(bundled)
    }
}

impl Media {
    /// Quotes an archive of the items `keys` for `caller`, in their order: prepaid downloads are assigned to
    /// the items one after the other. Records nothing.
    ///
    /// Fails as [`Media::bundle`] does, except that a quote without any deliverable item is no error.
    pub async fn quote(
        &self,
        keys: &[ItemKey],
        caller: MediaCaller<'_>,
    ) -> Result<Vec<ItemQuote>> {
        let buyer = caller.buyer()?;
        let found = self.find_readable(keys, caller).await?;
        let mut outcomes = Vec::with_capacity(found.len());
        for entry in &found {
            // One after the other, because the limits count the items already selected.
            outcomes.push(self.select_item(entry.clone(), &outcomes, caller).await?);
        }
        let mut priced: Vec<&Arc<CatalogEntry>> = Vec::new();
        for (entry, outcome) in found.iter().zip(&outcomes) {
            if exclusion(outcome).is_none() {
                priced.extend(entry.as_ref());
                priced.extend(outcome.bundled());
            }
        }
        let items: Vec<_> = priced.iter().map(|entry| facts(entry)).collect();
        let purchases = self.inner.orders.quote_all(buyer, &items).await?;
        let mut purchases = purchases.into_iter();
        let mut next = || purchases.next().ok_or_else(|| Error::internal("no quote"));
        let mut quotes = Vec::with_capacity(keys.len());
        for ((key, entry), outcome) in keys.iter().zip(&found).zip(&outcomes) {
            let mut bundled = Vec::new();
            let state = match exclusion(outcome) {
                Some(excluded) => QuoteState::LeftOut(excluded.cause),
                None => {
                    let own = next()?;
                    for entry in outcome.bundled() {
                        bundled.push(BundledQuote { key: entry.key.clone(), purchase: next()? });
                    }
                    QuoteState::Purchase(own)
                }
            };
            // A text that is left out after all is quoted without its pictures.
            if !state.delivers() {
                bundled.clear();
            }
            let codes = entry.as_ref().map(|entry| facts(entry).codes()).unwrap_or_default();
            quotes.push(ItemQuote { key: key.clone(), codes, state, bundled });
        }
        Ok(quotes)
    }
}

/// Returns the reason for leaving an item out if the reason does not depend on the agreements of the caller.
fn exclusion(outcome: &BundleOutcome) -> Option<&Exclusion> {
    match outcome {
        BundleOutcome::Included(_) => None,
        // The item would use no prepaid download, and the quote says which agreement would deliver it.
        BundleOutcome::Excluded(excluded) => {
            (excluded.cause != ExclusionCause::Agreement).then_some(excluded)
        }
    }
}
