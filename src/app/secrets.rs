//! Locates or creates the key that encrypts secrets in the database, rotates it, and copies it into backups and back.
//!
//! The secrets are passwords of channels, the signing key and keys of links. The database has only the id of its
//! *current* key. The key itself comes from the settings, as text (`secrets.key`) or as a file (`secrets.key_file`),
//! which may contain a former and a next key too during a rotation.

use std::path::{Path, PathBuf};

use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{DatabaseSnapshot, Db, DbError, SealedCount};
use crate::storage::secrets::{self, KeyId, KeySource, SecretError, SecretKey};

/// Name of the key file in a data directory.
pub const KEY_FILE: &str = "secrets.key";

/// The reaction to a key that is missing or is not the current key, when an archive is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingKey {
    /// The archive is not opened, because a service would fail at each delivery and login.
    Fail,
    /// The archive is opened, and operations that need the key fail: most commands and read-only nodes do not
    /// need it.
    OpenWithout,
}

/// Returns the source of the keys: a setting, a file that the settings name, or the file in the data directory.
pub fn key_source(config: &Config) -> KeySource {
    let given = &config.secrets;
    if !given.key.0.is_empty() {
        return KeySource::Setting;
    }
    if given.key_file.as_os_str().is_empty() {
        KeySource::File(config.data.dir.join(KEY_FILE))
    } else {
        KeySource::File(given.key_file.clone())
    }
}

/// Loads the keys of the settings into `db`, and encrypts secrets that are stored in plain text.
pub(super) fn unlock(config: &Config, db: &Db, missing: MissingKey) -> Result<()> {
    let opened = try_unlock(config, db);
    match opened {
        Err(cause) if missing == MissingKey::OpenWithout => {
            tracing::info!("secrets of the archive are unavailable: {cause}");
            // Values that need a key then fail with this reason, which continues the sentence about the value.
            db.refuse_secrets(format!("and {cause}"));
            Ok(())
        }
        opened => opened,
    }
}

fn try_unlock(config: &Config, db: &Db) -> Result<()> {
    let source = key_source(config);
    if let Some(id) = db.secrets_key()? {
        return use_keys(config, db, source, id);
    }
    // From here on, secrets are stored in plain text. A read-only node, and a database that no longer accepts
    // writes, cannot encrypt them.
    if db.is_read_only() || db.moved_to()?.is_some() {
        return Ok(());
    }
    let mut created = None;
    if let KeySource::File(path) = &source {
        if !starts_encryption(config) {
            return Ok(());
        }
        created = create_key_file(path)?.then_some(path);
    }
    let keys = load(config, &source).map_err(|cause| invalid(&cause))?;
    let key_id = first_id(&keys)?;
    db.load_keys(source.clone(), keys);
    match db.encrypt_secrets(None, key_id) {
        Ok(count) => {
            if count.total() > 0 {
                tracing::info!(
                    channels = count.channels,
                    signing_keys = count.signing_keys,
                    key = %key_id,
                    "secrets in the database are encrypted now, with {source}"
                );
            }
            Ok(())
        }
        // Several processes started together, and a different process encrypted the secrets first.
        Err(DbError::InUse(_)) => {
            let Some(id) = db.secrets_key()? else { return Ok(()) };
            if let Some(path) = created
                && id != key_id
            {
                // Nothing was encrypted with this key.
                drop(std::fs::remove_file(path));
            }
            use_keys(config, db, source, id)
        }
        Err(cause) => Err(cause.into()),
    }
}

/// Returns the current key of the archive; `None` if its secrets are not encrypted yet.
///
/// Fails with [`ErrorKind::Conflict`] if the settings do not name this key, as a start does.
pub(super) fn check_key(config: &Config, db: &Db) -> Result<Option<KeyId>> {
    let Some(id) = db.secrets_key()? else { return Ok(None) };
    use_keys(config, db, key_source(config), id)?;
    Ok(Some(id))
}

/// Returns whether to encrypt secrets that are still stored in plain text: with SQLite, or if the settings
/// name a key file. A PostgreSQL database has several nodes, and each node would otherwise create its own
/// key.
fn starts_encryption(config: &Config) -> bool {
    config.database.url.0.is_empty() || !config.secrets.key_file.as_os_str().is_empty()
}

/// Creates a key file with a new key if the file does not exist; returns whether it was created.
fn create_key_file(path: &Path) -> Result<bool> {
    if path.exists() {
        return Ok(false);
    }
    let key = SecretKey::draw().map_err(|cause| invalid(&cause))?;
    secrets::create(path, &[key]).map_err(|cause| invalid(&cause))
}

