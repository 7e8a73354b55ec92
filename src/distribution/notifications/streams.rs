//! Streams: queues that clients read (contract notifications-8, notifications-9).
//!
//! An item is *in flight* from the moment a reader claims it until the response is sent. Other readers, on any
//! node, skip it. It stays in the database, marked with the incarnation that claimed it. A separate transaction
//! removes the row when everything but the last byte of the response was written to the connection; only then is
//! that byte sent. So a client that has a complete response never gets its items again. If the client disconnects
//! or the process is killed, items in flight return to their places: at once if this node released them or
//! restarts, otherwise when other nodes find that the incarnation expired. An expired incarnation cannot remove
//! items, so a late response is never completed.
//!
//! One window remains, between that transaction and the client's receipt of the last byte: bytes written to the
//! connection may still be in a buffer, ours or the kernel's. If the client disappears silently or the process is
//! killed within that window, the items of the response are lost.
//!
//! The matcher wakes readers if it runs in the same process, and [`super::Notifications::wake_readers`] wakes them
//! if a different node queued the items. Commands of readers are batched into transactions: ten thousand waiting
//! readers cost nothing, and waking them costs ten transactions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use uuid::Uuid;

use super::notification_matcher::{DOWNTIME_MIN, record_heartbeat};
use crate::cluster::membership::{ClusterNode, limits::RELEASE_RETRY_INTERVAL};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::STREAM_EXPIRY;
use crate::runtime::slots::{SlotLimits, WaitingSlots};
use crate::runtime::telemetry::{self, GaugeGuard};
use crate::storage::database::{Db, DbError, DbResult, QueuedItem, WriteTx};
use model::account::UserId;
use model::{Backoff, RetryPolicy};

/// Calls of stream readers that may wait for the database.
const STREAM_READS_MAX: usize = 65_536;
/// Calls of stream readers that one transaction handles.
const STREAM_READS_PER_TRANSACTION: usize = 1000;
/// Delay before a stream reader first retries items that could not be delivered.
const STREAM_RETRY_FIRST: Duration = Duration::from_millis(20);
/// Maximum of that delay, which doubles with each retry.
const STREAM_RETRY_MAX: Duration = Duration::from_secs(1);
/// The backoff of a reader whose items may not be shown yet.
const EARLY_READ_RETRY: RetryPolicy =
    RetryPolicy::without_deadline(STREAM_RETRY_FIRST, STREAM_RETRY_MAX);

/// The streams with waiting readers at this node.
pub(super) struct StreamQueues {
    commands: mpsc::Sender<StreamCommand>,
    slots: WaitingSlots,
    /// The waiting readers by stream.
    readers: Mutex<HashMap<Uuid, StreamReaders>>,
}

/// Released items whose release is not yet written to the database.
#[derive(Default)]
struct ReleasedItems {
    list: Mutex<Vec<ReleasedBatch>>,
    wake: Notify,
}

#[derive(Clone)]
struct ReleasedBatch {
    id: Uuid,
    incarnation: Uuid,
    places: Vec<i64>,
}

impl ReleasedItems {
    fn add(&self, batches: impl IntoIterator<Item = ReleasedBatch>) {
        self.list.lock().extend(batches);
        self.wake.notify_one();
    }

    fn drain(&self) -> Vec<ReleasedBatch> {
        std::mem::take(&mut *self.list.lock())
    }
}

#[derive(Default)]
struct StreamReaders {
    wake: Arc<Notify>,
    readers: usize,
}

/// A database command of a reader. Many commands are executed in one transaction.
enum StreamCommand {
    Claim { reader: StreamReader, reply: oneshot::Sender<Result<StreamBatch>> },
    Acknowledge { claimed: StreamBatch, read: Vec<(i64, i64)>, reply: oneshot::Sender<Result<()>> },
    Touch { number: i64 },
}

