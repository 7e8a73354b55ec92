//! The order and licence history over HTTP (contract purchases-12, purchases-14).

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::Uri,
    routing::get,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::access::orders;
use crate::access::orders::OrderReport;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::PropertyValue;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::TextFormat;
use crate::http::protocol::request::TextRule;
use crate::http::protocol::request::ValidationErrors;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{
    INVOICE_TEXT_CHARS_MAX, JSON_BODY_BYTES_MAX, ORDERS_LISTED_MAX, ORDERS_SIZE_DEFAULT,
};
use crate::storage::audit::{self, AuditAction, AuditOutcome, ObjectKind};
use model::account::{OrderId, OrderStatus};

/// The routes of orders.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/order", get(list_orders))
        .route("/user/v1/order/{id}", get(load_order).put(report_order))
}

async fn list_orders(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    uri: Uri,
) -> ApiResult {
    // Orders belong to persons; a service account has none (contract users-4).
    caller.require_person()?;
    let listing = parse_listing(&QueryParameters::from_uri(&uri)?)?;
    let OrderListing { start, size, status } = listing;
    let orders = app.shared.access.orders.list(&caller, start, size, status).await?;
    let links = app.shared.media.links();
    let orders: Vec<Value> =
        orders.iter().map(|order| orders::json::order(order, links)).collect();
    api::json(&json!({ "orders": orders }))
}

/// Loads one order, for callers whose list contains it.
///
/// Contract purchases-13.
async fn load_order(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Result<Path<String>, PathRejection>,
) -> ApiResult {
    caller.require_person()?;
    let id = OrderId(request::path_integer("id", id)?);
    let order = app.shared.access.orders.load(&caller, id).await?;
    api::json(&orders::json::order(&order, app.shared.media.links()))
}

async fn report_order(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> ApiResult {
    let id = OrderId(request::path_integer("id", id)?);
    // A caller that may not read an order may not commit its organization to a licence either.
    caller.require_person().inspect_err(|_| {
        let event = audit::event(AuditAction::OrderReported).with_object(ObjectKind::Order, id);
        audit::record(
            event.with_outcome(AuditOutcome::Refused).with_detail("service_account_unsupported"),
        );
    })?;
    let body = request::json(request, JSON_BODY_BYTES_MAX).await?;
    let order =
        app.shared.access.orders.report(&caller, id, parse_report(&body)?, clock::now()).await?;
    api::json(&orders::json::order(&order, app.shared.media.links()))
}

/// The parameters of `GET /user/v1/order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OrderListing {
    start: usize,
    size: usize,
    status: OrderStatus,
}

/// Reads the parameters `size`, `start` and `status`.
///
/// At most [`ORDERS_LISTED_MAX`] orders, and a start that fits in 32 bits (contract purchases-12).
fn parse_listing(query: &QueryParameters) -> Result<OrderListing> {
    let mut problems = ValidationErrors::new();
    let listing = read_listing(query, &mut problems);
    problems.finish(listing)
}

/// Reads the parameters of a listing; `None` if one is invalid.
fn read_listing(query: &QueryParameters, problems: &mut ValidationErrors) -> Option<OrderListing> {
    let size = problems.check(request::count(query, "size", ORDERS_LISTED_MAX));
    let start =
        problems.check(request::count(query, "start", usize::try_from(u32::MAX).unwrap_or(0)));
    let status = problems.check(query.variant("status"));
    // Every parameter is read before the first `?`, so that all problems are reported together.
    Some(OrderListing {
        start: start?.unwrap_or(0),
        size: size?.unwrap_or(ORDERS_SIZE_DEFAULT),
        status: status?.unwrap_or(OrderStatus::All),
    })
}

