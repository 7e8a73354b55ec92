//! Stores the grants of clients: clients, consents, token families, authorization codes.

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, damaged, time};
use crate::runtime::limits::FAMILIES_MAX;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::{FamilyId, ScopeSet, UserId};

/// A token family: the code, the tokens and their successors from one authorization of a client by a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFamily {
    pub id: FamilyId,
    pub user: UserId,
    pub client_id: String,
    /// The granted scopes; a token may have fewer.
    pub scopes: ScopeSet,
    /// Time at which the user logged in.
    pub auth_time: Timestamp,
}

/// A token family to be stored.
#[derive(Clone, Debug)]
pub struct NewFamily {
    pub user: UserId,
    pub client_id: String,
    pub scopes: ScopeSet,
    /// Time at which the user logged in.
    pub auth_time: Timestamp,
}

/// A consent to be stored.
#[derive(Clone, Debug)]
pub struct NewConsent {
    pub user: UserId,
    pub client_id: String,
    /// The response type of the client's request.
    pub response_type: &'static str,
    /// The scopes that the user consents to.
    pub scopes: ScopeSet,
}

/// An authorization code that was issued.
#[derive(Clone)]
pub struct AuthorizationCode {
    pub family: TokenFamily,
    /// The redirect address, if the request named one.
    pub redirect_uri: Option<String>,
    /// The S256 code challenge.
    pub challenge: Option<String>,
    /// The nonce to repeat in the id token.
    pub nonce: Option<String>,
    pub expires: Timestamp,
    /// True if the code was exchanged.
    pub is_used: bool,
}

/// An authorization code to be stored.
#[derive(Clone)]
pub struct NewCode {
    /// The redirect address, if the request named one.
    pub redirect_uri: Option<String>,
    /// The S256 code challenge.
    pub challenge: Option<String>,
    /// The nonce to repeat in the id token.
    pub nonce: Option<String>,
    pub expires: Timestamp,
}

/// A refresh token that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshToken {
    pub family: TokenFamily,
    pub expires: Timestamp,
    /// True if the token was exchanged for a new one.
    pub is_used: bool,
}

/// The columns that [`read_family`] reads.
pub(super) const FAMILY_COLUMNS: &str = "family_id, user_id, client_id, families.scopes, auth_ms";

/// Reads the columns [`FAMILY_COLUMNS`].
pub(super) fn read_family(row: &dyn ResultRow) -> DbResult<TokenFamily> {
    let id: FamilyId = row.get("family_id")?;
    let what = format!("family {id}");
    Ok(TokenFamily {
        id,
        user: row.get("user_id")?,
        client_id: row.get("client_id")?,
        scopes: read_scopes(&what, row.text("scopes")?)?,
        auth_time: time(&what, row.get("auth_ms")?)?,
    })
}

/// Parses stored scopes. `what` names their row in the error.
pub(super) fn read_scopes(what: &str, text: &str) -> DbResult<ScopeSet> {
    ScopeSet::parse(text).map_err(|why| damaged(what, &why))
}

impl ReadTx<'_> {
    /// Returns the scopes that the user has consented to for the client and the response type; none without a
    /// consent.
    pub fn find_consent(
        &self,
        user: UserId,
        client_id: &str,
        response_type: &str,
    ) -> DbResult<ScopeSet> {
        let sql = "SELECT scopes FROM consents
             WHERE user_id = ?1 AND client_id = ?2 AND response_type = ?3";
        let text: Option<String> =
            self.tx.find_value(sql, params![user, client_id, response_type])?;
        let Some(text) = text else { return Ok(ScopeSet::NONE) };
        read_scopes(&format!("consent of user {user}"), &text)
    }

    /// Returns the time at which a family was opened, which begins its absolute lifetime.
    pub fn family_created(&self, family: FamilyId) -> DbResult<Timestamp> {
        let sql = "SELECT created_ms FROM families WHERE family_id = ?1";
        time(&format!("family {family}"), self.tx.load_value(sql, params![family])?)
    }

    /// Finds the authorization code with that hash, including expired and used ones.
    pub fn find_code(&self, code: &ContentHash) -> DbResult<Option<AuthorizationCode>> {
        let sql = format!(
            "SELECT {FAMILY_COLUMNS}, redirect_uri, challenge, nonce, codes.expires_ms,
                     used_ms IS NOT NULL AS is_used
                 FROM codes JOIN families USING (family_id) WHERE code_hash = ?1"
        );
        self.tx.find(&sql, params![code], |row| {
            let family = read_family(row)?;
            let what = format!("code of family {}", family.id);
            Ok(AuthorizationCode {
                family,
                redirect_uri: row.get("redirect_uri")?,
                challenge: row.get("challenge")?,
                nonce: row.get("nonce")?,
                expires: time(&what, row.get("expires_ms")?)?,
                is_used: row.get("is_used")?,
            })
        })
    }
}