/// Claimed items. They are released if the batch is dropped without an acknowledgement.
pub(super) struct StreamBatch {
    released: Arc<ReleasedItems>,
    id: Uuid,
    number: i64,
    /// The incarnation that claimed the items.
    incarnation: Uuid,
    /// The items in queue order.
    pub(super) items: Vec<QueuedItem>,
    /// True if the acknowledgement was committed.
    is_acknowledged: bool,
}

impl Drop for StreamBatch {
    fn drop(&mut self) {
        // `drop` cannot wait for the database, so the executor of the commands writes the release.
        if !self.is_acknowledged && !self.items.is_empty() {
            let places = self.items.iter().map(|item| item.position).collect();
            self.released.add([ReleasedBatch {
                id: self.id,
                incarnation: self.incarnation,
                places,
            }]);
        }
    }
}

/// The parameters of a stream read.
#[derive(Clone, Copy)]
pub(super) struct StreamReader {
    pub(super) stream: Uuid,
    /// The owner of the stream.
    pub(super) user: UserId,
    /// The maximum number of items.
    pub(super) size: usize,
}

/// The result of building a response from claimed items.
pub(super) enum ReadOutcome<T> {
    /// The response, with at least one item.
    Found(T),
    /// No item can be shown any more, and all were removed from the queue.
    Gone,
    /// No item can be shown yet.
    Early,
}

/// Registers a waiting reader for wake-ups until it is dropped.
struct WaitingReader {
    streams: Arc<StreamQueues>,
    id: Uuid,
    number: Option<i64>,
    wake: Arc<Notify>,
}

impl WaitingReader {
    fn new(streams: &Arc<StreamQueues>, id: Uuid) -> Self {
        let mut readers = streams.readers.lock();
        let entry = readers.entry(id).or_default();
        entry.readers += 1;
        let wake = Arc::clone(&entry.wake);
        drop(readers);
        Self { streams: Arc::clone(streams), id, number: None, wake }
    }
}

impl Drop for WaitingReader {
    fn drop(&mut self) {
        let mut readers = self.streams.readers.lock();
        if let Some(entry) = readers.get_mut(&self.id) {
            entry.readers -= 1;
            // Removed with its last reader, so that the map holds only streams with readers.
            if entry.readers == 0 {
                readers.remove(&self.id);
            }
        }
        drop(readers);
        // The waiting time of a poll counts as use of the stream (contract notifications-10).
        if let Some(number) = self.number {
            // If the command queue is full, other commands touch the stream soon enough.
            drop(self.streams.commands.try_send(StreamCommand::Touch { number }));
        }
    }
}

impl StreamQueues {
    /// Creates the streams of this node and the executor of their commands. Readers wait in the slots of `limits`.
    pub(super) fn new(limits: SlotLimits, node: ClusterNode) -> (Arc<Self>, StreamCommands) {
        let (commands, receiver) = mpsc::channel(STREAM_READS_MAX);
        let slots = WaitingSlots::new("stream_polls", "client_stream_polls", limits);
        let released = Arc::new(ReleasedItems::default());
        let streams = Arc::new(Self { commands, slots, readers: Mutex::default() });
        (streams, StreamCommands { receiver, released, node })
    }

    /// Returns whether no reader waits.
    pub(super) fn is_idle(&self) -> bool {
        self.readers.lock().is_empty()
    }

    /// Wakes the readers of these streams.
    pub(super) fn wake(&self, streams: &[Uuid]) {
        let readers = self.readers.lock();
        for id in streams {
            if let Some(entry) = readers.get(id) {
                entry.wake.notify_waiters();
            }
        }
    }

    /// Wakes the readers of all streams.
    pub(super) fn wake_all(&self) {
        self.readers.lock().values().for_each(|entry| entry.wake.notify_waiters());
    }

