//! Uploads that are received in parts and may be interrupted: a client continues after the stored bytes.
//!
//! The database holds the declaration of an upload and the list of its stored parts. The bytes are in the store of
//! originals. So an upload survives a restart, and each node of a cluster can receive the next part. Space is
//! limited for each user and for all users together, by the declared lengths. An upload that receives nothing for
//! a while expires. A sweep removes it with its parts, and also the parts of interrupted requests.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{IngestError, IngestResult, UploadSpool, files};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::{
    UPLOAD_ABANDONED, UPLOAD_PART_BYTES, UPLOAD_REQUESTS_MAX, UPLOAD_REQUESTS_PER_USER_MAX,
};
use crate::runtime::slots::{SlotGuard, SlotLimits, WaitingSlots};
use crate::storage::blobs::{PartStore, StoreError};
use crate::storage::database::{Db, PendingUpload, UploadPart};
use model::ContentHash;
use model::account::UserId;

/// Unpublished uploads of one user.
const UPLOADS_PER_USER_MAX: usize = 1000;
/// Expired uploads that are removed in one transaction; each has up to a thousand parts.
const UPLOADS_SWEPT_AT_A_TIME: usize = 20;

/// The limits of uploads that are not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Maximum length of a file in bytes.
    pub file_bytes_max: u64,
    /// The maximum number of bytes for the uploads of one user.
    pub user_bytes: u64,
    /// The maximum number of bytes for the uploads of all users.
    pub total_bytes: u64,
    /// The time without new bytes after which an upload expires.
    pub kept: SignedDuration,
}

/// A file that a client declares before it sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUpload {
    pub file_name: String,
    /// The text by which the client recognizes the file.
    pub fingerprint: Option<String>,
    /// The length of the file in bytes, at least 1.
    pub length: u64,
}

/// Receives and stores uploads in parts; cheap to clone.
#[derive(Clone)]
pub struct PendingUploads {
    inner: Arc<PendingInner>,
}

struct PendingInner {
    db: Db,
    parts: PartStore,
    /// The folder in which files are assembled that only an external program can read.
    spool: UploadSpool,
    limits: UploadLimits,
    /// Requests that are sending parts, each with a part in memory.
    slots: WaitingSlots,
}

impl PendingUploads {
    /// Creates the store of uploads, with rows in `db` and parts in `parts`.
    pub fn new(db: Db, parts: PartStore, spool: UploadSpool, limits: UploadLimits) -> Self {
        let slots = SlotLimits {
            all: UPLOAD_REQUESTS_MAX,
            client: UPLOAD_REQUESTS_PER_USER_MAX,
            known_share: 0.0,
        };
        let slots = WaitingSlots::new("upload_parts", "client_upload_parts", slots);
        Self { inner: Arc::new(PendingInner { db, parts, spool, limits, slots }) }
    }

    /// Returns the folder in which files are assembled.
    pub(super) fn spool(&self) -> &UploadSpool {
        &self.inner.spool
    }

    /// Returns the limits of uploads.
    pub fn limits(&self) -> UploadLimits {
        self.inner.limits
    }

    /// Admits a request that sends parts.
    ///
    /// Fails with [`ErrorKind::Overloaded`] if the user, or all users together, send too many parts at a time.
    pub fn admit(&self, user: UserId) -> Result<SlotGuard> {
        self.inner.slots.take(Some(RequestClient::User(user))).map_err(|refused| {
            let code = refused.details().first().map(|detail| detail.error_code.clone());
            let message = "Too many parts of uploads are being sent; send fewer files at a time";
            Error::new(ErrorKind::Overloaded, message).with_code(&code.unwrap_or_default())
        })
    }

