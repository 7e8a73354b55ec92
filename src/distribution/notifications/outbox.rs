//! Operations of the outbox for operators: for commands, and for the API.

use jiff::Timestamp;
use tokio::sync::Notify;
use uuid::Uuid;

use super::Notifications;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{Db, DbResult, ListedMessage, WriteTx};
use model::account::{MessageState, OutboxMessage};

/// Messages in one list for the operator.
const OUTBOX_LISTED_MAX: usize = 10_000;

/// The outbox for the operator's commands. All methods block.
pub struct MessageOutbox {
    db: Db,
}

impl MessageOutbox {
    /// Opens the outbox of a database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Lists messages in one state or in all states, oldest first; at most [`OUTBOX_LISTED_MAX`].
    pub fn list(&self, state: Option<MessageState>) -> Result<Vec<OutboxMessage>> {
        Ok(self.db.read_blocking(move |tx| tx.list_messages(state, OUTBOX_LISTED_MAX))?)
    }

    /// Queues the parked message `id` or all parked messages again. Returns the number of queued messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no parked message with the id.
    pub fn retry(&self, id: Option<Uuid>, now: Timestamp) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.retry_messages(id, now))?;
        require_named(id, count, "parked message")
    }

    /// Removes the message `id` or all parked messages. Returns the number of removed messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no message with the id.
    pub fn discard(&self, id: Option<Uuid>) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.drop_messages(id))?;
        require_named(id, count, "message")
    }
}

impl Notifications {
    /// Lists one page of the outbox, newest first: messages in one state or in all states.
    pub async fn list_outbox(
        &self,
        state: Option<MessageState>,
        start: usize,
        size: usize,
    ) -> Result<Vec<ListedMessage>> {
        let size = size.min(OUTBOX_LISTED_MAX);
        Ok(self.db().read(move |tx| tx.list_newest_messages(state, start, size)).await?)
    }

    /// Queues the parked message `id` or all parked messages again and records this in the audit log. Returns the
    /// number of queued messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no parked message with the id.
    pub async fn retry_outbox(&self, id: Option<Uuid>, now: Timestamp) -> Result<usize> {
        let event = event(id, AuditAction::MessageRetried);
        let retrying = self.db().write(move |tx| {
            let count = tx.retry_messages(id, now)?;
            record(tx, event, count)
        });
        let count = require_named(id, retrying.await?, "parked message")?;
        // Wakes all transports, because the count does not reveal the transports of the messages.
        self.inner.wakes.iter().for_each(Notify::notify_one);
        Ok(count)
    }

    /// Removes the message `id` or all parked messages and records this in the audit log. Returns the number of
    /// removed messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no message with the id.
    pub async fn discard_from_outbox(&self, id: Option<Uuid>) -> Result<usize> {
        let event = event(id, AuditAction::MessageRemoved);
        let removal = self.db().write(move |tx| {
            let count = tx.drop_messages(id)?;
            record(tx, event, count)
        });
        require_named(id, removal.await?, "message")
    }
}

/// Returns `count`. Fails if a message was named but not found.
fn require_named(id: Option<Uuid>, count: usize, state: &str) -> Result<usize> {
    match id {
        // An operator who names a message expects it to exist; an empty outbox is not an error.
        Some(id) if count == 0 => {
            Err(Error::new(ErrorKind::NotFound, format!("no {state} {id} in the outbox")))
        }
        Some(_) | None => Ok(count),
    }
}

/// Creates the audit event for an action on the message `id` or on all parked messages.
fn event(id: Option<Uuid>, action: AuditAction) -> AuditEvent {
    let event = audit::event(action);
    match id {
        Some(id) => event.with_object(ObjectKind::Message, id),
        None => event,
    }
}

/// Records an action on `count` messages, unless the count is 0. Returns the count.
fn record(tx: &WriteTx<'_>, event: AuditEvent, count: usize) -> DbResult<usize> {
    if count > 0 {
        tx.write_audit(&event.with_detail(format!("{count} messages")))?;
    }
    Ok(count)
}
