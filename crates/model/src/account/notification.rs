//! Notifications: saved queries whose new matches are sent to the user (contract notifications-1).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use super::{AgreementId, DeviceKind, UserId};
use crate::limits::DIGEST_ITEMS_MAX;
use crate::{ItemKey, MediaType};

/// The method by which a user is notified of new matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumCount, EnumIter, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum NotificationKind {
    /// A push message to each of the user's devices.
    Mobile,
    /// An e-mail for each item.
    Email,
    /// An e-mail with the items published since the last e-mail.
    ScheduledEmail,
    /// A queue that the client reads.
    Stream,
}

crate::impl_as_str!(NotificationKind);

/// The saved query of a notification, as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedQuery {
    /// The query text, which parsed when it was saved.
    pub q: Option<String>,
    /// Product codes; a code that begins with `-` is excluded.
    pub p: Vec<String>,
    /// The agreements of which at least one must cover an item. Empty means all the user's agreements.
    pub agr: Vec<AgreementId>,
    /// A time range that ends when the message is written: `h`, `d`, `w`, `m` or `y`.
    pub tr: Option<String>,
}

/// The settings that depend on the kind of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationMethod {
    /// Sends push messages to the user's devices.
    Mobile,
    /// Sends an e-mail for each item.
    Email { email: String },
    /// Sends an e-mail on a schedule.
    ScheduledEmail {
        email: String,
        /// A cron expression with five fields.
        schedule: String,
        /// The name of the time zone of `schedule`.
        timezone: String,
    },
    /// Adds items to a queue.
    Stream,
}

impl NotificationMethod {
    /// Returns the kind of the notification.
    pub fn kind(&self) -> NotificationKind {
        match self {
            Self::Mobile => NotificationKind::Mobile,
            Self::Email { .. } => NotificationKind::Email,
            Self::ScheduledEmail { .. } => NotificationKind::ScheduledEmail,
            Self::Stream => NotificationKind::Stream,
        }
    }

    /// Returns the receiving address of the kinds that send e-mail.
    pub fn email(&self) -> Option<&str> {
        match self {
            Self::Mobile | Self::Stream => None,
            Self::Email { email } | Self::ScheduledEmail { email, .. } => Some(email),
        }
    }
}

/// A notification of a user (contract notifications-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The row number in the database.
    pub number: i64,
    pub id: Uuid,
    /// The user to notify.
    pub user: UserId,
    /// The media type that items must have; `None` allows all types.
    pub media_type: Option<MediaType>,
    pub title: String,
    pub query: SavedQuery,
    pub method: NotificationMethod,
    /// The row of the item log after which matches count.
    pub after_seq: i64,
}

/// The content of one message. It is stored in the outbox until the message is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum MessageContent {
    /// A push message to one device about one item.
    #[strum(serialize = "mobile")]
    Push {
        item: String,
        /// The push service's token for the device.
        token: String,
        /// The name of the [`DeviceKind`].
        device: String,
    },
    /// An e-mail about one item.
    #[strum(serialize = "email")]
    Item { item: String },
    /// An e-mail about several new items.
    #[strum(serialize = "scheduled-email")]
    Digest {
        /// The items, newest first.
        items: Vec<String>,
        /// The number of further items that the e-mail does not list.
        more: usize,
    },
    /// An e-mail that reports that a different user registered one of the receiver's devices.
    DeviceMoved {
        /// The device's model, as the other user stated it.
        model: String,
        /// The name that the other user gave the device.
        name: Option<String>,
    },
    /// An e-mail with links for setting a password, one for each user account of the receiver.
    SetPassword {
        /// The ids of the password links.
        links: Vec<Uuid>,
    },
    /// An e-mail that reports a changed password.
    PasswordChanged,
    /// An e-mail that reports a new API key.
    KeyMade {
        /// The name of the key.
        name: String,
    },
    /// An e-mail that reports a login with a new browser.
    NewBrowser {
        browser: Option<String>,
        /// The network address of the client.
        address: Option<String>,
    },
}

impl MessageContent {
    /// Builds a push message about `item`.
    pub fn push(item: &ItemKey, token: &str, device: DeviceKind) -> Self {
        let device = device.as_str().to_owned();
        Self::Push { item: item.to_string(), token: token.to_owned(), device }
    }

    /// Merges this e-mail with `newer` into one. Returns `None` unless both are about items of a notification.
    ///
    /// Each item is listed once, newest first. Items beyond [`DIGEST_ITEMS_MAX`] are only counted.
    pub fn merge(&self, newer: &Self) -> Option<Self> {
        // Items that an earlier merge dropped cannot be compared, so their counts are added.
        let mut more = self.unlisted_count()?.saturating_add(newer.unlisted_count()?);
        let mut items: Vec<String> = Vec::new();
        for item in newer.items().iter().chain(self.items()) {
            // A linear search suffices: the list has at most `DIGEST_ITEMS_MAX` entries.
            if items.contains(item) {
                continue;
            }
            if items.len() < DIGEST_ITEMS_MAX {
                items.push(item.clone());
            } else {
                more = more.saturating_add(1);
            }
        }
        Some(Self::Digest { items, more })
    }

    /// Returns the number of items that earlier merges dropped; `None` for a message that is never merged.
    fn unlisted_count(&self) -> Option<usize> {
        if let Self::Digest { more, .. } = self {
            return Some(*more);
        }
        // A push message goes to a single device, and mail about an account must arrive on its own.
        matches!(self, Self::Item { .. }).then_some(0)
    }

    /// Returns the kind of content as a word for operators.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Reports whether the message is about the receiver's account and therefore belongs to no notification.
    pub fn is_about_account(&self) -> bool {
        !matches!(self, Self::Push { .. } | Self::Item { .. } | Self::Digest { .. })
    }

    /// Returns the items that the message is about.
    pub fn items(&self) -> &[String] {
        if let Self::Digest { items, .. } = self {
            return items;
        }
        let (Self::Push { item, .. } | Self::Item { item }) = self else { return &[] };
        std::slice::from_ref(item)
    }
}

/// The transport that sends a message. Each transport has its own queue, so a slow one does not delay the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumCount, EnumIter, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum MessageTransport {
    Mail,
    /// Push messages to Apple devices.
    Apple,
    /// Push messages to Android devices.
    Google,
}

crate::impl_as_str!(MessageTransport);

impl MessageTransport {
    /// Returns the transport for devices of `kind`.
    pub fn for_device(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Ios | DeviceKind::IosSandbox => Self::Apple,
            DeviceKind::Android => Self::Google,
        }
    }

    /// Returns the position of the transport among all transports.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// The state of a message in the outbox. A sent message is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum MessageState {
    /// Waits for its first attempt or a retry.
    Waiting,
    /// Has an attempt in flight.
    Sending,
    /// Given up after the last retry. The operator can send it again or drop it.
    Parked,
}

crate::impl_as_str!(MessageState);

/// A message stored in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxMessage {
    /// The message id, by which receivers recognize a duplicate.
    pub id: Uuid,
    /// The row number of the notification, which may have been removed since.
    pub number: i64,
    /// The receiver of the message.
    pub user: UserId,
    pub content: MessageContent,
    pub state: MessageState,
    /// Attempts since the message was last queued.
    pub attempts: u32,
    /// The time of the next attempt.
    pub next: Option<Timestamp>,
    /// The reason of the last failure.
    pub error: Option<String>,
    /// The time at which the message was created.
    pub created: Timestamp,
    /// The time at which it was last queued; the retry deadline counts from here.
    pub queued: Timestamp,
}
