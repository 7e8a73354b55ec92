//! Deliveries: versions of items sent through a channel.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{AgreementId, ChannelId, OrganizationId, UserId};
use crate::limits::DELIVERY_ERROR_CHARS_MAX;
use crate::text::shorten;
use crate::{CropSpec, ItemKey};

/// The state of a delivery.
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
    /// Given up after the last retry. A new request or the operator can queue it again.
    Failed,
}

crate::impl_as_str!(DeliveryState);

/// The delivery of one version of an item through one channel.
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
    /// The editors' crop, in pixels of the Hires image, if the request named the item by a URI with a crop.
    pub crop: Option<CropSpec>,
    /// The version of the item. Each version is a delivery of its own.
    pub version: String,
    /// The agreement that the request named.
    pub agreement: Option<AgreementId>,
    pub state: DeliveryState,
    /// Attempts since a request or the operator last queued the delivery.
    pub attempts: u32,
    /// The time of the next attempt. While an attempt is in flight: the time at which the sending node's claim
    /// expires, so that a different node may claim the delivery.
    pub next: Option<Timestamp>,
    /// The reason of the last failure.
    pub error: Option<String>,
    /// The time of the request.
    pub created: Timestamp,
    /// The time at which a request or the operator last queued it; the retry deadline counts from here.
    pub queued: Timestamp,
    /// The time of the last change of state.
    pub updated: Timestamp,
    /// The time at which the receiving system accepted the files.
    pub delivered: Option<Timestamp>,
}

/// Shortens the reason of a failure to [`DELIVERY_ERROR_CHARS_MAX`] characters.
#[must_use]
pub fn shorten_reason(text: &str) -> String {
    shorten(text, DELIVERY_ERROR_CHARS_MAX)
}
