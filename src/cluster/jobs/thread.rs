//! Jobs that block, each on a thread of its own.

use std::{
    fmt::Display,
    sync::mpsc::{self, RecvTimeoutError, TryRecvError},
    time::Duration,
};

use super::{FailureLog, JobSpec, RunOutcome, wait_after};
use crate::cluster::guard::ClusterGuard;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::FOLLOW_POLL_MS;

/// Time between two looks at whether the lease of a job is free.
const STANDBY_POLL: Duration = Duration::from_millis(FOLLOW_POLL_MS);

/// Work that a thread repeats.
pub trait BlockingJob: Send + 'static {
    /// Why a run failed.
    type Error: Display;

    /// When and where it runs; asked before each run and after it. The thread has its name.
    fn spec(&self) -> JobSpec;

    /// Does one run. One that takes long looks at `stop`.
    fn run(&mut self, stop: &StopSignal) -> Result<RunOutcome, Self::Error>;

    /// Called now and then while another node does the job.
    fn stand_by(&mut self) {}
}

/// Says to a thread when the service stops.
#[derive(Debug)]
pub struct StopSignal(mpsc::Receiver<()>);

impl StopSignal {
    /// Whether the service stops.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.try_recv() != Err(TryRecvError::Empty)
    }

    /// Waits for `time`; whether the service stops.
    fn wait(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

/// A thread that runs a job until it is told to stop.
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
        let (guard, stopped) = (guard.clone(), StopSignal(stopped));
        let thread = std::thread::Builder::new()
            .name(job.spec().name.to_owned())
            .spawn(move || run(&mut job, &guard, &stopped))
            .map_err(Error::internal)?;
        Ok(Self { stop, thread })
    }

    /// Stops the thread and waits for the end of its run.
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
            let outcome = match spec.skips(guard) {
                true => Ok(RunOutcome::Idle),
                false => job.run(stop),
            };
            wait_after(&outcome, &mut log, job.spec().interval)
        };
        if wait.is_some_and(|wait| stop.wait(wait)) {
            return;
        }
    }
}
