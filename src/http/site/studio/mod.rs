//! The crop studio: shows a photograph with a rectangle on it, and the URLs that deliver the crop.
//!
//! Without scripts the page is a form. The details of the crop come from the item's `.json` with the crop
//! operator. With scripts (`assets/js/studio.js`) the same page follows the pointer.

mod aspect_ratio;
mod crop_form;
mod markup;
mod proof;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::api_client::{ApiCall, ApiRefusal, text};
use super::back_link::BackLink;
use super::item_summary::{ItemPicture, rendition};
use super::originals::bought_under;
use super::{AppState, MemberForm, PageError, PageResult, SiteRequest, download_panel};
use crate::http::form::see_other;
use crate::http::media;
use crate::http::protocol::disposition;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::STUDIO_PROOF_PX_MAX;
use aspect_ratio::CropSizes;
use crop_form::CropForm;
use markup::{OpenWidths, in_markup, picture_markup};
use model::item::has_picture;
use model::media_url::{MediaPath, MediaTarget, PictureOperation, RenditionExtension};
use model::{CropSpec, ItemKey, Rect, RenditionName, Size};
use proof::CropProof;

/// Intended uses of a crop: value, label, and minimum width in pixels. Prints are at 300 dots per inch.
const CROP_USES: [(&str, &str, u32); 6] = [
    ("web-800", "Web, in the text: 800 px", 800),
    ("web-1600", "Web, full width: 1600 px", 1600),
    ("web-2560", "Web, large screens: 2560 px", 2560),
    ("print-5", "Print, 5 cm: 591 px", 591),
    ("print-15", "Print, 15 cm: 1772 px", 1772),
    ("print-30", "Print, 30 cm: 3543 px", 3543),
];

/// The routes of the studio.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/item/{media_type}/{id}/crop", get(show))
        .route("/item/{media_type}/{id}/crop/download", post(download))
        .route("/item/{media_type}/{id}/crop/hires", get(proof::show_hires))
}

impl ItemPicture {
    /// Adds the watermark operation after the crop.
    fn with_watermark(mut self, is_marked: bool) -> Self {
        // The name of the rendition follows the last underscore. An id may contain underscores too.
        if is_marked && let Some((picture, name)) = self.url.rsplit_once('_') {
            self.url = format!("{picture}-watermark_{name}");
        }
        self
    }

    fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }
}

/// The three renditions of a photograph, complete or cropped.
#[derive(Clone, Debug, Serialize)]
struct CropPictures {
    hires: ItemPicture,
    preview: ItemPicture,
    thumbnail: ItemPicture,
}

impl CropPictures {
    fn find(document: &Value, is_marked: bool) -> Option<Self> {
        let find = |name| Some(rendition(document, name)?.with_watermark(is_marked));
        Some(Self {
            hires: find(RenditionName::NORMAL_HIRES)?,
            preview: find(RenditionName::NORMAL_PREVIEW)?,
            thumbnail: find(RenditionName::NORMAL_THUMBNAIL)?,
        })
    }
}

fn no_photograph() -> PageError {
    Error::new(ErrorKind::NotFound, "There is no photo to crop here.").into()
}

/// The photograph in the studio.
struct StudioPhoto {
    key: ItemKey,
    document: Value,
    pictures: CropPictures,
}

impl StudioPhoto {
    async fn load(site: &SiteRequest, media_type: &str, id: &str) -> Result<Self, PageError> {
        let key: ItemKey = format!("{media_type}/{id}").parse().map_err(|_| no_photograph())?;
        // Checked before the item is loaded, because loading an item of a different type may require a login,
        // although it has no studio page.
        if !has_picture(key.media_type) {
            return Err(no_photograph());
        }
        let document = site.get(format!("/media/{key}.json")).await?;
        let pictures = CropPictures::find(&document, false).ok_or_else(no_photograph)?;
        Ok(Self { key, document, pictures })
    }

    fn hires(&self) -> Size {
        self.pictures.hires.size()
    }

