//! Deliveries and messages of all users: lists, and the operators' actions on failed ones.

use api::operation::{
    ListAllDeliveries, ListMessages, OperatorDeliveries, OutboxMessage, OutboxMessages,
    RemoveMessage, Retried, RetryDeliveries, RetryDelivery, RetryMessage, RetryMessages,
};
use api::{Accepted, Json};
use axum::response::Response;

use crate::distribution::notifications::MessageChoice;
use crate::http::AppState;
use crate::http::api::binding::ApiRequest;
use crate::http::api::response::plain_text;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::storage::database::ListedMessage;

pub(super) async fn list_deliveries(
    app: AppState,
    request: ApiRequest<ListAllDeliveries>,
) -> Result<Json<OperatorDeliveries>> {
    let ListAllDeliveries { range, state } = request.parameters()?;
    let deliveries = &app.shared.distribution.deliveries;
    let deliveries = deliveries.list_all(state, range.start, range.size).await?;
    Ok(Json(OperatorDeliveries { deliveries }))
}

pub(super) async fn retry_delivery(
    app: AppState,
    request: ApiRequest<RetryDelivery>,
) -> Result<Accepted<Retried>> {
    let id = request.read().await?.parameters.id;
    app.shared.distribution.deliveries.retry_failed(id, clock::now()).await?;
    Ok(Accepted(Retried { queued: 1 }))
}

pub(super) async fn retry_deliveries(
    app: AppState,
    request: ApiRequest<RetryDeliveries>,
) -> Result<Accepted<Retried>> {
    request.read().await?;
    let queued = app.shared.distribution.deliveries.retry_all_failed(clock::now()).await?;
    Ok(Accepted(Retried { queued }))
}

pub(super) async fn list_messages(
    app: AppState,
    request: ApiRequest<ListMessages>,
) -> Result<Json<OutboxMessages>> {
    let ListMessages { range, state } = request.parameters()?;
    let notifications = &app.shared.distribution.notifications;
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

pub(super) async fn retry_message(
    app: AppState,
    request: ApiRequest<RetryMessage>,
) -> Result<Accepted<Retried>> {
    let choice = MessageChoice::One(request.read().await?.parameters.id);
    retry_outbox(&app, choice).await
}

pub(super) async fn retry_messages(
    app: AppState,
    request: ApiRequest<RetryMessages>,
) -> Result<Accepted<Retried>> {
    request.read().await?;
    retry_outbox(&app, MessageChoice::Parked).await
}

async fn retry_outbox(app: &AppState, choice: MessageChoice) -> Result<Accepted<Retried>> {
    let notifications = &app.shared.distribution.notifications;
    let queued = notifications.retry_outbox(choice, clock::now()).await?;
    Ok(Accepted(Retried { queued }))
}

/// Removes a message in any state.
pub(super) async fn remove_message(
    app: AppState,
    request: ApiRequest<RemoveMessage>,
) -> Result<Response> {
    let choice = MessageChoice::One(request.parameters()?.id);
    app.shared.distribution.notifications.discard_from_outbox(choice).await?;
    Ok(plain_text("removed"))
}
