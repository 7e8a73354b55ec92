//! Notifications: standing questions of a user, and how the answers reach that user (contract
//! notifications-1).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgreementId, DeviceKind, UserId};
use crate::limits::DIGEST_ITEMS_MAX;
use crate::{ItemKey, MediaType};

/// How a user learns of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationKind {
    /// A push message to every device of the user.
    Mobile,
    /// A mail for every item.
    Email,
    /// A mail with what came in since the last one.
    ScheduledEmail,
    /// A queue that the client reads.
    Stream,
}

impl NotificationKind {
    /// Every kind, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Mobile, Self::Email, Self::ScheduledEmail, Self::Stream];

    /// The word in answers, addresses and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Email => "email",
            Self::ScheduledEmail => "scheduled-email",
            Self::Stream => "stream",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Which items a notification is about, as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedQuery {
    /// The query, which parsed when it was written.
    pub q: Option<String>,
    /// Product codes; those behind a `-` are excluded.
    pub p: Vec<String>,
    /// Agreements of which one has to cover an item; empty: any of the user's.
    pub agr: Vec<AgreementId>,
    /// A time up to the moment of the message: `h`, `d`, `w`, `m` or `y`.
    pub tr: Option<String>,
}

/// What depends on the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationMethod {
    /// To the user's devices.
    Mobile,
    /// To this address.
    Email {
        /// The address.
        email: String,
    },
    /// To this address, now and then.
    ScheduledEmail {
        /// The address.
        email: String,
        /// A cron expression of five fields.
        schedule: String,
        /// Name of the time zone in which it is read.
        timezone: String,
    },
    /// Into a queue.
    Stream,
}

impl NotificationMethod {
    /// The kind.
    #[must_use]
    pub fn kind(&self) -> NotificationKind {
        match self {
            Self::Mobile => NotificationKind::Mobile,
            Self::Email { .. } => NotificationKind::Email,
            Self::ScheduledEmail { .. } => NotificationKind::ScheduledEmail,
            Self::Stream => NotificationKind::Stream,
        }
    }

    /// Where mails go, of the kinds that send some.
    #[must_use]
    pub fn email(&self) -> Option<&str> {
        match self {
            Self::Mobile | Self::Stream => None,
            Self::Email { email } | Self::ScheduledEmail { email, .. } => Some(email),
        }
    }
}

/// A notification (contract notifications-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its number in the database.
    pub number: i64,
    /// Its name.
    pub id: Uuid,
    /// Whose it is.
    pub user: UserId,
    /// Items of this media type only; `None`: of every one.
    pub media_type: Option<MediaType>,
    /// Its title.
    pub title: String,
    /// Which items.
    pub query: SavedQuery,
    /// How the user learns of them.
    pub method: NotificationMethod,
    /// The row of the item log behind which items count.
    pub after_seq: i64,
}

/// What one message is about and who gets it, kept in the outbox until it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum MessageContent {
    /// A push message to one device.
    Push {
        /// The item.
        item: String,
        /// The device's token.
        token: String,
        /// The device's type.
        device: String,
    },
    /// A mail about one item.
    Item {
        /// The item.
        item: String,
    },
    /// A mail about what came in.
    Digest {
        /// Items, the newest first.
        items: Vec<String>,
        /// Further items that the mail counts only.
        more: usize,
    },
    /// A mail that a device of the receiver was registered by another user.
    DeviceMoved {
        /// What the device is, as the other user says.
        model: String,
        /// What the other user calls it.
        name: Option<String>,
    },
    /// A mail with links by which the receiver sets a password: one for each of its users.
    SetPassword {
        /// The ids of the links.
        links: Vec<Uuid>,
    },
    /// A mail that the receiver has another password.
    PasswordChanged,
    /// A mail that the receiver made an API key.
    KeyMade {
        /// What the key is called.
        name: String,
    },
    /// A mail that the receiver logged in with a browser that was not known.
    NewBrowser {
        /// What the browser says it is (`User-Agent`).
        browser: Option<String>,
        /// The network address.
        address: Option<String>,
    },
}

