//! Mail clearance: rate limits per user and recipient, and the consent of recipients other than the user.
//!
//! Users may enter any address in notifications and e-mail channels, so the service can mail people who did not
//! ask for it. Three mechanisms prevent abuse. Mails are counted by the hour in the database, so that neither a
//! second node nor a restart raises the limit. The first mail to an address other than the user's own names the
//! sender and links to a page that stops further mails, and a user reaches only a few new addresses in a day. If the
//! operator requires confirmation, such an address gets no mail before its owner agrees on that page.
//!
//! The operator's channels are exempt, because users cannot abuse them.
//! Contract notifications-19, notifications-20, notifications-21.

mod texts;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::access::auth::{Principal, RandomSecret};
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::{SWEEP_ROWS, TOKEN_BYTES_MAX};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{Db, DbResult, MailRecipient, WriteTx};
use crate::transport::{Introduction, MailAddress, Mailer};
use model::ContentHash;
use model::account::{User, UserId};

/// The length of the rate-limit window, in seconds.
const HOUR_S: i64 = 3600;
/// The hours in a day, for which new addresses are counted.
const DAY_HOURS: i64 = 24;
/// Addresses of others that a user mails for the first time in a day (UTC) without their consent: enough for a desk,
/// too few for unsolicited mail.
const NEW_ADDRESSES_PER_DAY: usize = 5;
/// Maximum number of stored recipients per user; the least recently mailed recipient is evicted first.
const RECIPIENTS_PER_USER_MAX: usize = 10_000;
/// Time within which a recipient can agree to mails.
const CONFIRM_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Time after which a recipient who did not agree is asked again.
const CONFIRM_RETRY_INTERVAL: Duration = Duration::from_secs(30 * 86_400);
/// Interval at which a waiting mail re-checks whether its recipient agreed.
const CONFIRM_POLL_INTERVAL: Duration = Duration::from_secs(3600);
/// Time after the last mail after which a recipient is removed.
const RECIPIENT_RETENTION: Duration = Duration::from_secs(400 * 86_400);
/// Number of hours for which mail counts are stored, including the current hour: the first hour of a day has its count of
/// new addresses.
const HOURS_COUNTED: i64 = DAY_HOURS + 1;
/// Interval between sweeps of old counts and recipients.
pub const RECIPIENT_SWEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// The rate limits and confirmation rules for mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientSettings {
    /// The maximum number of mails of one user per hour; 0 for no limit.
    pub user_per_hour: u32,
    /// The maximum number of mails to one address per hour; 0 for no limit.
    pub recipient_per_hour: u32,
    /// True if recipients other than the user have to agree first.
    pub confirm_foreign: bool,
    /// The base URL of the links in mails.
    pub site_url: String,
    /// The name of the service in mails.
    pub site_name: String,
}

impl RecipientSettings {
    /// Reads the settings of the section `mail`.
    pub fn from_config(config: &Config) -> Self {
        Self {
            user_per_hour: config.mail.user_per_hour,
            recipient_per_hour: config.mail.recipient_per_hour,
            confirm_foreign: config.mail.confirm_foreign,
            site_url: config.site_url().to_owned(),
            site_name: config.server.site_name.clone(),
        }
    }
}

/// The decision whether a mail may be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailClearance {
    /// The mail may be sent. It must introduce the sender to these recipients.
    Granted(Vec<Introduction>),
    /// The mail may not be sent yet.
    Postponed {
        /// The time at which the mail may be retried.
        at: Timestamp,
        /// A sentence for the user.
        why: String,
    },
    /// The mail may not be sent at all.
    Refused {
        /// The label of the refusal in metrics.
        reason: &'static str,
        /// A sentence for the user.
        why: String,
    },
}

/// The user and the address to which a link in a mail refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The name and organization of the user, as in the mail.
    pub sender: String,
    pub address: String,
    /// True if the recipient stopped the mails.
    pub is_refused: bool,
    /// True if mails are waiting for the recipient to agree.
    pub is_awaited: bool,
}

