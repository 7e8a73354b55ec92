//! Collects several files of an item, for an archive or for a delivery.
//!
//! Contract files-10 defines the default contents of a zip. The identity of every member is known before anything
//! is rendered, and so is the archive's entity tag. Each member is then obtained in the same way as from its own
//! URL.

use std::{collections::HashSet, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::{Timestamp, tz::TimeZone};

use super::answer::{ArchiveMember, FileContent, MemberSource, Sale, stored_body};
use super::cache::{BodyPart, RenditionBody};
use super::cache_keys::CacheKeys;
use super::rate_limit::RenderPayer;
use super::texts::{self, ItemText};
use super::{CatalogEntry, FileAnswer, Media, MediaAnswer, MediaCaller, access, facts, framing};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use formats::zip::{
    ArchiveEntry, ArchiveLayout, ArchivePiece, CompressionMethod, DosTime, EntryName, pack,
};
use model::item::DocumentLayout;
use model::media_url::{
    DocumentExtension, MediaFormat, MediaPath, MediaTarget, PictureOperation, RenditionExtension,
};
use model::{AssociationKey, ContentHash, CropSpec, ItemKey, MediaType, RenditionName};

/// The code of the error for a client with too many archives.
pub(super) const CLIENT_ARCHIVES: &str = "client_archives";
/// Concurrent renders for one archive or delivery.
const ARCHIVE_RENDERS_AT_A_TIME: usize = 8;
/// Associated objects whose pictures are included in an archive or delivery of a text.
const ASSOCIATIONS_SENT_MAX: usize = 100;

/// Selects files of an item.
#[derive(Clone, Copy, Debug)]
pub enum FileSelection<'a> {
    /// The files that the contract defines for the media type (contract files-10).
    Default,
    /// The formats of a channel; a picture is cropped to the editors' crop in pixels of the hires image. For
    /// a text, picture formats select its associated pictures.
    Formats(&'a [MediaFormat], Option<CropSpec>),
}

/// A file with its bytes.
#[derive(Clone, Debug)]
pub struct CollectedFile {
    /// File name: the item's id, the suffix and the extension.
    pub name: String,
    pub mime: &'static str,
    /// The URL that serves the same bytes.
    pub url: String,
    pub body: RenditionBody,
    /// Its modification time in an archive: the time when its item was stored.
    pub dated: Timestamp,
}

/// The files of an item for a delivery.
#[derive(Debug)]
pub struct DeliveryFiles {
    /// The files; at least one.
    pub files: Vec<CollectedFile>,
    /// The purchase to record before anything is delivered.
    pub sale: Sale,
}

/// Returns a hash of the names and contents of `members`.
fn version(members: &[ArchiveMember]) -> String {
    let line = |member: &ArchiveMember| format!("{} {}\n", member.name, member.content_tag());
    let lines: String = members.iter().map(line).collect();
    ContentHash::new(lines.as_bytes()).short()
}

impl Media {
    /// Builds the archive of the item `key` with the files that `selection` selects.
    ///
    /// Fails as [`Media::resolve`] does.
    pub async fn archive(
        &self,
        key: &ItemKey,
        selection: FileSelection<'_>,
        caller: MediaCaller<'_>,
    ) -> Result<MediaAnswer> {
        let path = MediaPath::document(key.clone(), DocumentExtension::Zip);
        let entry = self.item(key, Some(caller.require_principal()?), caller.now).await?;
        // A delivery may name formats for any media type. Only some types have a default archive.
        if matches!(selection, FileSelection::Default) && defaults(key.media_type).is_none() {
            return Err(access::not_available(&path));
        }
        let (members, sale) = self.list(&entry, selection, caller).await?;
        let mime = DocumentExtension::Zip.mime_type();
        Ok(MediaAnswer::File(Box::new(FileAnswer {
            mime,
            // The dates of the entries are part of the archive's bytes, so they are part of the tag.
            etag: ContentHash::new(format!("{}{}", version(&members), entry.stored).as_bytes())
                .short(),
            // Members may show other items, which change at other times.
            modified: None,
            sale,
            file_name: Some(format!("{}.zip", key.id)),
            keys: CacheKeys::new(key, &entry.document.linked_items(DocumentLayout::Full)),
            source_items: source_items(&entry, &members),
            content: FileContent::Archive(members),
        })))
    }

    /// Collects the files of the item `key` that `selection` selects, and renders them if necessary.
    ///
    /// Records nothing: [`DeliveryFiles::sale`] is the purchase to record. Fails as [`Media::resolve`] does, with
    /// [`ErrorKind::NotFound`] if the item has none of the files, and with [`ErrorKind::Unavailable`] if it
    /// changed in the meantime.
    pub async fn collect(
        &self,
        key: &ItemKey,
        selection: FileSelection<'_>,
        caller: MediaCaller<'_>,
    ) -> Result<DeliveryFiles> {
        let entry = self.item(key, Some(caller.require_principal()?), caller.now).await?;
        let (members, sale) = self.list(&entry, selection, caller).await?;
        let sources = source_items(&entry, &members);
        // A delivery runs in the background, so no client is charged for its renders.
        let files = self.obtain_all(members, RenderPayer::Server).await?;
        // An item that was withdrawn during the render must not be delivered.
        if !self.are_current(sources.iter()).await? {
            // Fails with the more specific error if the item is gone.
            self.item(key, Some(caller.require_principal()?), caller.now).await?;
            let message = format!("{key} changed while its files were rendered");
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(DeliveryFiles { files, sale })
    }

    /// Obtains the bytes of a file or archive for `client`.
    ///
    /// Fails as [`Media::obtain_for`] does, and with [`ErrorKind::Overloaded`] if too many archives are being
    /// packed or an earlier archive has overdrawn the client's token bucket.
    pub async fn obtain_file(
        &self,
        answer: &FileAnswer,
        client: Option<RequestClient>,
    ) -> Result<RenditionBody> {
        let members = match &answer.content {
            FileContent::Stored(body) => return Ok(body.clone()),
            FileContent::Archive(members) => members.clone(),
        };
        if let Some(client) = client {
            // An archive is rendered on credit, so a client in debt cannot start one more.
            self.inner.rate_limiter.check_balance(client)?;
        }
        let slot = self.inner.archive_slots.take(client).map_err(|refused| no_slot(&refused))?;
        let payer = client.map_or(RenderPayer::Server, RenderPayer::ClientOnCredit);
        let files = self.obtain_all(members, payer).await?;
        let media = self.clone();
        let packed = tokio::task::spawn_blocking(move || {
            // Packing continues after the client disconnects, so the slot is moved into it.
            let _slot = slot;
            media.pack(files)
        });
        packed.await.map_err(Error::internal)?
    }

    /// Packs files into an archive, and blocks the thread. Of bytes in the store, only the blocks at the edges are
    /// read, for the CRC.
    fn pack(&self, files: Vec<CollectedFile>) -> Result<RenditionBody> {
        let mut entries = Vec::new();
        let mut contents = Vec::new();
        for CollectedFile { name, mime, body, dated, .. } in files {
            // Zip times have no zone; in UTC every node writes the same bytes.
            let modified = DosTime::from_civil(dated.to_zoned(TimeZone::UTC).datetime());
            let name = EntryName::parse(&name).map_err(Error::internal)?;
            // Images and videos are compressed already, so they are stored and not copied into memory.
            let compressible = is_packable(mime).then(|| body.in_memory()).flatten();
            let (entry, body) = match compressible {
                Some(text) => {
                    let (entry, packed) = pack(name, modified, text.into());
                    (entry, RenditionBody::memory(packed))
                }
                None => {
                    // The header of an entry precedes its bytes, so its checksum is needed before they are sent.
                    let crc32 = self.crc32(&body)?;
                    let size_bytes = body.len();
                    let method = CompressionMethod::Stored;
                    (ArchiveEntry { name, method, size_bytes, crc32, modified }, body)
                }
            };
            entries.push(entry);
            contents.push(body);
        }
        let archive = ArchiveLayout::new(entries).map_err(Error::internal)?;
        let mut parts = Vec::new();
        for piece in archive.pieces(0..archive.size_bytes()) {
            match piece {
                ArchivePiece::Bytes(bytes) => parts.push(BodyPart::Memory(bytes.into())),
                ArchivePiece::Content { entry, range } => {
                    parts.extend(contents[entry].slice(range));
                }
            }
        }
        Ok(RenditionBody::new_unbounded(parts))
    }

    fn crc32(&self, body: &RenditionBody) -> Result<u32> {
        let mut crc = crc32fast::Hasher::new();
        for part in body.parts() {
            match part {
                BodyPart::Memory(bytes) => crc.update(bytes),
                BodyPart::Store(extent) => {
                    let part_crc =
                        self.inner.originals.crc32(extent.blob, extent.blob_length, &extent.range);
                    crc.combine(&part_crc?);
                }
            }
        }
        Ok(crc.finalize())
    }

    /// Lists the files of the item that `selection` selects, with the purchase that they require.
    ///
    /// Fails with [`ErrorKind::NotFound`] if the item has none of them.
    pub(super) async fn list(
        &self,
        entry: &Arc<CatalogEntry>,
        selection: FileSelection<'_>,
        caller: MediaCaller<'_>,
    ) -> Result<(Vec<ArchiveMember>, Sale)> {
        let archive_path = MediaPath::document(entry.key.clone(), DocumentExtension::Zip);
        let sale = Sale::of_item(entry, self.decide_purchase(&archive_path, entry, caller).await?);
        let mut list = MemberListing { media: self, entry, caller, members: Vec::new(), sale };
        match selection {
            FileSelection::Default => {
                let formats = defaults(entry.key.media_type).unwrap_or_default();
                list.add_formats(&formats, None).await?;
                if texts::is_text(entry.key.media_type) {
                    list.add_pictures().await?;
                }
            }
            FileSelection::Formats(formats, crop) => list.add_formats(formats, crop).await?,
        }
        list.finish(matches!(selection, FileSelection::Default))
    }

    /// Returns the file of `entry` that `path` refers to, if there is one. Its name and URL come from `named`.
    async fn member(
        &self,
        entry: &Arc<CatalogEntry>,
        path: &MediaPath,
        named: &MediaPath,
    ) -> Result<Option<ArchiveMember>> {
        let (mime, source) = match path.target() {
            MediaTarget::Item(_) | MediaTarget::Pricelist => return Ok(None),
            MediaTarget::Document(file) => {
                let extension = file.extension;
                // An archive contains neither itself nor a list of URLs that its files replace.
                let text = ItemText::from_extension(extension, self.inner.settings.media.newsml);
                let text = text.filter(|text| text.is_available(entry.key.media_type));
                let Some(text) = text else { return Ok(None) };
                let text = self.text(entry, text, file.crop, false).await?;
                (text.mime, MemberSource::Text(text.body))
            }
            MediaTarget::Rendition(file) if file.extension.is_image() => {
                // A format of a channel need not exist for every item.
                let Some(answer) = not_found_as_none(self.rendition(entry, path, false))? else {
                    return Ok(None);
                };
                (file.extension.mime_type(), MemberSource::Rendition(Arc::new(answer)))
            }
            MediaTarget::Rendition(file) => {
                let Some(asset) = self.stored_file(entry, path) else { return Ok(None) };
                let body = stored_body(asset);
                // The hash of the blob identifies the content, as the tag of a rendition does.
                (file.extension.mime_type(), MemberSource::Stored(body, asset.blob().short()))
            }
        };
        let url = self.inner.links.url(named);
        Ok(Some(ArchiveMember {
            name: member_name(named),
            mime,
            url,
            source,
            dated: entry.stored,
        }))
    }

    async fn obtain_all(
        &self,
        members: Vec<ArchiveMember>,
        payer: RenderPayer,
    ) -> Result<Vec<CollectedFile>> {
        let timeout = *self.inner.settings.rendition_timeout.get();
        let obtained = members.into_iter().map(|member| async move {
            let ArchiveMember { name, mime, url, source, dated } = member;
            let body = match source {
                MemberSource::Text(text) => RenditionBody::memory(text),
                MemberSource::Stored(body, _) => body,
                MemberSource::Rendition(answer) => match self.find_cached(&answer) {
                    Some(obtained) => obtained.body,
                    None => self.obtain_for(&answer, timeout, payer).await?.body,
                },
            };
            Ok::<_, Error>(CollectedFile { name, mime, url, body, dated })
        });
        // In order, because the positions of the entries are part of the archive's bytes.
        stream::iter(obtained).buffered(ARCHIVE_RENDERS_AT_A_TIME).try_collect().await
    }

    /// Counts the files that [`Media::collect`] would return, without rendering anything.
    ///
    /// Fails in the same cases, with [`ErrorKind::NotFound`] if there are no files.
    pub async fn count_files(
        &self,
        key: &ItemKey,
        selection: FileSelection<'_>,
        caller: MediaCaller<'_>,
    ) -> Result<usize> {
        let entry = self.item(key, Some(caller.require_principal()?), caller.now).await?;
        let (members, _) = self.list(&entry, selection, caller).await?;
        Ok(members.len())
    }
}

/// Returns the error for an archive that gets no slot, with a message about archives.
fn no_slot(refused: &Error) -> Error {
    let code = refused.details().first().map_or("", |detail| detail.error_code.as_str());
    let message = if code == CLIENT_ARCHIVES {
        "Other archives of this client are being assembled; try again"
    } else {
        "Too many archives are being assembled; try again"
    };
    Error::overloaded(code, message)
}

/// Lists the items that the members of an archive of `entry` were built from.
pub(super) fn source_items(
    entry: &Arc<CatalogEntry>,
    members: &[ArchiveMember],
) -> Vec<Arc<CatalogEntry>> {
    let mut items = vec![Arc::clone(entry)];
    for member in members {
        if let MemberSource::Rendition(answer) = &member.source
            && !items.iter().any(|item| Arc::ptr_eq(item, &answer.entry))
        {
            items.push(Arc::clone(&answer.entry));
        }
    }
    items
}

/// Returns the default contents of an archive; `None` for media types without archives (contract files-10).
pub(super) fn defaults(media_type: MediaType) -> Option<Vec<MediaFormat>> {
    let formats: &[&str] = match media_type {
        MediaType::Image | MediaType::Stockfoto => &["_NormalHires.jpg", ".json", ".xml"],
        MediaType::Graphic => &[".pdf", ".eps", ".json", ".xml"],
        MediaType::Text | MediaType::Feature => {
            &[".json", ".xml", "-cutpaste.txt", "-indesign.txt"]
        }
        MediaType::Video => &[".json", ".xml", "_NormalPreview.mp4", "_NormalThumbnail.jpg"],
        MediaType::Page | MediaType::Planning | MediaType::Calendar => return None,
    };
    Some(formats.iter().map(|text| MediaFormat::parse(text).expect("a format of ours")).collect())
}

/// Turns an error of kind [`ErrorKind::NotFound`] into `None`.
fn not_found_as_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(missing) if missing.kind() == ErrorKind::NotFound => Ok(None),
        Err(other) => Err(other),
    }
}

