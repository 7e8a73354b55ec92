//! The originals of bought photographs under an address that a browser can open, so that a picture can be
//! dragged from a page to the desktop.

use super::{PageResult, SiteRequest, download_panel, item::ItemFromPath};
use crate::http::media;
use crate::media::MediaCaller;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind};
use model::account::AgreementId;
use model::item::has_picture;
use model::media_url::{MediaPath, RenditionExtension};
use model::{ItemKey, RenditionName};

/// A file that a picture on a page stands for when it is dragged out of the browser.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(super) struct DraggedFile {
    url: String,
    name: String,
}

impl DraggedFile {
    /// The original of the photograph `key`, under the name that its download has.
    pub(super) fn original(key: &ItemKey) -> Self {
        Self { url: format!("/item/{key}/original"), name: format!("{}.jpg", key.id) }
    }

    /// A rendition that opens without a purchase, under the last part of its URL.
    pub(super) fn rendition(url: &str) -> Self {
        let name = url.rsplit('/').next().unwrap_or_default();
        Self { url: url.to_owned(), name: name.to_owned() }
    }
}

/// `GET /item/<mediaType>/<id>/original`: the original of a photograph that the visitor's organization has
/// bought. Purchases nothing: other sites could make a browser request it.
pub(super) async fn show(ItemFromPath(key): ItemFromPath, site: SiteRequest) -> PageResult {
    let principal = match &site.visitor {
        Some(visitor) => visitor.principal(&site.app).await?,
        None => None,
    };
    if !has_picture(key.media_type) {
        return Err(Error::new(ErrorKind::NotFound, "There is no original photo here.").into());
    }
    // A hidden item is not found, as on its page.
    site.app.shared.media.item(&key, principal.as_deref(), clock::now()).await?;
    let panel = download_panel::find(&site, &key, None).await?;
    // The download is free under this agreement alone, so another one must not be chosen.
    let Some(agreement) = panel.and_then(|panel| panel.bought) else {
        let message = "The original can be opened once the photo has been bought.";
        return Err(Error::new(ErrorKind::Forbidden, message).into());
    };
    let caller =
        MediaCaller { principal: principal.as_deref(), agr: Some(AgreementId(agreement)) };
    let path = MediaPath::rendition(key, RenditionName::NORMAL_HIRES, RenditionExtension::JPEG);
    Ok(media::download(&site.app, &path, caller).await?)
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
