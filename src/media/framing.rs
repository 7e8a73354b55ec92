//! The editors' crop: a stored `uri` may carry one, and what it names is then that piece of the picture.

use super::{CatalogEntry, MediaSettings, access, plan::bad_crop};
use crate::runtime::error::{Error, Result};
use model::item::AssetGroup;
use model::media_url::{MediaPath, MediaTarget, PictureOperation, RenditionFile};
use model::{CropSpec, Rect, RenditionUsage, scale_crop};

/// The path to what `path` names of `entry`, within `crop`, which is in pixels of the hires image.
///
/// Of a picture it is the address that the item's `.json` with that crop gives its renditions, so that both
/// are one rendition; a crop of `path` itself lies within it. A `.json` gets the crop. Other files are
/// whole. A crop that leaves the picture, which may have been replaced since, counts as none.
///
/// Fails with [`Kind::InvalidArgument`](crate::runtime::error::Kind::InvalidArgument) for a crop of `path` that leaves
/// the piece.
pub(super) fn apply_crop(
    entry: &CatalogEntry,
    path: MediaPath,
    crop: Option<CropSpec>,
    settings: &MediaSettings,
) -> Result<MediaPath> {
    let Some(crop) = crop else { return Ok(path) };
    match path.target() {
        MediaTarget::Rendition(file) if file.extension().is_image() => {
            match crop_rect(entry, file, crop, settings) {
                Some(frame) => crop_rendition(entry, file, frame),
                None => Ok(path),
            }
        }
        MediaTarget::Document(file) if file.extension().accepts_crop() => {
            Ok(path.clone().with_operation(PictureOperation::Crop(crop)).unwrap_or(path))
        }
        MediaTarget::Item(_)
        | MediaTarget::Pricelist
        | MediaTarget::Document(_)
        | MediaTarget::Rendition(_) => Ok(path),
    }
}

/// The piece in pixels of the rendition `file`.
fn crop_rect(
    entry: &CatalogEntry,
    file: &RenditionFile,
    crop: CropSpec,
    settings: &MediaSettings,
) -> Option<Rect> {
    let files = AssetGroup::of_item(&entry.assets);
    let hires = files.picture(RenditionUsage::Hires)?.upright();
    let size = settings.sizes.rendition_size(files, file.name())?;
    scale_crop(crop.resolve(hires).ok()?, hires, size).ok()
}

/// The same rendition within `frame`, with the operations of `file`. A mark is drawn on what is left of the
/// picture, wherever it stands among them.
fn crop_rendition(entry: &CatalogEntry, file: &RenditionFile, frame: Rect) -> Result<MediaPath> {
    let (mut cut, mut mark) = (frame, None);
    for operation in file.operations() {
        match operation {
            PictureOperation::Watermark => mark = Some(*operation),
            PictureOperation::Crop(crop) => {
                let inner = crop.resolve(frame.size()).map_err(|error| bad_crop(&error))?;
                cut = Rect { x: frame.x + inner.x, y: frame.y + inner.y, ..inner };
            }
        }
    }
    let crop = PictureOperation::Crop(CropSpec::try_from(cut).map_err(Error::internal)?);
    let path = MediaPath::rendition(entry.key.clone(), file.name(), file.extension());
    let missing = access::not_available(&path);
    let mut operations = std::iter::once(crop).chain(mark);
    operations.try_fold(path, MediaPath::with_operation).map_err(|_| missing)
}
