//! The outbox: messages of notifications on their way, and those that were given up.
//!
//! A message that was sent is gone. Whoever sends one holds it for as long as its life lasts, whatever
//! the clock says; what a life held that is over waits again (`super::nodes`).
//!
//! Messages are taken up beside one that writes ([`ClaimTx`]), all else is done by whoever writes. A
//! statement of theirs that meets a message just being taken up waits for that, and goes by what the message is
//! then: one that is dropped goes in any state, one that was given up is never taken up, and what a life
//! holds is freed after its row is gone, which no claim of it outlives.

use std::ops::ControlFlow;

use jiff::Timestamp;
use uuid::Uuid;

use super::{ClaimTx, ReadTx, WriteTx, damaged, int, time};
use crate::runtime::limits::MESSAGES_FREED_MAX;
use crate::storage::database::engine::{EngineTransaction, ResultRow, RowLock, params};
use crate::storage::database::error::DbError;
use model::account::{MessageContent, MessageState, MessageTransport, OutboxMessage, UserId};

/// The number of the notification in a message that belongs to none.
const NO_NOTIFICATION: i64 = 0;
/// The columns that [`read_message`] reads.
const COLUMNS: &str = "message_id, number, user_id, content, state, attempts, next_ms, error, \
     created_ms, queued_ms";

fn read_message(row: &dyn ResultRow) -> Result<OutboxMessage, DbError> {
    let id: String = row.get(0)?;
    let what = format!("message {id}");
    let (content, state): (String, String) = (row.get(3)?, row.get(4)?);
    let next: Option<i64> = row.get(6)?;
    Ok(OutboxMessage {
        id: id.parse().map_err(|why| damaged(&what, &why))?,
        number: row.get(1)?,
        user: UserId(row.get(2)?),
        content: serde_json::from_str(&content).map_err(|why| damaged(&what, &why))?,
        state: MessageState::find(&state).ok_or_else(|| damaged(&what, &"its state"))?,
        attempts: u32::try_from(row.get::<i64>(5)?).map_err(|why| damaged(&what, &why))?,
        next: next.map(|ms| time(&what, ms)).transpose()?,
        error: row.get(7)?,
        created: time(&what, row.get(8)?)?,
        queued: time(&what, row.get(9)?)?,
    })
}

/// A message that is written.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Its name; names sort by time.
    pub id: Uuid,
    /// Who sends it.
    pub lane: MessageTransport,
    /// The number of the notification.
    pub number: i64,
    /// Whose it is.
    pub user: UserId,
    /// What it says.
    pub content: MessageContent,
}

impl NewMessage {
    /// A mail to a user about its account, which belongs to no notification.
    #[must_use]
    pub fn about_account(user: UserId, content: MessageContent) -> Self {
        Self {
            id: Uuid::now_v7(),
            lane: MessageTransport::Mail,
            number: NO_NOTIFICATION,
            user,
            content,
        }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// It arrived, or nobody wants it any more.
    Done,
    /// It is tried again.
    Retry {
        /// When.
        at: Timestamp,
        /// Why it failed this time.
        error: String,
    },
    /// It is given up and waits for the operator.
    Parked {
        /// Why.
        error: String,
    },
    /// It may not be sent before a time. Until then it is one mail with what waits of the same
    /// notification; the try counts for nothing.
    Postponed {
        /// When.
        at: Timestamp,
        /// Why.
        error: String,
    },
    /// It was not tried to its end, which counts for nothing: the service stops.
    Released,
}

/// Who sends messages, and when they were taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedBy {
    /// The life of a node.
    pub incarnation: Uuid,
    /// The time.
    pub now: Timestamp,
}

/// What waits in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCount {
    /// Messages that wait or are being sent.
    pub waiting: u64,
    /// Messages that were given up.
    pub parked: u64,
}

