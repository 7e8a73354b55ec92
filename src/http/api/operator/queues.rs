//! Deliveries and messages of all users: lists, and the operators' actions on failed ones.

use api::operation::{
    ListAllDeliveries, ListMessages, OperatorDeliveries, OutboxMessage, OutboxMessages,
    RemoveMessage, Retried, RetryDeliveries, RetryDelivery, RetryMessage, RetryMessages,
};
use api::{Accepted, Json};
use axum::response::Response;
use uuid::Uuid;

use crate::http::AppState;
use crate::http::api::binding::{ApiRequest, ReadRequest};
use crate::http::api::response::plain_text;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::database::ListedMessage;

pub(super) async fn list_deliveries(
    request: ApiRequest<ListAllDeliveries>,
) -> Result<Json<OperatorDeliveries>> {
    let ListAllDeliveries { range, state } = request.parameters()?;
    let deliveries = &request.app.shared.distribution.deliveries;
    let deliveries = deliveries.list_all(state, range.start, range.size).await?;
    Ok(Json(OperatorDeliveries { deliveries }))
}

pub(super) async fn retry_delivery(
    request: ApiRequest<RetryDelivery>,
) -> Result<Accepted<Retried>> {
    let ReadRequest { app, parameters, .. } = request.read().await?;
    app.shared.distribution.deliveries.retry_failed(parameters.id, clock::now()).await?;
    Ok(Accepted(Retried { queued: 1 }))
}

pub(super) async fn retry_deliveries(
    request: ApiRequest<RetryDeliveries>,
) -> Result<Accepted<Retried>> {
    let ReadRequest { app, .. } = request.read().await?;
    let queued = app.shared.distribution.deliveries.retry_all_failed(clock::now()).await?;
    Ok(Accepted(Retried { queued }))
}

pub(super) async fn list_messages(
    request: ApiRequest<ListMessages>,
) -> Result<Json<OutboxMessages>> {
    let ListMessages { range, state } = request.parameters()?;
    let notifications = &request.app.shared.distribution.notifications;
    let found = notifications.list_outbox(state, range.start, range.size).await?;
    Ok(Json(OutboxMessages { messages: found.into_iter().map(message).collect() }))
}

/// Returns a message without its text and the device token.
fn message(listed: ListedMessage) -> OutboxMessage {
    let ListedMessage { message, transport, user_name } = listed;
    OutboxMessage {
        id: message.id,
        kind: message.content.kind().to_owned(),
        state: message.state,
        user: message.user.0,
        items: message.content.items().to_vec(),
        attempts: message.attempts,
        created: message.created,
        next_attempt: message.next,
        error: message.error,
        transport,
        user_name,
    }
}

pub(super) async fn retry_message(request: ApiRequest<RetryMessage>) -> Result<Accepted<Retried>> {
    let ReadRequest { app, parameters, .. } = request.read().await?;
    retry_outbox(&app, Some(parameters.id)).await
}

pub(super) async fn retry_messages(
    request: ApiRequest<RetryMessages>,
) -> Result<Accepted<Retried>> {
    let ReadRequest { app, .. } = request.read().await?;
    retry_outbox(&app, None).await
}

async fn retry_outbox(app: &AppState, id: Option<Uuid>) -> Result<Accepted<Retried>> {
    let notifications = &app.shared.distribution.notifications;
    let queued = notifications.retry_outbox(id, clock::now()).await?;
    Ok(Accepted(Retried { queued }))
}

/// Removes a message in any state.
pub(super) async fn remove_message(request: ApiRequest<RemoveMessage>) -> Result<Response> {
    let id = request.parameters()?.id;
    request.app.shared.distribution.notifications.discard_from_outbox(Some(id)).await?;
    Ok(plain_text("removed"))
}
