//! Which items are meant, and which of them a caller may see.

use jiff::Timestamp;

use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::search::Coverage;
use model::account::{Agreement, AgreementId};
use model::item::Document;
use query::Query;

/// Which items are meant: `q`, `p` and `agr`, which searches, streams and notifications share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSelection {
    /// The query.
    pub query: Query,
    /// Product codes of which an item has one; empty: whatever it has.
    pub products: Vec<String>,
    /// Product codes of which an item has none.
    pub products_excluded: Vec<String>,
    /// Agreements of which one covers an item; empty: any of the caller's.
    pub agreements: Vec<AgreementId>,
}

impl ItemSelection {
    /// The selection with the product codes of `p`, of which those behind a `-` are excluded.
    ///
    /// Nothing where a `-` has no code behind it.
    #[must_use]
    pub fn new(query: Query, codes: &[&str], agreements: Vec<AgreementId>) -> Option<Self> {
        let excluded = codes.iter().filter_map(|code| code.strip_prefix('-'));
        let products_excluded = distinct(excluded);
        if products_excluded.iter().any(String::is_empty) {
            return None;
        }
        let wanted = codes.iter().filter(|code| !code.starts_with('-'));
        let products = distinct(wanted.copied());
        Some(Self { query, products, products_excluded, agreements })
    }
}

fn distinct<'a>(codes: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut codes: Vec<String> = codes.map(|code| code.trim().to_owned()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The first of `wanted` that is no agreement of the caller.
///
/// A search that ignored such a number would look like one that found nothing (contract search-2).
#[must_use]
pub fn unknown_agreement(
    caller: Option<&Principal>,
    wanted: &[AgreementId],
) -> Option<AgreementId> {
    let own = caller.map(Principal::agreements).unwrap_or_default();
    wanted.iter().copied().find(|id| !own.iter().any(|agreement| agreement.id == *id))
}

/// What the caller may see at `now`: what one of `wanted` covers, of all its agreements where none
/// is named.
///
/// Who works for the provider, and names no agreement, sees everything; so does anybody without
/// credentials, where something is open to everybody.
#[must_use]
pub fn coverage(caller: Option<&Principal>, wanted: &[AgreementId], now: Timestamp) -> Coverage {
    let Some(caller) = caller else { return Coverage::Everything };
    if wanted.is_empty() && caller.is_provider() {
        return Coverage::Everything;
    }
    covered(caller.agreements(), wanted, now)
}

pub(super) fn covered(own: &[Agreement], wanted: &[AgreementId], now: Timestamp) -> Coverage {
    let counts =
        |one: &&Agreement| one.is_in_force(now) && (wanted.is_empty() || wanted.contains(&one.id));
    if own.iter().filter(counts).any(|one| one.super_agreement) {
        return Coverage::Everything;
    }
    let products = own.iter().filter(counts).flat_map(|one| &one.products);
    Coverage::Products(distinct(products.map(|product| product.code.as_str())))
}

/// Whether a document is among what may be seen.
#[must_use]
pub fn covers(coverage: &Coverage, document: &Document) -> bool {
    match coverage {
        Coverage::Everything => true,
        Coverage::Products(codes) => {
            document.texts("product", "code").any(|code| codes.iter().any(|one| one == code))
        }
    }
}

/// Fails unless the caller may see commissioned items: with admin privileges (contract search-5),
/// or working for the provider.
pub fn may_see_commissioned(caller: Option<&Principal>) -> Result<()> {
    let unknown = || Error::new(ErrorKind::Unauthenticated, "Unauthorized");
    let caller = caller.ok_or_else(unknown)?;
    if caller.sees_commissioned() { Ok(()) } else { caller.require_admin() }
}