impl WriteTx<'_> {
    /// Records the user's consent to the scopes, in addition to the scopes of earlier consents to the same
    /// response type.
    pub fn write_consent(&self, new: &NewConsent, now: Timestamp) -> DbResult<()> {
        let NewConsent { user, client_id, response_type, scopes } = new;
        let earlier = self.find_consent(*user, client_id, response_type)?;
        // A request for fewer scopes must not withdraw an earlier consent.
        let scopes = earlier.iter().fold(*scopes, ScopeSet::with);
        let sql = "INSERT INTO consents (user_id, client_id, response_type, scopes, given_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (user_id, client_id, response_type) DO UPDATE SET
                 scopes = excluded.scopes, given_ms = excluded.given_ms";
        self.tx.run(sql, params![user, client_id, response_type, scopes, now])
    }

    /// Opens a token family. Ends the user's oldest families with the client beyond [`FAMILIES_MAX`], with
    /// all their tokens.
    ///
    /// A family expires with the last of its code and tokens, so one of them must be written in the same
    /// transaction.
    pub fn open_family(&self, new: &NewFamily, now: Timestamp) -> DbResult<FamilyId> {
        // One less, for the family that is opened below.
        let keep = FAMILIES_MAX.saturating_sub(1);
        let sql = format!(
            "SELECT family_id FROM families WHERE user_id = ?1 AND client_id = ?2
             ORDER BY family_id DESC {ALL_BEHIND} ?3"
        );
        let old: Vec<FamilyId> =
            self.tx.list_values(&sql, params![new.user, new.client_id, keep])?;
        // Ended one by one, because caches must invalidate the access tokens of each.
        for family in old {
            self.end_family(family, now)?;
        }
        let sql =
            "INSERT INTO families (user_id, client_id, scopes, auth_ms, created_ms, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5) RETURNING family_id";
        self.tx.load_value(sql, params![new.user, new.client_id, new.scopes, new.auth_time, now])
    }

    /// Extends a family to last until `expires` at least.
    pub(super) fn extend_family(&self, family: FamilyId, expires: Timestamp) -> DbResult<()> {
        let sql = "UPDATE families SET expires_ms = ?2 WHERE family_id = ?1 AND expires_ms < ?2";
        self.tx.run(sql, params![family, expires])
    }

    /// Ends a family with its code and all its tokens.
    pub fn end_family(&self, family: FamilyId, now: Timestamp) -> DbResult<()> {
        // First, while the rows still name the tokens that caches must invalidate.
        self.end_access_tokens(family, now)?;
        // Codes and refresh tokens are removed by foreign keys.
        self.tx.run("DELETE FROM families WHERE family_id = ?1", params![family])
    }

    /// Removes families that ended before `now` with their codes and tokens, at most `limit`.
    pub fn sweep_families(&self, now: Timestamp, limit: usize) -> DbResult<usize> {
        // Not logged, because all tokens of these families have expired, which caches detect themselves.
        self.sweep("families", "family_id", "expires_ms", now, limit)
    }

    /// Stores the code of a family and extends the family to the code's expiry.
    pub fn write_code(&self, code: &ContentHash, family: FamilyId, new: &NewCode) -> DbResult<()> {
        let sql = "INSERT INTO codes
                 (code_hash, family_id, redirect_uri, challenge, nonce, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let NewCode { redirect_uri, challenge, nonce, expires } = new;
        self.tx.run(sql, params![code, family, redirect_uri, challenge, nonce, expires])?;
        self.extend_family(family, *expires)
    }

    /// Marks a code as exchanged. It stays with its family, so that a second exchange is detected.
    pub fn mark_code_used(&self, code: &ContentHash, now: Timestamp) -> DbResult<()> {
        let sql = "UPDATE codes SET used_ms = ?2 WHERE code_hash = ?1";
        self.tx.run(sql, params![code, now])
    }
}

#[cfg(test)]
impl WriteTx<'_> {
    /// Stores a client for a test.
    pub(crate) fn plant_client(&self, client: &model::account::OAuthClient) -> DbResult<()> {
        let uris = serde_json::Value::from(client.redirect_uris.clone()).to_string();
        let grants = serde_json::to_string(&client.grants).unwrap();
        self.tx.execute(
            "INSERT INTO clients
                 (client_id, name, secret, redirect_uris, grants, active, created_ms,
                     scopes_enforced, access_token_s)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8)
             ON CONFLICT (client_id) DO UPDATE SET active = excluded.active,
                 grants = excluded.grants, scopes_enforced = excluded.scopes_enforced,
                 access_token_s = excluded.access_token_s",
            params![
                client.client_id,
                client.name,
                client.secret,
                uris,
                grants,
                client.active,
                client.scopes_enforced,
                client.access_token_s
            ],
        )?;
        Ok(())
    }

    /// Gives a user of a test the properties that the accounts file lacks.
    pub(crate) fn plant_user(&self, user_name: &str, password: &str) -> DbResult<()> {
        self.tx.execute(
            "INSERT INTO organizations (organization_id, name, address) VALUES (7, 'Gazette', '{}')
             ON CONFLICT DO NOTHING",
            params![],
        )?;
        self.tx.execute(
            "UPDATE users SET password = ?2, first_name = 'Ada', last_name = 'Byron',
                 email_address = 'ada@example.com', department = 'Foto', organization_id = 7
             WHERE user_name = ?1",
            params![user_name, password],
        )?;
        Ok(())
    }

    /// Makes every access to a table fail.
    pub(crate) fn hide_table(&self, table: &str) -> DbResult<()> {
        self.tx.run_script(&format!("ALTER TABLE {table} RENAME TO hidden"))
    }

    /// Counts the rows of a table.
    pub(crate) fn count(&self, table: &str) -> DbResult<usize> {
        self.tx.count(&format!("SELECT count(*) FROM {table}"), params![])
    }
}
