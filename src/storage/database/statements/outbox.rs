//! Stores the outbox: messages of notifications to be sent, and parked ones.
//!
//! A sent message is removed. An incarnation that sends a message holds it until the incarnation ends,
//! regardless of the clock. The messages of an ended incarnation wait again (`super::nodes`).
//!
//! Messages are claimed concurrently with a write ([`ClaimTx`]). Everything else is done by writes. A write
//! that meets a message that is just being claimed waits for the claim and continues with the resulting
//! state: a dropped message is removed in any state, a parked one is never claimed, and the messages of an
//! incarnation are released after its row is removed, which no claim of it outlasts.

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    ClaimTx, ReadTx, WriteTx, damaged, optional_time, parse, parse_json, print_json, time,
};
use crate::storage::database::engine::{EngineTransaction, Params, ResultRow, RowLock, params};
use crate::storage::database::error::{DbError, DbResult};
use model::account::{MessageContent, MessageState, MessageTransport, OutboxMessage, UserId};

/// Messages of one transport that a sweep for lost claims releases at a time. One claim takes no more than are
/// sent at a time.
const MESSAGES_RELEASED_MAX: usize = 1000;
/// The number of the notification in a message without a notification.
const NO_NOTIFICATION: i64 = 0;
/// The columns that [`read_message`] reads.
const COLUMNS: &str = "message_id, number, user_id, content, state, attempts, next_ms, error, \
     created_ms, queued_ms";

/// Removes the message `?1`, if the incarnation `?2` holds it.
const REMOVE_HELD: &str = "DELETE FROM outbox WHERE message_id = ?1 AND incarnation = ?2";

fn read_message(row: &dyn ResultRow) -> DbResult<OutboxMessage> {
    let id: String = row.get("message_id")?;
    let what = format!("message {id}");
    let attempts: i64 = row.get("attempts")?;
    Ok(OutboxMessage {
        id: parse(&what, &id)?,
        number: row.get("number")?,
        user: row.get("user_id")?,
        content: parse_json(&what, row.text("content")?)?,
        state: parse(&what, row.text("state")?)?,
        attempts: u32::try_from(attempts).map_err(|why| damaged(&what, &why))?,
        next: optional_time(&what, row.get("next_ms")?)?,
        error: row.get("error")?,
        created: time(&what, row.get("created_ms")?)?,
        queued: time(&what, row.get("queued_ms")?)?,
    })
}

/// A message to be stored.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its id. Ids sort by time.
    pub id: Uuid,
    /// The transport that sends it.
    pub transport: MessageTransport,
    /// The number of the notification; 0 for a message about the account.
    pub number: i64,
    pub user: UserId,
    pub content: MessageContent,
}

impl NewMessage {
    /// Creates a mail to a user about its account, without a notification.
    pub fn about_account(user: UserId, content: MessageContent) -> Self {
        Self {
            id: Uuid::now_v7(),
            transport: MessageTransport::Mail,
            number: NO_NOTIFICATION,
            user,
            content,
        }
    }
}

/// A message as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMessage {
    pub message: OutboxMessage,
    /// The word for the transport that sends it.
    pub transport: String,
    /// The name of the receiver.
    pub user_name: String,
}

/// The outcome of an attempt to send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// It arrived, or is no longer needed.
    Done,
    /// The attempt failed and is retried.
    Retry {
        /// Time of the next attempt.
        at: Timestamp,
        /// The reason that this attempt failed.
        error: String,
    },
    /// It is parked after the last retry, for the operator.
    Parked {
        /// The reason that the last attempt failed.
        error: String,
    },
    /// It may not be sent before a time. Until then it is merged with the waiting mail of the same
    /// notification. The attempt does not count.
    Postponed {
        /// Earliest time of the next attempt.
        at: Timestamp,
        error: String,
    },
    /// The attempt was aborted because the service stops, and does not count.
    Released,
}

/// The claiming incarnation and the time of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedBy {
    /// The incarnation of a node.
    pub incarnation: Uuid,
    pub now: Timestamp,
}

/// The number of messages in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCount {
    /// Messages that wait or are in flight.
    pub waiting: u64,
    /// Messages that are parked.
    pub parked: u64,
}

