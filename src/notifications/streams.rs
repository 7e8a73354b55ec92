//! Streams: queues that clients read (Spec §3, §4 Notifications).
//!
//! An item is *under way* from the moment a reader takes it until the answer is on its way: other
//! readers pass it over, and it stays in the database. The row goes in a transaction of its own
//! when everything but the last byte of the answer was handed to the connection; only then does
//! that byte follow. So a client that has a whole answer never gets its items again, and what was
//! under way when the client vanished, or the process was killed, is in its old place.
//!
//! Where doubt remains: between that transaction and the client's receiving the last byte. What
//! was handed to the connection may still lie in a buffer, ours or the system's. A client that
//! vanishes without a word, or a process that is killed, within that moment loses the answer's
//! items.
//!
//! What is under way is known to one process. Two processes must not serve the streams of one
//! database.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use uuid::Uuid;

use super::watching::{SILENCE, take_up};
use crate::account::UserId;
use crate::db::{Db, DbError, QueuedItem, WriteTx};
use crate::error::{Error, Kind, Result};
use crate::limits::{STREAM_ASKS_AT_A_TIME, STREAM_ASKS_MAX, STREAM_EXPIRY, STREAM_LOOK_AGAIN};
use crate::telemetry;

/// The streams that are read.
pub(super) struct Streams {
    asks: mpsc::Sender<Ask>,
    places: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who waits, by stream.
    readers: HashMap<Uuid, Reading>,
    /// Places of items under way, by stream.
    under_way: HashMap<Uuid, HashSet<i64>>,
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
    streams: Arc<Streams>,
    id: Uuid,
    number: i64,
    /// In their order.
    pub(super) items: Vec<QueuedItem>,
    /// Whether all of them left the queue.
    gone: bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.items.is_empty() {
            return;
        }
        let mut state = self.streams.state();
        if let Some(places) = state.under_way.get_mut(&self.id) {
            for item in &self.items {
                places.remove(&item.place);
            }
            if places.is_empty() {
                state.under_way.remove(&self.id);
            }
        }
        drop(state);
        if !self.gone {
            self.streams.wake(&[self.id]);
        }
    }
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
        let mut state = streams.state();
        let reading = state
            .readers
            .entry(id)
            .or_insert_with(|| Reading { wake: Arc::new(Notify::new()), readers: 0 });
        reading.readers += 1;
        let wake = Arc::clone(&reading.wake);
        drop(state);
        Self { streams: Arc::clone(streams), id, number: None, wake }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        if let Some(reading) = state.readers.get_mut(&self.id) {
            reading.readers -= 1;
            if reading.readers == 0 {
                state.readers.remove(&self.id);
            }
        }
        drop(state);
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
    /// Streams of which `polls_max` readers may wait at a time, and what does their work.
    pub(super) fn new(polls_max: usize) -> (Arc<Self>, Asks) {
        let (asks, receiver) = mpsc::channel(STREAM_ASKS_MAX);
        let places = Semaphore::new(polls_max.min(Semaphore::MAX_PERMITS));
        let streams = Arc::new(Self { asks, places, state: Mutex::default() });
        (streams, Asks(receiver))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for these streams.
    pub(super) fn wake(&self, streams: &[Uuid]) {
        let state = self.state();
        for id in streams {
            if let Some(reading) = state.readers.get(id) {
                reading.wake.notify_waiters();
            }
        }
    }

    /// Up to `size` items of the stream as soon as there are some for which `give` gives something;
    /// nothing once `wait` is over or `stop` comes.
    ///
    /// Fails with [`Kind::NotFound`] when the user has no such stream or it expired, with
    /// [`Kind::Overloaded`] when too many wait.
    pub(super) async fn read<T, F: Future<Output = Result<Look<T>>>>(
        self: &Arc<Self>,
        (id, user, size): (Uuid, UserId, usize),
        give: impl Fn(Taken) -> F,
        (wait, stop): (Duration, impl Future<Output = ()>),
    ) -> Result<Option<T>> {
        let full = |_| Error::overloaded("stream_polls", "Too many requests wait for items");
        if self.asks.capacity() == 0 {
            // It would wait for a place to ask in, and nothing says for how long.
            return Err(Error::overloaded(
                "stream_asks",
                "Too many requests of streams are asked",
            ));
        }
        let mut place = None;
        let mut waiting = Waiting::new(self, id);
        let mut end = std::pin::pin!(async {
            tokio::select! { () = tokio::time::sleep(wait) => {}, () = stop => {} }
        });
        let wake = Arc::clone(&waiting.wake);
        loop {
            let mut woken = std::pin::pin!(wake.notified());
            // From here on no call is missed.
            woken.as_mut().enable();
            let (reply, taken) = oneshot::channel();
            let taken = self.ask(Ask::Take { id, user, size, reply }, taken).await?;
            waiting.number = Some(taken.number);
            if !taken.items.is_empty() {
                match give(taken).await? {
                    Look::Given(given) => return Ok(Some(given)),
                    // There may be more behind them.
                    Look::Gone => continue,
                    Look::Early => {
                        tokio::select! {
                            biased;
                            () = &mut end => return Ok(None),
                            () = tokio::time::sleep(STREAM_LOOK_AGAIN) => continue,
                        }
                    }
                }
            }
            if place.is_none() {
                place = Some((self.places.try_acquire().map_err(full)?, Counted::new()));
            }
            tokio::select! {
                biased;
                () = &mut end => return Ok(None),
                () = woken => {}
            }
        }
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
pub struct Asks(mpsc::Receiver<Ask>);

/// What became of an ask within a transaction.
enum Done {
    Taken(Option<Taken>, oneshot::Sender<Result<Taken>>),
    Damaged(DbError, oneshot::Sender<Result<Taken>>),
    Settled(Taken, oneshot::Sender<Result<()>>),
    Touched,
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
        while let Some(first) = self.0.recv().await {
            let mut asks = vec![first];
            while asks.len() < STREAM_ASKS_AT_A_TIME {
                let Ok(next) = self.0.try_recv() else { break };
                asks.push(next);
            }
            let Some(streams) = streams.upgrade() else { return };
            let now = now();
            // Where the clock jumped, nobody is late because of it.
            let jumped = alive.is_none_or(|alive| now < alive || now > alive + SILENCE);
            alive = Some(now);
            // Replies whose transaction failed are dropped with it, which their readers see.
            match db.write(move |tx| work(tx, &streams, asks, (now, jumped))).await {
                Ok(done) => done.into_iter().for_each(Done::reply),
                Err(cause) => tracing::error!("streams cannot be read: {cause}"),
            }
        }
    }
}

impl Done {
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
            Self::Damaged(cause, reply) => drop(reply.send(Err(cause.into()))),
            Self::Settled(taken, reply) => {
                drop(taken);
                drop(reply.send(Ok(())));
            }
            Self::Touched => {}
        }
    }
}

