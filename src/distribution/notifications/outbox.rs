//! The outbox as the operator sees it.

use jiff::Timestamp;
use uuid::Uuid;

use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::OUTBOX_LISTED_MAX;
use crate::storage::database::Db;
use model::account::{MessageState, OutboxMessage};

/// The messages of the outbox, for the operator's commands. Blocks.
pub struct MessageOutbox {
    db: Db,
}

/// Messages that a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageChoice {
    /// The one of that name.
    One(Uuid),
    /// All that were given up.
    Parked,
}

impl MessageChoice {
    fn id(self) -> Option<Uuid> {
        match self {
            Self::One(id) => Some(id),
            Self::Parked => None,
        }
    }

    /// `count`, unless it is about one message and that was none.
    fn count(self, count: usize, state: &str) -> Result<usize> {
        match self {
            Self::One(id) if count == 0 => {
                Err(Error::new(ErrorKind::NotFound, format!("no {state} {id} in the outbox")))
            }
            Self::One(_) | Self::Parked => Ok(count),
        }
    }
}

impl MessageOutbox {
    /// The outbox of a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Messages in a state, or in any, the oldest first; at most [`OUTBOX_LISTED_MAX`].
    pub fn list(&self, state: Option<MessageState>) -> Result<Vec<OutboxMessage>> {
        Ok(self.db.read_blocking(move |tx| tx.list_messages(state, OUTBOX_LISTED_MAX))?)
    }

    /// Queues messages that were given up; gives how many.
    ///
    /// Fails with [`ErrorKind::NotFound`] when there is none of that name that was given up.
    pub fn retry(&self, messages: MessageChoice, now: Timestamp) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.retry_messages(messages.id(), now))?;
        messages.count(count, "parked message")
    }

    /// Removes messages; gives how many.
    ///
    /// Fails with [`ErrorKind::NotFound`] when there is none of that name.
    pub fn discard(&self, messages: MessageChoice) -> Result<usize> {
        let count = self.db.write_blocking(move |tx| tx.drop_messages(messages.id()))?;
        messages.count(count, "message")
    }
}