impl ReadTx<'_> {
    /// Lists the oldest messages in a state, or in any, at most `limit`.
    pub fn list_messages(
        &self,
        state: Option<MessageState>,
        limit: usize,
    ) -> DbResult<Vec<OutboxMessage>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox WHERE state = coalesce(?1, state)
             ORDER BY message_id LIMIT ?2"
        );
        list_readable(self.tx, &sql, params![state, limit], read_message)
    }

    /// Lists `size` messages in a state, or in any, after the `start` newest ones, newest first. Skips
    /// damaged ones.
    pub fn list_newest_messages(
        &self,
        state: Option<MessageState>,
        start: usize,
        size: usize,
    ) -> DbResult<Vec<ListedMessage>> {
        let sql = format!(
            "SELECT {COLUMNS}, transport,
                 (SELECT user_name FROM users WHERE users.user_id = outbox.user_id) AS user_name
             FROM outbox WHERE state = coalesce(?1, state)
             ORDER BY message_id DESC LIMIT ?2 OFFSET ?3"
        );
        list_readable(self.tx, &sql, params![state, size, start], |row| {
            Ok(ListedMessage {
                message: read_message(row)?,
                transport: row.get("transport")?,
                user_name: row.get("user_name")?,
            })
        })
    }

    /// Counts the waiting and the parked messages of a transport.
    pub fn count_messages(&self, transport: MessageTransport) -> DbResult<OutboxCount> {
        let sql = "SELECT count(*) AS messages, count(next_ms) AS waiting FROM outbox
             WHERE transport = ?1";
        self.tx.load(sql, params![transport], |row| {
            let messages: u64 = row.get("messages")?;
            let waiting: u64 = row.get("waiting")?;
            Ok(OutboxCount { waiting, parked: messages.saturating_sub(waiting) })
        })
    }

    /// Returns the time at which the next waiting message of a transport is due.
    pub fn next_message(&self, transport: MessageTransport) -> DbResult<Option<Timestamp>> {
        let sql = "SELECT min(next_ms) FROM outbox
             WHERE transport = ?1 AND next_ms IS NOT NULL AND state = 'waiting'";
        optional_time("outbox", self.tx.load_value(sql, params![transport])?)
    }
}

impl WriteTx<'_> {
    /// Stores a message, unless `max` messages of its user already wait for the transport. Returns whether
    /// there was space. A waiting message with the same content makes it redundant, unless that one is just
    /// being claimed, because its content may have been read already.
    pub fn insert_message(&self, new: &NewMessage, max: usize, now: Timestamp) -> DbResult<bool> {
        let NewMessage { id, transport, number, user, content } = new;
        let content = print_json(&format!("message {id}"), content)?;
        let duplicate = format!(
            "SELECT 1 FROM outbox WHERE user_id = ?1 AND transport = ?2 AND number = ?3
             AND next_ms IS NOT NULL AND state = 'waiting' AND content = ?4 LIMIT 1 {}",
            self.tx.lock_clause(RowLock::UpdateSkipLocked)
        );
        if self.tx.exists(&duplicate, params![user, transport, number, content])? {
            return Ok(true);
        }
        // The subquery counts no further than `max`, for any number of waiting messages.
        let sql = "INSERT INTO outbox (message_id, transport, number, user_id, content, state,
                 attempts, next_ms, created_ms, queued_ms, updated_ms)
             SELECT ?1, ?2, ?3, ?4, ?5, 'waiting', 0, ?6, ?6, ?6, ?6
             WHERE ?7 > (SELECT count(*) FROM (SELECT 1 FROM outbox
                 WHERE user_id = ?4 AND transport = ?2 AND next_ms IS NOT NULL LIMIT ?7) AS waiting)";
        self.tx.changes(sql, params![id, transport, number, user, content, now, max])
    }

    /// Records the outcome of an attempt. Returns `false` if the incarnation no longer holds the message.
    pub fn end_message(
        &self,
        id: Uuid,
        outcome: &MessageOutcome,
        by: ClaimedBy,
    ) -> DbResult<bool> {
        end(self.tx, &id.to_string(), outcome, by)
    }

    /// Queues parked messages again, one or all. Returns their number.
    pub fn retry_messages(&self, id: Option<Uuid>, now: Timestamp) -> DbResult<usize> {
        // `queued_ms` restarts the period in which the message is retried.
        let sql =
            "UPDATE outbox SET state = 'waiting', attempts = 0, next_ms = ?1, queued_ms = ?1,
                 updated_ms = ?1
             WHERE state = 'parked' AND message_id = coalesce(?2, message_id)";
        self.tx.execute(sql, params![now, id])
    }

    /// Removes one message in any state, or all parked ones. Returns their number.
    pub fn drop_messages(&self, id: Option<Uuid>) -> DbResult<usize> {
        let sql = "DELETE FROM outbox WHERE message_id = ?1 OR (?1 IS NULL AND state = 'parked')";
        self.tx.execute(sql, params![id])
    }

    /// Removes the oldest parked messages, and retains the `max` newest.
    pub fn trim_messages(&self, max: usize) -> DbResult<()> {
        let sql = "DELETE FROM outbox WHERE next_ms IS NULL AND updated_ms <=
                 (SELECT updated_ms FROM outbox WHERE next_ms IS NULL
                  ORDER BY updated_ms DESC LIMIT 1 OFFSET ?1)";
        self.tx.run(sql, params![max])
    }

    /// Removes messages that were parked before `before`, at most `limit`. Returns their number.
    pub fn sweep_messages(&self, before: Timestamp, limit: usize) -> DbResult<usize> {
        let sql = "DELETE FROM outbox WHERE message_id IN (SELECT message_id FROM outbox
             WHERE next_ms IS NULL AND updated_ms < ?1 LIMIT ?2)";
        self.tx.execute(sql, params![before, limit])
    }
}

