//! Stores links by which users set a password: invitations and password resets.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ALL_BEHIND, ReadTx, WriteTx, parse, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::account::{OrganizationId, PasswordLinkKind, UserId};

/// A link by which a user sets a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordLink {
    /// Its id, from which its token is derived.
    pub id: Uuid,
    pub user: UserId,
    pub kind: PasswordLinkKind,
    pub created: Timestamp,
    pub expires: Timestamp,
}

/// A user without a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingUser {
    pub id: UserId,
    /// True if it has a valid invitation.
    pub invited: bool,
}

const COLUMNS: &str = "link_id, user_id, kind, created_ms, expires_ms";

fn read_link(row: &dyn ResultRow) -> DbResult<PasswordLink> {
    let id: String = row.get("link_id")?;
    let what = format!("password link {id}");
    Ok(PasswordLink {
        id: parse(&what, &id)?,
        user: row.get("user_id")?,
        kind: parse(&what, row.text("kind")?)?,
        created: time(&what, row.get("created_ms")?)?,
        expires: time(&what, row.get("expires_ms")?)?,
    })
}

impl ReadTx<'_> {
    /// Finds the link with this id, unless it has expired.
    pub fn find_password_link(&self, id: Uuid, now: Timestamp) -> DbResult<Option<PasswordLink>> {
        let sql =
            format!("SELECT {COLUMNS} FROM password_links WHERE link_id = ?1 AND expires_ms > ?2");
        self.tx.find(&sql, params![id, now], read_link)
    }

    /// Lists the links of a user that have not expired, newest first.
    pub fn list_password_links(
        &self,
        user: UserId,
        now: Timestamp,
    ) -> DbResult<Vec<PasswordLink>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM password_links WHERE user_id = ?1 AND expires_ms > ?2
                 ORDER BY created_ms DESC, link_id"
        );
        self.tx.list(&sql, params![user, now], read_link)
    }

    /// Lists the people of an organization without a password, and whether they have an invitation.
    pub fn list_pending_users(
        &self,
        organization: OrganizationId,
        now: Timestamp,
    ) -> DbResult<Vec<PendingUser>> {
        let sql = "SELECT user_id, EXISTS (SELECT 1 FROM password_links
                 WHERE password_links.user_id = users.user_id AND kind = 'invitation'
                     AND expires_ms > ?2) AS invited
             FROM users WHERE organization_id = ?1 AND password IS NULL AND NOT service_account
             ORDER BY user_id";
        self.tx.list(sql, params![organization, now], |row| {
            Ok(PendingUser { id: row.get("user_id")?, invited: row.get("invited")? })
        })
    }

    /// Returns whether a user has a password.
    pub fn has_password(&self, user: UserId) -> DbResult<bool> {
        let sql = "SELECT 1 FROM users WHERE user_id = ?1 AND password IS NOT NULL";
        self.tx.exists(sql, params![user])
    }

    /// Finds people who may log in, have an e-mail address, and have this user name or e-mail address,
    /// ignoring case. Returns at most `limit`, in the order of their numbers.
    pub fn find_users_to_reset(&self, text: &str, limit: usize) -> DbResult<Vec<UserId>> {
        // Service accounts cannot use a link, and a user without an address cannot receive one.
        let sql = "SELECT user_id FROM users
             WHERE (lower(user_name) = lower(?1) OR lower(email_address) = lower(?1))
                 AND active AND NOT service_account AND email_address IS NOT NULL
             ORDER BY user_id LIMIT ?2";
        self.tx.list_values(sql, params![text, limit])
    }
}

impl WriteTx<'_> {
    /// Stores a new link. Removes the user's oldest links beyond `keep`.
    pub fn write_password_link(&self, link: &PasswordLink, keep: usize) -> DbResult<()> {
        let sql = format!("INSERT INTO password_links ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)");
        self.tx.run(&sql, params![link.id, link.user, link.kind, link.created, link.expires])?;
        let sql = format!(
            // The new link stays, even if a wrong clock dated the earlier ones later.
            "DELETE FROM password_links WHERE link_id IN
                 (SELECT link_id FROM password_links WHERE user_id = ?1
                  ORDER BY link_id = ?2 DESC, created_ms DESC, link_id {ALL_BEHIND} ?3)"
        );
        self.tx.run(&sql, params![link.user, link.id, keep])
    }

    /// Removes every link of a user. Returns their number.
    pub fn delete_password_links(&self, user: UserId) -> DbResult<usize> {
        self.tx.execute("DELETE FROM password_links WHERE user_id = ?1", params![user])
    }

    /// Removes links that expired before `now`, at most `limit`.
    pub fn sweep_password_links(&self, now: Timestamp, limit: usize) -> DbResult<usize> {
        self.sweep("password_links", "link_id", "expires_ms", now, limit)
    }
}