    /// Returns the document of the requested crop, with its rectangle on the Hires.
    async fn crop(
        &self,
        site: &SiteRequest,
        form: &CropForm,
    ) -> Result<(Value, Rect), ApiRefusal> {
        let sizes = CropSizes { hires: self.hires(), preview: self.pictures.preview.size() };
        let (operator, rect) = form.operator(sizes)?;
        let call = ApiCall::get(format!("/media/{}{operator}.json", self.key));
        let document = site.call(&call).await?;
        Ok((document, rect.unwrap_or(Rect::new(0, 0, self.hires()))))
    }
}

async fn show(Path((media_type, id)): Path<(String, String)>, site: SiteRequest) -> PageResult {
    let photo = StudioPhoto::load(&site, &media_type, &id).await?;
    let form = CropForm::read(|name| site.parameter(name))?;
    studio_page(&site, &photo, &form, None).await
}

/// `POST /item/<mediaType>/<id>/crop/download`: buys and downloads the crop of the Hires. With `show`, redirects
/// to the studio, which shows the crop instead. The studio shows refusals.
async fn download(
    Path((media_type, id)): Path<(String, String)>,
    mut posted: MemberForm,
) -> PageResult {
    let photo = StudioPhoto::load(&posted, &media_type, &id).await?;
    let form = CropForm::read(|name| Ok(posted.form.find(name)))?;
    let outcome = buy(&posted, &photo, &form).await;
    let refusal = match outcome {
        // The response is dropped: the purchase is recorded, and the page loads the picture itself.
        Ok(_) if posted.form.find("show").is_some() => {
            let back = BackLink::from_query(&posted, &photo.key)?.query;
            let studio = format!("/item/{}/crop{back}", photo.key);
            return Ok(see_other(&form.url_on(&studio)));
        }
        Ok(response) => return Ok(response),
        Err(error)
            if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::InvalidArgument) =>
        {
            error
        }
        Err(error) => return Err(error.into()),
    };
    // Redirects after a login or a change of language lead back to the studio, not to the URL of this form.
    let page = format!("/item/{}/crop", photo.key);
    posted.member.site.reopen_at.clone_from(&page);
    posted.member.site.path_and_query = page;
    studio_page(&posted, &photo, &form, Some(&refusal)).await
}

async fn buy(
    posted: &MemberForm,
    photo: &StudioPhoto,
    form: &CropForm,
) -> crate::runtime::error::Result<Response> {
    let agr = posted.form.agreement()?;
    let rect = form.rect(photo.hires());
    let rect = rect.ok_or_else(|| Error::invalid("body", "crop", "format", "no such crop"))?;
    let path = hires_path(&photo.key, rect, photo.hires(), form.watermark)?;
    let principal = posted.visitor.principal(&posted.app).await?;
    let mut response = media::download(&posted.app, &path, principal.as_deref(), agr).await?;
    disposition::set_attachment(response.headers_mut(), &file_name(&photo.key, &path));
    Ok(response)
}

/// Returns the file name of the crop at `path`: the item's id, followed by the operations, which distinguish several
/// crops of the same picture.
fn file_name(key: &ItemKey, path: &MediaPath) -> String {
    let MediaTarget::Rendition(file) = path.target() else { return format!("{}.jpg", key.id) };
    let operations: String = file.operations().iter().map(ToString::to_string).collect();
    format!("{}{operations}.jpg", key.id)
}

/// Returns the media path of the crop of the Hires.
fn hires_path(
    key: &ItemKey,
    rect: Rect,
    hires: Size,
    is_marked: bool,
) -> crate::runtime::error::Result<MediaPath> {
    let extension = RenditionExtension::JPEG;
    let mut path = MediaPath::rendition(key.clone(), RenditionName::NORMAL_HIRES, extension);
    // The complete picture is the original, which keeps its compressed data (contract media-20).
    if rect != Rect::new(0, 0, hires) {
        let crop = CropSpec::try_from(rect).map_err(Error::internal)?;
        path = path.with_operation(PictureOperation::Crop(crop)).map_err(Error::internal)?;
    }
    if is_marked {
        path = path.with_operation(PictureOperation::Watermark).map_err(Error::internal)?;
    }
    Ok(path)
}

