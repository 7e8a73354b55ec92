//! Notifications as JSON of the API (contract notifications-1), and outbox messages for operators.

use serde::Serialize;
use serde_json::{Value, json};

use model::MediaType;
use model::account::{AgreementId, Notification, NotificationMethod, OutboxMessage};

/// The JSON of a notification, with exactly the properties that the client sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationView<'a> {
    id: String,
    title: &'a str,
    r#type: &'static str,
    media_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    p: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agr: &'a [AgreementId],
    /// Included so that a client that edits a notification can send it back; a `PUT` without it removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tr: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

impl<'a> From<&'a Notification> for NotificationView<'a> {
    fn from(notification: &'a Notification) -> Self {
        let Notification { query, method, .. } = notification;
        let (schedule, timezone) = match method {
            NotificationMethod::ScheduledEmail { schedule, timezone, .. } => {
                (Some(schedule.as_str()), Some(timezone.as_str()))
            }
            NotificationMethod::Mobile
            | NotificationMethod::Email { .. }
            | NotificationMethod::Stream => (None, None),
        };
        Self {
            id: notification.id.to_string(),
            title: &notification.title,
            r#type: method.kind().as_str(),
            media_type: notification.media_type.map_or("_all", MediaType::as_str),
            q: query.q.as_deref(),
            p: &query.p,
            agr: &query.agr,
            tr: query.tr.as_deref(),
            schedule,
            timezone,
            email: method.email(),
        }
    }
}

/// Renders an outbox message for operators, without its text and the device token.
#[must_use]
pub fn message(message: &OutboxMessage) -> Value {
    json!({
        "id": message.id.to_string(),
        "kind": message.content.kind(),
        "state": message.state.as_str(),
        "user": message.user,
        "items": message.content.items(),
        "attempts": message.attempts,
        "created": message.created,
        "nextAttempt": message.next,
        "error": message.error,
    })
}
