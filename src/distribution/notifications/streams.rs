//! Streams: queues that clients read (contract notifications-8, notifications-9).
//!
//! An item is *under way* from the moment a reader takes it until the answer is on its way: other
//! readers, of whichever node, pass it over, and it stays in the database, which says that this life of
//! this node has it. The row goes in a transaction of its own when everything but the last byte of the
//! answer was handed to the connection; only then does that byte follow. So a client that has a whole answer
//! never gets its items again, and what was under way when the client vanished, or the process was killed, is
//! in its old place: at once where this node dropped it or starts again, else when others find the life over.
//! A life that is over takes nothing off a queue, so an answer that comes too late does not become whole.
//!
//! Where doubt remains: between that transaction and the client's receiving the last byte. What
//! was handed to the connection may still lie in a buffer, ours or the system's. A client that
//! vanishes without a word, or a process that is killed, within that moment loses the answer's
//! items.
//!
//! Readers are woken by whoever queues items in the same process, and by
//! [`super::Notifications::wake_readers`] when another one did. Calls of readers are gathered into
//! transactions of many, so that ten thousand that wait cost nothing, and ten thousand that are woken ten
//! transactions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc, oneshot};
use uuid::Uuid;

use super::notification_matcher::{DOWNTIME_MIN, record_heartbeat};
use crate::cluster::membership::{ClusterNode, limits::RELEASE_RETRY_INTERVAL};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::{
    STREAM_EXPIRY, STREAM_READS_MAX, STREAM_READS_PER_TRANSACTION, STREAM_RETRY_FIRST,
    STREAM_RETRY_MAX,
};
use crate::runtime::slots::{SlotHolder, SlotLimits, WaitingSlots};
use crate::runtime::telemetry;
use crate::storage::database::{Db, DbError, QueuedItem, WriteTx};
use model::account::UserId;
use model::{Backoff, RetryPolicy};

/// When a reader looks again at items that may not be given out yet.
const EARLY_READ_RETRY: RetryPolicy =
    RetryPolicy::without_deadline(STREAM_RETRY_FIRST, STREAM_RETRY_MAX);

/// The streams that are read.
pub(super) struct StreamQueues {
    commands: mpsc::Sender<StreamCommand>,
    slots: WaitingSlots,
    /// Who waits, by stream.
    readers: Mutex<HashMap<Uuid, StreamReaders>>,
}

/// Items that go back and that the database does not know of yet.
#[derive(Default)]
struct ReleasedItems {
    list: Mutex<Vec<ReleasedBatch>>,
    wake: Notify,
}

struct ReleasedBatch {
    id: Uuid,
    incarnation: Uuid,
    places: Vec<i64>,
}

impl ReleasedItems {
    fn add(&self, returned: impl IntoIterator<Item = ReleasedBatch>) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).extend(returned);
        self.wake.notify_one();
    }

    fn drain(&self) -> Vec<ReleasedBatch> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct StreamReaders {
    wake: Arc<Notify>,
    readers: usize,
}

/// What readers want of the database. Many are done in one transaction.
enum StreamCommand {
    Claim { id: Uuid, user: UserId, size: usize, reply: oneshot::Sender<Result<StreamBatch>> },
    Acknowledge { taken: StreamBatch, read: Vec<(i64, i64)>, reply: oneshot::Sender<Result<()>> },
    Touch { number: i64 },
}

/// Items under way; they go back when this is dropped.
pub(super) struct StreamBatch {
    returns: Arc<ReleasedItems>,
    id: Uuid,
    number: i64,
    /// The life that has them.
    incarnation: Uuid,
    /// In their order.
    pub(super) items: Vec<QueuedItem>,
    /// Whether the database knows already what became of them.
    is_acknowledged: bool,
}

impl Drop for StreamBatch {
    fn drop(&mut self) {
        if !self.is_acknowledged && !self.items.is_empty() {
            let places = self.items.iter().map(|item| item.place).collect();
            self.returns.add([ReleasedBatch {
                id: self.id,
                incarnation: self.incarnation,
                places,
            }]);
        }
    }
}

/// A request for items of a stream.
#[derive(Clone, Copy)]
pub(super) struct StreamReader {
    /// The stream.
    pub(super) stream: Uuid,
    /// Its user.
    pub(super) user: UserId,
    /// Items at most.
    pub(super) size: usize,
}

/// What a look at items under way came to.
pub(super) enum ReadOutcome<T> {
    /// The answer that carries some.
    Found(T),
    /// None can be given; they left the queue.
    Gone,
    /// None can be given yet.
    Early,
}

/// Counts a reader for as long as it waits.
struct WaitingReader {
    streams: Arc<StreamQueues>,
    id: Uuid,
    number: Option<i64>,
    wake: Arc<Notify>,
}

