//! API keys that users create and revoke themselves. The operator, who runs the installation, creates keys by
//! [`import`](super::import) and revokes them by [`operator`](super::operator).

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, import::NewApiKey, operator::ListedKey};
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::account::UserId;

impl ReadTx<'_> {
    /// Lists the keys of a user that are not revoked, in the order of their numbers.
    pub fn list_live_keys(&self, user_name: &str) -> DbResult<Vec<ListedKey>> {
        let mut keys = self.list_stored_keys(Some(user_name))?;
        keys.retain(|key| key.revoked.is_none());
        Ok(keys)
    }
}

impl WriteTx<'_> {
    /// Stores a new key of an existing user. Returns `None` if the user already has `keys_max` keys that are not
    /// revoked.
    ///
    /// Of the keys that the user created, only the `keys_max` newest revoked ones are retained, so that repeated
    /// creation and revocation cannot fill the disk. Revoked keys that the operator created stay, because an accounts
    /// file that still contains one must not reactivate it.
    pub fn make_key(
        &self,
        new: &NewApiKey,
        keys_max: usize,
        now: Timestamp,
    ) -> DbResult<Option<ListedKey>> {
        if self.list_live_keys(&new.user_name)?.len() >= keys_max {
            return Ok(None);
        }
        self.put_key(new, now)?;
        // `put_key` stores the key as one that the operator created.
        let sql = "UPDATE api_keys SET made_by_user = TRUE WHERE key_hash = ?1";
        self.tx.run(sql, params![new.key_hash])?;
        let sql = format!(
            "DELETE FROM api_keys WHERE key_id IN
                 (SELECT key_id FROM api_keys JOIN users USING (user_id)
                  WHERE user_name = ?1 AND made_by_user AND revoked_ms IS NOT NULL
                  ORDER BY key_id DESC {ALL_BEHIND} ?2)"
        );
        self.tx.run(&sql, params![new.user_name, keys_max])?;
        let id = self.find_key_number(&new.key_hash)?;
        let keys = self.list_live_keys(&new.user_name)?;
        Ok(keys.into_iter().find(|key| Some(key.id) == id))
    }

    /// Revokes a key of a user for good. Returns `false` if the user has no such key.
    pub fn revoke_own_key(&self, user: UserId, id: i64, now: Timestamp) -> DbResult<bool> {
        let sql = "SELECT key_id FROM api_keys
             WHERE key_id = ?1 AND user_id = ?2 AND revoked_ms IS NULL";
        // A key of a different user is reported like a missing one.
        if !self.tx.exists(sql, params![id, user])? {
            return Ok(false);
        }
        self.revoke_key(id, now)
    }
}
