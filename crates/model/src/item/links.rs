//! Writes canonical media URLs below `media_url`.

use crate::media_url::{MediaPath, PictureOperation};
use crate::{AssociationKey, CropSpec, ItemKey, Rect, RenditionExtension, RenditionName};

/// Writes links below a base URL.
#[derive(Clone, Debug)]
pub struct MediaLinks {
    pub(super) base: String,
}

impl MediaLinks {
    /// Creates a writer of links below `base`, which has no trailing slash.
    pub fn new(base: String) -> Self {
        Self { base }
    }

    /// Returns the URL of `path`.
    pub fn url(&self, path: &MediaPath) -> String {
        format!("{}/media/{path}", self.base)
    }

    /// Returns the URL of an item.
    pub fn item(&self, key: &ItemKey) -> String {
        format!("{}/media/{key}", self.base)
    }

    /// Returns the URL of a JPEG rendition, with a crop in pixels of the rendition.
    pub fn rendition(&self, key: &ItemKey, name: RenditionName, crop: Option<Rect>) -> String {
        let path = MediaPath::rendition(key.clone(), name, RenditionExtension::JPEG);
        // A rectangle inside a picture is never empty, so the operation always exists.
        let crop = crop.and_then(|crop| CropSpec::try_from(crop).ok()).map(PictureOperation::Crop);
        match crop {
            Some(crop) => self.url(&path.clone().with_operation(crop).unwrap_or(path)),
            None => self.url(&path),
        }
    }

    /// Returns the URL of a rendition of the item or of one of its associated objects.
    pub(super) fn file(
        &self,
        key: &ItemKey,
        association: Option<&AssociationKey>,
        name: RenditionName,
        extension: RenditionExtension,
    ) -> String {
        self.url(&match association {
            None => MediaPath::rendition(key.clone(), name, extension),
            Some(association) => {
                MediaPath::association(key.clone(), association.clone(), name, extension)
            }
        })
    }
}
