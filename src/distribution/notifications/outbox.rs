//! The operator's view of the outbox.

use jiff::Timestamp;
use uuid::Uuid;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::OUTBOX_LISTED_MAX;
use crate::storage::database::Db;
use model::account::{MessageState, OutboxMessage};

/// The outbox, for the operator's commands. All methods block.
pub struct MessageOutbox {
    db: Db,
}

/// The messages that a command applies to.
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

    /// Returns `count`, or fails when a single message was chosen and not found.
    fn count(self, count: usize, state: &str) -> Result<usize> {
        match self {
            // An operator who names a message expects it to exist; an empty outbox is no error.
            Self::One(id) if count == 0 => {
                Err(Error::new(ErrorKind::NotFound, format!("no {state} {id} in the outbox")))
            }
            Self::One(_) | Self::Parked => Ok(count),
        }
    }
}

impl MessageOutbox {
    /// Opens the outbox of a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Lists messages in one state, or in all, oldest first; at most [`OUTBOX_LISTED_MAX`].
    pub fn list(&self, state: Option<MessageState>) -> Result<Vec<OutboxMessage>> {
        Ok(self.db.read_blocking(move |tx| tx.list_messages(state, OUTBOX_LISTED_MAX))?)
    }

    /// Queues parked messages again; returns how many.
    ///
    /// Fails with [`ErrorKind::NotFound`] when there is no parked message with that id.
    pub fn retry(&self, messages: MessageChoice, now: Timestamp) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.retry_messages(messages.id(), now))?;
        messages.count(count, "parked message")
    }

    /// Removes messages; returns how many.
    ///
    /// Fails with [`ErrorKind::NotFound`] when there is no message with that id.
    pub fn discard(&self, messages: MessageChoice) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.drop_messages(messages.id()))?;
        messages.count(count, "message")
    }
}
