//! Views of deliveries and channels for clients (contract deliveries-2, deliveries-13).

use api::deliveries::{ChannelMaker, Triggered};

use crate::access::provisioning::shown_settings;
use model::account::{Channel, Delivery, DeliveryState};
use model::item::MediaLinks;

/// Creates the view of a delivery for its owner.
pub fn delivery(delivery: &Delivery, links: &MediaLinks) -> api::deliveries::Delivery {
    // While the delivery is in flight, `next` holds the expiry of the worker's claim, which is internal.
    let is_queued = delivery.state == DeliveryState::Queued;
    api::deliveries::Delivery {
        id: delivery.id,
        state: delivery.state,
        channel: delivery.channel.to_string(),
        item: uri(delivery, links),
        attempts: delivery.attempts,
        created: delivery.created,
        updated: delivery.updated,
        agreement: delivery.agreement.map(|id| id.0),
        next_attempt: delivery.next_attempt.filter(|_| is_queued),
        delivered: delivery.delivered,
        error: delivery.error.clone(),
    }
}

/// Creates the view of a delivery for the response to its request. The other properties change while the delivery is in
/// flight; clients read them at its address.
pub fn triggered(delivery: &Delivery, links: &MediaLinks) -> Triggered {
    Triggered {
        id: delivery.id,
        state: delivery.state,
        channel: delivery.channel.to_string(),
        item: uri(delivery, links),
    }
}

/// Returns the URI of the delivered item, with the crop of the request.
pub(super) fn uri(delivery: &Delivery, links: &MediaLinks) -> String {
    let crop = delivery.crop.map(|crop| crop.to_string()).unwrap_or_default();
    format!("{}{crop}", links.item(&delivery.item))
}

/// Creates the view of a channel for its owner, without secrets. Blocks while it reads certificates.
pub(super) fn channel(channel: Channel) -> api::deliveries::Channel {
    let made_by = if channel.by_user { ChannelMaker::User } else { ChannelMaker::Operator };
    api::deliveries::Channel {
        id: channel.id().to_string(),
        settings: shown_settings(&channel).as_object().cloned().unwrap_or_default(),
        name: channel.name,
        method: channel.method,
        formats: channel.formats,
        active: channel.active,
        made_by,
    }
}