/// Renders the studio. `refusal` is the error of a download that was refused.
async fn studio_page(
    site: &SiteRequest,
    photo: &StudioPhoto,
    form: &CropForm,
    refusal: Option<&Error>,
) -> PageResult {
    let outcome = photo.crop(site, form).await;
    // If the API refuses the crop, the errors are shown beside the fields, with the complete picture.
    let (cut, mistake) = match outcome {
        Ok((document, rect)) => {
            let pictures = CropPictures::find(&document, form.watermark);
            (Some((pictures.ok_or_else(no_photograph)?, rect)), None)
        }
        Err(refusal) if refusal.is_mistake() => (None, Some(refusal)),
        Err(refusal) => return Err(refusal.into()),
    };
    let status = match (&mistake, refusal) {
        // An invalid crop comes first, since the download failed because of it.
        (Some(mistake), _) => mistake.status,
        (None, Some(error)) if error.kind() == ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        (None, Some(_)) => StatusCode::BAD_REQUEST,
        (None, None) => StatusCode::OK,
    };
    // The panel does not get the refusal, because the studio shows it elsewhere.
    let panel = download_panel::find(site, &photo.key, None).await?;
    let is_bought = panel.as_ref().is_some_and(|panel| panel.bought.is_some());
    let proof = cut.as_ref().map(|(pictures, rect)| {
        let hires = is_bought.then(|| proof::picture_url(&photo.key, *rect, form.watermark));
        CropProof::new(&pictures.preview, *rect, hires)
    });
    let back = BackLink::from_query(site, &photo.key)?;
    let widths = OpenWidths::load(site, &photo.key).await;
    let message = refusal.filter(|_| mistake.is_none()).map(sentence);
    let context = context! {
        take => Serde(panel),
        from => site.parameter("from")?,
        back_query => back.query,
        refusal => message,
        proof => Serde(proof),
        proof_url => is_bought.then(|| proof::address(&photo.key)),
        proof_px_max => STUDIO_PROOF_PX_MAX,
        open_width => widths.as_ref().map_or(0, |widths| widths.whole),
        smaller_widths => widths.as_ref().map_or_else(Vec::new, |widths| widths.smaller.clone()),
        ..crop_context(photo, form, cut, mistake.as_ref(), widths.as_ref())
    };
    site.page_with(status, "studio.html", context)
}

fn sentence(error: &Error) -> String {
    let detail = error.details().first();
    detail.map_or(error.message(), |detail| &detail.message).to_owned()
}

/// Returns the template context of the crop `cut`; of the complete picture if `cut` is `None`.
fn crop_context(
    photo: &StudioPhoto,
    form: &CropForm,
    cut: Option<(CropPictures, Rect)>,
    mistake: Option<&ApiRefusal>,
    widths: Option<&OpenWidths>,
) -> PageValue {
    let full = (photo.pictures.clone(), Rect::new(0, 0, photo.hires()));
    let is_cut = cut.is_some();
    let (pictures, rect) = cut.unwrap_or(full);
    // Invalid input is shown as entered. For a valid crop, missing numbers are filled in.
    let mut fields = form.clone();
    if is_cut {
        let numbers = [rect.x, rect.y, rect.width, rect.height].map(|number| number.to_string());
        [fields.x, fields.y, fields.width, fields.height] = numbers;
    }
    // The URL may contain any text, but the drop-down list must show one of its options.
    let is_preset = aspect_ratio::PRESETS.iter().any(|(name, _)| *name == fields.aspect);
    if !is_preset {
        "free".clone_into(&mut fields.aspect);
    }
    let path = hires_path(&photo.key, rect, photo.hires(), form.watermark);
    let file = path.map(|path| file_name(&photo.key, &path)).unwrap_or_default();
    let needed = CROP_USES.iter().find(|(name, _, _)| *name == form.output).map(|(_, _, px)| *px);
    let uri = text(&photo.document, "uri");
    let headline = text(&photo.document, "headline");
    context! {
        key => photo.key.to_string(),
        page => format!("/item/{}/crop", photo.key),
        uri => uri,
        json_url => format!("{uri}{}.json", crop_form::operator(rect)),
        headline,
        alt => in_markup(headline),
        markup => picture_markup(&pictures, widths, headline),
        language => text(&photo.document, "language"),
        shape => shape_class(&photo.pictures.preview),
        photo => Serde(photo.pictures.clone()),
        crop => Serde(pictures),
        rect => Serde(rect),
        right => rect.right(),
        bottom => rect.bottom(),
        thirds => Serde(thirds(rect)),
        file,
        is_cut,
        fields => Serde(fields),
        presets => aspect_ratio::PRESETS.map(|(name, _)| name).to_vec(),
        uses => Serde(CROP_USES),
        needed,
        mistakes => mistake.map(ApiRefusal::sentences),
        wrong => mistake.map(wrong_fields),
    }
}

