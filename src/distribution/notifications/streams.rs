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

use super::watching::{SILENCE, take_up};
use crate::cluster::membership::{Node, limits::RETURN_AGAIN};
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{
    STREAM_ASKS_AT_A_TIME, STREAM_ASKS_MAX, STREAM_EXPIRY, STREAM_LOOK_AGAIN,
    STREAM_LOOK_AGAIN_MAX,
};
use crate::runtime::slots::{SlotHolder, SlotLimits, Slots};
use crate::runtime::telemetry;
use crate::storage::database::{Db, DbError, QueuedItem, WriteTx};
use model::account::UserId;
use model::{Backoff, RetryPolicy};

/// When a reader looks again at items that may not be given out yet.
const EARLY_LOOKS: RetryPolicy = RetryPolicy::endless(STREAM_LOOK_AGAIN, STREAM_LOOK_AGAIN_MAX);

/// The streams that are read.
pub(super) struct Streams {
    asks: mpsc::Sender<Ask>,
    slots: Slots,
    /// Who waits, by stream.
    readers: Mutex<HashMap<Uuid, Reading>>,
}

/// Items that go back and that the database does not know of yet.
#[derive(Default)]
struct Returns {
    list: Mutex<Vec<Returned>>,
    wake: Notify,
}

struct Returned {
    id: Uuid,
    life: Uuid,
    places: Vec<i64>,
}

impl Returns {
    fn add(&self, returned: impl IntoIterator<Item = Returned>) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).extend(returned);
        self.wake.notify_one();
    }

    fn take(&self) -> Vec<Returned> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Reading {
    wake: Arc<Notify>,
    readers: usize,
}

/// What readers want of the database. Many are done in one transaction.
enum Ask {
    Take { id: Uuid, user: UserId, size: usize, reply: oneshot::Sender<Result<Taken>> },
    Settle { taken: Taken, read: Vec<(i64, i64)>, reply: oneshot::Sender<Result<()>> },
    Touch { number: i64 },
}

/// Items under way; they go back when this is dropped.
pub(super) struct Taken {
    returns: Arc<Returns>,
    id: Uuid,
    number: i64,
    /// The life that has them.
    life: Uuid,
    /// In their order.
    pub(super) items: Vec<QueuedItem>,
    /// Whether the database knows already what became of them.
    settled: bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.settled && !self.items.is_empty() {
            let places = self.items.iter().map(|item| item.place).collect();
            self.returns.add([Returned { id: self.id, life: self.life, places }]);
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
pub(super) enum Look<T> {
    /// The answer that carries some.
    Given(T),
    /// None can be given; they left the queue.
    Gone,
    /// None can be given yet.
    Early,
}

/// Counts a reader for as long as it waits.
struct Waiting {
    streams: Arc<Streams>,
    id: Uuid,
    number: Option<i64>,
    wake: Arc<Notify>,
}

impl Waiting {
    fn new(streams: &Arc<Streams>, id: Uuid) -> Self {
        let mut readers = streams.readers();
        let reading = readers
            .entry(id)
            .or_insert_with(|| Reading { wake: Arc::new(Notify::new()), readers: 0 });
        reading.readers += 1;
        let wake = Arc::clone(&reading.wake);
        drop(readers);
        Self { streams: Arc::clone(streams), id, number: None, wake }
    }
}

impl Drop for Waiting {
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
            drop(self.streams.asks.try_send(Ask::Touch { number }));
        }
    }
}

/// Counts a poll for as long as it has a place.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!(telemetry::STREAM_POLLS).increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(telemetry::STREAM_POLLS).decrement(1.0);
    }
}

