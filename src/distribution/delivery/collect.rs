//! Collects the files that a channel sends of an item, through the plans and caches of media URLs.

use super::AttemptFailure;
use crate::media::{CollectedFile, FileSelection, Media, MediaCaller};
use model::account::Delivery;
use model::media_url::MediaFormat;

/// The files to send, with the headline for mails and webhooks.
pub(super) struct CollectedFiles {
    pub(super) files: Vec<CollectedFile>,
    pub(super) headline: String,
}

/// Collects the files in `formats` of the delivered item, and records their purchase.
///
/// A channel lists formats for every media type, so formats that this item does not have are skipped. Fails if
/// none remains. The pictures of a text are purchased with the text.
pub(super) async fn collect(
    media: &Media,
    delivery: &Delivery,
    formats: &[MediaFormat],
    caller: MediaCaller<'_>,
) -> Result<CollectedFiles, AttemptFailure> {
    let key = &delivery.item;
    let entry = media.item(key, caller.visitor(), caller.now).await?;
    let headline = entry.document.text("headline").unwrap_or_default().to_owned();
    let selection = FileSelection::Formats(formats, delivery.crop);
    let collected = media.collect(key, selection, caller).await?;
    // A repeated delivery was already paid for.
    if delivery.delivered.is_none() {
        media.purchase(&collected.sale, caller).await?;
    }
    Ok(CollectedFiles { files: collected.files, headline })
}
