//! Deliveries over HTTP, below `/user/v1/delivery`. An item's URL with `channel` triggers a delivery
//! (`http/media/deliveries.rs`).
//!
//! The list has the parameters `size`, `start` and `state`; an administrator gets the deliveries of the
//! organization, as with orders (contract deliveries-13). Service accounts may call it too, because they
//! trigger deliveries.

use axum::{
    Router,
    extract::{Path, State, rejection::PathRejection},
    http::Uri,
    routing::get,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::distribution::delivery;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::media::deliveries::queued_response;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::ValidationErrors;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{
    DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT, JSON_BODY_BYTES_MAX,
};
use model::account::DeliveryState;

/// The routes of deliveries.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .route("/user/v1/delivery", get(list_deliveries))
        .route("/user/v1/delivery/{id}", get(load_delivery).post(repeat_delivery))
}

async fn list_deliveries(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    uri: Uri,
) -> ApiResult {
    let DeliveryListing { start, size, state } = parse_listing(&QueryParameters::from_uri(&uri)?)?;
    let found = app.shared.distribution.deliveries.list(&caller, state, start, size).await?;
    let links = app.shared.media.links();
    let found: Vec<Value> =
        found.iter().map(|delivery| delivery::json::delivery(delivery, links)).collect();
    api::json(&json!({ "deliveries": found }))
}

async fn load_delivery(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Result<Path<String>, PathRejection>,
) -> ApiResult {
    let id = delivery_id(id)?;
    let found = app.shared.distribution.deliveries.find(&caller, id).await?;
    api::json(&delivery::json::delivery(&found, app.shared.media.links()))
}

fn delivery_id(id: Result<Path<String>, PathRejection>) -> Result<Uuid> {
    let id = request::path_segment("id", id)?;
    Uuid::try_parse(&id).map_err(|_| Error::invalid("path", "id", "format", "id is not a UUID"))
}

/// Queues the delivery again if the body is `{"again": true}`.
async fn repeat_delivery(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    id: Result<Path<String>, PathRejection>,
    request: axum::extract::Request,
) -> ApiResult {
    let id = delivery_id(id)?;
    let body = request::json(request, JSON_BODY_BYTES_MAX).await?;
    check_repeat(&body)?;
    let (found, queued) =
        app.shared.distribution.deliveries.repeat(&caller, id, clock::now()).await?;
    Ok(queued_response(&app, &found, queued))
}

/// Validates the body: the only action on a delivery is to repeat it.
fn check_repeat(body: &Value) -> Result<()> {
    request::read_object(body, |delivery| {
        // A missing flag is already reported, so it counts as true here.
        if !delivery.flag("again", Presence::Required).value().unwrap_or(true) {
            delivery.report_rule("again", "enum", "must be true");
        }
    })
}

/// The parameters of `GET /user/v1/delivery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeliveryListing {
    start: usize,
    size: usize,
    state: Option<DeliveryState>,
}

fn parse_listing(query: &QueryParameters) -> Result<DeliveryListing> {
    let mut problems = ValidationErrors::new();
    let listing = read_listing(query, &mut problems);
    problems.finish(listing)
}

/// Reads the parameters of a listing; `None` if one is invalid.
fn read_listing(
    query: &QueryParameters,
    problems: &mut ValidationErrors,
) -> Option<DeliveryListing> {
    let size = problems.check(request::count(query, "size", DELIVERIES_LISTED_MAX));
    let start_max = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
    let start = problems.check(request::count(query, "start", start_max));
    let state = problems.check(query.variant("state"));
    // Every parameter is read before the first `?`, so that all problems are reported together.
    Some(DeliveryListing {
        start: start?.unwrap_or(0),
        size: size?.unwrap_or(DELIVERIES_SIZE_DEFAULT),
        state: state?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(query: &str) -> Result<DeliveryListing, Vec<(String, String)>> {
        let found = QueryParameters::parse(query).and_then(|query| parse_listing(&query));
        found.map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_listing_has_defaults() {
        assert_eq!(listed(""), Ok(DeliveryListing { start: 0, size: 20, state: None }));
        let state = Some(DeliveryState::Failed);
        let expected = DeliveryListing { start: 40, size: 0, state };
        assert_eq!(listed("start=40&size=0&state=failed&unknown=1"), Ok(expected));
    }

    #[test]
    fn err_everything_wrong_with_a_listing_is_named() {
        let problem = |rule: &str, path: &str| (rule.to_owned(), path.to_owned());
        let expected =
            vec![problem("maximum", "size"), problem("type", "start"), problem("enum", "state")];
        assert_eq!(listed("size=10001&start=x&state=all"), Err(expected));
    }
}
