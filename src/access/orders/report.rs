//! Orders for their owners and the owners' colleagues: lists, reports on use, and the applicable licences.

use jiff::Timestamp;

use super::{Orders, coverage, product_codes};
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::DOWNLOADABLE_FOR;
use crate::storage::audit::{self, AuditAction, AuditEvent, AuditOutcome, ObjectKind};
use crate::storage::database::{DbError, OrdersOf, ReadTx, UsageReport, WriteTx};
use api::orders::{ChosenLicense, INVOICE_TEXT_CHARS_MAX, ORDERS_LISTED_MAX, OrderUpdate};
use model::ItemKey;
use model::account::{
    Agreement, Approver, License, Order, OrderId, OrderStatus, OrganizationId, Permission, Scope,
    UserId,
};
use model::item::Document;

/// Validates the properties of a report that do not depend on the order.
fn check(report: &OrderUpdate) -> Result<()> {
    if report.approve && report.license.is_none() {
        let message = "license must be supplied when approve is true";
        return Err(Error::invalid("body", "license", "required", message));
    }
    let text = report.invoice_text.as_deref().unwrap_or_default();
    if text.chars().count() > INVOICE_TEXT_CHARS_MAX {
        let message = format!("invoiceText has more than {INVOICE_TEXT_CHARS_MAX} characters");
        return Err(Error::invalid("body", "invoiceText", "maximum", message));
    }
    Ok(())
}

/// An order of an item by the organization of a caller, as all users of the organization may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemOrder {
    /// The time at which the order was placed.
    pub created: Timestamp,
    /// True if the order waits for its approval, and has delivered nothing.
    pub is_waiting: bool,
    /// True if the caller placed the order.
    pub is_own: bool,
    /// The number of the order, if the caller may see the whole order.
    pub visible: Option<OrderId>,
}

/// The data of a transaction that records a report.
struct ReportTransaction {
    id: OrderId,
    report: OrderUpdate,
    owner: OrderVisibility,
    caller: UserId,
    is_admin: bool,
    has_admin_scope: bool,
    agreements: Vec<Agreement>,
    event: AuditEvent,
    now: Timestamp,
}

/// The orders that a caller sees: its own orders, and with the access level `admin` all orders of the
/// organization (contract purchases-12). A token without the scope `admin`, of a client whose scopes are
/// enforced, hides the orders of the organization.
#[derive(Clone, Copy)]
pub(super) struct OrderVisibility {
    own_orders: OrdersOf,
    organization_orders: Option<OrdersOf>,
}

impl OrderVisibility {
    /// Determines which orders `principal` sees.
    pub(super) fn new(principal: &Principal) -> Self {
        let user = principal.user();
        // Agreements belong to organizations: a user without an organization has bought nothing.
        let organization = user.organization.unwrap_or(OrganizationId(0));
        let sees_all = user.access.admin && principal.allows(Permission::OrganizationOrders);
        let all = user.organization.filter(|_| sees_all);
        let own_orders = OrdersOf::User { id: user.id, organization };
        Self { own_orders, organization_orders: all.map(OrdersOf::Organization) }
    }

    /// Returns the largest set of orders that the caller sees.
    pub(super) fn all_visible(self) -> OrdersOf {
        self.organization_orders.unwrap_or(self.own_orders)
    }

    fn is_visible(self, order: &Order) -> bool {
        is_among(order, self.own_orders)
            || self.organization_orders.is_some_and(|orders| is_among(order, orders))
    }
}

fn is_among(order: &Order, orders: OrdersOf) -> bool {
    match orders {
        OrdersOf::User { id, organization } => {
            order.user == id && order.organization == organization
        }
        OrdersOf::Organization(id) => order.organization == id,
    }
}

impl Orders {
    /// Lists `size` of the orders that `principal` sees, newest first, after skipping `start`; at most
    /// [`ORDERS_LISTED_MAX`].
    pub async fn list(
        &self,
        principal: &Principal,
        start: usize,
        size: usize,
        status: OrderStatus,
    ) -> Result<Vec<Order>> {
        let visible = OrderVisibility::new(principal).all_visible();
        let size = size.min(ORDERS_LISTED_MAX);
        Ok(self.db.read(move |tx| tx.list_orders(visible, status, start, size)).await?)
    }

