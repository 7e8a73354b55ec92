//! Operations of the outbox for operators: for commands, and for the API.

use jiff::Timestamp;
use tokio::sync::Notify;
use uuid::Uuid;

use super::Notifications;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, AuditEvent, ObjectKind};
use crate::storage::database::{Db, DbError, ListedMessage, WriteTx};
use model::account::{MessageState, OutboxMessage};

/// Messages in one list for the operator.
const OUTBOX_LISTED_MAX: usize = 10_000;

/// The outbox for the operator's commands. All methods block.
pub struct MessageOutbox {
    db: Db,
}

/// The messages to which a command applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageChoice {
    /// The message with this id.
    One(Uuid),
    /// All messages that are parked.
    Parked,
}

impl MessageChoice {
    fn id(self) -> Option<Uuid> {
        match self {
            Self::One(id) => Some(id),
            Self::Parked => None,
        }
    }

    /// Returns `count`. Fails if a single message was chosen but not found.
    fn count(self, count: usize, state: &str) -> Result<usize> {
        match self {
            // An operator who names a message expects it to exist; an empty outbox is not an error.
            Self::One(id) if count == 0 => {
                Err(Error::new(ErrorKind::NotFound, format!("no {state} {id} in the outbox")))
            }
            Self::One(_) | Self::Parked => Ok(count),
        }
    }

    /// Creates the audit event for an action on these messages.
    fn event(self, action: AuditAction) -> AuditEvent {
        let event = audit::event(action);
        match self {
            Self::One(id) => event.with_object(ObjectKind::Message, id),
            Self::Parked => event,
        }
    }
}

impl MessageOutbox {
    /// Opens the outbox of a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Lists messages in one state or in all states, oldest first; at most [`OUTBOX_LISTED_MAX`].
    pub fn list(&self, state: Option<MessageState>) -> Result<Vec<OutboxMessage>> {
        Ok(self.db.read_blocking(move |tx| tx.list_messages(state, OUTBOX_LISTED_MAX))?)
    }

    /// Queues parked messages again. Returns the number of queued messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no parked message with the id.
    pub fn retry(&self, messages: MessageChoice, now: Timestamp) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.retry_messages(messages.id(), now))?;
        messages.count(count, "parked message")
    }

    /// Removes messages. Returns the number of removed messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no message with the id.
    pub fn discard(&self, messages: MessageChoice) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.drop_messages(messages.id()))?;
        messages.count(count, "message")
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

    /// Queues parked messages again and records this in the audit log. Returns the number of queued messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no parked message with the id.
    pub async fn retry_outbox(&self, messages: MessageChoice, now: Timestamp) -> Result<usize> {
        let event = messages.event(AuditAction::MessageRetried);
        let retrying = self.db().write(move |tx| {
            let count = tx.retry_messages(messages.id(), now)?;
            record(tx, event, count)
        });
        let count = messages.count(retrying.await?, "parked message")?;
        // Wakes all transports, because the count does not reveal the transports of the messages.
        self.inner.wakes.iter().for_each(Notify::notify_one);
        Ok(count)
    }

    /// Removes messages and records this in the audit log. Returns the number of removed messages.
    ///
    /// Fails with [`ErrorKind::NotFound`] if there is no message with the id.
    pub async fn discard_from_outbox(&self, messages: MessageChoice) -> Result<usize> {
        let event = messages.event(AuditAction::MessageRemoved);
        let removal = self.db().write(move |tx| {
            let count = tx.drop_messages(messages.id())?;
            record(tx, event, count)
        });
        messages.count(removal.await?, "message")
    }
}

/// Records an action on `count` messages, unless the count is 0. Returns the count.
fn record(tx: &WriteTx<'_>, event: AuditEvent, count: usize) -> Result<usize, DbError> {
    if count > 0 {
        tx.write_audit(&event.with_detail(format!("{count} messages")))?;
    }
    Ok(count)
}
