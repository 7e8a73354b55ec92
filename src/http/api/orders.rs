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
use crate::access::orders::Report;
use crate::http::App;
use crate::http::api;
use crate::http::api::Answer;
use crate::http::api::Caller;
use crate::http::protocol::request;
use crate::http::protocol::request::Field;
use crate::http::protocol::request::Format;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::Problems;
use crate::http::protocol::request::Query;
use crate::http::protocol::request::Text;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::{
    INVOICE_TEXT_CHARS_MAX, JSON_BODY_BYTES_MAX, ORDERS_LISTED_MAX, ORDERS_SIZE_DEFAULT,
};
use crate::storage::audit::{self, Action, ObjectKind, Outcome};
use model::account::{OrderId, OrderStatus};

/// The addresses of this file.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/user/v1/order", get(list_orders))
        .route("/user/v1/order/{id}", get(load_order).put(report_order))
}

async fn list_orders(State(app): State<App>, Caller(caller): Caller, uri: Uri) -> Answer {
    caller.require_person()?;
    let asked = listing(&Query::of(&uri)?)?;
    let Listing { start, size, status } = asked;
    let orders = app.shared.access.orders.list(&caller, start, size, status).await?;
    let links = app.shared.media.links();
    let orders: Vec<Value> = orders.iter().map(|one| orders::json::order(one, links)).collect();
    api::json(&json!({ "orders": orders }))
}

/// One order, to whom the list shows it.
///
/// Contract purchases-13.
async fn load_order(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Result<Path<String>, PathRejection>,
) -> Answer {
    caller.require_person()?;
    let id = OrderId(request::integer_segment("id", id)?);
    let order = app.shared.access.orders.load(&caller, id).await?;
    api::json(&orders::json::order(&order, app.shared.media.links()))
}

async fn report_order(
    State(app): State<App>,
    Caller(caller): Caller,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answer {
    let id = OrderId(request::integer_segment("id", id)?);
    // Who may not read an order does not commit its organization to a licence either.
    caller.require_person().inspect_err(|_| {
        let event = audit::event(Action::OrderReported).about(ObjectKind::Order, id);
        audit::record(event.ended(Outcome::Refused).with("service_account_unsupported"));
    })?;
    let body = request::json(request, JSON_BODY_BYTES_MAX).await?;
    let order = app.shared.access.orders.report(&caller, id, report(&body)?, clock::now()).await?;
    api::json(&orders::json::order(&order, app.shared.media.links()))
}

/// What `GET /user/v1/order` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing {
    start: usize,
    size: usize,
    status: OrderStatus,
}

/// Reads the parameters `size`, `start` and `status`.
///
/// At most [`ORDERS_LISTED_MAX`] orders, and a start that fits 32 bits (contract purchases-12).
fn listing(query: &Query) -> Result<Listing> {
    let choices = OrderStatus::ALL.map(|status| (status.as_str(), status));
    let mut problems = Problems::new();
    let size = problems.keep(request::count(query, "size", ORDERS_LISTED_MAX));
    let start =
        problems.keep(request::count(query, "start", usize::try_from(u32::MAX).unwrap_or(0)));
    let status = problems.keep(query.one_of("status", &choices));
    let read = || {
        let (size, start, status) = (size?, start?, status?);
        Some(Listing {
            start: start.unwrap_or(0),
            size: size.unwrap_or(ORDERS_SIZE_DEFAULT),
            status: status.unwrap_or(OrderStatus::All),
        })
    };
    problems.end(read())
}

/// Reads an order update body.
///
/// The body has no other properties; its `license` may, so that a licence of the pricelist can be
/// sent back as it came.
fn report(body: &Value) -> Result<Report> {
    let invoice_text = Text { format: Format::Lines, chars_max: INVOICE_TEXT_CHARS_MAX };
    request::object(body, |order| {
        let approve = order.flag("approve", Presence::Required).given().unwrap_or_default();
        let license = order.object("license", Presence::Optional, |license| {
            license.allow_others();
            license.required("uuid", Text::UUID)
        });
        if approve && !matches!(license, Field::Given(_)) {
            order.break_rule("license", "required", "must be supplied when approve is true");
        }
        Report {
            approve,
            license: license.given().and_then(|uuid| Uuid::try_parse(&uuid).ok()),
            invoice_text: order.text("invoiceText", Presence::Optional, invoice_text).given(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(query: &str) -> Result<Listing, Vec<(String, String)>> {
        let found = Query::parse(query).and_then(|query| listing(&query));
        found.map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_listing_has_the_defaults_of_the_contract() {
        let all = Listing { start: 0, size: 20, status: OrderStatus::All };
        assert_eq!(listed(""), Ok(all));
        assert_eq!(listed("ak=x&unknown=1&status=all"), Ok(all));
        assert_eq!(listed("size=&start=&status="), Ok(all));
        assert_eq!(listed("size=20.0&start=0.0"), Ok(all));
        let asked = Listing { start: 40, size: 0, status: OrderStatus::Reported };
        assert_eq!(listed("start=40&size=0&status=reported"), Ok(asked));
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

    fn read(body: &Value) -> Result<Report, Vec<(String, String)>> {
        report(body).map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_report_takes_a_licence_of_the_pricelist_as_it_came() {
        let uuid = "2c916e2d-b755-446d-9e18-d636a1447141";
        let body = json!({
            "approve": true, "license": { "uuid": uuid, "period": "Single" }, "invoiceText": "A\nB"
        });
        let license = Uuid::try_parse(uuid).ok();
        let invoice_text = Some("A\nB".to_owned());
        assert_eq!(read(&body), Ok(Report { approve: true, license, invoice_text }));
        let refusal = Report { approve: false, license: None, invoice_text: None };
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
