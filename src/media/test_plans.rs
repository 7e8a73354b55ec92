//! Plans of renditions for tests, without a database.

use std::sync::Arc;

use jiff::Timestamp;

use super::plan::{self, PlannedRendition};
use super::{CatalogEntry, MediaSettings};
use crate::runtime::config::{self, SettingSources};
use crate::runtime::error::Result;
use crate::storage::database::StoredItem;
use metadata::RightsMetadata;
use model::item::{Asset, AssetFile, PictureFile};
use model::media_url::MediaPath;
use model::{ContentHash, RenditionName, Size};

/// The length of the files of [`picture`].
pub(super) const FILE_BYTES: u64 = 1_000_000;

/// The default settings with the changes `changed`.
pub(super) fn settings(changed: &[(&str, &str)]) -> MediaSettings {
    let flags = changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let sources = SettingSources { file: None, flags: flags.collect() };
    let (config, _) = config::load(&sources).expect("valid settings");
    MediaSettings::from_config(&config).expect("settings of media")
}

/// An upright baseline Hires with three components.
pub(super) fn picture(width: u32, height: u32) -> PictureFile {
    PictureFile {
        name: RenditionName::NORMAL_HIRES,
        blob: ContentHash::new(b"a picture"),
        length: FILE_BYTES,
        stored: Size { width, height },
        orientation: 1,
        progressive: false,
        is_grey: false,
        picture_hash: None,
        components: 3,
        rights: RightsMetadata::default(),
        source_rights: RightsMetadata::default(),
    }
}

/// Plans the rendition `rest` of an item with that picture, such as `-fit_w640_NormalPreview.jpg`.
pub(super) fn plan_of(
    picture: &PictureFile,
    rest: &str,
    settings: &MediaSettings,
) -> Result<PlannedRendition> {
    let path = MediaPath::parse(&format!("image/one{rest}")).expect("a media path");
    let item = StoredItem {
        document: "{}".to_owned(),
        assets: vec![Asset::own(AssetFile::Picture(picture.clone()))],
        embargoed: None,
        stored: Timestamp::UNIX_EPOCH,
        order_time: Timestamp::UNIX_EPOCH,
        rights: RightsMetadata::default(),
    };
    let rights = Arc::clone(&settings.rights);
    let uri = "https://pictures.example/media/image/one".to_owned();
    let entry = CatalogEntry::new(path.key().clone(), item, uri, rights)?;
    plan::plan(&entry, &path, settings)
}
