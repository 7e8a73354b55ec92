//! Outbox messages as JSON for operators.

use serde_json::{Value, json};

use model::account::OutboxMessage;

/// Renders an outbox message for operators, without its text and the device token.
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
