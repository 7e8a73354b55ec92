//! One render for any number of equal requests.
//!
//! A render belongs to the pool. Requests wait on a channel; the number of waiting requests is
//! the number of its receivers. When it falls to zero before or during the work, the work is
//! dropped. Who joins while work is under way gets its result.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::render::{RenderError, RenderedBody};
use model::ContentHash;

/// How a render ended.
pub(super) type Outcome = Result<Arc<RenderedBody>, RenderError>;
type Slot = watch::Sender<Option<Outcome>>;

/// The renders under way, by the key of their plan.
#[derive(Clone, Default)]
pub(super) struct InFlightRenders {
    slots: Arc<Mutex<HashMap<ContentHash, Arc<Slot>>>>,
}

/// A request's place in the wait for a render.
pub(super) struct RenderWaiter(watch::Receiver<Option<Outcome>>);

/// The render's side: it ends with [`RenderTask::finish`], or as failed when it is dropped.
pub(super) struct RenderTask {
    flight: InFlightRenders,
    key: ContentHash,
    slot: Arc<Slot>,
}

impl InFlightRenders {
    /// Joins the render of `key`. The first to come also gets the task, which must be run; `begin`
    /// says before whether it may.
    pub(super) fn join<E>(
        &self,
        key: ContentHash,
        begin: impl FnOnce() -> Result<(), E>,
    ) -> Result<(RenderWaiter, Option<RenderTask>), E> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            return Ok((RenderWaiter(slot.subscribe()), None));
        }
        begin()?;
        let (sender, receiver) = watch::channel(None);
        let slot = Arc::new(sender);
        slots.insert(key, Arc::clone(&slot));
        Ok((RenderWaiter(receiver), Some(RenderTask { flight: self.clone(), key, slot })))
    }
}

impl RenderWaiter {
    /// Waits for the end of the render.
    pub(super) async fn wait(mut self) -> Outcome {
        let ended = self.0.wait_for(Option::is_some).await;
        match ended.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            // The task went away without a word: it panicked.
            Ok(None) | Err(_) => Err(RenderError::Panicked),
        }
    }
}

impl RenderTask {
    /// Whether somebody still waits. False ends the render for good: nobody can join it any more.
    pub(super) fn has_waiters(&self) -> bool {
        if self.slot.receiver_count() > 0 {
            return true;
        }
        let mut slots = self.flight.slots.lock();
        if self.slot.receiver_count() > 0 {
            return true;
        }
        self.remove(&mut slots);
        false
    }

    /// Gives the outcome to every request that waits.
    pub(super) fn finish(&self, outcome: Outcome) {
        self.remove(&mut self.flight.slots.lock());
        self.slot.send_replace(Some(outcome));
    }

    fn remove(&self, slots: &mut HashMap<ContentHash, Arc<Slot>>) {
        if slots.get(&self.key).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            slots.remove(&self.key);
        }
    }
}

impl Drop for RenderTask {
    fn drop(&mut self) {
        self.remove(&mut self.flight.slots.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::cache::RenditionBody;
    use crate::media::timing::RenderTiming;
    use imaging::RenderPath;

    fn made() -> Arc<RenderedBody> {
        let body = RenditionBody::memory(&b"picture"[..]);
        Arc::new(RenderedBody {
            body,
            render_path: RenderPath::Whole,
            timing: RenderTiming::default(),
        })
    }

    fn join(flight: &InFlightRenders, key: ContentHash) -> (RenderWaiter, Option<RenderTask>) {
        flight.join(key, || Ok::<_, RenderError>(())).expect("it may begin")
    }

    #[tokio::test]
    async fn equal_requests_share_one_task_and_its_outcome() {
        let flight = InFlightRenders::default();
        let key = ContentHash([1; 32]);
        let (first, task) = join(&flight, key);
        let (second, none) = join(&flight, key);
        assert!(none.is_none());
        let task = task.expect("the first runs it");
        drop(first);
        assert!(task.has_waiters(), "the second still waits");
        task.finish(Ok(made()));
        assert_eq!(second.wait().await.expect("rendered"), made());
        assert!(join(&flight, key).1.is_some(), "a later request starts anew");
    }

    #[tokio::test]
    async fn a_render_that_nobody_waits_for_is_dropped_and_cannot_be_joined() {
        let flight = InFlightRenders::default();
        let key = ContentHash([2; 32]);
        let (first, task) = join(&flight, key);
        drop(first);
        let task = task.expect("the first runs it");
        assert!(!task.has_waiters());
        assert!(join(&flight, key).1.is_some());
    }

    #[tokio::test]
    async fn who_may_not_begin_a_render_may_join_one() {
        let flight = InFlightRenders::default();
        let key = ContentHash([4; 32]);
        let poor = || Err(RenderError::Overloaded);
        assert!(flight.join(key, poor).is_err());
        let (_first, task) = join(&flight, key);
        let (second, none) = flight.join(key, poor).expect("it is under way");
        assert!(none.is_none());
        task.expect("the first runs it").finish(Ok(made()));
        assert_eq!(second.wait().await.expect("rendered"), made());
    }

    #[tokio::test]
    async fn a_task_that_vanishes_fails_its_waiters() {
        let flight = InFlightRenders::default();
        let (waiting, task) = join(&flight, ContentHash([3; 32]));
        drop(task);
        assert!(matches!(waiting.wait().await, Err(RenderError::Panicked)));
    }
}
