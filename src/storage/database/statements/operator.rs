//! Contains the statements of the operator's commands for users, OAuth2 clients and API keys, except the import.
//!
//! A change that ends rights is recorded in the account log, from which every process learns which cached users, tokens
//! and keys it must forget. The access and refresh tokens of one authorization of a client form a *token family*.

use jiff::Timestamp;

use super::accounts::{USER_COLUMNS, read_user};
use super::import::NewApiKey;
use super::{ReadTx, WriteTx, optional_time, parse, parse_json, read_agreements, time};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::{ResultRow, ToParam, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::{AgreementId, OAuthClient, User, UserId};

/// Maximum number of ended tokens or sessions that the account log names. If more end at once, one row that clears all
/// caches costs less.
const ENDED_TOKENS_LOGGED_MAX: usize = 1000;

/// A user in the operator's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedUser {
    pub user: User,
    pub has_password: bool,
    pub agreements: Vec<AgreementId>,
}

/// An API key in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    pub id: i64,
    /// User name of the owner.
    pub user_name: String,
    /// The name given by the owner.
    pub name: String,
    pub created: Timestamp,
    /// Time of its revocation; `None` if it is not revoked.
    pub revoked: Option<Timestamp>,
    /// The time of the last use, accurate to some minutes.
    pub used: Option<Timestamp>,
    /// True if requests with the key may only read.
    pub read_only: bool,
}

/// The columns that [`read_client`] reads.
pub(super) const CLIENT_COLUMNS: &str = "client_id, name, secret, redirect_uris, grants, active, \
     scopes_enforced, access_token_s, read_only";

/// Reads the columns [`CLIENT_COLUMNS`].
pub(super) fn read_client(row: &dyn ResultRow) -> DbResult<OAuthClient> {
    let client_id: String = row.get("client_id")?;
    let what = format!("client {client_id}");
    Ok(OAuthClient {
        client_id,
        name: row.get("name")?,
        secret: row.get("secret")?,
        redirect_uris: parse_json(&what, row.text("redirect_uris")?)?,
        grants: parse_json(&what, row.text("grants")?)?,
        active: row.get("active")?,
        scopes_enforced: row.get("scopes_enforced")?,
        access_token_s: row.get("access_token_s")?,
        read_only: row.get("read_only")?,
    })
}