    /// Claims up to `size` items and builds a response with `respond`, and waits until there are items that can be
    /// shown. Returns `None` when `wait` has passed or `stop` completes.
    ///
    /// Fails with [`ErrorKind::NotFound`] if the user has no such stream or it expired, and with
    /// [`ErrorKind::Overloaded`] if too many readers of the user, or of all users, wait.
    pub(super) async fn read<T, F: Future<Output = Result<ReadOutcome<T>>>>(
        self: &Arc<Self>,
        reader: StreamReader,
        respond: impl Fn(StreamBatch) -> F,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<T>> {
        if self.commands.capacity() == 0 {
            // The command would wait for a free place in the channel without a time limit.
            return Err(Error::overloaded(
                "stream_asks",
                "Too many stream requests are waiting for the database",
            ));
        }
        let mut end = std::pin::pin!(async {
            tokio::select! { () = tokio::time::sleep(wait) => {}, () = stop => {} }
        });
        let mut waiting = WaitingReader::new(self, reader.stream);
        let wake = Arc::clone(&waiting.wake);
        let mut backoff = Backoff::new(EARLY_READ_RETRY);
        let mut slot = None;
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            // Registered before the claim, so that no wake-up is missed.
            woken.as_mut().enable();
            let pause = match self.try_read(reader, &mut waiting, &respond).await? {
                Some(ReadOutcome::Found(response)) => return Ok(Some(response)),
                // More items may follow the removed ones.
                Some(ReadOutcome::Gone) => continue,
                // Each attempt costs two transactions and wakes other readers.
                Some(ReadOutcome::Early) => Some(backoff.fail()),
                None => {
                    // Only a reader that has to wait needs a slot; a reader that finds items returns at once.
                    if slot.is_none() {
                        let guard = self.slots.take(Some(RequestClient::User(reader.user)))?;
                        slot = Some((guard, GaugeGuard::new(telemetry::STREAM_POLLS)));
                    }
                    None
                }
            };
            let retry = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => woken.await,
                }
            };
            tokio::select! {
                // The end comes first: at a shutdown, a reader that is also woken must not claim items.
                biased;
                () = &mut end => return Ok(None),
                () = retry => {}
            }
        }
    }

    /// Claims items and builds the response; `None` if the stream is empty.
    async fn try_read<T, F: Future<Output = Result<ReadOutcome<T>>>>(
        &self,
        reader: StreamReader,
        waiting: &mut WaitingReader,
        respond: &impl Fn(StreamBatch) -> F,
    ) -> Result<Option<ReadOutcome<T>>> {
        let (reply, claimed) = oneshot::channel();
        let claimed = self.send_command(StreamCommand::Claim { reader, reply }, claimed).await?;
        // Set for an empty batch too: the poll then waits, and its end is recorded as use.
        waiting.number = Some(claimed.number);
        if claimed.items.is_empty() {
            return Ok(None);
        }
        respond(claimed).await.map(Some)
    }

    async fn send_command<T>(
        &self,
        command: StreamCommand,
        reply: oneshot::Receiver<Result<T>>,
    ) -> Result<T> {
        self.commands
            .send(command)
            .await
            .map_err(|_| Error::new(ErrorKind::Unavailable, "The service is stopping"))?;
        // Without a reply, the transaction failed, which was logged.
        reply.await.map_err(|_| stream_unavailable())?
    }

    /// Removes the items in `read`, each at the version that was sent. The other items of `claimed` are released.
    pub(super) async fn acknowledge(
        self: &Arc<Self>,
        claimed: StreamBatch,
        read: Vec<(i64, i64)>,
    ) -> Result<()> {
        let (reply, acknowledged) = oneshot::channel();
        self.send_command(StreamCommand::Acknowledge { claimed, read, reply }, acknowledged).await
    }
}

/// Executes the commands of readers in the order of their arrival.
pub struct StreamCommands {
    receiver: mpsc::Receiver<StreamCommand>,
    released: Arc<ReleasedItems>,
    node: ClusterNode,
}

/// The outcome of a command within a transaction.
enum CommandOutcome {
    Claimed(Result<StreamBatch>, oneshot::Sender<Result<StreamBatch>>),
    /// The flag is true if items were released.
    Acknowledged(StreamBatch, bool, oneshot::Sender<Result<()>>),
    /// The incarnation that claimed the items has expired.
    Lost(StreamBatch, oneshot::Sender<Result<()>>),
}

