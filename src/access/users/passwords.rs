//! Passwords of users: links by which they are set, and changes by users who are logged in.
//!
//! A link can be used once: setting a password removes all links of the user in the same transaction. A new
//! password ends sessions and tokens. Keys stay valid unless the user revokes them too, because programs use
//! them.

use std::{net::IpAddr, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{Administration, Users, organization_view::password_link};
use crate::access::auth::{LoginOutcome, PasswordFlaw};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::OUTBOX_PER_USER_MAX;
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{DbError, NewMessage, PasswordLink, WriteTx};
use model::account::{Account, MessageContent, PasswordLinkKind, User, UserId};
use model::limits::USER_NAME_BYTES_MAX;
use model::{ContentHash, network};

/// Lifetime of an invitation, in seconds.
const INVITATION_S: u32 = 7 * 86_400;
/// Lifetime in seconds of a reset link that an administrator created for a user with a password.
const ADMIN_RESET_S: u32 = 86_400;
/// Lifetime in seconds of a link that was requested for a forgotten password.
const RESET_S: u32 = 3600;
/// Valid links of one user at a time: a request by another person does not invalidate the link that the user
/// just requested.
const PASSWORD_LINKS_MAX: usize = 5;
/// Users that one mail about a forgotten password names.
const RESET_USERS_MAX: usize = 20;
/// Mails about a forgotten password per user name or address and hour.
const RESETS_PER_NAME_MAX: usize = 3;
/// Requests for such mails per network and hour.
const RESETS_PER_NETWORK_MAX: usize = 30;
/// Name of the stored secret with which links are signed.
pub const PASSWORD_LINK_KEY: &str = "password-link-key";

/// A valid link that was opened, with its user.
#[derive(Clone, Debug)]
pub struct OpenedLink {
    /// The stored link, without its token.
    pub link: PasswordLink,
    /// The user whose password the link sets.
    pub account: Account,
    /// Number of the user's keys that are not revoked.
    pub keys: u32,
}

/// The outcome of setting a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordOutcome {
    /// The new password is set.
    Done,
    /// The link was used, withdrawn or has expired.
    Gone,
    /// The old password is wrong.
    Wrong,
    /// Too many attempts failed. Holds the number of seconds until the next attempt is allowed.
    Throttled(u64),
    /// The new password is refused.
    Flawed(PasswordFlaw),
}

/// A request to set a new password.
#[derive(Clone, Copy)]
pub struct NewPassword<'a> {
    pub password: &'a str,
    /// True to revoke the user's keys, too.
    pub revokes_keys: bool,
    /// The address of the client.
    pub address: IpAddr,
}

fn new_link(user: UserId, kind: PasswordLinkKind, valid_s: u32, now: Timestamp) -> PasswordLink {
    let expires = now.checked_add(SignedDuration::from_secs(i64::from(valid_s)));
    let expires = expires.unwrap_or(Timestamp::MAX);
    PasswordLink { id: Uuid::new_v4(), user, kind, created: now, expires }
}

/// Writes a link and queues the mail with it.
pub(super) fn invite(
    tx: &WriteTx<'_>,
    user: UserId,
    is_mailed: bool,
    now: Timestamp,
) -> Result<PasswordLink, DbError> {
    let (kind, valid_s) = if tx.has_password(user)? {
        (PasswordLinkKind::Reset, ADMIN_RESET_S)
    } else {
        (PasswordLinkKind::Invitation, INVITATION_S)
    };
    // The previous link may have been sent to a wrong address.
    tx.delete_password_links(user)?;
    let link = new_link(user, kind, valid_s, now);
    tx.write_password_link(&link, PASSWORD_LINKS_MAX)?;
    if is_mailed {
        let content = MessageContent::SetPassword { links: vec![link.id] };
        tx.insert_message(&NewMessage::about_account(user, content), OUTBOX_PER_USER_MAX, now)?;
    }
    Ok(link)
}

/// Creates the audit event for a link of an administrator.
pub(super) fn link_event(event: AuditEvent, link: &PasswordLink, is_mailed: bool) -> AuditEvent {
    let delivery = if is_mailed { "mailed" } else { "passed on" };
    event
        .with_object(ObjectKind::User, link.user)
        .with_detail(format!("{} {delivery}", link.kind.as_str()))
}

impl Users {
    /// Returns whether a mail server is configured, so that links are mailed.
    pub fn sends_mails(&self) -> bool {
        self.settings.sends_mails
    }

