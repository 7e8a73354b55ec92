//! The location of a backup's originals.

use std::{io, path::Path};

use super::copying::store_failed;
use crate::app::{credentials, seconds};
use crate::runtime::config::{
    Backup, Config, OriginalsLocation, SecretSource, ServiceEndpoints, SettingValue,
};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::{
    BlobStore, BucketSettings, CredentialSource, StartPolicy, StoreError,
};

/// The location of the originals of a backup.
#[derive(Clone, Copy, Debug)]
pub enum CopyLocation<'a> {
    /// The subfolder `originals/` of the backup's folder.
    Folder(&'a Path),
    /// A bucket, reached with the settings `backup.*` and `store.*`, or a folder with nothing but originals.
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
            && *endpoint(config) == config.store.endpoint
        {
            let message =
                format!("{} holds the originals of the archive itself", location.print());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        match self {
            Self::Folder(dir) => BlobStore::open(&dir.join("originals")).map_err(store_failed),
            Self::Bucket(_) => {
                let backup = &config.backup;
                let store = self.open_to_read(config)?;
                // The store may be configured under a different name, but a store with a mark is in use by an
                // archive and is no copy.
                if let Some(mark) = store.mark().map_err(|cause| refused(backup, cause))? {
                    let message = format!(
                        "{} holds the originals of the archive {}, so it is not a copy",
                        self.print(),
                        mark.id
                    );
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
                store.check_writable().map_err(|cause| refused(backup, cause))?;
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

/// Opens the bucket of a backup. What the settings `backup.*` leave empty is as for the archive's own bucket
/// (`store.*`), and so are the timeouts.
fn open_bucket(config: &Config, bucket: &str, prefix: &str) -> Result<BlobStore> {
    let own = &config.backup;
    let store = &config.store;
    let is_own_service = has_own_service(own);
    let endpoint = endpoint(config);
    let address_style = if is_own_service { own.address_style } else { store.address_style };
    let settings = BucketSettings {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        endpoints: endpoint.0.clone(),
        region: if own.region.is_empty() { store.region.clone() } else { own.region.clone() },
        credentials: if has_own_key(own) { own_key(own) } else { credentials(config) },
        path_style: address_style.is_path(endpoint),
        plain_http: if is_own_service { own.plain_http } else { store.plain_http },
        ca: if is_own_service { own.ca.clone() } else { store.ca.clone() },
        answer: seconds(store.answer_s),
        give_up: seconds(store.give_up_s),
        requests: store.requests,
    };
    BlobStore::in_bucket(&settings, &config.data.dir.join("scratch"), StartPolicy::Fail)
        .map_err(|cause| refused(own, cause))
}

/// Returns the endpoint of the backup's bucket.
fn endpoint(config: &Config) -> &ServiceEndpoints {
    if has_own_service(&config.backup) { &config.backup.endpoint } else { &config.store.endpoint }
}

/// Returns whether the settings of a backup name a service; otherwise it is reached like the archive's own bucket.
fn has_own_service(backup: &Backup) -> bool {
    !backup.endpoint.0.is_empty()
}

/// Returns whether the settings of a backup contain a part of a key. The parts of two keys are never mixed.
fn has_own_key(backup: &Backup) -> bool {
    let texts = [&backup.access_key_id, &backup.secret_access_key.0, &backup.session_token.0];
    let files =
        [&backup.access_key_id_file, &backup.secret_access_key_file, &backup.session_token_file];
    texts.iter().any(|text| !text.is_empty())
        || files.iter().any(|file| !file.as_os_str().is_empty())
}

fn own_key(backup: &Backup) -> CredentialSource {
    CredentialSource::Key {
        id: SecretSource::new(
            &backup.access_key_id,
            "backup.access_key_id_file",
            &backup.access_key_id_file,
        ),
        secret: SecretSource::new(
            &backup.secret_access_key.0,
            "backup.secret_access_key_file",
            &backup.secret_access_key_file,
        ),
        token: SecretSource::new(
            &backup.session_token.0,
            "backup.session_token_file",
            &backup.session_token_file,
        ),
    }
}

/// Returns whether a setting `backup.*` counts in place of `setting`, which is one of `store.*`.
fn is_own(backup: &Backup, setting: &str) -> bool {
    match setting {
        "store.region" => !backup.region.is_empty(),
        "store.endpoint" | "store.address_style" | "store.plain_http" | "store.ca" => {
            has_own_service(backup)
        }
        _ => has_own_key(backup),
    }
}

/// Converts an error of the backup's bucket, so that it names the setting that is likely to be wrong: `backup.*`, or
/// `store.*` if that one counts.
fn refused(backup: &Backup, cause: StoreError) -> Error {
    let message = match cause {
        // The location of a backup is no setting but an option of the command.
        StoreError::Setting { setting: "store.originals", why } => format!("--bucket: {why}"),
        StoreError::Setting { setting, why } if is_own(backup, setting) => {
            let setting = setting.replacen("store.", "backup.", 1);
            format!("{setting}: {}", why.replace(" store.", " backup."))
        }
        StoreError::Setting { .. }
        | StoreError::Missing(_)
        | StoreError::Length { .. }
        | StoreError::Corrupted(_)
        | StoreError::Io { .. }
        | StoreError::OtherArchive { .. }
        | StoreError::Unavailable { .. } => cause.to_string(),
    };
    Error::new(ErrorKind::Unavailable, "the bucket of the backup cannot be used")
        .with_source(io::Error::other(message))
}
