//! Long polls: waiting until something matches (contract search-19).

use std::time::Duration;

use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::sleep,
};

use crate::runtime::error::{Error, Result};
use crate::runtime::limits::POLLS_SEARCHING_MAX;
use crate::runtime::slots::{SlotHolder, SlotLimits, WaitingSlots};
use crate::runtime::telemetry;

/// The polls that wait.
///
/// When items come in, all of them want to look. [`POLLS_SEARCHING_MAX`] do at a time; what comes in
/// while a poll stands in that queue is covered by its one look.
#[derive(Debug)]
pub(super) struct PollQueue {
    slots: WaitingSlots,
    searches: Semaphore,
}

impl PollQueue {
    /// No polls yet; `limits` says how many may wait at a time.
    pub(super) fn new(limits: SlotLimits) -> Self {
        let slots = WaitingSlots::new("polls", "client_polls", limits);
        Self { slots, searches: Semaphore::new(POLLS_SEARCHING_MAX) }
    }

    /// What `look` gives as soon as it gives something; it looks at once and whenever `changes`
    /// counts up. Nothing once `wait` is over or `stop` comes, after one look at least.
    ///
    /// `changes` was subscribed before, so that nothing between two looks is missed. Fails with
    /// [`crate::runtime::error::Kind::Overloaded`] when `holder` or all clients have too many that wait, and
    /// as `look` does.
    pub(super) async fn wait<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        holder: Option<SlotHolder>,
        mut changes: watch::Receiver<u64>,
        look: impl Fn() -> F,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<T>> {
        let _slot = self.slots.take(holder)?;
        let _counted = PollGauge::new();
        let mut end = std::pin::pin!(async {
            tokio::select! { () = sleep(wait) => {}, () = stop => {} }
        });
        let mut turn = self.wait_for_slot().await?;
        loop {
            changes.borrow_and_update();
            let found = look().await?;
            drop(turn);
            if found.is_some() {
                return Ok(found);
            }
            let changed = async {
                if changes.changed().await.is_err() {
                    // Nobody is left who could say that items came in.
                    std::future::pending::<()>().await;
                }
                self.wait_for_slot().await
            };
            turn = tokio::select! {
                biased;
                () = &mut end => return Ok(None),
                turn = changed => turn?,
            };
        }
    }

    async fn wait_for_slot(&self) -> Result<SemaphorePermit<'_>> {
        self.searches.acquire().await.map_err(Error::internal)
    }
}

/// Counts a poll for as long as it waits.
struct PollGauge;

impl PollGauge {
    fn new() -> Self {
        metrics::gauge!(telemetry::POLLS_WAITING).increment(1.0);
        Self
    }
}

impl Drop for PollGauge {
    fn drop(&mut self) {
        metrics::gauge!(telemetry::POLLS_WAITING).decrement(1.0);
    }
}
