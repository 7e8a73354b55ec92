//! The manifest of a backup, whose presence marks a complete backup.

use std::{fs, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::folder::failed;
use crate::app::secrets::BackupKey;
use crate::runtime::config::{OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use model::ContentHash;

/// Bytes of the manifest of a backup.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024;

/// File name of the manifest.
pub(super) const MANIFEST: &str = "backup.json";
/// Format of a backup with the originals in its folder.
pub(super) const FORM: u32 = 1;
/// Format of a backup with the originals in a bucket.
pub(super) const FORM_BUCKET: u32 = 2;

/// The contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    /// Format of the folder.
    pub form: u32,
    /// Version of the product that wrote the backup.
    pub version: String,
    /// The moment of the snapshot.
    pub at: Timestamp,
    /// Version of the database's schema.
    pub schema: u32,
    /// File name of the copy of the database.
    pub database: String,
    /// Length of that copy in bytes.
    pub database_bytes: u64,
    /// SHA-256 of that copy.
    pub database_sum: ContentHash,
    /// Number of items in the database.
    pub items: u64,
    /// Number of originals that the items refer to.
    pub originals: usize,
    /// Total length of these originals in bytes.
    pub originals_bytes: u64,
    /// Number of originals that could not be copied because the archive had lost them, plus the item rows
    /// that could not be read.
    pub lost: usize,
    /// Id of the key that encrypts secrets in the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_key: Option<String>,
    /// File name of the copy of that key; `None` if it is stored elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_key_file: Option<String>,
    /// The bucket with the originals, `s3://BUCKET/PREFIX`; `None` if the folder has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
}

impl BackupManifest {
    /// Returns the bucket with the originals, or `None` if the folder has them.
    pub(super) fn place(&self) -> Result<Option<OriginalsLocation>> {
        let parsed = self.bucket.as_deref().map(OriginalsLocation::parse).transpose();
        parsed.map_err(|why| Error::new(ErrorKind::Conflict, format!("{MANIFEST}: bucket: {why}")))
    }

    pub(super) fn key(&self) -> BackupKey {
        BackupKey { id: self.secrets_key.clone(), file: self.secrets_key_file.clone() }
    }
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorKind::Conflict, why))
}

/// Reads the manifest of a backup.
///
/// Fails if there is no manifest, as after an interrupted backup, or if a later version wrote it.
pub(super) fn read_manifest(source: &Path) -> Result<BackupManifest> {
    let path = source.join(MANIFEST);
    let shown = path.display();
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return refuse(format!(
                "{} holds no complete backup: there is no {MANIFEST}, which is written last",
                source.display()
            ));
        }
        Err(cause) => return Err(failed(&path, &cause)),
    };
    // The folder may be any folder, so the file is measured before it is read into memory.
    if metadata.len() > MANIFEST_BYTES_MAX {
        return refuse(format!("{shown} is not a manifest of a backup: it is too long"));
    }
    let text = fs::read_to_string(&path).map_err(|cause| failed(&path, &cause))?;
    let parsed = serde_json::from_str::<BackupManifest>(&text);
    let manifest = parsed.or_else(|cause| refuse(format!("{shown} cannot be read: {cause}")))?;
    if manifest.form > FORM_BUCKET {
        return refuse(format!(
            "{shown} has format {}, and this version of wirephoto reads formats up to {FORM_BUCKET}",
            manifest.form
        ));
    }
    let name = &manifest.database;
    // A manifest may come from elsewhere, and a name with a slash would lead out of its folder.
    if name.contains('/') || !name.starts_with("wirephoto-") {
        return refuse(format!("{shown}: `{name}` is not the name of a database"));
    }
    Ok(manifest)
}