impl ReadTx<'_> {
    /// Finds a client, active or not. The result has the hash of its secret.
    pub fn find_client(&self, client_id: &str) -> DbResult<Option<OAuthClient>> {
        let sql = format!("SELECT {CLIENT_COLUMNS} FROM clients WHERE client_id = ?1");
        self.tx.find(&sql, params![client_id], read_client)
    }

    /// Lists all clients in the order of their ids.
    pub fn list_stored_clients(&self) -> DbResult<Vec<OAuthClient>> {
        let sql = format!("SELECT {CLIENT_COLUMNS} FROM clients ORDER BY client_id");
        self.tx.list(&sql, params![], read_client)
    }

    /// Lists all users in the order of their numbers.
    pub fn list_stored_users(&self) -> DbResult<Vec<ListedUser>> {
        let sql = format!(
            "SELECT {USER_COLUMNS}, password IS NOT NULL AS has_password,
                 (SELECT string_agg(CAST(agreement_id AS TEXT), ',' ORDER BY agreement_id)
                  FROM user_agreements WHERE user_agreements.user_id = users.user_id) AS agreements
             FROM users ORDER BY user_id"
        );
        self.tx.list(&sql, params![], |row| {
            let user = read_user(row)?;
            let agreements = read_agreements(&format!("agreements of user {}", user.id), row)?;
            Ok(ListedUser { user, has_password: row.get("has_password")?, agreements })
        })
    }

    /// Lists the users that have a password, each with the argon2id hash of the password.
    pub fn list_password_hashes(&self) -> DbResult<Vec<(UserId, String)>> {
        let sql = "SELECT user_id, password FROM users WHERE password IS NOT NULL";
        self.tx.list(sql, params![], |row| Ok((row.get("user_id")?, row.get("password")?)))
    }

    /// Lists the API keys that are not revoked, in the order of their numbers, in a form that an import can write.
    pub fn list_key_hashes(&self) -> DbResult<Vec<NewApiKey>> {
        let sql = "SELECT key_hash, user_name, name, read_only
             FROM api_keys JOIN users USING (user_id)
             WHERE revoked_ms IS NULL ORDER BY key_id";
        self.tx.list(sql, params![], |row| {
            let user_name: String = row.get("user_name")?;
            Ok(NewApiKey {
                key_hash: parse(&format!("API key of {user_name}"), row.text("key_hash")?)?,
                user_name,
                name: row.get("name")?,
                read_only: row.get("read_only")?,
            })
        })
    }

    /// Lists all API keys, or the keys of one user, in the order of their numbers.
    pub fn list_stored_keys(&self, user_name: Option<&str>) -> DbResult<Vec<ListedKey>> {
        let sql = "SELECT key_id, user_name, name, api_keys.created_ms, revoked_ms, last_used_ms,
                 read_only
             FROM api_keys JOIN users USING (user_id)
             WHERE user_name = coalesce(?1, user_name) ORDER BY key_id";
        self.tx.list(sql, params![user_name], |row| {
            let id: i64 = row.get("key_id")?;
            let what = format!("API key {id}");
            Ok(ListedKey {
                id,
                user_name: row.get("user_name")?,
                name: row.get("name")?,
                created: time(&what, row.get("created_ms")?)?,
                revoked: optional_time(&what, row.get("revoked_ms")?)?,
                used: optional_time(&what, row.get("last_used_ms")?)?,
                read_only: row.get("read_only")?,
            })
        })
    }

    /// Finds the number of the API key with this hash, revoked or not.
    pub fn find_key_number(&self, key_hash: &ContentHash) -> DbResult<Option<i64>> {
        let sql = "SELECT key_id FROM api_keys WHERE key_hash = ?1";
        self.tx.find_value(sql, params![key_hash])
    }
}

