//! Access rights: the visibility of items, and public URLs (contract access-11).

use jiff::Timestamp;

use super::CatalogEntry;
use crate::access::auth::Principal;
use crate::access::orders::Buyer;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::RenditionUsage;
use model::account::{AgreementId, Scope};
use model::item::{PubStatus, has_picture};
use model::media_url::{DocumentExtension, MediaPath, MediaTarget, RenditionExtension};

/// The caller of a media request.
#[derive(Clone, Copy, Debug)]
pub struct MediaCaller<'a> {
    /// The authenticated user, if the request has valid credentials.
    pub principal: Option<&'a Principal>,
    /// The agreement to buy under, from the parameter `agr`.
    pub agr: Option<AgreementId>,
    /// The time at which the caller's rights count.
    pub now: Timestamp,
}

impl<'a> MediaCaller<'a> {
    /// Returns the caller for public media. Credentials without the scope `roles` are ignored here.
    pub fn visitor(self) -> Option<&'a Principal> {
        self.principal.filter(|principal| principal.scopes().contains(Scope::Roles))
    }

    /// Returns the caller, who must be authenticated with a token that has at least the scope `roles` (contract
    /// access-5).
    pub fn require_principal(self) -> Result<&'a Principal> {
        let principal = self.principal.ok_or_else(unauthenticated)?;
        principal.require_scope(Scope::Roles)?;
        Ok(principal)
    }

    /// Returns the caller as a buyer. Fails as [`MediaCaller::require_principal`] does.
    pub fn buyer(self) -> Result<Buyer<'a>> {
        Ok(Buyer { principal: self.require_principal()?, agr: self.agr, now: self.now })
    }
}

/// Returns whether the item is visible to `principal` at `now`.
///
/// A withdrawn item is hidden from everyone, an item under embargo from everyone except the provider, and a
/// commissioned item from everyone except the provider and administrators.
pub fn is_visible(entry: &CatalogEntry, principal: Option<&Principal>, now: Timestamp) -> bool {
    let status = match entry.document.pub_status() {
        // A replaced version stays visible: item pages link to earlier versions.
        PubStatus::Usable | PubStatus::Replaced => true,
        PubStatus::Commissioned => principal.is_some_and(Principal::sees_commissioned),
        PubStatus::Withheld | PubStatus::Canceled => false,
    };
    status && (!entry.is_embargoed(now) || principal.is_some_and(Principal::sees_embargoed))
}

/// Returns whether the item is visible without credentials at `now`, so that a shared cache may store its public
/// media.
pub fn is_public(entry: &CatalogEntry, now: Timestamp) -> bool {
    is_visible(entry, None, now)
}

/// Returns whether `path` is public, that is, served with or without credentials.
///
/// For images, these paths are public: the page, the documents, and Preview and Thumbnail in every variant with or
/// without operations. An operation never makes a rendition public that is not public without it.
pub fn is_open(path: &MediaPath) -> bool {
    let picture = has_picture(path.key().media_type);
    match path.target() {
        // Only a redirect to the item's page, which checks the rights itself.
        MediaTarget::Item(_) => true,
        MediaTarget::Rendition(file) => {
            let small = !is_bought_usage(file.name.usage);
            // An associated object may be an item with rights of its own.
            let own = file.association.is_none();
            picture && small && own && file.extension.is_image()
        }
        MediaTarget::Document(file) => {
            picture
                && matches!(
                    file.extension,
                    DocumentExtension::Json
                        | DocumentExtension::Metadata
                        | DocumentExtension::Ninjs
                        | DocumentExtension::Xml
                        | DocumentExtension::Renditions
                )
        }
        MediaTarget::Pricelist => false,
    }
}

/// Returns whether `path` has to be bought: every rendition of an item or of its associated objects that is more
/// than a Preview, and every archive with such a rendition (contract access-15).
///
/// Operations do not matter: a crop of the Hires needs the same purchase as the whole Hires.
pub fn needs_purchase(path: &MediaPath) -> bool {
    match path.target() {
        MediaTarget::Item(_) | MediaTarget::Pricelist => false,
        MediaTarget::Rendition(file) => {
            // A PDF or EPS is the graphic itself, regardless of its suffix.
            matches!(file.extension, RenditionExtension::Pdf | RenditionExtension::Eps)
                || is_bought_usage(file.name.usage)
        }
        // An archive contains the Hires.
        MediaTarget::Document(file) => file.extension == DocumentExtension::Zip,
    }
}

/// Returns whether renditions of this usage have to be bought. The others are at most Previews.
pub fn is_bought_usage(usage: RenditionUsage) -> bool {
    !matches!(usage, RenditionUsage::Preview | RenditionUsage::Thumbnail)
}

/// Returns whether `path` is read under the item's agreements, because it is neither public nor bought. This
/// applies to documents, text formats, licences and Previews of everything except photographs, and to small
/// renditions of associated objects.
pub fn needs_read_agreement(path: &MediaPath) -> bool {
    !is_open(path) && !needs_purchase(path)
}

/// Returns the error for a caller that must present credentials.
pub fn unauthenticated() -> Error {
    Error::unauthenticated()
}

/// Returns the error for a well-formed URL of a resource that the item does not have.
pub fn not_available(path: &MediaPath) -> Error {
    Error::new(ErrorKind::NotFound, format!("{path} is not available for this item"))
}

/// Returns the name under which a browser saves a Hires: the item's id with the extension.
pub(super) fn file_name(path: &MediaPath) -> Option<String> {
    let MediaTarget::Rendition(file) = path.target() else { return None };
    // Only downloads have a file name (contract caching-6); other renditions are shown in pages.
    let hires = file.name.usage == RenditionUsage::Hires;
    hires.then(|| format!("{}{}", path.key().id, file.extension.as_str()))
}
