//! Deliveries: versions of items on their way through a channel.

use jiff::Timestamp;
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{AgreementId, ChannelId, OrganizationId, UserId};
use crate::limits::DELIVERY_ERROR_CHARS_MAX;
use crate::text::shorten;
use crate::{CropSpec, ItemKey};

/// The state of a delivery. The variants follow its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum DeliveryState {
    /// Waiting for its first attempt or a retry.
    Queued,
    /// An attempt is in flight.
    Sending,
    /// The receiving system has accepted it.
    Delivered,
    /// Given up after the last retry; a new request or the operator queues it again.
    Failed,
}

impl DeliveryState {
    /// Returns the word used in responses, requests and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One version of an item on its way, or delivered, through one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: Uuid,
    /// The user who requested it and owns the channel.
    pub user: UserId,
    /// The organization for which that user acted.
    pub organization: OrganizationId,
    /// The channel, which may have been removed since.
    pub channel: ChannelId,
    pub item: ItemKey,
    /// The editors' crop, if the request named the item by a URI with a crop; in pixels of the Hires image.
    pub crop: Option<CropSpec>,
    /// The version of the item: another version is another delivery.
    pub version: String,
    /// The agreement that the request named.
    pub agreement: Option<AgreementId>,
    pub state: DeliveryState,
    /// Attempts since it was last queued.
    pub attempts: u32,
    /// When the next attempt is due; while in flight, when the claim of the sending node expires and another
    /// node may claim it.
    pub next: Option<Timestamp>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When it was requested.
    pub created: Timestamp,
    /// When it was last queued; the retry deadline counts from here.
    pub queued: Timestamp,
    /// When its state last changed.
    pub updated: Timestamp,
    /// When the receiving system accepted it.
    pub delivered: Option<Timestamp>,
}

/// Shortens the reason of a failed attempt to [`DELIVERY_ERROR_CHARS_MAX`] characters.
#[must_use]
pub fn shorten_reason(text: &str) -> String {
    shorten(text, DELIVERY_ERROR_CHARS_MAX)
}
