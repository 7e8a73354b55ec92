//! Several files of an item: an archive, or what a channel delivers.
//!
//! The default contents of a zip are those of contract files-10. What a member is, is known before
//! anything is rendered, so that the archive's entity tag is; then each is obtained as its own URL
//! would be.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::{Timestamp, tz::TimeZone};

use super::{
    Answer, Caller, Entry, FileAnswer, Media, RenditionAnswer, access,
    answer::{FileContent, Sale, stored_body},
    budget::{Client, Payer},
    cache::{Body, Part},
    facts, framing,
    keys::CacheKeys,
    texts,
};
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{ARCHIVE_RENDERS_AT_A_TIME, ASSOCIATIONS_SENT_MAX};
use formats::zip::{Archive, DosTime, Entry as ArchiveEntry, EntryName, Method, Piece, pack};
use model::item::Layout;
use model::media_url::{
    DocumentExtension, Format, MediaPath, Operation, RenditionExtension, Target,
};
use model::{AssociationKey, CropSpec, Hash, ItemKey, MediaType, RenditionName};

/// Which files of an item are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// Those that the contract names for the media type (contract files-10).
    Default,
    /// Those that a channel names, of a picture within the editors' crop in pixels of the hires image. Of a
    /// text, formats of pictures mean its associated pictures.
    Formats(&'a [Format], Option<CropSpec>),
}

/// A file before its bytes are at hand.
#[derive(Clone, Debug)]
pub(super) struct Member {
    name: String,
    mime: &'static str,
    url: String,
    source: Source,
    /// Its date in an archive.
    dated: Timestamp,
}

#[derive(Clone, Debug)]
enum Source {
    Text(Bytes),
    Rendition(Arc<RenditionAnswer>),
    Stored(Body, String),
}

/// A file with its bytes.
#[derive(Clone, Debug)]
pub struct CollectedFile {
    /// Its name: the item's id, the suffix and the extension.
    pub name: String,
    /// Its MIME type.
    pub mime: &'static str,
    /// The URL that gives the same.
    pub url: String,
    /// Its bytes.
    pub body: Body,
    /// Its date in an archive: when the item that it belongs to was stored.
    pub dated: Timestamp,
}

/// The files of an item for a delivery.
#[derive(Debug)]
pub struct Collected {
    /// The files; at least one.
    pub files: Vec<CollectedFile>,
    /// What is to be bought before anything is delivered.
    pub sale: Sale,
}

impl Member {
    /// A text of ours, which no URL gives.
    pub(super) fn text(name: &str, text: String, dated: Timestamp) -> Self {
        let source = Source::Text(text.into());
        Self { name: name.to_owned(), mime: "text/plain", url: String::new(), source, dated }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The same file under a name that begins with `prefix`.
    pub(super) fn prefixed(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}{}", self.name), ..self }
    }

    /// What names its bytes together with its name and date.
    pub(super) fn line(&self) -> String {
        format!("{} {} {}\n", self.name, self.tag(), self.dated)
    }

    /// What names its bytes.
    fn tag(&self) -> String {
        match &self.source {
            Source::Text(text) => Hash::of(text).short(),
            Source::Rendition(answer) => answer.etag.clone(),
            Source::Stored(_, tag) => tag.clone(),
        }
    }
}

/// A name for exactly the bytes of `members`.
fn version(members: &[Member]) -> String {
    let lines: Vec<String> =
        members.iter().map(|member| format!("{} {}\n", member.name, member.tag())).collect();
    Hash::of(lines.concat().as_bytes()).short()
}

