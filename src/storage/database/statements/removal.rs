//! Removes users, clients and API keys with everything that belongs to them alone, then the agreements, products and
//! organizations of an accounts file that are no longer used.

use jiff::Timestamp;

use super::WriteTx;
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::params;
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::accounts_file::{AgreementEntry, ProductEntry};
use model::account::{Organization, UserId};

/// The outcome of removing a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedUser {
    /// The user is removed, with its keys, channels, collections and notifications.
    Removed,
    /// Orders refer to the user, so it stays, but has neither password nor keys and cannot log in.
    Disabled,
}

impl WriteTx<'_> {
    /// Removes the API key with that hash. Returns `false` if there is none or it is revoked: a revoked key
    /// stays, so that an accounts file cannot reactivate it.
    pub fn remove_key(&self, hash: &ContentHash, now: Timestamp) -> DbResult<bool> {
        let sql = "DELETE FROM api_keys WHERE key_hash = ?1 AND revoked_ms IS NULL";
        let removed = self.tx.changes(sql, params![hash])?;
        if removed {
            self.log_account_change(AccountChange::Key(*hash), now)?;
        }
        Ok(removed)
    }

    /// Removes a user with everything it owns. A user that orders refer to is disabled for good instead.
    pub fn remove_user(&self, id: UserId, now: Timestamp) -> DbResult<RemovedUser> {
        // First, because it reads the sessions and tokens that caches must invalidate.
        self.end_logins(id, now)?;
        let sql = "SELECT 1 FROM orders WHERE user_id = ?1";
        let removed = if self.tx.exists(sql, params![id])? {
            // An order keeps its buyer, so the row stays.
            let sql = "UPDATE users SET active = FALSE, password = NULL WHERE user_id = ?1";
            self.tx.run(sql, params![id])?;
            self.tx.run("DELETE FROM api_keys WHERE user_id = ?1", params![id])?;
            RemovedUser::Disabled
        } else {
            self.tx.run("DELETE FROM users WHERE user_id = ?1", params![id])?;
            RemovedUser::Removed
        };
        // All accounts, because the user's keys must leave the caches too.
        self.log_account_change(AccountChange::Everything, now)?;
        Ok(removed)
    }

    /// Removes a client with all its grants. Returns `false` if there is none.
    pub fn remove_client(&self, client_id: &str, now: Timestamp) -> DbResult<bool> {
        // Deactivation makes caches invalidate its tokens.
        if !self.set_client_active(client_id, false, now)? {
            return Ok(false);
        }
        self.tx.run("DELETE FROM clients WHERE client_id = ?1", params![client_id])?;
        Ok(true)
    }

    /// Removes the agreement of `entry` if neither users nor orders refer to it and its organization, type and name are
    /// those of the entry. Returns whether it was removed.
    pub fn remove_unused_agreement(&self, entry: &AgreementEntry) -> DbResult<bool> {
        // An agreement that was changed since its import belongs to the operator (contract operation-18).
        let sql = "DELETE FROM agreements WHERE agreement_id = ?1 AND organization_id = ?2
                 AND type = ?3 AND name IS NOT DISTINCT FROM ?4
                 AND NOT EXISTS (SELECT 1 FROM user_agreements
                     WHERE user_agreements.agreement_id = agreements.agreement_id)
                 AND NOT EXISTS (SELECT 1 FROM orders
                     WHERE orders.agreement_id = agreements.agreement_id)";
        let AgreementEntry { id, organization, kind, name, .. } = entry;
        self.tx.changes(sql, params![id, organization, kind, name.as_deref()])
    }

    /// Removes the product of `entry` with its licences if no agreement refers to it, its name is that of the entry, and
    /// all its licences are in `licenses`, a list of UUIDs. Returns the number of licences removed, or `None` if the
    /// product stays.
    pub fn remove_unused_product(
        &self,
        entry: &ProductEntry,
        licenses: &[String],
    ) -> DbResult<Option<usize>> {
        let sql = "SELECT product_id FROM products WHERE code = ?1
             AND name IS NOT DISTINCT FROM ?2
             AND NOT EXISTS (SELECT 1 FROM agreement_products
                 WHERE agreement_products.product_id = products.product_id)";
        let id: Option<i64> =
            self.tx.find_value(sql, params![&*entry.code, entry.name.as_deref()])?;
        let Some(id) = id else { return Ok(None) };
        let sql = "SELECT uuid FROM licenses WHERE product_id = ?1";
        let stored: Vec<String> = self.tx.list_values(sql, params![id])?;
        // A licence that the operator added would be lost with the product.
        if !stored.iter().all(|uuid| licenses.contains(uuid)) {
            return Ok(None);
        }
        self.tx.run("DELETE FROM licenses WHERE product_id = ?1", params![id])?;
        self.tx.run("DELETE FROM products WHERE product_id = ?1", params![id])?;
        Ok(Some(stored.len()))
    }

    /// Removes an organization if nothing belongs to it and it equals `imported`, its entry in the accounts file. Returns
    /// whether it was removed.
    pub fn remove_unused_organization(&self, imported: &Organization) -> DbResult<bool> {
        if self.find_organization(imported.id)?.as_ref() != Some(imported) {
            return Ok(false);
        }
        let sql = "DELETE FROM organizations WHERE organization_id = ?1
                 AND NOT EXISTS (SELECT 1 FROM users WHERE organization_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM agreements WHERE organization_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM orders WHERE organization_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE organization_id = ?1)
                 AND NOT EXISTS (SELECT 1 FROM metadata_templates WHERE organization_id = ?1)";
        self.tx.changes(sql, params![imported.id])
    }
}
