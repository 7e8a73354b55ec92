//! Reads the accounts that identify callers and determine their rights, and logs changes of accounts.

use std::sync::Arc;

use jiff::Timestamp;

use super::{ReadTx, WriteTx, optional_time, parse, parse_json};
use crate::storage::database::account_change::AccountChange;
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::{
    AccessLevels, Account, Agreement, AgreementId, Approver, Organization, OrganizationId,
    PhoneNumbers, PrepaidDownloads, Product, User, UserId,
};

/// An API key that identifies a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerKey {
    /// The owner, whose rights the key has.
    pub user: UserId,
    /// The number of the key.
    pub id: i64,
    /// True if the key changes nothing.
    pub read_only: bool,
}

/// An agreement in the operator's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAgreement {
    pub agreement: Agreement,
    /// The approver of orders under the agreement.
    pub approver: Approver,
}

/// The columns that [`read_user`] reads.
pub(super) const USER_COLUMNS: &str = "user_id, organization_id, user_name, first_name, last_name, \
     email_address, department, phone_direct, phone_mobile, roles, admin, mediebank, active, \
     service_account";

/// Reads the columns [`USER_COLUMNS`].
pub(super) fn read_user(row: &dyn ResultRow) -> DbResult<User> {
    let user_name: String = row.get("user_name")?;
    Ok(User {
        id: row.get("user_id")?,
        organization: row.get("organization_id")?,
        roles: parse_json(&format!("user {user_name}"), row.text("roles")?)?,
        user_name,
        first_name: row.get("first_name")?,
        last_name: row.get("last_name")?,
        email_address: row.get("email_address")?,
        department: row.get("department")?,
        phone: PhoneNumbers { direct: row.get("phone_direct")?, mobile: row.get("phone_mobile")? },
        access: AccessLevels { admin: row.get("admin")?, mediebank: row.get("mediebank")? },
        active: row.get("active")?,
        service_account: row.get("service_account")?,
    })
}

/// Reads the columns `product_id, code, name, description`.
pub(super) fn read_product(row: &dyn ResultRow) -> DbResult<Product> {
    Ok(Product {
        id: row.get("product_id")?,
        code: row.get("code")?,
        name: row.get("name")?,
        description: row.get("description")?,
    })
}

/// The columns that [`read_organization`] reads.
const ORGANIZATION_COLUMNS: &str =
    "organization_id, name, currency, country, address, phone_direct, mail_domains";

/// Reads the columns [`ORGANIZATION_COLUMNS`].
fn read_organization(row: &dyn ResultRow) -> DbResult<Organization> {
    let id: OrganizationId = row.get("organization_id")?;
    let what = format!("organization {id}");
    let domains: Option<String> = row.get("mail_domains")?;
    let domains = domains.map(|text| parse_json(&what, &text)).transpose()?;
    Ok(Organization {
        id,
        name: row.get("name")?,
        currency: row.get("currency")?,
        country: row.get("country")?,
        address: parse_json(&what, row.text("address")?)?,
        phone_direct: row.get("phone_direct")?,
        mail_domains: domains.unwrap_or_default(),
    })
}

/// The columns that [`ReadTx::read_agreement`] reads.
const AGREEMENT_COLUMNS: &str = "agreement_id, organization_id, type, super, name, description, \
     expires_ms, prepaid_total, prepaid_remaining";

