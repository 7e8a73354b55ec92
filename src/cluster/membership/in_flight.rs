//! Tasks that send messages on behalf of this incarnation, each with its claimed messages.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

/// Running tasks, each with the messages that it has claimed.
#[derive(Debug)]
pub struct InFlightTasks<T> {
    tasks: JoinSet<()>,
    in_flight: HashMap<Id, T>,
}

impl<T> Default for InFlightTasks<T> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), in_flight: HashMap::new() }
    }
}

impl<T> InFlightTasks<T> {
    /// Starts a task that sends `claimed`.
    pub fn start(&mut self, claimed: T, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.in_flight.insert(task.id(), claimed);
    }

    /// Returns the messages that are still being sent, or whose outcome is still to be written.
    pub fn held(&self) -> impl Iterator<Item = &T> {
        self.in_flight.values()
    }

    /// Returns the number of running tasks.
    pub fn count(&mut self) -> usize {
        // Tasks that have ended stay in the set until they are joined.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.forget(&ended);
        }
        self.tasks.len()
    }

    /// Waits until a task has ended. Returns `None` if no task runs.
    pub async fn next_ended(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        self.forget(&ended);
        Some(())
    }

    /// Waits for all tasks. After `time`, sets `abandon`: tasks then release their unsent messages.
    pub async fn drain(&mut self, time: Duration, abandon: &watch::Sender<bool>) {
        let ended = async { while self.next_ended().await.is_some() {} };
        if tokio::time::timeout(time, ended).await.is_err() {
            abandon.send_replace(true);
            // Tasks release their unsent messages themselves, so they are waited for again.
            while self.next_ended().await.is_some() {}
        }
    }

    fn forget(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.in_flight.remove(&id);
    }
}