/// The registry of mail recipients; cheap to clone.
#[derive(Clone)]
pub struct Recipients {
    inner: Arc<RecipientsInner>,
}

struct RecipientsInner {
    db: Db,
    mailer: Mailer,
    settings: HotSwap<RecipientSettings>,
}

/// A recipient of a mail, with a new token for the response. It is used if the sender must be introduced to the
/// recipient, or the recipient be asked for confirmation.
struct NewRecipient {
    to: MailAddress,
    token: RandomSecret,
}

impl NewRecipient {
    /// Returns the URL of the page on which the recipient responds.
    fn url(&self, site_url: &str) -> String {
        format!("{site_url}/mail/{}", self.token.reveal())
    }
}

impl Recipients {
    /// Creates the registry over `db`; confirmation mails are sent through `mailer`.
    pub fn new(db: Db, mailer: Mailer, settings: RecipientSettings) -> Self {
        Self { inner: Arc::new(RecipientsInner { db, mailer, settings: HotSwap::new(settings) }) }
    }

    /// Replaces the settings for later mails.
    pub fn set_settings(&self, settings: RecipientSettings) {
        self.inner.settings.set(settings);
    }

    /// Decides whether a mail of `user` to `to` may be sent now, and counts it if it may.
    ///
    /// The caller calls [`Recipients::record_introductions`] after the mail was sent. Recipients who have to agree
    /// first are asked here, once. Fails if the database cannot be written or a confirmation mail cannot be sent.
    pub async fn clear(
        &self,
        user: &Principal,
        to: &[MailAddress],
        now: Timestamp,
    ) -> Result<MailClearance> {
        let settings = self.inner.settings.get();
        let account = Arc::clone(user.account());
        let rules = Arc::clone(&settings);
        let to =
            to.iter().map(|to| Ok(NewRecipient { to: to.clone(), token: RandomSecret::new()? }));
        let to = to.collect::<Result<Vec<_>>>()?;
        let decision = self.inner.db.write(move |tx| decide(tx, &account.user, to, &rules, now));
        let sender = texts::sender(user.account());
        let site_name = settings.site_name.as_str();
        let fresh = match decision.await? {
            Ok(fresh) => fresh,
            Err(clearance) => return Ok(clearance),
        };
        if fresh.is_empty() || !settings.confirm_foreign {
            let introductions = fresh.iter().map(|recipient| {
                let url = recipient.url(&settings.site_url);
                texts::introduction(&recipient.to, &sender, site_name, &url)
            });
            return Ok(MailClearance::Granted(introductions.collect()));
        }
        for recipient in &fresh {
            let url = recipient.url(&settings.site_url);
            let mail = texts::confirmation(&recipient.to, &sender, site_name, &url, now);
            if let Err(cause) = Box::pin(self.inner.mailer.send(&mail)).await {
                let why = format!("consent of a recipient cannot be requested: {cause}");
                // The recipient was not asked, so the next attempt creates a new link.
                if cause.is_temporary() {
                    let at = after(now, CONFIRM_POLL_INTERVAL);
                    return Ok(MailClearance::Postponed { at, why });
                }
                // An address that the server refuses permanently can never agree.
                return Ok(MailClearance::Refused { reason: "unconfirmed", why });
            }
            // Marked after sending: after a crash in between, the recipient is asked twice rather than never.
            let id = user.user().id;
            let address = normal(&recipient.to);
            let db = &self.inner.db;
            db.write(move |tx| tx.mark_mail_recipient_asked(id, &address, now)).await?;
        }
        Ok(awaiting_confirmation(now))
    }