impl ReadTx<'_> {
    /// Finds the API key with that hash. Returns `None` if the key was revoked.
    pub fn find_key(&self, key: &ContentHash) -> DbResult<Option<CallerKey>> {
        // Revoked keys are retained for lists, but identify no caller.
        let sql = "SELECT user_id, key_id, read_only FROM api_keys
             WHERE key_hash = ?1 AND revoked_ms IS NULL";
        self.tx.find(sql, params![key], |row| {
            Ok(CallerKey {
                user: row.get("user_id")?,
                id: row.get("key_id")?,
                read_only: row.get("read_only")?,
            })
        })
    }

    /// Finds the user with its organization and agreements.
    pub fn find_account(&self, id: UserId) -> DbResult<Option<Account>> {
        let Some(user) = self.find_user(id)? else { return Ok(None) };
        let organization = match user.organization {
            Some(id) => self.find_organization(id)?.map(Arc::new),
            None => None,
        };
        let agreements = self.list_agreements_of_user(id)?;
        Ok(Some(Account { user, organization, agreements }))
    }

    /// Finds the user with this id, active or not.
    pub fn find_user(&self, id: UserId) -> DbResult<Option<User>> {
        let sql = format!("SELECT {USER_COLUMNS} FROM users WHERE user_id = ?1");
        self.tx.find(&sql, params![id], read_user)
    }

    /// Finds the user with this name, and the argon2id hash of its password if it has one.
    pub fn find_user_by_name(&self, user_name: &str) -> DbResult<Option<(User, Option<String>)>> {
        let sql = format!("SELECT {USER_COLUMNS}, password FROM users WHERE user_name = ?1");
        self.tx.find(&sql, params![user_name], |row| Ok((read_user(row)?, row.get("password")?)))
    }

    /// Finds the organization with this id.
    pub fn find_organization(&self, id: OrganizationId) -> DbResult<Option<Organization>> {
        let sql =
            format!("SELECT {ORGANIZATION_COLUMNS} FROM organizations WHERE organization_id = ?1");
        self.tx.find(&sql, params![id], read_organization)
    }

    /// Lists all organizations in the order of their numbers.
    pub fn list_stored_organizations(&self) -> DbResult<Vec<Organization>> {
        let sql =
            format!("SELECT {ORGANIZATION_COLUMNS} FROM organizations ORDER BY organization_id");
        self.tx.list(&sql, params![], read_organization)
    }

    /// Lists all products in the order of their numbers.
    pub fn list_stored_products(&self) -> DbResult<Vec<Product>> {
        let sql = "SELECT product_id, code, name, description FROM products ORDER BY product_id";
        self.tx.list(sql, params![], read_product)
    }

    /// Lists all agreements in the order of their numbers, including expired ones.
    pub fn list_stored_agreements(&self) -> DbResult<Vec<ListedAgreement>> {
        let sql =
            format!("SELECT {AGREEMENT_COLUMNS}, approver FROM agreements ORDER BY agreement_id");
        self.tx.list(&sql, params![], |row| {
            let agreement = self.read_agreement(row)?;
            let approver: Option<String> = row.get("approver")?;
            let what = format!("agreement {}", agreement.id);
            // The default approver is not stored.
            let approver = approver.map(|word| parse(&what, &word)).transpose()?;
            Ok(ListedAgreement { agreement, approver: approver.unwrap_or_default() })
        })
    }

    /// Lists the agreements of a user in the order of their numbers, including expired ones.
    pub fn list_agreements_of_user(&self, id: UserId) -> DbResult<Vec<Agreement>> {
        let sql = format!(
            "SELECT {AGREEMENT_COLUMNS} FROM agreements JOIN user_agreements USING (agreement_id)
                 WHERE user_id = ?1 ORDER BY agreement_id"
        );
        self.tx.list(&sql, params![id], |row| self.read_agreement(row))
    }

    /// Finds the agreement with this id, expired or not.
    pub fn find_agreement(&self, id: AgreementId) -> DbResult<Option<Agreement>> {
        let sql = format!("SELECT {AGREEMENT_COLUMNS} FROM agreements WHERE agreement_id = ?1");
        self.tx.find(&sql, params![id], |row| self.read_agreement(row))
    }

    /// Lists the changes of accounts after the row `after` of their log, with the number of the last row. If
    /// rows may have been removed unread, the list begins with [`AccountChange::Everything`].
    ///
    /// Rows are removed only from the front of the log, so if the row `after` exists, no row after it is
    /// missing. A gap in the numbers comes from a transaction that failed, because some engines do not reuse
    /// them.
    pub fn account_changes(&self, after: i64) -> DbResult<(i64, Vec<AccountChange>)> {
        let mut last = after;
        let mut changes = Vec::new();
        let mut is_complete = false;
        let sql = "SELECT seq, kind, id FROM account_log WHERE seq >= ?1 ORDER BY seq";
        self.tx.each(sql, params![after], |row| {
            let seq: i64 = row.get("seq")?;
            if seq == after {
                is_complete = true;
                return Ok(());
            }
            // The row `after` no longer exists, so rows after it may have been removed unread.
            if !is_complete && seq != last + 1 {
                changes.push(AccountChange::Everything);
            }
            is_complete = true;
            changes.push(AccountChange::parse(row.text("kind")?, row.text("id")?));
            last = seq;
            Ok(())
        })?;
        Ok((last, changes))
    }

    /// Returns the number of the last row ever written to the account log.
    pub fn account_seq(&self) -> DbResult<i64> {
        let sql = "SELECT coalesce(max(seq), 0) FROM account_log";
        self.tx.load_value(sql, params![])
    }

    fn read_agreement(&self, row: &dyn ResultRow) -> DbResult<Agreement> {
        let id: AgreementId = row.get("agreement_id")?;
        let what = format!("agreement {id}");
        let total: Option<u32> = row.get("prepaid_total")?;
        let remaining: Option<u32> = row.get("prepaid_remaining")?;
        let prepaids = total.zip(remaining);
        Ok(Agreement {
            id,
            organization: row.get("organization_id")?,
            kind: parse(&what, row.text("type")?)?,
            super_agreement: row.get("super")?,
            products: self.list_products_of_agreement(id)?,
            name: row.get("name")?,
            description: row.get("description")?,
            expires: optional_time(&what, row.get("expires_ms")?)?,
            prepaids: prepaids.map(|(total, remaining)| PrepaidDownloads { total, remaining }),
        })
    }

    fn list_products_of_agreement(&self, id: AgreementId) -> DbResult<Vec<Product>> {
        let sql = "SELECT product_id, code, name, description
             FROM products JOIN agreement_products USING (product_id)
             WHERE agreement_id = ?1 ORDER BY product_id";
        self.tx.list(sql, params![id], read_product)
    }
}

