//! The results of one matching transaction and of the scheduled mails that it prepares.

use jiff::Timestamp;
use strum::EnumCount;
use uuid::Uuid;

use crate::runtime::limits::OUTBOX_PER_USER_MAX;
use crate::storage::database::{DbResult, NewMessage, WriteTx};
use model::account::{MessageTransport, NotificationKind};

/// The results of one matching transaction.
#[derive(Default)]
pub(super) struct MatchBatch {
    /// The streams that received items.
    pub(super) streams: Vec<Uuid>,
    /// The queues that received items.
    pub(super) queues: Vec<i64>,
    /// True for each transport with new messages, indexed by transport.
    pub(super) messages: [bool; MessageTransport::COUNT],
    /// The number of items that were matched.
    pub(super) items: u64,
    pub(super) matches: [u64; NotificationKind::COUNT],
    /// The number of messages and items dropped because a queue or the outbox was full.
    pub(super) lost: u64,
    /// The stream sequence number of this transaction; `None` until an item is queued.
    pub(super) stream_sequence: Option<i64>,
    /// True if more work is due immediately.
    pub(super) more: bool,
}

impl MatchBatch {
    /// Writes a message to the outbox, or drops it if the outbox is full. Returns whether it was written.
    pub(super) fn write_message(
        &mut self,
        tx: &WriteTx<'_>,
        message: &NewMessage,
        now: Timestamp,
    ) -> DbResult<bool> {
        let is_written = tx.insert_message(message, OUTBOX_PER_USER_MAX, now)?;
        if is_written {
            self.messages[message.transport.index()] = true;
        } else {
            self.lost += 1;
        }
        Ok(is_written)
    }
}
