//! Deliveries over HTTP: triggered by an item's URL with `channel` (contract deliveries-1), listed below
//! `/user/v1/delivery`.
//!
//! The list has the parameters `size`, `start` and `state`; an administrator gets the deliveries of the
//! organization, as with orders (contract deliveries-13). Service accounts may call it too, because they
//! trigger deliveries.

use axum::{
    Router,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::Response,
    routing::get,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::distribution::delivery;
use crate::distribution::delivery::DeliveryRequest;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::credentials;
use crate::http::protocol::request;
use crate::http::protocol::request::Presence;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::ValidationErrors;
use crate::http::protocol::respond;
use crate::media;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{
    DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT, JSON_BODY_BYTES_MAX,
};
use model::account::{ChannelId, Delivery, DeliveryState};
use model::{CropSpec, ItemKey};

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
    let DeliveryListing { start, size, state } = parse_listing(&QueryParameters::of(&uri)?)?;
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

/// `{"again": true}` sends the delivery once more.
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

/// Parses the channel in the query, if there is one.
pub(crate) fn channel_parameter(uri: &Uri) -> Result<Option<ChannelId>> {
    let Some(text) = credentials::query_value(uri, "channel") else { return Ok(None) };
    match text.parse::<ChannelId>() {
        Ok(channel) => Ok(Some(channel)),
        Err(error) => Err(Error::invalid("query", "channel", "pattern", error.to_string())),
    }
}

/// Responds to an item's URL with `channel`: 202 with the delivery and its address.
///
/// `HEAD` triggers and buys nothing, and has the status of the GET (contract deliveries-3); it has a
/// `Location` if the delivery exists already.
pub(crate) async fn trigger(
    app: &AppState,
    method: &Method,
    item: &ItemKey,
    crop: Option<CropSpec>,
    channel: &ChannelId,
    caller: media::MediaCaller<'_>,
) -> Result<Response> {
    let delivery_request = DeliveryRequest { caller, item, crop, channel };
    let now = clock::now();
    let deliveries = &app.shared.distribution.deliveries;
    if *method == Method::HEAD {
        let (found, would_queue) = deliveries.dry_run(delivery_request, now).await?;
        return Ok(delivery_response(found.as_ref(), would_queue, Body::empty()));
    }
    let (found, queued) = deliveries.trigger(delivery_request, now).await?;
    Ok(queued_response(app, &found, queued))
}

/// Responds to a request that queues a delivery: 202 with the delivery and its address, 200 if nothing had to
/// be queued.
fn queued_response(app: &AppState, found: &Delivery, queued: bool) -> Response {
    let full = delivery::json::delivery(found, app.shared.media.links());
    // The rest changes while the delivery is in flight and is read at its address.
    let fields = ["id", "state", "channel", "item"];
    let fields = fields.into_iter().map(|name| (name.to_owned(), full[name].clone()));
    delivery_response(Some(found), queued, Body::from(Value::Object(fields.collect()).to_string()))
}

fn delivery_response(found: Option<&Delivery>, queued: bool, body: Body) -> Response {
    let status = if queued { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = respond::typed(status, HeaderValue::from_static("application/json"), body);
    if let Some(found) = found
        && let Ok(address) = HeaderValue::from_str(&format!("/user/v1/delivery/{}", found.id))
    {
        response.headers_mut().insert(header::LOCATION, address);
    }
    CachePolicy::NoStore.set(response.headers_mut());
    response
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

    #[test]
    fn a_channel_is_read_from_the_query() {
        let read = |text: &str| channel_parameter(&text.parse().unwrap());
        assert_eq!(read("/x").unwrap(), None);
        assert_eq!(read("/x?channel=").unwrap(), None);
        let expected = "user:a@b.example:Min kanal".parse().unwrap();
        let found = read("/x?agr=1&channel=user%3Aa%40b.example%3AMin+kanal").unwrap();
        assert_eq!(found, Some(expected));
        for text in ["/x?channel=desk", "/x?channel=user:a:%0A"] {
            let problems = request::tests::problems(&read(text).unwrap_err());
            assert_eq!(problems, [("pattern".to_owned(), "channel".to_owned())], "{text}");
        }
    }
}
