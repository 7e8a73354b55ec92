//! Orders: downloads and purchases under agreements, and reports on their use.

use jiff::Timestamp;
use model::account::{AgreementType, LicensePeriod, Money, OrderStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::KnownCaller;
use crate::answer::Json;
use crate::body::{JsonBody, NoBody};
use crate::endpoint::Section;
use crate::{endpoint, property};

/// Most orders that one request lists.
pub const ORDERS_LISTED_MAX: usize = 10_000;
/// Longest text on an invoice, in characters.
pub const INVOICE_TEXT_CHARS_MAX: usize = 2000;
/// Number of orders that a request lists without `size`.
pub const ORDERS_SIZE_DEFAULT: usize = 20;

const SECTION: Section = Section {
    name: "Orders",
    description: "Downloads and orders under agreements, and reports on their use.",
};

endpoint! {
    /// Orders, newest first.
    ///
    /// The caller's orders; an administrator gets those of the whole organization. Service accounts are not supported.
    #[derive(PartialEq, Eq)]
    #[serde(default)]
    ListOrders: GET "/user/v1/order", "getOrder", KnownCaller, NoBody => Json<Orders> {
        /// The maximum number of orders.
        #[schemars(range(max = ORDERS_LISTED_MAX))]
        pub size: usize,
        /// The number of orders to skip.
        #[schemars(range(max = u32::MAX))]
        pub start: u32,
        /// Orders that have been approved, rejected or reported, or the others.
        #[serde(with = "property::Word")]
        #[schemars(schema_with = "property::words::<OrderStatus>")]
        pub status: OrderStatus,
    }
}

impl Default for ListOrders {
    fn default() -> Self {
        Self { size: ORDERS_SIZE_DEFAULT, start: 0, status: OrderStatus::All }
    }
}

endpoint! {
    /// An order.
    ///
    /// An order that the caller can list. Service accounts are not supported.
    LoadOrder: GET "/user/v1/order/{id}", "getOrderById", KnownCaller, NoBody => Json<Order>, NotFound {
        /// The id of the order.
        pub id: i64,
    }

    /// Approve or reject an order, or report its use.
    ///
    /// Under Direct and Normal agreements `approve` decides whether the item can be downloaded; under others it says whether the
    /// item was used. An order is decided or reported once; after that the error is `order_already_reported`.
    UpdateOrder: PUT "/user/v1/order/{id}", "updateOrder", KnownCaller, JsonBody<OrderUpdate> => Json<Order>, NotFound {
        /// The id of the order.
        pub id: i64,
    }
}

/// The orders.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Orders {
    pub orders: Vec<Order>,
}

/// The order.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub id: i64,
    pub item: OrderedItem,
    pub price: OrderPrice,
    pub invoice_text: Option<String>,
    pub created: Timestamp,
    /// Until then it can be downloaded free of charge.
    pub downloadable_until: Timestamp,
    pub reporting_deadline: Option<Timestamp>,
    /// The time of the approval, rejection or report.
    pub reported: Option<Timestamp>,
    /// True if it was approved, or reported as used.
    pub approved: Option<bool>,
    /// True if the agency handles the order manually.
    pub manual: bool,
}

/// The item of an order, as it was when it was ordered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderedItem {
    pub uri: String,
    pub headline: String,
    pub byline: String,
    pub source: String,
}

/// The price of an order, and the agreement under which it was placed.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderPrice {
    pub name: String,
    pub description: Option<String>,
    pub license: License,
    pub agreement: OrderAgreement,
}

/// The agreement under which an item was ordered.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderAgreement {
    pub id: i64,
    pub name: Option<String>,
    #[serde(rename = "type")]
    #[schemars(schema_with = "property::words::<AgreementType>")]
    pub kind: AgreementType,
    /// Present if only administrators of the organization can approve the order.
    pub approver: Option<OrderApprover>,
}

/// The users who approve the orders of an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderApprover {
    Admin,
}

/// A licence of a pricelist.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct License {
    /// Absent until the licence of an order is chosen.
    pub uuid: Option<Uuid>,
    #[serde(default)]
    #[schemars(schema_with = "property::optional_words::<LicensePeriod>")]
    pub period: Option<LicensePeriod>,
    pub volume: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "property::amount")]
    pub price: Option<Money>,
    pub description: Option<String>,
    pub product: LicensedProduct,
}

impl License {
    /// The licence of an order whose licence is not chosen yet.
    pub fn of_product(product: LicensedProduct) -> Self {
        Self { uuid: None, period: None, volume: None, price: None, description: None, product }
    }
}

/// The product that a licence is for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LicensedProduct {
    pub name: String,
    pub description: String,
    pub code: String,
}

/// The decision or report.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend(
    "if" = { "properties": { "approve": { "const": true } }, "required": ["approve"] },
    "then" = { "required": ["license"] },
))]
pub struct OrderUpdate {
    pub approve: bool,
    /// A licence from the item's pricelist; required if `approve` is true.
    pub license: Option<ChosenLicense>,
    /// The text on the invoice.
    #[schemars(length(max = INVOICE_TEXT_CHARS_MAX), regex(pattern = property::LINES))]
    pub invoice_text: Option<String>,
}

/// A licence of a pricelist. Its other properties may be sent too, and are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenLicense {
    pub uuid: Uuid,
}
