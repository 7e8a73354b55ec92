//! The files of an item, as they came in.

use serde::{Deserialize, Serialize};

use crate::types::{Hash, RenditionName, Size};

/// One ingested file and what the service needs to know of it to plan renditions without reading
/// it: measured once, at ingest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asset {
    /// Variant and usage.
    pub name: RenditionName,
    /// Key in the store.
    pub blob: Hash,
    /// Bytes.
    pub length: u64,
    /// Pixels as stored, before orientation.
    pub stored: Size,
    /// EXIF orientation, 1 to 8.
    pub orientation: u8,
    /// Whether the picture is progressive; such a picture is decoded whole.
    pub progressive: bool,
    /// Components of a pixel: 1, 3 or 4.
    pub components: u8,
}

impl Asset {
    /// Pixels of the upright picture.
    #[must_use]
    pub fn upright(&self) -> Size {
        if self.orientation >= 5 { self.stored.transposed() } else { self.stored }
    }
}
