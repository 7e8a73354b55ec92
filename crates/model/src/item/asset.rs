//! The files of an item, as they came in or as the service made them of others.

use serde::{Deserialize, Serialize};

use crate::{
    AssociationKey, ContentHash, RenditionExtension, RenditionName, RenditionUsage,
    RenditionVariant, Size,
};

/// One file of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    /// The associated object that it shows; `None` for the item itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub association: Option<AssociationKey>,
    /// Whether the service made it of another file of the item.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// The file.
    #[serde(flatten)]
    pub file: AssetFile,
}

// `skip_serializing_if` hands its argument over by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A file by its kind. Each kind is told by its own properties, so that rows of the first version,
/// which held pictures alone, are still read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AssetFile {
    /// A JPEG.
    Picture(PictureFile),
    /// A PDF or EPS.
    Graphic(GraphicFile),
    /// An MP4.
    Video(VideoFile),
}

/// A JPEG and what the service needs to know of it to plan renditions without reading it: measured
/// once, at ingest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PictureFile {
    /// Variant and usage.
    pub name: RenditionName,
    /// Key in the store.
    pub blob: ContentHash,
    /// Bytes.
    pub length: u64,
    /// Pixels as stored, before orientation.
    pub stored: Size,
    /// EXIF orientation, 1 to 8.
    pub orientation: u8,
    /// Whether the picture comes in several scans, as progressive ones do: decoded whole, it takes
    /// memory for all coefficients.
    pub progressive: bool,
    /// Components of a pixel: 1, 3 or 4.
    pub components: u8,
}

impl PictureFile {
    /// Pixels of the upright picture.
    #[must_use]
    pub fn upright(&self) -> Size {
        if self.orientation >= 5 { self.stored.transposed() } else { self.stored }
    }
}

/// A printable graphic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphicFile {
    /// Variant and usage.
    pub name: RenditionName,
    /// Key in the store.
    pub blob: ContentHash,
    /// Bytes.
    pub length: u64,
    /// `PdfArgs` or `Eps`.
    pub format: RenditionExtension,
    /// Width and height of what is printed (page 1, the bounding box), in points, 1/72 inch;
    /// `None` where the file does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<(f32, f32)>,
}

/// A video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoFile {
    /// Variant and usage.
    pub name: RenditionName,
    /// Key in the store.
    pub blob: ContentHash,
    /// Bytes.
    pub length: u64,
    /// Pixels as shown.
    pub shown: Size,
    /// Milliseconds.
    pub duration_ms: u64,
    /// Bits per second of the whole file.
    pub bitrate: u64,
}

impl Asset {
    /// A file of the item itself, as it came in.
    #[must_use]
    pub fn own(file: AssetFile) -> Self {
        Self { association: None, made: false, file }
    }

    /// Variant and usage.
    #[must_use]
    pub fn name(&self) -> RenditionName {
        match &self.file {
            AssetFile::Picture(picture) => picture.name,
            AssetFile::Graphic(graphic) => graphic.name,
            AssetFile::Video(video) => video.name,
        }
    }

    /// Key in the store.
    #[must_use]
    pub fn blob(&self) -> ContentHash {
        match &self.file {
            AssetFile::Picture(picture) => picture.blob,
            AssetFile::Graphic(graphic) => graphic.blob,
            AssetFile::Video(video) => video.blob,
        }
    }

    /// Bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match &self.file {
            AssetFile::Picture(picture) => picture.length,
            AssetFile::Graphic(graphic) => graphic.length,
            AssetFile::Video(video) => video.length,
        }
    }

    /// The extension of its URL.
    #[must_use]
    pub fn extension(&self) -> RenditionExtension {
        match &self.file {
            AssetFile::Picture(_) => RenditionExtension::JPEG,
            AssetFile::Graphic(graphic) => graphic.format,
            AssetFile::Video(_) => RenditionExtension::Mp4,
        }
    }

    /// The JPEG.
    #[must_use]
    pub fn picture(&self) -> Option<&PictureFile> {
        match &self.file {
            AssetFile::Picture(picture) => Some(picture),
            AssetFile::Graphic(_) | AssetFile::Video(_) => None,
        }
    }
}

/// The files that show one thing: an item, or one of its associated objects.
#[derive(Clone, Copy, Debug)]
pub struct AssetGroup<'a> {
    assets: &'a [Asset],
    association: Option<&'a AssociationKey>,
}

impl<'a> AssetGroup<'a> {
    /// The files of the item itself.
    #[must_use]
    pub fn of_item(assets: &'a [Asset]) -> Self {
        Self { assets, association: None }
    }

    /// The files of the associated object `key`.
    #[must_use]
    pub fn of_association(assets: &'a [Asset], key: &'a AssociationKey) -> Self {
        Self { assets, association: Some(key) }
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = &'a Asset> {
        let wanted = self.association;
        self.assets.iter().filter(move |asset| asset.association.as_ref() == wanted)
    }

    /// The file of this name and kind.
    #[must_use]
    pub fn find(self, name: RenditionName, extension: RenditionExtension) -> Option<&'a Asset> {
        self.all().find(|asset| asset.name() == name && asset.extension() == extension)
    }

    fn named(self, usage: RenditionUsage) -> Option<&'a PictureFile> {
        let name = RenditionName { variant: RenditionVariant::Normal, usage };
        self.find(name, RenditionExtension::JPEG)?.picture()
    }

    /// The picture that a rendition of `usage` is made from: its own if there is one, else the
    /// Hires. A graphic and a video have no Hires that is a picture: their Preview, or the
    /// Thumbnail, stands in for it where less than a Hires is asked for.
    #[must_use]
    pub fn picture(self, usage: RenditionUsage) -> Option<&'a PictureFile> {
        let largest = || {
            self.named(RenditionUsage::Preview).or_else(|| self.named(RenditionUsage::Thumbnail))
        };
        let own = self.named(usage);
        match usage {
            RenditionUsage::Hires => own,
            RenditionUsage::Preview | RenditionUsage::Thumbnail => {
                own.or_else(|| self.named(RenditionUsage::Hires)).or_else(largest)
            }
            RenditionUsage::Hidef | RenditionUsage::Lores => None,
        }
    }

    /// The largest picture of it.
    #[must_use]
    pub fn whole_picture(self) -> Option<&'a PictureFile> {
        self.named(RenditionUsage::Hires).or_else(|| self.picture(RenditionUsage::Preview))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_first_version_are_pictures() {
        let picture = PictureFile {
            name: RenditionName::NORMAL_HIRES,
            blob: ContentHash::of(b"x"),
            length: 1,
            stored: Size { width: 3, height: 2 },
            orientation: 6,
            progressive: false,
            components: 3,
        };
        let old = serde_json::to_string(&picture).unwrap();
        let asset: Asset = serde_json::from_str(&old).unwrap();
        assert_eq!(asset, Asset::own(AssetFile::Picture(picture)));
        assert_eq!(serde_json::to_string(&asset).unwrap(), old);
    }

    #[test]
    fn every_kind_is_read_back_as_it_was_written() {
        let blob = ContentHash::of(b"x");
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
