//! Stores access and refresh tokens, which are looked up by hash.

use jiff::Timestamp;

use super::grants::{FAMILY_COLUMNS, RefreshToken, read_family, read_scopes};
use super::{ALL_BEHIND, ReadTx, WriteTx, parse, time};
use crate::runtime::limits::USED_REFRESH_TOKENS_MAX;
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::{FamilyId, ScopeSet, UserId};

/// An access token that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// The token family that it belongs to.
    pub family: FamilyId,
    /// The user whose rights the token has.
    pub user: UserId,
    /// The client to which it was issued.
    pub client_id: String,
    pub scopes: ScopeSet,
    /// True if the scopes of the client are enforced.
    pub scopes_enforced: bool,
    /// True if the client changes nothing.
    pub read_only: bool,
    pub expires: Timestamp,
}

impl ReadTx<'_> {
    /// Finds the access token with that hash, expired or not. Returns `None` if its client is not active.
    pub fn find_access_token(&self, token: &ContentHash) -> DbResult<Option<AccessToken>> {
        let sql =
            "SELECT family_id, user_id, client_id, access_tokens.scopes, access_tokens.expires_ms,
                 scopes_enforced, read_only
             FROM access_tokens JOIN families USING (family_id) JOIN clients USING (client_id)
             WHERE token_hash = ?1 AND active";
        self.tx.find(sql, params![token], |row| {
            let family: FamilyId = row.get("family_id")?;
            let what = format!("access token of family {family}");
            Ok(AccessToken {
                family,
                user: row.get("user_id")?,
                client_id: row.get("client_id")?,
                scopes: read_scopes(&what, row.text("scopes")?)?,
                expires: time(&what, row.get("expires_ms")?)?,
                scopes_enforced: row.get("scopes_enforced")?,
                read_only: row.get("read_only")?,
            })
        })
    }

    /// Finds the refresh token with that hash, including expired and used ones.
    pub fn find_refresh_token(&self, token: &ContentHash) -> DbResult<Option<RefreshToken>> {
        let sql = format!(
            "SELECT {FAMILY_COLUMNS}, refresh_tokens.expires_ms,
                     used_ms IS NOT NULL AS is_used
                 FROM refresh_tokens JOIN families USING (family_id) WHERE token_hash = ?1"
        );
        self.tx.find(&sql, params![token], |row| {
            let family = read_family(row)?;
            let what = format!("refresh token of family {}", family.id);
            Ok(RefreshToken {
                family,
                expires: time(&what, row.get("expires_ms")?)?,
                is_used: row.get("is_used")?,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Stores an access token and extends its family to the token's expiry.
    pub fn write_access_token(
        &self,
        token: &ContentHash,
        family: FamilyId,
        scopes: ScopeSet,
        expires: Timestamp,
    ) -> DbResult<()> {
        let sql = "INSERT INTO access_tokens (token_hash, family_id, scopes, expires_ms)
             VALUES (?1, ?2, ?3, ?4)";
        self.tx.run(sql, params![token, family, scopes, expires])?;
        self.extend_family(family, expires)
    }

    /// Stores a refresh token and extends its family to the token's expiry. Removes the family's oldest used
    /// tokens beyond [`USED_REFRESH_TOKENS_MAX`].
    pub fn write_refresh_token(
        &self,
        token: &ContentHash,
        family: FamilyId,
        expires: Timestamp,
    ) -> DbResult<()> {
        let sql = format!(
            // Only used tokens are bounded. They stay to detect their reuse (contract login-3).
            "DELETE FROM refresh_tokens WHERE token_hash IN
                 (SELECT token_hash FROM refresh_tokens
                  WHERE family_id = ?1 AND used_ms IS NOT NULL
                  ORDER BY used_ms DESC {ALL_BEHIND} ?2)"
        );
        self.tx.run(&sql, params![family, USED_REFRESH_TOKENS_MAX])?;
        let sql = "INSERT INTO refresh_tokens (token_hash, family_id, expires_ms)
             VALUES (?1, ?2, ?3)";
        self.tx.run(sql, params![token, family, expires])?;
        self.extend_family(family, expires)
    }

    /// Marks a refresh token as used.
    pub fn mark_refresh_token_used(&self, token: &ContentHash, now: Timestamp) -> DbResult<()> {
        // Retained with its family, so that a second use is detected (contract login-3).
        let sql = "UPDATE refresh_tokens SET used_ms = ?2 WHERE token_hash = ?1";
        self.tx.run(sql, params![token, now])
    }

    /// Ends the access token with that hash, if there is one.
    pub fn end_access_token(&self, token: &ContentHash, now: Timestamp) -> DbResult<()> {
        let sql = "DELETE FROM access_tokens WHERE token_hash = ?1";
        if self.tx.changes(sql, params![token])? {
            self.log_account_change(AccountChange::Token(*token), now)?;
        }
        Ok(())
    }

    /// Ends every access token of a family.
    pub fn end_access_tokens(&self, family: FamilyId, now: Timestamp) -> DbResult<()> {
        let sql = "DELETE FROM access_tokens WHERE family_id = ?1 RETURNING token_hash";
        let ended: Vec<String> = self.tx.list_values(sql, params![family])?;
        // Each is logged, because caches hold a token until it expires.
        for hash in ended {
            let hash = parse("access_tokens", &hash)?;
            self.log_account_change(AccountChange::Token(hash), now)?;
        }
        Ok(())
    }

    /// Removes tokens that ended before `now`, at most `limit` of a kind. The removal is not logged, because
    /// caches detect the end of a token themselves.
    pub fn sweep_tokens(&self, now: Timestamp, limit: usize) -> DbResult<usize> {
        let access = self.sweep("access_tokens", "token_hash", "expires_ms", now, limit)?;
        let refresh = self.sweep("refresh_tokens", "token_hash", "expires_ms", now, limit)?;
        Ok(access + refresh)
    }
}
