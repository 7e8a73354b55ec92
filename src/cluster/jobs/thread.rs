//! Blocking jobs, each on a dedicated thread.

use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::{FailureLog, JobSpec, RunOutcome, wait_after};
use crate::cluster::guard::ClusterGuard;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::FOLLOW_POLL_MS;

/// Interval at which a standby job checks whether it holds the lease.
const STANDBY_POLL: Duration = Duration::from_millis(FOLLOW_POLL_MS);

/// Work that a thread repeats.
pub trait BlockingJob: Send + 'static {
    /// The cause of a failed run.
    type Error: Display;

    /// Returns the schedule and conditions of the job. Called before and after each run. The thread has the
    /// name of the job.
    fn spec(&self) -> JobSpec;

    /// Does one run. A long run checks `stop` regularly.
    fn run(&mut self, stop: &StopSignal) -> Result<RunOutcome, Self::Error>;

    /// Called repeatedly while a different node does the job.
    fn stand_by(&mut self) {}
}

/// Signals to a thread that the service stops.
#[derive(Debug)]
pub struct StopSignal(mpsc::Receiver<()>);

impl StopSignal {
    /// Returns whether the service stops.
    pub fn is_set(&self) -> bool {
        // Nothing is ever sent: the sender is dropped to stop the thread.
        self.0.try_recv() != Err(TryRecvError::Empty)
    }

    /// Waits for `time` or until the service stops. Returns whether it stops.
    fn wait(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

/// A thread that runs a job until [`JobThread::end`] stops it.
pub struct JobThread {
    stop: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl JobThread {
    /// Starts the thread of a job.
    ///
    /// Fails when no thread can be started.
    pub fn start(mut job: impl BlockingJob, guard: &ClusterGuard) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let stopped = StopSignal(stopped);
        let guard = guard.clone();
        let thread = std::thread::Builder::new()
            .name(job.spec().name.to_owned())
            .spawn(move || run(&mut job, &guard, &stopped))
            .map_err(Error::internal)?;
        Ok(Self { stop, thread })
    }

    /// Stops the thread and waits for the end of the current run.
    pub fn end(self) {
        drop(self.stop);
        drop(self.thread.join());
    }
}

fn run(job: &mut impl BlockingJob, guard: &ClusterGuard, stop: &StopSignal) {
    let mut log = FailureLog::new(job.spec().name);
    while !stop.is_set() {
        let spec = job.spec();
        let wait = if spec.is_standby(guard) {
            job.stand_by();
            Some(STANDBY_POLL)
        } else {
            let outcome = if spec.skips(guard) { Ok(RunOutcome::Idle) } else { job.run(stop) };
            wait_after(&outcome, &mut log, job.spec().interval)
        };
        if wait.is_some_and(|wait| stop.wait(wait)) {
            return;
        }
    }
}
