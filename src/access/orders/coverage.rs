//! Rules of coverage: the agreements that cover an item, the order in which they are used, and the
//! consequence of using each. Pure functions, without database or clock.

use jiff::Timestamp;

use crate::storage::database::LiveOrder;
use model::account::{Agreement, AgreementId, AgreementType, Product};

/// Returns whether one of `agreements` covers an item with these product codes at `now`, so that a search
/// finds it.
pub fn any_covers(agreements: &[Agreement], codes: &[String], now: Timestamp) -> bool {
    agreements.iter().any(|agreement| covers(agreement, codes, now))
}

/// Returns whether `agreement` covers an item with these product codes at `now`. An expired agreement covers
/// nothing.
pub fn covers(agreement: &Agreement, codes: &[String], now: Timestamp) -> bool {
    agreement.is_in_force(now)
        && (agreement.super_agreement || product_in_common(agreement, codes).is_some())
}

/// Returns the elements of `agreements` that cover an item with these product codes at `now`, in the order in
/// which they are used. With `agr`, returns only that agreement.
///
/// A super agreement of type Subscription comes first. Other Subscriptions come before Prepaid agreements,
/// and Prepaid agreements before Direct and Normal agreements. Ties are ordered by number (contract
/// purchases-2).
pub fn covering<'a>(
    agreements: &'a [Agreement],
    codes: &[String],
    agr: Option<AgreementId>,
    now: Timestamp,
) -> Vec<&'a Agreement> {
    let mut covering: Vec<&Agreement> = agreements
        .iter()
        .filter(|agreement| agr.is_none_or(|id| id == agreement.id))
        .filter(|agreement| covers(agreement, codes, now))
        .collect();
    covering.sort_by_key(|agreement| (rank(agreement), agreement.id));
    covering
}

fn rank(agreement: &Agreement) -> u8 {
    match agreement.kind {
        AgreementType::Subscription if agreement.super_agreement => 0,
        AgreementType::Subscription => 1,
        AgreementType::Prepaid => 2,
        AgreementType::Direct | AgreementType::Normal => 3,
    }
}

/// A covering agreement with its state in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreementCandidate<'a> {
    pub agreement: &'a Agreement,
    /// The order of this item under the agreement, if there is a valid one.
    pub live: Option<LiveOrder>,
    /// Downloads left; 0 unless the agreement is of type Prepaid.
    pub remaining: u32,
}

/// The choice among covering agreements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgreementChoice<'a> {
    /// The agreement delivers, under an existing order.
    Free(&'a Agreement, LiveOrder),
    /// The agreement delivers once an order is written, which uses up a download of a Prepaid agreement.
    Buy(&'a Agreement),
    /// The agreement delivers once an order is approved.
    Order {
        /// The agreement of the order.
        agreement: &'a Agreement,
        /// True if that order is recorded already.
        recorded: bool,
    },
    /// All agreements are prepaid and have no downloads left.
    Exhausted,
}

/// Chooses among `candidates`, which have the order of [`covering`].
///
/// A Subscription always delivers. Next is an earlier purchase under any agreement, so that a repeated
/// download never costs anything; then a Prepaid agreement with a download left; then an order.
pub fn choose<'a>(candidates: &[AgreementCandidate<'a>]) -> AgreementChoice<'a> {
    let subscription = candidates
        .iter()
        .find(|candidate| candidate.agreement.kind == AgreementType::Subscription);
    if let Some(AgreementCandidate { agreement, live, .. }) = subscription {
        // A Subscription costs nothing extra, but its downloads are recorded once, too.
        return live.map_or(AgreementChoice::Buy(agreement), |live| {
            AgreementChoice::Free(agreement, live)
        });
    }
    if let Some(bought) = candidates.iter().find_map(AgreementCandidate::bought) {
        return bought;
    }
    let with_downloads =
        candidates.iter().find(|candidate| candidate.is_prepaid() && candidate.remaining > 0);
    if let Some(candidate) = with_downloads {
        return AgreementChoice::Buy(candidate.agreement);
    }
    match candidates.iter().find(|candidate| !candidate.is_prepaid()) {
        Some(AgreementCandidate { agreement, live, .. }) => {
            AgreementChoice::Order { agreement, recorded: live.is_some() }
        }
        None => AgreementChoice::Exhausted,
    }
}

impl<'a> AgreementCandidate<'a> {
    fn is_prepaid(&self) -> bool {
        self.agreement.kind == AgreementType::Prepaid
    }

    /// Returns the choice of the existing order, if the item may be downloaded again under it.
    fn bought(&self) -> Option<AgreementChoice<'a>> {
        let live = self.live?;
        let delivers = match self.agreement.kind {
            AgreementType::Subscription | AgreementType::Prepaid => true,
            // An order that awaits approval, or was reported as not used, delivers nothing
            // (contract purchases-3).
            AgreementType::Direct | AgreementType::Normal => live.approved == Some(true),
        };
        delivers.then_some(AgreementChoice::Free(self.agreement, live))
    }
}

/// Returns the product under which `agreement` covers an item with these codes: the item's first product that
/// is also a product of the agreement.
pub fn product_in_common<'a>(agreement: &'a Agreement, codes: &[String]) -> Option<&'a Product> {
    codes.iter().find_map(|code| agreement.products.iter().find(|product| product.code == *code))
}

/// Returns the product codes of an item that agreements in force at `now` cover, in the item's order and
/// without duplicates.
pub fn covered_codes(agreements: &[Agreement], codes: &[String], now: Timestamp) -> Vec<String> {
    let mut covered: Vec<String> = Vec::new();
    for code in codes {
        let single = std::slice::from_ref(code);
        let is_covered = agreements.iter().any(|agreement| covers(agreement, single, now));
        if is_covered && !covered.contains(code) {
            covered.push(code.clone());
        }
    }
    covered
}