impl Media {
    /// The archive of the item `key` with what is `wanted`.
    ///
    /// Fails as [`Media::resolve`] does.
    pub async fn archive(
        &self,
        key: &ItemKey,
        wanted: Wanted<'_>,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Answer> {
        let path = MediaPath::document(key.clone(), DocumentExtension::Zip);
        let entry = self.item(key, Some(caller.known()?), now).await?;
        if matches!(wanted, Wanted::Default) && defaults(key.media_type).is_none() {
            return Err(access::not_available(&path));
        }
        let (members, sale) = self.list(&entry, wanted, caller, now).await?;
        let mime = DocumentExtension::Zip.mime_type();
        Ok(Answer::File(Box::new(FileAnswer {
            mime,
            // The dates of its entries are part of its bytes.
            etag: Hash::of(format!("{}{}", version(&members), entry.stored).as_bytes()).short(),
            modified: None,
            sale,
            file_name: Some(format!("{}.zip", key.id)),
            keys: CacheKeys::of(key, &entry.document.linked_items(Layout::Full)),
            seen: seen(&entry, &members),
            content: FileContent::Archive(members),
        })))
    }

    /// The files of the item `key` that are `wanted`, rendered where they have to be.
    ///
    /// Nothing is recorded: [`Collected::sale`] says what there is to buy. Fails as
    /// [`Media::resolve`] does, with [`Kind::NotFound`] when the item has none of the files, and with
    /// [`Kind::Unavailable`] when it changed meanwhile.
    pub async fn collect(
        &self,
        key: &ItemKey,
        wanted: Wanted<'_>,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<Collected> {
        let entry = self.item(key, Some(caller.known()?), now).await?;
        let (members, sale) = self.list(&entry, wanted, caller, now).await?;
        let seen = seen(&entry, &members);
        let files = self.obtain_all(members, Payer::Nobody).await?;
        if !self.are_current(seen.iter()).await? {
            // It says so where the item is gone.
            self.item(key, Some(caller.known()?), now).await?;
            let message = format!("{key} changed while its files were made");
            return Err(Error::new(Kind::Unavailable, message));
        }
        Ok(Collected { files, sale })
    }

    /// The bytes of a file or archive for `client`.
    ///
    /// Fails as [`Media::obtain_for`] does, and with [`Kind::Overloaded`] when too many archives
    /// are being put together or the client still owes for an earlier one.
    pub async fn obtain_file(&self, answer: &FileAnswer, client: Option<Client>) -> Result<Body> {
        let members = match &answer.content {
            FileContent::Stored(body) => return Ok(body.clone()),
            FileContent::Archive(members) => members.clone(),
        };
        if let Some(client) = client {
            self.inner.budget.begin(client)?;
        }
        let place = self.inner.packing.begin(client)?;
        let payer = client.map_or(Payer::Nobody, Payer::Owing);
        let files = self.obtain_all(members, payer).await?;
        let media = self.clone();
        let packed = tokio::task::spawn_blocking(move || {
            // It goes on when the request is gone, and so does its place.
            let _until_it_is_packed = place;
            media.pack(files)
        });
        packed.await.map_err(Error::internal)?
    }

    /// Lays files out as an archive; only the blocks at the edges of what lies in the store are
    /// read. Blocks.
    fn pack(&self, files: Vec<CollectedFile>) -> Result<Body> {
        let (mut entries, mut contents) = (Vec::new(), Vec::new());
        for CollectedFile { name, mime, body, dated, .. } in files {
            let modified = DosTime::from_civil(dated.to_zoned(TimeZone::UTC).datetime());
            let name = EntryName::parse(&name).map_err(Error::internal)?;
            let packable = is_packable(mime).then(|| body.in_memory()).flatten();
            let (entry, body) = match packable {
                Some(text) => {
                    let (entry, packed) = pack(name, modified, text.into());
                    (entry, Body::memory(packed))
                }
                None => {
                    let (crc32, size_bytes) = (self.crc32(&body)?, body.len());
                    let method = Method::Stored;
                    (ArchiveEntry { name, method, size_bytes, crc32, modified }, body)
                }
            };
            entries.push(entry);
            contents.push(body);
        }
        let archive = Archive::new(entries).map_err(Error::internal)?;
        let mut parts = Vec::new();
        for piece in archive.pieces(0..archive.size_bytes()) {
            match piece {
                Piece::Bytes(bytes) => parts.push(Part::Memory(bytes.into())),
                Piece::Content { entry, range } => parts.extend(contents[entry].slice(range)),
            }
        }
        Ok(Body::joined(parts))
    }

