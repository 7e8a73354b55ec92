//! Writes accounts as the operator defines them. Rows that already match are not changed.
//!
//! Logs in the same transaction exactly the changes that caches must invalidate.

use std::collections::BTreeSet;

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, damaged, print_json};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::accounts_file::{
    AgreementEntry, ClientEntry, ClientScopes, LicenseEntry, PrepaidsEntry, ProductEntry,
    UserEntry,
};
use model::account::{AgreementId, OAuthClient, Organization, OrganizationId, ProductId, UserId};

/// The outcome of writing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The row is new.
    Created,
    /// The row existed and was changed.
    Updated,
    /// The row existed and already matched the definition.
    Unchanged,
}

/// An API key to be written. The key itself is never stored.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    /// SHA-256 of the key. Keys are long random strings, so a slow hash would add nothing.
    pub key_hash: ContentHash,
    /// User name of the owner.
    pub user_name: String,
    /// The name given by the owner.
    pub name: String,
    /// True if the key changes nothing.
    pub read_only: bool,
}

/// The statements for a table that links the numbers `?1` and `?2`.
struct LinkStatements {
    list: &'static str,
    remove: &'static str,
    insert: &'static str,
}

const AGREEMENT_PRODUCTS: LinkStatements = LinkStatements {
    list: "SELECT product_id FROM agreement_products WHERE agreement_id = ?1",
    remove: "DELETE FROM agreement_products WHERE agreement_id = ?1 AND product_id = ?2",
    insert: "INSERT INTO agreement_products (agreement_id, product_id) VALUES (?1, ?2)",
};

const USER_AGREEMENTS: LinkStatements = LinkStatements {
    list: "SELECT agreement_id FROM user_agreements WHERE user_id = ?1",
    remove: "DELETE FROM user_agreements WHERE user_id = ?1 AND agreement_id = ?2",
    insert: "INSERT INTO user_agreements (user_id, agreement_id) VALUES (?1, ?2)",
};

impl ReadTx<'_> {
    /// Finds the code of the product.
    pub fn find_product_code(&self, id: ProductId) -> DbResult<Option<String>> {
        self.tx.find_value("SELECT code FROM products WHERE product_id = ?1", params![id])
    }

    /// Finds the product with this code.
    pub fn find_product_id(&self, code: &str) -> DbResult<Option<ProductId>> {
        self.tx.find_value("SELECT product_id FROM products WHERE code = ?1", params![code])
    }

    /// Returns whether there is a licence with this UUID.
    pub fn has_license(&self, uuid: Uuid) -> DbResult<bool> {
        self.tx.exists("SELECT 1 FROM licenses WHERE uuid = ?1", params![uuid])
    }

    /// Finds the organization that the agreement belongs to.
    pub fn find_agreement_owner(&self, id: AgreementId) -> DbResult<Option<OrganizationId>> {
        let sql = "SELECT organization_id FROM agreements WHERE agreement_id = ?1";
        self.tx.find_value(sql, params![id])
    }

    /// Lists the names of the users that have the agreement.
    pub fn list_agreement_users(&self, id: AgreementId) -> DbResult<Vec<String>> {
        let sql = "SELECT user_name FROM user_agreements JOIN users USING (user_id)
             WHERE agreement_id = ?1 ORDER BY user_id";
        self.tx.list_values(sql, params![id])
    }

    /// Finds the value that [`WriteTx::write_state`] stored under the name.
    pub fn find_state(&self, name: &str) -> DbResult<Option<String>> {
        self.tx.find_value("SELECT value FROM state WHERE name = ?1", params![name])
    }
}

