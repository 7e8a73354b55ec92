//! Stores orders, which are purchases and their usage reports, and reads licences (contract purchases-11).
//!
//! A row contains copies of the agreement, product and licence at the time when it was written.

use jiff::Timestamp;

use super::accounts::read_product;
use super::{ReadTx, WriteTx, key_text, optional_time, parse, parse_json, print_json, time};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use api::orders::ORDERS_LISTED_MAX;
use model::ItemKey;
use model::account::{
    AgreementId, License, Order, OrderAgreement, OrderId, OrderStatus, OrganizationId, Product,
    UserId,
};

/// Users of a changed agreement that the account log names; with more, caches are cleared as a whole.
const USERS_LOGGED_MAX: usize = 50;

/// An order under which an item may be downloaded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOrder {
    pub downloadable_until: Timestamp,
    /// True if the download was approved; `None` while undecided.
    pub approved: Option<bool>,
}

/// The orders to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrdersOf {
    /// The orders of a user for its current organization. Orders for a different organization belong to that
    /// one.
    User {
        id: UserId,
        /// The organization that the user belongs to now.
        organization: OrganizationId,
    },
    /// The orders of all users of the organization.
    Organization(OrganizationId),
}

impl OrdersOf {
    /// Returns a condition on the user `?1`, with the values of `?1` and of the organization, `?2`.
    fn condition(self) -> (&'static str, i64, i64) {
        match self {
            // Both conditions use `?1`, so that the statements have the same parameters.
            Self::User { id, organization } => ("user_id = ?1", id.0, organization.0),
            Self::Organization(id) => ("?1 = 0", 0, id.0),
        }
    }
}

/// A report on the use of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// True if the item was used.
    pub approved: bool,
    /// The licence under which it was used.
    pub license: Option<License>,
    /// The text for the invoice.
    pub invoice_text: Option<String>,
    /// The time of the report.
    pub at: Timestamp,
    /// Minimum end of the download period of an item that this report approves.
    pub until: Timestamp,
}

/// The columns that [`read_order`] reads.
const ORDER_COLUMNS: &str = "order_id, organization_id, user_id, media_type, item_id, headline, \
     byline, source, agreement, product, license, created_ms, downloadable_until_ms, \
     reporting_deadline_ms, reported_ms, approved, manual, invoice_text, \
     (SELECT approver FROM agreements \
         WHERE agreements.agreement_id = orders.agreement_id) AS approver";

fn read_order(row: &dyn ResultRow) -> DbResult<Order> {
    let id: OrderId = row.get("order_id")?;
    let what = format!("order {id}");
    let mut agreement: OrderAgreement = parse_json(&what, row.text("agreement")?)?;
    // The default approver is not stored.
    if let Some(word) = row.get::<Option<String>>("approver")? {
        agreement.approver = parse(&what, &word)?;
    }
    let license: Option<String> = row.get("license")?;
    Ok(Order {
        id,
        organization: row.get("organization_id")?,
        user: row.get("user_id")?,
        item: parse(&what, &key_text(row, "item_id")?)?,
        headline: row.get("headline")?,
        byline: row.get("byline")?,
        source: row.get("source")?,
        agreement,
        product: parse_json(&what, row.text("product")?)?,
        license: license.map(|text| parse_json(&what, &text)).transpose()?,
        created: time(&what, row.get("created_ms")?)?,
        downloadable_until: time(&what, row.get("downloadable_until_ms")?)?,
        reporting_deadline: optional_time(&what, row.get("reporting_deadline_ms")?)?,
        reported: optional_time(&what, row.get("reported_ms")?)?,
        approved: row.get("approved")?,
        manual: row.get("manual")?,
        invoice_text: row.get("invoice_text")?,
    })
}

