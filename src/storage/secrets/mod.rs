//! Encrypts the secrets in the database at rest: passwords and keys of channels, the signing key, keys of
//! links.
//!
//! The cipher is AES-256-GCM with a key from outside the database. A stored value is the text `sealed:1:<key
//! id>:<base64url of nonce, ciphertext and tag>`. The associated data is the place of the value, table and
//! row, so that a value copied to a different place does not decrypt. Text without that prefix is a value
//! from before encryption and is read unchanged.

mod file;
mod key;

use std::sync::Arc;

use parking_lot::Mutex;

pub use file::{create, lock, read, replace};
pub use key::{KeyId, SecretKey};

/// The prefix of every sealed value.
pub const PREFIX: &str = "sealed:1:";

/// The reason that a value cannot be sealed or opened. The text never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The key of the value is not loaded.
    #[error("{place} is encrypted with key {id}, {why}")]
    NoKey {
        /// Table and row of the value.
        place: String,
        /// Id of the key that sealed the value.
        id: KeyId,
        /// The loaded keys, or the reason that there are none.
        why: String,
    },
    /// The value was changed, or was written for a different place.
    #[error("{0} does not decrypt: it was changed or moved there from another row")]
    Damaged(String),
    /// The key file is not usable.
    #[error("{0}")]
    File(String),
    /// The system's random number generator failed.
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// The source of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file. It is read again if a value names an unknown key.
    File(std::path::PathBuf),
    Setting,
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "secrets.key_file {}", path.display()),
            Self::Setting => f.write_str("secrets.key"),
        }
    }
}

/// The loaded keys, shared by every handle of one database; cheap to clone.
#[derive(Clone, Default)]
pub struct Keyring(Arc<Mutex<KeyringState>>);

#[derive(Default)]
struct KeyringState {
    source: Option<KeySource>,
    keys: Vec<SecretKey>,
    /// The reason that there are no keys; `None` unless [`Keyring::refuse`] was called.
    refused: Option<String>,
}

impl KeyringState {
    fn find(&self, id: KeyId) -> Option<&SecretKey> {
        self.keys.iter().find(|key| key.id() == id)
    }

    /// Reads the key file again for the key `id`, because a different process may have rotated the keys.
    fn reload_for(&mut self, id: KeyId) -> Result<(), SecretError> {
        let Some(KeySource::File(path)) = &self.source else { return Ok(()) };
        let fresh = read(path)?;
        // A file without the key is not an improvement: the loaded keys still open other values.
        if fresh.iter().any(|key| key.id() == id) {
            self.keys = fresh;
        }
        Ok(())
    }

    /// Describes the loaded keys, for the error about a missing one.
    fn describe_loaded(&self) -> String {
        if let Some(why) = &self.refused {
            return why.clone();
        }
        let ids: Vec<String> = self.keys.iter().map(|key| key.id().to_string()).collect();
        match &self.source {
            Some(source) if ids.is_empty() => format!("and {source} has none"),
            Some(source) => format!("and {source} has key {}", ids.join(" and ")),
            None => "and no key was loaded".to_owned(),
        }
    }
}

impl Keyring {
    /// Replaces the loaded keys by `keys`, which come from `source`.
    pub fn load(&self, source: KeySource, keys: Vec<SecretKey>) {
        *self.0.lock() = KeyringState { source: Some(source), keys, refused: None };
    }

    /// Refuses every value that needs a key, for the reason `why`, which continues a sentence.
    pub fn refuse(&self, why: String) {
        *self.0.lock() = KeyringState { refused: Some(why), ..KeyringState::default() };
    }

    /// Returns the reason that was given to [`Keyring::refuse`], if any.
    pub fn refusal(&self) -> Option<String> {
        self.0.lock().refused.clone()
    }

    /// Encrypts `plain` for `place` with the key `id`.
    pub fn seal(&self, id: KeyId, place: &str, plain: &[u8]) -> Result<String, SecretError> {
        self.with(id, place, |key| key.seal(place, plain))
    }

    /// Decrypts the value stored at `place`. Returns a value from before encryption unchanged.
    pub fn open(&self, place: &str, stored: Vec<u8>) -> Result<Vec<u8>, SecretError> {
        let Some(id) = sealed_by(&stored) else { return Ok(stored) };
        let id = id.ok_or_else(|| SecretError::Damaged(place.to_owned()))?;
        self.with(id, place, |key| key.open(place, &stored))
    }

