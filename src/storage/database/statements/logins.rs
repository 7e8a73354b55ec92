//! Lists and ends the logins of a user, for the user and its administrators: sessions, applications and keys,
//! each with its last use.

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, grants::read_scopes, optional_time, parse, time};
use crate::storage::database::engine::{ToParam, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::{FamilyId, ScopeSet, UserId};

/// A session of a user in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// A name that grants no access; see [`session_name`].
    pub name: String,
    /// The browser by its own description, if recorded.
    pub browser: Option<String>,
    /// The network address of the login, if recorded.
    pub address: Option<String>,
    /// Time at which the user logged in.
    pub auth_time: Timestamp,
    /// The last use, to within some minutes.
    pub used: Timestamp,
    pub expires: Timestamp,
}

/// An application that a user has authorized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedApplication {
    pub client_id: String,
    pub name: String,
    pub scopes: ScopeSet,
    /// Time of the last consent, or of the creation of its oldest remaining token family.
    pub since: Timestamp,
    /// The last use of one of its tokens, to within some minutes.
    pub used: Option<Timestamp>,
}

/// The number of logins of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginCount {
    /// Number of browser sessions.
    pub sessions: u32,
    /// Number of applications with a token.
    pub applications: u32,
    /// Number of keys that are not revoked.
    pub keys: u32,
}

/// Credentials whose last use is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsedCredential {
    /// A session, by its hash.
    Session(ContentHash),
    Family(FamilyId),
    /// An API key, by its number.
    Key(i64),
}

/// A browser of a user, by hashes of its device cookies. Each login sets a new cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginBrowser {
    /// The cookie that this login sets.
    pub now: ContentHash,
    /// The cookie that the browser presented.
    pub before: Option<ContentHash>,
}

/// Returns the name of a session in lists: a hash of its hash, so that it grants no access.
pub fn session_name(session: &ContentHash) -> String {
    ContentHash::new(format!("session name\0{session}").as_bytes()).short()
}

impl ReadTx<'_> {
    /// Lists the sessions of a user that have not ended, the most recently used first.
    pub fn list_sessions(&self, user: UserId, now: Timestamp) -> DbResult<Vec<ListedSession>> {
        let what = format!("session of user {user}");
        let sql = "SELECT session_hash, browser, address, auth_ms,
                 coalesce(last_used_ms, auth_ms) AS used_ms, expires_ms
             FROM sessions WHERE user_id = ?1 AND expires_ms > ?2";
        let mut found = self.tx.list(sql, params![user, now], |row| {
            Ok(ListedSession {
                name: session_name(&parse(&what, row.text("session_hash")?)?),
                browser: row.get("browser")?,
                address: row.get("address")?,
                auth_time: time(&what, row.get("auth_ms")?)?,
                used: time(&what, row.get("used_ms")?)?,
                expires: time(&what, row.get("expires_ms")?)?,
            })
        })?;
        found.sort_by_key(|session| std::cmp::Reverse(session.used));
        Ok(found)
    }

    /// Lists the applications that have a consent or tokens of a user, by name.
    pub fn list_applications(&self, user: UserId) -> DbResult<Vec<ListedApplication>> {
        let what = format!("applications of user {user}");
        let sql = "SELECT client_id, name, granted.scopes, at_ms, last_used_ms FROM
                 (SELECT client_id, scopes, given_ms AS at_ms, CAST(NULL AS BIGINT) AS last_used_ms
                  FROM consents WHERE user_id = ?1
                  UNION ALL SELECT client_id, scopes, created_ms, last_used_ms FROM families
                  WHERE user_id = ?1) AS granted
             JOIN clients USING (client_id) ORDER BY lower(name), client_id, at_ms";
        let rows: Vec<ListedApplication> = self.tx.list(sql, params![user], |row| {
            Ok(ListedApplication {
                client_id: row.get("client_id")?,
                name: row.get("name")?,
                scopes: read_scopes(&what, row.text("scopes")?)?,
                since: time(&what, row.get("at_ms")?)?,
                used: optional_time(&what, row.get("last_used_ms")?)?,
            })
        })?;
        let mut applications: Vec<ListedApplication> = Vec::new();
        for row in rows {
            // Rows of one client are adjacent, so its consents and families become one entry.
            match applications.last_mut().filter(|last| last.client_id == row.client_id) {
                Some(last) => {
                    last.scopes = row.scopes.iter().fold(last.scopes, ScopeSet::with);
                    last.used = last.used.max(row.used);
                }
                None => applications.push(row),
            }
        }
        Ok(applications)
    }

    /// Counts the logins of a user.
    pub fn count_logins(&self, user: UserId, now: Timestamp) -> DbResult<LoginCount> {
        let sessions = "SELECT count(*) FROM sessions WHERE user_id = ?1 AND expires_ms > ?2";
        let applications = "SELECT count(DISTINCT client_id) FROM families
             WHERE user_id = ?1 AND expires_ms > ?2";
        let keys = "SELECT count(*) FROM api_keys WHERE user_id = ?1 AND revoked_ms IS NULL";
        Ok(LoginCount {
            sessions: self.tx.load_value(sessions, params![user, now])?,
            applications: self.tx.load_value(applications, params![user, now])?,
            keys: self.tx.load_value(keys, params![user])?,
        })
    }
}

