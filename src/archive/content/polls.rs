//! Long polls: wait until a search has a match (contract search-19).

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::sleep;

use crate::runtime::error::{Error, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::slots::{SlotLimits, WaitingSlots};
use crate::runtime::telemetry::{self, GaugeGuard};

/// Long polls that search at the same time when new items arrive. With thousands waiting, this spreads
/// their searches so that others run in between.
const POLLS_SEARCHING_MAX: usize = 2;

/// The long polls that are waiting.
///
/// New items wake all of them at once, and [`POLLS_SEARCHING_MAX`] of them search at a time. While a poll is
/// queued, further items may arrive. Its next search covers all of them.
#[derive(Debug)]
pub(super) struct PollQueue {
    slots: WaitingSlots,
    searches: Semaphore,
}

impl PollQueue {
    /// Creates an empty queue; `limits` bounds the number of polls that wait at a time.
    pub(super) fn new(limits: SlotLimits) -> Self {
        let slots = WaitingSlots::new("polls", "client_polls", limits);
        Self { slots, searches: Semaphore::new(POLLS_SEARCHING_MAX) }
    }

    /// Runs `search` at once and again whenever `changes` increases, until it returns a value. Returns `None` if
    /// `wait` has elapsed or `stop` completes, after at least one run.
    ///
    /// `changes` was subscribed to before, so no change between two runs is missed. Fails with
    /// [`crate::runtime::error::ErrorKind::Overloaded`] if `holder` or all clients have too many polls waiting,
    /// and as `search` does.
    pub(super) async fn wait<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        holder: Option<RequestClient>,
        mut changes: watch::Receiver<u64>,
        search: impl Fn() -> F,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<T>> {
        let _slot = self.slots.take(holder)?;
        let _counted = GaugeGuard::new(telemetry::POLLS_WAITING);
        let mut end = std::pin::pin!(async {
            tokio::select! { () = sleep(wait) => {}, () = stop => {} }
        });
        let mut permit = self.wait_for_slot().await?;
        loop {
            // Marked as seen before the search, so that a change during the search wakes the poll again.
            changes.borrow_and_update();
            let found = search().await?;
            // The permit is for searching only. A poll that held it while waiting would block the others.
            drop(permit);
            if found.is_some() {
                return Ok(found);
            }
            let changed = async {
                if changes.changed().await.is_err() {
                    // The sender is gone, so no change will ever be announced.
                    std::future::pending::<()>().await;
                }
                self.wait_for_slot().await
            };
            permit = tokio::select! {
                // Biased, because with constant changes the poll would often search once more after its end.
                biased;
                () = &mut end => return Ok(None),
                permit = changed => permit?,
            };
        }
    }

    async fn wait_for_slot(&self) -> Result<SemaphorePermit<'_>> {
        self.searches.acquire().await.map_err(Error::internal)
    }
}
