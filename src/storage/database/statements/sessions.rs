//! Stores browser sessions, and the keys that sign id tokens.

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, optional_time, parse, time};
use crate::runtime::limits::SESSIONS_MAX;
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::UserId;

/// A login in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    pub user: UserId,
    /// Time at which the user logged in.
    pub auth_time: Timestamp,
    pub expires: Timestamp,
    /// The browser and address that logged in.
    pub from: LoginOrigin,
}

/// The origin of a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginOrigin {
    /// The browser by its own description (`User-Agent`), truncated.
    pub browser: Option<String>,
    pub address: Option<String>,
}

/// A key that signs or has signed id tokens. It has no `Debug`, because it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// Its id in the key set.
    pub kid: String,
    /// The private key as PKCS #8.
    pub pkcs8: Vec<u8>,
    /// True if it no longer signs and is only published.
    pub is_retired: bool,
}

/// Returns the place for which a signing key is encrypted.
pub(super) fn signing_key_place(kid: &str) -> String {
    format!("signing_keys/{kid}/pkcs8")
}

/// A signing key in the operator's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSigningKey {
    /// Its id in the key set.
    pub kid: String,
    pub created: Timestamp,
    /// Time of its retirement; `None`: it still signs.
    pub retired: Option<Timestamp>,
}

impl ReadTx<'_> {
    /// Finds the session with that hash, expired or not.
    pub fn find_session(&self, session: &ContentHash) -> DbResult<Option<BrowserSession>> {
        let sql = "SELECT user_id, auth_ms, expires_ms, browser, address FROM sessions
             WHERE session_hash = ?1";
        self.tx.find(sql, params![session], |row| {
            let user: UserId = row.get("user_id")?;
            let what = format!("session of user {user}");
            Ok(BrowserSession {
                user,
                auth_time: time(&what, row.get("auth_ms")?)?,
                expires: time(&what, row.get("expires_ms")?)?,
                from: LoginOrigin { browser: row.get("browser")?, address: row.get("address")? },
            })
        })
    }

    /// Lists the signing keys, newest first.
    pub fn list_signing_keys(&self) -> DbResult<Vec<SigningKey>> {
        let sql = "SELECT kid, pkcs8, retired_ms IS NOT NULL AS is_retired FROM signing_keys
             ORDER BY created_ms DESC, kid";
        self.tx.list(sql, params![], |row| {
            let kid: String = row.get("kid")?;
            let pkcs8 = self.open_secret(&signing_key_place(&kid), row.get("pkcs8")?)?;
            Ok(SigningKey { kid, pkcs8, is_retired: row.get("is_retired")? })
        })
    }

    /// Lists the times of the signing keys, newest first.
    pub fn list_signing_key_times(&self) -> DbResult<Vec<ListedSigningKey>> {
        let sql =
            "SELECT kid, created_ms, retired_ms FROM signing_keys ORDER BY created_ms DESC, kid";
        self.tx.list(sql, params![], |row| {
            let kid: String = row.get("kid")?;
            let what = format!("signing key {kid}");
            Ok(ListedSigningKey {
                kid,
                created: time(&what, row.get("created_ms")?)?,
                retired: optional_time(&what, row.get("retired_ms")?)?,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Stores a session. Ends the user's oldest sessions beyond [`SESSIONS_MAX`].
    pub fn write_session(&self, hash: &ContentHash, session: &BrowserSession) -> DbResult<()> {
        let now = session.auth_time;
        // One less, for the session that is stored below.
        let keep = SESSIONS_MAX.saturating_sub(1);
        let sql = format!(
            "SELECT session_hash FROM sessions WHERE user_id = ?1
             ORDER BY auth_ms DESC, session_hash {ALL_BEHIND} ?2"
        );
        let old: Vec<String> = self.tx.list_values(&sql, params![session.user, keep])?;
        // Ended one by one, because caches must invalidate each of them.
        for hash in old {
            self.end_session(&parse("session", &hash)?, now)?;
        }
        let sql =
            "INSERT INTO sessions (session_hash, user_id, auth_ms, expires_ms, browser, address)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let BrowserSession { user, auth_time, expires, from } = session;
        let LoginOrigin { browser, address } = from;
        self.tx.run(sql, params![hash, user, auth_time, expires, browser, address])
    }

    /// Ends the session with that hash, if there is one.
    pub fn end_session(&self, session: &ContentHash, now: Timestamp) -> DbResult<()> {
        let sql = "DELETE FROM sessions WHERE session_hash = ?1";
        // Only a session that existed can be in a cache.
        if self.tx.changes(sql, params![session])? {
            self.log_account_change(AccountChange::Session(*session), now)?;
        }
        Ok(())
    }

    /// Removes sessions that ended before `now`, at most `limit`.
    pub fn sweep_sessions(&self, now: Timestamp, limit: usize) -> DbResult<usize> {
        self.sweep("sessions", "session_hash", "expires_ms", now, limit)
    }

    /// Stores a signing key that did not exist.
    pub fn write_signing_key(&self, key: &SigningKey, now: Timestamp) -> DbResult<()> {
        let retired = key.is_retired.then_some(now);
        let pkcs8 = self.seal_secret(&signing_key_place(&key.kid), key.pkcs8.clone())?;
        let sql = "INSERT INTO signing_keys (kid, pkcs8, created_ms, retired_ms)
             VALUES (?1, ?2, ?3, ?4)";
        self.tx.run(sql, params![key.kid, pkcs8, now, retired])
    }

    /// Retires every signing key that is not yet retired. A retired key no longer signs but stays published.
    pub fn retire_signing_keys(&self, now: Timestamp) -> DbResult<()> {
        let sql = "UPDATE signing_keys SET retired_ms = ?1 WHERE retired_ms IS NULL";
        self.tx.run(sql, params![now])
    }

    /// Removes signing keys that were retired before `before`, and notifies every process.
    pub fn sweep_signing_keys(&self, before: Timestamp, now: Timestamp) -> DbResult<usize> {
        let sql = "DELETE FROM signing_keys WHERE retired_ms < ?1";
        let removed = self.tx.execute(sql, params![before])?;
        if removed > 0 {
            self.log_account_change(AccountChange::SigningKeys, now)?;
        }
        Ok(removed)
    }
}
