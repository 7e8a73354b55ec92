//! Rights: who may see an item and which URLs are open to everybody (contract access-11).

use jiff::Timestamp;

use super::CatalogEntry;
use crate::access::auth::Principal;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::RenditionUsage;
use model::account::{AgreementId, Scope};
use model::item::{PubStatus, has_picture};
use model::media_url::{DocumentExtension, MediaPath, MediaTarget, RenditionExtension};

/// Who asks for media.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediaCaller<'a> {
    /// Whose credentials came with the request, if they are good.
    pub principal: Option<&'a Principal>,
    /// The agreement that is to pay, `agr`.
    pub agr: Option<AgreementId>,
}

impl<'a> MediaCaller<'a> {
    /// The caller as what is open knows it: credentials that may not be used here count as none.
    #[must_use]
    pub fn visitor(self) -> Option<&'a Principal> {
        self.principal.filter(|known| known.scopes().contains(Scope::Roles))
    }

    /// The caller, who must be known and whose token must carry at least the scope `roles`
    /// (contract access-5).
    pub fn require_principal(self) -> Result<&'a Principal> {
        let known = self.principal.ok_or_else(unauthenticated)?;
        known.require_scope(Scope::Roles)?;
        Ok(known)
    }
}

/// Whether `principal` sees the item at `now`.
///
/// A withdrawn item is hidden from everybody, one under embargo from all but the provider, and a
/// commissioned one from all but the provider and administrators.
#[must_use]
pub fn is_visible(entry: &CatalogEntry, principal: Option<&Principal>, now: Timestamp) -> bool {
    let status = match entry.document.pub_status() {
        PubStatus::Usable | PubStatus::Replaced => true,
        PubStatus::Commissioned => principal.is_some_and(Principal::sees_commissioned),
        PubStatus::Withheld | PubStatus::Canceled => false,
    };
    status && (!entry.is_embargoed(now) || principal.is_some_and(Principal::sees_embargoed))
}

/// Whether the item is visible without credentials at `now`, so that a shared cache may store what
/// is open of it.
#[must_use]
pub fn is_public(entry: &CatalogEntry, now: Timestamp) -> bool {
    is_visible(entry, None, now)
}

/// Whether everybody may have what `path` names, credentials or not.
///
/// Open are, for images: the page, `.json`, `.xml`, and Preview and Thumbnail in every variant
/// with or without operations. An operation never opens what its rendition does not.
#[must_use]
pub fn is_open(path: &MediaPath) -> bool {
    let picture = has_picture(path.key().media_type);
    match path.target() {
        MediaTarget::Item(_) => true,
        MediaTarget::Rendition(file) => {
            let small = match file.name().usage {
                RenditionUsage::Preview | RenditionUsage::Thumbnail => true,
                RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores => false,
            };
            let own = file.association().is_none();
            picture && small && own && file.extension().is_image()
        }
        MediaTarget::Document(file) => match file.extension() {
            DocumentExtension::Json | DocumentExtension::Xml => picture,
            DocumentExtension::Zip | DocumentExtension::Cutpaste | DocumentExtension::Indesign => {
                false
            }
        },
        MediaTarget::Pricelist => false,
    }
}

/// Whether what `path` names is bought: every rendition of an item or of its associated objects
/// that is more than a Preview, and whatever holds one (contract access-15).
///
/// An operation changes nothing of it: all of the Hires and a corner of it are the Hires.
#[must_use]
pub fn needs_purchase(path: &MediaPath) -> bool {
    match path.target() {
        MediaTarget::Item(_) | MediaTarget::Pricelist => false,
        MediaTarget::Rendition(file) => match file.extension() {
            RenditionExtension::Pdf | RenditionExtension::Eps => true,
            RenditionExtension::Image(_) | RenditionExtension::Mp4 => match file.name().usage {
                RenditionUsage::Hires | RenditionUsage::Hidef | RenditionUsage::Lores => true,
                RenditionUsage::Preview | RenditionUsage::Thumbnail => false,
            },
        },
        MediaTarget::Document(file) => match file.extension() {
            DocumentExtension::Zip => true,
            DocumentExtension::Json
            | DocumentExtension::Xml
            | DocumentExtension::Cutpaste
            | DocumentExtension::Indesign => false,
        },
    }
}

/// Whether what `path` names is read under the item's agreements: neither open to everybody nor
/// bought. These are documents, text formats, licences and Previews of everything but photographs,
/// and small renditions of associated objects.
#[must_use]
pub fn needs_read_agreement(path: &MediaPath) -> bool {
    !is_open(path) && !needs_purchase(path)
}

/// The answer to a caller that must present credentials.
#[must_use]
pub fn unauthenticated() -> Error {
    Error::new(ErrorKind::Unauthenticated, "Unauthorized")
}

/// The answer to a well-formed URL of something that the item does not have.
#[must_use]
pub fn not_available(path: &MediaPath) -> Error {
    Error::new(ErrorKind::NotFound, format!("{path} is not available for this item"))
}

/// The name under which a browser saves a Hires: the item's id.
pub(super) fn file_name(path: &MediaPath) -> Option<String> {
    let MediaTarget::Rendition(file) = path.target() else { return None };
    let hires = file.name().usage == RenditionUsage::Hires;
    hires.then(|| format!("{}{}", path.key().id, file.extension().as_str()))
}
