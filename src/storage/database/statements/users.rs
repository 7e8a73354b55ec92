//! Stores users as their organization's administrators see them, and the users' profiles and devices.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::accounts::{USER_COLUMNS, read_user};
use super::{ALL_BEHIND, ReadTx, WriteTx, parse, parse_json, time};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::account::{AccessLevels, Device, OrganizationId, PhoneNumbers, User, UserId};

/// A new user of an organization. It is active and has no password.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// The organization that it belongs to.
    pub organization: OrganizationId,
    pub user_name: String,
    pub first_name: String,
    pub last_name: String,
    pub email_address: String,
    pub department: Option<String>,
    pub phone: PhoneNumbers,
    pub roles: Vec<String>,
    pub access: AccessLevels,
}

impl ReadTx<'_> {
    /// Lists the users of an organization in the order of their numbers, including inactive ones.
    pub fn list_users_of_organization(&self, id: OrganizationId) -> DbResult<Vec<User>> {
        let sql = format!(
            "SELECT {USER_COLUMNS} FROM users WHERE organization_id = ?1 ORDER BY user_id"
        );
        self.tx.list(&sql, params![id], read_user)
    }

    /// Counts the users of an organization.
    pub fn count_users_of_organization(&self, id: OrganizationId) -> DbResult<u32> {
        let sql = "SELECT count(*) FROM users WHERE organization_id = ?1";
        self.tx.load_value(sql, params![id])
    }

    /// Returns whether an organization has an active administrator besides the user `id`. Service accounts do not
    /// count: they cannot administer.
    pub fn has_other_administrator(
        &self,
        organization: OrganizationId,
        id: UserId,
    ) -> DbResult<bool> {
        let sql = "SELECT 1 FROM users WHERE organization_id = ?1 AND user_id <> ?2
                 AND admin AND active AND NOT service_account LIMIT 1";
        self.tx.exists(sql, params![organization, id])
    }

    /// Returns whether the user name exists, ignoring case. Reads every user.
    pub fn is_user_name_taken(&self, user_name: &str) -> DbResult<bool> {
        // Names are unique regardless of case (contract users-10), while the index is on their spelling.
        let sql = "SELECT 1 FROM users WHERE lower(user_name) = lower(?1) LIMIT 1";
        self.tx.exists(sql, params![user_name])
    }

    /// Returns the profile of a user; empty for a user without one.
    pub fn read_profile(&self, id: UserId) -> DbResult<Map<String, Value>> {
        let sql = "SELECT profile FROM profiles WHERE user_id = ?1";
        let text: Option<String> = self.tx.find_value(sql, params![id])?;
        let Some(text) = text else { return Ok(Map::new()) };
        parse_json(&format!("profile of user {id}"), &text)
    }

    /// Lists the devices of a user, most recently registered last.
    pub fn list_devices(&self, id: UserId) -> DbResult<Vec<Device>> {
        let registered = self.list_registered_devices(id)?;
        Ok(registered.into_iter().map(|(device, _)| device).collect())
    }

    /// Lists the devices of a user with the time of their last registration.
    pub fn list_registered_devices(&self, id: UserId) -> DbResult<Vec<(Device, Timestamp)>> {
        let sql = "SELECT token, type, name, model, registered_ms FROM devices WHERE user_id = ?1
             ORDER BY registered_ms, token";
        self.tx.list(sql, params![id], |row| {
            let what = format!("device of user {id}");
            let device = Device {
                token: row.get("token")?,
                kind: parse(&what, row.text("type")?)?,
                name: row.get("name")?,
                model: row.get("model")?,
            };
            Ok((device, time(&what, row.get("registered_ms")?)?))
        })
    }
}

/// The rate limits of requests to create users.
#[derive(Clone, Copy, Debug)]
pub struct UserRequestLimits {
    /// Maximum per administrator and window.
    pub administrator: u32,
    /// Maximum per organization and window, over all administrators.
    pub organization: u32,
    /// Length of the window in seconds.
    pub window_s: u32,
}

