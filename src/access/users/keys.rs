//! API keys that users make for their programs (contract access-8).
//!
//! A user lists, makes and revokes its own. A key is told once and
//! kept as a hash. Making one takes a login, so that a key that leaked does not live on in others,
//! or a token with every scope of a key, so that an application gets no more than it was allowed;
//! keys of service accounts are made by the operator. With a key they can be listed and revoked.
//! A token revokes keys with the scope `profile`, which is for changes of what is the user's own.

use jiff::Timestamp;

use super::Users;
use crate::access::auth::{Principal, RandomSecret};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{KEYS_PER_USER_MAX, OUTBOX_PER_USER_MAX};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{ListedKey, NewApiKey, NewMessage, WriteTx};
use model::account::{MessageContent, Permission};

/// A key that was made. It has no `Debug`, so that the secret enters no log.
pub struct CreatedKey {
    /// Number, name, time.
    pub key: ListedKey,
    /// The key itself; it is nowhere else.
    pub secret: RandomSecret,
}

impl Users {
    /// The caller's keys that were not revoked, in the order of their numbers.
    pub async fn keys(&self, caller: &Principal) -> Result<Vec<ListedKey>> {
        caller.require(Permission::ReadKeys)?;
        let name = caller.user().user_name.clone();
        Ok(self.db().read(move |tx| tx.list_live_keys(&name)).await?)
    }

    /// Makes a key that is called `name`.
    ///
    /// Fails with [`ErrorKind::Forbidden`] for a service account, for a caller with a key and for a token
    /// that lacks a scope of a key, and with [`ErrorKind::Conflict`] when the caller has
    /// [`KEYS_PER_USER_MAX`] keys.
    pub async fn create_key(
        &self,
        caller: &Principal,
        name: String,
        now: Timestamp,
    ) -> Result<CreatedKey> {
        caller.require_person()?;
        caller.require_login()?;
        let secret = RandomSecret::for_copying()?;
        let (user, user_name) = (caller.user().id, caller.user().user_name.clone());
        let new = NewApiKey { key_hash: secret.hash(), user_name, name };
        let event = audit::event(AuditAction::KeyCreated);
        let write = move |tx: &WriteTx<'_>| {
            let made = tx.make_key(&new, KEYS_PER_USER_MAX, now)?;
            if let Some(key) = &made {
                let content = MessageContent::KeyMade { name: key.name.clone() };
                tx.insert_message(
                    &NewMessage::about_account(user, content),
                    OUTBOX_PER_USER_MAX,
                    now,
                )?;
                tx.write_audit(
                    &event.with_object(ObjectKind::Key, key.id).with_detail(&key.name),
                )?;
            }
            Ok(made)
        };
        let made = self.auth.write(write).await?;
        let too_many = || {
            let message = format!("The user has {KEYS_PER_USER_MAX} keys, revoke one first");
            Error::new(ErrorKind::Conflict, message)
        };
        Ok(CreatedKey { key: made.ok_or_else(too_many)?, secret })
    }

    /// Revokes the caller's key of that number for good; it counts for nothing at once.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a key of somebody else as for one that is revoked or was
    /// never made, and with [`ErrorKind::Forbidden`] for a token without the scope `profile`.
    pub async fn revoke_key(&self, caller: &Principal, id: i64, now: Timestamp) -> Result<()> {
        caller.require(Permission::RevokeKeys)?;
        let user = caller.user().id;
        let event = audit::event(AuditAction::KeyRevoked).with_object(ObjectKind::Key, id);
        let write = move |tx: &WriteTx<'_>| {
            let is_revoked = tx.revoke_own_key(user, id, now)?;
            if is_revoked {
                tx.write_audit(&event)?;
            }
            Ok(is_revoked)
        };
        if self.auth.write(write).await? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, format!("no API key {id}")))
    }
}