    /// Returns whether an invitation can be mailed to `address`.
    pub(super) fn can_mail(&self, address: Option<&str>) -> bool {
        self.settings.sends_mails && address.is_some_and(|address| !address.is_empty())
    }

    /// Returns the token of a link.
    pub fn password_link_token(&self, link: Uuid) -> String {
        self.signer.token(link)
    }

    /// Returns the URL of a link.
    pub fn password_link_url(&self, link: Uuid) -> String {
        let site = self.settings.site_url.trim_end_matches('/');
        format!("{site}/o/password/{}", self.password_link_token(link))
    }

    /// Requests a mail to the users with the user name or e-mail address `text`.
    ///
    /// The time and the content of the response are the same whether there is such a user or not: the request
    /// is counted, and everything else happens afterwards. Fails with [`ErrorKind::Overloaded`] after too
    /// many requests from one network.
    pub async fn request_reset(&self, text: &str, address: IpAddr, now: Timestamp) -> Result<()> {
        let text = text.trim().to_owned();
        // Like an unknown name, such a text gets the usual response (contract users-15).
        if text.is_empty() || text.len() > USER_NAME_BYTES_MAX {
            return Ok(());
        }
        // Bounds the tasks that queue mails after the response.
        let permit = Arc::clone(&self.resets).try_acquire_owned().map_err(|_| {
            Error::overloaded("password_resets", "Many passwords are being requested, try again")
        })?;
        let hour = now.as_second().div_euclid(3600);
        // Only a hash is stored, because the text may be the address of a stranger.
        let name = ContentHash::new(text.to_lowercase().as_bytes()).short();
        let name = format!("reset/{name}");
        let network = format!("reset-network/{}", network(address));
        let event = audit::event(AuditAction::PasswordForgotten);
        let counts = self.db().write(move |tx| {
            let of_network = tx.mails_in_hour(&network, hour)?;
            let of_name = tx.mails_in_hour(&name, hour)?;
            // Beyond the limit nothing is written, so that a flood costs only reads.
            if of_network < RESETS_PER_NETWORK_MAX {
                tx.count_mails(&network, hour, 1)?;
                tx.count_mails(&name, hour, 1)?;
                tx.write_audit(&event)?;
            }
            Ok((of_name, of_network))
        });
        let (of_name, of_network) = counts.await?;
        if of_network >= RESETS_PER_NETWORK_MAX {
            let message =
                "Too many passwords have been requested from your network, try again later";
            let wait_s = 3600 - now.as_second().rem_euclid(3600);
            let wait_s = u32::try_from(wait_s).unwrap_or(3600);
            return Err(Error::overloaded("password_resets", message).retry_after(wait_s));
        }
        // A name at its limit gets no further mail, which the response does not reveal.
        if of_name < RESETS_PER_NAME_MAX && self.settings.sends_mails {
            let users = self.clone();
            // The response does not wait, because its time would reveal whether there is such a
            // user.
            tokio::spawn(async move {
                if let Err(cause) = users.queue_resets(text, hour, now).await {
                    tracing::error!("password reset: the mail cannot be queued: {cause}");
                }
                drop(permit);
            });
        }
        Ok(())
    }

    /// Queues one mail for each address of the users with the user name or address `text`, counted in `hour`.
    async fn queue_resets(&self, text: String, hour: i64, now: Timestamp) -> Result<()> {
        let queueing = self.db().write(move |tx| {
            let mut mails: Vec<(String, UserId, Vec<Uuid>)> = Vec::new();
            for id in tx.find_users_to_reset(&text, RESET_USERS_MAX)? {
                let Some(account) = tx.find_account(id)? else { continue };
                let Some(address) = account.user.email_address else { continue };
                let address = address.to_lowercase();
                let subject =
                    format!("reset-address/{}", ContentHash::new(address.as_bytes()).short());
                let is_new = !mails.iter().any(|(existing, ..)| *existing == address);
                if is_new {
                    // A user may be requested both by user name and by address: count per address
                    // as well.
                    if tx.mails_in_hour(&subject, hour)? >= RESETS_PER_NAME_MAX {
                        continue;
                    }
                    tx.count_mails(&subject, hour, 1)?;
                    mails.push((address.clone(), id, Vec::new()));
                }
                let link = new_link(id, PasswordLinkKind::Reset, RESET_S, now);
                tx.write_password_link(&link, PASSWORD_LINKS_MAX)?;
                let found = mails.iter_mut().find(|(existing, ..)| *existing == address);
                if let Some((_, _, links)) = found {
                    links.push(link.id);
                }
            }
            for (_, user, links) in mails {
                let content = MessageContent::SetPassword { links };
                let message = NewMessage::about_account(user, content);
                tx.insert_message(&message, OUTBOX_PER_USER_MAX, now)?;
            }
            Ok(())
        });
        Ok(queueing.await?)
    }