    /// Refunds the count of a mail of `user` to `to` at the time `counted`. The mail was not sent, and its next
    /// attempt is counted again. A failure is only logged.
    ///
    /// The count of new addresses stays: they are stored, so that no later mail to them is counted as a first one.
    pub async fn refund(&self, user: UserId, to: &[MailAddress], counted: Timestamp) {
        let mailboxes: Vec<String> = to.iter().map(normal).collect();
        let settings = self.inner.settings.get();
        let refund = self.inner.db.write(move |tx| {
            for (subject, mails, _) in subjects(user, &mailboxes, &settings) {
                tx.uncount_mails(&subject, hour_of(counted), mails)?;
            }
            Ok(())
        });
        if let Err(cause) = refund.await.map_err(Error::from) {
            tracing::warn!("mail count cannot be refunded: {cause}");
        }
    }

    /// Records that the sender was introduced to these recipients. A failure is only logged, because the next mail
    /// introduces the sender again.
    pub async fn record_introductions(
        &self,
        user: UserId,
        introductions: &[Introduction],
        now: Timestamp,
    ) {
        for introduction in introductions {
            let address = normal(&introduction.to);
            let db = &self.inner.db;
            let writing = db.write(move |tx| tx.mark_mail_recipient_notified(user, &address, now));
            if let Err(cause) = writing.await.map_err(Error::from) {
                tracing::warn!("introduction of a mail recipient cannot be recorded: {cause}");
                return;
            }
        }
    }

    /// Looks up the link with `token`; `None` for an expired or unknown token.
    pub async fn invitation(&self, token: &str, now: Timestamp) -> Result<Option<Invitation>> {
        let Some(hash) = hash_of(token) else { return Ok(None) };
        let found = self.inner.db.read(move |tx| {
            let Some(found) = tx.find_mail_recipient_of_token(hash)? else { return Ok(None) };
            let account = tx.find_account(found.user)?;
            Ok(account.map(|account| (found, account)))
        });
        let Some((found, account)) = found.await? else { return Ok(None) };
        let requires_consent = self.inner.settings.get().confirm_foreign;
        Ok(Some(Invitation {
            sender: texts::sender(&account),
            is_refused: found.refused.is_some(),
            is_awaited: requires_consent && found.confirmed.is_none() && may_answer(&found, now),
            address: found.address,
        }))
    }

    /// Records the response of a recipient. Returns whether it was accepted.
    ///
    /// Mails can be stopped while the token is stored. Agreeing requires a token of the last seven days, unless
    /// the recipient revokes a refusal.
    pub async fn answer(&self, token: &str, agrees: bool, now: Timestamp) -> Result<bool> {
        let Some(hash) = hash_of(token) else { return Ok(false) };
        let event = audit::event(AuditAction::MailAnswered);
        let answer = self.inner.db.write(move |tx| {
            let Some(found) = tx.find_mail_recipient_of_token(hash)? else { return Ok(false) };
            if agrees && found.refused.is_none() && !may_answer(&found, now) {
                return Ok(false);
            }
            let written = tx.answer_mail_recipient(hash, agrees, now)?;
            // A link can be followed any number of times, so a repeated response writes no audit event.
            let before = if agrees { found.confirmed } else { found.refused };
            if written && before.is_none() {
                let answer = if agrees { "agreed" } else { "stopped" };
                let event = event.with_object(ObjectKind::User, found.user);
                tx.write_audit(&event.with_detail(format!("{} {answer}", found.address)))?;
            }
            // Mails that waited for the response are due now.
            tx.retry_mails_now(found.user, now)?;
            Ok(written)
        });
        Ok(answer.await?)
    }

    /// Removes a batch of old counts and of recipients without recent mails. Returns the number of removed rows.
    pub async fn sweep(&self, now: Timestamp) -> Result<usize> {
        let hour = hour_of(now) - HOURS_COUNTED + 1;
        let unused = now - RECIPIENT_RETENTION;
        let sweep =
            self.inner.db.write(move |tx| tx.sweep_mail_recipients(hour, unused, SWEEP_ROWS));
        Ok(sweep.await?)
    }
}