/// Loads the keys of the settings into `db`. Fails if the `current` key is not among them.
fn use_keys(config: &Config, db: &Db, source: KeySource, current: KeyId) -> Result<()> {
    let why = match load(config, &source) {
        Ok(keys) if keys.iter().any(|key| key.id() == current) => {
            db.load_keys(source, keys);
            return Ok(());
        }
        Ok(keys) => {
            let ids: Vec<String> = keys.iter().map(|key| key.id().to_string()).collect();
            format!("{source} has key {}", ids.join(" and "))
        }
        Err(cause) => cause.to_string(),
    };
    let message = format!(
        "the secrets in the database are encrypted with key {current}, and {why}; every node of an \
         archive needs the same key"
    );
    Err(Error::new(ErrorKind::Conflict, message))
}

fn load(config: &Config, source: &KeySource) -> std::result::Result<Vec<SecretKey>, SecretError> {
    match source {
        KeySource::File(path) => secrets::read(path),
        KeySource::Setting => {
            let keys = config.secrets.key.0.split(',').map(SecretKey::parse);
            let keys = keys.collect::<Result<_, SecretError>>();
            keys.map_err(|cause| SecretError::File(format!("{source}: {cause}")))
        }
    }
}

/// Reads the keys of the settings. A file that does not exist has none yet: the first start creates it.
pub(super) fn check_keys(config: &Config) -> Result<()> {
    let source = key_source(config);
    if matches!(&source, KeySource::File(path) if !path.exists()) {
        return Ok(());
    }
    load(config, &source).map(drop).map_err(|cause| invalid(&cause))
}

/// Returns the id of the first key, which encrypts new values.
fn first_id(keys: &[SecretKey]) -> Result<KeyId> {
    let id = keys.first().map(SecretKey::id);
    id.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, "secrets.key holds no key"))
}

fn invalid(cause: &SecretError) -> Error {
    Error::new(ErrorKind::InvalidArgument, cause.to_string())
}

fn conflict(cause: &SecretError) -> Error {
    Error::new(ErrorKind::Conflict, cause.to_string())
}

/// The result of a rotation.
#[derive(Clone, Debug)]
pub struct RotationReport {
    /// The former current key.
    pub before: KeyId,
    /// The current key from now on.
    pub after: KeyId,
    /// Number of values that were encrypted again.
    pub count: SealedCount,
    /// The source of the keys.
    pub source: KeySource,
}

/// Encrypts every secret of an open archive with a new key.
///
/// A key file holds both the old and the new key until the transaction is committed, so that a process killed
/// at any moment leaves a file with the current key. With `secrets.key`, the first of several keys becomes
/// the current key.
pub fn rotate(config: &Config, db: &Db) -> Result<RotationReport> {
    let source = key_source(config);
    let KeySource::File(path) = &source else { return rotate_setting(config, db, source) };
    let _lock = secrets::lock(path).map_err(|cause| conflict(&cause))?;
    let before = current_key(db)?;
    // Without the current key nothing could be decrypted, so the file must not change.
    use_keys(config, db, source.clone(), before)?;
    let mut keys = secrets::read(path).map_err(|cause| conflict(&cause))?;
    let new_key = SecretKey::draw().map_err(|cause| conflict(&cause))?;
    let after = new_key.id();
    // Drops keys of interrupted rotations.
    keys.retain(|key| key.id() == before);
    keys.push(new_key.clone());
    secrets::replace(path, &keys).map_err(|cause| conflict(&cause))?;
    db.load_keys(source.clone(), keys);
    let count = db.encrypt_secrets(Some(before), after)?;
    // No value is encrypted with the old key any more, so it is dropped from the file and from memory.
    let written = secrets::replace(path, std::slice::from_ref(&new_key));
    written.map_err(|cause| conflict(&cause))?;
    db.load_keys(source.clone(), vec![new_key]);
    Ok(RotationReport { before, after, count, source })
}

