//! Agreements and the products that they cover (contract purchases-1).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{AgreementId, OrganizationId, ProductId};

/// The method of payment for downloads under an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
pub enum AgreementType {
    /// Permits every download immediately, without a limit.
    Subscription,
    /// Refuses a download and records an order for it; the item can be downloaded once the order is approved (contract
    /// purchases-3).
    Direct,
    /// The same as `Direct`; the API contract has both names.
    Normal,
    /// Permits downloads immediately, up to the number that was bought.
    Prepaid,
}

crate::impl_as_str!(AgreementType);

/// The users who may approve orders under an agreement.
///
/// It is stored with the agreement but is no field of [`Agreement`], because only two readers need it: the operator's
/// list of agreements, and orders. Whenever an order is read, its [`OrderAgreement`](super::OrderAgreement) gets the
/// current approver of the agreement, which `access::orders` checks before an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Approver {
    /// Everyone who sees the order: the user who placed it and the organization's administrators (contract
    /// purchases-12).
    #[default]
    Owner,
    /// The organization's administrators, with the scope `admin`, except the one who placed the order (contract
    /// purchases-15).
    Admin,
}

crate::impl_as_str!(Approver);

impl Approver {
    /// Returns the word to store, or `None` for the default, which is not stored.
    pub fn stored(self) -> Option<&'static str> {
        (self != Self::default()).then(|| self.as_str())
    }
}

/// A product. Items and agreements name it by its code.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    pub id: ProductId,
    /// The code, such as `FOTO`.
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

/// The download counters of a prepaid agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PrepaidDownloads {
    pub total: u32,
    pub remaining: u32,
}

/// An agreement of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub id: AgreementId,
    /// The organization that holds the agreement.
    pub organization: OrganizationId,
    /// The method of payment for downloads.
    pub kind: AgreementType,
    /// True for a super agreement, which covers every item. Of several agreements that cover an item, a super agreement
    /// of type `Subscription` is used first (contract purchases-2).
    pub super_agreement: bool,
    /// The products that the agreement covers.
    pub products: Vec<Product>,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The time at which the agreement ends; `None` if it never ends.
    pub expires: Option<Timestamp>,
    /// The bought and the remaining downloads; only for `Prepaid` agreements.
    pub prepaids: Option<PrepaidDownloads>,
}

impl Agreement {
    /// Reports whether the agreement is in force at `now`.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}
