//! Rights: who may see an item and which URLs are open to everybody (Spec §5 Authentication).

use jiff::Timestamp;

use super::Entry;
use crate::auth::Principal;
use crate::error::{Error, Kind};
use crate::item::has_picture;
use crate::media::path::{DocumentExtension, MediaPath, RenditionExtension, Target};
use crate::types::Usage;

/// Whether `principal` sees the item at `now`: neither withdrawn nor under embargo.
#[must_use]
pub fn is_visible(entry: &Entry, principal: Option<&Principal>, now: Timestamp) -> bool {
    let sees = !entry.is_embargoed(now) || principal.is_some_and(Principal::sees_embargoed);
    sees && entry.document.pub_status().is_served()
}

/// Whether everybody may have what `path` names, credentials or not.
///
/// Open are, for images: the page, `.json`, `.xml`, and Preview and Thumbnail in every variant
/// with or without operations. An operation never opens what its rendition does not.
#[must_use]
pub fn is_open(path: &MediaPath) -> bool {
    let picture = has_picture(path.key().media_type);
    match path.target() {
        Target::Item => true,
        Target::Rendition(file) => {
            let small = match file.name().usage {
                Usage::Preview | Usage::Thumbnail => true,
                Usage::Hires | Usage::Hidef | Usage::Lores => false,
            };
            let own = file.association().is_none();
            picture && small && own && file.extension() == RenditionExtension::Jpg
        }
        Target::Document(file) => match file.extension() {
            DocumentExtension::Json | DocumentExtension::Xml => picture,
            DocumentExtension::Zip | DocumentExtension::Cutpaste | DocumentExtension::Indesign => {
                false
            }
        },
        Target::Pricelist => false,
    }
}

/// The answer to a caller that must present credentials.
#[must_use]
pub fn unauthenticated() -> Error {
    Error::new(Kind::Unauthenticated, "Unauthorized")
}

/// The answer to a well-formed URL of something that the item does not have.
#[must_use]
pub fn not_available(path: &MediaPath) -> Error {
    Error::new(Kind::NotFound, format!("{path} is not available for this item"))
}

/// The name under which a browser saves a Hires: the item's id.
pub(super) fn file_name(path: &MediaPath) -> Option<String> {
    let Target::Rendition(file) = path.target() else { return None };
    (file.name().usage == Usage::Hires).then(|| format!("{}.jpg", path.key().id))
}