impl WriteTx<'_> {
    /// Ends the session of a user that is listed under `name`. Returns `false` if there is none.
    pub fn end_session_named(&self, user: UserId, name: &str, now: Timestamp) -> DbResult<bool> {
        let sql = "SELECT session_hash FROM sessions WHERE user_id = ?1";
        let hashes: Vec<String> = self.tx.list_values(sql, params![user])?;
        // Names are hashes, so all of them are computed to find the one that matches.
        for hash in hashes {
            let hash = parse("session", &hash)?;
            if session_name(&hash) == name {
                self.end_session(&hash, now)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Withdraws the consents of a user to an application and ends its tokens. Returns `false` if there was
    /// neither.
    pub fn revoke_application(
        &self,
        user: UserId,
        client_id: &str,
        now: Timestamp,
    ) -> DbResult<bool> {
        let sql = "SELECT family_id FROM families WHERE user_id = ?1 AND client_id = ?2";
        let families: Vec<FamilyId> = self.tx.list_values(sql, params![user, client_id])?;
        // Ended one by one, because caches must invalidate the access tokens of each.
        for family in &families {
            self.end_family(*family, now)?;
        }
        let sql = "DELETE FROM consents WHERE user_id = ?1 AND client_id = ?2";
        let consents = self.tx.execute(sql, params![user, client_id])?;
        Ok(consents > 0 || !families.is_empty())
    }

    /// Revokes every key of a user. Returns the numbers of the keys that this call revoked.
    pub fn revoke_keys_of(&self, user: UserId, now: Timestamp) -> DbResult<Vec<i64>> {
        let sql = "SELECT key_id FROM api_keys WHERE user_id = ?1 AND revoked_ms IS NULL
             ORDER BY key_id";
        let keys: Vec<i64> = self.tx.list_values(sql, params![user])?;
        for key in &keys {
            self.revoke_key(*key, now)?;
        }
        Ok(keys)
    }

    /// Records the times at which credentials were used, unless a later use is recorded.
    pub fn record_uses(&self, uses: &[(UsedCredential, Timestamp)]) -> DbResult<()> {
        for (credential, at) in uses {
            let (table, column, id): (&str, &str, &dyn ToParam) = match credential {
                UsedCredential::Session(hash) => ("sessions", "session_hash", hash),
                UsedCredential::Family(family) => ("families", "family_id", family),
                UsedCredential::Key(key) => ("api_keys", "key_id", key),
            };
            // Nodes write recorded uses late and in any order. The latest one counts.
            let sql = format!(
                "UPDATE {table} SET last_used_ms = ?2
                 WHERE {column} = ?1 AND coalesce(last_used_ms, 0) < ?2"
            );
            self.tx.run(&sql, params![id, at])?;
        }
        Ok(())
    }

    /// Records a login of a user with a browser, and retains the `keep` browsers seen last. Returns whether
    /// the user has known browsers and this is not one of them.
    pub fn record_browser(
        &self,
        user: UserId,
        browser: &LoginBrowser,
        keep: usize,
        now: Timestamp,
    ) -> DbResult<bool> {
        let sql = "SELECT browser_hash FROM browsers WHERE user_id = ?1";
        let known: Vec<String> = self.tx.list_values(sql, params![user])?;
        let hash = browser.now.to_string();
        let before = browser.before.map(|before| before.to_string());
        let is_known = before.as_ref().is_some_and(|before| known.contains(before));
        let sql = "INSERT INTO browsers (user_id, browser_hash, seen_ms) VALUES (?1, ?2, ?3)
             ON CONFLICT (user_id, browser_hash) DO UPDATE SET seen_ms = excluded.seen_ms";
        self.tx.run(sql, params![user, hash, now])?;
        // The login replaced the browser's cookie, so the former one is not presented again.
        let sql = "DELETE FROM browsers WHERE user_id = ?1 AND browser_hash = ?2";
        self.tx.run(sql, params![user, before])?;
        let sql = format!(
            // The browser of this login stays, even if a wrong clock dated the others later.
            "DELETE FROM browsers WHERE user_id = ?1 AND browser_hash IN
                 (SELECT browser_hash FROM browsers WHERE user_id = ?1
                  ORDER BY browser_hash = ?2 DESC, seen_ms DESC, browser_hash {ALL_BEHIND} ?3)"
        );
        self.tx.run(&sql, params![user, hash, keep])?;
        // The first browser of a user is not reported as a new one.
        Ok(!known.is_empty() && !is_known)
    }
}