    /// Lists the `size` newest orders of `item` by the organization of `principal`, newest first, without
    /// refused orders.
    ///
    /// Colleagues learn only that an item is bought; agreement and price are for users who see the order.
    pub async fn of_item(
        &self,
        principal: &Principal,
        item: &ItemKey,
        size: usize,
    ) -> Result<Vec<ItemOrder>> {
        let user = principal.user();
        let Some(organization) = user.organization else { return Ok(Vec::new()) };
        let visibility = OrderVisibility::new(principal);
        let item = item.clone();
        let found =
            self.db.read(move |tx| tx.list_orders_of_item(organization, &item, size)).await?;
        let orders = found.iter().map(|order| ItemOrder {
            created: order.created,
            is_waiting: order.manual && order.approved.is_none(),
            is_own: order.user == user.id,
            visible: visibility.is_visible(order).then_some(order.id),
        });
        Ok(orders.collect())
    }

    /// Loads the order `id`.
    ///
    /// Fails with [`ErrorKind::NotFound`] if `principal` sees no such order.
    pub async fn load(&self, principal: &Principal, id: OrderId) -> Result<Order> {
        let visibility = OrderVisibility::new(principal);
        let found = self.db.read(move |tx| tx.find_order(id)).await?;
        found.filter(|order| visibility.is_visible(order)).ok_or_else(|| missing(id))
    }

    /// Reports the order `id`, once.
    ///
    /// Fails with [`ErrorKind::NotFound`] if `principal` sees no such order; with `admin_required`,
    /// `insufficient_scope` or `second_person_required` if it approves an order that only another administrator may
    /// approve; with `order_already_reported`; with a validation error if `approve` has no licence; and with
    /// `license_not_applicable` if the licence is not in the item's pricelist.
    pub async fn report(
        &self,
        principal: &Principal,
        id: OrderId,
        report: OrderUpdate,
        now: Timestamp,
    ) -> Result<Order> {
        check(&report)?;
        let owner = OrderVisibility::new(principal);
        let agreements = principal.agreements().to_vec();
        let caller = principal.user().id;
        let is_admin = principal.user().access.admin;
        let has_admin_scope = principal.scopes().contains(Scope::Admin);
        let action =
            if report.approve { AuditAction::OrderReported } else { AuditAction::OrderRefused };
        let event = audit::event(action).with_object(ObjectKind::Order, id);
        let reporting = ReportTransaction {
            id,
            report,
            owner,
            caller,
            is_admin,
            has_admin_scope,
            agreements,
            event,
            now,
        };
        // Not by `Auth::write`: a report changes no account.
        self.db.write(move |tx| reporting.record(tx)).await?
    }

    /// Lists the product codes of the orders of `item` that `principal` can still report.
    pub async fn codes_to_report(
        &self,
        principal: &Principal,
        item: &ItemKey,
    ) -> Result<Vec<String>> {
        let visible = OrderVisibility::new(principal).all_visible();
        let item = item.clone();
        let products = self.db.read(move |tx| tx.list_products_to_report(visible, &item)).await?;
        Ok(products.into_iter().map(|product| product.code).collect())
    }

