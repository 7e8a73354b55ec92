//! Stores the recipients of mails: the number of mails sent to each, and the consent of recipients other than
//! the user.

use jiff::Timestamp;

use super::{ALL_BEHIND, ReadTx, WriteTx, optional_time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::UserId;

/// A mail address that a user entered and that is not the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRecipient {
    /// The user whose mails are sent to the address.
    pub user: UserId,
    /// The address, in lower case.
    pub address: String,
    /// Time at which the recipient was informed of the user's name, ahead of a mail; `None`: not yet.
    pub notified: Option<Timestamp>,
    /// Time at which the recipient was requested to confirm the mails; `None`: not yet.
    pub confirmation_sent: Option<Timestamp>,
    /// Time at which the recipient confirmed the mails.
    pub confirmed: Option<Timestamp>,
    /// Time at which the recipient refused the mails.
    pub refused: Option<Timestamp>,
}

/// The columns that [`read_recipient`] reads.
const COLUMNS: &str =
    "user_id, address, notified_ms, confirmation_sent_ms, confirmed_ms, refused_ms";

fn read_recipient(row: &dyn ResultRow) -> DbResult<MailRecipient> {
    let user: UserId = row.get("user_id")?;
    let what = format!("a recipient of mails of user {user}");
    Ok(MailRecipient {
        user,
        address: row.get("address")?,
        notified: optional_time(&what, row.get("notified_ms")?)?,
        confirmation_sent: optional_time(&what, row.get("confirmation_sent_ms")?)?,
        confirmed: optional_time(&what, row.get("confirmed_ms")?)?,
        refused: optional_time(&what, row.get("refused_ms")?)?,
    })
}

impl ReadTx<'_> {
    /// Finds the recipient `address` of a user.
    pub fn find_mail_recipient(
        &self,
        user: UserId,
        address: &str,
    ) -> DbResult<Option<MailRecipient>> {
        let sql =
            format!("SELECT {COLUMNS} FROM mail_recipients WHERE user_id = ?1 AND address = ?2");
        self.tx.find(&sql, params![user, address], read_recipient)
    }

    /// Finds the recipient to whom the token with this hash was sent.
    pub fn find_mail_recipient_of_token(
        &self,
        hash: ContentHash,
    ) -> DbResult<Option<MailRecipient>> {
        let sql = format!("SELECT {COLUMNS} FROM mail_recipients WHERE token_hash = ?1");
        self.tx.find(&sql, params![hash], read_recipient)
    }

    /// Returns the number of mails counted for `subject` in an hour.
    pub fn mails_in_hour(&self, subject: &str, hour: i64) -> DbResult<usize> {
        let sql = "SELECT mails FROM mail_counts WHERE subject = ?1 AND hour = ?2";
        Ok(self.tx.find_value(sql, params![subject, hour])?.unwrap_or_default())
    }
}