/// Encrypts every secret with the first key of the setting `secrets.key`.
fn rotate_setting(config: &Config, db: &Db, source: KeySource) -> Result<RotationReport> {
    let before = current_key(db)?;
    use_keys(config, db, source.clone(), before)?;
    let after = first_id(&load(config, &source).map_err(|cause| invalid(&cause))?)?;
    if after == before {
        let message = "secrets.key has no new key: put one before the current key, with a comma \
                       between them (`openssl rand -hex 32` prints one)";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let count = db.encrypt_secrets(Some(before), after)?;
    Ok(RotationReport { before, after, count, source })
}

fn current_key(db: &Db) -> Result<KeyId> {
    let message = "the secrets of this archive are not encrypted: set secrets.key_file and start the \
         service";
    db.secrets_key()?.ok_or_else(|| Error::new(ErrorKind::Conflict, message))
}

/// The current key of a database in a backup: its id, and the name of its file in the folder if it was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BackupKey {
    pub(super) id: Option<String>,
    pub(super) file: Option<String>,
}

/// Prefix of the names of key files in a backup.
const BACKUP_KEY_PREFIX: &str = "secrets-";

/// Copies the current key of the database in `snapshot` into `target`, the folder of a backup, unless it is stored
/// elsewhere: in the settings, or by the operator (`is_stored_elsewhere`).
pub(super) fn copy_key(
    config: &Config,
    snapshot: &DatabaseSnapshot,
    target: &Path,
    is_stored_elsewhere: bool,
) -> Result<BackupKey> {
    let Some(id) = snapshot.read(|tx| tx.secrets_key())? else { return Ok(BackupKey::default()) };
    let source = key_source(config);
    let without_copy = BackupKey { id: Some(id.to_string()), file: None };
    if is_stored_elsewhere || source == KeySource::Setting {
        return Ok(without_copy);
    }
    let keys = load(config, &source).map_err(|cause| conflict(&cause))?;
    let Some(key) = keys.into_iter().find(|key| key.id() == id) else {
        let message = format!(
            "{source} does not have the key {id} of the database, so secrets in the backup would be \
             unreadable; --without-key leaves the key out"
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    };
    let file = format!("{BACKUP_KEY_PREFIX}{id}.key");
    secrets::replace(&target.join(&file), &[key])
        .map_err(|cause| Error::new(ErrorKind::Unavailable, cause.to_string()))?;
    Ok(BackupKey { file: Some(file), ..without_copy })
}

/// Returns whether a file of a backup is the key of an earlier backup.
pub(super) fn is_older_key(name: &str, key: &BackupKey) -> bool {
    let is_key = name.starts_with(BACKUP_KEY_PREFIX) && name.ends_with(".key");
    is_key && key.file.as_deref() != Some(name)
}

/// Reads the key of a backup and determines the path to restore it to; `None` if the key exists there already
/// or the backup has no key.
///
/// Fails, before anything is written, if a different key exists there: it may be the only copy of the key of
/// a different archive.
pub(super) fn key_to_restore(
    config: &Config,
    source: &Path,
    key: &BackupKey,
) -> Result<Option<(PathBuf, Vec<SecretKey>)>> {
    let (Some(id), Some(file)) = (&key.id, &key.file) else { return Ok(None) };
    let KeySource::File(path) = key_source(config) else { return Ok(None) };
    // A manifest may come from elsewhere, and a name with a slash would lead out of its folder.
    if file.contains('/') || !file.starts_with(BACKUP_KEY_PREFIX) {
        let message = format!("{}: `{file}` is not the name of a key file", source.display());
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let keys = secrets::read(&source.join(file)).map_err(|cause| conflict(&cause))?;
    if !path.exists() {
        return Ok(Some((path, keys)));
    }
    let existing = secrets::read(&path).map_err(|cause| conflict(&cause))?;
    if existing.iter().any(|key| key.id().to_string() == *id) {
        return Ok(None);
    }
    let message = format!(
        "{} holds another key than {id}, the key of the secrets in the backup: move the file away",
        path.display()
    );
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Writes the key to the path that [`key_to_restore`] determined.
pub(super) fn restore_key(plan: Option<(PathBuf, Vec<SecretKey>)>) -> Result<()> {
    let Some((path, keys)) = plan else { return Ok(()) };
    secrets::create(&path, &keys)
        .map(drop)
        .map_err(|cause| Error::new(ErrorKind::Unavailable, cause.to_string()))
}

/// Returns a message for the operator if a restored archive lacks the key of its secrets.
pub(super) fn missing_key_message(config: &Config, key: &BackupKey) -> Option<String> {
    let id = key.id.as_ref()?;
    let source = key_source(config);
    // A key file that cannot be read counts as missing: the message asks for the key.
    let keys = load(config, &source).unwrap_or_default();
    if keys.iter().any(|key| key.id().to_string() == *id) {
        return None;
    }
    Some(format!(
        "the key {id} of the secrets is not in the backup: put it into {source} before the service \
         starts"
    ))
}
