//! The files of an item that a channel sends, through the plans and caches of media URLs.

use super::AttemptFailure;
use crate::media::CollectedFile;
use crate::media::FileSelection;
use crate::media::Media;
use crate::media::MediaCaller;
use crate::runtime::clock;
use model::account::Delivery;
use model::media_url::MediaFormat;

/// What goes out of an item.
pub(super) struct CollectedFiles {
    /// The files, at least one.
    pub(super) files: Vec<CollectedFile>,
    /// The item's headline.
    pub(super) headline: String,
}

/// The files of `formats` that the item of `delivery` has.
///
/// A channel lists formats for every media type, so what this item does not have is left out; it
/// fails when nothing is left. What a text is illustrated with is bought with it.
pub(super) async fn collect(
    media: &Media,
    delivery: &Delivery,
    formats: &[MediaFormat],
    caller: MediaCaller<'_>,
) -> Result<CollectedFiles, AttemptFailure> {
    let (now, key) = (clock::now(), &delivery.item);
    let entry = media.item(key, caller.visitor(), now).await?;
    let headline = entry.document.text("headline").unwrap_or_default().to_owned();
    let wanted = FileSelection::Formats(formats, delivery.crop);
    let collected = media.collect(key, wanted, caller, now).await?;
    // What is sent once more was bought with the first time.
    if delivery.delivered.is_none() {
        media.purchase(&collected.sale, caller, now).await?;
    }
    Ok(CollectedFiles { files: collected.files, headline })
}