impl WriteTx<'_> {
    /// Sets whether a user may use the service. Returns `false` if the user does not exist. Deactivation ends
    /// the user's sessions and tokens.
    pub fn set_user_active(
        &self,
        user_name: &str,
        active: bool,
        now: Timestamp,
    ) -> DbResult<bool> {
        let Some((user, _)) = self.find_user_by_name(user_name)? else { return Ok(false) };
        // A repeated command must not invalidate cached entries of the user.
        if user.active == active {
            return Ok(true);
        }
        let sql = "UPDATE users SET active = ?2 WHERE user_id = ?1";
        self.tx.run(sql, params![user.id, active])?;
        // Reactivation must not restore earlier sessions and tokens.
        if !active {
            self.end_logins(user.id, now)?;
        }
        self.log_account_change(AccountChange::User(user.id), now)?;
        Ok(true)
    }

    /// Sets the password of a user, by its argon2id hash, and ends the user's sessions and tokens. Returns
    /// `false` if the user does not exist.
    pub fn set_user_password(
        &self,
        user_name: &str,
        hash: &str,
        now: Timestamp,
    ) -> DbResult<bool> {
        let Some((user, _)) = self.find_user_by_name(user_name)? else { return Ok(false) };
        let sql = "UPDATE users SET password = ?2 WHERE user_id = ?1";
        self.tx.run(sql, params![user.id, hash])?;
        // Sessions and tokens may belong to someone who knew the old password (contract login-18).
        self.end_logins(user.id, now)?;
        self.log_account_change(AccountChange::User(user.id), now)?;
        Ok(true)
    }

    /// Sets the roles of a user. Returns `false` if the user does not exist.
    pub fn set_user_roles(
        &self,
        user_name: &str,
        roles: &[String],
        now: Timestamp,
    ) -> DbResult<bool> {
        let Some((user, _)) = self.find_user_by_name(user_name)? else { return Ok(false) };
        let roles = serde_json::Value::from(roles).to_string();
        let sql = "UPDATE users SET roles = ?2 WHERE user_id = ?1";
        self.tx.run(sql, params![user.id, roles])?;
        self.log_account_change(AccountChange::User(user.id), now)?;
        Ok(true)
    }

    /// Ends every session of a user and revokes all credentials that clients received on its behalf.
    pub fn end_logins(&self, user: UserId, now: Timestamp) -> DbResult<()> {
        // Before the deletions below, which remove the hashes that the log names.
        let sql = "SELECT session_hash FROM sessions WHERE user_id = ?1";
        self.log_ended(sql, user, AccountChange::Session, now)?;
        let sql = "SELECT token_hash FROM access_tokens JOIN families USING (family_id)
             WHERE user_id = ?1";
        self.log_ended(sql, user, AccountChange::Token, now)?;
        self.tx.run("DELETE FROM sessions WHERE user_id = ?1", params![user])?;
        // Codes and tokens are removed with their families by foreign keys.
        self.tx.run("DELETE FROM families WHERE user_id = ?1", params![user])
    }

    /// Logs the end of the credentials of `owner` that `sql` lists by hash, each as a `change`; if they are too many,
    /// logs [`AccountChange::Everything`] once.
    fn log_ended(
        &self,
        sql: &str,
        owner: impl ToParam,
        change: fn(ContentHash) -> AccountChange,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql = format!("{sql} LIMIT ?2");
        // One more than the limit shows whether there are too many.
        let limit = ENDED_TOKENS_LOGGED_MAX + 1;
        let hashes: Vec<String> = self.tx.list_values(&sql, params![owner, limit])?;
        if hashes.len() > ENDED_TOKENS_LOGGED_MAX {
            return self.log_account_change(AccountChange::Everything, now);
        }
        for hash in hashes {
            // A damaged hash names no cached entry, so all are invalidated.
            let change = hash.parse().map_or(AccountChange::Everything, change);
            self.log_account_change(change, now)?;
        }
        Ok(())
    }

    /// Sets whether a client may be used. Returns `false` if it does not exist. The tokens of an inactive
    /// client are invalid.
    pub fn set_client_active(
        &self,
        client_id: &str,
        active: bool,
        now: Timestamp,
    ) -> DbResult<bool> {
        let sql = "UPDATE clients SET active = ?2 WHERE client_id = ?1";
        if self.tx.execute(sql, params![client_id, active])? == 0 {
            return Ok(false);
        }
        let sql = "SELECT token_hash FROM access_tokens JOIN families USING (family_id)
             WHERE client_id = ?1";
        self.log_ended(sql, client_id, AccountChange::Token, now)?;
        Ok(true)
    }

    /// Sets the secret of a client, by its argon2id hash. Returns `false` if the client does not exist or is
    /// public.
    pub fn set_client_secret(&self, client_id: &str, hash: &str) -> DbResult<bool> {
        let sql = "UPDATE clients SET secret = ?2 WHERE client_id = ?1 AND secret IS NOT NULL";
        self.tx.changes(sql, params![client_id, hash])
    }

    /// Revokes an API key for good. Returns `false` if it does not exist.
    pub fn revoke_key(&self, id: i64, now: Timestamp) -> DbResult<bool> {
        let sql = "SELECT key_hash FROM api_keys WHERE key_id = ?1";
        let hash: Option<String> = self.tx.find_value(sql, params![id])?;
        let Some(hash) = hash else { return Ok(false) };
        // The time of the first revocation stays.
        let sql = "UPDATE api_keys SET revoked_ms = ?2 WHERE key_id = ?1 AND revoked_ms IS NULL";
        if self.tx.changes(sql, params![id, now])? {
            let change = hash.parse().map_or(AccountChange::Everything, AccountChange::Key);
            self.log_account_change(change, now)?;
        }
        Ok(true)
    }
}
