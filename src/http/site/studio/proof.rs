//! The proof of a crop, which is cut from the Hires if the photograph was bought, else from the Preview.

use axum::{extract::Path, http::header};
use serde::Serialize;

use super::{
    CropForm, ItemPicture, PageResult, SiteRequest, StudioPhoto, bought_under, hires_path,
};
use crate::http::cache_policy::CachePolicy;
use crate::http::media;
use crate::runtime::error::Error;
use crate::runtime::limits::STUDIO_PROOF_PX_MAX;
use model::{ItemKey, Rect};

/// The picture of the crop that the page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CropProof {
    src: String,
    width: u32,
    height: u32,
    source: ProofSource,
}

/// The rendition from which the proof is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProofSource {
    Hires,
    /// The Preview, if the crop has as many pixels in it as in the Hires.
    Whole,
    /// The Preview, if the crop has fewer pixels in it.
    Preview,
}

impl CropProof {
    /// Builds the proof of the crop `rect`, whose cut of the Preview is `preview`. `hires` is the URL of its cut
    /// of the Hires, if the visitor may see it.
    pub(super) fn new(preview: &ItemPicture, rect: Rect, hires: Option<String>) -> Self {
        if let Some(src) = hires
            // A larger crop would transfer several megabytes each time the frame stops moving.
            && rect.size().pixels() <= STUDIO_PROOF_PX_MAX
        {
            return Self {
                src,
                width: rect.width,
                height: rect.height,
                source: ProofSource::Hires,
            };
        }
        let source =
            if preview.width >= rect.width { ProofSource::Whole } else { ProofSource::Preview };
        let ItemPicture { url, width, height } = preview.clone();
        Self { src: url, width, height, source }
    }
}

/// Returns the path of crops of the Hires. The query selects the crop.
pub(super) fn address(key: &ItemKey) -> String {
    format!("/item/{key}/crop/hires")
}

/// Returns the URL of the crop `rect` of the Hires.
pub(super) fn picture_url(key: &ItemKey, rect: Rect, is_marked: bool) -> String {
    let Rect { x, y, width, height } = rect;
    let mark = if is_marked { "&watermark=1" } else { "" };
    format!("{}?x={x}&y={y}&width={width}&height={height}{mark}", address(key))
}

/// `GET /item/<mediaType>/<id>/crop/hires`: returns the crop of the Hires as its media URL delivers it, if the
/// visitor's organization has bought the photograph. Never buys anything, because other sites could make a browser
/// request this URL.
pub(super) async fn show_hires(
    Path((media_type, id)): Path<(String, String)>,
    site: SiteRequest,
) -> PageResult {
    let photo = StudioPhoto::load(&site, &media_type, &id).await?;
    let form = CropForm::read(|name| site.parameter(name))?;
    let message = "The original is shown once the photo has been bought.";
    let agr = Some(bought_under(&site, &photo.key, message).await?);
    let rect = form.rect(photo.hires());
    let rect = rect.ok_or_else(|| Error::invalid("query", "crop", "format", "no such crop"))?;
    let path = hires_path(&photo.key, rect, photo.hires(), form.watermark)?;
    let principal = site.principal().await?;
    let mut response = media::download(&site.app, &path, principal.as_deref(), agr).await?;
    let headers = response.headers_mut();
    // The page shows the picture. A browser that opens it in a tab should show it too, not save it.
    headers.remove(header::CONTENT_DISPOSITION);
    // A browser that shows the same crop again need not request it again.
    CachePolicy::PrivateMinutes.set(headers);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Size;

    #[test]
    fn a_crop_is_shown_from_the_hires_where_it_is_bought_and_not_too_large() {
        let key: ItemKey = "image/a".parse().unwrap();
        let check = |side: u32, preview: u32, is_bought: bool, source, src: &str| {
            let cut = ItemPicture { url: "p".to_owned(), width: preview, height: preview };
            let rect = Rect::new(1, 2, Size::new(side, side));
            let proof =
                CropProof::new(&cut, rect, is_bought.then(|| picture_url(&key, rect, true)));
            assert_eq!((proof.source, proof.src.as_str()), (source, src), "{side}");
        };
        let hires = "/item/image/a/crop/hires?x=1&y=2&width=800&height=800&watermark=1";
        check(800, 71, true, ProofSource::Hires, hires);
        check(800, 71, false, ProofSource::Preview, "p");
        check(8000, 71, true, ProofSource::Preview, "p");
        check(71, 71, false, ProofSource::Whole, "p");
    }
}