    fn crc32(&self, body: &Body) -> Result<u32> {
        let mut crc = crc32fast::Hasher::new();
        for part in body.parts() {
            match part {
                Part::Memory(bytes) => crc.update(bytes),
                Part::Store(extent) => {
                    let sum =
                        self.inner.originals.crc32(extent.blob, extent.blob_length, &extent.range);
                    crc.combine(&sum?);
                }
            }
        }
        Ok(crc.finalize())
    }

    /// What is wanted of the item, with what of it is sold.
    ///
    /// Fails with [`Kind::NotFound`] where the item has none of it.
    pub(super) async fn list(
        &self,
        entry: &Arc<Entry>,
        wanted: Wanted<'_>,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<(Vec<Member>, Sale)> {
        let whole = MediaPath::document(entry.key.clone(), DocumentExtension::Zip);
        let sale = Sale::of(entry, self.decide(&whole, entry, caller, now).await?);
        let mut list = Listing { media: self, entry, caller, now, members: Vec::new(), sale };
        match wanted {
            Wanted::Default => {
                let formats = defaults(entry.key.media_type).unwrap_or_default();
                list.add_formats(&formats, None).await?;
                if texts::is_text(entry.key.media_type) {
                    list.add_pictures().await?;
                }
            }
            Wanted::Formats(formats, crop) => list.add_formats(formats, crop).await?,
        }
        list.finish(matches!(wanted, Wanted::Default))
    }

    /// The file that `path` names of `entry`, if it has one; it is called as `named` says.
    async fn member(
        &self,
        entry: &Arc<Entry>,
        path: &MediaPath,
        named: &MediaPath,
    ) -> Result<Option<Member>> {
        let (mime, source) = match path.target() {
            Target::Item(_) | Target::Pricelist => return Ok(None),
            Target::Document(file) => {
                let extension = file.extension();
                let is_text = texts::is_text(entry.key.media_type);
                let fits = match extension {
                    DocumentExtension::Json | DocumentExtension::Xml => true,
                    DocumentExtension::Cutpaste | DocumentExtension::Indesign => is_text,
                    DocumentExtension::Zip => false,
                };
                if !fits {
                    return Ok(None);
                }
                let text = self.text(entry, extension, file.crop(), false).await?;
                (text.mime, Source::Text(text.body))
            }
            Target::Rendition(file) if file.extension().is_image() => {
                let Some(answer) = found(self.rendition(entry, path, false))? else {
                    return Ok(None);
                };
                (file.extension().mime_type(), Source::Rendition(Arc::new(answer)))
            }
            Target::Rendition(file) => {
                let Some(asset) = self.stored(entry, path) else { return Ok(None) };
                let body = stored_body(asset);
                (file.extension().mime_type(), Source::Stored(body, asset.blob().short()))
            }
        };
        let url = self.inner.links.url(named);
        Ok(Some(Member { name: member_name(named), mime, url, source, dated: entry.stored }))
    }

    async fn obtain_all(&self, members: Vec<Member>, payer: Payer) -> Result<Vec<CollectedFile>> {
        let patience = *self.inner.settings.patience.get();
        let obtained = members.into_iter().map(|member| async move {
            let Member { name, mime, url, source, dated } = member;
            let body = match source {
                Source::Text(text) => Body::memory(text),
                Source::Stored(body, _) => body,
                Source::Rendition(answer) => {
                    self.obtain_rendition(&answer, patience, payer).await?
                }
            };
            Ok::<_, Error>(CollectedFile { name, mime, url, body, dated })
        });
        stream::iter(obtained).buffered(ARCHIVE_RENDERS_AT_A_TIME).try_collect().await
    }

