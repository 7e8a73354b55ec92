//! Analyses items for the index: their documents, the effective rights in their pictures, and the shapes,
//! colours and perceptual hashes of the pictures.
//!
//! Notifications analyse items in the same way, so that they match the same items as a search.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::storage::database::IndexedVersion;
use metadata::RightsMetadata;
use model::item::{
    Asset, AssetFile, AssetGroup, Document, DocumentError, RightsLayers, parse_stored_rights,
};
use model::{ContentHash, ItemKey, RenditionUsage};
use query::{IndexedDocument, IndexedFacts, PictureFacts, RightsTerms};

/// The settings that the analysis of items depends on.
#[derive(Clone, Debug)]
pub struct DocumentAnalysis {
    /// The time zone in which the days of documents begin.
    pub zone: TimeZone,
    /// The default rights of every picture.
    pub rights: Arc<RightsMetadata>,
}

impl DocumentAnalysis {
    /// Extracts the searchable content of a version.
    ///
    /// Fails if its document is damaged. Damaged rights count as absent, so that search still finds the item
    /// by its words.
    pub(super) fn index_version(
        &self,
        version: &IndexedVersion,
    ) -> Result<IndexedDocument, DocumentError> {
        let document = Document::from_stored(&version.document)?;
        let assets: Vec<Asset> = serde_json::from_str(&version.assets)
            .inspect_err(|cause| log_damaged(&version.key, "files", cause))
            .unwrap_or_default();
        let rights = version.set_rights.as_deref().map(parse_stored_rights).transpose();
        let rights = rights
            .inspect_err(|cause| log_damaged(&version.key, "rights", cause))
            .unwrap_or_default();
        Ok(self.index(&version.key, &document, &assets, &rights.unwrap_or_default()))
    }

    /// Extracts the searchable content of an item from its document, its files and its rights override.
    pub fn index(
        &self,
        key: &ItemKey,
        document: &Document,
        assets: &[Asset],
        rights: &RightsMetadata,
    ) -> IndexedDocument {
        let files = AssetGroup::of_item(assets);
        let rights = RightsLayers { files, default_rights: &self.rights, rights_override: rights };
        let stated = RightsTerms {
            digital_source_type: rights.text("digitalSourceType"),
            data_mining: rights.text("dataMining"),
        };
        let picture_hash = files.whole_picture().and_then(|picture| picture.picture_hash);
        let facts = IndexedFacts { stated, picture: picture_facts(files), picture_hash };
        IndexedDocument::with_facts(key, document, facts, &self.zone)
    }

    /// Identifies the default rights that the searchable content of items depends on. Empty if there are no
    /// such rights.
    pub(super) fn settings(&self) -> String {
        // Only these default rights are indexed, so other changes need no new index.
        match (self.rights.digital_source_type(), self.rights.data_mining()) {
            (None, None) => String::new(),
            terms => ContentHash::new(format!("{terms:?}").as_bytes()).short(),
        }
    }
}

fn log_damaged(key: &ItemKey, what: &str, cause: &serde_json::Error) {
    tracing::error!("search index: {what} of item {key} are damaged: {cause}");
}

/// Describes the picture that an item shows: its Hires, else its video, else the largest picture that
/// represents it.
fn picture_facts(files: AssetGroup<'_>) -> Option<PictureFacts> {
    let shown = files.all().find_map(|asset| match &asset.file {
        AssetFile::Video(video) => Some(video.shown),
        AssetFile::Picture(_) | AssetFile::Graphic(_) => None,
    });
    let hires = files.picture(RenditionUsage::Hires);
    let picture = hires.or_else(|| files.whole_picture());
    // The Preview of a video is smaller than the video.
    let size = shown.filter(|_| hires.is_none()).or_else(|| Some(picture?.upright()))?;
    let is_monochrome = picture.map(|picture| picture.components == 1 || picture.is_grey);
    Some(PictureFacts { width: size.width, height: size.height, is_monochrome })
}
