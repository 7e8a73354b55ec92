//! `/account/orders`: lists purchases, approves or rejects them, and reports their use.

use axum::{extract::Path, http::StatusCode};
use minijinja::context;
use serde_json::{Map, Value, json};

use super::{
    ApiCall, ApiRefusal, FormFields, ListPage, MemberForm, MemberRequest, PageError, PageResult,
    SiteRequest, api_client, elements, find_optional, form_errors, form_refusal, item_links,
    not_found, status_of, template_value,
};
use crate::http::form::see_other;
use crate::runtime::limits::ORDERS_SIZE_DEFAULT;

const ORDERS: &str = "/user/v1/order";

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let list_page = ListPage::from_query(&member, "status", ORDERS_SIZE_DEFAULT)?;
    let mut orders = elements(member.call(&list_page.call(ORDERS)).await?, "orders");
    let pager = list_page.paginate(&mut orders);
    orders.iter_mut().for_each(add_item_links);
    let context = context! {
        orders => template_value(Value::Array(orders)),
        status => list_page.choice.1.unwrap_or("all"),
        start => list_page.start,
        pager,
    };
    member.page("account/orders.html", context)
}

/// Adds the links to an order's item.
fn add_item_links(order: &mut Value) {
    order["places"] = item_links(order["item"]["uri"].as_str().unwrap_or_default());
}

pub(super) async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    page(&member, &id, None).await
}

/// `POST /account/orders/{id}`: approves or rejects the order, or reports its use.
pub(super) async fn report(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let call = ApiCall::put(format!("{ORDERS}/{}", api_client::encode_segment(&id)))
        .json(body(&posted.form));
    match posted.call(&call).await {
        Ok(order) => Ok(see_other(&format!("/account/orders?done={}", outcome(&order)))),
        Err(refusal) => page(&posted, &id, Some((form_refusal(refusal)?, &posted.form))).await,
    }
}

/// Returns the name of the message about the action on the order. Agreements of the types `Direct` and `Normal`
/// need an approval before the download; under other agreements, the use is reported afterwards.
fn outcome(order: &Value) -> &'static str {
    match (order["price"]["agreement"]["type"].as_str(), order["approved"] == true) {
        (Some("Direct" | "Normal"), true) => "approved",
        (Some("Direct" | "Normal"), false) => "rejected",
        _ => "reported",
    }
}

/// Builds the report from a form. Missing choices are left out, so that the API reports them.
fn body(form: &FormFields) -> Value {
    let mut body = Map::new();
    let approve = form.find("approve").map(|approve| approve == "yes");
    if let Some(approve) = approve {
        body.insert("approve".to_owned(), json!(approve));
    }
    // The browser sends the selected licence with either choice, but a rejected order has no licence.
    if let Some(uuid) = form.find("license").filter(|_| approve == Some(true)) {
        body.insert("license".to_owned(), json!({ "uuid": uuid }));
    }
    if let Some(text) = form.find("invoiceText") {
        // Browsers send line breaks as CRLF.
        body.insert("invoiceText".to_owned(), json!(text.replace("\r\n", "\n")));
    }
    Value::Object(body)
}

async fn page(
    site: &SiteRequest,
    id: &str,
    typed: Option<(ApiRefusal, &FormFields)>,
) -> PageResult {
    let mut order = find(site, id).await?;
    add_item_links(&mut order);
    let pricelist = order["places"]["pricelist"].as_str().unwrap_or_default();
    // A reported order is final, so its page offers no licences. An item has no pricelist if it was removed or no
    // agreement covers it any more.
    let pricelist =
        if order["reported"].is_null() { find_optional(site, pricelist).await? } else { None };
    let organization = find_optional(site, "/user/v1/organization").await?.unwrap_or_default();
    let refusal = typed.as_ref().map(|(refusal, _)| refusal);
    let context = context! {
        order => template_value(order),
        currency => organization["currency"].as_str(),
        licenses => template_value(Value::Array(elements(pricelist.unwrap_or_default(), "licenses"))),
        again => typed.as_ref().map(|(_, form)| form.template_value()),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/order.html", context)
}

/// Loads the order `id`. Fails with 404 if `id` is not a number.
async fn find(site: &SiteRequest, id: &str) -> Result<Value, PageError> {
    // Parsing also keeps slashes and dots out of the API's path.
    let id: i64 = id.parse().map_err(|_| missing())?;
    match site.get(format!("{ORDERS}/{id}")).await {
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
    fn an_order_is_approved_or_rejected_where_the_agreement_needs_it_and_reported_elsewhere() {
        let check = |kind: &str, approved: bool, expected: &str| {
            let order =
                json!({ "price": { "agreement": { "type": kind } }, "approved": approved });
            assert_eq!(outcome(&order), expected, "{order}");
        };
        check("Direct", true, "approved");
        check("Normal", false, "rejected");
        check("Prepaid", true, "reported");
        check("Subscription", false, "reported");
    }

    #[test]
    fn a_report_says_what_the_form_says() {
        let check = |form: &str, expected: Value| {
            assert_eq!(body(&FormFields::parse(form).unwrap()), expected, "{form}");
        };
        check("", json!({}));
        check("approve=no&license=a&invoiceText=+", json!({ "approve": false }));
        check("approve=yes", json!({ "approve": true }));
        let expected =
            json!({ "approve": true, "license": { "uuid": "a" }, "invoiceText": "1\n2" });
        check("approve=yes&license=a&invoiceText=1%0D%0A2", expected);
    }
}