impl Streams {
    /// Streams whose readers wait in the slots of `limits` at this node, and what does their work.
    pub(super) fn new(limits: SlotLimits, node: Node) -> (Arc<Self>, Asks) {
        let (asks, receiver) = mpsc::channel(STREAM_ASKS_MAX);
        let slots = Slots::new("stream_polls", "client_stream_polls", limits);
        let returns = Arc::new(Returns::default());
        let streams = Arc::new(Self { asks, slots, readers: Mutex::default() });
        (streams, Asks { receiver, returns, node })
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<Uuid, Reading>> {
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
    /// Fails with [`Kind::NotFound`] when the user has no such stream or it expired, with
    /// [`Kind::Overloaded`] when too many of the user, or of all users, wait.
    pub(super) async fn read<T, F: Future<Output = Result<Look<T>>>>(
        self: &Arc<Self>,
        reader: StreamReader,
        give: impl Fn(Taken) -> F,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<T>> {
        if self.asks.capacity() == 0 {
            // It would wait for a place to ask in, and nothing says for how long.
            return Err(Error::overloaded(
                "stream_asks",
                "Too many requests of streams are asked",
            ));
        }
        let mut end = std::pin::pin!(async {
            tokio::select! { () = tokio::time::sleep(wait) => {}, () = stop => {} }
        });
        let mut waiting = Waiting::new(self, reader.stream);
        let wake = Arc::clone(&waiting.wake);
        let mut backoff = Backoff::new(EARLY_LOOKS);
        let mut slot = None;
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            // From here on no call is missed.
            woken.as_mut().enable();
            let pause = match self.look(reader, &mut waiting, &give).await? {
                Some(Look::Given(given)) => return Ok(Some(given)),
                // There may be more behind them.
                Some(Look::Gone) => continue,
                // Each look is two transactions that wake others.
                Some(Look::Early) => Some(backoff.fail()),
                None => {
                    if slot.is_none() {
                        let held = self.slots.take(Some(SlotHolder::User(reader.user)))?;
                        slot = Some((held, Counted::new()));
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
    async fn look<T, F: Future<Output = Result<Look<T>>>>(
        &self,
        reader: StreamReader,
        waiting: &mut Waiting,
        give: &impl Fn(Taken) -> F,
    ) -> Result<Option<Look<T>>> {
        let StreamReader { stream, user, size } = reader;
        let (reply, taken) = oneshot::channel();
        let taken = self.ask(Ask::Take { id: stream, user, size, reply }, taken).await?;
        waiting.number = Some(taken.number);
        if taken.items.is_empty() {
            return Ok(None);
        }
        give(taken).await.map(Some)
    }

    async fn ask<T>(&self, ask: Ask, reply: oneshot::Receiver<Result<T>>) -> Result<T> {
        let closed = |_| Error::new(Kind::Unavailable, "The service is stopping");
        self.asks.send(ask).await.map_err(closed)?;
        // Its transaction failed, which is in the log.
        let failed = |_| Error::new(Kind::Unavailable, "The stream cannot be read now");
        reply.await.map_err(failed)?
    }

    /// Takes items that were given out for good, each with the version that was given; the others of
    /// `taken` go back.
    pub(super) async fn settle(
        self: &Arc<Self>,
        taken: Taken,
        read: Vec<(i64, i64)>,
    ) -> Result<()> {
        let (reply, settled) = oneshot::channel();
        self.ask(Ask::Settle { taken, read, reply }, settled).await
    }
}

/// What readers want, in the order in which they came.
pub struct Asks {
    receiver: mpsc::Receiver<Ask>,
    returns: Arc<Returns>,
    node: Node,
}

/// What became of an ask within a transaction.
enum Done {
    Taken(Option<Taken>, oneshot::Sender<Result<Taken>>),
    Refused(Error, oneshot::Sender<Result<Taken>>),
    /// And whether something went back.
    Settled(Taken, bool, oneshot::Sender<Result<()>>),
    /// What was read is not this life's any more.
    Lost(Taken, oneshot::Sender<Result<()>>),
    Touched,
}

/// What a transaction is about.
struct Batch {
    asks: Vec<Ask>,
    life: Uuid,
    returns: Arc<Returns>,
    now: Timestamp,
    /// Whether time jumped since the last one.
    jumped: bool,
}

impl Asks {
    /// Does what readers want until nobody is left who could want something.
    pub(super) async fn run(
        mut self,
        db: Db,
        streams: std::sync::Weak<Streams>,
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
            while asks.len() < STREAM_ASKS_AT_A_TIME {
                let Ok(next) = self.receiver.try_recv() else { break };
                asks.push(next);
            }
            self.put_back(&db, &streams).await;
            if asks.is_empty() {
                continue;
            }
            let now = now();
            // Where the clock jumped, nobody is late because of it.
            let jumped = alive.is_none_or(|alive| now < alive || now > alive + SILENCE);
            alive = Some(now);
            let (life, returns) = (self.node.life(), Arc::clone(&self.returns));
            let batch = Batch { asks, life, returns, now, jumped };
            // Replies whose transaction failed are dropped with it, which their readers see.
            match db.write(move |tx| work(tx, batch)).await {
                Ok(done) => {
                    let free: Vec<Uuid> = done.iter().filter_map(Done::frees).collect();
                    done.into_iter().for_each(Done::reply);
                    if let Some(streams) = streams.upgrade() {
                        streams.wake(&free);
                    }
                }
                Err(cause) => tracing::error!("streams cannot be read: {cause}"),
            }
        }
    }

    /// Writes that items went back, and wakes who waits for them.
    async fn put_back(&self, db: &Db, streams: &std::sync::Weak<Streams>) {
        let returned = self.returns.take();
        if returned.is_empty() {
            return;
        }
        let written = Arc::new(returned);
        let ours = Arc::clone(&written);
        let free = move |tx: &WriteTx<'_>| {
            ours.iter().try_for_each(|one| tx.free_queued_items(&one.places, one.life))
        };
        if let Err(cause) = db.write(free).await {
            tracing::error!("items that were not read cannot be put back yet: {cause}");
            let returns = Arc::clone(&self.returns);
            tokio::spawn(async move {
                tokio::time::sleep(RETURN_AGAIN).await;
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

impl Done {
    /// The stream in whose queue it left something that others may take.
    fn frees(&self) -> Option<Uuid> {
        match self {
            Self::Settled(taken, true, _) => Some(taken.id),
            Self::Settled(_, false, _)
            | Self::Taken(..)
            | Self::Refused(..)
            | Self::Lost(..)
            | Self::Touched => None,
        }
    }

    fn reply(self) {
        match self {
            Self::Taken(Some(taken), reply) => {
                // A reader that is gone drops what it took, which puts it back.
                drop(reply.send(Ok(taken)));
            }
            Self::Taken(None, reply) => {
                let gone = "There is no such stream, or it was not used for 5 minutes";
                drop(reply.send(Err(Error::new(Kind::NotFound, gone))));
            }
            Self::Refused(cause, reply) => drop(reply.send(Err(cause))),
            Self::Settled(mut taken, _, reply) => {
                // Only now it is on disk: where the transaction fails, all of it goes back.
                taken.settled = true;
                drop(taken);
                drop(reply.send(Ok(())));
            }
            Self::Lost(taken, reply) => {
                drop(taken);
                drop(reply.send(Err(held_up())));
            }
            Self::Touched => {}
        }
    }
}

fn held_up() -> Error {
    Error::new(Kind::Unavailable, "The stream cannot be read now")
}

fn work(tx: &WriteTx<'_>, batch: Batch) -> Result<Vec<Done>, DbError> {
    let Batch { asks, life, returns, now, jumped } = batch;
    if jumped {
        take_up(tx, now)?;
    }
    let lives = tx.as_read().is_alive(life)?;
    let mut done = Vec::with_capacity(asks.len());
    for ask in asks {
        done.push(match ask {
            Ask::Take { reply, .. } if !lives => Done::Refused(held_up(), reply),
            Ask::Take { id, user, size, reply } => {
                match take(tx, &returns, life, id, user, size, now) {
                    Ok(taken) => Done::Taken(taken, reply),
                    // One damaged queue must not keep others from theirs.
                    Err(cause @ DbError::Damaged { .. }) => Done::Refused(cause.into(), reply),
                    Err(cause) => return Err(cause),
                }
            }
            Ask::Settle { taken, read, reply } => match settle(tx, &taken, &read)? {
                Some(back) => {
                    tx.touch_stream(taken.number, now)?;
                    Done::Settled(taken, back > 0, reply)
                }
                None => Done::Lost(taken, reply),
            },
            Ask::Touch { number } => {
                tx.touch_stream(number, now)?;
                Done::Touched
            }
        });
    }
    Ok(done)
}

/// Takes what was read off the queue and puts the rest back, so many; `None`, and nothing is written, when
/// the life is over that had it: somebody else may have it by now.
fn settle(tx: &WriteTx<'_>, taken: &Taken, read: &[(i64, i64)]) -> Result<Option<usize>, DbError> {
    if !tx.as_read().is_alive(taken.life)? {
        return Ok(None);
    }
    let mut stay: Vec<i64> = taken.items.iter().map(|item| item.place).collect();
    for (place, seq) in read {
        if tx.unqueue_item(*place, *seq, taken.life)? {
            stay.retain(|one| one != place);
        }
    }
    // What was not there fell out of a full queue or went with its notification, or was put in again
    // and stays. An engine on which others write meanwhile may have ended the life since.
    if !tx.as_read().is_alive(taken.life)? {
        let why = "it was ended while what it had was read".to_owned();
        return Err(DbError::Damaged { what: format!("node {}", taken.life), why });
    }
    tx.free_queued_items(&stay, taken.life)?;
    Ok(Some(stay.len()))
}

/// Takes the first items of a stream that nobody else took.
fn take(
    tx: &WriteTx<'_>,
    returns: &Arc<Returns>,
    life: Uuid,
    id: Uuid,
    user: UserId,
    size: usize,
    now: Timestamp,
) -> Result<Option<Taken>, DbError> {
    // A reader waits for a minute at most, so that it keeps the stream in use by having come.
    let expired = now - STREAM_EXPIRY;
    let Some(found) = tx.as_read().find_stream(id, user, expired)? else { return Ok(None) };
    tx.touch_stream(found.number, now)?;
    let items = tx.take_queued_items(found.number, size, life)?;
    let returns = Arc::clone(returns);
    Ok(Some(Taken { returns, id, number: found.number, life, items, settled: false }))
}