impl MessageContent {
    /// A push message about `item`.
    #[must_use]
    pub fn push(item: &ItemKey, token: &str, device: DeviceKind) -> Self {
        let device = device.as_str().to_owned();
        Self::Push { item: item.to_string(), token: token.to_owned(), device }
    }

    /// One mail about the items of this one and of `newer`; `None` for push messages.
    ///
    /// Items stand once, the newest first; behind [`DIGEST_ITEMS_MAX`] they are counted only.
    #[must_use]
    pub fn merge(&self, newer: &Self) -> Option<Self> {
        let counted = |content: &Self| match content {
            Self::Push { .. }
            | Self::DeviceMoved { .. }
            | Self::SetPassword { .. }
            | Self::PasswordChanged
            | Self::KeyMade { .. }
            | Self::NewBrowser { .. } => None,
            Self::Item { .. } => Some(0),
            Self::Digest { more, .. } => Some(*more),
        };
        let mut more = counted(self)?.saturating_add(counted(newer)?);
        let mut items: Vec<String> = Vec::new();
        for item in newer.items().iter().chain(self.items()) {
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

    /// The word for operators.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Push { .. } => "mobile",
            Self::Item { .. } => "email",
            Self::Digest { .. } => "scheduled-email",
            Self::DeviceMoved { .. } => "device-moved",
            Self::SetPassword { .. } => "set-password",
            Self::PasswordChanged => "password-changed",
            Self::KeyMade { .. } => "key-made",
            Self::NewBrowser { .. } => "new-browser",
        }
    }

    /// Whether it is about the account of its receiver and belongs to no notification.
    #[must_use]
    pub fn is_about_account(&self) -> bool {
        match self {
            Self::Push { .. } | Self::Item { .. } | Self::Digest { .. } => false,
            Self::DeviceMoved { .. }
            | Self::SetPassword { .. }
            | Self::PasswordChanged
            | Self::KeyMade { .. }
            | Self::NewBrowser { .. } => true,
        }
    }

    /// The items that are told of.
    #[must_use]
    pub fn items(&self) -> &[String] {
        match self {
            Self::Push { item, .. } | Self::Item { item } => std::slice::from_ref(item),
            Self::Digest { items, .. } => items,
            Self::DeviceMoved { .. }
            | Self::SetPassword { .. }
            | Self::PasswordChanged
            | Self::KeyMade { .. }
            | Self::NewBrowser { .. } => &[],
        }
    }
}

/// Who sends a message: lines that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageTransport {
    /// Mails.
    Mail,
    /// Push messages to Apple's devices.
    Apple,
    /// Push messages to Android devices.
    Google,
}

impl MessageTransport {
    /// Every lane.
    pub const ALL: [Self; 3] = [Self::Mail, Self::Apple, Self::Google];

    /// The lane of messages to such devices.
    #[must_use]
    pub fn for_device(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Ios | DeviceKind::IosSandbox => Self::Apple,
            DeviceKind::Android => Self::Google,
        }
    }

    /// Its place in [`MessageTransport::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Mail => 0,
            Self::Apple => 1,
            Self::Google => 2,
        }
    }

    /// The word in the database and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Apple => "apple",
            Self::Google => "google",
        }
    }
}

/// How far a message got; one that was sent is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageState {
    /// It waits for its turn, the first or another one.
    Waiting,
    /// It is being sent.
    Sending,
    /// It was given up; the operator sends it again or drops it.
    Parked,
}

impl MessageState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Sending, Self::Parked];

    /// The word in the database and for operators.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Parked => "parked",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxMessage {
    /// Its name; receivers recognize a repetition by it.
    pub id: Uuid,
    /// The number of the notification, which may be gone since.
    pub number: i64,
    /// Whose it is.
    pub user: UserId,
    /// What it says.
    pub content: MessageContent,
    /// How far it got.
    pub state: MessageState,
    /// Times that it was tried since it was queued.
    pub attempts: u32,
    /// When it is tried next.
    pub next: Option<Timestamp>,
    /// Why the last try failed.
    pub error: Option<String>,
    /// When it was written.
    pub created: Timestamp,
    /// When it was queued last: it is parked some time after that.
    pub queued: Timestamp,
}