    async fn obtain_rendition(
        &self,
        answer: &RenditionAnswer,
        patience: std::time::Duration,
        payer: Payer,
    ) -> Result<Body> {
        if let Some(obtained) = self.find_cached(answer) {
            return Ok(obtained.body);
        }
        Ok(self.obtain_for(answer, patience, payer).await?.body)
    }

    /// How many files [`Media::collect`] would give; nothing is rendered.
    ///
    /// Fails as it does, with [`Kind::NotFound`] when there is none.
    pub async fn count_wanted(
        &self,
        key: &ItemKey,
        wanted: Wanted<'_>,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> Result<usize> {
        let entry = self.item(key, Some(caller.known()?), now).await?;
        let (members, _) = self.list(&entry, wanted, caller, now).await?;
        Ok(members.len())
    }
}

/// The items that members of an archive of `entry` were made of.
pub(super) fn seen(entry: &Arc<Entry>, members: &[Member]) -> Vec<Arc<Entry>> {
    let mut seen = vec![Arc::clone(entry)];
    for member in members {
        if let Source::Rendition(answer) = &member.source
            && !seen.iter().any(|known| Arc::ptr_eq(known, &answer.entry))
        {
            seen.push(Arc::clone(&answer.entry));
        }
    }
    seen
}

/// What an archive holds, where it holds anything (contract files-10).
pub(super) fn defaults(media_type: MediaType) -> Option<Vec<Format>> {
    let formats: &[&str] = match media_type {
        MediaType::Image | MediaType::Stockfoto => &["_NormalHires.jpg", ".json", ".xml"],
        MediaType::Graphic => &[".pdf", ".eps", ".json", ".xml"],
        MediaType::Text | MediaType::Feature => {
            &[".json", ".xml", "-cutpaste.txt", "-indesign.txt"]
        }
        MediaType::Video => &[".json", ".xml", "_NormalPreview.mp4", "_NormalThumbnail.jpg"],
        MediaType::Page | MediaType::Planning | MediaType::Calendar => return None,
    };
    Some(formats.iter().map(|text| Format::parse(text).expect("a format of ours")).collect())
}

/// What there is, and nothing for what is not there.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(missing) if missing.kind() == Kind::NotFound => Ok(None),
        Err(other) => Err(other),
    }
}

/// The members of an archive while they are listed.
struct Listing<'a> {
    media: &'a Media,
    entry: &'a Arc<Entry>,
    caller: Caller<'a>,
    now: Timestamp,
    members: Vec<Member>,
    sale: Sale,
}

