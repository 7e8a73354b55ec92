//! Deliveries and messages of all users: lists, and the operators' actions on failed ones.

use std::str::FromStr;

use axum::{
    body::Body,
    extract::{Path, Request, rejection::PathRejection},
    http::{HeaderValue, StatusCode},
    response::Response,
};
use serde_json::{Value, json};
use strum::VariantNames;
use uuid::Uuid;

use super::{OperatorCall, PageOfList};
use crate::distribution::delivery;
use crate::distribution::delivery::ListedDelivery;
use crate::distribution::notifications;
use crate::distribution::notifications::MessageChoice;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::request;
use crate::http::protocol::request::{Presence, QueryParameters, ValidationErrors};
use crate::http::protocol::respond;
use crate::media::UrlLinks;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::JSON_BODY_BYTES_MAX;
use crate::storage::database::ListedMessage;
use model::account::{DeliveryState, MessageState};

/// A decoded path segment, or the reason why it is missing.
type Segment = Result<Path<String>, PathRejection>;

/// `GET /operator/v1/delivery`: deliveries of all users, newest first.
pub(super) async fn list_deliveries(call: OperatorCall) -> ApiResult {
    let (PageOfList { start, size }, state) = listing::<DeliveryState>(&call.query()?)?;
    let found = call.app.shared.distribution.deliveries.list_all(state, start, size).await?;
    let links = call.app.shared.media.links();
    let found: Vec<Value> = found.iter().map(|delivery| delivery_view(delivery, links)).collect();
    api::json(&json!({ "deliveries": found }))
}

/// Returns a delivery as its owner sees it, with the organization for which it is sent.
fn delivery_view(listed: &ListedDelivery, links: &UrlLinks) -> Value {
    let mut view = delivery::json::delivery(&listed.delivery, links);
    view["organization"] = json!(listed.delivery.organization);
    if let Some(name) = &listed.organization_name {
        view["organizationName"] = json!(name);
    }
    view
}

/// `POST /operator/v1/delivery/{id}`: queues a failed delivery again.
pub(super) async fn retry_delivery(
    call: OperatorCall,
    id: Segment,
    request: Request,
) -> ApiResult {
    let id = uuid(id)?;
    check_again(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    call.app.shared.distribution.deliveries.retry_failed(id, clock::now()).await?;
    queued(1)
}

/// `POST /operator/v1/delivery`: queues the newest failed deliveries again.
pub(super) async fn retry_deliveries(call: OperatorCall, request: Request) -> ApiResult {
    check_again(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    queued(call.app.shared.distribution.deliveries.retry_all_failed(clock::now()).await?)
}

/// `GET /operator/v1/message`: the outbox, newest first.
pub(super) async fn list_messages(call: OperatorCall) -> ApiResult {
    let (PageOfList { start, size }, state) = listing::<MessageState>(&call.query()?)?;
    let found = call.app.shared.distribution.notifications.list_outbox(state, start, size).await?;
    let found: Vec<Value> = found.iter().map(message_view).collect();
    api::json(&json!({ "messages": found }))
}

/// Returns a message as `wirephoto outbox list` shows it, with its transport and the name of its receiver.
fn message_view(listed: &ListedMessage) -> Value {
    let mut view = notifications::json::message(&listed.message);
    if let Some(fields) = view.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    view["transport"] = json!(listed.transport);
    view["userName"] = json!(listed.user_name);
    view
}

/// `POST /operator/v1/message/{id}`: queues a parked message again.
pub(super) async fn retry_message(call: OperatorCall, id: Segment, request: Request) -> ApiResult {
    let choice = MessageChoice::One(uuid(id)?);
    check_again(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    queued(call.app.shared.distribution.notifications.retry_outbox(choice, clock::now()).await?)
}

/// `POST /operator/v1/message`: queues all parked messages again.
pub(super) async fn retry_messages(call: OperatorCall, request: Request) -> ApiResult {
    check_again(&request::json(request, JSON_BODY_BYTES_MAX).await?)?;
    let choice = MessageChoice::Parked;
    queued(call.app.shared.distribution.notifications.retry_outbox(choice, clock::now()).await?)
}

/// `DELETE /operator/v1/message/{id}`: removes a message in any state.
pub(super) async fn remove_message(call: OperatorCall, id: Segment) -> ApiResult {
    let choice = MessageChoice::One(uuid(id)?);
    call.app.shared.distribution.notifications.discard_from_outbox(choice).await?;
    api::text("removed")
}

fn uuid(id: Segment) -> Result<Uuid> {
    let id = request::path_segment("id", id)?;
    Uuid::try_parse(&id).map_err(|_| Error::invalid("path", "id", "format", "id is not a UUID"))
}

/// Validates the body `{"again": true}`: the only action on failed work is to repeat it.
fn check_again(body: &Value) -> Result<()> {
    request::read_object(body, |action| {
        // A missing flag is already reported, so it counts as true here.
        if !action.flag("again", Presence::Required).value().unwrap_or(true) {
            action.report_rule("again", "enum", "must be true");
        }
    })
}

/// Responds 202 with the number of deliveries or messages that were queued.
fn queued(count: usize) -> ApiResult {
    let body = Body::from(json!({ "queued": count }).to_string());
    let kind = HeaderValue::from_static("application/json");
    let mut response: Response = respond::typed(StatusCode::ACCEPTED, kind, body);
    CachePolicy::NoStore.set(response.headers_mut());
    Ok(response)
}

/// Reads the parameters `size`, `start` and `state`.
fn listing<T: FromStr + VariantNames>(query: &QueryParameters) -> Result<(PageOfList, Option<T>)> {
    let mut problems = ValidationErrors::new();
    let page = PageOfList::read(query, &mut problems);
    let state = problems.check(query.variant("state"));
    problems.finish(page.zip(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Listing = (PageOfList, Option<MessageState>);

    fn listed(query: &str) -> Result<Listing, Vec<(String, String)>> {
        let found = QueryParameters::parse(query).and_then(|query| listing(&query));
        found.map_err(|error| request::tests::problems(&error))
    }

    #[test]
    fn ok_a_listing_has_defaults() {
        assert_eq!(listed(""), Ok((PageOfList { start: 0, size: 20 }, None)));
        let expected = (PageOfList { start: 5, size: 0 }, Some(MessageState::Parked));
        assert_eq!(listed("start=5&size=0&state=parked&x=1"), Ok(expected));
    }

    #[test]
    fn err_everything_wrong_with_a_listing_is_named() {
        let problem = |rule: &str, path: &str| (rule.to_owned(), path.to_owned());
        let expected = vec![
            problem("maximum", "size"),
            problem("minimum", "start"),
            problem("enum", "state"),
        ];
        assert_eq!(listed("size=10001&start=-1&state=failed"), Err(expected));
    }

    #[test]
    fn failed_work_is_only_repeated() {
        let check = |body: Value, expected: &[(&str, &str)]| {
            let problems = check_again(&body).map_err(|error| request::tests::problems(&error));
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()))
                .collect();
            assert_eq!(problems.err().unwrap_or_default(), expected, "{body}");
        };
        check(json!({ "again": true }), &[]);
        check(json!({}), &[("required", "again")]);
        check(json!({ "again": false }), &[("enum", "again")]);
        check(json!({ "again": true, "all": true }), &[("additionalProperties", "all")]);
    }
}