impl WriteTx<'_> {
    /// Writes an organization and logs the change.
    pub fn put_organization(&self, new: &Organization, now: Timestamp) -> DbResult<PutOutcome> {
        let existing = self.find_organization(new.id)?;
        if existing.as_ref() == Some(new) {
            return Ok(PutOutcome::Unchanged);
        }
        let address = print_json(&format!("organization {}", new.id), &new.address)?;
        let domains = (!new.mail_domains.is_empty())
            .then(|| serde_json::Value::from(new.mail_domains.clone()).to_string());
        let sql = "INSERT INTO organizations
                 (organization_id, name, currency, country, address, phone_direct, mail_domains)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (organization_id) DO UPDATE SET name = excluded.name,
                 currency = excluded.currency, country = excluded.country,
                 address = excluded.address, phone_direct = excluded.phone_direct,
                 mail_domains = excluded.mail_domains";
        let Organization { id, name, currency, country, phone_direct, .. } = new;
        let values = params![id, name, currency, country, address, phone_direct, domains];
        self.tx.run(sql, values)?;
        self.put_outcome(existing.is_some(), now)
    }

    /// Writes a product. The given number and code must not belong to two products.
    pub fn put_product(&self, new: &ProductEntry, now: Timestamp) -> DbResult<PutOutcome> {
        let existing = match new.id {
            Some(id) => self.find_product_code(id)?.map(|_| id),
            None => self.find_product_id(&new.code)?,
        };
        // The conflict is on the number, so the number of a known product is inserted explicitly.
        let id = existing.or(new.id);
        let sql = "INSERT INTO products AS old (product_id, code, name, description)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (product_id) DO UPDATE SET
                 code = excluded.code, name = excluded.name, description = excluded.description
             WHERE (old.code, old.name, old.description)
                 IS DISTINCT FROM (excluded.code, excluded.name, excluded.description)";
        let values = params![id, &*new.code, new.name.as_deref(), new.description.as_deref()];
        if !self.tx.changes(sql, values)? {
            return Ok(PutOutcome::Unchanged);
        }
        self.put_outcome(existing.is_some(), now)
    }

    /// Writes an agreement, whose organization and products must exist.
    ///
    /// The remaining prepaid downloads are counted here. The given number is only used for a new agreement,
    /// or if the number of bought downloads has changed.
    pub fn put_agreement(&self, new: &AgreementEntry, now: Timestamp) -> DbResult<PutOutcome> {
        let existed = self.find_agreement_owner(new.id)?.is_some();
        let total = new.prepaids.map(|prepaids| prepaids.total);
        let remaining = new.prepaids.map(PrepaidsEntry::remaining);
        // `prepaid_remaining` is not updated: purchases lower it, and an import preserves that.
        let sql =
            "INSERT INTO agreements AS old (agreement_id, organization_id, type, super, name,
                 description, expires_ms, prepaid_total, prepaid_remaining, approver)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (agreement_id) DO UPDATE SET
                 organization_id = excluded.organization_id, type = excluded.type,
                 super = excluded.super, name = excluded.name,
                 description = excluded.description, expires_ms = excluded.expires_ms,
                 prepaid_total = excluded.prepaid_total, approver = excluded.approver,
                 prepaid_remaining = CASE
                     WHEN old.prepaid_total IS NOT DISTINCT FROM excluded.prepaid_total
                     THEN old.prepaid_remaining ELSE excluded.prepaid_remaining END
             WHERE (old.organization_id, old.type, old.super, old.name, old.description,
                     old.expires_ms, old.prepaid_total, old.approver)
                 IS DISTINCT FROM (excluded.organization_id, excluded.type, excluded.super,
                     excluded.name, excluded.description, excluded.expires_ms,
                     excluded.prepaid_total, excluded.approver)";
        let values = params![
            new.id,
            new.organization,
            new.kind,
            new.super_agreement,
            new.name.as_deref(),
            new.description.as_deref(),
            new.expires,
            total,
            remaining,
            new.approver.stored()
        ];
        let mut changed = self.tx.execute(sql, values)?;
        let mut products = BTreeSet::new();
        for code in &new.products {
            products.extend(self.find_product_id(code)?.map(|id| id.0));
        }
        changed += self.link(new.id.0, &products, AGREEMENT_PRODUCTS)?;
        if changed == 0 { Ok(PutOutcome::Unchanged) } else { self.put_outcome(existed, now) }
    }

    /// Writes a licence, whose product must exist. No cache contains licences.
    pub fn put_license(&self, new: &LicenseEntry) -> DbResult<PutOutcome> {
        let existed = self.has_license(new.uuid)?;
        let sql =
            "INSERT INTO licenses AS old (uuid, product_id, period, volume, price, description)
             SELECT ?1, product_id, ?3, ?4, ?5, ?6 FROM products WHERE code = ?2
             ON CONFLICT (uuid) DO UPDATE SET product_id = excluded.product_id,
                 period = excluded.period, volume = excluded.volume, price = excluded.price,
                 description = excluded.description
             WHERE (old.product_id, old.period, old.volume, old.price, old.description)
                 IS DISTINCT FROM (excluded.product_id, excluded.period, excluded.volume,
                     excluded.price, excluded.description)";
        let values = params![
            new.uuid,
            &*new.product,
            new.period,
            new.volume.as_deref(),
            new.price.map(|price| price.to_string()),
            new.description.as_deref()
        ];
        if !self.tx.changes(sql, values)? {
            return Ok(PutOutcome::Unchanged);
        }
        Ok(if existed { PutOutcome::Updated } else { PutOutcome::Created })
    }

    /// Returns the outcome, and logs a change that affects many accounts. A new row affects none.
    fn put_outcome(&self, existed: bool, now: Timestamp) -> DbResult<PutOutcome> {
        if !existed {
            return Ok(PutOutcome::Created);
        }
        self.log_account_change(AccountChange::Everything, now)?;
        Ok(PutOutcome::Updated)
    }

    /// Writes a user, whose organization and agreements must exist. `password` is the argon2id hash of a new
    /// password; `None` keeps the current one.
    ///
    /// A new password ends the user's sessions and tokens, and so does deactivation.
    pub fn put_user(
        &self,
        new: &UserEntry,
        password: Option<&str>,
        now: Timestamp,
    ) -> DbResult<PutOutcome> {
        let existing = self.find_user_by_name(&new.user_name)?;
        let was_active = existing.as_ref().is_none_or(|(user, _)| user.active);
        let is_active = new.active.unwrap_or(was_active);
        // An existing number is written explicitly, because a repetition would otherwise use up the next one.
        let id = existing.as_ref().map(|(user, _)| user.id).or(new.id);
        let written = self.write_user(new, password, id, is_active, now)?;
        // A row that already matched returns no number.
        let found = written.or(id);
        let id = found.ok_or_else(|| damaged(format!("user {}", new.user_name), &"is gone"))?;
        let agreements = new.agreements.iter().map(|agreement| agreement.0).collect();
        let changed = self.link(id.0, &agreements, USER_AGREEMENTS)?;
        if existing.is_none() {
            return Ok(PutOutcome::Created);
        }
        if changed == 0 && written.is_none() {
            return Ok(PutOutcome::Unchanged);
        }
        // Sessions and tokens may belong to someone who knew the old password (contract login-18).
        if password.is_some() || (was_active && !is_active) {
            self.end_logins(id, now)?;
        }
        self.log_account_change(AccountChange::User(id), now)?;
        Ok(PutOutcome::Updated)
    }

    /// Links `owner` to exactly `targets`. Returns the number of changed links.
    fn link(
        &self,
        owner: i64,
        targets: &BTreeSet<i64>,
        LinkStatements { list, remove, insert }: LinkStatements,
    ) -> DbResult<usize> {
        let existing: BTreeSet<i64> =
            self.tx.list_values(list, params![owner])?.into_iter().collect();
        let mut changed = 0;
        for number in existing.difference(targets) {
            changed += self.tx.execute(remove, params![owner, number])?;
        }
        for number in targets.difference(&existing) {
            changed += self.tx.execute(insert, params![owner, number])?;
        }
        Ok(changed)
    }

    /// Writes the row of a user. Returns its number, or `None` if it already matched.
    fn write_user(
        &self,
        new: &UserEntry,
        password: Option<&str>,
        id: Option<UserId>,
        active: bool,
        now: Timestamp,
    ) -> DbResult<Option<UserId>> {
        let roles = serde_json::json!(new.roles).to_string();
        // A given password always counts as a change, because each hash has its own salt.
        let sql =
            "INSERT INTO users AS old (user_id, organization_id, user_name, password, first_name,
                 last_name, email_address, department, phone_direct, phone_mobile, roles, admin,
                 mediebank, active, service_account, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT (user_id) DO UPDATE SET organization_id = excluded.organization_id,
                 password = coalesce(excluded.password, old.password),
                 first_name = excluded.first_name, last_name = excluded.last_name,
                 email_address = excluded.email_address, department = excluded.department,
                 phone_direct = excluded.phone_direct, phone_mobile = excluded.phone_mobile,
                 roles = excluded.roles, admin = excluded.admin, mediebank = excluded.mediebank,
                 active = excluded.active, service_account = excluded.service_account
             WHERE excluded.password IS NOT NULL
                 OR (old.organization_id, old.first_name, old.last_name, old.email_address,
                     old.department, old.phone_direct, old.phone_mobile, old.roles, old.admin,
                     old.mediebank, old.active, old.service_account)
                 IS DISTINCT FROM (excluded.organization_id, excluded.first_name,
                     excluded.last_name, excluded.email_address, excluded.department,
                     excluded.phone_direct, excluded.phone_mobile, excluded.roles, excluded.admin,
                     excluded.mediebank, excluded.active, excluded.service_account)
             RETURNING user_id";
        let values = params![
            id,
            new.organization,
            &*new.user_name,
            password,
            new.first_name.as_deref(),
            new.last_name.as_deref(),
            new.email_address.as_deref(),
            new.department.as_deref(),
            new.phone_number.direct.as_deref(),
            new.phone_number.mobile.as_deref(),
            roles,
            new.access.admin,
            new.access.mediebank,
            active,
            new.service_account,
            now
        ];
        self.tx.find_value(sql, values)
    }

    /// Writes a client. `secret` is the argon2id hash of a new secret; `None` keeps the current one. Unless
    /// the entry says otherwise, an existing client stays active or inactive, and a new one is active.
    pub fn put_client(
        &self,
        new: &ClientEntry,
        secret: Option<&str>,
        now: Timestamp,
    ) -> DbResult<PutOutcome> {
        let existing = self.find_client(&new.client_id)?;
        let was_active = existing.as_ref().is_none_or(|existing| existing.active);
        let stored_secret = existing.as_ref().and_then(|existing| existing.secret.clone());
        let client = OAuthClient {
            client_id: new.client_id.to_string(),
            name: new.name.as_deref().unwrap_or(&new.client_id).to_owned(),
            // A client that becomes public loses its secret, which it could not keep.
            secret: secret.map(str::to_owned).or(stored_secret).filter(|_| !new.public),
            redirect_uris: new.redirect_uris.iter().map(ToString::to_string).collect(),
            grants: new.grants.clone(),
            // A client that was disabled by hand stays disabled (contract operation-15), unless the entry says
            // otherwise.
            active: new.active.unwrap_or(was_active),
            scopes_enforced: new.scopes == ClientScopes::Enforced,
            access_token_s: new.access_token_s,
            read_only: new.read_only,
        };
        if existing.as_ref() == Some(&client) {
            return Ok(PutOutcome::Unchanged);
        }
        let limits = (client.scopes_enforced, client.read_only);
        if existing
            .as_ref()
            .is_some_and(|existing| (existing.scopes_enforced, existing.read_only) != limits)
        {
            // Caches contain these properties together with the client's tokens.
            self.log_account_change(AccountChange::Everything, now)?;
        }
        let is_active = client.active;
        let grants: Vec<_> = client.grants.iter().map(|grant| grant.as_str()).collect();
        let sql = "INSERT INTO clients (client_id, name, secret, redirect_uris, grants, active,
                 created_ms, scopes_enforced, access_token_s, read_only)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (client_id) DO UPDATE SET name = excluded.name, secret = excluded.secret,
                 redirect_uris = excluded.redirect_uris, grants = excluded.grants,
                 scopes_enforced = excluded.scopes_enforced,
                 access_token_s = excluded.access_token_s, read_only = excluded.read_only";
        let values = params![
            client.client_id,
            client.name,
            client.secret,
            serde_json::Value::from(client.redirect_uris).to_string(),
            serde_json::Value::from(grants).to_string(),
            client.active,
            now,
            client.scopes_enforced,
            client.access_token_s,
            client.read_only
        ];
        self.tx.run(sql, values)?;
        if is_active != was_active {
            // The tokens of the client become valid or invalid with it.
            self.set_client_active(&new.client_id, is_active, now)?;
        }
        Ok(if existing.is_some() { PutOutcome::Updated } else { PutOutcome::Created })
    }

    /// Writes a key of an existing user. A revoked key stays revoked.
    pub fn put_key(&self, new: &NewApiKey, now: Timestamp) -> DbResult<PutOutcome> {
        let sql = "SELECT user_name, read_only FROM api_keys JOIN users USING (user_id)
             WHERE key_hash = ?1";
        let stored: Option<(String, bool)> = self.tx.find(sql, params![new.key_hash], |row| {
            Ok((row.get("user_name")?, row.get("read_only")?))
        })?;
        // With its own number, a known key conflicts without using up the next number.
        let sql = "INSERT INTO api_keys AS old
                 (key_id, key_hash, user_id, name, created_ms, read_only)
             SELECT (SELECT key_id FROM api_keys WHERE key_hash = ?1), ?1, user_id, ?3, ?4, ?5
             FROM users WHERE user_name = ?2
             ON CONFLICT (key_id) DO UPDATE SET user_id = excluded.user_id, name = excluded.name,
                 read_only = excluded.read_only
             WHERE (old.user_id, old.name, old.read_only)
                 IS DISTINCT FROM (excluded.user_id, excluded.name, excluded.read_only)";
        let values = params![new.key_hash, new.user_name, new.name, now, new.read_only];
        let changed = self.tx.execute(sql, values)?;
        match (changed, stored) {
            (0, _) => Ok(PutOutcome::Unchanged),
            (_, None) => Ok(PutOutcome::Created),
            (_, Some((owner, read_only))) => {
                // Caches hold a key with its owner and what it may do, not with its name.
                if owner != new.user_name || read_only != new.read_only {
                    self.log_account_change(AccountChange::Key(new.key_hash), now)?;
                }
                Ok(PutOutcome::Updated)
            }
        }
    }

    /// Stores a value in the table `state` under a name, or removes the row of that name.
    pub(super) fn set_state(&self, name: &str, value: Option<&str>) -> DbResult<()> {
        match value {
            Some(value) => self.write_state(name, value),
            None => self.remove_state(name),
        }
    }

    /// Stores a value in the table `state` under a name.
    pub fn write_state(&self, name: &str, value: &str) -> DbResult<()> {
        let sql = "INSERT INTO state (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.tx.run(sql, params![name, value])
    }

    /// Removes the row of `state` with that name.
    pub fn remove_state(&self, name: &str) -> DbResult<()> {
        self.tx.run("DELETE FROM state WHERE name = ?1", params![name])
    }
}