    /// Lists the licences under which `principal` could report the use of an item at `now`. `codes` has the
    /// product codes of the item, and `ordered` the product codes of its orders.
    pub async fn pricelist(
        &self,
        principal: &Principal,
        codes: &[String],
        ordered: Vec<String>,
        now: Timestamp,
    ) -> Result<Vec<License>> {
        let mut codes = coverage::covered_codes(principal.agreements(), codes, now);
        for code in ordered {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        Ok(self.db.read(move |tx| tx.list_licenses_of_products(&codes)).await?)
    }
}

fn missing(id: OrderId) -> Error {
    Error::new(ErrorKind::NotFound, format!("no order {id}"))
}

impl ReportTransaction {
    /// Records the report in one transaction; a refusal changes no order.
    fn record(self, tx: &WriteTx<'_>) -> Result<Result<Order>, DbError> {
        let id = self.id;
        let found = tx.find_order(id)?.filter(|order| self.owner.is_visible(order));
        let Some(order) = found else { return Ok(Err(missing(id))) };
        // Checked in the transaction, so that one of two concurrent reports is refused (contract
        // purchases-14).
        if order.reported.is_some() {
            let message = format!("order {id} is already reported");
            return Ok(Err(Error::invalid_with_code(
                "path",
                "id",
                "order_already_reported",
                message,
            )));
        }
        if let Some(refusal) = self.approval_refusal(&order) {
            let code = refusal.details().first().map_or("", |detail| &detail.error_code);
            let event = self.event.clone().with_outcome(AuditOutcome::Refused).with_detail(code);
            // The refusal is committed with the audit log.
            tx.write_audit(&event)?;
            return Ok(Err(refusal));
        }
        let license = match self.license(tx, &order)? {
            Ok(license) => license,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let OrderUpdate { approve: approved, invoice_text, .. } = self.report;
        // An order that needs approval is downloadable from its approval on, which may come late.
        let until = self.now.checked_add(DOWNLOADABLE_FOR).unwrap_or(Timestamp::MAX);
        let detail = match &license {
            Some(license) => format!("{} under license {}", order.item, license.uuid),
            None => order.item.to_string(),
        };
        let reported = UsageReport { approved, license, invoice_text, at: self.now, until };
        tx.report_order(id, &reported)?;
        tx.write_audit(&self.event.clone().with_detail(detail))?;
        Ok(tx.find_order(id)?.ok_or_else(|| missing(id)))
    }

    /// Returns the reason why the caller may not approve the order; `None` if it may, or approves nothing.
    ///
    /// An agreement that asks for an administrator asks for a second person, and for one who logged in: a key has
    /// no scope `admin` (contract purchases-15).
    fn approval_refusal(&self, order: &Order) -> Option<Error> {
        match order.agreement.approver {
            Approver::Admin if self.report.approve => {}
            Approver::Admin | Approver::Owner => return None,
        }
        if !self.is_admin {
            let message =
                "Only administrators of the organization approve orders of this agreement";
            return Some(Error::forbidden("admin_required", message));
        }
        if !self.has_admin_scope {
            return Some(Error::insufficient_scope(Scope::Admin.as_str()));
        }
        if order.user == self.caller {
            let message = "Another administrator has to approve your own order of this agreement";
            return Some(Error::forbidden("second_person_required", message));
        }
        None
    }

    /// Returns the licence of the report, which must be in the item's pricelist; `None` if nothing is
    /// approved.
    ///
    /// If the agreement ended between the purchase and its report, the licences of the bought product stay
    /// applicable (contract purchases-10).
    fn license(&self, tx: &ReadTx<'_>, order: &Order) -> Result<Result<Option<License>>, DbError> {
        // A refused order is not licensed.
        let chosen = self.report.license.as_ref().filter(|_| self.report.approve);
        let Some(ChosenLicense { uuid }) = chosen else { return Ok(Ok(None)) };
        let item = tx.find_item(&order.item)?;
        // A withdrawn item has no codes; the product of its order is added below (contract
        // purchases-10).
        let document = item.and_then(|item| Document::from_stored(&item.document).ok());
        let codes = document.map(|document| product_codes(&document)).unwrap_or_default();
        let mut codes = coverage::covered_codes(&self.agreements, &codes, self.now);
        if !codes.contains(&order.product.code) {
            codes.push(order.product.code.clone());
        }
        let licenses = tx.list_licenses_of_products(&codes)?;
        let found = licenses.into_iter().find(|license| license.uuid == *uuid);
        Ok(found.map(Some).ok_or_else(|| {
            let message = format!("license {uuid} is not in the pricelist of {}", order.item);
            Error::invalid_with_code("body", "license.uuid", "license_not_applicable", message)
        }))
    }
}