impl WaitingReader {
    fn new(streams: &Arc<StreamQueues>, id: Uuid) -> Self {
        let mut readers = streams.readers();
        let reading = readers
            .entry(id)
            .or_insert_with(|| StreamReaders { wake: Arc::new(Notify::new()), readers: 0 });
        reading.readers += 1;
        let wake = Arc::clone(&reading.wake);
        drop(readers);
        Self { streams: Arc::clone(streams), id, number: None, wake }
    }
}

impl Drop for WaitingReader {
    fn drop(&mut self) {
        let mut readers = self.streams.readers();
        if let Some(reading) = readers.get_mut(&self.id) {
            reading.readers -= 1;
            if reading.readers == 0 {
                readers.remove(&self.id);
            }
        }
        drop(readers);
        if let Some(number) = self.number {
            // A full queue of asks touches the stream soon enough.
            drop(self.streams.commands.try_send(StreamCommand::Touch { number }));
        }
    }
}

/// Counts a poll for as long as it has a place.
struct ReaderGauge;

impl ReaderGauge {
    fn new() -> Self {
        metrics::gauge!(telemetry::STREAM_POLLS).increment(1.0);
        Self
    }
}

impl Drop for ReaderGauge {
    fn drop(&mut self) {
        metrics::gauge!(telemetry::STREAM_POLLS).decrement(1.0);
    }
}

impl StreamQueues {
    /// Streams whose readers wait in the slots of `limits` at this node, and what does their work.
    pub(super) fn new(limits: SlotLimits, node: ClusterNode) -> (Arc<Self>, StreamCommands) {
        let (asks, receiver) = mpsc::channel(STREAM_READS_MAX);
        let slots = WaitingSlots::new("stream_polls", "client_stream_polls", limits);
        let returns = Arc::new(ReleasedItems::default());
        let streams = Arc::new(Self { commands: asks, slots, readers: Mutex::default() });
        (streams, StreamCommands { receiver, returns, node })
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<Uuid, StreamReaders>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.readers().is_empty()
    }

    /// Wakes those who wait for these streams.
    pub(super) fn wake(&self, streams: &[Uuid]) {
        let readers = self.readers();
        for id in streams {
            if let Some(reading) = readers.get(id) {
                reading.wake.notify_waiters();
            }
        }
    }

    /// Wakes all who wait.
    pub(super) fn wake_all(&self) {
        self.readers().values().for_each(|reading| reading.wake.notify_waiters());
    }

