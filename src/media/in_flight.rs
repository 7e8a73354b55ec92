//! Request coalescing: equal renders in flight run once.
//!
//! A render runs in the pool. Requests wait on a channel, whose receivers are counted. When the count falls to
//! zero before or during the render, the render is abandoned. A request that joins a running render shares its
//! result.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::render_error::RenderError;
use model::ContentHash;

/// The result of a render or a read that yields a `T`.
pub(super) type Outcome<T> = Result<Arc<T>, RenderError>;
type Slot<T> = watch::Sender<Option<Outcome<T>>>;
type Slots<T> = Mutex<HashMap<ContentHash, Arc<Slot<T>>>>;

/// The renders or reads in flight, by the key of their plan.
pub(super) struct InFlightRenders<T> {
    slots: Arc<Slots<T>>,
}

// Implemented by hand, because the derived implementation would require the same trait of `T`.
impl<T> Default for InFlightRenders<T> {
    fn default() -> Self {
        Self { slots: Arc::default() }
    }
}

/// A request's wait for a render.
pub(super) struct RenderWaiter<T>(watch::Receiver<Option<Outcome<T>>>);

/// The producing end of a render, which ends with [`RenderTask::finish`]. If it is dropped before that, the render
/// fails.
pub(super) struct RenderTask<T> {
    slots: Arc<Slots<T>>,
    key: ContentHash,
    slot: Arc<Slot<T>>,
}

impl<T> InFlightRenders<T> {
    /// Joins the render of `key`. The first request also gets the task, which it must run. `begin` is called
    /// before that and can refuse the render.
    pub(super) fn join<E>(
        &self,
        key: ContentHash,
        begin: impl FnOnce() -> Result<(), E>,
    ) -> Result<(RenderWaiter<T>, Option<RenderTask<T>>), E> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            return Ok((RenderWaiter(slot.subscribe()), None));
        }
        // Called under the lock, so that only one of several concurrent requests is charged.
        begin()?;
        let (sender, receiver) = watch::channel(None);
        let slot = Arc::new(sender);
        slots.insert(key, Arc::clone(&slot));
        let task = RenderTask { slots: Arc::clone(&self.slots), key, slot };
        Ok((RenderWaiter(receiver), Some(task)))
    }

    /// Returns whether a render of `key` is in flight.
    pub(super) fn contains(&self, key: ContentHash) -> bool {
        self.slots.lock().contains_key(&key)
    }
}

impl<T> RenderWaiter<T> {
    /// Waits until the render has ended.
    pub(super) async fn wait(mut self) -> Outcome<T> {
        let ended = self.0.wait_for(Option::is_some).await;
        match ended.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            // The task was dropped without an outcome, so it panicked.
            Ok(None) | Err(_) => Err(RenderError::Panicked),
        }
    }
}

impl<T> RenderTask<T> {
    /// Returns whether any request still waits. Once it has returned `false`, no request can join this render.
    pub(super) fn has_waiters(&self) -> bool {
        if self.slot.receiver_count() > 0 {
            return true;
        }
        // Checked again under the lock, because a request may have joined since.
        let mut slots = self.slots.lock();
        if self.slot.receiver_count() > 0 {
            return true;
        }
        self.remove(&mut slots);
        false
    }

    /// Waits until no request waits for the render. After that, no request can join it.
    pub(super) async fn abandoned(&self) {
        while self.has_waiters() {
            self.slot.closed().await;
        }
    }

    /// Publishes the outcome to all waiting requests.
    pub(super) fn finish(&self, outcome: Outcome<T>) {
        // After a success the body is already in the cache, so a later request needs no slot.
        self.remove(&mut self.slots.lock());
        self.slot.send_replace(Some(outcome));
    }

    fn remove(&self, slots: &mut HashMap<ContentHash, Arc<Slot<T>>>) {
        // A later render of the same key may have replaced the slot.
        if slots.get(&self.key).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            slots.remove(&self.key);
        }
    }
}

impl<T> Drop for RenderTask<T> {
    fn drop(&mut self) {
        self.remove(&mut self.slots.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Renders = InFlightRenders<u32>;

    fn rendered() -> Arc<u32> {
        Arc::new(7)
    }

    fn join(flight: &Renders, key: ContentHash) -> (RenderWaiter<u32>, Option<RenderTask<u32>>) {
        flight.join(key, || Ok::<_, RenderError>(())).expect("it may begin")
    }

    #[tokio::test]
    async fn equal_requests_share_one_task_and_its_outcome() {
        let flight = Renders::default();
        let key = ContentHash([1; 32]);
        let (first, task) = join(&flight, key);
        let (second, none) = join(&flight, key);
        assert!(none.is_none());
        let task = task.expect("the first runs it");
        drop(first);
        assert!(task.has_waiters(), "the second still waits");
        task.finish(Ok(rendered()));
        assert_eq!(second.wait().await.expect("rendered"), rendered());
        assert!(join(&flight, key).1.is_some(), "a later request starts anew");
    }

    #[tokio::test]
    async fn an_abandoned_render_is_dropped_and_cannot_be_joined() {
        let flight = Renders::default();
        let key = ContentHash([2; 32]);
        let (first, task) = join(&flight, key);
        drop(first);
        let task = task.expect("the first runs it");
        assert!(!task.has_waiters());
        assert!(join(&flight, key).1.is_some());
    }

    #[tokio::test]
    async fn a_render_is_abandoned_when_its_last_request_has_left() {
        let flight = Renders::default();
        let key = ContentHash([5; 32]);
        let (first, task) = join(&flight, key);
        let (second, _) = join(&flight, key);
        let task = task.expect("the first runs it");
        drop(first);
        tokio::select! {
            biased;
            () = task.abandoned() => panic!("the second still waits"),
            () = std::future::ready(()) => {}
        }
        drop(second);
        task.abandoned().await;
        assert!(join(&flight, key).1.is_some());
    }

    fn refuse() -> Result<(), RenderError> {
        Err(RenderError::Panicked)
    }

    #[tokio::test]
    async fn who_may_not_begin_a_render_may_join_one() {
        let flight = Renders::default();
        let key = ContentHash([4; 32]);
        assert!(flight.join(key, refuse).is_err());
        let (_first, task) = join(&flight, key);
        let (second, none) = flight.join(key, refuse).expect("it is in flight");
        assert!(none.is_none());
        task.expect("the first runs it").finish(Ok(rendered()));
        assert_eq!(second.wait().await.expect("rendered"), rendered());
    }

    #[tokio::test]
    async fn a_task_that_vanishes_fails_its_waiters() {
        let flight = Renders::default();
        let (waiting, task) = join(&flight, ContentHash([3; 32]));
        drop(task);
        assert!(matches!(waiting.wait().await, Err(RenderError::Panicked)));
    }
}