impl StreamCommands {
    /// Executes commands until all senders are dropped.
    pub(super) async fn run(
        mut self,
        db: Db,
        streams: Weak<StreamQueues>,
        now: fn() -> Timestamp,
    ) {
        let mut last_run: Option<Timestamp> = None;
        loop {
            let mut commands = Vec::new();
            tokio::select! {
                biased;
                first = self.receiver.recv() => match first {
                    Some(first) => commands.push(first),
                    None => return,
                },
                () = self.released.wake.notified() => {}
            }
            // Commands that arrived meanwhile share the transaction. The maximum bounds the time for which it
            // holds the write lock.
            while commands.len() < STREAM_READS_PER_TRANSACTION {
                let Ok(next) = self.receiver.try_recv() else { break };
                commands.push(next);
            }
            // Comes before the claims, so that they see the items that other readers released.
            self.release_items(&db, &streams).await;
            if commands.is_empty() {
                continue;
            }
            let now = now();
            // A clock jump must not expire a stream.
            let clock_jumped =
                last_run.is_none_or(|last_run| now < last_run || now > last_run + DOWNTIME_MIN);
            last_run = Some(now);
            let incarnation = self.node.incarnation();
            let released = Arc::clone(&self.released);
            let written = db.write(move |tx| {
                if clock_jumped {
                    record_heartbeat(tx, now)?;
                }
                run_commands(tx, commands, incarnation, &released, now)
            });
            // If the transaction fails, the reply channels are dropped, which readers see as an error.
            match written.await {
                Ok(outcomes) => {
                    let woken: Vec<Uuid> =
                        outcomes.iter().filter_map(CommandOutcome::released_stream).collect();
                    outcomes.into_iter().for_each(CommandOutcome::reply);
                    if let Some(streams) = streams.upgrade() {
                        streams.wake(&woken);
                    }
                }
                Err(cause) => tracing::error!("stream transaction failed: {cause}"),
            }
        }
    }

    /// Writes the release of items and wakes the readers of their streams.
    async fn release_items(&self, db: &Db, streams: &Weak<StreamQueues>) {
        let batches = self.released.drain();
        if batches.is_empty() {
            return;
        }
        let batches = Arc::new(batches);
        let shared = Arc::clone(&batches);
        let release = db.write(move |tx| {
            shared
                .iter()
                .try_for_each(|batch| tx.release_queued_items(&batch.places, batch.incarnation))
        });
        if let Err(cause) = release.await {
            tracing::error!("release of stream items failed, retrying: {cause}");
            let released = Arc::clone(&self.released);
            // In a separate task, because readers must not wait for the retry.
            tokio::spawn(async move {
                tokio::time::sleep(RELEASE_RETRY_INTERVAL).await;
                // Copied if the failed write still shares the batches: dropped batches would stay in flight until
                // this process ends.
                released.add(Arc::unwrap_or_clone(batches));
            });
            return;
        }
        let ids: Vec<Uuid> = batches.iter().map(|batch| batch.id).collect();
        if let Some(streams) = streams.upgrade() {
            streams.wake(&ids);
        }
    }
}

impl CommandOutcome {
    /// Returns the stream in which items became available to other readers.
    fn released_stream(&self) -> Option<Uuid> {
        match self {
            Self::Acknowledged(claimed, true, _) => Some(claimed.id),
            Self::Acknowledged(_, false, _) | Self::Claimed(..) | Self::Lost(..) => None,
        }
    }

    fn reply(self) {
        match self {
            // If the reader does not exist any more, dropping the batch releases it.
            Self::Claimed(claimed, reply) => drop(reply.send(claimed)),
            Self::Acknowledged(mut claimed, _, reply) => {
                // Only now is it committed: after a failed transaction, dropping the batch releases all of it.
                claimed.is_acknowledged = true;
                drop(claimed);
                drop(reply.send(Ok(())));
            }
            Self::Lost(claimed, reply) => {
                drop(claimed);
                drop(reply.send(Err(stream_unavailable())));
            }
        }
    }
}

