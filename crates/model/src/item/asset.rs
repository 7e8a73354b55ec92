//! The files of an item, received at ingest or derived by the service.

use metadata::RightsMetadata;
use serde::{Deserialize, Serialize};

use super::rights;
use crate::{
    AssociationKey, ContentHash, PictureHash, RenditionExtension, RenditionName, RenditionUsage,
    RenditionVariant, Size,
};

/// One file of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    /// The associated object that the file shows; `None` for the item itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub association: Option<AssociationKey>,
    /// True if the service derived the file from a different file of the item.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    #[serde(flatten)]
    pub file: AssetFile,
}

// `skip_serializing_if` passes its argument by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A file of one of three kinds. Their properties tell the kinds apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AssetFile {
    Picture(PictureFile),
    Graphic(GraphicFile),
    Video(VideoFile),
}

/// The properties of a JPEG that are needed to plan a rendition. They are measured once at ingest, so that
/// planning does not read the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PictureFile {
    pub name: RenditionName,
    /// The key in the blob store.
    pub blob: ContentHash,
    pub length: u64,
    /// The size in pixels as stored, before orientation is applied.
    pub stored: Size,
    /// The EXIF orientation, 1 to 8.
    pub orientation: u8,
    /// True if the JPEG is progressive (several scans). A full decode then needs memory for all coefficients.
    pub progressive: bool,
    /// The number of colour components: 1, 3 or 4.
    pub components: u8,
    /// True if ingest found no colours in the picture.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_grey: bool,
    /// The perceptual hash of the upright picture; `None` if it has nearly no contrast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture_hash: Option<PictureHash>,
    /// The rights and provenance in the metadata of the file.
    #[serde(
        default,
        skip_serializing_if = "RightsMetadata::is_empty",
        deserialize_with = "rights::read_stored"
    )]
    pub rights: RightsMetadata,
    /// The source rights of the file at the time of ingest.
    #[serde(
        default,
        skip_serializing_if = "RightsMetadata::is_empty",
        deserialize_with = "rights::read_stored"
    )]
    pub source_rights: RightsMetadata,
}

impl PictureFile {
    /// Returns the size of the upright picture in pixels.
    pub fn upright(&self) -> Size {
        // Orientations 5 to 8 are rotated by 90 degrees, which swaps width and height.
        if self.orientation >= 5 { self.stored.transposed() } else { self.stored }
    }

    /// Returns the file without its rights, its colour flag and its perceptual hash. The remaining properties
    /// determine the pixels.
    pub fn without_rights(&self) -> Self {
        let Self { name, blob, length, stored, orientation, progressive, components, .. } = *self;
        // Built from its fields: a clone would first copy the rights, for every requested crop.
        Self {
            name,
            blob,
            length,
            stored,
            orientation,
            progressive,
            components,
            is_grey: false,
            picture_hash: None,
            rights: RightsMetadata::default(),
            source_rights: RightsMetadata::default(),
        }
    }
}

/// The properties of a printable graphic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphicFile {
    pub name: RenditionName,
    /// The key in the blob store.
    pub blob: ContentHash,
    pub length: u64,
    pub format: RenditionExtension,
    /// The printed width and height (page 1 or the bounding box) in points of 1/72 inch; `None` if the file does
    /// not state them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<(f32, f32)>,
}

/// The properties of a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoFile {
    pub name: RenditionName,
    /// The key in the blob store.
    pub blob: ContentHash,
    pub length: u64,
    /// The displayed size in pixels.
    pub shown: Size,
    pub duration_ms: u64,
    /// The bit rate of the whole file, in bits per second.
    pub bitrate: u64,
}

impl Asset {
    /// Wraps a file of the item itself, received at ingest.
    pub fn own(file: AssetFile) -> Self {
        Self { association: None, made: false, file }
    }

    /// Returns the variant and usage of the file.
    pub fn name(&self) -> RenditionName {
        match &self.file {
            AssetFile::Picture(picture) => picture.name,
            AssetFile::Graphic(graphic) => graphic.name,
            AssetFile::Video(video) => video.name,
        }
    }

    /// Returns the file's key in the blob store.
    pub fn blob(&self) -> ContentHash {
        match &self.file {
            AssetFile::Picture(picture) => picture.blob,
            AssetFile::Graphic(graphic) => graphic.blob,
            AssetFile::Video(video) => video.blob,
        }
    }

    /// Returns the file's length in bytes.
    pub fn length(&self) -> u64 {
        match &self.file {
            AssetFile::Picture(picture) => picture.length,
            AssetFile::Graphic(graphic) => graphic.length,
            AssetFile::Video(video) => video.length,
        }
    }

    /// Returns the extension of the file's URL.
    pub fn extension(&self) -> RenditionExtension {
        match &self.file {
            AssetFile::Picture(_) => RenditionExtension::JPEG,
            AssetFile::Graphic(graphic) => graphic.format,
            AssetFile::Video(_) => RenditionExtension::Mp4,
        }
    }

