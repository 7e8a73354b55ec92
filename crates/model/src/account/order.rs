//! Order rows and licences (contract purchases-11).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    AgreementId, AgreementType, Approver, Money, OrderId, OrganizationId, Product, UserId,
};
use crate::ItemKey;

/// The time that a licence covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LicensePeriod {
    /// Twelve months.
    Year,
    /// A month.
    Month,
    /// One use.
    Single,
}

impl LicensePeriod {
    /// Every period, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Year, Self::Month, Self::Single];

    /// The name in documents and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Year => "Year",
            Self::Month => "Month",
            Self::Single => "Single",
        }
    }

    /// The period of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.as_str() == name)
    }
}

/// A licence that a use of an item can be reported under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct License {
    /// Its name.
    pub uuid: Uuid,
    /// The product that it belongs to.
    pub product: Product,
    /// The time that it covers.
    pub period: Option<LicensePeriod>,
    /// How many uses it covers, in words.
    pub volume: Option<String>,
    /// What it costs.
    pub price: Option<Money>,
    /// What it allows.
    pub description: Option<String>,
}

/// Which orders a list holds, by whether their use was reported (contract purchases-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStatus {
    /// Those that were.
    Reported,
    /// Those that were not.
    Unreported,
    /// Both.
    All,
}

impl OrderStatus {
    /// Every status, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Reported, Self::Unreported, Self::All];

    /// The word in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Unreported => "unreported",
            Self::All => "all",
        }
    }
}

/// The agreement of an order, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderAgreement {
    /// Its number.
    pub id: AgreementId,
    /// Its name.
    pub name: Option<String>,
    /// How its downloads are paid.
    pub kind: AgreementType,
    /// Who approves its orders now.
    pub approver: Approver,
}

/// A purchase of an item under an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number.
    pub id: OrderId,
    /// Who bought.
    pub organization: OrganizationId,
    /// Whose request it was.
    pub user: UserId,
    /// What was bought.
    pub item: ItemKey,
    /// The item's headline then.
    pub headline: String,
    /// Its byline.
    pub byline: String,
    /// Its source.
    pub source: String,
    /// The agreement.
    pub agreement: OrderAgreement,
    /// The product under which the agreement covers the item.
    pub product: Product,
    /// The licence it was reported under.
    pub license: Option<License>,
    /// When it was bought.
    pub created: Timestamp,
    /// Until when downloading it again is free.
    pub downloadable_until: Timestamp,
    /// By when its use is to be reported.
    pub reporting_deadline: Option<Timestamp>,
    /// When its use was reported.
    pub reported: Option<Timestamp>,
    /// Whether the download was approved; `None` while nobody decided.
    pub approved: Option<bool>,
    /// Whether somebody at the agency has to handle the order.
    pub manual: bool,
    /// What the customer wants on the invoice.
    pub invoice_text: Option<String>,
}