impl WriteTx<'_> {
    /// Notifies every process that its caches must invalidate `change`. Called in the transaction that makes
    /// the change.
    pub fn log_account_change(&self, change: AccountChange, now: Timestamp) -> DbResult<()> {
        let (what, id) = change.print();
        let sql = "INSERT INTO account_log (kind, id, at_ms) VALUES (?1, ?2, ?3)";
        self.tx.run(sql, params![what, id, now])?;
        // The caches of this process invalidate it after the commit, without waiting for the follower.
        self.changes.borrow_mut().push(change);
        Ok(())
    }

    /// Returns the changes that this transaction has logged so far, for the caches of this process.
    pub fn account_changes(&self) -> Vec<AccountChange> {
        self.changes.borrow().clone()
    }

    /// Removes at most `limit` rows of the account log that are older than `before`, oldest first. Retains
    /// the last row, which shows readers that they missed nothing.
    pub fn sweep_account_log(&self, before: Timestamp, limit: usize) -> DbResult<usize> {
        let sql = "DELETE FROM account_log WHERE seq IN (SELECT seq FROM account_log
                 WHERE seq < coalesce((SELECT min(seq) FROM account_log WHERE at_ms >= ?1),
                     (SELECT max(seq) FROM account_log))
                 ORDER BY seq LIMIT ?2)";
        self.tx.execute(sql, params![before, limit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    #[test]
    fn unused_numbers_do_not_count_as_swept_rows() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let log = |rows: &[i64]| {
            let row = |seq: &i64| format!("({seq}, 'user', '{seq}', {seq})");
            let rows = rows.iter().map(row).collect::<Vec<_>>().join(", ");
            let sql = format!("INSERT INTO account_log (seq, kind, id, at_ms) VALUES {rows}");
            db.write_blocking(move |tx| tx.run_sql(&sql)).unwrap();
        };
        let behind = |after: i64| db.read_blocking(move |tx| tx.account_changes(after)).unwrap();
        let sweep = |before: i64| {
            let before = Timestamp::from_millisecond(before).unwrap();
            db.write_blocking(move |tx| tx.sweep_account_log(before, 100)).unwrap()
        };
        let user = |id| AccountChange::User(UserId(id));
        log(&[1, 3, 7]);
        assert_eq!(behind(0), (7, vec![user(1), user(3), user(7)]));
        assert_eq!(behind(1), (7, vec![user(3), user(7)]));
        assert_eq!(behind(7), (7, vec![]));
        // The last row stays, for followers that have read up to it.
        assert_eq!(sweep(100), 2);
        log(&[9, 12]);
        assert_eq!(behind(7), (12, vec![user(9), user(12)]));
        let (last, changes) = behind(1);
        assert_eq!((last, changes.first()), (12, Some(&AccountChange::Everything)));
        assert_eq!(sweep(10), 2, "7 and 9");
        assert_eq!(behind(9), (12, vec![AccountChange::Everything, user(12)]));
    }
}
