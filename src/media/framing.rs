//! The editors' crop: an item's stored `uri` may carry a crop, which then applies to all of its renditions.

use super::{CatalogEntry, MediaSettings, access, plan::bad_crop};
use crate::runtime::error::{Error, Result};
use model::item::AssetGroup;
use model::media_url::{MediaPath, MediaTarget, PictureOperation, RenditionFile};
use model::{CropSpec, Rect, RenditionUsage, scale_crop};

/// Applies `crop`, in pixels of the hires image, to the path `path` of `entry`.
///
/// For a picture, the result is the same path as in the item's `.json` with that crop, so that both share one
/// rendition. A crop in `path` itself is relative to `crop`. A `.json` gets the crop as an operation. Other files
/// are not cropped. A crop that exceeds the picture is ignored, because the picture may have been replaced since.
///
/// Fails with [`ErrorKind::InvalidArgument`](crate::runtime::error::ErrorKind::InvalidArgument) for a crop in
/// `path` that exceeds the cropped picture.
pub(super) fn apply_crop(
    entry: &CatalogEntry,
    path: MediaPath,
    crop: Option<CropSpec>,
    settings: &MediaSettings,
) -> Result<MediaPath> {
    let Some(crop) = crop else { return Ok(path) };
    match path.target() {
        MediaTarget::Rendition(file) if file.extension.is_image() => {
            match crop_rect(entry, file, crop, settings) {
                Some(frame) => crop_rendition(entry, file, frame),
                None => Ok(path),
            }
        }
        MediaTarget::Document(file) if file.extension.accepts_crop() => {
            // A path that already has a crop keeps it, since each operation occurs at most once (contract
            // media-18).
            Ok(path.clone().with_operation(PictureOperation::Crop(crop)).unwrap_or(path))
        }
        MediaTarget::Item(_)
        | MediaTarget::Pricelist
        | MediaTarget::Document(_)
        | MediaTarget::Rendition(_) => Ok(path),
    }
}

/// Returns the crop in pixels of the rendition `file`.
fn crop_rect(
    entry: &CatalogEntry,
    file: &RenditionFile,
    crop: CropSpec,
    settings: &MediaSettings,
) -> Option<Rect> {
    let files = AssetGroup::of_item(&entry.assets);
    // Editors crop the upright picture, while the stored picture may lie on its side.
    let hires = files.picture(RenditionUsage::Hires)?.upright();
    let size = settings.sizes.rendition_size(files, file.name)?;
    scale_crop(crop.resolve(hires).ok()?, hires, size).ok()
}

/// Returns the path of the same rendition cropped to `frame`, with the operations of `file`. A size and a
/// watermark apply to the cropped picture, regardless of their position among the operations.
fn crop_rendition(entry: &CatalogEntry, file: &RenditionFile, frame: Rect) -> Result<MediaPath> {
    let mut cut = frame;
    let mut others = Vec::new();
    for operation in file.operations() {
        match operation {
            PictureOperation::Watermark | PictureOperation::Resize(_) => {
                others.push(operation.clone());
            }
            PictureOperation::Crop(crop) => {
                let inner = crop.resolve(frame.size()).map_err(|error| bad_crop(&error))?;
                cut = Rect { x: frame.x + inner.x, y: frame.y + inner.y, ..inner };
            }
        }
    }
    let crop = PictureOperation::Crop(CropSpec::try_from(cut).map_err(Error::internal)?);
    let path = MediaPath::rendition(entry.key.clone(), file.name, file.extension);
    let missing = access::not_available(&path);
    // The crop comes first, because a later crop would cut the mark off.
    let mut operations = std::iter::once(crop).chain(others);
    operations.try_fold(path, MediaPath::with_operation).map_err(|_| missing)
}
