//! Stores encrypted values: settings of channels, signing keys, keys in `state`.
//!
//! The row [`CURRENT_KEY`] of `state` names the key that encrypts new values. It is read in the transaction
//! that writes, so that a process with an older key stops using it once a different process has rotated the
//! keys. Without such a row, values are stored in plain text.

use super::{ReadTx, WriteTx, channels::settings_place, damaged, sessions::signing_key_place};
use crate::runtime::limits::CHECK_FLAWS_MAX;
use crate::storage::database::engine::params;
use crate::storage::database::error::{DbError, DbResult};
use crate::storage::database::facts::DatabaseFlaw;
use crate::storage::secrets::{KeyId, SecretError, sealed_by};

/// The row of `state` that names the current key.
const CURRENT_KEY: &str = "secrets-key";

/// Rows of `state` whose values are secrets, written by [`WriteTx::write_secret_state`].
const SECRET_STATES: [&str; 3] = ["device-cookie-key", "unsubscribe-key", "password-link-key"];

/// The number of values that were encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedCount {
    pub channels: usize,
    pub signing_keys: usize,
    /// Number of keys in `state`.
    pub states: usize,
}

impl SealedCount {
    /// Returns the sum of all counts.
    pub fn total(&self) -> usize {
        self.channels + self.signing_keys + self.states
    }
}

/// A stored value with its row.
struct StoredSecret {
    /// The place for which it is encrypted.
    place: String,
    bytes: Vec<u8>,
    row: SecretRow,
}

/// The row of a stored secret.
enum SecretRow {
    Channel(i64),
    SigningKey(String),
    State(String),
}

fn state_place(name: &str) -> String {
    format!("state/{name}")
}

fn text(place: &str, bytes: Vec<u8>) -> DbResult<String> {
    String::from_utf8(bytes).map_err(|_| damaged(place, &"it is not text"))
}

impl ReadTx<'_> {
    /// Returns the id of the key with which secrets are encrypted; `None` while they are stored in plain
    /// text.
    pub fn secrets_key(&self) -> DbResult<Option<KeyId>> {
        let id = self.find_state(CURRENT_KEY)?;
        id.map(|id| id.parse().map_err(|why: SecretError| damaged("state secrets-key", &why)))
            .transpose()
    }

    /// Decrypts the value stored at `place`.
    pub(super) fn open_secret(&self, place: &str, stored: Vec<u8>) -> DbResult<Vec<u8>> {
        match self.keys {
            Some(keys) => Ok(keys.open(place, stored)?),
            // A copy of a database is read without keys.
            None if sealed_by(&stored).is_none() => Ok(stored),
            None => Err(SecretError::Damaged(place.to_owned()).into()),
        }
    }

    /// Decrypts the text stored at `place`.
    pub(super) fn open_text(&self, place: &str, stored: String) -> DbResult<String> {
        text(place, self.open_secret(place, stored.into_bytes())?)
    }

    /// Returns the value that [`WriteTx::write_secret_state`] wrote, decrypted.
    pub fn find_secret_state(&self, name: &str) -> DbResult<Option<String>> {
        let stored = self.find_state(name)?;
        stored.map(|stored| self.open_text(&state_place(name), stored)).transpose()
    }

    /// Lists every secret in its stored form.
    fn list_secrets(&self) -> DbResult<Vec<StoredSecret>> {
        let sql = "SELECT channel_id, settings FROM channels ORDER BY channel_id";
        let mut found = self.tx.list(sql, params![], |row| {
            let id = row.get("channel_id")?;
            let bytes = row.get::<String>("settings")?.into_bytes();
            Ok(StoredSecret { place: settings_place(id), bytes, row: SecretRow::Channel(id) })
        })?;
        let sql = "SELECT kid, pkcs8 FROM signing_keys ORDER BY kid";
        found.extend(self.tx.list(sql, params![], |row| {
            let kid: String = row.get("kid")?;
            let place = signing_key_place(&kid);
            Ok(StoredSecret { place, bytes: row.get("pkcs8")?, row: SecretRow::SigningKey(kid) })
        })?);
        let sql = "SELECT name, value FROM state ORDER BY name";
        let states = self.tx.list(sql, params![], |row| {
            let name: String = row.get("name")?;
            let bytes = row.get::<String>("value")?.into_bytes();
            Ok(StoredSecret { place: state_place(&name), bytes, row: SecretRow::State(name) })
        })?;
        // Values of later versions are rotated too, because they would be lost with their key.
        found.extend(states.into_iter().filter(|secret| match &secret.row {
            SecretRow::State(name) => {
                SECRET_STATES.contains(&name.as_str()) || sealed_by(&secret.bytes).is_some()
            }
            SecretRow::Channel(_) | SecretRow::SigningKey(_) => true,
        }));
        Ok(found)
    }

    /// Lists secrets that cannot be decrypted, and secrets in plain text although the archive has a key.
    pub fn secret_flaws(&self) -> DbResult<Vec<DatabaseFlaw>> {
        let current_key = self.secrets_key()?;
        let mut flaws = Vec::new();
        for StoredSecret { place, bytes, .. } in self.list_secrets()? {
            let is_sealed = sealed_by(&bytes).is_some();
            let why = match self.open_secret(&place, bytes) {
                Err(cause) => cause.to_string(),
                Ok(_) if !is_sealed && current_key.is_some() => {
                    format!("{place} is not encrypted, though the archive has a key")
                }
                Ok(_) => continue,
            };
            flaws.push(DatabaseFlaw::Secret(why));
        }
        let count = flaws.len();
        if count > CHECK_FLAWS_MAX {
            flaws.truncate(CHECK_FLAWS_MAX);
            let more = count - CHECK_FLAWS_MAX;
            flaws.push(DatabaseFlaw::Truncated(format!(
                "{more} more secrets that cannot be decrypted"
            )));
        }
        Ok(flaws)
    }
}

