//! The editors' crop: a stored `uri` may carry one, and what it names is then that piece of the picture.

use super::{Entry, Settings, access, plan::bad_crop};
use crate::runtime::error::{Error, Result};
use model::item::Files;
use model::media_url::{MediaPath, Operation, RenditionFile, Target};
use model::{CropSpec, Rect, Usage, scale_crop};

/// The path to what `path` names of `entry`, within `crop`, which is in pixels of the hires image.
///
/// Of a picture it is the address that the item's `.json` with that crop gives its renditions, so that both
/// are one rendition; a crop of `path` itself lies within it. A `.json` gets the crop. Other files are
/// whole. A crop that leaves the picture, which may have been replaced since, counts as none.
///
/// Fails with [`Kind::InvalidArgument`](crate::runtime::error::Kind::InvalidArgument) for a crop of `path` that leaves
/// the piece.
pub(super) fn framed(
    entry: &Entry,
    path: MediaPath,
    crop: Option<CropSpec>,
    settings: &Settings,
) -> Result<MediaPath> {
    let Some(crop) = crop else { return Ok(path) };
    match path.target() {
        Target::Rendition(file) if file.extension().is_image() => {
            match frame(entry, file, crop, settings) {
                Some(frame) => within(entry, file, frame),
                None => Ok(path),
            }
        }
        Target::Document(file) if file.extension().takes_crop() => {
            Ok(path.clone().with_operation(Operation::Crop(crop)).unwrap_or(path))
        }
        Target::Item(_) | Target::Pricelist | Target::Document(_) | Target::Rendition(_) => {
            Ok(path)
        }
    }
}

/// The piece in pixels of the rendition `file`.
fn frame(
    entry: &Entry,
    file: &RenditionFile,
    crop: CropSpec,
    settings: &Settings,
) -> Option<Rect> {
    let files = Files::of_item(&entry.assets);
    let hires = files.picture(Usage::Hires)?.upright();
    let size = settings.sizes.of(files, file.name())?;
    scale_crop(crop.resolve(hires).ok()?, hires, size).ok()
}

/// The same rendition within `frame`, with the operations of `file`. A mark is drawn on what is left of the
/// picture, wherever it stands among them.
fn within(entry: &Entry, file: &RenditionFile, frame: Rect) -> Result<MediaPath> {
    let (mut cut, mut mark) = (frame, None);
    for operation in file.operations() {
        match operation {
            Operation::Watermark => mark = Some(*operation),
            Operation::Crop(crop) => {
                let inner = crop.resolve(frame.size()).map_err(|error| bad_crop(&error))?;
                cut = Rect { x: frame.x + inner.x, y: frame.y + inner.y, ..inner };
            }
        }
    }
    let crop = Operation::Crop(CropSpec::try_from(cut).map_err(Error::internal)?);
    let path = MediaPath::rendition(entry.key.clone(), file.name(), file.extension());
    let missing = access::not_available(&path);
    let mut operations = std::iter::once(crop).chain(mark);
    operations.try_fold(path, MediaPath::with_operation).map_err(|_| missing)
}