impl ReadTx<'_> {
    /// Finds the order under which the organization may download `item` again at `now`, for the agreement
    /// `agreement`.
    pub fn find_live_order(
        &self,
        organization: OrganizationId,
        item: &ItemKey,
        agreement: AgreementId,
        now: Timestamp,
    ) -> DbResult<Option<LiveOrder>> {
        let sql = "SELECT downloadable_until_ms, approved FROM orders
             WHERE organization_id = ?1 AND media_type = ?2 AND item_id = ?3
                 AND agreement_id = ?4 AND downloadable_until_ms > ?5
             ORDER BY downloadable_until_ms DESC LIMIT 1";
        let ItemKey { media_type, id } = item;
        let values = params![organization, media_type, id, agreement, now];
        self.tx.find(sql, values, |row| {
            let what = format!("order of {item}");
            Ok(LiveOrder {
                downloadable_until: time(&what, row.get("downloadable_until_ms")?)?,
                approved: row.get("approved")?,
            })
        })
    }

    /// Returns whether one of these orders, under `agreement` if given, still permits downloading `item` at
    /// `now`, with its approval if one is required.
    pub fn has_delivering_order(
        &self,
        of: OrdersOf,
        item: &ItemKey,
        agreement: Option<AgreementId>,
        now: Timestamp,
    ) -> DbResult<bool> {
        let (owner, user, organization) = of.condition();
        let (under, agreement) = match agreement {
            Some(AgreementId(id)) => ("agreement_id = ?6", id),
            None => ("?6 = 0", 0),
        };
        let ItemKey { media_type, id } = item;
        // A manual order delivers only once it is approved (contract purchases-3).
        let sql = format!(
            "SELECT downloadable_until_ms FROM orders
                 WHERE {owner} AND organization_id = ?2 AND media_type = ?3 AND item_id = ?4
                     AND downloadable_until_ms > ?5 AND {under} AND (NOT manual OR approved)
                 LIMIT 1"
        );
        self.tx.exists(&sql, params![user, organization, media_type, id, now, agreement])
    }

    /// Finds the order that permits downloading `item` the longest, under the conditions of
    /// [`ReadTx::has_delivering_order`].
    pub fn find_delivering_order(
        &self,
        of: OrdersOf,
        item: &ItemKey,
        now: Timestamp,
    ) -> DbResult<Option<Order>> {
        let (owner, user, organization) = of.condition();
        let ItemKey { media_type, id } = item;
        let sql = format!(
            "SELECT {ORDER_COLUMNS} FROM orders
                 WHERE {owner} AND organization_id = ?2 AND media_type = ?3 AND item_id = ?4
                     AND downloadable_until_ms > ?5 AND (NOT manual OR approved)
                 ORDER BY downloadable_until_ms DESC LIMIT 1"
        );
        self.tx.find(&sql, params![user, organization, media_type, id, now], read_order)
    }

    /// Lists the products under which `item` was ordered and can still be reported, as they were at that
    /// time; at most [`ORDERS_LISTED_MAX`].
    pub fn list_products_to_report(&self, of: OrdersOf, item: &ItemKey) -> DbResult<Vec<Product>> {
        let (owner, user, organization) = of.condition();
        let ItemKey { media_type, id } = item;
        let sql = format!(
            "SELECT product FROM orders
             WHERE {owner} AND organization_id = ?2 AND media_type = ?3 AND item_id = ?4
                 AND reported_ms IS NULL
             ORDER BY order_id LIMIT ?5"
        );
        let values = params![user, organization, media_type, id, ORDERS_LISTED_MAX];
        let what = format!("order of {item}");
        self.tx.list(&sql, values, |row| parse_json(&what, row.text("product")?))
    }

    /// Returns the remaining downloads of the agreement; 0 if it is not prepaid or does not exist.
    pub fn prepaid_remaining(&self, agreement: AgreementId) -> DbResult<u32> {
        let sql = "SELECT prepaid_remaining FROM agreements WHERE agreement_id = ?1";
        let found: Option<Option<u32>> = self.tx.find_value(sql, params![agreement])?;
        Ok(found.flatten().unwrap_or(0))
    }

    /// Finds the first of `codes` that is the code of a product.
    pub fn first_known_product(&self, codes: &[String]) -> DbResult<Option<Product>> {
        let sql = "SELECT product_id, code, name, description FROM products WHERE code = ?1";
        for code in codes {
            let product = self.tx.find(sql, params![code], read_product)?;
            if product.is_some() {
                return Ok(product);
            }
        }
        Ok(None)
    }

    /// Lists the licences of the products with these codes, in the order of the codes and then in the order
    /// in which they were added.
    pub fn list_licenses_of_products(&self, codes: &[String]) -> DbResult<Vec<License>> {
        let sql = "SELECT product_id, code, name, products.description,
                 uuid, period, volume, price, licenses.description AS license_description
             FROM licenses JOIN products USING (product_id)
             WHERE code = ?1 ORDER BY licenses.rowid";
        let mut licenses = Vec::new();
        for code in codes {
            licenses.extend(self.tx.list(sql, params![code], read_license)?);
        }
        Ok(licenses)
    }

    /// Lists all licences in the order in which they were added.
    pub fn list_stored_licenses(&self) -> DbResult<Vec<License>> {
        let sql = "SELECT product_id, code, name, products.description,
                 uuid, period, volume, price, licenses.description AS license_description
             FROM licenses JOIN products USING (product_id) ORDER BY licenses.rowid";
        self.tx.list(sql, params![], read_license)
    }

    /// Lists `size` orders after the `start` newest ones, newest first.
    pub fn list_orders(
        &self,
        of: OrdersOf,
        status: OrderStatus,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<Order>> {
        let (owner, user, organization) = of.condition();
        let status = match status {
            OrderStatus::Reported => "AND reported_ms IS NOT NULL",
            OrderStatus::Unreported => "AND reported_ms IS NULL",
            OrderStatus::All => "",
        };
        let sql = format!(
            "SELECT {ORDER_COLUMNS} FROM orders
                 WHERE {owner} AND organization_id = ?2 {status}
                 ORDER BY order_id DESC LIMIT ?3 OFFSET ?4"
        );
        self.tx.list(&sql, params![user, organization, size, start], read_order)
    }

    /// Lists the `size` newest orders of `item` by the organization, newest first. Omits refused orders.
    pub fn list_orders_of_item(
        &self,
        organization: OrganizationId,
        item: &ItemKey,
        size: usize,
    ) -> DbResult<Vec<Order>> {
        let ItemKey { media_type, id } = item;
        let sql = format!(
            "SELECT {ORDER_COLUMNS} FROM orders
                 WHERE organization_id = ?1 AND media_type = ?2 AND item_id = ?3
                     AND (NOT manual OR approved IS NULL OR approved)
                 ORDER BY order_id DESC LIMIT ?4"
        );
        self.tx.list(&sql, params![organization, media_type, id, size], read_order)
    }

    /// Finds the order with that number.
    pub fn find_order(&self, id: OrderId) -> DbResult<Option<Order>> {
        let sql = format!("SELECT {ORDER_COLUMNS} FROM orders WHERE order_id = ?1");
        self.tx.find(&sql, params![id], read_order)
    }
}

