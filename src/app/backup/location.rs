//! The location of a backup's originals.

use std::{io, path::Path};

use super::copying::store_failed;
use crate::app::seconds;
use crate::runtime::config::{Config, OriginalsLocation, SecretSource, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::{
    BlobStore, BucketSettings, CredentialSource, StartPolicy, StoreError,
};

/// The location of the originals of a backup.
#[derive(Clone, Copy, Debug)]
pub enum CopyLocation<'a> {
    /// The subfolder `originals/` of the backup's folder.
    Folder(&'a Path),
    /// A bucket, reached with the settings `backup.*`, or a folder with nothing but originals.
    Bucket(&'a OriginalsLocation),
}

impl CopyLocation<'_> {
    /// Returns the location as messages show it.
    pub fn print(&self) -> String {
        match self {
            Self::Folder(dir) => dir.join("originals").display().to_string(),
            Self::Bucket(location) => location.print(),
        }
    }

    /// Opens the location for reading the originals of a backup; a folder need not be writable.
    pub(in crate::app) fn open_to_read(&self, config: &Config) -> Result<BlobStore> {
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

    /// Opens the location for writing originals; verifies that a bucket is writable.
    ///
    /// Fails if it is the location of the archive's own originals.
    pub(in crate::app) fn open_to_write(&self, config: &Config) -> Result<BlobStore> {
        // Two buckets of the same name at different endpoints are different buckets.
        if let Self::Bucket(location) = self
            && **location == config.store.originals
            && config.backup.endpoint == config.store.endpoint
        {
            let message =
                format!("{} holds the originals of the archive itself", location.print());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        match self {
            Self::Folder(dir) => BlobStore::open(&dir.join("originals")).map_err(store_failed),
            Self::Bucket(_) => {
                let store = self.open_to_read(config)?;
                // The store may be configured under a different name, but a store with a mark is in use by an
                // archive and is no copy.
                if let Some(mark) = store.mark().map_err(refused)? {
                    let message = format!(
                        "{} holds the originals of the archive {}, so it is not a copy",
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

/// Opens the originals in a folder, which may be on a read-only disk.
fn folder(dir: &Path) -> Result<BlobStore> {
    if !dir.is_dir() {
        let message = format!("{} is missing in the backup", dir.display());
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    Ok(BlobStore::open_existing(dir))
}

/// Opens the bucket of a backup, with the timeouts of the archive's own bucket (`store.*`).
fn open_bucket(config: &Config, bucket: &str, prefix: &str) -> Result<BlobStore> {
    let given = &config.backup;
    let limits = &config.store;
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

/// Converts an error of the backup's bucket, so that it names the setting `backup.*` that is likely to be
/// wrong.
fn refused(cause: StoreError) -> Error {
    let message = match cause {
        StoreError::Setting { setting, why } => {
            let setting = match setting {
                // The location of a backup is no setting but an option of the command.
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
        .with_source(io::Error::other(message))
}
