//! Rights and provenance in the metadata of renditions.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::MediaSettings;
use super::plan::RenditionPlan;
use metadata::RightsMetadata;
use metadata::rights::RightsView;
use model::item::RightsLayers;
use model::{ContentHash, Rect, RenditionUsage, Size};

/// The property with regions of the picture.
const IMAGE_REGION: &str = "imageRegion";
/// The property with a note to editors.
const INSTRUCTIONS: &str = "instructions";
/// The EXIF orientation of a picture whose first row is at the top and starts at the left.
const UPRIGHT: u8 = 1;

/// The rights in an item or in one of its associated objects, with the hashes that enter plans.
#[derive(Debug)]
pub(super) struct EffectiveRights {
    pub(super) all: RightsMetadata,
    /// The statements of the operator and the source.
    pub(super) stated: RightsMetadata,
    /// The properties that even thumbnails carry.
    pub(super) short: RightsMetadata,
    all_hash: Option<ContentHash>,
    short_hash: Option<ContentHash>,
    /// The file that regions of the picture refer to.
    picture: Option<ContentHash>,
    /// The size of the largest picture in its upright orientation.
    largest: Size,
    /// The EXIF orientation of that picture.
    orientation: u8,
}

/// The pixels of a rendition, as its metadata describes them.
#[derive(Clone, Copy, Debug)]
pub(super) enum DescribedPixels {
    /// The pixels of the original, in its own orientation.
    Stored,
    /// This part of the upright original, in its pixels; empty if it is unknown.
    Upright(Rect),
}

impl EffectiveRights {
    /// Determines the rights from the statements about them.
    pub(super) fn from_layers(layers: RightsLayers<'_>) -> Self {
        let all = layers.effective();
        let stated = layers.stated();
        // The caption carries the document's instructions. An internal note that an editor removed there must not
        // come back from the original.
        let is_stated = stated.get(INSTRUCTIONS).is_some();
        let all = if is_stated { all } else { all.without(INSTRUCTIONS) };
        let picture = layers.files.whole_picture();
        let largest = picture.map_or(Size::new(0, 0), |picture| picture.upright());
        let orientation = picture.map_or(UPRIGHT, |picture| picture.orientation);
        let picture = picture.map(|picture| picture.blob);
        let short = all.short();
        // The size is embedded as the largest available size, and the file decides which renditions have regions.
        let all_hash = hash_of(&all, &json!([largest.width, largest.height, picture]));
        let short_hash = hash_of(&short, &Value::Null);
        Self { all, stated, short, all_hash, short_hash, picture, largest, orientation }
    }

    /// Returns the hash of the rights in renditions of this usage; `None` if these carry no rights.
    pub(super) fn hash(&self, usage: RenditionUsage) -> Option<ContentHash> {
        // Thumbnails carry no caption, and only the most important rights (contract media-25).
        if usage == RenditionUsage::Thumbnail { self.short_hash } else { self.all_hash }
    }

    /// Returns the properties of the whole picture for documents. Regions are in the upright picture. Properties
    /// that renditions may not carry are not published either.
    pub(super) fn published(&self, settings: &MediaSettings) -> RightsMetadata {
        self.all.shown(&RightsView {
            orientation: self.orientation,
            upright: self.largest,
            region: Rect::new(0, 0, self.largest),
            hires: self.largest,
            gps: settings.media.keep_gps,
            person_details: settings.media.keep_person_details,
        })
    }

    /// Returns the properties of the part of the plan's original that `pixels` selects.
    pub(super) fn shown(&self, plan: &RenditionPlan, pixels: DescribedPixels) -> RightsMetadata {
        let source = &plan.source;
        let (orientation, upright, region) = match pixels {
            // Pixels in the orientation of the file need no other coordinates.
            DescribedPixels::Stored => (UPRIGHT, source.stored, Rect::new(0, 0, source.stored)),
            DescribedPixels::Upright(region) => (source.orientation, source.upright(), region),
        };
        let view = RightsView {
            orientation,
            upright,
            region,
            hires: self.largest,
            gps: plan.keep_gps,
            person_details: plan.keep_person_details,
        };
        self.of_file(source.blob).shown(&view)
    }

    /// Returns the rights for renditions of the file `blob`. A Preview that arrived beside its Hires may show a
    /// different part of the picture, so regions of one do not apply to the other.
    fn of_file(&self, blob: ContentHash) -> Cow<'_, RightsMetadata> {
        if self.picture == Some(blob) || self.all.get(IMAGE_REGION).is_none() {
            return Cow::Borrowed(&self.all);
        }
        Cow::Owned(self.all.without(IMAGE_REGION))
    }
}

