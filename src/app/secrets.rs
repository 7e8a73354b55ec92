//! Locates or creates the key that encrypts secrets in the database, copies it into backups, and rotates it.

use std::path::{Path, PathBuf};

use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::{DatabaseSnapshot, Db, DbError, SealedCount};
use crate::storage::secrets::{self, KeyId, KeySource, SecretError, SecretKey};

/// Name of the key file in a data directory.
pub const KEY_FILE: &str = "secrets.key";

/// The handling of a key that is missing or does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingKey {
    /// Opening the archive fails, because a service would fail at each delivery and login.
    Fails,
    /// The archive is opened, and operations that need the key fail: most commands and read-only nodes do not
    /// need it.
    Waits,
}

/// Returns the source of keys according to the settings.
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

/// Creates a key file if the file does not exist; returns whether it was created.
fn create_key_file(path: &Path) -> Result<bool> {
    if path.exists() {
        return Ok(false);
    }
    let key = SecretKey::draw().map_err(|cause| invalid(&cause))?;
    secrets::create(path, &[key]).map_err(|cause| invalid(&cause))
}

/// Returns whether to encrypt secrets that are still stored in plain text: with SQLite, or if the settings
/// name a key file. A PostgreSQL database has several nodes, and each node would otherwise create its own
/// key.
fn starts_encryption(config: &Config) -> bool {
    config.database.url.0.is_empty() || !config.secrets.key_file.as_os_str().is_empty()
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

fn invalid(cause: &SecretError) -> Error {
    Error::new(ErrorKind::InvalidArgument, cause.to_string())
}

/// Loads the keys of the settings into `db`, and encrypts secrets that are stored in plain text.
pub(super) fn unlock(config: &Config, db: &Db, missing: MissingKey) -> Result<()> {
    let opened = try_unlock(config, db);
    match opened {
        Err(cause) if missing == MissingKey::Waits => {
            tracing::info!("secrets of the archive are unavailable: {cause}");
            // Values that need a key then fail with this reason instead of a decryption error.
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
    // Secrets are stored in plain text; a read-only node, and a database that no longer accepts
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
    let key_id = first(&keys)?;
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

fn first(keys: &[SecretKey]) -> Result<KeyId> {
    let id = keys.first().map(SecretKey::id);
    id.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, "secrets.key holds no key"))
}

/// Loads the keys of the settings, if the key in force is among them.
fn use_keys(config: &Config, db: &Db, source: KeySource, id: KeyId) -> Result<()> {
    let why = match load(config, &source) {
        Ok(keys) if keys.iter().any(|key| key.id() == id) => {
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
        "the secrets in the database are encrypted with key {id}, and {why}; every node of an \
         archive needs the same key"
    );
    Err(Error::new(ErrorKind::Conflict, message))
}

/// The result of a rotation.
#[derive(Clone, Debug)]
pub struct RotationReport {
    pub before: KeyId,
    /// The key in force now.
    pub after: KeyId,
    /// Number of values that were encrypted again.
    pub count: SealedCount,
    /// The source of the keys.
    pub source: KeySource,
}

/// Encrypts every secret of an open archive with a new key.
///
/// A key file holds both the new and the old key until the transaction is committed, so that a process killed
/// at any moment leaves a file with the key in force. With `secrets.key`, the first of several keys becomes
/// the key in force.
pub fn rotate(config: &Config, db: &Db) -> Result<RotationReport> {
    let source = key_source(config);
    let KeySource::File(path) = &source else { return rotate_setting(config, db, source) };
    let _lock = secrets::lock(path).map_err(|cause| conflict(&cause))?;
    let before = in_force(db)?;
    // Without the key in force nothing could be decrypted, and the file is not changed.
    use_keys(config, db, source.clone(), before)?;
    let mut keys = secrets::read(path).map_err(|cause| conflict(&cause))?;
    let new_key = SecretKey::draw().map_err(|cause| conflict(&cause))?;
    let after = new_key.id();
    // Drop keys of interrupted rotations, but not the key in force.
    keys.retain(|key| key.id() == before);
    keys.push(new_key.clone());
    secrets::replace(path, &keys).map_err(|cause| conflict(&cause))?;
    db.load_keys(source.clone(), keys);
    let count = db.encrypt_secrets(Some(before), after)?;
    // No value is encrypted with the old key now, so the file and the memory drop it.
    let written = secrets::replace(path, std::slice::from_ref(&new_key));
    written.map_err(|cause| conflict(&cause))?;
    db.load_keys(source.clone(), vec![new_key]);
    Ok(RotationReport { before, after, count, source })
}

fn conflict(cause: &SecretError) -> Error {
    Error::new(ErrorKind::Conflict, cause.to_string())
}

fn rotate_setting(config: &Config, db: &Db, source: KeySource) -> Result<RotationReport> {
    let before = in_force(db)?;
    use_keys(config, db, source.clone(), before)?;
    let after = first(&load(config, &source).map_err(|cause| invalid(&cause))?)?;
    if after == before {
        let message = "secrets.key has no new key: put one before the current key, with a comma \
                       between them (`openssl rand -hex 32` prints one)";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let count = db.encrypt_secrets(Some(before), after)?;
    Ok(RotationReport { before, after, count, source })
}

fn in_force(db: &Db) -> Result<KeyId> {
    let message = "the secrets of this archive are not encrypted: set secrets.key_file and start the \
         service";
    db.secrets_key()?.ok_or_else(|| Error::new(ErrorKind::Conflict, message))
}

/// The key of a backup: its id, and the name of its file in the folder if it was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BackupKey {
    pub(super) id: Option<String>,
    pub(super) file: Option<String>,
}

/// Prefix of the names of key files in a backup.
const IN_BACKUP: &str = "secrets-";

/// Copies the key of the database into the folder of a backup, unless it is stored elsewhere: in the
/// settings, or by the operator (`is_stored_elsewhere`).
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
            "{source} does not have the key {id} of the database, so the backup would be \
             unreadable; --without-key makes it nevertheless"
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    };
    let file = format!("{IN_BACKUP}{id}.key");
    secrets::replace(&target.join(&file), &[key])
        .map_err(|cause| Error::new(ErrorKind::Unavailable, cause.to_string()))?;
    Ok(BackupKey { file: Some(file), ..without_copy })
}

/// Returns whether a file of a backup is the key of an earlier backup.
pub(super) fn is_older_key(name: &str, key: &BackupKey) -> bool {
    let is_key = name.starts_with(IN_BACKUP) && name.ends_with(".key");
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
    if file.contains('/') || !file.starts_with(IN_BACKUP) {
        let message = format!("{}: `{file}` is not the name of a key", source.display());
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
        "{} holds another key than {id}, which the backup is encrypted with: move it away",
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

/// Returns a message about the key of the secrets, if a restored archive lacks it.
pub(super) fn lacking(config: &Config, key: &BackupKey) -> Option<String> {
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