impl WriteTx<'_> {
    /// Counts a request of the administrator `by` to create a user of `organization`.
    ///
    /// If a limit is reached, counts nothing and returns the time at which the next request is allowed. A
    /// window that begins in the future was started by a clock that ran ahead, and counts as ended.
    pub fn count_user_request(
        &self,
        by: UserId,
        organization: OrganizationId,
        limits: UserRequestLimits,
        now: Timestamp,
    ) -> DbResult<Option<Timestamp>> {
        let window_ms = i64::from(limits.window_s) * 1000;
        let now_ms = now.as_millisecond();
        let window_start = now_ms - window_ms;
        let sql = "SELECT user_id, since_ms, requests FROM user_requests
             WHERE organization_id = ?1 AND since_ms > ?2 AND since_ms <= ?3";
        let counted: Vec<(i64, i64, u32)> =
            self.tx.list(sql, params![organization, window_start, now_ms], |row| {
                Ok((row.get("user_id")?, row.get("since_ms")?, row.get("requests")?))
            })?;
        let own = counted.iter().find(|(user, ..)| *user == by.0);
        // The administrator's own limit comes first, then the limit of the organization.
        let exhausted = own.filter(|(.., requests)| *requests >= limits.administrator);
        let total: u32 = counted.iter().map(|(.., requests)| *requests).sum();
        // The organization may make requests again when its oldest window ends.
        let oldest = counted.iter().min_by_key(|(_, since, _)| *since);
        let exhausted = exhausted.or(oldest.filter(|_| total >= limits.organization));
        if let Some((_, since, _)) = exhausted {
            return time("user_requests", since + window_ms).map(Some);
        }
        let (since, requests) = own.map_or((now_ms, 0), |(_, since, count)| (*since, *count));
        let sql = "INSERT INTO user_requests (user_id, organization_id, since_ms, requests)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (user_id) DO UPDATE SET organization_id = excluded.organization_id,
                 since_ms = excluded.since_ms, requests = excluded.requests";
        self.tx.run(sql, params![by, organization, since, requests + 1])?;
        Ok(None)
    }

    /// Stores a new user with all agreements of its organization and logs the change.
    ///
    /// Fails if its name is in use; see [`ReadTx::is_user_name_taken`].
    pub fn insert_member(&self, new: &NewMember, now: Timestamp) -> DbResult<UserId> {
        let roles = Value::from(new.roles.clone()).to_string();
        let sql =
            "INSERT INTO users (organization_id, user_name, first_name, last_name, email_address,
                 department, phone_direct, phone_mobile, roles, admin, mediebank, active,
                 service_account, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, TRUE, FALSE, ?12)
             RETURNING user_id";
        let values = params![
            new.organization,
            new.user_name,
            new.first_name,
            new.last_name,
            new.email_address,
            new.department,
            new.phone.direct,
            new.phone.mobile,
            roles,
            new.access.admin,
            new.access.mediebank,
            now,
        ];
        let id: UserId = self.tx.load_value(sql, values)?;
        let sql = "INSERT INTO user_agreements (user_id, agreement_id)
             SELECT ?1, agreement_id FROM agreements WHERE organization_id = ?2";
        self.tx.run(sql, params![id, new.organization])?;
        self.log_account_change(AccountChange::User(id), now)?;
        Ok(id)
    }

    /// Updates the properties of a user that administrators may change (names, e-mail address, department,
    /// telephone numbers, roles, access levels) and logs the change.
    pub fn update_member(&self, user: &User, now: Timestamp) -> DbResult<()> {
        let roles = Value::from(user.roles.clone()).to_string();
        let sql = "UPDATE users SET first_name = ?2, last_name = ?3, email_address = ?4,
                 department = ?5, phone_direct = ?6, phone_mobile = ?7, roles = ?8, admin = ?9,
                 mediebank = ?10
             WHERE user_id = ?1";
        let values = params![
            user.id,
            user.first_name,
            user.last_name,
            user.email_address,
            user.department,
            user.phone.direct,
            user.phone.mobile,
            roles,
            user.access.admin,
            user.access.mediebank,
        ];
        self.tx.run(sql, values)?;
        // A revoked access level ends with the next call (contract users-9).
        self.log_account_change(AccountChange::User(user.id), now)
    }

    /// Replaces the profile of a user by `profile`, a JSON object.
    pub fn write_profile(&self, id: UserId, profile: &str) -> DbResult<()> {
        let sql = "INSERT INTO profiles (user_id, profile) VALUES (?1, ?2)
             ON CONFLICT (user_id) DO UPDATE SET profile = excluded.profile";
        self.tx.run(sql, params![id, profile])
    }

    /// Registers `device` for the user, even if it belonged to a different one, and retains the user's `keep`
    /// most recently registered devices. Returns the former owner, if any.
    pub fn write_device(
        &self,
        id: UserId,
        device: &Device,
        keep: u32,
        now: Timestamp,
    ) -> DbResult<Option<UserId>> {
        let Device { token, kind, name, model } = device;
        // The former user is informed by mail (contract users-7).
        let sql = "SELECT user_id FROM devices WHERE token = ?1 AND user_id <> ?2";
        let former_owner: Option<UserId> = self.tx.find_value(sql, params![token, id])?;
        let sql = "INSERT INTO devices (token, user_id, type, name, model, registered_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (token) DO UPDATE SET user_id = excluded.user_id, type = excluded.type,
                 name = excluded.name, model = excluded.model,
                 registered_ms = excluded.registered_ms";
        self.tx.run(sql, params![token, id, kind, name, model, now])?;
        let sql = format!(
            // The new device stays, even if a wrong clock dated the others later.
            "DELETE FROM devices WHERE token IN
                 (SELECT token FROM devices WHERE user_id = ?1
                  ORDER BY token = ?2 DESC, registered_ms DESC, token {ALL_BEHIND} ?3)"
        );
        self.tx.run(&sql, params![id, token, keep])?;
        Ok(former_owner)
    }

    /// Removes the device with that token, if it belongs to the user.
    pub fn delete_device(&self, id: UserId, token: &str) -> DbResult<()> {
        let sql = "DELETE FROM devices WHERE token = ?1 AND user_id = ?2";
        self.tx.run(sql, params![token, id])
    }
}
