//! The note of a backup, which makes a folder a whole one.

use std::{fs, io, path::Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::backup::failed;
use super::secrets::BackupKey;
use crate::runtime::config::{OriginalsLocation, SettingValue};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::MANIFEST_BYTES_MAX;
use model::ContentHash;

/// The name of the note.
pub(super) const MANIFEST: &str = "backup.json";
/// The form of a folder that has the originals in it.
pub(super) const FORM: u32 = 1;
/// The form of one whose originals lie in a bucket; earlier versions do not know it.
pub(super) const FORM_BUCKET: u32 = 2;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    /// The form of the folder.
    pub form: u32,
    /// The version of the product that made it.
    pub version: String,
    /// The moment whose state it is.
    pub at: Timestamp,
    /// The number of the database's schema.
    pub schema: u32,
    /// The name of the copy of the database.
    pub database: String,
    /// Its bytes.
    pub database_bytes: u64,
    /// Its SHA-256.
    pub database_sum: ContentHash,
    /// Items in it.
    pub items: u64,
    /// Originals that they name.
    pub originals: usize,
    /// Bytes of these.
    pub originals_bytes: u64,
    /// Originals that could not be copied because the archive had lost them, and rows of items
    /// that could not be read.
    pub lost: usize,
    /// The id of the key that secrets in the database are encrypted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_key: Option<String>,
    /// The name of the copy of that key; nothing where it is kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_key_file: Option<String>,
    /// The bucket that has the originals, `s3://BUCKET/PREFIX`; nothing where the folder has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
}

impl BackupManifest {
    /// The bucket that has the originals.
    pub(super) fn place(&self) -> Result<Option<OriginalsLocation>> {
        let parsed = self.bucket.as_deref().map(OriginalsLocation::parse).transpose();
        parsed.map_err(|why| Error::new(ErrorKind::Conflict, format!("{MANIFEST}: bucket: {why}")))
    }

    pub(super) fn key(&self) -> BackupKey {
        BackupKey { id: self.secrets_key.clone(), file: self.secrets_key_file.clone() }
    }
}

/// Reads the note of a backup.
///
/// Fails when there is none, as after an interrupted backup, or a later version wrote it.
pub(super) fn read_manifest(source: &Path) -> Result<BackupManifest> {
    let path = source.join(MANIFEST);
    let refuse = |why: String| Err(Error::new(ErrorKind::Conflict, why));
    let facts = match fs::metadata(&path) {
        Ok(facts) => facts,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return refuse(format!(
                "{} holds no whole backup: there is no {MANIFEST}, which is written last",
                source.display()
            ));
        }
        Err(cause) => return Err(failed(&path, &cause)),
    };
    if facts.len() > MANIFEST_BYTES_MAX {
        return refuse(format!("{} is no note of a backup: it is too long", path.display()));
    }
    let text = fs::read_to_string(&path).map_err(|cause| failed(&path, &cause))?;
    let manifest: BackupManifest = match serde_json::from_str(&text) {
        Ok(manifest) => manifest,
        Err(cause) => {
            return refuse(format!("{} cannot be read: {cause}", path.display()));
        }
    };
    if manifest.form > FORM_BUCKET {
        return refuse(format!(
            "{} is of form {} and this version of wirephoto reads forms up to {FORM_BUCKET}",
            path.display(),
            manifest.form
        ));
    }
    let name = &manifest.database;
    if name.contains('/') || !name.starts_with("wirephoto-") {
        return refuse(format!("{}: `{name}` is no name of a database", path.display()));
    }
    Ok(manifest)
}
