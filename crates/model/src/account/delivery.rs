//! Deliveries: versions of items that are sent to customers through their channels.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{AgreementId, ChannelId, OrganizationId, UserId};
use crate::limits::DELIVERY_ERROR_CHARS_MAX;
use crate::text::shorten;
use crate::{CropSpec, ItemKey};

/// The state of a delivery: queued, then sending, then delivered, failed or, before a retry, queued again.
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
    /// Given up: after the last retry, or at once if no retry can help. A new request or the operator can queue it
    /// again.
    Failed,
}

crate::impl_as_str!(DeliveryState);

/// The delivery of one version of an item through one channel. There is at most one for each channel, item and
/// version: a repeated request returns it, and queues it again if it failed (contract deliveries-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: Uuid,
    /// The user who requested the delivery and owns the channel.
    pub user: UserId,
    /// The organization for which the user acted.
    pub organization: OrganizationId,
    /// The channel, which may have been removed since.
    pub channel: ChannelId,
    pub item: ItemKey,
    /// The crop to deliver, in pixels of the Hires image (the full-size original), if the request named the item by a
    /// URI with a crop.
    pub crop: Option<CropSpec>,
    /// A key that changes with the item's document, the formats of the channel and the crop.
    pub version: String,
    /// The agreement for the purchase, if the request named one.
    pub agreement: Option<AgreementId>,
    pub state: DeliveryState,
    /// The number of attempts since the time `queued`, with the attempt in flight.
    pub attempts: u32,
    /// The time of the next attempt; `None` if there is none. While an attempt is in flight, the time at which the
    /// sending node's claim expires, so that a different node may send the delivery.
    pub next_attempt: Option<Timestamp>,
    /// The reason why the last attempt failed, from [`shorten_reason`].
    pub error: Option<String>,
    /// The time of the request.
    pub created: Timestamp,
    /// The time at which a request or the operator last queued the delivery. Its retries end a fixed time after that.
    pub queued: Timestamp,
    /// The time of the last change of state.
    pub updated: Timestamp,
    /// The time at which the receiving system accepted the files, once it has.
    pub delivered: Option<Timestamp>,
}

/// Shortens the reason of a failure to [`DELIVERY_ERROR_CHARS_MAX`] characters.
pub fn shorten_reason(text: &str) -> String {
    shorten(text, DELIVERY_ERROR_CHARS_MAX)
}