    /// Runs `work` with the key `id`. An unknown id makes it read the key file again, because a different
    /// process may have rotated the keys.
    fn with<T>(
        &self,
        id: KeyId,
        place: &str,
        work: impl FnOnce(&SecretKey) -> Result<T, SecretError>,
    ) -> Result<T, SecretError> {
        // Held while the file is read, so that concurrent callers read it once.
        let mut keys = self.0.lock();
        let reloaded = match keys.find(id) {
            Some(_) => Ok(()),
            None => keys.reload_for(id),
        };
        match (keys.find(id), reloaded) {
            (Some(key), _) => work(key),
            (None, reloaded) => {
                // The error of reading the file says more than a list of the old keys.
                let why = reloaded
                    .map_or_else(|cause| format!("and {cause}"), |()| keys.describe_loaded());
                Err(SecretError::NoKey { place: place.to_owned(), id, why })
            }
        }
    }
}

/// Returns the id of the key that sealed a value. Returns `None` for a value that is not sealed, and
/// `Some(None)` if the key id cannot be parsed.
pub fn sealed_by(stored: &[u8]) -> Option<Option<KeyId>> {
    let rest = stored.strip_prefix(PREFIX.as_bytes())?;
    let id = std::str::from_utf8(rest).ok().and_then(|rest| rest.split(':').next());
    Some(id.and_then(|id| id.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(keys: &[&SecretKey]) -> Keyring {
        let keyring = Keyring::default();
        keyring.load(KeySource::Setting, keys.iter().map(|key| (*key).clone()).collect());
        keyring
    }

    #[test]
    fn a_sealed_value_opens_only_with_its_key_and_in_its_place() {
        let (key, other) = (SecretKey::draw().unwrap(), SecretKey::draw().unwrap());
        let keys = keyring(&[&key, &other]);
        let sealed = keys.seal(key.id(), "channels/1/settings", b"hunter2").unwrap();
        assert!(sealed.starts_with(PREFIX) && !sealed.contains("hunter2"), "{sealed}");
        let again = keys.seal(key.id(), "channels/1/settings", b"hunter2").unwrap();
        assert_ne!(sealed, again, "each value has its own nonce");
        let open = |keys: &Keyring, place: &str, text: &str| keys.open(place, text.into());
        assert_eq!(open(&keys, "channels/1/settings", &sealed).unwrap(), b"hunter2");
        let moved = open(&keys, "channels/2/settings", &sealed);
        assert_eq!(moved, Err(SecretError::Damaged("channels/2/settings".to_owned())));
        let without = open(&keyring(&[&other]), "channels/1/settings", &sealed).unwrap_err();
        let text = without.to_string();
        assert!(text.contains(&key.id().to_string()), "{text}");
        assert!(text.contains(&other.id().to_string()), "{text}");
    }

    #[test]
    fn a_value_that_was_changed_does_not_open() {
        let key = SecretKey::draw().unwrap();
        let keys = keyring(&[&key]);
        let sealed = keys.seal(key.id(), "state/a", b"value").unwrap();
        let at = sealed.len() - 1;
        let last = if sealed.ends_with('A') { "B" } else { "A" };
        for changed in [
            format!("{}{last}", &sealed[..at]),
            sealed[..at - 4].to_owned(),
            format!("{PREFIX}{}:", key.id()),
            format!("{PREFIX}zz:AAAA"),
            PREFIX.to_owned(),
        ] {
            assert!(keys.open("state/a", changed.clone().into()).is_err(), "{changed}");
        }
    }

    #[test]
    fn a_value_of_before_encryption_is_read_as_it_is() {
        let plain = br#"{"password":"x"}"#.to_vec();
        assert_eq!(Keyring::default().open("channels/1/settings", plain.clone()), Ok(plain));
    }

    #[test]
    fn a_key_file_that_was_rotated_meanwhile_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let (old, new) = (SecretKey::draw().unwrap(), SecretKey::draw().unwrap());
        create(&path, std::slice::from_ref(&old)).unwrap();
        let keys = Keyring::default();
        keys.load(KeySource::File(path.clone()), read(&path).unwrap());
        replace(&path, &[old, new.clone()]).unwrap();
        let sealed = keys.seal(new.id(), "state/a", b"value").unwrap();
        assert_eq!(keys.open("state/a", sealed.into()).unwrap(), b"value");
        // A file that can no longer be read is named with its cause.
        std::fs::remove_file(&path).unwrap();
        let unknown = SecretKey::draw().unwrap();
        let text = keys.seal(unknown.id(), "state/a", b"value").unwrap_err().to_string();
        assert!(text.contains("secrets.key_file") && text.contains("No such file"), "{text}");
    }
}