    /// Opens the link with this token. Returns `None` if the link was used or withdrawn, has expired or was
    /// not created by this service, or if its user is not active.
    pub async fn open_link(&self, token: &str, now: Timestamp) -> Result<Option<OpenedLink>> {
        let Some(id) = self.signer.read(token) else { return Ok(None) };
        let opening = self.db().read(move |tx| {
            let Some(link) = tx.find_password_link(id, now)? else { return Ok(None) };
            let found = tx.find_account(link.user)?.filter(|account| account.user.active);
            let Some(account) = found else { return Ok(None) };
            let keys = tx.count_logins(link.user, now)?.keys;
            Ok(Some(OpenedLink { link, account, keys }))
        });
        Ok(opening.await?)
    }

    /// Sets the password of the link's user.
    ///
    /// Of two concurrent requests with the same link, one gets [`PasswordOutcome::Gone`].
    pub async fn set_by_link(
        &self,
        token: &str,
        new: NewPassword<'_>,
        now: Timestamp,
    ) -> Result<PasswordOutcome> {
        let Some(opened) = self.open_link(token, now).await? else {
            return Ok(PasswordOutcome::Gone);
        };
        let user = opened.account.user;
        let hashed = self.auth.hash_new_password(new.password, &user, new.address).await?;
        let hash = match hashed {
            Ok(hash) => hash,
            Err(flaw) => return Ok(PasswordOutcome::Flawed(flaw)),
        };
        let id = opened.link.id;
        let kind = opened.link.kind;
        let events = PasswordEvents::new(&user, kind.as_str(), new.revokes_keys);
        let change = self.auth.write(move |tx| {
            // Hashing took time: the link may have been used, or its user deactivated, in the
            // meantime.
            let found = tx.find_password_link(id, now)?;
            let account = found.and_then(|link| tx.find_account(link.user).transpose());
            let account = account.transpose()?.filter(|account| account.user.active);
            let Some(account) = account else { return Ok(PasswordOutcome::Gone) };
            store_new_hash(tx, &account.user, &hash, &events, now)?;
            // A user who accepts an invitation needs no notification.
            if kind == PasswordLinkKind::Reset {
                queue_change_mail(tx, account.user.id, now)?;
            }
            Ok(PasswordOutcome::Done)
        });
        Ok(change.await?)
    }

    /// Changes the password of a user who is logged in, after verifying the old password.
    pub async fn change_password(
        &self,
        account: &Account,
        old: &str,
        new: NewPassword<'_>,
        now: Timestamp,
    ) -> Result<PasswordOutcome> {
        let name = &account.user.user_name;
        let login = match self.auth.login(name, old, new.address, now).await? {
            LoginOutcome::Ok(login) => login,
            // The throttle counts this like a login: a stolen session must not serve for guessing.
            LoginOutcome::Refused => return Ok(PasswordOutcome::Wrong),
            LoginOutcome::Throttled(wait_s) => return Ok(PasswordOutcome::Throttled(wait_s)),
        };
        let user = account.user.clone();
        let hashed = self.auth.hash_new_password(new.password, &user, new.address).await?;
        let hash = match hashed {
            Ok(hash) => hash,
            Err(flaw) => return Ok(PasswordOutcome::Flawed(flaw)),
        };
        let events = PasswordEvents::new(&user, "own", new.revokes_keys);
        let replacement = self.auth.write(move |tx| {
            if !login.is_still_valid(tx)? {
                return Ok(PasswordOutcome::Wrong);
            }
            store_new_hash(tx, &user, &hash, &events, now)?;
            queue_change_mail(tx, user.id, now)?;
            Ok(PasswordOutcome::Done)
        });
        Ok(replacement.await?)
    }
}

