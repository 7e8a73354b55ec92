//! Users and API keys, as far as they decide who may fetch what.

use jiff::Timestamp;
use rusqlite::params;

use super::{ReadTx, WriteTx};
use crate::db::DbError;
use crate::types::Hash;

/// A user to be written.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Its name.
    pub user_name: String,
    /// Whether it may use the service.
    pub active: bool,
    /// Its roles.
    pub roles: Vec<String>,
}

/// An API key to be written; the key itself is never stored.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    /// SHA-256 of the key. Keys are long random strings, so a slow hash would add nothing.
    pub key_hash: Hash,
    /// Whose key it is.
    pub user_name: String,
    /// What its owner calls it.
    pub name: String,
}

/// A key that may be used, with its owner.
#[derive(Clone, Debug)]
pub struct KeyOwner {
    /// SHA-256 of the key.
    pub key_hash: Hash,
    /// Whose key it is.
    pub user_name: String,
    /// The owner's roles.
    pub roles: Vec<String>,
}

impl ReadTx<'_> {
    /// Every key whose owner is active, `limit` at most.
    pub fn list_api_keys(&self, limit: usize) -> Result<Vec<KeyOwner>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT key_hash, user_name, coalesce(roles, '[]') FROM api_keys
             LEFT JOIN users USING (user_name)
             WHERE coalesce(active, 1) <> 0 ORDER BY created_ms LIMIT ?1",
        )?;
        let rows = statement.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })?;
        let mut keys = Vec::new();
        for row in rows {
            let (hash, user_name, roles) = row?;
            let damaged =
                |why: String| DbError::Damaged { what: format!("api key of {user_name}"), why };
            let key_hash = hash.parse().map_err(|why| damaged(format!("{why}")))?;
            let roles = serde_json::from_str(&roles).map_err(|why| damaged(why.to_string()))?;
            keys.push(KeyOwner { key_hash, user_name, roles });
        }
        Ok(keys)
    }
}

impl WriteTx<'_> {
    /// Writes users and keys; what is there already is replaced, what is not named stays.
    pub fn write_accounts(
        &self,
        users: &[NewUser],
        keys: &[NewApiKey],
        now: Timestamp,
    ) -> Result<(), DbError> {
        let mut write_user = self.transaction.prepare_cached(
            "INSERT INTO users (user_name, active, roles) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET active = excluded.active, roles = excluded.roles",
        )?;
        for user in users {
            let roles = serde_json::Value::from(user.roles.clone()).to_string();
            write_user.execute(params![user.user_name, user.active, roles])?;
        }
        let mut write_key = self.transaction.prepare_cached(
            "INSERT INTO api_keys (key_hash, user_name, name, created_ms) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET user_name = excluded.user_name, name = excluded.name",
        )?;
        for key in keys {
            let hash = key.key_hash.to_string();
            write_key.execute(params![hash, key.user_name, key.name, now.as_millisecond()])?;
        }
        self.transaction
            .execute("UPDATE versions SET version = version + 1 WHERE what = 'accounts'", [])?;
        Ok(())
    }
}