impl WriteTx<'_> {
    /// Counts mails of `subject` in an hour.
    pub fn count_mails(&self, subject: &str, hour: i64, mails: usize) -> DbResult<()> {
        let sql = "INSERT INTO mail_counts AS old (subject, hour, mails) VALUES (?1, ?2, ?3)
             ON CONFLICT (subject, hour) DO UPDATE SET mails = old.mails + excluded.mails";
        self.tx.run(sql, params![subject, hour, mails])
    }

    /// Subtracts mails of `subject` that were counted in an hour and not sent.
    pub fn uncount_mails(&self, subject: &str, hour: i64, mails: usize) -> DbResult<()> {
        // Never below zero, which would permit more mails than the limit.
        let sql = "UPDATE mail_counts SET mails = CASE WHEN mails > ?3 THEN mails - ?3 ELSE 0 END
             WHERE subject = ?1 AND hour = ?2";
        self.tx.run(sql, params![subject, hour, mails])
    }

    /// Sets a new token by which a recipient answers, replacing the previous one.
    pub fn set_mail_token(
        &self,
        user: UserId,
        address: &str,
        hash: ContentHash,
        now: Timestamp,
    ) -> DbResult<()> {
        // The links of earlier mails end, so the recipient counts as not yet informed.
        let sql = "INSERT INTO mail_recipients (user_id, address, token_hash, used_ms)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (user_id, address) DO UPDATE SET token_hash = excluded.token_hash,
                 notified_ms = NULL, confirmation_sent_ms = NULL, used_ms = excluded.used_ms";
        self.tx.run(sql, params![user, address, hash, now])
    }

    /// Removes the recipients of a user beyond `max`, least recently mailed first. Refusals are retained
    /// longest.
    pub fn trim_mail_recipients(&self, user: UserId, max: usize) -> DbResult<()> {
        let sql = format!(
            // A removed refusal would permit the user to write to that address again.
            "DELETE FROM mail_recipients WHERE user_id = ?1 AND address IN
                 (SELECT address FROM mail_recipients WHERE user_id = ?1
                  ORDER BY CASE WHEN refused_ms IS NULL THEN 1 ELSE 0 END, used_ms DESC, address
                  {ALL_BEHIND} ?2)"
        );
        self.tx.run(&sql, params![user, max])
    }

    /// Records that a recipient was informed of the user's name, ahead of a mail.
    pub fn mark_mail_recipient_notified(
        &self,
        user: UserId,
        address: &str,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql =
            "UPDATE mail_recipients SET notified_ms = ?3 WHERE user_id = ?1 AND address = ?2";
        self.tx.run(sql, params![user, address, now])
    }

    /// Records that a recipient was requested to confirm the mails.
    pub fn mark_mail_recipient_asked(
        &self,
        user: UserId,
        address: &str,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql = "UPDATE mail_recipients SET confirmation_sent_ms = ?3
             WHERE user_id = ?1 AND address = ?2";
        self.tx.run(sql, params![user, address, now])
    }

    /// Records that a recipient is still being mailed.
    pub fn touch_mail_recipient(
        &self,
        user: UserId,
        address: &str,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql = "UPDATE mail_recipients SET used_ms = ?3 WHERE user_id = ?1 AND address = ?2";
        self.tx.run(sql, params![user, address, now])
    }

    /// Records a recipient's answer, which confirms or refuses the mails. Either can be changed later.
    pub fn answer_mail_recipient(
        &self,
        hash: ContentHash,
        agrees: bool,
        now: Timestamp,
    ) -> DbResult<bool> {
        let sql = if agrees {
            "UPDATE mail_recipients SET confirmed_ms = ?2, refused_ms = NULL, used_ms = ?2
             WHERE token_hash = ?1"
        } else {
            "UPDATE mail_recipients SET refused_ms = ?2, confirmed_ms = NULL, used_ms = ?2
             WHERE token_hash = ?1"
        };
        self.tx.changes(sql, params![hash, now])
    }

    /// Makes the waiting mails of a user due now.
    pub fn retry_mails_now(&self, user: UserId, now: Timestamp) -> DbResult<()> {
        let sql = "UPDATE outbox SET next_ms = ?2
             WHERE user_id = ?1 AND transport = 'mail' AND state = 'waiting' AND next_ms > ?2";
        self.tx.run(sql, params![user, now])
    }

    /// Removes counts of hours before `hour`, and recipients that have not been mailed since `unused` and
    /// have not refused; at most `limit` of each. Returns their number.
    pub fn sweep_mail_recipients(
        &self,
        hour: i64,
        unused: Timestamp,
        limit: usize,
    ) -> DbResult<usize> {
        let sql = "DELETE FROM mail_counts WHERE (subject, hour) IN
                 (SELECT subject, hour FROM mail_counts WHERE hour < ?1 LIMIT ?2)";
        let counts = self.tx.execute(sql, params![hour, limit])?;
        // A refusal is permanent (contract notifications-19).
        let sql = "DELETE FROM mail_recipients WHERE (user_id, address) IN
                 (SELECT user_id, address FROM mail_recipients
                  WHERE used_ms < ?1 AND refused_ms IS NULL LIMIT ?2)";
        let recipients = self.tx.execute(sql, params![unused, limit])?;
        Ok(counts + recipients)
    }
}