fn stream_unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "The stream cannot be read now")
}

fn run_commands(
    tx: &WriteTx<'_>,
    commands: Vec<StreamCommand>,
    incarnation: Uuid,
    released: &Arc<ReleasedItems>,
    now: Timestamp,
) -> DbResult<Vec<CommandOutcome>> {
    // After expiry, other nodes release the items of this incarnation, so it must not claim more.
    let is_alive = tx.is_alive(incarnation)?;
    let mut outcomes = Vec::with_capacity(commands.len());
    for command in commands {
        outcomes.push(match command {
            StreamCommand::Claim { reply, .. } if !is_alive => {
                CommandOutcome::Claimed(Err(stream_unavailable()), reply)
            }
            StreamCommand::Claim { reader, reply } => {
                let claimed = match claim_items(tx, released, incarnation, reader, now) {
                    Ok(claimed) => claimed.ok_or_else(|| {
                        let message = "There is no such stream, or it was not used for 5 minutes";
                        Error::new(ErrorKind::NotFound, message).with_code("stream_not_found")
                    }),
                    // One damaged queue must not block the others.
                    Err(cause @ DbError::Damaged { .. }) => Err(cause.into()),
                    Err(cause) => return Err(cause),
                };
                CommandOutcome::Claimed(claimed, reply)
            }
            StreamCommand::Acknowledge { claimed, read, reply } => {
                match acknowledge(tx, &claimed, &read)? {
                    Some(remaining) => {
                        // A client that receives a large response slowly still uses the stream.
                        tx.touch_stream(claimed.number, now)?;
                        CommandOutcome::Acknowledged(claimed, remaining > 0, reply)
                    }
                    None => CommandOutcome::Lost(claimed, reply),
                }
            }
            StreamCommand::Touch { number } => {
                tx.touch_stream(number, now)?;
                continue;
            }
        });
    }
    Ok(outcomes)
}

/// Removes the items in `read` from the queue and releases the rest. Returns the number of released items. Returns
/// `None` and writes nothing if the claiming incarnation has expired, because a different incarnation may have the
/// items already.
fn acknowledge(
    tx: &WriteTx<'_>,
    claimed: &StreamBatch,
    read: &[(i64, i64)],
) -> DbResult<Option<usize>> {
    if !tx.is_alive(claimed.incarnation)? {
        return Ok(None);
    }
    let mut remaining: Vec<i64> = claimed.items.iter().map(|item| item.position).collect();
    for (place, seq) in read {
        if tx.remove_queued_item(*place, *seq, claimed.incarnation)? {
            remaining.retain(|position| position != place);
        }
    }
    // An item that was not found was trimmed from a full queue, removed with its notification, or queued again and
    // stays. On an engine with concurrent writers, the incarnation may have been ended since the first check.
    if !tx.is_alive(claimed.incarnation)? {
        let why = "it was ended while its items were read".to_owned();
        return Err(DbError::Damaged { what: format!("node {}", claimed.incarnation), why });
    }
    tx.release_queued_items(&remaining, claimed.incarnation)?;
    Ok(Some(remaining.len()))
}

/// Claims the first unclaimed items of a stream.
fn claim_items(
    tx: &WriteTx<'_>,
    released: &Arc<ReleasedItems>,
    incarnation: Uuid,
    StreamReader { stream, user, size }: StreamReader,
    now: Timestamp,
) -> DbResult<Option<StreamBatch>> {
    // A reader waits for at most a minute, so the stream does not expire if it is touched when the reader arrives.
    let expired = now - STREAM_EXPIRY;
    let Some(found) = tx.find_stream(stream, user, expired)? else { return Ok(None) };
    tx.touch_stream(found.number, now)?;
    let items = tx.claim_queued_items(found.number, size, incarnation)?;
    let released = Arc::clone(released);
    Ok(Some(StreamBatch {
        released,
        id: stream,
        number: found.number,
        incarnation,
        items,
        is_acknowledged: false,
    }))
}
