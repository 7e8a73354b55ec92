//! Both runners over a real database. No test waits for time: intervals are an hour, and each run determines
//! what comes next.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use tempfile::TempDir;
use tokio::sync::Notify;

use super::*;
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::membership::{ClusterNode, NodeDescription};
use crate::runtime::config::NodeRole;
use crate::storage::database::Db;

const HOUR: Duration = Duration::from_secs(3600);

/// Creates the guard of a working node whose clock the last process doubted or not.
fn guard(is_clock_doubted: bool) -> (ClusterGuard, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::scratch(dir.path()).unwrap();
    if is_clock_doubted {
        let note = format!("doubted {}", clock::now());
        db.write_blocking(move |tx| tx.write_state("clock", &note)).unwrap();
    }
    let node = ClusterNode::start(
        &db,
        dir.path(),
        NodeRole::All,
        NodeDescription::default(),
        clock::now(),
    )
    .unwrap();
    node.work(clock::now());
    let clock = ClockGuard::start(&db, None);
    assert_eq!(clock.is_trusted(), !is_clock_doubted);
    (ClusterGuard::new(node, clock), dir)
}

fn run_until(job: &mut impl BackgroundJob, guard: &ClusterGuard, stop: watch::Receiver<bool>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(run(job, guard, stopped(stop)));
}

/// Returns the given outcomes one by one, and is woken after each run. The last wake-up stops the runner.
struct Scripted {
    spec: JobSpec,
    outcomes: VecDeque<Result<RunOutcome, &'static str>>,
    runs: usize,
    stood_by: usize,
    /// Wake-ups that are left before the stop.
    wakes: usize,
    stop: watch::Sender<bool>,
}

impl Scripted {
    fn new(spec: JobSpec, outcomes: &[Result<RunOutcome, &'static str>], wakes: usize) -> Self {
        let (outcomes, stop) = (outcomes.iter().copied().collect(), watch::Sender::new(false));
        Self { spec, outcomes, runs: 0, stood_by: 0, wakes, stop }
    }

    fn run_to_the_end(mut self, guard: &ClusterGuard) -> Self {
        let stop = self.stop.subscribe();
        run_until(&mut self, guard, stop);
        self
    }
}

impl BackgroundJob for Scripted {
    type Error = &'static str;

    fn spec(&self) -> JobSpec {
        self.spec
    }

    async fn run(&mut self) -> Result<RunOutcome, &'static str> {
        self.runs += 1;
        self.outcomes.pop_front().unwrap_or(Ok(RunOutcome::Done))
    }

    async fn wait_for_work(&mut self) {
        self.wakes -= 1;
        if self.wakes == 0 {
            self.stop.send_replace(true);
            std::future::pending::<()>().await;
        }
    }

    fn stand_by(&mut self) {
        self.stood_by += 1;
        self.stop.send_replace(true);
    }
}

const SPEC: JobSpec = JobSpec::every("test", HOUR);

#[test]
fn a_job_runs_at_once_and_each_time_that_it_is_woken_until_the_stop() {
    let (guard, _dir) = guard(false);
    let job = Scripted::new(SPEC, &[], 3).run_to_the_end(&guard);
    assert_eq!(job.runs, 3);
}

#[test]
fn more_to_do_is_done_at_once_and_a_run_that_is_due_before_the_interval_comes_then() {
    let (guard, _dir) = guard(false);
    let outcomes = [
        Ok(RunOutcome::More),
        Ok(RunOutcome::More),
        Ok(RunOutcome::DueAfter(Duration::ZERO)),
        Ok(RunOutcome::Done),
    ];
    let mut job = StoppedWhenDone(Scripted::new(SPEC, &outcomes, 1));
    let stop = job.0.stop.subscribe();
    run_until(&mut job, &guard, stop);
    assert_eq!(job.0.runs, 4);
}

/// A job without wake-ups, stopped by its first run that is done.
struct StoppedWhenDone(Scripted);

impl BackgroundJob for StoppedWhenDone {
    type Error = &'static str;

    fn spec(&self) -> JobSpec {
        self.0.spec
    }

    async fn run(&mut self) -> Result<RunOutcome, &'static str> {
        let outcome = self.0.run().await;
        if outcome == Ok(RunOutcome::Done) {
            self.0.stop.send_replace(true);
        }
        outcome
    }
}

#[test]
fn a_stopped_job_does_not_run() {
    let (guard, _dir) = guard(false);
    let job = Scripted::new(SPEC, &[], 9);
    job.stop.send_replace(true);
    assert_eq!(job.run_to_the_end(&guard).runs, 0);
}