    /// Returns the file if it is a JPEG.
    pub fn picture(&self) -> Option<&PictureFile> {
        match &self.file {
            AssetFile::Picture(picture) => Some(picture),
            AssetFile::Graphic(_) | AssetFile::Video(_) => None,
        }
    }
}

/// The files that show one object: an item, or one of its associated objects.
#[derive(Clone, Copy, Debug)]
pub struct AssetGroup<'a> {
    assets: &'a [Asset],
    association: Option<&'a AssociationKey>,
}

impl<'a> AssetGroup<'a> {
    /// Selects the files of the item itself.
    pub fn of_item(assets: &'a [Asset]) -> Self {
        Self::new(assets, None)
    }

    /// Selects the files of an associated object; `None` selects the files of the item itself.
    pub fn new(assets: &'a [Asset], association: Option<&'a AssociationKey>) -> Self {
        Self { assets, association }
    }

    /// Iterates over the selected files.
    pub fn all(self) -> impl Iterator<Item = &'a Asset> {
        let association = self.association;
        self.assets.iter().filter(move |asset| asset.association.as_ref() == association)
    }

    /// Finds the file with this name and extension.
    pub fn find(self, name: RenditionName, extension: RenditionExtension) -> Option<&'a Asset> {
        self.all().find(|asset| asset.name() == name && asset.extension() == extension)
    }

    fn named(self, usage: RenditionUsage) -> Option<&'a PictureFile> {
        let name = RenditionName { variant: RenditionVariant::Normal, usage };
        self.find(name, RenditionExtension::JPEG)?.picture()
    }

    /// Returns the source picture for a rendition of `usage`: the file of that usage if there is one, else the
    /// Hires.
    ///
    /// A graphic or video has no Hires picture. Its Preview or Thumbnail is used for smaller renditions instead.
    pub fn picture(self, usage: RenditionUsage) -> Option<&'a PictureFile> {
        let own = self.named(usage);
        match usage {
            // Customers buy the Hires, so no other picture replaces it (contract access-15).
            RenditionUsage::Hires => own,
            RenditionUsage::Preview | RenditionUsage::Thumbnail => own
                .or_else(|| self.named(RenditionUsage::Hires))
                .or_else(|| self.named(RenditionUsage::Preview))
                .or_else(|| self.named(RenditionUsage::Thumbnail)),
            RenditionUsage::Hidef | RenditionUsage::Lores => None,
        }
    }

    /// Returns the largest picture among the files.
    pub fn whole_picture(self) -> Option<&'a PictureFile> {
        self.named(RenditionUsage::Hires).or_else(|| self.picture(RenditionUsage::Preview))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn picture() -> PictureFile {
        PictureFile {
            name: RenditionName::NORMAL_HIRES,
            blob: ContentHash::new(b"x"),
            length: 1,
            stored: Size { width: 3, height: 2 },
            orientation: 6,
            progressive: false,
            components: 3,
            is_grey: false,
            picture_hash: None,
            rights: RightsMetadata::default(),
            source_rights: RightsMetadata::default(),
        }
    }

    #[test]
    fn a_picture_is_recognized_by_its_properties() {
        let picture = picture();
        let text = serde_json::to_string(&picture).unwrap();
        let asset: Asset = serde_json::from_str(&text).unwrap();
        assert_eq!(asset, Asset::own(AssetFile::Picture(picture)));
        assert_eq!(serde_json::to_string(&asset).unwrap(), text);
    }

    #[test]
    fn rights_are_stored_with_their_file() {
        let rights = |value| RightsMetadata::from_json(&value).unwrap();
        let file = PictureFile {
            is_grey: true,
            picture_hash: Some(PictureHash(0x1234)),
            rights: rights(json!({ "digitalSourceType": "trainedAlgorithmicMedia" })),
            source_rights: rights(json!({ "dataMining": "DMI-PROHIBITED" })),
            ..picture()
        };
        let asset = Asset::own(AssetFile::Picture(file.clone()));
        let text = serde_json::to_string(&asset).unwrap();
        assert_eq!(serde_json::from_str::<Asset>(&text).unwrap(), asset);
        assert_eq!(file.without_rights(), picture());
    }

    #[test]
    fn every_kind_is_read_back_as_it_was_written() {
        let blob = ContentHash::new(b"x");
        let name = RenditionName::NORMAL_HIRES;
        let association = Some(AssociationKey::parse("a000").unwrap());
        let format = RenditionExtension::Eps;
        let points = Some((595.3, 841.9));
        let graphic = AssetFile::Graphic(GraphicFile { name, blob, length: 7, format, points });
        let shown = Size { width: 640, height: 360 };
        let (duration_ms, bitrate) = (8_000, 775_000);
        let video =
            AssetFile::Video(VideoFile { name, blob, length: 9, shown, duration_ms, bitrate });
        for file in [graphic, video] {
            let asset = Asset { association: association.clone(), made: true, file };
            let text = serde_json::to_string(&asset).unwrap();
            assert_eq!(serde_json::from_str::<Asset>(&text).unwrap(), asset);
        }
    }
}