/// Decides in one transaction, so that concurrent mails see each other's counts. Returns the recipients who must be
/// introduced to the sender or asked for confirmation.
fn decide(
    tx: &WriteTx<'_>,
    user: &User,
    to: Vec<NewRecipient>,
    settings: &RecipientSettings,
    now: Timestamp,
) -> DbResult<Result<Vec<NewRecipient>, MailClearance>> {
    let mailboxes: Vec<String> = to.iter().map(|recipient| normal(&recipient.to)).collect();
    let mut fresh = Vec::new();
    let mut is_awaited = false;
    for (new, address) in to.into_iter().zip(&mailboxes) {
        // The user's own address needs neither an introduction nor a confirmation.
        if is_own(user, address) {
            continue;
        }
        let recipient = tx.find_mail_recipient(user.id, address)?;
        if recipient.as_ref().is_some_and(|recipient| recipient.refused.is_some()) {
            let why = format!("{address} has declined mails from this user");
            return Ok(Err(MailClearance::Refused { reason: "refused", why }));
        }
        let asked_at = recipient.as_ref().and_then(|recipient| recipient.confirmation_sent);
        let may_be_mailed = recipient.is_some_and(|recipient| {
            let is_informed =
                recipient.notified.is_some() || recipient.confirmation_sent.is_some();
            recipient.confirmed.is_some() || (is_informed && !settings.confirm_foreign)
        });
        match asked_at {
            // Touched, because the least recently mailed recipients are evicted first.
            _ if may_be_mailed => tx.touch_mail_recipient(user.id, address, now)?,
            // A recipient who was only introduced is asked when the operator requires confirmation.
            Some(asked_at) if now < after(asked_at, CONFIRM_TIME) => is_awaited = true,
            // Asked without a response: asking again so soon would itself be unwanted mail.
            Some(asked_at) if now < after(asked_at, CONFIRM_RETRY_INTERVAL) => {
                let why = format!("{address} has not agreed to mails from this user");
                return Ok(Err(MailClearance::Refused { reason: "unconfirmed", why }));
            }
            Some(_) | None => fresh.push((new, address.clone())),
        }
    }
    // Comes before the count, because a mail that waits for a response must not use up the rate limit.
    if is_awaited {
        return Ok(Err(awaiting_confirmation(now)));
    }
    if !settings.confirm_foreign
        && let Some(postponed) = admit_new_addresses(tx, user.id, &fresh, now)?
    {
        return Ok(Err(postponed));
    }
    if let Some(postponed) = count(tx, user.id, &mailboxes, settings, now)? {
        return Ok(Err(postponed));
    }
    for (recipient, address) in &fresh {
        // Only the hash is stored, so a copy of the database contains no working link.
        tx.set_mail_token(user.id, address, recipient.token.hash(), now)?;
    }
    if !fresh.is_empty() {
        tx.trim_mail_recipients(user.id, RECIPIENTS_PER_USER_MAX)?;
    }
    Ok(Ok(fresh.into_iter().map(|(recipient, _)| recipient).collect()))
}

/// Counts the addresses that a user mails for the first time. Returns a postponement if there are more than
/// [`NEW_ADDRESSES_PER_DAY`] today, and a refusal if there are too many for tomorrow as well (contract
/// notifications-20).
fn admit_new_addresses(
    tx: &WriteTx<'_>,
    user: UserId,
    recipients: &[(NewRecipient, String)],
    now: Timestamp,
) -> DbResult<Option<MailClearance>> {
    let day = hour_of(now).div_euclid(DAY_HOURS) * DAY_HOURS;
    let subject = format!("new:{user}");
    let mut admitted = tx.mails_in_hour(&subject, day)?;
    let mut waiting = 0;
    for (recipient, address) in recipients {
        if tx.find_mail_recipient(user, address)?.is_some() {
            continue;
        }
        if admitted >= NEW_ADDRESSES_PER_DAY {
            waiting += 1;
            continue;
        }
        // Stored at once, so a mail to more addresses than a day admits is sent after several days.
        tx.set_mail_token(user, address, recipient.token.hash(), now)?;
        tx.count_mails(&subject, day, 1)?;
        admitted += 1;
    }
    let why = "the daily limit of new mail addresses is reached";
    // By default, a delivery is retried for a day, which would end before the mail may be sent.
    if waiting > NEW_ADDRESSES_PER_DAY {
        let why = format!("{why} and leaves {waiting} for later days: send it again tomorrow");
        return Ok(Some(MailClearance::Refused { reason: "new_addresses", why }));
    }
    let at = Timestamp::from_second((day + DAY_HOURS) * HOUR_S).unwrap_or(now);
    Ok((waiting > 0).then(|| MailClearance::Postponed { at, why: why.to_owned() }))
}

