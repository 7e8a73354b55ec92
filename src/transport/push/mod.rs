//! Sends one push message to one mobile device: over Firebase Cloud Messaging to Android, over the
//! Apple Push Notification service to iOS.
//!
//! Knows no database and keeps nothing but connections and tokens: the caller repeats what may
//! succeed later and removes devices that are gone. Every send has a time-out, every answer a cap;
//! no redirect is followed and no proxy used.
//!
//! A message has a title, a body, perhaps a picture, and what the app needs to open the item,
//! under the same names on every platform (`payload`). Contract notifications-22.

mod apns;
mod client;
mod error;
mod fcm;
mod payload;
mod settings;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use uuid::Uuid;

pub use self::error::PushError;
use self::{apns::ApnsClient, fcm::FcmClient};
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::runtime::limits;
use model::account::DeviceKind;

/// The way to mobile devices. Copies share connections and tokens.
#[derive(Clone)]
pub struct Push {
    services: Arc<PushServices>,
}

/// The services that are set.
struct PushServices {
    fcm: Option<FcmClient>,
    apns: Option<ApnsClient>,
}

/// One message to one device.
#[derive(Clone)]
pub struct PushMessage {
    /// Names the message, the same for every try; Apple and the app recognize a repetition by it.
    pub id: Uuid,
    /// How the device is reached.
    pub device: DeviceKind,
    /// What its maker's service knows the device by; a secret.
    pub token: String,
    /// The first line; any text. A long one is shortened.
    pub title: String,
    /// What stands below it; any text. Shortened to what the services take.
    pub body: String,
    /// The page that the message opens.
    pub url: String,
    /// The address of a picture; left out where there is no room for it.
    pub image: Option<String>,
    /// URI of the item.
    pub item_uri: String,
    /// Its media type, as in addresses.
    pub media_type: String,
    /// The notification that the item matched; iOS groups messages by it.
    pub notification: Uuid,
    /// Of messages with the same one the device shows the last; empty: all are shown.
    pub collapse: String,
}

/// Without the token.
impl fmt::Debug for PushMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message {} to {} about {}", self.id, self.device.as_str(), self.item_uri)
    }
}

/// Without keys.
impl fmt::Debug for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = DeviceKind::ALL.into_iter().filter(|kind| self.reaches(*kind));
        f.debug_list().entries(kinds.map(DeviceKind::as_str)).finish()
    }
}

impl Push {
    /// The services that the settings `push.…` describe; reads the files that they name, blocks.
    ///
    /// Fails when a file is missing or damaged and when a setting lacks another one; the message
    /// names the setting.
    pub fn of(config: &Config) -> Result<Self> {
        let (fcm, apns) = settings::read(&config.push)?;
        Ok(Self { services: Arc::new(PushServices { fcm, apns }) })
    }

    /// Whether a service for such devices is set.
    #[must_use]
    pub fn reaches(&self, kind: DeviceKind) -> bool {
        match kind {
            DeviceKind::Android => self.services.fcm.is_some(),
            DeviceKind::Ios | DeviceKind::IosSandbox => self.services.apns.is_some(),
        }
    }

    /// Sends `message`; takes [`limits::PUSH_SEND`] at most. `now` is asked where something is
    /// signed or dated.
    ///
    /// The error says what is to become of device and message. A message that failed with
    /// [`PushError::Retry`] may have arrived; its `id` tells the app.
    pub async fn send(
        &self,
        message: &PushMessage,
        now: fn() -> Timestamp,
    ) -> std::result::Result<(), PushError> {
        match tokio::time::timeout(limits::PUSH_SEND, self.hand_over(message, now)).await {
            Ok(sent) => sent,
            Err(_) => Err(PushError::later(format!("no answer within {:?}", limits::PUSH_SEND))),
        }
    }

    async fn hand_over(
        &self,
        message: &PushMessage,
        now: fn() -> Timestamp,
    ) -> std::result::Result<(), PushError> {
        let PushServices { fcm, apns } = &*self.services;
        let none = || {
            let said = format!("no service for {} devices is set", message.device.as_str());
            PushError::Permanent { said }
        };
        match message.device {
            DeviceKind::Android => fcm.as_ref().ok_or_else(none)?.send(message, now).await,
            DeviceKind::Ios | DeviceKind::IosSandbox => {
                apns.as_ref().ok_or_else(none)?.send(message, now).await
            }
        }
    }
}