/// Parses the body that reports an order.
///
/// Additional properties are errors, except in `license`, so that a licence of the pricelist can be sent back
/// unchanged.
fn parse_report(body: &Value) -> Result<OrderReport> {
    let invoice_text = TextRule { format: TextFormat::Lines, chars_max: INVOICE_TEXT_CHARS_MAX };
    request::read_object(body, |order| {
        let approve = order.flag("approve", Presence::Required).value().unwrap_or_default();
        let license = order.object("license", Presence::Optional, |license| {
            license.allow_unknown();
            license.required("uuid", TextRule::UUID)
        });
        // An order that is refused is not licensed, so only an approval needs a licence.
        if approve && !matches!(license, PropertyValue::Present(_)) {
            order.report_rule("license", "required", "must be supplied when approve is true");
        }
        OrderReport {
            approve,
            license: license.value().and_then(|uuid| Uuid::try_parse(&uuid).ok()),
            invoice_text: order.text("invoiceText", Presence::Optional, invoice_text).value(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(query: &str) -> Result<OrderListing, Vec<(String, String)>> {
        let found = QueryParameters::parse(query).and_then(|query| parse_listing(&query));
        found.map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_listing_has_the_defaults_of_the_contract() {
        let all = OrderListing { start: 0, size: 20, status: OrderStatus::All };
        assert_eq!(listed(""), Ok(all));
        assert_eq!(listed("ak=x&unknown=1&status=all"), Ok(all));
        assert_eq!(listed("size=&start=&status="), Ok(all));
        assert_eq!(listed("size=20.0&start=0.0"), Ok(all));
        let expected = OrderListing { start: 40, size: 0, status: OrderStatus::Reported };
        assert_eq!(listed("start=40&size=0&status=reported"), Ok(expected));
    }

    #[test]
    fn err_every_wrong_parameter_of_a_listing_is_named() {
        let check = |query: &str, expected: &[(&str, &str)]| {
            let expected =
                expected.iter().map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()));
            assert_eq!(listed(query), Err(expected.collect()), "{query}");
        };
        check(
            "size=a&start=-1&status=Reported",
            &[("type", "size"), ("minimum", "start"), ("enum", "status")],
        );
        check("size=10001", &[("maximum", "size")]);
        check("size=2.5", &[("type", "size")]);
        check("size=1&size=2", &[("type", "size")]);
        check("size=99999999999999999999", &[("maximum", "size")]);
    }

    fn read(body: &Value) -> Result<OrderReport, Vec<(String, String)>> {
        parse_report(body).map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_report_accepts_a_licence_of_the_pricelist() {
        let uuid = "2c916e2d-b755-446d-9e18-d636a1447141";
        let body = json!({
            "approve": true, "license": { "uuid": uuid, "period": "Single" }, "invoiceText": "A\nB"
        });
        let license = Uuid::try_parse(uuid).ok();
        let invoice_text = Some("A\nB".to_owned());
        assert_eq!(read(&body), Ok(OrderReport { approve: true, license, invoice_text }));
        let refusal = OrderReport { approve: false, license: None, invoice_text: None };
        assert_eq!(read(&json!({ "approve": false })), Ok(refusal));
    }

    #[test]
    fn err_what_is_wrong_with_a_report_is_named() {
        let check = |body: Value, expected: &[(&str, &str)]| {
            let expected =
                expected.iter().map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()));
            assert_eq!(read(&body), Err(expected.collect()), "{body}");
        };
        check(json!({}), &[("required", "approve")]);
        check(json!({ "approve": "true" }), &[("type", "approve")]);
        check(json!({ "approve": true }), &[("required", "license")]);
        check(json!({ "approve": true, "license": null }), &[("required", "license")]);
        check(json!({ "approve": true, "license": {} }), &[("required", "license.uuid")]);
        check(
            json!({ "approve": true, "license": { "uuid": "1" }, "reported": "now" }),
            &[("format", "license.uuid"), ("additionalProperties", "reported")],
        );
        let long = "x".repeat(INVOICE_TEXT_CHARS_MAX + 1);
        check(json!({ "approve": false, "invoiceText": long }), &[("maximum", "invoiceText")]);
    }
}