/// The audit events of a new password.
struct PasswordEvents {
    changed: AuditEvent,
    /// The event for each key of the user; `None` if the keys stay valid.
    revoked: Option<AuditEvent>,
}

impl PasswordEvents {
    fn new(user: &User, method: &str, revokes_keys: bool) -> Self {
        let changed =
            audit::event(AuditAction::PasswordChanged).with_object(ObjectKind::User, user.id);
        let revoked = revokes_keys.then(|| audit::event(AuditAction::KeyRevoked).by_user(user));
        Self { changed: changed.by_user(user).with_detail(method), revoked }
    }
}

fn store_new_hash(
    tx: &WriteTx<'_>,
    user: &User,
    hash: &str,
    events: &PasswordEvents,
    now: Timestamp,
) -> Result<(), DbError> {
    tx.set_user_password(&user.user_name, hash, now)?;
    // Other links could change the password again later.
    tx.delete_password_links(user.id)?;
    tx.write_audit(&events.changed)?;
    if let Some(revoked) = &events.revoked {
        for key in tx.revoke_keys_of(user.id, now)? {
            tx.write_audit(&revoked.clone().with_object(ObjectKind::Key, key))?;
        }
    }
    Ok(())
}

/// Queues a notification of the change, in case a different person made it.
fn queue_change_mail(tx: &WriteTx<'_>, user: UserId, now: Timestamp) -> Result<(), DbError> {
    let message = NewMessage::about_account(user, MessageContent::PasswordChanged);
    tx.insert_message(&message, OUTBOX_PER_USER_MAX, now).map(drop)
}

impl Administration<'_> {
    /// Creates a link by which the user `id` of the organization sets a password, and mails it; without a
    /// mail server, or for a user without an address, the administrator passes it on. Earlier links end.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, with
    /// [`ErrorKind::Conflict`] for a user who may not log in, with `operator_required` for a different user
    /// who is an operator, with `provider_required` for a different user who is a provider unless the
    /// administrator is a provider too, and with [`ErrorKind::Overloaded`] after
    /// [`crate::runtime::limits::USER_REQUESTS_MAX`] requests in an hour.
    pub async fn send_password_link(
        &self,
        id: UserId,
        now: Timestamp,
    ) -> Result<api::organization::PasswordLink> {
        let account = self.load(id).await?;
        self.require_login_of(&account)?;
        let organization = self.organization;
        let administrator = self.administrator;
        let address = account.user.email_address.clone();
        let is_mailed = self.users.can_mail(address.as_deref());
        let event = audit::event(AuditAction::PasswordLinkSent);
        let sending = self.users.auth.write(move |tx| {
            // In the transaction: a role that was given meanwhile ended only earlier links.
            let found = tx.find_account(id)?;
            let protection = found.and_then(|found| super::protection(&found.user, administrator));
            if let Some(refused) = protection {
                return Ok(Err(refused));
            }
            let wait =
                tx.count_user_request(administrator.id, organization, super::USER_REQUESTS, now)?;
            if let Some(at) = wait {
                return Ok(Err(super::too_many_requests(at, now)));
            }
            let link = invite(tx, id, is_mailed, now)?;
            tx.write_audit(&link_event(event, &link, is_mailed))?;
            Ok(Ok(link))
        });
        let link = sending.await??;
        let mailed_to = address.filter(|_| is_mailed);
        // The administrator passes the URL on. It is shown only here.
        let url = mailed_to.is_none().then(|| self.users.password_link_url(link.id));
        Ok(api::organization::PasswordLink { mailed_to, url, ..password_link(&link) })
    }

    /// Withdraws all links of the user `id`.
    ///
    /// Fails with [`ErrorKind::NotFound`] for a user of a different organization, and if there is no link.
    pub async fn withdraw_password_link(&self, id: UserId) -> Result<()> {
        self.load(id).await?;
        let event =
            audit::event(AuditAction::PasswordLinkWithdrawn).with_object(ObjectKind::User, id);
        let not_found = "The user has no link to revoke".to_owned();
        self.users
            .auth
            .end_and_record(event, not_found, move |tx| Ok(tx.delete_password_links(id)? > 0))
            .await
    }

    /// Fails for a user that may not log in with a password.
    fn require_login_of(&self, account: &Account) -> Result<()> {
        let message = if !account.user.active {
            "The user is deactivated, reactivate it first"
        } else if account.user.service_account {
            "The user is a service account and logs in with a key"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Conflict, message))
    }
}
