//! Standard renditions made before somebody asks for them.

use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::{Media, MediaAnswer, MediaCaller};
use crate::runtime::clock;
use model::media_url::MediaPath;
use model::{ItemKey, RenditionExtension, RenditionName};

/// Renditions that are made of each item.
const NAMES: [RenditionName; 3] =
    [RenditionName::NORMAL_PREVIEW, RenditionName::NORMAL_THUMBNAIL, RenditionName::WEB_PREVIEW];
/// Time that one rendition may take, queue and all.
const RENDER_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the standard renditions of the items that `wanted` names, one after the other, so that
/// requests find workers free. Ends when the sender is gone.
pub async fn run(media: Media, mut wanted: Receiver<ItemKey>) {
    while let Some(key) = wanted.recv().await {
        for name in NAMES {
            media.prerender(&key, name).await;
        }
    }
}

impl Media {
    /// Makes a rendition if everybody may see the item and no cache has it.
    ///
    /// What fails here fails again, and is answered, when somebody asks.
    async fn prerender(&self, key: &ItemKey, name: RenditionName) {
        if !self.inner.cache.is_enabled() {
            return;
        }
        let path = MediaPath::rendition(key.clone(), name, RenditionExtension::JPEG);
        let answer = self.resolve(&path, MediaCaller::default(), clock::now()).await;
        if let Ok(MediaAnswer::Rendition(answer)) = answer
            && self.find_cached(&answer).is_none()
            && let Err(cause) = self.obtain(&answer, RENDER_TIMEOUT).await
        {
            tracing::debug!(item = %key, "{name} is not made ahead: {cause}");
        }
    }
}
