//! The originals of bought photographs under a URL that a browser can open, so that a visitor can drag a picture
//! from a page to the desktop.

use super::{PageResult, SiteRequest, download_panel, item_from_path::ItemFromPath};
use crate::http::media;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::account::AgreementId;
use model::item::has_picture;
use model::media_url::{MediaPath, RenditionExtension};
use model::{ItemKey, RenditionName};

/// The file that a visitor gets by dragging a picture from a page out of the browser.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct DraggedFile {
    url: String,
    name: String,
}

impl DraggedFile {
    /// Returns the original of the photograph `key`, with the file name of its download.
    pub(super) fn original(key: &ItemKey) -> Self {
        Self { url: format!("/item/{key}/original"), name: format!("{}.jpg", key.id) }
    }

    /// Returns the rendition at `url`, which opens without a purchase. Its file name is the last segment of the
    /// URL.
    pub(super) fn rendition(url: &str) -> Self {
        let name = url.rsplit('/').next().unwrap_or_default();
        Self { url: url.to_owned(), name: name.to_owned() }
    }
}

/// Returns the agreement under which a photograph was bought. Only under this agreement is its download free, so no
/// other one must be chosen. Fails with `message` if the photograph was not bought.
pub(super) async fn bought_under(
    site: &SiteRequest,
    key: &ItemKey,
    message: &str,
) -> Result<AgreementId> {
    let panel = download_panel::find(site, key, None).await?;
    let bought = panel.and_then(|panel| panel.bought).map(AgreementId);
    bought.ok_or_else(|| Error::new(ErrorKind::Forbidden, message))
}

/// `GET /item/<mediaType>/<id>/original`: returns the original of a photograph that the visitor's organization has
/// bought. Never buys anything, because other sites could make a browser request this URL.
pub(super) async fn show(ItemFromPath(key): ItemFromPath, site: SiteRequest) -> PageResult {
    let principal = site.principal().await?;
    if !has_picture(key.media_type) {
        return Err(Error::new(ErrorKind::NotFound, "There is no original photo here.").into());
    }
    // For an item that the visitor may not see, this fails with 404, as its page does.
    site.app.shared.media.item(&key, principal.as_deref(), clock::now()).await?;
    let message = "The original can be opened once the photo has been bought.";
    let agr = Some(bought_under(&site, &key, message).await?);
    let path = MediaPath::rendition(key, RenditionName::NORMAL_HIRES, RenditionExtension::JPEG);
    Ok(media::download(&site.app, &path, principal.as_deref(), agr).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dragged_file_has_the_name_of_its_download() {
        let key: ItemKey = "image/a_b".parse().unwrap();
        let original = DraggedFile::original(&key);
        assert_eq!(
            (original.url.as_str(), original.name.as_str()),
            ("/item/image/a_b/original", "a_b.jpg")
        );
        let preview = DraggedFile::rendition("http://x/media/image/a_b_NormalPreview.jpg");
        assert_eq!(preview.name, "a_b_NormalPreview.jpg");
    }
}