    /// Up to `size` items of the stream as soon as there are some for which `give` gives something;
    /// nothing once `wait` is over or `stop` comes.
    ///
    /// Fails with [`ErrorKind::NotFound`] when the user has no such stream or it expired, with
    /// [`ErrorKind::Overloaded`] when too many of the user, or of all users, wait.
    pub(super) async fn read<T, F: Future<Output = Result<ReadOutcome<T>>>>(
        self: &Arc<Self>,
        reader: StreamReader,
        give: impl Fn(StreamBatch) -> F,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<T>> {
        if self.commands.capacity() == 0 {
            // It would wait for a place to ask in, and nothing says for how long.
            return Err(Error::overloaded(
                "stream_asks",
                "Too many requests of streams are asked",
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
            // From here on no call is missed.
            woken.as_mut().enable();
            let pause = match self.try_read(reader, &mut waiting, &give).await? {
                Some(ReadOutcome::Found(given)) => return Ok(Some(given)),
                // There may be more behind them.
                Some(ReadOutcome::Gone) => continue,
                // Each look is two transactions that wake others.
                Some(ReadOutcome::Early) => Some(backoff.fail()),
                None => {
                    if slot.is_none() {
                        let held = self.slots.take(Some(SlotHolder::User(reader.user)))?;
                        slot = Some((held, ReaderGauge::new()));
                    }
                    None
                }
            };
            let again = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => woken.await,
                }
            };
            tokio::select! {
                biased;
                () = &mut end => return Ok(None),
                () = again => {}
            }
        }
    }

    /// Takes what the stream holds and gives it; `None` when it holds nothing.
    async fn try_read<T, F: Future<Output = Result<ReadOutcome<T>>>>(
        &self,
        reader: StreamReader,
        waiting: &mut WaitingReader,
        give: &impl Fn(StreamBatch) -> F,
    ) -> Result<Option<ReadOutcome<T>>> {
        let StreamReader { stream, user, size } = reader;
        let (reply, taken) = oneshot::channel();
        let taken = self
            .send_command(StreamCommand::Claim { id: stream, user, size, reply }, taken)
            .await?;
        waiting.number = Some(taken.number);
        if taken.items.is_empty() {
            return Ok(None);
        }
        give(taken).await.map(Some)
    }

    async fn send_command<T>(
        &self,
        ask: StreamCommand,
        reply: oneshot::Receiver<Result<T>>,
    ) -> Result<T> {
        let closed = |_| Error::new(ErrorKind::Unavailable, "The service is stopping");
        self.commands.send(ask).await.map_err(closed)?;
        // Its transaction failed, which is in the log.
        let failed = |_| Error::new(ErrorKind::Unavailable, "The stream cannot be read now");
        reply.await.map_err(failed)?
    }

    /// Takes items that were given out for good, each with the version that was given; the others of
    /// `taken` go back.
    pub(super) async fn acknowledge(
        self: &Arc<Self>,
        taken: StreamBatch,
        read: Vec<(i64, i64)>,
    ) -> Result<()> {
        let (reply, settled) = oneshot::channel();
        self.send_command(StreamCommand::Acknowledge { taken, read, reply }, settled).await
    }
}

/// What readers want, in the order in which they came.
pub struct StreamCommands {
    receiver: mpsc::Receiver<StreamCommand>,
    returns: Arc<ReleasedItems>,
    node: ClusterNode,
}

/// What became of an ask within a transaction.
enum CommandOutcome {
    Claimed(Option<StreamBatch>, oneshot::Sender<Result<StreamBatch>>),
    Refused(Error, oneshot::Sender<Result<StreamBatch>>),
    /// And whether something went back.
    Acknowledged(StreamBatch, bool, oneshot::Sender<Result<()>>),
    /// What was read is not this life's any more.
    Lost(StreamBatch, oneshot::Sender<Result<()>>),
    Touched,
}

/// What a transaction is about.
struct CommandBatch {
    commands: Vec<StreamCommand>,
    incarnation: Uuid,
    returns: Arc<ReleasedItems>,
    now: Timestamp,
    /// Whether time jumped since the last one.
    clock_jumped: bool,
}

impl StreamCommands {
    /// Does what readers want until nobody is left who could want something.
    pub(super) async fn run(
        mut self,
        db: Db,
        streams: std::sync::Weak<StreamQueues>,
        now: fn() -> Timestamp,
    ) {
        let mut alive: Option<Timestamp> = None;
        loop {
            let mut asks = Vec::new();
            tokio::select! {
                biased;
                first = self.receiver.recv() => match first {
                    Some(first) => asks.push(first),
                    None => return,
                },
                () = self.returns.wake.notified() => {}
            }
            while asks.len() < STREAM_READS_PER_TRANSACTION {
                let Ok(next) = self.receiver.try_recv() else { break };
                asks.push(next);
            }
            self.release_items(&db, &streams).await;
            if asks.is_empty() {
                continue;
            }
            let now = now();
            // Where the clock jumped, nobody is late because of it.
            let jumped = alive.is_none_or(|alive| now < alive || now > alive + DOWNTIME_MIN);
            alive = Some(now);
            let (life, returns) = (self.node.incarnation(), Arc::clone(&self.returns));
            let batch = CommandBatch {
                commands: asks,
                incarnation: life,
                returns,
                now,
                clock_jumped: jumped,
            };
            // Replies whose transaction failed are dropped with it, which their readers see.
            match db.write(move |tx| run_command(tx, batch)).await {
                Ok(done) => {
                    let free: Vec<Uuid> =
                        done.iter().filter_map(CommandOutcome::freed_stream).collect();
                    done.into_iter().for_each(CommandOutcome::reply);
                    if let Some(streams) = streams.upgrade() {
                        streams.wake(&free);
                    }
                }
                Err(cause) => tracing::error!("streams cannot be read: {cause}"),
            }
        }
    }

    /// Writes that items went back, and wakes who waits for them.
    async fn release_items(&self, db: &Db, streams: &std::sync::Weak<StreamQueues>) {
        let returned = self.returns.drain();
        if returned.is_empty() {
            return;
        }
        let written = Arc::new(returned);
        let ours = Arc::clone(&written);
        let free = move |tx: &WriteTx<'_>| {
            ours.iter().try_for_each(|one| tx.release_queued_items(&one.places, one.incarnation))
        };
        if let Err(cause) = db.write(free).await {
            tracing::error!("items that were not read cannot be put back yet: {cause}");
            let returns = Arc::clone(&self.returns);
            tokio::spawn(async move {
                tokio::time::sleep(RELEASE_RETRY_INTERVAL).await;
                returns.add(Arc::into_inner(written).unwrap_or_default());
            });
            return;
        }
        let ids: Vec<Uuid> = written.iter().map(|one| one.id).collect();
        if let Some(streams) = streams.upgrade() {
            streams.wake(&ids);
        }
    }
}

