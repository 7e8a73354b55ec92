//! Deliveries: versions of items that are sent to customers through their channels.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{AgreementId, ChannelId, OrganizationId, UserId};
use crate::limits::DELIVERY_ERROR_CHARS_MAX;
use crate::text::shorten;
use crate::{CropSpec, ItemKey};

/// The state of a delivery: queued, then sending, then delivered, failed, or queued until its retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum DeliveryState {
    /// Waits for its first attempt or a retry.
    Queued,
    /// Has an attempt in flight.
    Sending,
    /// The receiving system has accepted the files.
    Delivered,
    /// Given up: after the last retry, or at once if no retry can help.
    Failed,
}

crate::impl_as_str!(DeliveryState);

/// The delivery of one version of an item through one channel. A request buys the item, then queues the delivery.
///
/// There is at most one delivery for each channel, item and version (contract deliveries-5). A repeated request
/// returns it without a purchase; if the delivery has failed, the request buys and queues like the first one. The user
/// or the operator can also queue a delivered or failed one again by its id, without a purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: Uuid,
    /// The user who requested the delivery and owns the channel.
    pub user: UserId,
    /// The organization for which the user last requested the delivery.
    pub organization: OrganizationId,
    /// The channel, which may have been removed since.
    pub channel: ChannelId,
    pub item: ItemKey,
    /// The crop to deliver, in pixels of the Hires image (the full-size original), if the request named the item by a
    /// URI with a crop.
    pub crop: Option<CropSpec>,
    /// A short hash that identifies the item's stored document, the formats of the channel and the crop, computed by
    /// `version` in `src/distribution/delivery/request.rs`. Webhooks send it to the receiver.
    pub version: String,
    /// A request first buys the item, then queues the delivery; this is the agreement that the last request named for
    /// buying it. `None` if it named none: then the purchase may use any agreement that covers the item.
    pub agreement: Option<AgreementId>,
    pub state: DeliveryState,
    /// The number of attempts, including the attempt in flight but not those that a shutdown aborted. Starts again
    /// at 0 when a user or the operator queues the delivery.
    pub attempts: u32,
    /// If queued, the time of the next attempt. If sending, the time at which the sending node's claim expires, so that
    /// a different node may send the delivery. If delivered or failed, `None`.
    pub next_attempt: Option<Timestamp>,
    /// The reason why the last attempt failed, from [`shorten_reason`]. Stays until an attempt succeeds, or a user
    /// or the operator queues the delivery again.
    pub error: Option<String>,
    /// The time of the first request.
    pub created: Timestamp,
    /// The time at which a user or the operator last queued the delivery. A retry does not change it. No retry is
    /// planned for later than [`RetryPolicy::deadline`](crate::RetryPolicy::deadline) after this time, except while the
    /// clock is not trusted, such as after a jump of the time of day.
    pub queued: Timestamp,
    /// The time of the last change of state.
    pub updated: Timestamp,
    /// The time at which the receiving system last accepted the files; `None` if it never has.
    pub delivered: Option<Timestamp>,
}

/// Shortens the reason of a failure to [`DELIVERY_ERROR_CHARS_MAX`] characters.
pub fn shorten_reason(text: &str) -> String {
    shorten(text, DELIVERY_ERROR_CHARS_MAX)
}