impl ClaimTx<'_> {
    /// Claims at most `limit` due messages of a transport that are not being claimed already, for a running
    /// incarnation, which holds them until it records their outcome.
    pub fn claim_messages(
        &self,
        transport: MessageTransport,
        limit: usize,
        by: ClaimedBy,
    ) -> DbResult<Vec<OutboxMessage>> {
        let ClaimedBy { incarnation, now } = by;
        // Locks the incarnation first. Its end then waits for this claim, or it has ended and can claim
        // nothing.
        if !self.lock_incarnation(incarnation, RowLock::KeyShareSkipLocked)? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "WITH due AS (SELECT message_id FROM outbox
                 WHERE transport = ?3 AND next_ms <= ?2 AND state = 'waiting'
                 ORDER BY next_ms, message_id LIMIT ?4 {})
             UPDATE outbox SET state = 'sending', attempts = attempts + 1, incarnation = ?1,
                 updated_ms = ?2
             WHERE state = 'waiting' AND message_id IN (SELECT message_id FROM due)
             RETURNING {COLUMNS}",
            self.tx.lock_clause(RowLock::UpdateSkipLocked)
        );
        let values = params![incarnation, now, transport, limit];
        let mut claimed = Vec::new();
        let mut unreadable = Vec::new();
        self.tx.each(&sql, values, |row| {
            match read_message(row) {
                Ok(message) => claimed.push(message),
                // Parked once the statement has ended, because a damaged row must not block the others.
                Err(cause) => {
                    let id: String = row.get("message_id")?;
                    unreadable.push((id, cause.to_string()));
                }
            }
            Ok(())
        })?;
        for (id, error) in unreadable {
            end(self.tx, &id, &MessageOutcome::Parked { error }, by)?;
        }
        // `RETURNING` promises no order, and ids sort by time.
        claimed.sort_by_key(|message| message.id);
        Ok(claimed)
    }

    /// Releases messages of a transport that an incarnation holds and is not `sending`. Returns their number.
    /// The answer to their claim was lost, and they would not be sent while the incarnation lasts.
    ///
    /// Waits until such a claim has ended, because it may still be on its way to the database.
    pub fn release_lost_messages(
        &self,
        transport: MessageTransport,
        sending: &[Uuid],
        by: ClaimedBy,
    ) -> DbResult<usize> {
        if !self.lock_incarnation(by.incarnation, RowLock::Update)? {
            // The incarnation has ended, which released its messages.
            return Ok(0);
        }
        let sql = "SELECT message_id FROM outbox
             WHERE incarnation = ?1 AND state = 'sending' AND transport = ?2
             ORDER BY message_id LIMIT ?3";
        // The list includes the messages in flight, which must not use up the limit.
        let limit = sending.len().saturating_add(MESSAGES_RELEASED_MAX);
        let held: Vec<String> =
            self.tx.list_values(sql, params![by.incarnation, transport, limit])?;
        let sending_ids: Vec<String> = sending.iter().map(Uuid::to_string).collect();
        let lost = held.into_iter().filter(|id| !sending_ids.contains(id));
        let mut released = 0;
        for id in lost {
            released += usize::from(end(self.tx, &id, &MessageOutcome::Released, by)?);
        }
        Ok(released)
    }

    /// Returns whether the incarnation is running, and locks its row until the transaction ends.
    fn lock_incarnation(&self, incarnation: Uuid, lock: RowLock) -> DbResult<bool> {
        let sql =
            format!("SELECT 1 FROM nodes WHERE incarnation = ?1 {}", self.tx.lock_clause(lock));
        self.tx.exists(&sql, params![incarnation])
    }
}