/// Returns the fields to which an error refers. The error of a rectangle outside the picture refers to all four.
fn wrong_fields(refusal: &ApiRefusal) -> Vec<&'static str> {
    let mut fields = Vec::new();
    for error in &refusal.errors {
        match error.path.as_str() {
            "crop.x" => fields.push("x"),
            "crop.y" => fields.push("y"),
            "crop.w" => fields.push("width"),
            "crop.h" => fields.push("height"),
            "ratio" => fields.push("ratio"),
            "aspect" => fields.push("aspect"),
            _ => fields.extend(["x", "y", "width", "height"]),
        }
    }
    fields
}

/// Returns the lines of the rule of thirds on the Hires, in pixels: two vertical, then two horizontal.
fn thirds(rect: Rect) -> [f64; 4] {
    let Rect { x, y, width, height } = rect;
    [
        third_line(x, width, 1.0),
        third_line(x, width, 2.0),
        third_line(y, height, 1.0),
        third_line(y, height, 2.0),
    ]
}

/// Returns the position after `thirds` thirds of a side, rounded to a hundredth of a pixel.
fn third_line(start: u32, length: u32, thirds: f64) -> f64 {
    f64::from(start) + (f64::from(length) * thirds / 3.0 * 100.0).round() / 100.0
}

/// Returns the CSS class for the aspect ratio of a picture, in thirtieths. Narrow pictures have classes in
/// `studio.css`, all others in `site.css`.
fn shape_class(picture: &ItemPicture) -> String {
    match picture.thirtieths() {
        narrow @ ..15 => format!("r{}", narrow.max(1)),
        15.. => picture.shape(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_goes_behind_the_crop() {
        let url = "http://a/media/image/a_b-crop_w1_h1_x0_y0_NormalPreview.jpg".to_owned();
        let marked = ItemPicture { url, width: 1, height: 1 }.with_watermark(true);
        let expected = "http://a/media/image/a_b-crop_w1_h1_x0_y0-watermark_NormalPreview.jpg";
        assert_eq!(marked.url, expected);
    }

    #[test]
    fn a_shape_is_a_class_of_the_style_sheet() {
        let check = |width, height, class: &str| {
            let picture = ItemPicture { url: String::new(), width, height };
            assert_eq!(shape_class(&picture), class, "{width}x{height}");
        };
        check(1024, 683, "r45");
        check(683, 1024, "r20");
        check(1024, 10, "r75");
        check(410, 1024, "r12");
        check(10, 1024, "r1");
    }

    #[test]
    fn a_crop_of_the_full_picture_downloads_the_original() {
        let key: ItemKey = "image/a".parse().unwrap();
        let hires = Size::new(60, 40);
        let path = |rect, marked| hires_path(&key, rect, hires, marked).unwrap().to_string();
        let full = Rect::new(0, 0, hires);
        assert_eq!(path(full, false), "image/a_NormalHires.jpg");
        assert_eq!(path(full, true), "image/a-watermark_NormalHires.jpg");
        let part = Rect::new(1, 2, Size::new(3, 4));
        let expected = "image/a-crop_w3_h4_x1_y2-watermark_NormalHires.jpg";
        assert_eq!(path(part, true), expected);
    }
}
