//! API keys that users create for their programs (contract access-8).
//!
//! A user lists, creates and revokes its own keys. A key is shown once and stored as a hash. Creating a key
//! requires a login, so that a leaked key cannot create other keys, or a token with every scope of a key, so
//! that an application gets no more rights than it was granted. The operator creates the keys of service
//! accounts. A caller with a key can list and revoke keys. A token needs the scope `profile` to revoke keys,
//! as for other changes of the user's own data.

use jiff::Timestamp;

use super::Users;
use crate::access::auth::{Principal, RandomSecret};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::OUTBOX_PER_USER_MAX;
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{ListedKey, NewApiKey, NewMessage};
use api::user::{KeyCreate, MadeKey};
use model::account::{MessageContent, Permission};

/// Valid API keys of one user, and separately the revoked ones that are remembered.
const KEYS_PER_USER_MAX: usize = 100;

impl Users {
    /// Lists the caller's keys that are not revoked, by number.
    pub async fn keys(&self, caller: &Principal) -> Result<Vec<ListedKey>> {
        caller.require(Permission::ReadKeys)?;
        let name = caller.user().user_name.clone();
        Ok(self.db().read(move |tx| tx.list_live_keys(&name)).await?)
    }

    /// Creates the key `new` of the caller.
    ///
    /// Fails with [`ErrorKind::Forbidden`] for a service account, for a caller with a key and for a token
    /// that lacks a scope of a key, and with [`ErrorKind::Conflict`] if the caller has [`KEYS_PER_USER_MAX`]
    /// keys.
    pub async fn create_key(
        &self,
        caller: &Principal,
        new: KeyCreate,
        now: Timestamp,
    ) -> Result<MadeKey> {
        caller.require_person()?;
        // A leaked key must not create other keys, which outlive it.
        caller.refuse_api_key()?;
        caller.require(Permission::MakeKeys)?;
        let secret = RandomSecret::for_copying()?;
        let user = caller.user().id;
        let user_name = caller.user().user_name.clone();
        let KeyCreate { name, read_only } = new;
        let name = name.trim().to_owned();
        let new = NewApiKey { key_hash: secret.hash(), user_name, name, read_only };
        let event = audit::event(AuditAction::KeyCreated);
        let creation = self.auth.write(move |tx| {
            let created = tx.make_key(&new, KEYS_PER_USER_MAX, now)?;
            // Mail and event are part of the transaction: no key appears that its owner cannot
            // notice.
            if let Some(key) = &created {
                let content = MessageContent::KeyMade { name: key.name.clone() };
                let message = NewMessage::about_account(user, content);
                tx.insert_message(&message, OUTBOX_PER_USER_MAX, now)?;
                let event = event.with_object(ObjectKind::Key, key.id);
                tx.write_audit(&event.with_detail(&key.name))?;
            }
            Ok(created)
        });
        let Some(key) = creation.await? else {
            let message = format!("The user has {KEYS_PER_USER_MAX} keys, revoke one first");
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        let ListedKey { id, name, created, read_only, .. } = key;
        // The key itself is stored nowhere.
        Ok(MadeKey { id, name, created, read_only, key: secret.reveal().to_owned() })
    }

    /// Revokes the caller's key with the number `id` for good, with immediate effect.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a key that belongs to a different user, is revoked or never
    /// existed, and with [`ErrorKind::Forbidden`] for a token without the scope `profile`.
    pub async fn revoke_key(&self, caller: &Principal, id: i64, now: Timestamp) -> Result<()> {
        caller.require(Permission::RevokeKeys)?;
        let user = caller.user().id;
        let event = audit::event(AuditAction::KeyRevoked).with_object(ObjectKind::Key, id);
        let not_found = format!("no API key {id}");
        self.auth
            .end_and_record(event, not_found, move |tx| tx.revoke_own_key(user, id, now))
            .await
    }
}