/// Reads all rows into memory, except damaged ones.
fn list_readable<T>(
    tx: &dyn EngineTransaction,
    sql: &str,
    params: Params<'_>,
    read: impl Fn(&dyn ResultRow) -> DbResult<T>,
) -> DbResult<Vec<T>> {
    let mut found = Vec::new();
    tx.each(sql, params, |row| {
        match read(row) {
            Ok(message) => found.push(message),
            // The operator must see the other rows.
            Err(cause) => tracing::error!("outbox: damaged message skipped: {cause}"),
        }
        Ok(())
    })?;
    Ok(found)
}

/// Postpones a message until `at`, or merges its content into a waiting one of the same notification.
fn postpone(
    tx: &dyn EngineTransaction,
    id: &str,
    at: Timestamp,
    error: &str,
    by: ClaimedBy,
) -> DbResult<bool> {
    let ClaimedBy { incarnation, now } = by;
    let sql = format!("SELECT {COLUMNS} FROM outbox WHERE message_id = ?1 AND incarnation = ?2");
    let Some(message) = tx.find(&sql, params![id, incarnation], read_message)? else {
        return Ok(false);
    };
    // Only a message that is postponed itself, because a due one may be claimed at any moment.
    let waiting = format!(
        "SELECT {COLUMNS} FROM outbox WHERE user_id = ?1 AND transport = 'mail' AND number = ?2
         AND next_ms > ?3 AND state = 'waiting' AND message_id <> ?4 ORDER BY message_id LIMIT 1"
    );
    let values = params![message.user, message.number, now, id];
    let waiting = match tx.find(&waiting, values, read_message) {
        // A damaged waiting message must not prevent this one from being postponed.
        Err(DbError::Damaged { .. }) => None,
        found => found?,
    };
    if let Some((waiting, merged)) =
        waiting.and_then(|waiting| Some((waiting.id, waiting.content.merge(&message.content)?)))
    {
        let merged = print_json(&format!("message {waiting}"), &merged)?;
        // A message that was claimed in the meantime is not changed.
        let sql = "UPDATE outbox SET content = ?1, updated_ms = ?2
             WHERE message_id = ?3 AND state = 'waiting'";
        if tx.changes(sql, params![merged, now, waiting])? {
            return tx.changes(REMOVE_HELD, params![id, incarnation]);
        }
    }
    // The retry period of a message begins when it may be sent.
    let sql = "UPDATE outbox SET state = 'waiting', next_ms = ?1, queued_ms = ?1, error = ?2,
             updated_ms = ?3, incarnation = NULL,
             attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END
         WHERE message_id = ?4 AND incarnation = ?5";
    tx.changes(sql, params![at, error, now, id, incarnation])
}

fn end(
    tx: &dyn EngineTransaction,
    id: &str,
    outcome: &MessageOutcome,
    by: ClaimedBy,
) -> DbResult<bool> {
    let ClaimedBy { incarnation, now } = by;
    let (assignments, next, error) = match outcome {
        MessageOutcome::Done => return tx.changes(REMOVE_HELD, params![id, incarnation]),
        MessageOutcome::Retry { at, error } => ("state = 'waiting'", Some(*at), Some(error)),
        MessageOutcome::Postponed { at, error } => return postpone(tx, id, *at, error, by),
        MessageOutcome::Parked { error } => ("state = 'parked'", None, Some(error)),
        // Never below zero, which could not be read back as a number of attempts.
        MessageOutcome::Released => (
            "state = 'waiting',
                 attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END",
            Some(now),
            None,
        ),
    };
    let sql = format!(
        "UPDATE outbox SET {assignments}, next_ms = ?1, error = coalesce(?2, error),
             updated_ms = ?3, incarnation = NULL WHERE message_id = ?4 AND incarnation = ?5"
    );
    tx.changes(&sql, params![next, error, now, id, incarnation])
}
