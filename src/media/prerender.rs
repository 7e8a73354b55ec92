//! Pre-rendering: renders the standard renditions of new items before the first request.

use std::{collections::VecDeque, time::Duration};

use tokio::sync::mpsc::Receiver;

use super::{Media, MediaAnswer, MediaCaller};
use crate::runtime::clock;
use crate::runtime::limits::WARM_QUEUE_MAX;
use imaging::ImageFormat;
use model::media_url::MediaPath;
use model::{ItemKey, RenditionExtension, RenditionName};

/// The renditions that are pre-rendered for each item.
const NAMES: [RenditionName; 3] =
    [RenditionName::NORMAL_PREVIEW, RenditionName::NORMAL_THUMBNAIL, RenditionName::WEB_PREVIEW];
/// Timeout of one rendition, including its time in the queue.
const RENDER_TIMEOUT: Duration = Duration::from_secs(60);

/// Pre-renders the standard renditions of the items that it receives from `keys`, one after the other, so that
/// requests find idle workers. Ends when the sender is dropped.
pub async fn run(media: Media, mut keys: Receiver<ItemKey>) {
    // AVIF is many times slower than JPEG, so it waits until every item has its JPEG.
    let mut without_avif = VecDeque::new();
    loop {
        let received =
            if without_avif.is_empty() { keys.recv().await } else { keys.try_recv().ok() };
        if let Some(key) = received {
            media.keep_new(&key).await;
            media.prerender(&key, ImageFormat::Jpeg).await;
            if media.settings().prerenders_avif {
                if without_avif.len() == WARM_QUEUE_MAX {
                    // The newest items are requested most. AVIF of older items is made on request.
                    without_avif.pop_front();
                }
                without_avif.push_back(key);
            }
        } else if let Some(key) = without_avif.pop_front() {
            media.prerender(&key, ImageFormat::Avif).await;
        } else {
            return;
        }
    }
}

impl Media {
    /// Makes and stores the standard renditions of a new item.
    async fn keep_new(&self, key: &ItemKey) {
        let Ok(Some(entry)) = self.inner.catalog.find(key).await else { return };
        // The background job repeats it, and requests are answered without the set.
        if let Err(cause) = self.keep_standard(&entry.assets).await {
            tracing::debug!(item = %key, "standard renditions not kept: {cause}");
        }
    }

    /// Renders the standard renditions of an item in `format`, if the item is public and no cache has them.
    ///
    /// A failure needs no handling here: the next request repeats it and reports it.
    async fn prerender(&self, key: &ItemKey, format: ImageFormat) {
        // Without a cache the result would be lost at once.
        if !self.inner.cache.is_enabled() {
            return;
        }
        for name in NAMES {
            let extension = RenditionExtension::Image(format);
            let path = MediaPath::rendition(key.clone(), name, extension);
            // Without credentials only public items resolve. Only these are requested by many clients.
            let caller = MediaCaller { principal: None, agr: None, now: clock::now() };
            let answer = self.resolve(&path, caller).await;
            if let Ok(MediaAnswer::Rendition(answer)) = answer
                && self.find_cached(&answer).is_none()
                && let Err(cause) = self.obtain(&answer, RENDER_TIMEOUT).await
            {
                tracing::debug!(item = %key, "pre-rendering {path} failed: {cause}");
            }
        }
    }
}
