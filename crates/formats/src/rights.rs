//! The rights in a document's picture and in its associated pictures, as the formats state them.

use std::collections::BTreeMap;

use metadata::RightsMetadata;

/// The scheme of digital source types, NewsCodes of the IPTC.
pub(crate) const SOURCE_TYPES: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";

/// The rights that files and settings state, beside what the document itself has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentRights {
    /// The rights of the document's own picture.
    pub own: RightsMetadata,
    /// The rights of associated objects, by their keys in `associations`.
    pub associations: BTreeMap<String, RightsMetadata>,
}

impl DocumentRights {
    /// Returns the rights of the associated object `key`.
    pub(crate) fn of_association(&self, key: &str) -> Option<&RightsMetadata> {
        self.associations.get(key)
    }
}
