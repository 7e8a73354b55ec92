//! `/account/orders`: lists purchases, approves or rejects them, and reports their use.

use axum::{extract::Path, http::StatusCode};
use minijinja::{context, value::Serde};

use super::{
    ApiRefusal, FormFields, ListPage, MemberForm, MemberRequest, PageError, PageResult,
    SiteRequest, form_errors, form_refusal, not_found, status_of, unless_refused,
};
use crate::http::form::see_other;
use crate::http::site::item_links::ItemLinks;
use crate::runtime::error::Result;
use api::orders::{
    ChosenLicense, ListOrders, LoadOrder, ORDERS_SIZE_DEFAULT, Order, OrderUpdate, UpdateOrder,
};
use api::organization::LoadOrganization;
use model::account::{AgreementType, OrderId, OrderStatus};

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, &["status"], ORDERS_SIZE_DEFAULT)?;
    let status = member.query.variant("status")?.unwrap_or(OrderStatus::All);
    let request =
        ListOrders { size: list_page.size_with_next(), start: list_page.start_u32(), status };
    let mut orders = member.ask(&request).await?.orders;
    let pager = list_page.paginate(&mut orders);
    let context = context! {
        orders => Serde(orders),
        status => <&str>::from(status),
        start => list_page.start,
        pager,
    };
    member.page("account/orders.html", context)
}

pub(super) async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    page(&member, parse_id(&id)?, None).await
}

/// `POST /account/orders/{id}`: approves or rejects the order, or reports its use.
pub(super) async fn report(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let id = parse_id(&id)?;
    let outcome = match parse_report(&posted.form) {
        Ok(report) => posted.send(&UpdateOrder { id }, &report).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(order) => Ok(see_other(&format!("/account/orders?done={}", outcome_name(&order)))),
        Err(refusal) => page(&posted, id, Some((form_refusal(refusal)?, &posted.form))).await,
    }
}

/// Returns the name of the message about the action on the order. Agreements of the types `Direct` and `Normal`
/// need an approval before the download; under other agreements, the use is reported afterwards.
fn outcome_name(order: &Order) -> &'static str {
    match order.price.agreement.kind {
        AgreementType::Direct | AgreementType::Normal if order.approved == Some(true) => {
            "approved"
        }
        AgreementType::Direct | AgreementType::Normal => "rejected",
        AgreementType::Prepaid | AgreementType::Subscription => "reported",
    }
}

/// Builds the report from a form.
fn parse_report(form: &FormFields) -> Result<OrderUpdate, ApiRefusal> {
    let approve = form.find("approve");
    let approve =
        approve.ok_or_else(|| ApiRefusal::invalid("required", "approve", "is missing"))?;
    let approve = approve == "yes";
    // The browser sends the selected licence with either choice, but a rejected order has no licence.
    let license = match form.find("license").filter(|_| approve) {
        Some(uuid) => {
            let uuid = uuid
                .parse()
                .map_err(|_| ApiRefusal::invalid("format", "license.uuid", "is not a UUID"))?;
            Some(ChosenLicense { uuid })
        }
        None => None,
    };
    // Browsers send line breaks as CRLF.
    let invoice_text = form.find("invoiceText").map(|text| text.replace("\r\n", "\n"));
    Ok(OrderUpdate { approve, license, invoice_text })
}

async fn page(
    site: &SiteRequest,
    id: i64,
    typed: Option<(ApiRefusal, &FormFields)>,
) -> PageResult {
    let order = load(site, id).await?;
    // A reported order is final, so its page offers no licences. An item has no pricelist if it was removed or no
    // agreement covers it any more.
    let pricelist = match order.reported {
        Some(_) => None,
        None => unless_refused(site.get(ItemLinks::new(&order.item.uri).pricelist).await)?,
    };
    let organization = unless_refused(site.ask(&LoadOrganization {}).await)?;
    let may_approve = may_approve(site, &order).await?;
    let refusal = typed.as_ref().map(|(refusal, _)| refusal);
    let context = context! {
        order => Serde(order),
        currency => organization.and_then(|organization| organization.currency),
        licenses => Serde(pricelist),
        may_approve,
        again => typed.as_ref().map(|(_, form)| form.template_value()),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/order.html", context)
}

/// Returns whether the visitor may approve the order. An agreement may require an administrator other than the user who
/// ordered (contract purchases-15).
async fn may_approve(site: &SiteRequest, order: &Order) -> Result<bool> {
    if order.price.agreement.approver.is_none() {
        return Ok(true);
    }
    let Some(principal) = site.principal().await? else { return Ok(false) };
    let ordered = site.app.shared.access.orders.load(&principal, OrderId(order.id)).await?;
    let user = principal.user();
    Ok(user.access.admin && ordered.user != user.id)
}

/// Parses the id of an order in the address of its page. Fails with 404 if it is not a number.
fn parse_id(id: &str) -> Result<i64, PageError> {
    id.parse().map_err(|_| missing())
}

async fn load(site: &SiteRequest, id: i64) -> Result<Order, PageError> {
    match site.ask(&LoadOrder { id }).await {
        // The API's message is written for programs, so the page has a different one.
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Err(missing()),
        found => Ok(found?),
    }
}

fn missing() -> PageError {
    not_found("This order does not exist.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_the_form_says() {
        let parse = |form: &str| {
            let parsed = parse_report(&FormFields::parse(form).unwrap());
            parsed.map_err(|refusal| refusal.errors[0].path.clone())
        };
        assert_eq!(parse(""), Err("approve".to_owned()));
        assert_eq!(parse("approve=yes&license=a"), Err("license.uuid".to_owned()));
        let rejected = OrderUpdate { approve: false, license: None, invoice_text: None };
        assert_eq!(parse("approve=no&license=a&invoiceText=+"), Ok(rejected.clone()));
        assert_eq!(parse("approve=yes"), Ok(OrderUpdate { approve: true, ..rejected }));
        let uuid = "2c916e2d-b755-446d-9e18-d636a1447141";
        let found = parse(&format!("approve=yes&license={uuid}&invoiceText=1%0D%0A2")).unwrap();
        assert_eq!(found.license.unwrap().uuid.to_string(), uuid);
        assert_eq!(found.invoice_text.as_deref(), Some("1\n2"));
    }
}