fn work(
    tx: &WriteTx<'_>,
    streams: &Arc<Streams>,
    asks: Vec<Ask>,
    (now, jumped): (Timestamp, bool),
) -> Result<Vec<Done>, DbError> {
    if jumped {
        take_up(tx, now)?;
    }
    let mut done = Vec::with_capacity(asks.len());
    for ask in asks {
        done.push(match ask {
            Ask::Take { id, user, size, reply } => {
                match take(tx, streams, (id, user, size), now) {
                    Ok(taken) => Done::Taken(taken, reply),
                    // One damaged queue must not keep others from theirs.
                    Err(cause @ DbError::Damaged { .. }) => Done::Damaged(cause, reply),
                    Err(cause) => return Err(cause),
                }
            }
            Ask::Settle { mut taken, read, reply } => {
                taken.gone = tx.unqueue_items(&read)? == taken.items.len();
                tx.touch_stream(taken.number, now)?;
                Done::Settled(taken, reply)
            }
            Ask::Touch { number } => {
                tx.touch_stream(number, now)?;
                Done::Touched
            }
        });
    }
    Ok(done)
}

/// Takes the first items of a stream that nobody else took.
fn take(
    tx: &WriteTx<'_>,
    streams: &Arc<Streams>,
    (id, user, size): (Uuid, UserId, usize),
    now: Timestamp,
) -> Result<Option<Taken>, DbError> {
    // A reader waits for a minute at most, so that it keeps the stream in use by having come.
    let expired = now - STREAM_EXPIRY;
    let Some(found) = tx.as_read().find_stream(id, user, expired)? else { return Ok(None) };
    tx.touch_stream(found.number, now)?;
    let known = streams.state().under_way.get(&id).cloned().unwrap_or_default();
    let queued = tx.as_read().queued_items(found.number, size.saturating_add(known.len()))?;
    let free = queued.into_iter().filter(|item| !known.contains(&item.place));
    let items: Vec<QueuedItem> = free.take(size).collect();
    if !items.is_empty() {
        let mut state = streams.state();
        state.under_way.entry(id).or_default().extend(items.iter().map(|item| item.place));
    }
    let streams = Arc::clone(streams);
    Ok(Some(Taken { streams, id, number: found.number, items, gone: false }))
}
