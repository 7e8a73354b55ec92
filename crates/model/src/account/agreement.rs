//! Agreements and the products that they cover (contract purchases-1).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AgreementId, OrganizationId, ProductId};

/// How downloads under an agreement are paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgreementType {
    /// Delivers at once, without limit.
    Subscription,
    /// Every download is an order, delivered once it is reported as approved under a licence.
    Direct,
    /// Every download is an order, delivered once it is reported as approved under a licence.
    Normal,
    /// Delivers at once, a number of downloads.
    Prepaid,
}

impl AgreementType {
    /// Every type, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Subscription, Self::Direct, Self::Normal, Self::Prepaid];

    /// The name in documents and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subscription => "Subscription",
            Self::Direct => "Direct",
            Self::Normal => "Normal",
            Self::Prepaid => "Prepaid",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Who may approve the orders under an agreement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Approver {
    /// The user who ordered, and administrators of the organization (contract purchases-14).
    #[default]
    Owner,
    /// Administrators of the organization alone.
    Admin,
}

impl Approver {
    /// The word in the accounts file and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
        }
    }

    /// The approver of that word.
    #[must_use]
    pub fn find(word: &str) -> Option<Self> {
        [Self::Owner, Self::Admin].into_iter().find(|approver| approver.as_str() == word)
    }

    /// The word as it is stored, where it is not the default.
    #[must_use]
    pub fn stored(self) -> Option<&'static str> {
        (self != Self::default()).then(|| self.as_str())
    }
}

/// A product, which items and agreements name by its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Its number.
    pub id: ProductId,
    /// Its code, such as `FOTO`.
    pub code: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Downloads of a prepaid agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepaidDownloads {
    /// Bought.
    pub total: u32,
    /// Left.
    pub remaining: u32,
}

/// An agreement of an organization. It serializes as in `GET /user/v1/user`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agreement {
    /// Its number.
    pub id: AgreementId,
    /// Whose it is.
    #[serde(skip)]
    pub organization: OrganizationId,
    /// How downloads are paid.
    #[serde(rename = "type")]
    pub kind: AgreementType,
    /// Whether it covers every item; then it overrides any agreement of type Subscription.
    pub super_agreement: bool,
    /// What it covers.
    pub products: Vec<Product>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Downloads bought and left; `Prepaid` agreements only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepaids: Option<PrepaidDownloads>,
}

impl Agreement {
    /// Whether the agreement is in force at `now`.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}
