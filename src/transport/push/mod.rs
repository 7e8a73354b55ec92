//! Sends one push message to one mobile device: over Firebase Cloud Messaging to Android, over the
//! Apple Push Notification service to iOS.
//!
//! Push has no database access, and its only state are connections and access tokens. The caller retries temporary
//! failures and removes devices with invalid tokens. Every send has a timeout, every response a size limit.
//! Redirects are not followed, and no proxy is used.
//!
//! A message has a title, a body, an optional picture, and the data that the app needs to open the item. The data
//! has the same names on every platform (`payload`). Contract notifications-22.

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
use strum::IntoEnumIterator;
use uuid::Uuid;

pub use self::error::PushError;
use self::{apns::ApnsClient, fcm::FcmClient};
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::runtime::limits;
use model::account::DeviceKind;

/// Sends push messages to mobile devices. Clones share connections and tokens.
#[derive(Clone)]
pub struct Push {
    services: Arc<PushServices>,
}

/// The configured push services.
struct PushServices {
    fcm: Option<FcmClient>,
    apns: Option<ApnsClient>,
}

/// One message to one device.
#[derive(Clone)]
pub struct PushMessage {
    /// The id of the message, the same in every attempt. Apple and the app recognize retries by it.
    pub id: Uuid,
    /// The platform, which determines the service.
    pub device: DeviceKind,
    /// The device's token at the push service, which is a secret.
    pub token: String,
    /// The first line: any text, truncated if it is too long.
    pub title: String,
    /// The text below the title, truncated to the payload limit of the services.
    pub body: String,
    /// The URL of the page that the message opens.
    pub url: String,
    /// The URL of a picture, which is left out if the payload has no room for it.
    pub image: Option<String>,
    pub item_uri: String,
    /// The media type as in URIs, such as `image`.
    pub media_type: String,
    /// The notification that the item matched. iOS groups messages by it.
    pub notification: Uuid,
    /// The collapse key: the device shows only the last message with the same key. Empty for none.
    pub collapse: String,
}

/// Leaves out the token.
impl fmt::Debug for PushMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message {} to {} about {}", self.id, self.device.as_str(), self.item_uri)
    }
}

/// Leaves out the keys.
impl fmt::Debug for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = DeviceKind::iter().filter(|kind| self.reaches(*kind));
        f.debug_list().entries(kinds.map(DeviceKind::as_str)).finish()
    }
}

impl Push {
    /// Creates the services that the settings `push.…` describe. Reads the files that the settings name, and
    /// blocks.
    ///
    /// Fails if a file is missing or damaged, or if a setting requires a setting that is missing; the message
    /// names the setting.
    pub fn from_config(config: &Config) -> Result<Self> {
        Ok(Self { services: Arc::new(settings::read(&config.push)?) })
    }

    /// Returns whether a service for devices of this kind is configured.
    pub fn reaches(&self, kind: DeviceKind) -> bool {
        match kind {
            DeviceKind::Android => self.services.fcm.is_some(),
            DeviceKind::Ios | DeviceKind::IosSandbox => self.services.apns.is_some(),
        }
    }

    /// Sends `message` within [`limits::PUSH_SEND`]. `now` is the clock for signatures and dates.
    ///
    /// The error determines whether to retry the message and whether to remove the device. A message that failed
    /// with [`PushError::Retry`] may have arrived; the app recognizes the retry by its `id`.
    pub async fn send(
        &self,
        message: &PushMessage,
        now: fn() -> Timestamp,
    ) -> std::result::Result<(), PushError> {
        // The timeout includes the request for an access token, if one is needed.
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
        match (message.device, fcm, apns) {
            (DeviceKind::Android, Some(fcm), _) => fcm.send(message, now).await,
            (DeviceKind::Ios | DeviceKind::IosSandbox, _, Some(apns)) => {
                apns.send(message, now).await
            }
            (device, _, _) => Err(no_service(device)),
        }
    }
}

fn no_service(device: DeviceKind) -> PushError {
    let reason = format!("no service for {} devices is set", device.as_str());
    // A retry does not restore a service that was removed from the settings.
    PushError::Permanent { reason }
}