/// The members of an archive during the listing.
struct MemberListing<'a> {
    media: &'a Media,
    entry: &'a Arc<CatalogEntry>,
    caller: MediaCaller<'a>,
    members: Vec<ArchiveMember>,
    sale: Sale,
}

impl MemberListing<'_> {
    /// Adds the files that `formats` select. Pictures are cropped to `crop`, if given. For a text, a picture
    /// format selects the rendition of each of its associated objects.
    async fn add_formats(
        &mut self,
        formats: &[MediaFormat],
        crop: Option<CropSpec>,
    ) -> Result<()> {
        let entry = self.entry;
        for format in formats {
            let path = format.path(&entry.key);
            if texts::is_text(entry.key.media_type) && is_image(&path) {
                for (key, _) in entry.document.associations().take(ASSOCIATIONS_SENT_MAX) {
                    if let Some(path) = of_association(&path, &key) {
                        let member = self.association_file(&path).await?;
                        self.members.extend(member);
                    }
                }
            } else {
                let member = self.item_file(path, crop).await?;
                self.members.extend(member);
            }
        }
        Ok(())
    }

    /// Returns a file of the item itself, cropped to `crop`.
    async fn item_file(
        &self,
        path: MediaPath,
        crop: Option<CropSpec>,
    ) -> Result<Option<ArchiveMember>> {
        let settings = &self.media.inner.settings;
        let framed = framing::apply_crop(self.entry, path.clone(), crop, settings)?;
        // Name and URL carry the crop in pixels of the hires image, as clients write it.
        let cropped = crop.map(PictureOperation::Crop).filter(|_| framed != path);
        let named = cropped.and_then(|crop| with_first_operation(&path, crop));
        self.media.member(self.entry, &framed, &named.unwrap_or(path)).await
    }

    /// Adds, for each associated object, the largest picture that the caller may have.
    async fn add_pictures(&mut self) -> Result<()> {
        for (key, _) in self.entry.document.associations().take(ASSOCIATIONS_SENT_MAX) {
            for name in [RenditionName::NORMAL_HIRES, RenditionName::NORMAL_PREVIEW] {
                let item = self.entry.key.clone();
                let jpeg = RenditionExtension::JPEG;
                let path = MediaPath::association(item, key.clone(), name, jpeg);
                if let Some(member) = self.association_file(&path).await? {
                    self.members.push(member);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns a rendition of an associated object, if it exists and the caller may have it.
    ///
    /// An object that is also an item is bought separately, and only under a subscription. A Hires that no
    /// subscription covers is left out, and so is a Preview that the caller may not read at its own URL.
    async fn association_file(&mut self, path: &MediaPath) -> Result<Option<ArchiveMember>> {
        let media = self.media;
        let caller = self.caller;
        let shown = media.shown_item(self.entry, path, caller.principal, caller.now).await;
        let Some((shown, own_path)) = not_found_as_none(shown)? else { return Ok(None) };
        // The object is not an item of its own, so it is delivered as part of this item.
        if shown.key == self.entry.key {
            return media.member(&shown, &own_path, path).await;
        }
        let allowed = match media.check_reading(&own_path, &shown, caller).await {
            Ok(()) => media.decide_purchase(&own_path, &shown, caller).await,
            Err(refused) => Err(refused),
        };
        let decision = match allowed {
            Ok(decision) => decision,
            // A picture that the caller may not have must not prevent the delivery of the text.
            Err(refused) if refused.kind() == ErrorKind::Forbidden => return Ok(None),
            Err(other) => return Err(other),
        };
        // Pictures that are bundled with a text never use up prepaid downloads and place no orders.
        let orders = &media.inner.orders;
        if decision.is_some() && !orders.is_subscribed(caller.buyer()?, facts(&shown)) {
            return Ok(None);
        }
        let member = media.member(&shown, &own_path, path).await?;
        if member.is_some() {
            // An item in several associations is bought once.
            let is_sold = self.sale.entries.iter().any(|(entry, _)| entry.key == shown.key);
            let decision = decision.filter(|_| !is_sold);
            self.sale.entries.extend(decision.map(|decision| (shown, decision)));
        }
        Ok(member)
    }

    /// Returns the members, each name once, if there is a file among them. In the default contents of a picture,
    /// the documents alone do not count as files.
    fn finish(mut self, is_default: bool) -> Result<(Vec<ArchiveMember>, Sale)> {
        // Names are compared without case, as some file systems do.
        let mut names = HashSet::new();
        self.members.retain(|member| names.insert(member.name.to_ascii_lowercase()));
        // A picture that belongs to a text gets the date of the text.
        self.members.iter_mut().for_each(|member| member.dated = self.entry.stored);
        let are_texts =
            self.members.iter().all(|member| matches!(member.source, MemberSource::Text(_)));
        let has_files = !is_default || texts::is_text(self.entry.key.media_type) || !are_texts;
        if self.members.is_empty() || !has_files {
            let message = format!("{} has none of the requested files", self.entry.key);
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok((self.members, self.sale))
    }
}

fn is_image(path: &MediaPath) -> bool {
    matches!(path.target(), MediaTarget::Rendition(file) if file.extension.is_image())
}

/// Returns the path of the same rendition of the associated object `key`.
fn of_association(path: &MediaPath, key: &AssociationKey) -> Option<MediaPath> {
    let MediaTarget::Rendition(file) = path.target() else { return None };
    let item = path.key().clone();
    let named = MediaPath::association(item, key.clone(), file.name, file.extension);
    file.operations()
        .iter()
        .try_fold(named, |named, operation| named.with_operation(operation.clone()).ok())
}

/// Returns the path of the item's file with `first` before its other operations: a size applies to the crop.
fn with_first_operation(path: &MediaPath, first: PictureOperation) -> Option<MediaPath> {
    let MediaTarget::Rendition(file) = path.target() else {
        return path.clone().with_operation(first).ok();
    };
    let plain = MediaPath::rendition(path.key().clone(), file.name, file.extension);
    std::iter::once(first)
        .chain(file.operations().iter().cloned())
        .try_fold(plain, |named, operation| named.with_operation(operation).ok())
}

/// Returns the file name: `<id><operations><suffix><extension>`, for an associated object
/// `<id>_<association><operations><suffix><extension>`.
fn member_name(path: &MediaPath) -> String {
    let text = path.print();
    let (_, name) = text.split_once('/').unwrap_or(("", &text));
    name.replace('/', "_")
}

/// Returns whether files of this type are worth compressing.
fn is_packable(mime: &str) -> bool {
    // Other files are compressed already, so packing them would only cost time.
    mime.starts_with("text/") || mime == "application/json"
}
