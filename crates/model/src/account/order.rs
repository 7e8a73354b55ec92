//! Order rows and licences (contract purchases-11).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{
    AgreementId, AgreementType, Approver, Money, OrderId, OrganizationId, Product, UserId,
};
use crate::ItemKey;

/// The period that a licence covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
pub enum LicensePeriod {
    Year,
    Month,
    Single,
}

crate::impl_as_str!(LicensePeriod);

/// A licence under which the use of an item can be reported, serialized as it is stored with orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct License {
    pub uuid: Uuid,
    /// The product that the licence belongs to.
    pub product: Product,
    /// The period that the licence covers.
    pub period: Option<LicensePeriod>,
    /// The number of uses that the licence covers, in words.
    pub volume: Option<String>,
    /// The price, in the organization's currency.
    pub price: Option<Money>,
    /// A description of the permitted uses.
    pub description: Option<String>,
}

/// A filter on a list of orders: orders with or without a usage report (contract purchases-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum OrderStatus {
    /// Only orders whose use was reported.
    Reported,
    /// Only orders whose use was not reported.
    Unreported,
    All,
}

/// The agreement of an order at the time of purchase, serialized as it is stored with orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderAgreement {
    pub id: AgreementId,
    pub name: Option<String>,
    /// The method of payment for downloads.
    #[serde(rename = "type")]
    pub kind: AgreementType,
    /// The present approver of orders, which is not stored with the order.
    #[serde(skip)]
    pub approver: Approver,
}

/// A purchase of an item under an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    /// The organization that bought.
    pub organization: OrganizationId,
    /// The user who made the request.
    pub user: UserId,
    /// The item that was bought.
    pub item: ItemKey,
    /// The item's headline at the time of purchase.
    pub headline: String,
    /// The item's byline at the time of purchase.
    pub byline: String,
    /// The item's source at the time of purchase.
    pub source: String,
    pub agreement: OrderAgreement,
    /// The product under which the agreement covers the item.
    pub product: Product,
    /// The licence under which its use was reported.
    pub license: Option<License>,
    /// The time of purchase.
    pub created: Timestamp,
    /// The time until which repeated downloads are free.
    pub downloadable_until: Timestamp,
    /// The time by which the use must be reported.
    pub reporting_deadline: Option<Timestamp>,
    /// The time at which the use was reported.
    pub reported: Option<Timestamp>,
    /// True if the download was approved, or reported as used; `None` while undecided.
    pub approved: Option<bool>,
    /// True if the agency has to process the order manually.
    pub manual: bool,
    /// A text from the customer for the invoice.
    pub invoice_text: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agreement_is_stored_without_its_approver() {
        let agreement = OrderAgreement {
            id: AgreementId(7),
            name: None,
            kind: AgreementType::Normal,
            approver: Approver::Admin,
        };
        let stored = json!({ "id": 7, "name": null, "type": "Normal" });
        assert_eq!(serde_json::to_value(&agreement).unwrap(), stored);
        let read: OrderAgreement = serde_json::from_value(stored).unwrap();
        assert_eq!(read, OrderAgreement { approver: Approver::Owner, ..agreement });
    }

    #[test]
    fn a_licence_is_stored_with_all_of_its_properties() {
        let stored = json!({
            "uuid": "0190a0b0-0000-7000-8000-000000000001",
            "product": { "id": 3, "code": "FOTO" },
            "period": "Year",
            "volume": null,
            "price": "1200.00",
            "description": null,
        });
        let license: License = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&license).unwrap(), stored);
    }
}