impl WriteTx<'_> {
    /// Encrypts a value for `place` with the current key. Returns it in plain text if there is no key.
    pub(super) fn seal_secret(&self, place: &str, plain: Vec<u8>) -> DbResult<Vec<u8>> {
        if let Some(id) = self.secrets_key()? {
            return Ok(self.sealing_keys.seal(id, place, &plain)?.into_bytes());
        }
        // If encryption is configured but its key could not be created, no value is written in plain text.
        match self.sealing_keys.refusal() {
            None => Ok(plain),
            Some(why) => {
                Err(SecretError::File(format!("{place} is to be encrypted, {why}")).into())
            }
        }
    }

    /// Encrypts a text for `place`.
    pub(super) fn seal_text(&self, place: &str, plain: String) -> DbResult<String> {
        text(place, self.seal_secret(place, plain.into_bytes())?)
    }

    /// Writes a secret into `state`. Its name must be one of `SECRET_STATES`, so that it is also encrypted
    /// when an archive gets its first key.
    pub fn write_secret_state(&self, name: &str, value: &str) -> DbResult<()> {
        let sealed = self.seal_text(&state_place(name), value.to_owned())?;
        self.write_state(name, &sealed)
    }

    /// Encrypts every secret with the key `with`, which becomes the current key.
    ///
    /// Fails with [`DbError::InUse`] if the current key is not `before`, because a different process was
    /// faster.
    pub(crate) fn seal_all(&self, before: Option<KeyId>, with: KeyId) -> DbResult<SealedCount> {
        if self.secrets_key()? != before {
            let why = "another process has changed the key of the secrets meanwhile";
            return Err(DbError::InUse(why.to_owned()));
        }
        let secrets = self.list_secrets()?;
        // Before the values are sealed, because `seal_secret` reads the current key from this row.
        self.write_state(CURRENT_KEY, &with.to_string())?;
        let mut count = SealedCount::default();
        for StoredSecret { place, bytes, row } in secrets {
            let sealed = self.seal_secret(&place, self.open_secret(&place, bytes)?)?;
            match row {
                SecretRow::Channel(id) => {
                    let sql = "UPDATE channels SET settings = ?2 WHERE channel_id = ?1";
                    self.tx.run(sql, params![id, text(&place, sealed)?])?;
                    count.channels += 1;
                }
                SecretRow::SigningKey(kid) => {
                    let sql = "UPDATE signing_keys SET pkcs8 = ?2 WHERE kid = ?1";
                    self.tx.run(sql, params![kid, sealed])?;
                    count.signing_keys += 1;
                }
                SecretRow::State(name) => {
                    self.write_state(&name, &text(&place, sealed)?)?;
                    count.states += 1;
                }
            }
        }
        Ok(count)
    }
}