#[test]
fn a_job_whose_lease_was_lost_stands_by() {
    let (guard, _dir) = guard(false);
    let spec = SPEC.on_holder_of(ClusterLease::Sweeping);
    let job = Scripted::new(spec, &[], 3).run_to_the_end(&guard);
    assert_eq!((job.runs, job.stood_by), (3, 0));
    guard.node().lose_lease(ClusterLease::Sweeping);
    let job = Scripted::new(spec, &[], 3).run_to_the_end(&guard);
    assert_eq!((job.runs, job.stood_by), (0, 1));
}

#[test]
fn a_job_that_goes_by_the_clock_skips_its_runs_while_the_clock_is_doubted() {
    let (guard, _dir) = guard(true);
    let spec = SPEC.while_clock_is_trusted();
    assert_eq!(Scripted::new(spec, &[], 3).run_to_the_end(&guard).runs, 0);
    assert_eq!(Scripted::new(SPEC, &[], 3).run_to_the_end(&guard).runs, 3);
}

#[test]
fn a_sweep_removes_until_nothing_is_left() {
    let (guard, _dir) = guard(false);
    let left = std::sync::Arc::new(Mutex::new(VecDeque::from([5_usize, 5, 2])));
    let (stop, stops) = watch::channel(false);
    let mut job = sweep("test", HOUR, &(left.clone(), stop), |(left, stop), _now| async move {
        let removed = left.lock().unwrap().pop_front().unwrap_or(0);
        stop.send_replace(removed == 0);
        Ok::<_, &'static str>(removed)
    });
    run_until(&mut job, &guard, stops);
    assert!(left.lock().unwrap().is_empty());
}

#[test]
fn a_failure_lasts_until_a_run_succeeds_and_an_idle_run_ends_none() {
    let mut log = FailureLog::new("test");
    let mut check = |outcome: Result<RunOutcome, &str>, wait: Option<Duration>, fails: bool| {
        assert_eq!(wait_after(&outcome, &mut log, HOUR), wait);
        assert_eq!(log.is_failing(), fails);
    };
    check(Ok(RunOutcome::Idle), Some(HOUR), false);
    check(Err("no"), Some(HOUR), true);
    check(Err("no"), Some(HOUR), true);
    check(Ok(RunOutcome::Idle), Some(HOUR), true);
    check(Ok(RunOutcome::More), None, false);
    check(Ok(RunOutcome::DueAfter(Duration::ZERO)), Some(Duration::ZERO), false);
}

/// Reports each run on a channel, and waits for the outcome of the run.
struct Thread {
    spec: JobSpec,
    runs: Sender<()>,
    outcomes: Receiver<RunOutcome>,
}

impl BlockingJob for Thread {
    type Error = &'static str;

    fn spec(&self) -> JobSpec {
        self.spec
    }

    fn run(&mut self, stop: &StopSignal) -> Result<RunOutcome, &'static str> {
        assert!(!stop.is_set());
        self.runs.send(()).unwrap();
        self.outcomes.recv().map_err(|_| "the test ended")
    }
}

#[test]
fn a_thread_repeats_its_job_while_there_is_more_to_do_until_it_is_stopped() {
    let (guard, _dir) = guard(false);
    let ((runs, ran), (outcome, outcomes)) = (channel(), channel());
    let spec = SPEC.on_holder_of(ClusterLease::Matching);
    let thread = JobThread::start(Thread { spec, runs, outcomes }, &guard).unwrap();
    for next in [RunOutcome::More, RunOutcome::DueAfter(Duration::ZERO), RunOutcome::Done] {
        ran.recv().unwrap();
        outcome.send(next).unwrap();
    }
    // The thread waits for an hour, or for this.
    thread.end();
    assert!(ran.recv().is_err(), "no further run");
}

#[test]
fn a_thread_whose_lease_another_node_holds_runs_nothing() {
    let (guard, _dir) = guard(false);
    guard.node().lose_lease(ClusterLease::Matching);
    let stood_by = std::sync::Arc::new(Notify::new());
    let thread = JobThread::start(StandingBy(stood_by.clone()), &guard).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(stood_by.notified());
    thread.end();
}

struct StandingBy(std::sync::Arc<Notify>);

impl BlockingJob for StandingBy {
    type Error = &'static str;

    fn spec(&self) -> JobSpec {
        SPEC.on_holder_of(ClusterLease::Matching)
    }

    fn run(&mut self, _stop: &StopSignal) -> Result<RunOutcome, &'static str> {
        panic!("another node holds the lease")
    }

    fn stand_by(&mut self) {
        self.0.notify_one();
    }
}
