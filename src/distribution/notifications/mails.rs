//! Renders messages about items: mails with pictures, and push messages.

use std::time::Duration;

use futures_util::StreamExt;
use jiff::{Timestamp, tz::TimeZone};

use super::Notifications;
use crate::access::auth::Principal;
use crate::archive::content;
use crate::media::{CatalogEntry, Media, MediaAnswer, MediaCaller};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{ErrorKind, Result};
use crate::runtime::limits::MAIL_DIGEST_ITEMS_MAX;
use crate::transport::mail_templates::{MailEntry, MailOccasion, MailThumbnail, NotificationMail};
use crate::transport::{InlineImage, Mail, MailAddress, push};
use model::account::{MessageContent, Notification, NotificationMethod, OutboxMessage};
use model::item::AssetGroup;
use model::media_url::MediaPath;
use model::{ItemKey, RenditionExtension, RenditionName};

/// Timeout for one picture of a mail.
const MESSAGE_PICTURE_TIME: Duration = Duration::from_secs(20);
/// Bytes of one picture in a mail; a Thumbnail takes 20 kB.
const MESSAGE_PICTURE_BYTES_MAX: usize = 512 * 1024;
/// Timeout for all pictures of one mail together.
const MESSAGE_PICTURES_TIME: Duration = Duration::from_secs(60);
/// The rendition of an item that mails and push messages show.
const THUMBNAIL: RenditionName = RenditionName::NORMAL_THUMBNAIL;

/// A message about items, and its recipient.
pub(super) struct AddressedMessage<'a> {
    pub(super) message: &'a OutboxMessage,
    pub(super) notification: &'a Notification,
    pub(super) user: &'a Principal,
    pub(super) now: Timestamp,
}

impl Notifications {
    /// Renders the mail about the items of a message, without items that have since been withdrawn or hidden;
    /// `None` if none remains.
    pub(super) async fn mail(&self, addressed: &AddressedMessage<'_>) -> Result<Option<Mail>> {
        let AddressedMessage { message, notification, user, now } = *addressed;
        let (occasion, mut more) = if let MessageContent::Digest { more, .. } = &message.content {
            (MailOccasion::Digest, *more)
        } else {
            (MailOccasion::Item, 0)
        };
        let mut entries = Vec::new();
        let mut inline = Vec::new();
        let zone = self.zone_of(notification);
        let pictures = Stopwatch::start();
        for item in message.content.items() {
            let Some(found) = self.item(item, user, now).await? else { continue };
            // Counted after the look-up, so that the number excludes withdrawn items.
            if entries.len() == MAIL_DIGEST_ITEMS_MAX {
                more += 1;
                continue;
            }
            let mut entry = self.entry(&found, &zone);
            // Each picture has a time limit, and all pictures together have one. One slow render loses only its
            // own picture, many lose the remaining pictures, but never the mail.
            let time_left = MESSAGE_PICTURES_TIME.saturating_sub(pictures.elapsed());
            let time_left = time_left.min(MESSAGE_PICTURE_TIME);
            let picture = self.thumbnail(&found, user, inline.len(), time_left, now).await;
            if let Some((thumb, bytes)) = picture {
                let mime = RenditionExtension::JPEG.mime_type().to_owned();
                inline.push(InlineImage { cid: thumb.cid.clone(), mime, bytes });
                entry.thumbnail = Some(thumb);
            }
            entries.push(entry);
        }
        let to = notification.method.email().and_then(MailAddress::parse);
        let Some(to) = to.filter(|_| !entries.is_empty()) else { return Ok(None) };
        let settings = self.inner.settings.get();
        let unsubscribe_url = self.unsubscribe_url(notification.id);
        let notification_mail = NotificationMail {
            site_name: settings.site_name.clone(),
            title: notification.title.clone(),
            occasion,
            entries,
            more,
            unsubscribe_url: unsubscribe_url.clone(),
            site_url: settings.site_url.clone(),
        };
        let rendered =
            self.inner.services.mail_templates.render_notification(&notification_mail)?;
        Ok(Some(Mail {
            id: message.id.to_string(),
            at: now,
            to: vec![to],
            subject: rendered.subject,
            text: rendered.text,
            html: Some(rendered.html),
            attachments: Vec::new(),
            inline,
            headers: vec![
                // RFC 8058: mail programs end the notification with one click (contract notifications-16).
                ("List-Unsubscribe".to_owned(), format!("<{unsubscribe_url}>")),
                ("List-Unsubscribe-Post".to_owned(), "List-Unsubscribe=One-Click".to_owned()),
                // Keeps vacation responders from answering (RFC 3834 §5).
                ("Auto-Submitted".to_owned(), "auto-generated".to_owned()),
            ],
        }))
    }

