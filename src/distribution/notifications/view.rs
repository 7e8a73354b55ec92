//! Views of notifications for clients (contract notifications-1).

use api::notifications::NotificationMediaType;
use model::account::{Notification, NotificationMethod};

/// Creates the view of a notification, with exactly the properties that the client sent.
///
/// Has `tr` too, so that a client that edits a notification can send it back: a `PUT` without it removes it.
pub fn notification(notification: Notification) -> api::notifications::Notification {
    let kind = notification.method.kind();
    let email = notification.method.email().map(str::to_owned);
    let (schedule, timezone) = match notification.method {
        NotificationMethod::ScheduledEmail { schedule, timezone, .. } => {
            (Some(schedule), Some(timezone))
        }
        NotificationMethod::Mobile
        | NotificationMethod::Email { .. }
        | NotificationMethod::Stream => (None, None),
    };
    let query = notification.query;
    api::notifications::Notification {
        id: notification.id,
        title: notification.title,
        kind,
        media_type: NotificationMediaType(notification.media_type),
        q: query.q,
        p: query.p,
        agr: query.agr.into_iter().map(|id| id.0).collect(),
        tr: query.tr,
        schedule,
        timezone,
        email,
    }
}