impl Listing<'_> {
    /// Adds the files that `formats` name, pictures within `crop` where there is one; a picture of a text is that
    /// of each of its associated objects.
    async fn add_formats(&mut self, formats: &[Format], crop: Option<CropSpec>) -> Result<()> {
        let entry = self.entry;
        for format in formats {
            let path = format.path(&entry.key);
            if texts::is_text(entry.key.media_type) && is_image(&path) {
                for (key, _) in entry.document.associations().take(ASSOCIATIONS_SENT_MAX) {
                    if let Some(path) = of_association(&path, &key) {
                        let member = self.associated(&path).await?;
                        self.members.extend(member);
                    }
                }
            } else {
                let member = self.own(path, crop).await?;
                self.members.extend(member);
            }
        }
        Ok(())
    }

    /// A file of the item itself, framed by `crop`.
    async fn own(&self, path: MediaPath, crop: Option<CropSpec>) -> Result<Option<Member>> {
        let settings = &self.media.inner.settings;
        let framed = framing::framed(self.entry, path.clone(), crop, settings)?;
        // As it is called, the crop is in pixels of the hires image.
        let cropped = crop.map(Operation::Crop).filter(|_| framed != path);
        let named = cropped.and_then(|crop| path.clone().with_operation(crop).ok());
        self.media.member(self.entry, &framed, &named.unwrap_or(path)).await
    }

    /// Adds the largest picture that the caller may have of each associated object.
    async fn add_pictures(&mut self) -> Result<()> {
        for (key, _) in self.entry.document.associations().take(ASSOCIATIONS_SENT_MAX) {
            for name in [RenditionName::NORMAL_HIRES, RenditionName::NORMAL_PREVIEW] {
                let (item, jpeg) = (self.entry.key.clone(), RenditionExtension::JPEG);
                let path = MediaPath::association(item, key.clone(), name, jpeg);
                if let Some(member) = self.associated(&path).await? {
                    self.members.push(member);
                    break;
                }
            }
        }
        Ok(())
    }

    /// A rendition of an associated object, if there is one that the caller may have.
    ///
    /// One that is an item of its own is bought by itself, under a subscription. A Hires that none
    /// covers is left out, and so is a Preview that the caller may not read at its own address.
    async fn associated(&mut self, path: &MediaPath) -> Result<Option<Member>> {
        let (media, caller, now) = (self.media, self.caller, self.now);
        let shown = media.shown(self.entry, path, caller.principal, now).await;
        let Some((shown, own_path)) = found(shown)? else { return Ok(None) };
        if shown.key == self.entry.key {
            return media.member(&shown, &own_path, path).await;
        }
        let allowed = match media.check_reading(&own_path, &shown, caller, now).await {
            Ok(()) => media.decide(&own_path, &shown, caller, now).await,
            Err(refused) => Err(refused),
        };
        let decision = match allowed {
            Ok(decision) => decision,
            Err(refused) if refused.kind() == Kind::Forbidden => return Ok(None),
            Err(other) => return Err(other),
        };
        // What is bundled with a text never uses up prepaid downloads, and places no orders.
        let orders = &media.inner.orders;
        if decision.is_some()
            && !orders.is_subscribed(caller.known()?, facts(&shown), caller.agr, now)
        {
            return Ok(None);
        }
        let member = media.member(&shown, &own_path, path).await?;
        if member.is_some() {
            let known = self.sale.entries.iter().any(|(entry, _)| entry.key == shown.key);
            let decision = decision.filter(|_| !known);
            self.sale.entries.extend(decision.map(|decision| (shown, decision)));
        }
        Ok(member)
    }

    /// The members, each name once, if there is a file among them. By default a picture's documents alone are none.
    fn finish(mut self, is_default: bool) -> Result<(Vec<Member>, Sale)> {
        // Names are compared as file systems do that fold case.
        let mut names = HashSet::new();
        self.members.retain(|member| names.insert(member.name.to_ascii_lowercase()));
        // A picture that belongs to a text has the date of the text.
        self.members.iter_mut().for_each(|member| member.dated = self.entry.stored);
        let is_text = |member: &Member| matches!(member.source, Source::Text(_));
        let has_files = !is_default
            || texts::is_text(self.entry.key.media_type)
            || !self.members.iter().all(is_text);
        if self.members.is_empty() || !has_files {
            let message = format!("{} has none of the files that are wanted", self.entry.key);
            return Err(Error::new(Kind::NotFound, message));
        }
        Ok((self.members, self.sale))
    }
}

fn is_image(path: &MediaPath) -> bool {
    match path.target() {
        Target::Rendition(file) => file.extension().is_image(),
        Target::Item(_) | Target::Pricelist | Target::Document(_) => false,
    }
}

/// The same rendition of the associated object `key`.
fn of_association(path: &MediaPath, key: &AssociationKey) -> Option<MediaPath> {
    let Target::Rendition(file) = path.target() else { return None };
    let item = path.key().clone();
    let named = MediaPath::association(item, key.clone(), file.name(), file.extension());
    file.operations()
        .iter()
        .try_fold(named, |named, operation| named.with_operation(*operation).ok())
}

/// `<id><suffix><extension>`; of an associated object `<id>_<association><suffix><extension>`.
fn member_name(path: &MediaPath) -> String {
    let text = path.print();
    let (_, name) = text.split_once('/').unwrap_or(("", &text));
    name.replace('/', "_")
}

/// Whether files of this type get smaller.
fn is_packable(mime: &str) -> bool {
    mime.starts_with("text/") || mime == "application/json"
}
