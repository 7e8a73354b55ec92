//! Quotes: the cost of a download of several items, which pages show before anything is bought.

use std::sync::Arc;

use jiff::Timestamp;

use super::joint_purchase::preview_all;
use super::purchase::{PurchaseOutcome, PurchaseRequest};
use super::{Buyer, ItemFacts, Orders, covering, exhausted};
use crate::runtime::error::Result;
use model::account::AgreementId;

/// The cost of a download of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurchaseQuote {
    /// An order still delivers the item, so the download costs nothing.
    Bought {
        /// The agreement of the order; `None` if it does not cover the item now.
        agreement: Option<AgreementId>,
        /// The end of the time in which the item may be downloaded, if it is known.
        until: Option<Timestamp>,
    },
    /// A purchase under this agreement would be recorded.
    Buys(AgreementId),
    /// The agreement delivers the item once an order is approved.
    Order {
        agreement: AgreementId,
        /// True if that order is recorded already.
        recorded: bool,
    },
    /// No agreement delivers the item, for this reason.
    Refused(String),
}

impl PurchaseQuote {
    /// The quote for an item that an order under a different agreement still delivers.
    const OWNED: Self = Self::Bought { agreement: None, until: None };

    /// Returns the agreement under which a purchase would be recorded, or `None` if the download costs
    /// nothing now.
    pub fn payer(&self) -> Option<AgreementId> {
        let Self::Buys(agreement) = self else { return None };
        Some(*agreement)
    }

    fn from_outcome(request: &PurchaseRequest, outcome: PurchaseOutcome) -> Self {
        match outcome {
            PurchaseOutcome::Bought { agreement, until, .. } => {
                Self::Bought { agreement: Some(agreement), until: Some(until) }
            }
            PurchaseOutcome::Owned => Self::OWNED,
            PurchaseOutcome::ToBuy { agreement } => Self::Buys(agreement),
            PurchaseOutcome::Order { agreement, recorded } => Self::Order { agreement, recorded },
            PurchaseOutcome::Exhausted => {
                Self::Refused(exhausted(&request.agreements).message().to_owned())
            }
        }
    }
}

impl Orders {
    /// Quotes each of `items` for a download of all of them by `buyer`. Earlier items may use up the last prepaid
    /// downloads. Writes nothing.
    ///
    /// Reads the database once for all items that an agreement covers.
    pub async fn quote_all(
        &self,
        buyer: Buyer<'_>,
        items: &[ItemFacts<'_>],
    ) -> Result<Vec<PurchaseQuote>> {
        let mut quotes = Vec::with_capacity(items.len());
        let mut indexes = Vec::new();
        let mut requests = Vec::new();
        for (index, item) in items.iter().enumerate() {
            // A placeholder for covered items, overwritten below.
            let mut quote = PurchaseQuote::OWNED;
            match covering(buyer, *item) {
                Ok(covering) => {
                    indexes.push(index);
                    requests.push(PurchaseRequest::new(buyer, *item, &covering));
                }
                Err(refused) => {
                    if !self.is_owned(buyer, *item).await? {
                        quote = PurchaseQuote::Refused(refused.message().to_owned());
                    }
                }
            }
            quotes.push(quote);
        }
        if requests.is_empty() {
            return Ok(quotes);
        }
        let previewed: Vec<Arc<PurchaseRequest>> = requests.clone();
        // A read of many rows must not delay short reads, so it uses the connections for searches.
        let outcomes = self.db.search(move |tx| preview_all(&previewed, tx)).await?;
        for ((index, request), outcome) in indexes.into_iter().zip(&requests).zip(outcomes) {
            quotes[index] = PurchaseQuote::from_outcome(request, outcome);
        }
        Ok(quotes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixture::{OrdersFixture, document, key, run, start};
    use super::*;
    use crate::access::auth::Principal;

    async fn quotes(
        orders: &Orders,
        user: &Principal,
        indexes: &[usize],
        agr: Option<i64>,
    ) -> Vec<String> {
        let items: Vec<_> = indexes.iter().map(|index| (key(*index), document(*index))).collect();
        let facts: Vec<_> =
            items.iter().map(|(key, document)| ItemFacts { key, document }).collect();
        let buyer = Buyer { principal: user, agr: agr.map(AgreementId), now: start() };
        let quotes = orders.quote_all(buyer, &facts).await.unwrap();
        quotes.iter().map(word).collect()
    }

    fn word(quote: &PurchaseQuote) -> String {
        match quote {
            PurchaseQuote::Bought { agreement, until } => {
                assert_eq!(agreement.is_some(), until.is_some());
                format!("bought {}", agreement.map_or(0, |agreement| agreement.0))
            }
            PurchaseQuote::Buys(agreement) => format!("buys {}", agreement.0),
            PurchaseQuote::Order { agreement, recorded } => {
                format!("order {} {recorded}", agreement.0)
            }
            PurchaseQuote::Refused(reason) => reason.clone(),
        }
    }

    #[test]
    fn each_item_is_quoted_under_the_agreement_that_would_pay_and_nothing_is_recorded() {
        run(async {
            let scene = OrdersFixture::new();
            let (orders, one, two) = (scene.orders(), scene.user(1).await, scene.user(2).await);
            let none = "No valid agreement of the user covers the item";
            assert_eq!(quotes(&orders, &one, &[0, 1, 2], None).await, ["buys 1", "buys 2", none]);
            assert_eq!(quotes(&orders, &two, &[2, 1], None).await, ["buys 6", "buys 2"]);
            let named = "Agreement 1 does not cover the item";
            assert_eq!(quotes(&orders, &one, &[0, 1], Some(1)).await, ["buys 1", named]);
            assert_eq!(quotes(&orders, &one, &[], None).await, Vec::<String>::new());
            let three = scene.user(3).await;
            assert_eq!(quotes(&orders, &three, &[0], None).await, ["order 4 false"]);
            assert_eq!((scene.remaining(1).await, scene.rows().await.len()), (3, 0));
        });
    }

    #[test]
    fn prepaid_downloads_are_counted_from_item_to_item_and_a_bought_item_takes_none() {
        run(async {
            let scene = OrdersFixture::new();
            let (orders, user) = (scene.orders(), scene.user(4).await);
            let used = "The prepaid agreement 7 is used up";
            assert_eq!(quotes(&orders, &user, &[0, 1, 0], None).await, ["buys 7", used, "buys 7"]);
            let (item, facts) = (key(1), document(1));
            let bought = ItemFacts { key: &item, document: &facts };
            let buyer = Buyer { principal: &user, agr: None, now: start() };
            orders.purchase(buyer, bought).await.unwrap();
            assert_eq!(quotes(&orders, &user, &[0, 1], None).await, [used, "bought 7"]);
        });
    }
}