/// Counts a mail for its user and its recipients. Returns a postponement if one of them has reached its limit this
/// hour.
fn count(
    tx: &WriteTx<'_>,
    user: UserId,
    mailboxes: &[String],
    settings: &RecipientSettings,
    now: Timestamp,
) -> DbResult<Option<MailClearance>> {
    let hour = hour_of(now);
    let subjects = subjects(user, mailboxes, settings);
    // All limits are checked before anything is counted, so a postponed mail uses up none of them.
    for (subject, mails, max) in &subjects {
        let max = usize::try_from(*max).unwrap_or(usize::MAX);
        let before = tx.mails_in_hour(subject, hour)?;
        // A mail with more recipients than the limit is sent if it is the first of its hour; otherwise it could
        // never be sent.
        if max > 0 && before > 0 && before.saturating_add(*mails) > max {
            let at = Timestamp::from_second((hour + 1) * HOUR_S).unwrap_or(now);
            let why = "the hourly limit of mails is reached".to_owned();
            return Ok(Some(MailClearance::Postponed { at, why }));
        }
    }
    for (subject, mails, _) in &subjects {
        tx.count_mails(subject, hour, *mails)?;
    }
    Ok(None)
}

/// Lists the counters of a mail: key, number of mails to add, and limit.
fn subjects(
    user: UserId,
    mailboxes: &[String],
    settings: &RecipientSettings,
) -> Vec<(String, usize, u32)> {
    let recipients = mailboxes
        .iter()
        .map(|address| (format!("to:{}", untagged(address)), 1, settings.recipient_per_hour));
    let all = (format!("user:{user}"), mailboxes.len(), settings.user_per_hour);
    std::iter::once(all).chain(recipients).collect()
}

/// Returns whether the address is the user's own: the address of the account, or the user name.
fn is_own(user: &User, address: &str) -> bool {
    let own = [user.email_address.as_deref(), Some(user.user_name.as_str())];
    own.into_iter().flatten().any(|own| own.eq_ignore_ascii_case(address))
}

/// Normalizes an address for comparison. In practice no mailboxes differ only in case.
fn normal(to: &MailAddress) -> String {
    to.mailbox().to_ascii_lowercase()
}

/// Removes the tag of an address, so that tags do not multiply a mailbox's limit: `desk+a@example.org` becomes
/// `desk@example.org`.
fn untagged(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, host)) => {
            let local = local.split_once('+').map_or(local, |(local, _)| local);
            format!("{local}@{host}")
        }
        None => address.to_owned(),
    }
}

fn hash_of(token: &str) -> Option<ContentHash> {
    // A longer text cannot be a token, and hashing it would let anonymous callers waste CPU time.
    (token.len() <= TOKEN_BYTES_MAX).then(|| ContentHash::new(token.as_bytes()))
}

fn hour_of(now: Timestamp) -> i64 {
    now.as_second().div_euclid(HOUR_S)
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// Returns whether the recipient may still agree.
fn may_answer(found: &MailRecipient, now: Timestamp) -> bool {
    found
        .confirmation_sent
        .or(found.notified)
        .is_none_or(|asked_at| now < after(asked_at, CONFIRM_TIME))
}

fn awaiting_confirmation(now: Timestamp) -> MailClearance {
    let why = "a recipient has not agreed to mails yet".to_owned();
    MailClearance::Postponed { at: after(now, CONFIRM_POLL_INTERVAL), why }
}

#[cfg(test)]
mod tests;