    /// Renders the push message about an item; `None` if the item has since been withdrawn or hidden.
    pub(super) async fn push_message(
        &self,
        addressed: &AddressedMessage<'_>,
        item: &str,
        device: model::account::DeviceKind,
        token: &str,
    ) -> Result<Option<push::PushMessage>> {
        let AddressedMessage { message, notification, user, now } = *addressed;
        let Some(found) = self.item(item, user, now).await? else { return Ok(None) };
        let links = self.inner.services.media.links();
        // The device loads the picture without credentials, and only renditions of images are public (contract
        // access-11).
        let picture = (found.key.media_type == model::MediaType::Image)
            .then(|| links.rendition(&found.key, THUMBNAIL, None));
        let title = if notification.title.is_empty() {
            self.inner.settings.get().site_name.clone()
        } else {
            notification.title.clone()
        };
        Ok(Some(push::PushMessage {
            id: message.id,
            device,
            token: token.to_owned(),
            title,
            body: headline(&found).to_owned(),
            url: self.page(&found.key),
            image: picture,
            item_uri: links.item(&found.key),
            media_type: found.key.media_type.to_string(),
            notification: notification.id,
            // A newer version of the item replaces its message on the device.
            collapse: found.key.to_string(),
        }))
    }

    /// Finds an item if the user may see it.
    async fn item(
        &self,
        item: &str,
        user: &Principal,
        now: Timestamp,
    ) -> Result<Option<std::sync::Arc<CatalogEntry>>> {
        let Ok(key) = item.parse::<ItemKey>() else { return Ok(None) };
        match self.inner.services.media.item(&key, Some(user), now).await {
            Ok(found) => {
                // The user may be able to read the item without an agreement, but only agreements count for
                // notifications (contract notifications-5).
                let coverage = content::coverage(Some(user), &[], now);
                Ok(content::covers(&coverage, &found.document).then_some(found))
            }
            // Other errors are returned, so that the message is retried instead of sent incomplete.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn entry(&self, found: &CatalogEntry, zone: &TimeZone) -> MailEntry {
        let document = &found.document;
        let created = document.time("versioncreated").unwrap_or(found.stored);
        MailEntry {
            headline: headline(found).to_owned(),
            description: document.text("description_text").unwrap_or_default().to_owned(),
            byline: document.text("byline").unwrap_or_default().to_owned(),
            source: document.text("source").unwrap_or_default().to_owned(),
            media_type: found.key.media_type.to_string(),
            time: created.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
            url: self.page(&found.key),
            thumbnail: None,
        }
    }

    fn page(&self, key: &ItemKey) -> String {
        format!("{}/item/{key}", self.inner.settings.get().site_url)
    }

    /// Returns the time zone for times in a mail.
    fn zone_of(&self, notification: &Notification) -> TimeZone {
        if let NotificationMethod::ScheduledEmail { timezone, .. } = &notification.method
            && let Ok(zone) = TimeZone::get(timezone)
        {
            return zone;
        }
        self.inner.settings.get().zone.clone()
    }

    /// Renders the Thumbnail of an item. On any failure, the mail is sent without the picture.
    async fn thumbnail(
        &self,
        found: &CatalogEntry,
        user: &Principal,
        number: usize,
        time_left: Duration,
        now: Timestamp,
    ) -> Option<(MailThumbnail, Vec<u8>)> {
        let media = &self.inner.services.media;
        let size = media
            .settings()
            .sizes
            .rendition_size(AssetGroup::of_item(&found.assets), THUMBNAIL)?;
        let path = MediaPath::rendition(found.key.clone(), THUMBNAIL, RenditionExtension::JPEG);
        let caller = MediaCaller { principal: Some(user), agr: None, now };
        let answer = media.resolve(&path, caller).await.ok()?;
        let MediaAnswer::Rendition(answer) = answer else { return None };
        let obtained = media.obtain(&answer, time_left).await.ok()?;
        let bytes = read(media, obtained.body.parts().to_vec()).await?;
        let thumb =
            MailThumbnail { cid: format!("t{number}"), width: size.width, height: size.height };
        Some((thumb, bytes))
    }
}

/// Returns the headline of an item, else its slug, else its id.
fn headline(found: &CatalogEntry) -> &str {
    let document = &found.document;
    document.text("headline").or(document.text("slug")).unwrap_or(found.key.id.as_str())
}

/// Reads a picture; `None` if it is too large for a mail.
async fn read(media: &Media, parts: Vec<crate::media::BodyPart>) -> Option<Vec<u8>> {
    let mut stream = Box::pin(media.stream(parts));
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.ok()?);
        // Mail servers refuse large messages, so a large picture is left out.
        if bytes.len() > MESSAGE_PICTURE_BYTES_MAX {
            return None;
        }
    }
    Some(bytes)
}