impl ReadTx<'_> {
    /// Messages in a state, or in any, `limit` of the oldest.
    pub fn list_messages(
        &self,
        state: Option<MessageState>,
        limit: usize,
    ) -> Result<Vec<OutboxMessage>, DbError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM outbox WHERE state = coalesce(?1, state)
             ORDER BY message_id LIMIT ?2"
        );
        let wanted = params![state.map(MessageState::as_str), int(limit)];
        let mut found = Vec::new();
        self.tx.each(&sql, wanted, |row| {
            match read_message(row) {
                Ok(message) => found.push(message),
                // The operator has to see the others.
                Err(cause) => tracing::error!("a row of the outbox is left out: {cause}"),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// How many messages wait in a lane, and how many of it were given up.
    pub fn count_messages(&self, lane: MessageTransport) -> Result<OutboxCount, DbError> {
        let sql = "SELECT count(*), count(next_ms) FROM outbox WHERE lane = ?1";
        let (all, waiting): (i64, i64) =
            self.tx.load(sql, params![lane.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let count = |count: i64| u64::try_from(count).unwrap_or_default();
        Ok(OutboxCount { waiting: count(waiting), parked: count(all - waiting) })
    }

    /// When the next message of a lane is due that nobody sends.
    pub fn next_message(&self, lane: MessageTransport) -> Result<Option<Timestamp>, DbError> {
        let sql = "SELECT min(next_ms) FROM outbox
             WHERE lane = ?1 AND next_ms IS NOT NULL AND state = 'waiting'";
        let ms: Option<i64> = self.tx.load_value(sql, params![lane.as_str()])?;
        ms.map(|ms| time("outbox", ms)).transpose()
    }
}

impl WriteTx<'_> {
    /// Puts a message into the outbox, unless `max` of its user wait in its lane already; gives
    /// whether there was room. One that waits there already and says the same stands for it, unless it is
    /// just being taken up: what it says may be read already.
    pub fn insert_message(
        &self,
        new: &NewMessage,
        max: usize,
        now: Timestamp,
    ) -> Result<bool, DbError> {
        let NewMessage { id, lane, number, user, content } = new;
        let content = serde_json::to_string(content)
            .map_err(|why| damaged(format!("message {id}"), &why))?;
        let same = format!(
            "SELECT 1 FROM outbox WHERE user_id = ?1 AND lane = ?2 AND number = ?3
             AND next_ms IS NOT NULL AND state = 'waiting' AND content = ?4 LIMIT 1 {}",
            self.tx.lock_clause(RowLock::UpdateSkipLocked)
        );
        if self.tx.exists(&same, params![user.0, lane.as_str(), number, content])? {
            return Ok(true);
        }
        let written = self.tx.execute(
            "INSERT INTO outbox (message_id, lane, number, user_id, content, state, attempts,
                 next_ms, created_ms, queued_ms, updated_ms)
             SELECT ?1, ?2, ?3, ?4, ?5, 'waiting', 0, ?6, ?6, ?6, ?6
             WHERE ?7 > (SELECT count(*) FROM (SELECT 1 FROM outbox
                 WHERE user_id = ?4 AND lane = ?2 AND next_ms IS NOT NULL LIMIT ?7) AS waiting)",
            params![
                id.to_string(),
                lane.as_str(),
                number,
                user.0,
                content,
                now.as_millisecond(),
                int(max),
            ],
        )?;
        Ok(written > 0)
    }

    /// Writes what became of a message; `false` when its life holds it no more.
    pub fn end_message(
        &self,
        id: Uuid,
        sent: &MessageOutcome,
        by: ClaimedBy,
    ) -> Result<bool, DbError> {
        end(self.tx, &id.to_string(), sent, by)
    }

    /// Queues messages that were given up, one or all of them; gives how many.
    pub fn retry_messages(&self, id: Option<Uuid>, now: Timestamp) -> Result<usize, DbError> {
        self.tx.execute(
            "UPDATE outbox SET state = 'waiting', attempts = 0, next_ms = ?1, queued_ms = ?1,
                 updated_ms = ?1
             WHERE state = 'parked' AND message_id = coalesce(?2, message_id)",
            params![now.as_millisecond(), id.map(|id| id.to_string())],
        )
    }

    /// Removes a message in whatever state, or all that were given up; gives how many.
    pub fn drop_messages(&self, id: Option<Uuid>) -> Result<usize, DbError> {
        self.tx.execute(
            "DELETE FROM outbox WHERE message_id = ?1 OR (?1 IS NULL AND state = 'parked')",
            params![id.map(|id| id.to_string())],
        )
    }

    /// Removes the oldest messages that were given up, beyond the `max` newest.
    pub fn trim_messages(&self, max: usize) -> Result<(), DbError> {
        self.tx.execute(
            "DELETE FROM outbox WHERE next_ms IS NULL AND updated_ms <=
                 (SELECT updated_ms FROM outbox WHERE next_ms IS NULL
                  ORDER BY updated_ms DESC LIMIT 1 OFFSET ?1)",
            params![int(max)],
        )?;
        Ok(())
    }

    /// Removes messages that were given up before `before`, at most `limit`; gives how many.
    pub fn sweep_messages(&self, before: Timestamp, limit: usize) -> Result<usize, DbError> {
        self.tx.execute(
            "DELETE FROM outbox WHERE message_id IN (SELECT message_id FROM outbox
             WHERE next_ms IS NULL AND updated_ms < ?1 LIMIT ?2)",
            params![before.as_millisecond(), int(limit)],
        )
    }
}

impl ClaimTx<'_> {
    /// Takes up to `limit` messages of a lane that are due and that nobody else is taking up; a life that lasts
    /// holds them until it says what became of them.
    pub fn claim_messages(
        &self,
        lane: MessageTransport,
        limit: usize,
        by: ClaimedBy,
    ) -> Result<Vec<OutboxMessage>, DbError> {
        let ClaimedBy { incarnation: life, now } = by;
        if !self.lock_incarnation(life, RowLock::KeyShareSkipLocked)? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "WITH due AS (SELECT message_id FROM outbox
                 WHERE lane = ?3 AND next_ms <= ?2 AND state = 'waiting'
                 ORDER BY next_ms, message_id LIMIT ?4 {})
             UPDATE outbox SET state = 'sending', attempts = attempts + 1, life = ?1,
                 updated_ms = ?2
             WHERE state = 'waiting' AND message_id IN (SELECT message_id FROM due)
             RETURNING {COLUMNS}",
            self.tx.lock_clause(RowLock::UpdateSkipLocked)
        );
        let wanted = params![life.to_string(), now.as_millisecond(), lane.as_str(), int(limit)];
        let mut claimed = Vec::new();
        let mut broken = Vec::new();
        self.tx.each(&sql, wanted, |row| {
            match read_message(row) {
                Ok(message) => claimed.push(message),
                Err(cause) => broken.push((row.get::<String>(0)?, cause.to_string())),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (id, error) in broken {
            end(self.tx, &id, &MessageOutcome::Parked { error }, by)?;
        }
        claimed.sort_by_key(|message| message.id);
        Ok(claimed)
    }

    /// Frees messages of a lane that a life holds and is not `sending`; gives how many. The answer to a claim of
    /// theirs was lost, and nobody would send them as long as the life lasts.
    ///
    /// Waits until such a claim has come to its end: it may still be on its way to the database.
    pub fn release_lost_messages(
        &self,
        lane: MessageTransport,
        sending: &[Uuid],
        by: ClaimedBy,
    ) -> Result<usize, DbError> {
        if !self.lock_incarnation(by.incarnation, RowLock::Update)? {
            // What it had is free.
            return Ok(0);
        }
        let sql =
            "SELECT message_id FROM outbox WHERE life = ?1 AND state = 'sending' AND lane = ?2
             ORDER BY message_id LIMIT ?3";
        let limit = sending.len().saturating_add(MESSAGES_FREED_MAX);
        let wanted = params![by.incarnation.to_string(), lane.as_str(), int(limit)];
        let held: Vec<String> = self.tx.list_values(sql, wanted)?;
        let known: Vec<String> = sending.iter().map(Uuid::to_string).collect();
        let lost = held.into_iter().filter(|id| !known.contains(id));
        let mut freed = 0;
        for id in lost {
            freed += usize::from(end(self.tx, &id, &MessageOutcome::Released, by)?);
        }
        Ok(freed)
    }

    /// Whether the life lasts, which it then does until the transaction ends.
    fn lock_incarnation(&self, life: Uuid, hold: RowLock) -> Result<bool, DbError> {
        let sql = format!("SELECT 1 FROM nodes WHERE life = ?1 {}", self.tx.lock_clause(hold));
        self.tx.exists(&sql, params![life.to_string()])
    }
}

/// Lets a message wait until `at`, or adds what it says to one of the same notification that waits.
fn postpone(
    tx: &dyn EngineTransaction,
    id: &str,
    at: Timestamp,
    error: &str,
    by: ClaimedBy,
) -> Result<bool, DbError> {
    let life = by.incarnation.to_string();
    let own = format!("SELECT {COLUMNS} FROM outbox WHERE message_id = ?1 AND life = ?2");
    let Some(own) = tx.find(&own, params![id, life], read_message)? else { return Ok(false) };
    let waiting = format!(
        "SELECT {COLUMNS} FROM outbox WHERE user_id = ?1 AND lane = 'mail' AND number = ?2
         AND next_ms > ?3 AND state = 'waiting' AND message_id <> ?4 ORDER BY message_id LIMIT 1"
    );
    let wanted = params![own.user.0, own.number, by.now.as_millisecond(), id];
    let waiting = match tx.find(&waiting, wanted, read_message) {
        // A damaged neighbour is no reason to keep this one from its end.
        Err(DbError::Damaged { .. }) => None,
        found => found?,
    };
    if let Some((waiting, both)) =
        waiting.and_then(|waiting| Some((waiting.id, waiting.content.merge(&own.content)?)))
    {
        let what = || format!("message {waiting}");
        let both = serde_json::to_string(&both).map_err(|why| damaged(what(), &why))?;
        // One that is claimed in this moment is left to its sender.
        let sql = "UPDATE outbox SET content = ?1, updated_ms = ?2
             WHERE message_id = ?3 AND state = 'waiting'";
        let values = params![both, by.now.as_millisecond(), waiting.to_string()];
        if tx.execute(sql, values)? > 0 {
            let sql = "DELETE FROM outbox WHERE message_id = ?1 AND life = ?2";
            return Ok(tx.execute(sql, params![id, life])? > 0);
        }
    }
    // The time in which a message is tried begins when it may be.
    let sql = "UPDATE outbox SET state = 'waiting', next_ms = ?1, queued_ms = ?1, error = ?2,
             updated_ms = ?3, life = NULL,
             attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END
         WHERE message_id = ?4 AND life = ?5";
    let values = params![at.as_millisecond(), error, by.now.as_millisecond(), id, life];
    Ok(tx.execute(sql, values)? > 0)
}

fn end(
    tx: &dyn EngineTransaction,
    id: &str,
    sent: &MessageOutcome,
    by: ClaimedBy,
) -> Result<bool, DbError> {
    let life = by.incarnation.to_string();
    let set = |assignments: &str, next: Option<i64>, error: Option<&str>| {
        let sql = format!(
            "UPDATE outbox SET {assignments}, next_ms = ?1, error = coalesce(?2, error),
                 updated_ms = ?3, life = NULL WHERE message_id = ?4 AND life = ?5"
        );
        let values = params![next, error, by.now.as_millisecond(), id, life];
        Ok(tx.execute(&sql, values)? > 0)
    };
    match sent {
        MessageOutcome::Done => {
            let sql = "DELETE FROM outbox WHERE message_id = ?1 AND life = ?2";
            Ok(tx.execute(sql, params![id, life])? > 0)
        }
        MessageOutcome::Retry { at, error } => {
            set("state = 'waiting'", Some(at.as_millisecond()), Some(error))
        }
        MessageOutcome::Postponed { at, error } => postpone(tx, id, *at, error, by),
        MessageOutcome::Parked { error } => set("state = 'parked'", None, Some(error)),
        MessageOutcome::Released => set(
            "state = 'waiting',
                 attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END",
            Some(by.now.as_millisecond()),
            None,
        ),
    }
}