/// Returns the hash of `rights` and of the values `beside` that are embedded with them; `None` if `rights` is
/// empty.
fn hash_of(rights: &RightsMetadata, beside: &Value) -> Option<ContentHash> {
    if rights.is_empty() {
        return None;
    }
    let text = json!([rights.to_json(), beside]).to_string();
    Some(ContentHash::new(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::RenditionName;
    use model::item::{Asset, AssetFile, AssetGroup, PictureFile};

    fn picture(name: RenditionName, rights: &Value) -> Asset {
        Asset::own(AssetFile::Picture(PictureFile {
            name,
            blob: ContentHash::new(name.to_string().as_bytes()),
            length: 1,
            stored: Size::new(300, 200),
            orientation: 6,
            progressive: false,
            components: 3,
            is_grey: false,
            picture_hash: None,
            rights: RightsMetadata::from_json(rights).unwrap(),
            source_rights: RightsMetadata::default(),
        }))
    }

    fn effective(assets: &[Asset]) -> EffectiveRights {
        let none = RightsMetadata::default();
        let files = AssetGroup::of_item(assets);
        EffectiveRights::from_layers(RightsLayers {
            files,
            default_rights: &none,
            rights_override: &none,
        })
    }

    #[test]
    fn thumbnails_depend_on_what_they_carry_alone() {
        let rights = |value| effective(&[picture(RenditionName::NORMAL_HIRES, &value)]);
        let plain = rights(json!({ "dataMining": "DMI-PROHIBITED" }));
        let titled = rights(json!({ "dataMining": "DMI-PROHIBITED", "jobid": "seven" }));
        let hashes = |rights: &EffectiveRights| {
            (rights.hash(RenditionUsage::Thumbnail), rights.hash(RenditionUsage::Hires))
        };
        assert_eq!(hashes(&plain).0, hashes(&titled).0);
        assert_ne!(hashes(&plain).1, hashes(&titled).1);
        assert_eq!(hashes(&rights(json!({}))), (None, None));
        assert_eq!(hashes(&rights(json!({ "jobid": "seven" }))).0, None);
        assert_eq!(titled.largest, Size::new(200, 300));
    }

    #[test]
    fn instructions_of_the_file_count_only_where_they_are_stated() {
        let file = json!({ "instructions": "call Anna", "usageTerms": "Editorial", "jobid": "7" });
        let assets = [picture(RenditionName::NORMAL_HIRES, &file)];
        let none = RightsMetadata::default();
        let of = |rights_override: &RightsMetadata| {
            let files = AssetGroup::of_item(&assets);
            let layers = RightsLayers { files, default_rights: &none, rights_override };
            EffectiveRights::from_layers(layers)
        };
        let found = of(&none);
        assert_eq!(found.all.text(INSTRUCTIONS), None);
        assert_eq!(
            (found.all.text("usageTerms"), found.all.text("jobid")),
            (Some("Editorial"), Some("7"))
        );
        let set = json!({ "instructions": "embargoed in Norway" });
        let found = of(&RightsMetadata::from_json(&set).unwrap());
        assert_eq!(found.all.text(INSTRUCTIONS), Some("embargoed in Norway"));
    }

    #[test]
    fn another_file_with_the_same_rights_gives_another_plan() {
        let rights = json!({ "jobid": "seven" });
        let of = |name| effective(&[picture(name, &rights)]);
        let (hires, preview) =
            (of(RenditionName::NORMAL_HIRES), of(RenditionName::NORMAL_PREVIEW));
        assert_eq!((&hires.all, hires.largest), (&preview.all, preview.largest));
        let hash = |rights: &EffectiveRights| rights.hash(RenditionUsage::Preview);
        assert_ne!(hash(&hires), hash(&preview));
    }

    #[test]
    fn regions_stay_with_the_file_that_they_describe() {
        let region = json!([{ "name": { "x-default": "ball" }, "regionBoundary": {
            "rbShape": "rectangle", "rbUnit": "relative",
            "rbX": 0.1, "rbY": 0.1, "rbW": 0.2, "rbH": 0.2 } }]);
        let rights = json!({ "imageRegion": region, "jobid": "seven" });
        let hires = picture(RenditionName::NORMAL_HIRES, &rights);
        let preview = picture(RenditionName::NORMAL_PREVIEW, &json!({}));
        let blobs = [hires.blob(), preview.blob()];
        let found = effective(&[hires, preview]);
        assert_eq!(*found.of_file(blobs[0]), found.all);
        let other = found.of_file(blobs[1]);
        assert_eq!(other.to_json(), json!({ "jobid": "seven" }));
    }
}
