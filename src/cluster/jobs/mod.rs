//! Background jobs and the two runners that repeat them: tasks ([`run`]) and threads ([`JobThread`]).
//!
//! A job declares its interval and conditions ([`JobSpec`]) and does one run. The runner repeats it: after
//! its interval, at once if there is more to do, or earlier if the job is woken. The runner waits while a
//! different node holds the lease, skips runs while the clock is not trusted, logs once when runs begin to
//! fail and once when they succeed again, and ends when the service stops.
//!
//! The search index follows the item log by itself, because it belongs to a lower layer. Queues that requests
//! fill, such as the queue of the audit log, are not jobs: they must not lose entries that they accepted.

#[cfg(test)]
mod tests;
mod thread;

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::guard::ClusterGuard;
use super::membership::ClusterLease;
use crate::runtime::clock;
use crate::runtime::failure_log::FailureLog;
pub use thread::{BlockingJob, JobThread, StopSignal};

/// The schedule of a job and the conditions under which it runs.
#[derive(Clone, Copy, Debug)]
pub struct JobSpec {
    /// The name of the job in the log.
    pub name: &'static str,
    /// Time from the end of a run to the next one, whether it succeeded or failed.
    pub interval: Duration,
    /// The lease of a job that one node does at a time; `None` for a job that every node runs.
    pub lease: Option<ClusterLease>,
    /// True if the job removes data that has expired by the time of day.
    pub needs_trusted_clock: bool,
}

impl JobSpec {
    /// Describes a job that every node runs, whether its clock is trusted or not.
    pub const fn every(name: &'static str, interval: Duration) -> Self {
        Self { name, interval, lease: None, needs_trusted_clock: false }
    }

    /// Restricts the job to the node that holds `lease`.
    #[must_use]
    pub const fn on_holder_of(self, lease: ClusterLease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Restricts the job to times when the clock is trusted.
    #[must_use]
    pub const fn while_clock_is_trusted(self) -> Self {
        Self { needs_trusted_clock: true, ..self }
    }

    /// Returns whether this node lacks the job's lease and must wait for it.
    fn is_standby(&self, guard: &ClusterGuard) -> bool {
        self.lease.is_some_and(|lease| !guard.node().holds(lease))
    }

    /// Returns whether the due run is skipped.
    fn skips(&self, guard: &ClusterGuard) -> bool {
        self.needs_trusted_clock && !guard.trusts_clock()
    }
}

/// The outcome of a run, which decides when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Nothing was due. The job may still be unable to work, so an earlier failure stays open.
    Idle,
    /// All due work was done.
    Done,
    /// Part of the work was done: the next run follows at once.
    More,
    /// The next run is due after this time instead of the interval.
    DueAfter(Duration),
}

/// Work that a task repeats.
pub trait BackgroundJob: Send {
    /// The cause of a failed run.
    type Error: Display + Send;

    /// Returns the schedule and conditions of the job. Called before and after each run.
    fn spec(&self) -> JobSpec;

    /// Does one run, which is not cancelled when the service stops.
    fn run(&mut self) -> impl Future<Output = Result<RunOutcome, Self::Error>> + Send;

    /// Waits until a run is due before the interval is over. The future may be dropped and created again.
    fn wait_for_work(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Called once when the job starts to wait for a lease that a different node holds.
    fn stand_by(&mut self) {}
}

/// Runs a job until `stop` resolves.
pub async fn run<J: BackgroundJob>(
    job: &mut J,
    guard: &ClusterGuard,
    stop: impl Future<Output = ()> + Send,
) {
    let mut stop = pin!(stop);
    let mut log = FailureLog::new(job.spec().name);
    loop {
        // `select!` polls `stop` once, so that a job that always has more to do can be stopped.
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = std::future::ready(()) => {}
        }
        let spec = job.spec();
        if let Some(lease) = spec.lease.filter(|_| spec.is_standby(guard)) {
            job.stand_by();
            tokio::select! {
                () = &mut stop => return,
                () = guard.node().wait_for_lease(lease) => continue,
            }
        }
        let outcome = if spec.skips(guard) {
            // The clock may be trusted again later, so only this run is skipped.
            Ok(RunOutcome::Idle)
        } else {
            job.run().await
        };
        let Some(wait) = wait_after(&outcome, &mut log, job.spec().interval) else { continue };
        tokio::select! {
            () = &mut stop => return,
            () = job.wait_for_work() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Logs the outcome of a run. Returns the time until the next one, or `None` if it follows at once.
fn wait_after<E: Display>(
    outcome: &Result<RunOutcome, E>,
    log: &mut FailureLog,
    interval: Duration,
) -> Option<Duration> {
    // An idle run proves nothing, so the failure log keeps its state.
    if !matches!(outcome, Ok(RunOutcome::Idle)) {
        log.record(outcome);
    }
    match outcome {
        Ok(RunOutcome::More) => None,
        Ok(RunOutcome::DueAfter(wait)) => Some(*wait),
        Ok(RunOutcome::Idle | RunOutcome::Done) | Err(_) => Some(interval),
    }
}

/// Waits until `stop` is true, or until its sender is dropped.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// A job that calls a function with a clone of a target.
pub struct PeriodicJob<T, F> {
    spec: JobSpec,
    target: T,
    run: F,
}

/// Creates a job that calls `run` with a clone of `target`.
pub fn periodic<T: Clone, R, F: Fn(T) -> R>(
    spec: JobSpec,
    target: &T,
    run: F,
) -> PeriodicJob<T, F> {
    PeriodicJob { spec, target: target.clone(), run }
}

impl<T, F, R, E> BackgroundJob for PeriodicJob<T, F>
where
    T: Clone + Send,
    F: Fn(T) -> R + Send,
    R: Future<Output = Result<RunOutcome, E>> + Send,
    E: Display + Send,
{
    type Error = E;

    fn spec(&self) -> JobSpec {
        self.spec
    }

    fn run(&mut self) -> impl Future<Output = Result<RunOutcome, E>> + Send {
        (self.run)(self.target.clone())
    }
}

/// Creates a job that removes expired data, on one node at a time.
///
/// `remove` removes some rows and returns their number. The job calls it until that number is 0, each time in
/// a new transaction, so that other writers get the write lock in between.
pub fn sweep<T, F, R, E>(
    name: &'static str,
    interval: Duration,
    target: &T,
    remove: F,
) -> impl BackgroundJob + use<T, F, R, E>
where
    T: Clone + Send,
    F: Fn(T, Timestamp) -> R + Send,
    R: Future<Output = Result<usize, E>> + Send,
    E: Display + Send,
{
    let spec = JobSpec::every(name, interval);
    let spec = spec.on_holder_of(ClusterLease::Sweeping).while_clock_is_trusted();
    periodic(spec, target, move |target| {
        let removal = remove(target, clock::now());
        async move {
            let removed = removal.await?;
            if removed == 0 {
                // A transaction removes a bounded number of rows, so only 0 means that no expired rows are
                // left.
                return Ok::<_, E>(RunOutcome::Done);
            }
            tracing::debug!(removed, "job {name}");
            Ok(RunOutcome::More)
        }
    })
}