fn read_license(row: &dyn ResultRow) -> DbResult<License> {
    let uuid: String = row.get("uuid")?;
    let what = format!("licence {uuid}");
    let period: Option<String> = row.get("period")?;
    let period = period.map(|name| parse(&what, &name));
    let price: Option<String> = row.get("price")?;
    let price = price.map(|text| parse(&what, &text));
    Ok(License {
        uuid: parse(&what, &uuid)?,
        product: read_product(row)?,
        period: period.transpose()?,
        volume: row.get("volume")?,
        price: price.transpose()?,
        description: row.get("license_description")?,
    })
}

impl WriteTx<'_> {
    /// Stores a new order and returns its number. The number in `order` is ignored.
    pub fn insert_order(&self, order: &Order) -> DbResult<OrderId> {
        let what = format!("order of {}", order.item);
        let license = order.license.as_ref();
        let license = license.map(|license| print_json(&what, license)).transpose()?;
        let sql =
            "INSERT INTO orders (organization_id, user_id, agreement_id, media_type, item_id,
                 headline, byline, source, agreement, product, license, created_ms,
                 downloadable_until_ms, reporting_deadline_ms, reported_ms, approved, manual,
                 invoice_text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                 ?17, ?18)
             RETURNING order_id";
        let values = params![
            order.organization,
            order.user,
            order.agreement.id,
            order.item.media_type,
            order.item.id,
            order.headline,
            order.byline,
            order.source,
            print_json(&what, &order.agreement)?,
            print_json(&what, &order.product)?,
            license,
            order.created,
            order.downloadable_until,
            order.reporting_deadline,
            order.reported,
            order.approved,
            order.manual,
            order.invoice_text,
        ];
        self.tx.load_value(sql, values)
    }

    /// Deducts one download from a prepaid agreement and logs the change of its users' accounts. Returns
    /// `false` if none is left.
    pub fn take_prepaid(&self, agreement: AgreementId, now: Timestamp) -> DbResult<bool> {
        // The condition prevents concurrent downloads from going below zero (contract purchases-5).
        let sql = "UPDATE agreements SET prepaid_remaining = prepaid_remaining - 1
             WHERE agreement_id = ?1 AND prepaid_remaining > 0";
        if !self.tx.changes(sql, params![agreement])? {
            return Ok(false);
        }
        // Caches hold the remaining downloads with the account of each user of the agreement.
        let sql = "SELECT user_id FROM user_agreements WHERE agreement_id = ?1";
        let users: Vec<UserId> = self.tx.list_values(sql, params![agreement])?;
        // Beyond the limit, one row that clears all caches costs less than a row per user.
        if users.len() > USERS_LOGGED_MAX {
            self.log_account_change(AccountChange::Everything, now)?;
            return Ok(true);
        }
        for user in users {
            self.log_account_change(AccountChange::User(user), now)?;
        }
        Ok(true)
    }

    /// Reports an order. The download period of an order that needed approval, if it is the newest of its
    /// item, begins with the approval: the customer does not pay for the time of waiting. Returns `false` if
    /// the order was reported before or does not exist.
    pub fn report_order(&self, id: OrderId, report: &UsageReport) -> DbResult<bool> {
        let what = format!("order {id}");
        let license = report.license.as_ref();
        let license = license.map(|license| print_json(&what, license)).transpose()?;
        // Of two concurrent reports, only one changes the row (contract purchases-14).
        let sql = "UPDATE orders AS this SET approved = ?2, license = ?3, invoice_text = ?4,
                 reported_ms = ?5, downloadable_until_ms = CASE
                     WHEN ?2 AND manual AND downloadable_until_ms < ?6 AND NOT EXISTS (
                         SELECT 1 FROM orders AS later
                         WHERE later.organization_id = this.organization_id
                             AND later.media_type = this.media_type
                             AND later.item_id = this.item_id
                             AND later.agreement_id = this.agreement_id
                             AND later.order_id > this.order_id)
                     THEN ?6
                     ELSE downloadable_until_ms END
             WHERE order_id = ?1 AND reported_ms IS NULL";
        let UsageReport { approved, invoice_text, at, until, .. } = report;
        self.tx.changes(sql, params![id, approved, license, invoice_text, at, until])
    }
}
