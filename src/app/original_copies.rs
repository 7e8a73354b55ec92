//! Originals of a backup: the folder or the bucket that they lie in, and copies of originals alone, for a database
//! that has tools of its own.

use std::{io, path::Path, time::Duration};

use super::backup::{
    CopyParameters, CopyTally, Hear, copy_named_originals, prepare, store_failed,
};
use super::ownership::{refuse_foreign, replace_mark};
use super::{OpenArchive, open_store};
use crate::runtime::config::{Config, OriginalsLocation, SecretSource, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::{
    BlobStore, BucketSettings, CredentialSource, StartPolicy, StoreError,
};
use crate::storage::database::NamedOriginal;

/// Where the originals of a backup lie.
#[derive(Clone, Copy, Debug)]
pub enum CopyLocation<'a> {
    /// In `originals/` of the backup's folder.
    Folder(&'a Path),
    /// In a bucket, reached with the settings `backup.*`, or in a folder as it is.
    Bucket(&'a OriginalsLocation),
}

impl CopyLocation<'_> {
    /// As messages name it.
    #[must_use]
    pub fn print(&self) -> String {
        match self {
            Self::Folder(dir) => dir.join("originals").display().to_string(),
            Self::Bucket(place) => place.print(),
        }
    }

    /// Opens the place to read originals of a backup from it; a folder need not be writable.
    pub(super) fn open_to_read(&self, config: &Config) -> Result<BlobStore> {
        match self {
            Self::Folder(dir) => folder(&dir.join("originals")),
            Self::Bucket(OriginalsLocation::Folder(dir)) => folder(dir),
            Self::Bucket(OriginalsLocation::Bucket { bucket, prefix }) => {
                open_bucket(config, bucket, prefix)
            }
            Self::Bucket(OriginalsLocation::Data) => {
                let message = "expected a folder or s3://BUCKET/PREFIX";
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
        }
    }

    /// Opens the place to write originals to it; a bucket proves that it can be written.
    ///
    /// Fails where it is the place of the archive's own originals.
    pub(super) fn open_to_write(&self, config: &Config) -> Result<BlobStore> {
        if let Self::Bucket(place) = self
            && **place == config.store.originals
            && config.backup.endpoint == config.store.endpoint
        {
            let message = format!("{} holds the originals of the archive itself", place.print());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        match self {
            Self::Folder(dir) => BlobStore::open(&dir.join("originals")).map_err(store_failed),
            Self::Bucket(_) => {
                let store = self.open_to_read(config)?;
                // Whatever it is called in the settings: what an archive lives from is no copy.
                if let Some(mark) = store.mark().map_err(refused)? {
                    let message = format!(
                        "{} holds the originals of the archive {}, which are no copy",
                        self.print(),
                        mark.id
                    );
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
                store.check_writable().map_err(refused)?;
                Ok(store)
            }
        }
    }
}

/// The originals in a folder, which may lie on a disk that cannot be written.
fn folder(dir: &Path) -> Result<BlobStore> {
    if !dir.is_dir() {
        let message = format!("{} is missing in the backup", dir.display());
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(BlobStore::open_existing(dir))
}

/// The bucket of a backup. Its time limits are those of the archive's own (`store.*`).
fn open_bucket(config: &Config, bucket: &str, prefix: &str) -> Result<BlobStore> {
    let (given, limits) = (&config.backup, &config.store);
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let settings = BucketSettings {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        endpoints: given.endpoint.0.clone(),
        region: given.region.clone(),
        credentials: CredentialSource::Key {
            id: SecretSource::new(
                &given.access_key_id,
                "backup.access_key_id_file",
                &given.access_key_id_file,
            ),
            secret: SecretSource::new(
                &given.secret_access_key.0,
                "backup.secret_access_key_file",
                &given.secret_access_key_file,
            ),
            token: SecretSource::new(
                &given.session_token.0,
                "backup.session_token_file",
                &given.session_token_file,
            ),
        },
        path_style: given.address_style.is_path(&given.endpoint),
        plain_http: given.plain_http,
        ca: given.ca.clone(),
        answer: seconds(limits.answer_s),
        give_up: seconds(limits.give_up_s),
        requests: limits.requests,
    };
    BlobStore::in_bucket(&settings, &config.data.dir.join("scratch"), StartPolicy::Fail)
        .map_err(refused)
}

/// The error of the bucket of a backup, which names the setting `backup.*` that is likely to be wrong.
fn refused(cause: StoreError) -> Error {
    let words = match cause {
        StoreError::Setting { setting, why } => {
            let setting = match setting {
                "store.originals" => "--bucket".to_owned(),
                setting => setting.replacen("store.", "backup.", 1),
            };
            format!("{setting}: {}", why.replace(" store.", " backup."))
        }
        StoreError::Missing(_)
        | StoreError::Length { .. }
        | StoreError::Corrupted(_)
        | StoreError::Io { .. }
        | StoreError::OtherArchive { .. }
        | StoreError::Unavailable { .. } => cause.to_string(),
    };
    Error::new(ErrorKind::Unavailable, "the bucket of the backup cannot be used")
        .with_source(io::Error::other(words))
}

/// Copies every original that the archive's store has to `to`; those that are there already stay, and with
/// `verify` they are read, and damaged ones replaced. Gives how many could not be copied.
///
/// All of them, and not those alone that items name: a dump of the database may be older than the copy and name
/// an original whose item was replaced since.
pub fn copy_originals(
    config: &Config,
    to: CopyLocation<'_>,
    verify: bool,
    hear: Hear<'_>,
) -> Result<(CopyTally, usize)> {
    let _alone = match to {
        CopyLocation::Folder(dir) => Some(prepare(dir, true)?),
        CopyLocation::Bucket(_) => None,
    };
    let from = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    let to = to.open_to_write(config)?;
    copy_named_originals(&from, &to, &listed_originals(&from)?, copy_options(config, verify), hear)
}

/// Copies every original of a backup into the archive's store: those that are lost there come back, and those
/// that are damaged are replaced. The service may run. Gives how many could not be copied.
pub fn restore_originals(
    config: &Config,
    from: CopyLocation<'_>,
    hear: Hear<'_>,
) -> Result<(CopyTally, usize)> {
    let from = from.open_to_read(config)?;
    let to = open_store(config, StartPolicy::Fail).map_err(store_failed)?;
    to.check_writable().map_err(store_failed)?;
    let id = archive_of(config);
    if let Some(id) = &id {
        refuse_foreign(&to, id)?;
    }
    let carried = copy_named_originals(
        &from,
        &to,
        &listed_originals(&from)?,
        copy_options(config, true),
        hear,
    )?;
    if let Some(id) = id
        && to.mark().map_err(store_failed)?.is_none()
    {
        replace_mark(&to, &id).map_err(store_failed)?;
    }
    Ok(carried)
}

/// The archive of the settings' database, where that is there already: originals may come back before it.
fn archive_of(config: &Config) -> Option<String> {
    let archive = OpenArchive::open_to_examine(config).ok()?;
    archive.db.read_blocking(|tx| tx.archive_id()).ok()
}

fn copy_options(config: &Config, verify: bool) -> CopyParameters {
    CopyParameters { workers: config.ingest_workers(), verify, strict: false }
}

/// What a store has, as if items named it.
fn listed_originals(store: &BlobStore) -> Result<Vec<NamedOriginal>> {
    let sizes = store.list_with_sizes().map_err(store_failed)?;
    Ok(sizes.into_iter().map(|(hash, length)| NamedOriginal { hash, length, doc: 0 }).collect())
}