impl CommandOutcome {
    /// The stream in whose queue it left something that others may take.
    fn freed_stream(&self) -> Option<Uuid> {
        match self {
            Self::Acknowledged(taken, true, _) => Some(taken.id),
            Self::Acknowledged(_, false, _)
            | Self::Claimed(..)
            | Self::Refused(..)
            | Self::Lost(..)
            | Self::Touched => None,
        }
    }

    fn reply(self) {
        match self {
            Self::Claimed(Some(taken), reply) => {
                // A reader that is gone drops what it took, which puts it back.
                drop(reply.send(Ok(taken)));
            }
            Self::Claimed(None, reply) => {
                let gone = "There is no such stream, or it was not used for 5 minutes";
                drop(reply.send(Err(Error::new(ErrorKind::NotFound, gone))));
            }
            Self::Refused(cause, reply) => drop(reply.send(Err(cause))),
            Self::Acknowledged(mut taken, _, reply) => {
                // Only now it is on disk: where the transaction fails, all of it goes back.
                taken.is_acknowledged = true;
                drop(taken);
                drop(reply.send(Ok(())));
            }
            Self::Lost(taken, reply) => {
                drop(taken);
                drop(reply.send(Err(stream_unavailable())));
            }
            Self::Touched => {}
        }
    }
}

fn stream_unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "The stream cannot be read now")
}

fn run_command(tx: &WriteTx<'_>, batch: CommandBatch) -> Result<Vec<CommandOutcome>, DbError> {
    let CommandBatch { commands: asks, incarnation: life, returns, now, clock_jumped: jumped } =
        batch;
    if jumped {
        record_heartbeat(tx, now)?;
    }
    let lives = tx.as_read().is_alive(life)?;
    let mut done = Vec::with_capacity(asks.len());
    for ask in asks {
        done.push(match ask {
            StreamCommand::Claim { reply, .. } if !lives => {
                CommandOutcome::Refused(stream_unavailable(), reply)
            }
            StreamCommand::Claim { id, user, size, reply } => {
                match claim_items(tx, &returns, life, id, user, size, now) {
                    Ok(taken) => CommandOutcome::Claimed(taken, reply),
                    // One damaged queue must not keep others from theirs.
                    Err(cause @ DbError::Damaged { .. }) => {
                        CommandOutcome::Refused(cause.into(), reply)
                    }
                    Err(cause) => return Err(cause),
                }
            }
            StreamCommand::Acknowledge { taken, read, reply } => {
                match acknowledge(tx, &taken, &read)? {
                    Some(back) => {
                        tx.touch_stream(taken.number, now)?;
                        CommandOutcome::Acknowledged(taken, back > 0, reply)
                    }
                    None => CommandOutcome::Lost(taken, reply),
                }
            }
            StreamCommand::Touch { number } => {
                tx.touch_stream(number, now)?;
                CommandOutcome::Touched
            }
        });
    }
    Ok(done)
}

/// Takes what was read off the queue and puts the rest back, so many; `None`, and nothing is written, when
/// the life is over that had it: somebody else may have it by now.
fn acknowledge(
    tx: &WriteTx<'_>,
    taken: &StreamBatch,
    read: &[(i64, i64)],
) -> Result<Option<usize>, DbError> {
    if !tx.as_read().is_alive(taken.incarnation)? {
        return Ok(None);
    }
    let mut stay: Vec<i64> = taken.items.iter().map(|item| item.place).collect();
    for (place, seq) in read {
        if tx.remove_queued_item(*place, *seq, taken.incarnation)? {
            stay.retain(|one| one != place);
        }
    }
    // What was not there fell out of a full queue or went with its notification, or was put in again
    // and stays. An engine on which others write meanwhile may have ended the life since.
    if !tx.as_read().is_alive(taken.incarnation)? {
        let why = "it was ended while what it had was read".to_owned();
        return Err(DbError::Damaged { what: format!("node {}", taken.incarnation), why });
    }
    tx.release_queued_items(&stay, taken.incarnation)?;
    Ok(Some(stay.len()))
}

/// Takes the first items of a stream that nobody else took.
fn claim_items(
    tx: &WriteTx<'_>,
    returns: &Arc<ReleasedItems>,
    life: Uuid,
    id: Uuid,
    user: UserId,
    size: usize,
    now: Timestamp,
) -> Result<Option<StreamBatch>, DbError> {
    // A reader waits for a minute at most, so that it keeps the stream in use by having come.
    let expired = now - STREAM_EXPIRY;
    let Some(found) = tx.as_read().find_stream(id, user, expired)? else { return Ok(None) };
    tx.touch_stream(found.number, now)?;
    let items = tx.claim_queued_items(found.number, size, life)?;
    let returns = Arc::clone(returns);
    Ok(Some(StreamBatch {
        returns,
        id,
        number: found.number,
        incarnation: life,
        items,
        is_acknowledged: false,
    }))
}
