//! Selects items by query, products and agreements, and computes the items that a caller may see.

use jiff::Timestamp;

use crate::access::auth::Principal;
use crate::runtime::error::{Error, Result};
use crate::storage::search::Coverage;
use model::account::{Agreement, AgreementId};
use model::item::Document;
use query::Query;

/// The selection of items by `q`, `p` and `agr`, shared by searches, streams and notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSelection {
    pub query: Query,
    /// Product codes, of which an item must have at least one; empty for no restriction.
    pub products: Vec<String>,
    /// Product codes that an item must not have.
    pub products_excluded: Vec<String>,
    /// Agreements, of which at least one must cover an item; empty for all agreements of the caller.
    pub agreements: Vec<AgreementId>,
}

impl ItemSelection {
    /// Creates the selection with the product codes of `p`. A code with the prefix `-` is excluded.
    ///
    /// Returns `None` if a `-` has no code after it.
    pub fn new(query: Query, codes: &[&str], agreements: Vec<AgreementId>) -> Option<Self> {
        let excluded = codes.iter().filter_map(|code| code.strip_prefix('-'));
        let products_excluded = distinct(excluded);
        // A lone `-` is a typing error. Ignoring it would show items that the caller meant to exclude.
        if products_excluded.iter().any(String::is_empty) {
            return None;
        }
        let included = codes.iter().filter(|code| !code.starts_with('-'));
        let products = distinct(included.copied());
        Some(Self { query, products, products_excluded, agreements })
    }
}

fn distinct<'a>(codes: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut codes: Vec<String> = codes.map(|code| code.trim().to_owned()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Returns the first of `requested` that is not an agreement of the caller.
///
/// Callers treat it as an error, because a search that ignored it would look like a search without matches
/// (contract search-2).
pub fn unknown_agreement(
    caller: Option<&Principal>,
    requested: &[AgreementId],
) -> Option<AgreementId> {
    let own = caller.map(Principal::agreements).unwrap_or_default();
    requested.iter().copied().find(|id| !own.iter().any(|agreement| agreement.id == *id))
}

/// Returns the items that the caller may see at `now`: the items that one of the agreements `requested` covers, or
/// any of the caller's agreements if `requested` is empty.
///
/// The provider's staff see all items if they name no agreement. At a public endpoint, callers without credentials
/// also see all items.
pub fn coverage(
    caller: Option<&Principal>,
    requested: &[AgreementId],
    now: Timestamp,
) -> Coverage {
    let Some(caller) = caller else { return Coverage::Everything };
    if requested.is_empty() && caller.is_provider() {
        return Coverage::Everything;
    }
    covered(caller.agreements(), requested, now)
}

pub(super) fn covered(own: &[Agreement], requested: &[AgreementId], now: Timestamp) -> Coverage {
    let mut codes = Vec::new();
    for agreement in own.iter().filter(|agreement| agreement.is_in_force(now)) {
        if !requested.is_empty() && !requested.contains(&agreement.id) {
            continue;
        }
        // A super agreement covers every item, regardless of the products in it.
        if agreement.super_agreement {
            return Coverage::Everything;
        }
        codes.extend(agreement.products.iter().map(|product| product.code.as_str()));
    }
    Coverage::Products(distinct(codes.into_iter()))
}

/// Returns whether `coverage` includes a document.
pub fn covers(coverage: &Coverage, document: &Document) -> bool {
    match coverage {
        Coverage::Everything => true,
        Coverage::Products(codes) => {
            let mut of_document = document.texts("product", "code");
            of_document.any(|code| codes.iter().any(|covered| covered == code))
        }
    }
}

/// Fails unless the caller may see commissioned items: with admin privileges (contract search-5), or as the
/// provider's staff.
pub fn may_see_commissioned(caller: Option<&Principal>) -> Result<()> {
    let Some(caller) = caller else {
        return Err(Error::unauthenticated());
    };
    if caller.sees_commissioned() { Ok(()) } else { caller.require_admin() }
}
