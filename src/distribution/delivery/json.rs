//! Deliveries and channels as JSON (contract deliveries-2, deliveries-13).

use serde_json::{Map, Value, json};

use crate::distribution::delivery::{ChannelView, ProbeResult};
use model::account::{Channel, Delivery};
use model::item::MediaLinks;

/// Renders a delivery for its owner.
#[must_use]
pub fn delivery(delivery: &Delivery, links: &impl MediaLinks) -> Value {
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(delivery.id.to_string()));
    fields.insert("state".to_owned(), json!(delivery.state.as_str()));
    fields.insert("channel".to_owned(), json!(delivery.channel.to_string()));
    fields.insert("item".to_owned(), json!(uri(delivery, links)));
    fields.insert("attempts".to_owned(), json!(delivery.attempts));
    fields.insert("created".to_owned(), json!(delivery.created));
    fields.insert("updated".to_owned(), json!(delivery.updated));
    insert_known(&mut fields, "agreement", delivery.agreement.map(|id| json!(id)));
    // While the delivery is in flight, `next` holds the expiry of the worker's claim, which is internal.
    let is_queued = delivery.state == model::account::DeliveryState::Queued;
    let next = delivery.next.filter(|_| is_queued);
    insert_known(&mut fields, "nextAttempt", next.map(|at| json!(at)));
    insert_known(&mut fields, "delivered", delivery.delivered.map(|at| json!(at)));
    insert_known(&mut fields, "error", delivery.error.as_ref().map(|text| json!(text)));
    Value::Object(fields)
}

/// Inserts a field if its value is known.
fn insert_known(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value);
    }
}

/// Returns the URI of the delivered item, with the crop of the request.
pub(super) fn uri(delivery: &Delivery, links: &impl MediaLinks) -> String {
    let crop = delivery.crop.map(|crop| crop.to_string()).unwrap_or_default();
    format!("{}{crop}", links.item(&delivery.item))
}

/// Renders a channel for its owner, without secrets.
#[must_use]
pub fn channel(shown: &ChannelView) -> Value {
    let Channel { name, method, formats, active, by_user, .. } = &shown.channel;
    json!({
        "id": shown.channel.id().to_string(),
        "name": name,
        "method": method.as_str(),
        "formats": formats,
        "settings": shown.settings,
        "active": active,
        "madeBy": if *by_user { "user" } else { "operator" },
    })
}

/// Renders the result of a channel test.
#[must_use]
pub fn tested(result: &ProbeResult) -> Value {
    json!({ "ok": result.ok, "message": result.message })
}
