//! What OAuth2 gives out: access tokens and sessions, looked up by hash.

use jiff::Timestamp;
use rusqlite::params;

use super::{ReadTx, damaged, time};
use crate::account::{FamilyId, Scopes, UserId};
use crate::db::DbError;
use crate::types::Hash;

/// An access token that was given out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it was given out with.
    pub family: FamilyId,
    /// Whose rights it carries.
    pub user: UserId,
    /// The client that it was given to.
    pub client_id: String,
    /// What it may be used for.
    pub scopes: Scopes,
    /// When it ends.
    pub expires: Timestamp,
}

/// A login in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who logged in.
    pub user: UserId,
    /// When.
    pub auth_time: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
}

/// Scopes as they are stored.
pub(super) fn read_scopes(what: &str, text: &str) -> Result<Scopes, DbError> {
    Scopes::parse(text).map_err(|why| damaged(what, &why))
}

impl ReadTx<'_> {
    /// The access token with that hash, expired or not.
    pub fn find_access_token(&self, token: &Hash) -> Result<Option<Token>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT family_id, user_id, client_id, access_tokens.scopes, access_tokens.expires_ms
             FROM access_tokens JOIN families USING (family_id) JOIN clients USING (client_id)
             WHERE token_hash = ?1 AND active <> 0",
        )?;
        let mut rows = statement.query(params![token.to_string()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let family = FamilyId(row.get(0)?);
        let what = format!("access token of family {family}");
        Ok(Some(Token {
            family,
            user: UserId(row.get(1)?),
            client_id: row.get(2)?,
            scopes: read_scopes(&what, &row.get::<_, String>(3)?)?,
            expires: time(&what, row.get(4)?)?,
        }))
    }

    /// The session with that hash, expired or not.
    pub fn find_session(&self, session: &Hash) -> Result<Option<Session>, DbError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT user_id, auth_ms, expires_ms FROM sessions WHERE session_hash = ?1",
        )?;
        let mut rows = statement.query(params![session.to_string()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let user = UserId(row.get(0)?);
        let what = format!("session of user {user}");
        let (auth_time, expires) = (time(&what, row.get(1)?)?, time(&what, row.get(2)?)?);
        Ok(Some(Session { user, auth_time, expires }))
    }
}
