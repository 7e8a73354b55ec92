//! Deliveries: items on their way through a channel.

use jiff::Timestamp;
use uuid::Uuid;

use super::{AgreementId, ChannelId, OrganizationId, UserId};
use crate::limits::DELIVERY_ERROR_CHARS_MAX;
use crate::{CropSpec, ItemKey};

/// How far a delivery got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// It waits for its turn, the first or another one.
    Queued,
    /// It is being sent.
    Sending,
    /// The other side has it.
    Delivered,
    /// It was given up; asking for it again, or the operator, queues it again.
    Failed,
}

impl DeliveryState {
    /// Every state, in the order in which they come.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Sending, Self::Delivered, Self::Failed];

    /// The word in answers, requests and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// One version of an item that is sent, or was, through one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub id: Uuid,
    /// Whose request it was; the channel is that user's.
    pub user: UserId,
    /// The organization for which that user acted.
    pub organization: OrganizationId,
    /// The channel, which may be gone since.
    pub channel: ChannelId,
    /// The item.
    pub item: ItemKey,
    /// The editors' crop by whose uri it was asked for, in pixels of the hires image.
    pub crop: Option<CropSpec>,
    /// What of the item: another version is another delivery.
    pub version: String,
    /// The agreement that the request named.
    pub agreement: Option<AgreementId>,
    /// How far it got.
    pub state: DeliveryState,
    /// Times that it was tried since it was queued.
    pub attempts: u32,
    /// When it is tried next; while it is sent, when somebody else takes it up if its sender is
    /// not heard of.
    pub next: Option<Timestamp>,
    /// Why the last try failed.
    pub error: Option<String>,
    /// When it was asked for.
    pub created: Timestamp,
    /// When it was queued last: it is given up some time after that.
    pub queued: Timestamp,
    /// When its state changed last.
    pub updated: Timestamp,
    /// When the other side had it.
    pub delivered: Option<Timestamp>,
}

/// Why an attempt to send failed, cut to what is stored of it.
#[must_use]
pub fn shorten_reason(text: &str) -> String {
    match text.char_indices().nth(DELIVERY_ERROR_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