    /// Creates an upload without any received bytes.
    ///
    /// Fails with [`ErrorKind::InvalidArgument`] if files of this kind are not items, with [`ErrorKind::TooLarge`]
    /// for a file beyond the limit or beyond the user's share, and with [`ErrorKind::Overloaded`] if the uploads
    /// of all users occupy too much space.
    pub async fn create(
        &self,
        user: UserId,
        new: NewUpload,
        now: Timestamp,
    ) -> Result<PendingUpload> {
        let limits = self.limits();
        // Refused at the start, before a client spends an hour on sending a video of the wrong kind.
        if files::media_type(&files::extension(Path::new(&new.file_name))).is_none() {
            let message = "the filename of Upload-Metadata names a kind of file that is no item";
            return Err(Error::invalid("headers", "Upload-Metadata", "enum", message));
        }
        if new.length > limits.file_bytes_max {
            let message = format!(
                "the file has {} bytes, more than the limit of {} (media.file_bytes_max)",
                new.length, limits.file_bytes_max
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let upload = PendingUpload {
            id: Uuid::now_v7(),
            user,
            file_name: new.file_name,
            fingerprint: new.fingerprint,
            length: new.length,
            received: 0,
            created: now,
            expires: self.expiry(now),
        };
        let row = upload.clone();
        // Checked in the transaction that creates the row, because concurrent requests would each find room.
        let created = self.inner.db.write(move |tx| {
            let own = tx.upload_usage(user)?;
            let all = tx.total_upload_usage()?;
            if own.uploads >= UPLOADS_PER_USER_MAX {
                return Ok(Err(quota_error(format!(
                    "you have {UPLOADS_PER_USER_MAX} unpublished uploads; publish or discard some"
                ))));
            }
            if own.bytes.saturating_add(row.length) > limits.user_bytes {
                return Ok(Err(quota_error(format!(
                    "your unpublished uploads would take more than {} bytes; publish or discard \
                     some",
                    limits.user_bytes
                ))));
            }
            if all.bytes.saturating_add(row.length) > limits.total_bytes {
                let message = "There is no space for more uploads at the moment";
                return Ok(Err(Error::overloaded("upload_space", message)));
            }
            tx.write_upload(&row)?;
            Ok(Ok(()))
        });
        created.await?.map(|()| upload)
    }

    /// Finds an upload of `user`. An upload of a different user counts as absent.
    pub async fn find(
        &self,
        user: UserId,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Option<PendingUpload>> {
        let found = self.inner.db.read(move |tx| tx.find_upload(id, now)).await?;
        Ok(found.filter(|upload| upload.user == user))
    }

    /// Lists the uploads of `user`, oldest first.
    pub async fn list(&self, user: UserId, now: Timestamp) -> Result<Vec<PendingUpload>> {
        Ok(self.inner.db.read(move |tx| tx.list_uploads(user, now)).await?)
    }

    /// Removes an upload with its parts.
    pub async fn discard(&self, id: Uuid) -> Result<()> {
        let parts = self.inner.db.write(move |tx| tx.delete_upload(id)).await?;
        self.remove_parts(parts).await;
        Ok(())
    }

    /// Begins to append bytes to an upload. If `is_atomic`, all bytes of the request are stored or none.
    pub fn append(&self, upload: PendingUpload, is_atomic: bool) -> PartWriter {
        let uploads = self.clone();
        PartWriter { uploads, upload, buffer: Vec::new(), parts: Vec::new(), is_atomic }
    }

    /// Reads the bytes of an upload in order, and calls `take` with each part. Blocks the thread.
    ///
    /// Refuses the file if a part was lost, for instance in a restored database.
    pub(super) fn read(
        &self,
        upload: &PendingUpload,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> IngestResult<()> {
        let id = upload.id;
        let parts = self.inner.db.read_blocking(move |tx| tx.list_upload_parts(id))?;
        let mut end = 0;
        for part in parts {
            if part.start != end {
                return Err(lost_bytes());
            }
            let bytes = self.inner.parts.read(part.key, part.length, part.checksum);
            take(&bytes.map_err(read_error)?).map_err(IngestError::Unreadable)?;
            end += part.length;
        }
        if end == upload.length { Ok(()) } else { Err(lost_bytes()) }
    }

    /// Removes a batch of expired uploads, and returns their number. If none is left, removes the parts that
    /// belong to no upload.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let swept = self.inner.db.write(move |tx| tx.sweep_uploads(now, UPLOADS_SWEPT_AT_A_TIME));
        let swept = swept.await?;
        let removed = swept.len();
        if removed == 0 {
            let inner = Arc::clone(&self.inner);
            let orphans = tokio::task::spawn_blocking(move || inner.remove_orphans());
            return orphans.await.map_err(Error::internal)?.map(|()| 0);
        }
        self.remove_parts(swept.into_iter().flatten().collect()).await;
        Ok(removed)
    }

    fn expiry(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.inner.limits.kept).unwrap_or(Timestamp::MAX)
    }

    /// Stores the bytes of one part, which belongs to no upload yet.
    async fn store_part(&self, start: u64, bytes: Bytes) -> Result<UploadPart> {
        let inner = Arc::clone(&self.inner);
        let stored = tokio::task::spawn_blocking(move || {
            let part = UploadPart {
                // A random key, because two requests may send the same bytes.
                key: ContentHash::new(Uuid::now_v7().as_bytes()),
                start,
                length: bytes.len() as u64,
                checksum: ContentHash::new(&bytes),
            };
            inner.parts.write(part.key, &bytes).map(|()| part)
        });
        stored.await.map_err(Error::internal)?.map_err(unavailable)
    }

    /// Removes the files of parts that belong to no upload. A sweep removes the files that cannot be removed now.
    async fn remove_parts(&self, parts: Vec<UploadPart>) {
        let inner = Arc::clone(&self.inner);
        let removed = tokio::task::spawn_blocking(move || {
            // All are tried. One failure is enough to report.
            parts.iter().fold(None, |failed, part| inner.parts.remove(part.key).err().or(failed))
        });
        if let Ok(Some(cause)) = removed.await {
            tracing::warn!("parts of uploads cannot be removed now: {cause}");
        }
    }
}

impl PendingInner {
    /// Removes parts that belong to no upload. Their requests broke off before the parts were recorded, or a
    /// process was killed before it removed them. Blocks the thread.
    fn remove_orphans(&self) -> Result<()> {
        self.parts.sweep().map_err(unavailable)?;
        // With a bucket each age is a request, so only the ages of possible orphans are read.
        let known = self.db.read_blocking(|tx| tx.upload_part_keys())?;
        let listed = self.parts.list().map_err(unavailable)?;
        for key in listed.into_iter().filter(|key| !known.contains(key)) {
            // A younger part may belong to a request that is still being received.
            let age = self.parts.age(key).map_err(unavailable)?;
            let is_old = age.is_some_and(|age| age > UPLOAD_ABANDONED);
            // The part may have been recorded since.
            if is_old && !self.db.read_blocking(move |tx| tx.has_upload_part(key))? {
                self.parts.remove(key).map_err(unavailable)?;
            }
        }
        Ok(())
    }
}

fn quota_error(message: String) -> Error {
    Error::new(ErrorKind::TooLarge, message).with_code("upload_quota")
}

fn unavailable(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "The upload cannot be stored now").with_source(cause)
}

fn lost_bytes() -> IngestError {
    IngestError::Name("has lost bytes since it was sent; send the file again".to_owned())
}

/// Converts the error. A part that was lost is no fault that a retry could overcome.
fn read_error(cause: StoreError) -> IngestError {
    match cause {
        StoreError::Missing(_) | StoreError::Length { .. } | StoreError::Corrupted(_) => {
            lost_bytes()
        }
        StoreError::Io { .. }
        | StoreError::Unavailable { .. }
        | StoreError::OtherArchive { .. }
        | StoreError::Setting { .. } => IngestError::Store(cause),
    }
}

/// Appends bytes to an upload. A part is stored and recorded when it is full, and at the end.
pub struct PartWriter {
    uploads: PendingUploads,
    upload: PendingUpload,
    /// The bytes of the part that is not stored yet.
    buffer: Vec<u8>,
    /// The stored parts of an atomic request that are not recorded yet.
    parts: Vec<UploadPart>,
    is_atomic: bool,
}

impl PartWriter {
    /// Appends bytes.
    ///
    /// Fails with [`ErrorKind::TooLarge`] beyond the declared length, and with [`ErrorKind::Conflict`] if a
    /// concurrent request appended to the same upload.
    pub async fn push(&mut self, mut bytes: &[u8], now: Timestamp) -> Result<()> {
        let end = self.end().saturating_add(bytes.len() as u64);
        if end > self.upload.length {
            let message = format!(
                "the upload has {end} bytes, more than the {} that were declared",
                self.upload.length
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        while !bytes.is_empty() {
            let room = UPLOAD_PART_BYTES - self.buffer.len();
            let (part, rest) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(part);
            bytes = rest;
            if self.buffer.len() == UPLOAD_PART_BYTES {
                self.store(now).await?;
            }
        }
        Ok(())
    }

    /// Returns the offset behind the bytes that were pushed.
    fn end(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| part.length).sum();
        self.upload.received + parts + self.buffer.len() as u64
    }

    /// Stores the buffered bytes, and records them unless the request is atomic.
    async fn store(&mut self, now: Timestamp) -> Result<()> {
        if !self.buffer.is_empty() {
            let start = self.end() - self.buffer.len() as u64;
            let bytes = Bytes::from(std::mem::take(&mut self.buffer));
            self.parts.push(self.uploads.store_part(start, bytes).await?);
        }
        if self.is_atomic { Ok(()) } else { self.record(now).await }
    }

    /// Records the stored parts as received.
    async fn record(&mut self, now: Timestamp) -> Result<()> {
        let parts = std::mem::take(&mut self.parts);
        if parts.is_empty() {
            return Ok(());
        }
        let id = self.upload.id;
        let received = self.upload.received;
        let expires = self.uploads.expiry(now);
        let recorded = parts.clone();
        let db = &self.uploads.inner.db;
        let added = db.write(move |tx| tx.add_upload_parts(id, received, &recorded, expires));
        let outcome = match added.await {
            Ok(true) => {
                self.upload.received += parts.iter().map(|part| part.length).sum::<u64>();
                self.upload.expires = expires;
                return Ok(());
            }
            Ok(false) => Err(offset_conflict()),
            Err(cause) => Err(cause.into()),
        };
        self.uploads.remove_parts(parts).await;
        outcome
    }

    /// Stores the remaining bytes and returns the upload in its new state. Also called when the connection breaks
    /// off, so that the client need not send the received bytes again.
    pub async fn finish(mut self, now: Timestamp) -> Result<PendingUpload> {
        self.store(now).await?;
        self.record(now).await?;
        Ok(self.upload)
    }

    /// Checks that the request continues at the end of the received bytes.
    ///
    /// Fails with [`ErrorKind::Conflict`] otherwise.
    pub fn check_offset(&self, offset: u64) -> Result<()> {
        if offset == self.upload.received { Ok(()) } else { Err(offset_conflict()) }
    }

    /// Removes the parts that an atomic request has stored.
    pub async fn abandon(self) {
        self.uploads.remove_parts(self.parts).await;
    }
}

/// Returns the error for bytes that do not follow the received bytes.
fn offset_conflict() -> Error {
    let message = "the upload has another offset; HEAD reports it";
    Error::new(ErrorKind::Conflict, message).with_code("upload_offset")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;
    use crate::storage::blobs::BlobStore;

    const LIMITS: UploadLimits = UploadLimits {
        file_bytes_max: 3 * UPLOAD_PART_BYTES as u64,
        user_bytes: 4 * UPLOAD_PART_BYTES as u64,
        total_bytes: 5 * UPLOAD_PART_BYTES as u64,
        kept: SignedDuration::from_hours(1),
    };

    struct Scene {
        uploads: PendingUploads,
        parts: PartStore,
        _dir: tempfile::TempDir,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        db.write_blocking(|tx| tx.add_two_users()).unwrap();
        let parts = BlobStore::open(&dir.path().join("originals")).unwrap().parts();
        let spool = UploadSpool::open(&dir.path().join("uploads"), LIMITS.file_bytes_max).unwrap();
        let uploads = PendingUploads::new(db, parts.clone(), spool, LIMITS);
        Scene { uploads, parts, _dir: dir }
    }

    fn file(length: usize) -> NewUpload {
        let length = length as u64;
        NewUpload { file_name: "a.jpg".to_owned(), fingerprint: None, length }
    }

    fn read(uploads: &PendingUploads, upload: &PendingUpload) -> IngestResult<Vec<u8>> {
        let mut bytes = Vec::new();
        uploads.read(upload, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        Ok(bytes)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_upload_continues_where_it_was_interrupted() {
        let Scene { uploads, parts, _dir } = scene();
        let (user, now) = (UserId(1), clock::now());
        let bytes: Vec<u8> = (0..UPLOAD_PART_BYTES + 7).map(|at| at.to_le_bytes()[0]).collect();
        let upload = uploads.create(user, file(bytes.len()), now).await.unwrap();
        let mut writer = uploads.append(upload, false);
        writer.push(&bytes[..UPLOAD_PART_BYTES + 3], now).await.unwrap();
        // The process is killed: the part that was full is stored, the rest of the buffer is lost.
        let id = writer.upload.id;
        drop(writer);
        let upload = uploads.find(user, id, now).await.unwrap().unwrap();
        assert_eq!(upload.received, UPLOAD_PART_BYTES as u64);
        assert_eq!(uploads.find(UserId(2), id, now).await.unwrap(), None);
        assert!(matches!(read(&uploads, &upload), Err(IngestError::Name(_))));
        let mut writer = uploads.append(upload, false);
        assert_eq!(writer.check_offset(0).unwrap_err().kind(), ErrorKind::Conflict);
        writer.check_offset(UPLOAD_PART_BYTES as u64).unwrap();
        writer.push(&bytes[UPLOAD_PART_BYTES..], now).await.unwrap();
        let beyond = writer.push(b"x", now).await.unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::TooLarge);
        let upload = writer.finish(now).await.unwrap();
        assert!(upload.is_complete());
        assert_eq!(read(&uploads, &upload).unwrap(), bytes);
        uploads.discard(id).await.unwrap();
        assert!(parts.list().unwrap().is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_atomic_request_stores_all_or_nothing_and_one_of_two_wins() {
        let Scene { uploads, parts, _dir } = scene();
        let (user, now) = (UserId(1), clock::now());
        let upload = uploads.create(user, file(6), now).await.unwrap();
        let mut abandoned = uploads.append(upload.clone(), true);
        abandoned.push(b"abc", now).await.unwrap();
        abandoned.store(now).await.unwrap();
        abandoned.abandon().await;
        assert!(parts.list().unwrap().is_empty());
        let [mut first, mut second] = [(); 2].map(|()| uploads.append(upload.clone(), false));
        first.push(b"abc", now).await.unwrap();
        second.push(b"xyz", now).await.unwrap();
        first.finish(now).await.unwrap();
        assert_eq!(second.finish(now).await.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(parts.list().unwrap().len(), 1, "the loser's part is removed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn space_is_limited_for_each_user_and_for_all() {
        let Scene { uploads, _dir, .. } = scene();
        let now = clock::now();
        let create = async |user, parts: usize| {
            let created = uploads.create(UserId(user), file(parts * UPLOAD_PART_BYTES), now).await;
            created.map(drop).map_err(|error| error.kind())
        };
        let sheet = NewUpload { file_name: "a.xls".to_owned(), ..file(1) };
        let refused = uploads.create(UserId(1), sheet, now).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "it would become no item");
        assert_eq!(create(1, 4).await, Err(ErrorKind::TooLarge), "the limit of one file");
        assert_eq!(create(1, 3).await, Ok(()));
        assert_eq!(create(1, 2).await, Err(ErrorKind::TooLarge), "the limit of one user");
        assert_eq!(create(1, 1).await, Ok(()));
        assert_eq!(create(2, 2).await, Err(ErrorKind::Overloaded), "the limit of all");
        assert_eq!(create(2, 1).await, Ok(()));
        let later = now + SignedDuration::from_hours(2);
        assert_eq!(uploads.sweep(later).await.unwrap(), 3);
        assert_eq!(uploads.sweep(later).await.unwrap(), 0);
        assert_eq!(create(2, 3).await, Ok(()), "expired uploads take no space");
    }
}
